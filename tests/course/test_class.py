"""A class from its list to its feedback, and each command of the page for instructors."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory
from nbgrader.exchange.default import ExchangeFetchFeedback
from toy_course import MARKS, answered, make_course, use

from gradebox.exchange import Submit
from tools.classroom import feedback, grade, handout, lab, release, results, roster
from tools.classroom.backend import Backend
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
        assert str(due) == ("None" if deadline == "none" else f"{deadline}:00")

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
    with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("c.Execute.timeout = 19\n")  # and so all are graded again
    assert use(grade, course, "toy") == 0
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
    exchange(course, ada, ExchangeFetchFeedback)
    [fetched] = ada.work.glob("toy/feedback/*/toy.html")
    assert fetched.read_bytes() == page.encode()
    totals = {row.student: row.total for row in results.rows(course, ["toy"], everybody=True)}
    assert totals == {"ada": 10, "ben": 3, "cleo": 3, "dora": 0}


# --- the page for instructors


def told() -> list[str]:
    """Return the commands of the page, each once, in their order."""
    text = (ROOT / "book" / "instructors.md").read_text("utf-8")
    pattern = r"^```bash\n(.+?)^```|`((?:make|python -m) [^`…]+)`"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    lines = [line for block, inline in found for line in (block or inline).splitlines()]
    commands = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    return [*dict.fromkeys(line for line in commands if re.match("make|python -m", line))]


@pytest.mark.parametrize("command", told())
def test_commands_for_instructors_exist(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "make":  # what it runs
        folder = handout.OWN if words[1] == "submit" else ROOT  # which students have
        dry = ["make", "-n", "-o", ".venv/ready", "-o", ".venv/dev", *words[1:]]
        words = shlex.split(subprocess.check_output(dry, cwd=folder, text=True))
    if words[1] == "-m" and words[2].startswith("tools."):
        importlib.import_module(words[2]).main.parser.parse_args(words[3:])
    elif words[1] == "-m":
        assert importlib.util.find_spec(words[2])
