"""Measure the time that processes had, which is what the limits of a notebook count.

A process computes, or it has nothing to do, or it waits for a processor that others use. The first
two make its *own time*; the third is the machine's doing and counts against nobody. On an idle
machine own time is wall time. On a slow and busy one it passes more slowly, so that an honest cell
is not ended there, while an endless loop and a deadlock still are.

Linux tells for each thread how long it has waited for a processor (``/proc/PID/schedstat``, field
2). Of the threads of a notebook the one that waited longest counts, because another one may sleep
until that one is done. Lest a notebook keeps itself waiting by many busy threads, its own time is
never less than what all its processes have computed, nor do threads count that have lowered their
own priority.

Elsewhere own time is the time computed, or all the time of an interval in which it was close to
none: then the process slept.
"""

import math
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

Thread = tuple[int, int]
"""The ids of a process and of one of its threads."""

_IDLE = 0.01
_TICKS = 0.02  # the kernel tells computed time in steps of a hundredth of a second

_PARENT, _SESSION, _COMPUTED, _NICE, _POLICY = 1, 3, slice(11, 15), 16, 38
"""Where these stand in ``/proc/PID/stat`` behind the name of the program."""


@dataclass(frozen=True)
class Reading:
    """What the processes of some notebooks have had, in seconds.

    Parameters
    ----------
    computed : float
        The processor time of all of them.
    waited : tuple of dict, optional
        For each notebook, how long each of its threads has waited for a processor; None where the
        system does not tell.
    """

    computed: float
    waited: tuple[dict[Thread, float], ...] | None = None


def own_part(passed: float, before: Reading, after: Reading) -> float:
    """Return the own time in an interval of wall time between two readings.

    The processes of several notebooks work in turns, each one waiting for the other, so that what
    one waits for a processor is added to what the other does.

    >>> waits = [{(7, 7): seconds} for seconds in (1.0, 3.5)]
    >>> own_part(4.0, Reading(10.0, (waits[0],)), Reading(11.5, (waits[1],)))
    1.5
    """
    # several processors compute more than passes, and a process that nobody waited for takes its
    # time away with it
    computed = min(max(after.computed - before.computed, 0.0), passed)
    if before.waited is None or after.waited is None:
        return passed if computed < _IDLE * passed else computed
    return max(passed - sum(map(_longest, before.waited, after.waited)), computed)


def _longest(before: dict[Thread, float], after: dict[Thread, float]) -> float:
    """Return how long that thread waited which waited longest; a new one began at zero."""
    return max((wait - before.get(thread, 0.0) for thread, wait in after.items()), default=0.0)


class OwnTime:
    """The own time of notebooks, from its making on.

    Nothing is read before the first look, so that it costs a fast cell nothing; the time until then
    counts in full.

    Parameters
    ----------
    pids : int
        For each notebook the process in which its session began.
    """

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._own, self._looked = 0.0, time.monotonic()
        self._reading: Reading | None = None

    def seconds(self) -> float:
        """Look, and return the own time so far."""
        now = time.monotonic()
        passed = now - self._looked
        if passed < _TICKS:
            return self._own + passed
        reading = read(self._pids)
        self._own += own_part(passed, self._reading, reading) if self._reading else passed
        self._reading, self._looked = reading, now
        return self._own


def read(pids: Iterable[int]) -> Reading:
    """Return what the notebooks have had so far."""
    if not _waits_are_told():
        return Reading(sum(map(_computed_by_family, pids)))
    table = dict(_table())
    families = [_family(pid, table) for pid in pids]
    computed = sum(_computed(table[member]) for family in families for member in family)
    waited = tuple(
        {thread: wait for member in family for thread, wait in _waited(member)}
        for family in families
    )
    return Reading(computed, waited)


