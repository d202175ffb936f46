"""The student computes the loss and the accuracy of a network in evaluation mode."""

import torch
from torch import nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Exercise
from optdl.labs.drivers import batchnorm as drivers
from optdl.labs.drivers.follow import fill


@torch.no_grad()
def evaluate(model, x, y, size):
    """Return the mean cross-entropy and the accuracy, in evaluation mode (Source: LAB-3)."""
    training = model.training
    model.eval()
    loss, correct = 0.0, 0.0
    for inputs, labels in zip(torch.split(x, size), torch.split(y, size), strict=True):
        scores = model(inputs)
        loss += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
        correct += (scores.argmax(dim=1) == labels).sum().item()
    model.train(training)
    return loss / len(y), correct / len(y)


exercise = Exercise("LAB-3:evaluate", evaluate, use=drivers.evaluate, rtol=1e-6)


@exercise.cases
def _(rng):
    for whole, training in [(True, True), (False, False), (False, True), (False, False)]:
        size, count = map(int, rng.integers(2, 5, size=2))
        m = size * count if whole else size * count + int(rng.integers(1, size))
        x, y = rng.normal(size=(m, rng.integers(2, 6))).round(2), rng.integers(0, 3, size=m)
        yield x, y, size, training, int(rng.integers(1000))


@exercise.fact("loss and accuracy are those of all examples in one pass in evaluation mode")
def _(function, rng):
    x, y, seed = rng.normal(size=(11, 4)), rng.integers(0, 3, size=11), int(rng.integers(1000))
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).double()
    scores, labels = fill(model, seed).eval()(torch.tensor(x)), torch.tensor(y)
    loss = nn.functional.cross_entropy(scores, labels).item()
    right = loss, (scores.argmax(dim=1) == labels).double().mean().item()
    found = (exercise.observe(function, x, y, size, True, seed)[1] for size in (11, 3))
    return all(disagreement(right, one, 1e-5, 1e-8) is None for one in found)


exercise.help(r"""
1. How must results of minibatches of different sizes be combined if all examples count equally?
2. Sum over the examples, and divide once at the end. With `reduction="sum"`, `cross_entropy`
   returns the sum over a minibatch, and correct answers can be counted.
3. Remember the mode and switch to evaluation mode. Split `x` and `y` with `torch.split`, add up
   losses and matches of `argmax` with the labels, restore the mode, and divide both by `len(y)`.
your network is tested in the mode in which it comes; call `model.eval()` first
    model.eval() → pass
your results are means over minibatches; a smaller last one counts too much: average over examples
    , reduction="sum").item() → ).item() * len(y) / -(-len(y) // size)
    labels).sum().item() → labels).double().mean().item() * len(y) / -(-len(y) // size)
you multiply each mean loss by `size`; the last minibatch may be smaller, so take its own number
    , reduction="sum").item() → ).item() * size
you leave out the last minibatch when it is smaller; all examples count
    scores = model(inputs) → if len(inputs) < size: break\n        scores = model(inputs)
you apply softmax before cross_entropy, which applies it itself; give it the scores
    cross_entropy(scores, → cross_entropy(scores.softmax(dim=1),
you return the share of wrong answers; the accuracy is that of the correct ones
    correct / len(y) → 1 - correct / len(y)
you take the largest score over the examples; take that over the classes, `dim=1`
    argmax(dim=1) → argmax(dim=0)
your loss is a mean over minibatches; a smaller last one counts too much: average over examples
    , reduction="sum").item() → ).item() * len(y) / -(-len(y) // size)
""")
