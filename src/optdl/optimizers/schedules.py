"""Learning rates that depend on the iteration k, which counts from 0.

Letters: η₀ the first rate, η_τ the last one, τ the iterations of the descent, s the share of them
that is over. L1 writes ε for the rate and α for the share.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from optdl.optimizers.validation import Constants, require

__all__ = [
    "CosineDecay",
    "ExponentialDecay",
    "LinearDecay",
    "PowerDecay",
    "Schedule",
    "StableDecay",
    "Warmup",
    "scheduled_variance",
]

Schedule = Callable[[int], float]
"""k ↦ η_k, the learning rate of iteration k; the first iteration has k = 0."""


@dataclass(frozen=True)
class LinearDecay(Constants):
    r"""A rate that falls linearly for τ iterations and is constant afterwards (Source: L1-25).

    .. math:: \eta_k = (1 - s)\,\eta_0 + s\,\eta_\tau, \qquad s = \min(k/\tau,\ 1)

    Here η₀ is ``first``, and η_τ is ``last``, 1 % of the first when not given.

    >>> schedule = LinearDecay(first=1.0, tau=4, last=0.2)
    >>> [round(schedule(k), 3) for k in (0, 1, 2, 4, 100)]
    [1.0, 0.8, 0.6, 0.2, 0.2]
    """

    first: float
    tau: int
    last: float | None = None

    @property
    def final(self) -> float:
        """The rate from iteration τ on."""
        return 0.01 * self.first if self.last is None else self.last

    def __call__(self, k: int) -> float:
        """Return η_k."""
        s = min(k / self.tau, 1.0)
        return (1 - s) * self.first + s * self.final


@dataclass(frozen=True)
class PowerDecay(Constants):
    r"""A rate that falls like a power of the iteration (Source: L1-25).

    .. math:: \eta_k = \eta_0\,(1 + k/\tau)^{-p}

    It satisfies the conditions of Robbins and Monro exactly when ½ < p ≤ 1. After τ iterations the
    rate has fallen by the factor 2^p; η₀ is ``first``, and p ≥ 0 is ``power``.

    >>> [PowerDecay(1.0, power=1.0)(k) for k in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    first: float
    power: float
    tau: int = 1

    def __call__(self, k: int) -> float:
        """Return η_k."""
        return float(self.first * (1 + k / self.tau) ** -self.power)


@dataclass(frozen=True)
class ExponentialDecay(Constants):
    r"""A rate that shrinks by the same factor in each iteration (Source: L1-25).

    .. math:: \eta_k = \eta_0\, c^k

    Its sum is finite, so that gradient descent can stop short of the minimum. Here c is the
    ``factor``, in [0, 1).

    >>> [ExponentialDecay(1.0, factor=0.5)(k) for k in (0, 1, 3)]
    [1.0, 0.5, 0.125]
    """

    first: float
    factor: float

    def __call__(self, k: int) -> float:
        """Return η_k."""
        return float(self.first * self.factor**k)


@dataclass(frozen=True)
class CosineDecay(Constants):
    r"""A rate that falls along half a cosine and is constant after τ iterations (Source: F-05).

    .. math:: \eta_k = \eta_\tau + \tfrac12\,(\eta_0 - \eta_\tau)\,(1 + \cos \pi s), \qquad
        s = \min(k/\tau,\ 1)

    ``torch.optim.lr_scheduler.CosineAnnealingLR(T_max=tau, eta_min=last)`` gives the same rates up
    to iteration τ, and then rises again.

    >>> schedule = CosineDecay(first=1.0, tau=4)
    >>> [round(schedule(k), 3) for k in (0, 1, 2, 3, 4, 100)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    first: float
    tau: int
    last: float = 0.0

    def __call__(self, k: int) -> float:
        """Return η_k."""
        s = min(k / self.tau, 1.0)
        return self.last + 0.5 * (self.first - self.last) * (1 + math.cos(math.pi * s))


@dataclass(frozen=True)
class StableDecay(Constants):
    r"""A rate that is constant for a while and then falls linearly to zero (Source: F-20).

    .. math:: \eta_k = \eta_0\,\min\Bigl(1,\ \max\Bigl(0,\ 1 - \frac{k - s}{\tau}\Bigr)\Bigr)

    It is constant until iteration s and zero from s + τ on. Until s it does not depend on s, so
    that one run with the constant rate is the trunk of all of them. Behind a :class:`Warmup` it is
    called warm-up, stable, decay (WSD); with s = 0 it is ``LinearDecay(first, tau, last=0)``. Here
    η₀ is ``first``, and s ≥ 0 is ``stable``. In torch it is ``SequentialLR`` with the milestone s,
    of ``ConstantLR(factor=1)`` and ``LinearLR(start_factor=1, end_factor=0, total_iters=tau)``.

    >>> [StableDecay(1.0, stable=2, tau=4)(k) for k in range(8)]
    [1.0, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    first: float
    stable: int
    tau: int

    def __call__(self, k: int) -> float:
        """Return η_k."""
        return self.first * min(1.0, max(0.0, 1 - (k - self.stable) / self.tau))


@dataclass(frozen=True)
class Warmup(Constants):
    r"""A rate that rises in w equal increments to that of a schedule, then follows it.

    .. math:: \eta_k = \begin{cases}
        \frac{k + 1}{w}\,\eta'_0 & \text{if } k < w\\
        \eta'_{k-w} & \text{otherwise}\end{cases}

    In torch it is ``SequentialLR`` with the milestone w, of
    ``LinearLR(start_factor=1/w, total_iters=w-1)`` and the other schedule. Here w ≥ 1 is ``steps``,
    and the schedule is a number or a function k ↦ η'_k. Source: F-05.

    >>> schedule = Warmup(CosineDecay(first=1.0, tau=2), steps=4)
    >>> [round(schedule(k), 3) for k in range(8)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 0.5, 0.0, 0.0]
    """

    schedule: float | Schedule
    steps: int

    def __call__(self, k: int) -> float:
        """Return η_k."""
        rise = min((k + 1) / self.steps, 1.0)
        return rise * self._after(max(k - self.steps, 0))

    def _after(self, k: int) -> float:
        return float(self.schedule(k)) if callable(self.schedule) else self.schedule


def scheduled_variance(
    schedule: Schedule, curvature: float, sigma: float, steps: int, start: float = 0.0
) -> float:
    r"""Return the mean squared error of SGD after k steps of a schedule (Source: F-20).

    .. math:: \mathbb E[\theta_k^2] = \theta_0^2 \prod_{i<k} (1 - \eta_i\lambda)^2
        + \sigma^2 \sum_{j<k} \eta_j^2 \prod_{j<i<k} (1 - \eta_i\lambda)^2

    On :math:`\tfrac12 \lambda\theta^2`, with gradients that carry independent noise of variance σ².
    λ is the ``curvature``, k the ``steps`` and θ₀ the ``start``. With a constant rate it approaches
    :func:`noise_floor`. Raises ValueError where k is less than 1.

    >>> scheduled_variance(LinearDecay(1.0, tau=2, last=0.0), 1.0, sigma=3.0, steps=2, start=5.0)
    4.5
    """
    require("steps", steps)
    error = start**2
    for k in range(steps):
        lr = schedule(k)
        error = (1 - lr * curvature) ** 2 * error + (lr * sigma) ** 2
    return error
