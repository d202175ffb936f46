"""Local quadratic approximation, and gradient descent on a quadratic.

Axis letters, fixed for the module: ``n`` parameters, ``t`` iterates (steps + 1), ``s`` step sizes
or distances, ``m`` examples, ``k`` depths. Eigenvalues come in ascending order, as from
``numpy.linalg.eigh``; eigenvectors are the **columns** of their matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from optdl.data import load
from optdl.problems import Problem
from optdl.special import expit

__all__ = [
    "QuadraticModel",
    "alignment",
    "approximation_error",
    "approximation_order",
    "contributions_from_gradient",
    "convergence_rate",
    "depth_norms",
    "eigen_power",
    "eigenbasis",
    "exact_line_search",
    "excess_risk",
    "gd_coefficients",
    "gradient_descent",
    "guaranteed_decrease",
    "largest_stable_step",
    "logistic_regression",
    "loss_contributions",
    "mean_and_covariance",
    "measured_rates",
    "optimal_step",
    "prediction_ratio",
    "scheduled_coefficients",
    "search_along",
    "second_moment",
    "spectral_filter",
    "two_digits",
    "zigzag",
]

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "n n"]
Trajectory = Float[np.ndarray, "t n"]


# --- The model --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class QuadraticModel:
    r"""The second-order Taylor expansion of an objective around one point.

    .. math:: J(w) \approx J(\hat w) + (w-\hat w)^T g + \tfrac12 (w-\hat w)^T H (w-\hat w)

    Its gradient is :math:`g + H(w-\hat w)`. Both g and H are taken at the center ŵ. After a step of
    gradient descent the model lies :math:`\tfrac12\eta^2 g^T H g` above the tangent: above, on or
    below it for a positive, zero or negative curvature along the gradient. ``value`` is J(ŵ) and
    ``slope`` is g. Raises ValueError where H is not symmetric. Source: L1-12, L1-13, L1-39.

    >>> model = QuadraticModel(1.0, np.array([2.0]), np.array([[4.0]]), center=np.array([0.0]))
    >>> model(np.array([1.0])), model.gradient(np.array([1.0])), model.minimum
    (5.0, array([6.]), array([-0.5]))
    """

    value: float
    slope: Vector
    hessian: Matrix
    center: Vector

    def __post_init__(self) -> None:
        _require_symmetric(self.hessian)
        n = len(self.hessian)
        if self.slope.shape != (n,) or self.center.shape != (n,):
            raise ValueError(
                f"slope and center must have shape ({n},) like the {n} × {n} Hessian; "
                f"got {self.slope.shape} and {self.center.shape}"
            )

    @classmethod
    def of(cls, problem: Problem, center: Vector) -> QuadraticModel:
        """Expand ``problem`` around ``center``; calls value, gradient and Hessian once each."""
        return cls(
            value=float(problem.value(center)),
            slope=problem.gradient(center),
            hessian=problem.hessian(center),
            center=center,
        )

    def __call__(self, w: Vector) -> float:
        """Return the model's value at ``w``."""
        step = w - self.center
        return float(self.value + step @ self.slope + 0.5 * step @ self.hessian @ step)

    def gradient(self, w: Vector) -> Vector:
        """Return the model's gradient g + H(w − ŵ) at ``w``."""
        return self.slope + self.hessian @ (w - self.center)

    @property
    def minimum(self) -> Vector:
        """The unique minimum of the model, ŵ − H⁻¹g.

        Raises ValueError where H is not positive definite: no minimum is then unique.
        """
        smallest = float(np.linalg.eigvalsh(self.hessian)[0])
        if smallest <= 0:
            raise ValueError(
                f"a minimum needs a positive definite Hessian; the smallest eigenvalue is "
                f"{smallest:.3g}, so the model is flat or unbounded below in that direction"
            )
        return self.center - np.linalg.solve(self.hessian, self.slope)


