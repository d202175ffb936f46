r"""Batch Normalization Preconditioning: the mathematics, and ``BNP(model)`` for any training loop.

A layer computes :math:`a = W h + b` from its input h. Its Hessian with respect to one row of
:math:`[b, W]` is :math:`\hat H^T S \hat H`; the rows of :math:`\hat H = [e, H]` are the
inputs of the minibatch. Features far from zero, or of very different sizes, make it
ill-conditioned. Batch normalization changes the network so that the features are centered and
scaled. BNP leaves the network as it is and transforms the gradient, with the same effect on the
Hessian.

Axis letters, fixed for the module: ``N`` rows of H (examples), ``n`` features of the input,
``o`` outputs, ``T`` steps, ``c`` input channels, ``k`` kernel size, ``r`` and ``s`` height and
width.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import distributed, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DistributedDataParallel

from optdl.conditioning import condition_number

__all__ = [
    "BNP",
    "absorb_normalization",
    "batch_statistics",
    "bn_flops",
    "bnp_flops",
    "condition_numbers",
    "extended_activations",
    "layer_hessian",
    "normalized_activations",
    "precondition_conv",
    "precondition_dense",
    "preconditioner",
    "running_statistics",
    "scale_conv",
    "scale_dense",
    "smoothed_variance",
    "update_statistics",
]

Matrix = Float[np.ndarray, "N n"]
Vector = Float[np.ndarray, " n"]
Array = TypeVar("Array", bound=Any)
"""A NumPy array or a torch tensor."""


# --- The Hessian of one layer -----------------------------------------------------------------


def extended_activations(H: Matrix) -> Float[np.ndarray, "N n+1"]:
    r"""Return :math:`\hat H = [e, H]`: a column of ones, for the bias, before the inputs.

    Notes
    -----
    Source: P-09

    Examples
    --------
    >>> extended_activations(np.array([[2.0], [3.0]]))
    array([[1., 2.],
           [1., 3.]])
    """
    return np.column_stack([np.ones(len(H)), H])


def layer_hessian(H: Matrix, curvatures: Float[np.ndarray, " N"]) -> Float[np.ndarray, "n+1 n+1"]:
    r"""Return the Hessian of the mean loss with respect to the weights of one output unit.

    .. math:: \nabla^2_{\hat w} \mathcal L = \hat H^T S \hat H, \qquad
        S = \tfrac1N \operatorname{diag}\bigl(L''(\hat w^T \hat h_j)\bigr)

    Parameters
    ----------
    H : (N, n) array
        The inputs of the layer, one example a row.
    curvatures : (N,) array
        :math:`L''` of each example's loss with respect to the unit's output.

    Returns
    -------
    (n + 1, n + 1) array
        The bias comes first.

    Notes
    -----
    Source: P-09

    Examples
    --------
    >>> layer_hessian(np.array([[2.0], [4.0]]), np.ones(2))
    array([[ 1.,  3.],
           [ 3., 10.]])
    """
    extended = extended_activations(H)
    return (extended.T * (curvatures / len(H))) @ extended


def preconditioner(
    mean: Vector, std: Vector
) -> tuple[Float[np.ndarray, "n+1 n+1"], Float[np.ndarray, "n+1 n+1"]]:
    r"""Return U, which centers, and D, which scales; the preconditioner is P = UD.

    .. math:: U = \begin{bmatrix} 1 & -\mu^T \\ 0 & I \end{bmatrix}, \qquad
        D = \begin{bmatrix} 1 & 0 \\ 0 & \operatorname{diag}(\sigma) \end{bmatrix}^{-1}

    Raises
    ------
    ValueError
        If a standard deviation is not positive: the feature is constant, and D does not exist.

    Notes
    -----
    Source: P-11

    Examples
    --------
    >>> U, D = preconditioner(np.array([3.0]), np.array([2.0]))
    >>> U @ D
    array([[ 1. , -1.5],
           [ 0. ,  0.5]])
    """
    _require_positive(std)
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], 1.0 / std]))


def normalized_activations(H: Matrix) -> Float[np.ndarray, "N n+1"]:
    r"""Return :math:`\hat G = \hat H P = [e, g_j^T]` with :math:`g_j = (h_j - \mu_H)/\sigma_H`.

    Notes
    -----
    Source: P-11

    Examples
    --------
    >>> normalized_activations(np.array([[1.0], [3.0]]))
    array([[ 1., -1.],
           [ 1.,  1.]])
    """
    mean, var = batch_statistics(H)
    U, D = preconditioner(mean, np.sqrt(var))
    return extended_activations(H) @ U @ D


def condition_numbers(H: Matrix) -> tuple[float, float, float]:
    r"""Return :math:`\kappa(\hat H)`, :math:`\kappa(\hat HU)` and :math:`\kappa(\hat HUD)`.

    Centering never makes it worse where :math:`\hat H` has full column rank:
    :math:`\kappa(\hat HU) \le \kappa(\hat H)`. Scaling by D comes within a factor
    :math:`\sqrt{n+1}` of the best diagonal matrix there is.

    Parameters
    ----------
    H : (N, n) array
        The inputs of the layer, one example a row.

    Returns
    -------
    as_it_is, centered, centered_and_scaled : float
        Each is the largest singular value over the smallest nonzero one.

    Raises
    ------
    ValueError
        If a feature is constant over the minibatch: D does not exist.

    Notes
    -----
    Source: P-12

    Examples
    --------
    >>> H = np.array([[13.0, 1.0], [17.0, 1.0], [13.0, -1.0], [17.0, -1.0]])
    >>> [round(kappa, 2) for kappa in condition_numbers(H)]
    [114.99, 2.0, 1.0]
    """
    mean, var = batch_statistics(H)
    U, D = preconditioner(mean, np.sqrt(var))
    centered = extended_activations(H) @ U
    return (
        condition_number(extended_activations(H)),
        condition_number(centered),
        condition_number(centered @ D),
    )


def absorb_normalization(
    W: Float[np.ndarray, "o n"], b: Float[np.ndarray, " o"], mean: Vector, std: Vector
) -> tuple[Float[np.ndarray, "o n"], Float[np.ndarray, " o"]]:
    r"""Return the weight and bias of the plain layer that equals a layer behind batch norm.

    .. math:: W\,\frac{h-\mu_H}{\sigma_H} + b = \hat W h + \hat b, \qquad
        \hat W = W\operatorname{diag}(1/\sigma_H), \quad \hat b = b - \hat W\mu_H

    With the statistics held constant, one step of gradient descent on :math:`W, b` is one step
    of BNP, with :math:`q = 1`, on :math:`\hat W, \hat b`.

    Parameters
    ----------
    W, b : (o, n) and (o,) arrays
        The layer that reads the normalized features.
    mean, std : (n,) arrays
        :math:`\mu_H` and :math:`\sigma_H` of its inputs before they are normalized.

    Raises
    ------
    ValueError
        If a standard deviation is not positive.

    Notes
    -----
    Source: P-17

    Examples
    --------
    >>> absorb_normalization(np.array([[6.0]]), np.array([1.0]), np.array([5.0]), np.array([2.0]))
    (array([[3.]]), array([-14.]))
    """
    _require_positive(std)
    absorbed = W / std
    return absorbed, b - absorbed @ mean


def _require_positive(std: Vector) -> None:
    """Refuse to divide by the standard deviation of a constant feature."""
    if not np.all(std > 0):
        raise ValueError(
            f"std must be positive; got {float(np.min(std)):.3g} in feature {int(np.argmin(std))}: "
            "a constant feature cannot be scaled (smoothed_variance keeps it away from zero)"
        )


# --- One step, as Algorithms 2 and 3 write it -------------------------------------------------


def batch_statistics(H: Matrix, running_mean: Vector | None = None) -> tuple[Vector, Vector]:
    r"""Return the mean and the variance (divided by N) of each feature over the minibatch.

    One example has no spread of its own. With ``running_mean`` its variance is measured from
    there: :math:`\sigma_H^2 = (h - \mu)^2`.

    Notes
    -----
    Source: P-14, P-15

    Examples
    --------
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

    The variance of a single example is measured from the new running mean.

    Parameters
    ----------
    H : (N, n) array
        The inputs of the layer, one example a row.
    mean, var : (n,) arrays
        The statistics so far.
    rho : float
        ρ in [0, 1): the share of the old statistics in the new ones.

    Raises
    ------
    ValueError
        If ρ does not lie in [0, 1).

    Notes
    -----
    Source: P-14, P-15

    Examples
    --------
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
    r"""Return the running mean and variance after each of T minibatches.

    They start at :math:`\mu = 0` and :math:`\sigma^2 = 1`, and :func:`update_statistics` moves
    them.

    Parameters
    ----------
    minibatches : sequence of (N, n) arrays
        The inputs of the layer, step by step; N may change.
    rho : float
        ρ in [0, 1): the share of the old statistics in the new ones.

    Returns
    -------
    means, variances : (T, n) arrays
        One row for each step.

    Raises
    ------
    ValueError
        If there is no minibatch, or ρ does not lie in [0, 1).

    Notes
    -----
    Source: P-14, P-15

    Examples
    --------
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

    No feature is then smaller than a hundredth of the largest, and a constant one divides
    nothing by zero.

    Notes
    -----
    Source: P-14

    Examples
    --------
    >>> smoothed_variance(np.array([0.0, 4.0]), eps1=0.5, eps2=1.0)
    array([3., 7.])
    """
    return var + eps1 * var.max() + eps2


