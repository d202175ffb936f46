"""Checks of the lab on initialization: weights, hooks, sizes of updates, a network to mend.

Functions get small networks of the check's own, whose weights follow from the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.initialization import dead_share, layer_outputs
from optdl.labs.drivers.figures import drawn
from optdl.labs.initialization import (
    DEPTH,
    GAINS,
    LAB,
    curves_by_start,
    damage,
    deviations,
    network,
    sample,
)
from optdl.labs.optimizers import accuracy
from optdl.labs.records import LabRecord

__all__ = ["EXERCISES", "RECORD"]


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
    return sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())


def _same(before: Sequence[nn.Parameter], model: nn.Module) -> bool:
    """Return whether a network's parameters are the tensors that they were, and still learn."""
    after = list(model.parameters())
    pairs = zip(before, after, strict=True)
    return len(before) == len(after) and all(a is b and b.requires_grad for a, b in pairs)


# --- Initial weights --------------------------------------------------------------------------


@torch.no_grad()
def initialize(model: nn.Module, gain: float, generator: torch.Generator) -> None:
    """Draw the weights of linear and convolutional layers from N(0, gain² / fan_in).

    Biases are zero; other layers stay as they are.

    Source: LAB-2.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            fan_in = layer.weight[0].numel()
            layer.weight.normal_(0, gain / fan_in**0.5, generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()


def _model(kind: str) -> nn.Sequential:
    """Return a network without a certain start: dense, nested, convolutional, or with groups."""
    if kind == "dense":
        return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    if kind == "nested":
        inner = nn.Sequential(nn.Linear(4, 4, bias=False), nn.LayerNorm(4), nn.ReLU())
        return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), inner, nn.Linear(4, 2))
    groups = 2 if kind == "groups" else 1
    convolutions = nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, (1, 2), groups=groups)
    return nn.Sequential(*convolutions, nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(4, 2))


def _initialized(function: Any, kind: str, gain: float, seed: int) -> tuple[Any, ...]:
    """Return the parameters afterwards, and whether they are still the network's own."""
    model = _model(kind)
    _fill(model, seed)
    before = list(model.parameters())
    torch.manual_seed(seed + 1)
    function(model, gain, torch.Generator().manual_seed(seed))
    return _values(model), _same(before, model)


def _starts(rng: np.random.Generator) -> Iterator[Case]:
    for kind, gain in [("dense", 2**0.5), ("dense", 0.7), ("nested", 1.3), ("conv", 2**0.5)]:
        yield {"kind": kind, "gain": gain, "seed": int(rng.integers(1000))}
    yield {"kind": "groups", "gain": 1.2, "seed": int(rng.integers(1000))}


def _is_kaiming_normal(function: Any, rng: np.random.Generator) -> bool:
    """Compare with torch's own, at the gain of the ReLU."""
    seed = int(rng.integers(1000))
    models = _model("conv"), _model("conv")
    function(models[0], nn.init.calculate_gain("relu"), torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed)
    for layer in models[1]:
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            layer.bias.data.zero_()  # type: ignore[union-attr]
    pairs = zip(*(model.parameters() for model in models), strict=True)
    return all(torch.allclose(got, expected, rtol=1e-5) for got, expected in pairs)


_NO_GRAD = (
    "you change a leaf that requires a gradient while autograd records: put `@torch.no_grad()` "
    "above the function"
)
_NEW_PARAMETER = (
    "you put a new parameter in the layer's place, which an optimizer that was made before does "
    "not know; write into the weight that is there"
)
_GLOBAL = (
    "you draw from torch's global random numbers; pass `generator=generator`, so that the weights "
    "follow from it alone"
)

