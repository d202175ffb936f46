"""The time of one command, which the instances that work on it spend together."""

import math
import threading
from typing import Any

from gradebox.workers.client import GRACE


class Clock:
    """Counts the processor time of instances, and the time that they sleep.

    So a slow and busy machine ends nothing that an idle one would not: see
    :mod:`gradebox.sandbox.own_time`.

    Parameters
    ----------
    limit : float
        Seconds after which what runs is interrupted; so many more and it is ended.
    first : object, optional
        The instance that is interrupted before the other one.
    """

    def __init__(self, limit: float, first: Any = None) -> None:
        self._first = first
        self.limit, self.spent = limit, 0.0
        self._counting = threading.Lock()
        self._interrupted: dict[Any, float] = {}

    def add(self, seconds: float) -> None:
        """Count some seconds."""
        with self._counting:
            self.spent += seconds

    def is_over(self, instance: Any) -> bool:
        """Return whether an instance is to be interrupted now; true once for each.

        Raises
        ------
        TimeoutError
            If it was interrupted, and has gone on for too long.
        """
        # once one was interrupted, the other has a while to say what came of it
        last = max(self._interrupted.values(), default=-math.inf)
        waits = self._first not in (None, instance, *self._interrupted)
        if self.spent < max(self.limit + GRACE * waits, last + GRACE):
            return False
        if instance in self._interrupted:
            raise TimeoutError(self.says)
        self._interrupted[instance] = self.spent
        return True

    @property
    def late(self) -> bool:
        """Whether something was interrupted."""
        return bool(self._interrupted)

    @property
    def says(self) -> str:
        """What is said of a cell when the limit is over."""
        return f"longer than {self.limit:g} s"
