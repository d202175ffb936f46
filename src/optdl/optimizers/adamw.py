"""Adam with a decay of the weights that the averages do not see, and the penalty that they do."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from optdl.optimizers.adam import Adam
from optdl.optimizers.base import Gradient
from optdl.optimizers.trees import Array, tree_map
from optdl.optimizers.validation import require

__all__ = ["AdamW", "update_weights", "with_l2_penalty"]


@dataclass(frozen=True)
class AdamW(Adam):
    r"""Adam with decoupled weight decay: θ shrinks beside the step of Adam (Source: F-05).

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad
        r \leftarrow \beta_2 r + (1 - \beta_2)\, g \odot g

    .. math:: \theta \leftarrow (1 - \eta\omega)\,\theta
        - \eta\, \frac{\hat m}{\sqrt{\hat r} + \delta}

    An L2 penalty would add ωθ to g, and √r̂ would divide it: the larger the gradients of a
    parameter, the less it would shrink. Here all parameters shrink by the same factor. The decay is
    multiplied by the learning rate, as in ``torch.optim.AdamW(weight_decay=decay)``; the paper
    writes λ for ω and multiplies it by the schedule's factor alone.

    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = AdamW(lr=0.5, decay=0.5)
    >>> run(opt, lambda theta: np.zeros(1), np.array([16.0]), steps=2).ravel()
    array([16., 12.,  9.])
    """

    decay: float = field(default=0.01, kw_only=True)

    def update(self, t: int, theta: Array, g: Array, m: Array, r: Array) -> tuple[Array, ...]:
        """Return θ, m and r after step t."""
        shrunken = (1 - self.rate(t) * self.decay) * theta
        return super().update(t, shrunken, g, m, r)


def with_l2_penalty(gradient: Gradient, decay: float) -> Gradient:
    r"""Return the gradient of an objective with an L2 penalty (Source: F-05).

    .. math:: \nabla\Bigl(J(\theta) + \tfrac\omega2 \lVert\theta\rVert^2\Bigr)
        = \nabla J(\theta) + \omega\,\theta

    ``Adam`` on this gradient is ``torch.optim.Adam(weight_decay=decay)``. ``SGD`` multiplies θ by
    1 − ηω in each step on it, as decoupled decay does. ``gradient`` maps θ to ∇J, a tree like θ.
    Raises ValueError where ω, the ``decay``, is negative.

    >>> import numpy as np
    >>> with_l2_penalty(lambda theta: 2 * theta, decay=0.5)(np.array([4.0]))
    array([10.])
    """
    require("decay", decay)
    return lambda theta: tree_map(lambda w, g: g + decay * w, theta, gradient(theta))


def update_weights(lr: float, decay: float, steps: int) -> tuple[float, Float[np.ndarray, " t"]]:
    r"""Return how much of the start and of each update decoupled weight decay leaves after T steps.

    .. math:: \theta_T = (1 - \eta\omega)^T\,\theta_0
        - \eta \sum_{t=1}^{T} (1 - \eta\omega)^{T-t}\, u_t

    u_t is what a method subtracts in step t, divided by η, such as m̂/(√r̂ + δ). The first result is
    (1 − ηω)ᵀ, and the other the T factors of the updates, with their η. θ_T is thus an exponential
    average of the −u_t/ω with a memory of 1/(ηω) steps: with the start the factors, times ω, add up
    to 1. η ≥ 0 is ``lr`` and ω ≥ 0 ``decay``. Raises ValueError where they are negative or T, the
    ``steps``, is less than 1. Source: F-21.

    >>> left, factors = update_weights(lr=0.5, decay=1.0, steps=3)
    >>> left, factors
    (0.125, array([0.125, 0.25 , 0.5  ]))
    """
    require("lr", lr)
    require("decay", decay)
    require("steps", steps)
    keep = 1 - lr * decay
    return keep**steps, lr * keep ** np.arange(steps - 1, -1, -1.0)
