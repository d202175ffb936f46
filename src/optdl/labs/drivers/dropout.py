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
    """Return linear layers in float64, with a ReLU between two of them.

    Parameters
    ----------
    sizes : sequence of int
        The sizes of the layers, from the input to the scores.
    seed : int
        Draws the weights, with torch's global generator.

    Returns
    -------
    model : Sequential
        With torch's own initial weights.
    """
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for rows, columns in pairwise(sizes):
        layers += [nn.Linear(rows, columns), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


# --- The layer and the network ----------------------------------------------------------------


def drop(
    kind: Any, x: np.ndarray, p: float, seed: int, modes: Sequence[str], dtype: str
) -> tuple[Any, ...]:
    """Return what two layers make of x, call by call; the gradients are those of the first one.

    Parameters
    ----------
    kind : type
        The student's layer; ``kind(p, seed)`` makes one.
    x : array
        What passes through the layers in each call.
    p : float
        Probability that an entry is dropped.
    seed : int
        Seed of the first layer; the second one has the next seed.
    modes : sequence of str
        ``train`` or ``eval`` for each call.
    dtype : str
        The name of a type of torch, for x.

    Returns
    -------
    kept : array of bool
        Where the outputs in training mode are not 0.
    trained, evaluated : arrays
        The outputs in both modes: those of both layers for each call, in turn.
    gradients : array
        For each call the gradient at x of a sum of the outputs.
    has_dtype, stays, has_none : bool
        Whether all outputs have the type of x, x stays as it was, and there are no parameters.
    """
    torch.manual_seed(seed + 5)
    layers = kind(p, seed), kind(p, seed + 1)
    outputs: dict[str, list[np.ndarray]] = {"train": [], "eval": []}
    gradients, has_dtype, stays = [], True, True
    for mode in modes:
        given = torch.tensor(x).to(getattr(torch, dtype))
        before = given.clone()
        for layer in layers:
            y = layer.train(mode == "train")(given)
            outputs[mode].append(_array(y))
            has_dtype &= y.dtype == given.dtype
        stays &= torch.equal(given, before)
        graded = before.clone().requires_grad_()
        y = layers[0](graded)
        if y.requires_grad:
            (y * (1 + before)).sum().backward()
        gradients.append(_array(torch.zeros_like(graded) if graded.grad is None else graded.grad))
    trained, evaluated = (np.array(calls) for calls in outputs.values())
    has_none = not [*layers[0].parameters()]
    return trained != 0, trained, evaluated, np.array(gradients), has_dtype, stays, has_none


def insert_layers(function: Any, sizes: Sequence[int], p: float, seed: int) -> tuple[Any, ...]:
    """Return where dropout layers are, whether the others are kept, and what they make of ones.

    Behind that, whether the given network is what it was.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, p, seed)`` returns a network.
    sizes : sequence of int
        The sizes of the layers of the given network.
    p : float
        Probability that a unit is dropped.
    seed : int
        Seed of the first dropout layer.

    Returns
    -------
    positions : array of int
        Those of the layers whose class is called Dropout.
    others_kept : bool
        Whether all other layers are those of the given network, in order.
    masks : array
        What each dropout layer makes of (2, 6) ones in training mode.
    given_kept : bool
        Whether the given network has the layers that it had.
    """
    given = plain_network(sizes, seed + 50)
    before = list(given)
    layers = list(function(given, p, seed))
    dropped = [type(layer).__name__ == "Dropout" for layer in layers]
    others = [layer for layer, is_dropout in zip(layers, dropped, strict=True) if not is_dropout]
    torch.manual_seed(seed + 70)
    masks = [_array(layers[k](torch.ones(2, 6))) for k in np.flatnonzero(dropped)]
    return np.flatnonzero(dropped), others == before, np.array(masks), list(given) == before


def score(function: Any, x: np.ndarray, sizes: Sequence[int], p: float, seed: int) -> np.ndarray:
    """Return the scores of a network with dropout layers, in evaluation mode.

    Parameters
    ----------
    function : callable
        The student's function, as in :func:`insert_layers`.
    x : (m, sizes[0]) array
        The examples.
    sizes : sequence of int
        The sizes of the layers.
    p : float
        Probability that a unit is dropped.
    seed : int
        Draws the weights, and is that of the first dropout layer.

    Returns
    -------
    scores : (m, sizes[-1]) array
        They depend neither on p nor on the masks.
    """
    model = function(plain_network(sizes, seed), p, seed)
    model.eval()
    return _array(model(torch.tensor(x)))


# --- Early stopping ---------------------------------------------------------------------------


def stop(kind: Any, losses: Sequence[float], patience: int, min_delta: float) -> tuple[Any, ...]:
    """Return what `update` returned, with nan for None, and the weights and buffers restored.

    All numbers in the network are k in epoch k, from 1 on, and 99 when training has gone on after
    the last epoch. They are restored in another network of the same kind.

    Parameters
    ----------
    kind : type
        The student's class; ``kind(patience, min_delta)`` makes one.
    losses : sequence of float
        The validation loss of each epoch.
    patience : int
        Epochs without an improvement after which training stops.
    min_delta : float
        By how much a loss has to be smaller to be an improvement.

    Returns
    -------
    returned : array
        What ``update`` returned in each epoch until it said stop: 0, 1, or nan for None.
    weights, buffers : arrays
        The different numbers in what was restored: one number, that of the best epoch.
    """
    model = nn.BatchNorm1d(2).double()
    other = copy.deepcopy(model)
    stopper = kind(patience, min_delta)
    update, returned = stopper.update, []
    for epoch, loss in enumerate(losses, start=1):
        _fill(model, epoch)
        stops = update(model, float(loss))
        returned.append(np.nan if stops is None else float(bool(stops)))
        if stops:
            break
    _fill(model, 99)
    _fill(other, -1)
    stopper.restore(other)
    weights, buffers = (
        np.unique(np.concatenate([_array(value).ravel() for value in values]))
        for values in (other.parameters(), other.buffers())
    )
    return np.array(returned), weights, buffers


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
        self.last, self.restored = last, 0
        self.losses: list[float] = []

    def update(self, model: nn.Module, loss: Any) -> bool:
        """Remember a loss, and return whether it is time to stop."""
        self.losses.append(float(loss))
        self.restored = 0
        return len(self.losses) >= self.last

    def restore(self, model: nn.Module) -> None:
        """Count how often the best weights are asked for, after the last loss."""
        self.restored += 1


def fit(
    function: Any, x: np.ndarray, y: np.ndarray, epochs: int, batch: int, seed: int, last: int
) -> tuple[Any, ...]:
    """Return losses, whether all are floats, the weights, the last mode, and what a stopper saw.

    The network has dropout and comes in evaluation mode; a third of the examples is for validation.
    There is no stopper when ``last`` is 0.

    Parameters
    ----------
    function : callable
        The student's loop; it returns the losses in training and in validation.
    x, y : (m, 3) and (m,) arrays
        The examples, with labels 0 and 1.
    epochs, batch : int
        Passes over the examples, and examples in a minibatch.
    seed : int
        Draws the weights, the order and the masks.
    last : int
        The epoch in which the stopper says stop; 0 for no stopper.

    Returns
    -------
    losses, checked : arrays
        One number for each epoch, in training and in validation.
    are_floats : bool
        Whether all are of the type float.
    weights : tuple of arrays
        The parameters at the end.
    evaluates : bool
        Whether the network is in evaluation mode at the end.
    seen : array
        The losses that the stopper was given.
    restored : int
        How often the best weights were asked for, after the last of them.
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
    stopper = Stopper(last)
    given = stopper if last else None
    curves = function(model, train, validation, epochs, 0.2, batch, generator, stopper=given)
    losses, checked = (list(curve) for curve in curves)
    are_floats = all(isinstance(loss, float) for loss in losses + checked)
    weights = tuple(_array(value) for value in model.parameters())
    return (
        *(np.array([*map(float, curve)]) for curve in (losses, checked)),
        *(are_floats, weights, not model.training),
        *(np.array(stopper.losses), stopper.restored),
    )


def train_at_rate_zero(
    function: Any, x: np.ndarray, y: np.ndarray, sizes: Sequence[int], seed: int
) -> tuple[np.ndarray, ...]:
    """Return the losses of three epochs whose steps have no length; seven examples are trained on.

    The others are for validation.

    Parameters
    ----------
    function : callable
        The student's loop, as in :func:`fit`.
    x, y : (m, sizes[0]) and (m,) arrays
        The examples, with labels 0 … c−1.
    sizes : sequence of int
        The sizes of the layers.
    seed : int
        Draws the weights and the order.

    Returns
    -------
    losses, checked : (3,) arrays
        In training and in validation; each is constant, if it is a mean over the examples.
    """
    train, validation = (
        (torch.tensor(x[rows]), torch.tensor(y[rows])) for rows in (slice(7), slice(7, None))
    )
    generator = torch.Generator().manual_seed(seed)
    curves = function(plain_network(sizes, seed), train, validation, 3, 0.0, 3, generator)
    losses, checked = (np.array([float(loss) for loss in curve]) for curve in curves)
    return losses, checked


# --- Many passes ------------------------------------------------------------------------------


class Dropout(nn.AlphaDropout):
    """Stands in for a student's own layer, which is no `nn.Dropout`."""


def average_passes(
    function: Any, x: np.ndarray, p: float, passes: int, seed: int, mode: str
) -> tuple[Any, ...]:
    """Return mean and deviation, whether they have a graph, the modes, and the running mean.

    The network has two kinds of dropout, a normalization layer, and a block within; ``mode`` is
    that in which it comes, ``frozen`` meaning training with the normalization in evaluation mode.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, x, passes)`` returns two tensors.
    x : (m, n) array
        The examples.
    p : float
        Probability that a unit is dropped.
    passes : int
        How many forward passes are averaged over.
    seed : int
        Draws the weights, then the masks.
    mode : str
        ``train``, ``eval`` or ``frozen``.

    Returns
    -------
    mean, deviation : (m, 3) arrays
        Over the passes.
    no_graph : bool
        Whether neither requires a gradient.
    modes : array of bool
        For each module whether it is in training mode afterwards.
    running_mean : (4,) array
        That of the normalization afterwards.
    """
    torch.manual_seed(seed)
    first, norm = nn.Linear(x.shape[1], 4), nn.BatchNorm1d(4)
    block = nn.Sequential(nn.Linear(4, 5), nn.Dropout(p), nn.Tanh(), Dropout(p))
    model = nn.Sequential(first, norm, nn.ReLU(), nn.Dropout(p), block, nn.Linear(5, 3)).double()
    model.train(mode != "eval")
    norm.train(mode == "train")
    mean, deviation = function(model, torch.tensor(x), passes)
    no_graph = not (mean.requires_grad or deviation.requires_grad)
    modes = np.array([module.training for module in model.modules()])
    return (
        _array(mean),
        _array(deviation),
        no_graph,
        modes,
        _array(norm.state_dict()["running_mean"]),
    )


def average_masks(
    function: Any, x: np.ndarray, sizes: Sequence[int], p: float, passes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and deviation for a plain network behind one dropout layer.

    Parameters
    ----------
    function : callable
        The student's function, as in :func:`average_passes`.
    x : (m, sizes[0]) array
        The examples.
    sizes : sequence of int
        The sizes of the layers.
    p : float
        Probability that an input is dropped.
    passes : int
        How many forward passes are averaged over.
    seed : int
        Draws the weights, then the masks.

    Returns
    -------
    mean, deviation : (m, sizes[-1]) arrays
        Over the passes.
    """
    layers = plain_network(sizes, seed)
    model = nn.Sequential(nn.Dropout(p), *layers).eval()
    mean, deviation = function(model, torch.tensor(x), passes)
    return _array(mean), _array(deviation)
