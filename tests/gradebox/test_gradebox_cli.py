"""``gradebox grade`` writes what nbgrader writes, loses nothing and stops for nobody."""

import ast
import contextlib
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from courses import Assignment
from hang import HANG
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook
from small_course import (
    DIES,
    a_class,
    five,
    grade,
    hand_in,
    is_due,
    pages,
    points,
    reported,
    sentences,
    stumbling,
    wait_until,
)

from benchmarks.gradebooks import rows, url
from gradebox import cli
from gradebox.files import read_files
from gradebox.nbgrader.course import Course, packages
from gradebox.run import batch, intake, store
from gradebox.workers.syntax import python_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox_course"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork"),
]


def test_scores_comments_and_pages_are_nbgraders(course: Path, tmp_path: Path) -> None:
    a_class(course)
    stock = tmp_path / "stock"
    shutil.copytree(course, stock)
    Assignment(stock, "toy").autograde()
    assert grade() == 0
    assert len(points(course)) == 6 * 4
    assert rows(url(course)) == rows(url(stock))
    ours, theirs = pages(course), pages(stock)
    # a sealed notebook writes to a copy of its folder: what it makes is gone with it
    theirs = {name: page for name, page in theirs.items() if not name.endswith("made.txt")}
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert ours[name] == theirs[name], name
    expected = {("right", "test"): "3.0", ("right", "part"): "0.5", ("edits", "test"): "0.0"}
    assert expected.items() <= points(course).items()
    penalties = {row[1]: row[3] for row in rows(url(course))["notebooks"] if row[0] == "late"}
    assert penalties == {"toy": "3.5", "two": "5.0"}


