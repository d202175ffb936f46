"""What a schedule of learning rates does to SGD in the long run."""

from __future__ import annotations

from typing import NamedTuple

from optdl.optimizers.schedules import (
    CosineDecay,
    ExponentialDecay,
    LinearDecay,
    PowerDecay,
    Warmup,
)

__all__ = ["RobbinsMonro", "noise_floor", "robbins_monro"]


class RobbinsMonro(NamedTuple):
    """The two conditions under which SGD converges, each true or false."""

    sum_diverges: bool
    """Σ η_k = ∞: the steps can reach any point."""
    squares_converge: bool
    """Σ η_k² < ∞: the noise dies out."""


def robbins_monro(
    lr: float | LinearDecay | PowerDecay | ExponentialDecay | CosineDecay | Warmup,
) -> RobbinsMonro:
    r"""Return whether a schedule satisfies the conditions of Robbins and Monro.

    .. math:: \sum_k \eta_k = \infty, \qquad \sum_k \eta_k^2 < \infty

    The answer follows from the formula of the schedule; no finite number of terms could decide it.

    Parameters
    ----------
    lr : float or one of the schedules
        A number is a constant rate. A warm-up has finitely many steps, which change nothing.

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> robbins_monro(PowerDecay(0.1, power=1.0))
    RobbinsMonro(sum_diverges=True, squares_converge=True)
    >>> robbins_monro(LinearDecay(0.1, tau=100))
    RobbinsMonro(sum_diverges=True, squares_converge=False)
    """
    match lr:
        case Warmup():
            return robbins_monro(lr.schedule)  # type: ignore[arg-type]
        case PowerDecay() if lr.first > 0:
            return RobbinsMonro(lr.power <= 1, lr.power > 0.5)
        case PowerDecay() | ExponentialDecay():
            last = 0.0
        case LinearDecay():
            last = lr.final
        case CosineDecay():
            last = lr.last
        case _:
            last = lr
    return RobbinsMonro(sum_diverges=last > 0, squares_converge=last == 0)


def noise_floor(lr: float, curvature: float, sigma: float) -> float:
    r"""Return the mean squared error at which SGD with a constant rate stalls.

    On :math:`\tfrac12 \lambda\theta^2`, with gradients that carry noise of variance σ²,

    .. math:: \mathbb E[\theta^2] \to \frac{\eta\,\sigma^2}{\lambda\,(2 - \eta\lambda)}

    Parameters
    ----------
    lr : float
        η, below 2/λ.
    curvature : float
        λ > 0.
    sigma : float
        Standard deviation of the gradient's noise.

    Raises
    ------
    ValueError
        If the iteration is not stable: η outside (0, 2/λ).

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> noise_floor(lr=1.0, curvature=1.0, sigma=3.0)
    9.0
    """
    if not 0 < lr * curvature < 2:
        raise ValueError(
            f"lr · curvature must lie between 0 and 2, got {lr * curvature:g}: "
            "outside it SGD diverges and has no floor"
        )
    return lr * sigma**2 / (curvature * (2 - lr * curvature))
