"""The commands of the course, on a toy course in a temporary folder."""

import ast
import csv
import inspect
import io
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hang import HANG
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Grade
from nbgrader.coursedir import CourseDirectory
from nbgrader.server_extensions.formgrader import handlers
from nbgrader.utils import notebook_hash
from rich.console import Console

from gradebox.events import Event
from gradebox.exchange import Releases, Submit
from gradebox.run.store import Store
from optdl.checks import CheckFailed, catalog, check
from optdl.checks.exercise import Exercise, Misconception
from optdl.checks.report import failing_case
from tools import (
    answers,
    book,
    course,
    exercises,
    feedback,
    grade,
    gradebook,
    lab,
    notebooks,
    release,
    results,
    sample_class,
    terminal,
)
from tools.backend import Backend
from tools.fingerprints import Fingerprints, digest, files, write_if_changed
from tools.layout import ROOT, Course
from tools.terminal import ToolError

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.xdist_group("nbgrader"),
]


# --- a toy course


def _about(name: str, **more: Any) -> dict[str, Any]:
    base = {"grade": False, "solution": False, "locked": False, "task": False}
    return {"nbgrader": base | {"schema_version": 3, "grade_id": name} | more}


def _exercise(name: str, body: str, test: str) -> list[Any]:
    cell = f"toy-{name}"
    answer = f'def {name}(x):\n    """Do it."""\n    ### BEGIN SOLUTION\n    {body}\n'
    hidden = f"# More when graded.\n### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
    graded = {"grade": True, "locked": True}
    return [
        new_markdown_cell(f"## {name}", id=f"{cell}-task"),
        new_code_cell(
            f"{answer}    ### END SOLUTION", id=cell, metadata=_about(cell, solution=True)
        ),
        new_code_cell(
            test, id=f"{cell}-visible", metadata=_about(f"{cell}-visible", points=1, **graded)
        ),
        new_code_cell(
            hidden, id=f"{cell}-hidden", metadata=_about(f"{cell}-hidden", points=2, **graded)
        ),
    ]


def toy() -> Any:
    """Return a notebook with two exercises of three points and a question of four."""
    test = r"assert double(3) == 6, '\nLikely cause: you square; doubling adds.'"
    written = "Since both agree.\n\n### BEGIN MARK SCHEME\n4 points\n### END MARK SCHEME"
    about = _about("toy-why", grade=True, solution=True, points=4)
    cells = [
        new_markdown_cell("# Toy", id="toy-title"),
        *_exercise("double", "return x + x + 0 * x", test),
        *_exercise("triple", "return x + x + x + 0 * x", "assert triple(2) == 6"),
        new_markdown_cell(written, id="toy-why", metadata=about),
    ]
    notebook = new_notebook(cells=cells, metadata=release.METADATA)
    notebook.nbformat_minor = 5
    return notebook


def double(x: float) -> float:
    return x + x


def squares(x: float) -> float:
    return x * x


def blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Exercise]:
    """Stand in for the checks of a topic: one exercise with one misconception."""
    mistake = Misconception("you square; doubling adds.", squares)
    return {"L0-01": Exercise("L0-01", double, misconceptions=[mistake])}


def make_course(root: Path) -> Course:
    made = Course(root)
    shutil.copy(ROOT / "nbgrader_config.py", root)
    source = root / "solutions" / "toy" / "toy.ipynb"
    source.parent.mkdir(parents=True)
    source.write_bytes(notebooks.to_bytes(toy()))
    return made


@pytest.fixture
def small(tmp_path: Path) -> Course:
    """Return a toy course in which nothing has been done."""
    return make_course(tmp_path)


def _change_source(of: Course, change: Any) -> None:
    notebook = notebooks.read(of.source("toy"))
    change(notebook)
    of.source("toy").write_bytes(notebooks.to_bytes(notebook))


# --- names and folders


def test_unknown_assignment_names_the_nearest(small: Course) -> None:
    with pytest.raises(ToolError) as caught:
        small.choose(["tyo"])
    assert "no assignment 'tyo'" in caught.value.problem
    assert "did you mean 'toy'? the assignments are toy" in caught.value.remedy


def test_no_assignment_at_all(tmp_path: Path) -> None:
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    with pytest.raises(ToolError, match="there is no assignment in"):
        Course(tmp_path).choose([])


def test_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"there is no nbgrader_config\.py"):
        Course(tmp_path).topics()


def test_topics_come_in_the_order_of_the_book(small: Course) -> None:
    for name in ("alpha", "zeta"):
        path = small.source(name)
        path.parent.mkdir()
        path.write_text("{}")
    assert small.topics() == ["alpha", "toy", "zeta"]
    chapters = "root: book/index\nparts:\n- chapters:\n  - file: book/zeta\n  - file: book/toy\n"
    (small.root / "_toc.yml").write_text(chapters)
    assert small.topics() == ["zeta", "toy", "alpha"]


def test_all_that_is_made_lies_below_build(small: Course) -> None:
    made = (small.submitted, small.autograded, small.feedback, small.gradebook, small.exchange)
    assert all(path.is_relative_to(small.root / "build") for path in made)
    assert small.work == small.root / "work"
    assert small.solutions == small.root / "solutions"
    assert small.exercises == small.root / "exercises"


# --- every command


COMMANDS = [course, feedback, grade, gradebook, lab, release, sample_class]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda module: module.__name__)
def test_help(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(["-h"])
    assert caught.value.code == 0
    assert f"usage: python -m {command.__name__}" in capsys.readouterr().out


def test_an_error_says_how_to_fix_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["quadratc"]) == 1
    said = capsys.readouterr().out
    assert "Problem: there is no assignment 'quadratc'" in said
    assert "To fix: did you mean 'quadratic'?" in said


def test_an_error_that_nobody_expected_leaves_its_traceback_in_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(arguments: Any) -> int:
        return 1 // 0

    monkeypatch.setattr(terminal, "LOGS", tmp_path / "logs")
    assert terminal.run(breaks, release.parser(), []) == 1
    said = capsys.readouterr().out
    assert re.match(r"Problem: ZeroDivisionError: .*\nTo fix: the traceback in .*release.log", said)
    assert "Traceback" not in said
    assert "return 1 // 0" in (tmp_path / "logs" / "release.log").read_text("utf-8")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_failure_of_make_ends_with_what_to_do() -> None:
    found = subprocess.run(
        ["make", "-o", ".venv/ready", "release", "A=quadratc"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.returncode == 2
    assert found.stdout.splitlines()[-1].startswith("To fix: did you mean 'quadratic'?")
    assert len(found.stderr.splitlines()) == 1  # make's own


def test_an_interruption_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped(arguments: Any) -> None:
        raise KeyboardInterrupt

    assert terminal.run(stopped, release.parser(), []) == 130
    assert "goes on where it stopped" in capsys.readouterr().out


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, small: Course) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=5 * 2**20))
    with pytest.raises(ToolError, match="only 5 MB are free") as caught:
        release.command(release.parser().parse_args([]), small)
    assert "make clean" in caught.value.remedy


