"""P for one layer: its running statistics, and its gradient.

A grouped convolution is several convolutions side by side: the statistics have one row for each
group, and a dense layer or a plain convolution is one group.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable

import torch

from optdl.bnp.algorithm import scale_conv, scale_dense
from optdl.bnp.coordinates import Centered, Scaled
from optdl.bnp.taps import Convolution, Dense, Rows, Tap


class Layer:
    """One preconditioned layer: what passes through it, and its running statistics."""

    def __init__(
        self, name: str, module: Dense | Convolution, before: Callable[[str], None]
    ) -> None:
        self.name, self.module, self.tap = name, module, Tap(name, before)
        groups, weight = getattr(module, "groups", 1), module.weight
        exact = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self.mean = torch.zeros(groups, weight.shape[1], dtype=exact, device=weight.device)
        self.var = torch.ones_like(self.mean)
        self.q2: float | None = None
        """That of the last step."""
        self.used: weakref.ref[torch.Tensor] | None = None
        self.version = -1
        self.hook = module.register_forward_hook(self.tap, with_kwargs=True)

    def scale(self, gathered: Rows) -> float:
        """Return q² of the rows gathered."""
        if isinstance(self.module, Dense):
            return scale_dense(self.mean.shape[1], gathered.rows)
        positions = gathered.positions / gathered.examples
        return scale_conv(self.mean.shape[1], self.module.kernel_size, gathered.examples, positions)

    def update(self, gathered: Rows, rho: float) -> None:
        """Take the gathered statistics into the running ones: steps 1 and 2."""
        mean, var = (part.view_as(self.mean) for part in (gathered.mean, gathered.var))
        if (self.mean.device, self.mean.dtype) != (mean.device, mean.dtype):  # the model moved
            self.mean, self.var = self.mean.to(mean), self.var.to(mean)
        self.mean.lerp_(mean, 1 - rho)
        if gathered.rows == 1:  # one row has no spread: it is measured from the running mean
            var = (mean - self.mean).square_()
        self.var.lerp_(var, 1 - rho)
        self.q2 = self.scale(gathered)

    def smoothed(self, eps1: float, eps2: float) -> torch.Tensor:
        """Return the variance of step 3, or the mean square where no bias takes up the mean."""
        spread = self.var if self.bias is not None else self.var + self.mean**2
        return torch.add(spread, spread.amax(1, keepdim=True), alpha=eps1).add_(eps2)

    @property
    def bias(self) -> torch.Tensor | None:
        """The bias, if the layer has one that is trained."""
        bias = self.module.bias
        trained = isinstance(bias, torch.Tensor) and bias.requires_grad and bias.grad is not None
        return bias if trained else None

    def precondition(self, gathered: Rows, eps1: float, eps2: float) -> None:
        """Transform the gradients in place: steps 3 to 5."""
        weight = self.module.weight.grad
        bias = None if self.bias is None else self.bias.grad
        if weight is None:
            return
        scale = self.scale(gathered)
        inverse = self.smoothed(eps1, eps2).mul_(scale).reciprocal_()
        if bias is None:
            weight.mul_(self.aligned(inverse).to(weight.dtype))
        elif weight.ndim == 2 and weight.dtype == inverse.dtype:
            center = self.mean[0]
            weight.addr_(bias, center, alpha=-1).mul_(inverse)
            bias.div_(scale).addmv_(weight, center, alpha=-1)
        else:
            self._precondition_any(weight, bias, inverse, scale)

    def _precondition_any(
        self, weight: torch.Tensor, bias: torch.Tensor, inverse: torch.Tensor, scale: float
    ) -> None:
        """Transform gradients of any shape and precision, computing in that of the statistics."""
        wide, center = bias.to(inverse.dtype), self.aligned(self.mean)
        outputs = wide.view(-1, *[1] * (weight.ndim - 1))
        new = (weight - outputs * center) * self.aligned(inverse)
        weight.copy_(new)
        bias.copy_(wide / scale - (new * center).flatten(1).sum(1))

    def aligned(self, statistic: torch.Tensor) -> torch.Tensor:
        """Shape a (groups, inputs) statistic so that it meets the weight output by output."""
        outputs = self.module.weight.shape[0] if len(statistic) > 1 else 1
        each = (
            statistic.repeat_interleave(outputs // len(statistic), 0) if outputs > 1 else statistic
        )
        return each.view(*each.shape, *[1] * (self.module.weight.ndim - 2))

    def split(self, eps1: float, eps2: float) -> Scaled | None:
        """Return θ = Pz, as the last step left P; None before the first one."""
        weight, bias = self.module.weight, self.bias
        if self.q2 is None or weight.grad is None:
            return None
        deviation = self.aligned(self.smoothed(eps1, eps2).mul_(self.q2).sqrt_())
        if bias is None:
            return Scaled(weight, deviation)
        return Centered(weight, deviation, bias, self.aligned(self.mean), math.sqrt(self.q2))

    def mark(self) -> None:
        """Remember the gradient, which a step has used."""
        gradient = self.module.weight.grad
        if gradient is not None:
            self.used, self.version = weakref.ref(gradient), gradient._version

    def has_unseen_gradient(self) -> bool:
        """Tell whether a gradient is there that came past the forward passes of this layer.

        Zeros are none; a frozen layer, or one whose turn is later, may hold that of an old step.
        """
        weight = self.module.weight
        gradient = weight.grad
        if gradient is None or not weight.requires_grad:
            return False
        return not self.holds_used_gradient() and bool(gradient.any())

    def holds_used_gradient(self) -> bool:
        """Tell whether the gradient is still that which :meth:`mark` has seen."""
        gradient = self.module.weight.grad
        used = None if self.used is None else self.used()
        return gradient is not None and gradient is used and gradient._version == self.version
