"""Limits count the time that processes had: what hangs ends, and what only waits goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import pytest
from notebooks import answer, cell, executed, shown

from gradebox.sandbox import own_time
from gradebox.sandbox.own_time import CAP, Deadline, Reading, own_part

BUSY = "while True: pass"
PINNED = "import os, sys, time\n"
if hasattr(os, "sched_setaffinity"):
    PINNED += f"os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n"
pytestmark = pytest.mark.xdist_group("gradebox")
LINUX = pytest.mark.skipif(not own_time.waits_are_told(), reason="no waits are told here")

OWN = [
    (0.0, [0.0], 4.0),  # it sleeps
    (1.0, [1.0], 3.0),  # it does all three
    (0.5, [1.0, 2.0], 1.0),  # two processes that work in turns
    (3.9, [3.5], 3.9),  # many threads that keep one of them waiting
    (9.0, [3.5], 4.0),  # never more than has passed
    (0.0, [4.5], 0.0),  # nor less than nothing
    (0.02, [], 4.0),  # where waits are not told: it sleeps
    (1.5, [], 1.5),  # it computes, and may have waited
    (9.0, [], 4.0),
]


@pytest.mark.parametrize(("computed", "waited", "expected"), OWN)
def test_own_part_excludes_waiting_for_a_processor(computed, waited, expected):
    before = Reading(3.0, ({7: 10.0},) * len(waited) or None)
    after = Reading(3.0 + computed, tuple({7: 10.0 + one} for one in waited) or None)
    assert own_part(4.0, before, after) == pytest.approx(expected)


def test_thread_that_waited_longest_determines_own_part():
    before = Reading(0.0, ({1: 5.0, 2: 0.0},))
    after = Reading(0.0, ({1: 5.5, 2: 1.0, 3: 3.0},))
    assert own_part(4.0, before, after) == 1.0


@pytest.fixture
def start() -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Return a function that starts a program on one and the same processor."""
    started = []

    def begin(source: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", f"{PINNED}print(1, flush=True)\n{source}"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
        started[-1].stdout.readline()
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@LINUX
def test_waiting_for_own_threads_counts(start):
    another = f"threading.Thread(target=exec, args=({BUSY!r},)).start()"
    process = start(f"import threading\nfor _ in range(8): {another}\n{BUSY}")
    own, looked, first = 0.0, time.monotonic(), own_time.read([process.pid])
    before = first
    while before.computed - first.computed < 0.3:
        time.sleep(0.3)  # a wait that is not over at a look is told too late
        now, after = time.monotonic(), own_time.read([process.pid])
        own += own_part(now - looked, before, after)
        before, looked = after, now
    assert own >= 0.8 * (before.computed - first.computed)


def test_ended_process_has_no_measured_time():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert own_time.read([process.pid]).computed == 0.0


FAMILY = """
import threading
reading, writing = os.pipe()
def child():
    os.close(writing)
    os.write(1, f"{os.getpid()}\\n".encode())  # at once: lines do not mix
    os.read(reading, 1)  # until the first process ends
    os._exit(0)
if not os.fork(): os.setsid(), child()
if not os.fork():
    if not os.fork(): child()
    os._exit(0)
os.wait()
os.write(1, b"its parent has ended\\n")
while True:
    threads = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(20)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
"""


@LINUX
def test_children_and_members_of_session_count(start):
    process = start(FAMILY)
    told = [process.stdout.readline() for _ in range(3)]
    pids = {int(line) for line in told if line.strip().isdigit()}
    assert len(pids) == 2
    for _ in range(20):  # while threads of it come and go
        assert own_time._family(process.pid) == {process.pid, *pids}
        assert pids < own_time.read([process.pid]).waited[0].keys()


class Clock:
    """The wall time and what processes had of it, which stand still unless moved."""

    def __init__(self) -> None:
        self.wall, self.own, self.looks = 100.0, 0.0, list[float]()

    def read(self, pids: Any) -> Reading:
        self.looks.append(self.wall)
        return Reading(0.0, ({pids[0]: self.wall - self.own},))

    def pass_time(self, wall: float, own: float) -> None:
        self.wall += wall
        self.own += own


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(own_time, "time", SimpleNamespace(monotonic=lambda: made.wall))
    monkeypatch.setattr(own_time, "read", made.read)
    return made


def test_a_limit_counts_own_time(clock):
    limit = Deadline(3.0, 7)
    for wall, own, remaining, spent in (
        (0.0, 0.0, 0.3, 0.0),  # the first look comes soon
        (0.5, 0.1, 0.3, 0.5),  # until then the time counts in full
        (2.0, 1.0, 0.3, 1.5),
        (0.2, 0.0, 0.3, 1.7),
        (5.0, 1.4, 0.1, 2.9),
        (0.1, 0.09, 0.05, 2.99),
        (0.05, 0.05, 0.0, 3.04),
    ):
        assert not limit.over
        clock.pass_time(wall, own)
        assert (limit.remaining(), limit.spent()) == pytest.approx((remaining, spent))
    assert (limit.remaining(), limit.over) == (0.0, True)
    assert limit.says == "longer than 3 s"


def test_deadline_looks_rarely_and_caps_wall_time(clock):
    limit = Deadline(20.0, 7)
    while pause := limit.remaining():
        clock.pass_time(pause, 0.0)
    assert clock.wall == 100.0 + CAP + 3 * 20.0
    assert clock.looks[:3] == [101.0, 102.0, 103.0]
    assert limit.says == "longer than 31 minutes of wall time"


def test_deadline_returns_arrival_or_times_out(clock):
    waits: list[float] = []

    def receive(seconds: float) -> Any:
        waits.append(seconds)
        clock.pass_time(seconds, seconds)
        if len(waits) != 3:
            raise TimeoutError
        return "arrived"

    assert Deadline(3.0, 7).wait(receive) == "arrived"
    with pytest.raises(TimeoutError):
        Deadline(0.3, 7).wait(receive)
    assert waits[-1] == 0.0  # a last look: it may have come while nobody could look


COMPUTES = PINNED + (
    "def computes(seconds):\n"
    "    began, until = time.monotonic(), time.process_time() + seconds\n"
    "    while time.process_time() < until: pass\n"
    "    return time.monotonic() - began"
)


@pytest.mark.usefixtures("short_limits")
@pytest.mark.parametrize("way", [(), ("long", "short")], ids=["isolated", "in-process"])
def test_students_cannot_change_a_tests_own_limit(tmp_path, way):
    long, short = (cell(name, "assert computes(0.3)", 1) for name in ("long", "short"))
    source = [answer(COMPUTES), *(deepcopy(node) for node in (long, short))]
    source[1].metadata["gradebox"] = {"seconds": 20}
    short.metadata["gradebox"] = {"seconds": 20}  # a student's
    _, run = executed(tmp_path, COMPUTES, long, short, source=source, in_process=way, timeout=0.2)
    assert run.scores == {"long": 1, "short": 0}


@LINUX
def test_honest_work_may_wait_for_a_processor(start, tmp_path):
    for _ in range(4):  # what computes for 0.2 s takes 1 beside them; its last wait is unseen
        start(BUSY)
    test, later = cell("test", "assert computes(0.2) > 0.7", 3), cell("later", "assert True", 1)
    waits = "if not (child := os.fork()): os._exit(9 * (computes(0.2) > 0.7))\nos.wait()[1] >> 8"
    cells, run = executed(tmp_path, COMPUTES, waits, test, later, timeout=0.7, max_seconds=1.5)
    assert shown(cells[1]) == "{'text/plain': '9'}"
    assert run.scores == {"test": 3, "later": 1}


HANGS = [
    "while True: pass",
    "time.sleep(9999)",
    # last: these processes go on
    "try:\n    while True: os.fork()\nexcept OSError:\n    while True: pass",
]


@LINUX
@pytest.mark.usefixtures("short_limits")
def test_hanging_cells_time_out_beside_a_busy_process(start, tmp_path, monkeypatch):
    start(BUSY)
    monkeypatch.setattr("gradebox.workers.client.GRACE", 5.0)  # of all these processes together
    later = cell("later", "assert computes(0) < 20", 1)
    later.metadata["gradebox"] = {"seconds": 20}  # beside those processes
    cells, run = executed(tmp_path, COMPUTES, *HANGS, later, timeout=0.2, max_processes=4)
    assert [output.ename for output in cells[1].outputs] == [
        *("KeyboardInterrupt", "CellTimeoutError")
    ]
    for node in cells[1:4]:
        assert node.outputs[-1].ename == "CellTimeoutError"
        assert node.outputs[-1].evalue == "longer than 0.2 s"
    assert run.scores == {"later": 1}
