"""The commands of the course lose no work and no mark, on a toy course in a temporary folder."""

import ast
import contextlib
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
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from bs4 import BeautifulSoup
from hang import HANG
from nbformat.v4 import new_code_cell, new_output
from nbgrader.api import Grade
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import notebook_hash
from toy_course import LINE, MARKS, RECORDS, blocks, change, copy_of, make_course, rows, use

from gradebox.exchange import Releases, Submit
from gradebox.run.store import Store
from optdl.checks import CheckFailed, catalog, check
from optdl.checks.report import failing_case
from tools import course, notebooks, terminal
from tools.classroom import (
    answers,
    exercises,
    feedback,
    grade,
    gradebook,
    handout,
    lab,
    release,
    report,
    sample_class,
)
from tools.classroom.backend import Backend, Failed
from tools.fingerprints import Fingerprints, digest, files, write_if_changed
from tools.layout import ROOT, Course
from tools.site import book
from tools.terminal import ToolError

pytestmark = MARKS


# --- names, and what is refused


@pytest.mark.parametrize(
    ("command", "arguments", "problem", "remedy"),
    [
        (release, ["tyo"], "no assignment 'tyo'", "did you mean 'toy'?"),
        (feedback, [], "which assignment", "make feedback A=toy"),
        (feedback, ["toy"], "no page of toy yet", "make grade A=toy"),
        (grade, [], "which assignment", "make grade A=toy"),
        (grade, ["toy"], "nobody has handed in toy yet", "make collect A=toy ZIP="),
        (gradebook, [], "no gradebook yet", "make course"),
        (handout, ["--how", "exchange"], "students do not share the exchange", "HOW=upload"),
        (lab, ["--from", "."], "is no copy of the course", ""),
    ],
)
def test_what_cannot_be_done_has_a_remedy(
    small: Course, command: Any, arguments: list[str], problem: str, remedy: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(small.root)
    with pytest.raises(ToolError) as caught:
        use(command, small, *arguments)
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy


def test_a_folder_without_a_course_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"there is no nbgrader_config\.py"):
        Course(tmp_path).topics()
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    with pytest.raises(ToolError, match="there is no assignment in"):
        Course(tmp_path).choose([])


def test_topics_come_in_the_order_of_the_book(tmp_path: Path) -> None:
    made = make_course(tmp_path / "course", "alpha", "toy", "zeta")
    assert made.topics() == ["alpha", "toy", "zeta"]
    chapters = "root: book/index\nparts:\n- chapters:\n  - file: book/zeta\n  - file: book/toy\n"
    (made.root / "_toc.yml").write_text(chapters)
    assert made.topics() == ["zeta", "toy", "alpha"]


def test_a_failure_sets_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main.run(["quadratc"]) == 1
    assert "To fix: did you mean 'quadratic'?" in capsys.readouterr().out


# --- what was made from what


def test_a_write_is_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_fingerprints_survive_and_forget(tmp_path: Path) -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest([tmp_path / "missing"]) == digest([b""])
    path = tmp_path / "fingerprints.json"
    fingerprints = Fingerprints(path)

    def known() -> list[str]:
        """Return which of the checksums of two results a new run finds."""
        results = itertools.product(("grade/ada/toy", "site"), "12")
        return [" ".join(result) for result in results if Fingerprints(path).matches(*result)]

    fingerprints.record("grade/ada/toy", "1")
    fingerprints.record("site", "2")
    assert known() == ["grade/ada/toy 1", "site 2"]
    fingerprints.forget("grade/")
    assert known() == ["site 2"]
    path.write_text("{ half a fi")
    assert known() == []


# --- release


def _open_test(cells: Any) -> None:
    cells[4].source = cells[4].source.replace("### BEGIN", "### begin")


