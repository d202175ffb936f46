"""Checks of the lab on initialization: weights, hooks, sizes of updates, a network to mend.

Functions get the networks of :mod:`optdl.labs.drivers.initialization`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.initialization import dead_share, layer_outputs
from optdl.labs.drivers import initialization as drivers
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
from optdl.observation import observe

__all__ = ["EXERCISES", "RECORD"]


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


def _starts(rng: np.random.Generator) -> Iterator[Case]:
    for kind, gain in [("dense", 2**0.5), ("dense", 0.7), ("nested", 1.3), ("conv", 2**0.5)]:
        yield {"kind": kind, "gain": gain, "seed": int(rng.integers(1000))}
    yield {"kind": "groups", "gain": 1.2, "seed": int(rng.integers(1000))}


def _is_kaiming_normal(function: Any, rng: np.random.Generator) -> bool:
    """Compare with torch's own, at the gain of the ReLU."""
    seed, gain = int(rng.integers(1000)), nn.init.calculate_gain("relu")
    got, _ = observe(drivers.initialized, function, "conv", gain, seed)
    model, generator = drivers.small_network("conv", seed), torch.Generator().manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            layer.bias.data.zero_()  # type: ignore[union-attr]
    expected = tuple(value.detach().numpy() for value in model.parameters())
    return disagreement(expected, got, 1e-5, 1e-8) is None


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
    use=drivers.initialized,
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
    seed, x = int(rng.integers(1000)), rng.normal(size=(8, 3))
    names, rows, *_ = observe(drivers.watched, function, 3, x, seed, False)
    outputs = layer_outputs(drivers.blocks(3, seed + 1).eval(), torch.tensor(x))
    units = {name: outputs[name] for name in ("1", "2.2", "3.2", "4.2")}
    expected = np.array([[h.mean(), h.std(), dead_share(h)] for h in units.values()])
    return names == tuple(units) and disagreement(expected, rows, 1e-5, 1e-8) is None


ACTIVATION_STATISTICS = Exercise(
    key="LAB-2:statistics",
    reference=activation_statistics,
    use=drivers.watched,
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


def _steps(rng: np.random.Generator) -> Iterator[Case]:
    for m, n, adam in [(3, 2, False), (4, 3, False), (5, 4, True)]:
        yield {
            "x": rng.normal(size=(2, m, n)).round(2),
            "y": rng.integers(0, 3, size=(2, m)),
            "seed": int(rng.integers(1000)),
            "adam": adam,
        }


def _is_rate_times_gradient(function: Any, rng: np.random.Generator) -> bool:
    """Compare the first step of SGD, where momentum has no effect, with ε ‖g‖ / ‖θ‖."""
    seed, x, y = int(rng.integers(1000)), rng.normal(size=(6, 3)), rng.integers(0, 3, size=6)
    names, ratios, *_ = observe(drivers.stepped, function, x[None], y[None], seed, False)
    model, matrices = drivers.classifier(3, seed).train(), ("0.weight", "3.weight")
    weights = [model.get_parameter(name) for name in matrices]
    loss = nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
    gradients = torch.autograd.grad(loss, weights)
    pairs = zip(gradients, weights, strict=True)
    expected = np.array([[0.2 * float(g.norm() / value.norm()) for g, value in pairs]])
    return names == matrices and disagreement(expected, ratios, 1e-5, 1e-8) is None


UPDATE_RATIOS = Exercise(
    key="LAB-2:ratios",
    reference=update_ratios,
    use=drivers.stepped,
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
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    mended = observe(drivers.mended_network, function, state, seed)
    model.load_state_dict({name: torch.tensor(value) for name, value in mended.items()})
    outputs = layer_outputs(model, sample())
    stds = [outputs[str(2 * number)].std() for number in range(DEPTH + 1)]
    return bool(np.allclose(stds, 1, rtol=1e-3))


MEND = Exercise(
    key="LAB-2:mend",
    reference=mend,
    use=drivers.mended,
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
    curves = {name: [0.5] * depth for name, depth in depths.items()}
    lines = observe(drawn, function, curves)["lines"]
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
