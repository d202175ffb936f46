"""The student takes a training step, and measures it relative to the weights."""

import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import initialization as drivers


def update_ratios(model, optimizer, x, y):
    """Take one training step, and return its size relative to each weight matrix. Source: LAB-2."""
    model.train()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    weights = {name: value for name, value in model.named_parameters() if value.ndim > 1}
    before = {name: value.detach().clone() for name, value in weights.items()}
    optimizer.step()
    return {
        name: ((value - before[name]).norm() / before[name].norm()).item()
        for name, value in weights.items()
    }


exercise = Exercise("LAB-2:ratios", update_ratios, use=drivers.ratios)


@exercise.cases
def _(rng):
    for number, last in enumerate(("linear", "convolution", "linear", "frozen first layer")):
        optimizer = "Adam" if number == 2 else "SGD"
        m, n = map(int, rng.integers(2, 7, size=2))
        x, y = rng.normal(size=(2, m, n)).round(2), rng.integers(0, 3, size=(2, m))
        yield x, y, int(rng.integers(1000)), optimizer, last


@exercise.fact("in a first step of gradient descent it is rate · ‖g‖ / ‖θ‖, for two axes or more")
def _(function, rng):
    def of_gradients(model, optimizer, x, y):
        loss = nn.functional.cross_entropy(model.train()(x), y)
        weights = {name: value for name, value in model.named_parameters() if value.ndim > 1}
        pairs = zip(torch.autograd.grad(loss, [*weights.values()]), weights.items(), strict=True)
        return {name: (0.2 * g.norm() / value.norm()).item() for g, (name, value) in pairs}

    # in the first step momentum has no effect
    case = rng.normal(size=(2, 6, 3)), rng.integers(0, 3, size=(2, 6)), 3, "SGD", "linear"
    return exercise.agrees(function, of_gradients, case, slice(1), rtol=1e-5, atol=1e-8)


exercise.help(r"""
1. Which quantities do you need from before `optimizer.step()`, and do they still exist after it?
2. The step changes the weights in place, by a rule that you do not know. What you can measure for
   any optimizer is the difference between the weights after the step and copies from before it.
3. After `backward`, copy each parameter with two axes or more, and take the step. For each of them,
   divide the norm of its change by that of its copy, and return the number under its name.
the weights before and after are the same numbers; copy them with `clone()` before the step
    detach().clone() → detach()
you never take the step; call `optimizer.step()`
    optimizer.step() → pass
    without `.step(`, else your weights stay as they are; step after `backward`
you keep earlier gradients, and `backward` adds to them; call `optimizer.zero_grad()` first
    optimizer.zero_grad() → pass
your step is taken in evaluation mode; call `model.train()` first, as for each training step
    model.train() → pass
you divide by the weights after the step; divide by those before it
    / before[name].norm() → / value.norm()
you take the rate times the gradient, as in plain gradient descent; compare the weights instead
    (value - before[name]).norm() → optimizer.param_groups[0]["lr"] * value.grad.norm()
you divide the norm of the gradient; divide that of the update, the weights after minus before
    (value - before[name]) → value.grad
you subtract the norms of the weights; take the norm of their difference
    (value - before[name]).norm() → (value.norm() - before[name].norm())
you divide standard deviations; here the sizes are norms, which the mean enters, too
    ]).norm() / before[name].norm() → ]).std() / before[name].std()
your loss is a sum over the minibatch; take its mean, as `cross_entropy` does by itself
    (model(x), y) → (model(x), y, reduction="sum")
you apply softmax before cross_entropy, which applies it itself; give it the scores
    (model(x), y) → (model(x).softmax(dim=1), y)
your norm is the largest singular value; here the norm is the root of the sum of all squares
    (value - before[name]).norm() → torch.linalg.matrix_norm((value - before[name]).flatten(1), 2)
    / before[name].norm() → / torch.linalg.matrix_norm(before[name].flatten(1), 2)
you take the rate times the gradient for the update; compare the weights before and after the step
    (value - before[name]).norm()
    → (0 if value.grad is None else optimizer.param_groups[0]["lr"] * value.grad.norm())
""")
