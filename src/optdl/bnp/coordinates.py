r"""The split form of one layer: its parameters are θ = Pz, and an optimizer sees z.

:math:`P = UD/q`, and an optimizer that is given z and :math:`P^Tg` moves θ by
:math:`P\,\mathrm{Opt}(P^Tg)`.
"""

from __future__ import annotations

from typing import Any

import torch


class Scaled:
    r"""The split form :math:`\theta = Pz` of a layer in which no bias takes up the mean.

    .. math:: w = z_w / (q\tilde\sigma)

    Parameters
    ----------
    weight : tensor
        The parameter, with its gradient.
    deviation : tensor
        :math:`q\tilde\sigma`, shaped to meet the weight.
    """

    def __init__(self, weight: torch.Tensor, deviation: torch.Tensor) -> None:
        self.weight, self.deviation, self.inverse = weight, deviation, deviation.reciprocal()
        self.before = weight.detach().clone()

    def enter(self) -> None:
        """Put z in the place of θ, and Pᵀg in the place of g."""
        self._pull(self.weight.grad)
        self.weight.mul_(self.deviation)

    def _pull(self, gradient: Any) -> None:
        wide = gradient.to(self.deviation.dtype)  # itself, unless of half precision
        self._center(wide).mul_(self.inverse)
        if wide is not gradient:
            gradient.copy_(wide)

    def _center(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient

    def leave(self) -> None:
        r"""Return to :math:`\theta + P(z' - z)`, where the optimizer has moved z to z'.

        Where it did nothing, θ has the same bits again.
        """
        self._subtract().add_(self.before)

    def _subtract(self) -> torch.Tensor:
        """Leave in the weight how far it has moved, in θ; in place, as fresh memory is slow."""
        z = self.before.clone().mul_(self.deviation)  # the bits of enter
        return self.weight.sub_(z).mul_(self.inverse)

    def restore(self) -> None:
        """Return to θ as it was."""
        self.weight.copy_(self.before)


class Centered(Scaled):
    r"""The split form :math:`\theta = Pz` of a layer whose bias takes up the mean.

    .. math:: w = z_w / (q\tilde\sigma), \qquad b = z_b / q - \mu^T w

    Parameters
    ----------
    weight, bias : tensor
        The parameters, with their gradients.
    deviation, center : tensor
        :math:`q\tilde\sigma` and μ, shaped to meet the weight.
    q : float
        The scale of the layer.
    """

    def __init__(
        self,
        weight: torch.Tensor,
        deviation: torch.Tensor,
        bias: torch.Tensor,
        center: torch.Tensor,
        q: float,
    ) -> None:
        super().__init__(weight, deviation)
        self.bias, self.center, self.q = bias, center, q
        self.bias_before = bias.detach().clone()
        self.z_bias = (q * (self.bias_before + self._taken_up(self.before))).to(bias.dtype)

    def enter(self) -> None:
        """Put z in the place of θ, and Pᵀg in the place of g."""
        super().enter()
        self.bias.copy_(self.z_bias)
        if self.bias.grad is not None:
            self.bias.grad.div_(self.q)

    def _center(self, gradient: torch.Tensor) -> torch.Tensor:
        outputs: Any = self.bias.grad
        outputs = outputs.to(gradient.dtype)
        if gradient.ndim == 2:
            return gradient.addr_(outputs, self.center[0], alpha=-1)
        return gradient.addcmul_(
            outputs.view(-1, *[1] * (gradient.ndim - 1)), self.center, value=-1
        )

    def _taken_up(self, weight: torch.Tensor) -> torch.Tensor:
        r"""Return what the rows of a weight make of the mean, :math:`w^T\mu`."""
        if weight.ndim == 2 and weight.dtype == self.center.dtype:
            return weight @ self.center[0]
        return (weight * self.center).flatten(1).sum(1)

    def leave(self) -> None:
        r"""Return to :math:`\theta + P(z' - z)`, where the optimizer has moved z to z'."""
        shift = (self.bias - self.z_bias) / self.q - self._taken_up(self._subtract())
        self.weight.add_(self.before)
        self.bias.copy_(self.bias_before + shift)

    def restore(self) -> None:
        """Return to θ as it was."""
        super().restore()
        self.bias.copy_(self.bias_before)
