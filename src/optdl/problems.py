"""Objectives with known gradient, Hessian and minimum, and a population with known risk.

Axis letters, fixed for the module: ``n`` parameters, ``k`` wells, ``m`` examples or points, ``d``
features. The objectives use only arithmetic and ``exp``, so that each can be followed by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from optdl.special import ndtr

__all__ = [
    "Problem",
    "TwoGaussians",
    "beale",
    "mixture",
    "quadratic",
    "rosenbrock",
    "rotated",
    "saddle",
    "valley",
]

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]
Points = Float[np.ndarray, "m n"]


@dataclass(frozen=True, eq=False)
class Problem:
    """An objective J with its first two derivatives, a global minimum and a usual start.

    ``value``, ``gradient`` and ``hessian`` map an (n,) array to J, ∇J and ∇²J: a number, an (n,)
    array and an (n, n) array.

    Parameters
    ----------
    minimum : (n,) array or None
        A global minimum; None where J is unbounded below.
    vectorized_gradient : callable, optional
        (m, n) array to (m, n) array, for objectives that are descended from many points at once.

    Examples
    --------
    >>> bowl = quadratic(np.diag([1.0, 4.0]))
    >>> bowl.value(np.array([1.0, 1.0])), bowl.gradient(np.array([1.0, 1.0]))
    (2.5, array([1., 4.]))
    """

    name: str
    value: Callable[[Vector], float]
    gradient: Callable[[Vector], Vector]
    hessian: Callable[[Vector], Matrix]
    minimum: Vector | None
    start: Vector
    vectorized_gradient: Callable[[Points], Points] | None = None

    def gradients(self, points: Points) -> Points:
        """Return ∇J at many points, in one call where the problem has a vectorized gradient.

        >>> saddle().gradients(np.array([[1.0, 1.0], [2.0, 3.0]]))
        array([[ 1., -1.],
               [ 2., -3.]])
        """
        if self.vectorized_gradient is not None:
            return self.vectorized_gradient(points)
        return np.array([self.gradient(point) for point in points])

    def surface(
        self, x: Float[np.ndarray, " columns"], y: Float[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "rows columns"]:
        """Return J at each point of a grid, for a contour plot.

        Entry (i, j) is J(x[j], y[i]), the order that contour plots expect.

        >>> valley(0.5).surface(np.array([0.0, 2.0]), np.array([0.0, 2.0]))
        array([[0., 2.],
               [1., 3.]])
        """
        return np.array([[float(self.value(np.array([a, b]))) for a in x] for b in y])


def quadratic(hessian: Matrix, minimum: Vector | None = None) -> Problem:
    r"""Return the quadratic bowl with a given Hessian and minimum (Source: L1-14, L1-15).

    .. math:: J(w) = \tfrac12 (w - w^*)^T H (w - w^*), \qquad \nabla J(w) = H (w - w^*)

    w* is the origin when not given. Raises ValueError where H is not symmetric or has a negative
    eigenvalue.

    >>> quadratic(np.diag([1.0, 9.0]), np.array([2.0, 0.0])).value(np.array([2.0, 1.0]))
    4.5
    """
    H = np.array(hessian)
    center = np.zeros(len(H)) if minimum is None else np.array(minimum)
    _require_bowl(H, center)

    return Problem(
        "quadratic",
        lambda x: float(0.5 * (x - center) @ H @ (x - center)),
        lambda x: H @ (x - center),
        lambda x: H.copy(),
        center,
        center + 1.0,
    )


def valley(b: float) -> Problem:
    r"""Return the long valley with curvatures 1 and b (Source: L1-16).

    .. math:: f(x, y) = \tfrac12 (x^2 + b\, y^2), \qquad b > 0

    From the start (b, 1), exact line search zigzags to the minimum at the origin. Raises ValueError
    where b is not positive and finite: there is no single minimum then.

    >>> valley(0.1).gradient(np.array([0.1, 1.0]))
    array([0.1, 0.1])
    """
    if not 0 < b < math.inf:
        raise ValueError(f"b must be positive and finite; got {b}. It is the curvature along y.")
    bowl = quadratic(np.diag([1.0, b]))
    return replace(bowl, name=f"valley, b = {b:g}", start=np.array([b, 1.0]))


def saddle() -> Problem:
    r"""Return the simplest saddle: a minimum along x, a maximum along y (Source: L1-21).

    .. math:: f(x, y) = \tfrac12 (x^2 - y^2)

    The gradient vanishes at the origin, where the Hessian has eigenvalues 1 and −1. The start lies
    near the x axis, along which gradient descent is drawn to the saddle.

    >>> saddle().gradient(np.array([1.0, 1.0])), saddle().minimum is None
    (array([ 1., -1.]), True)
    """
    curvatures = np.array([1.0, -1.0])
    return Problem(
        "saddle",
        lambda x: float(0.5 * (x[0] ** 2 - x[1] ** 2)),
        lambda x: curvatures * x,
        lambda x: np.diag(curvatures),
        None,
        np.array([1.0, 0.01]),
    )


def beale() -> Problem:
    r"""Return Beale's function: a flat valley floor between steep walls (Source: L2-02).

    .. math:: f(x, y) = \sum_{i=1}^{3} \bigl(c_i - x (1 - y^i)\bigr)^2,
        \qquad c = (1.5,\ 2.25,\ 2.625)

    Its minimum is 0 at (3, ½).

    >>> beale().value(np.array([3.0, 0.5]))
    0.0
    """
    c = np.array([1.5, 2.25, 2.625])
    i = np.array([1.0, 2.0, 3.0])

    def residuals(x: Vector) -> Float[np.ndarray, " 3"]:
        return c - x[0] * (1 - x[1] ** i)

    def jacobian(x: Vector) -> Float[np.ndarray, "3 2"]:
        return np.stack([x[1] ** i - 1, i * x[0] * x[1] ** (i - 1)], axis=1)

    def value(x: Vector) -> float:
        return float(np.sum(residuals(x) ** 2))

    def gradient(x: Vector) -> Vector:
        return 2 * jacobian(x).T @ residuals(x)

    def hessian(x: Vector) -> Matrix:
        r, J = residuals(x), jacobian(x)
        mixed = r @ (i * x[1] ** (i - 1))
        # written out, because y^(i-2) divides by zero on the x axis for i = 1
        along_y = x[0] * (2 * r[1] + 6 * x[1] * r[2])
        return 2 * (J.T @ J + np.array([[0.0, mixed], [mixed, along_y]]))

    return Problem("Beale", value, gradient, hessian, np.array([3.0, 0.5]), np.array([1.0, 1.5]))


def rosenbrock() -> Problem:
    r"""Return Rosenbrock's function: a curved valley, easy to reach and slow to follow.

    .. math:: f(x, y) = (1 - x)^2 + 100\, (y - x^2)^2

    Its minimum is 0 at (1, 1), where the Hessian has condition number about 2508.
    Source: L1-12, L1-17.

    >>> rosenbrock().gradient(np.array([-1.2, 1.0])).round(1)
    array([-215.6,  -88. ])
    """

    def value(x: Vector) -> float:
        return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)

    def gradient(x: Vector) -> Vector:
        gap = x[1] - x[0] ** 2
        return np.array([-2 * (1 - x[0]) - 400 * x[0] * gap, 200 * gap])

    def hessian(x: Vector) -> Matrix:
        off = -400 * x[0]
        return np.array([[2 + 1200 * x[0] ** 2 - 400 * x[1], off], [off, 200.0]])

    return Problem("Rosenbrock", value, gradient, hessian, np.ones(2), np.array([-1.2, 1.0]))


_CENTERS = ((-1.5, 0.0), (1.2, 1.0), (1.0, -1.6))
_DEPTHS = (1.0, 1.4, 0.8)
_WIDTHS = (0.8, 0.7, 0.6)


def mixture(
    centers: Float[np.ndarray, "k n"] | None = None,
    depths: Float[np.ndarray, " k"] | None = None,
    widths: Float[np.ndarray, " k"] | None = None,
) -> Problem:
    r"""Return a surface with several Gaussian wells, hence several minima (Source: L2-02).

    .. math:: f(x) = -\sum_{j=1}^{k} a_j \exp\Bigl(-\frac{\lVert x - c_j\rVert^2}{2 s_j^2}\Bigr)

    ``minimum`` is the deepest of the minima that are reached from the centers. Without arguments
    there are three wells in the plane; depths a and widths s are 1 when only centers are given. A
    row of ``centers`` is a c_j. Raises ValueError where a depth or a width is not positive, or
    there is not one for each center.

    >>> mixture(np.zeros((1, 2))).value(np.zeros(2))
    -1.0
    """
    c, a, s = map(np.array, (_CENTERS, _DEPTHS, _WIDTHS))
    if centers is not None:
        c, a, s = np.array(centers), np.ones(len(centers)), np.ones(len(centers))
    a = a if depths is None else np.array(depths)
    s = s if widths is None else np.array(widths)
    for name, array in (("depths", a), ("widths", s)):
        if array.shape != (len(c),) or not np.all(array > 0):
            raise ValueError(
                f"{name} must be {len(c)} positive numbers, one per center; got {array}"
            )

    def wells(x: Float[np.ndarray, "*m n"]) -> Float[np.ndarray, "*m k"]:
        return a * np.exp(-np.sum((x[..., None, :] - c) ** 2, axis=-1) / (2 * s**2))

    def value(x: Vector) -> float:
        return float(-np.sum(wells(x)))

    def gradient(x: Float[np.ndarray, "*m n"]) -> Float[np.ndarray, "*m n"]:
        return np.sum((wells(x) / s**2)[..., None] * (x[..., None, :] - c), axis=-2)

    def hessian(x: Vector) -> Matrix:
        weight = wells(x) / s**2
        step = np.sqrt(weight)[:, None] * (x - c) / s[:, None]
        return np.sum(weight) * np.eye(len(x)) - step.T @ step

    def mean_shift(x: Vector) -> Vector:
        # A zero gradient says that x is the weighted mean of the centers. Stepping to that mean
        # never climbs, whatever the start, and needs no step size.
        for _ in range(10_000):
            weight = wells(x) / s**2
            step = weight @ c / np.sum(weight) - x
            x = x + step
            if np.abs(step).max() < 1e-15:
                break
        return x

    minimum = min(map(mean_shift, c), key=value)
    start = np.array([0.0, 0.5]) if centers is None else c.mean(axis=0) + 0.25
    return Problem("mixture", value, gradient, hessian, minimum, start, gradient)


def _require_bowl(H: Matrix, center: Float[np.ndarray, " p"]) -> None:
    if center.shape != (len(H),):
        raise ValueError(
            f"minimum must have shape ({len(H)},) like the {len(H)} × {len(H)} Hessian; "
            f"got {center.shape}"
        )
    if not np.allclose(H, H.T, rtol=1e-10, atol=1e-12):
        raise ValueError("the Hessian must be symmetric, got H ≠ Hᵀ; use (H + H.T) / 2")
    smallest = np.linalg.eigvalsh(H)[0]
    if smallest < -1e-12 * max(1.0, np.abs(H).max()):
        raise ValueError(
            f"every eigenvalue of the Hessian must be ≥ 0, got {smallest:g}: "
            "such a quadratic has no minimum"
        )


def rotated(problem: Problem, degrees: float) -> Problem:
    r"""Return a problem of the plane, turned around the origin (Source: F-03).

    .. math:: J_{rotated}(w) = J(Q^T w), \qquad \nabla J_{rotated}(w) = Q\,\nabla J(Q^T w), \qquad
        Q = \begin{pmatrix} \cos\varphi & -\sin\varphi \\ \sin\varphi & \cos\varphi \end{pmatrix}

    φ is counterclockwise, in degrees. The surface keeps its shape and its eigenvalues; only its
    axes turn. Minimum and start turn with it, so that gradient descent takes the same path, turned.
    Raises ValueError where the problem does not have two parameters.

    >>> rotated(valley(0.5), 90.0).hessian(np.zeros(2)).round(12)
    array([[0.5, 0. ],
           [0. , 1. ]])
    """
    if problem.start.shape != (2,):
        raise ValueError(f"expected a problem of the plane; its start has {problem.start.shape}")
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    Q = np.array([[cos, -sin], [sin, cos]])
    return Problem(
        f"{problem.name}, rotated by {degrees:g}°",
        lambda w: problem.value(Q.T @ w),
        lambda w: Q @ problem.gradient(Q.T @ w),
        lambda w: Q @ problem.hessian(Q.T @ w) @ Q.T,
        None if problem.minimum is None else Q @ problem.minimum,
        Q @ problem.start,
        lambda points: problem.gradients(points @ Q) @ Q.T,
    )


@dataclass(frozen=True, eq=False)
class TwoGaussians:
    r"""Two classes whose distribution is known, so that the risk is too (Source: L1-01).

    .. math:: P(y = +1) = \pi, \qquad x \mid y \sim \mathcal N(y\,\mu,\ \sigma^2 I)

    Here μ ≠ 0 is the ``mean`` of the class +1, σ the ``std`` and π the ``prior``. A linear
    classifier answers the sign of wᵀx + b. A score of exactly 0 counts as an error. Raises
    ValueError where μ is zero, σ is not positive and finite, or π does not lie between 0 and 1.

    >>> population = TwoGaussians(np.array([1.0, 0.0]))
    >>> round(population.bayes_error, 4), population.squared_risk(np.zeros(2), 0.0)
    (0.1587, 1.0)
    """

    mean: Float[np.ndarray, " d"]
    std: float = 1.0
    prior: float = 0.5

    def __post_init__(self) -> None:
        if not np.any(self.mean):
            raise ValueError(f"mean must not be zero, got {self.mean}: the classes would coincide")
        if not 0 < self.std < math.inf:
            raise ValueError(f"std must be positive and finite; got {self.std}")
        if not 0 < self.prior < 1:
            raise ValueError(
                f"prior must lie strictly between 0 and 1, got {self.prior}: "
                "it is the probability of the class +1"
            )

    def sample(
        self, m: int, rng: np.random.Generator
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, " m"]]:
        """Draw m independent examples: features in rows, and labels +1.0 or −1.0.

        Raises ValueError where m is less than 1.
        """
        if m < 1:
            raise ValueError(f"m must be at least 1; got {m}")
        y = np.where(rng.random(m) < self.prior, 1.0, -1.0)
        noise = rng.standard_normal((m, len(self.mean)))
        return y[:, None] * self.mean + self.std * noise, y

    def zero_one_risk(self, w: Float[np.ndarray, " d"], b: float) -> float:
        r"""Return the probability that the sign of wᵀx + b is wrong.

        .. math:: J^*_{01} = \pi\,\Phi\Bigl(-\frac{w^T\mu + b}{\sigma\lVert w\rVert}\Bigr)
            + (1 - \pi)\,\Phi\Bigl(-\frac{w^T\mu - b}{\sigma\lVert w\rVert}\Bigr)

        Φ is the distribution function of N(0, 1).
        """
        margins = self._mean_margins(w, b)
        spread = self.std * float(np.linalg.norm(w))
        wrong = (margins <= 0).astype(float) if spread == 0 else ndtr(-margins / spread)
        return float(self._weights() @ wrong)

    def squared_risk(self, w: Float[np.ndarray, " d"], b: float) -> float:
        r"""Return the expectation of the squared loss (wᵀx + b − y)².

        .. math:: J^*_2 = \sigma^2\lVert w\rVert^2 + \pi\,(1 - w^T\mu - b)^2
            + (1 - \pi)\,(1 - w^T\mu + b)^2
        """
        margins = self._mean_margins(w, b)
        return float(self.std**2 * (w @ w) + self._weights() @ (1 - margins) ** 2)

    @property
    def bayes_rule(self) -> tuple[Float[np.ndarray, " d"], float]:
        """The classifier of least 0–1 risk: w = 2μ/σ², b = log(π / (1 − π)).

        Its score wᵀx + b is the log-odds log P(+1 | x) − log P(−1 | x).
        """
        return 2 * self.mean / self.std**2, math.log(self.prior / (1 - self.prior))

    @property
    def bayes_error(self) -> float:
        """The least 0–1 risk that any classifier has."""
        return self.zero_one_risk(*self.bayes_rule)

    @property
    def squared_minimizer(self) -> tuple[Float[np.ndarray, " d"], float]:
        r"""The linear function of least squared risk.

        .. math:: w = \frac{v\,\mu}{\sigma^2 + v\lVert\mu\rVert^2}, \quad
            b = (2\pi - 1)(1 - w^T\mu), \quad v = 4\pi(1 - \pi) = \operatorname{Var}(y)
        """
        v = 4 * self.prior * (1 - self.prior)
        w = v * self.mean / (self.std**2 + v * (self.mean @ self.mean))
        return w, float((2 * self.prior - 1) * (1 - w @ self.mean))

    def _mean_margins(self, w: Float[np.ndarray, " d"], b: float) -> Float[np.ndarray, " 2"]:
        # E[y (wᵀx + b) | y] for y = +1 and y = −1
        if w.shape != self.mean.shape:
            raise ValueError(f"w must have shape {self.mean.shape} like the mean; got {w.shape}")
        return np.array([w @ self.mean + b, w @ self.mean - b])

    def _weights(self) -> Float[np.ndarray, " 2"]:
        return np.array([self.prior, 1 - self.prior])
