"""The commands of the course lose no work and no mark, on a toy course in a temporary folder."""

import contextlib
import errno
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
import zipfile
from pathlib import Path
from unittest.mock import Mock

import pytest
import requests
from bs4 import BeautifulSoup
from hang import HANG
from nbformat.v4 import new_code_cell, new_output
from nbgrader.coursedir import CourseDirectory
from toy_course import RECORDS, RIGHT, blocks, edited, hand_in, make_course, play, rows, use

from gradebox.exchange import Releases, Submit
from gradebox.nbgrader.cells import error_text
from gradebox.run import batch
from optdl.checks import CheckFailed, catalog, check
from tools import course, notebooks, terminal
from tools.classroom import (
    feedback,
    grade,
    gradebook,
    grades,
    handout,
    lab,
    marking,
    release,
    results,
    sample_class,
)
from tools.classroom.backend import Backend
from tools.fingerprints import files
from tools.layout import RECORD, ROOT, Course
from tools.site import book
from tools.terminal import ToolError

ADA, BEN, QUINN = "ada-all-correct", "ben-blank", "quinn-misconception-1"
NADIA, TALA, LENA = "nadia-endless-loop", "tala-broken-file", "lena-late"


def read(page):
    return BeautifulSoup(page.read_text("utf-8"), "html.parser")


# --- names, and what is refused


@pytest.mark.parametrize(
    ("command", "words", "told"),
    [
        (release, ["tyo"], "no assignment 'tyo'.*did you mean 'toy'?"),
        (release, ["toy", "--student", ""], "which student, until when.*make extend A=erm"),
        (release, ["toy", "--due", "soon"], "'soon' is no moment.*2027-03-08 23:59"),
        (feedback, [], "which assignment.*make feedback A=toy"),
        (feedback, ["toy"], "no page of toy yet.*make grade A=toy"),
        (grade, ["toy"], "nobody has handed in toy yet.*make collect A=toy ZIP="),
        (gradebook, [], "nothing has been graded yet.*make grade A=toy"),
        (grades, [], "nothing of toy has been graded.*make grade A=toy"),
        (marking, ["toy"], "nothing of toy has been graded.*make grade A=toy"),
        (handout, ["--how", "exchange"], "students do not share the exchange.*HOW=upload"),
    ],
)
def test_command_error_names_problem_and_remedy(small, command, words, told):
    with pytest.raises(ToolError, match=f"(?s){told}"):
        use(command, small, *words)


def test_topics_come_in_the_order_of_the_book(tmp_path):
    made = make_course(tmp_path, "alpha", "toy", "zeta")
    assert made.topics() == ["alpha", "toy", "zeta"]
    chapters = "root: book/index\nparts:\n- chapters:\n  - file: book/zeta\n  - file: book/toy\n"
    (made.root / "_toc.yml").write_text(chapters)
    assert made.topics() == ["zeta", "toy", "alpha"]


def test_a_failure_sets_the_exit_status(tmp_path, printed):
    assert release.main.run(["quadratc"]) == 1
    assert "To fix: did you mean 'quadratic'?" in printed()
    full = terminal.explained(OSError(errno.ENOSPC, "No space left"), tmp_path / "log")
    assert full.remedy.startswith("make room there")


# --- release


@pytest.mark.parametrize(
    ("name", "cell", "spoil", "reason"),
    [
        ("toy", 2, {"id": "something-else"}, "make them equal"),
        ("toy", 4, {"source": "### HIDDEN TESTS"}, "HIDDEN TESTS"),
        ("toy", 0, {"source": "return x + x + 0 * x"}, "gives away"),
        ("lab", 0, {"source": "return self.slope * x + 0 * x"}, "toy/lab would be"),
    ],
)
def test_faulty_source_keeps_the_old_release(with_lab, name, cell, spoil, reason):
    released = with_lab.released("toy", name)
    released.parent.mkdir(parents=True)
    released.write_bytes(b"good")
    with edited(with_lab.source("toy", name)) as notebook:
        notebook.cells[cell].update(spoil)
    with pytest.raises(ToolError, match=reason) as caught:
        release.write(with_lab, "toy")
    assert f"solutions/toy/{name}.ipynb" in str(caught.value)
    assert released.read_bytes() == b"good"


