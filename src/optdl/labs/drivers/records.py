"""Read the record of a lab, and train its runs again, where the student's work is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optdl.labs.lab import Experiment, Parts, on_threads, train_run
from optdl.labs.records import FILE, RecordError, contents

__all__ = ["read_record", "train_again"]


def read_record(answer: Any) -> bytes | int | None:
    """Return the bytes of the record beside an answer, as :func:`optdl.labs.records.contents`.

    Parameters
    ----------
    answer : callable
        The answer beside which this runs; it is not called.

    Returns
    -------
    record : bytes, int or None
        The content of the file, its size if it is larger than a record, or None without it.
    """
    return contents(FILE)


def train_again(
    user: Any,
    experiment: Experiment,
    score: Callable[[Mapping[str, list[float]]], float],
    parts: Parts,
    settings: Sequence[dict[str, Any]],
    seed: int,
    threads: int,
) -> tuple[list[tuple[dict[str, Any], dict[str, list[float]], str]], dict[str, np.ndarray]] | str:
    """Train all runs of a lab; return setting, curves and stop of each, and the best one's weights.

    Parameters
    ----------
    user : callable
        The answer beside which this runs; it is not called.
    experiment, score : callable
        Those of the lab; see :class:`optdl.labs.Lab`.
    parts : dict
        What the student wrote.
    settings : sequence of dict
        One for each run.
    seed : int
        That of the student.
    threads : int
        So many threads compute.

    Returns
    -------
    tuple or str
        A text when the lab refuses what the student wrote: it says why.
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
