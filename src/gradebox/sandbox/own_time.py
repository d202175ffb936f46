"""Limits in the time that processes had, so that a busy machine ends no honest cell.

A process computes, has nothing to do, or waits for a processor that others use. The first two make
its *own time*: an endless loop and a deadlock are ended on any machine, and an honest cell on none.

Linux counts for each thread how long it has waited for a processor. The thread of a notebook that
waited longest counts: another one may sleep until it is done. Lest a notebook keeps itself waiting
by many busy threads, own time is never less than the processor time of all its processes. Where
waits are not counted, it is that, or all of an interval in which that was close to none: a sleep.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

# Seconds of wall time, beyond three times a limit, after which own time is not asked any more: the
# last resort where other programs leave a notebook next to no processor at all
CAP = 1800.0
_IDLE, _SHORTEST = 0.01, 0.05
T = TypeVar("T")


class Reading(NamedTuple):
    """What the processes of some notebooks have had, in seconds."""

    computed: float
    # how long each thread has waited, for each notebook; None where the system does not tell
    waited: tuple[dict[int, float], ...] | None = None


def own_part(passed: float, before: Reading, after: Reading) -> float:
    """Return the own time in an interval of wall time between two readings.

    Several notebooks work in turns: what one waits for a processor counts for the other, too.

    >>> waits = [{7: seconds} for seconds in (1.0, 3.5)]
    >>> own_part(4.0, Reading(10.0, (waits[0],)), Reading(11.5, (waits[1],)))
    1.5
    """
    # several processors compute more than passes, and a process that nobody waited for takes its
    # time away with it
    computed = min(max(after.computed - before.computed, 0.0), passed)
    if before.waited is None or after.waited is None:
        return passed if computed < _IDLE * passed else computed
    waited = 0.0
    for first, last in zip(before.waited, after.waited, strict=True):
        # a new thread began at zero
        waited += max((wait - first.get(thread, 0.0) for thread, wait in last.items()), default=0.0)
    return max(passed - waited, computed)


def read(pids: Iterable[int]) -> Reading:
    """Return what the notebooks have had, whose sessions began in some processes."""
    computed, waited = 0.0, []
    for pid in pids:
        waited.append(dict[int, float]())
        for member in _family(pid):
            with suppress(psutil.Error):  # with that of its children that have ended
                computed += sum(psutil.Process(member).cpu_times()[:4])
            with suppress(OSError):  # it ended while its threads were looked for
                for file in Path(f"/proc/{member}/task").glob("*/schedstat"):
                    with suppress(OSError):
                        waited[-1][int(file.parent.name)] = int(file.read_text().split()[1]) / 1e9
    return Reading(computed, tuple(waited) if waits_are_told() else None)


def _family(pid: int) -> set[int]:
    family = {pid}
    # both are followed: setsid leaves the session, and a process whose parent ends gets another one
    for member in psutil.pids():
        with suppress(OSError):  # it ended meanwhile
            family |= {member} if os.getsid(member) == pid else set()
    with suppress(psutil.Error):
        family |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
    return family


@cache
def waits_are_told() -> bool:
    """Return whether the kernel counts how long threads wait; some are built without it."""
    with suppress(OSError):  # how often this thread has run: never, where nothing is counted
        return Path("/proc/self/schedstat").read_text().split()[2] != "0"
    return False


class Deadline:
    """A limit, from now on, on the own time of notebooks, told by where their sessions began."""

    def __init__(self, seconds: float, *pids: int) -> None:
        self.seconds, self.over, self._pids, self._own = seconds, False, pids, 0.0
        # a look costs milliseconds; the first one comes soon
        self._pause = min(1.0, max(seconds / 10, _SHORTEST))
        self._looked, self._most = time.monotonic(), CAP + 3 * seconds
        self._until = self._looked + self._most
        self._reading: Reading | None = None

    def spent(self) -> float:
        """Return the time used, as far as it is known: all since the last look counts."""
        return self._own + time.monotonic() - self._looked

    def remaining(self) -> float:
        """Return for how long it is sure not to be over; 0 when it is."""
        now = time.monotonic()
        if self.spent() >= self.seconds or now - self._looked >= self._pause:
            passed, reading = now - self._looked, read(self._pids)
            self._own += own_part(passed, self._reading, reading) if self._reading else passed
            self._reading, self._looked = reading, now
        self.over = self.over or now >= self._until or self._own >= self.seconds
        # own time passes more slowly than wall time: the last instants would be asked for endlessly
        return 0.0 if self.over else min(max(self.seconds - self.spent(), _SHORTEST), self._pause)

    def wait(self, receive: Callable[[float], T]) -> T:
        """Return what ``receive`` does, given seconds to wait; a ``TimeoutError`` is the limit."""
        while True:
            try:
                return receive(self.remaining())
            except TimeoutError:
                if self.over:
                    raise

    @property
    def says(self) -> str:
        """What is said of a cell when the limit is over."""
        if self._own < self.seconds:
            return f"longer than {self._most / 60:.0f} minutes of wall time"
        return f"longer than {self.seconds:g} s"
