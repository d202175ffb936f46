"""Judge the record of a lab without training again: the first steps, and what the weights reach."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optdl.checks.report import WHY, CheckFailed
from optdl.checks.summary import note
from optdl.labs.drivers.records import first_steps, read_record
from optdl.labs.lab import Lab, finite_part
from optdl.labs.records import FILE, LabRecord, RecordError, Run, as_python, seed_of, unpack
from optdl.observation import observe

__all__ = ["RecordCheck", "judge", "judge_reading"]

Predicted = Callable[[Any], bool]

KINSHIP = 0.1
"""The least cosine between final weights and those that the seed draws.

In the labs' own solutions it is 0.86 to 0.99, and below 0.03 with the weights of other seeds.
"""


@dataclass(frozen=True)
class RecordCheck:
    """What the record of a lab has to hold.

    Parameters
    ----------
    key : str
        The exercise, such as ``LAB-1:record``.
    lab : Lab
        The runs.
    predictions : dict
        The name of each prediction to what is asked, in words, and whether an answer is one.
    evaluate : callable
        ``evaluate(weights)`` gives the score of the weights again, as the lab's ``score`` does.
    level : float
        The score that the best run has to reach.
    readings : dict
        The name of each number that is read off the curves to what it is, in words, and the
        function that finds it in a record.
    steps : int
        So many steps of each run are computed again.
    rtol : float
        Losses agree up to this part of them, as two machines round differently.
    again : sequence of dict
        The settings whose first steps are computed again, besides that of the best run; all of
        them when there is none. Together they need every function that a run of the lab needs.
    """

    key: str
    lab: Lab
    predictions: Mapping[str, tuple[str, Predicted]]
    evaluate: Callable[[Mapping[str, Tensor]], float]
    level: float
    readings: Mapping[str, tuple[str, Callable[[LabRecord], float]]]
    steps: int = 3
    rtol: float = 1e-3
    again: Sequence[Mapping[str, Any]] = ()


def judge(check: RecordCheck, user: Any, predictions: Any, parts: Mapping[str, Any]) -> None:
    """Raise :class:`CheckFailed` unless the record is this student's, and what a run would give."""
    _say(check, "", user, lambda record: _reasons(check, record, user, predictions, parts))


def judge_reading(check: RecordCheck, reading: Any) -> None:
    """Raise :class:`CheckFailed` unless the numbers that a student read stand in the record."""
    _say(check, "reading", reading, lambda record: _misread(check, record, reading()))


def _say(
    check: RecordCheck, name: str, answer: Any, reasons: Callable[[LabRecord], Iterator[str]]
) -> None:
    """Print that all is well with the record beside an answer, or raise with the first reason."""
    key = f"{check.lab.key}:{name}" if name else check.key
    reason: str | None  # any text is one, as it may come from the student's process
    try:
        reason = next(reasons(LabRecord.parse(observe(read_record, answer))), None)
    except RecordError as error:
        reason = str(error)
    except NotImplementedError:
        reason = "a function that is needed here is not written yet"
    if reason is not None:
        note(key, f"✗ {key}: not right yet.")
        raise CheckFailed(f"✗ {key}: not right yet.\n{WHY}{reason}.")
    agrees = f"✓ {key}: it agrees with " + ("the record" if name else "your functions")
    note(key, agrees)
    print(agrees)


def _misread(check: RecordCheck, record: LabRecord, got: Any) -> Iterator[str]:
    for name, (what, find) in check.readings.items():
        right = find(record)
        number = as_python(got.get(name)) if isinstance(got, dict) else None
        # beside an epoch, which is a whole number, the next one is wrong
        allowed = min(0.05 * abs(right), 0.5 if float(right).is_integer() else math.inf)
        if not isinstance(number, int | float):
            yield f"`reading()` must give {name!r} as a number: {what}"
        elif not abs(number - right) <= allowed:
            yield f"{name!r} is {number:g}, and the record says otherwise: it is {what}"