def test_cells_of_a_graded_assignment_cannot_change(copied):
    made = copied(ADA)
    with edited(made.source("toy", "lab")) as notebook:
        del notebook.cells[4]
    release.write(made, "toy")
    with pytest.raises(ToolError, match="other cells or notebooks than when") as caught:
        release.record(made, "toy")
    assert "--remove" in caught.value.remedy
    (made.build / "gradebook.db").write_bytes(b"half of a database")
    with pytest.raises(ToolError, match=r"gradebook\.db: file is not a database"):
        release.record(made, "toy")


def test_release_makes_both_notebooks_and_no_record(with_lab, tmp_path):
    for name in ("points.csv", "step-7.pt"):
        (with_lab.solutions / "toy" / name).write_text("1,2\n")
    assert release.write(with_lab, "toy")
    assert not release.write(with_lab, "toy")
    names = {path.name for path in (with_lab.exercises / "toy").iterdir()}
    assert names == {"toy.ipynb", "lab.ipynb", "points.csv"}
    for name, content in release.render(with_lab, "toy").items():
        assert content == with_lab.released("toy", name).read_bytes()
        assert json.loads(content)["metadata"] == notebooks.METADATA
        assert content.count(b"raise NotImplementedError()") == 2
    cells = notebooks.named(notebooks.read(with_lab.released("toy", "lab")))
    tags = [cells[f"toy-lab-{name}"].metadata.get("tags") for name in ("train", "run", "line")]
    assert tags == [["train", release.GO_ON], [release.GO_ON], None]

    # an edited release is made anew, and what was taken out of the source is no more
    with edited(with_lab.released("toy")) as notebook:
        notebook.cells[0].source = "# Joy"
    (with_lab.solutions / "toy" / "points.csv").unlink()
    assert release.write(with_lab, "toy")
    assert "Joy" not in with_lab.released("toy").read_text("utf-8")
    # a handout has no record of a run in the wrong folder, nor a folder that is no assignment
    (with_lab.exercises / "toy" / RECORD).write_text("{}")
    (with_lab.exercises / "gone").mkdir()
    (with_lab.exercises / "gone" / "gone.ipynb").touch()
    use(handout, with_lab, "--to", str(tmp_path / "course.zip"))
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        names = {name for name in archive.namelist() if "/exercises/" in name}
    expected = (".released.json", "toy/toy.ipynb", "toy/lab.ipynb")
    assert names == {f"course/exercises/{name}" for name in expected}

    # a lab that has changed is recorded again, and who has begun with the first is not told to
    # have changed the test
    assert release.record(with_lab, "toy")
    assert not release.record(with_lab, "toy")
    with edited(with_lab.source("toy", "lab")) as notebook:
        notebook.cells[4].source += "  # again"
    release.write(with_lab, "toy")
    assert release.record(with_lab, "toy")
    known = json.loads((with_lab.build / "gradebox" / "releases" / "toy.json").read_text())
    assert {name: len(releases) for name, releases in known.items()} == {"lab": 2, "toy": 1}


# --- what was graded

SAMPLE = {
    ADA: (10, ""),
    BEN: (0, "missing notebooks: 1"),
    "dmitri-first-half": (3, "missing notebooks: 1"),
    QUINN: (3, ""),
    "rosa-misconception-2": (3, "missing notebooks: 1"),
    "sven-misconception-3": (3, "missing notebooks: 1"),
    NADIA: (3, "endless or slow: 2, missing notebooks: 1"),
    "omar-forger": (0, "changed cells: 2, missing notebooks: 1"),
    TALA: (0, "not graded: toy.ipynb is no JSON; save it anew in Jupyter"),
    LENA: (6, "5 h late, missing notebooks: 1"),
    "kofi-other-names": (6, "missing notebooks: 1"),
    "mateo-syntax-error": (3, "missing notebooks: 1, syntax errors: 1"),
    "priya-deletes-cells": (6, "deleted cells: 4, missing notebooks: 1"),
}
"""The points of the sample class for code, and what happened to its work."""


