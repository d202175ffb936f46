"""Batch sizes that a method tolerates."""

import math

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Features, Labels, Weights
from optdl.erm.noise import gradient_spread

__all__ = ["error_amplification", "newton_direction", "required_batch_size", "squared_gradients"]


def squared_gradients(w: Weights, x: Features, y: Labels) -> Float[np.ndarray, "m d"]:
    """Return the gradient (wᵀx − y) x of ½(wᵀx − y)², for each example (Source: L1-10, L1-11).

    Examples
    --------
    >>> squared_gradients(np.zeros(2), np.array([[1.0, 2.0]]), np.array([3.0]))
    array([[-3., -6.]])
    """
    return (x @ w - y)[:, None] * x


def newton_direction(
    hessian: Float[np.ndarray, "p p"], gradient: Float[np.ndarray, " p"]
) -> Float[np.ndarray, " p"]:
    """Return the Newton direction H⁻¹g by solving a linear system (Source: L1-10).

    Examples
    --------
    >>> newton_direction(np.diag([1.0, 4.0]), np.array([2.0, 2.0]))
    array([2. , 0.5])
    """
    return np.linalg.solve(hessian, gradient)


def error_amplification(
    hessian: Float[np.ndarray, "p p"],
    gradient: Float[np.ndarray, " p"],
    error: Float[np.ndarray, " p"],
    damping: float = 0.0,
) -> float:
    r"""Return the relative error of (H + μI)⁻¹g divided by that of g.

    .. math::
        \frac{\lVert H^{-1} e\rVert / \lVert H^{-1} g\rVert}{\lVert e\rVert / \lVert g\rVert}
        \le \kappa(H) \qquad (\mu = 0)

    Parameters
    ----------
    hessian : (p, p) array
        H, invertible.
    gradient : (p,) array
        g, the exact gradient.
    error : (p,) array
        e; the estimate of the gradient is g + e.
    damping : float, optional
        μ, added to the eigenvalues of H.

    Notes
    -----
    The bound κ(H) is attained if g lies in the steepest direction and e in the flattest.

    Source: L1-10

    Examples
    --------
    >>> error_amplification(np.diag([100.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 0.1]))
    100.0
    """
    if not gradient.any() or not error.any():
        raise ValueError("a relative error needs a gradient and an error that are not zero")
    damped = hessian + damping * np.eye(len(gradient))
    after = newton_direction(damped, error), newton_direction(damped, gradient)
    ratio = np.linalg.norm(after[0]) / np.linalg.norm(after[1])
    return float(ratio * np.linalg.norm(gradient) / np.linalg.norm(error))


def required_batch_size(gradients: Float[np.ndarray, "m p"], tolerance: float) -> int:
    r"""Return the n for which the mean of n gradients has this relative error (Source: L1-10).

    .. math:: n = \left\lceil \frac{\sigma^2}{\text{tolerance}^2\,\lVert g\rVert^2} \right\rceil

    For the vectors H⁻¹gᵢ in place of gᵢ it is the minibatch size that a Newton step needs. For the
    tolerance 1 it is the gradient noise scale σ²/‖g‖².

    Parameters
    ----------
    gradients : (m, p) array
        One gradient for each example; g is their mean. Examples are drawn with replacement.
    tolerance : float
        Root mean square error over ‖g‖, above 0.

    Examples
    --------
    >>> required_batch_size(np.array([[0.0], [2.0]]), tolerance=0.1)
    100
    """
    if tolerance <= 0:
        raise ValueError(f"the tolerance is a relative error above 0; got {tolerance}")
    ratio = gradient_spread(gradients) / np.linalg.norm(gradients.mean(axis=0)) / tolerance
    # rounding in the square root must not turn a whole number into the next one
    return math.ceil(round(float(ratio**2), 9))
