"""The student draws the initial weights of all linear and convolutional layers of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import initialization as drivers
from optdl.observation import observe


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


exercise = Exercise(
    "LAB-2:initialize",
    initialize,
    use=drivers.initialized,
    parts=(
        "the weights of linear layers",
        "the weights of convolutions",
        "the biases",
        "the parameters of normalization layers",
        "whether they are the network's own, and learn",
    ),
    rtol=1e-5,
    atol=1e-7,
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for kind, gain in [("dense", 2**0.5), ("dense", 0.7), ("nested", 1.3), ("conv", 2**0.5)]:
        yield {"kind": kind, "gain": gain, "seed": int(rng.integers(1000))}
    yield {"kind": "groups", "gain": 1.2, "seed": int(rng.integers(1000))}


@exercise.fact("with the gain of the ReLU the weights are those of nn.init.kaiming_normal_")
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, gain = int(rng.integers(1000)), nn.init.calculate_gain("relu")
    dense, convolutions, *_ = observe(drivers.initialized, function, "conv", gain, seed)
    model, generator = drivers.small_network("conv", seed), torch.Generator().manual_seed(seed)
    expected = []
    for layer in model:
        if isinstance(layer, nn.Linear | nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            expected.append(layer.weight.detach().numpy())
    return disagreement(tuple(expected), (*convolutions, *dense), 1e-5, 1e-8) is None


exercise.hints(
    "How many inputs does one unit of an `nn.Linear` add up, and how many does one output channel "
    "of an `nn.Conv2d` add up at one position?",
    r"In layers of both kinds, `weight[0]` holds all weights of the first unit, so its number of "
    r"entries is the fan-in. The standard deviation is $g/\sqrt{n_{in}}$.",
    "Go through `model.modules()`. For each linear or convolutional layer, draw the weight in "
    "place, with mean 0, this standard deviation and the generator; then set the bias, if there is "
    "one, to zero.",
)

exercise.mistakes(r"""
you pass the variance gain² / fan_in; `normal_` wants the standard deviation, its root
    gain / fan_in**0.5 → gain**2 / fan_in
you divide the gain by fan_in; the standard deviation is the gain over the root of fan_in
    fan_in**0.5 → fan_in
you take the number of outputs, `weight.shape[0]`; fan_in is the number of inputs of one unit
    layer.weight[0].numel() → layer.weight.shape[0]
you take the fan-out, which counts the outputs; fan_in is the number of inputs of one unit
    layer.weight[0].numel() → layer.weight[:, 0].numel()
the area of the kernel is missing in the fan_in of your convolutions: one unit adds up all entries
of its kernel
    layer.weight[0].numel() → layer.weight.shape[1]
your fan_in counts all channels; in a convolution with groups a unit sees those of its own group
only, so count the entries of one kernel, `weight[0]`
    .numel() → .numel() * getattr(layer, 'groups', 1)
you draw from the uniform distribution on plus or minus the standard deviation; draw from the normal
distribution
    normal_(0, gain / fan_in**0.5, → uniform_(-gain / fan_in**0.5, gain / fan_in**0.5,
you draw from torch's global random numbers; pass `generator=generator`, so the weights follow from
its seed alone
    , generator=generator →
you set the seed anew before each layer, so layers of one shape get the same weights; let the
generator go on
    :\n            fan_in
    → :\n            generator.manual_seed(generator.initial_seed())\n            fan_in
you look at the outermost modules only; `modules()` and `named_modules()` also give those within
others
    model.modules() → model.children()
you leave out the convolutions; `nn.Conv2d` has a weight and a bias, too
    nn.Linear | nn.Conv2d → nn.Linear
you draw the factors of normalization layers as well; they stay as they are
    isinstance(layer, nn.Linear | nn.Conv2d) → getattr(layer, 'weight', None) is not None
you leave the biases as they are; set them to zero
    layer.bias.zero_() → pass
your function fails at a layer without biases, whose `bias` is None; skip it
    layer.bias is not None → True
you change a leaf that requires a gradient while autograd records: put `@torch.no_grad()` above the
function
    @torch.no_grad() →
you put a new parameter in the layer's place, which an optimizer that was made before does not know;
write into the weight that is there
    layer.weight.normal_(
    → layer.weight = nn.Parameter(layer.weight.clone())\n            layer.weight.normal_(
""")
