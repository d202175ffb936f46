"""Checks of the record of a lab's runs; ``lab_record.py`` of the topic says what it has to hold."""

import importlib
from pathlib import Path
from typing import Any

import optdl.checks
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
    row = key.split(":")[0].lower().replace("-", "_")
    for folder in map(Path, optdl.checks.__path__):
        for block in folder.glob(f"*/{row}_*.py"):
            module = importlib.import_module(f"optdl.checks.{block.parent.name}.lab_record")
            record: RecordCheck = module.RECORD
            return record
    raise KeyError(f"there is no lab for {key!r}; a key is such as 'LAB-1:record'")
