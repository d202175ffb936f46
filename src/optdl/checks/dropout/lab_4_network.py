"""The network."""

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
    parts=("the layers", "the weights", "what the dropout layers make of ones"),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, p in [([3, 4, 2], 0.4), ([2, 3, 4, 3, 2], 0.6)]:
        yield {"sizes": sizes, "p": p, "seed": int(rng.integers(1000))}


@exercise.fact("in evaluation mode the scores are those without dropout")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the new network gives the old scores in evaluation mode."""
    seed, sizes = int(rng.integers(1000)), [4, 6, 6, 3]
    x = rng.normal(size=(5, 4))
    scores = observe(drivers.score, function, x, sizes, 0.7, seed)
    expected = drivers.plain_network(sizes, seed)(torch.tensor(x)).detach().numpy()
    return np.allclose(scores, expected)


_OWN = {"Dropout": Dropout}


exercise.mistake(
    "all your dropout layers have the same seed, so that their masks are alike; "
    "the k-th has seed + k",
    ("            count += 1\n", ""),
    given=_OWN,
)

exercise.mistake(
    "you put one and the same layer behind each ReLU; make a new one for each",
    ("    count = 0\n", "    drop = Dropout(p, seed)\n"),
    ("layers.append(Dropout(p, seed + count))", "layers.append(drop)"),
    ("            count += 1\n", ""),
    given=_OWN,
)

exercise.mistake(
    "your k begins at 1; the layer behind the first ReLU has the seed itself",
    ("    count = 0\n", "    count = 1\n"),
    given=_OWN,
)

exercise.mistake(
    "you drop before the ReLU; the dropout layer stands behind it",
    ("        layers.append(layer)\n", ""),
    (
        "            count += 1\n",
        "            count += 1\n        layers.append(layer)\n",
    ),
    given=_OWN,
)

exercise.mistake(
    "you drop scores: a dropout layer stands behind the last layer; put one behind each ReLU only",
    (
        "isinstance(layer, nn.ReLU):",
        "layer is model[-1] or isinstance(layer, nn.ReLU):",
    ),
    given=_OWN,
)

exercise.mistake(
    "you drop behind each linear layer; put a dropout layer behind each ReLU only",
    ("isinstance(layer, nn.ReLU)", "isinstance(layer, nn.Linear)"),
    given=_OWN,
)

exercise.mistake(
    "only the first ReLU has a dropout layer; put one behind each",
    ("isinstance(layer, nn.ReLU):", "isinstance(layer, nn.ReLU) and not count:"),
    given=_OWN,
)

exercise.mistake(
    "you give your layers 1 − p; p is the probability of dropping, as it comes",
    ("append(Dropout(p, seed + count)", "append(Dropout(1 - p, seed + count)"),
    given=_OWN,
)

exercise.mistake(
    "you insert PyTorch's nn.Dropout, which has no generator of its own; insert your Dropout",
    ("layers.append(Dropout(p, seed + count))", "layers.append(nn.Dropout(p))"),
    given=_OWN,
)

exercise.mistake(
    "you make new linear layers, with other weights; take the layers of the network as they are",
    (
        "        layers.append(layer)\n",
        "        layers.append(\n"
        "            nn.Linear(layer.in_features, layer.out_features).double()\n"
        "            if isinstance(layer, nn.Linear) else layer\n"
        "        )\n",
    ),
    given=_OWN,
)