def _reasons(
    check: RecordCheck, record: LabRecord, user: Any, predictions: Any, parts: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with a record, the plainest reason first."""
    name = user()
    yield from _of_another(check, record, name)
    yield from _predicted(check, record, predictions())
    yield from _incomplete(check, record)
    begun: dict[str, Any] = {}
    yield from _other_steps(check, record, user, parts, seed_of(name), begun)
    yield from _other_weights(check, record, begun)


def _of_another(check: RecordCheck, record: LabRecord, name: Any) -> Iterator[str]:
    graded = os.environ.get("GRADEBOX_STUDENT")
    if not isinstance(name, str) or not name.strip():
        yield f"`user()` must return your user name as text; it returns {name!r}"
    elif graded and name != graded:
        yield f"`user()` returns {name!r}, and the work is that of {graded!r}"
    elif record.lab != check.lab.key:
        yield f"the record is one of {record.lab}; this is {check.lab.key}"
    elif record.user != name:
        yield (
            f"the record is that of {record.user!r}, and `user()` returns {name!r}: train with "
            "your own name, from which your seed follows"
        )


def _predicted(check: RecordCheck, record: LabRecord, now: Any) -> Iterator[str]:
    for name, (asked, fits) in check.predictions.items():
        if not isinstance(now, dict) or name not in now or not fits(as_python(now[name])):
            yield f"`predictions()` must give {name!r}: {asked}"
        elif record.predictions.get(name) != as_python(now[name]):
            yield (
                f"your prediction of {name!r} is not the one from before the run, "
                f"{record.predictions.get(name)!r}: a prediction stays, right or wrong"
            )


def _incomplete(check: RecordCheck, record: LabRecord) -> Iterator[str]:
    for setting in check.lab.settings:
        run = record.find(setting)
        if run is None:
            yield f"the run with {_told(setting)} is missing: run the cell that trains to its end"
        elif not _is_curve(run):
            yield f"the run with {_told(setting)} has no curve of losses"


def _is_curve(run: Run) -> bool:
    losses = run.curves.get("loss") if isinstance(run.curves, dict) else None
    return isinstance(losses, list) and all(isinstance(loss, int | float) for loss in losses)


def _other_steps(
    check: RecordCheck,
    record: LabRecord,
    user: Any,
    parts: Mapping[str, Any],
    seed: int,
    begun: dict[str, Any],
) -> Iterator[str]:
    """Compute first steps again, with what the student wrote; keep the state of the best run."""
    best = _best(check, record)
    for run in map(record.find, check.lab.settings):
        if run is None or not (run is best or not check.again or run.setting in check.again):
            continue
        values = check.lab.experiment, dict(parts), run.setting, seed, check.steps
        outcome = observe(first_steps, user, *values)
        if isinstance(outcome, str):
            raise RecordError(outcome)
        losses, state = outcome
        if run is best:
            begun |= state
        expected, got = finite_part(losses), run.curves["loss"][: check.steps]
        if len(got) != len(expected) or not all(map(_close(check.rtol), got, expected)):
            yield (
                f"the first losses with {_told(run.setting)} are {_numbers(got)} in the record, "
                f"and {_numbers(expected)} with your functions and your seed: if you changed a "
                f"function after the run, delete {FILE} and train again"
            )


def _best(check: RecordCheck, record: LabRecord) -> Run | None:
    """Return the run whose weights the record has, or None when every run diverged."""
    runs = [run for run in map(record.find, check.lab.settings) if run and run.stop == "done"]
    return max(runs, key=lambda run: check.lab.score(run.curves), default=None)


def _close(rtol: float) -> Callable[[float, float], bool]:
    """Return whether two losses agree."""
    return lambda got, expected: abs(got - expected) <= rtol * max(1e-3, abs(expected))


def _other_weights(
    check: RecordCheck, record: LabRecord, begun: Mapping[str, Any]
) -> Iterator[str]:
    """Compare the weights with what the best run claims, and with those that it began with."""
    best = _best(check, record)
    if best is None:
        yield "every run diverged, so that no weights are left: look at the first losses"
        return
    claimed, weights = check.lab.score(best.curves), unpack(record.weights)
    try:
        reached = check.evaluate(weights)
    except RuntimeError:
        yield "the weights in the record do not fit the network: train again"
        return
    if not abs(reached - claimed) <= 0.01 + 1e-3 * abs(claimed):
        yield (
            f"the best run claims {claimed:.4g}, and the weights in the record reach "
            f"{reached:.4g}: hand in the record as your run wrote it"
        )
    elif reached < check.level:
        yield f"the best run must reach {check.level:.4g}; yours reaches {reached:.4g}"
    if not _cosine(weights, begun) >= KINSHIP:
        yield "the weights in the record did not begin at those of your seed: train with your name"


def _cosine(weights: Mapping[str, Tensor], others: Mapping[str, Any]) -> float:
    """Return the cosine of the angle between all weight matrices of two networks.

    Weights remember where they began: after training they are still turned towards the weights
    that were drawn, and at a right angle to those of another seed.
    """
    names = [name for name, value in weights.items() if value.dim() > 1 and name in others]
    ends, starts = (
        torch.cat([torch.as_tensor(state[name]).flatten().float() for name in names])
        for state in (weights, others)
    )
    return float(torch.cosine_similarity(ends, starts, dim=0))


def _told(setting: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


def _numbers(losses: Sequence[float]) -> str:
    return ", ".join(f"{loss:.4g}" for loss in losses) or "none"
