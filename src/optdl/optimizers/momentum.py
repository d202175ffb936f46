"""Gradient descent with a velocity."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array
from optdl.optimizers.validation import require

__all__ = ["Momentum", "velocity"]

AnyShape = Float[np.ndarray, "..."]


Velocity = namedtuple("Velocity", ["t", "v"])
"""State of the momentum methods."""


@dataclass(frozen=True)
class Momentum(FirstOrder):
    r"""Gradient descent with a velocity, also called heavy ball (Source: L1-26).

    .. math:: v \leftarrow \alpha v - \eta\, g, \qquad \theta \leftarrow \theta + v

    ``torch.optim.SGD(momentum=alpha)`` remembers b = −v/η. It takes the same steps as long as the
    learning rate is constant; when η changes, it rescales the whole velocity at once.

    >>> from optdl.optimizers import run
    >>> opt = Momentum(lr=1.0, alpha=0.5)
    >>> run(opt, lambda theta: np.array([-1.0]), np.array([0.0]), steps=3).ravel()
    array([0.  , 1.  , 2.5 , 4.25])
    """

    alpha: float = 0.9

    memory = Velocity

    @classmethod
    def from_l2(cls, eta: float, gamma: float) -> Momentum:
        r"""Return the optimizer that L2 writes with a coefficient of friction γ (Source: L2-03).

        .. math:: u^{(t)} = \gamma u^{(t-1)} - \eta\,\partial L, \quad u^{(0)} = 0, \qquad
            \vartheta^{(t)} = \vartheta^{(t-1)} + u^{(t)}

        L2's γ is α here, and its u is v. The larger γ, the *less* friction there is.

        >>> Momentum.from_l2(eta=0.1, gamma=0.9)
        Momentum(lr=0.1, alpha=0.9)
        """
        return cls(lr=eta, alpha=gamma)

    def update(self, t: int, theta: Array, g: Array, v: Array) -> tuple[Array, ...]:
        """Return θ and v after step t."""
        v = self.alpha * v - self.rate(t) * g
        return theta + v, v


def velocity(t: int, lr: float, alpha: float, g: float | AnyShape) -> float | AnyShape:
    r"""Return the velocity after t steps from rest under a constant gradient (Source: L1-26).

    .. math:: v_t = -\eta\, g\, \frac{1 - \alpha^t}{1 - \alpha}

    Raises ValueError where α lies outside [0, 1).

    >>> velocity(t=3, lr=1.0, alpha=0.5, g=-1.0)
    1.75
    """
    require("alpha", alpha)
    if t < 0:
        raise ValueError(f"t must be 0 or more, the number of steps; got {t}")
    return -lr * g * (1 - alpha**t) / (1 - alpha)