INITIALIZE = Exercise(
    key="LAB-2:initialize",
    reference=initialize,
    use=_initialized,
    cases=_starts,
    parts=("the parameters", "whether they are the network's own, and learn"),
    rtol=1e-5,
    atol=1e-7,
    misconceptions=(
        mistake(
            "you pass the variance gain² / fan_in; `normal_` wants the standard deviation, its "
            "root",
            initialize,
            ("gain / fan_in**0.5", "gain**2 / fan_in"),
        ),
        mistake(
            "you divide the gain by fan_in; the standard deviation is the gain over the root "
            "of fan_in",
            initialize,
            ("fan_in**0.5", "fan_in"),
        ),
        mistake(
            "you take the number of outputs, `weight.shape[0]`; fan_in is the number of inputs "
            "of one unit",
            initialize,
            ("layer.weight[0].numel()", "layer.weight.shape[0]"),
        ),
        mistake(
            "the area of the kernel is missing in your fan_in of a convolution: one unit adds "
            "up all entries of its kernel",
            initialize,
            ("layer.weight[0].numel()", "layer.weight.shape[1]"),
        ),
        mistake(
            "your fan_in counts all channels, and in a convolution with groups a unit sees "
            "those of its own group alone; count the entries of one kernel, `weight[0]`",
            initialize,
            (
                "layer.weight[0].numel()",
                "layer.weight[0].numel() * getattr(layer, 'groups', 1)",
            ),
        ),
        mistake(
            "you draw from the uniform distribution on plus or minus the standard deviation; "
            "draw from the normal distribution",
            initialize,
            (
                "layer.weight.normal_(0, gain / fan_in**0.5, generator=generator)",
                "layer.weight.uniform_(-gain / fan_in**0.5, gain / fan_in**0.5, "
                "generator=generator)",
            ),
        ),
        mistake(_GLOBAL, initialize, (", generator=generator", "")),
        mistake(
            "you set the seed anew before each layer, so that layers of one shape get the same "
            "weights; let the generator go on",
            initialize,
            (
                "            fan_in = ",
                "            generator.manual_seed(generator.initial_seed())\n"
                "            fan_in = ",
            ),
        ),
        mistake(
            "you look at the outermost layers alone; `modules()` also gives those within other "
            "modules",
            initialize,
            ("model.modules()", "model.children()"),
        ),
        mistake(
            "you leave out the convolutions; `nn.Conv2d` has a weight and a bias, too",
            initialize,
            ("nn.Linear | nn.Conv2d", "nn.Linear"),
        ),
        mistake(
            "you draw the factors of normalization layers as well; they stay as they are",
            initialize,
            (
                "isinstance(layer, nn.Linear | nn.Conv2d)",
                "getattr(layer, 'weight', None) is not None",
            ),
        ),
        mistake(
            "you leave the biases as they are; set them to zero",
            initialize,
            ("layer.bias.zero_()", "pass"),
        ),
        mistake(
            "your function fails at a layer without biases, whose `bias` is None; skip it",
            initialize,
            ("layer.bias is not None", "True"),
        ),
        mistake(_NO_GRAD, initialize, ("@torch.no_grad()\n", "")),
        mistake(
            _NEW_PARAMETER,
            initialize,
            (
                "            layer.weight.normal_(0, gain / fan_in**0.5, generator=generator)",
                "            new = torch.empty_like(layer.weight)\n"
                "            new.normal_(0, gain / fan_in**0.5, generator=generator)\n"
                "            layer.weight = nn.Parameter(new)",
            ),
        ),
    ),
    properties=(
        Property(
            "with the gain of the ReLU the weights are those of nn.init.kaiming_normal_",
            _is_kaiming_normal,
        ),
    ),
)


# --- Statistics of activations ----------------------------------------------------------------


def activation_statistics(model: nn.Module, x: Tensor) -> dict[str, dict[str, float]]:
    """Return mean, standard deviation and share of dead units of every ReLU of a network.

    Source: LAB-2.
    """
    found: dict[str, dict[str, float]] = {}

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Tensor) -> None:
            found[name] = {
                "mean": output.mean().item(),
                "std": output.std(correction=0).item(),
                "dead": (output == 0).all(dim=0).double().mean().item(),
            }

        return hook

    handles = []
    for name, module in model.named_modules():
        if isinstance(module, nn.ReLU):
            handles.append(module.register_forward_hook(watch(name)))
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
        model.train(was_training)
    return found


