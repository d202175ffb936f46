"""The student writes the loop that trains a network and returns the loss of each step."""

from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import optimizers as drivers


def train(model, optimizer, batches):
    """Train a model; return the loss of each step, a mean over its minibatch (Source: LAB-1)."""
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


exercise = Exercise("LAB-1:train", train, use=drivers.train)


@exercise.cases
def _(rng):
    for momentum, given in (
        (0.0, "a list"),
        (0.0, "an iterator"),
        (0.9, "a list"),
        (0.0, "a list, and a network that has gradients already"),
    ):
        count, m = rng.integers(2, 7, size=2)
        x = [*rng.normal(size=(count, m, rng.integers(2, 5))).round(2)]
        y = [*rng.integers(0, 3, size=(count, m))]
        x[-1], y[-1] = x[-1][1:], y[-1][1:]  # the last minibatch may be smaller
        yield x, y, int(rng.integers(1000)), momentum, given


@exercise.fact("the first loss is the mean of −ln p of the correct classes, in training mode")
def _(function, rng):
    def by_hand(model, optimizer, batches):
        [(x, y)] = batches
        return [-model.train()(x).softmax(dim=1)[range(len(y)), y].log().mean().item()]

    case = rng.normal(size=(1, 6, 3)), rng.integers(0, 3, size=(1, 6)), 5, 0.0, "a list"
    return exercise.agrees(function, by_hand, case, slice(1))


exercise.help(r"""
1. What does each of `zero_grad`, `backward` and `step` read, and what does it change?
2. Each minibatch is one step. The network turns the examples into scores,
   `nn.functional.cross_entropy` turns scores and labels into one loss, and `backward` puts its
   gradients where the optimizer reads them.
3. Switch to training mode. For each minibatch, do the four things of the task in their order, and
   append the loss, as a number, to a list that you return after the loop.
you leave out a minibatch that is smaller; take a step with each
    losses = [] → losses, size = [], 0
    optimizer.zero_grad()
    → size = max(size, len(y))\n        if len(y) < size: continue\n        optimizer.zero_grad()
you never clear the gradients, to which `backward` adds; call `optimizer.zero_grad()` in each step
    optimizer.zero_grad() →
you clear the gradients once; `backward` adds to them, so call `optimizer.zero_grad()` in each step
    optimizer.zero_grad() → ; model.train() → model.train()\n    optimizer.zero_grad()
your weights stay as they are: call `step()` after `backward`, and clear gradients before `backward`
    optimizer.zero_grad() → ; optimizer.step() → optimizer.zero_grad(), optimizer.step()
your step has the gradients of the minibatch before; the order is zero_grad, loss, backward, step
    optimizer.step() → ; optimizer.zero_grad() → optimizer.step(), optimizer.zero_grad()
your first step has the gradients from before the call, too; clear them before each `backward`
    optimizer.zero_grad() → ; optimizer.step() → optimizer.step(), optimizer.zero_grad()
you take two steps with each minibatch; take one
    optimizer.step() → optimizer.step(), optimizer.step()
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    (model(x), y) → (model(x), y, reduction="sum")
you apply softmax before cross_entropy, which applies it itself; give it the scores
    (model(x), y) → (model(x).softmax(dim=1), y)
you give scores to nll_loss, which expects logarithms of probabilities; use `cross_entropy`
    cross_entropy → nll_loss
your network is trained in evaluation mode, so dropout does nothing; call `model.train()` first
    model.train() →
your losses are those after each step; return the loss from which the step was taken
    loss.item() → nn.functional.cross_entropy(model(x), y).item()
""")
