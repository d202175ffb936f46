r"""One step of BNP in a dense layer, as Algorithm 2 writes it, and what it costs.

Axis letters: ``N`` rows of H (examples), ``n`` features of the input, ``o`` outputs, ``T`` steps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING or sys.modules.get("jaxtyping"):
    from jaxtyping import Float as Float
else:  # the tests check shapes; everyone else need neither install it nor wait for it

    class Float:
        """Stands for an array of a shape."""

        def __class_getitem__(cls, item: Any) -> Any:
            """Return the array's type."""
            return item[0]


Matrix = Float[np.ndarray, "N n"]
Vector = Float[np.ndarray, " n"]
Array = TypeVar("Array", bound=Any)
"""A NumPy array or a torch tensor."""


def batch_statistics(H: Matrix, running_mean: Vector | None = None) -> tuple[Vector, Vector]:
    r"""Return the mean and the variance (divided by N) of each feature over the minibatch.

    One example has no spread of its own. With ``running_mean`` its variance is measured from there:
    :math:`\sigma_H^2 = (h - \mu)^2`. Source: P-14, P-15.

    >>> batch_statistics(np.array([[1.0], [3.0]]))
    (array([2.]), array([1.]))
    >>> batch_statistics(np.array([[3.0]]), running_mean=np.array([1.0]))
    (array([3.]), array([4.]))
    """
    mean = H.mean(axis=0)
    center = running_mean if running_mean is not None and len(H) == 1 else mean
    return mean, np.mean((H - center) ** 2, axis=0)


def update_statistics(
    H: Matrix, mean: Vector, var: Vector, rho: float = 0.99
) -> tuple[Vector, Vector]:
    r"""Take a minibatch into the running mean and variance: steps 1 and 2 of Algorithm 2.

    .. math:: \mu \leftarrow \rho\mu + (1-\rho)\mu_H, \qquad
        \sigma^2 \leftarrow \rho\sigma^2 + (1-\rho)\sigma_H^2

    ρ is the weight of the old statistics; outside [0, 1) it raises ValueError. The variance of a
    single example is measured from the new running mean. Source: P-14, P-15.

    >>> update_statistics(np.array([[4.0], [8.0]]), np.zeros(1), np.ones(1), rho=0.5)
    (array([3.]), array([2.5]))
    >>> update_statistics(np.array([[4.0]]), np.zeros(1), np.ones(1), rho=0.5)
    (array([2.]), array([2.5]))
    """
    if not 0 <= rho < 1:
        raise ValueError(f"rho must lie in [0, 1), got {rho}: at 1 the statistics never move")
    new_mean = rho * mean + (1 - rho) * H.mean(axis=0)
    _, batch_var = batch_statistics(H, new_mean)
    return new_mean, rho * var + (1 - rho) * batch_var


def running_statistics(
    minibatches: Sequence[Float[np.ndarray, "_ n"]], rho: float = 0.99
) -> tuple[Float[np.ndarray, "T n"], Float[np.ndarray, "T n"]]:
    r"""Return the running mean and variance after each of T minibatches (Source: P-14, P-15).

    They start at :math:`\mu = 0` and :math:`\sigma^2 = 1`, and :func:`update_statistics` moves
    them. The minibatches are (N, n) inputs of the layer, in their order; N may change. Raises
    ValueError where there is none, or ρ lies outside [0, 1).

    >>> running_statistics([np.array([[4.0], [8.0]]), np.array([[5.0]])], rho=0.5)
    (array([[3.],
           [4.]]), array([[2.5 ],
           [1.75]]))
    """
    if not minibatches:
        raise ValueError("expected at least one minibatch, got none: their features are unknown")
    mean = np.zeros(minibatches[0].shape[1])
    path = [(mean, np.ones_like(mean))]
    for H in minibatches:
        path.append(update_statistics(H, *path[-1], rho))
    means, variances = (np.array(values) for values in zip(*path[1:], strict=True))
    return means, variances


def smoothed_variance(var: Array, eps1: float = 1e-2, eps2: float = 1e-4) -> Array:
    r"""Return :math:`\tilde\sigma^2 = \sigma^2 + \epsilon_1 \max \sigma^2 + \epsilon_2`.

    None is then below 1/101 of the largest, for :math:`\epsilon_1 = 10^{-2}`, and a constant
    feature divides nothing by zero. Source: P-14.

    >>> smoothed_variance(np.array([0.0, 4.0]), eps1=0.5, eps2=1.0)
    array([3., 7.])
    """
    return var + eps1 * var.max() + eps2


def scale_dense(features: int, rows: int) -> float:
    r"""Return :math:`q^2 = \max\{n/N, 1\}`, which keeps the Hessian's norm free of n.

    Here n is ``features``, and N is ``rows``, over which the gradient averages. Source: P-13, P-14.

    >>> scale_dense(3072, 60), scale_dense(100, 256)
    (51.2, 1.0)
    """
    return max(features / rows, 1.0)


