r"""The split form of one layer: its parameters are θ = Pz, and an optimizer sees z.

:math:`P = UD/q`, and an optimizer that is given z and :math:`P^Tg` moves θ by
:math:`P\,\mathrm{Opt}(P^Tg)`.
"""

from __future__ import annotations

from typing import Any

import torch


class Coordinates:
    r"""The split form :math:`\theta = Pz` of a layer.

    .. math:: w = z_w / (q\tilde\sigma), \qquad b = z_b / q - \mu^T w

    Parameters
    ----------
    weight : tensor
        The parameter, with its gradient.
    deviation : tensor
        :math:`q\tilde\sigma`, shaped to meet the weight.
    bias : tensor or None
        The parameter that takes up the mean; without it the weight is only scaled.
    center : tensor
        μ, shaped to meet the weight.
    q : float
        The scale of the layer.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        deviation: torch.Tensor,
        bias: Any,
        center: torch.Tensor,
        q: float,
    ) -> None:
        self.weight, self.deviation, self.inverse = weight, deviation, deviation.reciprocal()
        self.bias, self.center, self.q = bias, center, q
        self.before = weight.detach().clone()
        if bias is not None:
            self.bias_before = bias.detach().clone()
            taken_up = self.bias_before + self._taken_up(self.before)
            self.z_bias = (q * taken_up).to(bias.dtype)

    def enter(self) -> None:
        """Put z in the place of θ, and Pᵀg in the place of g."""
        gradient: Any = self.weight.grad
        wide = gradient.to(self.deviation.dtype)  # itself, unless of half precision
        if self.bias is not None:
            outputs = self.bias.grad.to(wide.dtype)
            if wide.ndim == 2:
                wide.addr_(outputs, self.center[0], alpha=-1)
            else:
                outputs = outputs.view(-1, *[1] * (wide.ndim - 1))
                wide.addcmul_(outputs, self.center, value=-1)
            self.bias.copy_(self.z_bias)
            # only now: the gradient of the weight takes the bias's gradient without its scale
            self.bias.grad.div_(self.q)
        wide.mul_(self.inverse)
        if wide is not gradient:
            gradient.copy_(wide)
        self.weight.mul_(self.deviation)

    def leave(self) -> None:
        r"""Return to :math:`\theta + P(z' - z)`, where the optimizer has moved z to z'.

        Where it did nothing, θ has the same bits again. All is done in place: fresh memory is slow.
        """
        z = self.before.clone().mul_(self.deviation)  # the bits of enter
        moved = self.weight.sub_(z).mul_(self.inverse)
        if self.bias is not None:
            shift = (self.bias - self.z_bias) / self.q - self._taken_up(moved)
            self.bias.copy_(self.bias_before + shift)
        moved.add_(self.before)

    def restore(self) -> None:
        """Return to θ as it was."""
        self.weight.copy_(self.before)
        if self.bias is not None:
            self.bias.copy_(self.bias_before)

    def _taken_up(self, weight: torch.Tensor) -> torch.Tensor:
        r"""Return what the rows of a weight make of the mean, :math:`w^T\mu`."""
        if weight.ndim == 2 and weight.dtype == self.center.dtype:
            return weight @ self.center[0]
        return (weight * self.center).flatten(1).sum(1)
