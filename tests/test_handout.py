"""What students get: notebooks that open and check themselves, and nothing of the solutions."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hang import HANG

from tools import handout, notebooks, release
from tools.layout import ROOT, Course

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.xdist_group("nbgrader"),
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that a student has after unpacking."""
    folder = tmp_path_factory.mktemp("student")
    handout.pack(Course(ROOT), folder / "course.zip")
    with zipfile.ZipFile(folder / "course.zip") as archive:
        archive.extractall(folder)
    return folder / "course"


def run(folder: Path, *arguments: str) -> str:
    """Run Python in a student's folder, with the code that lies there."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG, check=True,
    )  # fmt: skip
    return done.stdout


def test_there_is_all_for_students_and_nothing_else(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == [
        "LICENSE", "Makefile", "README.md", "_toc.yml", "exercises", "nbgrader_config.py",
        "pyproject.toml", "requirements.txt", "src", "tools",
    ]  # fmt: skip
    for topic in Course(ROOT).topics():
        for name in Course(ROOT).notebooks(topic):
            notebook = unpacked / "exercises" / topic / f"{name}.ipynb"
            assert notebook.read_bytes() == Course(ROOT).released(topic, name).read_bytes()
            source = notebooks.read(Course(ROOT).source(topic, name))
            hidden = release._secret_lines(source)
            lines = {line.strip() for line in notebook.read_text().splitlines()}
            assert hidden
            assert not lines & set(hidden)
    markers = [path for path in (unpacked / "exercises").rglob("*.*")
               if any(secret in path.read_text() for secret in release.SECRETS)]  # fmt: skip
    assert markers == []


def test_a_student_opens_an_assignment_and_checks_an_answer(unpacked: Path) -> None:
    code = (
        "import tools.lab as lab; lab._serve = lambda command, course: 0; "
        "raise SystemExit(lab.main(['--no-browser']))"
    )
    said = run(unpacked, "-c", code)
    assert "You work in work/" in said
    assert "formgrader" not in said
    work = json.loads((unpacked / "work" / "erm" / "erm.ipynb").read_text())
    assert work == json.loads((unpacked / "exercises" / "erm" / "erm.ipynb").read_text())
    [setup] = [cell for cell in work["cells"] if "import check" in "".join(cell["source"])]
    answer = "def standard_error(sigma, n, population=None): return sigma / n"
    tried = "try: check('L1-07', standard_error)\nexcept AssertionError as error: print(error)"
    said = run(unpacked, "-c", "\n".join(["".join(setup["source"]), answer, tried]))
    assert "✗ L1-07 standard_error: not right yet" in said


def test_running_all_cells_goes_on_after_a_check_that_fails(unpacked: Path) -> None:
    for notebook in sorted((unpacked / "exercises").glob("*/*.ipynb")):
        for cell in notebooks.read(notebook).cells:
            is_check = cell.cell_type == "code" and cell.source.startswith("check(")
            assert ("raises-exception" in cell.metadata.get("tags", [])) >= is_check, cell.id


def test_what_a_student_s_makefile_offers_is_there(unpacked: Path) -> None:
    done = subprocess.run(
        ["make", "help"], cwd=unpacked, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["make", "lab", "open", "JupyterLab", "on", "the", "assignments"]


def test_releasing_says_that_this_is_a_students_copy(unpacked: Path) -> None:
    code = "import tools.release as release; print(release.main([]))"
    assert "this is a student's copy of the course" in run(unpacked, "-c", code)


def test_the_command_releases_and_packs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out" / "class.zip"
    handout.command(handout.parser().parse_args(["--to", str(target)]))
    assert "without solutions" in capsys.readouterr().out
    with zipfile.ZipFile(target) as archive:
        assert "class/exercises/erm/erm.ipynb" in archive.namelist()
        assert not [name for name in archive.namelist() if "solutions" in name]
    assert [path.name for path in target.parent.iterdir()] == ["class.zip"]


def test_make_clean_leaves_work_and_what_a_class_handed_in(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    stays = ["work/erm/erm.ipynb", "build/submitted/ada/erm/erm.ipynb", "build/gradebook.db"]
    goes = ["build/pages/erm.json", "_build/html/index.html", "build/stamps.json"]
    for name in [*stays, *goes, *(f"{one}/x.py" for one in ("book", "src", "tests", "tools"))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    done = subprocess.run(
        ["make", "clean"], cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert [name for name in stays + goes if (tmp_path / name).exists()] == stays
    assert "Kept in build/: gradebook.db submitted" in done.stdout