def prediction_ratio(
    value: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    hessian: Callable[[Vector], Matrix],
    center: Vector,
    w: Vector,
) -> float:
    r"""Divide the change of J up to ``w`` by the change that the model predicts (Source: L1-12).

    .. math:: \frac{J(w) - J(\hat w)}{(w-\hat w)^T g + \tfrac12 (w-\hat w)^T H (w-\hat w)}

    A ratio near 1 says that the model can be trusted as far as ``w``: trust-region methods choose
    the length of their next step by it. ``value``, ``gradient`` and ``hessian`` are functions of an
    (n,) array, and the model must predict a change.

    >>> prediction_ratio(lambda w: float(w[0] ** 3), lambda w: 3 * w**2, lambda w: np.diag(6 * w),
    ...                  center=np.array([1.0]), w=np.array([2.0]))
    1.1666666666666667
    """
    model = QuadraticModel(float(value(center)), gradient(center), hessian(center), center)
    return float((value(w) - model.value) / (model(w) - model.value))


def approximation_error(
    problem: Problem,
    center: Vector,
    direction: Vector,
    distances: Float[np.ndarray, " s"],
) -> Float[np.ndarray, " s"]:
    r"""Return :math:`|J(w) - \text{model}(w)|` at distances from the center (Source: L1-12).

    The distances are measured along ``direction``, a nonzero vector of any length. A direction of
    zero raises ValueError.

    >>> from optdl.problems import quadratic
    >>> bowl = quadratic(np.diag([1.0, 3.0]))
    >>> approximation_error(bowl, np.ones(2), np.ones(2), np.array([0.5])) < 1e-14
    array([ True])
    """
    length = np.linalg.norm(direction)
    if length == 0:
        raise ValueError("direction must be nonzero: the error is measured along it")
    model = QuadraticModel.of(problem, center)
    points = center + distances[:, None] * (direction / length)
    return np.array([abs(float(problem.value(w)) - model(w)) for w in points])


def approximation_order(
    distances: Float[np.ndarray, " s"], errors: Float[np.ndarray, " s"]
) -> float:
    """Return the order p of errors ≈ C · distanceᵖ, their slope in log–log axes (Source: L1-12).

    The quadratic model of a smooth function has the order 3, or a higher one if the third
    derivative vanishes along the line. Raises ValueError where a number is not positive and has no
    logarithm.

    >>> h = np.array([0.1, 0.2, 0.4])
    >>> round(approximation_order(h, 7 * h**3), 12)
    3.0
    """
    if not (np.all(distances > 0) and np.all(errors > 0) and len(np.unique(distances)) > 1):
        raise ValueError("distances, two or more, and errors must be positive for log–log axes")
    return float(np.polyfit(np.log(distances), np.log(errors), deg=1)[0])


# --- The eigenbasis ---------------------------------------------------------------------------


def eigenbasis(hessian: Matrix) -> tuple[Vector, Matrix]:
    r"""Return the eigenvalues (ascending) and orthonormal eigenvectors (columns) of H.

    .. math:: H u_i = \lambda_i u_i, \qquad u_i^T u_j = \delta_{ij}

    If u is an eigenvector, so is −u. Here the entry of the largest absolute value is positive, so
    that the result does not depend on the library that computes it. Raises ValueError where H is
    not symmetric. Source: L1-14.

    >>> eigenvalues, eigenvectors = eigenbasis(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> eigenvalues
    array([1., 3.])
    """
    _require_symmetric(hessian)
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    largest = np.abs(eigenvectors).argmax(axis=0)
    return eigenvalues, eigenvectors * np.sign(eigenvectors[largest, np.arange(len(largest))])


