"""A source that was not released again stops a run; honest work for an older release is a note."""

from pathlib import Path

import nbformat
import pytest
from courses import Assignment
from notebooks import name_of
from small_course import grade, hand_in, points, reported

pytestmark = pytest.mark.xdist_group("gradebox")


def edit(file: Path, name: str, old: str, new: str, **metadata: object) -> None:
    """Replace a text in a cell of a notebook, and change its metadata of nbgrader's."""
    nb = nbformat.read(file, as_version=4)
    for cell in nb.cells:
        if name_of(cell) == name:
            cell.source = cell.source.replace(old, new)
            cell.metadata.nbgrader |= metadata
    nbformat.write(nb, file)


EDITS: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a hidden line": ("test", "double(-3) == -6", "double(-4) == -8", {}),
    "a given line": ("answer", "def double(x)", "def double(x=0)", {}),
    "points": ("test", "", "", {"points": 4}),
    "a name": ("test", "", "", {"grade_id": "another"}),
}


def test_edited_source_must_be_released_before_grading(course, capsys):
    hand_in(course, "ada")
    source = course / "source/toy/toy.ipynb"
    before = source.read_bytes()
    for cell, old, new, metadata in EDITS.values():
        edit(source, cell, old, new, **metadata)
        assert grade() == 2
        said = capsys.readouterr().err
        assert f"toy/{metadata.get('grade_id', cell)}" in said
        assert "nbgrader generate_assignment toy" in said
        assert points(course) == {}
        source.write_bytes(before)
    # what no student gets needs no release
    edit(source, "answer", "return 2 * x", "return x + x")
    edit(source, "test", "\n", "\r\n")
    assert grade() == 0


def test_work_for_older_release_gets_a_note(course):
    for student in ("early", "cheat"):
        hand_in(course, student)
    assert grade() == 0
    edit(course / "source/toy/toy.ipynb", "test", "double(2) == 4", "double(3) == 6", points=4)
    Assignment(course, "toy").release()
    hand_in(course, "late")
    edit(course / "submitted/cheat/toy/toy.ipynb", "test", "double(2) == 4", "True", points=9)
    assert grade() == 0
    kinds = {
        student: sorted({event["kind"] for event in entry["events"]})
        for student, entry in reported(course).items()
    }
    assert kinds["early"] == ["older", *kinds["late"]]
    assert "changed" in kinds["cheat"]
    assert {points(course)[student, "test"] for student in ("early", "late")} == {"4.0"}
