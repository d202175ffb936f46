"""The student writes a training loop in which BNP has its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp as drivers
from optdl.observation import observe


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, bnp: Any, batches: Any
) -> list[float]:
    """Return the loss of each step, while the model is trained, with BNP if it is not None.

    Source: LAB-5.
    """
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        if bnp is not None:
            bnp.step()
        optimizer.step()
        losses.append(loss.item())
    return losses


exercise = Exercise(
    "LAB-5:train",
    train,
    use=drivers.train,
    parts=(
        *("whether a list is returned", "whether each loss is a float", "the losses"),
        *("the weights", "calls of bnp.step", "whether each of them finds gradients"),
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for steps, rows, preconditioned in [(3, 2, True), (4, 3, False), (5, 4, True)]:
        yield {
            "x": rng.normal(size=(steps, rows, 3)).round(2),
            "y": rng.integers(0, 3, size=(steps, rows)),
            "seed": int(rng.integers(1000)),
            "preconditioned": preconditioned,
        }


@exercise.fact("at a learning rate of 0 the weights stay, and a minibatch keeps its loss")
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, widths = int(rng.integers(1000)), [3, 4, 2]
    x, y = rng.normal(size=(4, 3)), np.array([0, 1, 1, 0])
    (first, second), weights = observe(drivers.train_at_rate_zero, function, x, y, widths, seed)
    before = (value.detach().numpy() for value in drivers.nested_network(widths, seed).parameters())
    return first == second and all(map(np.array_equal, weights, before))


exercise.hints(
    "What must exist before `bnp.step()` can do its work, and which part of the loop uses the "
    "result?",
    "`bnp.step()` changes the gradients in place, so they have to be there, and the weights must "
    "not have been changed by them yet. The rest is an ordinary training loop.",
    "Switch to training mode. For each minibatch, clear the gradients, compute the mean "
    "cross-entropy, run the backward pass, precondition if there is a `bnp`, take the step, and "
    "append the loss as a number.",
)

_BNP_STEP = "        if bnp is not None:\n            bnp.step()\n"

exercise.mistakes(r"""
you precondition after the optimizer's step, which has used the plain gradients by then; call
`bnp.step()` between `backward` and `optimizer.step()`
    if bnp is not None:\n            bnp.step()\n        optimizer.step()
    → optimizer.step()\n        if bnp is not None:\n            bnp.step()
you precondition before `backward`, when there are no gradients; call `bnp.step()` between
`backward` and `optimizer.step()`
    if bnp is not None:\n            bnp.step() →
    loss.backward() → if bnp is not None:\n            bnp.step()\n        loss.backward()
your loop fails when `bnp` is None; leave its step out then
    if bnp is not None: → if True:
you never call `bnp.step()`; its place is between `backward` and `optimizer.step()`
    bnp.step() → pass
you never clear the gradients, and `backward` adds to those that were preconditioned; call
`optimizer.zero_grad()` in each step
    optimizer.zero_grad() →
you clear the gradients after `backward`, so no step changes anything; clear them before
    optimizer.zero_grad() →
    loss.backward() → loss.backward(), optimizer.zero_grad()
you keep the loss as a tensor, and with it the nodes of the graph of every step; keep the number,
`loss.item()`
    loss.item() → loss
your model stays in evaluation mode, in which dropout does nothing and the hooks of BNP see nothing;
call `model.train()` first
    model.train() →
you return after the first minibatch; move `return` out of the loop
    )\n    return losses → )\n        return losses
""")
