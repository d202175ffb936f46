"""What students get: notebooks that open and check themselves, and nothing of the solutions."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hang import HANG
from packaging.utils import canonicalize_name
from test_course import make_course

from optdl.checks import catalog
from tools import (
    answers,
    collect,
    handout,
    lab,
    notebooks,
    release,
    roster,
    submission_method,
    submit,
)
from tools.layout import RECORD, ROOT, Course
from tools.terminal import ToolError

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


def run(folder: Path, *arguments: str, typed: str = "") -> str:
    """Run Python in a student's folder, with the code that lies there."""
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env=environment, input=typed, capture_output=True, text=True, timeout=HANG,
        check=True,
    )  # fmt: skip
    return done.stdout


def test_there_is_all_for_students_and_nothing_else(unpacked: Path) -> None:
    assert sorted(path.name for path in unpacked.iterdir()) == [
        "LICENSE", "Makefile", "README.md", "_toc.yml", "exercises", "handin.json",
        "nbgrader_config.py", "pyproject.toml", "requirements.txt", "src", "tools",
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
    said = run(unpacked, "-c", "\n".join(["".join(setup["source"]), answer, tried, "summary()"]))
    assert "✗ L1-07 standard_error: not right yet" in said
    assert said.splitlines()[-1].endswith("make submit. On Windows type "
                                          ".venv\\Scripts\\python -m tools.submit.")  # fmt: skip


def test_students_install_what_they_import_and_no_builder_of_sites(unpacked: Path) -> None:
    all_pins, pins = (
        {
            canonicalize_name(line.partition("==")[0])
            for file in files
            for line in file.read_text("utf-8").splitlines()
        }
        for files in (ROOT.glob("requirements*.txt"), [unpacked / "requirements.txt"])
    )
    assert pins < all_pins
    missing = [
        name
        for name, owners in packages_distributions().items()
        if {canonicalize_name(owner) for owner in owners} <= all_pins - pins
    ]
    code = (
        "import importlib, pkgutil\n"
        "from importlib.machinery import PathFinder\n"
        "find = PathFinder.find_spec\n"
        f"missing = {missing}\n"
        "PathFinder.find_spec = lambda name, *others: (\n"
        "    None if name.partition('.')[0] in missing else find(name, *others))\n"
        "import optdl, tools.lab, tools.submit, jupyterlab.labapp, nbgrader.server_extensions\n"
        "for one in pkgutil.walk_packages(optdl.__path__, 'optdl.'):\n"
        "    importlib.import_module(one.name)"
    )
    assert {"sphinx", "pytest", "playwright"} <= {*missing}
    run(unpacked, "-c", code)


def test_running_all_cells_goes_on_after_a_check_that_fails(unpacked: Path) -> None:
    for notebook in sorted((unpacked / "exercises").glob("*/*.ipynb")):
        for cell in notebooks.read(notebook).cells:
            is_check = cell.cell_type == "code" and cell.source.startswith("check(")
            assert ("raises-exception" in cell.metadata.get("tags", [])) >= is_check, cell.id


def test_what_a_student_s_makefile_offers_is_there(unpacked: Path) -> None:
    done = subprocess.run(
        ["make", "help"], cwd=unpacked, capture_output=True, text=True, check=True
    )
    assert re.findall(r"^make (\w+)", done.stdout, re.M) == ["lab", "submit"]


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


@pytest.mark.parametrize(
    ("header", "more", "is_said"),
    [
        ("First name,ID number", [], True),
        ("First name,ID number", ["--id", "student number"], False),
        ("First name,Username", [], False),
    ],
)
def test_the_command_says_what_students_would_not_know(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], header: str, more: list[str], is_said: bool
) -> None:
    course = make_course(tmp_path)
    (tmp_path / "class.csv").write_text(f"{header}\nAda,s1\nBen,s2\n")
    roster.command(roster.parser().parse_args([str(tmp_path / "class.csv"), "--yes"]), course)
    handout.command(handout.parser().parse_args(more), course)
    assert ("those of its column ID number" in capsys.readouterr().out) == is_said


