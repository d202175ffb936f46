"""Judge the record of a lab: its runs are trained again, and what a student read is read there."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from optdl.labs.lab import Lab, train_again, unusable
from optdl.labs.records import FILE, LabRecord, RecordError, Run, as_python, seed_of
from optdl.observation import observe

__all__ = ["TRAINED", "RecordCheck", "is_graded", "misread", "reasons"]

TRAINED: dict[str, LabRecord] = {}
"""The runs that were trained again, by the key of the lab: its reading is compared with them."""


@dataclass(frozen=True)
class RecordCheck:
    """What the record of a lab has to hold.

    Each number that is read off the curves has what it is, in words, and the function that finds it
    in a record.
    ``evaluate(weights)`` gives the score of the weights again, as the lab's ``score`` does, and
    the best run has to reach the ``level``. So many first losses, ``steps``, of each run in the
    record are compared with those of the new one.
    """

    lab: Lab
    evaluate: Callable[[Mapping[str, Tensor]], float]
    level: float
    readings: Mapping[str, tuple[str, Callable[[LabRecord], float]]]
    steps: int = 3


def misread(check: RecordCheck, record: LabRecord, got: Any) -> Iterator[str]:
    """Yield what is wrong with numbers read off the curves; before grading, only their kind."""
    trained = TRAINED.get(check.lab.key)
    if trained is None:
        yield "your runs have to be checked first: run the cell with `check_record` above"
        return
    numbers: dict[str, Any] = {}
    for name, (what, _) in check.readings.items():
        number = numbers[name] = as_python(got.get(name)) if isinstance(got, dict) else None
        if not isinstance(number, int | float) or not math.isfinite(number):
            yield f"`reading()` must give {name!r} as a number: {what}"
    if not is_graded():
        return
    alike = all(_alike(run, record.find(run.setting)) for run in trained.runs)
    curves = [trained, record] if alike else [trained]
    for name, (what, find) in check.readings.items():
        if not any(abs(numbers[name] - right) <= _allowed(right) for right in map(find, curves)):
            yield f"{name!r} is {numbers[name]:g}, and the curves say otherwise: it is {what}"


def is_graded() -> bool:
    """Return whether work is graded here, and not tried out before it is handed in."""
    return "GRADEBOX_STUDENT" in os.environ and os.environ.get("NBGRADER_EXECUTION") != "validate"


def _allowed(right: float) -> float:
    """Return how far a reading may be off; beside an epoch, a whole number, the next is wrong."""
    return min(0.05 * abs(right), 0.5 if float(right).is_integer() else math.inf)


def _alike(run: Run, other: Run | None) -> bool:
    """Return whether a run in the record can be the same as one that was trained again."""
    return (
        other is not None
        and other.stop == run.stop
        and all(_near(values, other.curves.get(name)) for name, values in run.curves.items())
    )


def _near(values: Sequence[float], others: Any) -> bool:
    """Return whether two curves agree up to a tenth, in the means of tenths of a run.

    Two machines round differently, and training on minibatches enlarges that. A relative change of
    1e-7 in the initial weights of LAB-6 moves single losses by up to 26 %, in the mean of a curve,
    and the means of tenths by up to 7 % (three seeds, eight networks).
    """
    if not isinstance(others, list) or len(others) != len(values):
        return False
    tenths = np.array_split(np.array([values, others], dtype=float), min(10, len(values)) or 1, 1)
    one, other = np.array([part.mean(axis=1) for part in tenths if part.size]).reshape(-1, 2).T
    return bool(np.abs(one - other).sum() <= 0.1 * np.abs(one).sum() + 0.01 * len(one))


def reasons(
    check: RecordCheck, record: LabRecord, user: Any, predictions: Any, parts: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with a record, the plainest reason first."""
    name = user()
    reached: Mapping[str, Tensor] = {}
    if isinstance(name, str):  # first: what is read is compared with it, whatever else is wrong
        reached = _train(check, user, parts, seed_of(name))
    now = predictions()
    yield from unusable(check.lab, name, now)
    yield from _of_another(check, record, name)
    yield from _predicted(check.lab, record, now)
    yield from _other_steps(check, record)
    yield from _too_little(check, reached)


