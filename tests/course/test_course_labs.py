"""The commands of the course, where an assignment has a lab beside its own notebook."""

import json
import re
from pathlib import Path

import pytest
from toy_course import MARKS, RECORDS, RIGHT, edited, rows

from gradebox.nbgrader.cells import error_text
from tools import notebooks
from tools.classroom import handout, lab, release
from tools.classroom.backend import Backend
from tools.fingerprints import files
from tools.layout import RECORD, ROOT, Course, is_result
from tools.site.inpage import parts

pytestmark = MARKS


# --- release


def test_release_makes_both_notebooks_and_no_record(with_lab: Course, tmp_path: Path) -> None:
    for name in ("points.csv", "step-7.pt"):
        (with_lab.solutions / "toy" / name).write_text("1,2\n")
    assert is_result(with_lab.record("toy"))
    assert release.write(with_lab, "toy")
    assert not release.write(with_lab, "toy")
    expected = {"toy.ipynb", "lab.ipynb", "points.csv"}
    assert {path.name for path in (with_lab.exercises / "toy").iterdir()} == expected
    for name, content in release.render(with_lab, "toy").items():
        text = with_lab.released("toy", name).read_text("utf-8")
        assert content.decode() == text
        assert json.loads(text)["metadata"] == release.METADATA
        assert text.count("raise NotImplementedError()") == {"toy": 2, "lab": 3}[name]
    with edited(with_lab.released("toy")) as notebook:
        notebook.cells[0].source = "# Joy"
    assert release.write(with_lab, "toy")
    assert "Joy" not in with_lab.released("toy").read_text("utf-8")
    cells = notebooks.named(notebooks.read(with_lab.released("toy", "lab")))
    tags = {name.removeprefix("toy-lab-"): cells[name].metadata.get("tags") for name in cells}
    assert tags["train"] == ["train", release.GO_ON]
    assert (tags["run"], tags["line"]) == ([release.GO_ON], None)

    # what a student has gets both
    (with_lab.exercises / "toy" / RECORD).write_text("of a run in the wrong folder")
    packed = handout.pack(with_lab, tmp_path / "course.zip")
    names = {name for name in packed if name.startswith("exercises/toy")}
    assert names == {f"exercises/toy/{name}" for name in expected}
    (with_lab.exercises / "toy" / RECORD).unlink()
    assert lab.copy_for_work(with_lab, "toy")
    assert {path.name for path in files(with_lab.work / "toy")} == expected

    # a lab that has changed is recorded again
    assert release.record(with_lab, "toy")
    assert not release.record(with_lab, "toy")
    with Backend(with_lab).gradebook() as book:
        assert {entry.name for entry in book.find_assignment("toy").notebooks} == {"toy", "lab"}
    with edited(with_lab.source("toy", "lab")) as notebook:
        notebook.cells[0].source += ", again"
    release.write(with_lab, "toy")
    assert release.record(with_lab, "toy")


# --- what was graded


def test_a_lab_has_its_points_and_pages(graded: Course) -> None:
    made = rows(graded)
    assert {(made[student].auto, made[student].pending) for student in RECORDS} == {(3, 0)}
    assert made["ben-blank"].remarks == ["lab.ipynb was not handed in"]
    expected = {"ada-all-correct": "lab toy", "quinn-misconception-1": "lab toy"}
    expected |= dict.fromkeys(RECORDS, "lab") | {"tala-broken-file": ""}
    for student in made:
        pages = sorted(path.stem for path in (graded.feedback / student / "toy").glob("*.html"))
        assert " ".join(pages) == expected.get(student, "toy"), student
    record = graded.submitted / "ada-all-correct" / "toy" / RECORD
    assert json.loads(record.read_text()) == RIGHT
    work = (graded.submitted / "quinn-misconception-1" / "toy" / "lab.ipynb").read_text()
    assert "self.slope + x" in work  # the lab's misconception, under her own name
    assert "quinn-misconception-1" in work
    assert "ada-all-correct" not in work


@pytest.mark.parametrize("student", RECORDS)
def test_a_wrong_record_is_refused(graded: Course, student: str) -> None:
    record, reason = RECORDS[student]
    executed = graded.executed(student, "toy")["lab"]
    cells = notebooks.named(notebooks.read(executed))
    assert reason in error_text(cells["toy-lab-run"])
    # the instructor's record replaces none
    kept, given = executed.parent / RECORD, graded.submitted / student / "toy" / RECORD
    assert kept.is_file() is (record is not None)
    assert record is None or kept.read_bytes() == given.read_bytes()


# --- the pages of the site


def test_pages_contain_no_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "build", lambda store, root: None)
    parts.install(tmp_path)
    installed = {path.stem for path in tmp_path.glob("_static/python/notebooks/*")}
    assert installed == {*Course(ROOT).topics()}
    modules = json.loads(parts.course())
    assert {"optdl/erm/__init__.py", "session.py"} < modules.keys()
    assert not [name for name in modules if re.search("lab|training|experiments", name)]
