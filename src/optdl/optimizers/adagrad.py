"""A learning rate for each parameter, from the sum of its squared gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from optdl.optimizers.base import State
from optdl.optimizers.diagonal_scaling import DiagonalScaling
from optdl.optimizers.trees import Array, Tree
from optdl.optimizers.validation import require_small

__all__ = ["AdaGrad", "Squares"]


class Squares(NamedTuple):
    """State of AdaGrad and RMSProp."""

    t: int
    r: Tree


@dataclass(frozen=True)
class AdaGrad(DiagonalScaling):
    r"""Gradient descent with a learning rate for each parameter, from its squared gradients.

    .. math:: r \leftarrow r + g \odot g, \qquad
        \theta \leftarrow \theta - \frac{\eta}{\delta + \sqrt r} \odot g

    δ stands outside the root, as in ``torch.optim.Adagrad(eps=delta)``.

    Parameters
    ----------
    lr : float or callable
        η ≥ 0, or a schedule.
    delta : float
        δ ≥ 0, against division by zero; given by its name.

    Notes
    -----
    Source: L1-29

    Examples
    --------
    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = AdaGrad(lr=1.0, delta=0.0)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=3).ravel().round(3)
    array([ 0.   , -1.   , -1.707, -2.284])
    """

    delta: float = field(default=1e-7, kw_only=True)

    memory: ClassVar[Callable[..., State]] = Squares

    def __post_init__(self) -> None:
        super().__post_init__()
        require_small("delta", self.delta)

    def update(self, t: int, theta: Array, g: Array, r: Array) -> tuple[Array, ...]:
        """Return θ and r after step t."""
        r = r + g * g
        return theta - self.rate(t) / (self.delta + r**0.5) * g, r

    def divisor(self, r: Array) -> Array:
        """Return δ + √r."""
        return self.delta + r**0.5
