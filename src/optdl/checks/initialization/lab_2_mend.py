"""The student scales the layers of a damaged network by what hooks measure."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import initialization as drivers


@torch.no_grad()
def mend(model, x, generator):
    """Scale the linear layers, from first to last, so that their outputs have deviation 1.

    Biases become zero, and a layer whose weights are all equal is drawn anew before. Source: LAB-2.
    """

    def repair(layer, inputs):
        if (layer.weight == layer.weight[0, 0]).all():
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


exercise = Exercise("LAB-2:mend", mend, use=drivers.mend, rtol=1e-4, atol=1e-5)


@exercise.cases
def _(rng):
    for number, depth in enumerate([2, 2, 4]):
        widths = rng.choice([5, 6, 7], size=depth).tolist()
        widths[:2] = rng.permutation([5, 7]).tolist()
        values = rng.uniform(0.2, 0.9, size=99).round(2).tolist()
        # rounding gives equal weights of such a value a deviation that is not 0
        rounded = next(one for one in values if torch.full(widths[1::-1], one).std() > 0)
        x = rng.normal(size=rng.integers(3, 7, size=2)).round(2)
        yield [0.0, 0.5, rounded][number], widths, x, int(rng.integers(1000))


@exercise.fact("all linear outputs on `x` have the standard deviation 1 afterwards")
def _(function, rng):
    case = 0.1, [8] * 6, rng.normal(size=(20, 5)), int(rng.integers(1000))
    deviations = exercise.observe(function, *case)[2]
    return len(deviations) == 7 and bool(np.allclose(deviations, 1, rtol=1e-3))


exercise.help(r"""
1. What changes in the layers after one that you mend, and when in a pass must it be mended?
2. A pre-hook receives the layer and its input just before the layer computes its output with the
   weights that the hook has left. So one forward pass can repair all layers, one after another.
3. In the hook, draw equal weights anew, set the bias to zero, compute the output for this input
   with `nn.functional.linear`, and divide the weight in place by the output's standard deviation.
you measure all layers before you scale any; scale a layer before you measure the next
    layer.weight.div_( → layer.scale = (
    handle.remove()
    → handle.remove()\n    for layer in layers:\n        layer.weight.div_(layer.scale)
you hand on a layer's output from before you scale it; scale first, as in a pre-hook
    (layer, inputs) → (layer, inputs, output) ; forward_pre_hook → forward_hook
you divide by the variance; divide by the standard deviation
    output.std( → output.var(
your standard deviation divides by N − 1; divide by the number N of values, with `correction=0`
    correction=0 → correction=1
you measure the root of the mean square; the standard deviation is measured from the mean
    output.std(correction=0) → output.square().mean().sqrt()
you measure behind the ReLU; measure the output of the linear layer
    output.std( → output.relu().std(
you scale each unit by its own deviation; a layer has one factor
    output.std(correction=0) → output.std(dim=0, correction=0)[:, None]
you leave the biases as they are; set them to zero before you measure
    layer.bias.zero_() → pass ; layer.weight) → layer.weight, layer.bias)
you set the biases to zero after you have measured, so they enter your factor; do it before
    layer.bias.zero_() → pass
    layer.weight) → layer.weight, layer.bias)\n        layer.bias.zero_()
you scale a layer of equal weights, whose units stay alike, or become nan; draw it anew
    (layer.weight == layer.weight[0, 0]).all() → False
you draw a layer anew only if its weights are zero; do so whenever all of them are equal
    == layer.weight[0, 0] → == 0
you miss equal weights where a mean or deviation is rounded; compare all with one, `weight[0, 0]`
    (layer.weight == layer.weight[0, 0]).all() → layer.weight.std() == 0
you draw the weights of a layer in several calls; draw all of them by one call
    layer.weight.normal_( → _ = [row.normal_(
    generator=generator) → generator=generator) for row in layer.weight]
you draw every layer anew; keep the weights that can be scaled
    (layer.weight == layer.weight[0, 0]).all() → True
you draw from torch's global generator; pass `generator=generator`, whose seed decides the weights
    , generator=generator →
you leave out the output layer; it is a linear layer like the others
    model.modules() → [*model.modules()][:-1]
you look at the outermost modules only; `modules()` and `named_modules()` give those within, too
    model.modules() → model.children()
you draw a layer anew if its rows are equal, as a single one is; do so if all weights are one number
    layer.weight[0, 0] → layer.weight[0]
you draw a layer anew if its weights are nearly equal; weights that differ at all can be scaled
    (layer.weight == layer.weight[0, 0]).all() → layer.weight.std() < 1e-6
""")