def test_missing_packages_are_named_with_the_remedy() -> None:
    # -S leaves out installed packages, as in a Python without the course's environment.
    found = subprocess.run(
        [sys.executable, "-S", "-m", "tools.release"], cwd=ROOT, capture_output=True, text=True
    )
    assert found.returncode == 1
    assert "rich and nbgrader cannot be found" in found.stderr
    assert "make course" in found.stderr
    assert "Traceback" not in found.stderr


# --- what was made from what


def test_atomic_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "file"
    assert write_if_changed(path, b"one")
    assert not write_if_changed(path, b"one")
    assert write_if_changed(path, b"two")

    def fails(self: Path, target: Path) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="no space"):
        write_if_changed(path, b"three")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_digest_tells_boundaries_apart(tmp_path: Path) -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest([tmp_path / "missing"]) == digest([b""])


def test_fingerprints_survive_and_forget(tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.json"
    fingerprints = Fingerprints(path)
    fingerprints.record("grade/ada/toy", "1")
    fingerprints.record("site", "2")
    assert Fingerprints(path).matches("grade/ada/toy", "1")
    assert not Fingerprints(path).matches("grade/ada/toy", "2")
    fingerprints.forget("grade/")
    assert not Fingerprints(path).matches("grade/ada/toy", "1")
    assert Fingerprints(path).matches("site", "2")
    path.write_text("{ half a fi")
    assert not Fingerprints(path).matches("site", "2")


# --- release


def test_release_twice_gives_the_same_bytes(small: Course) -> None:
    first = release.render(small, "toy")
    assert release.render(small, "toy") == first
    assert list(first) == ["toy"]
    released = json.loads(first["toy"])
    assert released["metadata"] == release.METADATA
    text = first["toy"].decode()
    assert "raise NotImplementedError()" in text
    assert not any(secret in text for secret in (*release.SECRETS, "x + x", "Since both"))


def test_release_restores_an_edited_exercise(small: Course) -> None:
    assert release.write(small, "toy")
    assert not release.write(small, "toy")
    good = small.released("toy").read_bytes()
    small.released("toy").write_bytes(good.replace(b"Toy", b"Joy"))
    assert release.write(small, "toy")
    assert small.released("toy").read_bytes() == good


def test_release_takes_data_files_along(small: Course) -> None:
    (small.solutions / "toy" / "points.csv").write_text("1,2\n")
    release.write(small, "toy")
    assert (small.exercises / "toy" / "points.csv").read_text() == "1,2\n"


def _other_id(notebook: Any) -> None:
    notebook.cells[2].id = "something-else"


def _open_test(notebook: Any) -> None:
    notebook.cells[4].source = notebook.cells[4].source.replace("### BEGIN", "### begin")


def _gives_away(notebook: Any) -> None:
    notebook.cells[0].source += "\nreturn x + x + 0 * x"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_other_id, "make them equal"),
        (_open_test, "HIDDEN TESTS"),
        (_gives_away, "gives away 'return x"),
    ],
)
def test_a_wrong_source_leaves_the_exercise_as_it_was(
    small: Course, change: Any, reason: str
) -> None:
    release.write(small, "toy")
    good = small.released("toy").read_bytes()
    _change_source(small, change)
    with pytest.raises(ToolError, match=reason):
        release.write(small, "toy")
    assert small.released("toy").read_bytes() == good


def test_due_date() -> None:
    due = release.parser().parse_args(["toy", "--due", "2026-03-01 23:59"]).due
    assert due.isoformat() == "2026-03-01T23:59:00"
    assert release.parser().parse_args(["toy", "--due", "none"]).due == "none"
    with pytest.raises(SystemExit):
        release.parser().parse_args(["toy", "--due", "tomorrow"])


# --- answers


SOURCE = '''def norm(values, p=2):
    """Return the norm."""
    ### BEGIN SOLUTION
    def power(x):
        return abs(x) ** p
    total = sum(power(x) for x in values)
    return total ** (1 / p)
    ### END SOLUTION'''


def _call(source: str, name: str = "norm") -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace[name]([3.0, 4.0])


def test_right_answer_has_no_marks() -> None:
    source = answers.right(SOURCE)
    assert "###" not in source
    assert _call(source) == 5.0
    assert answers.defined_name(source) == "norm"
    assert answers.right("Yes.\n\n### BEGIN MARK SCHEME\n1\n### END MARK SCHEME") == "Yes."


def test_changed_answers_do_what_their_name_says() -> None:
    source = answers.right(SOURCE)
    for name in "norm", "my_norm":
        assert _call(answers.under_another_name(source), name) == 5.0
    assert _call(answers.with_body(source, "return p")) == 2
    with pytest.raises(SyntaxError):
        ast.parse(answers.syntax_error(source))
    assert "while error > 0:" in answers.never_ends(source)


# --- the sample class


def test_submissions_are_the_released_notebook_filled_in(
    small: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "blocks", blocks)
    release.write(small, "toy")
    sheet = sample_class.sheet(small, "toy")
    blank = small.released("toy").read_bytes()
    by_kind = {
        student.kind: sample_class.submission(sheet, student) for student in sample_class.STUDENTS
    }
    assert by_kind["blank"] == blank
    assert by_kind["all correct"] == by_kind["late"]
    assert by_kind["all correct"].startswith(by_kind["broken file"])
    # the one mistake there is is the last of fewer
    assert by_kind["misconception 1"] == by_kind["misconception 2"] == by_kind["misconception 3"]
    assert b"x * x" in by_kind["misconception 1"]
    assert len(set(by_kind.values())) == len(by_kind) - 3
    assert b"BEGIN" not in by_kind["all correct"]


def test_a_misconception_is_the_one_of_its_rank_or_the_last() -> None:
    sheet = sample_class.Sheet(
        notebooks.node({}), {"a": "right", "b": "right", "c": "right"}, {},
        {"a": ("1", "2", "3", "4"), "b": ("1",), "c": ()},
    )  # fmt: skip
    assert [sample_class._misconception(number)(sheet) for number in range(3)] == [
        {"a": "1", "b": "1", "c": "right"},
        {"a": "2", "b": "1", "c": "right"},
        {"a": "3", "b": "1", "c": "right"},
    ]


# --- grading, from beginning to end


