"""Steps by the sign of a momentum."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array, sign

__all__ = ["Lion"]


MeanGradient = namedtuple("MeanGradient", ["t", "m"])
"""State of Lion."""


@dataclass(frozen=True)
class Lion(FirstOrder):
    r"""The sign of a momentum: every parameter moves by η in each step (Source: F-18).

    .. math:: c = \beta_1 m + (1 - \beta_1)\, g, \qquad
        \theta \leftarrow (1 - \eta\omega)\,\theta - \eta\,\operatorname{sign}(c), \qquad
        m \leftarrow \beta_2 m + (1 - \beta_2)\, g

    The direction counts the newest gradient more than the memory does: β₁ < β₂. Where c is zero,
    its sign is zero. With β₁ = β₂ = 0 only the sign of the gradient is left; Adam becomes the same
    method when its averages lose their memory. Chen et al. (2023) found the formula by a search
    among programs. ``torch.optim`` has no Lion. Its rate is three to ten times smaller than Adam's,
    whose steps are shorter.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt, grads = Lion(lr=1.0, beta1=0.5, beta2=0.75), iter([4.0, -0.5, -2.0])
    >>> run(opt, lambda theta: np.array([next(grads)]), np.array([0.0]), steps=3).ravel()
    array([ 0., -1., -2., -1.])
    """

    beta1: float = 0.9
    beta2: float = 0.99
    decay: float = 0.0

    memory = MeanGradient

    def update(self, t: int, theta: Array, g: Array, m: Array) -> tuple[Array, ...]:
        """Return θ and m after step t."""
        direction = sign(self.beta1 * m + (1 - self.beta1) * g)
        theta = (1 - self.rate(t) * self.decay) * theta - self.rate(t) * direction
        return theta, self.beta2 * m + (1 - self.beta2) * g
