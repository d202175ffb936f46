"""How a learning rate is chosen: on validation examples, and not at the end of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdl.experiments.runs import Pair, rates_name
from optdl.records import Record

__all__ = ["best_rate", "beyond", "next_pairs", "next_rates", "scores"]

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


def entry(rates: float | Pair, seed: int) -> str:
    """Return under which name the record of a tuning holds the errors of a rate and a seed."""
    return f"{rates_name(rates)}, seed {seed}"


def scores(record: Record, classes: int) -> dict[Any, float]:
    """Return the validation accuracy of each rate, or of each pair of rates.

    It is the accuracy after the last epoch, the mean of the seeds. A seed that diverged counts as a
    guess, and so does one that is worse.

    Notes
    -----
    Source: F-07
    """
    found: dict[Any, list[float]] = {}
    for name, errors in record.curves.items():
        rates = tuple(float(rate) for rate in name.partition(",")[0].split(" first "))
        right = 1 / classes if name in record.config["diverged"] else 1 - errors[-1]
        found.setdefault(rates if rates[1:] else rates[0], []).append(max(right, 1 / classes))
    return {rates: float(np.mean(found[rates])) for rates in sorted(found)}


def best_rate(found: dict[Any, float]) -> Any:
    """Return the rate, or the pair, with the highest score; of equal ones the smallest."""
    return max(sorted(found), key=lambda rates: found[rates])


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


def next_pairs(found: dict[Pair, float], start: float) -> list[Pair]:
    """Return which pairs of rates are to be tried now, in a search along one line after the other.

    The search begins with the same rate for all layers. It changes the rate of the later layers
    until the best one that was tried lies between two others that were tried; then, with this
    rate, that of the first layer; and so on, until neither changes.

    Examples
    --------
    >>> next_pairs({}, 0.01)
    [(0.01, 0.01), (0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4}, 0.01)
    [(0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4, (0.003, 0.01): 0.3, (0.03, 0.01): 0.3}, 0.01)
    [(0.01, 0.003), (0.01, 0.03)]
    """
    best, place, unchanged = (start, start), 0, 0
    while unchanged < 2:
        line = {pair: found[pair] for pair in found if pair[1 - place] == best[1 - place]}
        before, best = best, best_rate(line or {best: 0.0})
        if missing := [pair for pair in _around(best, place) if pair not in found]:
            return missing
        unchanged = unchanged + 1 if best == before else 1
        place = 1 - place
    return []


def _around(pair: Pair, place: int) -> list[Pair]:
    """Return a pair, and its neighbors with another rate in one place."""
    rates = (pair[place], beyond(pair[place], up=False), beyond(pair[place], up=True))
    around = [(rate, pair[1]) if place == 0 else (pair[0], rate) for rate in rates]
    return [each for each in around if LEAST <= each[place] <= MOST]
