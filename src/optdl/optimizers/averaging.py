"""The noise floor of SGD with a constant rate, and the averages that get below it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from optdl.optimizers.validation import require

__all__ = ["averaged_variance", "noise_floor"]

Path = Float[np.ndarray, "t ..."]


def noise_floor(lr: float, curvature: float, sigma: float) -> float:
    r"""Return the mean squared error at which SGD with a constant rate stalls.

    On :math:`\tfrac12 \lambda\theta^2`, with gradients that carry noise of variance σ²,

    .. math:: \mathbb E[\theta^2] \to \frac{\eta\,\sigma^2}{\lambda\,(2 - \eta\lambda)}

    With minibatches of n examples σ is that of one example's gradient divided by √n, so for small
    ηλ the floor depends on η/n alone. λ > 0 is the ``curvature``, and σ a standard deviation.
    Raises ValueError where η, the ``lr``, lies outside (0, 2/λ): there is no floor then.
    Source: L1-25, F-14.

    >>> noise_floor(lr=1.0, curvature=1.0, sigma=3.0)
    9.0
    """
    if not 0 < lr * curvature < 2:
        raise ValueError(
            f"lr · curvature must lie between 0 and 2, got {lr * curvature:g}: "
            "outside it SGD diverges and has no floor"
        )
    return lr * sigma**2 / (curvature * (2 - lr * curvature))


def averaged_variance(lr: float, curvature: float, sigma: float, steps: int) -> float:
    r"""Return the variance of the mean of T iterates of SGD at its noise floor (Source: F-15).

    .. math:: \operatorname{Var}\Bigl[\frac1T \sum_{k=1}^{T} \theta_k\Bigr]
        = \frac{s^2}{T^2} \left( T\,\frac{1 + a}{1 - a} - \frac{2a\,(1 - a^T)}{(1 - a)^2} \right),
        \qquad a = 1 - \eta\lambda, \quad s^2 = \frac{\eta\,\sigma^2}{\lambda\,(2 - \eta\lambda)}

    On :math:`\tfrac12 \lambda\theta^2`, with gradients that carry independent noise of variance σ²
    and a constant rate; s² is :func:`noise_floor`. Neighboring iterates have the correlation a. For
    large T the variance is σ²/(λ²T), whatever the learning rate. With T = 1 it is the noise floor.
    Raises ValueError where η, the ``lr``, lies outside (0, 2/λ), or T, the ``steps``, is less than
    1.

    >>> [round(averaged_variance(lr=0.5, curvature=1.0, sigma=3.0, steps=T), 3) for T in (1, 9, 90)]
    [3.0, 0.852, 0.099]
    """
    require("steps", steps)
    floor, a = noise_floor(lr, curvature, sigma), 1 - lr * curvature
    apart = np.arange(1, steps)  # the sum, whose closed form cancels where ηλ is small
    return floor * (steps + 2 * float((steps - apart) @ a**apart)) / steps**2
