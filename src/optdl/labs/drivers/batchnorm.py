"""Call a student's batch normalization, network and tests; what they do comes back as values.

Modules are compared in float64. Networks that an answer gets are made of PyTorch's own modules. So
that an answer which knows its own batch normalization alone does not do, nor one that looks for
certain classes, one of the normalizations is of a class that no dense network has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "averaged",
    "built",
    "evaluated",
    "normalized",
    "passed",
    "recalibrated",
    "rescaled",
]


# --- The module -------------------------------------------------------------------------------


def normalized(
    kind: Any,
    batches: Sequence[np.ndarray],
    weight: np.ndarray,
    bias: np.ndarray,
    options: dict[str, Any],
) -> tuple[Any, ...]:
    """Return how a module begins, what it gives in both modes, and what it remembers.

    Parameters
    ----------
    kind : type
        The student's module; ``kind(features, **options)`` makes one.
    batches : sequence of (m, d) or (m, d, height, width) arrays
        The minibatches of the training, in turn; the first one comes again in evaluation mode.
    weight, bias : (d,) arrays
        What γ and β are set to before the first minibatch.
    options : dict
        Further arguments of the class: ``eps``, ``momentum``.

    Returns
    -------
    trained, saved : bool
        Whether the parameters, and the keys of the ``state_dict``, are those of ``nn.BatchNorm1d``.
    begins : tuple of arrays
        γ, β, running mean, running variance and count of a new module.
    outputs, gradients : tuples of arrays of the shape of their minibatch
        For each minibatch the output in training mode, and the gradient of the sum of its cubes.
    remembered : tuple of arrays
        Running mean, running variance and count at the end.
    is_whole, has_no_graph : bool
        Whether the count is an integer, and whether none of the three requires a gradient.
    tested : tuple of two arrays
        Output and gradient of the first minibatch in evaluation mode.
    resumed : array
        The same output, of another module that has loaded the state.
    """
    layer = kind(len(weight), **options).double()
    trained, saved = _parameters_and_state(layer)
    remembered = "running_mean", "running_var", "num_batches_tracked"
    begins = tuple(_array(getattr(layer, name)) for name in ("weight", "bias", *remembered))
    _set(layer.weight, weight)
    _set(layer.bias, bias)
    outputs = [_forward_and_back(layer, values) for values in batches]
    layer.eval()
    tested = _forward_and_back(layer, batches[0])
    kept = [getattr(layer, name) for name in remembered]
    other = kind(len(weight), **options).double()
    other.load_state_dict(layer.state_dict())
    with torch.no_grad():
        resumed = other.eval()(torch.tensor(batches[0]))
    return (
        trained == {"weight", "bias"},
        saved == {"weight", "bias", *remembered},
        begins,
        tuple(y for y, _ in outputs),
        tuple(grad for _, grad in outputs),
        tuple(map(_array, kept)),
        not torch.as_tensor(kept[2]).is_floating_point(),
        not any(torch.as_tensor(value).requires_grad for value in kept),
        tested,
        resumed.numpy(),
    )


def _array(value: Any) -> np.ndarray:
    return np.array(torch.as_tensor(value).detach(), float)


@torch.no_grad()
def _set(parameter: Tensor, values: np.ndarray) -> None:
    parameter.copy_(torch.tensor(values))


def _parameters_and_state(module: Any) -> tuple[set[str], set[str]]:
    """Return the names of what a module trains, and of what its ``state_dict`` saves."""
    saved = module.state_dict(keep_vars=True)  # one call, where ``named_parameters`` takes many
    return {name for name, value in saved.items() if isinstance(value, nn.Parameter)}, {*saved}


def _forward_and_back(layer: Any, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the output, and the gradient of the sum of its third powers."""
    x = torch.tensor(values, requires_grad=True)
    y = layer(x)
    (y**3).sum().backward()
    gradient = np.zeros_like(values) if x.grad is None else x.grad.numpy().copy()
    return y.detach().numpy(), gradient


