"""The student measures what each dense layer reads, through hooks that leave no trace."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp as drivers


def input_statistics(model, x):
    """Return mean and variance of what each dense layer reads, in one pass (Source: LAB-5)."""
    layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
    seen = {}

    def observe(layer, inputs):
        h = inputs[0]
        seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))

    handles = [layer.register_forward_pre_hook(observe) for layer in layers]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return [seen[layer] for layer in layers]


exercise = Exercise("LAB-5:input_statistics", input_statistics, use=drivers.input_statistics)


@exercise.cases
def _(rng):
    for layers, fails in ((1, False), (2, False), (3, True), (2, True)):
        widths = rng.integers(2, 6, size=layers + 1).tolist()
        x = rng.normal(1, 2, size=(int(rng.integers(2, 7)), widths[0])).round(2)
        yield x, widths, int(rng.integers(1000)), fails


@exercise.fact("in a chain the first pair is the mean and the variance, by N, of x, in this order")
def _(function, rng):
    x = rng.normal(1, 2, size=(5, 3))
    (mean, var), _ = exercise.observe(function, x, [3, 4, 2], 0, False)[0]
    found, expected = np.concatenate([mean, var]), [*x.mean(axis=0), *x.var(axis=0)]
    return len(found) == 6 and np.allclose(found, expected)


exercise.help(r"""
1. When can you see what a layer reads, and what must be undone, even if the pass fails?
2. A pre-hook can store the statistics of `inputs[0]` in a dict, with the layer as the key. A `try`
   with a `finally` around the pass removes the hooks in either case.
3. Collect the linear layers in a list, register the hook on each, and keep the handles. Run the
   network without gradients, remove the hooks, and return the statistics in the list's order.
your statistics are those of what the layers give; take what the layers read, `inputs[0]`
    (layer, inputs) → (layer, inputs, output) ; inputs[0] → output ; forward_pre_hook → forward_hook
your variance is the mean of the squares; subtract the mean first: `h.var(dim=0, correction=0)`
    h.var(dim=0, correction=0) → h.square().mean(dim=0)
your list is in the order in which the layers were called; the order is that of `model.modules()`
    [seen[layer] for layer in layers] → list(seen.values())
your hook returns something, which takes the place of the layer's input; let it return None
    correction=0)) → correction=0))\n        return seen[layer]
you remove hooks that are not yours; call `remove()` of your own handles
    for handle in handles:\n            handle.remove()
    → for layer in layers:\n            layer._forward_pre_hooks.clear()
you look at the children alone and miss layers in blocks; `modules()` finds layers at every depth
    model.modules() → model.children()
you switch the network to evaluation mode; run it in the mode in which each of its parts is
    try: → mode, _ = model.training, model.eval()\n    try:
    finally: → finally:\n        model.train(mode)
you leave the network in evaluation mode; run it in the mode in which it comes
    try: → model.eval()\n    try:
""")
