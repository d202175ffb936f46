"""What several exercises on this topic have in common."""

import numpy as np

Size = int | np.int64


def random_activations(rng: np.random.Generator, rows: Size, features: Size) -> np.ndarray:
    """Return features with means away from zero and of different sizes."""
    sizes, means = 3.0 ** np.arange(features), rng.uniform(1, 5, size=features)
    return np.asarray((means + sizes * rng.normal(size=(rows, features))).round(2))
