"""Momentum with a gradient that is taken ahead."""

from __future__ import annotations

from dataclasses import dataclass

from optdl.optimizers.momentum import Momentum
from optdl.optimizers.trees import Array

__all__ = ["Nesterov"]


@dataclass(frozen=True)
class Nesterov(Momentum):
    r"""Momentum with the gradient of the interim point, where the velocity alone would lead.

    .. math:: \tilde\theta = \theta + \alpha v, \qquad v \leftarrow \alpha v -
        \eta\, \nabla J(\tilde\theta), \qquad \theta \leftarrow \theta + v

    The update is that of :class:`Momentum`; only the point of the gradient is another one.
    ``torch.optim.SGD(nesterov=True)`` keeps θ̃ in place of θ: what it calls the parameters is
    ``interim(theta, state)``. From the same start, where v = 0, both take the same path.
    Source: L1-27.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = Nesterov(lr=0.5, alpha=0.5)
    >>> run(opt, lambda theta: theta, np.array([8.0]), steps=3).ravel()
    array([ 8.  ,  4.  ,  1.  , -0.25])
    """

    def look_ahead(self, theta: Array, v: Array) -> Array:
        """Return θ̃, where the gradient is taken."""
        return theta + self.alpha * v
