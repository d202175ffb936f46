"""A class from its list to its archive, as the page for instructors tells it."""

import csv
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hang import HANG
from test_course import make_course

from tools import archive, feedback, grade, gradebook, lab, notebooks, release, results, roster
from tools.backend import Backend
from tools.layout import Course

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader has no exchange on Windows"),
    pytest.mark.xdist_group("nbgrader"),
]

LIST = "Username;First name;Last name\nada;Ada;Lovelace\nben;Ben;Nevis\ncleo;Cleo;\ndora;Dora;\n"


class Class:
    """A teacher's folder and each student's, with an exchange between them."""

    def __init__(self, root: Path) -> None:
        (root / "teacher").mkdir()
        self.root, self.course = root, make_course(root / "teacher")

    def teach(self, command: object, *arguments: str) -> int:
        """Run one of the course's commands in the teacher's folder."""
        return command.command(command.parser().parse_args(arguments), self.course) or 0  # type: ignore[attr-defined]

    def student(self, name: str) -> Course:
        """Return a student's copy of the course, without solutions, with the work laid out."""
        folder = self.root / name
        if not folder.exists():
            folder.mkdir()
            shutil.copy(self.course.root / "nbgrader_config.py", folder)
            shutil.copytree(self.course.exercises, folder / "exercises")
            lab.copy_for_work(Course(folder), "toy")
        return Course(folder)

    def nbgrader(self, name: str, *arguments: str) -> str:
        """Run nbgrader in a student's folder, as JupyterLab's assignment list does."""
        done = subprocess.run(
            [
                *(sys.executable, "-m", "nbgrader", *arguments, "--course", "optdl"),
                f"--Exchange.root={self.course.exchange}",
                f"--Exchange.cache={self.root / name / 'cache'}",
            ],
            cwd=self.student(name).root, env=os.environ | {"JUPYTERHUB_USER": name, "USER": name},
            capture_output=True, text=True, timeout=HANG, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stderr

    def due(self) -> str | None:
        """Return the deadline that the gradebook has."""
        with Backend(self.course).gradebook() as book:
            moment = book.find_assignment("toy").duedate
        return moment.isoformat(sep=" ") if moment else None


def answered(notebook: Path, double: str, triple: str, why: str = "") -> bytes:
    """Return a notebook with answers."""
    filled = notebooks.read(notebook)
    for cell in filled.cells:
        name = cell.id.removeprefix("toy-")
        if name in ("double", "triple"):
            body = {"double": double, "triple": triple}[name]
            cell.source = f"def {name}(x):\n    return {body}\n"
        elif name == "why" and why:
            cell.source = why
    return notebooks.to_bytes(filled)


def test_a_term(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class_ = Class(tmp_path)
    course = class_.course

    # the class list, and an assignment with a deadline that is set, moved, removed, set again
    (tmp_path / "class.csv").write_text(LIST)
    class_.teach(roster, str(tmp_path / "class.csv"), "--yes")
    for due in ("2027-03-01 12:00", "2027-03-02 12:00"):
        class_.teach(release, "toy", "--due", due)
        assert class_.due() == f"{due}:00"
    class_.teach(release, "toy", "--due", "none")
    assert class_.due() is None
    class_.teach(release, "toy", "--due", "2020-03-01 12:00")

    # ada works where the course says, cleo in exercises/; both submit to the exchange
    ada, cleo = class_.student("ada"), class_.student("cleo")
    work = ada.work / "toy" / "toy.ipynb"
    work.write_bytes(answered(work, "2 * x", "3 * x", "Because."))
    plain = cleo.released("toy")
    plain.write_bytes(answered(plain, "x * x", "3 * x"))
    for name in ("ada", "cleo"):
        said = class_.nbgrader(name, "submit", "toy", "--student", name)
    assert "exercises/toy/toy.ipynb was edited" in said

    # ben sends his notebook, in time; dora hands in nothing
    ben = course.submitted / "ben" / "toy"
    ben.mkdir(parents=True)
    ben.joinpath("toy.ipynb").write_bytes(answered(course.released("toy"), "2 * x", "x"))
    ben.joinpath("timestamp.txt").write_text("2020-03-01 11:00:00 UTC")

    assert class_.teach(grade, "toy") == 0
    points = {row.student: row.auto for row in results.rows(course, ["toy"])}
    assert points == {"ada": 6, "ben": 3, "cleo": 3}

    # marks by hand, and a regrade that leaves them
    with Backend(course).gradebook() as book:
        written = book.find_grade("toy-why", "toy", "toy", "ada")
        written.manual_score, written.needs_manual_grade = 4, False
        book.find_comment("toy-why", "toy", "toy", "ada").manual_comment = "Short and right."
        book.db.commit()
    assert class_.teach(grade, "toy", "--force") == 0
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "ada").score == 10
        late = {one.student.id: one.total_seconds_late > 0 for one in
                book.assignment_submissions("toy")}  # fmt: skip
    assert late == {"ada": True, "ben": False, "cleo": True}
    page = (course.feedback / "ada" / "toy" / "toy.html").read_text()
    assert "Short and right." in page

    # pages to everyone who can fetch one, and the name of who cannot; points for a platform
    capsys.readouterr()
    class_.teach(feedback, "toy")
    said = capsys.readouterr().out
    assert "to 2 students" in said
    assert "ben" in said
    assert "build/feedback/ada" not in said
    # her mark was given before the regrade
    assert "Written answers still to be read: ada\n" in said
    class_.nbgrader("ada", "fetch_feedback", "toy")
    [fetched] = ada.work.glob("toy/feedback/*/toy.html")
    assert fetched.read_bytes() == page.encode()
    sheet = tmp_path / "class.csv"
    class_.teach(gradebook, "--csv", str(sheet))
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        lines = {line["student"]: line for line in csv.DictReader(file)}
    assert [lines[name]["total"] for name in ("ada", "ben", "cleo", "dora")] == ["10", "3", "3", ""]

    # the end of term
    class_.teach(archive, "--anonymize", "--to", str(tmp_path / "anonymous.zip"))
    with zipfile.ZipFile(tmp_path / "anonymous.zip") as packed:
        names = {Path(name).parts[1] for name in packed.namelist() if name.startswith("submitted")}
    assert len(names) == 3
    assert names < {"s001", "s002", "s003", "s004"}
