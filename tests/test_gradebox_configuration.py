"""What a configuration says: today's names, those of before, and steps of a course's own."""

import subprocess
import sys
import warnings
from pathlib import Path
from textwrap import dedent
from typing import Any

import nbformat
import pytest
from nbgrader.converters import Autograde
from test_gradebox_cli import api, assignment, course, grade, hand_in, released, write
from traitlets.config import Config
from traitlets.utils.importstring import import_item

import gradebox
from gradebox import cli
from gradebox.bridge.cells import NotPython, require_python
from gradebox.bridge.chain import Chain
from gradebox.bridge.course import Course
from gradebox.bridge.harmless import Harmless
from gradebox.configuration import PUBLIC, REPLACED
from gradebox.old_names import MODULES

__all__ = ["course", "released"]  # fixtures

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox"),
]


def configured() -> Any:
    c = Config()
    gradebox.configure(c)
    return c


def test_the_steps_are_nbgraders_with_some_replaced() -> None:
    def ours(step: type) -> str:
        home = step.__module__.partition(".")[0]
        name = REPLACED.get(step.__name__)
        return f"gradebox.{name}" if name else f"{home}.preprocessors.{step.__name__}"

    c, theirs = configured().Autograde, Autograde()
    assert c.sanitize_preprocessors == [ours(step) for step in theirs.sanitize_preprocessors]
    steps = [ours(step) for step in theirs.autograde_preprocessors]
    assert c.autograde_preprocessors == [*steps, "gradebox.Harmless"]


def test_every_public_name_is_there() -> None:
    for name, module in PUBLIC.items():
        found = import_item(f"gradebox.{name}")
        assert found.__name__ == name
        assert found.__module__ == module
    assert {"configure", "configure_feedback", *PUBLIC} == {*gradebox.__all__}
    with pytest.raises(AttributeError, match="has no attribute 'Sealed'"):
        _ = gradebox.Sealed


@pytest.mark.parametrize(
    "name",
    [
        *("execute.WarmExecute", "rebuild.Recognize", "rebuild.Rebuild", "scores.SaveScores"),
        *("pages.Harmless", "feedback.FeedbackPage", "formulas.markdown2html", "submit.Submit"),
        "exchange.ReleaseFeedback",
    ],
)
def test_an_old_name_works_and_warns(name: str) -> None:
    module, _, attribute = name.partition(".")
    sys.modules.pop(f"gradebox.{module}" if f"gradebox.{module}" in MODULES else "", None)
    with pytest.warns(FutureWarning, match=rf"gradebox\.{module} is now gradebox\.\w+\.\w+"):
        found = import_item(f"gradebox.{name}")
    assert found is getattr(gradebox, attribute)


def test_a_name_that_never_was_is_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImportError):
            import_item("gradebox.feedback.Nothing")
        with pytest.raises(ModuleNotFoundError):
            import_item("gradebox.nothing.Nothing")


def test_the_command_of_an_old_name_works() -> None:
    command = [sys.executable, "-m", "gradebox.seal"]
    old = subprocess.run(command, capture_output=True, text=True)
    new = subprocess.run([*command[:2], "gradebox.sandbox.probe"], capture_output=True, text=True)
    assert old.stdout == new.stdout
    assert old.stdout.startswith("sealed by: ")
    assert "gradebox.seal is now gradebox.sandbox.probe" in old.stderr
    assert not new.stderr


def test_what_no_page_may_hold_is_taken_out_once_and_last(course: Path) -> None:
    for text in ("", "import gradebox\ngradebox.configure(c)\n"):
        config = course / "nbgrader_config.py"
        config.write_text(config.read_text() + text)
        chain: Chain = Course(course, "toy").chain()
        assert [type(step) for step in chain.after].count(Harmless) == 1
        assert type(chain.after[-1]) is Harmless
        assert not chain.has_strangers


STEP = """
    from nbgrader.api import Gradebook
    from nbgrader.preprocessors import NbGraderPreprocessor

    class Bonus(NbGraderPreprocessor):
        '''Gives a point more for each point, as the gradebook has them.'''

        def preprocess(self, nb, resources):
            about = resources["nbgrader"]
            with Gradebook(about["db_url"]) as book:
                names = about["notebook"], about["assignment"], about["student"]
                for grade in book.find_submission_notebook(*names).grades:
                    grade.extra_credit = grade.auto_score
                book.db.commit()
            return nb, resources
"""


@pytest.mark.parametrize("last", [True, False])
def test_a_step_of_the_course_may_open_the_gradebook(
    course: Path, monkeypatch: pytest.MonkeyPatch, last: bool
) -> None:
    (course / "own_step.py").write_text(dedent(STEP))
    monkeypatch.syspath_prepend(course)
    config = course / "nbgrader_config.py"
    place = len(configured().Autograde.autograde_preprocessors) if last else 5
    config.write_text(
        config.read_text() + "import gradebox\ngradebox.configure(c)\n"
        f"c.Autograde.autograde_preprocessors.insert({place}, 'own_step.Bonus')\n"
    )
    hand_in(course, "ada")
    assert Course(course, "toy").chain().has_strangers
    assert grade() == 0
    with_bonus = api(course).gradebook.find_submission("toy", "ada")
    grades = [one for notebook in with_bonus.notebooks for one in notebook.grades]
    assert sum(one.auto_score or 0 for one in grades) > 0
    assert [one.extra_credit for one in grades] == [one.auto_score for one in grades]


R = {"name": "ir", "display_name": "R", "language": "R"}


def test_another_language_is_refused(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = course / "nbgrader_config.py"
    config.write_text(config.read_text().replace("trial = False", "trial = True"))
    nb = assignment()
    nb.metadata["kernelspec"] = R
    write(course / "source/stats/stats.ipynb", nb)
    hand_in(course, "ada")
    (course / "submitted/ada/toy").rename(course / "submitted/ada/stats")
    assert cli.main(["check", "stats"]) == 2
    assert "got stats.ipynb in R: gradebox runs Python alone" in capsys.readouterr().err
    assert api(course).generate_assignment("stats")["success"]
    assert cli.main(["grade", "stats"]) == 2
    assert "expected a notebook in Python, got stats.ipynb in R" in capsys.readouterr().err


@pytest.mark.parametrize("kernelspec", [{}, {"name": "python3"}, {"language": "Python"}])
def test_python_is_what_no_other_language_is(kernelspec: dict[str, str]) -> None:
    nb = nbformat.from_dict({"metadata": {"kernelspec": kernelspec}})
    require_python(nb, "a")
    nb.metadata = {}
    require_python(nb, "a")
    nb.metadata["kernelspec"] = R
    with pytest.raises(NotPython):
        require_python(nb, "a")
