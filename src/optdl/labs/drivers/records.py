"""Read the record of a lab, and begin a run again, where the student's work is."""

from __future__ import annotations

from typing import Any

import numpy as np

from optdl.labs.lab import Experiment, Parts
from optdl.labs.records import FILE, RecordError, contents

__all__ = ["first_steps", "read_record"]


def read_record(answer: Any) -> bytes | int | None:
    """Return the bytes of the record beside an answer, as :func:`optdl.labs.records.contents`."""
    return contents(FILE)


def first_steps(
    user: Any, experiment: Experiment, parts: Parts, setting: dict[str, Any], seed: int, steps: int
) -> tuple[Any, dict[str, np.ndarray]] | str:
    """Return the losses of a run that has begun, and the state of its network.

    Parameters
    ----------
    user : callable
        The answer beside which this runs; it is not called.
    experiment : callable
        That of the lab; see :class:`optdl.labs.Lab`.
    parts : dict
        What the student wrote.
    setting : dict
        That of the run.
    seed, steps : int
        The seed of the student, and how many steps are taken.

    Returns
    -------
    tuple or str
        A text when the lab refuses what the student wrote: it says why.
    """
    try:
        curves, model = experiment(parts, setting, seed, steps)
    except RecordError as error:  # an exception of no built-in class does not cross
        return str(error)
    state = model.state_dict().items()
    return curves["loss"], {name: value.cpu().float().numpy() for name, value in state}
