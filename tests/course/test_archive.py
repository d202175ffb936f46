"""A term is kept whole; an anonymous copy holds the same marks and nobody's name."""

import zipfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from toy_course import MARKS, make_course, use

from tools import notebooks
from tools.classroom import archive, release
from tools.classroom.backend import Backend
from tools.layout import RECORD, Course
from tools.terminal import ToolError

pytestmark = MARKS

CLASS = {
    "ada": {"first_name": "Ada", "last_name": "Lovelace", "email": "al@example.org"},
    "ben.nevis": {"first_name": "Ben", "last_name": "Ng", "lms_user_id": "moodle-4711"},
    "code": {},  # a word of every notebook
    "s001": {},  # what another student may become
}


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Return a course in which four students have marks."""
    course = make_course(tmp_path_factory.mktemp("marked") / "course")
    release.write(course, "toy")
    release.record(course, "toy")
    released = notebooks.read(course.released("toy"))
    with Backend(course).gradebook() as book:
        for mark, (who, about) in enumerate(CLASS.items()):
            book.update_or_create_student(who, **about)
            book.add_submission("toy", who)
            written = book.find_grade("toy-why", "toy", "toy", who)
            written.manual_score = mark
            comment = book.find_comment("toy-why", "toy", "toy", who)
            comment.manual_comment = f"Well done, {about.get('first_name', who)}!"
            folder = course.submitted / who / "toy"
            folder.mkdir(parents=True)
            released.cells[0].source = f"{who}, written by {about.get('last_name', who)}. Adamant."
            released.metadata.authors = [{"name": who}]
            (folder / "toy.ipynb").write_bytes(notebooks.to_bytes(released))
            (folder / "picture.png").write_bytes(b"\x89PNG\xff")
            (folder / RECORD).write_text("{}")  # whose seed follows from the name
        book.db.commit()
    page = course.feedback / "ada" / "toy" / "toy.html"
    page.parent.mkdir(parents=True)
    page.write_text("Ada, 3 points")
    return course


def packed(course: Course, folder: Path, *arguments: str) -> Path:
    """Archive a course, and return the folder into which the archive was unpacked."""
    target = folder / "term.zip"
    use(archive, course, *arguments, "--to", str(target))
    with zipfile.ZipFile(target) as archived:
        archived.extractall(folder / "out")
    return folder / "out"


def marks(book: Path) -> dict[str, float]:
    """Return the marks of all students, as nbgrader reads them."""
    with Gradebook(f"sqlite:///{book}", "optdl") as found:
        return {one.student.id: one.score for one in found.assignment_submissions("toy")}


def test_a_term_is_kept_whole(marked: Course, tmp_path: Path) -> None:
    out = packed(marked, tmp_path)
    assert marks(out / "gradebook.db") == {"ada": 0, "ben.nevis": 1, "code": 2, "s001": 3}
    for place in (marked.submitted, marked.feedback):
        for path in place.rglob("*.*"):
            if path.is_file():
                copy = out / place.name / path.relative_to(place)
                assert copy.read_bytes() == path.read_bytes()


def test_an_anonymous_copy_has_marks_without_names(marked: Course, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in marked.submitted.rglob("*.*") if path.is_file()}
    out = packed(marked, tmp_path, "--anonymize")
    found = marks(out / "gradebook.db")
    assert sorted(found.values()) == [0, 1, 2, 3]
    assert sorted(found) == ["s001", "s002", "s003", "s004"]
    for path in out.rglob("*"):
        content = path.read_bytes().lower() if path.is_file() else b""
        for name in (b"lovelace", b"ben.nevis", b"al@example.org", b"moodle-4711"):
            assert name not in content, (path, name)
            assert name.decode() not in str(path.relative_to(out)).lower()
    for code, mark in found.items():
        notebook = notebooks.read(out / "submitted" / code / "toy" / "toy.ipynb")
        # "Ng" is too short a name to be looked for, and "Adamant" is another word than "Ada"
        author = "Ng" if mark == 1 else code
        assert notebook.cells[0].source == f"{code}, written by {author}. Adamant."
        assert {one.cell_type for one in notebook.cells} == {"code", "markdown"}
        assert (out / "submitted" / code / "toy" / "picture.png").read_bytes() == b"\x89PNG\xff"
    assert not [*out.rglob(RECORD), *out.glob("feedback")]
    with Gradebook(f"sqlite:///{out / 'gradebook.db'}", "optdl") as book:
        [notebook] = book.find_assignment("toy").submissions[0].notebooks
        comments = {one.manual_comment for one in notebook.comments if one.manual_comment}
    assert comments
    assert all(comment.startswith("Well done, s00") for comment in comments)
    assert {path: path.read_bytes() for path in before} == before  # nothing of the class changed
    assert marks(marked.root / "build" / "gradebook.db").keys() == CLASS.keys()


def test_archive_refuses_overwriting_and_missing_gradebook(marked: Course, tmp_path: Path) -> None:
    packed(marked, tmp_path)
    with pytest.raises(ToolError, match="is there already"):
        packed(marked, tmp_path)
    with pytest.raises(ToolError, match="there is no gradebook yet"):
        packed(make_course(tmp_path / "empty"), tmp_path / "other")
