"""The student measures with hooks what every ReLU of a network gives."""

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
    found = {}

    def watch(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, h: Tensor) -> None:
            mean, std = h.mean().item(), h.std(correction=0).item()
            dead = (h == 0).all(dim=0).double().mean().item()
            found[name] = {"mean": mean, "std": std, "dead": dead}

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
        "the names, as positions in named_modules()",
        "mean",
        "std",
        "dead",
        "whether all numbers are floats",
        "the number of modules left in training mode",
        "the number of hooks, of which one was there before",
        "the number of hooks after a forward pass that fails",
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
    seed, x = int(rng.integers(1000)), rng.normal(size=(8, 3))
    _, *columns = observe(drivers.watched, function, 3, x, seed, False)
    outputs = layer_outputs(drivers.blocks(3, seed + 1).eval(), torch.tensor(x))
    units = [outputs[name] for name in ("1", "2.2", "3.2", "4.2")]
    expected = np.array([[h.mean(), h.std(), dead_share(h)] for h in units])
    return disagreement(expected, np.stack(columns[:3], axis=1), 1e-5, 1e-8) is None


exercise.hints(
    "What must be prepared before the forward pass, what is measured during it, and what must be "
    "restored afterwards, even if it fails?",
    "Before: register a hook on each `nn.ReLU`, keep the handles, and remember the mode. During: "
    "each hook measures its output and stores the numbers. Afterwards, in `finally`: undo what you "
    "did before.",
    "Each hook stores, under the name of its module, the mean and the standard deviation of all "
    "values. For `dead`, test for each column whether it is zero in all rows, and take the mean of "
    "these truth values.",
)

exercise.mistakes(r"""
your hooks stay in the network, and are called in every forward pass from now on; remove each by its
handle
    handle.remove() → pass
your hooks stay in the network if its forward pass fails; remove them in a `finally`
    try: → if True:
    finally: → if True:
all your hooks use the name that the loop variable has in the end, which is that of the last module;
give each hook a name of its own, by a function that makes the hook
    found[name] → found[[*model.named_modules()][-1][0]]
all your hooks use the name of the last ReLU; give each hook a name of its own, by a function that
makes the hook
    found[name] → found[[n for n, one in model.named_modules() if isinstance(one, nn.ReLU)][-1]]
you watch every module, also those that contain others; watch the `nn.ReLU` modules only
    isinstance(module, nn.ReLU) → True
you watch the linear layers, whose outputs are pre-activations; watch the `nn.ReLU` modules
    isinstance(module, nn.ReLU) → isinstance(module, nn.Linear)
you measure the input of the ReLU; measure its output, the third argument of a forward hook
    mean, std = → h = inputs[0]\n            mean, std =
you look at the outermost modules only; `modules()` and `named_modules()` also give those within
others
    model.named_modules() → model.named_children()
you keep the output and measure it after the forward pass, when a module that works in place has
overwritten it; measure in the hook, or keep a copy
    return hook →
    mean, std → found[name] = h\n        return hook\n    def measured(h):\n            mean, std
    found[name] = { → return {
    return found → return {name: measured(h) for name, h in found.items()}
your standard deviation divides by the number of values minus 1; divide by the number, with
`correction=0`
    correction=0 → correction=1
you take the mean of the standard deviations of the units; take one standard deviation over all
examples and units
    h.std(correction=0) → h.std(dim=0, correction=0).mean()
you count single zeros; a unit is dead if it is zero for every example
    .all(dim=0) →
you count examples for which all units are zero; count units that are zero for all examples
    all(dim=0) → all(dim=1)
you count a unit as dead if it is zero for any example; it is dead if it is zero for all of them
    all(dim=0) → any(dim=0)
your network is in training mode while you measure, so its batch normalization uses the minibatch,
and changes; call `model.eval()` first
    model.eval() → model.train()
you leave the network in evaluation mode; leave it in the mode in which it came
    model.train(was_training) →
you leave the network in training mode, whatever its mode was; leave it in the mode in which it came
    model.train(was_training) → model.train()
you return tensors; return numbers, with `.item()`: a tensor can hold the whole graph of a forward
pass
    h.mean().item() → h.mean()
    h.std(correction=0).item() → h.std(correction=0)
    .double().mean().item() → .double().mean()
your dict outlives the call, and still has the layers of earlier networks; begin each call with an
empty one
    (model: nn.Module, x: Tensor) → (model, x, found={})
    found = {} →
""")
