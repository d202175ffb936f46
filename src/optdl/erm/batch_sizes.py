"""Batch sizes that a method tolerates."""

import math

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Features, Labels, Weights
from optdl.erm.noise import gradient_spread

__all__ = ["error_amplification", "required_batch_size", "squared_gradients"]


def squared_gradients(w: Weights, x: Features, y: Labels) -> Float[np.ndarray, "m d"]:
    """Return the gradient (wᵀx − y) x of ½(wᵀx − y)², for each example (Source: L1-10, L1-11).

    >>> squared_gradients(np.zeros(2), np.array([[1.0, 2.0]]), np.array([3.0]))
    array([[-3., -6.]])
    """
    return (x @ w - y)[:, None] * x


def error_amplification(
    hessian: Float[np.ndarray, "p p"],
    gradient: Float[np.ndarray, " p"],
    error: Float[np.ndarray, " p"],
    damping: float = 0.0,
) -> float:
    r"""Return the relative error of (H + μI)⁻¹g divided by that of g (Source: L1-10).

    .. math::
        \frac{\lVert H^{-1} e\rVert / \lVert H^{-1} g\rVert}{\lVert e\rVert / \lVert g\rVert}
        \le \kappa(H) \qquad (\mu = 0)

    The bound κ(H) is attained if g lies in the steepest direction and e in the flattest. The
    estimate of g is g + e, and μ is the ``damping``. H is invertible. Raises ValueError where g or
    e is zero.

    >>> error_amplification(np.diag([100.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 0.1]))
    100.0
    """
    if not gradient.any() or not error.any():
        raise ValueError("a relative error needs a gradient and an error that are not zero")
    damped = hessian + damping * np.eye(len(gradient))
    after = np.linalg.norm(np.linalg.solve(damped, np.column_stack([error, gradient])), axis=0)
    ratio = after[0] / after[1]
    return float(ratio * np.linalg.norm(gradient) / np.linalg.norm(error))


def required_batch_size(gradients: Float[np.ndarray, "m p"], tolerance: float) -> int:
    r"""Return the least n for which the mean of n gradients errs by this at most (Source: L1-10).

    .. math:: n = \left\lceil \frac{\sigma^2}{\text{tolerance}^2\,\lVert g\rVert^2} \right\rceil

    For the vectors H⁻¹gᵢ in place of gᵢ it is the minibatch size that a Newton step needs. For the
    tolerance 1 it is the gradient noise scale σ²/‖g‖², rounded up. Examples are drawn with
    replacement. g is the mean of the gradients, one for each example, and σ their
    :func:`gradient_spread`; the error is the root mean square error over ‖g‖, and n is at least 1.
    Raises ValueError where the tolerance is not positive, or g is zero.

    >>> [required_batch_size(np.array([[g], [2.0]]), tolerance=0.1) for g in (0.0, 2.0)]
    [100, 1]
    """
    size = np.linalg.norm(gradients.mean(axis=0))
    if tolerance <= 0 or size == 0:
        raise ValueError(f"expected tolerance > 0 and g not zero; got {tolerance} and ‖g‖ = {size}")
    ratio = gradient_spread(gradients) / size / tolerance
    # rounding in the square root must not turn a whole number into the next one
    return max(1, math.ceil(round(float(ratio**2), 9)))
