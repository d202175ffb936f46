"""Adam with a decay of the weights that the averages do not see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from optdl.optimizers.adam import Moments
from optdl.optimizers.base import FirstOrder, State
from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import Array
from optdl.optimizers.validation import require_decay, require_share, require_small

__all__ = ["AdamW"]


@dataclass(frozen=True)
class AdamW(FirstOrder):
    r"""Adam with decoupled weight decay: θ shrinks by itself, beside the step of Adam.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad
        r \leftarrow \beta_2 r + (1 - \beta_2)\, g \odot g

    .. math:: \theta \leftarrow (1 - \eta\omega)\,\theta
        - \eta\, \frac{\hat m}{\sqrt{\hat r} + \delta}

    An L2 penalty would add ωθ to g, and √r̂ would divide it: the larger the gradients of a
    parameter, the less it would shrink. Here all parameters shrink by the same factor. The decay is
    multiplied by the learning rate, as in ``torch.optim.AdamW(weight_decay=decay)``; the paper
    writes λ for ω and multiplies it by the schedule's factor alone.

    Parameters
    ----------
    lr : float or callable
        η ≥ 0, or a schedule.
    beta1, beta2 : float
        In [0, 1), the shares of the **old** averages that are kept.
    decay : float
        ω ≥ 0, given by its name.
    delta : float
        δ ≥ 0, against division by zero; given by its name.

    Notes
    -----
    Source: F-05

    Examples
    --------
    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = AdamW(lr=0.5, decay=0.5)
    >>> run(opt, lambda theta: np.zeros(1), np.array([16.0]), steps=2).ravel()
    array([16., 12.,  9.])
    """

    lr: float | Schedule = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    decay: float = field(default=0.01, kw_only=True)
    delta: float = field(default=1e-8, kw_only=True)

    memory: ClassVar[Callable[..., State]] = Moments

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share("beta1", self.beta1, "the newest gradient would not count")
        require_share("beta2", self.beta2, "the newest gradient would not count")
        require_decay("decay", self.decay)
        require_small("delta", self.delta)

    def update(self, t: int, theta: Array, g: Array, m: Array, r: Array) -> tuple[Array, ...]:
        """Return θ, m and r after step t."""
        m = self.beta1 * m + (1 - self.beta1) * g
        r = self.beta2 * r + (1 - self.beta2) * g * g
        m_hat = m / (1 - self.beta1**t)
        r_hat = r / (1 - self.beta2**t)
        theta = (1 - self.rate(t) * self.decay) * theta
        return theta - self.rate(t) * m_hat / (r_hat**0.5 + self.delta), m, r