def _train(
    check: RecordCheck, user: Any, parts: Mapping[str, Any], seed: int
) -> Mapping[str, Tensor]:
    """Train all runs of a lab again, and return the weights after the best of them."""
    lab = check.lab
    values = lab.experiment, lab.score, dict(parts), [*lab.settings], seed, lab.threads
    outcome = observe(train_again, user, *values)
    if isinstance(outcome, str):
        raise RecordError(outcome)
    runs, state = outcome
    again = LabRecord(lab.key, "", {}, [Run(*run) for run in runs])
    TRAINED[lab.key] = again
    return {name: torch.as_tensor(value) for name, value in state.items()}


def _of_another(check: RecordCheck, record: LabRecord, name: Any) -> Iterator[str]:
    graded = os.environ.get("GRADEBOX_STUDENT")
    if graded and name != graded:
        yield f"`user()` returns {name!r}, and the work is that of {graded!r}"
    elif record.lab != check.lab.key:
        yield f"the record is one of {record.lab}; this is {check.lab.key}"
    elif record.user != name:
        yield (
            f"the record is that of {record.user!r}, and `user()` returns {name!r}: train with "
            "your own name, from which your seed follows"
        )


def _predicted(lab: Lab, record: LabRecord, now: Mapping[str, Any]) -> Iterator[str]:
    for name, (asked, fits) in lab.predictions.items():
        if (kept := record.predictions.get(name)) != as_python(now[name]):
            stays = "a prediction stays, right or wrong"
            other = f"that is not {asked}, so delete {FILE} and train again"
            yield (
                f"your prediction of {name!r} is not the one from before the run, {kept!r}: "
                f"{stays if fits(kept) else other}"
            )


def _other_steps(check: RecordCheck, record: LabRecord) -> Iterator[str]:
    """Compare the first losses in the record with those of the runs that were trained again."""
    for run in TRAINED[check.lab.key].runs:
        kept = record.find(run.setting)
        if kept is None:
            yield f"the run with {_told(run.setting)} is missing: run the cell that trains"
            return
        losses = kept.curves.get("loss") if isinstance(kept.curves, dict) else None
        got, expected = losses or [], run.curves["loss"][: check.steps]
        if len(got) < len(expected) or not all(map(_close, got, expected)):
            yield (
                f"the first losses with {_told(run.setting)} are {_numbers(got[: check.steps])} "
                f"in the record, and {_numbers(expected)} with your functions and your seed: if "
                f"you changed a function after the run, delete {FILE} and train again"
            )


def _close(got: float, expected: float) -> bool:
    """Return whether two losses agree, as two machines round differently."""
    return abs(got - expected) <= 1e-3 * max(1e-3, abs(expected))


def _too_little(check: RecordCheck, weights: Mapping[str, Tensor]) -> Iterator[str]:
    """Compare what the weights of the best run reach with what it says, and with the level."""
    done = [run for run in TRAINED[check.lab.key].runs if run.stop == "done"]
    if not done:
        yield "every run diverges: look at the first losses"
        return
    claimed = max(check.lab.score(run.curves) for run in done)
    try:
        reached = check.evaluate(weights)
    except RuntimeError:
        yield "the weights of your best run do not fit the network"
        return
    if not abs(reached - claimed) <= 0.01 + 1e-3 * abs(claimed):
        yield f"your best run says that it reaches {claimed:.4g}; its weights reach {reached:.4g}"
    elif reached < check.level:
        yield f"the best run must reach {check.level:.4g}; yours reaches {reached:.4g}"


def _told(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _numbers(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.4g}" for loss in losses) or "none"