@pytest.mark.parametrize(
    ("name", "spoil", "reason"),
    [
        ("toy", lambda cells: cells[2].update(id="something-else"), "make them equal"),
        ("toy", _open_test, "HIDDEN TESTS"),
        ("toy", lambda cells: cells[0].update(source="return x + x + 0 * x"), "gives away"),
        ("lab", lambda cells: cells[0].update(source="self.slope = slope"), "toy/lab would be"),
    ],
)
def test_a_wrong_source_releases_nothing(
    with_lab: Course, name: str, spoil: Callable[[Any], None], reason: str
) -> None:
    source, released = with_lab.source("toy", name), with_lab.released("toy", name)
    released.parent.mkdir(parents=True)
    released.write_bytes(b"good")
    notebook = notebooks.read(source)
    spoil(notebook.cells)
    source.write_bytes(notebooks.to_bytes(notebook))
    with pytest.raises(ToolError, match=reason) as caught:
        release.write(with_lab, "toy")
    assert f"solutions/toy/{name}.ipynb" in str(caught.value)
    assert released.read_bytes() == b"good"


@pytest.mark.parametrize("name", ["toy", "lab"])
def test_cells_of_a_graded_assignment_cannot_change(
    graded: Course, tmp_path: Path, name: str
) -> None:
    made = copy_of(graded, tmp_path / "copy", "ada-all-correct")
    source = made.source("toy", name)
    notebook = notebooks.read(source)
    del notebook.cells[4]
    source.write_bytes(notebooks.to_bytes(notebook))
    release.write(made, "toy")
    with pytest.raises(ToolError, match="other cells or notebooks than when") as caught:
        release.record(made, "toy")
    assert "--remove" in caught.value.remedy


# --- the sample class


def test_a_class_is_answered_method_by_method() -> None:
    right = f"class Base:\n    def f(self):\n        return 1\n\n{answers.right(LINE)}"
    assert answers.defined_name(right) == "Line"  # the last definition is the answer
    assert answers.never_ends(right).count("while error > 0:") == 2
    assert answers.under_another_name(right) == right
    broken = answers.syntax_error(right)
    assert "class Base:" in broken
    with pytest.raises(SyntaxError):
        ast.parse(broken)


def test_submissions_are_the_released_notebook_filled_in(graded: Course) -> None:
    files_ = graded.submitted.glob("*/toy/toy.ipynb")
    work = {path.parts[-3].partition("-")[2]: path.read_bytes() for path in files_}
    assert work["blank"] == graded.released("toy").read_bytes()
    assert work["all-correct"] == work["late"]
    assert work["all-correct"].startswith(work["broken-file"])
    # the only mistake stands for the further ones
    assert work["misconception-1"] == work["misconception-2"] == work["misconception-3"]
    assert b"x * x" in work["misconception-1"]
    assert len(set(work.values())) == len(work) - 3
    assert b"BEGIN" not in work["all-correct"]


def test_misconceptions_are_chosen_by_rank() -> None:
    sheet = sample_class.Sheet(
        notebooks.node({}), {"a": "right", "b": "right", "c": "right"}, {},
        {"a": ("1", "2", "3", "4"), "b": ("1",), "c": ()},
    )  # fmt: skip
    assert [sample_class._misconception(number)(sheet) for number in range(3)] == [
        {"a": "1", "b": "1", "c": "right"},
        {"a": "2", "b": "1", "c": "right"},
        {"a": "3", "b": "1", "c": "right"},
    ]


# --- what was graded


SAMPLE = {
    "ada-all-correct": (10, ""),
    "ben-blank": (0, "missing notebooks: 1"),
    "dmitri-first-half": (3, "missing notebooks: 1"),
    "quinn-misconception-1": (3, ""),
    "rosa-misconception-2": (3, "missing notebooks: 1"),
    "sven-misconception-3": (3, "missing notebooks: 1"),
    "nadia-endless-loop": (3, "endless or slow: 2, missing notebooks: 1"),
    "omar-forger": (0, "changed cells: 2, missing notebooks: 1"),
    "tala-broken-file": (0, "not graded: toy.ipynb is no JSON; save it anew in Jupyter"),
    "lena-late": (6, "missing notebooks: 1, 5 h late"),
    "kofi-other-names": (6, "missing notebooks: 1"),
    "mateo-syntax-error": (3, "missing notebooks: 1, syntax errors: 1"),
    "priya-deletes-cells": (6, "deleted cells: 4, missing notebooks: 1"),
}
"""The points of the sample class for code, and what happened to its work."""