def _blocks(count: int, seed: int) -> nn.Sequential:
    """Return a network with a ReLU at the top and one in each block; a unit of each is dead."""
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


def _watched(
    function: Any, count: int, x: np.ndarray, seed: int, training: bool
) -> tuple[Any, ...]:
    """Return the statistics of a network, after another was looked at, and what is left of it."""
    inputs = torch.tensor(x)
    function(_blocks(3, seed), inputs)
    model = _blocks(count, seed + 1).train(training)
    found = function(model, inputs)
    rows = [[float(one[name]) for name in ("mean", "std", "dead")] for one in found.values()]
    kinds = {type(number).__name__ for one in found.values() for number in one.values()}
    modes = " and ".join(sorted({str(module.training) for module in model.modules()}))
    left = _hooks(model)
    try:
        function(model, inputs[:, 1:])
    except Exception:
        late = _hooks(model) - left
    else:
        late = -1
    return tuple(found), np.array(rows), " and ".join(sorted(kinds)), modes, left, late


def _inputs(rng: np.random.Generator) -> Iterator[Case]:
    for count, m, training in [(1, 3, True), (2, 4, False)]:
        yield {
            "count": count,
            "x": rng.normal(size=(m, 3)).round(2),
            "seed": int(rng.integers(1000)),
            "training": training,
        }


def _agrees_with_the_course(function: Any, rng: np.random.Generator) -> bool:
    """Compare with the outputs that optdl collects, and with NumPy."""
    model = _blocks(3, int(rng.integers(1000))).eval()
    x = torch.tensor(rng.normal(size=(8, 3)))
    found = function(model, x)
    outputs = layer_outputs(model, x)
    return all(
        np.allclose(
            [found[name]["mean"], found[name]["std"], found[name]["dead"]],
            [outputs[name].mean(), outputs[name].std(), dead_share(outputs[name])],
        )
        for name in ("1", "2.2", "3.2", "4.2")
    )