def passed(
    kind: Any, values: np.ndarray, momentum: float | None
) -> tuple[tuple[np.ndarray, ...], np.ndarray, dict[str, np.ndarray]]:
    """Return the outputs of minibatches in training, that of the first in a test, and the state.

    Parameters
    ----------
    kind : type
        The student's module, or one of torch's.
    values : (t, m, d) or (t, m, d, height, width) float32 array
        t minibatches.
    momentum : float or None
        The weight of the new statistics in the running ones; None for their mean.

    Returns
    -------
    outputs : tuple of t arrays
        In training mode, in turn.
    tested : array
        The output of the first minibatch in evaluation mode, after the training.
    state : dict of arrays
        The ``state_dict`` at the end.
    """
    layer = kind(values.shape[2], momentum=momentum)
    outputs = tuple(layer(torch.tensor(x)).detach().numpy() for x in values)
    tested = layer.eval()(torch.tensor(values[0])).detach().numpy()
    return outputs, tested, {name: value.numpy() for name, value in layer.state_dict().items()}


# --- The network ------------------------------------------------------------------------------


def built(
    kind: Any, widths: tuple[int, ...], normalized: bool, x: np.ndarray, y: np.ndarray, seed: int
) -> tuple[Any, ...]:
    """Return the names of a network's parts, its scores, and the losses of three steps.

    Parameters
    ----------
    kind : type
        The student's network; ``kind(widths, normalization, momentum)`` makes one.
    widths : tuple of int
        The sizes of the layers, from the input to the scores.
    normalized : bool
        Whether the hidden layers have batch normalization.
    x, y : (m, n) and (m,) arrays
        One minibatch, which is trained on three times, with labels 0 … c−1.
    seed : int
        Draws the weights that the network is given.

    Returns
    -------
    names : str
        The names of its parameters and of its state.
    tested : (m, c) array
        The scores in evaluation mode, before the steps.
    losses : array
        What ``fit`` returns: the loss before each step.
    scores : (m, c) array
        The scores in evaluation mode, after the steps.
    """
    model = kind(widths, nn.BatchNorm1d if normalized else None, 0.3).double()
    trained, saved = map(sorted, _parameters_and_state(model))
    names = f"parameters {', '.join(trained)}; state_dict {', '.join(saved)}"
    rng = np.random.default_rng(seed)
    shapes = {name: value.shape for name, value in model.state_dict().items()}
    model.load_state_dict({name: _drawn(rng, shape) for name, shape in shapes.items()})
    inputs, labels = torch.tensor(x), torch.tensor(y)
    with torch.no_grad():
        tested = model.eval()(inputs).numpy()
    losses = model.fit([(inputs, labels)] * 3, lr=0.1)
    with torch.no_grad():
        return names, tested, np.array(losses), model.eval()(inputs).numpy()


def _drawn(rng: np.random.Generator, shape: Sequence[int]) -> Tensor:
    """Return numbers for a part of a network; those of a vector are positive."""
    numbers = rng.normal(size=shape) if len(shape) == 2 else rng.uniform(0.2, 1, size=shape)
    return torch.tensor(numbers)


def rescaled(
    kind: Any, x: np.ndarray, weight: np.ndarray, factors: Sequence[float]
) -> tuple[np.ndarray, ...]:
    """Return the scores in training for each factor of the hidden weights.

    Parameters
    ----------
    kind : type
        The student's network.
    x : (m, n) array
        A minibatch.
    weight : (h, n) array
        The weight of the hidden layer, before it is multiplied.
    factors : sequence of float
        What it is multiplied by.

    Returns
    -------
    scores : tuple of (m, 2) arrays
        For each factor those in training mode.
    """
    model = kind((x.shape[1], len(weight), 2), nn.BatchNorm1d, momentum=0.1).double()
    state, scores = model.state_dict(), []
    for factor in factors:
        model.load_state_dict({**state, "layers.0.weight": torch.tensor(factor * weight)})
        scores.append(model(torch.tensor(x)).detach().numpy())
    return tuple(scores)


# --- How a network is tested ------------------------------------------------------------------


