"""Limits count the time that processes had, not what others take of a processor."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from gradebox.sandbox import own_time
from gradebox.sandbox.own_time import CAP, Deadline, Reading, own_part

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox needs fork")

BUSY = "while True: pass"
LINUX = pytest.mark.skipif(
    not own_time.waits_are_told(), reason="the system does not tell how long a process waits"
)


@pytest.mark.parametrize(
    ("computed", "waited", "expected"),
    [
        (1.5, [2.5], 1.5),  # it computes and waits in turns
        (0.0, [0.0], 4.0),  # it sleeps
        (1.0, [1.0], 3.0),  # it does all three
        (0.5, [1.0, 2.0], 1.0),  # two processes that work in turns
        (3.9, [3.5], 3.9),  # many threads that keep one of them waiting
        (9.0, [3.5], 4.0),  # never more than has passed
        (0.0, [4.5], 0.0),  # nor less than nothing
        (0.02, None, 4.0),  # where waits are not told: it sleeps
        (1.5, None, 1.5),  # it computes, and may have waited
        (9.0, None, 4.0),
    ],
)
def test_the_own_part_of_four_seconds(
    computed: float, waited: list[float] | None, expected: float
) -> None:
    def at(seconds: float, waits: list[float]) -> Reading:
        told = waited is not None
        return Reading(seconds, tuple({7: one} for one in waits) if told else None)

    before = at(3.0, [10.0 for _ in waited or ()])
    after = at(3.0 + computed, [10.0 + one for one in waited or ()])
    assert own_part(4.0, before, after) == pytest.approx(expected)


def test_the_thread_that_waited_longest_counts() -> None:
    before = Reading(0.0, ({1: 5.0, 2: 0.0},))
    after = Reading(0.0, ({1: 5.5, 2: 1.0, 3: 3.0},))
    assert own_part(4.0, before, after) == 1.0


Start = Callable[..., psutil.Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a program on one and the same processor."""
    with ExitStack() as stack:

        def begin(source: str) -> psutil.Process:
            pinned = "import os\n"
            if hasattr(os, "sched_setaffinity"):
                pinned += f"os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n"
            command = [sys.executable, "-S", "-c", f"{pinned}\nprint(1, flush=True)\n{source}"]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, start_new_session=True, text=True
            )
            stack.enter_context(process)
            stack.callback(_kill, psutil.Process(process.pid))
            assert process.stdout is not None
            process.stdout.readline()
            return psutil.Process(process.pid)

        yield begin


def _kill(process: psutil.Process) -> None:
    for one in (*process.children(recursive=True), process):
        with suppress(psutil.NoSuchProcess):
            one.kill()


def measured(process: psutil.Process, least: float) -> tuple[float, float, float]:
    """Return own, computed and wall time of a process, until it has computed so much."""
    began, first = time.monotonic(), own_time.read([process.pid])
    own, before, looked = 0.0, first, began
    while True:
        time.sleep(0.1)
        now, after = time.monotonic(), own_time.read([process.pid])
        own += own_part(now - looked, before, after)
        before, looked = after, now
        if after.computed - first.computed >= least:
            return own, after.computed - first.computed, now - began


@LINUX
def test_what_others_compute_counts_not(start: Start) -> None:
    process = start(BUSY)
    for _ in range(3):
        start(BUSY)
    own, cpu, _ = measured(process, 0.2)
    assert 0.8 * cpu <= own <= 1.4 * cpu + 0.05


@LINUX
@pytest.mark.parametrize("session", ["", "start_new_session=True"], ids=["here", "apart"])
def test_a_child_that_waits_is_waited_for(start: Start, session: str) -> None:
    for _ in range(3):
        start(BUSY)
    command = f"[sys.executable, '-c', {BUSY!r}], {session}"
    own, cpu, _ = measured(start(f"import subprocess, sys\nsubprocess.run({command})"), 0.2)
    assert own <= 1.5 * cpu + 0.05


