"""Averages of the gradient and of its square, both corrected for their start at zero."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import Array

__all__ = ["Adam"]


Moments = namedtuple("Moments", ["t", "m", "r"])
"""State of Adam."""


@dataclass(frozen=True)
class Adam(FirstOrder):
    r"""A mean gradient over the root of the mean squared gradient, both bias-corrected.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad
        r \leftarrow \beta_2 r + (1 - \beta_2)\, g \odot g

    .. math:: \hat m = \frac{m}{1 - \beta_1^t}, \qquad \hat r = \frac{r}{1 - \beta_2^t}, \qquad
        \theta \leftarrow \theta - \eta\, \frac{\hat m}{\sqrt{\hat r} + \delta}

    t counts from 1. δ stands outside the root and beside r̂, as in ``torch.optim.Adam(eps=delta)``.
    L2 has no δ, and lags: it steps with m̂ and r̂ of t − 1, which is 0/0 in the first step.
    Source: L2-06.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = Adam(lr=1.0, beta1=0.5, beta2=0.75, delta=0.0)
    >>> grads = iter([2.0, 2.0, -1.0])
    >>> run(opt, lambda theta: np.array([next(grads)]), np.array([0.0]), steps=3).ravel().round(3)
    array([ 0.   , -1.   , -2.   , -2.174])
    """

    lr: float | Schedule = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    delta: float = field(default=1e-8, kw_only=True)

    memory = Moments

    @classmethod
    def from_l2(cls, eta: float, beta1: float, beta2: float, delta: float = 1e-8) -> Adam:
        r"""Return the optimizer that L2 writes with β as the weight of the new gradient.

        .. math:: m = \beta_1\, g + (1 - \beta_1)\, m, \qquad
            \hat m = \frac{m}{1 - (1 - \beta_1)^t}

        The usual β₁ = 0.9, β₂ = 0.999 are 0.1 and 0.001 in L2. Source: L2-06.

        >>> Adam.from_l2(eta=0.01, beta1=0.25, beta2=0.125)
        Adam(lr=0.01, beta1=0.75, beta2=0.875, delta=1e-08)
        """
        return cls(lr=eta, beta1=1 - beta1, beta2=1 - beta2, delta=delta)

    def update(self, t: int, theta: Array, g: Array, m: Array, r: Array) -> tuple[Array, ...]:
        """Return θ, m and r after step t."""
        m = self.beta1 * m + (1 - self.beta1) * g
        r = self.beta2 * r + (1 - self.beta2) * g * g
        m_hat = m / (1 - self.beta1**t)
        r_hat = r / (1 - self.beta2**t)
        return theta - self.rate(t) * m_hat / (r_hat**0.5 + self.delta), m, r
