"""What a configuration says: public names, and steps of a course's own."""

from textwrap import dedent
from typing import Any

import pytest
from courses import Assignment, assignment, grade, hand_in, write
from nbgrader.converters import Autograde
from traitlets.config import Config
from traitlets.utils.importstring import import_item

import gradebox
from benchmarks.gradebooks import rows, url
from gradebox import cli
from gradebox.configuration import PUBLIC, REPLACED
from gradebox.nbgrader.cells import require_python
from gradebox.nbgrader.course import Chain, Course
from gradebox.nbgrader.harmless import Harmless

pytestmark = pytest.mark.xdist_group("gradebox_course")


def configured() -> Any:
    c = Config()
    gradebox.configure(c)
    return c


def test_the_steps_are_nbgraders_with_some_replaced():
    def ours(steps: list[type]) -> list[str]:
        homes = {step.__name__: step.__module__.partition(".")[0] for step in steps}
        theirs = {name: f"{home}.preprocessors.{name}" for name, home in homes.items()}
        replaced = {name: step and f"gradebox.{step}" for name, step in REPLACED.items()}
        return [step for step in dict.fromkeys((theirs | replaced)[n] for n in theirs) if step]

    c, theirs = configured().Autograde, Autograde()
    assert c.sanitize_preprocessors == ours(theirs.sanitize_preprocessors)
    steps = ours(theirs.autograde_preprocessors)
    assert c.autograde_preprocessors == [*steps, "gradebox.Harmless"]


def test_public_names_import_from_their_modules():
    for name, module in PUBLIC.items():
        item = import_item(f"gradebox.{name}")
        assert (item.__name__, item.__module__) == (name, module)
    assert {"configure", "configure_feedback", *PUBLIC} == {*gradebox.__all__}
    with pytest.raises(AttributeError, match="has no attribute 'Sealed'"):
        _ = gradebox.Sealed


def test_harmless_step_runs_exactly_once_and_last(course):
    for text in ("", "import gradebox\ngradebox.configure(c)\n"):
        config = course / "nbgrader_config.py"
        config.write_text(config.read_text() + text)
        chain: Chain = Course(course, "toy").chain
        assert [type(step) for step in chain.after].count(Harmless) == 1
        assert type(chain.after[-1]) is Harmless
        assert not chain.has_strangers


STEP = """
    from nbgrader.api import Gradebook
    from nbgrader.preprocessors import NbGraderPreprocessor

    class Bonus(NbGraderPreprocessor):
        '''Gives a point more for each point, as the gradebook has them.'''

        def preprocess(self, nb, resources):
            context = resources["nbgrader"]
            with Gradebook(context["db_url"]) as book:
                names = context["notebook"], context["assignment"], context["student"]
                for grade in book.find_submission_notebook(*names).grades:
                    grade.extra_credit = (grade.extra_credit or 0) + grade.auto_score
                book.db.commit()
            return nb, resources

    class Again(Bonus): ...
"""


def test_custom_steps_may_open_the_gradebook(course, monkeypatch):
    (course / "own_step.py").write_text(dedent(STEP))
    monkeypatch.syspath_prepend(course)
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("import gradebox\ngradebox.configure(c)\n")
        for place, name in ((5, "Bonus"), (9, "Again")):
            file.write(f"c.Autograde.autograde_preprocessors.insert({place}, 'own_step.{name}')\n")
    hand_in(course, "ada", both=True)
    assert Course(course, "toy").chain.has_strangers
    assert grade() == 0
    bonus = {row[2]: (row[3], row[5]) for row in rows(url(course))["grades"]}
    assert bonus["test"] == ("3.0", "6.0")
    assert all(float(extra) == 2 * float(score) for score, extra in bonus.values())


def test_another_language_is_refused(course, capsys):
    require_python({"language": "Python"}, "a")
    nb = assignment()
    nb.metadata["kernelspec"] = {"name": "ir", "display_name": "R", "language": "R"}
    write(course / "source/stats/stats.ipynb", nb)
    hand_in(course, "ada")
    (course / "submitted/ada/toy").rename(course / "submitted/ada/stats")
    assert cli.main(["check", "stats"]) == 2
    assert "got stats.ipynb in R: gradebox runs Python alone" in capsys.readouterr().err
    Assignment(course, "stats").release()
    assert cli.main(["grade", "stats"]) == 2
    assert "expected a notebook in Python, got stats.ipynb in R" in capsys.readouterr().err