def contributions_from_gradient(hessian: Matrix, gradient: Vector) -> Vector:
    r"""Return what each eigendirection contributes to the loss above its minimum (Source: L1-14).

    .. math:: J(w) - J(w^*) = \tfrac12 \sum_i \lambda_i \alpha_i^2, \qquad \alpha_i = u_i^T (w-w^*)

    w* need not be known: on a quadratic :math:`u_i^T g = \lambda_i\alpha_i`, so

    .. math:: \tfrac12\lambda_i\alpha_i^2 = \frac{(u_i^T g)^2}{2\lambda_i}

    A Hessian that is not positive definite raises ValueError: the gradient does not determine w*
    then.

    >>> contributions_from_gradient(np.diag([1.0, 4.0]), np.array([2.0, 12.0]))
    array([ 2., 18.])
    """
    eigenvalues, eigenvectors = eigenbasis(hessian)
    _require_positive(eigenvalues)
    return (eigenvectors.T @ gradient) ** 2 / (2.0 * eigenvalues)


# --- Gradient descent -------------------------------------------------------------------------


def gradient_descent(
    gradient: Callable[[Vector], Vector], start: Vector, lr: float, steps: int
) -> Trajectory:
    r"""Iterate :math:`w \leftarrow w - \eta \nabla J(w)`; return all iterates, start first.

    Source: L1-15

    ``gradient`` maps an (n,) array to ∇J there. Raises ValueError where ``steps`` is negative.

    >>> gradient_descent(lambda w: 2 * w, np.array([1.0]), lr=0.25, steps=3).ravel()
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    _require_steps(steps)
    iterates = [start]
    for _ in range(steps):
        iterates.append(iterates[-1] - lr * gradient(iterates[-1]))
    return np.array(iterates)


def gd_coefficients(alpha0: Vector, eigenvalues: Vector, lr: float, steps: int) -> Trajectory:
    r"""Return the eigenbasis coefficients of gradient descent, in closed form (Source: L1-15).

    On a quadratic the directions decouple, :math:`\Delta\alpha_i = -\eta\lambda_i\alpha_i`, so

    .. math:: \alpha_i^{(\tau)} = (1 - \eta\lambda_i)^\tau \, \alpha_i^{(0)}

    Row τ has the coefficients of w − w* after τ steps, row 0 ``alpha0``. Along a negative
    eigenvalue they grow. Raises ValueError where ``steps`` is negative.

    >>> gd_coefficients(np.array([1.0, 1.0]), np.array([1.0, 3.0]), lr=0.5, steps=2)
    array([[ 1.  ,  1.  ],
           [ 0.5 , -0.5 ],
           [ 0.25,  0.25]])
    """
    _require_steps(steps)
    tau = np.arange(steps + 1)[:, None]
    return (1.0 - lr * eigenvalues) ** tau * alpha0


def scheduled_coefficients(
    alpha0: Vector, eigenvalues: Vector, lrs: Float[np.ndarray, " s"]
) -> Trajectory:
    r"""Return the eigenbasis coefficients of gradient descent with changing rates (Source: L1-15).

    .. math:: \alpha_i^{(\tau)} = \alpha_i^{(0)} \prod_{t=1}^{\tau} (1 - \eta_t\lambda_i)

    The order of the learning rates does not matter after the last of them. With
    :math:`\eta_t = 1/\lambda_t` all n coefficients are 0 after n steps. The rows are those of
    :func:`gd_coefficients`; ``lrs`` has a rate for each step.

    >>> scheduled_coefficients(np.array([4.0, 4.0]), np.array([1.0, 2.0]), np.array([0.25, 0.5]))
    array([[4. , 4. ],
           [3. , 2. ],
           [1.5, 0. ]])
    """
    factors = 1.0 - lrs[:, None] * eigenvalues
    return np.concatenate([[alpha0], alpha0 * np.cumprod(factors, axis=0)])


def loss_contributions(alpha0: Vector, eigenvalues: Vector, lr: float, steps: int) -> Trajectory:
    r"""Return what each eigendirection adds to the loss, step by step (Source: F-26).

    .. math:: J(w^{(\tau)}) - J(w^*)
              = \tfrac12 \sum_i \lambda_i (1-\eta\lambda_i)^{2\tau} \bigl(\alpha_i^{(0)}\bigr)^2

    Row τ has the terms of the sum after τ steps. Raises ValueError where ``steps`` is negative.

    >>> loss_contributions(np.array([2.0, 1.0]), np.array([1.0, 4.0]), lr=0.25, steps=1)
    array([[2.   , 2.   ],
           [1.125, 0.   ]])
    """
    return eigenvalues * gd_coefficients(alpha0, eigenvalues, lr, steps) ** 2 / 2


def spectral_filter(eigenvalues: Vector, lr: float, steps: int) -> Trajectory:
    r"""Return what fraction of the fit gradient descent has learned along each eigenvector.

    .. math:: u_i^T w^{(\tau)} = \bigl(1 - (1-\eta\lambda_i)^\tau\bigr)\, u_i^T w^*

    The start is 0, where nothing is learned: row τ has the fractions after τ steps. Early stopping
    keeps the steep directions. Raises ValueError where ``steps`` is negative. Source: F-26.

    >>> spectral_filter(np.array([0.5, 1.0]), lr=1.0, steps=2)
    array([[0.  , 0.  ],
           [0.5 , 1.  ],
           [0.75, 1.  ]])
    """
    return 1.0 - gd_coefficients(np.ones(len(eigenvalues)), eigenvalues, lr, steps)


def excess_risk(
    signal: Vector, eigenvalues: Vector, lr: float, steps: int, sigma: float, m: int
) -> Float[np.ndarray, " t"]:
    r"""Return the expected loss of an early stopped fit to noisy labels, step by step.

    The labels of m examples are those of true weights, with the coefficients :math:`c_i` of
    ``signal`` in the eigenbasis of H, plus noise of the standard deviation ``sigma``. Gradient
    descent starts at 0. Its loss on the labels without noise is, on average over the noise,

    .. math:: \tfrac12 \sum_i \lambda_i (1-\eta\lambda_i)^{2\tau} c_i^2
              + \frac{\sigma^2}{2m} \sum_i \bigl(1 - (1-\eta\lambda_i)^\tau\bigr)^2 .

    Entry τ is the loss after τ steps. Raises ValueError where ``steps`` is negative. Source: F-26.

    >>> excess_risk(np.array([2.0]), np.array([0.5]), lr=1.0, steps=2, sigma=2.0, m=4)
    array([1.     , 0.375  , 0.34375])
    """
    missing = loss_contributions(signal, eigenvalues, lr, steps)
    noise = sigma**2 / (2 * m) * spectral_filter(eigenvalues, lr, steps) ** 2
    return (missing + noise).sum(axis=1)


def guaranteed_decrease(gradient: Vector, lr: float, largest: float) -> float:
    r"""Return by how much a step of gradient descent lowers any loss at least (Source: F-26).

    .. math:: J(w) - J(w-\eta g) \ge \eta\,\bigl(1 - \tfrac12 L\eta\bigr)\,\lVert g\rVert^2

    L, the ``largest``, bounds the absolute eigenvalues of the Hessian between both points. The
    bound is positive for 0 < η < 2/L, largest for η = 1/L. Raises ValueError where L is negative.

    >>> guaranteed_decrease(np.array([3.0, 4.0]), lr=0.1, largest=10.0)
    1.25
    """
    if largest < 0:
        raise ValueError(f"L bounds absolute values and is not negative; got {largest:g}")
    return float(lr * (1.0 - largest * lr / 2.0) * (gradient @ gradient))


def largest_stable_step(eigenvalues: Vector) -> float:
    r"""Return :math:`2/\lambda_{max}`, below which gradient descent converges on a quadratic.

    At the limit itself the coefficient of the steepest direction changes sign at each step and
    keeps its size, :math:`1-\eta\lambda_{max}=-1`. An eigenvalue that is not positive raises
    ValueError: no rate then makes every coefficient shrink. Source: L1-15.

    >>> largest_stable_step(np.array([0.5, 4.0]))
    0.5
    """
    _require_positive(eigenvalues)
    return float(2.0 / eigenvalues.max())


def convergence_rate(lr: float, eigenvalues: Vector) -> float:
    r"""Return the factor by which one step shrinks the error in the worst direction (Source: P-05).

    .. math:: r = \max_i |1 - \eta\lambda_i|
                = \max\{|1-\eta\lambda_{min}|,\ |1-\eta\lambda_{max}|\}

    Here η is the learning rate, ``lr``. Gradient descent converges if r < 1, and diverges if r > 1.

    >>> convergence_rate(0.5, np.array([1.0, 3.0]))
    0.5
    """
    return float(np.abs(1.0 - lr * eigenvalues).max())


def optimal_step(eigenvalues: Vector) -> float:
    r"""Return the learning rate with the smallest convergence rate (Source: P-05).

    .. math:: \eta = \frac{2}{\lambda_{min}+\lambda_{max}}, \qquad
              r = \frac{\kappa-1}{\kappa+1}, \qquad \kappa = \frac{\lambda_{max}}{\lambda_{min}}

    An eigenvalue that is not positive raises ValueError.

    >>> step = optimal_step(np.array([1.0, 2.0, 3.0]))
    >>> step, convergence_rate(step, np.array([1.0, 2.0, 3.0]))
    (0.5, 0.5)
    """
    _require_positive(eigenvalues)
    return float(2.0 / (eigenvalues.min() + eigenvalues.max()))


def measured_rates(
    hessian: Matrix, start: Vector, lrs: Float[np.ndarray, " s"], steps: int
) -> Float[np.ndarray, " s"]:
    r"""Measure how fast gradient descent on ½ wᵀHw converges at each learning rate (Source: P-05).

    The measure is :math:`\|w^{(T)}\| / \|w^{(T-1)}\|`, the factor of the last step. From
    almost every start it approaches :func:`convergence_rate`: after many steps only the slowest
    direction is left. It is NaN where step T starts at the minimum, 0. Raises ValueError where H is
    not symmetric, or T, the ``steps``, is less than 1.

    >>> measured_rates(np.diag([1.0, 3.0]), np.ones(2), np.array([0.1, 0.5]), 9999).round(6)
    array([0.9, 0.5])
    """
    if steps < 1:
        raise ValueError(f"a rate needs at least 1 step; got steps={steps}")
    _require_symmetric(hessian)
    rates = []
    for lr in lrs:
        w = start
        # from a vector of length 1 each time, as long runs leave the range of numbers
        for _ in range(steps):
            w = w / np.linalg.norm(w)
            w = w - lr * (hessian @ w)
        rates.append(np.linalg.norm(w))
    return np.array(rates)


# --- The mean input ---------------------------------------------------------------------------


def second_moment(
    x: Float[np.ndarray, "m n"], weights: Float[np.ndarray, " m"] | None = None
) -> Matrix:
    r"""Return the mean of :math:`x x^T`, the Hessian of a linear model (Source: F-08).

    .. math:: H = \frac1m \sum_i s_i\, x_i x_i^T

    The weights are the second derivatives of the loss in the score :math:`w \cdot x_i`: 1 for least
    squares with the loss :math:`\tfrac12 (w \cdot x - y)^2`, and :math:`\sigma_i (1 - \sigma_i)`
    for the logistic loss. They are 1 when not given. A column of ones in x stands for a bias.
    Raises ValueError where a weight is negative or all are zero.

    >>> second_moment(np.array([[3.0, 1.0], [1.0, 1.0]]))
    array([[5., 2.],
           [2., 1.]])
    """
    s = _require_weights(weights, len(x))
    return (x.T * s) @ x / len(x)


def mean_and_covariance(
    x: Float[np.ndarray, "m n"], weights: Float[np.ndarray, " m"] | None = None
) -> tuple[Vector, Matrix]:
    r"""Return the mean and the covariance of inputs, the parts of :func:`second_moment`.

    .. math:: H = \bar s\,\bigl(C + \bar x \bar x^T\bigr), \qquad
              \bar x = \frac{\sum_i s_i x_i}{\sum_i s_i}, \qquad
              C = \frac{\sum_i s_i (x_i - \bar x)(x_i - \bar x)^T}{\sum_i s_i}

    The second part has rank one and the eigenvalue :math:`\|\bar x\|^2`. Inputs of mean zero do not
    have it. The weights s, and errors, are those of :func:`second_moment`. Source: F-08.

    >>> mean_and_covariance(np.array([[3.0, 1.0], [1.0, 1.0]]))
    (array([2., 1.]), array([[1., 0.],
           [0., 0.]]))
    """
    s = _require_weights(weights, len(x))
    mean = s @ x / s.sum()
    deviations = x - mean
    return mean, (deviations.T * s) @ deviations / s.sum()


def alignment(a: Vector, b: Vector) -> float:
    r"""Return :math:`|\cos\angle(a, b)|`: 1 for parallel, 0 for orthogonal vectors (Source: F-08).

    The sign is dropped, because an eigenvector has none. Raises ValueError where a vector is zero:
    it has no direction.

    >>> alignment(np.array([3.0, 4.0]), np.array([-6.0, -8.0]))
    1.0
    """
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    if lengths == 0:
        raise ValueError("expected two vectors that are not zero: a zero vector has no direction")
    return float(abs(a @ b) / lengths)


# --- Exact line search ------------------------------------------------------------------------


def exact_line_search(hessian: Matrix, start: Vector, steps: int) -> Trajectory:
    r"""Minimize ½ wᵀHw along the negative gradient in each step; return all iterates.

    .. math:: w \leftarrow w - \eta g, \qquad
              \eta = \arg\min_\eta J(w - \eta g) = \frac{g^T g}{g^T H g}, \qquad g = Hw

    Each step ends where the line touches a level curve, so that consecutive gradients are
    orthogonal. The minimum is at 0; once it is reached, the iterate stays there. Raises ValueError
    where H is not symmetric positive definite, or ``steps`` is negative. Source: L1-16.

    >>> exact_line_search(np.diag([1.0, 0.5]), np.array([0.5, 1.0]), steps=1)
    array([[ 0.5       ,  1.        ],
           [-0.16666667,  0.33333333]])
    """
    _require_steps(steps)
    _require_positive(eigenbasis(hessian)[0])
    iterates = [start]
    for _ in range(steps):
        g = hessian @ iterates[-1]
        curvature = g @ hessian @ g
        lr = g @ g / curvature if curvature > 0 else 0.0
        iterates.append(iterates[-1] - lr * g)
    return np.array(iterates)


def search_along(
    hessian: Matrix, start: Vector, directions: Float[np.ndarray, "s n"]
) -> Trajectory:
    r"""Minimize ½ wᵀHw along each of the given directions in turn; return all iterates.

    Source: L1-16

    .. math:: w \leftarrow w + \eta v, \qquad
              \eta = \arg\min_\eta J(w + \eta v) = -\frac{g^T v}{v^T H v}, \qquad g = Hw

    A row of ``directions`` is a v, not zero and of any length; the minimum is at 0. Raises
    ValueError where H is not symmetric positive definite.

    >>> search_along(np.diag([1.0, 4.0]), np.array([1.0, 1.0]), np.array([[1.0, 0.0], [0.0, 3.0]]))
    array([[1., 1.],
           [0., 1.],
           [0., 0.]])
    """
    _require_positive(eigenbasis(hessian)[0])
    if not directions.any(axis=1).all():
        raise ValueError("every direction must be nonzero: the loss is minimized along it")
    iterates = [start]
    for v in directions:
        g = hessian @ iterates[-1]
        iterates.append(iterates[-1] - (g @ v) / (v @ hessian @ v) * v)
    return np.array(iterates)


def zigzag(b: float, steps: int) -> Float[np.ndarray, "t 2"]:
    r"""Return the exact line search on ½(x² + by²) from (b, 1), in closed form (Source: L1-16).

    .. math:: x_k = b \left(\frac{b-1}{b+1}\right)^k, \qquad y_k = \left(\frac{1-b}{1+b}\right)^k

    A row of the result is (x_k, y_k). Raises ValueError where b does not lie in (0, 1], or
    ``steps`` is negative.

    >>> zigzag(0.5, steps=1)
    array([[ 0.5       ,  1.        ],
           [-0.16666667,  0.33333333]])
    """
    if not 0 < b <= 1:
        raise ValueError(f"the valley ½(x² + by²) needs 0 < b ≤ 1; got b={b}")
    _require_steps(steps)
    k = np.arange(steps + 1)
    return np.stack([b * ((b - 1) / (b + 1)) ** k, ((1 - b) / (1 + b)) ** k], axis=1)


# --- Powers of one matrix ---------------------------------------------------------------------


def eigen_power(weight: Matrix, k: int) -> Matrix:
    r"""Return the k-th power of a diagonalizable matrix through its eigenvalues (Source: L2-01).

    .. math:: W^k = V \, \mathrm{diag}(\lambda_1^k, \dots, \lambda_n^k) \, V^{-1}

    W need not be symmetric: V is then not orthogonal, and its inverse is not its transpose. Raises
    ValueError where W is not diagonalizable, or k is negative.

    >>> eigen_power(np.array([[2.0, 1.0], [0.0, 0.5]]), 2)
    array([[4.  , 2.5 ],
           [0.  , 0.25]])
    """
    _require_steps(k)
    eigenvalues, V = np.linalg.eig(weight)
    if np.linalg.cond(V) > 1e12:
        raise ValueError("weight is not diagonalizable: its eigenvectors do not span the space")
    # X V = V diag(λᵏ), solved for X; complex eigenvalues come in conjugate pairs, so X is real
    power = np.linalg.solve(V.T, (V * eigenvalues**k).T).T
    return np.ascontiguousarray(power.real)


def depth_norms(
    weight: Matrix, x: Vector, readout: Vector, depth: int
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    r"""Return the norms of signal and gradient in a deep linear network that repeats W.

    The network is :math:`\tilde y = v \cdot W^k x`, with v the ``readout``. Its signal after k
    layers is :math:`W^k x`; the gradient of its output with respect to the input is
    :math:`(W^T)^k v`. Both, for k = 0, …, ``depth``, grow or shrink like :math:`|\lambda|^k`.
    Raises ValueError where ``depth`` is negative. Source: L2-01.

    >>> depth_norms(np.diag([2.0, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 1.0]), depth=2)
    (array([1., 2., 4.]), array([1.  , 0.5 , 0.25]))
    """
    _require_steps(depth)
    signal, gradient = [x], [readout]
    for _ in range(depth):
        signal.append(weight @ signal[-1])
        gradient.append(weight.T @ gradient[-1])
    return np.linalg.norm(signal, axis=1), np.linalg.norm(gradient, axis=1)


# --- A real objective -------------------------------------------------------------------------


def two_digits(
    first: int = 3, second: int = 8
) -> tuple[Float[np.ndarray, "m 65"], Float[np.ndarray, " m"]]:
    """Return the training images of two digits with labels +1 and −1 (Source: L1-12, F-08).

    A row has the 64 pixels of an image and a one, whose weight is the bias.

    >>> x, y = two_digits(3, 8)
    >>> x.shape, int(np.sum(y == 1))
    ((258, 65), 131)
    """
    digits = load("digits")
    if first == second or not {first, second} <= set(range(10)):
        raise ValueError(f"expected two digits of 0 to 9; got {first} and {second}")
    chosen = np.isin(digits.y_train, [first, second])
    pixels = digits.x_train[chosen].astype(float)
    y = np.where(digits.y_train[chosen] == first, 1.0, -1.0)
    return np.column_stack([pixels, np.ones(len(y))]), y


def logistic_regression(
    x: Float[np.ndarray, "m n"], y: Float[np.ndarray, " m"], penalty: float = 1e-2
) -> Problem:
    r"""Return regularized logistic regression on the given examples, with its minimum.

    .. math:: J(w) = \frac1m \sum_i \log\bigl(1 + e^{-y_i\, x_i \cdot w}\bigr)
                     + \frac\omega2 \|w\|^2

    It is smooth and convex but not quadratic, so its quadratic model is only local. With
    :math:`p_i = 1/(1 + e^{-x_i \cdot w})` its Hessian is
    :math:`\frac1m X^T \mathrm{diag}(p(1-p)) X + \omega I`. Append a column of ones to x for a bias.
    Raises ValueError where a label is not −1 or +1, or ω, the ``penalty``, is not positive.
    Source: L1-12, L1-15.

    >>> problem = logistic_regression(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), penalty=0.5)
    >>> problem.value(np.zeros(1)) - float(np.log(2))
    0.0
    """
    if y.shape != x.shape[:1] or not np.all(np.abs(y) == 1):
        raise ValueError(f"labels must be −1 or +1, one for each row; got {y[:5]}, {y.shape}")
    if not penalty > 0:
        raise ValueError(f"penalty must be positive, or the minimum may not exist; got {penalty}")
    m, n = x.shape
    signed = y[:, None] * x

    def value(w: Vector) -> float:
        return float(np.logaddexp(0.0, -signed @ w).mean() + 0.5 * penalty * w @ w)

    def gradient(w: Vector) -> Vector:
        return -signed.T @ expit(-signed @ w) / m + penalty * w

    def hessian(w: Vector) -> Matrix:
        s = expit(signed @ w)
        return (signed.T * (s * (1 - s))) @ signed / m + penalty * np.eye(n)

    start = minimum = np.zeros(n)
    # Newton's method, whose step is halved while the loss would grow; a tiny penalty leaves steps
    # of rounding that do not become smaller
    for _ in range(100):
        step = np.linalg.solve(hessian(minimum), gradient(minimum))
        while value(minimum - step) > value(minimum) and np.linalg.norm(step) > 1e-8:
            step /= 2
        minimum = minimum - step
        if np.linalg.norm(step) <= 1e-8:
            break
    return Problem("logistic regression", value, gradient, hessian, minimum, start)


# --- Boundary checks --------------------------------------------------------------------------


def _require_symmetric(hessian: np.ndarray) -> None:
    if hessian.ndim != 2 or hessian.shape[0] != hessian.shape[1]:
        raise ValueError(f"a Hessian is square, (n, n); got shape {hessian.shape}")
    if not np.isfinite(hessian).all():
        raise ValueError("a Hessian is finite; this matrix holds NaN or infinity")
    if not np.allclose(hessian, hessian.T, rtol=1e-8, atol=1e-10 * np.abs(hessian).max(initial=0)):
        raise ValueError("a Hessian is symmetric; this matrix differs from its transpose")


def _require_positive(eigenvalues: np.ndarray) -> None:
    if eigenvalues.size == 0 or eigenvalues.min() <= 0:
        raise ValueError(f"every eigenvalue must be positive; got {eigenvalues}")


def _require_steps(steps: int) -> None:
    if steps < 0:
        raise ValueError(f"the number of steps must be 0 or more; got {steps}")


def _require_weights(weights: np.ndarray | None, m: int) -> np.ndarray:
    s = np.ones(m) if weights is None else weights
    if s.shape != (m,) or np.any(s < 0) or not np.any(s > 0):
        raise ValueError(
            f"weights must be 0 or more, not all zero, one for each of m = {m} ≥ 1 inputs; got {s}"
        )
    return s
