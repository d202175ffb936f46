"""What AdaGrad and its relatives share: they divide the gradient by a diagonal matrix G."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optdl.optimizers.base import FirstOrder
from optdl.optimizers.trees import Array, Tree, map_arrays
from optdl.optimizers.validation import require_steps_taken

__all__ = ["DiagonalScaling"]


@dataclass(frozen=True)
class DiagonalScaling(FirstOrder):
    """A method that divides the gradient by ``divisor(r)``, one number for each parameter."""

    def divisor(self, r: Array) -> Array:
        """Return the diagonal of G for one array r."""
        raise NotImplementedError

    def diagonal(self, state: Any) -> Tree:
        r"""Return the diagonal of G, by which the last step divided the gradient.

        .. math:: \theta^{(t)} = \theta^{(t-1)} - \eta\,(G^{(t)})^{-1} g^{(t)}

        G is diag(δ + √r) in AdaGrad, and diag(√(δ + r)) in RMSProp. It stands where Newton's method
        has the Hessian. L2 prints the lagged :math:`G^{(t-1)}`, which divides by zero in the first
        step, when nothing has been summed yet; the form in use has :math:`G^{(t)}`, with the newest
        gradient in it.

        Raises
        ------
        ValueError
            If no step was taken: G would be zero up to δ.

        Notes
        -----
        Source: L2-04

        Examples
        --------
        >>> import numpy as np
        >>> from optdl.optimizers import AdaGrad
        >>> opt, theta = AdaGrad(lr=0.1, delta=0.5), np.array([1.0])
        >>> _, state = opt.step(theta, opt.init(theta), grad=lambda theta: np.array([3.0]))
        >>> opt.diagonal(state), opt.effective_lr(state)
        (array([3.5]), array([0.02857143]))
        """
        require_steps_taken(state.t)
        return map_arrays(self.divisor, state.r)

    def effective_lr(self, state: Any) -> Tree:
        """Return the learning rate η / Gᵢ of each parameter in the last step.

        Notes
        -----
        Source: L2-04
        """
        lr = self.rate(max(state.t, 1))
        return map_arrays(lambda G: lr / G, self.diagonal(state))
