"""The student inserts the layer of the exercise before behind each ReLU of a network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.checks.dropout.lab_4_dropout import Dropout
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import dropout as drivers
from optdl.observation import observe


def with_dropout(model: nn.Sequential, p: float, seed: int) -> nn.Sequential:
    """Return the layers of a network, and behind its k-th ReLU, from 0 on, Dropout(p, seed + k).

    Source: LAB-4.
    """
    layers = []
    count = 0
    for layer in model:
        layers.append(layer)
        if isinstance(layer, nn.ReLU):
            layers.append(Dropout(p, seed + count))
            count += 1
    return nn.Sequential(*layers)


exercise = Exercise(
    "LAB-4:network",
    with_dropout,
    use=drivers.insert_layers,
    parts=(
        "the positions of the dropout layers",
        "whether the other layers are those of the given network",
        "what the dropout layers make of ones",
        "whether the given network stays as it is",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, p in [([3, 4, 2], 0.4), ([2, 3, 4, 3, 2], 0.6)]:
        yield {"sizes": sizes, "p": p, "seed": int(rng.integers(1000))}


@exercise.fact("in evaluation mode the scores are those without dropout")
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, sizes = int(rng.integers(1000)), [4, 6, 6, 3]
    x = rng.normal(size=(5, 4))
    scores = observe(drivers.score, function, x, sizes, 0.7, seed)
    expected = drivers.plain_network(sizes, seed)(torch.tensor(x)).detach().numpy()
    return np.allclose(scores, expected)


exercise.hints(
    "An `nn.Sequential` can be iterated like a list. How do you recognize, in such a loop, a layer "
    "that a dropout layer must follow?",
    "Build a new list: each layer of the network goes into it, and each ReLU is followed by a new "
    "`Dropout`. A counter of the ReLUs gives the seeds.",
    "Loop over `model` and append each layer. If `isinstance` says that it is a ReLU, append a "
    "dropout layer with its own seed, and increase the counter. Finally unpack the list into "
    "`nn.Sequential`.",
)

exercise.mistakes(r"""
all your dropout layers have the same seed, so their masks are alike; the k-th has seed + k
    count += 1 → pass
you put one and the same layer behind each ReLU; make a new one for each
    count = 0 → drop = Dropout(p, seed)
    append(Dropout(p, seed + count)) → append(drop)
    count += 1 → pass
you multiply the seed; the layer behind the k-th ReLU has the seed seed + k
    seed + count → seed * (count + 1)
you drop behind each linear layer; put a dropout layer behind each ReLU only
    nn.ReLU → nn.Linear
only the first ReLU has a dropout layer; put one behind each
    nn.ReLU): → nn.ReLU) and not count:
you insert PyTorch's nn.Dropout, which has no generator of its own; insert your Dropout
    (Dropout(p, seed + count)) → (nn.Dropout(p))
your seeds count all layers; k counts the ReLUs alone
    for layer in model: → for count, layer in enumerate(model):
    count += 1 → pass
you insert the dropout layers into the network that you are given; return a new one
    return nn.Sequential(*layers)
    → for k, layer in enumerate(layers):\n
            if isinstance(layer, Dropout):\n
                model.insert(k, layer)\n
        return model
""")
