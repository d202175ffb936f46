"""No submission harms the machine, the gradebook, another student, or its own score.

One batch grades all of them, each bounded by itself, by the grader's limits and by this test's.
"""

import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from courses import wait_until
from hang import HANG
from hostile import course, outcome, table
from hostile.browser import visit, written
from hostile.cases import CASES, GROUPS
from hostile.course import NAME, NOTHING, PASSWORD, POINTS, Work
from hostile.listener import listening

from gradebox_wasm import machine

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("hostile"),
    pytest.mark.usefixtures("namespaces"),
]

HONEST = ["aa-honest", "f-honest", "m-honest", "s-honest", "zz-honest"]
BLANK = ["aa-unanswered", "zz-unanswered"]

SETTINGS = """
c.WarmExecute.imports = ["numpy"]
c.WarmExecute.banned = ["reference.{assignment}"]
c.WarmExecute.max_seconds = 10
c.WarmExecute.max_memory = 256 * 2**20
c.WarmExecute.max_cpu = 20
c.WarmExecute.max_processes = 40
c.WarmExecute.max_disk = 32 * 2**20
c.WarmExecute.max_file_size = 16 * 2**20
c.WarmExecute.max_output = 200_000
"""


@dataclass
class Graded:
    """The class after it was graded in a sandbox."""

    sandbox: str
    root: Path
    run: subprocess.CompletedProcess[str]
    scores: dict[str, dict[str, tuple[Any, ...]]]
    told: dict[str, Any]
    heard: list[str]
    before: dict[str, bytes]
    mark: str

    def points(self, student: str) -> dict[str, float]:
        return {name: self.scores[student][name][0] for name in POINTS}


