"""No order of editing, gathering and releasing loses a student's file."""

import os
import shutil
from pathlib import Path

import pytest

from gradebox.exchange import Releases, gather

RELEASED, WORK = "exercises/erm/erm.ipynb", "work/erm/erm.ipynb"


class Student:
    """A student who saves files of an assignment, each a minute after the one before."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.exercises = root, root / "work", root / "exercises"
        self.minutes = 0
        self.release("blank")

    def save(self, path: str, text: str) -> Path:
        self.minutes += 1
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (1e9 + 60 * self.minutes,) * 2)
        return file

    def release(self, text: str) -> None:
        """Put a notebook into the folder of releases, as the course does."""
        Releases(self.exercises).remember([self.save(RELEASED, text)])

    def gather(self) -> tuple[int, list[str], list[str]]:
        """Gather; return how many files were found, the work, and what was kept beside."""
        releases = Releases(self.exercises)
        found = len(gather(self.work, "erm", [self.exercises], releases, self.root))
        files = [*self.work.rglob("erm/**/*.*"), *self.work.glob("kept/erm/*")]
        texts = {file: file.read_text() for file in files if file.is_file()}
        kept = {file for file in texts if "kept" in file.parts}
        return found, sorted(texts[f] for f in {*texts} - kept), sorted(texts[f] for f in kept)


@pytest.fixture
def student(tmp_path: Path) -> Student:
    return Student(tmp_path)


def test_released_file_is_not_gathered_as_work(student):
    student.release("blank, again")
    student.save("exercises/erm/.ipynb_checkpoints/erm.ipynb", "half")
    student.save("exercises/erm/.hidden", "half")
    student.save(RELEASED, "blank")  # a release of before
    assert student.gather() == (0, [], [])
    shutil.rmtree(student.exercises)
    assert student.gather() == (0, [], [])
    assert not student.work.exists()


def test_edited_files_are_gathered_once(student):
    student.save(WORK, "blank")
    student.save(RELEASED, "my answer")
    student.save("exercises/erm/notes/own.txt", "my notes")
    student.save(WORK, "blank")  # saved later, and yet untouched
    assert student.gather() == (2, ["my answer", "my notes"], [])
    student.save(WORK, "my better answer")
    assert student.gather() == (0, ["my better answer", "my notes"], [])


def test_the_file_saved_last_counts(student):
    student.save(WORK, "first")
    student.save(RELEASED, "second")
    assert student.gather() == (1, ["second"], ["first"])
    student.save(RELEASED, "third")
    student.save(WORK, "fourth")
    assert student.gather() == (1, ["fourth"], ["first", "third"])


def test_files_saved_in_the_same_second_are_kept(student):
    for text in ("first", "second"):
        student.minutes = 10
        os.utime(student.save(WORK, f"{text} at work"), (1e9, 1e9))
        student.save(RELEASED, text)
        kept = student.gather()[2]
    assert kept == ["first at work", "second at work"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"erm/erm.ipynb": 3}', "\x00"])
def test_damaged_list_of_files_loses_no_work(student, text):
    student.save(WORK, "my answer")
    student.save("exercises/.released.json", text)
    (student.work / ".gathered.json").write_text(text)
    for _ in range(2):
        _, work, kept = student.gather()
        assert "my answer" in work + kept
        student.release("blank, again")
