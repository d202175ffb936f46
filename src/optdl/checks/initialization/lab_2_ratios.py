"""The student takes a training step, and measures it relative to the weights."""

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
    parts=(
        "the names, as positions in named_parameters()",
        "the ratios of the first step",
        "the ratios of the second step",
        "whether all ratios are floats",
        "the parameters afterwards",
    ),
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
    seed, x, y = int(rng.integers(1000)), rng.normal(size=(6, 3)), rng.integers(0, 3, size=6)
    # in the first step momentum has no effect
    _, ratios, *_ = observe(
        drivers.stepped, function, x[None].repeat(2, 0), y[None].repeat(2, 0), seed, False
    )
    model = drivers.classifier(3, seed).train()
    weights = [model.get_parameter(name) for name in ("0.weight", "3.weight")]
    loss = nn.functional.cross_entropy(model(torch.tensor(x)), torch.tensor(y))
    pairs = zip(torch.autograd.grad(loss, weights), weights, strict=True)
    expected = np.array([0.2 * float(g.norm() / value.norm()) for g, value in pairs])
    return disagreement(expected, ratios, 1e-5, 1e-8) is None


exercise.hints(
    "Which quantities do you need from before `optimizer.step()`, and do they still exist after "
    "it?",
    "The step changes the weights in place, by a rule that you do not know. What you can measure "
    "for any optimizer is the difference between the weights after the step and copies from before "
    "it.",
    "After `backward`, copy each parameter with two axes or more, and take the step. For each of "
    "them, divide the norm of its change by the norm of its copy, and return the ratio as a number "
    "under its name.",
)

exercise.mistakes(r"""
you keep the weights before the step without a copy, and they change with it; `detach()`, `.data`
and `state_dict()` share memory, so add `clone()`
    detach().clone() → detach()
you never take the step; call `optimizer.step()`
    optimizer.step() → pass
you keep the gradients of the step before, and `backward` adds to them; call `optimizer.zero_grad()`
first
    optimizer.zero_grad() → pass
your network stays in evaluation mode; a training step is taken in training mode, so call
`model.train()` first
    model.train() → pass
you divide by the weights after the step; divide by those before it
    / before[name].norm() → / value.norm()
you take the learning rate times the gradient for the update, which is right for plain gradient
descent only; compare the weights before and after the step
    (value - before[name]).norm() → optimizer.param_groups[0]["lr"] * value.grad.norm()
you divide the norm of the gradient; divide that of the update, the weights after the step minus
those before
    (value - before[name]) → value.grad
you subtract the norms of the weights; take the norm of their difference
    (value - before[name]).norm() → (value.norm() - before[name].norm())
you divide standard deviations; here the sizes are norms, which the mean enters, too
    ]).norm() / before[name].norm() → ]).std() / before[name].std()
you include biases and the factors of normalization layers, which often begin at zero; take the
parameters with two axes or more
    if value.ndim > 1 →
your loss is a sum over the minibatch; take its mean, as `cross_entropy` does by itself
    (model(x), y) → (model(x), y, reduction="sum")
you apply softmax before cross_entropy, which applies it itself; give it the scores
    (model(x), y) → (model(x).softmax(dim=1), y)
you return tensors, and with them the graph behind the weights; return numbers, with `.item()`
    .norm()).item() → .norm())
you choose parameters by their names, and the weight of a normalization has one axis; ask for two
axes or more
    if value.ndim > 1 → if "weight" in name
you take the spectral norm of a matrix; here the norm is the root of the sum of all squared entries
    (value - before[name]).norm() → torch.linalg.norm(value - before[name], 2)
    before[name].norm() → torch.linalg.norm(before[name], 2)
""")