def scale_dense(features: int, rows: int) -> float:
    r"""Return :math:`q^2 = \max\{n/N, 1\}`, which keeps the Hessian's norm free of n.

    Notes
    -----
    Source: P-13, P-14

    Examples
    --------
    >>> scale_dense(3072, 60), scale_dense(100, 256)
    (51.2, 1.0)
    """
    return max(features / rows, 1.0)


def scale_conv(channels: int, kernel: tuple[int, ...], examples: int, positions: float) -> float:
    r"""Return :math:`q^2 = \max\{c k^2/N, \sqrt{rs}\}` of a convolution.

    Parameters
    ----------
    channels : int
        c, the input channels that one output channel sees.
    kernel : tuple of int
        Height and width of the kernel; :math:`k^2` is their product.
    examples : int
        N, the images of the minibatch.
    positions : float
        rs, height times width of the output.

    Notes
    -----
    Source: P-24

    Examples
    --------
    >>> scale_conv(64, (3, 3), 128, 256), scale_conv(64, (3, 3), 2, 256)
    (16.0, 288.0)
    """
    return max(channels * math.prod(kernel) / examples, math.sqrt(positions))


def precondition_dense(
    grad_weight: Array,
    grad_bias: Array,
    mean: Array,
    var: Array,
    batch_size: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> tuple[Array, Array]:
    r"""Precondition the gradient of a dense layer: steps 3 to 5 of Algorithm 2.

    .. math::
        G_w(i,j) &\leftarrow \tfrac1{q^2}\,[G_w(i,j) - \mu(j)\,G_b(i)]\,/\,\tilde\sigma^2(j) \\
        G_b(i) &\leftarrow \tfrac1{q^2}\,G_b(i) - \textstyle\sum_j G_w(i,j)\,\mu(j)

    The second line uses the new :math:`G_w`. Together they are
    :math:`\frac1{q^2} P P^T [G_b; G_w]`, without forming a matrix.

    Parameters
    ----------
    grad_weight : (o, n) array or tensor
        The gradient of the weight, as ``nn.Linear`` has it.
    grad_bias : (o,) array or tensor
        The gradient of the bias.
    mean, var : (n,) arrays or tensors
        The running mean and variance of the layer's input.
    batch_size : int
        N, the number of rows that the gradient averages over.
    eps1, eps2 : float
        What is added to the variance: see :func:`smoothed_variance`.

    Returns
    -------
    grad_weight, grad_bias
        New arrays; the arguments stay as they are.

    Raises
    ------
    ValueError
        If the shapes disagree.

    Notes
    -----
    Source: P-14

    Examples
    --------
    >>> weight, bias = np.array([[5.0]]), np.array([1.0])
    >>> mean, var = np.array([2.0]), np.array([3.0])
    >>> precondition_dense(weight, bias, mean, var, 8, eps1=0.0, eps2=0.0)
    (array([[1.]]), array([-1.]))
    """
    outputs, features = _matching(grad_weight, grad_bias, mean, var, 1)
    scale = scale_dense(features, batch_size)
    smoothed = smoothed_variance(var, eps1, eps2)
    weight = (grad_weight - grad_bias.reshape(outputs, 1) * mean) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def precondition_conv(
    grad_weight: Array,
    grad_bias: Array,
    mean: Array,
    var: Array,
    batch_size: int,
    height: int,
    width: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> tuple[Array, Array]:
    r"""Precondition the gradient of a convolution: steps 3 to 5 of Algorithm 3.

    .. math::
        G_w(d,p,i,j) &\leftarrow
            \tfrac1{q^2}\,[G_w(d,p,i,j) - \mu(p)\,G_b(d)]\,/\,\tilde\sigma^2(p) \\
        G_b(d) &\leftarrow \tfrac1{q^2}\,G_b(d) - \textstyle\sum_{p,i,j} \mu(p)\,G_w(d,p,i,j)

    Parameters
    ----------
    grad_weight : (o, c, k, k) array or tensor
        The gradient of the kernel, as ``nn.Conv2d`` has it.
    grad_bias : (o,) array or tensor
        The gradient of the bias.
    mean, var : (c,) arrays or tensors
        The running mean and variance of each input channel.
    batch_size : int
        N, the images of the minibatch.
    height, width : int
        r and s, the size of the output.
    eps1, eps2 : float
        What is added to the variance: see :func:`smoothed_variance`.

    Returns
    -------
    grad_weight, grad_bias
        New arrays; the arguments stay as they are.

    Raises
    ------
    ValueError
        If the shapes disagree.

    Notes
    -----
    Source: P-24

    Examples
    --------
    >>> weight, bias = np.full((1, 1, 1, 1), 5.0), np.array([1.0])
    >>> mean, var = np.array([2.0]), np.array([3.0])
    >>> weight, bias = precondition_conv(weight, bias, mean, var, 8, 1, 1, eps1=0.0, eps2=0.0)
    >>> weight.item(), bias
    (1.0, array([-1.]))
    """
    outputs, channels = _matching(grad_weight, grad_bias, mean, var, 3)
    scale = scale_conv(channels, grad_weight.shape[2:], batch_size, height * width)
    smoothed = smoothed_variance(var, eps1, eps2).reshape(channels, 1, 1)
    center = mean.reshape(channels, 1, 1)
    weight = (grad_weight - grad_bias.reshape(outputs, 1, 1, 1) * center) / (scale * smoothed)
    return weight, grad_bias / scale - (weight * center).reshape(outputs, -1).sum(1)


def _matching(weight: Any, bias: Any, mean: Any, var: Any, trailing: int) -> tuple[int, int]:
    """Return the numbers of outputs and inputs, when all shapes agree on them."""
    if len(weight.shape) != trailing + 1:
        raise ValueError(
            f"grad_weight must have {trailing + 1} axes; got shape {tuple(weight.shape)}"
        )
    outputs, features = weight.shape[:2]
    for name, value, length in (
        ("grad_bias", bias, outputs),
        ("mean", mean, features),
        ("var", var, features),
    ):
        if tuple(value.shape) != (length,):
            raise ValueError(
                f"{name} must have shape ({length},) beside a grad_weight of shape "
                f"{tuple(weight.shape)}; got {tuple(value.shape)}"
            )
    return outputs, features


# --- What it costs ----------------------------------------------------------------------------


def bnp_flops(features: int, outputs: int, rows: int) -> int:
    r"""Return the floating-point operations of one BNP step: :math:`4nN + 6no + 2o + 8n`.

    Notes
    -----
    Source: P-16

    Examples
    --------
    >>> bnp_flops(100, 100, 60)
    85000
    """
    return 4 * features * rows + 6 * features * outputs + 2 * outputs + 8 * features


def bn_flops(features: int, rows: int) -> int:
    r"""Return the floating-point operations of batch normalization, both ways: :math:`32nN + 4n`.

    Notes
    -----
    Source: P-16

    Examples
    --------
    >>> bn_flops(100, 60)
    192400
    """
    return 32 * features * rows + 4 * features


# --- BNP in a training loop -------------------------------------------------------------------


class _Rows(NamedTuple):
    """What some rows of H were: how many, and the spread of each feature about its mean."""

    examples: int
    rows: int
    positions: int
    """The rows of the output: as many as those of H, but for a convolution that is not 'same'."""
    mean: torch.Tensor
    var: torch.Tensor


def _together(parts: Sequence[_Rows]) -> _Rows:
    """Return the statistics of all rows of the parts together."""
    one, *others = parts
    for other in others:
        rows = one.rows + other.rows
        share = other.rows / rows
        shift = other.mean - one.mean
        one = _Rows(
            one.examples + other.examples,
            rows,
            one.positions + other.positions,
            one.mean + share * shift,
            (1 - share) * one.var + share * other.var + share * (1 - share) * shift**2,
        )
    return one


class _Tap:
    """Gathers the inputs of one layer, forward pass by forward pass, until the next step."""

    LONGEST = 64
    """So many passes are kept apart; a model that nobody steps then holds no more than that."""

    def __init__(self) -> None:
        self.passes: list[_Rows] = []

    def __call__(
        self,
        module: nn.Module,
        inputs: tuple[Any, ...],
        named: dict[str, Any],
        output: torch.Tensor,
    ) -> None:
        """Gather the statistics of one forward pass, where it will be differentiated."""
        if not (module.training and module.weight.requires_grad and torch.is_grad_enabled()):
            return
        if _recomputes():
            return
        given = _channels_first(module, (inputs[0] if inputs else named["input"]).detach())
        if torch.is_autocast_enabled(given.device.type):
            with torch.autocast(given.device.type, enabled=False):
                gathered = _moments(given, output)
        else:
            gathered = _moments(given, output)
        if len(self.passes) == self.LONGEST:
            self.passes[:] = [_together(self.passes)]
        self.passes.append(gathered)


def _recomputes() -> bool:
    """Return whether this pass runs inside a backward pass, which computes activations again."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def _channels_first(module: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Return a dense layer's input as (rows, features), a convolution's as (N, c, h, w)."""
    if isinstance(module, nn.Linear):
        return inputs.reshape(-1, inputs.shape[-1])
    return inputs.unsqueeze(0) if inputs.ndim == 3 else inputs


def _moments(inputs: torch.Tensor, output: torch.Tensor) -> _Rows:
    """Return the statistics of the rows that pass through a layer; half precision is widened."""
    inputs = inputs if inputs.dtype == torch.float64 else inputs.float()
    if inputs.ndim == 2:
        rows = inputs.shape[0]
        # batch norm's own kernel: half the time of two sums, a twentieth of var_mean's on a CPU
        mean, var = torch.batch_norm_update_stats(inputs, None, None, 0.0)
        return _Rows(rows, rows, rows, mean, var)
    examples, _, height, width = inputs.shape
    mean = inputs.mean((0, 2, 3), keepdim=True)
    var = (inputs - mean).square_().mean((0, 2, 3))
    positions = examples * output.shape[-2] * output.shape[-1]
    return _Rows(examples, examples * height * width, positions, mean.flatten(), var)


class _Layer:
    """One preconditioned layer: what passes through it, and its running statistics.

    A grouped convolution is several convolutions side by side: the statistics have one row for
    each group, and a dense layer or a plain convolution is one group.
    """

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d) -> None:
        self.name, self.module, self.tap = name, module, _Tap()
        groups, weight = getattr(module, "groups", 1), module.weight
        exact = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self.mean = torch.zeros(groups, weight.shape[1], dtype=exact, device=weight.device)
        self.var = torch.ones_like(self.mean)
        self.hook = module.register_forward_hook(self.tap, with_kwargs=True)

    def scale(self, gathered: _Rows) -> float:
        """Return q² of the rows gathered."""
        if isinstance(self.module, nn.Linear):
            return scale_dense(self.mean.shape[1], gathered.rows)
        positions = gathered.positions / gathered.examples
        return scale_conv(self.mean.shape[1], self.module.kernel_size, gathered.examples, positions)

    def update(self, gathered: _Rows, rho: float) -> None:
        """Take the gathered statistics into the running ones: steps 1 and 2."""
        mean = gathered.mean.view_as(self.mean)
        if self.mean.device != mean.device:
            self.mean, self.var = self.mean.to(mean.device), self.var.to(mean.device)
        self.mean.lerp_(mean, 1 - rho)
        var = gathered.var.view_as(self.var)
        if gathered.rows == 1:  # one row has no spread: it is measured from the running mean
            var = (mean - self.mean).square_()
        self.var.lerp_(var, 1 - rho)

    def precondition(self, gathered: _Rows, eps1: float, eps2: float) -> None:
        """Transform the gradients in place: steps 3 to 5."""
        weight = self.module.weight.grad
        bias = _learned_bias(self.module)
        if weight is None:
            return
        # without a bias nothing can take up the mean: the columns are scaled, not centered
        spread = self.var if bias is not None else self.var + self.mean**2
        scale = self.scale(gathered)
        smoothed = torch.add(spread, spread.amax(1, keepdim=True), alpha=eps1).add_(eps2)
        inverse = smoothed.mul_(scale).reciprocal_()
        if bias is None:
            weight.mul_(self._aligned(inverse).to(weight.dtype))
        elif weight.ndim == 2 and weight.dtype == inverse.dtype:
            center = self.mean[0]
            weight.addr_(bias, center, alpha=-1).mul_(inverse)
            bias.div_(scale).addmv_(weight, center, alpha=-1)
        else:
            self._precondition_any(weight, bias, inverse, scale)

    def _precondition_any(
        self, weight: torch.Tensor, bias: torch.Tensor, inverse: torch.Tensor, scale: float
    ) -> None:
        """Transform gradients of any shape and precision, computing in that of the statistics."""
        wide, center = bias.to(inverse.dtype), self._aligned(self.mean)
        outputs = wide.view(-1, *[1] * (weight.ndim - 1))
        new = (weight - outputs * center) * self._aligned(inverse)
        weight.copy_(new)
        bias.copy_(wide / scale - (new * center).flatten(1).sum(1))

    def _aligned(self, statistic: torch.Tensor) -> torch.Tensor:
        """Shape a (groups, inputs) statistic so that it meets the weight output by output."""
        outputs = self.module.weight.shape[0] if len(statistic) > 1 else 1
        each = (
            statistic.repeat_interleave(outputs // len(statistic), 0) if outputs > 1 else statistic
        )
        return each.view(*each.shape, *[1] * (self.module.weight.ndim - 2))


def _learned_bias(module: nn.Module) -> torch.Tensor | None:
    """Return the gradient of a layer's bias, if it has one that is trained."""
    bias = module.bias
    return bias.grad if isinstance(bias, torch.Tensor) and bias.requires_grad else None


class BNP:
    r"""Batch Normalization Preconditioning for all dense and convolutional layers of a model.

    The network stays as it is, also at inference. Add one line to the loop::

        bnp = BNP(model)
        for x, y in batches:
            optimizer.zero_grad()
            loss_function(model(x), y).backward()
            bnp.step()                  # transforms the gradients in place
            optimizer.step()            # any optimizer that reads .grad

    Each ``nn.Linear`` follows Algorithm 2 and each ``nn.Conv2d`` Algorithm 3, with the running
    mean and variance of the layer's input. Other layers keep their gradient.

    * **Several forward passes** before a step (gradient accumulation, a module used twice): the
      statistics are those of all rows together, and N counts them all.
    * **More than two dimensions** at a dense layer: every position is a row.
    * **Stride, dilation, padding of any mode**: the statistics are those of the input's channels,
      without the padding; r and s are the size of the output.
    * **Groups**: each group is a convolution of its own, with its own largest variance.
    * **No bias** (or a frozen one): nothing can take up the mean, so the columns of H are only
      scaled, by their root mean square :math:`\sqrt{\sigma^2 + \mu^2}`.
    * **Frozen weights** and layers that did not run keep their gradient.
    * **Half precision and autocast**: statistics in float32. With a ``GradScaler`` call ``step``
      right after ``backward``: the transformation is linear, so the scale passes through.
    * **Several processes**: with ``DistributedDataParallel`` the statistics are those of the
      global batch.
    * **torch.compile**: compile the model as ever, and with ``check_finite=False`` also
      ``torch.compile(bnp.step)``. Compiled code does not look for hooks; where a model of the
      same make was compiled before, without BNP, call ``torch.compiler.reset()`` first.

    Parameters
    ----------
    model : nn.Module
        The network; also one that is wrapped in ``DistributedDataParallel`` or compiled.
    rho : float
        ρ in [0, 1): the share of the old statistics in the new ones.
    eps1, eps2 : float
        What is added to the variance: :math:`\epsilon_1\max\sigma^2 + \epsilon_2`.
    skip : sequence of str
        Names of modules to leave alone, with all they contain.
    check_finite : bool
        Whether each step looks for NaN and infinity among the inputs of the layers. On a GPU
        this waits for the device.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the model has a layer that BNP cannot handle.

    Notes
    -----
    Source: P-14, P-15, P-24, P-25

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    >>> bnp = BNP(model)
    >>> model(torch.ones(5, 3)).mean().backward()
    >>> bnp.step()
    >>> bnp
    BNP(layers=['0', '2'], rho=0.99, eps1=0.01, eps2=0.0001)
    """

    def __init__(
        self,
        model: nn.Module,
        rho: float = 0.99,
        eps1: float = 1e-2,
        eps2: float = 1e-4,
        *,
        skip: Sequence[str] = (),
        check_finite: bool = True,
    ) -> None:
        if not 0 <= rho < 1:
            raise ValueError(f"rho must lie in [0, 1), got {rho}: at 1 the statistics never move")
        if eps1 < 0 or eps2 < 0 or eps1 + eps2 == 0:
            raise ValueError(
                f"eps1 and eps2 must be 0 or more, and not both 0; got {eps1} and {eps2}: "
                "a constant feature would divide by zero"
            )
        self.rho, self.eps1, self.eps2, self.check_finite = rho, eps1, eps2, check_finite
        self.process_group = None
        if isinstance(model, DistributedDataParallel):
            self.process_group = model.process_group
            model = model.module
        model = getattr(model, "_orig_mod", model)
        self._layers = [_Layer(name, module) for name, module in _supported_layers(model, skip)]

    def __repr__(self) -> str:
        """Return the layers by name, and the constants."""
        names = [layer.name for layer in self._layers]
        return f"BNP(layers={names}, rho={self.rho}, eps1={self.eps1}, eps2={self.eps2})"

    @torch.no_grad()
    def step(self) -> None:
        """Transform the gradients of all layers in place, with the inputs seen since the last step.

        Call it between ``loss.backward()`` and ``optimizer.step()``.

        Raises
        ------
        RuntimeError
            If no layer ran in training mode, or one that ran has no gradient.
        FloatingPointError
            If the inputs of a layer hold NaN or infinity; statistics and gradients stay as
            they were.
        """
        ran = [layer for layer in self._layers if layer.tap.passes]
        try:
            _require_gradients(ran)
            gathered = [_together(layer.tap.passes) for layer in ran]
            if self.process_group is not None:
                gathered = _over_processes(ran, gathered, self.process_group)
            if self.check_finite:
                _require_finite(ran, gathered)
            for layer, rows in zip(ran, gathered, strict=True):
                layer.update(rows, self.rho)
                layer.precondition(rows, self.eps1, self.eps2)
        finally:
            for layer in self._layers:
                layer.tap.passes.clear()

    def after_backward(self, state: object) -> None:
        """Take a step; so that BNP is a hook of :func:`optdl.training.train`."""
        self.step()

    def state_dict(self) -> dict[str, dict[str, torch.Tensor]]:
        """Return copies of the running statistics of each layer, by name."""
        return {
            layer.name: {"mean": layer.mean.clone(), "var": layer.var.clone()}
            for layer in self._layers
        }

    def load_state_dict(self, state: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        """Take over running statistics, as :meth:`state_dict` gave them.

        Forward passes that no step has used yet are forgotten: they are not of that state.

        Raises
        ------
        ValueError
            If the layers or their shapes differ; nothing is then taken over.
        """
        expected = {layer.name: tuple(layer.mean.shape) for layer in self._layers}
        found = {name: tuple(values["mean"].shape) for name, values in state.items()}
        if expected != found:
            raise ValueError(
                f"the state is that of another model: expected layers with shapes {expected}, "
                f"found {found}"
            )
        for layer in self._layers:
            layer.mean.copy_(state[layer.name]["mean"])
            layer.var.copy_(state[layer.name]["var"])
            layer.tap.passes.clear()

    def remove(self) -> None:
        """Take the hooks off the model; ``step`` then has nothing to do."""
        for layer in self._layers:
            layer.hook.remove()
        self._layers = []


# --- What BNP can handle, and what it is told when it cannot ----------------------------------

REFUSED: tuple[tuple[type, str], ...] = (
    (LazyModuleMixin, "run one batch through the model first: its shapes are open"),
    (nn.MultiheadAttention, "it uses its weights without calling its layers"),
    (nn.modules.conv._ConvTransposeNd, "its columns are not inputs under a window"),
    (nn.modules.conv._ConvNd, "only convolutions over images have Algorithm 3"),
    (nn.Bilinear, "its output is not linear in one input"),
    (nn.RNNBase, "it uses its weights at every time without calling a layer"),
    (nn.RNNCellBase, "it holds two layers in one"),
)
"""Kinds of modules with a weight that BNP has no transformation for, and why."""


def _supported_layers(
    model: nn.Module, skip: Sequence[str] = ()
) -> Iterator[tuple[str, nn.Linear | nn.Conv2d]]:
    """Yield the dense and convolutional layers with their names; refuse what BNP cannot handle.

    Raises
    ------
    ValueError
        If a layer of another kind has weights of its own, if two layers share a weight, or a
        weight is computed from other parameters, or nothing is left to precondition.
    """
    names = {name for name, _ in model.named_modules()}
    if unknown := [name for name in skip if name not in names]:
        raise ValueError(f"skip names no module of this model: {unknown}")
    owners: dict[int, str] = {}
    count = 0
    for name, module in model.named_modules():
        if any(name == other or name.startswith(f"{other}.") for other in skip):
            continue
        plain = isinstance(module, nn.Linear | nn.Conv2d)
        if reason := _reason(module):
            raise ValueError(_refusal(name, module, reason))
        weight = module._parameters.get("weight")
        if plain and weight is None:
            raise ValueError(_refusal(name, module, "its weight is computed from other parameters"))
        if weight is None or not (plain or isinstance(module, nn.Embedding)):
            continue
        if id(weight) in owners:
            raise ValueError(
                _refusal(name, module, f"it shares its weight with {owners[id(weight)]!r}")
            )
        owners[id(weight)] = name
        if isinstance(module, nn.Linear | nn.Conv2d):
            count += 1
            yield name, module
    if not count:
        raise ValueError("expected a model with nn.Linear or nn.Conv2d layers, found none")


def _reason(module: nn.Module) -> str:
    """Return why a module cannot be preconditioned, or an empty string."""
    if isinstance(module, nn.Conv2d) and not isinstance(module, LazyModuleMixin):
        return ""
    return next((reason for kind, reason in REFUSED if isinstance(module, kind)), "")


def _refusal(name: str, module: nn.Module, reason: str) -> str:
    return (
        f"BNP cannot precondition {name or 'the model'!r} ({type(module).__name__}): {reason}. "
        f"To leave it with its plain gradient: BNP(model, skip=({name!r},))"
    )


def _require_gradients(ran: list[_Layer]) -> None:
    if not ran:
        compiled = (
            ". If the model is compiled, it may run code compiled before BNP was there: "
            "call torch.compiler.reset() after BNP(model)"
        )
        raise RuntimeError(
            "expected a forward pass in training mode and loss.backward() before bnp.step(); "
            "found no forward pass since the last step"
            + (compiled if "torch._dynamo" in sys.modules else "")
        )
    without = [layer.name for layer in ran if layer.module.weight.grad is None]
    if len(without) == len(ran):
        raise RuntimeError("found no gradients: call loss.backward() before bnp.step()")
    if without:
        raise RuntimeError(
            f"the layers {without} ran but got no gradient: their output does not reach the loss. "
            "Freeze them (requires_grad_(False)) or leave them out (skip)"
        )


def _require_finite(ran: list[_Layer], gathered: list[_Rows]) -> None:
    # one number for all layers: a GPU is waited for once; a mean that is not finite has no variance
    if math.isfinite(torch.cat([rows.var for rows in gathered]).sum().item()):
        return
    bad = [
        layer.name
        for layer, rows in zip(ran, gathered, strict=True)
        if not torch.isfinite(rows.var.sum())
    ]
    raise FloatingPointError(
        f"the inputs of {bad[0]!r} hold NaN or infinity (in all: {len(bad)} layers). "
        "Lower the learning rate, or look at the data; nothing was changed"
    )


# --- Several processes ------------------------------------------------------------------------


def _over_processes(ran: list[_Layer], gathered: list[_Rows], group: Any) -> list[_Rows]:
    """Return the statistics of the rows of all processes, after one exchange for all layers.

    Sums are sent about the running mean, which is alike in all processes, so that large means
    cost no digits.
    """
    sent = torch.cat([_sums(layer, rows) for layer, rows in zip(ran, gathered, strict=True)])
    distributed.all_reduce(sent, group=group)
    result = []
    for layer, part in zip(
        ran, torch.split(sent, [2 * one.mean.numel() + 3 for one in ran]), strict=True
    ):
        examples, rows, positions = (round(count) for count in part[:3].tolist())
        sums, squares = part[3:].chunk(2)
        shift = sums / rows
        mean = layer.mean.flatten() + shift.to(layer.mean.dtype)
        var = (squares / rows - shift**2).to(layer.mean.dtype)
        result.append(_Rows(examples, rows, positions, mean, var))
    return result


def _sums(layer: _Layer, gathered: _Rows) -> torch.Tensor:
    """Return counts, sums, and sums of squares about the running mean, in double precision."""
    shift = (gathered.mean - layer.mean.flatten()).double()
    squares = gathered.rows * (gathered.var.double() + shift**2)
    return torch.cat([shift.new_tensor(gathered[:3]), gathered.rows * shift, squares])