def test_each_student_has_the_points_of_the_work(graded):
    made = rows(graded)
    assert {name: (made[name].auto, made[name].summary) for name in SAMPLE} == SAMPLE
    assert [name for name in SAMPLE if not made[name].graded] == [TALA]
    assert {(row.max_auto, row.max_written) for row in made.values()} == {(10, 4)}
    assert {name: row.hours_late for name, row in made.items() if row.hours_late} == {LENA: 5}
    assert (made[BEN].pending, made[ADA].pending) == (0, 1)
    with Backend(graded).gradebook() as entries:
        for entry in entries.assignment_submissions("toy"):
            row = made[entry.student.id]
            assert (row.total, row.max_total) == (entry.score, entry.max_score), entry.student.id
    # a usual mistake each: the first, the second, and the last, since there is no third
    for student, mistake in zip([*SAMPLE][3:6], ("x * x", "x**2", "x**2"), strict=True):
        work = notebooks.named(notebooks.read(graded.submitted / student / "toy" / "toy.ipynb"))
        assert f"return {mistake}" in work["toy-double"].source


def test_a_lab_has_its_points_and_pages(graded):
    made = rows(graded)
    # a record that is another student's, or the instructor's where there is none, earns nothing
    assert {(made[student].auto, made[student].pending) for student in RECORDS} == {(3, 0)}
    for student, reason in (("another", "is of another student"), ("missing", "No such file")):
        cells = notebooks.named(notebooks.read(graded.executed(student, "toy")["lab"]))
        assert reason in error_text(cells["toy-lab-run"])
    expected = {ADA: "lab toy", QUINN: "lab toy", TALA: ""} | dict.fromkeys(RECORDS, "lab")
    for student in made:
        pages = sorted(path.stem for path in (graded.feedback / student / "toy").glob("*.html"))
        assert " ".join(pages) == expected.get(student, "toy"), student
    assert json.loads((graded.submitted / ADA / "toy" / RECORD).read_text()) == RIGHT
    work = (graded.submitted / QUINN / "toy" / "lab.ipynb").read_text()
    assert "self.slope + x" in work  # the lab's misconception, under her own name
    assert QUINN in work
    assert ADA not in work


PRINTED = """
$ gradebook
 toy 14 of 15 …/10 1 (2 unknown) 9 3 × you square; doubling adds.
Look at nadia-endless-loop (Nadia (endless loop)), toy: endless or slow: 2
Report: file:///…/build/report/term.html
$ gradebook --student "Priya (deletes cells)"
priya-deletes-cells (Priya …), toy: 6 of 14 points (code 6/10, in words 0/4
  cell toy-double-hidden was missing
"""


def test_gradebook_prints_class_and_student_lines(graded):
    play(graded, PRINTED)


def test_exercises_have_points_and_causes(graded):
    exercises = {exercise.title: exercise for exercise in results.exercises(graded, "toy")}
    double, triple = exercises["double"], exercises["triple"]
    assert list(exercises) == ["double", "triple", "line", "run"]
    assert (len(double.why), len(double.points)) == (5, 12)
    assert double.causes == [("you square; doubling adds.", 3), (results.NOT_WRITTEN, 2)]
    causes = {results.NOT_WRITTEN: 3, results.NOT_RUN: 1, results.TOO_LONG: 1}
    assert dict(triple.causes) == causes


