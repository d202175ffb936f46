"""Batch normalization and its relatives as layers for torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from optdl.batchnorm.functions import require_groups

__all__ = [
    "NORMALIZATIONS",
    "BatchNorm",
    "BatchRenorm",
    "FourThingsNorm",
    "GhostBatchNorm",
    "RandomShift",
]


class BatchNorm(nn.Module):
    """Batch normalization of (m, d) features or of the d channels of (m, d, …) images.

    The same outputs and gradients as ``nn.BatchNorm1d`` and ``nn.BatchNorm2d`` with
    ``momentum = 1 − rho``, under autocast and in half precision too. d is ``features``, and ρ in
    [0, 1) the weight of the old moving average. Raises ValueError where ρ is out of range, x does
    not have d features, or, in training, a feature has a single value: it would be normalized to 0.
    Raises TypeError where x is not of floating-point numbers. ``torch.optim.swa_utils.update_bn``
    leaves its averages as they are: :func:`use_population_statistics` computes them anew.
    Source: L1-34, L1-36, L2-14, L2-15, P-01, P-02.

    >>> layer = BatchNorm(1)
    >>> layer(torch.tensor([[1.0], [3.0]])).detach().round(decimals=2).ravel().tolist()
    [-1.0, 1.0]
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(self, features: int, rho: float = 0.9, eps: float = 1e-5) -> None:
        super().__init__()
        if not 0 <= rho < 1:
            raise ValueError(f"rho, the weight of the old average, must be in [0, 1); got {rho}")
        self.features, self.rho, self.eps = features, rho, eps
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # nn.BatchNorm counts its minibatches besides: its weights are loaded without the count
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """Return the settings that ``print`` shows."""
        return f"{self.features}, rho={self.rho}, eps={self.eps}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalize x."""
        _require_features(x, self.features)
        columns = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)  # (m, d, positions)
        # half precision has neither the range nor the digits for sums of squares
        columns = columns.to(torch.promote_types(x.dtype, torch.float32))
        normalized = self.normalize(columns) if self.training else self.infer(columns)
        scaled = normalized * self.weight[:, None] + self.bias[:, None]
        return scaled.reshape(x.shape).to(x.dtype)

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        mean, var = _moments(x, self.features)
        self.remember(mean, var, x.shape[0] * x.shape[2])
        return _standardize(x, mean, var, self.eps)

    def infer(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) with the moving averages."""
        return _standardize(x, *self.averages(x.dtype), self.eps)

    def averages(self, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the moving averages in the precision in which the layer computes."""
        return self.running_mean.to(dtype), self.running_var.to(dtype)

    @torch.no_grad()
    def remember(self, mean: torch.Tensor, var: torch.Tensor, rows: int) -> None:
        """Update the moving averages: that of the mean, and that of the unbiased variance."""
        running_mean, running_var = self.averages(mean.dtype)
        self.running_mean.copy_(running_mean.lerp(mean, 1 - self.rho))
        # torch averages the unbiased variance, although it divides by the root of the biased one
        self.running_var.copy_(running_var.lerp(var * (rows / (rows - 1)), 1 - self.rho))