def test_each_student_has_the_points_of_the_work(graded: Course) -> None:
    made = rows(graded)
    sample = {name: made[name] for name in SAMPLE}
    assert {name: (row.auto, row.summary) for name, row in sample.items()} == SAMPLE
    assert {name for name, row in sample.items() if not row.graded} == {"tala-broken-file"}
    assert {(row.max_auto, row.max_written) for row in made.values()} == {(10, 4)}
    assert {name: row.hours_late for name, row in made.items() if row.hours_late} == {
        "lena-late": 5.0
    }
    assert made["ben-blank"].pending == 0
    assert made["ada-all-correct"].pending == 1
    with Backend(graded).gradebook() as entries:
        for entry in entries.assignment_submissions("toy"):
            row = made[entry.student.id]
            assert (row.total, row.max_total) == (entry.score, entry.max_score), entry.student.id


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            [],
            [
                r"toy +15 of 16 +\S+/10 +1 \(3 unknown\) +9 +3 × you square; doubling adds\. *$",
                r"Look at nadia-endless-loop \(Nadia \(endless loop\)\), toy: endless or slow: 2",
                r"Report: file:///\S+/build/report/term\.html$",
            ],
        ),
        (
            ["--student", "priya"],  # the only one
            [
                r"priya-deletes-cells \(Priya .+\), toy: 6 of 14 points \(code 6/10, in words 0/4",
                r"  cell toy-double-hidden was missing",
            ],
        ),
        (["--student", "lena-late"], [r"  5 h late$"]),
    ],
)
def test_the_gradebook_shows_points_and_causes(
    graded: Course, capsys: pytest.CaptureFixture[str], arguments: list[str], shown: list[str]
) -> None:
    use(gradebook, graded, *arguments)
    output = capsys.readouterr().out
    missing = [line for line in shown if not re.search(f"^ *{line}", output, re.M)]
    assert missing == [], output


def test_an_unclear_student_is_answered_with_the_possible_ones(graded: Course) -> None:
    with pytest.raises(ToolError, match="'miscon' is not one student") as caught:
        use(gradebook, graded, "--student", "miscon")
    assert "quinn-misconception-1 (Quinn (misconception 1)), rosa" in caught.value.remedy


def test_exercises_have_rates_and_causes(graded: Course) -> None:
    reports = {report.title: report for report in exercises.reports(graded, "toy")}
    double, triple = reports["double"], reports["triple"]
    assert list(reports) == ["double", "triple", "line", "run"]
    assert (len(double.why), len(double.points)) == (5, 12)
    assert double.most_frequent == [("you square; doubling adds.", 3), (exercises.NOT_WRITTEN, 2)]
    causes = {exercises.NOT_WRITTEN: 3, exercises.NOT_RUN: 1, exercises.TOO_LONG: 1}
    assert triple.causes == causes
    with Backend(graded).gradebook() as entries:  # all or nothing: the mean tells the rate as well
        grades = [entry for entry in entries.db.query(Grade) if entry.name in double.cells]
    assert sum(entry.score for entry in grades) / 12 == pytest.approx(3 * double.rate / 100)


@pytest.mark.parametrize(
    ("ename", "text", "expected"),
    [
        ("CheckFailed", "Why: the values differ.\nLikely cause: you add.", "you add."),
        ("CheckFailed", "Why: 2 of 6 values differ.", exercises.UNNAMED),
        ("CheckFailed", "Why: expected shape (2,), got shape (1, 2).", "a wrong shape"),
        ("CheckFailed", "Why: your function raised ValueError: no.", "raises ValueError"),
        ("CheckFailed", "✗ risk: not written yet.", exercises.NOT_WRITTEN),
        ("KeyError", "KeyError: 'x'", "fails with KeyError"),
        ("", "", ""),
    ],
)
def test_a_cause_is_told_in_a_few_words(ename: str, text: str, expected: str) -> None:
    cell = new_code_cell("x", metadata={"nbgrader": {"grade_id": "toy-a"}})
    if ename:
        cell.outputs = [new_output("error", ename=ename, evalue="", traceback=text.split("\n"))]
    assert exercises.cause(cell, {}, {}) == expected


