"""The student measures with hooks what every ReLU of a network gives."""

import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.initialization import dead_share, layer_outputs
from optdl.labs.drivers import initialization as drivers


def activation_statistics(model, x):
    """Return mean, deviation and share of dead units of every ReLU of a network (Source: LAB-2)."""
    found = dict.fromkeys(k for k, one in model.named_modules() if isinstance(one, nn.ReLU))

    def watch(name):
        def hook(module, inputs, h):
            mean, std = h.mean().item(), h.std(correction=0).item()
            dead = (h == 0).all(dim=0).double().mean().item()
            found[name] = {"mean": mean, "std": std, "dead": dead}

        return hook

    handles = []
    for name in found:
        handles.append(model.get_submodule(name).register_forward_hook(watch(name)))
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    return found


exercise = Exercise("LAB-2:statistics", activation_statistics, use=drivers.statistics, rtol=1e-6)


@exercise.cases
def _(rng):
    for depth, training in [(2, True), (2, False), (int(rng.integers(3, 5)), True)]:
        widths = rng.integers(3, 6, size=depth).tolist()
        x = rng.normal(size=rng.integers(2, 6, size=2)).round(2)
        x[0] = -30.0  # for this example no unit of the first ReLU is active
        yield widths, x, int(rng.integers(1000)), training


@exercise.fact("`mean`, `std` of all N, and `dead` units are those of outputs in evaluation mode")
def _(function, rng):
    def of_outputs(model, x):
        outputs = layer_outputs(model.eval(), x)
        relus = [name for name, module in model.named_modules() if isinstance(module, nn.ReLU)]
        units = {name: outputs[name] for name in relus}
        return {
            k: {"mean": h.mean(), "std": h.std(), "dead": dead_share(h)} for k, h in units.items()
        }

    case = [4, 3, 5], rng.normal(size=(8, 3)), int(rng.integers(1000)), False
    return exercise.agrees(function, of_outputs, case, slice(1), rtol=1e-5, atol=1e-8)


exercise.help(r"""
1. What is prepared before the pass, what is measured, and what is restored, even if it fails?
2. Before: register a hook on each `nn.ReLU`, keep the handles, and remember the mode. During: each
   hook measures its output and stores the numbers. Afterwards, in `finally`: undo all that.
3. Each hook stores, under the name of its module, the mean and the standard deviation of all
   values. For `dead`, take the mean over the columns of whether all rows are zero.
all your hooks use the name of the last ReLU; let a function make each hook, with its own name
    found[name] → found[[n for n, one in model.named_modules() if isinstance(one, nn.ReLU)][-1]]
your dict is in the order in which the ReLUs were called; the order is that of `named_modules()`
    mean, std → found.pop(name)\n            mean, std
you measure the input of the ReLU; measure its output, the third argument of a forward hook
    mean, std = → h = inputs[0]\n            mean, std =
your hook returns something, which takes the place of the output; let it return None
    "dead": dead} → "dead": dead}\n            return found[name]
you measure after the pass, when a module in place has overwritten outputs; measure in the hook
    return hook →
    mean, std → found[name] = h\n        return hook\n    def measured(h):\n            mean, std
    found[name] = { → return {
    return found → return {name: measured(h) for name, h in found.items()}
your standard deviation divides by N − 1; divide by the number N of values, with `correction=0`
    correction=0 → correction=1
you take the mean of the units' standard deviations; take one over all examples and units
    h.std(correction=0) → h.std(dim=0, correction=0).mean()
your network stays in evaluation mode if its forward pass fails; put the modes back in `finally`
    handle.remove()\n        for module, training in modes.items():\n            module.training
    → handle.remove()\n    for module, training in modes.items():\n        module.training
you count single zeros; a unit is dead if it is zero for every example
    .all(dim=0) →
you count examples for which all units are zero; count units that are zero for all examples
    all(dim=0) → all(dim=1)
you count a unit as dead if it is zero for any example; it is dead if it is zero for all of them
    all(dim=0) → any(dim=0)
you measure in training mode, so batch normalization uses x, and changes; call `model.eval()` first
    model.eval() → model.train()
you count a unit as dead if it is nearly zero; a dead unit gives exactly zero for every example
    h == 0 → h < 1e-3
you measure in the mode in which the network comes; call `model.eval()` first
    model.eval() → pass
""")