def grade(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Grade all of the class, within limits."""
    (root / "home").mkdir(exist_ok=True)

    def limit() -> None:  # what the whole run may use, should the barriers fail
        # each instance of WebAssembly sets 4 GiB of addresses aside
        limits = {"AS": (128 if "wasm" in command else 16) * 2**30, "FSIZE": 2**30, "CORE": 0}
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))

    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{root / 'lib'}",
        "GRADER_PASSWORD": PASSWORD,
        "COLUMNS": "200",
    }
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        start_new_session=True,
        timeout=HANG,
        check=False,
    )


def handed_in(root: Path, student: str, build: Any, port: int = 9, mark: str = "x") -> None:
    work = Work(root, student, port, mark)
    build(work)
    work.save()


def files(root: Path) -> dict[str, bytes]:
    """Return all that grading has no business to change."""
    found = {}
    for name in ("nbgrader_config.py", "secret.txt", "source", "release", "submitted", "lib"):
        for path in [root / name, *(root / name).rglob("*")]:
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                small = path.stat().st_size < 2**20
                found[str(path.relative_to(root))] = path.read_bytes() if small else b"large"
    return found


@pytest.fixture(scope="module", params=["kernel", "wasm"])
def graded(request: pytest.FixtureRequest) -> Iterator[Graded]:
    mark = f"mark-{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder, listening(mark) as (port, heard):
        root = Path(folder).resolve() / "course"
        course.create(root, SETTINGS)
        machine.module()  # compiled before, without these limits
        for case in CASES:
            handed_in(root, case.name, case.build, port, mark)
        for students, build in (HONEST, Work.honest), (BLANK, Work.save):
            for student in students:
                handed_in(root, student, build)
        before = files(root)
        run = grade(root, "gradebox", "grade", NAME, "-j", "4", "--sandbox", request.param)
        assert (root / f".gradebox/{NAME}.json").is_file(), run.stderr[-3000:]
        found = outcome.scores(root), outcome.report(root), heard
        yield Graded(request.param, root, run, *found, before, mark)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile_case_gets_expected_scores_and_events(graded, case):
    case = case.of(graded.sandbox)
    told = graded.told[case.name]
    assert not outcome.leaks(graded.root, case.name)
    if case.scores is None:
        assert told["state"] == "failed"
        assert case.why in told["why"]
        assert case.name not in graded.scores
        return
    assert told["state"] == "graded", told
    got = graded.points(case.name)
    assert got == case.scores, told
    taken = sum(got.values()) if case.late else None
    assert {row[1:] for row in graded.scores[case.name].values()} == {(None, None, taken)}
    flags = told["events"]
    may_be = (*case.flags, *case.maybe, "was added", "were added")
    assert not [one for one in flags if not any(part in one for part in may_be)]
    assert not [part for part in case.flags if not any(part in one for one in flags)], flags
    says = outcome.shown(outcome.page(graded.root, case.name))
    for cell, part in case.outputs.items():
        assert part in says[cell], says[cell]


def test_honest_and_blank_submissions_keep_their_points(graded):
    for name in HONEST:
        assert graded.points(name) == POINTS
        assert graded.told[name] == {"state": "graded", "events": [], "why": ""}
    assert [graded.points(name) for name in BLANK] == [NOTHING] * len(BLANK)


def test_hostile_submissions_reach_neither_network_nor_outside_files(graded):
    assert graded.heard == []
    assert files(graded.root) == graded.before
    expected = {"autograded", "gradebook.db", ".gradebox", "home"}
    names = {path.name for path in graded.root.iterdir()}
    assert names - expected == {name.split("/")[0] for name in graded.before}
    assert not (graded.root / "reduced").exists()
    for place in (Path(sys.prefix), Path("/etc"), Path(tempfile.gettempdir())):
        assert not (place / graded.mark).exists()
    for path in sys.path:
        for name in ("sitecustomize", "usercustomize", "numbers"):
            found = Path(path, f"{name}.py")
            assert not found.is_file() or graded.mark not in found.read_text()
    assert not list((graded.root / "home").rglob("startup/00.py"))


def test_gradebook_passes_integrity_checks_and_is_complete(graded):
    with sqlite3.connect(graded.root / "gradebook.db") as book:
        assert book.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert book.execute("PRAGMA foreign_key_check").fetchall() == []
    failed = {case.name for case in CASES if case.scores is None}
    everybody = {case.name for case in CASES} | {*HONEST, *BLANK}
    assert set(graded.scores) == everybody - failed
    assert {len(cells) for cells in graded.scores.values()} == {len(POINTS) + 1}
    assert {row["words"][0] for row in graded.scores.values()} <= {None, 0.0}


def test_no_process_is_left(graded):
    def left() -> list[str]:
        found = []
        for one in psutil.process_iter(["pid", "cmdline", "environ"]):
            text = str((one.info["cmdline"], one.info["environ"]))
            if one.pid != os.getpid() and (graded.mark in text or str(graded.root) in text):
                found.append(text)
        return found

    wait_until(lambda: not left())


def test_report_and_pages_can_be_read(graded):
    texts = [text for one in graded.told.values() for text in [*one["events"], one["why"]]]
    assert all(text.isprintable() for text in texts)
    assert graded.run.stdout.replace("\n", "").isprintable()
    for student in graded.scores:
        path = graded.root / "autograded" / student / NAME / f"{NAME}.ipynb"
        assert path.stat().st_size < 4 * 2**20, student
        assert outcome.page(graded.root, student).cells


def test_student_scripts_do_not_run_in_a_browser(graded, browser):
    pages = list[Path]()
    for case in GROUPS["The instructor's browser"]:
        nb = outcome.page(graded.root, case.name)
        pages += written(graded.root / "home" / case.name, nb)
    assert [each.ran for each in visit(browser, pages)] == [[]] * len(pages)


BY_NBGRADER = (
    *("skip-tags", "copies-tests", "tests-first", "no-metadata", "tests-as-answers", "schema-1"),
    *("equal-to-all", "shows-nan", "exits-in-test", "stderr", "html-output", "words"),
)


def test_nbgrader_autograde_gives_the_same_scores(tmp_path):
    root = tmp_path / "course"
    course.create(root, SETTINGS + "import gradebox\ngradebox.configure(c)\n")
    cases = [case for case in CASES if case.name in BY_NBGRADER]
    for case in cases:
        handed_in(root, case.name, case.build)
    run = grade(root, "nbgrader", "autograde", NAME)
    assert run.returncode == 0, run.stderr[-3000:]
    found = outcome.scores(root)
    for case in cases:
        assert {name: found[case.name][name][0] for name in POINTS} == case.scores, case.name
        nb = outcome.page(root, case.name)
        data = [one.get("data", {}) for cell in nb.cells for one in cell.get("outputs", [])]
        texts = [one.get("text/html", "") for one in data]
        texts += [cell.source for cell in nb.cells if cell.cell_type == "markdown"]
        assert not re.search(r"<(script|img|svg|iframe|details)\b", "".join(texts)), case.name


def test_hostile_table_of_the_book_is_current():
    run_once = {case.name for case in CASES if not case.unrun}
    assert set(table.STOCK) == run_once, "python -m benchmarks.hostile_control"
    assert table.FILE.read_text(encoding="utf-8") == table.render(), "python -m hostile.table"
    pairs = [(case.of("wasm").scores or {}, case.scores or {}) for case in CASES]
    more = [one for one, other in pairs if sum(one.values()) > sum(other.values())]
    assert len(more) == 7
    page = (ROOT / "book/gradebox.md").read_text(encoding="utf-8")
    assert "in WebAssembly seven submissions keep more points" in page
