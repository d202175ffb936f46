"""Configure nbgrader's own commands to use gradebox.

In ``nbgrader_config.py``::

    import gradebox

    c = get_config()
    gradebox.configure(c)
    gradebox.configure_feedback(c)

Every name is text here: nbgrader, which takes a second to import, is not imported.
"""

from typing import Any

PUBLIC = {
    "Rebuild": "gradebox.nbgrader.rebuild",
    "WarmExecute": "gradebox.nbgrader.execute",
    "SaveScores": "gradebox.nbgrader.gradebook",
    "LatePenalties": "gradebox.nbgrader.gradebook",
    "Harmless": "gradebox.nbgrader.harmless",
    "FeedbackPage": "gradebox.feedback.page",
    "markdown2html": "gradebox.feedback.formulas",
    "MarkScheme": "gradebox.feedback.scheme",
    "ReleaseFeedback": "gradebox.exchange",
    "Submit": "gradebox.exchange",
    "observe": "gradebox.observation",
}
"""The names for a configuration and for tests, and the modules that define them."""

REPLACED = {
    **dict.fromkeys(("DeduplicateIds", "OverwriteKernelspec", "OverwriteCells"), "Rebuild"),
    "Execute": "WarmExecute",
    "SaveAutoGrades": "SaveScores",
    "AssignLatePenalties": "LatePenalties",
    "CheckCellMetadata": "",  # nothing: all that are left in a notebook are the gradebook's
}
"""nbgrader's steps, and what takes their places."""

SANITIZE = ("nbgrader.preprocessors.ClearOutput", "gradebox.Rebuild")
"""The steps before cells run."""

AUTOGRADE = (
    "gradebox.WarmExecute",
    "nbgrader.preprocessors.IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    "nbgrader.preprocessors.LimitOutput",
    "gradebox.SaveScores",
    "gradebox.LatePenalties",
    "gradebox.Harmless",
)
"""The steps from the running of cells on."""


def configure(c: Any) -> None:
    """Have ``nbgrader autograde``, and the formgrader's button, grade with gradebox.

    ``c`` is what ``get_config()`` returned. The steps are nbgrader's, some of them replaced;
    ``gradebox grade`` needs no configuration.
    """
    c.Autograde.sanitize_preprocessors = [*SANITIZE]
    c.Autograde.autograde_preprocessors = [*AUTOGRADE]


def configure_feedback(c: Any) -> None:
    """Have the pages for students written and released by gradebox.

    ``c`` is what ``get_config()`` returned. The pages load nothing, name each exercise and hide
    hidden tests. The formgrader's have their formulas typeset, too, and the mark scheme beside each
    answer in words.
    """
    c.GenerateFeedback.exporter_class = "gradebox.FeedbackPage"
    c.HTMLExporter.filters = {"markdown2html": "gradebox.markdown2html"}
    c.HTMLExporter.preprocessors = ["gradebox.MarkScheme"]
    c.ExchangeFactory.release_feedback = "gradebox.ReleaseFeedback"