class BatchRenorm(BatchNorm):
    r"""Batch renormalization: in training, too, the outputs are those of inference (Source: P-03).

    .. math:: \hat x = \frac{x - \mu_B}{\sigma_B}\, s + d, \qquad
        s = \operatorname{clip}\Bigl(\frac{\sigma_B}{\sigma}, \frac1{s_{max}}, s_{max}\Bigr),
        \qquad d = \operatorname{clip}\Bigl(\frac{\mu_B - \mu}{\sigma}, -d_{max}, d_{max}\Bigr)

    s and d are constants of the backward pass. With ``s_max = 1``, ``d_max = 0`` it is batch
    normalization; training starts there, as the moving averages mean nothing yet, and loosens both.
    The limits are attributes that may change while training. The default clips nothing: the formula
    of P. Raises ValueError where ``s_max`` < 1 or ``d_max`` < 0; all else is as in
    :class:`BatchNorm`.

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
            # before remember: inference would have used the averages without this minibatch
            running_mean, running_var = self.averages(x.dtype)
            kept = (running_var + self.eps).sqrt()
            s = (std / kept).clamp(1 / self.s_max, self.s_max)
            d = ((mean - running_mean) / kept).clamp(-self.d_max, self.d_max)
        self.remember(mean, var, x.shape[0] * x.shape[2])
        return (x - mean[:, None]) / std[:, None] * s[:, None] + d[:, None]


class GhostBatchNorm(BatchNorm):
    """Batch normalization over parts of the minibatch, each with its own statistics (Source: P-04).

    A part has ``ghost_size`` examples; the last one takes the rest. A large minibatch is treated as
    several small ones: their noise regularizes. Raises ValueError where ``ghost_size`` is less than
    1; all else is as in :class:`BatchNorm`.

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
    r"""Batch normalization with the four improvements of Summers and Dinneen (2020) (Source: P-04).

    1. Small minibatches: statistics over groups of features too, as group normalization has them.
    2. Large minibatches: statistics over parts of it, as ghost batch normalization has them.
    3. γ and β decay like the weights. That is the optimizer's ``weight_decay``, on all parameters.
    4. Inference takes a share α of each example's own statistics:

    .. math:: \mu = \alpha\,E[x_i] + (1-\alpha)\,\mu_{MA}, \qquad
        \sigma^2 = \alpha\,E[x_i^2] + (1-\alpha)\,(\sigma_{MA}^2 + \mu_{MA}^2) - \mu^2

    ``groups`` is the number of groups, as many as features if not given; ``ghost_size`` the
    examples of a part, the whole minibatch if not given; α the ``example_share``. Raises ValueError
    where α lies outside [0, 1], or the features do not divide into the groups; all else is as in
    :class:`BatchNorm`.

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
        require_groups(features, self.groups)
        if not 0 <= example_share <= 1:
            raise ValueError(f"example_share must be in [0, 1]; got {example_share}")
        self.ghost_size, self.example_share = ghost_size, example_share

    def normalize(self, x: torch.Tensor) -> torch.Tensor:
        """Return x̂ of (m, d, positions) in training, and update the moving averages."""
        parts = _parts(x, self.ghost_size or len(x) or 1)
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
        running_mean, running_var = self.averages(x.dtype)
        mean = share * own_mean + (1 - share) * running_mean
        square = running_var + running_mean.square()
        var = share * own_square + (1 - share) * square - mean.square()
        # as a difference of squares it can be negative by a rounding error
        return (x - mean[..., None]) / (var.clamp(min=0)[..., None] + self.eps).sqrt()

    def _grouped(self, x: torch.Tensor) -> torch.Tensor:
        """Return (m, groups, positions): what shares statistics lies along the last axis."""
        return x.reshape(len(x), self.groups, self.features // self.groups * x.shape[2])

    def _spread(self, moment: torch.Tensor) -> torch.Tensor:
        """Return the statistics of each feature from those of its group, along the first axis."""
        return moment.repeat_interleave(self.features // self.groups, dim=0)


class RandomShift(nn.Module):
    r"""A change of the distribution of each feature, another one in each step of training.

    All examples of a minibatch have the same

    .. math:: y = (1 + \tfrac a2 u)\,x + a\,v, \qquad
        u \sim U(0, 1), \quad v \sim U(-1, 1),

    with u and v for each of the features, or of the channels of images, and ``size`` = a; at
    inference y = x. The numbers come from torch's global generator. Source: L1-41.

    >>> RandomShift(2, size=0.5).eval()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    def __init__(self, features: int, size: float) -> None:
        super().__init__()
        self.features, self.size = features, size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shift and stretch the features of a minibatch."""
        if not self.training:
            return x
        _require_features(x, self.features)
        each = self.features, *[1] * (x.dim() - 2)
        u, v = torch.rand(2, *each, dtype=x.dtype).to(x.device)
        return (1 + self.size / 2 * u) * x + self.size * (2 * v - 1)


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
            f"each of the {features} features has no two values in this minibatch (examples: "
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
    # a part of the rest alone might be one example, which has no variance
    whole = max(len(x) // size, 1)
    return x.tensor_split([size * number for number in range(1, whole)])


def _require_features(x: torch.Tensor, features: int) -> None:
    if x.dim() < 2 or x.shape[1] != features:
        raise ValueError(
            f"expected a minibatch of shape (m, {features}) or (m, {features}, …); "
            f"got {tuple(x.shape)}"
        )
    if not x.is_floating_point():
        raise TypeError(f"expected a minibatch of real floating-point numbers; got {x.dtype}")
