"""A class from its list to its feedback, and each command of the page for instructors."""

import importlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from nbgrader.api import get_alembic_version
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchFeedback
from sqlalchemy import text
from test_collect import CANVAS, NAMES, WORKSHEET, pack
from toy_course import MARKS, answered, make_course, use

from gradebox.exchange import Submit
from tools.classroom import feedback, grade, lab, release, results, roster
from tools.classroom.backend import Backend, environment
from tools.layout import ROOT, Course

pytestmark = [
    *MARKS,
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader has no exchange on Windows"),
]


# --- a term

LIST = "Username;First name;Last name\nada;Ada;Lovelace\nben;Ben;Nevis\ncleo;Cleo;\ndora;Dora;\n"


def student_copy(course: Course, name: str) -> Course:
    """Return a student's copy of the course, without solutions, with the work laid out."""
    folder = course.root.parent / name
    folder.mkdir()
    shutil.copy(course.root / "nbgrader_config.py", folder)
    shutil.copytree(course.exercises, folder / "exercises")
    lab.copy_for_work(Course(folder), "toy")
    return Course(folder)


def exchange(course: Course, student: Course, step: Any) -> None:
    """Take a step of the exchange in a student's copy, as JupyterLab's assignment list does."""
    config = deepcopy(student.config)
    config.Exchange.root = str(course.exchange)
    config.Exchange.cache = str(student.root / "cache")
    config.CourseDirectory.student_id = student.root.name
    directory = CourseDirectory(config=config, assignment_id="toy")
    step(coursedir=directory, authenticator=Authenticator(config=config), config=config).start()


def test_term_from_class_list_to_feedback(tmp_path: Path, printed: Any) -> None:
    course = make_course(tmp_path / "teacher")
    # the class list, and an assignment with a deadline that is set, moved, removed, set again
    (tmp_path / "class.csv").write_text(LIST)
    use(roster, course, str(tmp_path / "class.csv"), "--yes")
    for deadline in ("2027-03-01 12:00", "2027-03-02 12:00", "none", "2020-03-01 12:00"):
        use(release, course, "toy", "--due", deadline)
        with Backend(course).gradebook() as book:
            due = book.find_assignment("toy").duedate
            version = book.db.execute(text("SELECT version_num FROM alembic_version")).scalar()
        assert str(due) == ("None" if deadline == "none" else f"{deadline}:00")
    with patch.dict("os.environ", environment()):
        assert version == get_alembic_version()

    # ada works where the course says, cleo in exercises/; both submit to the exchange
    ada, cleo = student_copy(course, "ada"), student_copy(course, "cleo")
    work = ada.work / "toy" / "toy.ipynb"
    work.write_bytes(answered(work, "2 * x", "3 * x", "Because."))
    plain = cleo.released("toy")
    plain.write_bytes(answered(plain, "x * x", "3 * x"))
    for student in (ada, cleo):
        exchange(course, student, Submit)

    # ben sends his notebook, in time; dora hands in nothing
    ben = course.submitted / "ben" / "toy"
    ben.mkdir(parents=True)
    answers = [answered(course.released("toy"), "2 * x", "x", f"Because {n}.") for n in range(2)]
    ben.joinpath("toy.ipynb").write_bytes(answers[0])
    ben.joinpath("timestamp.txt").write_text("2020-03-01 11:00:00 UTC")

    assert use(grade, course, "toy") == 0
    points = {row.student: row.auto for row in results.rows(course, ["toy"])}
    assert points == {"ada": 6, "ben": 3, "cleo": 3}

    # marks by hand, and a regrade that leaves them; ben has written something else since
    with Backend(course).gradebook() as book:
        for student, mark in (("ada", 4), ("ben", 0)):
            written = book.find_grade("toy-why", "toy", "toy", student)
            written.manual_score, written.needs_manual_grade = mark, False
        book.find_comment("toy-why", "toy", "toy", "ada").manual_comment = "Short and right."
        book.db.commit()
    ben.joinpath("toy.ipynb").write_bytes(answers[1])
    with (course.submitted / "ada" / "toy" / "toy.ipynb").open("a") as same:
        same.write("\n")  # and so it is graded again
    printed()
    assert use(grade, course, "toy") == 0
    assert "Graded 2, unchanged 1" in printed()
    late = [row.student for row in results.rows(course, ["toy"]) if row.hours_late]
    assert sorted(late) == ["ada", "cleo"]
    page = (course.feedback / "ada" / "toy" / "toy.html").read_text()
    assert "Short and right." in page

    # pages to everyone who can fetch one, and the name of who cannot; points for a platform
    printed()
    use(feedback, course, "toy")
    output = printed()
    assert "build/feedback/ben" in output
    assert "build/feedback/ada" not in output
    assert "Written answers still to be read: ben (Ben Nevis)\n" in output
    places = (course.exchange / "optdl" / "feedback").iterdir()
    given = {path: path.read_bytes() for path in places}
    assert len(given) == 2
    # nbgrader's own command gives the same
    for path in given:
        path.unlink()
    command = [sys.executable, "-m", "nbgrader", "release_feedback", "toy"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, check=True)
    assert {path: path.read_bytes() for path in given} == given
    assert "not recognized" not in done.stderr
    assert "'ben'" in done.stderr
    exchange(course, ada, ExchangeFetchFeedback)
    [fetched] = ada.work.glob("toy/feedback/*/toy.html")
    assert fetched.read_bytes() == page.encode()
    totals = {row.student: row.total for row in results.rows(course, ["toy"], everybody=True)}
    assert totals == {"ada": 10, "ben": 3, "cleo": 3, "dora": 0}