def evaluated(
    function: Any, x: np.ndarray, y: np.ndarray, size: int, training: bool, seed: int
) -> tuple[Any, ...]:
    """Return what a function says of a network, and how it leaves the network.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, x, y, size)`` returns a loss and an accuracy.
    x, y : (m, n) and (m,) arrays
        The examples, with labels 0 to 2.
    size : int
        Examples in a minibatch.
    training : bool
        Whether the network comes in training mode.
    seed : int
        Draws the weights and the running averages.

    Returns
    -------
    sizes : array of int
        How many examples each forward pass had.
    in_order : bool
        Whether the examples came once and in their order, if at least m came.
    without_graph : bool
        Whether no forward pass recorded a graph.
    loss, accuracy : float
        What the function returned.
    are_floats : bool
        Whether both are of the type float.
    modes : int
        How many modules are in training mode afterwards.
    kept : tuple of arrays
        The running averages afterwards.
    """
    model = nn.Sequential(nn.Linear(x.shape[1], 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))
    _randomize(model.double(), seed)
    model.train(training)
    seen: list[tuple[Tensor, bool]] = []
    hook = model.register_forward_hook(
        lambda _, inputs, scores: seen.append((inputs[0], scores.requires_grad))
    )
    examples = torch.tensor(x)
    loss, accuracy = function(model, examples, torch.tensor(y), size)
    hook.remove()
    passed = torch.cat([inputs for inputs, _ in seen])
    return (
        np.array([len(inputs) for inputs, _ in seen]),
        len(passed) < len(x) or torch.equal(passed, examples),
        not any(graph for _, graph in seen),
        float(loss),
        float(accuracy),
        isinstance(loss, float) and isinstance(accuracy, float),
        _in_training(model),
        _kept(model),
    )


@torch.no_grad()
def _randomize(model: nn.Module, seed: int) -> None:
    """Give a network weights, biases and running averages of a seed."""
    rng = np.random.default_rng(seed)
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.copy_(_drawn(rng, value.shape))


def _in_training(model: nn.Module) -> int:
    """Return how many modules are in training mode."""
    return sum(module.training for module in model.modules())


def _kept(model: nn.Module) -> tuple[np.ndarray, ...]:
    """Return the running averages of all layers."""
    return tuple(value.numpy().copy() for name, value in model.named_buffers() if value.dim())


# --- Statistics computed anew -----------------------------------------------------------------


def recalibrated(
    function: Any, batches: Sequence[np.ndarray], training: bool, seed: int
) -> tuple[Any, ...]:
    """Return the statistics, momenta, mode and weights of a network after a function had it.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, batches)`` changes the model.
    batches : sequence of (m, n) arrays
        The minibatches; their sizes may differ.
    training : bool
        Whether the network comes in training mode.
    seed : int
        Draws the weights and the running averages.

    Returns
    -------
    kept : tuple of arrays
        The running averages of all layers.
    counts : array of int
        The number of minibatches that each normalization has counted.
    momenta : array
        The momentum of each normalization; −1 stands for None.
    modes : int
        How many modules are in training mode.
    weights : tuple of arrays
        The parameters.
    """
    inner = nn.Sequential(nn.Linear(batches[0].shape[1], 3), nn.BatchNorm1d(3, momentum=0.2))
    outer = nn.Unflatten(1, (2, 1, 1, 1)), nn.BatchNorm3d(2, momentum=0.3), nn.Flatten()
    model = nn.Sequential(inner, nn.ReLU(), nn.Linear(3, 2), *outer)
    _randomize(model.double(), seed)
    _age(model)
    model.train(training)
    function(model, [torch.tensor(x) for x in batches])
    momenta = [layer.momentum for layer in _normalizations(model)]
    momenta = [-1.0 if momentum is None else momentum for momentum in momenta]
    counts = [int(layer.num_batches_tracked or 0) for layer in _normalizations(model)]
    weights = tuple(value.detach().numpy().copy() for value in model.parameters())
    return _kept(model), np.array(counts), np.array(momenta, float), _in_training(model), weights


def _normalizations(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "running_mean")]


def _age(model: nn.Module) -> None:
    """Let the layers have seen five minibatches."""
    for layer in _normalizations(model):
        if layer.num_batches_tracked is not None:
            layer.num_batches_tracked.fill_(5)


def averaged(function: Any, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the statistics of a layer alone after a function had it, with one minibatch.

    Parameters
    ----------
    function : callable
        The student's function, as in :func:`recalibrated`.
    x : (m, d) array
        The minibatch.

    Returns
    -------
    kept : tuple of two (d,) arrays
        The running mean and the running variance.
    """
    model = nn.Sequential(nn.BatchNorm1d(x.shape[1])).double()
    function(model, [torch.tensor(x)])
    return _kept(model)
