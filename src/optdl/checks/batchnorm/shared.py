"""What several exercises on this topic have in common."""

from collections.abc import Iterator

import numpy as np


def random_features(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Return features whose means and spreads differ."""
    return (
        rng.uniform(1, 4, size=d) + rng.uniform(0.5, 2, size=d) * rng.normal(size=(m, d))
    ).round(2)


def away_from_one(rng: np.random.Generator, d: int | np.int64) -> np.ndarray:
    """Return numbers away from 0 and ±1, so that none can be left out unseen."""
    return rng.uniform(1.5, 3, size=d).round(2) * rng.choice([-1, 1], size=d)


def shapes(rng: np.random.Generator) -> Iterator[tuple[int, int, float]]:
    """Yield the shapes of minibatches, two of them of one and two examples, each with an ε."""
    sizes = rng.integers([[3, 1], [4, 5], [7, 3]], [[5, 3], [5, 8], [10, 6]]).tolist()
    for m, d in (*sizes, [1, 4], [2, 3]):
        yield m, d, round(rng.uniform(0.03, 0.3), 2)
