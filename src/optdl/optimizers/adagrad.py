"""A learning rate for each parameter, from the sum of its squared gradients."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array, Tree, tree_map

__all__ = ["AdaGrad"]


Squares = namedtuple("Squares", ["t", "r"])
"""State of AdaGrad and RMSProp."""


@dataclass(frozen=True)
class DiagonalScaling(FirstOrder):
    """A method that divides the gradient by ``divisor(r)``, one number for each parameter."""

    def divisor(self, r: Array) -> Array:
        """Return the diagonal of G for one array r."""
        raise NotImplementedError

    def diagonal(self, state: Any) -> Tree:
        r"""Return the diagonal of G, by which the last step divided the gradient (Source: L2-04).

        .. math:: \theta^{(t)} = \theta^{(t-1)} - \eta\,(G^{(t)})^{-1} g^{(t)}

        G is diag(δ + √r) in AdaGrad, and diag(√(δ + r)) in RMSProp. It stands where Newton's method
        has the Hessian. L2 prints the lagged :math:`G^{(t-1)}`, which divides by zero in the first
        step, when nothing has been summed yet; the form in use has :math:`G^{(t)}`, with the newest
        gradient in it. Before the first step it raises ValueError.

        >>> import numpy as np
        >>> opt, theta = AdaGrad(lr=0.1, delta=0.5), np.array([1.0])
        >>> _, state = opt.step(theta, opt.init(theta), grad=lambda theta: np.array([3.0]))
        >>> opt.diagonal(state)
        array([3.5])
        """
        if state.t < 1:
            raise ValueError(
                "expected a state after 1 step or more, got t = 0: it holds no gradient"
            )
        return tree_map(self.divisor, state.r)


@dataclass(frozen=True)
class AdaGrad(DiagonalScaling):
    r"""Gradient descent with a learning rate for each parameter, from squared gradients.

    .. math:: r \leftarrow r + g \odot g, \qquad
        \theta \leftarrow \theta - \frac{\eta}{\delta + \sqrt r} \odot g

    δ stands outside the root, as in ``torch.optim.Adagrad(eps=delta)``. Source: L1-29.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = AdaGrad(lr=1.0, delta=0.0)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=3).ravel().round(3)
    array([ 0.   , -1.   , -1.707, -2.284])
    """

    delta: float = field(default=1e-7, kw_only=True)

    memory = Squares

    def update(self, t: int, theta: Array, g: Array, r: Array) -> tuple[Array, ...]:
        """Return θ and r after step t."""
        r = r + g * g
        return theta - self.rate(t) / (self.delta + r**0.5) * g, r

    def divisor(self, r: Array) -> Array:
        """Return δ + √r."""
        return self.delta + r**0.5
