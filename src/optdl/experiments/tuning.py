"""How a learning rate is chosen: on validation examples, and not at the end of a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdl.experiments.runs import Pair, rates_name
from optdl.records import Record

__all__ = ["best_rate", "beyond", "next_pairs", "next_rates", "scores"]

MIN_RATE, MAX_RATE = 1e-7, 1e3


def beyond(rate: float, up: bool) -> float:
    """Return the larger or the smaller neighbor of a rate in the grid 1, 3, 10, 30, ...

    >>> beyond(0.1, up=True), beyond(0.3, up=True), beyond(0.1, up=False), beyond(0.003, up=False)
    (0.3, 1.0, 0.03, 0.001)
    """
    exponent = round(2 * math.log10(rate)) + (1 if up else -1)
    return float(f"{3 if exponent % 2 else 1}e{exponent // 2}")


def entry(rates: float | Pair, seed: int) -> str:
    """Return under which name the record of a tuning holds the errors of a rate and a seed."""
    return f"{rates_name(rates)}, seed {seed}"


def scores(record: Record, classes: int) -> dict[Any, float]:
    """Return the validation accuracy of each rate, or pair of rates, in ascending order.

    Source: F-07

    It is the accuracy after the last epoch, the mean of the seeds. The curves of the record are
    validation errors by epoch, named as :func:`entry` says. A seed that its configuration lists as
    ``diverged`` counts as a guess, with the accuracy 1/classes, and so does one that is worse.
    """
    by_rate: dict[Any, list[float]] = {}
    for name, errors in record.curves.items():
        rates = tuple(float(rate) for rate in name.partition(",")[0].split(" first "))
        right = 1 / classes if name in record.config["diverged"] else 1 - errors[-1]
        by_rate.setdefault(rates if rates[1:] else rates[0], []).append(max(right, 1 / classes))
    return {rates: float(np.mean(by_rate[rates])) for rates in sorted(by_rate)}


def best_rate(accuracies: dict[Any, float]) -> Any:
    """Return the rate, or the pair, with the highest of the :func:`scores`; of equal the least."""
    return max(sorted(accuracies), key=lambda rates: accuracies[rates])


def next_rates(accuracies: dict[float, float], first: Sequence[float]) -> list[float]:
    """Return which rates are to be tried now: those of the first round, then beyond its ends.

    There are none once the best one lies between two others, or at the end of what is allowed.

    >>> next_rates({}, (0.1, 0.3)), next_rates({0.1: 0.4, 0.3: 0.5}, (0.1, 0.3))
    ([0.1, 0.3], [1.0])
    >>> next_rates({0.1: 0.4, 0.3: 0.5, 1.0: 0.1}, (0.1, 0.3))
    []
    """
    if missing := [rate for rate in first if rate not in accuracies]:
        return missing
    best = best_rate(accuracies)
    if best == max(accuracies) and best < MAX_RATE:
        return [beyond(best, up=True)]
    at_least = best == min(accuracies) and best > MIN_RATE
    return [beyond(best, up=False)] if at_least else []


def next_pairs(accuracies: dict[Pair, float], start: float) -> list[Pair]:
    """Return which pairs of rates are to be tried now, in a search along one line after the other.

    The search begins with the same rate for all layers. It changes the rate of the later layers
    until the best one that was tried lies between two others that were tried; then, with this
    rate, that of the first layer; and so on, until neither changes. A pair is the rate of the
    later layers, and that of the first.

    >>> next_pairs({}, 0.01)
    [(0.01, 0.01), (0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4}, 0.01)
    [(0.003, 0.01), (0.03, 0.01)]
    >>> next_pairs({(0.01, 0.01): 0.4, (0.003, 0.01): 0.3, (0.03, 0.01): 0.3}, 0.01)
    [(0.01, 0.003), (0.01, 0.03)]
    """
    best, index, unchanged = (start, start), 0, 0
    while unchanged < 2:
        line = [pair for pair in accuracies if pair[1 - index] == best[1 - index]]
        before, best = best, best_rate({pair: accuracies[pair] for pair in line} or {best: 0.0})
        rate, other = best[index], best[1 - index]
        rates = [rate, beyond(rate, up=False), beyond(rate, up=True)]
        pairs = [(each, other) if index == 0 else (other, each) for each in rates]
        if missing := [
            pair for pair in pairs if pair not in accuracies and MIN_RATE <= pair[index] <= MAX_RATE
        ]:
            return missing
        unchanged = unchanged + 1 if best == before else 1
        index = 1 - index
    return []
