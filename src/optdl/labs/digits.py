"""What the labs have in common: the digits, minibatches of them, and dense networks for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor, nn

from optdl.data import load

__all__ = ["accuracy", "batches", "dense", "loaded", "pixels", "standardized"]

Data = tuple[Tensor, Tensor, Tensor, Tensor]


@cache
def pixels() -> Data:
    """Return the digits as ``(x, y, x_validation, y_validation)``, pixels between 0 and 1.

    The last 288 of the 1438 training examples are for validation; the test set is not touched.
    """
    digits = load("digits")
    x, y = torch.tensor(digits.x_train), torch.tensor(digits.y_train)
    return x[:1150], y[:1150], x[1150:], y[1150:]


@cache
def standardized() -> Data:
    """Return the same with mean 0 and deviation 1 over all pixels of the training examples."""
    x, y, x_validation, y_validation = pixels()
    mean, std = x.mean(), x.std()
    return (x - mean) / std, y, (x_validation - mean) / std, y_validation


def batches(
    x: Tensor, y: Tensor, size: int, seed: int, steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield so many minibatches of examples, drawn anew for each step by a generator of a seed."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(y), (size,), generator=generator)
        yield x[rows], y[rows]


def dense(widths: Sequence[int], seed: int, *, normalized: bool = False) -> nn.Sequential:
    """Return dense layers with ReLUs between them, with weights of a seed.

    Weights are drawn from N(0, 2 / inputs), biases are 0. With ``normalized`` a batch
    normalization stands before each ReLU.
    """
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for inputs, outputs in pairwise(widths[1:]):
        layers += [*([nn.BatchNorm1d(inputs)] if normalized else []), nn.ReLU()]
        layers += [nn.Linear(inputs, outputs)]
    generator = torch.Generator().manual_seed(seed)
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=(2 / layer.in_features) ** 0.5, generator=generator)
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor, *, device: str = "cpu") -> float:
    """Return the share of examples that a network classifies correctly, in evaluation mode.

    The network is on the device; a thousand of the examples go there at a time.
    """
    model.eval()
    parts = zip(torch.split(x, 1000), torch.split(y, 1000), strict=True)
    right = [
        (model(some.to(device)).argmax(1) == labels.to(device)).sum() for some, labels in parts
    ]
    return float(torch.stack(right).sum()) / len(y)


def loaded(model: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Return a network with these weights."""
    model.load_state_dict(dict(weights))
    return model