TIMEOUT = 2
KINDS = (
    *("all correct", "blank", "late", "syntax error", "endless loop", "deletes cells"),
    "misconception 1",
)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """Return a toy course with a small class, graded by the whole pipeline."""
    made = make_course(tmp_path_factory.mktemp("course"))
    few = tuple(student for student in sample_class.STUDENTS if student.kind in KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "blocks", blocks)
        patch.setattr(sample_class, "STUDENTS", few)
        patch.setattr(course, "TIMEOUT", TIMEOUT)
        assert course.command(course.parser().parse_args(["--no-site"]), made) == 0
        yield made


def test_the_whole_class_is_graded_and_told(
    small: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(catalog, "blocks", blocks)
    monkeypatch.setattr(course, "TIMEOUT", TIMEOUT)
    options = course.parser().parse_args(["--no-site"])
    assert course.command(options, small) == 0
    rows = _results(small)
    assert {name: row.auto for name, row in rows.items() if row.graded} == {
        "ada-all-correct": 6,
        "ben-blank": 0,
        "dmitri-first-half": 3,
        "quinn-misconception-1": 3,
        "rosa-misconception-2": 3,
        "sven-misconception-3": 3,
        "nadia-endless-loop": 3,
        "omar-forger": 0,
        "lena-late": 6,
        "kofi-other-names": 6,
        "mateo-syntax-error": 3,
        "priya-deletes-cells": 6,
    }
    assert rows.keys() - {name for name, row in rows.items() if row.graded} == {"tala-broken-file"}
    said = capsys.readouterr().out
    for student in sample_class.STUDENTS:
        assert re.search(rf"^ *{student.id} +{re.escape(student.story)} *$", said, re.M)
    assert "failed 0;" in said
    told = " ".join(said.split())
    assert "tala-broken-file hands in broken files on purpose: 1 were not graded." in told
    # a file that breaks off by accident fails
    work = small.submitted / "lena-late" / "toy" / "toy.ipynb"
    work.write_bytes(work.read_bytes()[:1000])
    monkeypatch.setattr(sample_class, "ensure", lambda *_: list(rows))
    assert course.command(options, small) == 1
    assert "failed 1;" in capsys.readouterr().out


def _results(of: Course) -> dict[str, results.Row]:
    return {row.student: row for row in results.rows(of, ["toy"])}


def test_scores(graded: Course) -> None:
    rows = _results(graded)
    assert {name: (row.auto, row.max_auto) for name, row in rows.items()} == {
        "ada-all-correct": (6, 6),
        "ben-blank": (0, 6),
        "lena-late": (6, 6),
        "mateo-syntax-error": (3, 6),
        "nadia-endless-loop": (3, 6),
        "priya-deletes-cells": (6, 6),
        "quinn-misconception-1": (3, 6),
    }
    assert {row.max_written for row in rows.values()} == {4}
    assert {name for name, row in rows.items() if not row.pending} == {"ben-blank"}
    assert {name: row.hours_late for name, row in rows.items() if row.hours_late} == {
        "lena-late": 5.0
    }


def test_what_happened(graded: Course) -> None:
    rows = _results(graded)
    kinds = {name: [event.kind for event in row.events] for name, row in rows.items() if row.events}
    assert kinds.pop("lena-late") == ["late"]
    assert kinds == {
        "mateo-syntax-error": ["syntax"],
        "nadia-endless-loop": ["slow"] * 2,
        "priya-deletes-cells": ["missing"] * 4,
    }
    assert rows["mateo-syntax-error"].notes == "toy-triple: the cell has a syntax error"
    assert results.summary(rows.values()) == (
        "deleted cells: 4, endless or slow: 2, syntax errors: 1"
    )


def test_table(graded: Course, capsys: pytest.CaptureFixture[str]) -> None:
    gradebook.command(gradebook.parser().parse_args(["toy"]), graded)
    said = capsys.readouterr().out
    assert re.search(r"ada-all-correct +6/6 ✎", said)
    assert re.search(r"ben-blank +0/6 \+0", said)
    assert re.search(r"lena-late +6/6 ✎ +5 h", said)
    assert re.search(r"^double +5/7 +71 +1 × you square; doubling adds\. *$", said, re.M)
    assert re.search(r"^ +1 × not written *$", said, re.M)
    assert re.search(r"^triple +4/7 +57 ", said, re.M)
    assert max(map(len, said.splitlines())) <= 100


def test_how_the_exercises_went(graded: Course) -> None:
    double, triple = exercises.reports(graded, "toy")
    assert [double.title, triple.title] == ["double", "triple"]
    # blank, and the misconception
    assert (double.solved, double.students) == (5, 7)
    assert double.most_frequent == [("you square; doubling adds.", 1), (exercises.NOT_WRITTEN, 1)]
    # blank, the syntax error and the endless loop
    assert (triple.solved, triple.students) == (4, 7)
    assert triple.causes == {
        exercises.NOT_WRITTEN: 1,
        exercises.NOT_RUN: 1,
        exercises.TOO_LONG: 1,
    }
    assert double.cells == ["toy-double-visible", "toy-double-hidden"]
    with Backend(graded).gradebook() as book:  # all or nothing: the mean tells the rate as well
        grades = [one for one in book.db.query(Grade) if one.name in double.cells]
    assert sum(one.score for one in grades) / 7 == pytest.approx(3 * double.rate / 100)


@pytest.mark.parametrize(
    ("ename", "text", "expected"),
    [
        ("CheckFailed", "Why: the values differ.\nLikely cause: you add.", "you add."),
        ("CheckFailed", "Why: 2 of 6 values differ.", exercises.UNNAMED),
        ("CheckFailed", "Why: expected shape (2,), got shape (1, 2).", "a wrong shape"),
        ("CheckFailed", "Why: your function raised ValueError: no.", "raises ValueError"),
        ("CheckFailed", "✗ L1-01 risk: not written yet.", exercises.NOT_WRITTEN),
        ("KeyError", "KeyError: 'x'", "fails with KeyError"),
    ],
)
def test_a_cause_is_told_in_a_few_words(ename: str, text: str, expected: str) -> None:
    cell = new_code_cell("x", metadata=_about("toy-a"))
    cell.outputs = [new_output("error", ename=ename, evalue="", traceback=text.split("\n"))]
    assert exercises.cause(cell) == expected
    assert exercises.cause(new_code_cell("x", metadata=_about("toy-a"))) == ""


def test_exercises_as_csv(graded: Course, tmp_path: Path) -> None:
    file = tmp_path / "exercises.csv"
    gradebook.command(gradebook.parser().parse_args(["--exercises", str(file)]), graded)
    lines = list(csv.DictReader(file.read_text("utf-8-sig").splitlines()))
    assert [(line["exercise"], line["solved"], line["percent"]) for line in lines] == [
        ("double", "5", "71"),
        ("triple", "4", "57"),
    ]
    assert lines[0]["causes"].startswith("1 × you square; doubling adds.")


def test_a_table_of_many_assignments_is_parted_where_it_would_not_fit() -> None:
    rows = [
        results.Row(student, "", "", f"assignment{number}", 0, 0, graded=True)
        for student in ("ada-all-correct", "ben-blank")
        for number in range(9)
    ]
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(gradebook.table(rows, 80))
    said = screen.export_text()
    assert "…" not in said
    assert [said.count(f"assignment{number}") for number in range(9)] == [1] * 9
    assert said.count("ada-all-correct") == said.count("student") > 1
    assert said.count("Gradebook") == said.count("notes") == said.count("late") == 1


def test_all_students_have_a_row_each(graded: Course, capsys: pytest.CaptureFixture[str]) -> None:
    gradebook.command(gradebook.parser().parse_args([]), graded)
    said = capsys.readouterr().out
    assert re.search(r"^ada-all-correct +6 +6 +0 +1 *$", said, re.M)
    assert re.search(r"^lena-late +6 +6 +0 +1 +1 *$", said, re.M)
    assert re.search(r"^nadia-endless-loop +3 +6 +0 +1 +endless or slow: 2", said, re.M)


def test_all_that_is_known_of_a_student(graded: Course, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = gradebook.parser().parse_args(["--student", "priya-deletes-cells"])
    gradebook.command(arguments, graded)
    said = capsys.readouterr().out
    assert re.search(r"^toy +6 +6 +0 +4 +1 *$", said, re.M)
    assert len(re.findall(r"^toy: cell \S+ was missing; it was put back$", said, re.M)) == 4
    with pytest.raises(ToolError, match="no results of 'priya'") as caught:
        gradebook.command(gradebook.parser().parse_args(["--student", "priya"]), graded)
    assert "did you mean 'priya-deletes-cells'" in caught.value.remedy


def _a_class(students: int, assignments: int) -> list[results.Row]:
    """Return results in which every third student has troubles that take many words."""
    troubles = tuple(map(Event, ("slow", "syntax", "ended", "missing") * 9))
    return [
        results.Row(
            *(f"student-{student}-with-a-long-name", "", "", f"assignment{number}", 27, 0),
            graded=True,
            auto=number,
            pending=1,
            hours_late=student % 2,
            events=() if student % 3 else troubles,
        )
        for student in range(students)
        for number in range(assignments)
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_the_summary_of_a_class_fits_one_screen(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Console(width=width, file=io.StringIO(), soft_wrap=True)
    monkeypatch.setattr(gradebook, "console", screen)
    rows = _a_class(33, 9)
    held = Counter({("assignment1", "you [divide] by the root, " * 9): 5})
    screen.print(gradebook.assignments_table(rows, held))
    gradebook.show_look(rows)
    said = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, said)) <= width
    assert len(said) <= 26
    assert [sum(f"assignment{number} " in line for line in said) for number in range(9)] == [1] * 9
    assert sum(line.startswith("student-") for line in said) == gradebook.SEVERAL
    assert any(line.startswith("and 3 more") for line in said)
    assert any("5 × you [divide] by" in line and line.rstrip().endswith("…") for line in said)


@pytest.mark.parametrize("width", [80, 100])
def test_a_row_for_each_student_is_one_line(width: int) -> None:
    screen = Console(width=width, file=io.StringIO())
    rows = _a_class(33, 9)
    screen.print(gradebook.students_table(rows))
    said = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, said)) <= width
    assert sum(line.startswith("student-") for line in said) == 33
    assert len(said) <= 37


