"""Drivers of the lab on BNP: networks with hooks, a preconditioner, and a loop.

What a hook does shows in the gradients, in the averages, and in how many hooks are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

__all__ = [
    "Doubling",
    "change_gradients",
    "follow",
    "follow_with_defaults",
    "nested_network",
    "output_around",
    "read_statistics",
    "train",
    "train_at_rate_zero",
]


def nested_network(widths: Sequence[int], seed: int, *more: nn.Module) -> nn.Sequential:
    """Return a network in float64 whose first layers stand in a block of their own.

    Parameters
    ----------
    widths : sequence of int
        The sizes of the layers, from the input to the output.
    seed : int
        Draws the weights and the biases from the standard normal distribution.
    *more : modules
        What else stands at the end of the inner block, such as dropout.

    Returns
    -------
    model : Sequential
        The inner block of dense layers and tanh, then the last dense layer.
    """
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layer = nn.Linear(inputs, outputs).double()
        for p in layer.parameters():
            nn.init.normal_(p, generator=generator)
        layers += [layer, nn.Tanh()]
    return nn.Sequential(nn.Sequential(*layers[:-2], *more), layers[-2])


def _dense(model: nn.Module) -> Iterator[nn.Linear]:
    return (module for module in model.modules() if isinstance(module, nn.Linear))


def _hooks(model: nn.Module) -> int:
    """Return how many forward hooks a network has."""
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    )


# --- Precondition in place, and statistics ----------------------------------------------------


def change_gradients(function: Any, *arguments: Any) -> tuple[np.ndarray, ...]:
    """Return the gradients after a call, and the statistics, which are to stay.

    Parameters
    ----------
    function : callable
        The student's function; it works in place.
    *arguments : four arrays, and more
        The gradients of weight and bias, mean and variance of the inputs, then the further
        arguments of the function, which are passed on.

    Returns
    -------
    after : tuple of four arrays
        Both gradients, the mean and the variance after the call.
    """
    tensors = [torch.tensor(value) for value in arguments[:4]]
    function(*tensors, *arguments[4:])
    return tuple(value.numpy() for value in tensors)


def read_statistics(
    function: Any, x: np.ndarray, widths: list[int], seed: int, fails: bool
) -> tuple[Any, ...]:
    """Return the statistics, whether they have a graph, and what is left of the pass.

    With ``fails`` a second pass gets examples that are too wide, and raises; and the last layer
    comes before the others in ``modules()``, as a child of a block that only passes on its input.

    Parameters
    ----------
    function : callable
        The student's function; ``function(model, x)`` returns a pair for each dense layer.
    x : (m, widths[0]) array
        A minibatch.
    widths : list of int
        The sizes of the layers.
    seed : int
        Draws the weights.
    fails : bool
        Whether a second pass fails.

    Returns
    -------
    means, variances : tuples of arrays
        Those of the inputs of each dense layer, in the order that the function gives.
    has_no_graph, has_no_hooks : bool
        Whether no value requires a gradient, and whether no hook is left.
    training : bool
        Whether the network is still in training mode.
    passed_on : bool
        Whether the error of the second pass was passed on; True without ``fails``.
    """
    model = nested_network(widths, seed)
    if fails:
        early = nn.Identity()
        early.add_module("last", model[-1])
        model.insert(0, early)
    statistics = list(function(model, torch.tensor(x)))
    passed_on = not fails
    if fails:
        try:
            function(model, torch.zeros(2, widths[0] + 1, dtype=torch.double))
        except RuntimeError:
            passed_on = True
    means, variances = (
        tuple(value.detach().numpy() for value in values)
        for values in zip(*statistics, strict=True)
    )
    graph = any(value.requires_grad for pair in statistics for value in pair)
    return means, variances, not graph, not _hooks(model), model.training, passed_on


# --- BNP --------------------------------------------------------------------------------------


def follow(
    kind: Any, x: Sequence[np.ndarray], widths: list[int], seed: int, rho: float, event: str
) -> tuple[Any, ...]:
    """Train a network with BNP, and return what can be seen of it.

    ``event`` is what happens on the way: ``evaluated`` between a backward pass and its step;
    ``two passes`` before each step; ``resumed`` with a new network of the same weights after the
    first half; a ``frozen`` first layer; ``float32``, where the first layer has a hook of somebody
    else's, too.

    Parameters
    ----------
    kind : type
        The student's class; ``kind(model, rho=…, eps1=…, eps2=…)`` makes one.
    x : sequence of (m, widths[0]) arrays
        The minibatch of each step.
    widths : list of int
        The sizes of the layers.
    seed : int
        Draws the weights.
    rho : float
        The weight of the old running statistics in the new ones.
    event : str
        One of the above, or anything else for none.

    Returns
    -------
    *gradients : four tuples of arrays
        Of the weights and of the biases after the first step, then after the last step.
    means, variances : tuples of arrays
        The running statistics at the end.
    alike : bool
        Whether those of the start have the precision of the network.
    has_no_graph : bool
        Whether nothing that BNP holds requires a gradient.
    saved_means, saved_variances : tuples of arrays
        What was saved halfway, read at the end; empty unless ``resumed``.
    raises, stays : bool
        Whether a step without a forward pass raises a RuntimeError, and leaves the gradients.
    removed : bool
        Whether the network has its own hooks alone after ``remove``.
    """
    model = nested_network(widths, seed)
    saved: Any = {"mean": [], "var": []}
    if event == "float32":
        model.float()
        next(_dense(model)).register_forward_pre_hook(_nothing)
    if event == "frozen":
        next(_dense(model)).requires_grad_(False)
    others = _hooks(model)
    bnp = kind(model, rho=rho, eps1=0.1, eps2=0.01)
    begun = bnp.state_dict()
    dtypes = {a.dtype for name in ("mean", "var") for a in begun[name] if torch.is_tensor(a)}
    alike = dtypes <= {next(model.parameters()).dtype}
    path: list[Any] = []
    for number, rows in enumerate(x):
        if event == "resumed" and number == len(x) // 2:
            bnp, model, saved = _resumed(kind, bnp, model, rho, rows)
        path.append(_step(model, bnp, rows, event))
    state = bnp.state_dict()
    averages, graph = _averages(state), _has_graph([state, *vars(bnp).values()])
    second = _second_step(model, bnp)
    bnp.remove()
    gradients = (step[part::2] for step in (path[0], path[-1]) for part in (0, 1))
    return (
        *gradients,
        *averages,
        alike,
        not graph,
        *_averages(saved),
        *second,
        _hooks(model) == others,
    )


def _nothing(layer: nn.Module, inputs: Any) -> None:
    """Be a hook that is not BNP's."""


