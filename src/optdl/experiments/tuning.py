"""How a learning rate is chosen: on validation examples, and not at the end of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from optdl.records import Record

__all__ = ["best_rate", "beyond", "next_rates", "scores"]

LEAST, MOST = 1e-7, 1e3
"""No rate outside is tried."""


def beyond(rate: float, up: bool) -> float:
    """Return the next rate of the grid 1, 3, 10, 30, ...

    Examples
    --------
    >>> beyond(0.1, up=True), beyond(0.3, up=True), beyond(0.1, up=False), beyond(0.003, up=False)
    (0.3, 1.0, 0.03, 0.001)
    """
    place = round(2 * math.log10(rate)) + (1 if up else -1)
    return float(f"{3 if place % 2 else 1}e{place // 2}")


def entry(rate: float, seed: int) -> str:
    """Return under which name the record of a tuning holds the errors of a rate and a seed."""
    return f"{rate:g}, seed {seed}"


def scores(record: Record, classes: int) -> dict[float, float]:
    """Return the validation accuracy of each rate, after its last epoch, the mean of the seeds.

    A seed that diverged counts as a guess, and so does one that is worse.
    """
    found: dict[float, list[float]] = {}
    for name, errors in record.curves.items():
        rate = float(name.partition(",")[0])
        right = 1 / classes if name in record.config["diverged"] else 1 - errors[-1]
        found.setdefault(rate, []).append(max(right, 1 / classes))
    return {rate: float(np.mean(found[rate])) for rate in sorted(found)}


def best_rate(found: dict[float, float]) -> float:
    """Return the rate with the highest score; of equal ones the smallest."""
    return max(sorted(found), key=lambda rate: found[rate])


def next_rates(found: dict[float, float], first: Sequence[float]) -> list[float]:
    """Return which rates are to be tried now: those of the first round, then beyond its ends.

    Examples
    --------
    >>> next_rates({}, (0.1, 0.3)), next_rates({0.1: 0.4, 0.3: 0.5}, (0.1, 0.3))
    ([0.1, 0.3], [1.0])
    >>> next_rates({0.1: 0.4, 0.3: 0.5, 1.0: 0.1}, (0.1, 0.3))
    []
    """
    if missing := [rate for rate in first if rate not in found]:
        return missing
    best, rates = best_rate(found), sorted(found)
    if best == rates[-1] and best < MOST:
        return [beyond(best, up=True)]
    if best == rates[0] and best > LEAST:
        return [beyond(best, up=False)]
    return []
