"""A limit in own time, which is looked at only when so much wall time has passed."""

import math
import time
from collections.abc import Callable
from typing import TypeVar

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
