"""The time of one command, which the instances that work on it spend together."""

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
        self._first, self._limit, self.spent = first, limit, 0.0
        self.says = f"longer than {limit:g} s"
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
        waits = self._first not in (None, instance, *self._interrupted)
        until = [self._limit + GRACE * waits, *(at + GRACE for at in self._interrupted.values())]
        if self.spent < max(until):
            return False
        if instance in self._interrupted:
            raise TimeoutError(self.says)
        self._interrupted[instance] = self.spent
        return True

    @property
    def late(self) -> str:
        """What is said of a cell if something was interrupted; else nothing."""
        return self.says if self._interrupted else ""
