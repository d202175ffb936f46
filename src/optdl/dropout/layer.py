"""Dropout as a layer for torch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import nn

from optdl.dropout.functions import check_dropped

__all__ = ["Dropout"]


class Dropout(nn.Module):
    """The same layer for torch: inverted dropout, with its own generator if you pass one.

    The distribution is that of ``torch.nn.Dropout``. The draws differ, even from one seed. Without
    a ``generator`` they come from torch's global one. Raises ValueError where p lies outside
    [0, 1). Source: L2-16.

    >>> layer = Dropout(0.5, generator=torch.Generator().manual_seed(0))
    >>> sorted(set(layer(torch.ones(100)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, p: float = 0.5, generator: torch.Generator | None = None) -> None:
        super().__init__()
        check_dropped(p)
        self.p = p
        self.generator = generator

    def forward(self, x: Float[torch.Tensor, "*shape"]) -> Float[torch.Tensor, "*shape"]:
        """Drop entries of x in training mode; return x as it is in evaluation mode."""
        if not self.training or self.p == 0:
            return x
        # never in half precision, whose coarse numbers drop far too many where p is small
        u = torch.rand(x.shape, generator=self.generator, device=x.device, dtype=torch.float32)
        return x * (u >= self.p) / (1 - self.p)

    def extra_repr(self) -> str:
        """Return what the printed model shows."""
        return f"p={self.p}"
