"""A class from its list to its pages and grades, and each command of the page for instructors."""

import contextlib
import csv
import importlib.util
import io
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
from nbgrader.api import get_alembic_version
from nbgrader.exchange.default import ExchangeFetchFeedback
from sqlalchemy import text
from toy_course import CANVAS, WORKSHEET, answered, exchange, hand_in, pack, play, rows, use

from tools.classroom import grades, results
from tools.classroom.backend import Backend
from tools.layout import ROOT, Course
from tools.terminal import ToolError

# --- a term


@pytest.fixture
def term(graded_term, tmp_path):
    copied = shutil.copytree(graded_term.course.root, tmp_path / "teacher")
    return SimpleNamespace(course=Course(copied), dora=graded_term.dora)


MORE_TIME = """
$! release toy --student cleo --due "2020-03-01 10:00"
2020-03-01 10:00 is not after the deadline
$ release toy --student "Cléo van der Berg" --due "2020-03-01 17:59"
$ release toy --student emil --due "2020-03-09 12:00"
$ release toy --student ben --due "2020-03-09 12:00"
$ release toy --student 71 --due none
$ grade toy
 toy 5 of 6 … 3 (2 unknown)
Graded 1, unchanged 4
"""
# other work takes the place of cleo's: its time is not that of the first; and the numbers of
# Canvas's files tell which zip is older
AGAIN = """
$ collect toy later.zip
Time unknown: cleo (Cléo van der Berg)
Replaced: cleo (Cléo van der Berg)
$ collect toy older.zip
1 later work kept
"""


def test_late_and_unknown_work_is_named_and_extended(term):
    course = term.course
    everyone = results.rows(course, ["toy"], everybody=True)
    late = {row.student: row.time or row.hours_late for row in everyone if row.hours_late < 1e4}
    unknown = dict.fromkeys(("ada", "zed"), "time unknown")
    assert late == unknown | {"ben": "late, as Canvas says", "cleo": 6, "emil": 0}
    assert [row.student for row in everyone if not row.graded] == ["emil"]
    assert [row.student for row in everyone if not row.is_listed] == ["zed"]
    play(course, MORE_TIME)
    assert rows(course)["cleo"].hours_late == 0.1
    for name, number in (("later", 805), ("older", 804)):
        work = answered(course.released("toy"), f"{number} * x", "x")
        pack(course.root / f"{name}.zip", {f"vanderbergcléo_72_{number}_toy.ipynb": work})
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").total_seconds_late == 60
    play(course, AGAIN)
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").timestamp is None


# pages to all who can fetch one, in a zip to those of Canvas, and the names of the others
RETURNED = """
$ grade toy
Graded 2, unchanged 3
$ feedback toy
Pages of toy released: 1.
Students whose pages were packed: 3, build/feedback/toy-canvas.zip
Written answers still to be read: ben (Ben O'Nevis)
Handed in, and not graded: emil (Emil Ohm)
 zed build/feedback/zed/toy
!build/feedback/dora
"""


def test_marks_by_hand_and_pages_reach_students(term):
    course = term.course
    with Backend(course).gradebook() as book:
        for student, mark in (("dora", 4), ("ben", 0)):
            written = book.find_grade("toy-why", "toy", "toy", student)
            written.manual_score, written.needs_manual_grade = mark, False
        book.find_comment("toy-why", "toy", "toy", "dora").manual_comment = "Short and right."
        version = book.db.execute(text("SELECT version_num FROM alembic_version")).scalar()
        book.db.commit()
    assert version == get_alembic_version()  # or nbgrader would not upgrade it
    # both are graded again: dora's answer keeps its marks, ben has written something else
    with (course.submitted / "dora" / "toy" / "toy.ipynb").open("a") as same:
        same.write("\n")
    hand_in(course, "ben", toy=answered(course.released("toy"), "5 * x", "3 * x", "Or not."))
    hand_in(course, "emil")
    play(course, RETURNED)
    page = course.feedback / "ada" / "toy" / "toy.html"
    with zipfile.ZipFile(course.feedback / "toy-canvas.zip") as archive:
        names = [
            "countess_70_801_toy.html",
            "onevisben_LATE_71_802_toy.html",
            "vanderbergcléo_72_803_toy.html",
        ]
        assert sorted(archive.namelist()) == names
        assert archive.read(names[0]) == page.read_bytes()
    # nbgrader's own command gives the same
    [path] = (course.exchange / "optdl" / "feedback").iterdir()
    content = path.read_bytes()
    path.unlink()
    command = [sys.executable, "-m", "nbgrader", "release_feedback", "toy"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, check=True)
    assert path.read_bytes() == content
    assert "not recognized" not in done.stderr
    assert "'ben'" in done.stderr
    exchange(term, ExchangeFetchFeedback)
    [fetched] = term.dora.work.glob("toy/feedback/*/toy.html")
    assert "Short and right." in fetched.read_text("utf-8")
    totals = {row.student: row.total for row in results.rows(course, ["toy"], everybody=True)}
    assert totals == {"ada": 6, "ben": 3, "cleo": 6, "dora": 10, "emil": 0, "zed": 6}


# --- grades for the platforms