# --- grading anew


def test_only_what_changed_is_graded_and_written_again(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, ben, nadia = "ada-all-correct", "ben-blank", "nadia-endless-loop"
    made = copy_of(graded, tmp_path / "copy", ada, ben, nadia, "quinn-misconception-1")

    def again() -> tuple[list[str], int]:
        """Grade, and return who was graded and how many pages were written."""
        summary = grade.grade(made, "toy", course.TIMEOUT)
        assert (summary.refused, summary.lost) == ([], [])
        return [student for student, _ in summary.graded], summary.pages

    before = {path: path.stat().st_mtime_ns for path in files(made.root)}
    assert again() == ([], 0)
    assert not release.write(made, "toy")
    assert not release.record(made, "toy")
    after = {path: path.stat().st_mtime_ns for path in files(made.root)}
    ignored = {made.gradebook, made.build / "gradebox" / "toy.json"}
    assert {path for path in after if after[path] != before.get(path)} <= ignored

    # this process has written the pages of the class, and another one writes a lost page
    page = made.feedback / ada / "toy" / "lab.html"
    content = page.read_bytes()
    page.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(grade, "MAX_ALONE", 0)
        assert again() == ([], 1)
    assert page.read_bytes() == content
    grade._processes().shutdown()
    grade._processes.cache_clear()

    with Backend(made).gradebook() as entries:
        comment = entries.find_comment("toy-lab-line", "lab", "toy", "quinn-misconception-1")
        comment.manual_comment = "Begin with the slope."
        entries.db.commit()
    assert again() == ([], 1)
    page = made.feedback / "quinn-misconception-1" / "toy" / "lab.html"
    assert "Begin with the slope." in page.read_text("utf-8")

    # the same work handed in again: with the secret nbgrader names the page for the student
    folder = made.submitted / ben / "toy"
    (folder / "timestamp.txt").write_text("2027-03-01 12:00:00 UTC")
    (folder / "submission_secret.txt").write_text("of the last submission")
    again()
    page = made.feedback / ben / "toy" / "submission_secret.txt"
    assert page.read_text() == "of the last submission"

    shutil.copy(made.submitted / ada / "toy" / "toy.ipynb", folder)
    assert again() == ([ben], 1)
    assert rows(made)[ben].auto == 6


def test_a_page_that_fails_costs_one_student(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(Exception):
        """As those of libraries, it cannot be made from its text in another process."""

        def __init__(self, text: str, log: str) -> None:
            super().__init__(text)

    def do(action: str, topic: str, student: str) -> None:
        if student != "ben":
            raise Failed("no feedback", "KeyError: 'anna '") if student == "anna " else Odd("x", "")

    backend = SimpleNamespace(do=do)
    monkeypatch.setattr(grade, "_nbgrader", lambda root: backend)
    pages = dict(grade._pages(Course(Path()), "toy", ["anna ", "ben", "cleo"]))
    assert pages == {"anna ": "no feedback: KeyError: 'anna '", "ben": "", "cleo": "Odd: x"}


def test_what_is_wrong_with_work_is_told_and_the_rest_graded(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ada, ben = "ada-all-correct", "ben-blank"
    made = copy_of(graded, tmp_path / "copy", ada, ben)
    for name, file in (("zac", "toy.ipynb"), ("zoe", "homework.ipynb")):
        (made.submitted / name / "toy").mkdir(parents=True)
        (made.submitted / name / "toy" / file).write_text("{ half")
    shutil.copytree(made.submitted / ben / "toy", made.submitted / "emmy" / "toy")

    # there was a release without what ada lacks, and none without what ben has deleted
    known = made.build / "class" / "releases.json"
    [cells] = json.loads(known.read_text())["toy"]["toy"]
    first = [name for name in cells if "triple" not in name]
    known.write_text(json.dumps({"toy": {"toy": [first, cells]}}))
    for student, lost in ((ada, "triple"), (ben, "double")):
        file = made.submitted / student / "toy" / "toy.ipynb"
        notebook = notebooks.read(file)
        notebook.cells = [cell for cell in notebook.cells if lost not in cell.id]
        file.write_bytes(notebooks.to_bytes(notebook))

    assert use(grade, made, "toy", f"--timeout={course.TIMEOUT}") == 0  # all that can be is graded
    output, made_rows = capsys.readouterr().out, rows(made)
    assert "Graded 3, unchanged 0, cannot be graded 2" in output
    assert "Not graded: zac, toy: toy.ipynb is no JSON" in output
    assert made_rows["zac"].why.startswith("not graded: toy.ipynb is no JSON")
    assert "toy.ipynb, got homework.ipynb" in made_rows["zoe"].why
    assert made_rows["emmy"].graded
    older = "older release, without exercise triple"
    assert (made_rows[ada].lacks, made_rows[ada].summary) == (("exercise triple",), older)
    assert older in output
    assert "deleted cells: 3" in made_rows[ben].summary
    [_, triple, *_] = exercises.reports(made, "toy", made_rows.values())
    assert (ben in triple.points, ada in triple.points) == (True, False)

    # the sample class goes, and whoever else has handed in stays
    assert sample_class.dissolve(made) == len(sample_class.STUDENTS)
    assert rows(made).keys() == {"emmy", "zac", "zoe", *RECORDS}
    assert sorted(path.name for path in made.submitted.iterdir()) == ["emmy", "zac", "zoe"]
    with Backend(made).gradebook() as entries:
        assert entries.find_assignment("toy").duedate is None


def test_the_late_penalty_is_that_of_nbgrader(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = copy_of(graded, tmp_path / "copy", "lena-late")
    with (made.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')

    def told() -> tuple[list[str], str, bool]:
        """Return the points and the penalty, the feedback's title, and whether it tells of it."""
        row = rows(made)["lena-late"]
        text = (made.feedback / "lena-late" / "toy" / "toy.html").read_text("utf-8")
        page = BeautifulSoup(text, "html.parser")
        points = [row.auto, row.late_penalty, row.total]
        with Backend(made).gradebook() as entries:
            entry = entries.find_submission("toy", "lena-late")
            assert row.total == max(0, entry.score - entry.late_submission_penalty)
        return points, page.h1.text, "Handed in late" in page.text

    for mark, auto in ((None, 6), (0, 4)):  # the second has fewer points than the penalty
        with Backend(made).gradebook() as entries:
            hidden = entries.find_grade("toy-double-hidden", "toy", "toy", "lena-late")
            hidden.manual_score = mark
            entries.db.commit()
        assert use(grade, made, "toy", *(["--force"] if mark is None else [])) == 0
        assert told() == ([auto, 6, 0], "toy: 0 of 10 points", True)
    use(gradebook, made, "--student", "lena-late")
    assert (
        "0 of 14 points (code 4/10, in words 0/4, 1 to read)\n  5 h late, 6 points taken off"
        in (capsys.readouterr().out)
    )
    with Backend(made).gradebook() as entries:
        entries.update_or_create_assignment("toy", duedate=None)
    assert use(grade, made, "toy") == 0
    assert told()[1:] == ("toy: 4 of 10 points", False)


def test_without_fork_nbgrader_gives_the_same_marks(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    students = ("ada-all-correct", "ben-blank", "tala-broken-file")
    made = copy_of(graded, tmp_path / "copy", *students)
    with Backend(made).gradebook() as entries:
        entries.find_grade("toy-double-visible", "toy", "toy", students[0]).auto_score = 0
        entries.db.commit()
    monkeypatch.setattr(grade, "FORKS", False)
    # these limits are in wall time: a busy machine must not reach them
    summary = grade.grade(made, "toy", HANG)
    assert [student for student, _ in summary.graded] == [*students[:2]]
    assert [student for student, *_ in summary.refused] == [students[2]]
    assert {name: row.auto for name, row in rows(made).items() if name in students} == {
        name: SAMPLE[name][0] for name in students
    }


def test_two_runs_at_once_are_told(graded: Course) -> None:
    store = Store(graded.build / "gradebox", "toy")
    with store.locked(), pytest.raises(ToolError, match="another run grades"):
        grade.grade(graded, "toy", course.TIMEOUT)


# --- feedback


def test_a_page_is_the_students(graded: Course) -> None:
    pages = {
        student: BeautifulSoup(
            (graded.feedback / student / "toy" / "toy.html").read_text("utf-8"), "html.parser"
        )
        for student in SAMPLE
        if student != "tala-broken-file"
    }
    for page in pages.values():
        assert not page.find_all(["script", "link"])
        for private in ("BEGIN HIDDEN", str(ROOT), str(graded.root), "gradebox"):
            assert private not in page.text
    table = pages["quinn-misconception-1"].select("#index tbody tr")
    assert [[cell.text for cell in row.find_all("td")] for row in table] == [
        ["double", "you square; doubling adds.", "0/3"],
        ["triple", "", "3/3"],
        ["triple", "not read yet", "0/4"],
    ]
    # what nbgrader by itself remarks on an answer that was left as it was is no comment
    blank = pages["ben-blank"]
    assert blank.select("#index tbody .reason")[-1].text == "not written"
    assert blank.select("a[href^='#comment-']") == []
    stopped = pages["nadia-endless-loop"].select("#index .reason")[1]
    assert stopped.text == "Your code took too long and was stopped."


def _blank(*_: object) -> float:
    raise NotImplementedError


DIFFER = ("L1-01 risk", {}, ("1", "2"), ["the values differ"])


@pytest.mark.parametrize(
    ("answer", "message", "reason"),
    [
        (None, failing_case(*DIFFER, "you add"), "you add."),
        (None, failing_case(*DIFFER, ""), "the values differ."),
        (_blank, "", "not written"),
    ],
)
def test_feedback_names_what_a_check_says(answer: Any, message: str, reason: str) -> None:
    if answer:
        with pytest.raises(CheckFailed) as failed:
            check("L1-07", answer)
        message = str(failed.value)
    match = re.search(str(Course(ROOT).config.FeedbackPage.reason), message)
    assert match is not None
    assert [*filter(None, match.groups())] == [reason]


def test_feedback_reaches_the_right_student(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = copy_of(graded, tmp_path / "copy")
    place = made.feedback / "ben-blank" / "toy"
    (place / "submission_secret.txt").write_text("secret-ben")
    use(feedback, made, "toy")
    others = sorted({path.parts[-3] for path in made.feedback.glob("*/toy/*.html")} - {"ben-blank"})
    output = capsys.readouterr().out
    assert re.findall(r"^ (\S+).*  (\S+/toy)$", output, re.M) == [
        (name, f"build/feedback/{name}/toy") for name in others
    ]
    name = notebook_hash(secret="secret-ben", notebook_id="toy")
    given = made.exchange / "optdl" / "feedback" / f"{name}.html"
    assert given.read_bytes() == (place / "toy.html").read_bytes()
    assert len(list(given.parent.iterdir())) == 1
    # nbgrader's own command
    given.unlink()
    command = [sys.executable, "-m", "nbgrader", "release_feedback", "toy"]
    done = subprocess.run(command, cwd=made.root, capture_output=True, text=True, check=True)
    assert given.is_file()
    assert "not recognized" not in done.stderr
    assert all(f"'{name}'" in done.stderr for name in others)


# --- a part that fails costs only itself


@pytest.fixture
def whole(graded: Course, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs the whole command with nothing to release or to grade.

    It takes what builds the site, and who could not be graded.
    """
    monkeypatch.setattr(catalog, "blocks", blocks)
    monkeypatch.setattr(release, "write", lambda *_: False)

    def run(build: Callable[..., Path], *failed: str) -> int:
        monkeypatch.setattr(book, "build", build)
        summary = grade.Summary(refused=[(student, "toy", "no JSON") for student in failed])
        if failed:
            monkeypatch.setattr(grade, "grade", lambda *_: summary)
        return use(course, graded)

    return run


def _built(out: Path, **_: Any) -> Path:
    return out / "_build" / "html"


def test_the_command_ends_with_the_addresses(
    whole: Any, graded: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    assert whole(_built, "tala-broken-file") == 0  # whose file is broken on purpose
    output = capsys.readouterr().out
    # an address is never broken: it could not be copied
    for page in ("_build/html/index.html", "build/report/term.html"):
        assert re.search(rf" {re.escape((graded.root / page).as_uri())}$", output, re.M)
    assert (graded.root / "build" / "report" / "term.html").is_file()
    assert not {"\x1b", "\r"} & {*output}
    assert whole(_built, "lena-late") == 1  # whose file is not


def test_a_failing_site_keeps_the_gradebook(whole: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def build(**_: Any) -> Path:
        raise ToolError("book/erm/risk.md, cell 3: x = [1]", "correct the cell")

    assert whole(build, "tala-broken-file") == 1
    output = capsys.readouterr().out
    assert re.search(r"^toy +15 of 16 +\S+/10 ", output, re.M)
    assert re.search(r"Failed: site\n +book/erm/risk.md, cell 3: x = \[1\]\n +To fix: ", output)
    assert output.count("To fix: correct") == 1
    assert "html/index.html" not in output


@pytest.mark.parametrize(
    ("module", "name", "part", "error"),
    [
        (release, "write", "release of toy", KeyError("broken")),
        (sample_class, "create", "sample class", ToolError("it is broken", "fix it")),
        (grade, "grade", "grading of toy", KeyError("broken")),
        (report, "gather", "gradebook", ToolError("it is broken", "fix it")),
    ],
)
def test_a_failing_grading_keeps_the_site(
    whole: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    module: Any, name: str, part: str, error: Exception,
) -> None:  # fmt: skip
    def fails(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(grade, "grade", lambda *_: grade.Summary())
    monkeypatch.setattr(module, name, fails)
    assert whole(_built) == 1
    output = capsys.readouterr().out
    assert "html/index.html" in output
    assert f"Failed: {part}" in output
    assert output.count("To fix: ") == output.count("Failed: ") == 1


def test_only_the_sample_class_is_trusted(graded: Course) -> None:
    submitters = set(graded.submitters("toy"))
    assert course._all_ours(graded, ["toy"], submitters)
    assert not course._all_ours(graded, ["toy"], submitters - {"ben-blank"})


def test_an_interruption_stops_the_site_too(whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []

    def build(out: Path, stop: Any, **_: Any) -> Path:
        stopped.append(stop.wait(HANG))
        raise KeyboardInterrupt

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(grade, "grade", interrupted)
    assert terminal.command()(lambda: whole(build)).run([]) == 130
    assert stopped == [True]


# --- JupyterLab


def test_work_that_has_begun_is_never_overwritten(small: Course) -> None:
    work = small.work / "toy" / "toy.ipynb"

    def released_anew(cell: int, source: str) -> bool:
        """Release a changed notebook, and return whether the work has the tests of the release."""
        change(small.source("toy"), cell, source)
        release.write(small, "toy")
        return lab.copy_for_work(small, "toy")

    release.write(small, "toy")
    assert lab.copy_for_work(small, "toy")
    assert released_anew(0, ", again")
    assert b"again" in work.read_bytes()
    mine = work.read_bytes().replace(b"raise NotImplementedError()", b"return 'mine'")
    work.write_bytes(mine)
    assert released_anew(0, ", at last")  # its tests are those of the release
    assert not released_anew(3, "\nassert f(2)")
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


def test_a_students_own_file_is_kept(small: Course) -> None:
    release.write(small, "toy")
    own = small.exercises / "toy" / "own.txt"
    own.write_text("mine")
    release.write(small, "toy")
    assert not Releases(small.exercises).knows("toy", "own.txt", own)
    assert (small.work / "toy" / "own.txt").read_text() == "mine"


def test_a_copy_without_solutions_opens_its_exercises(
    small: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.write(small, "toy")
    older = tmp_path / "older"
    shutil.copytree(small.exercises, older / "exercises")
    shutil.copytree(small.exercises / "toy", older / "work" / "toy")
    (older / "work" / "toy" / "toy.ipynb").write_text("my answer")
    shutil.rmtree(small.solutions)
    monkeypatch.setattr(lab, "_serve", lambda command, course: len(lab.settings(course)) * 0)
    assert use(lab, Course(small.root), "--no-browser", "--from", str(older)) == 0
    assert (small.work / "toy" / "toy.ipynb").read_text() == "my answer"
    page = small.build / "jupyter" / "config" / "labconfig" / "page_config.json"
    assert "@jupyter/nbgrader:formgrader" in json.loads(page.read_text())["disabledExtensions"]
    with pytest.raises(ToolError, match="a student's copy"):
        use(release, Course(small.root))


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (f"raise SystemExit(bool({ {*lab.OF_MAKE} } & {{*os.environ}}))", 0),
        (f"os.kill(os.getppid(), {signal.SIGTERM}); time.sleep({HANG})", -signal.SIGTERM),
    ],
    ids=["it inherits no variables of make", "it ends with the command"],
)
def test_jupyterlab_is_a_program_of_its_own(
    small: Course, monkeypatch: pytest.MonkeyPatch, code: str, status: int
) -> None:
    for name in lab.OF_MAKE:
        monkeypatch.setenv(name, "1")
    assert lab._serve([sys.executable, "-c", f"import os, time; {code}"], small) == status


def test_the_server_lists_assignments(small: Course) -> None:
    release.write(small, "toy")
    release.record(small, "toy")
    command = lab.jupyterlab(small, "toy", browser=False, port=8899)
    assert f"--ServerApp.root_dir={small.root}" in command
    assert "--LabApp.default_url=/lab/tree/work/toy/toy.ipynb" in command
    # Jupyter looks for a free port some time before it listens there: another server takes one that
    # both begin to look at
    command[command.index("--port=8899")] = "--ServerApp.port=0"
    environment = os.environ | lab.settings(small)
    folders = [environment[f"JUPYTER_{kind}_DIR"] for kind in ("CONFIG", "DATA", "RUNTIME")]
    assert all(Path(folder).is_relative_to(small.build) for folder in folders)
    null = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd=small.root, env=environment, stdout=null, stderr=null)
    until = time.monotonic() + HANG

    def fetch(path: str) -> Any:
        while True:  # it says where it will be a moment before it listens
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server does not start"
            with contextlib.suppress(requests.ConnectionError, StopIteration, ValueError):
                about = json.loads(next(Path(folders[2]).glob("jpserver-*.json")).read_text())
                headers = {"Authorization": f"token {about['token']}"}
                address = about["url"].rstrip("/") + path
                answer = requests.get(address, headers=headers, timeout=HANG)
                assert answer.ok, answer.text
                return answer.json()
            time.sleep(0.1)

    try:
        listed = fetch("/assignments?course_id=optdl")["value"]
        assert [(entry["assignment_id"], entry["status"]) for entry in listed] == [
            ("toy", "released")
        ]
        managed = fetch("/formgrader/api/assignments")
        assert [(entry["name"], entry["status"]) for entry in managed] == [("toy", "released")]
        page = fetch("/api/contents/exercises/toy?type=directory")
        assert [item["name"] for item in page["content"]] == ["toy.ipynb"]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=HANG)
