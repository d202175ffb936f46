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
    """Return how a module begins, what it gives in both modes, and what it remembers."""
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
    """Return the outputs of minibatches in training, that of the first in a test, and the state."""
    layer = kind(values.shape[2], momentum=momentum)
    outputs = tuple(layer(torch.tensor(x)).detach().numpy() for x in values)
    tested = layer.eval()(torch.tensor(values[0])).detach().numpy()
    return outputs, tested, {name: value.numpy() for name, value in layer.state_dict().items()}


# --- The network ------------------------------------------------------------------------------


def built(
    kind: Any, widths: tuple[int, ...], normalized: bool, x: np.ndarray, y: np.ndarray, seed: int
) -> tuple[Any, ...]:
    """Return the names of a network's parts, its scores, and the losses of three steps."""
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
    """Return the scores in training for each factor of the hidden weights."""
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
    """Return what a function says of a network, and how it leaves the network."""
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
    """Return the statistics, momenta, mode and weights of a network after a function had it."""
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
    """Return the statistics of a layer alone after a function had it, with one minibatch."""
    model = nn.Sequential(nn.BatchNorm1d(x.shape[1])).double()
    function(model, [torch.tensor(x)])
    return _kept(model)
