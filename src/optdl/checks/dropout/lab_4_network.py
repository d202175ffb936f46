"""The student inserts the layer of the exercise before behind each ReLU of a network."""

import numpy as np
from torch import nn

from optdl.checks.dropout.lab_4_dropout import Dropout
from optdl.checks.exercise import Exercise
from optdl.labs.drivers import dropout as drivers


def with_dropout(model, p, seed):
    """Put Dropout(p, seed + k) behind the k-th ReLU of a network, from 0 on (Source: LAB-4)."""
    layers = []
    count = 0
    for layer in model:
        layers.append(layer)
        if isinstance(layer, nn.ReLU):
            layers.append(Dropout(p, seed + count))
            count += 1
    return nn.Sequential(*layers)


exercise = Exercise("LAB-4:network", with_dropout, use=drivers.network)


@exercise.cases
def _(rng):
    for hidden in (1, 3, 2):
        sizes = rng.integers(2, 6, size=hidden + 2).tolist()
        x, p = rng.normal(size=(2, sizes[0])).round(2), round(rng.uniform(0.3, 0.7), 2)
        yield x, sizes, p, int(rng.integers(1000))


@exercise.fact("in evaluation mode the new network has the scores of the given one")
def _(function, rng):
    x, sizes, seed = rng.normal(size=(5, 4)), [4, 6, 6, 3], int(rng.integers(1000))
    *_, scores = exercise.observe(function, x, sizes, 0.7, seed)
    *_, expected = exercise.observe(lambda model, *_: model, x, sizes, 0.0, seed)
    return np.allclose(scores, expected)


exercise.help(r"""
1. How do you recognize, in a loop over an `nn.Sequential`, a layer that dropout must follow?
2. Build a new list, with a new `Dropout` behind each ReLU; a counter of the ReLUs gives the seeds.
3. Loop over `model` and append each layer. If `isinstance` says that it is a ReLU, append a dropout
   layer with its own seed, and increase the counter. Finally unpack the list into `nn.Sequential`.
all your dropout layers have the same seed, so their masks are alike; the k-th has seed + k
    count += 1 → pass
you go through `modules()`, which gives the network itself, too; go through `model`, layer by layer
    for layer in model: → for layer in model.modules():
you go through `children()`, which gives a layer that stands twice once; go through `model`
    for layer in model: → for layer in model.children():
you put one and the same layer behind each ReLU; make a new one for each
    count = 0 → drop = Dropout(p, seed) ; append(Dropout(p, seed + count)) → append(drop)
    count += 1 → pass
you give your layers the probability of keeping; p is that of dropping
    append(Dropout(p → append(Dropout(1 - p
your first layer has the seed seed + 1; k counts from 0
    count = 0 → count = 1
you multiply the seed; the layer behind the k-th ReLU has the seed seed + k
    seed + count → seed * (count + 1)
you drop behind each linear layer; put a dropout layer behind each ReLU only
    nn.ReLU → nn.Linear
only the first ReLU has a dropout layer; put one behind each
    nn.ReLU): → nn.ReLU) and not count:
you insert PyTorch's nn.Dropout, which has no generator of its own; insert your Dropout
    (Dropout(p, seed + count)) → (nn.Dropout(p))
your seeds count all layers; k counts the ReLUs alone
    for layer in model: → for count, layer in enumerate(model): ; count += 1 → pass
you change the network that you are given; put the layers into a new `nn.Sequential`
    return nn.Sequential(*layers) → model._modules.clear()\n    return model.extend(layers)
""")
