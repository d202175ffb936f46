"""RMSProp and Nesterov momentum together."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field

from optdl.optimizers.adagrad import DiagonalScaling
from optdl.optimizers.trees import Array

__all__ = ["RMSPropNesterov"]


SquaresVelocity = namedtuple("SquaresVelocity", ["t", "r", "v"])
"""State of RMSProp with Nesterov momentum."""


@dataclass(frozen=True)
class RMSPropNesterov(DiagonalScaling):
    r"""RMSProp with Nesterov momentum: everything happens at the interim point (Source: L1-31).

    .. math:: \tilde\theta = \theta + \alpha v, \quad g = \nabla J(\tilde\theta), \quad
        r \leftarrow \rho r + (1 - \rho)\, g \odot g, \quad
        v \leftarrow \alpha v - \frac{\eta}{\sqrt{\delta + r}} \odot g, \quad
        \theta \leftarrow \theta + v

    The lecture's box lists δ and then leaves it out of the root; ``delta=0.0`` is the box to the
    letter, and divides by zero where a gradient is zero in the first step. No optimizer of torch is
    the same: ``torch.optim.RMSprop(momentum=...)`` takes the gradient at θ itself.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = RMSPropNesterov(lr=1.0, rho=0.75, alpha=0.5, delta=0.0)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -2.   , -4.512])
    """

    rho: float = 0.9
    alpha: float = 0.9
    delta: float = field(default=1e-6, kw_only=True)

    memory = SquaresVelocity

    def look_ahead(self, theta: Array, r: Array, v: Array) -> Array:
        """Return θ̃, where the gradient is taken."""
        return theta + self.alpha * v

    def update(self, t: int, theta: Array, g: Array, r: Array, v: Array) -> tuple[Array, ...]:
        """Return θ, r and v after step t."""
        r = self.rho * r + (1 - self.rho) * g * g
        v = self.alpha * v - self.rate(t) / (self.delta + r) ** 0.5 * g
        return theta + v, r, v

    def divisor(self, r: Array) -> Array:
        """Return √(δ + r)."""
        return (self.delta + r) ** 0.5
