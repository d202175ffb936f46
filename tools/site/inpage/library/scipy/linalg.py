"""Linear algebra."""

import numpy as np

from scipy import missing


def __getattr__(name):
    return missing(__name__, name)


def eigh(a, *, eigvals_only=False):
    """Return the eigenvalues of a symmetric matrix, and its eigenvectors."""
    return np.linalg.eigvalsh(a) if eigvals_only else tuple(np.linalg.eigh(a))
