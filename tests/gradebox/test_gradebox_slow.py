"""On a slow and busy machine honest cells and tests are not ended, and what hangs is."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from notebooks import answer, cell, executed, shown

from gradebox.sandbox.own_time import waits_are_told

pytestmark = pytest.mark.xdist_group("gradebox")
slow_and_sealed = pytest.mark.skipif(
    not waits_are_told(), reason="the system does not tell how long a process waits"
)

PINNED = "import os, time\nos.sched_setaffinity(0, {max(os.sched_getaffinity(0))})\n"
COMPUTES = PINNED + (
    "def computes(seconds):\n"
    "    began, until = time.monotonic(), time.process_time() + seconds\n"
    "    while time.process_time() < until: pass\n"
    "    return time.monotonic() - began"
)


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("way", [(), ("long", "short")], ids=["isolated", "in-process"])
def test_a_test_may_have_a_limit_of_its_own_which_no_student_changes(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    long, short = (cell(name, "assert computes(0.4)", 1) for name in ("long", "short"))
    source = [answer(COMPUTES), *(deepcopy(node) for node in (long, short))]
    source[1].metadata["gradebox"] = {"seconds": 20}
    short.metadata["gradebox"] = {"seconds": 20}  # a student's
    _, run = executed(tmp_path, COMPUTES, long, short, source=source, in_process=way, timeout=0.2)
    assert run.scores == {"long": 1, "short": 0}


@pytest.fixture(scope="module")
def busy() -> Iterator[None]:
    """Keep one processor busy with four processes.

    What computes for 0.25 s there takes 1.25, and a limit of 0.8 is generous: what a process waits
    before its end, unseen by the last look, counts as its own time.
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
def test_honest_work_may_wait_for_a_processor(tmp_path: Path) -> None:
    test, later = cell("test", "assert computes(0.25) > 0.8", 3), cell("later", "assert True", 1)
    waits = "if not (child := os.fork()): computes(0.25), os._exit(7)\nos.wait()[1]"
    handed_in = [COMPUTES, "computes(0.25) > 0.8", waits, test, later]
    cells, run = executed(tmp_path, *handed_in, timeout=0.8, max_seconds=2.0)  # as for 0.5 s
    assert [shown(node) for node in cells[1:3]] == [
        "{'text/plain': 'True'}",
        f"{{'text/plain': '{7 << 8}'}}",
    ]
    assert run.scores == {"test": 3, "later": 1}


HANGS = [
    "while True: pass",
    "time.sleep(9999)",
    # last: these processes go on
    "try:\n    while True: os.fork()\nexcept OSError:\n    while True: pass",
]


@slow_and_sealed
@pytest.mark.usefixtures("busy", "short_limits")
def test_what_hangs_is_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradebox.workers.client.GRACE", 5.0)  # of all these processes together
    later = cell("later", "assert computes(0) < 20", 1)
    later.metadata["gradebox"] = {"seconds": 20}  # beside those processes
    cells, run = executed(tmp_path, COMPUTES, *HANGS, later, timeout=0.2, max_processes=8)
    for node in cells[1:4]:
        assert node.outputs[-1].ename == "CellTimeoutError"
        assert node.outputs[-1].evalue == "longer than 0.2 s"
    assert run.scores == {"later": 1}
