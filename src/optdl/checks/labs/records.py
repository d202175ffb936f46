"""Tell whether the record of a lab is believed, and what was read off its curves is right."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from optdl.checks.catalog import of_row
from optdl.checks.report import WHY, CheckFailed, Stopped
from optdl.checks.summary import note
from optdl.labs.judging import TRAINED, RecordCheck, is_graded, misread, reasons
from optdl.labs.records import LabRecord, RecordError, read_record
from optdl.observation import observe

__all__ = ["check_reading", "check_record"]


def check_record(key: str, user: Any, predictions: Any, **parts: Any) -> None:
    """Compare the record beside the notebook with what the student's functions give.

    The runs of the lab are trained again with what the student wrote and the student's seed, so
    that nothing in the record has to be believed but what was predicted before the first run.
    ``user()`` and ``predictions()`` return the student's user name and predictions; ``parts`` are
    what the student wrote and the run uses.

    Raises
    ------
    CheckFailed
        With the reason why the record is not believed.
    """
    check = _record(key)
    TRAINED.pop(check.lab.key, None)
    _say(check, "", user, lambda record: reasons(check, record, user, predictions, parts))


def check_reading(key: str, reading: Any) -> None:
    """Compare the numbers that a student read off the curves with those of the runs trained again.

    The curves of the record count beside them if they are alike, as two machines round differently.
    Before work is graded only the kind of the numbers is told: a check that says which one is wrong
    would be asked until none is. ``reading()`` returns the numbers by name.

    Raises
    ------
    CheckFailed
        With the number that is not in the record.
    """
    check = _record(key)
    _say(check, "reading", reading, lambda record: misread(check, record, reading()))


def _record(key: str) -> RecordCheck:
    """Return what the record of the lab of a key has to hold; no other lab is imported."""
    for exercise in of_row(key).values():
        folder = str(exercise._draw.__module__).rpartition(".")[0]
        record: RecordCheck = importlib.import_module(f"{folder}.lab_record").RECORD
        return record
    raise KeyError(f"there is no lab for {key!r}; a key is such as 'LAB-1:record'")


def _say(
    check: RecordCheck, name: str, answer: Any, wrong: Callable[[LabRecord], Iterator[str]]
) -> None:
    """Print that all is well with the record beside an answer, or raise with the first reason."""
    title = name or "record"
    key = f"{check.lab.key}:{title}"
    reason: str | None  # any text is one, as it may come from the student's process
    try:
        reason = next(wrong(LabRecord.parse(observe(read_record, answer))), None)
    except RecordError as error:
        reason = str(error)
    except KeyboardInterrupt:
        raise Stopped(f"■ {title}: stopped; it says nothing until all runs are repeated.") from None
    except NotImplementedError:
        reason = "a function that is needed here is not written yet"
    if reason is not None:
        note(key, f"✗ {title}: not right yet.")
        raise CheckFailed(f"✗ {title}: not right yet.\n{WHY}{reason}.")
    if name and not is_graded():
        agrees = f"✓ {title}: it is complete; grading tells whether it agrees with the curves"
    else:
        agrees = f"✓ {title}: it agrees with " + ("the curves" if name else "your functions")
    note(key, agrees)
    print(agrees)