ACTIVATION_STATISTICS = Exercise(
    key="LAB-2:statistics",
    reference=activation_statistics,
    use=_watched,
    cases=_inputs,
    parts=(
        "the names",
        "mean, std and dead of each",
        "the type of the numbers",
        "the mode afterwards",
        "the hooks that are left",
        "the hooks that are left after an error",
    ),
    rtol=1e-6,
    misconceptions=(
        mistake(
            "your hooks stay in the network, and are called in every forward pass from now "
            "on; remove each by its handle",
            activation_statistics,
            ("handle.remove()", "pass"),
        ),
        mistake(
            "your hooks stay in the network if its forward pass fails; remove them in a `finally`",
            activation_statistics,
            ("    try:\n", "    if True:\n"),
            (
                "    finally:\n        for handle in handles:",
                "    if True:\n        for handle in handles:",
            ),
        ),
        mistake(
            "all your hooks use the name that the loop had last; give each hook its own name, "
            "by a function that makes the hook",
            activation_statistics,
            ("watch(name: str)", "watch(_: str)"),
            ("found[name] = {", "found[names[-1]] = {"),
            (
                "    handles = []\n",
                "    handles = []\n"
                "    pairs = model.named_modules()\n"
                "    names = [one for one, part in pairs if isinstance(part, nn.ReLU)]\n",
            ),
        ),
        mistake(
            "you watch every module, those that contain others among them; watch the "
            "`nn.ReLU` modules alone",
            activation_statistics,
            ("isinstance(module, nn.ReLU)", "True"),
        ),
        mistake(
            "you watch the linear layers, whose outputs are pre-activations; watch the "
            "`nn.ReLU` modules",
            activation_statistics,
            ("isinstance(module, nn.ReLU)", "isinstance(module, nn.Linear)"),
        ),
        mistake(
            "you measure what goes into the ReLU; measure what comes out, the third argument "
            "of a forward hook",
            activation_statistics,
            (
                "            found[name] = {",
                "            output = inputs[0]\n            found[name] = {",
            ),
        ),
        mistake(
            "you look at the outermost modules alone; `named_modules()` also gives those "
            "within others",
            activation_statistics,
            ("model.named_modules()", "model.named_children()"),
        ),
        mistake(
            "you keep the output and measure it after the forward pass, when a module that "
            "works in place has overwritten it; measure in the hook, or keep a copy",
            activation_statistics,
            ("            found[name] = {\n", "            kept[name] = output\n"),
            ('                "mean": output.mean().item(),\n', ""),
            ('                "std": output.std(correction=0).item(),\n', ""),
            (
                '                "dead": (output == 0).all(dim=0).double().mean().item(),\n'
                "            }\n",
                "",
            ),
            ("    handles = []\n", "    handles, kept = [], {}\n"),
            (
                "    return found",
                "    for name, output in kept.items():\n"
                "        dead = (output == 0).all(dim=0).double().mean().item()\n"
                "        std = output.std(correction=0).item()\n"
                '        found[name] = {"mean": output.mean().item(), "std": std, '
                '"dead": dead}\n'
                "    return found",
            ),
        ),
        mistake(
            "your standard deviation divides by the number of values minus 1; divide by the "
            "number, with `correction=0`",
            activation_statistics,
            ("correction=0", "correction=1"),
        ),
        mistake(
            "you return the variance; return its root",
            activation_statistics,
            ("output.std(", "output.var("),
        ),
        mistake(
            "you count single zeros; a unit is dead if it is zero for every example",
            activation_statistics,
            ("(output == 0).all(dim=0)", "(output == 0)"),
        ),
        mistake(
            "you count examples for which all units are zero; count units that are zero for "
            "all examples",
            activation_statistics,
            ("all(dim=0)", "all(dim=1)"),
        ),
        mistake(
            "you count a unit as dead if it is zero for any example; it is dead if it is zero "
            "for all of them",
            activation_statistics,
            ("all(dim=0)", "any(dim=0)"),
        ),
        mistake(
            "your network is in training mode while you measure, so that its batch "
            "normalization uses the batch, and changes; call `model.eval()` first",
            activation_statistics,
            ("    model.eval()\n", "    model.train()\n"),
        ),
        mistake(
            "you leave the network in evaluation mode; leave it in the mode in which it came",
            activation_statistics,
            ("        model.train(was_training)\n", ""),
        ),
        mistake(
            "you leave the network in training mode, whatever its mode was; leave it in the "
            "mode in which it came",
            activation_statistics,
            ("model.train(was_training)", "model.train()"),
        ),
        mistake(
            "you return tensors; return numbers, with `.item()`: a tensor can hold the whole "
            "graph of a forward pass",
            activation_statistics,
            ("output.mean().item()", "output.mean()"),
            ("output.std(correction=0).item()", "output.std(correction=0)"),
            (".double().mean().item()", ".double().mean()"),
        ),
        mistake(
            "your dict outlives the call, and brings the layers of networks from before; "
            "begin each call with an empty one",
            activation_statistics,
            ("(model: nn.Module, x: Tensor)", "(model, x, found={})"),
            ("    found: dict[str, dict[str, float]] = {}\n", ""),
        ),
    ),
    properties=(
        Property(
            "the numbers are those of the outputs that optdl.initialization collects",
            _agrees_with_the_course,
        ),
    ),
)


# --- Sizes of updates -------------------------------------------------------------------------


