"""A class from its list to its feedback, and each command of the page for instructors."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from unittest.mock import patch

import pytest
from nbgrader.api import get_alembic_version
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchFeedback
from sqlalchemy import text
from toy_course import answered, hand_in, make_course, use

from gradebox.exchange import Submit
from tools.classroom import feedback, grade, lab, release, results, roster
from tools.classroom.backend import Backend, environment
from tools.layout import ROOT, Course

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nbgrader has no exchange there")


# --- a term

LIST = "Username;First name;Last name\nada;Ada;Lovelace\nben;Ben;Nevis\ncleo;Cleo;\ndora;Dora;\n"


def student_copy(course, name):
    """Return a student's copy of the course, without solutions, with the work laid out."""
    folder = course.root.parent / name
    folder.mkdir()
    shutil.copy(course.root / "nbgrader_config.py", folder)
    shutil.copytree(course.exercises, folder / "exercises")
    lab.copy_for_work(Course(folder), "toy")
    return Course(folder)


def exchange(course, student, step):
    """Take a step of the exchange in a student's copy, as JupyterLab's assignment list does."""
    config = deepcopy(student.config)
    config.Exchange.root = str(course.exchange)
    config.Exchange.cache = str(student.root / "cache")
    config.CourseDirectory.student_id = student.root.name
    directory = CourseDirectory(config=config, assignment_id="toy")
    step(coursedir=directory, authenticator=Authenticator(config=config), config=config).start()


def test_term_from_class_list_to_feedback(tmp_path, printed):
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
    answers = [answered(course.released("toy"), "2 * x", "x", f"Because {n}.") for n in range(2)]
    hand_in(course, "ben", toy=answers[0], timestamp="2020-03-01 11:00:00 UTC")

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
    hand_in(course, "ben", toy=answers[1])
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
    assert "Pages of toy released: 2." in output
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
