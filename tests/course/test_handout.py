"""What students get: notebooks that open and check themselves, and nothing of the solutions."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import packages_distributions

import pytest
from hang import HANG
from packaging.utils import canonicalize_name
from toy_course import edited, use

from tools import notebooks
from tools.classroom import answers, handout, lab, release, submit
from tools.layout import RECORD, ROOT, Course
from tools.site import live
from tools.site.inpage import parts
from tools.terminal import ToolError


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """Return the folder that a student has after unpacking."""
    folder = tmp_path_factory.mktemp("student")
    handout.pack(Course(ROOT), folder / "course.zip")
    assert [path.name for path in folder.iterdir()] == ["course.zip"]
    shutil.unpack_archive(folder / "course.zip", folder)
    return folder / "course"


def test_the_handout_is_complete_without_solutions(unpacked):
    assert sorted(path.name for path in unpacked.iterdir()) == [
        "LICENSE", "Makefile", "README.md", "_toc.yml", "exercises", "handin.json",
        "nbgrader_config.py", "pyproject.toml", "requirements.txt", "src", "tools",
    ]  # fmt: skip
    offered = subprocess.check_output(["make", "help"], cwd=unpacked, text=True)
    assert re.findall(r"^make (\w+)", offered, re.M) == ["lab", "submit"]
    for topic in Course(ROOT).topics():
        for name in Course(ROOT).notebooks(topic):
            notebook = unpacked / "exercises" / topic / f"{name}.ipynb"
            assert notebook.read_bytes() == Course(ROOT).released(topic, name).read_bytes()
            hidden = release._secret_lines(notebooks.read(Course(ROOT).source(topic, name)))
            assert hidden
            assert not {line.strip() for line in notebook.read_text().splitlines()} & {*hidden}
            for cell in notebooks.read(notebook).cells:  # Run All goes on after a failed check
                if cell.cell_type == "code" and cell.source.startswith("check("):
                    assert release.GO_ON in cell.metadata.tags, cell.id
    texts = [path.read_text() for path in (unpacked / "exercises").rglob("*.*")]
    assert not [secret for secret in release.SECRETS if any(secret in text for text in texts)]


def test_students_install_what_their_code_imports(unpacked):
    pins = (unpacked / "requirements.txt").read_text("utf-8").splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in pins}
    imported = {
        name.partition(".")[0]
        for folder in ("src/optdl", "tools")
        for path in (unpacked / folder).rglob("*.py")
        for name in live.named(path.read_text("utf-8"))
    }
    owners = {
        name: {*map(canonicalize_name, owners)}
        for name, owners in packages_distributions().items()
        if name in imported - {"gradebox", "optdl"}
    }
    assert owners.keys() >= {"numpy", "torch", "nbgrader"}
    assert {name for name, some in owners.items() if not some & pinned} == set()
    assert not {"sphinx", "pytest", "playwright"} & pinned


def test_make_clean_keeps_work_and_submissions(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    stays = ["work/erm/erm.ipynb", "build/submitted/ada/erm/erm.ipynb", "build/gradebook.db"]
    stays += ["build/gradebox/releases/erm.json"]
    goes = ["build/gradebox/erm.json", "build/pages/erm.json", "_build/html/index.html"]
    goes += ["build/fingerprints.json"]
    folders = ("book", "exercises", "solutions", "src", "tests", "tools")
    for name in [*stays, *goes, *(f"{folder}/x.py" for folder in folders)]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    output = subprocess.check_output(["make", "clean"], cwd=tmp_path, text=True, timeout=HANG)
    assert [name for name in stays + goes if (tmp_path / name).exists()] == stays
    assert "Kept in build/: gradebook.db submitted" in output


# --- handing in


@pytest.mark.parametrize("how", ["upload", "exchange", "hub"])
def test_handout_follows_the_way_to_hand_in(small, tmp_path, monkeypatch, how):
    # what else is in it takes long to find
    monkeypatch.setattr(handout, "_pins", str)
    config = small.root / "nbgrader_config.py"
    monkeypatch.setattr(handout, "_content", lambda course: [(config.name, config)])
    handout.pack(small, tmp_path / "handout.zip", how=how, called="student number")
    shutil.unpack_archive(tmp_path / "handout.zip", tmp_path)
    course = Course(tmp_path / "handout")
    readme = (course.root / "README.md").read_text("utf-8")
    assert handout.instructions(small, how, "student number") in readme
    assert lab.submission_method(course)["text"] in readme.replace("`", "")
    lab.settings(course)
    page = course.build / "jupyter" / "config" / "labconfig" / "page_config.json"
    off = {name.partition(":")[2] for name in json.loads(page.read_text())["disabledExtensions"]}
    menu = {*lab.OF_THE_EXCHANGE} if how == "upload" else set()
    assert off == {"announcements", *lab.FOR_INSTRUCTORS} | menu
    with pytest.raises(ToolError, match="a student's copy"):
        use(release, course)


SESSION = """
import os
from tools.classroom import lab, submit
lab._serve = lambda *_: print(*sorted(os.listdir("work")))
lab.main("--no-browser")
{setup}
def standard_error(sigma, n, population=None): return sigma / n
try: check('L1-07', standard_error)
except AssertionError as error: print(error)
summary()
print("handing in")
submit.main()
"""
"""What a student's commands do, and a notebook's first cell between them, in one process."""


def test_student_opens_checks_and_submits_work(unpacked):
    course = Course(unpacked)
    lab.copy_for_work(course, "erm")
    right = notebooks.named(notebooks.read(Course(ROOT).source("erm")))
    mine = {
        name: answers.right(right[name].source)
        for name in ("erm-risk-estimate", "erm-early-stopping")
    }
    mine |= {
        "erm-early-stopping-visible": "assert False",
        "erm-standard-error": "def standard_error(sigma, n, population=None):\n"
        "    factor = 1 if population is None else np.sqrt((population - n) / (population - 1))\n"
        "    return factor * sigma / n",
        "erm-minibatches": "def minibatches(m, n, rng:\n    return",
        "erm-question": "Because.",
    }
    with edited(course.work / "erm" / "erm.ipynb") as notebook:
        [setup] = [cell.source for cell in notebook.cells if "import check" in cell.source]
        for cell in notebook.cells:
            cell.source = mine.get(cell.id, cell.source)
    (course.work / "erm" / "own.txt").write_text("mine")
    begun = (course.work / "erm" / "erm.ipynb").read_bytes()

    # with the code that lies in the student's folder
    environment = os.environ | {"PYTHONPATH": str(unpacked / "src")}
    output = subprocess.run(
        [sys.executable, "-c", SESSION.format(setup=setup)],
        cwd=unpacked, env=environment, input="ada\n", capture_output=True, text=True, timeout=HANG,
        check=True,
    ).stdout  # fmt: skip
    told, _, results = output.partition("handing in\n")
    assert re.search("^How to hand in: .*make submit", told, re.M)
    assert "formgrader" not in told
    assert " ".join(sorted(course.topics())) in told  # all of it is there before the server starts
    for topic in {*course.topics()} - {"erm"}:
        released = course.released(topic).read_bytes()
        assert (course.work / topic / f"{topic}.ipynb").read_bytes() == released
    assert "✗ standard_error: not right yet" in told
    assert "make submit" in told.splitlines()[-1]

    with zipfile.ZipFile(course.work / "ada-erm.zip") as archive:
        assert archive.namelist() == ["erm/erm.ipynb"]
        assert archive.read("erm/erm.ipynb") == begun
    text = " ".join(results.split())  # a narrow terminal breaks lines
    signs = {int(number): sign for sign, number in re.findall(r" ([✓✗–·]) (\d+) · ", text)}
    assert signs == dict.fromkeys(range(1, 12), "–") | {1: "✓", 5: "✓", 7: "✗", 9: "✗", 12: "·"}
    cause = "your standard error divides by n; it is σ / √n."
    assert f"✗ 7 · How noisy is a minibatch? {cause}" in text
    assert re.search(r"✗ 9 · [^✗–✓]* SyntaxError: [^✗–✓]*\(line 1\)", text)
    assert "changed or deleted checks of: 5 · When do you stop?" in text


def test_labs_and_damaged_work_are_packed(unpacked, printed):
    course = Course(unpacked)
    for topic in ("bnp", "quadratic"):
        lab.copy_for_work(course, topic)
    for name in (RECORD, "run.pt"):
        (course.work / "bnp" / name).write_text("{}")
    names = ["bnp/bnp.ipynb", "bnp/lab.ipynb", "bnp/record.json"]
    assert submit.pack(course, "bnp", "ada")[1] == names
    (course.work / "quadratic" / "quadratic.ipynb").write_text("{")
    use(submit, course, "quadratic", "--id", "ben")
    assert "quadratic.ipynb is no JSON" in printed()
    assert (course.work / "ben-quadratic.zip").is_file()


@pytest.mark.parametrize("name", ["", "../ada", "ada lovelace", "-ada"])
def test_invalid_user_name_is_refused(unpacked, monkeypatch, name):
    monkeypatch.setattr("builtins.input", lambda: name)
    (unpacked / "work" / submit.STUDENT).unlink(missing_ok=True)
    with pytest.raises(ToolError, match="is no user name that a course can have"):
        submit.identify(Course(unpacked), "", "user name")


def test_pages_contain_no_labs(tmp_path):
    parts.install(tmp_path, None)
    installed = {path.stem for path in tmp_path.glob("_static/python/notebooks/*")}
    assert installed == {*Course(ROOT).topics()}
    modules = json.loads(parts.course())
    assert {"optdl/erm/__init__.py", "session.py"} < modules.keys()
    assert not [name for name in modules if re.search("lab|training|experiments", name)]