def update_ratios(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> dict[str, float]:
    """Take one training step, and return its size relative to each weight matrix.

    Source: LAB-2.
    """
    model.train()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
    weights = {name: value for name, value in model.named_parameters() if value.ndim > 1}
    before = {name: value.detach().clone() for name, value in weights.items()}
    optimizer.step()
    return {
        name: ((value - before[name]).norm() / before[name].norm()).item()
        for name, value in weights.items()
    }


def _classifier(n: int, seed: int) -> nn.Sequential:
    """Return a network with batch normalization, in evaluation mode."""
    layers = nn.Linear(n, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3)
    model = nn.Sequential(*layers).double().eval()
    _fill(model, seed)
    return model


def _stepped(function: Any, x: np.ndarray, y: np.ndarray, seed: int, adam: bool) -> tuple[Any, ...]:
    """Return the ratios of two steps, their type, and the weights behind them."""
    model = _classifier(x.shape[2], seed)
    optimizer: torch.optim.Optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    if adam:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    ratios = [
        function(model, optimizer, torch.tensor(inputs), torch.tensor(labels))
        for inputs, labels in zip(x, y, strict=True)
    ]
    kinds = {type(value).__name__ for one in ratios for value in one.values()}
    numbers = np.array([[float(value) for value in one.values()] for one in ratios])
    return tuple(ratios[0]), numbers, " and ".join(sorted(kinds)), _values(model)


def _steps(rng: np.random.Generator) -> Iterator[Case]:
    for m, n, adam in [(3, 2, False), (4, 3, False), (5, 4, True)]:
        yield {
            "x": rng.normal(size=(2, m, n)).round(2),
            "y": rng.integers(0, 3, size=(2, m)),
            "seed": int(rng.integers(1000)),
            "adam": adam,
        }


def _is_rate_times_gradient(function: Any, rng: np.random.Generator) -> bool:
    """Compare plain gradient descent with ε ‖g‖ / ‖θ‖, from autograd."""
    model = _classifier(3, int(rng.integers(1000))).train()
    x, y = torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.integers(0, 3, size=6))
    weights = {name: value for name, value in model.named_parameters() if value.ndim == 2}
    loss = nn.functional.cross_entropy(model(x), y)
    gradients = torch.autograd.grad(loss, list(weights.values()))
    expected = {
        name: 0.3 * float(gradient.norm() / value.norm())
        for (name, value), gradient in zip(weights.items(), gradients, strict=True)
    }
    got = function(model, torch.optim.SGD(model.parameters(), lr=0.3), x, y)
    return set(got) == set(expected) and all(
        bool(np.isclose(got[name], expected[name])) for name in expected
    )


UPDATE_RATIOS = Exercise(
    key="LAB-2:ratios",
    reference=update_ratios,
    use=_stepped,
    cases=_steps,
    parts=("the names", "the ratios", "their type", "the parameters afterwards"),
    misconceptions=(
        mistake(
            "you keep the weights before the step without a copy, and they change with it; "
            "`detach()`, `.data` and `state_dict()` share memory, so add `clone()`",
            update_ratios,
            ("value.detach().clone()", "value.detach()"),
        ),
        mistake(
            "you never take the step; call `optimizer.step()`",
            update_ratios,
            ("    optimizer.step()\n", ""),
        ),
        mistake(
            "you keep the gradients of the step before, and `backward` adds to them; call "
            "`optimizer.zero_grad()` first",
            update_ratios,
            ("    optimizer.zero_grad()\n", ""),
        ),
        mistake(
            "your network stays in evaluation mode; a training step is taken in training "
            "mode, so call `model.train()` first",
            update_ratios,
            ("    model.train()\n", ""),
        ),
        mistake(
            "you divide by the weights after the step; divide by those before it",
            update_ratios,
            ("/ before[name].norm()", "/ value.norm()"),
        ),
        mistake(
            "you take the rate times the gradient for the update, which is right for plain "
            "gradient descent alone; compare the weights before and after the step",
            update_ratios,
            (
                "(value - before[name]).norm()",
                'optimizer.param_groups[0]["lr"] * value.grad.norm()',
            ),
        ),
        mistake(
            "you divide standard deviations; here the sizes are norms, which the mean enters, too",
            update_ratios,
            (
                "(value - before[name]).norm() / before[name].norm()",
                "(value - before[name]).std() / before[name].std()",
            ),
        ),
        mistake(
            "you divide squared norms; take their roots",
            update_ratios,
            (
                "(value - before[name]).norm() / before[name].norm()",
                "(value - before[name]).square().sum() / before[name].square().sum()",
            ),
        ),
        mistake(
            "you include biases and the factors of normalization layers, which often begin at "
            "zero; take the parameters with two axes or more",
            update_ratios,
            (" if value.ndim > 1", ""),
        ),
        mistake(
            "your loss is a sum over the minibatch; take its mean, as `cross_entropy` does by "
            "itself",
            update_ratios,
            ("cross_entropy(model(x), y)", 'cross_entropy(model(x), y, reduction="sum")'),
        ),
        mistake(
            "you apply softmax before cross_entropy, which applies it itself; give it the scores",
            update_ratios,
            ("cross_entropy(model(x), y)", "cross_entropy(model(x).softmax(dim=1), y)"),
        ),
        mistake(
            "you return tensors, and with them the graph behind the weights; return numbers, "
            "with `.item()`",
            update_ratios,
            (".norm()).item()", ".norm())"),
        ),
    ),
    properties=(
        Property(
            "for plain gradient descent a ratio is the rate times ‖g‖ / ‖θ‖",
            _is_rate_times_gradient,
        ),
    ),
)


