"""One toy course, graded once: most tests read it, and the others change a copy."""

import shutil
from pathlib import Path

import pytest
from toy_course import CANVAS, TIMEOUT, blocks, hand_in_wrong_records, make_course, use

from gradebox.workers import pool
from optdl.checks import catalog
from tools import course
from tools.classroom import grade, release, roster, sample_class
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
        patch.setattr(grade, "MAX_ALONE", 100)  # other processes would have to start
        patch.setattr(pool, "close", lambda: None)  # the first test module ends the fork servers
        release.write(made, "toy")
        sample_class.create(made, ["toy"])
        hand_in_wrong_records(made)
        assert use(course, made, "--no-site") == 0
    return made
