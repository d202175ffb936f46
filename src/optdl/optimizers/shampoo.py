"""A gradient between two preconditioners, one for its rows and one for its columns."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

__all__ = ["shampoo_direction"]


def shampoo_direction(gradient: Float[np.ndarray, "a b"]) -> Float[np.ndarray, "a b"]:
    r"""Return the direction of Shampoo's first step, from one gradient and no memory.

    .. math:: D = (G G^T)^{-1/4}\; G\; (G^T G)^{-1/4}

    With G = UΣVᵀ the powers are :math:`U \Sigma^{-1/2} U^T` and :math:`V \Sigma^{-1/2} V^T`, and D
    = UVᵀ, the polar factor of G, which Muon approximates. Shampoo sums GGᵀ and GᵀG over all steps,
    as AdaGrad sums g ⊙ g. On directions that G maps to zero the powers are zero; the roots see a
    singular value below 1e-7 of the largest as zero, because they work on its square. Source: F-13.

    >>> shampoo_direction(np.array([[0.0, -5.0, 0.0], [2.0, 0.0, 0.0]])).round(6)
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.]])
    """
    G = gradient
    return _inverse_fourth_root(G @ G.T) @ G @ _inverse_fourth_root(G.T @ G)


def _inverse_fourth_root(A: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
    """Return the symmetric A to the power −1/4 on its range, and zero beside it."""
    eigenvalues, Q = np.linalg.eigh(A)
    kept = eigenvalues > 1e-14 * eigenvalues.max(initial=0.0)
    return (Q[:, kept] * eigenvalues[kept] ** -0.25) @ Q[:, kept].T
