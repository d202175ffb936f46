"""Ill-conditioning and the landscape: what makes gradient descent slow, and where it ends.

Axis letters, fixed for the module: ``n`` parameters, ``m`` examples, ``h`` hidden units, ``d``
inputs. H is a Hessian, g a gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from optdl.problems import Problem

__all__ = [
    "basins",
    "canonical_units",
    "clip_by_norm",
    "clip_by_value",
    "clipped_limit",
    "condition_number",
    "difference_hessian_vector_product",
    "distance_to_scalings",
    "equivalent_minima",
    "excess_loss",
    "global_norm",
    "gradient_cosines",
    "iterations_needed",
    "limit_point",
    "minima_fraction",
    "permute_hidden_units",
    "power_iteration",
    "recurrent_cliff",
    "relu_descent",
    "relu_hessian_at_a_fit",
    "rescale_hidden_units",
    "stationary_variance",
    "step_gain",
    "steps_needed",
    "uphill_step",
]

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]
Tree = Any
"""An array or tensor, or a list, tuple or dict of trees."""
Units = tuple[Float[np.ndarray, "h d"], Float[np.ndarray, " h"], Float[np.ndarray, " h"]]


# --- The condition number ---------------------------------------------------------------------


def condition_number(A: Float[np.ndarray, "p q"]) -> float:
    r"""Return the largest singular value over the smallest **nonzero** one (Source: L1-17, P-06).

    .. math:: \kappa(A) = \sigma_{max} / \sigma^*_{min}

    For a positive definite Hessian this is :math:`\lambda_{max}/\lambda_{min}`. A singular one has
    flat directions, along which the gradient is zero; convergence to the nearest minimizer is
    governed by the smallest eigenvalue that is not zero. Singular values below 10⁻¹² times the
    largest, in single precision max(p, q) · 1.2·10⁻⁷ times, count as zero. Raises ValueError where
    A is zero, empty or not finite: it has no condition number.

    The first lecture calls the ratio "smallest to largest". That is 1/κ; every other use in the
    sources, and all libraries, put the largest on top.

    >>> condition_number(np.diag([1.0, 4.0])), condition_number(np.diag([0.0, 2.0, 4.0]))
    (4.0, 2.0)
    """
    if not np.all(np.isfinite(A)):
        raise ValueError("expected finite entries; A holds NaN or infinity")
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(0)
    if not np.any(values > 0):
        raise ValueError("expected a matrix that is not zero: zero has no condition number")
    # in single precision as NumPy's matrix_rank does it: a κ of 10⁶ is more than rounding
    zero = max(A.shape) * np.finfo(values.dtype).eps if values.dtype == np.float32 else 1e-12
    nonzero = values[values > zero * values[0]]
    return float(nonzero[0] / nonzero[-1])


def iterations_needed(kappa: float, tolerance: float) -> int:
    r"""Return the number of steps at the best rate that reach a relative error q (Source: L1-17).

    .. math:: \Bigl(\frac{\kappa-1}{\kappa+1}\Bigr)^k \le q \quad\Rightarrow\quad
        k = \Bigl\lceil \frac{\ln q}{\ln\frac{\kappa-1}{\kappa+1}} \Bigr\rceil
        \approx \frac\kappa2 \ln\frac1q

    Here q is the ``tolerance``. Raises ValueError where κ < 1, or q does not lie between 0 and 1.

    >>> iterations_needed(1.0, 0.01), iterations_needed(3.0, 0.1), iterations_needed(1000.0, 1e-3)
    (1, 4, 3454)
    """
    if not (kappa >= 1 and 0 < tolerance < 1):
        raise ValueError(
            f"expected κ ≥ 1 and a tolerance between 0 and 1; got {kappa:g} and {tolerance:g}"
        )
    if kappa == 1:
        return 1
    return math.ceil(math.log(tolerance) / math.log1p(-2 / (kappa + 1)) - 1e-12)


def steps_needed(hessian: Matrix, q: float) -> int:
    """Return the steps of gradient descent that shrink the error to a fraction q.

    The learning rate is the best fixed one, the loss is quadratic, the error is the distance to the
    nearest minimum, and the start is the worst. H is symmetric and positive semidefinite;
    directions without curvature do not count. Raises ValueError where H is zero, or q does not lie
    between 0 and 1. Source: L1-17, P-06.

    >>> steps_needed(np.diag([1.0, 1000.0]), 1e-3), steps_needed(np.diag([0.0, 2.0, 2.0]), 1e-3)
    (3454, 1)
    """
    return iterations_needed(condition_number(hessian), q)


def step_gain(
    gradient: Vector, hessian: Matrix, lr: float, direction: Vector | None = None
) -> float:
    r"""Predict by how much a step against a direction changes the loss (Source: L1-18).

    .. math:: J(w - \eta d) - J(w) \approx -\eta\,g^Td + \tfrac12\eta^2\,d^THd

    Exact for a quadratic. Negative is downhill. d is g where no other direction, such as the
    gradient of a minibatch, is given. H is taken at the same point as g. Raises ValueError where η,
    the ``lr``, is negative.

    >>> g, H = np.array([2.0]), np.array([[4.0]])
    >>> step_gain(g, H, 0.25), step_gain(g, H, 0.5), step_gain(g, H, 1.0)
    (-0.5, 0.0, 4.0)
    >>> step_gain(g, H, 0.25, direction=np.array([1.0]))
    -0.375
    """
    if lr < 0:
        raise ValueError(f"expected a learning rate of 0 or more, got {lr:g}")
    d = gradient if direction is None else direction
    return float(-lr * gradient @ d + 0.5 * lr**2 * d @ hessian @ d)


def uphill_step(gradient: Vector, hessian: Matrix, direction: Vector | None = None) -> float:
    r"""Return the largest learning rate at which the quadratic model is not above its start.

    .. math:: \eta = \frac{2\,g^Td}{d^THd}

    It is 0 where :math:`g^Td < 0`, since even short steps go uphill, and infinite where
    :math:`d^THd \le 0`, since the model then rises at no rate. d is as in :func:`step_gain`.
    Source: L1-18.

    >>> uphill_step(np.array([2.0]), np.array([[4.0]]))
    0.5
    >>> uphill_step(np.array([2.0]), np.array([[-4.0]]))
    inf
    >>> uphill_step(np.array([2.0]), np.array([[-4.0]]), direction=np.array([-1.0]))
    0.0
    """
    d = gradient if direction is None else direction
    slope, curvature = float(gradient @ d), float(d @ hessian @ d)
    if slope < 0:
        return 0.0
    return 2 * slope / curvature if curvature > 0 else math.inf


# --- Curvature without a Hessian --------------------------------------------------------------


def difference_hessian_vector_product(
    gradient: Callable[[Vector], Vector], w: Vector, v: Vector, step: float
) -> Vector:
    r"""Multiply the Hessian with a vector by two gradients, without forming it (Source: L1-19).

    .. math:: Hv \approx \frac{\nabla J(w + sv) - \nabla J(w - sv)}{2s}

    The error is of order s²; the cost is that of two gradients, whatever n. ``gradient`` maps an
    (n,) array to ∇J there. Raises ValueError where s, the ``step``, is not positive.

    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> difference_hessian_vector_product(lambda w: H @ w, np.ones(2), np.array([1.0, 0.0]), 0.5)
    array([2., 1.])
    """
    if step <= 0:
        raise ValueError(f"expected a positive step, got {step:g}")
    return (gradient(w + step * v) - gradient(w - step * v)) / (2 * step)


def power_iteration(
    gradient: Callable[[Vector], Vector], w: Vector, v: Vector, step: float, steps: int
) -> Float[np.ndarray, " k"]:
    r"""Estimate the Hessian's eigenvalue of largest absolute value, from gradients.

    .. math:: v \leftarrow \frac{v}{\lVert v\rVert}, \qquad \lambda \approx v^THv,
        \qquad v \leftarrow Hv

    The products are those of :func:`difference_hessian_vector_product`; there is an estimate for
    each of the k steps. v is the vector to start with, and s, the ``step``, belongs to the
    differences. Source: L1-19, F-02.

    >>> H = np.diag([1.0, -3.0])
    >>> power_iteration(lambda w: H @ w, np.ones(2), np.ones(2), step=0.1, steps=4).round(2)
    array([-1.  , -2.6 , -2.95, -2.99])
    """
    estimates = []
    for _ in range(steps):
        v = v / np.linalg.norm(v)
        product = difference_hessian_vector_product(gradient, w, v, step)
        estimates.append(v @ product)
        v = product
    return np.array(estimates)


def gradient_cosines(
    gradient: Callable[[Vector], Vector], w: Vector, lr: float, steps: int
) -> Float[np.ndarray, " k"]:
    r"""Return the cosines of the angles between consecutive gradients of gradient descent.

    .. math:: \frac{g_{t}^Tg_{t+1}}{\lVert g_t\rVert\,\lVert g_{t+1}\rVert}

    Near 1 the gradient keeps its direction; near −1 the iterates oscillate across a valley. There
    is a cosine for each step; ``gradient`` maps an (n,) array to ∇J there. Source: F-02.

    >>> gradient_cosines(lambda w: w, np.array([1.0, 1.0]), lr=1.5, steps=3).round(6)
    array([-1., -1., -1.])
    """
    cosines, g = [], gradient(w)
    for _ in range(steps):
        w = w - lr * g
        last, g = g, gradient(w)
        cosines.append(last @ g / (np.linalg.norm(last) * np.linalg.norm(g)))
    return np.array(cosines)


# --- Many weights, one function ---------------------------------------------------------------


def permute_hidden_units(
    W: Float[np.ndarray, "h d"],
    b: Float[np.ndarray, " h"],
    v: Float[np.ndarray, " h"],
    order: Sequence[int],
) -> Units:
    r"""Exchange the hidden units of :math:`f(x) = v^T\phi(Wx + b)` without changing f.

    W and b are incoming weights and biases, v outgoing weights; the new unit i is the old unit
    ``order[i]``. Raises ValueError where ``order`` is not a permutation. W, b and v are returned in
    the new order. Source: L1-20.

    >>> W, b, v = np.array([[1.0], [2.0]]), np.array([3.0, 4.0]), np.array([5.0, 6.0])
    >>> permute_hidden_units(W, b, v, [1, 0])
    (array([[2.],
           [1.]]), array([4., 3.]), array([6., 5.]))
    """
    if sorted(order) != list(range(len(v))):
        raise ValueError(f"expected a permutation of 0 to {len(v) - 1}, got {list(order)}")
    rows = list(order)
    return W[rows], b[rows], v[rows]


def rescale_hidden_units(
    W: Float[np.ndarray, "h d"],
    b: Float[np.ndarray, " h"],
    v: Float[np.ndarray, " h"],
    factors: Float[np.ndarray, " h"],
) -> Units:
    r"""Scale the input of ReLU i by t_i and its output by 1/t_i: the function is unchanged.

    Source: L1-20

    .. math:: \tfrac{v_i}{t_i}\,\mathrm{relu}(t_i w_i^T x + t_i b_i)
        = v_i\,\mathrm{relu}(w_i^T x + b_i), \qquad t_i > 0

    W, b and v are those of :func:`permute_hidden_units`, and t the ``factors``. Raises ValueError
    where a factor is not positive: the ReLU is not linear across zero.

    >>> W, b, v = np.array([[1.0]]), np.array([2.0]), np.array([6.0])
    >>> rescale_hidden_units(W, b, v, np.array([3.0]))
    (array([[3.]]), array([6.]), array([2.]))
    """
    if not np.all(factors > 0):
        raise ValueError(
            f"expected positive factors, got {float(np.min(factors)):g}: relu(−z) is not −relu(z)"
        )
    return W * factors[:, None], b * factors, v / factors


def canonical_units(
    W: Float[np.ndarray, "h d"], b: Float[np.ndarray, " h"], v: Float[np.ndarray, " h"]
) -> Units:
    r"""Return the setting that stands for all orders and scalings of ReLU units (Source: L1-20).

    Each unit is scaled so that its incoming and its outgoing weights have the same norm,

    .. math:: t_i = \sqrt{\lvert v_i\rvert\,/\,\lVert(w_i, b_i)\rVert},

    which gives the smallest sum of squares, and the outgoing weights are in ascending order. A unit
    with a zero (wᵢ, bᵢ) or vᵢ raises ValueError. W, b and v are those of
    :func:`permute_hidden_units`.

    >>> W, b, v = np.array([[1.0], [3.0]]), np.array([0.0, 4.0]), np.array([1.0, -20.0])
    >>> canonical_units(W, b, v)
    (array([[6.],
           [1.]]), array([8., 0.]), array([-10.,   1.]))
    """
    incoming = np.sqrt((W**2).sum(axis=1) + b**2)
    if not (incoming * v).all():
        raise ValueError("expected units whose incoming and outgoing weights are not zero")
    W, b, v = rescale_hidden_units(W, b, v, np.sqrt(np.abs(v) / incoming))
    return permute_hidden_units(W, b, v, np.argsort(v).tolist())


def equivalent_minima(units: int, layers: int) -> int:
    """Return the number of orders of the units of all layers: :math:`(n!)^m` (Source: L1-20).

    Here n is the number of units in each of m layers.

    >>> equivalent_minima(3, 2), len(str(equivalent_minima(100, 2)))
    (36, 316)
    """
    return math.factorial(units) ** layers


def relu_hessian_at_a_fit(
    W: Float[np.ndarray, "h d"], v: Float[np.ndarray, " h"], x: Float[np.ndarray, "m d"]
) -> Float[np.ndarray, "p p"]:
    r"""Return the Hessian of least squares where the network fits every example (Source: P-06).

    .. math:: J = \frac1{2m}\sum_i \bigl(f(x^{(i)}) - y^{(i)}\bigr)^2
        \quad\Rightarrow\quad H = \frac1m A^T A \quad\text{where } f(x^{(i)}) = y^{(i)}

    A holds the gradients of f, one example a row. The rest of the Hessian is multiplied by the
    residuals, which are zero. The network is :math:`f(x) = v^T \mathrm{relu}(Wx)`, the parameters
    are W row by row, then v.

    >>> relu_hessian_at_a_fit(np.array([[2.0]]), np.array([3.0]), np.array([[1.0]]))
    array([[9., 6.],
           [6., 4.]])
    """
    A = _relu_network(np.append(W, v), x)[1]
    return A.T @ A / len(x)


def _relu_network(
    p: Float[np.ndarray, " p"], x: Float[np.ndarray, "m d"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m p"]]:
    """Return the outputs of the network and their gradients, for W row by row and then v."""
    h = len(p) // (x.shape[1] + 1)
    W, v = p[:-h].reshape(h, -1), p[-h:]
    z = x @ W.T
    gates = ((z > 0) * v)[:, :, None] * x[:, None, :]
    hidden = np.maximum(z, 0)
    return hidden @ v, np.concatenate([gates.reshape(len(x), -1), hidden], axis=1)


def relu_descent(
    W: Float[np.ndarray, "h d"],
    v: Float[np.ndarray, " h"],
    x: Float[np.ndarray, "m d"],
    start: Float[np.ndarray, " p"],
    lr: float,
    steps: int,
) -> Float[np.ndarray, "t p"]:
    """Fit a ReLU network to the outputs of another one by gradient descent (Source: P-06).

    Network and parameters are those of :func:`relu_hessian_at_a_fit`; W and v are those of the
    other network, whose outputs are the targets. The start is the first of steps + 1 rows.

    >>> W, v, x = np.array([[2.0]]), np.array([3.0]), np.array([[1.0]])
    >>> relu_descent(W, v, x, np.array([2.0, 4.0]), 0.1, 1)
    array([[2. , 4. ],
           [1.2, 3.6]])
    """
    targets = _relu_network(np.append(W, v), x)[0]
    path = [start]
    for _ in range(steps):
        outputs, A = _relu_network(path[-1], x)
        path.append(path[-1] - lr * A.T @ (outputs - targets) / len(x))
    return np.array(path)


def distance_to_scalings(
    W: Float[np.ndarray, "h d"], v: Float[np.ndarray, " h"], point: Float[np.ndarray, " p"]
) -> float:
    r"""Return the distance of a point to the nearest scaling of a ReLU network (Source: P-06).

    .. math:: \min_{t > 0}\ \sqrt{\sum_i \lVert w'_i - t_i w_i\rVert^2
        + (v'_i - v_i/t_i)^2}

    All scalings of a minimizer are minimizers, so this is the distance that shrinks at the rate of
    κ*. The minimum is taken for each unit alone, between t = 1/e and e. The point is W′ row by row,
    then v′. The network is that of :func:`relu_hessian_at_a_fit`.

    >>> W, v = np.array([[3.0, 4.0]]), np.array([2.0])
    >>> distance_to_scalings(W, v, np.array([6.0, 8.0, 1.0])) < 1e-6
    True
    """
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    h, d = W.shape
    rows, outgoing = point[: h * d].reshape(h, d), point[h * d :]

    def square(log_factor: float, i: int) -> float:
        factor = math.exp(log_factor)
        inner = rows[i] - factor * W[i]
        return float(inner @ inner + (outgoing[i] - v[i] / factor) ** 2)

    options = {"xatol": 1e-12}
    nearest = [
        minimize_scalar(square, args=(i,), bounds=(-1, 1), method="bounded", options=options).fun
        for i in range(h)
    ]
    return math.sqrt(sum(nearest))


# --- Saddles, cliffs, basins ------------------------------------------------------------------


def minima_fraction(n: int, draws: int, rng: np.random.Generator) -> float:
    """Return the fraction of random symmetric matrices that are positive definite (Source: L1-21).

    For Hessians of random critical points it is the fraction of minima among them. The matrices are
    Gaussian, with twice the variance on the diagonal, so no direction is preferred. There are
    ``draws`` matrices of n rows.

    >>> abs(minima_fraction(1, 20_000, np.random.default_rng(0)) - 0.5) < 0.02
    True
    """
    A = rng.normal(size=(draws, n, n))
    eigenvalues = np.linalg.eigvalsh(A + A.transpose(0, 2, 1))
    return float(np.mean(eigenvalues[:, 0] > 0))


def recurrent_cliff(steps: int = 50, start: float = 0.5, target: float = 0.7) -> Problem:
    r"""Return the loss of one recurrent unit, which has a cliff (Source: L1-22).

    .. math:: h_{j+1} = \phi(w h_j + b), \qquad J(w, b) = (h_T - y)^2

    Here φ is the sigmoid, T the number of steps, :math:`h_0` the start and y the target. A product
    of many slopes stands in its gradient. In most places it is nearly zero; where the dynamics turn
    from one fixed point to another, it is enormous.

    >>> cliff = recurrent_cliff(steps=1, start=0.0)
    >>> round(cliff.value(np.array([3.0, 0.0])), 4)
    0.04
    """

    def output(p: Vector) -> float:
        h, (weight, bias) = start, p.tolist()
        for _ in range(steps):
            h = 1 / (1 + math.exp(-(weight * h + bias)))
        return h

    def derivatives(p: Vector) -> tuple[float, np.ndarray, np.ndarray]:
        h, first, second = start, np.zeros(2), np.zeros((2, 2))
        for _ in range(steps):
            slope_in = np.array([h, 1.0]) + p[0] * first
            second_in = p[0] * second + np.outer([1.0, 0.0], first) + np.outer(first, [1.0, 0.0])
            h = 1 / (1 + math.exp(-(p[0] * h + p[1])))
            slope = h * (1 - h)
            second = slope * second_in + slope * (1 - 2 * h) * np.outer(slope_in, slope_in)
            first = slope * slope_in
        return h, first, second

    def value(p: Vector) -> float:
        return (output(p) - target) ** 2

    def gradient(p: Vector) -> Vector:
        h, first, _ = derivatives(p)
        return 2 * (h - target) * first

    def hessian(p: Vector) -> Matrix:
        h, first, second = derivatives(p)
        return 2 * np.outer(first, first) + 2 * (h - target) * second

    return Problem("recurrent cliff", value, gradient, hessian, None, np.array([6.0, -3.2]))


def basins(
    problem: Problem,
    minima: Float[np.ndarray, "k n"],
    starts: Float[np.ndarray, "s n"],
    lr: float,
    steps: int,
) -> Float[np.ndarray, " s"]:
    """Run gradient descent from many starts; return the row of the minimum nearest to each end.

    The row is NaN where the end is 0.01 or farther from every minimum. Source: L2-02.

    >>> from optdl.problems import quadratic
    >>> basins(quadratic(np.eye(1)), np.zeros((1, 1)), np.array([[2.0], [-3.0]]), 0.5, 50)
    array([0., 0.])
    """
    ends = starts.copy()
    for _ in range(steps):
        ends = ends - lr * problem.gradients(ends)
    distances = np.linalg.norm(ends[:, None] - minima[None], axis=2)
    return np.where(distances.min(axis=1) < 1e-2, distances.argmin(axis=1), np.nan)


# --- Clipping ---------------------------------------------------------------------------------


def global_norm(gradients: Tree) -> float:
    r"""Return the norm of all gradients: :math:`\sqrt{\sum_i \lVert g_i\rVert^2}` (Source: L1-22).

    The gradients are arrays or tensors, or lists, tuples and dicts of them.

    >>> global_norm({"w": np.array([3.0]), "b": [np.array([4.0])]})
    5.0
    """
    squares: list[float] = []

    def add(leaf: Any) -> None:
        if leaf.dtype.itemsize == 2:  # half precision has no room for the squares
            leaf = leaf.float() if hasattr(leaf, "float") else leaf.astype(float)
        squares.append(float((leaf * leaf).sum()))

    _map(add, gradients)
    return math.sqrt(sum(squares))


def clip_by_norm(gradients: Tree, max_norm: float) -> Tree:
    r"""Shorten the gradient to ``max_norm`` if it is longer; keep its direction (Source: L1-22).

    .. math:: g \leftarrow g \cdot \min\Bigl(1, \frac{c}{\lVert g\rVert}\Bigr)

    Here c is ``max_norm``, and the norm is that of **all** parts together. Clipping each part alone
    would turn the gradient. The gradients are as in :func:`global_norm`; new ones of the same
    structure are returned. Raises ValueError where c is not positive, or the gradient holds NaN or
    infinity, which no scale could mend.

    >>> clip_by_norm([np.array([30.0]), np.array([40.0])], 5.0)
    [array([3.]), array([4.])]
    """
    if not max_norm > 0:
        raise ValueError(f"expected a positive max_norm, got {max_norm:g}")
    norm = global_norm(gradients)
    if not math.isfinite(norm):
        raise ValueError("expected finite gradients; they hold NaN or infinity")
    factor = 1.0 if norm <= max_norm else max_norm / norm
    return _map(lambda leaf: leaf * factor, gradients)


def clip_by_value(gradients: Tree, limit: float) -> Tree:
    r"""Cut every entry of the gradient off at ±c; this can turn the gradient (Source: L1-22).

    .. math:: g_i \leftarrow \min(\max(g_i, -c), c)

    Here c is the ``limit``, and gradients are as in :func:`clip_by_norm`. Raises ValueError where c
    is not positive.

    >>> clip_by_value({"w": np.array([-3.0, 0.5])}, 1.0)
    {'w': array([-1. ,  0.5])}
    """
    if not limit > 0:
        raise ValueError(f"expected a positive limit, got {limit:g}")
    return _map(lambda leaf: leaf.clip(-limit, limit), gradients)


def _map(change: Callable[[Any], Any], tree: Tree) -> Tree:
    if isinstance(tree, Mapping):
        return {name: _map(change, part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        parts = [_map(change, part) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return change(tree)


# --- Inexact gradients ------------------------------------------------------------------------


def limit_point(hessian: Matrix, minimum: Vector, bias: Vector) -> Vector:
    r"""Return the limit of gradient descent when every gradient has the same error (Source: L1-23).

    .. math:: H(w - w^*) + c = 0 \quad\Rightarrow\quad w = w^* - H^{-1}c

    Neither the learning rate nor the number of steps appears: they cannot remove a bias. Here c is
    the ``bias``. Raises ValueError where H is not positive definite: there is no limit then.

    >>> limit_point(np.diag([1.0, 4.0]), np.zeros(2), np.array([1.0, 1.0]))
    array([-1.  , -0.25])
    """
    if not np.linalg.eigvalsh(hessian)[0] > 0:
        raise ValueError("expected a positive definite Hessian: other directions have no limit")
    return minimum - np.linalg.solve(hessian, bias)


def clipped_limit(examples: Float[np.ndarray, " m"], limit: float) -> float:
    r"""Return where the mean of *clipped* gradients is zero, for the loss ½(w − x)².

    .. math:: \frac1m\sum_i \min\bigl(\max(w - x^{(i)}, -c),\ c\bigr) = 0

    Unclipped gradients have their zero at the mean of the examples. Clipped ones are gradients of
    Huber's loss, so the zero tends to the median for c → 0, and to the mean for c → ∞. Here c is
    the ``limit``. Raises ValueError where it is not positive. Source: L1-22, L1-23.

    >>> round(clipped_limit(np.array([0.0] * 9 + [10.0]), 1.0), 6)
    0.111111
    """
    from scipy.optimize import brentq  # slow to import, and seldom needed

    if not limit > 0:
        raise ValueError(f"expected a positive limit, got {limit:g}")

    def mean_gradient(w: float) -> float:
        return float(np.clip(w - examples, -limit, limit).mean())

    low, high = float(examples.min()), float(examples.max())
    return low if low == high else float(brentq(mean_gradient, low, high, xtol=1e-14))


def stationary_variance(eigenvalues: Vector, lr: float, sigma: float) -> Vector:
    r"""Return the variance of the iterates by eigendirection, with noisy gradients (Source: L1-23).

    .. math:: \mathrm{Var}(\alpha_i) = \frac{\eta\,\sigma_e^2}{\lambda_i\,(2 - \eta\lambda_i)}

    The mean is the minimum itself: variance, unlike bias, shrinks with the learning rate. The
    errors of different steps are independent, and their variance does not depend on w. Here σₑ is
    the standard deviation of the noise in each eigendirection, ``sigma``, and a rate η outside
    (0, 2/λmax), or an eigenvalue that is not positive, raises ValueError: the iteration diverges.

    >>> stationary_variance(np.array([1.0, 2.0]), 0.5, 3.0)
    array([3.  , 2.25])
    """
    if not (eigenvalues.min() > 0 and 0 < lr * eigenvalues.max() < 2):
        raise ValueError(
            "expected positive eigenvalues and "
            f"a learning rate in (0, {2 / eigenvalues.max():g}), got {lr:g}: the iteration diverges"
        )
    return lr * sigma**2 / (eigenvalues * (2 - lr * eigenvalues))


def excess_loss(hessian: Matrix, bias: Vector, lr: float, sigma: float) -> float:
    r"""Return how far the expected loss stays above its minimum with inexact gradients.

    .. math:: \tfrac12\,\bar e^T H^{-1} \bar e + \tfrac12 \sum_i
        \frac{\eta\,\sigma_e^2}{2 - \eta\lambda_i}

    The first term is the loss at the limit of the bias; the second one comes from the variance.
    Here ē, the ``bias``, is the expected error of each gradient, and the rest is as in
    :func:`stationary_variance`. H is positive definite. Source: L1-23.

    >>> excess_loss(np.diag([1.0, 2.0]), np.array([2.0, 0.0]), 0.5, 3.0)
    5.75
    """
    eigenvalues = np.linalg.eigvalsh(hessian)
    variance = stationary_variance(eigenvalues, lr, sigma)
    return float(bias @ np.linalg.solve(hessian, bias) + eigenvalues @ variance) / 2
