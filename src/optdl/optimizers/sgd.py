"""Gradient descent, stochastic when the gradient comes from a minibatch."""

from __future__ import annotations

from dataclasses import dataclass

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array

__all__ = ["SGD"]


@dataclass(frozen=True)
class SGD(FirstOrder):
    r"""Gradient descent; stochastic when the gradient comes from a minibatch (Source: L1-24).

    .. math:: \theta \leftarrow \theta - \eta\, g

    >>> import numpy as np
    >>> opt, theta = SGD(lr=0.5), {"weight": np.array([4.0])}
    >>> opt.step(theta, opt.init(theta), grad=lambda theta: theta)
    ({'weight': array([2.])}, Steps(t=1))
    """

    def update(self, t: int, theta: Array, g: Array) -> tuple[Array, ...]:
        """Return θ after step t."""
        return (theta - self.rate(t) * g,)
