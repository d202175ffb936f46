r"""Batch normalization and its relatives: forward and backward in NumPy, layers in torch.

Axis letters, fixed for the module: ``m`` examples of a minibatch, ``d`` features (channels of
an image), ``o`` outputs of a dense layer. Statistics of a minibatch divide by m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

__all__ = [
    "NORMALIZATIONS",
    "BatchNorm",
    "BatchRenorm",
    "FourThingsNorm",
    "GhostBatchNorm",
    "affine_at_inference",
    "batchnorm_backward",
    "batchnorm_forward",
    "batchnorm_inference",
    "fold",
    "groupnorm_forward",
    "moving_average",
    "population_statistics",
    "renorm_forward",
    "scale_invariant_gradient",
]

Matrix = Float[np.ndarray, "m d"]
Vector = Float[np.ndarray, " d"]


class Cache(NamedTuple):
    """What the backward pass needs from the forward one."""

    normalized: Matrix
    """x̂."""
    factor: Vector
    """What x̂ is multiplied by, over the root that x was divided by."""


# --- The transform ----------------------------------------------------------------------------


def batchnorm_forward(
    x: Matrix, gamma: Vector, beta: Vector, eps: float = 1e-5
) -> tuple[Matrix, Cache]:
    r"""Normalize each feature over the minibatch, then scale and shift it.

    .. math:: \mu_B = \frac1m \sum_i x_i, \qquad \sigma_B^2 = \frac1m \sum_i (x_i - \mu_B)^2,
        \qquad \hat x = \frac{x - \mu_B}{\sqrt{\sigma_B^2 + \epsilon}}, \qquad
        y = \gamma \hat x + \beta

    **Erratum.** L2 prints the variance without the square. That sum is zero for every minibatch.

    Parameters
    ----------
    x : (m, d) array
        One example a row.
    gamma, beta : (d,) arrays
        Scale and shift, which are learned.
    eps : float
        ε > 0, against division by zero.

    Returns
    -------
    y : (m, d) array
        The output.
    cache
        What :func:`batchnorm_backward` needs.

    Notes
    -----
    Source: L1-34, P-01

    Examples
    --------
    >>> y, _ = batchnorm_forward(np.array([[1.0], [3.0]]), np.array([2.0]), np.array([5.0]), 0.0)
    >>> y.ravel()
    array([3., 7.])
    """
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).mean(axis=0) + eps)
    normalized = centered / root
    return gamma * normalized + beta, Cache(normalized, gamma / root)


def batchnorm_backward(grad: Matrix, cache: Cache) -> tuple[Matrix, Vector, Vector]:
    r"""Return the gradients of x, γ and β from the gradient of y.

    Each example moves the mean and the variance, and through them all other outputs:

    .. math:: \frac{\partial L}{\partial x_i} = \frac{\gamma}{\sqrt{\sigma_B^2 + \epsilon}}
        \Bigl(\delta_i - \frac1m\sum_j \delta_j - \hat x_i\,\frac1m\sum_j \delta_j\hat x_j\Bigr),
        \qquad \delta = \frac{\partial L}{\partial y}

    The gradient of x has no mean and nothing along x̂: a minibatch can be neither shifted nor
    stretched.

    Notes
    -----
    Source: L1-35

    Examples
    --------
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
    r"""Return the mean and the variance of the population from those of b minibatches of m.

    .. math:: E[x] = E_B[\mu_B], \qquad V[x] = \frac m{m-1}\, E_B[\sigma_B^2]

    The variance of a minibatch is measured from its own mean, so it is too small by
    (m − 1)/m on average.

    Raises
    ------
    ValueError
        If m is less than 2: one example has no variance.

    Notes
    -----
    Source: L1-36

    Examples
    --------
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
    r"""Normalize with statistics of the whole training, not of the minibatch.

    .. math:: y = \gamma\,\frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta

    Notes
    -----
    Source: L1-36

    Examples
    --------
    >>> one = np.ones(1)
    >>> batchnorm_inference(np.array([[7.0]]), 2 * one, one, 3 * one, 4 * one, eps=0.0)
    array([[5.]])
    """
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


def affine_at_inference(
    gamma: Vector, beta: Vector, mean: Vector, var: Vector, eps: float = 1e-5
) -> tuple[Vector, Vector]:
    r"""Return the scale and the shift that batch normalization is at inference.

    .. math:: y = \frac{\gamma}{\sqrt{V[x] + \epsilon}}\, x +
        \Bigl(\beta - \frac{\gamma\, E[x]}{\sqrt{V[x] + \epsilon}}\Bigr)

    Notes
    -----
    Source: L1-36

    Examples
    --------
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

    s and t are those of :func:`affine_at_inference`. At inference the layer costs nothing.

    Notes
    -----
    Source: L1-36

    Examples
    --------
    >>> one = np.ones(1)
    >>> fold(np.array([[4.0, 6.0]]), one, 2 * one, one, 3 * one, 4 * one, eps=0.0)
    (array([[4., 6.]]), array([-1.]))
    """
    scale, shift = affine_at_inference(gamma, beta, mean, var, eps)
    return scale[:, None] * weight, scale * bias + shift


def moving_average(
    values: Float[np.ndarray, "t d"], rho: float, start: Vector | None = None
) -> Float[np.ndarray, "t d"]:
    r"""Return the moving average after each of t values, ρ the share of the old average.

    .. math:: \mu \leftarrow \rho\,\mu + (1 - \rho)\,\mu_B

    Three conventions of one formula:

    ======  ===========================  ==================================
    source  share of the new value       before the first value
    ======  ===========================  ==================================
    P       1 − ρ                        0 for a mean, 1 for a variance
    L2      δ                            nothing: the first value is taken
    torch   ``momentum``, 0.1            0 for a mean, 1 for a variance
    ======  ===========================  ==================================

    torch also averages the *unbiased* variance, m/(m − 1) times what the layer divides by.

    Parameters
    ----------
    values : (t, d) array
        The statistics of minibatches, one a row.
    rho : float
        In [0, 1).
    start : (d,) array, optional
        The average before the first value. Without it, the first value itself (L2).

    Raises
    ------
    ValueError
        If rho is not in [0, 1).

    Notes
    -----
    Source: L2-14

    Examples
    --------
    >>> values = np.array([[4.0], [8.0]])
    >>> moving_average(values, rho=0.75).ravel()
    array([4., 5.])
    >>> moving_average(values, rho=0.75, start=np.zeros(1)).ravel()
    array([1.  , 2.75])
    """
    if not 0 <= rho < 1:
        raise ValueError(f"rho, the share of the old average, must be in [0, 1); got {rho}")
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

    The output is that of inference, :math:`\gamma (x - \mu)/\sigma + \beta`. The gradient is not:
    s and d count as constants, and it flows through :math:`\mu_H` and :math:`\sigma_H`. So
    :func:`batchnorm_backward` takes the cache; there the gradient of γ is over x̂, without s and d.

    Parameters
    ----------
    x, gamma, beta, eps
        As in :func:`batchnorm_forward`.
    mean, std : (d,) arrays
        μ and σ > 0, the moving averages.

    Notes
    -----
    Source: P-03

    Examples
    --------
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
    r"""Normalize each example over groups of its features; one group is layer normalization.

    No example sees another, so a minibatch of one is as good as any, and training and inference
    are the same.

    Raises
    ------
    ValueError
        If the groups are not equally large.

    Notes
    -----
    Source: P-04

    Examples
    --------
    >>> x, one = np.array([[1.0, 3.0, 10.0, 30.0]]), np.ones(4)
    >>> groupnorm_forward(x, one, 0 * one, groups=2, eps=0.0)
    array([[-1.,  1., -1.,  1.]])
    """
    _require_groups(x.shape[1], groups)
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt((centered**2).mean(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def scale_invariant_gradient(
    W: Float[np.ndarray, "o n"], h: Float[np.ndarray, "m n"], upstream: Float[np.ndarray, "m o"]
) -> Float[np.ndarray, "o n"]:
    r"""Return the gradient of the weight of a layer whose output is normalized.

    .. math:: f(W) = \sum_{ij} \delta_{ij}\, \mathrm{BN}(h W^T)_{ij}, \qquad
        f(cW) = f(W), \qquad \nabla f(cW) = \tfrac1c\,\nabla f(W), \qquad
        \nabla f(w_i)^T w_i = 0

    Each row of W has only a direction. The larger it is, the smaller its gradient, and a step is
    always at right angles to it, so it can only grow:
    :math:`\lVert w - \eta g\rVert^2 = \lVert w\rVert^2 + \eta^2 \lVert g\rVert^2`.

    Parameters
    ----------
    W : (o, n) array
        The weight.
    h : (m, n) array
        The inputs.
    upstream : (m, o) array
        δ, the gradient of the normalized outputs. ε is 0.

    Notes
    -----
    Source: P-08

    Examples
    --------
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