@LINUX
@pytest.mark.parametrize(
    "many",
    [
        "from threading import Thread\n"
        f"for _ in range(8): Thread(target=exec, args=({BUSY!r},)).start()",
        "import os\nfor _ in range(8):\n    if not os.fork(): break",
    ],
    ids=["threads", "children"],
)
def test_nobody_gains_by_keeping_himself_waiting(start: Start, many: str) -> None:
    own, cpu, _ = measured(start(f"{many}\n{BUSY}"), 0.3)
    assert own >= 0.8 * cpu


@pytest.mark.parametrize("told", [pytest.param(True, marks=LINUX), False])
@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(9999)",
        "import os, signal\nos.kill(0, signal.SIGSTOP)",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    ],
    ids=["sleeps", "stopped", "deadlock"],
)
def test_who_has_nothing_to_do_has_all_the_time(
    start: Start, monkeypatch: pytest.MonkeyPatch, source: str, told: bool
) -> None:
    monkeypatch.setattr(own_time, "waits_are_told", lambda: told)
    process = start(source)
    while process.status() == psutil.STATUS_RUNNING:  # it is still on its way
        time.sleep(0.03)
    own, _, wall = measured(process, -1.0)
    assert own >= 0.9 * wall


def test_of_a_process_that_ended_nothing_is_known() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert own_time.read([process.pid]).computed == 0.0


# --- limits -----------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the wall time and what processes had of it, which stand still unless moved."""
    made = SimpleNamespace(wall=100.0, own=0.0, looks=[])

    def read(pids: Any) -> Reading:
        made.looks.append(made.wall)
        return Reading(0.0, ({pids[0]: made.wall - made.own},))

    monkeypatch.setattr(own_time, "time", SimpleNamespace(monotonic=lambda: made.wall))
    monkeypatch.setattr(own_time, "read", read)
    return made


def pass_time(clock: SimpleNamespace, wall: float, own: float) -> None:
    clock.wall += wall
    clock.own += own


def test_a_limit_counts_own_time(clock: SimpleNamespace) -> None:
    limit = Deadline(3.0, 7)
    assert limit.remaining() == 0.3  # the first look comes soon
    pass_time(clock, 0.5, 0.1)
    assert (limit.remaining(), limit.spent()) == (0.3, 0.5)  # until then the time counts in full
    pass_time(clock, 2.0, 1.0)
    assert (limit.remaining(), limit.spent()) == (0.3, 1.5)
    pass_time(clock, 0.2, 0.0)
    assert (limit.remaining(), limit.spent()) == (pytest.approx(0.3), pytest.approx(1.7))
    pass_time(clock, 5.0, 1.4)
    assert (limit.remaining(), limit.over) == (pytest.approx(0.1), False)
    pass_time(clock, 0.1, 0.09)
    assert (limit.remaining(), limit.over) == (0.05, False)
    pass_time(clock, 0.05, 0.05)
    assert (limit.remaining(), limit.remaining(), limit.over) == (0.0, 0.0, True)
    assert limit.says == "longer than 3 s"


def test_looks_are_rare_and_the_wall_time_is_a_last_resort(clock: SimpleNamespace) -> None:
    limit = Deadline(20.0, 7)
    while pause := limit.remaining():
        pass_time(clock, pause, 0.0)
    assert clock.wall == 100.0 + CAP + 3 * 20.0
    assert clock.looks[:3] == [101.0, 102.0, 103.0]
    assert limit.says == "longer than 31 minutes of wall time"


def test_what_arrives_in_time_is_taken(clock: SimpleNamespace) -> None:
    waits: list[float] = []

    def receive(seconds: float) -> Any:
        waits.append(seconds)
        pass_time(clock, seconds, seconds)
        if len(waits) != 3:
            raise TimeoutError
        return "arrived"

    assert Deadline(3.0, 7).wait(receive) == "arrived"
    with pytest.raises(TimeoutError):
        Deadline(0.3, 7).wait(receive)
    assert waits[-1] == 0.0  # a last look: it may have come while nobody could look
