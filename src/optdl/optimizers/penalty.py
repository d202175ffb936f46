"""The L2 penalty, which is weight decay for gradient descent and something else for Adam."""

from __future__ import annotations

from optdl.optimizers.base import Gradient
from optdl.optimizers.trees import Array, Tree, map_arrays
from optdl.optimizers.validation import require_decay

__all__ = ["with_l2_penalty"]


def with_l2_penalty(gradient: Gradient, decay: float) -> Gradient:
    r"""Return the gradient of an objective with an L2 penalty.

    .. math:: \nabla\Bigl(J(\theta) + \tfrac\omega2 \lVert\theta\rVert^2\Bigr)
        = \nabla J(\theta) + \omega\,\theta

    ``Adam`` on this gradient is ``torch.optim.Adam(weight_decay=decay)``. ``SGD`` multiplies θ
    by 1 − ηω in each step on it, as decoupled decay does.

    Parameters
    ----------
    gradient : callable
        θ ↦ ∇J, a tree like θ.
    decay : float
        ω ≥ 0.

    Raises
    ------
    ValueError
        If ω is negative or not finite.

    Notes
    -----
    Source: F-05

    Examples
    --------
    >>> import numpy as np
    >>> with_l2_penalty(lambda theta: 2 * theta, decay=0.5)(np.array([4.0]))
    array([10.])
    """
    require_decay("decay", decay)

    def penalized(theta: Tree) -> Tree:
        return map_arrays(_add, theta, gradient(theta))

    def _add(theta: Array, g: Array) -> Array:
        return g + decay * theta

    return penalized
