"""Limits count the time that processes had, not what others take of a processor."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from gradebox.sandbox import own_time
from gradebox.sandbox.own_time import CAP, Deadline, Reading, own_part

BUSY = "while True: pass"
LINUX = pytest.mark.skipif(not own_time.waits_are_told(), reason="no waits are told here")

OWN = [
    (1.5, [2.5], 1.5),  # it computes and waits in turns
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
def test_the_own_part_of_four_seconds(
    computed: float, waited: list[float], expected: float
) -> None:
    before = Reading(3.0, ({7: 10.0},) * len(waited) or None)
    after = Reading(3.0 + computed, tuple({7: 10.0 + one} for one in waited) or None)
    assert own_part(4.0, before, after) == pytest.approx(expected)


def test_the_thread_that_waited_longest_counts() -> None:
    before = Reading(0.0, ({1: 5.0, 2: 0.0},))
    after = Reading(0.0, ({1: 5.5, 2: 1.0, 3: 3.0},))
    assert own_part(4.0, before, after) == 1.0


@pytest.fixture
def start() -> Iterator[Callable[[str], psutil.Process]]:
    """Return a function that starts a program on one and the same processor."""
    started = []
    pinned = "import os, sys, time\n"
    if hasattr(os, "sched_setaffinity"):
        pinned += f"os.sched_setaffinity(0, {{{max(os.sched_getaffinity(0))}}})\n"

    def begin(source: str) -> psutil.Process:
        command = [sys.executable, "-S", "-c", f"{pinned}print(1, flush=True)\n{source}"]
        started.append(psutil.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
        started[-1].stdout.readline()
        return started[-1]

    yield begin
    for process in started:
        for each in (*process.children(recursive=True), process):
            with suppress(psutil.NoSuchProcess):
                each.kill()
        process.communicate()


def measured(process: Any, least: float, pause: float) -> tuple[float, float, float]:
    """Return own, computed and wall time of a process, until it has computed so much.

    A wait that is not over at a look is told too late: there are few looks where processes wait.
    """
    own, wall, first = 0.0, 0.0, own_time.read([process.pid])
    before, looked = first, time.monotonic()
    while True:
        time.sleep(pause)
        passed, after = time.monotonic() - looked, own_time.read([process.pid])
        own, wall = own + own_part(passed, before, after), wall + passed
        before, looked = after, looked + passed
        if after.computed - first.computed >= least:
            return own, after.computed - first.computed, wall


MANY = [
    f"import threading\nfor _ in range(8): threading.Thread(target=exec, args=({BUSY!r},)).start()",
    "[os.fork() for _ in range(3)]",
]


@LINUX
@pytest.mark.parametrize("source", MANY, ids=["threads", "children"])
def test_nobody_gains_by_keeping_himself_waiting(start: Any, source: str) -> None:
    own, cpu, _ = measured(start(f"{source}\n{BUSY}"), 0.3, 0.3)
    assert own >= 0.8 * cpu


IDLE = {
    "sleeps": "time.sleep(9999)",
    "stopped": "import signal\nos.kill(0, signal.SIGSTOP)",
    "deadlock": "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
}


@pytest.mark.parametrize("told", [pytest.param(True, marks=LINUX), False])
@pytest.mark.parametrize("source", IDLE.values(), ids=IDLE)
def test_who_has_nothing_to_do_has_all_the_time(
    start: Any, monkeypatch: pytest.MonkeyPatch, source: str, told: bool
) -> None:
    monkeypatch.setattr(own_time, "waits_are_told", lambda: told)
    process = start(source)
    while process.status() == psutil.STATUS_RUNNING:  # it is still on its way
        time.sleep(0.03)
    own, _, wall = measured(process, -1.0, 0.1)
    assert own >= 0.9 * wall


def test_of_a_process_that_ended_nothing_is_known() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert own_time.read([process.pid]).computed == 0.0


# --- limits -----------------------------------------------------------------------------------


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
    """Return the clock of all limits."""
    made = Clock()
    monkeypatch.setattr(own_time, "time", SimpleNamespace(monotonic=lambda: made.wall))
    monkeypatch.setattr(own_time, "read", made.read)
    return made


def test_a_limit_counts_own_time(clock: Clock) -> None:
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


def test_looks_are_rare_and_the_wall_time_is_a_last_resort(clock: Clock) -> None:
    limit = Deadline(20.0, 7)
    while pause := limit.remaining():
        clock.pass_time(pause, 0.0)
    assert clock.wall == 100.0 + CAP + 3 * 20.0
    assert clock.looks[:3] == [101.0, 102.0, 103.0]
    assert limit.says == "longer than 31 minutes of wall time"


def test_what_arrives_in_time_is_taken(clock: Clock) -> None:
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
