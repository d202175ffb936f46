"""What several exercises on this topic have in common."""

import numpy as np


def random_positive(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a positive definite matrix with well separated eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (rotation * np.cumsum(rng.uniform(0.5, 1.5, size=n))) @ rotation.T
    return (H + H.T) / 2
