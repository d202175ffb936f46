"""The student scales the layers of a damaged network by what hooks measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise
from optdl.checks.initialization.lab_2_initialize import initialize
from optdl.initialization import layer_outputs
from optdl.labs.drivers import initialization as drivers
from optdl.labs.initialization import DEPTH, GAINS, damage, network, sample
from optdl.observation import observe


@torch.no_grad()
def mend(model: nn.Module, x: Tensor, generator: torch.Generator) -> None:
    """Scale the linear layers, from first to last, so that their outputs have deviation 1.

    Biases become zero, and a layer whose weights are all equal is drawn anew before.

    Source: LAB-2.
    """

    def repair(layer: Any, inputs: Any) -> None:
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


exercise = Exercise(
    "LAB-2:mend",
    mend,
    use=drivers.mended,
    parts=(
        "the weights of the first layer",
        "the weights of the layer of equal weights",
        "the weights of the later layers",
        "the biases",
        "whether they are the network's own, and learn",
        "the number of hooks, of which one was there before",
    ),
    rtol=1e-4,
    atol=1e-5,
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for equal, depth, m in [(0.0, 1, 4), (0.5, 1, 5), (0.3, 3, 6)]:
        yield {
            "equal": equal,
            "depth": depth,
            "x": rng.normal(size=(m, 3)).round(2),
            "seed": int(rng.integers(1000)),
        }


@exercise.fact("on the damaged network of the lab, all linear outputs have deviation 1 afterwards")
def _(function: Any, rng: np.random.Generator) -> bool:
    model, seed = network(), int(rng.integers(1000))
    initialize(model, GAINS["damaged"], torch.Generator().manual_seed(seed))
    damage(model, seed)
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    mended = observe(drivers.mended_network, function, state, seed)
    model.load_state_dict({name: torch.tensor(value) for name, value in mended.items()})
    outputs = layer_outputs(model, sample())
    stds = [outputs[str(2 * number)].std() for number in range(DEPTH + 1)]
    return bool(np.allclose(stds, 1, rtol=1e-3))


exercise.hints(
    "If you divide the weights of one layer, what changes in the layers after it? At which moment "
    "of a forward pass must a layer be repaired?",
    "A pre-hook receives the layer and its input just before the layer computes its output with "
    "the weights that the hook has left. So one forward pass can repair all layers, one after "
    "another.",
    "In the hook, draw equal weights anew, set the bias to zero, compute the output for this input "
    "with `nn.functional.linear`, and divide the weight in place by the standard deviation of this "
    "output.",
)

exercise.mistakes(r"""
you measure all layers first and scale them afterwards, and each factor changes the inputs of the
layers behind; scale a layer before you measure the next
    layer.weight.div_( → layer.scale = (
    handle.remove()
    → handle.remove()\n    for layer in layers:\n        layer.weight.div_(layer.scale)
you divide by the variance; divide by the standard deviation
    output.std( → output.var(
your standard deviation divides by the number of values minus 1; divide by the number, with
`correction=0`
    correction=0 → correction=1
you measure the root of the mean square; the standard deviation is measured from the mean
    output.std(correction=0) → output.square().mean().sqrt()
you measure behind the ReLU; measure the output of the linear layer
    output.std( → output.relu().std(
you scale each unit by its own deviation; a layer has one factor
    output.std(correction=0) → output.std(dim=0, correction=0)[:, None]
you leave the biases as they are; set them to zero before you measure
    layer.bias.zero_() → pass
    layer.weight) → layer.weight, layer.bias)
you set the biases to zero after you have measured, so they enter your factor; do it before
    layer.bias.zero_() → pass
    layer.weight) → layer.weight, layer.bias)\n        layer.bias.zero_()
you scale a layer of equal weights as it is: its units still compute one and the same number, and
zeros become nan; draw it anew
    (layer.weight == layer.weight[0, 0]).all() → False
you draw a layer anew if its weights are zero; units are equal wherever all weights are equal,
whatever their value
    == layer.weight[0, 0] → == 0
you draw every layer anew; keep the weights that can be scaled
    (layer.weight == layer.weight[0, 0]).all() → True
you draw from torch's global random numbers; pass `generator=generator`, so the weights follow from
its seed alone
    , generator=generator →
you leave out the output layer; it is a linear layer like the others
    model.modules() → [*model.modules()][:-1]
you look at the outermost modules only; `modules()` and `named_modules()` also give those within
others
    model.modules() → model.children()
your hooks stay in the network, and scale it again in every forward pass; remove each by its handle
    handle.remove() → pass
you change a leaf that requires a gradient while autograd records: put `@torch.no_grad()` above the
function
    @torch.no_grad() →
you put a new parameter in the layer's place, which an optimizer that was made before does not know;
write into the weight that is there
    layer.weight.div_( → layer.weight = nn.Parameter(layer.weight /
you draw a layer anew if its rows are equal, as the row of a single unit always is; draw it anew
only if all of its weights are one number
    layer.weight[0, 0] → layer.weight[0]
""")
