"""Train what a lab asks for, with what the student wrote, and keep a record of it."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from optdl.labs.records import FILE, LabRecord, RecordError, Run, as_python, seed_of

__all__ = ["Experiment", "Lab", "Parts", "finite_part", "last_accuracy", "on_threads", "perform"]
__all__ += ["Stopped", "train_again", "train_run", "unusable"]

Parts = Mapping[str, Any]
"""What a student wrote, by the name that the lab asks for."""

Experiment = Callable[[Parts, dict[str, Any], int, int | None], tuple[dict[str, list[float]], Any]]
"""``experiment(parts, setting, seed, steps)`` gives the curves of a run and its network.

It is a function of a module, so that it can be named to the process of a student.
"""


def last_accuracy(curves: Mapping[str, list[float]]) -> float:
    """Return the accuracy of a network as its run leaves it."""
    return curves["accuracy"][-1]


@dataclass(frozen=True)
class Lab:
    """The runs of a lab, by the key of its row, such as ``LAB-1``; each has a setting.

    ``experiment(parts, setting, seed, steps)`` trains with the student's parts, and returns curves,
    ``loss`` with one number for each step among them, and the network. It takes so many steps, or
    as many as the lab has when ``steps`` is None. ``score(curves)`` is that of a run that did not
    diverge; that of the best run has to reach a level. So many ``threads`` compute: for small
    networks one is fastest, as where other programs run, two wait for each other most of the time.
    Each prediction that the lab asks for has what is asked, in words, and whether an answer is one.
    """

    key: str
    settings: Sequence[dict[str, Any]]
    experiment: Experiment
    score: Callable[[Mapping[str, list[float]]], float] = last_accuracy
    threads: int = 1
    predictions: Mapping[str, tuple[str, Callable[[Any], bool]]] = field(default_factory=dict)


class Stopped(KeyboardInterrupt):
    """Training was interrupted; the message says what is kept, and how to go on."""

    def _render_traceback_(self) -> list[str]:
        """Show the message alone in a notebook."""
        return [f"■ {self}"]


def perform(
    lab: Lab,
    parts: Parts,
    *,
    user: str,
    predictions: dict[str, Any],
    path: str | os.PathLike[str] = FILE,
    progress: bool = True,
) -> LabRecord:
    """Make the runs of a lab that its record does not have yet; return the record.

    After each run the record at ``path`` is written, so that an interruption costs one run at most.
    What was predicted before the first run stays as it was. The seed follows from the user name.

    Raises
    ------
    RecordError
        If the file is the record of another student or lab, or is damaged, or the user name or a
        prediction is not of the kind that the lab asks for.
    Stopped
        When it is interrupted.
    """
    for reason in unusable(lab, user, predictions):
        raise RecordError(reason)
    record = _begun(lab, user, predictions, Path(path))
    bar = tqdm(lab.settings, disable=not progress, unit="run", desc=lab.key)
    for setting in bar:
        bar.set_postfix_str(", ".join(f"{name} {value}" for name, value in setting.items()))
        if record.find(setting) is None:
            start = time.perf_counter()
            try:
                with on_threads(lab.threads):
                    curves, stop, _ = train_run(lab.experiment, parts, setting, seed_of(user))
            except KeyboardInterrupt:
                kept = f"{len(record.runs)} of {len(lab.settings)} runs are finished and kept"
                raise Stopped(
                    f"{lab.key}: stopped. {kept}; run the cell again, and it goes on."
                ) from None
            seconds = round(time.perf_counter() - start, 2)
            record.runs.append(Run(setting, curves, stop, seconds))
            record.save(path)
    return record


def unusable(lab: Lab, user: Any, predictions: Any) -> Iterator[str]:
    """Yield why a user name or predictions are none, whether or not they are right."""
    if not isinstance(user, str) or not user.strip():
        yield f"`user()` must return your user name as text; it returns {user!r}"
    for name, (asked, fits) in lab.predictions.items():
        got = predictions.get(name) if isinstance(predictions, dict) else predictions
        is_one = isinstance(predictions, dict) and not getattr(got, "ndim", 0)
        if not is_one or not fits(as_python(got)):
            yield f"`predictions()` must give {name!r}: {asked}; it gives {got!r}"


def _begun(lab: Lab, user: str, predictions: dict[str, Any], path: Path) -> LabRecord:
    """Return the record that there is, or a new one."""
    if not path.exists():
        return LabRecord(
            lab.key, user, {name: as_python(value) for name, value in predictions.items()}
        )
    record = LabRecord.load(path)
    if (record.lab, record.user) != (lab.key, user):
        raise RecordError(
            f"{path.name} is a record of {record.lab} by {record.user!r}, and this is {lab.key} "
            f"by {user!r}: move that file away, or correct user()"
        )
    if record.predictions != predictions:
        print("The predictions in the record stay those from before the first run.")
    return record


def train_run(
    experiment: Experiment, parts: Parts, setting: dict[str, Any], seed: int
) -> tuple[dict[str, list[float]], str, Any]:
    """Train one run to its end; return its curves as far as they are finite, its stop, its network.

    A run whose losses cease to be finite is ``diverged``, any other ``done``.
    """
    curves, model = experiment(parts, dict(setting), seed, None)
    steps = len(curves["loss"])
    curves = {name: finite_part(values) for name, values in curves.items()}
    return curves, "done" if len(curves["loss"]) == steps else "diverged", model


def train_again(
    user: Any,
    experiment: Experiment,
    score: Callable[[Mapping[str, list[float]]], float],
    parts: Parts,
    settings: Sequence[dict[str, Any]],
    seed: int,
    threads: int,
) -> tuple[list[tuple[dict[str, Any], dict[str, list[float]], str]], dict[str, Any]] | str:
    """Train all runs of a lab; return setting, curves and stop of each, and the best one's weights.

    It runs beside ``user``, which is not called. ``experiment``, ``score``, ``settings`` and
    ``threads`` are those of :class:`optdl.labs.Lab`. A text is returned when the lab refuses what
    the student wrote: it says why.
    """
    runs, best, weights = [], -math.inf, {}
    try:
        with on_threads(threads):
            for setting in settings:
                curves, stop, model = train_run(experiment, parts, setting, seed)
                runs.append((setting, curves, stop))
                if stop == "done" and score(curves) > best:
                    best, state = score(curves), model.state_dict().items()
                    weights = {name: value.cpu().float().numpy() for name, value in state}
    except RecordError as error:  # an exception of no built-in class does not cross
        return str(error)
    return runs, weights


@contextlib.contextmanager
def on_threads(number: int) -> Iterator[None]:
    """Compute on so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def finite_part(values: Sequence[float]) -> list[float]:
    """Return the numbers before the first that is not finite.

    Examples
    --------
    >>> finite_part([2.3, 9.1, float("inf"), 1.0])
    [2.3, 9.1]
    """
    finite = [math.isfinite(value) for value in values]
    return [float(value) for value in values[: [*finite, False].index(False)]]