def _second_step(model: nn.Module, bnp: Any) -> tuple[bool, bool]:
    """Return whether a second step without a pass raises, and leaves the gradients."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    before = [gradient.clone() for gradient in gradients]
    try:
        bnp.step()
    except RuntimeError:
        raises = True
    else:
        raises = False
    after = [p.grad for p in model.parameters() if p.grad is not None]
    return raises, all(map(torch.equal, before, after))


def _step(
    model: nn.Module, bnp: Any, rows: np.ndarray, event: str = "none"
) -> tuple[np.ndarray, ...]:
    """Return the gradients that BNP leaves, after a small step along them."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    for p in parameters:
        p.grad = None
    x = torch.tensor(rows).to(parameters[0].dtype)
    if event == "two passes":
        model(3 * x[:1] + 1)
    (model(x) - 1).square().mean().backward()
    if event == "evaluated":
        model.eval()(3 * x[:1] + 1)
        model.train()
    bnp.step()
    gradients = [p.grad.numpy().copy() for p in parameters if p.grad is not None]
    with torch.no_grad():
        for p in parameters:
            if p.grad is not None:
                p.sub_(0.1 * p.grad)
    return tuple(gradients)


def _resumed(
    kind: Any, bnp: Any, model: nn.Sequential, rho: float, rows: np.ndarray
) -> tuple[Any, nn.Sequential, Any]:
    """Save, go on for a step, and return a new pair that takes up what was saved, and that."""
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state = bnp.state_dict()
    _step(model, bnp, 2 * rows)
    widths = [next(_dense(model)).in_features, *(layer.out_features for layer in _dense(model))]
    fresh = nested_network(widths, 0)
    fresh.load_state_dict(weights)
    resumed = kind(fresh, rho=rho, eps1=0.1, eps2=0.01)
    resumed.load_state_dict(state)
    return resumed, fresh, state


def _averages(state: Any) -> list[tuple[np.ndarray, ...]]:
    """Return the means and the variances of a state, as far as they are tensors in a list."""
    return [
        tuple(
            average.detach().numpy().copy() for average in state[name] if torch.is_tensor(average)
        )
        for name in ("mean", "var")
    ]


def _has_graph(value: Any) -> bool:
    """Return whether a value is a tensor with a graph, or a list or dict that holds one."""
    if isinstance(value, list | tuple | dict):
        return any(map(_has_graph, value.values() if isinstance(value, dict) else value))
    return type(value) is Tensor and value.requires_grad