def precondition_dense(
    grad_weight: Array,
    grad_bias: Array,
    mean: Array,
    var: Array,
    batch_size: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> tuple[Array, Array]:
    r"""Precondition the gradient of a dense layer: steps 3 to 5 of Algorithm 2 (Source: P-14).

    .. math::
        G_w(i,j) &\leftarrow \tfrac1{q^2}\,[G_w(i,j) - \mu(j)\,G_b(i)]\,/\,\tilde\sigma^2(j) \\
        G_b(i) &\leftarrow \tfrac1{q^2}\,G_b(i) - \textstyle\sum_j G_w(i,j)\,\mu(j)

    The second line uses the new :math:`G_w`. Together they are
    :math:`\frac1{q^2} P P^T [G_b; G_w]`, without forming a matrix. The gradients are those of
    ``nn.Linear``, (o, n) and (o,); ``mean`` and ``var``, (n,), are the running statistics of the
    layer's input; and N is ``batch_size``, the number of rows that the gradient averages over. The
    results are new; the arguments stay as they are. Raises ValueError where the shapes disagree.

    >>> weight, bias = np.array([[5.0]]), np.array([1.0])
    >>> mean, var = np.array([2.0]), np.array([3.0])
    >>> precondition_dense(weight, bias, mean, var, 8, eps1=0.0, eps2=0.0)
    (array([[1.]]), array([-1.]))
    """
    outputs, features = matching(grad_weight, grad_bias, mean, var, 1)
    scale = scale_dense(features, batch_size)
    smoothed = smoothed_variance(var, eps1, eps2)
    weight = (grad_weight - grad_bias.reshape(outputs, 1) * mean) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def split_adam_step(
    grad_weight: Array,
    grad_bias: Array,
    mean: Array,
    std: Array,
    q: float,
    lr: float,
    eps: float = 1e-8,
) -> tuple[Array, Array]:
    r"""Return the first step of Adam on z, where [b; w] = Pz, for weight and bias (Source: F-11).

    .. math:: \Delta\theta = P\,\mathrm{Opt}(P^Tg), \qquad P = \tfrac1q UD, \qquad
        \mathrm{Opt}(g) = -\eta\,\frac{g}{|g| + \epsilon}

    Opt acts on each component: in the first step Adam's corrected averages are g and :math:`g^2`.
    With :math:`V = \mathrm{Opt}(P^Tg)` the change of the weight is
    :math:`V_w(i,j)/(q\tilde\sigma(j))`, and that of the bias is
    :math:`V_b(i)/q - \sum_j \Delta W(i,j)\,\mu(j)`. Here ``std`` is :math:`\tilde\sigma` and q the
    root of :func:`scale_dense`. Shapes are those of :func:`precondition_dense`; where they disagree
    it raises ValueError.

    >>> weight, bias = np.array([[3.0]]), np.array([1.0])
    >>> split_adam_step(weight, bias, np.array([4.0]), np.array([1.0]), q=1, lr=0.1, eps=0)
    (array([[0.1]]), array([-0.5]))
    """
    outputs, _ = matching(grad_weight, grad_bias, mean, std, 1, name="std")
    of_weight = (grad_weight - grad_bias.reshape(outputs, 1) * mean) / (q * std)
    of_bias = grad_bias / q
    weight = -lr * of_weight / (abs(of_weight) + eps) / (q * std)
    return weight, -lr * of_bias / (abs(of_bias) + eps) / q - weight @ mean


def matching(
    weight: Any, bias: Any, mean: Any, var: Any, trailing: int, name: str = "var"
) -> tuple[int, int]:
    """Return the numbers of outputs and inputs, when all shapes agree on them."""
    if len(weight.shape) != trailing + 1:
        raise ValueError(
            f"grad_weight must have {trailing + 1} axes; got shape {tuple(weight.shape)}"
        )
    outputs, features = weight.shape[:2]
    for argument, value, length in (
        ("grad_bias", bias, outputs),
        ("mean", mean, features),
        (name, var, features),
    ):
        if tuple(value.shape) != (length,):
            raise ValueError(
                f"{argument} must have shape ({length},) beside a grad_weight of shape "
                f"{tuple(weight.shape)}; got {tuple(value.shape)}"
            )
    return outputs, features


# --- What it costs ----------------------------------------------------------------------------


def bnp_flops(features: int, outputs: int, rows: int) -> int:
    """Return the operations of one BNP step: :math:`4nN + 6no + 2o + 8n` (Source: P-16).

    The operations are those on floating-point numbers; n, o and N are ``features``, ``outputs`` and
    ``rows``.

    >>> bnp_flops(100, 100, 60)
    85000
    """
    return 4 * features * rows + 6 * features * outputs + 2 * outputs + 8 * features


def bn_flops(features: int, rows: int) -> int:
    """Return the operations of batch normalization, both ways: :math:`32nN + 4n` (Source: P-16).

    The operations are those on floating-point numbers, forward and backward; n and N are
    ``features`` and ``rows``.

    >>> bn_flops(100, 60)
    192400
    """
    return 32 * features * rows + 4 * features
