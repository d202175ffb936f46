"""Training on several processes: which of them share a batch, and statistics of all its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from optdl.bnp.layers import Layer, Rows


def group_around(model: nn.Module) -> Any:
    """Return the group of the DistributedDataParallel around a model or its parts, or "auto"."""
    parts = [part for part in model.modules() if isinstance(part, DistributedDataParallel)]
    found = {id(part.process_group): part.process_group for part in parts}
    if len(found) > 1:
        raise ValueError(
            f"expected one group of processes around the model, found {len(found)}: make "
            "a BNP for each part, or name one with process_group"
        )
    return next(iter(found.values()), "auto")


def unwrapped(model: nn.Module) -> nn.Module:
    """Return the model inside of DistributedDataParallel and compiled modules, in any order."""
    while True:
        if isinstance(model, DistributedDataParallel):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), nn.Module):
            model = inner
        else:
            return model


def over_processes(
    layers: Sequence[Layer], gathered: Sequence[Rows | None], group: Any
) -> list[Rows | None]:
    """Return the statistics of the rows of all processes, after one exchange for all layers.

    Sums are sent about the running mean, which is alike in all processes, so that large means
    cost no digits. A layer that did not run here may have run elsewhere.
    """
    # what a layer read tells where the model is now
    device = layers[0].module.weight.device
    sums = [_sums(layer, rows, device) for layer, rows in zip(layers, gathered, strict=True)]
    sent = torch.cat(sums)
    distributed.all_reduce(sent, group=group)
    parts = torch.split(sent, [len(part) for part in sums])
    counts = torch.stack([part[:3] for part in parts]).round().long().tolist()
    return [
        _rows(layer, part[3:], *count) if count[1] else None
        for layer, part, count in zip(layers, parts, counts, strict=True)
    ]


def _rows(layer: Layer, part: torch.Tensor, examples: int, rows: int, positions: int) -> Rows:
    """Return the statistics of rows from their sums about the running mean."""
    sums, squares = part.chunk(2)
    shift, like = sums / rows, layer.mean
    mean = layer.mean.flatten().to(part) + shift
    var = squares / rows - shift**2
    return Rows(examples, rows, positions, mean.to(like.dtype), var.to(like.dtype))


def _sums(layer: Layer, gathered: Rows | None, device: torch.device) -> torch.Tensor:
    """Return counts, sums, and sums of squares about the running mean, in double precision."""
    if gathered is None:
        # each process has to send as many numbers as the others, or all of them wait for ever
        return torch.zeros(3 + 2 * layer.mean.numel(), dtype=torch.float64, device=device)
    center = layer.mean.flatten().to(gathered.mean.device)
    shift = (gathered.mean - center).double()
    squares = gathered.rows * (gathered.var.double() + shift**2)
    return torch.cat([shift.new_tensor(gathered[:3]), gathered.rows * shift, squares])
