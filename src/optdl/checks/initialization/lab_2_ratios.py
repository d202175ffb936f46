"""Sizes of updates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import initialization as drivers
from optdl.observation import observe


def update_ratios(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor
) -> dict[str, float]:
    """Take one training step, and return its size relative to each weight matrix.

    Source: LAB-2.
    """
    model.train()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
    weights = {name: value for name, value in model.named_parameters() if value.ndim > 1}
    before = {name: value.detach().clone() for name, value in weights.items()}
    optimizer.step()
    return {
        name: ((value - before[name]).norm() / before[name].norm()).item()
        for name, value in weights.items()
    }


exercise = Exercise(
    "LAB-2:ratios",
    update_ratios,
    use=drivers.stepped,
    parts=("the names", "the ratios", "their type", "the parameters afterwards"),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, n, adam in [(3, 2, False), (4, 3, False), (5, 4, True)]:
        yield {
            "x": rng.normal(size=(2, m, n)).round(2),
            "y": rng.integers(0, 3, size=(2, m)),
            "seed": int(rng.integers(1000)),
            "adam": adam,
        }


@exercise.fact("for plain gradient descent a ratio is the rate times ‖g‖ / ‖θ‖")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Compare the first step of SGD, where momentum has no effect, with ε ‖g‖ / ‖θ‖."""
    seed, x, y = int(rng.integers(1000)), rng.normal(size=(6, 3)), rng.integers(0, 3, size=6)
    names, ratios, *_ = observe(drivers.stepped, function, x[None], y[None], seed, False)
    model, matrices = drivers.classifier(3, seed).train(), ("0.weight", "3.weight")
    weights = [model.get_parameter(name) for name in matrices]
    loss = nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
    gradients = torch.autograd.grad(loss, weights)
    pairs = zip(gradients, weights, strict=True)
    expected = np.array([[0.2 * float(g.norm() / value.norm()) for g, value in pairs]])
    return names == matrices and disagreement(expected, ratios, 1e-5, 1e-8) is None


exercise.mistake(
    "you keep the weights before the step without a copy, and they change with "
    "it; `detach()`, `.data` and `state_dict()` share memory, so add `clone()`",
    ("value.detach().clone()", "value.detach()"),
)

exercise.mistake("you never take the step; call `optimizer.step()`", ("    optimizer.step()\n", ""))

exercise.mistake(
    "you keep the gradients of the step before, and `backward` adds to them; "
    "call `optimizer.zero_grad()` first",
    ("    optimizer.zero_grad()\n", ""),
)

exercise.mistake(
    "your network stays in evaluation mode; a training step is taken in training "
    "mode, so call `model.train()` first",
    ("    model.train()\n", ""),
)

exercise.mistake(
    "you divide by the weights after the step; divide by those before it",
    ("/ before[name].norm()", "/ value.norm()"),
)

exercise.mistake(
    "you take the rate times the gradient for the update, which is right for "
    "plain gradient descent alone; compare the weights before and after the step",
    (
        "(value - before[name]).norm()",
        'optimizer.param_groups[0]["lr"] * value.grad.norm()',
    ),
)

exercise.mistake(
    "you divide standard deviations; here the sizes are norms, which the mean enters, too",
    (
        "(value - before[name]).norm() / before[name].norm()",
        "(value - before[name]).std() / before[name].std()",
    ),
)

exercise.mistake(
    "you divide squared norms; take their roots",
    (
        "(value - before[name]).norm() / before[name].norm()",
        "(value - before[name]).square().sum() / before[name].square().sum()",
    ),
)

exercise.mistake(
    "you include biases and the factors of normalization layers, which often "
    "begin at zero; take the parameters with two axes or more",
    (" if value.ndim > 1", ""),
)

exercise.mistake(
    "your loss is a sum over the minibatch; take its mean, as `cross_entropy` does by itself",
    ("cross_entropy(model(x), y)", 'cross_entropy(model(x), y, reduction="sum")'),
)

exercise.mistake(
    "you apply softmax before cross_entropy, which applies it itself; give it the scores",
    ("cross_entropy(model(x), y)", "cross_entropy(model(x).softmax(dim=1), y)"),
)

exercise.mistake(
    "you return tensors, and with them the graph behind the weights; return "
    "numbers, with `.item()`",
    (".norm()).item()", ".norm())"),
)
