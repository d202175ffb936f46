"""The mathematics of how a network starts: activations, initial weights, normalized inputs.

Axis letters, fixed for the module: ``m`` examples, ``n`` inputs, ``h`` hidden units, ``d``
features, ``l`` layers. A weight has shape (fan_out, fan_in), as in torch: row i belongs to unit i.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from optdl.special import expit

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "InputNormalizer",
    "backward_second_moments",
    "glorot_normal",
    "glorot_uniform",
    "gradient_norm_bound",
    "gradient_norms",
    "he_normal",
    "least_squares_hessian",
    "lecun_normal",
    "measured_backward_moments",
    "measured_second_moments",
    "mup_factors",
    "normalize_inputs",
    "saturated_share",
    "second_moments",
    "train_hidden_layer",
]

Array = Float[np.ndarray, "..."]
Matrix = Float[np.ndarray, "m d"]
Weight = Float[np.ndarray, "out in"]
Layers = Sequence[Float[np.ndarray, "_ _"]]


# --- Activations ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Activation:
    """An activation φ with its derivative φ′ and the largest value of φ′ (Source: L2-10).

    φ and φ′ are applied to arrays, entry by entry.
    """

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    steepest: float

    def __call__(self, z: Array) -> Array:
        """Return φ(z)."""
        return self.value(z)


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("sigmoid", expit, lambda z: expit(z) * expit(-z), 0.25),
        Activation("tanh", np.tanh, lambda z: 1 - np.tanh(z) ** 2, 1.0),
        Activation("relu", lambda z: np.maximum(z, 0.0), lambda z: (z > 0).astype(float), 1.0),
        Activation("linear", np.copy, np.ones_like, 1.0),
    )
}
"""The activations of the chapter by name. At its kink the slope of the ReLU is 0, as in torch."""


def saturated_share(z: Array, activation: Activation, slope: float = 0.05) -> float:
    r"""Return the share of pre-activations at which the slope of φ is nearly zero.

    .. math:: \frac1{\lvert z\rvert}\,\bigl\lvert\{i : \phi'(z_i) < s \max \phi'\}\bigr\rvert

    Below the fraction s of its largest slope, φ counts as saturated: the unit passes almost no
    gradient back. Source: L2-12, F-06.

    >>> z = np.array([-6.0, -1.0, 0.5, 6.0])
    >>> saturated_share(z, ACTIVATIONS["tanh"]), saturated_share(z, ACTIVATIONS["relu"])
    (0.5, 0.5)
    """
    return float(np.mean(activation.slope(z) < slope * activation.steepest))


# --- Gradients on their way back --------------------------------------------------------------


def gradient_norms(
    weights: Layers,
    x: Float[np.ndarray, " n"],
    upstream: Float[np.ndarray, " k"],
    name: str,
) -> Float[np.ndarray, " l"]:
    r"""Return the norm of the loss's gradient at every layer, from input to output (Source: L2-10).

    The network is :math:`h_0 = x,\ z_l = W_l h_{l-1},\ h_l = \phi(z_l)`. Backwards,

    .. math:: \frac{\partial L}{\partial h_{l-1}} =
        W_l^T \Bigl(\phi'(z_l) \odot \frac{\partial L}{\partial h_l}\Bigr)

    Here φ is the activation of this name in ``ACTIVATIONS``, there are no biases, and ``upstream``
    is the gradient at the output. The norms are those for l = 0, …, L. The weights are (fan_out,
    fan_in), the first layer first. Raises ValueError where ``ACTIVATIONS`` does not have the name.

    >>> halve = [np.array([[0.5]])] * 3
    >>> gradient_norms(halve, np.array([1.0]), np.array([8.0]), "linear")
    array([1., 2., 4., 8.])
    """
    gradients = _gradients(x[None], upstream[None], weights, name)
    return np.array([np.linalg.norm(gradient) for gradient in gradients])


def _gradients(
    x: Matrix, upstream: Float[np.ndarray, "m k"], weights: Layers, name: str
) -> list[Array]:
    """Return the gradients of the loss with respect to the activations of all layers."""
    activation = _activation(name)
    h, slopes = x, []
    for W in weights:
        z = h @ W.T
        slopes.append(activation.slope(z))
        h = activation(z)
    gradients = [upstream]
    for W, slope in zip(reversed(weights), reversed(slopes), strict=True):
        gradients.append((slope * gradients[-1]) @ W)
    return gradients[::-1]


def gradient_norm_bound(
    weights: Layers, upstream: Float[np.ndarray, " k"], name: str
) -> Float[np.ndarray, " l"]:
    r"""Return an upper bound on the norm of the gradient at each layer (Source: L2-10).

    .. math:: \Bigl\lVert\frac{\partial L}{\partial h_l}\Bigr\rVert \le
        \Bigl\lVert\frac{\partial L}{\partial h_L}\Bigr\rVert \prod_{i>l} c\,\lVert W_i\rVert,
        \qquad c = \max \phi'

    For the sigmoid c is ¼: where ‖W‖ = 1, the bound is divided by 4 at every layer. Arguments and
    errors are those of :func:`gradient_norms`.

    >>> gradient_norm_bound([np.eye(2)] * 2, np.array([0.0, 16.0]), "sigmoid")
    array([ 1.,  4., 16.])
    """
    steepest = _activation(name).steepest
    factors = [steepest * np.linalg.norm(W, 2) for W in reversed(weights)]
    return np.linalg.norm(upstream) * np.cumprod([1.0, *factors])[::-1]


# --- Symmetry ---------------------------------------------------------------------------------


def train_hidden_layer(
    W: Float[np.ndarray, "h n"],
    v: Float[np.ndarray, " h"],
    x: Float[np.ndarray, "m n"],
    y: Float[np.ndarray, " m"],
    lr: float,
    steps: int,
) -> Float[np.ndarray, "t h n"]:
    r"""Return the weights of one hidden layer after every step of gradient descent (Source: L1-33).

    The network is :math:`f(x) = v^T \tanh(Wx)`, the loss
    :math:`\frac1{2m}\sum_i (f(x^{(i)}) - y^{(i)})^2`. Both W and v learn. Units with equal weights,
    in W and in v, have equal gradients and keep equal weights. The result is W at the start and
    after each step.

    >>> alike = np.full((2, 1), 0.5)
    >>> path = train_hidden_layer(alike, np.ones(2), np.ones((1, 1)), np.zeros(1), 0.1, 3)
    >>> bool(np.all(path[:, 0] == path[:, 1]))
    True
    """
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


# --- Initial weights --------------------------------------------------------------------------


def lecun_normal(fan_in: int, fan_out: int, rng: np.random.Generator) -> Weight:
    r"""Draw a weight from :math:`\mathcal N(0, 1/n_{in})`: LeCun's variance (Source: L2-11).

    Forward, it keeps the variance of a linear layer. The lecture lists it as the first of two
    choices under Glorot's name. Raises ValueError where ``fan_in`` or ``fan_out`` is less than 1.

    >>> W = lecun_normal(400, 300, np.random.default_rng(0))
    >>> W.shape, round(float(W.var() * 400), 1)
    ((300, 400), 1.0)
    """
    _require_fans(fan_in, fan_out)
    return rng.normal(0.0, math.sqrt(1 / fan_in), size=(fan_out, fan_in))


def glorot_normal(fan_in: int, fan_out: int, rng: np.random.Generator) -> Weight:
    r"""Draw a weight from :math:`\mathcal N\bigl(0, \frac2{n_{in} + n_{out}}\bigr)`.

    It lies between :math:`1/n_{in}`, which keeps the variance of the activations forward, and
    :math:`1/n_{out}`, which keeps that of the gradient backward: its inverse is the mean of their
    inverses. The second argument of :math:`\mathcal N` is a variance. Raises ValueError where
    ``fan_in`` or ``fan_out`` is less than 1. Source: L2-11.

    >>> W = glorot_normal(300, 500, np.random.default_rng(0))
    >>> W.shape, round(float(W.var() * 400), 1)
    ((500, 300), 1.0)
    """
    _require_fans(fan_in, fan_out)
    return rng.normal(0.0, math.sqrt(2 / (fan_in + fan_out)), size=(fan_out, fan_in))


def glorot_uniform(fan_in: int, fan_out: int, rng: np.random.Generator) -> Weight:
    r"""Draw a weight from the uniform distribution on [−a, a] with Glorot's variance.

    Source: L2-11

    .. math:: \frac{a^2}3 = \frac2{n_{in} + n_{out}} \quad\Rightarrow\quad
        a = \sqrt{\frac6{n_{in} + n_{out}}}

    Raises ValueError where ``fan_in`` or ``fan_out`` is less than 1.

    >>> W = glorot_uniform(2, 1, np.random.default_rng(0))
    >>> bool(np.all(np.abs(W) <= np.sqrt(2)))
    True
    """
    _require_fans(fan_in, fan_out)
    bound = math.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


def he_normal(fan_in: int, fan_out: int, rng: np.random.Generator) -> Weight:
    r"""Draw a weight from :math:`\mathcal N(0, 2/n_{in})`: He's variance, for the ReLU.

    The ReLU keeps one half of the second moment of a symmetric variable; the 2 compensates. Raises
    ValueError where ``fan_in`` or ``fan_out`` is less than 1. Source: L2-11.

    >>> W = he_normal(400, 300, np.random.default_rng(0))
    >>> round(float(W.var() * 200), 1)
    1.0
    """
    _require_fans(fan_in, fan_out)
    return rng.normal(0.0, math.sqrt(2 / fan_in), size=(fan_out, fan_in))


def second_moments(
    first: float, fans: Sequence[int], variances: Sequence[float], name: str
) -> Float[np.ndarray, " l"]:
    r"""Predict the mean square of the activations of wide layers (Source: L2-11).

    A pre-activation is a sum of many terms, so it is nearly normal with variance
    :math:`n\operatorname{Var}(W)\,q`:

    .. math:: q_l = \mathbb E\, \phi(\sqrt{n_{l-1} \operatorname{Var}(W_l)\,q_{l-1}}\; t)^2,
        \qquad t \sim \mathcal N(0, 1)

    Here :math:`q_0` is ``first`` and :math:`n_{l-1}` the inputs of layer l. The expectation is a
    sum over 4800 nodes. For the ReLU it is half of
    :math:`n_{l-1} \operatorname{Var}(W_l)\,q_{l-1}`. The result has l = 0, …, L, where L is the
    number of ``fans`` and ``variances``. Raises ValueError where ``ACTIVATIONS`` does not have the
    name.

    >>> second_moments(1.0, [100, 100], [1 / 100] * 2, "linear").round(12)
    array([1., 1., 1.])
    """
    activation = _activation(name)
    nodes, weights = _normal_nodes()
    moments = [first]
    for fan, variance in zip(fans, variances, strict=True):
        values = activation(math.sqrt(fan * variance * moments[-1]) * nodes)
        moments.append(float(weights @ values**2 / weights.sum()))
    return np.array(moments)


def _normal_nodes() -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return nodes and weights of the midpoint rule for the mean over N(0, 1), up to a factor.

    So close that they meet the slope of units whose pre-activations have a deviation of 100, and
    none at zero, where that of the ReLU jumps.
    """
    nodes = np.arange(-11.9975, 12, 0.005)
    return nodes, np.exp(-(nodes**2) / 2)


def measured_second_moments(x: Matrix, weights: Layers, name: str) -> Float[np.ndarray, " l"]:
    """Return the mean square of each layer's activations for a batch of examples (Source: L2-11).

    The first mean square is that of the inputs. The layers have no biases. Weights, name and errors
    are those of :func:`gradient_norms`.

    >>> measured_second_moments(np.array([[3.0]]), [np.array([[2.0]])], "linear")
    array([ 9., 36.])
    """
    activation, activations = _activation(name), [x]
    for W in weights:
        activations.append(activation(activations[-1] @ W.T))
    return np.array([np.mean(h**2) for h in activations])


def backward_second_moments(
    last: float,
    widths: Sequence[int],
    variances: Sequence[float],
    name: str,
    first: float = 1.0,
) -> Float[np.ndarray, " l"]:
    r"""Predict the mean square of the loss's gradient by layer, from input to output.

    With :math:`\tilde q_l = \mathbb E\,(\partial L/\partial h_l)^2` for one unit of layer l,

    .. math:: \tilde q_{l-1} = n_l \operatorname{Var}(W_l)\;\mathbb E\,\phi'(z_l)^2\;\tilde q_l,
        \qquad z_l \sim \mathcal N(0,\ n_{l-1} \operatorname{Var}(W_l)\,q_{l-1})

    The gradient is treated as independent of the weights through which it passes. Here
    :math:`\tilde q_L` is ``last``, the ``widths`` are :math:`n_0, \dots, n_L`, and ``first`` is
    :math:`q_0`. The result has l = 0, …, L. Raises ValueError where ``ACTIVATIONS`` does not have
    the name. Source: L2-11.

    >>> backward_second_moments(1.0, [100, 400, 100], [1 / 100, 1 / 400], "linear")
    array([1.  , 0.25, 1.  ])
    """
    activation = _activation(name)
    moments = second_moments(first, widths[:-1], variances, name)
    nodes, weights = _normal_nodes()
    gradients = [last]
    for fan_in, fan_out, variance, q in reversed(
        list(zip(widths[:-1], widths[1:], variances, moments[:-1], strict=True))
    ):
        slopes = activation.slope(math.sqrt(fan_in * variance * q) * nodes)
        mean_square = float(weights @ slopes**2 / weights.sum())
        gradients.append(fan_out * variance * mean_square * gradients[-1])
    return np.array(gradients[::-1])


def measured_backward_moments(
    x: Matrix, upstream: Float[np.ndarray, "m k"], weights: Layers, name: str
) -> Float[np.ndarray, " l"]:
    """Return the mean square of the gradient at each layer for a batch of examples (Source: L2-11).

    The mean squares are those of ∂L/∂h_l for l = 0, …, L; ``upstream`` is ∂L/∂h_L. There are no
    biases. Weights, name and errors are those of :func:`gradient_norms`.

    >>> layer = [np.array([[2.0]])]
    >>> measured_backward_moments(np.ones((1, 1)), np.full((1, 1), 3.0), layer, "linear")
    array([36.,  9.])
    """
    gradients = _gradients(x, upstream, weights, name)
    return np.array([np.mean(gradient**2) for gradient in gradients])


def mup_factors(
    widths: Sequence[int], base: Sequence[int]
) -> tuple[Float[np.ndarray, " l"], Float[np.ndarray, " l"]]:
    r"""Return by what a network's width scales its initial weights and Adam's rates (Source: F-22).

    In :math:`\mu P` a network of ``widths`` :math:`n_0, \dots, n_L` learns like a network of the
    widths ``base`` :math:`n'_0, \dots, n'_L`, which has the usual standard deviation
    :math:`s/\sqrt{n_{in}}` of its weights, and in all layers one rate η:

    .. math:: \sigma_l = \frac s{\sqrt{n_{l-1}}}
        \cdot\begin{cases}1 & l < L\\ \sqrt{n'_{l-1}/n_{l-1}} & l = L\end{cases},
        \qquad \eta_l = \eta\,\frac{n'_{l-1}}{n_{l-1}}

    The first array has the factors on the standard deviations, the second those on the rates, each
    with an entry for every layer. Biases keep η. Raises ValueError where the two networks differ in
    their inputs, their outputs or their number of layers, or a width is less than 1.

    >>> mup_factors((64, 128, 128, 10), (64, 32, 32, 10))
    (array([1. , 1. , 0.5]), array([1.  , 0.25, 0.25]))
    """
    if len(widths) != len(base) or (widths[0], widths[-1]) != (base[0], base[-1]):
        raise ValueError(
            "the networks must have the same inputs, outputs and number of layers; "
            f"got {tuple(widths)} and {tuple(base)}"
        )
    if min(*widths, *base) < 1:
        raise ValueError(f"a width must be at least 1; got {tuple(widths)} and {tuple(base)}")
    rates = np.divide(base[:-1], widths[:-1])
    scales = np.ones(len(rates))
    scales[-1] = math.sqrt(rates[-1])
    return scales, rates


# --- Inputs -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class InputNormalizer:
    r"""Center and scale each feature by the statistics of the training set (Source: L2-13).

    .. math:: \hat x_i = \frac{x_i - \mu_i}{\sqrt{\sigma_i^2 + \epsilon}}

    The variance of the training set divides by m; ε keeps a constant feature at zero.

    >>> normalizer = InputNormalizer.fit(np.array([[1.0], [3.0]]), eps=0.0)
    >>> normalizer(np.array([[1.0], [2.0], [5.0]]))
    array([[-1.],
           [ 0.],
           [ 3.]])
    """

    mean: Float[np.ndarray, " d"]
    var: Float[np.ndarray, " d"]
    eps: float = 1e-8

    @classmethod
    def fit(cls, x: Matrix, eps: float = 1e-8) -> InputNormalizer:
        """Take the statistics of the training examples, an (m, d) array."""
        return cls(x.mean(axis=0), x.var(axis=0), eps)

    def __call__(self, x: Matrix) -> Matrix:
        """Normalize any examples with the statistics of the training set."""
        return (x - self.mean) / np.sqrt(self.var + self.eps)


def normalize_inputs(
    train: Matrix, other: Float[np.ndarray, "k d"], eps: float
) -> tuple[Matrix, Float[np.ndarray, "k d"]]:
    """Normalize training examples and others by the statistics of the training examples.

    ε is added to the variance, under the root. Source: L2-13.

    >>> normalize_inputs(np.array([[0.0], [2.0]]), np.array([[3.0]]), 0.0)
    (array([[-1.],
           [ 1.]]), array([[2.]]))
    """
    normalizer = InputNormalizer.fit(train, eps)
    return normalizer(train), normalizer(other)


def least_squares_hessian(x: Matrix) -> Float[np.ndarray, "d+1 d+1"]:
    r"""Return the Hessian of least squares in the bias and the weights, bias first (Source: L2-13).

    .. math:: \frac1{2m} \sum_i (b + w^T x^{(i)} - y^{(i)})^2 \quad\Rightarrow\quad
        H = \frac1m \hat X^T \hat X, \qquad \hat X = [e, X]

    It does not depend on y. For normalized inputs its block of the weights is the matrix of the
    features' correlations: for two features with correlation ρ its condition number is
    :math:`(1 + \lvert\rho\rvert)/(1 - \lvert\rho\rvert)`.

    >>> least_squares_hessian(np.array([[-1.0], [1.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    extended = np.column_stack([np.ones(len(x)), x])
    return extended.T @ extended / len(x)


def _require_fans(fan_in: int, fan_out: int) -> None:
    if min(fan_in, fan_out) < 1:
        raise ValueError(
            f"a layer has 1 input and 1 output or more; got fan_in={fan_in}, fan_out={fan_out}"
        )


def _activation(name: str) -> Activation:
    if name not in ACTIVATIONS:
        raise ValueError(f"expected an activation among {', '.join(ACTIVATIONS)}; got {name!r}")
    return ACTIVATIONS[name]