COLUMN = ("--column", "Homework 1 (4711)")
SCALE = WORKSHEET.replace(",10.00,", ',"Poor, Fair, Good",')
MORE = WORKSHEET.replace(",10.00,", ',"99,00",')


@pytest.fixture
def filled(graded_term):
    """Return a function that puts grades into a platform's file."""

    def fill(content, *options):
        file, made = "file.csv", graded_term.course.build / "grades-file.csv"
        (graded_term.course.root / file).write_bytes(content.encode())
        with contextlib.chdir(graded_term.course.root):
            use(grades, graded_term.course, "toy", "--into", file, *options)
        return made.read_bytes().decode()

    return fill


def test_canvas_gradebook_is_filled(graded_term, filled, printed):
    expected = export = CANVAS.replace(",dora,ML,,", ",dora,ML,4,")
    for who, points in {"ada": "6", "ben": "3", "cleo": "6", "dora": "6"}.items():
        expected = re.sub(f",{who},ML,4?", f",{who},ML,{points}", expected)
    assert filled(export, *COLUMN) == expected
    assert "Not on the class list, and left out: zed" in printed()
    # what is no number stays, and nobody's row is filled
    for who, old, new in (("ada", "6", "EX"), ("ben", "3", "N/A")):
        export = export.replace(f",{who},ML,", f",{who},ML,{new}")
        expected = expected.replace(f",{who},ML,{old}", f",{who},ML,{new}")
    namesake = '"Berg, Cléo van der",99,,cberg,ML,,\r\n'
    assert filled(export + namesake, *COLUMN) == expected + namesake
    output = printed()
    assert "Left as they were: ada (Ada Lovelace): EX, ben (Ben O'Nevis): N/A\n" in output
    assert re.search("Left blank.*: line 11, Cléo van der Berg 99: has the name of cleo", output)
    both = export.replace("Homework 1", "Toy").replace("Final Score", "Two (4712)")
    (graded_term.course.root / "both.csv").write_text(both)
    use(grades, graded_term.course, "--into", str(graded_term.course.root / "both.csv"))
    assert "Filled: toy: Toy (4711)\n" in printed()  # and nothing of two has been graded


AGAIN_TOY = CANVAS.replace("Final Score", "Toy again (4713)").replace("Home", "Toy ")
FINNISH = re.sub(r"Identifier|\(submission\)", "Tunniste", SCALE).replace(",Grade,", ",Arvosana,")
UNCLEAR = {
    r"its titles are Homework 1 \(4711\)": (CANVAS,),
    r"titles Toy work 1 \(4711\) and Toy again \(4713\)": (AGAIN_TOY,),
    r"--column 'Homework 1 \(4711\)' --scale": (CANVAS.replace("10.00", "99.00"), *COLUMN),
    "Grade has 99 points there, toy has 10 here": (MORE,),
    "takes no points: .* of a scale, Poor, Fair, Good$": (SCALE,),
    "takes no points: .* of a scale, Poor, Fair, Good": (FINNISH, "--column", "Arvosana"),
}


@pytest.mark.parametrize("problem", UNCLEAR)
def test_file_is_not_filled_by_a_guess(filled, problem):
    with pytest.raises(ToolError, match=f"(?m){problem}"):
        filled(*UNCLEAR[problem])


def test_worksheet_or_own_list_is_filled(graded_term, filled):
    made = filled(MORE, "--scale")
    given = [line["Grade"] for line in csv.DictReader(io.StringIO(made))]
    assert given == ["59,4", "29,7", "59,4", "59,4", ""]
    assert made.count("two spaces") == made.count(",  two spaces ") == 5
    # without a file of the platform's, everyone on the list has a line
    use(grades, graded_term.course)
    lines = (graded_term.course.build / "grades.csv").read_text("utf-8-sig").splitlines()
    assert lines[0] == "id,first_name,last_name,email,lms_user_id,toy"
    assert sorted(lines[1:])[1:] == [
        "ben,Ben,O'Nevis,,71,3",
        "cleo,Cléo,van der Berg,,72,6",
        "dora,Dora,Al-Sayed,,73,6",
        "emil,Emil,Ohm,,74,",
    ]


# --- the page for instructors


def meant(command):
    """Return the words of a command, or of what Make runs for it."""
    if not command.startswith("make"):
        return shlex.split(command)
    done = subprocess.run(
        ["make", "-n", "-o", ".venv/ready", "-o", ".venv/dev", *shlex.split(command)[1:]],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shlex.split(done.stdout)


def test_commands_for_instructors_are_understood():
    text = (ROOT / "book" / "instructors.md").read_text("utf-8")
    pattern = r"^```bash\n(.+?)^```|`((?:make|python -m) [^`…]+)`"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    lines = [line for block, inline in found for line in (block or inline).splitlines()]
    told = {re.sub(r"\s+#.*", "", line).strip() for line in lines}
    commands = [line for line in told if re.match("make (?!clean|submit)|python -m", line)]
    assert len(commands) > 30
    for command in commands:
        _, option, module, *words = meant(command)
        assert (option, bool(importlib.util.find_spec(module))) == ("-m", True), command
        if module.startswith("tools."):
            importlib.import_module(module).main.parser.parse_args(words)  # or it exits
