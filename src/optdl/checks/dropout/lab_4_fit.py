"""The student writes the loop that trains by epochs, validates, and stops early."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import dropout as drivers


def fit(model, train, validation, epochs, lr, batch, generator, stopper=None):
    """Train a model; return the training and the validation loss of each epoch (Source: LAB-4)."""
    x, y = train
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    losses, checked = [], []
    for _ in range(epochs):
        model.train()
        total = 0.0
        order = torch.randperm(len(y), generator=generator)
        for rows in torch.split(order, batch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / len(y))
        model.eval()
        with torch.no_grad():
            scores = model(validation[0])
            checked.append(nn.functional.cross_entropy(scores, validation[1]).item())
        if stopper is not None and stopper.update(model, checked[-1]):
            break
    if stopper is not None:
        stopper.restore(model)
    return losses, checked


exercise = Exercise("LAB-4:fit", fit, use=drivers.fit)


@exercise.cases
def _(rng):
    for epochs, stops in [(2, 0), (3, 0), (3, 9), (4, 2)]:
        batch = int(rng.integers(2, 4))
        m = int(rng.integers(2, 4)) * batch + 1  # the last minibatch has one example
        x = rng.normal(size=(m + m // 2, int(rng.integers(2, 5)))).round(2)
        y, lr = rng.integers(0, 2, size=m + m // 2), round(rng.uniform(0.1, 0.3), 2)
        yield x, y, epochs + int(rng.integers(2)), lr, batch, int(rng.integers(1000)), stops


@exercise.fact("at a rate of 0 each validation loss is that of the first weights, without dropout")
def _(function, rng):
    seed, x, y = int(rng.integers(1000)), rng.normal(size=(11, 4)), rng.integers(0, 2, size=11)
    _, (_, checked), _, weights, *_ = exercise.observe(function, x, y, 3, 0.0, 3, seed, 0)
    W, b, V, c = map(torch.tensor, weights)
    scores = torch.tanh(torch.tensor(x[:3]) @ W.T + b) @ V.T + c
    loss = nn.functional.cross_entropy(scores, torch.tensor(y[:3]))
    return np.allclose(checked, float(loss))


exercise.help(r"""
1. Which statements are executed once, which once for each epoch, which once for each minibatch?
2. Once: make the optimizer, and restore the best weights. For each epoch: switch both modes, draw
   the order, compute both losses, ask the stopper. For each minibatch: take a training step.
3. Cut the order with `torch.split`, and index `x` and `y` with each piece. Add up the losses times
   the lengths of their pieces, divide by `len(y)` at the end, and compute the validation loss.
you compute the validation loss with dropout; call `model.eval()` first
    model.eval() →
after the first validation your network stays in evaluation mode; call `model.train()` in each epoch
    model.train() → ; losses, checked = [], [] → losses, checked, _ = [], [], model.train()
your network is never in training mode, so dropout does nothing; call `model.train()` in each epoch
    model.train() →
you never clear the gradients, and `backward` adds to them; call `zero_grad()` for each minibatch
    optimizer.zero_grad() →
you clear the gradients once in an epoch; clear them for each minibatch
    optimizer.zero_grad() → ; total = 0.0 → total = 0.0\n        optimizer.zero_grad()
you train on the validation examples; take the steps with those of `train`
    x, y = train → x, y = validation
you draw the order of the examples once; draw a new one in each epoch
    order = torch.randperm(len(y), generator=generator) →
    losses, checked = [], []
    → losses, checked, order = [], [], torch.randperm(len(y), generator=generator)
you take the examples in their order; draw a new order in each epoch
    torch.randperm(len(y), generator=generator) → torch.arange(len(y))
you shuffle the examples and not their labels; take the same rows of both
    rows in torch.split(order, batch): → rows, own in zip(order.split(batch), y.split(batch)):
    y[rows]) → own)
you leave out examples where `batch` does not divide their number; the last minibatch is smaller
    , batch): → , batch)[: len(y) // batch]:
your training loss weighs a small last minibatch too much; weight each by its number of examples
    * len(rows) → ; total / len(y) → total / -(-len(y) // batch)
you multiply each mean loss by `batch`; the last minibatch may be smaller, so take its own number
    * len(rows) → * batch
your training loss is that of the last minibatch; it is the mean over the examples of the epoch
    total / len(y) → loss.item()
you compute the training loss after the epoch, without dropout; it is a mean of the steps' losses
    losses.append(total / len(y)) →
    scores = model(validation[0]) → scores = nn.functional.cross_entropy(model(x), y)\n
                losses.append(scores.item())\n            scores = model(validation[0])
the losses that you add up are means over minibatches; multiply each by its number of examples
    * len(rows) →
you make a new optimizer in each epoch, which begins again with the velocity 0; make it once
    total = 0.0 → total, optimizer = 0.0, torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)\n    losses → losses
your optimizer has no momentum; give torch.optim.SGD `momentum=0.9`
    , momentum=0.9 →
your loss is a sum over the minibatch; cross_entropy takes the mean unless you tell it otherwise
    y[rows]) → y[rows], reduction="sum") ; * len(rows) →
you train with Adam; the task asks for `torch.optim.SGD` with `momentum=0.9`
    SGD( → Adam( ; , momentum=0.9 →
you apply softmax before cross_entropy, which applies it itself; give it the scores
    model(x[rows]) → model(x[rows]).softmax(dim=1)
    model(validation[0]) → model(validation[0]).softmax(dim=1)
you restore the best weights only where training stops early; restore them after the last epoch, too
    break\n    if stopper is not None:\n        stopper.restore(model)
    → stopper.restore(model)\n            break
you tell the stopper the training loss; it is to see the validation loss
    update(model, checked[-1]) → update(model, losses[-1])
you ask the stopper and do not stop; leave the loop when `update` returns True
    break → pass
""")
