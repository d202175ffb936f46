"""What several exercises on this topic have in common."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case


def random_hessian(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a symmetric positive definite matrix with well separated eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.cumsum(rng.uniform(0.3, 1.5, size=n))
    H = (rotation * eigenvalues) @ rotation.T
    return (H + H.T) / 2


def random_spectrum(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n ≥ 2 positive eigenvalues; from n = 3 on, the last is not the largest."""
    smallest, *between, largest = np.cumsum(rng.uniform(0.3, 1.5, size=n)).round(3)
    return np.array([smallest, largest, *rng.permutation(between)])


def spectrum_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield spectra of 2, 3 and 6 eigenvalues."""
    for n in (2, 3, 6):
        yield {"eigenvalues": random_spectrum(rng, n)}