def test_what_happened_is_reported(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_class(course)
    stumbling(course)
    hand_in(course, "dies", "import os; os._exit(1)")
    hand_in(course, "slow", "while True: pass")
    hand_in(course, "object", "return object()")
    hand_in(course, "renames", None, answer="def doubled(x): return 2 * x")
    hand_in(course, "syntax", "return return")
    assert grade("--timeout", "1") == 0
    said = sentences(course)
    assert said["right"] == []
    partly = "two.ipynb was not handed in"
    assert said["blank"] == said["raises"] == [partly]
    assert said["edits"] == ["the text of cell test was changed; it was put back", partly]
    assert said["deletes"] == [partly, "cell test was missing; it was put back"]
    assert said["copies"] == ["cell test is there twice; the last one counts", "1 cell was added"]
    assert said["adds"] == ["cell mine is none of the assignment's", "1 cell was added"]
    assert said["late"] == ["handed in 1 hour late", "8.5 points taken off for being late"]
    assert said["dies"] == ["test: a call by the test ended Python"]
    assert said["slow"] == [
        f"{name}: a call by the test took too long" for name in ("test", "part")
    ]
    assert said["object"][0].startswith("test: `double` returns an object: only values cross")
    renamed = "the function `double` was not found; was it renamed to `doubled`?"
    assert said["renames"] == [renamed]
    assert said["syntax"] == ["answer: the cell has a syntax error"]
    assert [points(course)[student, "test"] for student in ("copies", "adds")] == ["3.0"] * 2
    out = capsys.readouterr().out
    assert "Graded 13, unchanged 0, to look at 8, failed 0." in out
    assert "A blank notebook gets points of two/two-test." in out


def test_cells_before_a_death_keep_their_points(course: Path) -> None:
    hand_in(course, "dies", part="import os; os._exit(1)", start="")
    nb = nbformat.read(course / "submitted/dies/toy/toy.ipynb", as_version=4)
    nb.cells.append(new_code_cell("import os; os._exit(1)"))
    nbformat.write(nb, course / "submitted/dies/toy/toy.ipynb")
    assert grade() == 0
    assert points(course)["dies", "test"] == "3.0"


def faulty(root: Path, secret: Path) -> dict[str, str]:
    """Hand in what cannot be graded; return what each is told."""
    (hand_in(root, "json") / "toy.ipynb").write_text('{"cells": [')
    folder = hand_in(root, "link")
    (folder / "toy.ipynb").unlink()
    (folder / "toy.ipynb").symlink_to(root / "source/toy/toy.ipynb")
    folder = hand_in(root, "zero")
    (folder / "data.bin").symlink_to("/dev/zero")
    (hand_in(root, "below") / "folder").symlink_to(secret.parent)
    folder = hand_in(root, "pipe")
    (folder / "toy.ipynb").unlink()
    os.mkfifo(folder / "toy.ipynb")
    os.mkfifo(hand_in(root, "pipe2") / "beside")
    folder = hand_in(root, "folder")
    (folder / "toy.ipynb").unlink()
    (folder / "toy.ipynb").mkdir()
    with (hand_in(root, "large") / "toy.ipynb").open("wb") as file:
        file.truncate(intake.LARGEST + 1)
    folder = hand_in(root, "name")
    (folder / "toy.ipynb").rename(folder / "Toy (1).ipynb")
    (folder / "two.ipynb").unlink()
    (root / "submitted/empty/toy").mkdir(parents=True)
    (root / "submitted/file").mkdir()
    (root / "submitted/file/toy").write_text("x")
    (root / "submitted/elsewhere").mkdir()
    (root / "submitted/elsewhere/toy").symlink_to(root / "source/toy")
    (hand_in(root, "time") / "timestamp.txt").write_text("yesterday, honestly")
    return {
        "json": "no JSON",
        "link": "toy.ipynb is a link",
        "zero": "data.bin is a link",
        "below": "folder is a link",
        "pipe": "toy.ipynb is a pipe",
        "pipe2": "beside is a pipe",
        "folder": "toy.ipynb is a folder",
        "large": "more than 50 MB",
        "name": "expected toy.ipynb or two.ipynb, got Toy (1).ipynb",
        "empty": "got nothing",
        "file": "expected a folder, got a plain file",
        "elsewhere": "expected a folder, got a link",
        "time": "holds no time",
    }


def test_what_cannot_be_graded_is_told_and_the_rest_is_graded(
    course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = faulty(course, tmp_path / "secret.txt")
    hand_in(course, "a-right")
    hand_in(course, "z-right")
    assert grade() == 1
    outcomes = reported(course)
    for name, why in expected.items():
        assert outcomes[name]["state"] == "failed", name
        assert why in outcomes[name]["why"], (name, outcomes[name])
    assert {student for student, _ in points(course)} == {"a-right", "z-right"}
    assert f"graded 2, unchanged 0, to look at 0, failed {len(expected)}" in (
        capsys.readouterr().out.lower()
    )
    assert sorted(path.name for path in (course / "autograded").iterdir()) == ["a-right", "z-right"]


DEATHS = {
    "before a result is renamed": ("pathlib.Path", "rename", 2),
    "among the scores": ("gradebox.run.batch.Batch", "_write", 2),
    "before the commit": ("sqlalchemy.orm.Session", "commit", 5),
    "after the commit": ("gradebox.run.store.Store", "drop_others", 2),
    "before the report": ("gradebox.run.report", "write", 1),
}


@pytest.fixture(scope="module")
def expected(released: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return the scores and pages of a run that nothing stopped."""
    root = tmp_path_factory.mktemp("whole") / "course"
    shutil.copytree(released, root)
    five(root)
    with contextlib.chdir(root):
        assert grade() == 0
    return rows(url(root)), pages(root)


@pytest.mark.parametrize(
    "death",
    [
        pytest.param(death, id=name, marks=[] if name == "before the commit" else pytest.mark.slow)
        for name, death in DEATHS.items()
    ],
)
def test_a_killed_run_goes_on_where_it_stopped(
    course: Path, expected: tuple[Any, Any], death: tuple[str, str, int]
) -> None:
    five(course)
    command = [sys.executable, "-c", DIES, *map(str, death)]
    died = subprocess.run(command, cwd=course, capture_output=True, timeout=HANG, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    for pid in map(int, died.stdout.splitlines()[-1].split()):
        wait_until(lambda pid=pid: not psutil.pid_exists(pid))
    found = rows(url(course))
    assert len(found["grades"]) == 4 * len(found["submissions"])
    assert {*found["grades"]} <= {*expected[0]["grades"]}
    done = {path.parent.name for path in (course / ".gradebox/results/toy").glob("*/*")}
    executed: list[str] = []
    make = batch.Batch._make

    def counted(self: Any, submission: Any, key: str) -> Path:
        executed.append(submission.student)
        return make(self, submission, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch.Batch, "_make", counted)
        assert grade() == 0
    assert sorted(executed) == sorted({f"s{number}" for number in range(5)} - done)
    assert (rows(url(course)), pages(course)) == expected
    assert not list((course / ".gradebox/work").glob("*"))


def test_what_did_not_change_is_left_alone(
    course: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    five(course)
    folder = hand_in(course, "edits", test="pass")
    assert grade() == 0
    events = reported(course)["edits"]["events"]
    before = pages(course)
    capsys.readouterr()

    def forbidden(*_: Any) -> None:
        raise AssertionError("it was executed again")

    with monkeypatch.context() as patch:
        patch.setattr(batch.Batch, "_make", forbidden)
        assert grade() == 0
        assert "Graded 0, unchanged 6, to look at 1, failed 0." in capsys.readouterr().out
        assert reported(course)["edits"] == {"state": "unchanged", "events": events, "why": ""}
        # a page that is gone is made again from what was kept
        shutil.rmtree(course / "autograded/s1/toy")
        assert grade() == 0
        assert "Graded 1, unchanged 5" in capsys.readouterr().out
        assert pages(course) == before
        # so are the penalties of a due date that was changed
        is_due(url(course), "2025-01-02")
        assert grade() == 0
        assert "Graded 6, unchanged 0" in capsys.readouterr().out
        assert grade("--timeout", "9") == 1, "other limits are another execution"
    assert grade("--no-resume") == 0
    assert "Graded 6, unchanged 0" in capsys.readouterr().out
    shutil.rmtree(folder)
    hand_in(course, "edits", "return 0")
    assert grade() == 0
    assert "Graded 1, unchanged 5" in capsys.readouterr().out
    assert len(list((course / ".gradebox/results/toy/edits").iterdir())) == 1
    (folder / "toy.ipynb").write_text("broken")
    assert grade() == 1
    assert "the work handed in before" in reported(course)["edits"]["why"]


def test_a_score_given_by_hand_is_kept(course: Path) -> None:
    hand_in(course, "right", words="Because.")
    assert grade() == 0
    with Gradebook(url(course), "toy") as book:
        book.find_grade("words", "toy", "toy", "right").manual_score = 1.5
        book.db.commit()
    assert grade("--no-resume") == 0
    [row] = [row for row in rows(url(course))["grades"] if row[2] == "words"]
    assert (row[3], row[4], row[6]) == ("None", "1.5", "1.0")


def test_only_those_named_are_graded(course: Path) -> None:
    five(course)
    assert grade("--student", "s1", "--student", "s[34]") == 0
    assert {student for student, _ in points(course)} == {"s1", "s3", "s4"}


def test_a_notebook_is_tried_once_it_is_handed_in(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(course / ".gradebox" / "dry-run")
    (hand_in(course, "first") / "two.ipynb").unlink()
    assert grade() == 0
    tried = course / ".gradebox" / "dry-run" / "toy"
    assert [path.name for path in tried.iterdir()] == ["toy.json"]
    hand_in(course, "second")
    assert grade() == 0
    assert {path.name for path in tried.iterdir()} == {"toy.json", "two.json"}
    # the first has the same score still
    assert "Graded 1, unchanged 1," in capsys.readouterr().out


def test_files_that_a_notebook_left_are_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/small").write_text("12")
    (tmp_path / "large").write_text("123")
    (tmp_path / "link").symlink_to(__file__)
    (tmp_path / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "given").write_text("from the instructor")
    (tmp_path / "below").chmod(0)
    found = read_files(tmp_path, 2, {"given"})
    assert found == ({"below/small": b"12"}, ["large"])


def test_two_runs_do_not_meet(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hand_in(course, "s1")
    with store.Store(course / ".gradebox", "toy").locked():
        assert grade() == 2
    assert "another run" in capsys.readouterr().err
    assert grade() == 0


def test_what_a_notebook_leaves_behind_is_no_trap(course: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    secret.chmod(0o600)
    hand_in(
        course,
        "trap",
        start=f"import os\nos.symlink({str(secret)!r}, 'link')\nos.mkfifo('pipe')\n"
        f"os.symlink({str(tmp_path)!r}, 'folder')\nos.makedirs('closed/below')\n"
        "os.chmod('closed', 0)",
    )
    assert grade() == 0
    names = {path.name for path in (course / "autograded/trap/toy").iterdir()}
    left = {"toy.ipynb", "two.ipynb", "data.txt"}
    # where a notebook is sealed its links and folders are gone with its copy of the folder
    assert left <= names <= left | {"made.txt", "closed"}
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["grade", "none"], "nobody has handed in 'none'"),
        (["grade", "toy", "--student", "x"], "nobody of these has handed in"),
        (["grade", "late"], "try: nbgrader generate_assignment late"),
    ],
)
def test_what_is_not_ready_is_told(
    course: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    (course / "submitted/s1/late").mkdir(parents=True)
    assert cli.main(arguments) == 2
    assert says in capsys.readouterr().err


def test_elsewhere_there_is_no_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["grade", "toy"]) == 2
    assert "go to the folder of a course" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", ""])
def test_numbers_are_checked(text: str) -> None:
    with pytest.raises(SystemExit):
        cli.main(["grade", "toy", f"--jobs={text}"])


def test_the_configuration_reaches_every_step(course: Path) -> None:
    with (course / "nbgrader_config.py").open("a") as file:
        file.write('c.WarmExecute.imports = ["json"]\nc.LimitOutput.max_lines = 7\n')
    chain = Course(course, "toy", 3).chain()
    assert (chain.execute.imports, chain.execute.timeout) == (["json"], 3)
    assert [step.max_lines for step in chain.after if hasattr(step, "max_lines")] == [7]


def test_a_change_of_the_course_asks_to_grade_anew(course: Path) -> None:
    (course / "package").mkdir()
    (course / "package/code.py").write_text("1")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write('c.Gradebox.depends = ["package"]\n')
        # the dry run has the file, though no submission gets it
        file.write('c.Autograde.exclude_overwriting = {"toy": ["data.txt"]}\n')
    opened = Course(course, "toy")

    def basis() -> str:
        return opened.basis(opened.chain(), "")

    first = basis()
    assert basis() == first
    (course / "package/code.py").write_text("2")
    second = basis()
    (course / "source/toy/data.txt").write_text("other data")
    assert len({first, second, basis()}) == 3


def test_the_versions_of_packages_are_those_of_their_metadata() -> None:
    found = packages()
    for name in ("numpy", "nbgrader", "jupyter_client", "torch"):
        assert found[name] == importlib.metadata.version(name)
    assert len(found) > 100


def test_threads_take_turns_at_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, parsing = 0, [0], ast.parse

    def slow(*args: Any) -> ast.Module:
        nonlocal at_once
        at_once += 1
        most.append(at_once)
        time.sleep(0.02)
        tree = parsing(*args)
        at_once -= 1
        return tree

    monkeypatch.setattr(ast, "parse", slow)
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(python_of, ["x = 3"] * 4)] == ["x = 3"] * 4
    assert max(most) == 1
