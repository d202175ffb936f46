"""What several exercises on this topic have in common."""

import numpy as np

from optdl.checks.exercise import Case


def random_positive(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a positive definite matrix with well separated eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (rotation * np.cumsum(rng.uniform(0.5, 1.5, size=n))) @ rotation.T
    return (H + H.T) / 2


def layer(rng: np.random.Generator, h: int, d: int) -> Case:
    """Return the weights of a hidden layer of h units with d inputs."""
    return {
        "W": rng.normal(size=(h, d)).round(2),
        "b": rng.normal(size=h).round(2),
        "v": rng.normal(size=h).round(2),
    }
