"""Every assignment: full marks for the reference, none for blank, a misconception is named."""

import ast
import contextlib
import inspect
import io
import re
import shutil
import sys
import traceback
from functools import cache
from typing import Any

import pytest

from gradebox.nbgrader.cells import of
from optdl.checks import catalog
from tools import notebooks
from tools.classroom import answers, grade, lab_records, release, results, sample_class
from tools.layout import LAB, ROOT, Course

COURSE = Course(ROOT)
TOPICS = COURSE.topics()
NOTEBOOKS = [(topic, name) for topic in TOPICS for name in COURSE.notebooks(topic)]

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.filterwarnings("ignore:.*Proactor event loop.*:RuntimeWarning"),
]


class Assignment:
    """A notebook of an assignment as its source tells it."""

    def __init__(self, topic, name):
        self.topic, self.is_lab = topic, name == LAB
        self.path, self.released_path = COURSE.source(topic, name), COURSE.released(topic, name)
        self.source, self.released = map(notebooks.read, (self.path, self.released_path))
        self.right = sample_class.sheet(COURSE, topic, name).right
        listed = catalog.blocks(topic, lab=self.is_lab).values()
        known = {exercise.name: exercise for exercise in listed}
        defined = {cell: answers.defined_name(source) for cell, source in self.right.items()}
        # the exercises by the id of their answer cell; a lab asks for more than these
        self.exercises = {cell: known[name] for cell, name in defined.items() if name in known}


# Each is read once, not for each of its tests.
assignments = cache(Assignment)


def run(made, sources, record=True):
    """Run the source notebook with answers; return what went wrong in each test, or nothing.

    As when graded, cells that train are not run, and a record is that of the student whose answers
    the source has. To check a record is to train; that, and what is read off it, is left
    out without ``record``.
    """
    results: dict[str, str] = {}
    namespace: dict[str, Any] = {}
    blank = {cell.id: cell.source for cell in made.released.cells}
    of_record = (f"{made.topic}-lab-record", f"{made.topic}-lab-reading")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.chdir(COURSE.solutions / made.topic)
        patch.setenv("GRADEBOX_STUDENT", sample_class.SOLVER)
        for cell in made.source.cells:
            is_left_out = cell.id.startswith(of_record) and not record
            if cell.cell_type != "code" or "train" in cell.metadata.get("tags", []) or is_left_out:
                continue
            about = of(cell)
            source = sources.get(cell.id, blank[cell.id]) if about.get("solution") else cell.source
            failure = ""
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                try:
                    exec(compile(source, cell.id, "exec"), namespace)
                except Exception:
                    failure = traceback.format_exc()
            if about.get("grade"):
                # nbgrader gives no points to a cell that writes to stderr.
                results[cell.id] = failure or errors.getvalue()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")  # as the end of a kernel does
    return results


@pytest.fixture(
    params=NOTEBOOKS, ids=lambda pair: pair[0] if pair[0] == pair[1] else "-".join(pair)
)
def assignment(request):
    return assignments(*request.param)


@pytest.mark.parametrize("topic", TOPICS)
def test_release_is_not_stale(topic):
    """That it holds no line of a solution, no mark scheme and no hidden test, the release sees."""
    for name, content in release.render(COURSE, topic).items():
        path = COURSE.released(topic, name)
        stale = f"{path.relative_to(ROOT)} is not that of its source; run: make release A={topic}"
        assert path.is_file(), stale
        assert path.read_bytes() == content, stale


def test_source_and_its_release_have_the_agreed_form(assignment):
    source, cells = assignment.source, assignment.source.cells
    label = f"{assignment.topic}-lab" if assignment.is_lab else assignment.topic
    assert (source.nbformat, source.nbformat_minor) == (4, 5)
    assert source.metadata.kernelspec.name == "python3"
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert [cell.id for cell in code if cell.outputs or cell.execution_count] == []
    assert len({cell.id for cell in cells}) == len(cells)
    assert all(name.startswith(f"{label}-") for name in notebooks.named(source))
    assert all(cell.metadata.nbgrader.points for cell in cells if _is_written(cell))
    numbers = [int(found[1]) for cell in cells if (found := re.match(r"## (\d+) · ", cell.source))]
    assert assignment.is_lab or numbers == list(range(1, len(numbers) + 1))
    for cell in assignment.released.cells:
        assert assignment.is_lab or "seed=" not in cell.source  # a lab's own code may pass one
        if cell.cell_type == "code" and of(cell).get("solution"):
            parts = ast.parse(cell.source).body
            [answer] = [node for node in parts if isinstance(node, answers.Definition)]
            assert ast.get_docstring(answer)
            blank = "raise NotImplementedError()"
            assert blank in cell.source
            is_whole = isinstance(answer, ast.FunctionDef)  # some methods of a class are given
            assert not is_whole or [ast.unparse(node) for node in answer.body[1:]] == [blank]


