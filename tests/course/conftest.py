"""One toy course, graded once: most tests read it, and the others change a copy."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from toy_course import (
    CANVAS,
    RECORDS,
    TIMEOUT,
    answered,
    blocks,
    exchange,
    hand_in,
    make_course,
    pack,
    play,
    use,
    zipped,
)

from gradebox.exchange import Submit
from gradebox.workers import pool
from optdl.checks import catalog
from tools import course
from tools.classroom import grade, lab, release, roster, sample_class
from tools.classroom.backend import Backend
from tools.layout import Course
from tools.terminal import PIPE_WIDTH, console

console.width = PIPE_WIDTH  # workers of the tests have the variable COLUMNS

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it
NOISY = ("nbgrader", "nbconvert", "jupyter_client")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            ignored = (f"ignore::DeprecationWarning:{name}" for name in NOISY)
            item.add_marker(pytest.mark.filterwarnings(*ignored))
            item.add_marker(pytest.mark.xdist_group("nbgrader"))


@pytest.fixture(scope="module", autouse=True)
def fork_servers():
    """Keep the fork servers of a run for the next one, which would start the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(course, "TIMEOUT", TIMEOUT)
        patch.setattr(pool, "close", lambda: None)
        yield
    pool.close()


@pytest.fixture
def copied(graded, tmp_path):
    """Return a function that copies the graded course, with the work of some students or of all."""

    def copy(*students):
        made = Course(shutil.copytree(graded.root, tmp_path / "copy"))
        for name in {*made.submitters("toy")} - {*students} if students else ():
            shutil.rmtree(made.submitted / name)
        return made

    return copy


@pytest.fixture
def printed(capsys):
    """Return a function that gives what was printed since it was called last."""
    return lambda: capsys.readouterr().out


@pytest.fixture
def small(tmp_path):
    return make_course(tmp_path / "my course")


@pytest.fixture(scope="session")
def handed_out(tmp_path_factory):
    """Return a course with a class list and an assignment that is handed out."""
    made = make_course(tmp_path_factory.mktemp("class"), "toy", "two")
    (made.root / "canvas.csv").write_bytes(CANVAS.encode())
    use(roster, made, str(made.root / "canvas.csv"), "--yes")
    release.write(made, "toy")
    return made


@pytest.fixture
def with_lab(tmp_path):
    return make_course(tmp_path / "course", with_lab=True)


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """Return a course with a lab, the sample class and wrong records, graded by `make course`."""
    made = make_course(tmp_path_factory.mktemp("graded") / "Kurs 'Ü'", with_lab=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "blocks", blocks)
        patch.setattr(course, "TIMEOUT", TIMEOUT)
        patch.setattr(grade, "cores", lambda: 1)  # and still another process writes the pages
        patch.setattr(pool, "close", lambda: None)  # the first test module ends the fork servers
        release.write(made, "toy")
        sample_class.create(made, ["toy"])
        right = (made.submitted / sample_class.SOLVER / "toy" / "lab.ipynb").read_text("utf-8")
        for student, record in RECORDS.items():
            own = right.replace(sample_class.SOLVER, student)
            hand_in(made, student, lab=own, **({"record": json.dumps(record)} if record else {}))
        assert use(course, made, "--no-site") == 0
    return made


# --- a term

TERM = """
$! collect toy canvas.zip --sheet canvas.csv
canvas.csv is no grading worksheet
$ collect toy canvas.zip
Late, as the platform says: ben
dora (Dora Al-Sayed) no notebook of toy among: alsayeddora_73_804_broken.zip
 anon Xy12 Canvas hides the names
 studenttest 79 Canvas's test student
"""
GRADED = """
$ grade toy
 toy 5 of 6 … 3 (2 unknown)
Not on the class list: zed (nearest: nobody)
outside of zed/toy/: build/submitted/zed/toy (1).ipynb
The same toy.ipynb, byte for byte: ada …, cleo …, zed
"""


@pytest.fixture(scope="session")
def graded_term(handed_out, tmp_path_factory):
    """Return a graded class whose work came by Canvas, the exchange and a folder."""
    course = Course(shutil.copytree(handed_out.root, tmp_path_factory.mktemp("term") / "teacher"))
    for due in ("2027-03-01 12:00", "none", "2020-03-01 12:00"):
        use(release, course, "toy", "--due", due)
        with Backend(course).gradebook() as book:
            assert str(book.find_assignment("toy").duedate) in (f"{due}:00", due.title())
    right = answered(course.released("toy"), "2 * x", "3 * x")
    five = answered(course.released("toy"), "5 * x", "3 * x", "Because it is.")
    pack(
        course.root / "canvas.zip",
        {
            "countess_70_801_toy.ipynb": right,
            "onevisben_LATE_71_802_toy-1.ipynb": five,
            "vanderbergcléo_72_803_hand_in_2.zip": zipped("toy.ipynb", right),
            "alsayeddora_73_804_broken.zip": b"PK no zip",
            "alsayeddora_73_text.html": b"<p>done</p>",
            "anon_Xy12_9_toy.ipynb": right,
            "studenttest_79_806_toy.ipynb": right,
        },
    )
    play(course, TERM)
    hand_in(course, "cleo", timestamp="2020-03-01 18:00")
    folder = hand_in(course, "zed", toy=right)  # who is not on the list
    (folder.parent / "toy (1).ipynb").write_bytes(right)
    # dora has a copy of the course without solutions, and submits to the exchange
    (student := course.root.parent / "dora").mkdir()
    shutil.copy(course.root / "nbgrader_config.py", student)
    shutil.copytree(course.exercises, student / "exercises")
    lab.copy_for_work(Course(student), "toy")
    work = student / "work" / "toy" / "toy.ipynb"
    work.write_bytes(answered(work, "2 * x", "3 * x", "Because."))
    made = SimpleNamespace(course=course, dora=Course(student))
    exchange(made, Submit)
    play(course, GRADED)
    return made