@pytest.mark.parametrize(
    ("ename", "text", "cause", "of_feedback"),
    [
        ("CheckFailed", "Why: the values differ.\nLikely cause: you add.", "you add.", "you add."),
        ("CheckFailed", "Why: 2 values differ.", results.UNNAMED, "2 values differ."),
        ("CheckFailed", "Why: expected shape (2,), got (1, 2).", "a wrong shape", ""),
        ("CheckFailed", "Why: your function raised KeyError: 1.", "raises KeyError", ""),
        ("CheckFailed", None, results.NOT_WRITTEN, "not written"),
        ("KeyError", "KeyError: 'x'", "fails with KeyError", ""),
        ("", "", "", ""),
    ],
)
def test_cause_is_derived_from_cell_error(ename, text, cause, of_feedback):
    if text is None:
        with pytest.raises(CheckFailed) as failed:
            check("L1-07", Mock(side_effect=NotImplementedError))
        text = str(failed.value)
    cell = new_code_cell("x", metadata={"nbgrader": {"grade_id": "toy-a"}})
    if ename:
        cell.outputs = [new_output("error", ename=ename, evalue="", traceback=text.split("\n"))]
    assert results.cause(cell, {}, {}) == cause
    match = re.search(str(Course(ROOT).config.FeedbackPage.reason), text)
    assert not of_feedback or [*filter(None, match.groups())] == [of_feedback]


# --- grading anew


def test_only_changes_are_graded(copied):
    made = copied(ADA, BEN, NADIA, QUINN)

    def again():
        """Grade, and return who was graded and how many pages were written."""
        steps = []
        summary = grade.grade(made, "toy", course.TIMEOUT, lambda *step: steps.append(step))
        assert (summary.refused, summary.lost) == ([], [])
        assert (steps[0], steps[-1]) == ((0, 8, "toy"), (8, 8, ""))
        assert [done for done, *_ in steps] == sorted(done for done, *_ in steps)
        return sorted(student for student, _ in summary.graded), summary.pages

    before = {path: path.stat().st_mtime_ns for path in files(made.root)}
    assert again() == ([], 0)
    assert not release.write(made, "toy")
    assert not release.record(made, "toy")
    changed = {path for path in files(made.root) if path.stat().st_mtime_ns != before.get(path)}
    assert changed <= {made.build / "gradebook.db", made.build / "gradebox" / "toy.json"}

    # half a file, a lost page, a comment, and the same work handed in again, as nbgrader names the
    # page for the student with a secret
    page = made.feedback / ADA / "toy" / "lab.html"
    content = page.read_bytes()
    page.unlink()
    (made.autograded / ADA / "toy" / "toy.ipynb").write_text("{ half")
    with Backend(made).gradebook() as entries:
        comment = entries.find_comment("toy-lab-line", "lab", "toy", QUINN)
        comment.manual_comment = "Begin with the slope."
        entries.db.commit()
    folder = hand_in(made, BEN, timestamp="2027-03-01 12:00:00 UTC")
    (folder / "submission_secret.txt").write_text("of the last submission")
    assert again() == ([ADA, BEN], 3)
    assert page.read_bytes() == content
    assert "Begin with the slope." in read(made.feedback / QUINN / "toy" / "lab.html").text
    secret = made.feedback / BEN / "toy" / "submission_secret.txt"
    assert secret.read_text() == "of the last submission"


UNGRADABLE = """
$ grade toy
Graded 3, unchanged 0, cannot be graded 2; 3 feedback pages
Not graded: zac, toy: toy.ipynb is no JSON
older release, without exercise triple
$ gradebook --student zac
zac, toy: – of 14 points
  not graded: toy.ipynb is no JSON
"""
PAGE_LOST = """
$! grade toy
unchanged 3, cannot be graded 2; 1 feedback pages
No page: ben
"""


