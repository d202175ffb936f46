"""On a slow and busy machine honest cells and tests are not ended, and what hangs is."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from notebooks import cell, executed, shown

from gradebox.sandbox.own_time import _waits_are_told
from gradebox.workers import pool

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.xdist_group("gradebox"),
]
slow_and_sealed = pytest.mark.skipif(
    not _waits_are_told(), reason="the system does not tell how long a process waits"
)

PINNED = "import os, time\nos.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n"
COMPUTES = PINNED + (
    "def computes(seconds):\n    until = time.process_time() + seconds\n"
    "    while time.process_time() < until: pass\n    return seconds"
)


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    """End the fork servers after the tests."""
    yield
    pool.close()


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep one processor busy with four processes.

    What takes half a second there alone takes two and a half, and a limit of two is generous: what
    a process waits before its end, unseen by the last look, counts as its own time.
    """
    source = f"{PINNED}print(1, flush=True)\nwhile True: pass"
    command = [sys.executable, "-c", source]
    others = [
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)  # equal shares
        for _ in range(4)
    ]
    for other in others:
        assert other.stdout is not None
        other.stdout.readline()
    yield
    for other in others:
        other.send_signal(signal.SIGKILL)
        other.communicate()


@slow_and_sealed
@pytest.mark.usefixtures("busy")
def test_an_honest_cell_may_wait_for_a_processor(tmp_path: Path) -> None:
    cells, _ = executed(tmp_path, COMPUTES, "computes(0.5)", timeout=2)
    assert shown(cells[1]) == "{'text/plain': '0.5'}"


@slow_and_sealed
@pytest.mark.usefixtures("busy")
def test_so_may_a_cell_that_waits_for_another_process(tmp_path: Path) -> None:
    waits = f"{COMPUTES}\nif not (child := os.fork()): computes(0.5), os._exit(7)\nos.wait()[1]"
    cells, _ = executed(tmp_path, waits, timeout=2)
    assert shown(cells[0]) == f"{{'text/plain': '{7 << 8}'}}"


@slow_and_sealed
@pytest.mark.usefixtures("busy")
def test_so_may_an_honest_answer(tmp_path: Path) -> None:
    test = cell("test", "assert computes(0.5) == 0.5", 3)
    later = cell("later", "assert computes(0) == 0", 1)
    _, run = executed(tmp_path, COMPUTES, test, later, timeout=2)
    assert run.scores == {"test": 3, "later": 1}


@pytest.mark.parametrize("way", [(), ("long", "short")], ids=["isolated", "in-process"])
def test_a_test_may_have_a_limit_of_its_own_which_no_student_changes(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    long, short = (cell(name, "assert computes(1.5) == 1.5", 1) for name in ("long", "short"))
    source = [deepcopy(node) for node in (long, short)]
    source[0].metadata["gradebox"] = {"seconds": 20}
    short.metadata["gradebox"] = {"seconds": 20}  # a student's
    _, run = executed(tmp_path, COMPUTES, long, short, source=source, in_process=way, timeout=1)
    assert run.scores == {"long": 1, "short": 0}


@slow_and_sealed
@pytest.mark.usefixtures("busy")
def test_all_cells_together_are_limited_in_own_time(tmp_path: Path) -> None:
    cells = [COMPUTES, *["computes(0.3)"] * 3]
    done, _ = executed(tmp_path, *cells, timeout=5, max_seconds=3)
    assert [shown(node) for node in done[1:]] == ["{'text/plain': '0.3'}"] * 3
    done, _ = executed(tmp_path, *cells, *cells[1:] * 3, timeout=5, max_seconds=1)
    assert "all cells together took longer than 1 s" in shown(done[-1])


@slow_and_sealed
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    "hangs",
    [
        "while True: pass",
        "time.sleep(9999)",
        "try:\n    while True: os.fork()\nexcept OSError:\n    while True: pass",
    ],
    ids=["loop", "sleep", "many processes"],
)
def test_what_hangs_is_found_all_the_same(tmp_path: Path, hangs: str) -> None:
    cells, _ = executed(tmp_path, COMPUTES, hangs, "computes(0)", timeout=1, max_processes=15)
    assert cells[1].outputs[-1].ename == "CellTimeoutError"
    assert cells[1].outputs[-1].evalue == "longer than 1 s"
    assert shown(cells[2]) == "{'text/plain': '0'}"
