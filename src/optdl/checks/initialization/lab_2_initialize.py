"""The student draws the initial weights of all linear and convolutional layers of a network."""

import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import initialization as drivers


@torch.no_grad()
def initialize(model, gain, generator):
    """Draw the weights of linear and convolutional layers from N(0, gain² / fan_in).

    Biases are zero; other layers stay as they are. Source: LAB-2.
    """
    for layer in model.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d):
            fan_in = layer.weight[0].numel()
            layer.weight.normal_(0, gain / fan_in**0.5, generator=generator)
            if layer.bias is not None:
                layer.bias.zero_()


exercise = Exercise("LAB-2:initialize", initialize, use=drivers.initialize, rtol=1e-5, atol=1e-7)


@exercise.cases
def _(rng):
    for kind in ("dense", "dense", "nested, with a subclass", "convolutional", "groups"):
        sizes, gain = rng.permutation(5)[:3] + 2, round(rng.uniform(0.5, 2), 2)
        yield kind, sizes.tolist(), gain, int(rng.integers(1000))


@exercise.fact("with ReLU's gain and the same generator, weights are those of `kaiming_normal_`")
def _(function, rng):
    def torchs(model, gain, generator):
        for layer in model[0], model[2], model[5]:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(layer.bias)

    case = "groups", [2, 3, 4], nn.init.calculate_gain("relu"), int(rng.integers(1000))
    return exercise.agrees(function, torchs, case, slice(1), rtol=1e-5, atol=1e-8)


exercise.help(r"""
1. How many inputs does a unit of an `nn.Linear`, or a channel of an `nn.Conv2d`, add up?
2. In layers of both kinds, `weight[0]` holds all weights of the first unit, so its number of
   entries is the fan-in. The standard deviation is $g/\sqrt{n_{in}}$.
3. Go through `model.modules()`. For each linear or convolutional layer, draw the weight in place,
   with mean 0, this deviation and the generator; then set the bias, if there is one, to zero.
your standard deviation is gain² / fan_in, the variance; take its root, gain / √fan_in
    gain / fan_in**0.5 → gain**2 / fan_in
you divide the gain by fan_in; the standard deviation is the gain over the root of fan_in
    fan_in**0.5 → fan_in
you take the number of outputs, `weight.shape[0]`; fan_in is the number of inputs of one unit
    layer.weight[0].numel() → layer.weight.shape[0]
your convolutions' fan_in lacks the kernel's area: a unit adds up all entries of its kernel
    layer.weight[0].numel() → layer.weight.shape[1]
your fan_in counts all channels; with groups a unit sees its own group only: count `weight[0]`
    .numel() → .numel() * getattr(layer, 'groups', 1)
you draw from the uniform distribution on ± the standard deviation; draw from the normal one
    normal_(0, gain / fan_in**0.5, → uniform_(-gain / fan_in**0.5, gain / fan_in**0.5,
you draw from torch's global generator; pass `generator=generator`, whose seed decides the weights
    , generator=generator →
you leave out the inner layer, which has no biases; go through `modules()`, and draw each
    model.modules() → model.children()
you leave out the convolutions; `nn.Conv2d` has a weight and a bias, too
    nn.Linear | nn.Conv2d → nn.Linear
you change layers of other kinds; draw `nn.Linear` and `nn.Conv2d`, and leave all others as they are
    for layer in model.modules(): → for name, value in model.named_parameters():\n
            _ = value.zero_() if name.endswith("bias") else None\n    for layer in model.modules():
    isinstance(layer, nn.Linear | nn.Conv2d) → getattr(layer, "weight", torch.ones(1)).ndim > 1
    layer.bias is not None → False
""")
