r"""The split form of one layer: its parameters are θ = Pz, and an optimizer sees z.

:math:`P = UD/q`, and an optimizer that is given z and :math:`P^Tg` moves θ by
:math:`P\,\mathrm{Opt}(P^Tg)`.
"""

from __future__ import annotations

import math
from typing import Any

from optdl.bnp.layers import Layer

BLOCK = 2**16
"""So many weights, or a sixteenth of a layer, go through a temporary tensor at once."""


class Coordinates:
    r"""The split form :math:`\theta = Pz` of a layer that has a gradient, as its last step left P.

    .. math:: w = z_w / (q\tilde\sigma), \qquad b = z_b / q - \mu^T w
    """

    def __init__(self, layer: Layer) -> None:
        self.layer, self.weight, self.bias = layer, layer.module.weight, layer.bias
        self.center, self.q = layer.aligned(layer.mean), math.sqrt(layer.q2)
        self.deviation = layer.smoothed(self.bias is not None).sqrt_()
        self.inverse = self.deviation.reciprocal()
        self.before: Any = None
        """Weight and bias in θ, and the bias in z, while z is in their place."""

    def pull(self) -> None:
        """Put Pᵀg in the place of g, if no step has used it."""
        if self.layer.holds_used_gradient(self.weight):
            return
        gradient: Any = self.weight.grad
        for own in (self.weight, self.bias):
            if own is not None and own.grad is not None and own.grad.requires_grad:
                own.grad.detach_()  # its graph is that of g: torch then refuses to differentiate it
        wide = gradient.to(self.deviation.dtype)  # itself, unless of half precision
        if self.bias is not None:
            outputs: Any = self.bias.grad
            column = outputs.to(wide.dtype).view(-1, *[1] * (wide.ndim - 1))
            wide.addcmul_(column, self.center, value=-1)
            # only now: the gradient of the weight takes the bias's gradient without its scale
            outputs.div_(self.q)
        wide.mul_(self.inverse)
        if wide is not gradient:
            gradient.copy_(wide)

    def enter(self) -> None:
        """Put z in the place of θ."""
        before, bias_before, z_bias = self.weight.detach().clone(), None, None
        if self.bias is not None:
            bias_before = self.bias.detach().clone()
            z_bias = (self.q * (bias_before + self.layer.taken_up(before))).to(self.bias.dtype)
        self.before = before, bias_before, z_bias
        if self.bias is not None:
            self.bias.copy_(self.before[2])
        self.weight.mul_(self.deviation)

    def leave(self) -> None:
        r"""Return to :math:`\theta + P(z' - z)`, where the optimizer has moved z to z'.

        Where it did nothing, θ has the same bits again. All is done in place: fresh memory is slow.
        """
        before, bias_before, z_bias = self.before
        rows = max(BLOCK // max(before.shape[1:].numel(), 1), len(before) // 16, 1)
        parts = (
            each.split(rows) for each in (self.weight, before, self.deviation.expand_as(before))
        )
        for new, old, deviation in zip(*parts, strict=True):
            new.sub_((old * deviation).to(old.dtype))  # the bits of enter
        moved = self.weight.mul_(self.inverse)
        if self.bias is not None:
            shift = (self.bias - z_bias) / self.q - self.layer.taken_up(moved)
            self.bias.copy_(bias_before + shift)
        moved.add_(before)

    def restore(self) -> None:
        """Return to θ as it was, if z is or was about to be in its place."""
        if self.before is None:
            return
        self.weight.copy_(self.before[0])
        if self.bias is not None:
            self.bias.copy_(self.before[1])
