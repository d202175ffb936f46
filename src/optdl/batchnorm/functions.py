r"""Batch normalization and its relatives: forward and backward in NumPy, layers in torch.

Axis letters, fixed for the module: ``m`` examples of a minibatch, ``d`` features (channels of
an image), ``o`` outputs of a dense layer. Statistics of a minibatch divide by m.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

__all__ = [
    "Cache",
    "affine_at_inference",
    "batchnorm_backward",
    "batchnorm_forward",
    "batchnorm_inference",
    "fold",
    "groupnorm_forward",
    "moving_average",
    "population_statistics",
    "renorm_forward",
    "rmsnorm_forward",
    "scale_invariant_gradient",
]

Matrix = Float[np.ndarray, "m d"]
Vector = Float[np.ndarray, " d"]


class Cache(NamedTuple):
    """What the backward pass needs from the forward one (Source: L1-35)."""

    normalized: Matrix
    """x̂."""
    factor: Vector
    """What x̂ is multiplied by, over the root that x was divided by."""


# --- The transform ----------------------------------------------------------------------------


def batchnorm_forward(
    x: Matrix, gamma: Vector, beta: Vector, eps: float = 1e-5
) -> tuple[Matrix, Cache]:
    r"""Normalize each feature over the minibatch, then scale and shift it (Source: L1-34, P-01).

    .. math:: \mu_B = \frac1m \sum_i x_i, \qquad \sigma_B^2 = \frac1m \sum_i (x_i - \mu_B)^2,
        \qquad \hat x = \frac{x - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}}, \qquad
        y = \gamma \hat x + \beta

    **Erratum.** L2 prints the variance without the square. That sum is zero for every minibatch.
    The second result is the cache that :func:`batchnorm_backward` needs.

    >>> y, _ = batchnorm_forward(np.array([[1.0], [3.0]]), np.array([2.0]), np.array([5.0]), 0.0)
    >>> y.ravel()
    array([3., 7.])
    """
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).mean(axis=0) + eps)
    normalized = centered / root
    return gamma * normalized + beta, Cache(normalized, gamma / root)


def batchnorm_backward(grad: Matrix, cache: tuple[Matrix, Vector]) -> tuple[Matrix, Vector, Vector]:
    r"""Return the gradients of x, γ and β from the gradient of y (Source: L1-35).

    Each example moves the mean and the variance, and through them all other outputs:

    .. math:: \frac{\partial L}{\partial x_i} = \frac{\gamma}{\sqrt{\sigma_B^2 + \epsilon}}
        \Bigl(\delta_i - \frac1m\sum_j \delta_j - \hat x_i\,\frac1m\sum_j \delta_j\hat x_j\Bigr),
        \qquad \delta = \frac{\partial L}{\partial y}

    The gradient of x has no mean and, for ε = 0, nothing along x̂: a minibatch can be neither
    shifted nor stretched. Here δ is ``grad``, and the cache is that of :func:`batchnorm_forward` or
    :func:`renorm_forward`.

    >>> x, one, zero = np.array([[0.0], [1.0], [3.0]]), np.ones(1), np.zeros(1)
    >>> _, cache = batchnorm_forward(x, one, zero)
    >>> grad_x, grad_gamma, grad_beta = batchnorm_backward(np.array([[1.0], [0.0], [0.0]]), cache)
    >>> grad_x.ravel().round(3), grad_beta
    (array([ 0.229, -0.344,  0.115]), array([1.]))
    """
    normalized, factor = cache
    grad_gamma = (grad * normalized).sum(axis=0)
    grad_beta = grad.sum(axis=0)
    return (
        factor * (grad - (grad_beta + normalized * grad_gamma) / len(grad)),
        grad_gamma,
        grad_beta,
    )


# --- Inference --------------------------------------------------------------------------------


def population_statistics(
    means: Float[np.ndarray, "b d"], variances: Float[np.ndarray, "b d"], m: int
) -> tuple[Vector, Vector]:
    r"""Return mean and variance of the population from those of b minibatches of m (Source: L1-36).

    .. math:: E[x] = E_B[\mu_B], \qquad V[x] = \frac m{m-1}\, E_B[\sigma_B^2]

    The variance of a minibatch is measured from its own mean, so it is too small by (m − 1)/m on
    average. The given variances divide by m. Raises ValueError where m < 2: one example has no
    variance.

    >>> means, variances = np.array([[1.0], [3.0]]), np.array([[4.0], [2.0]])
    >>> population_statistics(means, variances, m=4)
    (array([2.]), array([4.]))
    """
    if m < 2:
        raise ValueError(f"a minibatch must have 2 examples or more to have a variance; got m={m}")
    return means.mean(axis=0), m / (m - 1) * variances.mean(axis=0)


def batchnorm_inference(
    x: Matrix, gamma: Vector, beta: Vector, mean: Vector, var: Vector, eps: float = 1e-5
) -> Matrix:
    r"""Normalize with statistics of the whole training, not of the minibatch (Source: L1-36).

    .. math:: y = \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    Here μ and σ² are ``mean`` and ``var``, such as :func:`population_statistics` returns.

    >>> one = np.ones(1)
    >>> batchnorm_inference(np.array([[7.0]]), 2 * one, one, 3 * one, 4 * one, eps=0.0)
    array([[5.]])
    """
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


def affine_at_inference(
    gamma: Vector, beta: Vector, mean: Vector, var: Vector, eps: float = 1e-5
) -> tuple[Vector, Vector]:
    r"""Return the scale and the shift that batch normalization is at inference (Source: L1-36).

    .. math:: y = \frac{\gamma}{\sqrt{V[x] + \epsilon}}\, x +
        \Bigl(\beta - \frac{\gamma\, E[x]}{\sqrt{V[x] + \epsilon}}\Bigr)

    Here E[x] and V[x] are ``mean`` and ``var``, and the output is scale ⊙ x + shift.

    >>> one = np.ones(1)
    >>> affine_at_inference(2 * one, one, 3 * one, 4 * one, eps=0.0)
    (array([1.]), array([-2.]))
    """
    scale = gamma / np.sqrt(var + eps)
    return scale, beta - scale * mean


def fold(
    weight: Float[np.ndarray, "d n"],
    bias: Vector,
    gamma: Vector,
    beta: Vector,
    mean: Vector,
    var: Vector,
    eps: float = 1e-5,
) -> tuple[Float[np.ndarray, "d n"], Vector]:
    r"""Fold a normalization into the dense layer before it: one layer, the same outputs.

    .. math:: \mathrm{BN}(Wh + b) = (\operatorname{diag}(s)\,W)\,h + (s \odot b + t)

    s and t are those of :func:`affine_at_inference`. At inference the layer costs nothing. The
    results are the weight and the bias of the one layer. Source: L1-36.

    >>> one = np.ones(1)
    >>> fold(np.array([[4.0, 6.0]]), one, 2 * one, one, 3 * one, 4 * one, eps=0.0)
    (array([[4., 6.]]), array([-1.]))
    """
    scale, shift = affine_at_inference(gamma, beta, mean, var, eps)
    return scale[:, None] * weight, scale * bias + shift


def moving_average(
    values: Float[np.ndarray, "t d"], rho: float, start: Vector | None = None
) -> Float[np.ndarray, "t d"]:
    r"""Return the moving average after each of t values; ρ weighs the old average (Source: L2-14).

    .. math:: \mu \leftarrow \rho\,\mu + (1 - \rho)\,\mu_B

    Three conventions of one formula:

    ======  ===========================  ==================================
    source  weight of the new value      before the first value
    ======  ===========================  ==================================
    P       1 − ρ                        0 for a mean, 1 for a variance
    L2      δ                            nothing: the first value is taken
    torch   ``momentum``, 0.1            0 for a mean, 1 for a variance
    ======  ===========================  ==================================

    The statistics of a minibatch are a row of ``values``. Without a ``start`` the first value is
    taken, as in L2. torch also averages the *unbiased* variance, m/(m − 1) times what the layer
    divides by. Raises ValueError where ρ lies outside [0, 1).

    >>> values = np.array([[4.0], [8.0]])
    >>> moving_average(values, rho=0.75).ravel()
    array([4., 5.])
    >>> moving_average(values, rho=0.75, start=np.zeros(1)).ravel()
    array([1.  , 2.75])
    """
    if not 0 <= rho < 1:
        raise ValueError(f"rho, the weight of the old average, must be in [0, 1); got {rho}")
    average = values[0] if start is None else start
    averages = []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


# --- Relatives --------------------------------------------------------------------------------


def renorm_forward(
    x: Matrix, gamma: Vector, beta: Vector, mean: Vector, std: Vector, eps: float = 1e-5
) -> tuple[Matrix, Cache]:
    r"""Normalize over the minibatch, then correct to the statistics of the whole training.

    .. math:: y = \gamma\,\Bigl(\frac{x - \mu_H}{\sigma_H}\,s + d\Bigr) + \beta, \qquad
        s = \frac{\sigma_H}{\sigma}, \qquad d = \frac{\mu_H - \mu}{\sigma}

    The output is that of inference, :math:`\gamma (x - \mu)/\sigma + \beta`. The gradient is not: s
    and d count as constants, and it flows through :math:`\mu_H` and :math:`\sigma_H`. So
    :func:`batchnorm_backward` takes the cache; there the gradient of γ is over x̂, without s and d.
    The moving averages are ``mean`` and ``std`` > 0. All else, and the cache, are as in
    :func:`batchnorm_forward`, with ε inside of :math:`\sigma_H`. Source: P-03.

    >>> one = np.ones(1)
    >>> x = np.array([[1.0], [3.0]])
    >>> y, _ = renorm_forward(x, one, 0 * one, mean=0 * one, std=2 * one, eps=0.0)
    >>> y.ravel()
    array([0.5, 1.5])
    """
    batch_mean = x.mean(axis=0)
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (batch_mean - mean) / std
    normalized = (x - batch_mean) / batch_std
    return gamma * (normalized * s + d) + beta, Cache(normalized, gamma * s / batch_std)


def groupnorm_forward(
    x: Matrix, gamma: Vector, beta: Vector, groups: int = 1, eps: float = 1e-5
) -> Matrix:
    """Normalize each example over groups of its features; one group is layer normalization.

    No example influences another. So the size of the minibatch does not matter, and training and
    inference are the same. Raises ValueError where the features do not divide into ``groups`` of
    one size. Source: P-04.

    >>> x, one = np.array([[1.0, 3.0, 10.0, 30.0]]), np.ones(4)
    >>> groupnorm_forward(x, one, 0 * one, groups=2, eps=0.0)
    array([[-1.,  1., -1.,  1.]])
    """
    require_groups(x.shape[1], groups)
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def rmsnorm_forward(x: Matrix, gamma: Vector, eps: float = 1e-5) -> Matrix:
    r"""Divide each example by the root mean square of its n features (Source: F-23).

    .. math:: y = \gamma \odot \frac{x}{\sqrt{\frac1n \sum_j x_j^2 + \epsilon}}

    This is layer normalization without the mean and without β.

    >>> rmsnorm_forward(np.array([[1.0, 7.0]]), np.ones(2), eps=0.0)
    array([[0.2, 1.4]])
    """
    return gamma * x / np.sqrt((x**2).mean(axis=1, keepdims=True) + eps)


def scale_invariant_gradient(
    W: Float[np.ndarray, "o n"], h: Float[np.ndarray, "m n"], upstream: Float[np.ndarray, "m o"]
) -> Float[np.ndarray, "o n"]:
    r"""Return the gradient of the weight of a layer whose output is normalized (Source: P-08).

    .. math:: f(W) = \sum_{ij} \delta_{ij}\, \mathrm{BN}(h W^T)_{ij}, \qquad
        f(cW) = f(W), \qquad \nabla f(cW) = \tfrac1c\,\nabla f(W), \qquad
        \nabla f(w_i)^T w_i = 0

    Here δ is ``upstream`` and ε is 0. Only the direction of each row of W matters. The longer it
    is, the smaller is its gradient. A step is orthogonal to it, so it can only become longer:
    :math:`\lVert w - \eta g\rVert^2 = \lVert w\rVert^2 + \eta^2 \lVert g\rVert^2`.

    >>> h = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    >>> upstream = np.array([[1.0], [0.0], [0.0]])
    >>> g = scale_invariant_gradient(np.array([[1.0, 2.0]]), h, upstream)
    >>> bool(np.allclose(g @ [1.0, 2.0], 0.0))
    True
    """
    ones = np.ones(len(W))
    _, cache = batchnorm_forward(h @ W.T, ones, 0 * ones, eps=0.0)
    grad, _, _ = batchnorm_backward(upstream, cache)
    return grad.T @ h


def require_groups(features: int, groups: int) -> None:
    if groups < 1 or features % groups:
        raise ValueError(f"{features} features cannot be divided into {groups} equal groups")
