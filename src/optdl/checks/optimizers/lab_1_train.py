"""The student writes the loop that trains a network and returns the loss of each step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import optimizers as drivers
from optdl.observation import observe


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: Any) -> list[float]:
    """Return the loss of each step, a mean over its minibatch, while the model is trained.

    Source: LAB-1.
    """
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


exercise = Exercise(
    "LAB-1:train",
    train,
    use=drivers.trained,
    parts=(
        "whether a list is returned",
        "whether each loss is a float",
        "forward passes for each minibatch",
        "the first loss",
        "the later losses",
        "the weights",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for steps, m, momentum in [(3, 2, 0.0), (4, 5, 0.0), (6, 3, 0.9)]:
        yield {
            "x": rng.normal(size=(steps, m, 4)).round(2),
            "y": rng.integers(0, 3, size=(steps, m)),
            "seed": int(rng.integers(1000)),
            "momentum": momentum,
        }


@exercise.fact(
    "without minibatches nothing changes, and the loss of a minibatch falls at each "
    "step if it comes again and again"
)
def _(function: Any, rng: np.random.Generator) -> bool:
    seed, steps = int(rng.integers(1000)), 30
    nothing, before, after, losses = observe(drivers.repeat, function, seed, steps)
    rests = nothing == [] and disagreement(before, after, 0, 0) is None
    return rests and len(losses) == steps and all(b < a for a, b in itertools.pairwise(losses))


exercise.hints(
    "What does each of `zero_grad`, `backward` and `step` read, and what does it change?",
    "Each minibatch is one step. The network turns the examples into scores, "
    "`nn.functional.cross_entropy` turns scores and labels into one loss, and `backward` puts its "
    "gradients where the optimizer reads them.",
    "Switch to training mode. For each minibatch, do the four things of the task in their order, "
    "and append the loss, as a number, to a list that you return after the loop.",
)

exercise.mistakes(r"""
you never clear the gradients, and `backward` adds to them; call `optimizer.zero_grad()` in each
step
    optimizer.zero_grad() →
your weights stay as they are: take a step with `optimizer.step()` after `backward`, and clear the
gradients before `backward`, not after it
    optimizer.zero_grad() →
    optimizer.step() → optimizer.zero_grad(), optimizer.step()
you step before `backward`, with the gradients of the minibatch before; the order is zero_grad,
loss, backward, step
    optimizer.step() →
    optimizer.zero_grad() → optimizer.step(), optimizer.zero_grad()
you take two steps with each minibatch; take one
    optimizer.step() → optimizer.step(), optimizer.step()
you keep the loss as a tensor, and with it the nodes of its graph; keep the number, `loss.item()`
    loss.item() → loss
you make one tensor of the losses; return them as a list of numbers
    return losses → return torch.tensor(losses)
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    (model(x), y) → (model(x), y, reduction="sum")
you divide by the number of examples, and cross_entropy has done so already: its loss is the mean
over the minibatch
    (model(x), y) → (model(x), y) / len(y)
you apply softmax before cross_entropy, which applies it itself; give it the scores
    (model(x), y) → (model(x).softmax(dim=1), y)
you take the softmax over the examples, `dim=0`; the classes are axis 1, as cross_entropy takes them
by itself
    cross_entropy(model(x), y) → nll_loss(model(x).log_softmax(dim=0), y)
your model stays in evaluation mode, so dropout does nothing; call `model.train()` first
    model.train() →
you return after the first minibatch; move `return` out of the loop
    )\n    return losses → )\n        return losses
you return the running mean of the losses; return the loss of each step
    return losses → return [sum(losses[: k + 1]) / (k + 1) for k in range(len(losses))]
your losses are those after each step; return the loss from which the step was taken
    loss.item() → nn.functional.cross_entropy(model(x), y).item()
""")
