"""Statistics of activations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.initialization import dead_share, layer_outputs
from optdl.labs.drivers import initialization as drivers
from optdl.observation import observe


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


exercise = Exercise(
    "LAB-2:statistics",
    activation_statistics,
    use=drivers.watched,
    parts=(
        "the names",
        "mean, std and dead of each",
        "the type of the numbers",
        "the mode afterwards",
        "the hooks that are left",
        "the hooks that are left after an error",
    ),
    rtol=1e-6,
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for count, m, training in [(1, 3, True), (2, 4, False)]:
        yield {
            "count": count,
            "x": rng.normal(size=(m, 3)).round(2),
            "seed": int(rng.integers(1000)),
            "training": training,
        }


@exercise.fact("the numbers are those of the outputs that optdl.initialization collects")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Compare with the outputs that optdl collects, and with NumPy."""
    seed, x = int(rng.integers(1000)), rng.normal(size=(8, 3))
    names, rows, *_ = observe(drivers.watched, function, 3, x, seed, False)
    outputs = layer_outputs(drivers.blocks(3, seed + 1).eval(), torch.tensor(x))
    units = {name: outputs[name] for name in ("1", "2.2", "3.2", "4.2")}
    expected = np.array([[h.mean(), h.std(), dead_share(h)] for h in units.values()])
    return names == tuple(units) and disagreement(expected, rows, 1e-5, 1e-8) is None


exercise.mistake(
    "your hooks stay in the network, and are called in every forward pass from "
    "now on; remove each by its handle",
    ("handle.remove()", "pass"),
)

exercise.mistake(
    "your hooks stay in the network if its forward pass fails; remove them in a `finally`",
    ("    try:\n", "    if True:\n"),
    (
        "    finally:\n        for handle in handles:",
        "    if True:\n        for handle in handles:",
    ),
)

exercise.mistake(
    "all your hooks use the name that the loop had last; give each hook its own "
    "name, by a function that makes the hook",
    ("watch(name: str)", "watch(_: str)"),
    ("found[name] = {", "found[names[-1]] = {"),
    (
        "    handles = []\n",
        "    handles = []\n"
        "    pairs = model.named_modules()\n"
        "    names = [one for one, part in pairs if isinstance(part, nn.ReLU)]\n",
    ),
)

exercise.mistake(
    "you watch every module, those that contain others among them; watch the "
    "`nn.ReLU` modules alone",
    ("isinstance(module, nn.ReLU)", "True"),
)

exercise.mistake(
    "you watch the linear layers, whose outputs are pre-activations; watch the `nn.ReLU` modules",
    ("isinstance(module, nn.ReLU)", "isinstance(module, nn.Linear)"),
)

exercise.mistake(
    "you measure what goes into the ReLU; measure what comes out, the third "
    "argument of a forward hook",
    (
        "            found[name] = {",
        "            output = inputs[0]\n            found[name] = {",
    ),
)

exercise.mistake(
    "you look at the outermost modules alone; `named_modules()` also gives those within others",
    ("model.named_modules()", "model.named_children()"),
)

exercise.mistake(
    "you keep the output and measure it after the forward pass, when a module "
    "that works in place has overwritten it; measure in the hook, or keep a copy",
    ("            found[name] = {\n", "            kept[name] = output\n"),
    ('                "mean": output.mean().item(),\n', ""),
    ('                "std": output.std(correction=0).item(),\n', ""),
    (
        '                "dead": (output == 0).all(dim=0).double().mean().item(),\n            }\n',
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
)

exercise.mistake(
    "your standard deviation divides by the number of values minus 1; divide by "
    "the number, with `correction=0`",
    ("correction=0", "correction=1"),
)

exercise.mistake("you return the variance; return its root", ("output.std(", "output.var("))

exercise.mistake(
    "you count single zeros; a unit is dead if it is zero for every example",
    ("(output == 0).all(dim=0)", "(output == 0)"),
)

exercise.mistake(
    "you count examples for which all units are zero; count units that are zero for all examples",
    ("all(dim=0)", "all(dim=1)"),
)

exercise.mistake(
    "you count a unit as dead if it is zero for any example; it is dead if it is "
    "zero for all of them",
    ("all(dim=0)", "any(dim=0)"),
)

exercise.mistake(
    "your network is in training mode while you measure, so that its batch "
    "normalization uses the batch, and changes; call `model.eval()` first",
    ("    model.eval()\n", "    model.train()\n"),
)

exercise.mistake(
    "you leave the network in evaluation mode; leave it in the mode in which it came",
    ("        model.train(was_training)\n", ""),
)

exercise.mistake(
    "you leave the network in training mode, whatever its mode was; leave it in "
    "the mode in which it came",
    ("model.train(was_training)", "model.train()"),
)

exercise.mistake(
    "you return tensors; return numbers, with `.item()`: a tensor can hold the "
    "whole graph of a forward pass",
    ("output.mean().item()", "output.mean()"),
    ("output.std(correction=0).item()", "output.std(correction=0)"),
    (".double().mean().item()", ".double().mean()"),
)

exercise.mistake(
    "your dict outlives the call, and brings the layers of networks from before; "
    "begin each call with an empty one",
    ("(model: nn.Module, x: Tensor)", "(model, x, found={})"),
    ("    found: dict[str, dict[str, float]] = {}\n", ""),
)