# --- the page for instructors

ELSEWHERE = {
    "test_course": [
        "make course",
        "make lab",
        "python -m tools.classroom.sample_class",
        "python -m tools.classroom.sample_class --remove",
    ],
    "test_book": ["make book"],
    "test_cards": ["make cards"],
    "test_gradebox_seal": ["python -m gradebox.sandbox.probe"],
    "test_handout": ["make clean", "make submit"],
    "test_labs": ["python -m tools.classroom.lab_records optimizers"],
    "test_marking_page": ["python -m tools.classroom.marking erm"],
    "test_reading": ["make pdf"],
    "test_syllabus": ["python -m tools.site.syllabus"],
    "all of them": ["make test"],
    "none, since it is Python's": ["python -m http.server"],
}
"""What builds the site, trains or starts a server, and the tests that do it."""
UNDONE = {
    'make class LIST=class.csv ID="SIS User ID"': (
        "python -m tools.classroom.roster --remove S70 S71 S72 S73 S80"
    ),
    "python -m tools.classroom.roster --remove ada": "make class LIST=class.csv",
    "make release A=erm DUE=none": 'make release A=erm DUE="2027-03-01 23:59"',
}
"""After what a later command would have nothing to do, and what takes it back."""
# with a student of the sample class, for whom the page asks
LISTED = CANVAS + '"Correct, Ada All",80,,ada-all-correct,ML,,\r\n'


def told() -> list[str]:
    """Return the commands of the page, each once, in their order."""
    text = (ROOT / "book" / "instructors.md").read_text("utf-8")
    pattern = r"^```bash\n(.+?)^```|`((?:make|python -m) [^`…]+)`"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    lines = [line for block, inline in found for line in (block or inline).splitlines()]
    commands = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    return [*dict.fromkeys(line for line in commands if re.match("make|python -m", line))]


def meant(command: str) -> list[str]:
    """Return the words of the command that Make runs."""
    if not command.startswith("make"):
        return shlex.split(command)
    done = subprocess.run(
        ["make", "-n", "-o", ".venv/ready", *shlex.split(command)[1:]],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shlex.split(done.stdout)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a teacher's course, and in it the files that the page names."""
    root = tmp_path / "course"
    made = make_course(root, "erm", "bnp")
    config = root / "nbgrader_config.py"
    shared = config.read_text("utf-8").replace('BUILD / "exchange"', 'ROOT.parent / "exchange"')
    config.write_text(shared)
    (root / "exams").symlink_to(ROOT / "exams")

    listed = re.sub(r",(\d+),,(\S+),ML", r",\1,S\1,\2,ML", LISTED)  # with numbers, as in the page
    (root / "class.csv").write_text(listed)
    exported = LISTED.replace("Homework 1 (4711)", "Exercise erm (4712),Homework 1 (4711)")
    exported = re.sub(r",,\r$", ",,,\r", exported, flags=re.MULTILINE)
    (root / "canvas.csv").write_text(exported.replace(",10.00,", ",10.00,10.00,"))
    for name in ("worksheet.csv", "Grades-Exercise 1.csv", "file.csv", "FILE"):
        (root / name).write_text(WORKSHEET)
    work = answered(made.source("erm"), "2 * x", "3 * x", "Because.")
    folders = {
        f"{first} {last}_{number}_assignsubmission_file/erm.ipynb": work
        for number, (first, last) in zip(range(500, 504), NAMES.values(), strict=True)
    }
    pack(root / "submissions.zip", folders)
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 99))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    return Course(root)


def test_commands_for_instructors_work(course: Course, printed: Any) -> None:
    elsewhere = {command for some in ELSEWHERE.values() for command in some}
    assert elsewhere < {*told()}
    for told_command in [command for command in told() if command not in elsewhere]:
        for command in filter(None, [told_command, UNDONE.get(told_command)]):
            _, module, tool, *words = meant(command)
            assert module == "-m", command
            main = importlib.import_module(tool).main
            if "SIS User ID" in words:  # on the page the list is another one
                words.append("--namesakes")
            assert not main(*words, course=course), f"{command}: {printed()}"
