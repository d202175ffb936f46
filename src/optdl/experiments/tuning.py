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

    Parameters
    ----------
    rate : float
        A rate of the grid: 1 or 3 times a power of ten.
    up : bool
        Whether the larger neighbor is meant, or the smaller one.

    Examples
    --------
    >>> beyond(0.1, up=True), beyond(0.3, up=True), beyond(0.1, up=False), beyond(0.003, up=False)
    (0.3, 1.0, 0.03, 0.001)
    """
    exponent = round(2 * math.log10(rate)) + (1 if up else -1)
    return float(f"{3 if exponent % 2 else 1}e{exponent // 2}")


def entry(rates: float | Pair, seed: int) -> str:
    """Return under which name the record of a tuning holds the errors of a rate and a seed.

    Parameters
    ----------
    rates : float or pair of float
        The learning rate; or that of the later layers and that of the first.
    seed : int
        The seed of the run.
    """
    return f"{rates_name(rates)}, seed {seed}"


def scores(record: Record, classes: int) -> dict[Any, float]:
    """Return the validation accuracy of each rate, or of each pair of rates.

    It is the accuracy after the last epoch, the mean of the seeds. A seed that diverged counts as a
    guess, and so does one that is worse.

    Parameters
    ----------
    record : Record
        A tuning: its curves are validation errors by epoch, named as :func:`entry` says, and its
        configuration lists under ``diverged`` the names of runs that diverged.
    classes : int
        Number of classes: a guess has the accuracy 1/classes.

    Returns
    -------
    dict
        Rates, or pairs of rates, in ascending order, to accuracies between 0 and 1.

    Notes
    -----
    Source: F-07
    """
    by_rate: dict[Any, list[float]] = {}
    for name, errors in record.curves.items():
        rates = tuple(float(rate) for rate in name.partition(",")[0].split(" first "))
        right = 1 / classes if name in record.config["diverged"] else 1 - errors[-1]
        by_rate.setdefault(rates if rates[1:] else rates[0], []).append(max(right, 1 / classes))
    return {rates: float(np.mean(by_rate[rates])) for rates in sorted(by_rate)}


def best_rate(accuracies: dict[Any, float]) -> Any:
    """Return the rate, or the pair, with the highest score; of equal ones the smallest.

    Parameters
    ----------
    accuracies : dict
        Learning rates, or pairs of them, to validation accuracies between 0 and 1, as
        :func:`scores` gives them.

    Raises
    ------
    ValueError
        If there are none.
    """
    return max(sorted(accuracies), key=lambda rates: accuracies[rates])


def next_rates(accuracies: dict[float, float], first: Sequence[float]) -> list[float]:
    """Return which rates are to be tried now: those of the first round, then beyond its ends.

    Parameters
    ----------
    accuracies : dict
        Learning rates, or pairs of them, to validation accuracies between 0 and 1, as
        :func:`scores` gives them.
    first : sequence of float
        The rates of the first round.

    Returns
    -------
    list of float
        No rate at all once the best one lies between two others, or at the end of what is allowed.

    Examples
    --------
    >>> next_rates({}, (0.1, 0.3)), next_rates({0.1: 0.4, 0.3: 0.5}, (0.1, 0.3))
    ([0.1, 0.3], [1.0])
    >>> next_rates({0.1: 0.4, 0.3: 0.5, 1.0: 0.1}, (0.1, 0.3))
    []
    """
    if missing := [rate for rate in first if rate not in accuracies]:
        return missing
    best, rates = best_rate(accuracies), sorted(accuracies)
    if best == rates[-1] and best < MOST:
        return [beyond(best, up=True)]
    if best == rates[0] and best > LEAST:
        return [beyond(best, up=False)]
    return []


def next_pairs(accuracies: dict[Pair, float], start: float) -> list[Pair]:
    """Return which pairs of rates are to be tried now, in a search along one line after the other.

    The search begins with the same rate for all layers. It changes the rate of the later layers
    until the best one that was tried lies between two others that were tried; then, with this
    rate, that of the first layer; and so on, until neither changes.

    Parameters
    ----------
    accuracies : dict
        Learning rates, or pairs of them, to validation accuracies between 0 and 1, as
        :func:`scores` gives them.
    start : float
        The rate of all layers with which the search begins.

    Returns
    -------
    list of pairs
        Rates of the later layers and of the first; none once the search has ended.

    Examples
    --------
    >>> next_pairs({}, 0.01)
    [(0.01, 0.01), (0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4}, 0.01)
    [(0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4, (0.003, 0.01): 0.3, (0.03, 0.01): 0.3}, 0.01)
    [(0.01, 0.003), (0.01, 0.03)]
    """
    best, index, unchanged = (start, start), 0, 0
    while unchanged < 2:
        along = {
            pair: accuracies[pair] for pair in accuracies if pair[1 - index] == best[1 - index]
        }
        before, best = best, best_rate(along or {best: 0.0})
        if missing := [pair for pair in _neighbors(best, index) if pair not in accuracies]:
            return missing
        unchanged = unchanged + 1 if best == before else 1
        index = 1 - index
    return []


def _neighbors(pair: Pair, index: int) -> list[Pair]:
    """Return a pair, and its neighbors with another rate in one place."""
    rates = (pair[index], beyond(pair[index], up=False), beyond(pair[index], up=True))
    pairs = [(rate, pair[1]) if index == 0 else (pair[0], rate) for rate in rates]
    return [each for each in pairs if LEAST <= each[index] <= MOST]