def test_ungradable_work_leaves_other_students_graded(copied):
    made = copied(ADA, BEN)
    hand_in(made, "zac", toy="{ half")
    hand_in(made, "zoe", homework="{ half")
    shutil.copytree(made.submitted / BEN / "toy", made.submitted / "emmy" / "toy")

    # there was a release without what ada lacks, and none without what ben has deleted
    known = made.build / "gradebox" / "releases" / "toy.json"
    [cells] = json.loads(known.read_text())["toy"]
    first = {name: cell for name, cell in cells.items() if "triple" not in name}
    known.write_text(json.dumps({"toy": [first, cells]}))
    for student, lost in ((ADA, "triple"), (BEN, "double")):
        with edited(made.submitted / student / "toy" / "toy.ipynb") as notebook:
            notebook.cells = [cell for cell in notebook.cells if lost not in cell.id]

    play(made, UNGRADABLE)  # all that can be is graded
    found = rows(made)
    assert "toy.ipynb, got homework.ipynb" in found["zoe"].why
    assert found["emmy"].graded
    assert found[ADA].lacks == ["exercise triple"]
    # a page that cannot be written costs nobody else's, and the command says that it failed
    for student in (ADA, BEN):
        shutil.rmtree(made.feedback / student)
    (made.feedback / BEN).touch()
    play(made, PAGE_LOST)
    assert "deleted cells: 3" in found[BEN].summary
    [_, triple, *_] = results.exercises(made, "toy", found.values())
    assert (BEN in triple.points, ADA in triple.points) == (True, False)

    # the sample class goes, and whoever else has handed in stays
    assert sample_class.dissolve(made) == len(sample_class.STUDENTS)
    assert rows(made).keys() == {"emmy", "zac", "zoe", *RECORDS}
    assert sorted(path.name for path in made.submitted.iterdir()) == ["emmy", "zac", "zoe"]
    with Backend(made).gradebook() as entries:
        assert entries.find_assignment("toy").duedate is None


