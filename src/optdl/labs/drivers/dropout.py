"""Drivers of the lab on dropout: layers, networks and loops, called on numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "Stopper",
    "average_masks",
    "average_passes",
    "drop",
    "fit",
    "insert_layers",
    "plain_network",
    "score",
    "stop",
    "train_at_rate_zero",
]


def _array(value: Tensor) -> np.ndarray:
    return np.array(value.detach().double().numpy())


def plain_network(sizes: Sequence[int], seed: int) -> nn.Sequential:
    """Return linear layers in float64, with a ReLU between two of them."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for rows, columns in pairwise(sizes):
        layers += [nn.Linear(rows, columns), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


# --- The layer and the network ----------------------------------------------------------------


def drop(
    kind: Any, x: np.ndarray, p: float, seed: int, modes: Sequence[str], dtype: str
) -> tuple[Any, ...]:
    """Return what two layers make of x, call by call, with the gradients of the first one."""
    torch.manual_seed(seed + 5)
    first, second = kind(p, seed), kind(p, seed + 1)
    outputs, gradients, types = [], [], set()
    for mode in modes:
        first.train(mode == "train")
        given = torch.tensor(x).to(getattr(torch, dtype))
        outputs += [_array(first(given)), _array(second(given)), _array(given)]
        graded = given.clone().requires_grad_()
        y = first(graded)
        types.add(str(y.dtype))
        if y.requires_grad:
            (y * (1 + given)).sum().backward()
        gradient = torch.zeros_like(graded) if graded.grad is None else graded.grad
        gradients.append(_array(gradient))
    learned = sorted(name for name, _ in first.named_parameters())
    return tuple(outputs), tuple(gradients), ", ".join(sorted(types)), ", ".join(learned)


def insert_layers(function: Any, sizes: Sequence[int], p: float, seed: int) -> tuple[Any, ...]:
    """Return the kinds of layers, all weights, and what each dropout layer makes of ones."""
    model = function(plain_network(sizes, seed + 50), p, seed)
    layers = list(model)
    kinds = [type(layer).__name__ for layer in layers]
    torch.manual_seed(seed + 70)
    masks = [
        _array(layer(torch.ones(2, 6)))
        for kind, layer in zip(kinds, layers, strict=True)
        if kind == "Dropout"
    ]
    saved = model.state_dict(keep_vars=True).values()
    weights = [_array(value) for value in saved if isinstance(value, nn.Parameter)]
    return ", ".join(kinds), tuple(weights), tuple(masks)


def score(function: Any, x: np.ndarray, sizes: Sequence[int], p: float, seed: int) -> np.ndarray:
    """Return the scores of a network with dropout layers, in evaluation mode."""
    model = function(plain_network(sizes, seed), p, seed)
    model.eval()
    return _array(model(torch.tensor(x)))


# --- Early stopping ---------------------------------------------------------------------------


def stop(kind: Any, losses: Sequence[float], patience: int, min_delta: float) -> tuple[Any, ...]:
    """Return what `update` said, and the weights and buffers that `restore` gave.

    All numbers in the network are k in epoch k, from 1 on, and 99 when training has gone on after
    the last epoch. They are restored in another network of the same kind.
    """
    model = nn.BatchNorm1d(2).double()
    other = copy.deepcopy(model)
    stopper = kind(patience, min_delta)
    update, said = stopper.update, []
    for epoch, loss in enumerate(losses, start=1):
        _fill(model, epoch)
        said.append(bool(update(model, float(loss))))
        if said[-1]:
            break
    _fill(model, 99)
    _fill(other, -1)
    stopper.restore(other)
    weights = {float(value) for tensor in other.parameters() for value in tensor.detach().flatten()}
    buffers = {float(value) for tensor in other.buffers() for value in tensor.flatten()}
    return np.array(said, float), np.array(sorted(weights)), np.array(sorted(buffers))


@torch.no_grad()
def _fill(model: nn.Module, number: float) -> None:
    for value in [*model.parameters(), *model.buffers()]:
        value.fill_(number)


# --- The loop ---------------------------------------------------------------------------------


class Stopper:
    """Stands in for early stopping, and remembers what it was asked.

    Parameters
    ----------
    last : int
        ``update`` says for the first time in this epoch, counted from 1, that training should stop.
    """

    def __init__(self, last: int) -> None:
        self.last = last
        self.losses: list[float] = []
        self.calls: list[str] = []

    def update(self, model: nn.Module, loss: Any) -> bool:
        """Remember a loss, and return whether it is time to stop."""
        self.calls.append("update")
        self.losses.append(float(loss))
        return len(self.losses) >= self.last

    def restore(self, model: nn.Module) -> None:
        """Remember that the best weights were asked for."""
        self.calls.append("restore")


def fit(
    function: Any, x: np.ndarray, y: np.ndarray, epochs: int, batch: int, seed: int, last: int
) -> tuple[Any, ...]:
    """Return the losses, their types, the weights, the last mode, and what a stopper was asked.

    The network has dropout and comes in evaluation mode; a third of the examples is for validation.
    There is no stopper when ``last`` is 0.
    """
    torch.manual_seed(seed)
    layers = (nn.Linear(3, 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, 2))
    model = nn.Sequential(*layers).double().eval()
    train, validation = (
        (torch.tensor(x[rows]), torch.tensor(y[rows]))
        for rows in (slice(len(y) // 3, None), slice(len(y) // 3))
    )
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed + 1)
    stopper = Stopper(last) if last else None
    curves = function(model, train, validation, epochs, 0.2, batch, generator, stopper=stopper)
    losses, checked = (list(curve) for curve in curves)
    types = {type(loss).__name__ for loss in losses + checked}
    weights = tuple(_array(value) for value in model.parameters())
    asked = (np.array(stopper.losses), ", ".join(stopper.calls)) if stopper else (np.zeros(0), "")
    numbers = (np.array([float(loss) for loss in curve]) for curve in (losses, checked))
    return (*numbers, ", ".join(sorted(types)), weights, bool(model.training), *asked)


def train_at_rate_zero(
    function: Any, x: np.ndarray, y: np.ndarray, sizes: Sequence[int], seed: int
) -> tuple[np.ndarray, ...]:
    """Return the losses of three epochs whose steps have no length; seven examples are trained on.

    The others are for validation.
    """
    train, validation = (
        (torch.tensor(x[rows]), torch.tensor(y[rows])) for rows in (slice(7), slice(7, None))
    )
    generator = torch.Generator().manual_seed(seed)
    curves = function(plain_network(sizes, seed), train, validation, 3, 0.0, 3, generator)
    losses, checked = (np.array([float(loss) for loss in curve]) for curve in curves)
    return losses, checked


# --- Many passes ------------------------------------------------------------------------------


def average_passes(
    function: Any, x: np.ndarray, p: float, passes: int, seed: int, mode: str
) -> tuple[Any, ...]:
    """Return mean and deviation, whether they have a graph, the modes, and the running mean.

    The network has a normalization layer, and a block within; ``mode`` is that in which it comes,
    ``frozen`` meaning training with the normalization in evaluation mode.
    """
    torch.manual_seed(seed)
    first, norm = nn.Linear(x.shape[1], 4), nn.BatchNorm1d(4)
    block = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(p))
    model = nn.Sequential(first, norm, nn.ReLU(), nn.Dropout(p), block, nn.Linear(5, 3)).double()
    model.train(mode != "eval")
    norm.train(mode == "train")
    mean, deviation = function(model, torch.tensor(x), passes)
    graph = "has a graph" if mean.requires_grad or deviation.requires_grad else "no graph"
    modes = ", ".join("train" if module.training else "eval" for module in model.modules())
    return _array(mean), _array(deviation), graph, modes, _array(norm.state_dict()["running_mean"])


def average_masks(
    function: Any, x: np.ndarray, sizes: Sequence[int], p: float, passes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation for a plain network behind one dropout layer."""
    layers = plain_network(sizes, seed)
    model = nn.Sequential(nn.Dropout(p), *layers).eval()
    mean, deviation = function(model, torch.tensor(x), passes)
    return _array(mean), _array(deviation)
