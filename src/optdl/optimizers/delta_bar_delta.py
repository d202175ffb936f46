"""A learning rate for each parameter, from the signs of its derivatives."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array, Tree, tree_map

__all__ = ["DeltaBarDelta"]


Rates = namedtuple("Rates", ["t", "rates", "trend"])
"""State of delta-bar-delta."""


@dataclass(frozen=True)
class DeltaBarDelta(FirstOrder):
    r"""A rate for each parameter that grows while its derivative keeps the same sign.

    .. math:: \eta_i \leftarrow \begin{cases}
        \eta_i + a & \text{if } \bar g_i\, g_i > 0\\
        (1 - \varphi)\,\eta_i & \text{if } \bar g_i\, g_i < 0\\
        \eta_i & \text{otherwise}\end{cases} \qquad
        \bar g \leftarrow \rho\,\bar g + (1 - \rho)\, g, \qquad
        \theta \leftarrow \theta - \eta \odot g

    The sign is compared with the trend ḡ of the earlier steps. The rule is for gradients of the
    full batch: the signs of noisy ones say nothing. Source: L1-28.

    **Erratum.** L1 prints that the rate should *decrease* while the sign persists. A persistent
    sign says that the minimum is still ahead, so the rate should increase; a flip says that the
    step jumped over it, so the rate should decrease. ``as_printed=True`` follows the misprint.
    ``lr`` is the first rate of every parameter; a schedule raises ValueError.

    Parameters
    ----------
    increase : float
        a ≥ 0, added after an agreement.
    decrease : float
        φ in [0, 1), the share taken away after a flip.
    rho : float
        ρ in [0, 1), the share of the old trend that is kept; 0 compares with the last step alone.
    as_printed : bool
        Exchange the two cases.

    Examples
    --------
    >>> import numpy as np
    >>> from optdl.optimizers import run
    >>> opt = DeltaBarDelta(lr=0.5, increase=0.25, decrease=0.5, rho=0.0)
    >>> run(opt, lambda theta: theta, np.array([8.0]), steps=3).ravel()
    array([8., 4., 1., 0.])
    """

    increase: float = 0.01
    decrease: float = 0.5
    rho: float = 0.7
    as_printed: bool = False

    memory = Rates

    def __post_init__(self) -> None:
        super().__post_init__()
        if callable(self.lr):
            raise ValueError(
                "lr must be a number, got a schedule: the method sets the later rates itself"
            )

    def init(self, theta: Tree) -> Rates:
        """Return the state before the first step: every rate is ``lr``."""
        t, rates, trend = super().init(theta)
        return Rates(t, tree_map(lambda zero: zero + self.rate(1), rates), trend)

    def update(
        self, t: int, theta: Array, g: Array, rates: Array, trend: Array
    ) -> tuple[Array, ...]:
        """Return θ, the rates and the trend after step t."""
        agreement = -trend * g if self.as_printed else trend * g
        rates = rates + self.increase * _indicator(agreement > 0, g)
        rates = rates * (1 - self.decrease * _indicator(agreement < 0, g))
        trend = self.rho * trend + (1 - self.rho) * g
        return theta - rates * g, rates, trend


def _indicator(condition: Array, like: Array) -> Array:
    """Return 1 where the condition is met and 0 elsewhere, in the precision of another array."""
    return condition * like**0  # in torch, a number times a bare True has single precision
