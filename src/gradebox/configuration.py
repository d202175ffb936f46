"""Configure nbgrader's own commands to use gradebox; all names are text, for imports take long."""

from typing import Any

# the names for a configuration and for tests, and the modules that define them
PUBLIC = {
    "Rebuild": "gradebox.nbgrader.rebuild",
    "WarmExecute": "gradebox.nbgrader.execute",
    "SaveScores": "gradebox.nbgrader.gradebook",
    "LatePenalties": "gradebox.nbgrader.gradebook",
    "Harmless": "gradebox.nbgrader.harmless",
    "FeedbackPage": "gradebox.feedback.page",
    "markdown2html": "gradebox.feedback.formulas",
    "MarkScheme": "gradebox.feedback.page",
    "ReleaseFeedback": "gradebox.exchange",
    "Submit": "gradebox.exchange",
    "observe": "gradebox.observation",
}
# nbgrader's steps, and what takes their places
REPLACED = {
    **dict.fromkeys(("DeduplicateIds", "OverwriteKernelspec", "OverwriteCells"), "Rebuild"),
    "Execute": "WarmExecute",
    "SaveAutoGrades": "SaveScores",
    "AssignLatePenalties": "LatePenalties",
    "CheckCellMetadata": "",  # nothing: all that are left in a notebook are the gradebook's
}


def configure(c: Any) -> None:
    """Have ``nbgrader autograde``, and the formgrader's button, grade with gradebox.

    ``c`` is what ``get_config()`` returned; ``gradebox grade`` needs no configuration.
    """
    c.Autograde.sanitize_preprocessors = ["nbgrader.preprocessors.ClearOutput", "gradebox.Rebuild"]
    c.Autograde.autograde_preprocessors = [
        "gradebox.WarmExecute",
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        "nbgrader.preprocessors.LimitOutput",
        "gradebox.SaveScores",
        "gradebox.LatePenalties",
        "gradebox.Harmless",
    ]


def configure_feedback(c: Any) -> None:
    """Have the pages for students written and released by gradebox.

    ``c`` is what ``get_config()`` returned. The formgrader's pages get typeset formulas, too, and
    the mark scheme beside each answer in words.
    """
    c.GenerateFeedback.exporter_class = "gradebox.FeedbackPage"
    c.HTMLExporter.filters = {"markdown2html": "gradebox.markdown2html"}
    c.HTMLExporter.preprocessors = ["gradebox.MarkScheme"]
    c.ExchangeFactory.release_feedback = "gradebox.ReleaseFeedback"