# --- Mend a network ---------------------------------------------------------------------------


@torch.no_grad()
def mend(model: nn.Module, x: Tensor, generator: torch.Generator) -> None:
    """Scale the linear layers, from first to last, so that their outputs have deviation 1.

    Biases become zero, and a layer whose weights are all equal is drawn anew before.

    Source: LAB-2.
    """

    def repair(layer: Any, inputs: Any) -> None:
        if bool((layer.weight == layer.weight[0, 0]).all()):
            layer.weight.normal_(0, 1, generator=generator)
        layer.bias.zero_()
        output = nn.functional.linear(inputs[0], layer.weight)
        layer.weight.div_(output.std(correction=0))

    layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
    handles = [layer.register_forward_pre_hook(repair) for layer in layers]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()


def _damaged(equal: float, depth: int, seed: int) -> nn.Sequential:
    """Return a network with one layer of equal weights, between others that are too small."""
    layers: list[nn.Module] = [nn.Linear(3, 5), nn.ReLU()]
    for _ in range(depth):
        layers.append(nn.Sequential(nn.Linear(5, 5), nn.ReLU()))
    model = nn.Sequential(*layers, nn.Linear(5, 2))
    _fill(model, seed)
    with torch.no_grad():
        next(layers[2].parameters()).fill_(equal)
        next(model[-1].parameters()).mul_(0.01)
    return model


def _mended(function: Any, equal: float, depth: int, x: np.ndarray, seed: int) -> tuple[Any, ...]:
    """Return the parameters afterwards, whether they are the network's own, and hooks left."""
    model = _damaged(equal, depth, seed)
    before = list(model.parameters())
    torch.manual_seed(seed + 1)
    inputs = torch.tensor(x, dtype=torch.float32)
    function(model, inputs, torch.Generator().manual_seed(seed))
    return _values(model), _same(before, model), _hooks(model)


def _wrecks(rng: np.random.Generator) -> Iterator[Case]:
    for equal, depth, m in [(0.0, 1, 4), (0.5, 1, 5), (0.3, 3, 6)]:
        yield {
            "equal": equal,
            "depth": depth,
            "x": rng.normal(size=(m, 3)).round(2),
            "seed": int(rng.integers(1000)),
        }


def _outputs_have_deviation_one(function: Any, rng: np.random.Generator) -> bool:
    """Look at the network of the lab, with all its damages."""
    model, seed = network(), int(rng.integers(1000))
    initialize(model, GAINS["damaged"], torch.Generator().manual_seed(seed))
    damage(model, seed)
    function(model, sample(), torch.Generator().manual_seed(seed))
    outputs = layer_outputs(model, sample())
    found = [outputs[str(2 * number)].std() for number in range(DEPTH + 1)]
    return bool(np.allclose(found, 1, rtol=1e-3))