def follow_with_defaults(
    kind: Any, x: Sequence[np.ndarray], widths: list[int], seed: int, rho: float
) -> tuple[tuple[np.ndarray, ...], ...]:
    """Return the gradients after each step of BNP whose ε₁ and ε₂ are not given.

    Parameters
    ----------
    kind : type
        The student's class, or BNP itself.
    x : sequence of (m, widths[0]) arrays
        The minibatch of each step.
    widths : list of int
        The sizes of the layers.
    seed : int
        Draws the weights.
    rho : float
        The weight of the old running statistics in the new ones.

    Returns
    -------
    gradients : tuple of tuples of arrays
        For each step those of all parameters, in their order.
    """
    model = nested_network(widths, seed)
    bnp = kind(model, rho=rho)
    return tuple(_step(model, bnp, rows) for rows in x)


@torch.no_grad()
def output_around(
    kind: Any, x: np.ndarray, widths: list[int], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a network gives with BNP, and what after BNP is removed.

    Parameters
    ----------
    kind : type
        The student's class.
    x : (m, widths[0]) array
        A minibatch.
    widths : list of int
        The sizes of the layers.
    seed : int
        Draws the weights.

    Returns
    -------
    watched, plain : (m, widths[-1]) arrays
        The outputs with the hooks, and after ``remove``.
    """
    model, inputs = nested_network(widths, seed), torch.tensor(x)
    bnp = kind(model)
    watched = model(inputs).numpy()
    bnp.remove()
    return watched, model(inputs).numpy()


# --- The training loop ------------------------------------------------------------------------


class Doubling:
    """Stands in for BNP: its step makes each gradient twice as large, plus a tenth."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = list(model.parameters())
        self.calls = self.early = 0

    def step(self) -> None:
        """Change the gradients; count the calls, and those without gradients."""
        self.calls += 1
        self.early += any(p.grad is None for p in self.parameters)
        for p in self.parameters:
            if p.grad is not None:
                p.grad.mul_(2).add_(0.1)


def train(
    function: Any, x: np.ndarray, y: np.ndarray, seed: int, preconditioned: bool
) -> tuple[Any, ...]:
    """Return whether losses are a list, and floats; losses, weights, and calls of ``bnp.step``.

    The network comes in evaluation mode, as one does that was tested before.

    Parameters
    ----------
    function : callable
        The student's loop; ``function(model, optimizer, bnp, batches)`` returns losses.
    x, y : (t, m, n) and (t, m) arrays
        t minibatches with labels 0 to 2.
    seed : int
        Draws the weights, and the masks of the dropout.
    preconditioned : bool
        Whether ``bnp`` is a :class:`Doubling`, or None.

    Returns
    -------
    is_list, are_floats : bool
        Whether the losses are a list, and each of them is of the type float.
    losses : (t,) array
        What the loop returned.
    weights : tuple of arrays
        The parameters at the end.
    calls : int
        How often ``bnp.step`` was called.
    in_time : bool
        Whether all gradients were there at each call; True without ``bnp``.
    """
    torch.manual_seed(seed)
    model = nested_network([x.shape[2], 4, 3], seed, nn.Dropout(0.5)).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    bnp = Doubling(model) if preconditioned else None
    batches = [
        (torch.tensor(rows), torch.tensor(labels)) for rows, labels in zip(x, y, strict=True)
    ]
    torch.manual_seed(seed + 1)
    losses = function(model, optimizer, bnp, batches)
    kinds = isinstance(losses, list), all(isinstance(loss, float) for loss in losses)
    weights = tuple(value.detach().numpy().copy() for value in model.parameters())
    calls = (bnp.calls, not bnp.early) if bnp else (0, True)
    return *kinds, np.array([*map(float, losses)]), weights, *calls


def train_at_rate_zero(
    function: Any, x: np.ndarray, y: np.ndarray, widths: list[int], seed: int
) -> tuple[tuple[float, ...], tuple[np.ndarray, ...]]:
    """Return the losses of two steps without a length on one minibatch, and the weights.

    Parameters
    ----------
    function : callable
        The student's loop, as in :func:`train`.
    x, y : (m, widths[0]) and (m,) arrays
        The minibatch.
    widths : list of int
        The sizes of the layers.
    seed : int
        Draws the weights.

    Returns
    -------
    losses : tuple of two floats
        Equal, where nothing but the step changes the network.
    weights : tuple of arrays
        The parameters at the end.
    """
    model, batch = nested_network(widths, seed), (torch.tensor(x), torch.tensor(y))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    losses = tuple(float(loss) for loss in function(model, optimizer, None, [batch, batch]))
    return losses, tuple(value.detach().numpy() for value in model.parameters())