# --- Layers -----------------------------------------------------------------------------------


class BatchNorm(nn.Module):
    r"""Batch normalization of (m, d) features or of the d channels of (m, d, …) images.

    The same outputs and gradients as ``nn.BatchNorm1d`` and ``nn.BatchNorm2d`` with
    ``momentum = 1 − rho``.

    Parameters
    ----------
    features : int
        d.
    rho : float
        The share of the old moving average that is kept.
    eps : float
        ε > 0, against division by zero.

    Raises
    ------
    ValueError
        In training, if a feature has one value only: it would be normalized to 0.

    Notes
    -----
    Source: L1-34, L1-36, L2-14, L2-15, P-01, P-02

    Examples
    --------
    >>> layer = BatchNorm(1)
    >>> layer(torch.tensor([[1.0], [3.0]])).detach().round(decimals=2).ravel().tolist()
    [-1.0, 1.0]
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, features: int, rho: float = 0.9, eps: float = 1e-5) -> None:
        super().__init__()
        if not 0 <= rho < 1:
            raise ValueError(f"rho, the share of the old average, must be in [0, 1); got {rho}")
        self.features, self.rho, self.eps = features, rho, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def extra_repr(self) -> str:
        """Return the settings that ``print`` shows."""
        return f"{self.features}, rho={self.rho}, eps={self.eps}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize x."""
        _require_features(x, self.features)
        columns = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)  # (m, d, positions)
        normalized = self.normalize(columns) if self.training else self.infer(columns)
        scaled = normalized * self.weight[:, None] + self.bias[:, None]
        return scaled.reshape(x.shape)

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        mean, var = _moments(x, self.features)
        self.remember(mean, var, x.shape[0] * x.shape[2])
        return _standardize(x, mean, var, self.eps)

    def infer(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) with the moving averages."""
        return _standardize(x, self.running_mean, self.running_var, self.eps)

    @torch.no_grad()
    def remember(self, mean: torch.Tensor, var: torch.Tensor, rows: int) -> None:
        """Update the moving averages: that of the mean, and that of the unbiased variance."""
        self.running_mean.lerp_(mean, 1 - self.rho)
        self.running_var.lerp_(var * (rows / (rows - 1)), 1 - self.rho)


class BatchRenorm(BatchNorm):
    r"""Batch renormalization: in training, too, the outputs are those of inference.

    .. math:: \hat x = \frac{x - \mu_B}{\sigma_B}\, s + d, \qquad
        s = \operatorname{clip}\Bigl(\frac{\sigma_B}{\sigma}, \frac1{s_{max}}, s_{max}\Bigr),
        \qquad d = \operatorname{clip}\Bigl(\frac{\mu_B - \mu}{\sigma}, -d_{max}, d_{max}\Bigr)

    s and d are constants of the backward pass. With ``s_max = 1``, ``d_max = 0`` it is batch
    normalization; training starts there, as the moving averages mean nothing yet, and loosens
    both. The default clips nothing: the formula of P.

    Parameters
    ----------
    features, rho, eps
        As in :class:`BatchNorm`.
    s_max, d_max : float
        The limits; attributes that may change while training.

    Notes
    -----
    Source: P-03

    Examples
    --------
    >>> layer = BatchRenorm(1).double()
    >>> x = torch.tensor([[1.0], [3.0]]).double()
    >>> layer(x).ravel().detach().numpy().round(4)  # the averages are still 0 and 1
    array([1., 3.])
    """

    def __init__(
        self,
        features: int,
        rho: float = 0.99,
        eps: float = 1e-5,
        s_max: float = float("inf"),
        d_max: float = float("inf"),
    ) -> None:
        super().__init__(features, rho, eps)
        if s_max < 1 or d_max < 0:
            raise ValueError(f"s_max must be 1 or more, d_max 0 or more; got {s_max}, {d_max}")
        self.s_max, self.d_max = s_max, d_max

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        mean, var = _moments(x, self.features)
        std = (var + self.eps).sqrt()
        with torch.no_grad():
            kept = (self.running_var + self.eps).sqrt()
            s = (std / kept).clamp(1 / self.s_max, self.s_max)
            d = ((mean - self.running_mean) / kept).clamp(-self.d_max, self.d_max)
        self.remember(mean, var, x.shape[0] * x.shape[2])
        return (x - mean[:, None]) / std[:, None] * s[:, None] + d[:, None]


class GhostBatchNorm(BatchNorm):
    r"""Batch normalization over parts of the minibatch, each with statistics of its own.

    A large minibatch is treated as several small ones: their noise regularizes.

    Parameters
    ----------
    features, rho, eps
        As in :class:`BatchNorm`.
    ghost_size : int
        Examples in a part. The last part takes the rest, if it is not a whole one.

    Notes
    -----
    Source: P-04

    Examples
    --------
    >>> layer = GhostBatchNorm(1, ghost_size=2)
    >>> x = torch.tensor([[1.0], [3.0], [10.0], [30.0]])
    >>> layer(x).ravel().detach().numpy().round(2)
    array([-1.,  1., -1.,  1.], dtype=float32)
    """

    def __init__(
        self, features: int, ghost_size: int = 32, rho: float = 0.9, eps: float = 1e-5
    ) -> None:
        super().__init__(features, rho, eps)
        if ghost_size < 1:
            raise ValueError(f"ghost_size must be 1 example or more; got {ghost_size}")
        self.ghost_size = ghost_size

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        parts = _parts(x, self.ghost_size)
        return torch.cat([super(GhostBatchNorm, self).normalize(part) for part in parts])


class FourThingsNorm(BatchNorm):
    r"""Batch normalization with the four improvements of Summers and Dinneen (2020).

    1. Small minibatches: statistics over groups of features too, as group normalization has them.
    2. Large minibatches: statistics over parts of it, as ghost batch normalization has them.
    3. γ and β decay like the weights. That is the optimizer's ``weight_decay``, on all parameters.
    4. Inference takes a share α of each example's own statistics:

    .. math:: \mu = \alpha\,E[x_i] + (1-\alpha)\,\mu_{MA}, \qquad
        \sigma^2 = \alpha\,E[x_i^2] + (1-\alpha)\,(\sigma_{MA}^2 + \mu_{MA}^2) - \mu^2

    Parameters
    ----------
    features, rho, eps
        As in :class:`BatchNorm`.
    groups : int, optional
        Groups of features that share statistics; as many as there are features if not given.
    ghost_size : int, optional
        Examples in a part; the whole minibatch if not given.
    example_share : float
        α in [0, 1].

    Notes
    -----
    Source: P-04

    Examples
    --------
    >>> layer = FourThingsNorm(2, groups=1)
    >>> layer(torch.tensor([[1.0, 3.0]])).detach().numpy().round(2)  # a minibatch of one
    array([[-1.,  1.]], dtype=float32)
    """

    def __init__(
        self,
        features: int,
        groups: int | None = None,
        ghost_size: int | None = None,
        example_share: float = 0.0,
        rho: float = 0.9,
        eps: float = 1e-5,
    ) -> None:
        super().__init__(features, rho, eps)
        self.groups = features if groups is None else groups
        _require_groups(features, self.groups)
        if not 0 <= example_share <= 1:
            raise ValueError(f"example_share must be in [0, 1]; got {example_share}")
        self.ghost_size, self.example_share = ghost_size, example_share

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        parts = _parts(x, self.ghost_size or len(x))
        return torch.cat([self._normalize_part(part) for part in parts])

    def _normalize_part(self, x: torch.Tensor) -> torch.Tensor:
        grouped = self._grouped(x)
        mean, var = (self._spread(moment) for moment in _moments(grouped, self.groups))
        self.remember(mean, var, grouped.shape[0] * grouped.shape[2])
        return _standardize(x, mean, var, self.eps)

    def infer(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions), in part with each example's own statistics."""
        grouped, share = self._grouped(x), self.example_share
        own_mean = self._spread(grouped.mean(2).T).T
        own_square = self._spread(grouped.square().mean(2).T).T
        mean = share * own_mean + (1 - share) * self.running_mean
        square = self.running_var + self.running_mean.square()
        var = share * own_square + (1 - share) * square - mean.square()
        return (x - mean[..., None]) / (var.clamp(min=0)[..., None] + self.eps).sqrt()

    def _grouped(self, x: torch.Tensor) -> torch.Tensor:
        """Return (m, groups, positions): what shares statistics lies along the last axis."""
        return x.reshape(len(x), self.groups, -1)

    def _spread(self, moment: torch.Tensor) -> torch.Tensor:
        """Return the statistics of each feature from those of its group, along the first axis."""
        return moment.repeat_interleave(self.features // self.groups, dim=0)


NORMALIZATIONS: dict[str, str | Callable[[int], nn.Module]] = {
    "none": "none",
    "bn": BatchNorm,
    "ln": "ln",
    "gn": "gn",
    "renorm": BatchRenorm,
    "ghost": GhostBatchNorm,
    "four things": FourThingsNorm,
}
"""What :mod:`optdl.networks` takes as ``normalization``, by the names that the chapters use."""


def _moments(x: torch.Tensor, features: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean and the variance of each feature of (m, d, positions)."""
    if x.shape[0] * x.shape[2] < 2:
        raise ValueError(
            f"each of the {features} features has a single value in this minibatch (examples: "
            f"{x.shape[0]}, positions: {x.shape[2]}): it has no variance. Use 2 examples or more, "
            "or a normalization that does not look across examples"
        )
    mean = x.mean((0, 2))
    return mean, (x - mean[:, None]).square().mean((0, 2))


def _standardize(
    x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor, eps: float
) -> torch.Tensor:
    return (x - mean[:, None]) / (var + eps).sqrt()[:, None]


def _parts(x: torch.Tensor, size: int) -> Sequence[torch.Tensor]:
    """Return parts of ``size`` examples; the last one takes the rest."""
    whole = max(len(x) // size, 1)
    return x.tensor_split([size * number for number in range(1, whole)])


def _require_groups(features: int, groups: int) -> None:
    if groups < 1 or features % groups:
        raise ValueError(f"{features} features cannot be divided into {groups} equal groups")


def _require_features(x: torch.Tensor, features: int) -> None:
    if x.dim() < 2 or x.shape[1] != features:
        raise ValueError(
            f"expected a minibatch of shape (m, {features}) or (m, {features}, …); "
            f"got {tuple(x.shape)}"
        )
