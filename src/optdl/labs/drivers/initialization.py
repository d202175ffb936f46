"""Call a student's functions on small networks, whose weights follow from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.labs.initialization import network, sample

__all__ = [
    "blocks",
    "classifier",
    "initialized",
    "mended",
    "mended_network",
    "small_network",
    "stepped",
    "watched",
]


@torch.no_grad()
def _fill(model: nn.Module, seed: int, scale: float = 1.0) -> None:
    """Give every parameter and running statistic of a network values that follow from a seed."""
    generator = torch.Generator().manual_seed(seed)
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.uniform_(0.2, scale, generator=generator)
            if value.ndim > 1:
                value.sub_((0.2 + scale) / 2)


def _values(model: nn.Module) -> tuple[np.ndarray, ...]:
    return tuple(value.detach().numpy().copy() for value in model.parameters())


def _hooks(model: nn.Module) -> int:
    """Return how many hooks a network has."""
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


def _nothing(module: nn.Module, inputs: Any, output: Any) -> None:
    """Be a hook of somebody else's, which stays."""


def _same(before: Sequence[nn.Parameter], model: nn.Module) -> bool:
    """Return whether a network's parameters are the tensors that they were, and still learn."""
    after = list(model.parameters())
    pairs = zip(before, after, strict=True)
    return len(before) == len(after) and all(a is b and b.requires_grad for a, b in pairs)


# --- Initial weights --------------------------------------------------------------------------


def small_network(kind: str, seed: int) -> nn.Sequential:
    """Return a network: dense, nested, convolutional, or with groups.

    Parameters
    ----------
    kind : str
        ``dense``, ``nested``, ``convolutional``, or ``groups`` for a convolution with groups.
    seed : int
        Draws all parameters and running statistics.

    Returns
    -------
    model : Sequential
        In float32.
    """
    if kind == "dense":
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    elif kind == "nested":
        inner = nn.Sequential(nn.Linear(4, 4, bias=False), nn.LayerNorm(4), nn.ReLU())
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), inner, nn.Linear(4, 2))
    else:
        groups = 2 if kind == "groups" else 1
        convolutions = nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, (1, 2), groups=groups)
        model = nn.Sequential(*convolutions, nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(4, 2))
    _fill(model, seed)
    return model


def initialized(function: Any, kind: str, gain: float, seed: int) -> tuple[Any, ...]:
    """Return weights of layers by kind, biases, and whether they are still the network's own.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, gain, generator)`` changes the model.
    kind : str
        The network, as in :func:`small_network`.
    gain : float
        The factor of the standard deviation.
    seed : int
        Draws what the network begins with, and is the seed of the generator.

    Returns
    -------
    dense, convolutions : tuples of arrays
        The weights of the layers of both kinds.
    biases : tuple of arrays
        Those of all these layers.
    others : tuple of arrays
        The parameters of the normalizations, which are to stay.
    same : bool
        Whether the parameters are the tensors that they were, and require a gradient.
    """
    model = small_network(kind, seed)
    before = list(model.parameters())
    torch.manual_seed(seed + 1)
    function(model, gain, torch.Generator().manual_seed(seed))
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    weights = [_weights(layer for layer in layers if isinstance(layer, k)) for k in _DRAWN]
    biases = tuple(value for layer in layers for value in _values(layer)[1:])
    norms = (layer for layer in model.modules() if isinstance(layer, nn.LayerNorm | nn.BatchNorm2d))
    others = tuple(value for layer in norms for value in _values(layer))
    return *weights, biases, others, _same(before, model)


_DRAWN = nn.Linear, nn.Conv2d


def _weights(layers: Iterable[nn.Module]) -> tuple[np.ndarray, ...]:
    return tuple(_values(layer)[0] for layer in layers)


# --- Statistics of activations ----------------------------------------------------------------


def blocks(count: int, seed: int) -> nn.Sequential:
    """Return a network with a ReLU at the top and one in each block; a unit of each is dead.

    Parameters
    ----------
    count : int
        How many blocks there are.
    seed : int
        Draws all parameters and running statistics.

    Returns
    -------
    model : Sequential
        In float64; it maps three features to four.
    """
    layers: list[nn.Module] = [nn.Linear(3, 4), nn.ReLU()]
    for _ in range(count):
        # what follows a ReLU overwrites its output
        block = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Hardtanh(0, 0.3, inplace=True)
        layers.append(nn.Sequential(*block))
    model = nn.Sequential(*layers).double()
    _fill(model, seed)
    with torch.no_grad():
        for layer in model.modules():
            if isinstance(layer, nn.BatchNorm1d):
                layer.bias[0] = -30
    return model


def watched(function: Any, count: int, x: np.ndarray, seed: int, training: bool) -> tuple[Any, ...]:
    """Return the statistics of a network, after another was looked at, and what is left of it.

    The seed of the network is ``seed + 1``.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, x)`` returns a dict for each ReLU, by its name.
    count : int
        How many blocks the network has.
    x : (m, 3) array
        A minibatch.
    seed : int
        That of the other network.
    training : bool
        Whether the network comes in training mode.

    Returns
    -------
    names : array of int
        The position of each name among all modules; −1 for an unknown one.
    mean, std, dead : arrays
        One number for each ReLU.
    are_floats : bool
        Whether all numbers are of the type float.
    modes : int
        How many modules are in training mode afterwards.
    left, late : int
        How many hooks are left: after the call, and after one that fails; −1 if that did not
        raise.
    """
    inputs = torch.tensor(x)
    function(blocks(3, seed), inputs)
    model = blocks(count, seed + 1).train(training)
    model.register_forward_hook(_nothing)
    statistics = function(model, inputs)
    layers = statistics.values()
    columns = [np.array([float(layer[name]) for layer in layers]) for name in _MEASURED]
    are_floats = all(isinstance(number, float) for layer in layers for number in layer.values())
    names = _positions(statistics, (name for name, _ in model.named_modules()))
    modes = sum(module.training for module in model.modules())
    left = _hooks(model)
    try:
        function(model, inputs[:, 1:])
    except Exception:
        late = _hooks(model)
    else:
        late = -1
    return names, *columns, are_floats, modes, left, late


