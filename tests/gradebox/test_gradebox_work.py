"""No order of editing, gathering and releasing loses a student's file."""

import os
import shutil
from pathlib import Path

import pytest

from gradebox.exchange import Releases, gather


class Student:
    """A student who saves files of an assignment, each a minute after the one before."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.exercises = root, root / "work", root / "exercises"
        self.minutes = 0

    def save(self, path: str, text: str) -> Path:
        """Save a file, a minute after the one before."""
        self.minutes += 1
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (1e9 + 60 * self.minutes,) * 2)
        return file

    def release(self, text: str) -> None:
        """Put a notebook into the folder of releases, as the course does."""
        Releases(self.exercises).remember([self.save("exercises/erm/erm.ipynb", text)])

    def gather(self) -> int:
        """Gather, and return how many files were found."""
        places = [self.exercises]
        return len(gather(self.work, "erm", places, Releases(self.exercises), self.root))

    def read(self, name: str = "erm.ipynb") -> str:
        """Return what is in a file at the place of work."""
        return (self.work / "erm" / name).read_text()

    @property
    def kept(self) -> list[str]:
        """Return what was kept beside, sorted."""
        return sorted(file.read_text() for file in self.work.glob("kept/erm/*"))


@pytest.fixture
def student(tmp_path: Path) -> Student:
    found = Student(tmp_path)
    found.release("blank")
    return found


def test_a_released_file_is_nobodys_work(student: Student) -> None:
    student.release("blank, again")
    student.save("exercises/erm/.ipynb_checkpoints/erm.ipynb", "half")
    student.save("exercises/erm/.hidden", "half")
    student.save("exercises/erm/erm.ipynb", "blank")  # a release of before
    assert student.gather() == 0
    shutil.rmtree(student.exercises)
    assert student.gather() == 0
    assert not student.work.exists()


def test_what_was_edited_is_gathered_once(student: Student) -> None:
    student.save("work/erm/erm.ipynb", "blank")
    student.save("exercises/erm/erm.ipynb", "my answer")
    student.save("exercises/erm/notes/own.txt", "my notes")
    student.save("work/erm/erm.ipynb", "blank")  # saved later, and yet untouched
    assert student.gather() == 2
    assert (student.read(), student.read("notes/own.txt")) == ("my answer", "my notes")
    student.save("work/erm/erm.ipynb", "my better answer")
    assert student.gather() == 0
    assert (student.read(), student.kept) == ("my better answer", [])


def test_the_file_saved_last_counts(student: Student) -> None:
    student.save("work/erm/erm.ipynb", "first")
    student.save("exercises/erm/erm.ipynb", "second")
    assert student.gather() == 1
    assert (student.read(), student.kept) == ("second", ["first"])
    student.save("exercises/erm/erm.ipynb", "third")
    student.save("work/erm/erm.ipynb", "fourth")
    assert student.gather() == 1
    assert (student.read(), student.kept) == ("fourth", ["first", "third"])


def test_files_saved_in_the_same_second_are_kept(student: Student) -> None:
    for text in ("first", "second"):
        student.minutes = 10
        student.save("work/erm/erm.ipynb", f"{text} at work")
        student.save("exercises/erm/erm.ipynb", text)
        os.utime(student.work / "erm" / "erm.ipynb", (1e9, 1e9))
        student.gather()
    assert student.kept == ["first at work", "second at work"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"erm/erm.ipynb": 3}', "\x00"])
def test_a_damaged_list_loses_nothing(student: Student, text: str) -> None:
    student.save("work/erm/erm.ipynb", "my answer")
    student.save("exercises/.released.json", text)
    (student.work / ".gathered.json").write_text(text)
    for _ in range(2):
        student.gather()
        assert "my answer" in {file.read_text() for file in student.work.rglob("*.ipynb")}
        student.release("blank, again")
