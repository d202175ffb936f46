"""Gradient descent with a velocity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from optdl.optimizers.base import FirstOrder, State
from optdl.optimizers.trees import Array, Tree
from optdl.optimizers.validation import require_share

__all__ = ["Momentum", "Velocity", "velocity"]

AnyShape = Float[np.ndarray, "..."]


class Velocity(NamedTuple):
    """State of the momentum methods."""

    t: int
    v: Tree


@dataclass(frozen=True)
class Momentum(FirstOrder):
    r"""Gradient descent with a velocity, also called heavy ball (Source: L1-26).

    .. math:: v \leftarrow \alpha v - \eta\, g, \qquad \theta \leftarrow \theta + v

    ``torch.optim.SGD(momentum=alpha)`` remembers b = −v/η. It takes the same steps as long as the
    learning rate is constant; when η changes, it rescales the whole velocity at once.

    Parameters
    ----------
    lr : float or callable
        η ≥ 0, or a schedule.
    alpha : float
        α in [0, 1), the share of the velocity that is kept.

    Examples
    --------
    >>> from optdl.optimizers import run
    >>> opt = Momentum(lr=1.0, alpha=0.5)
    >>> run(opt, lambda theta: np.array([-1.0]), np.array([0.0]), steps=3).ravel()
    array([0.  , 1.  , 2.5 , 4.25])
    """

    alpha: float = 0.9

    memory: ClassVar[Callable[..., State]] = Velocity

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("alpha", self.alpha, "a velocity that is kept whole never dies down")

    @classmethod
    def from_l2(cls, eta: float, gamma: float) -> Momentum:
        r"""Return the optimizer that L2 writes with a coefficient of friction γ (Source: L2-03).

        .. math:: u^{(t)} = \gamma u^{(t-1)} - \eta\,\partial L, \quad u^{(0)} = 0, \qquad
            \vartheta^{(t)} = \vartheta^{(t-1)} + u^{(t)}

        L2's γ is α here, and its u is v. The larger γ, the *less* friction there is.

        Examples
        --------
        >>> Momentum.from_l2(eta=0.1, gamma=0.9)
        Momentum(lr=0.1, alpha=0.9)
        """
        return cls(lr=eta, alpha=gamma)

    def update(self, t: int, theta: Array, g: Array, v: Array) -> tuple[Array, ...]:
        """Return θ and v after step t."""
        v = self.alpha * v - self.rate(t) * g
        return theta + v, v


def velocity(t: int, lr: float, alpha: float, g: float | AnyShape) -> float | AnyShape:
    r"""Return the velocity after t steps of momentum from rest, under a constant gradient.

    Source: L1-26

    .. math:: v_t = -\eta\, g\, \frac{1 - \alpha^t}{1 - \alpha}

    Examples
    --------
    >>> velocity(t=3, lr=1.0, alpha=0.5, g=-1.0)
    1.75
    """
    require_share("alpha", alpha, "a velocity that is kept whole grows without end")
    return -lr * g * (1 - alpha**t) / (1 - alpha)
