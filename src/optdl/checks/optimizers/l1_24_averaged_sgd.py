"""Compute the path of SGD whose iterates are averaged once the learning rate stays."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import random_start
from optdl.objectives import constant, example_gradient, named


@answer_to("L1-24, L1-25, F-15", "averaged_sgd")
def exercise(gradient, start, batches, first, last, tau):
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    means = [np.mean(path[tau : t + 1], axis=0) for t in range(tau, len(path))]
    return np.array(path[:tau] + means)


@exercise.cases
def _(rng):
    gradient = named("(theta, z) ↦ (z[:-1] @ theta - z[-1]) * z[:-1]", example_gradient)
    steps = int(rng.integers(3, 6))
    for n, tau, sizes in (
        (1, 2, [2, 3, 1, 2]),
        (2, 1, rng.integers(1, 4, size=steps)),
        (rng.integers(2, 4), steps - 1, rng.integers(1, 5, size=2 * steps)),
        (3, steps, rng.integers(2, 4, size=steps)),  # the mean has one iterate
        (2, steps + 2, rng.integers(1, 4, size=steps)),  # it ends before the mean begins
    ):
        batches = [rng.uniform(-1, 1, size=(size, n + 1)).round(1) for size in sizes]
        first, last = rng.uniform([0.3, 0.1], [0.6, 0.25]).round(2).tolist()
        yield gradient, random_start(rng, int(n)), batches, first, last, tau


@exercise.fact("with gradient −1, η = 0.2 and τ = 4 the rows are 0, 0.2, 0.4, 0.6, 0.8, 0.9, 1, …")
def _(function, rng):
    batches = [np.zeros((2, 1))] * 12
    path = np.asarray(function(partial(constant, -np.ones(1)), np.zeros(1), batches, 0.2, 0.2, 4))
    expected = [0, 0.2, 0.4, 0.6, *(0.8 + 0.1 * np.arange(9))]
    return np.allclose(path.ravel(), expected, rtol=1e-9)


exercise.help(r"""
1. Does averaging ever influence a step of SGD? If not, what can you compute before you average?
2. If $s$ is at most 1, one formula gives the learning rate before and after iteration $\tau$.
3. Keep rows 0 to $\tau - 1$ of the path of SGD. For each $t \ge \tau$, append the mean along axis 0
   of rows $\tau$ to $t$ of that path; a slice that stops at $t + 1$ includes row $t$.
you go on from the mean; SGD goes on from its own iterate, the mean is for you
    path.append(theta)
    → theta = theta if k < tau else path[-1] + (theta - path[-1]) / (k - tau + 2)\n
            path.append(theta)
    path[:tau] + means → path
your mean begins with the start; it begins with the iterate of step τ
    path[tau : t + 1] → path[: t + 1]
your mean begins one iterate late; the iterate of step τ belongs to it
    path[tau : t + 1] → path[min(tau + 1, t) : t + 1]
you average from the start on; keep the rows before step τ, and begin the mean at θ_τ
    path[:tau] + means → [np.mean(path[: t + 1], axis=0) for t in range(len(path))]
you return the iterates; from step τ on return their mean
    path[:tau] + means → path
your rows from step τ on are all the last mean; row t is the mean up to step t
    path[tau : t + 1] → path[tau:]
your learning rate keeps falling after step τ; from there on it stays at η_τ
    min(k / tau, 1) → k / tau
your first step has k = 1; it has k = 0, and the learning rate η₀
    enumerate(batches) → enumerate(batches, start=1)
you add up the gradients of a minibatch; the estimate is their mean
    np.mean([gradient → np.sum([gradient
you take the gradient of the first example only; the estimate is the mean over all of them
    np.mean([gradient(theta, z) for z in batch], axis=0) → gradient(theta, batch[0])
you take the gradient at the mean example; the estimate is the mean of the examples' gradients
    np.mean([gradient(theta, z) for z in batch], axis=0) → gradient(theta, np.mean(batch, axis=0))
you step after each example; every gradient of a minibatch is taken at the same θ
    theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
    → for z in batch:\n            theta = theta - lr / len(batch) * gradient(theta, z)
you average over the parameters, too; the mean of the iterates has `axis=0`
    np.mean(path[tau : t + 1], axis=0) → np.mean(path[tau : t + 1]) + 0 * start
you divide by the size of the first minibatch; divide by the size of each
    np.mean([gradient(theta, z) for z in batch], axis=0)
    → sum(gradient(theta, z) for z in batch) / len(batches[0])
""")
