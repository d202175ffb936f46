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


def spectrum(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return positive eigenvalues; of three or more, the last is neither the largest nor least."""
    values = np.cumsum(rng.uniform(0.3, 1.5, size=n)).round(3)
    last = int(rng.integers(1, n - 1)) if n > 2 else 0
    return np.append(rng.permutation(np.delete(values, last)), values[last])


def spectrum_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield spectra of one or two eigenvalues, of a few, and of more."""
    # the largest is neither always the first nor always the last
    for low, high, turn in ((1, 3, 1), (3, 5, 1), (5, 9, -1)):
        yield {"eigenvalues": spectrum(rng, int(rng.integers(low, high)))[::turn].copy()}