def test_exercises_have_visible_and_hidden_tests(assignment):
    listed = catalog.blocks(assignment.topic, lab=assignment.is_lab).values()
    lacking = {item.key for item in listed} - {x.key for x in assignment.exercises.values()}
    assert not lacking, "write their cells, under function names that no other exercise has"
    cells, written = assignment.source.cells, lab_records.answers_of(assignment.path)
    place = {cell.id: number for number, cell in enumerate(cells)}
    for name, exercise in assignment.exercises.items():
        assert _parameters(written[exercise.name]) == _parameters(exercise.reference), exercise.key
        task, _, visible, hidden = cells[place[name] - 1 : place[name] + 3]
        assert [visible.id, hidden.id] == [f"{name}-visible", f"{name}-hidden"]
        abouts = [cell.metadata.nbgrader for cell in (visible, hidden)]
        assert all((a.grade, a.locked, a.solution) == (True, True, False) for a in abouts)
        points = [about.points for about in abouts]
        # its only point is that of the hidden test, which no table of the visible cases meets
        assert points == [0, 1] if "Warm-up: " in task.source else min(points) >= 1
        assert visible.source == f'check("{exercise.key}", {exercise.name})', visible.id
        before, tests, after = re.split(r"### (?:BEGIN|END) HIDDEN TESTS\n?", hidden.source)
        assert before.startswith("# ")
        assert not after.strip()
        calls = [ast.unparse(node) for node in ast.parse(tests).body]
        assert all(f"check('{exercise.key}', {exercise.name}, seed=" in call for call in calls)
        assert any("properties=True" in call for call in calls)
        assert not any("seed=0" in call for call in calls)


def _parameters(function):
    """Return the parameters of a function, or those with which an object of a class is made."""
    parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
    return [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]


def _is_written(cell):
    about = of(cell)
    return bool(cell.cell_type == "markdown" and about.get("grade") and about.get("solution"))


# --- the marks


def test_reference_scores_full_marks_and_blank_none(assignment):
    results = run(assignment, assignment.right, record=False)
    assert results
    assert not any(results.values()), "\n".join(results.values())
    assert all(run(assignment, {}).values())


# --- the same through nbgrader itself


# in a lab all runs of the record are trained again
@pytest.mark.xdist_group("nbgrader")
@pytest.mark.parametrize(
    "topic",
    [pytest.param(topic, marks=[pytest.mark.slow] if topic != "erm" else []) for topic in TOPICS],
)
def test_nbgrader_gives_the_same_marks(topic, tmp_path):
    made = [assignments(topic, name) for name in COURSE.notebooks(topic)]
    course = Course(tmp_path)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / topic, tmp_path / "solutions" / topic)
    release.write(course, topic)
    release.record(course, topic)
    by_kind = {student.kind: student for student in sample_class.STUDENTS}
    right, blank, mistaken = map(by_kind.get, ("all correct", "blank", "misconception 1"))
    sheets = {name: sample_class.sheet(course, topic, name) for name in COURSE.notebooks(topic)}
    for student in (right, blank, mistaken):
        folder = course.submitted / student.id / topic
        folder.mkdir(parents=True)
        for name, work in sample_class.handed_in(course, topic, sheets, student).items():
            (folder / name).write_bytes(work)
    summary = grade.grade(course, topic)
    assert (summary.refused, summary.lost) == ([], [])
    by_name = {row.student: row for row in results.rows(course, [topic])}
    best, none = by_name[right.id], by_name[blank.id]
    cells = [cell for one in made for cell in one.source.cells]
    graded = [*map(of, cells)]
    points = sum(about["points"] for about in graded if about.get("grade"))
    assert best.auto == best.max_auto
    assert best.max_auto + best.max_written == points
    assert best.pending == sum(_is_written(cell) for cell in cells)
    assert (none.auto, none.written, none.pending) == (0, 0, 0)
    hints = {exercise.misconceptions[0].hint for one in made for exercise in one.exercises.values()}
    told = {hint for report in results.exercises(course, topic) for hint in report.named}
    assert {hint.rstrip(".") for hint in told} == {hint.rstrip(".") for hint in hints}
