"""Checks of the labs, in PyTorch: one module for each topic that has a lab.

A module lists its ``EXERCISES``, and says in ``RECORD`` what the record of its runs has to hold.
"""

import importlib
import pkgutil
import sys
from typing import Any

from optdl.checks.labs.records import RecordCheck, judge, judge_reading

__all__ = ["check_reading", "check_record"]


def check_record(key: str, user: Any, predictions: Any, **parts: Any) -> None:
    """Compare the record beside the notebook with what the student's functions give.

    Parameters
    ----------
    key : str
        Such as ``LAB-1:record``.
    user : callable
        Returns the student's user name.
    predictions : callable
        Returns what the student expected before the run.
    **parts
        What the student wrote and the run uses.

    Raises
    ------
    CheckFailed
        With the reason why the record is not believed.
    """
    judge(_record(key), user, predictions, parts)


def check_reading(key: str, reading: Any) -> None:
    """Compare the numbers that a student read off the curves with the record.

    Parameters
    ----------
    key : str
        Such as ``LAB-1:reading``.
    reading : callable
        Returns the numbers by name.

    Raises
    ------
    CheckFailed
        With the number that is not in the record.
    """
    judge_reading(_record(key), reading)


def _record(key: str) -> RecordCheck:
    """Return what the record of the lab of a key has to hold."""
    names = [f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__)]
    # those that are loaded come first: to import the checks of another lab takes a second
    for name in sorted(names, key=lambda name: name not in sys.modules):
        found = getattr(importlib.import_module(name), "RECORD", None)
        if isinstance(found, RecordCheck) and found.lab.key == key.split(":")[0]:
            return found
    raise KeyError(f"there is no lab for {key!r}; a key is such as 'LAB-1:record'")
