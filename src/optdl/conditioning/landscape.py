"""Critical points: their kinds, the time that a saddle costs, and a network small enough to check.

Axis letters, fixed for the module: ``n`` parameters, ``m`` examples, ``h`` hidden units, ``d``
inputs, ``s`` starts, ``o`` outputs. H is a Hessian, g a gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int64

from optdl.problems import Problem

__all__ = [
    "CriticalPoints",
    "critical_point_kind",
    "critical_points",
    "escape_steps",
    "fit_from",
    "nearest_order",
    "student_teacher",
    "tanh_regression",
    "two_weights",
]

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]


# --- Kinds of critical points -----------------------------------------------------------------


def critical_point_kind(gradient: Vector, hessian: Matrix, tolerance: float) -> str:
    """Classify a point by its gradient and the eigenvalues of its Hessian (Source: F-04, L1-21).

    Many authors, Lee et al. (2016) among them, call each critical point with a negative eigenvalue
    a strict saddle, maxima included.

    A point is ``"not critical"`` if ‖g‖ is not zero; else ``"strict saddle"`` if the smallest
    eigenvalue is negative and the largest positive, ``"minimum"`` if all are positive,
    ``"maximum"`` if all are negative, and ``"degenerate"`` otherwise: then second derivatives do
    not decide. A norm of g, or an absolute value of an eigenvalue, of at most the ``tolerance``
    counts as zero. Raises ValueError where the tolerance is negative.

    >>> critical_point_kind(np.zeros(2), np.diag([1.0, -1.0]), 1e-9)
    'strict saddle'
    >>> critical_point_kind(np.zeros(2), np.diag([1.0, 0.0]), 1e-9)
    'degenerate'
    """
    if tolerance < 0:
        raise ValueError(f"expected a tolerance of 0 or more, got {tolerance:g}")
    if np.linalg.norm(gradient) > tolerance or np.isnan(gradient).any():
        return "not critical"
    eigenvalues = np.linalg.eigvalsh(hessian)
    smallest, largest = eigenvalues[0], eigenvalues[-1]
    if smallest < -tolerance and largest > tolerance:
        return "strict saddle"
    if smallest > tolerance:
        return "minimum"
    return "maximum" if largest < -tolerance else "degenerate"


def escape_steps(distance: float, radius: float, lr: float, curvature: float) -> int:
    r"""Return how many steps gradient descent needs to leave a saddle's neighborhood.

    Along an eigenvector with the eigenvalue −λ < 0 each step multiplies the coefficient by 1 + ηλ:

    .. math:: d\,(1+\eta\lambda)^k \ge R \quad\Rightarrow\quad
        k = \Bigl\lceil \frac{\ln(R/d)}{\ln(1+\eta\lambda)} \Bigr\rceil

    Here d is the distance from the stable manifold at the start, R the radius at which the saddle
    counts as left. η is ``lr`` and λ the ``curvature``. The result is 0 where d ≥ R. Raises
    ValueError where an argument is not positive: with d = 0 the saddle is never left. Source: F-04.

    >>> [escape_steps(d, 1.0, 0.1, 1.0) for d in (1e-2, 1e-4, 1e-8)]
    [49, 97, 194]
    """
    if not min(distance, radius, lr, curvature) > 0:
        raise ValueError(
            "expected a positive distance, radius, learning rate and curvature; "
            f"got {distance:g}, {radius:g}, {lr:g} and {curvature:g}"
        )
    steps = math.log(radius / distance) / math.log1p(lr * curvature)
    return max(0, math.ceil(steps - 1e-12))


def two_weights() -> Problem:
    r"""Return the loss of the smallest network with a saddle: two weights in a row.

    .. math:: J(a, b) = \tfrac12 (ab - 1)^2

    It has a strict saddle at the origin, with eigenvalues 1 and −1, and two curves of minima,
    :math:`ab = 1`, on which the Hessian has the eigenvalues 0 and :math:`a^2 + b^2`.
    Source: F-04, L1-20, P-06.

    >>> network = two_weights()
    >>> network.gradient(np.array([2.0, 1.0])), network.hessian(np.array([2.0, 1.0]))
    (array([1., 2.]), array([[1., 3.],
           [3., 4.]]))
    """

    def value(p: Vector) -> float:
        return float((p[0] * p[1] - 1) ** 2 / 2)

    def gradient(p: Float[np.ndarray, "*m n"]) -> Float[np.ndarray, "*m n"]:
        return (p[..., :1] * p[..., 1:] - 1) * p[..., ::-1]

    def hessian(p: Vector) -> Matrix:
        mixed = 2 * p[0] * p[1] - 1
        return np.array([[p[1] ** 2, mixed], [mixed, p[0] ** 2]])

    minimum, start = np.array([1.0, 1.0]), np.array([1.5, -1.0])
    return Problem("two weights", value, gradient, hessian, minimum, start, gradient)


# --- A network whose critical points can be listed --------------------------------------------


def tanh_regression(x: Float[np.ndarray, "m d"], y: Float[np.ndarray, " m"], units: int) -> Problem:
    r"""Return least squares for a network with one layer of tanh units and no biases.

    .. math:: J(W, v) = \frac1{2m}\sum_i\Bigl(v^T\tanh(Wx^{(i)}) - y^{(i)}\Bigr)^2

    The parameters are W row by row, then v. A column of ones in x gives each unit a bias. ``units``
    is the number of hidden units. Source: L1-37, F-04.

    >>> problem = tanh_regression(np.ones((1, 1)), np.array([2.0]), units=1)
    >>> problem.value(np.zeros(2)), problem.hessian(np.zeros(2))
    (2.0, array([[ 0., -2.],
           [-2.,  0.]]))
    """
    m, d = x.shape
    split, y = units * d, y.reshape(m)

    def value(p: Vector) -> float:
        return float(np.mean((_network(x, p)[0] - y) ** 2) / 2)

    def gradient(p: Vector) -> Vector:
        outputs, _, A = _network(x, p)
        return A.T @ (outputs - y) / m

    def hessian(p: Vector) -> Matrix:
        outputs, hidden, A = _network(x, p)
        H, residual = A.T @ A / m, outputs - y
        for i in range(units):
            rows, column = slice(i * d, (i + 1) * d), split + i
            slope = residual * (1 - hidden[:, i] ** 2) / m
            H[rows, rows] -= (x * (2 * p[column] * slope * hidden[:, i])[:, None]).T @ x
            H[rows, column] += slope @ x
            H[column, rows] += slope @ x
        return H

    start = np.full(split + units, 0.5)
    return Problem("tanh regression", value, gradient, hessian, None, start)


def _network(
    x: Float[np.ndarray, "m d"], p: Vector
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m h"], Float[np.ndarray, "m n"]]:
    """Return the outputs, the hidden values, and the gradients of the outputs in rows."""
    h = len(p) // (x.shape[1] + 1)
    W, v = p[:-h].reshape(h, -1), p[-h:]
    hidden = np.tanh(x @ W.T)
    inner = ((1 - hidden**2) * v)[:, :, None] * x[:, None, :]
    return hidden @ v, hidden, np.concatenate([inner.reshape(len(x), -1), hidden], axis=1)


def student_teacher(
    seed: int,
) -> tuple[Float[np.ndarray, "m 3"], Float[np.ndarray, " m"], Float[np.ndarray, "3 4"]]:
    """Return 60 examples that a teacher with 3 tanh units labels without noise, and the teacher.

    A student with at least as many units can fit them exactly: the smallest loss is 0. An input has
    two normally distributed numbers and a one for the bias; a unit of the teacher has its incoming
    weights, its bias and its outgoing weight in a row. The seed determines the inputs and the
    teacher. Source: L1-37.

    >>> x, y, teacher = student_teacher(0)
    >>> float(tanh_regression(x, y, 3).value(np.append(teacher[:, :3].ravel(), teacher[:, 3])))
    0.0
    """
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    teacher = np.column_stack([1.5 * rng.normal(size=(3, 3)), [1.0, -1.0, 1.0]])
    return x, np.tanh(x @ teacher[:, :3].T) @ teacher[:, 3], teacher


def fit_from(
    x: Float[np.ndarray, "m d"],
    y: Float[np.ndarray, " m"],
    starts: Float[np.ndarray, "s n"],
    evaluations: int = 500,
) -> Float[np.ndarray, "s n"]:
    """Minimize the loss of :func:`tanh_regression` from many starts (Source: L1-37).

    The method of Levenberg and Marquardt descends like gradient descent far from a minimum. Near a
    minimum whose loss is not zero it converges only linearly, because it leaves out the second
    derivatives of the network, so Newton's method finishes the run where the Hessian is positive
    definite. A row of ``starts`` has W row by row, then v; the result has in each row where this
    run ends. The method of Levenberg and Marquardt may evaluate the network ``evaluations`` times.
    Raises ValueError where a row does not have h(d + 1) numbers, for some number h of units.

    >>> ends = fit_from(np.array([[1.0], [2.0]]), np.tanh([1.0, 2.0]), np.array([[0.5, 0.5]]))
    >>> ends.round(6)
    array([[1., 1.]])
    """
    from scipy.optimize import least_squares  # slow to import, and seldom needed

    d = x.shape[1]
    units, rest = divmod(starts.shape[1], d + 1)
    if rest:
        raise ValueError(f"expected a multiple of {d + 1} parameters, got {starts.shape[1]}")

    def residual(p: Vector) -> Float[np.ndarray, " m"]:
        return _network(x, p)[0] - y

    def jacobian(p: Vector) -> Float[np.ndarray, "m n"]:
        return _network(x, p)[2]

    kept = {"method": "lm", "max_nfev": evaluations, "xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-12}
    problem = tanh_regression(x, y, units)
    ends = [least_squares(residual, start, jacobian, **kept).x for start in starts]
    return np.array([_finish(problem, end) for end in ends])


def _finish(problem: Problem, point: Vector) -> Vector:
    """Take Newton steps as long as they lead to a minimum: loss and gradient must not grow."""
    for _ in range(20):
        g, H = problem.gradient(point), problem.hessian(point)
        values, vectors = np.linalg.eigh(H)
        if values[0] <= 0:
            return point
        after = point - vectors @ ((vectors.T @ g) / values)
        steeper = np.linalg.norm(problem.gradient(after)) >= np.linalg.norm(g)
        if steeper or problem.value(after) > problem.value(point):
            return point
        point = after
    return point


@dataclass(frozen=True)
class CriticalPoints:
    """Critical points, losses, and indices: how many eigenvalues are negative (Source: F-04)."""

    points: Float[np.ndarray, "k n"]
    losses: Float[np.ndarray, " k"]
    indices: Int64[np.ndarray, " k"]


def critical_points(problem: Problem, starts: Float[np.ndarray, "s n"]) -> CriticalPoints:
    """Solve ∇J = 0 from many starts, and count each solution's negative eigenvalues (Source: F-04).

    A solver of equations does not care whether a solution is a minimum: it finds saddles too. A
    solution has a gradient below 10⁻¹⁰; eigenvalues above −10⁻⁷ do not count.

    >>> found = critical_points(two_weights(), np.array([[0.1, -0.1], [1.2, 0.9]]))
    >>> found.losses.round(3), found.indices
    (array([0.5, 0. ]), array([1, 0]))
    """
    from scipy.optimize import root  # slow to import, and seldom needed

    ends = [root(problem.gradient, start, jac=problem.hessian).x for start in starts]
    points = np.array([p for p in ends if np.linalg.norm(problem.gradient(p)) < 1e-10])
    points = points.reshape(-1, starts.shape[1])
    spectra = [np.linalg.eigvalsh(problem.hessian(p)) for p in points]
    indices = np.array([int(np.sum(spectrum < -1e-7)) for spectrum in spectra], dtype=np.int64)
    return CriticalPoints(points, np.array([problem.value(p) for p in points]), indices)


# --- The nearest of all equivalent networks ---------------------------------------------------


def nearest_order(
    start: Float[np.ndarray, "h c"], end: Float[np.ndarray, "h c"]
) -> tuple[Int64[np.ndarray, " h"], Float[np.ndarray, " h"], float]:
    r"""Find the order and the signs of hidden units that bring a network nearest to another.

    Permuting tanh units, and turning the signs of all weights of a unit, leaves the network's
    function unchanged: :math:`n!\,2^n` equivalent networks. The nearest is an assignment problem,
    which is solved exactly. A row holds all weights of a unit. Returned are order, signs and the
    distance of the start to ``signs[:, None] * end[order]``. Unit ``order[i]`` of the end belongs
    at position i, with the sign +1 or −1. Source: L2-02, L1-20.

    >>> start = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> nearest_order(start, np.array([[0.0, -2.0], [2.0, 0.0]]))
    (array([1, 0]), array([ 1., -1.]), 1.4142135623730951)
    """
    from scipy.optimize import linear_sum_assignment  # slow to import, and seldom needed

    overlap = start @ end.T
    _, order = linear_sum_assignment(-np.abs(overlap))
    signs = np.where(overlap[np.arange(len(start)), order] < 0, -1.0, 1.0)
    distance = np.linalg.norm(start - signs[:, None] * end[order])
    return order.astype(np.int64), signs, float(distance)
