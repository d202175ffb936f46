"""Every assignment: full marks for the reference, none for blank, each misconception named."""

import ast
import contextlib
import importlib
import inspect
import io
import re
import shutil
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

from tools import answers, grade, notebooks, release, results, sample_class
from tools.layout import ROOT, Course

COURSE = Course(ROOT)
TOPICS = COURSE.topics()

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.filterwarnings("ignore:.*Proactor event loop.*:RuntimeWarning"),
]


@dataclass(frozen=True)
class Assignment:
    """An assignment as its source tells it."""

    topic: str

    @cached_property
    def cells(self) -> list[Any]:
        return list(notebooks.read(COURSE.source(self.topic)).cells)

    @cached_property
    def blank(self) -> dict[str, str]:
        """Return what students are given, by the id of the cell."""
        return {cell.id: cell.source for cell in notebooks.read(COURSE.released(self.topic)).cells}

    @cached_property
    def sheet(self) -> sample_class.Sheet:
        return sample_class.sheet(COURSE, self.topic)

    @cached_property
    def exercises(self) -> dict[str, Any]:
        """Return the exercises by the id of their answer cell."""
        known = {exercise.name: exercise for exercise in sample_class.exercises(self.topic)}
        return {
            cell: known[str(answers.function_name(source))]
            for cell, source in self.sheet.right.items()
        }


# Each is read once, not for each of its hundreds of tests.
assignments = cache(Assignment)


def run(topic: str, sources: dict[str, str], tested: str = "") -> dict[str, str]:
    """Run the source notebook, hidden tests included, with these answers in the answer cells.

    Of the test cells only those run whose names begin with ``tested``.

    Returns
    -------
    dict
        For each graded code cell what went wrong, or an empty text.
    """
    results: dict[str, str] = {}
    namespace: dict[str, Any] = {}
    blank = assignments(topic).blank
    for cell in assignments(topic).cells:
        if cell.cell_type != "code":
            continue
        about = cell.metadata.get("nbgrader", {})
        if about.get("grade") and not cell.id.startswith(tested):
            continue
        source = sources.get(cell.id, blank[cell.id]) if about.get("solution") else cell.source
        errors = io.StringIO()
        failure = ""
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            try:
                exec(compile(source, cell.id, "exec"), namespace)
            except Exception:
                failure = traceback.format_exc()
        if about.get("grade"):
            # nbgrader gives no points to a cell that writes to stderr.
            results[cell.id] = failure or errors.getvalue()
    return results


@pytest.fixture(params=TOPICS)
def assignment(request: pytest.FixtureRequest) -> Assignment:
    return assignments(request.param)


def test_there_are_assignments() -> None:
    assert TOPICS


# --- the release


def test_release_is_not_stale_and_the_same_each_time(assignment: Assignment) -> None:
    first = release.render(COURSE, assignment.topic)
    assert release.render(COURSE, assignment.topic) == first
    path = COURSE.released(assignment.topic)
    stale = f"{path.relative_to(ROOT)} is not what its source gives; run: make release"
    assert path.is_file(), stale
    assert path.read_bytes() == first, stale
    assert first.endswith(b"}\n")


def test_release_gives_nothing_away(assignment: Assignment) -> None:
    text = COURSE.released(assignment.topic).read_text(encoding="utf-8")
    for secret in ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN", "MARK SCHEME", "seed="):
        assert secret not in text
    released = notebooks.read(COURSE.released(assignment.topic))
    for cell in released.cells:
        about = cell.metadata.get("nbgrader", {})
        if about.get("solution") and cell.cell_type == "code":
            (function,) = [
                node for node in ast.parse(cell.source).body if isinstance(node, ast.FunctionDef)
            ]
            assert ast.get_docstring(function)
            assert [ast.unparse(node) for node in function.body[1:]] == [
                "raise NotImplementedError()"
            ]


# --- the structure


def test_source_is_clean(assignment: Assignment) -> None:
    source = notebooks.read(COURSE.source(assignment.topic))
    assert (source.nbformat, source.nbformat_minor) == (4, 5)
    assert source.metadata.kernelspec.name == "python3"
    ids = [cell.id for cell in source.cells]
    assert len(set(ids)) == len(ids)
    for cell in source.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None
        about = cell.metadata.get("nbgrader", {})
        if about:
            assert about["grade_id"] == cell.id
            assert cell.id.startswith(f"{assignment.topic}-")


def test_size(assignment: Assignment) -> None:
    written = [cell for cell in assignment.cells if _is_written(cell)]
    assert 5 <= len(assignment.exercises) <= 13
    assert len(written) >= 1
    assert all(cell.metadata.nbgrader.points > 0 for cell in written)


def test_every_exercise_of_the_checks_is_in_the_notebook(assignment: Assignment) -> None:
    listed = importlib.import_module(f"optdl.checks.{assignment.topic}").EXERCISES
    assert [item.key for item in assignment.exercises.values()] == [item.key for item in listed]