@cache
def _waits_are_told() -> bool:
    """Return whether the kernel counts how long threads wait; some are built without it."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[2]) > 0
    except (OSError, ValueError, IndexError):
        return False


def _fields(folder: Path) -> list[str]:
    """Return the fields behind the name of the program, which may hold anything."""
    text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


def _table() -> Iterable[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # it ended meanwhile
                yield int(folder.name), _fields(folder)


def _family(pid: int, table: dict[int, list[str]]) -> set[int]:
    """Return the processes of a session with all that they have started."""
    # both are followed: setsid leaves the session, and a process whose parent ends gets another one
    family = {member for member, fields in table.items() if pid in (member, int(fields[_SESSION]))}
    more = family
    while more:
        more = {member for member, fields in table.items() if int(fields[_PARENT]) in more} - family
        family = family | more
    return family


def _computed(fields: list[str]) -> float:
    """Return the processor time of a process, and of its children that have ended."""
    return sum(map(int, fields[_COMPUTED])) / os.sysconf("SC_CLK_TCK")


def _waited(pid: int) -> Iterable[tuple[Thread, float]]:
    """Yield how long the threads of a process have waited, if they want to run as much as this."""
    ours = _priority(_fields(Path("/proc/self")))
    with suppress(OSError):
        for folder in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                if _priority(_fields(folder)) == ours:
                    waited = int((folder / "schedstat").read_text().split()[1])
                    yield (pid, int(folder.name)), waited / 1e9


def _priority(fields: list[str]) -> tuple[str, str]:
    return fields[_NICE], fields[_POLICY]


def _computed_by_family(pid: int) -> float:
    """Return the processor time of a process and its descendants on any system."""
    import psutil

    total = 0.0
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                times = member.cpu_times()
                total += times.user + times.system
                total += getattr(times, "children_user", 0) + getattr(times, "children_system", 0)
    return total


CAP = 1800.0
"""Seconds of wall time, beyond three times a limit, after which own time is not asked any more.

It is the last resort where other programs leave a notebook next to no processor at all.
"""

_SHORTEST = 0.05

T = TypeVar("T")


def pace(seconds: float) -> float:
    """Return how often to look at own time while a limit runs.

    It costs milliseconds. Until the first look the time counts in full, so that it comes soon.
    """
    return min(1.0, max(seconds / 10, 0.05))


class Deadline:
    """A limit that begins with its making.

    Parameters
    ----------
    seconds : float
        The limit.
    used : callable, optional
        Returns the own time since some moment, never more than has passed; wall time without it.
    since : float
        What ``used`` returned when this limit began.
    look : float
        Seconds after which ``used`` is asked again although the limit cannot be over.
    """

    def __init__(
        self,
        seconds: float,
        used: Callable[[], float] | None = None,
        *,
        since: float = 0.0,
        look: float = math.inf,
    ) -> None:
        self.seconds = seconds
        self.over = self.capped = False
        self._used, self._since, self._look = used, since, look
        self._measured, self._began = 0.0, time.monotonic()
        self._measured_at = self._began

    def spent(self) -> float:
        """Return the time used, as far as it is known: all since the last look counts."""
        return self._measured + time.monotonic() - self._measured_at

    def remaining(self) -> float:
        """Return for how long it is sure not to be over; 0 when it is."""
        if self.over:
            return 0.0
        now = time.monotonic()
        remaining = self.seconds - self.spent()
        if self._used is not None and (remaining <= 0 or now - self._measured_at >= self._look):
            self._measured, self._measured_at = self._used() - self._since, time.monotonic()
            remaining = self.seconds - self._measured
        self.capped = now - self._began >= self._cap
        self.over = self.capped or remaining <= 0
        # own time passes more slowly than wall time: the last instants would be asked for endlessly
        return 0.0 if self.over else min(max(remaining, _SHORTEST), self._look)

    def wait(self, receive: Callable[[float], T]) -> T:
        """Return what ``receive``, which is given seconds to wait, returns within the limit.

        Raises
        ------
        TimeoutError
            If it raised that until the limit was over.
        """
        while True:
            seconds = self.remaining()
            try:
                return receive(seconds)
            except TimeoutError:
                if self.over:
                    raise

    @property
    def _cap(self) -> float:
        return CAP + 3 * self.seconds

    @property
    def says(self) -> str:
        """What is said of a cell when the limit is over."""
        if self.capped:
            return f"longer than {self._cap / 60:.0f} minutes of wall time"
        return f"longer than {self.seconds:g} s"