def test_make_clean_leaves_work_and_what_a_class_handed_in(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    stays = ["work/erm/erm.ipynb", "build/submitted/ada/erm/erm.ipynb", "build/gradebook.db"]
    goes = ["build/pages/erm.json", "_build/html/index.html", "build/fingerprints.json"]
    for name in [*stays, *goes, *(f"{one}/x.py" for one in ("book", "src", "tests", "tools"))]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    done = subprocess.run(
        ["make", "clean"], cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False
    )
    assert [name for name in stays + goes if (tmp_path / name).exists()] == stays
    assert "Kept in build/: gradebook.db submitted" in done.stdout


# --- handing in


@pytest.mark.parametrize(
    ("how", "said", "has_menu"),
    [
        ("upload", "asks for your student number", False),
        ("exchange", "press Submit", True),
        ("hub", "sign in", True),
    ],
)
def test_the_readme_and_jupyterlab_offer_the_way_of_this_class(
    tmp_path: Path, how: str, said: str, has_menu: bool
) -> None:
    handout.pack(Course(ROOT), tmp_path / "course.zip", way=handout.Way(how, "student number"))
    with zipfile.ZipFile(tmp_path / "course.zip") as archive:
        readme = archive.read("course/README.md").decode()
        for name in ("handin.json", "nbgrader_config.py"):
            archive.extract(f"course/{name}", tmp_path)
    course = Course(tmp_path / "course")
    assert said in readme
    assert submission_method.chosen(course)["text"] in readme.replace("`", "")
    lab.settings(course)
    page = course.build / "jupyter" / "config" / "labconfig" / "page_config.json"
    off = {name.partition(":")[2] for name in json.loads(page.read_text())["disabledExtensions"]}
    assert ({"menu", "assignment-list"} & off == set()) == has_menu
    assert "validate-assignment" not in off


def test_an_exchange_that_students_do_not_share_is_refused() -> None:
    with pytest.raises(ToolError, match="students do not share the exchange"):
        handout.command(handout.parser().parse_args(["--how", "exchange"]))


@pytest.fixture(scope="module")
def handed_in(unpacked: Path) -> tuple[str, Path]:
    """Return what a student is told who hands in a part of an assignment, and the zip."""
    course = Course(unpacked)
    lab.copy_for_work(course, "erm")
    path, source = course.work / "erm" / "erm.ipynb", notebooks.read(Course(ROOT).source("erm"))
    notebook = notebooks.read(path)
    mine: dict[str, Any] = {cell.id: cell for cell in notebook.cells}
    for name in ("erm-risk-estimate", "erm-early-stopping"):
        [right] = [cell.source for cell in source.cells if cell.id == name]
        mine[name].source = answers.right(right)
    mine["erm-early-stopping-visible"].source = "assert False"
    mine["erm-standard-error"].source = (
        "def standard_error(sigma, n, population=None):\n"
        "    factor = 1 if population is None else np.sqrt((population - n) / (population - 1))\n"
        "    return factor * sigma / n"
    )
    mine["erm-minibatches"].source = "def minibatches(m, n, rng:\n    return"
    mine["erm-question"].source = "Because."
    path.write_bytes(notebooks.to_bytes(notebook))
    (path.parent / "own.txt").write_text("mine")
    return run(unpacked, "-m", "tools.submit", typed="ada\n"), course.work / "ada-erm.zip"


def test_submitting_says_what_agrees_fails_and_is_missing(handed_in: tuple[str, Path]) -> None:
    said = handed_in[0]
    signs = re.findall(r"^ *(\S) +(L1-\S+)", said, re.MULTILINE)
    blank = {exercise.key: "–" for exercise in catalog.blocks("erm").values()}
    answered = {"L1-01": "✓", "L1-05": "✓", "L1-07": "✗", "L1-09": "✗"}
    assert {key: sign for sign, key in signs} == blank | answered
    text = " ".join(said.split())  # a narrow terminal breaks lines
    assert "✗ L1-07 standard_error your standard error divides by n; it is σ / √n." in text
    assert re.search(r"✗ L1-09 \w+ SyntaxError: [^✗–✓]*\(line 1\)", text)
    assert re.search(r" · \d+ · In your own words in words", text)
    assert "changed or deleted: erm-early-stopping-visible" in said


def test_the_zip_holds_the_notebook_as_it_is_and_nothing_of_the_student_s_own(
    unpacked: Path, handed_in: tuple[str, Path]
) -> None:
    with zipfile.ZipFile(handed_in[1]) as archive:
        assert archive.namelist() == ["erm/erm.ipynb"]
        assert archive.read("erm/erm.ipynb") == (unpacked / "work/erm/erm.ipynb").read_bytes()


def test_a_lab_is_packed_with_its_record(unpacked: Path) -> None:
    course = Course(unpacked)
    lab.copy_for_work(course, "bnp")
    for name in (RECORD, "run.pt"):
        (course.work / "bnp" / name).write_text("{}")
    assert submit.pack(course, "bnp", "ada")[1] == [
        "bnp/bnp.ipynb", "bnp/lab.ipynb", "bnp/record.json",
    ]  # fmt: skip


def test_a_notebook_that_nobody_can_read_is_packed_all_the_same(
    unpacked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = Course(unpacked)
    lab.copy_for_work(course, "quadratic")
    (course.work / "quadratic" / "quadratic.ipynb").write_text("{")
    submit.command(submit.parser().parse_args(["quadratic", "--id", "ben"]), course)
    said = capsys.readouterr().out
    assert "quadratic.ipynb is no JSON; save it anew in Jupyter" in said
    assert "it cannot be graded" in said
    assert (course.work / "ben-quadratic.zip").is_file()


def test_the_zip_is_what_is_taken_in_from_a_platform(
    tmp_path: Path, handed_in: tuple[str, Path]
) -> None:
    outer = BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.write(handed_in[1], "Ada Lovelace_501_assignsubmission_file_/ada-erm.zip")
    (tmp_path / "all.zip").write_bytes(outer.getvalue())
    [(sender, parcel)] = collect.sort(tmp_path / "all.zip", {})[0].items()
    assert sender.name == "Ada Lovelace"
    chosen, why = collect.choose(Course(ROOT), "erm", parcel)
    assert (list(chosen), why) == (["erm.ipynb"], "")


@pytest.mark.parametrize("name", ["", "../ada", "ada lovelace", "-ada"])
def test_a_name_that_a_class_list_cannot_have_is_refused(
    unpacked: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("builtins.input", lambda: name)
    (unpacked / "work" / submit.STUDENT).unlink(missing_ok=True)
    with pytest.raises(ToolError, match="is no user name that a course can have"):
        submit.identify(Course(unpacked), "", "user name")