def test_late_penalty_matches_nbgrader(copied):
    made = copied(LENA)
    with (made.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    # a mark by hand leaves fewer points than the penalty; then there is no deadline any more
    for mark, due, total in ((None, sample_class.DUE, 0), (0, sample_class.DUE, 0), (0, None, 4)):
        with Backend(made).gradebook() as entries:
            entries.find_grade("toy-double-hidden", "toy", "toy", LENA).manual_score = mark
            entries.update_or_create_assignment("toy", duedate=due)
        play(made, "$ grade toy\n")
        row, page = rows(made)[LENA], read(made.feedback / LENA / "toy" / "toy.html")
        with Backend(made).gradebook() as entries:
            entry = entries.find_submission("toy", LENA)
            assert row.total == max(0, entry.score - entry.late_submission_penalty) == total
        assert row.auto == (6 if mark is None else 4)
        assert row.late == "5 h late, 6 points taken off" * bool(due)
        assert page.h1.text == f"toy: {total} of 10 points"
        assert ("Handed in late" in page.text) == bool(due)


def test_second_grading_run_at_once_is_refused(graded):
    run = batch.alone(graded.build / "gradebox")
    with run, pytest.raises(ToolError, match="another run grades") as caught:
        grade.grade(graded, "toy", course.TIMEOUT)
    assert "when it has ended" in caught.value.remedy


# --- feedback


def test_feedback_page_shows_results_but_nothing_private(graded):
    students = SAMPLE.keys() - {TALA}
    pages = {student: read(graded.feedback / student / "toy" / "toy.html") for student in students}
    for page in pages.values():
        assert not page.find_all(["script", "link"])
        for private in ("BEGIN HIDDEN", str(ROOT), str(graded.root), "gradebox"):
            assert private not in page.text
    table = pages[QUINN].select("#index tbody tr")
    assert [[cell.text for cell in row.find_all("td")] for row in table] == [
        ["double", "you square; doubling adds.", "0/3"],
        ["triple", "", "3/3"],
        ["triple", "not read yet", "0/4"],
    ]
    # what nbgrader by itself remarks on an answer that was left as it was is no comment
    assert pages[BEN].select("#index tbody .reason")[-1].text == "not written"
    assert pages[BEN].select("a[href^='#comment-']") == []
    stopped = pages[NADIA].select("#index .reason")[1]
    assert stopped.text == "Your code took too long and was stopped."


# --- a part that fails costs only itself


@pytest.fixture
def whole(graded, monkeypatch):
    """Return a function that runs the whole command, given who could not be graded."""
    monkeypatch.setattr(catalog, "blocks", blocks)
    monkeypatch.setattr(release, "write", lambda *_: False)
    monkeypatch.setattr(book, "build", lambda *_: graded.root / "_build" / "html")

    def run(*failed):
        summary = grade.Summary(refused=[(student, "toy", "no JSON") for student in failed])
        if failed:
            monkeypatch.setattr(grade, "grade", lambda *_: summary)
        return use(course, graded)

    return run


def test_the_command_ends_with_the_addresses(whole, graded, printed):
    assert whole(TALA) == 0  # whose file is broken on purpose
    output = printed()
    # an address is never broken: it could not be copied
    for page in ("_build/html/index.html", "build/report/term.html"):
        assert re.search(rf" {re.escape((graded.root / page).as_uri())}$", output, re.M)
    assert (graded.root / "build" / "report" / "term.html").is_file()
    assert not {"\x1b", "\r"} & {*output}
    assert re.search("^ mateo-syntax-error +forgets a colon", output, re.M)
    assert whole(LENA) == 1  # whose file is not
    submitters = set(graded.submitters("toy"))  # only the sample class is trusted
    assert course._trusted(graded, ["toy"], submitters)
    assert not course._trusted(graded, ["toy"], submitters - {BEN})


BROKEN = ToolError("book/erm/risk.md, cell 3: x = [1]", "fix it")


@pytest.mark.parametrize(
    ("part", "where", "error"),
    [
        ("site", (book, "build"), BROKEN),
        ("release of toy", (release, "write"), KeyError("broken")),
        ("sample class", (sample_class, "create"), BROKEN),
        ("grading of toy", (grade, "grade"), KeyError("broken")),
        ("gradebook", (gradebook, "gather"), BROKEN),
    ],
)
def test_failing_part_leaves_other_parts_working(whole, monkeypatch, printed, part, where, error):
    monkeypatch.setattr(grade, "grade", lambda *_: grade.Summary())
    monkeypatch.setattr(*where, Mock(side_effect=error))
    assert whole() == 1
    output = printed()
    assert ("html/index.html" in output) == (part != "site")
    assert bool(re.search(r"^toy +14 of 15 +\S+/10 ", output, re.M)) == (part != "gradebook")
    told = r"\n +book/erm/risk.md, cell 3: x = \[1\]\n +To fix: fix it"
    assert re.search(f"Failed: {part}{told if error is BROKEN else ''}", output)
    assert output.count("To fix: ") == output.count("Failed: ") == 1


def test_interruption_while_importing_is_told_shortly():
    code = "import tools; raise KeyboardInterrupt"  # as while a command imports its modules
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "\nStopped. Run the same command again: it goes on where it stopped.\n"
    assert (done.stderr, done.returncode != 0) == ("", True)


# --- JupyterLab


def test_begun_work_is_never_overwritten(small):
    work = small.work / "toy" / "toy.ipynb"

    def released_anew(cell, source):
        """Release a changed notebook, and return whether the work has the tests of the release."""
        with edited(small.source("toy")) as notebook:
            notebook.cells[cell].source += source
        release.write(small, "toy")
        return lab.copy_for_work(small, "toy")

    assert released_anew(0, "")
    assert released_anew(0, ", again")
    assert b"again" in work.read_bytes()
    work.write_bytes(work.read_bytes().replace(b"raise NotImplementedError()", b"return 'mine'"))
    own = small.exercises / "toy" / "own.txt"  # a student's own file there is work, no release
    own.write_text("mine")
    assert released_anew(0, ", at last")  # its tests are those of the release
    assert not released_anew(3, "\nassert f(2)")
    assert b"return 'mine'" in work.read_bytes()
    assert not Releases(small.exercises).knows("toy", "own.txt", own)


MOVES = ("edit the exercise", "edit the work", "make lab", "release", "submit", "unpack anew")


@pytest.mark.parametrize("seed", range(40))
def test_random_edits_and_releases_lose_no_work(small, monkeypatch, seed):
    draw, clock, releases = random.Random(seed), itertools.count(1), itertools.count()
    version, work = small.released("toy"), small.work / "toy" / "toy.ipynb"
    mine = {}  # what the student saved in each place, and did not save over
    monkeypatch.setattr(release, "render", lambda *_: {"toy": f"release {next(releases)}".encode()})
    release.write(small, "toy")

    def save(file):
        text = f"answer {next(clock)}"
        mine.pop(file, None)
        mine[file] = text  # the last in the order of saving
        file.write_text(text)
        os.utime(file, (1e9 + 60 * next(clock),) * 2)

    for move in draw.choices(MOVES, k=8):
        if move == "edit the exercise":
            save(version)
        elif move == "edit the work" and work.exists():
            # gathered from elsewhere, and now saved over
            for file in [file for file, text in mine.items() if text == work.read_text()]:
                del mine[file]
            save(work)
        elif move == "make lab":
            lab.copy_for_work(small, "toy")
        elif move == "release":
            release.write(small, "toy")
        elif move == "submit" and (work.exists() or mine):
            coursedir = CourseDirectory(config=small.config, assignment_id="toy")
            exchange = Submit(coursedir=coursedir, config=small.config)
            exchange.init_src()
            handed_in = Path(exchange.src_path, "toy.ipynb").read_text()
            assert [handed_in] == list(mine.values())[-1:] or not mine
        elif move == "unpack anew" and version not in mine:
            version.write_text(f"release {next(releases)}")
            Releases(small.exercises).remember([version])
    assert {*mine.values()} <= {file.read_text() for file in small.root.rglob("*.ipynb")}


def test_jupyterlab_is_a_program_of_its_own(small, monkeypatch):
    """It inherits no variables of make, and ends with the command."""
    for name in lab.OF_MAKE:
        monkeypatch.setenv(name, "1")
    code = f"""
import os, time
assert not { {*lab.OF_MAKE} } & {{*os.environ}}
os.kill(os.getppid(), {signal.SIGTERM})
time.sleep({HANG})
"""
    assert lab._serve([sys.executable, "-c", code], small) == -signal.SIGTERM


def test_the_server_lists_assignments(small):
    release.update(small, ["toy"])
    command = lab.jupyterlab(small, "toy", browser=False)
    assert f"--ServerApp.root_dir={small.root}" in command
    assert "--LabApp.default_url=/lab/tree/work/toy/toy.ipynb" in command
    environment = os.environ | lab.settings(small)
    folders = [Path(environment[f"JUPYTER_{kind}_DIR"]) for kind in ("CONFIG", "DATA", "RUNTIME")]
    assert all(folder.is_relative_to(small.build) for folder in folders)
    # Jupyter looks for a free port some time before it listens there: another server takes one that
    # both begin to look at
    with (small.root / "log").open("w") as log:
        command.append("--ServerApp.port=0")
        server = subprocess.Popen(command, cwd=small.root, env=environment, stdout=log, stderr=log)
    until = time.monotonic() + HANG

    def fetch(path):
        while True:  # it says where it will be a moment before it listens
            assert server.poll() is None
            assert time.monotonic() < until
            with contextlib.suppress(requests.ConnectionError, StopIteration, ValueError):
                about = json.loads(next(folders[2].glob("jpserver-*.json")).read_text())
                address, token = about["url"].rstrip("/") + path, f"token {about['token']}"
                answer = requests.get(address, headers={"Authorization": token}, timeout=HANG)
                assert answer.ok, answer.text
                return answer.json()
            time.sleep(0.1)

    try:
        [listed] = fetch("/assignments?course_id=optdl")["value"]
        assert (listed["assignment_id"], listed["status"]) == ("toy", "released")
        [managed] = fetch("/formgrader/api/assignments")
        assert (managed["name"], managed["status"]) == ("toy", "released")
    finally:
        server.terminate()
        server.wait(timeout=HANG)
