"""No order of editing, gathering and releasing loses a student's file."""

import os
import shutil
from pathlib import Path

import pytest

from gradebox.exchange import Releases, describe, gather


class Student:
    """A student who saves files of an assignment, each a minute after the one before."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.exercises = root, root / "work", root / "exercises"
        self.releases = Releases(self.exercises)
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
        self.releases.remember([self.save("exercises/erm/erm.ipynb", text)])

    def gather(self) -> list[str]:
        """Gather, and return what is said about it."""
        found = gather(self.work, "erm", [self.exercises], Releases(self.exercises))
        return [describe(one, self.root) for one in found]

    def read(self, path: str) -> str:
        """Return what is in a file."""
        return (self.root / path).read_text()


@pytest.fixture
def student(tmp_path: Path) -> Student:
    found = Student(tmp_path)
    found.release("blank")
    return found


def test_a_released_file_is_nobodys_work(student: Student) -> None:
    student.release("blank, again")
    (student.exercises / "erm" / ".ipynb_checkpoints").mkdir()
    student.save("exercises/erm/.ipynb_checkpoints/erm.ipynb", "half")
    student.save("exercises/erm/.hidden", "half")
    assert student.gather() == []
    student.save("exercises/erm/erm.ipynb", "blank")  # a release of before
    assert student.gather() == []
    assert not student.work.exists()


def test_what_was_edited_among_the_releases_is_gathered_once(student: Student) -> None:
    student.save("exercises/erm/erm.ipynb", "my answer")
    student.save("exercises/erm/notes/own.txt", "my notes")
    assert student.gather() == [
        "exercises/erm/erm.ipynb was edited; it is work/erm/erm.ipynb now: go on there",
        "exercises/erm/notes/own.txt was edited; it is work/erm/notes/own.txt now: go on there",
    ]
    student.save("work/erm/erm.ipynb", "my better answer")
    assert student.gather() == []
    assert student.read("work/erm/erm.ipynb") == "my better answer"
    assert student.read("work/erm/notes/own.txt") == "my notes"


def test_a_blank_copy_gives_way(student: Student) -> None:
    student.save("work/erm/erm.ipynb", "blank")
    student.save("exercises/erm/erm.ipynb", "my answer")
    student.save("work/erm/erm.ipynb", "blank")  # saved later, and yet untouched
    assert len(student.gather()) == 1
    assert student.read("work/erm/erm.ipynb") == "my answer"
    assert not (student.work / "kept").exists()


def test_of_two_edited_files_the_one_saved_last_counts_and_both_are_kept(student: Student) -> None:
    student.save("work/erm/erm.ipynb", "first")
    student.save("exercises/erm/erm.ipynb", "second")
    [said] = student.gather()
    assert student.read("work/erm/erm.ipynb") == "second"
    [kept] = (student.work / "kept" / "erm").iterdir()
    assert kept.read_text() == "first"
    assert said.endswith(f"The file that was there is kept as work/kept/erm/{kept.name}")

    student.save("exercises/erm/erm.ipynb", "third")
    student.save("work/erm/erm.ipynb", "fourth")
    [said] = student.gather()
    assert "work/erm/erm.ipynb was saved later and counts" in said
    assert student.read("work/erm/erm.ipynb") == "fourth"
    kept_texts = {file.read_text() for file in (student.work / "kept" / "erm").iterdir()}
    assert kept_texts == {"first", "third"}


def test_files_saved_in_the_same_second_are_kept_apart(student: Student) -> None:
    for text in ("first", "second"):
        student.minutes = 10
        student.save("work/erm/erm.ipynb", f"{text} at work")
        student.save("exercises/erm/erm.ipynb", text)
        os.utime(student.work / "erm" / "erm.ipynb", (1e9, 1e9))
        student.gather()
    kept_texts = {file.read_text() for file in (student.work / "kept" / "erm").iterdir()}
    assert kept_texts == {"first at work", "second at work"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"erm/erm.ipynb": 3}', "\x00"])
def test_a_damaged_list_of_releases_loses_nothing(student: Student, text: str) -> None:
    student.save("work/erm/erm.ipynb", "my answer")
    student.save("exercises/.released.json", text)
    (student.work / ".gathered.json").write_text(text)
    student.gather()
    texts = {file.read_text() for file in student.work.rglob("*.ipynb")}
    assert "my answer" in texts
    student.release("blank, again")
    student.gather()
    assert "my answer" in {file.read_text() for file in student.work.rglob("*.ipynb")}


def test_a_folder_that_is_not_there_is_no_place(student: Student) -> None:
    shutil.rmtree(student.exercises)
    assert student.gather() == []
