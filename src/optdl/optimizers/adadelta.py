"""A step measured by the last steps, without a unit of its own."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import Array

__all__ = ["AdaDelta"]


SquaresSteps = namedtuple("SquaresSteps", ["t", "r", "d"])
"""State of AdaDelta."""


@dataclass(frozen=True)
class AdaDelta(FirstOrder):
    r"""RMSProp with the size of the last steps in place of a rate (Source: L2-05).

    .. math:: r \leftarrow \rho r + (1 - \rho)\, g \odot g, \qquad
        \Delta = -\frac{\sqrt{\delta + d}}{\sqrt{\delta + r}} \odot g, \qquad
        d \leftarrow \rho d + (1 - \rho)\, \Delta \odot \Delta, \qquad
        \theta \leftarrow \theta + \eta\, \Delta

    The order matters: Δ is made of the **new** r and the **old** d. In L2's letters
    :math:`\theta \leftarrow \theta - \eta\, D^{(t-1)} (G^{(t)})^{-1} g`. δ stands inside both
    roots, as in ``torch.optim.Adadelta(eps=delta)``. d averages Δ as it is, before the rate; η = 1
    is the method as it was published. With δ = 0, which raises ValueError, the method would never
    leave its start, where d is 0.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = AdaDelta(lr=1.0, rho=0.75, delta=1.0)
    >>> run(opt, lambda theta: np.array([2.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -1.414, -2.891])
    """

    lr: float | Schedule = 1.0
    rho: float = 0.9
    delta: float = field(default=1e-6, kw_only=True)

    memory = SquaresSteps

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta == 0:
            raise ValueError(
                "delta must be positive, got 0: the first step would be 0, and all others"
            )

    @classmethod
    def from_l2(cls, eta: float, gamma: float, delta: float = 1e-6) -> AdaDelta:
        """Return the optimizer that L2 writes with γ = 1 − ρ, the weight of the new value.

        Source: L2-05

        >>> AdaDelta.from_l2(eta=1.0, gamma=0.25).rho
        0.75
        """
        return cls(lr=eta, rho=1 - gamma, delta=delta)

    def update(self, t: int, theta: Array, g: Array, r: Array, d: Array) -> tuple[Array, ...]:
        """Return θ, r and d after step t."""
        r = self.rho * r + (1 - self.rho) * g * g
        step = -((self.delta + d) ** 0.5) / (self.delta + r) ** 0.5 * g
        d = self.rho * d + (1 - self.rho) * step * step
        return theta + self.rate(t) * step, r, d
