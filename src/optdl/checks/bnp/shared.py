"""What several exercises on this topic have in common."""

import numpy as np

Size = int | np.int64


def random_activations(rng: np.random.Generator, rows: Size, features: Size) -> np.ndarray:
    """Return features with means away from zero and of different sizes."""
    sizes, means = 3.0 ** np.arange(features), rng.uniform(1, 5, size=features)
    return np.asarray((means + sizes * rng.normal(size=(rows, features))).round(2))


def random_means(rng: np.random.Generator, features: Size, high: float = 3.0) -> np.ndarray:
    """Return means away from 0, of either sign."""
    return rng.uniform(1, high, size=features).round(2) * rng.choice([-1, 1], size=features)