def test_csv(graded: Course, capsys: pytest.CaptureFixture[str]) -> None:
    gradebook.command(gradebook.parser().parse_args(["--csv", "-"]), graded)
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(lines) == 7
    assert lines[0]["student"] == "ada-all-correct"
    assert float(lines[0]["auto"]) == 6
    assert (lines[0]["first_name"], lines[0]["last_name"]) == ("Ada", "(all correct)")
    with Backend(graded).gradebook() as book:
        for line in lines:
            found = book.find_submission("toy", line["student"])
            assert float(line["total"]) == found.score
            assert float(line["max_total"]) == found.max_score == 10


def test_the_sheet_is_for_spreadsheets_and_blank_where_nothing_was_graded(
    graded: Course, tmp_path: Path
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    broken = copy.submitted / "zoe" / "toy" / "toy.ipynb"
    broken.parent.mkdir(parents=True)
    broken.write_text("{ half")
    with Backend(copy).gradebook() as book:
        book.update_or_create_student("zoe", first_name="Zoë", last_name="=1+1")
        book.update_or_create_student("noor", first_name="Noor", last_name="Li")
    sheet = results.write_sheet(copy)
    assert sheet is not None
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbfstudent,")
    lines = {
        one["student"]: one for one in csv.DictReader(sheet.read_text("utf-8-sig").split("\n"))
    }
    assert len(lines) == 9
    for name, why in ("zoe", "not graded"), ("noor", "not handed in"):
        assert lines[name]["notes"] == why
        assert {lines[name][column] for column in results.SCORES} == {""}
        assert lines[name]["max_total"] == "10"
    assert (lines["zoe"]["first_name"], lines["zoe"]["last_name"]) == ("Zoë", "'=1+1")
    assert lines["ben-blank"]["total"] == "0"
    assert lines["lena-late"]["hours_late"] == "5"


def test_the_grade_file_takes_off_the_late_penalty(graded: Course, tmp_path: Path) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    for student in set(copy.submitters("toy")) - {"ada-all-correct", "lena-late"}:
        shutil.rmtree(copy.submitted / student)
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')

    def late_line() -> list[str]:
        """Compare all totals with nbgrader's, and return the late student's points."""
        sheet = (copy.build / "gradebook.csv").read_text("utf-8-sig")
        lines = {line["student"]: line for line in csv.DictReader(sheet.splitlines())}
        with Backend(copy).gradebook() as book:
            for student, line in lines.items():
                submission = book.find_submission("toy", student)
                score = max(0, submission.score - submission.late_submission_penalty)
                assert float(line["total"]) == score
        assert lines["ada-all-correct"]["late_penalty"] == "0"
        return [lines["lena-late"][name] for name in ("auto", "late_penalty", "total")]

    options = grade.parser().parse_args(["toy", "--force", f"--timeout={TIMEOUT}"])
    for _ in range(2):  # the second run is a regrade
        assert grade.command(options, copy) == 0
        assert late_line() == ["6", "6", "0"]
    with Backend(copy).gradebook() as book:  # fewer points than the penalty
        book.find_grade("toy-double-hidden", "toy", "toy", "lena-late").manual_score = 0
        book.db.commit()
    results.write_sheet(copy)
    assert late_line() == ["4", "6", "0"]


def test_the_page_shows_the_late_penalty_also_after_the_deadline_was_moved(
    graded: Course, tmp_path: Path
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    for student in set(copy.submitters("toy")) - {"lena-late"}:
        shutil.rmtree(copy.submitted / student)
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')

    def page() -> tuple[str, bool]:
        """Grade, and return the points on the page and whether it says that it is late."""
        grade.grade(copy, "toy", TIMEOUT)
        text = (copy.feedback / "lena-late" / "toy" / "toy.html").read_text("utf-8")
        content = BeautifulSoup(text, "html.parser")
        return content.h1.text, "Handed in late" in content.text

    assert page() == ("toy: 0 of 10 points", True)
    with Backend(copy).gradebook() as book:  # fewer points than the penalty
        book.find_grade("toy-double-hidden", "toy", "toy", "lena-late").manual_score = 0
        book.db.commit()
    assert page() == ("toy: 0 of 10 points", True)
    with Backend(copy).gradebook() as book:
        book.update_or_create_assignment("toy", duedate=None)
    assert page() == ("toy: 4 of 10 points", False)


def test_a_second_run_does_nothing(graded: Course) -> None:
    before = {path: path.stat().st_mtime_ns for path in files(graded.root)}
    summary = grade.grade(graded, "toy", TIMEOUT)
    assert summary.graded == []
    assert len(summary.unchanged) == 7
    assert summary.feedback == 0
    sample_class.create(graded, ["toy"])
    assert not release.write(graded, "toy")
    assert not release.record(graded, "toy")
    after = {path: path.stat().st_mtime_ns for path in files(graded.root)}
    ignored = {graded.gradebook, graded.build / "gradebox" / "toy.json"}
    assert {path for path in after if after[path] != before.get(path)} <= ignored


def test_only_what_changed_is_graded_again(graded: Course) -> None:
    work = graded.submitted / "ben-blank" / "toy" / "toy.ipynb"
    blank = work.read_bytes()
    right = (graded.submitted / "ada-all-correct" / "toy" / "toy.ipynb").read_bytes()
    work.write_bytes(right)
    assert grade.grade(graded, "toy", TIMEOUT).graded == [("ben-blank", "toy")]
    assert _results(graded)["ben-blank"].auto == 6
    work.write_bytes(blank)
    assert grade.grade(graded, "toy", TIMEOUT).graded == [("ben-blank", "toy")]
    assert _results(graded)["ben-blank"].auto == 0


def test_the_page_of_the_same_work_handed_in_again_belongs_to_the_last_submission(
    graded: Course, tmp_path: Path
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    for moment in ("2027-03-01 12:00:00 UTC", "2027-03-01 13:00:00 UTC"):
        folder = copy.submitted / "ben-blank" / "toy"
        (folder / "timestamp.txt").write_text(moment)
        (folder / "submission_secret.txt").write_text(f"secret of {moment}")
        grade.grade(copy, "toy", TIMEOUT)
        page = copy.feedback / "ben-blank" / "toy"
        # nbgrader makes the name under which the student fetches the page from this
        assert (page / "submission_secret.txt").read_text() == f"secret of {moment}"


def test_a_class_is_trusted_while_nobody_else_has_handed_in(graded: Course) -> None:
    members = set(graded.submitters("toy"))
    assert course._all_ours(graded, ["toy"], members)
    assert not course._all_ours(graded, ["toy"], members - {"ben-blank"})


def test_a_regrade_keeps_marks_given_by_hand_in_sight(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    with Backend(copy).gradebook() as book:
        mark = book.find_grade("toy-why", "toy", "toy", "ada-all-correct")
        mark.manual_score, mark.needs_manual_grade = 2, False
        book.find_comment("toy-why", "toy", "toy", "ada-all-correct").manual_comment = "Good."
        book.db.commit()
    for arguments, shown in (["toy"], r"6/6 \+2 {3}"), (["toy", "--force"], r"6/6 \+2 ✎"):
        options = grade.parser().parse_args([*arguments, f"--timeout={TIMEOUT}"])
        assert grade.command(options, copy) == 0
        assert re.search(rf"ada-all-correct +{shown}", capsys.readouterr().out)
        with Backend(copy).gradebook() as book:
            mark = book.find_grade("toy-why", "toy", "toy", "ada-all-correct")
            assert (mark.manual_score, mark.score) == (2, 2)
        page = (copy.feedback / "ada-all-correct" / "toy" / "toy.html").read_text("utf-8")
        found = BeautifulSoup(page, "html.parser")
        assert found.h1.text == "toy: 8 of 10 points"
        assert "Good." in found.select_one(".foot").text


# --- feedback


def test_a_page_is_the_students(graded: Course) -> None:
    pages = {
        student: BeautifulSoup(
            (graded.feedback / student / "toy" / "toy.html").read_text("utf-8"), "html.parser"
        )
        for student in _results(graded)
    }
    for page in pages.values():
        assert not page.find_all(["script", "link"])
        assert "BEGIN HIDDEN" not in page.text
        assert str(ROOT) not in page.text
        assert str(graded.root) not in page.text
        assert "gradebox" not in page.text
    rows = pages["quinn-misconception-1"].select("#index tbody tr")
    assert [[cell.text for cell in row.find_all("td")] for row in rows] == [
        ["double", "you square; doubling adds.", "0/3"],
        ["triple", "", "3/3"],
        ["triple", "not read yet", "0/4"],
    ]
    # what nbgrader by itself remarks on an answer that was left as it was is no comment
    blank = pages["ben-blank"]
    assert blank.select("#index tbody .reason")[-1].text == "not written"
    assert blank.select("a[href^='#comment-']") == []


@pytest.mark.parametrize(("cause", "reason"), [("you add", "you add."), ("", "the values differ.")])
def test_the_index_of_a_page_has_what_a_check_says(cause: str, reason: str) -> None:
    message = failing_case("L1-01 risk", {}, ("1", "2"), ["the values differ"], cause)
    match = re.search(str(Course(ROOT).config.FeedbackPage.reason), message)
    assert match is not None
    assert [*filter(None, match.groups())] == [reason]


def test_the_index_of_a_page_says_that_an_answer_is_not_written() -> None:
    def standard_error(*_: object) -> float:
        raise NotImplementedError

    with pytest.raises(CheckFailed) as failed:
        check("L1-07", standard_error)
    match = re.search(str(Course(ROOT).config.FeedbackPage.reason), str(failed.value))
    assert match is not None
    assert [*filter(None, match.groups())] == ["not written"]


def test_a_page_says_that_an_answer_was_stopped(graded: Course) -> None:
    page = (graded.feedback / "nadia-endless-loop" / "toy" / "toy.html").read_text("utf-8")
    reasons = BeautifulSoup(page, "html.parser").select("#index .reason")
    assert reasons[1].text == "Your code took too long and was stopped."


def test_formgrader_shows_formulas_and_loads_none_of_mathjax(
    graded: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in lab.settings(graded).items():
        monkeypatch.setenv(name, value)
    settings = deepcopy(graded.config)
    settings.HTMLExporter.template_name = "formgrade"
    settings.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    resources = {"index": 0, "total": 1, "base_url": "", "student": "ada", "notebook_path": ""}
    cell = new_markdown_cell("$x^2$")
    page, _ = HTMLExporter(config=settings).from_notebook_node(
        new_notebook(cells=[cell]), resources
    )
    found = BeautifulSoup(page, "html.parser")
    assert [tag.name for tag in found.math.find_all()] == ["msup", "mi", "mn"]
    assert not [tag for tag in found.find_all("script") if "//" in tag.get("src", "")]


def test_feedback_goes_to_all_who_can_get_it_and_the_others_are_named(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    place = copy.feedback / "ben-blank" / "toy"
    (place / "submission_secret.txt").write_text("secret-ben")
    options = feedback.parser().parse_args(["toy"])
    feedback.command(options, copy)
    said = capsys.readouterr().out
    assert "Released the pages of toy to 1 student." in said
    others = sorted(set(_results(copy)) - {"ben-blank"})
    assert re.findall(r"^ *(\S+) +(\S+/toy) *$", said, re.M) == [
        (name, f"build/feedback/{name}/toy") for name in others
    ]
    name = notebook_hash(secret="secret-ben", notebook_id="toy")
    given = copy.exchange / "optdl" / "feedback" / f"{name}.html"
    assert given.read_bytes() == (place / "toy.html").read_bytes()
    assert len(list(given.parent.iterdir())) == 1
    # nbgrader's own command
    given.unlink()
    command = [sys.executable, "-m", "nbgrader", "release_feedback", "toy"]
    run = subprocess.run(command, cwd=copy.root, capture_output=True, text=True, check=True)
    assert given.is_file()
    assert "not recognized" not in run.stderr
    assert all(f"'{name}'" in run.stderr for name in others)


def test_feedback_needs_an_assignment_with_pages(small: Course) -> None:
    with pytest.raises(ToolError, match="which assignment") as caught:
        feedback.command(feedback.parser().parse_args([]), small)
    assert caught.value.remedy == "make feedback A=toy"
    with pytest.raises(ToolError, match="no page of toy yet"):
        feedback.command(feedback.parser().parse_args(["toy"]), small)


def test_an_unreadable_notebook_is_told_and_the_rest_is_graded(
    graded: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in {"zac-broken": "{ half", "zoe-other": None}.items():
        folder = graded.submitted / name / "toy"
        folder.mkdir(parents=True)
        if content is not None:
            (folder / "toy.ipynb").write_text(content)
        else:
            (folder / "homework.ipynb").write_text("{}")
    try:
        assert (
            grade.command(grade.parser().parse_args(["toy", f"--timeout={TIMEOUT}"]), graded) == 1
        )
        assert _results(graded)["zac-broken"].notes.startswith("not graded: toy.ipynb is no JSON")
        assert _results(graded)["zac-broken"].max_auto == 6
    finally:
        for name in ("zac-broken", "zoe-other"):
            shutil.rmtree(graded.submitted / name)
    said = " ".join(capsys.readouterr().out.split())
    assert "Graded 0, unchanged 7, to look at 1, failed 2" in said
    assert said.count("nadia-endless-loop 1 endless or slow: 2") == 1
    assert re.search(r"zac-broken toy .*JSON", said)
    assert "expected toy.ipynb, got homework.ipynb" in said


def test_without_fork_nbgrader_grades_one_by_one(
    graded: Course,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    for name in _results(copy).keys() - {"ada-all-correct", "ben-blank"}:
        shutil.rmtree(copy.submitted / name)
    (copy.submitted / "ben-blank" / "toy" / "toy.ipynb").write_text("{ half")
    with Backend(copy).gradebook() as book:
        book.find_grade("toy-double-visible", "toy", "toy", "ada-all-correct").auto_score = 0
        book.db.commit()
    monkeypatch.setattr(grade, "FORKS", False)
    summary = grade.grade(copy, "toy", TIMEOUT)
    assert summary.graded == [("ada-all-correct", "toy")]
    assert [row[:2] for row in summary.failed] == [("ben-blank", "toy")]
    assert _results(copy)["ada-all-correct"].auto == 6
    assert "nbgrader grades all, one after another" in capsys.readouterr().out


def test_pages_written_by_other_processes_are_the_same(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    shutil.rmtree(copy.feedback)
    monkeypatch.setattr(grade, "FEW", 0)
    assert grade.grade(copy, "toy", TIMEOUT).feedback == 7
    assert grade._processes.cache_info().currsize == 1
    pages = sorted(path.relative_to(graded.root) for path in graded.feedback.glob("*/toy/toy.html"))
    assert len(pages) == 7
    for page in pages:
        assert (copy.root / page).read_bytes() == (graded.root / page).read_bytes()
    grade._processes().shutdown()
    grade._processes.cache_clear()


def test_two_runs_at_once_are_told(graded: Course) -> None:
    store = Store(graded.build / "gradebox", "toy")
    with store.locked(), pytest.raises(ToolError, match="another run grades") as caught:
        grade.grade(graded, "toy", TIMEOUT)
    assert caught.value.remedy == "wait for the end of the other run"


def test_grade_without_a_name_or_without_submissions(small: Course) -> None:
    with pytest.raises(ToolError, match="which assignment") as caught:
        grade.command(grade.parser().parse_args([]), small)
    assert caught.value.remedy == "make grade A=toy"
    with pytest.raises(ToolError, match="nobody has handed in toy yet") as caught:
        grade.command(grade.parser().parse_args(["toy"]), small)
    assert "make collect A=toy ZIP=" in caught.value.remedy


def test_gradebook_before_anything_is_graded(small: Course) -> None:
    with pytest.raises(ToolError, match="no gradebook yet"):
        gradebook.command(gradebook.parser().parse_args([]), small)


def test_changed_cells_of_a_graded_assignment(graded: Course) -> None:
    source = graded.source("toy").read_bytes()

    def drop(notebook: Any) -> None:
        del notebook.cells[4]

    _change_source(graded, drop)
    try:
        release.write(graded, "toy")
        with pytest.raises(ToolError, match="other cells or notebooks than when") as caught:
            release.record(graded, "toy")
        assert "--remove" in caught.value.remedy
    finally:
        graded.source("toy").write_bytes(source)
        release.write(graded, "toy")


def test_remove_leaves_real_students(graded: Course, tmp_path: Path) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    real = copy.submitted / "emmy" / "toy"
    shutil.copytree(copy.submitted / "ada-all-correct" / "toy", real)
    assert grade.grade(copy, "toy", TIMEOUT).graded == [("emmy", "toy")]
    assert sample_class.remove(copy) == 7
    assert list(_results(copy)) == ["emmy"]
    assert [path.name for path in copy.submitted.iterdir()] == ["emmy"]
    with Backend(copy).gradebook() as book:
        assert book.find_assignment("toy").duedate is None
    lines = csv.DictReader((copy.build / "gradebook.csv").read_text("utf-8-sig").splitlines())
    assert [line["student"] for line in lines] == ["emmy"]


@pytest.mark.parametrize(("hours", "text"), [(0, ""), (0.5, "0.5 h"), (48, "48 h"), (72, "3 d")])
def test_late(hours: float, text: str) -> None:
    assert gradebook._late(hours) == text


# --- a part that fails costs only itself


@pytest.fixture
def whole(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[..., Path]], tuple[int, Course]]:
    """Return a function that runs the whole command with a site built by the function given."""
    few = tuple(student for student in sample_class.STUDENTS if student.kind in KINDS)
    monkeypatch.setattr(catalog, "blocks", blocks)
    monkeypatch.setattr(sample_class, "STUDENTS", few)
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)

    def go(build: Callable[..., Path]) -> tuple[int, Course]:
        monkeypatch.setattr(book, "build", build)
        return course.command(course.parser().parse_args([]), copy), copy

    return go


def _built(out: Path, **_: Any) -> Path:
    return out / "_build" / "html"


def _has_gradebook(said: str) -> bool:
    return bool(re.search(r"^toy +7 +\S+/6 ", said, re.M))


def test_all_is_shown_in_lines_that_fit(whole: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status, made = whole(_built)
    said = capsys.readouterr().out
    assert status == 0
    assert _has_gradebook(said)
    assert "Ready after" in said
    # an address is never broken: it could not be copied
    for name, page in (("site", "_build/html/index.html"), ("report.*", "build/report/term.html")):
        assert re.search(rf"^{name} +{re.escape((made.root / page).as_uri())}$", said, re.M)
    assert (made.root / "build" / "report" / "term.html").is_file()
    lines = [line for line in said.splitlines() if "file://" not in line]
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in said
    assert "\r" not in said


def test_a_site_that_fails_does_not_hide_the_gradebook(
    whole: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(**_: Any) -> Path:
        raise book.BookError("book/erm/risk.md, cell 3: x = [1]\nTo fix: correct the cell")

    status, _ = whole(build)
    said = capsys.readouterr().out
    assert status == 1
    assert _has_gradebook(said)
    assert "Not all is ready" in said
    end = said.split("Not all is ready")[-1]
    assert re.search(r"Failed: site\n +book/erm/risk.md, cell 3: x = \[1\]\n +To fix: correct", end)
    assert end.count("To fix: ") == 1
    assert "html/index.html" not in said


def test_an_unexpected_error_leaves_its_traceback_in_a_file(
    whole: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def build(**_: Any) -> Path:
        return Path("x") / str(1 // 0)

    status, made = whole(build)
    said = capsys.readouterr().out
    assert status == 1
    assert _has_gradebook(said)
    assert "ZeroDivisionError: integer division or modulo by zero" in said
    assert "Traceback" not in said
    log = made.root / "build" / "logs" / "site.log"
    assert str(log.relative_to(made.root)) in said
    assert 'Path("x") / str(1 // 0)' in log.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "name", "part"),
    [
        (release, "write", "release of toy"),
        (sample_class, "ensure", "sample class"),
        (grade, "grade", "grading of toy"),
        (results, "rows", "gradebook"),
    ],
)
@pytest.mark.parametrize("error", [ToolError("it is broken", "fix it"), KeyError("broken")])
def test_a_grading_that_fails_does_not_hide_the_site(
    whole: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: Any,
    name: str,
    part: str,
    error: Exception,
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(module, name, fails)
    status, _ = whole(_built)
    said = capsys.readouterr().out
    assert status == 1
    assert "html/index.html" in said
    assert f"Failed: {part}" in said
    assert "broken" in said
    assert said.count("To fix: ") == said.count("Failed: ") == 1


def test_an_interruption_stops_the_site_too(
    whole: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = []

    def build(out: Path, stop: Any, **_: Any) -> Path:
        stopped.append(stop.wait(HANG))
        raise KeyboardInterrupt

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade", interrupted)
    assert terminal.run(lambda _: whole(build)[0], course.parser(), []) == 130
    assert stopped == [True]
    assert "goes on where it stopped" in capsys.readouterr().out


# --- JupyterLab


def test_work_that_has_begun_is_never_overwritten(small: Course) -> None:
    release.write(small, "toy")
    assert lab.copy_for_work(small, "toy")
    work = small.work / "toy" / "toy.ipynb"
    _change_source(small, lambda notebook: notebook.cells[0].update(source="# Toy, again"))
    release.write(small, "toy")
    assert lab.copy_for_work(small, "toy")
    assert b"again" in work.read_bytes()
    mine = work.read_bytes().replace(b"raise NotImplementedError()", b"return 'mine'")
    work.write_bytes(mine)
    _change_source(small, lambda notebook: notebook.cells[0].update(source="# Toy, at last"))
    release.write(small, "toy")
    assert lab.copy_for_work(small, "toy")  # its tests are those of the release
    _change_source(small, lambda notebook: notebook.cells[3].update(source="assert f(2)"))
    release.write(small, "toy")
    assert not lab.copy_for_work(small, "toy")
    assert work.read_bytes() == mine
    work.write_text("damaged")
    assert not lab.copy_for_work(small, "toy")
    assert work.read_text() == "damaged"


MOVES = ("edit the exercise", "edit the work", "make lab", "release", "submit", "unpack anew")


@pytest.mark.parametrize("seed", range(40))
def test_no_order_of_commands_loses_work(
    small: Course, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw, clock = random.Random(seed), itertools.count(1)
    version, work = small.released("toy"), small.work / "toy" / "toy.ipynb"
    mine: dict[Path, str] = {}  # what the student saved in each place, and did not save over
    releases = [0]
    monkeypatch.setattr(release, "render", lambda *_: {"toy": f"release {releases[0]}".encode()})
    release.write(small, "toy")

    def save(file: Path) -> None:
        text = f"answer {next(clock)}"
        mine.pop(file, None)
        mine[file] = text  # the last in the order of saving
        file.write_text(text)
        os.utime(file, (1e9 + 60 * next(clock),) * 2)

    for move in [draw.choice(MOVES) for _ in range(8)]:
        if move == "edit the exercise":
            save(version)
        elif move == "edit the work" and work.exists():
            if work.read_text() in mine.values():  # gathered from elsewhere, and now saved over
                del mine[next(file for file, text in mine.items() if text == work.read_text())]
            save(work)
        elif move == "make lab":
            lab.copy_for_work(small, "toy")
        elif move == "release":
            releases[0] += 1
            release.write(small, "toy")
        elif move == "submit":
            config = small.config
            if work.exists() or mine:
                coursedir = CourseDirectory(config=config, assignment_id="toy")
                exchange = Submit(coursedir=coursedir, config=config)
                exchange.init_src()
                handed_in = Path(exchange.src_path, "toy.ipynb").read_text()
                last = list(mine.values())[-1:]
                assert [handed_in] == last or not mine
        elif move == "unpack anew" and version not in mine:
            releases[0] += 1
            version.write_text(f"release {releases[0]}")
            Releases(small.exercises).remember([version])
    texts = {file.read_text() for file in small.root.rglob("*.ipynb")}
    assert set(mine.values()) <= texts


def test_a_file_of_a_student_among_the_exercises_is_not_taken_for_a_release(small: Course) -> None:
    release.write(small, "toy")
    own = small.exercises / "toy" / "own.txt"
    own.write_text("mine")
    release.write(small, "toy")
    assert not Releases(small.exercises).knows("toy", "own.txt", own)
    assert (small.work / "toy" / "own.txt").read_text() == "mine"


def test_a_copy_without_solutions_opens_its_exercises(
    small: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release.write(small, "toy")
    shutil.rmtree(small.solutions)
    monkeypatch.setattr(lab, "_serve", lambda command, course: len(lab.settings(course)) * 0)
    arguments = lab.parser().parse_args(["--no-browser"])
    assert lab.command(arguments, Course(small.root)) == 0
    assert (small.work / "toy" / "toy.ipynb").exists()
    assert "formgrader" not in capsys.readouterr().out
    page = small.build / "jupyter" / "config" / "labconfig" / "page_config.json"
    assert "@jupyter/nbgrader:formgrader" in json.loads(page.read_text())["disabledExtensions"]
    with pytest.raises(ToolError, match="a student's copy"):
        release.command(release.parser().parse_args([]), Course(small.root))


def test_work_in_an_older_copy_is_taken_along(
    small: Course,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release.write(small, "toy")
    older = tmp_path_factory.mktemp("older") / "course"
    shutil.copytree(small.exercises, older / "exercises")
    shutil.copytree(small.exercises / "toy", older / "work" / "toy")
    (older / "work" / "toy" / "toy.ipynb").write_text("my answer")
    monkeypatch.setattr(lab, "_serve", lambda command, course: 0)
    lab.command(lab.parser().parse_args(["--from", str(older)]), small)
    assert (small.work / "toy" / "toy.ipynb").read_text() == "my answer"
    with pytest.raises(ToolError, match="is no copy of the course"):
        lab.command(lab.parser().parse_args(["--from", str(older / "work")]), small)


def test_jupyter_keeps_to_the_course(small: Course) -> None:
    settings = lab.settings(small)
    for key in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        assert Path(settings[key]).is_relative_to(small.build)
        assert Path(settings[key]).is_dir()
    command = lab.jupyterlab(small, "toy", browser=False, port=8899)
    assert f"--ServerApp.root_dir={small.root}" in command
    assert "--LabApp.default_url=/lab/tree/work/toy/toy.ipynb" in command
    assert {"--no-browser", "--port=8899"} <= set(command)


def test_a_make_in_a_terminal_of_jupyter_knows_of_no_other(
    small: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.setenv(name, "1")
    code = "import os; raise SystemExit(bool({'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS'} & {*os.environ}))"
    assert lab._serve([sys.executable, "-c", code], small) == 0


def _fetch(address: str, token: str, path: str) -> Any:
    request = urllib.request.Request(
        f"{address}{path}", headers={"Authorization": f"token {token}"}
    )
    until = time.monotonic() + HANG
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(request, timeout=HANG) as answer:
                return json.loads(answer.read())
        except urllib.error.URLError as error:
            # the server says where it will be a moment before it listens there
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    raise AssertionError(f"{address} does not answer")


def test_server_shows_assignments_to_students_and_instructors(small: Course) -> None:
    release.write(small, "toy")
    release.record(small, "toy")
    command = lab.jupyterlab(small, "toy", browser=False, port=None)
    environment = os.environ | lab.settings(small)
    server = subprocess.Popen(
        command,
        cwd=small.root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        runtime = Path(environment["JUPYTER_RUNTIME_DIR"])
        until = time.monotonic() + HANG
        while time.monotonic() < until:
            found = list(runtime.glob("jpserver-*.json"))
            if found and found[0].stat().st_size:
                break
            assert server.poll() is None, "the server ended"
            time.sleep(0.1)
        about = json.loads(found[0].read_text())
        address, token = about["url"].rstrip("/"), about["token"]
        assert Path(about["root_dir"]) == small.root
        listed = _fetch(address, token, "/assignments?course_id=optdl")
        assert [(one["assignment_id"], one["status"]) for one in listed["value"]] == [
            ("toy", "released")
        ]
        managed = _fetch(address, token, "/formgrader/api/assignments")
        assert [(one["name"], one["status"]) for one in managed] == [("toy", "released")]
        page = _fetch(address, token, "/api/contents/exercises/toy?type=directory")
        assert [item["name"] for item in page["content"]] == ["toy.ipynb"]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=HANG)


def test_configuration_sets_nothing_twice() -> None:
    tree = ast.parse((ROOT / "nbgrader_config.py").read_text("utf-8"))
    count = Counter(
        ast.unparse(node.targets[0]) for node in ast.walk(tree) if isinstance(node, ast.Assign)
    )
    assert {name for name, number in count.items() if number > 1} == set()


def test_configuration_stops_endless_loops_soon() -> None:
    execute: Any = Course(ROOT).config.Execute
    assert 0 < execute.timeout <= 30
    assert execute.interrupt_on_timeout
    assert inspect.getdoc(course.site)