def test_each_exercise_has_a_visible_and_a_hidden_test(assignment: Assignment) -> None:
    cells = assignment.cells
    place = {cell.id: number for number, cell in enumerate(cells)}
    for name, exercise in assignment.exercises.items():
        visible, hidden = cells[place[name] + 1 : place[name] + 3]
        assert [visible.id, hidden.id] == [f"{name}-visible", f"{name}-hidden"]
        for cell in (visible, hidden):
            about = cell.metadata.nbgrader
            assert about.grade
            assert about.locked
            assert not about.solution
            assert about.points >= 1
        assert visible.source == f'check("{exercise.key}", {exercise.name})'
        before, tests, after = re.split(r"### (?:BEGIN|END) HIDDEN TESTS\n?", hidden.source)
        assert before.startswith("# ")
        assert not after.strip()
        calls = [ast.unparse(node) for node in ast.parse(tests).body]
        assert all(f"check('{exercise.key}', {exercise.name}, seed=" in call for call in calls)
        assert any("properties=True" in call for call in calls)
        assert not any("seed=0" in call for call in calls)


def test_signatures_are_those_of_the_reference(assignment: Assignment) -> None:
    for name, exercise in assignment.exercises.items():
        node = next(
            node
            for node in ast.parse(assignment.sheet.right[name]).body
            if isinstance(node, ast.FunctionDef)
        )
        given = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        parameters = inspect.signature(inspect.unwrap(exercise.reference)).parameters.values()
        wanted = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
        assert given == wanted, exercise.key


def _is_written(cell: Any) -> bool:
    about = cell.metadata.get("nbgrader", {})
    return bool(cell.cell_type == "markdown" and about.get("grade") and about.get("solution"))


# --- the marks


def test_reference_scores_full_marks(assignment: Assignment) -> None:
    results = run(assignment.topic, assignment.sheet.right)
    assert results
    assert {cell: text for cell, text in results.items() if text} == {}


def test_blank_scores_zero(assignment: Assignment) -> None:
    results = run(assignment.topic, {})
    assert [cell for cell, text in results.items() if not text] == []


def _misconceptions() -> Iterator[Any]:
    for topic in TOPICS:
        for cell, exercise in assignments(topic).exercises.items():
            for rank, misconception in enumerate(exercise.misconceptions):
                label = f"{topic}-{exercise.key}-{misconception.function.__name__}"
                yield pytest.param(topic, cell, rank, misconception.hint, id=label)


@pytest.mark.parametrize(("topic", "cell", "rank", "hint"), list(_misconceptions()))
def test_misconception_fails_and_is_named(topic: str, cell: str, rank: int, hint: str) -> None:
    """Each mistake fails in both tests, and the visible one says what it is."""
    sheet = assignments(topic).sheet
    # what the other exercises make of it is asked once for each exercise
    tested = f"{cell}-" if rank else ""
    results = run(topic, sheet.right | {cell: sheet.misconceptions[cell][rank]}, tested)
    assert results[f"{cell}-hidden"]
    assert f"Likely cause: {hint}" in results[f"{cell}-visible"]
    others = {
        name for name in results if not name.startswith((f"{cell}-visible", f"{cell}-hidden"))
    }
    wrong = {name for name in others if results[name]}
    assert wrong == set(), "an exercise must not depend on the answer to another"


def test_each_exercise_has_three_misconceptions(assignment: Assignment) -> None:
    for exercise in assignment.exercises.values():
        assert len(exercise.misconceptions) >= 3, exercise.key
        hints = [item.hint for item in exercise.misconceptions]
        assert len(set(hints)) == len(hints)


@pytest.mark.parametrize(
    "change",
    [answers.forgets_return, answers.prints, answers.wrong_shape, answers.raises],
    ids=lambda change: change.__name__,
)
def test_slips_of_any_kind_score_zero(assignment: Assignment, change: answers.Answer) -> None:
    wrong = {cell: change(source) for cell, source in assignment.sheet.right.items()}
    results = run(assignment.topic, wrong)
    assert [cell for cell, text in results.items() if not text] == []


# --- the same through nbgrader itself


@pytest.mark.xdist_group("nbgrader")
def test_nbgrader_gives_the_same_marks(assignment: Assignment, tmp_path: Path) -> None:
    topic = assignment.topic
    course = Course(tmp_path)
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "solutions" / topic, tmp_path / "solutions" / topic)
    release.write(course, topic)
    release.record(course, topic)
    right, blank, mistaken = (
        sample_class.Student("Ada", "all correct", sample_class._all_right),
        sample_class.Student("Ben", "blank", sample_class._blank),
        sample_class.Student("Quinn", "misconception 1", sample_class._misconception(0)),
    )
    for student in (right, blank, mistaken):
        folder = course.submitted / student.id / topic
        folder.mkdir(parents=True)
        work = sample_class.submission(sample_class.sheet(course, topic), student)
        (folder / f"{topic}.ipynb").write_bytes(work)
    summary = grade.grade(course, topic, timeout=60)
    assert summary.failed == []
    by_name = {row.student: row for row in results.rows(course, [topic])}
    best = by_name[right.id]
    graded = [cell.metadata.get("nbgrader", {}) for cell in assignment.cells]
    points = sum(about["points"] for about in graded if about.get("grade"))
    assert best.auto == best.max_auto
    assert best.max_auto + best.max_written == points
    assert best.pending == sum(_is_written(cell) for cell in assignment.cells)
    none = by_name[blank.id]
    assert (none.auto, none.written, none.pending) == (0, 0, 0)
    assert by_name[mistaken.id].auto == 0
    hints = {exercise.misconceptions[0].hint for exercise in assignment.exercises.values()}
    told = {hint for _, hint in results.causes(course, [topic])}
    assert {hint.rstrip(".") for hint in told} == {hint.rstrip(".") for hint in hints}
