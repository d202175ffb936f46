r"""Momentum on a quadratic: a linear iteration with a 2×2 matrix along each eigenvector.

Along an eigenvector with eigenvalue λ > 0 let c be the coefficient of θ − θ* and v that of the
velocity. The gradient is λc, so that :math:`v \leftarrow \alpha v - \eta\lambda c` and
:math:`c \leftarrow c + v`. Both new values are linear in the old ones, and the eigenvalues of their
matrix say how fast c shrinks.

Letters: λ eigenvalue of the Hessian, z eigenvalue of the 2×2 matrix, κ = λ_max/λ_min.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float

from optdl.optimizers.base import Optimizer
from optdl.optimizers.validation import require
from optdl.problems import Problem

__all__ = [
    "MomentumConstants",
    "damping_ratio",
    "momentum_coefficients",
    "momentum_eigenvalues",
    "momentum_matrix",
    "momentum_rate",
    "optimal_momentum",
    "standard_nesterov",
    "steps_to_reduce",
]


def momentum_matrix(lr: float, alpha: float, eigenvalue: float) -> Float[np.ndarray, "2 2"]:
    r"""Return the matrix of one step of momentum for coefficient and velocity (Source: F-01).

    .. math:: \begin{pmatrix} c \\ v \end{pmatrix} \leftarrow
        \begin{pmatrix} 1 - \eta\lambda & \alpha \\ -\eta\lambda & \alpha \end{pmatrix}
        \begin{pmatrix} c \\ v \end{pmatrix}

    Its determinant is α and its trace 1 + α − ηλ. Its eigenvalues are complex, of modulus √α, for
    :math:`(1 - \sqrt\alpha)^2 < \eta\lambda < (1 + \sqrt\alpha)^2`, where the coefficient
    oscillates while it shrinks. At a bound both are equal, the critical case; outside they are
    real, and the larger one has a modulus above √α. Raises ValueError where η is negative, α lies
    outside [0, 1), or λ is not positive and finite.

    >>> momentum_matrix(lr=0.5, alpha=0.25, eigenvalue=3.0)
    array([[-0.5 ,  0.25],
           [-1.5 ,  0.25]])
    """
    _require_iteration(lr, alpha, eigenvalue)
    return np.array([[1 - lr * eigenvalue, alpha], [-lr * eigenvalue, alpha]])


def momentum_eigenvalues(lr: float, alpha: float, eigenvalue: float) -> Complex[np.ndarray, " 2"]:
    r"""Return the eigenvalues of the matrix of momentum, that of larger modulus first.

    .. math:: z^2 - (1 + \alpha - \eta\lambda)\, z + \alpha = 0

    Where they are not real, the one with positive imaginary part comes first. Arguments and errors
    are those of :func:`momentum_matrix`. Source: F-01.

    >>> momentum_eigenvalues(lr=1.0, alpha=0.25, eigenvalue=1.0)  # modulus √α = ½
    array([0.125+0.48412292j, 0.125-0.48412292j])
    """
    _require_iteration(lr, alpha, eigenvalue)
    half = (1 + alpha - lr * eigenvalue) / 2
    root = np.sqrt(complex(half**2 - alpha))
    sign = -1 if half < 0 and root.imag == 0 else 1
    return np.array([half + sign * root, half - sign * root])


def momentum_rate(lr: float, alpha: float, eigenvalues: Float[np.ndarray, " n"]) -> float:
    r"""Return the factor by which momentum shrinks the error per step, in the long run.

    .. math:: \max_i\, \max\bigl(|z_1(\lambda_i)|,\ |z_2(\lambda_i)|\bigr)

    Above 1 the iteration diverges. It converges exactly when 0 < ηλ < 2(1 + α) for every λ.
    Arguments and errors are those of :func:`momentum_matrix`; with α = 0 it is gradient descent.
    Source: F-01.

    >>> momentum_rate(lr=0.25, alpha=0.25, eigenvalues=np.array([1.0, 9.0]))
    0.5
    """
    largest = [momentum_eigenvalues(lr, alpha, float(each))[0] for each in eigenvalues]
    return float(np.abs(largest).max())


def damping_ratio(lr: float, alpha: float, eigenvalue: float) -> float:
    r"""Return the damping ratio of the oscillator that momentum samples (Source: F-25).

    .. math:: D = \frac{-\ln\alpha}{2\sqrt{\ln z_1\,\ln z_2}}

    z₁ and z₂ are :func:`momentum_eigenvalues`. The coefficients c₀, c₁, c₂, … are the values at the
    times 0, 1, 2, … of a solution of :math:`\ddot c + 2D\omega\,\dot c + \omega^2 c = 0` with
    :math:`\omega^2 = \ln z_1 \ln z_2`. It is underdamped for D < 1, where c oscillates; critically
    damped for D = 1, at ηλ = (1 − √α)²; overdamped for D > 1. For α near 1 and small ηλ it is about
    (1 − α)/(2√(ηλ)). Raises ValueError as :func:`momentum_matrix` does, and where α or η is zero,
    or both z are negative: what changes its sign in each step samples no such oscillator.

    >>> round(damping_ratio(lr=0.25, alpha=0.25, eigenvalue=1.0), 6)
    1.0
    """
    z = momentum_eigenvalues(lr, alpha, eigenvalue)
    if lr == 0 or alpha == 0 or ((z.imag == 0).all() and (z.real < 0).any()):
        raise ValueError(f"no oscillator has the eigenvalues {z[0]:.3g} and {z[1]:.3g}")
    return float(-math.log(alpha) / (2 * np.sqrt(np.prod(np.log(z))).real))


class MomentumConstants(NamedTuple):
    """Constants of momentum, and what they achieve on a quadratic (Source: F-01)."""

    lr: float
    """η."""
    alpha: float
    """α."""
    rate: float
    """The factor by which each step shrinks the error in the long run."""


def optimal_momentum(smallest: float, largest: float) -> MomentumConstants:
    r"""Return the constants with which momentum converges fastest on a quadratic (Source: F-01).

    .. math:: \eta^* = \left(\frac{2}{\sqrt{\lambda_{min}} + \sqrt{\lambda_{max}}}\right)^2, \qquad
        \alpha^* = \left(\frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}\right)^2, \qquad
        \text{rate} = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}

    Both ends of the spectrum are then critical, and all eigenvalues between them have complex z of
    modulus √α*. Gradient descent at its best has the rate (κ − 1)/(κ + 1). Raises ValueError unless
    0 < λ_min ≤ λ_max, which are ``smallest`` and ``largest``.

    >>> optimal_momentum(smallest=1.0, largest=9.0)
    MomentumConstants(lr=0.25, alpha=0.25, rate=0.5)
    """
    _require_spectrum(smallest, largest)
    low, high = math.sqrt(smallest), math.sqrt(largest)
    rate = (high - low) / (high + low)
    return MomentumConstants((2 / (low + high)) ** 2, rate**2, rate)


def standard_nesterov(smallest: float, largest: float) -> MomentumConstants:
    r"""Return the standard constants of Nesterov momentum and their rate on a quadratic.

    .. math:: \eta = \frac{1}{\lambda_{max}}, \qquad
        \alpha = \frac{\sqrt\kappa - 1}{\sqrt\kappa + 1}, \qquad
        \text{rate} = 1 - \frac{1}{\sqrt\kappa}

    λ_min is then critical; the larger an eigenvalue is, the faster its direction converges. Raises
    ValueError unless 0 < λ_min ≤ λ_max, which are ``smallest`` and ``largest``. Source: F-01.

    >>> standard_nesterov(smallest=0.25, largest=4.0)
    MomentumConstants(lr=0.25, alpha=0.6, rate=0.75)
    """
    _require_spectrum(smallest, largest)
    root = math.sqrt(largest / smallest)
    return MomentumConstants(1 / largest, (root - 1) / (root + 1), 1 - 1 / root)


def momentum_coefficients(
    lr: float, alpha: float, eigenvalue: float, steps: int
) -> Float[np.ndarray, " t"]:
    r"""Return the coefficient along one eigenvector after each step, from 1 and at rest.

    Source: F-01

    .. math:: \begin{pmatrix} c_k \\ v_k \end{pmatrix} = M^k \begin{pmatrix} 1 \\ 0 \end{pmatrix}

    There are steps + 1 of them, and M is :func:`momentum_matrix`. Raises ValueError where ``steps``
    is less than 1.

    >>> momentum_coefficients(lr=0.5, alpha=0.5, eigenvalue=1.0, steps=3)
    array([ 1.  ,  0.5 ,  0.  , -0.25])
    """
    require("steps", steps)
    M = momentum_matrix(lr, alpha, eigenvalue)
    pairs = [np.array([1.0, 0.0])]
    for _ in range(steps):
        pairs.append(M @ pairs[-1])
    return np.array([c for c, _ in pairs])


def steps_to_reduce(opt: Optimizer, problem: Problem, factor: float, limit: int = 100_000) -> int:
    r"""Return the steps after which the error has first shrunk by a factor (Source: F-01).

    .. math:: \min\,\{k :\ \lVert\theta_k - \theta^*\rVert
        \le \text{factor} \cdot \lVert\theta_0 - \theta^*\rVert\}

    Here θ₀ is the start of the problem, and 0 < factor < 1. Raises ValueError where the minimum is
    unknown, or ``limit`` steps do not suffice.

    >>> from optdl.optimizers import SGD
    >>> from optdl.problems import valley
    >>> steps_to_reduce(SGD(lr=0.5), valley(1.0), factor=0.1)  # ½⁴ < 0.1 < ½³
    4
    """
    if problem.minimum is None:
        raise ValueError(f"expected a problem with a known minimum, got {problem.name}")
    theta, state = problem.start, opt.init(problem.start)
    goal = factor * np.linalg.norm(theta - problem.minimum)
    for step in range(limit + 1):
        if np.linalg.norm(theta - problem.minimum) <= goal:
            return step
        theta, state = opt.step(theta, state, problem.gradient)
    raise ValueError(f"{opt} has not shrunk the error by the factor {factor} in {limit} steps")


def _require_spectrum(smallest: float, largest: float) -> None:
    if not 0 < smallest <= largest < math.inf:
        raise ValueError(f"expected 0 < smallest ≤ largest, got {smallest} and {largest}")


def _require_iteration(lr: float, alpha: float, eigenvalue: float) -> None:
    require("lr", lr)
    require("alpha", alpha)
    if not 0 < eigenvalue < math.inf:
        raise ValueError(f"eigenvalue must be positive and finite, got {eigenvalue}")
