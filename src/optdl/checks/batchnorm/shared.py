"""What several exercises on this topic have in common."""

from collections.abc import Callable

import numpy as np


def random_features(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Return features whose means and spreads differ."""
    return (
        rng.uniform(1, 4, size=d) + rng.uniform(0.5, 2, size=d) * rng.normal(size=(m, d))
    ).round(2)


def away_from_one(rng: np.random.Generator, d: int) -> np.ndarray:
    """Return numbers that are neither 0 nor 1, so that none can be left out unseen."""
    return rng.uniform(1.5, 3, size=d).round(2)


def difference(loss: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Return the gradient of a loss by central differences."""
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-5
        gradient[place] = (loss(at + step) - loss(at - step)) / 2e-5
    return gradient