MEND = Exercise(
    key="LAB-2:mend",
    reference=mend,
    use=_mended,
    cases=_wrecks,
    parts=(
        "the parameters",
        "whether they are the network's own, and learn",
        "the hooks that are left",
    ),
    rtol=1e-4,
    atol=1e-5,
    misconceptions=(
        mistake(
            "you measure all layers first and scale them afterwards, and each factor changes "
            "the inputs of the layers behind; scale a layer before you measure the next",
            mend,
            (
                "layer.weight.div_(output.std(correction=0))",
                "found.append(output.std(correction=0))",
            ),
            ("    layers = [", "    found = []\n    layers = ["),
            (
                "            handle.remove()",
                "            handle.remove()\n"
                "    for layer, deviation in zip(layers, found):\n"
                "        layer.weight.div_(deviation)",
            ),
        ),
        mistake(
            "you divide by the variance; divide by the standard deviation",
            mend,
            ("output.std(", "output.var("),
        ),
        mistake(
            "your standard deviation divides by the number of values minus 1; divide by the "
            "number, with `correction=0`",
            mend,
            ("correction=0", "correction=1"),
        ),
        mistake(
            "you measure the root of the mean square; the standard deviation is measured from "
            "the mean",
            mend,
            ("output.std(correction=0)", "output.square().mean().sqrt()"),
        ),
        mistake(
            "you measure behind the ReLU; measure the output of the linear layer",
            mend,
            ("output.std(", "output.relu().std("),
        ),
        mistake(
            "you scale each unit by its own deviation; a layer has one factor",
            mend,
            ("output.std(correction=0)", "output.std(dim=0, correction=0)[:, None]"),
        ),
        mistake(
            "you leave the biases as they are; set them to zero before you measure",
            mend,
            ("        layer.bias.zero_()\n", ""),
            ("linear(inputs[0], layer.weight)", "linear(inputs[0], layer.weight, layer.bias)"),
        ),
        mistake(
            "you set the biases to zero after you have measured, so that they enter your "
            "factor; do it before",
            mend,
            ("        layer.bias.zero_()\n", ""),
            ("linear(inputs[0], layer.weight)", "linear(inputs[0], layer.weight, layer.bias)"),
            (
                "        layer.weight.div_(output.std(correction=0))",
                "        layer.weight.div_(output.std(correction=0))\n        layer.bias.zero_()",
            ),
        ),
        mistake(
            "you scale a layer of equal weights as it is: its units still compute one and the "
            "same number, and zeros become nan; draw it anew",
            mend,
            ("bool((layer.weight == layer.weight[0, 0]).all())", "False"),
        ),
        mistake(
            "you draw a layer anew if its weights are zero; units are equal wherever all "
            "weights are equal, whatever their value",
            mend,
            ("layer.weight == layer.weight[0, 0]", "layer.weight == 0"),
        ),
        mistake(
            "you draw every layer anew; keep the weights that can be scaled",
            mend,
            ("bool((layer.weight == layer.weight[0, 0]).all())", "True"),
        ),
        mistake(_GLOBAL, mend, (", generator=generator", "")),
        mistake(
            "you leave out the output layer; it is a linear layer like the others",
            mend,
            ("in model.modules() if isinstance", "in list(model.modules())[:-1] if isinstance"),
        ),
        mistake(
            "you look at the outermost layers alone; `modules()` also gives those within other "
            "modules",
            mend,
            ("model.modules()", "model.children()"),
        ),
        mistake(
            "your hooks stay in the network, and scale it again in every forward pass; remove "
            "each by its handle",
            mend,
            ("handle.remove()", "pass"),
        ),
        mistake(_NO_GRAD, mend, ("@torch.no_grad()\n", "")),
        mistake(
            _NEW_PARAMETER,
            mend,
            (
                "layer.weight.div_(output.std(correction=0))",
                "layer.weight = nn.Parameter(layer.weight / output.std(correction=0))",
            ),
        ),
    ),
    properties=(
        Property(
            "on the damaged network of the lab, all linear outputs have deviation 1 afterwards",
            _outputs_have_deviation_one,
        ),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_deviations(ax: Any, deviations: dict[str, list[float]]) -> None:
    """Draw the standard deviation of the activations over the hidden layers.

    Source: LAB-2.
    """
    for start, values in deviations.items():
        layers = range(1, len(values) + 1)
        ax.plot(layers, values, marker="o", label=start)
    ax.set_yscale("log")
    ax.set_xlabel("hidden layer")
    ax.set_ylabel("standard deviation of the activations")
    ax.legend()


def _draws_each_depth(function: Any, rng: np.random.Generator) -> bool:
    """Return whether networks of different depths are drawn whole, from layer 1 to the last."""
    depths = {f"start {number}": int(rng.integers(1, 9)) for number in range(3)}
    lines = drawn(function, {name: [0.5] * depth for name, depth in depths.items()})["lines"]
    ends = {name: (line[0][0], line[0][-1]) for name, line in lines.items()}
    return ends == {name: (1.0, float(depth)) for name, depth in depths.items()}


def _depths(rng: np.random.Generator) -> Iterator[Case]:
    for starts, depth in [(("He",), 2), (("small", "He"), 4), (("He", "Glorot", "small"), 7)]:
        yield {
            "deviations": {
                start: [float(value) for value in rng.uniform(0.1, 2, size=depth).round(3)]
                for start in starts
            }
        }


PLOT_DEVIATIONS = Exercise(
    key="LAB-2:plot",
    reference=plot_deviations,
    use=drawn,
    cases=_depths,
    misconceptions=(
        mistake(
            "your deviations lie on a linear axis, where the small ones cannot be told apart; "
            'use `ax.set_yscale("log")`',
            plot_deviations,
            ('    ax.set_yscale("log")\n', ""),
        ),
        mistake(
            "your layers lie on a logarithmic axis; a deviation that changes by one factor in "
            "each layer is a straight line over a linear one",
            plot_deviations,
            (
                'ax.set_yscale("log")',
                'ax.set_yscale("log")\n    ax.set_xscale("log")',
            ),
        ),
        mistake(
            "your layers begin at 0; the first hidden layer has the number 1",
            plot_deviations,
            ("range(1, len(values) + 1)", "range(len(values))"),
        ),
        mistake(
            "your axes are exchanged: the layers belong on the x axis",
            plot_deviations,
            ("ax.plot(layers, values,", "ax.plot(values, layers,"),
        ),
        mistake(
            "an axis has no label; add it with `ax.set_xlabel` and `ax.set_ylabel`",
            plot_deviations,
            ('    ax.set_xlabel("hidden layer")\n', ""),
        ),
        mistake(
            "there is no legend, so nobody knows which line is which; call `ax.legend()`",
            plot_deviations,
            ("    ax.legend()", "    pass"),
        ),
        mistake(
            "your lines have no labels; give each `label=start`",
            plot_deviations,
            (", label=start", ""),
        ),
    ),
    properties=(
        Property(
            "networks of different depths are drawn from layer 1 to the last", _draws_each_depth
        ),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    INITIALIZE,
    ACTIVATION_STATISTICS,
    UPDATE_RATIOS,
    MEND,
    PLOT_DEVIATIONS,
)


# --- The record -------------------------------------------------------------------------------


def _is_from(first: int, last: int) -> Any:
    """Return whether a value is a whole number of a range."""

    def fits(value: Any) -> bool:
        return type(value) is int and first <= value <= last

    return fits


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights on the validation examples."""
    model = network()
    model.load_state_dict(dict(weights))
    return accuracy(model)


def _vanished(record: LabRecord) -> float:
    values = deviations(record)["small"]
    return next((layer for layer, value in enumerate(values, 1) if value < 1e-3), 0)


def _dead(record: LabRecord) -> float:
    shares = curves_by_start(record)["damaged"]["dead"]
    return next((layer for layer, share in enumerate(shares, 1) if share == 1), 0)


RECORD = RecordCheck(
    key="LAB-2:record",
    lab=LAB,
    predictions={
        "vanished": (f"the number of a hidden layer, from 1 to {DEPTH}", _is_from(1, DEPTH)),
        "trained": (f"a number of networks, from 0 to {len(GAINS)}", _is_from(0, len(GAINS))),
    },
    evaluate=_evaluate,
    level=0.75,
    readings={
        "vanished": (
            "the first hidden layer in which the deviation of `small` is below 0.001",
            _vanished,
        ),
        "dead": ("the first hidden layer of `damaged` whose deviation is zero", _dead),
    },
    again=[{"start": "small"}, {"start": "mended"}],
)
