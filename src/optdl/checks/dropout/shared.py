"""Cases of the exercises on a layer as an ensemble of subnetworks."""

from collections.abc import Iterator
from typing import Any

import numpy as np


def layer_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Yield layers of softmax units with the probability that an input is kept."""
    few, more = rng.integers((2, 4), (4, 7))
    for c, n, (low, high) in (
        (few, more, (0.6, 0.9)),
        (more, few, (0.15, 0.4)),
        (few, 1, (0.2, 0.8)),
        (few, few, (1, 1)),
    ):
        W, b = rng.normal(size=(c, n), scale=2).round(2), rng.normal(size=c).round(2)
        x = rng.uniform(1, 2, size=n).round(2) * rng.choice([-1, 1], size=n)
        yield W, b, x, round(rng.uniform(low, high), 2)
