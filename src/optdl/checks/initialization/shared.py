"""What several exercises on this topic have in common."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Function


def weight_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield numbers of inputs and outputs, with a generator."""
    for fan_in, fan_out in ((1, 3), (4, 2), (5, 7)):
        yield {"fan_in": fan_in, "fan_out": fan_out, "rng": np.random.default_rng(rng.integers(99))}


def variance_is(expected: float, function: Function, rng: np.random.Generator) -> bool:
    """Return whether the mean is 0 and the variance as expected, within six standard errors."""
    W = np.asarray(function(300, 200, rng))
    error = 6 / np.sqrt(W.size)
    return bool(
        W.shape == (200, 300)
        and abs(W.mean()) < error * np.sqrt(expected)
        and abs(W.var() / expected - 1) < error * np.sqrt(2)
    )


def glorot_moments(function: Function, rng: np.random.Generator) -> bool:
    """Return whether weights have Glorot's variance."""
    return variance_is(2 / 500, function, rng)
