"""The student writes a training loop in which BNP has its place."""

import numpy as np
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp as drivers


def train(model, optimizer, bnp, batches):
    """Return the loss of each step of a training, with BNP if it is not None (Source: LAB-5)."""
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        if bnp is not None:
            bnp.step()
        optimizer.step()
        losses.append(loss.item())
    return losses


exercise = Exercise("LAB-5:train", train, use=drivers.train)


@exercise.cases
def _(rng):
    for preconditioned in (True, False, True):
        count, rows, features = rng.integers(2, [6, 6, 5])
        x, y = rng.normal(size=(count, rows, features)), rng.integers(0, 3, size=(count, rows))
        lr = round(rng.uniform(0.05, 0.2), 2)
        x, y = [*x.round(2)], [*y]
        x[-1], y[-1] = x[-1][1:], y[-1][1:]  # the last minibatch may be smaller
        yield x, y, lr, int(rng.integers(1000)), preconditioned


@exercise.fact("the weights move at the rate 0.1 and stay at 0, whatever BNP does to the gradients")
def _(function, rng):
    x, y, seed = rng.normal(size=(2, 4, 3)), rng.integers(0, 3, size=(2, 4)), 5
    moved, kept = (exercise.observe(function, x, y, lr, seed, True)[2] for lr in (0.1, 0.0))
    start = exercise.use(lambda *_: [], x, y, 0.0, seed, False)[2]
    same = [all(map(np.array_equal, weights, start)) for weights in (moved, kept)]
    return same == [False, True]


exercise.help(r"""
1. What must exist before `bnp.step()` can do its work, and which part of the loop uses the result?
2. `bnp.step()` changes the gradients in place, so they have to be there, and the weights must not
   have been changed by them yet. The rest is an ordinary training loop.
3. Switch to training mode. For each minibatch, clear the gradients, compute the mean loss, run the
   backward pass, precondition if there is a `bnp`, take the step, and append the loss as a number.
you call `bnp.step()` after the optimizer's step; its place is between `backward` and that
    if bnp is not None:\n            bnp.step()\n        optimizer.step()
    → optimizer.step()\n        if bnp is not None:\n            bnp.step()
you precondition before `backward`, when there are no gradients; call `bnp.step()` right after it
    if bnp is not None:\n            bnp.step() →
    loss.backward() → if bnp is not None:\n            bnp.step()\n        loss.backward()
you never call `bnp.step()`; its place is between `backward` and `optimizer.step()`
    bnp.step() → pass
you never clear the gradients, to which `backward` adds; call `optimizer.zero_grad()` in each step
    optimizer.zero_grad() →
your first step has the gradients from before the call, too; clear them before each `backward`
    optimizer.zero_grad() → ; optimizer.step() → optimizer.step(), optimizer.zero_grad()
you clear the gradients after `backward`, so no step changes anything; clear them before
    optimizer.zero_grad() → ; loss.backward() → loss.backward(), optimizer.zero_grad()
    with `backward(`, else no step changes anything; call `loss.backward()` in each
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    (model(x), y) → (model(x), y, reduction="sum")
you apply softmax before cross_entropy, which applies it itself; give it the scores
    (model(x), y) → (model(x).softmax(dim=1), y)
your losses are those after each step; return the loss from which the step was taken
    loss.item() → nn.functional.cross_entropy(model(x), y).item()
your model stays in evaluation mode, without dropout and BNP's averages; call `model.train()` first
    model.train() →
your loss is minus the label's score, without a log-softmax; `cross_entropy` has it
    functional.cross_entropy → functional.nll_loss
""")
