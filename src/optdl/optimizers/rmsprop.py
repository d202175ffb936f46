"""A learning rate for each parameter, from an average of its squared gradients."""

from __future__ import annotations

from dataclasses import dataclass, field

from optdl.optimizers.adagrad import DiagonalScaling, Squares
from optdl.optimizers.trees import Array

__all__ = ["RMSProp"]


@dataclass(frozen=True)
class RMSProp(DiagonalScaling):
    r"""AdaGrad with a moving average in place of the sum: old gradients lose weight.

    .. math:: r \leftarrow \rho r + (1 - \rho)\, g \odot g, \qquad
        \theta \leftarrow \theta - \frac{\eta}{\sqrt{\delta + r}} \odot g

    δ stands **inside** the root. ``torch.optim.RMSprop`` adds its eps outside, √r + eps. Both take
    the same steps when δ = eps = 0. Where r is zero δ = eps² gives the same scale, and elsewhere no
    δ does. Source: L1-30, L2-04.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = RMSProp(lr=1.0, rho=0.75, delta=0.0)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -2.   , -3.512])
    """

    rho: float = 0.9
    delta: float = field(default=1e-6, kw_only=True)

    memory = Squares

    @classmethod
    def from_l2(cls, eta: float, gamma: float, delta: float = 1e-6) -> RMSProp:
        r"""Return the optimizer that L2 writes with γ as the weight of the new gradient.

        Source: L2-04

        .. math:: \mathrm{EMA}^{(t)} = \gamma\, g^2 + (1 - \gamma)\,\mathrm{EMA}^{(t-1)},
            \qquad \rho = 1 - \gamma

        >>> RMSProp.from_l2(eta=0.01, gamma=0.25).rho
        0.75
        """
        return cls(lr=eta, rho=1 - gamma, delta=delta)

    def update(self, t: int, theta: Array, g: Array, r: Array) -> tuple[Array, ...]:
        """Return θ and r after step t."""
        r = self.rho * r + (1 - self.rho) * g * g
        return theta - self.rate(t) / (self.delta + r) ** 0.5 * g, r

    def divisor(self, r: Array) -> Array:
        """Return √(δ + r)."""
        return (self.delta + r) ** 0.5