_MEASURED = "mean", "std", "dead"


def _positions(names: Iterable[str], known: Iterable[str]) -> np.ndarray:
    """Return the position of each name among those of a network; -1 is none of them."""
    numbers = {name: number for number, name in enumerate(known)}
    return np.array([numbers.get(name, -1) for name in names])


# --- Sizes of updates -------------------------------------------------------------------------


def classifier(n: int, seed: int) -> nn.Sequential:
    """Return a network with batch normalization, in evaluation mode.

    Parameters
    ----------
    n : int
        The number of features.
    seed : int
        Draws all parameters and running statistics.

    Returns
    -------
    model : Sequential
        In float64; it has three scores.
    """
    layers = nn.Linear(n, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)
    model = nn.Sequential(*layers).double().eval()
    _fill(model, seed)
    return model


def stepped(function: Any, x: np.ndarray, y: np.ndarray, seed: int, adam: bool) -> tuple[Any, ...]:
    """Return whose ratios, those of each step, whether they are floats, and the weights then.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, optimizer, x, y)`` takes a step, returns ratios.
    x, y : (2, m, n) and (2, m) arrays
        The minibatches of two steps, with labels 0 to 2.
    seed : int
        Draws the weights.
    adam : bool
        Whether the optimizer is Adam, or SGD with momentum.

    Returns
    -------
    names : array of int
        The position of each name among the parameters; −1 for an unknown one.
    first, second : arrays
        The ratios of both steps.
    are_floats : bool
        Whether all are of the type float.
    weights : tuple of arrays
        The parameters after the steps.
    """
    model = classifier(x.shape[2], seed)
    optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    if adam:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    steps = [
        function(model, optimizer, torch.tensor(inputs), torch.tensor(labels))
        for inputs, labels in zip(x, y, strict=True)
    ]
    are_floats = all(isinstance(ratio, float) for ratios in steps for ratio in ratios.values())
    first, second = (np.array([*map(float, ratios.values())]) for ratios in steps)
    names = _positions(steps[0], (name for name, _ in model.named_parameters()))
    return names, first, second, are_floats, _values(model)


# --- Mend a network ---------------------------------------------------------------------------


def _damaged(equal: float, depth: int, seed: int) -> nn.Sequential:
    """Return a network with one layer of equal weights, between others that are too small.

    The last layer has one unit, so its rows are equal, and its weights are not.
    """
    layers: list[nn.Module] = [nn.Linear(3, 5), nn.ReLU()]
    for _ in range(depth):
        layers.append(nn.Sequential(nn.Linear(5, 5), nn.ReLU()))
    model = nn.Sequential(*layers, nn.Linear(5, 1))
    _fill(model, seed)
    with torch.no_grad():
        next(layers[2].parameters()).fill_(equal)
        next(model[-1].parameters()).mul_(0.01)
    return model


def mended(function: Any, equal: float, depth: int, x: np.ndarray, seed: int) -> tuple[Any, ...]:
    """Return weights and biases, whether they are still the network's own, and hooks left.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, x, generator)`` changes the model.
    equal : float
        What all weights of the damaged layer are.
    depth : int
        How many hidden layers of five units there are, without the first.
    x : (m, 3) array
        Examples, which the function gets in float32.
    seed : int
        Draws the weights, and is the seed of the generator.

    Returns
    -------
    first, damaged : arrays
        The weights of the first layer and of the damaged one.
    later : tuple of arrays
        Those of the layers behind it.
    biases : tuple of arrays
        Those of all layers.
    same : bool
        Whether the parameters are the tensors that they were, and require a gradient.
    hooks : int
        How many hooks are left; one is somebody else's.
    """
    model = _damaged(equal, depth, seed)
    model.register_forward_hook(_nothing)
    before = list(model.parameters())
    torch.manual_seed(seed + 1)
    inputs = torch.tensor(x, dtype=torch.float32)
    function(model, inputs, torch.Generator().manual_seed(seed))
    weights, biases = _values(model)[::2], _values(model)[1::2]
    return weights[0], weights[1], weights[2:], biases, _same(before, model), _hooks(model)


def mended_network(
    function: Any, state: Mapping[str, np.ndarray], seed: int
) -> dict[str, np.ndarray]:
    """Return the state of the network of the lab after a function had it, from a given one.

    Parameters
    ----------
    function : callable
        The student's function, as in :func:`mended`.
    state : mapping of str to array
        The ``state_dict`` that the network begins with.
    seed : int
        Seed of the generator.

    Returns
    -------
    state : dict of arrays
        The ``state_dict`` afterwards, by the same names.
    """
    model = network()
    model.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    function(model, sample(), torch.Generator().manual_seed(seed))
    return {name: value.numpy().copy() for name, value in model.state_dict().items()}
