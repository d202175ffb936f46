"""Compute the path of SGD whose iterates are averaged once the learning rate stays."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import random_start
from optdl.objectives import constant, example_gradient, named


def averaged_sgd(
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    batches: Sequence[np.ndarray],
    first: float,
    last: float,
    tau: int,
) -> np.ndarray:
    """Return θ after each step of SGD, and from step τ on the mean of the iterates since then."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    means = [np.mean(path[tau : t + 1], axis=0) for t in range(tau, len(path))]
    return np.array(path[:tau] + means)


exercise = Exercise("L1-24, L1-25, F-15", averaged_sgd)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    gradient = named("(theta, z) ↦ (z[:-1] @ theta - z[-1]) * z[:-1]", example_gradient)
    for n, size, steps, first, last, tau in (
        (1, 2, 4, 0.4, 0.2, 2),
        (2, 3, 7, 0.3, 0.1, 3),
        (3, 4, 9, 0.5, 0.2, 5),
        (2, 3, 4, 0.3, 0.2, 6),  # it ends before the mean begins
    ):
        batches = list(rng.uniform(-1, 1, size=(steps, size, n + 1)).round(1))
        case = {"gradient": gradient, "start": random_start(rng, n), "batches": batches}
        yield {**case, "first": first, "last": last, "tau": tau}


@exercise.fact("under a constant gradient of −1 the steps before τ equal the learning rates")
def _(function: Function, rng: np.random.Generator) -> bool:
    batches = [np.zeros((2, 1))] * 9
    path = np.asarray(function(partial(constant, -np.ones(1)), np.zeros(1), batches, 0.5, 0.1, 8))
    expected = np.interp(np.arange(8), [0, 8], [0.5, 0.1])
    return bool(np.allclose(np.diff(path.ravel()[:9]), expected, rtol=1e-9))


@exercise.fact("under a constant gradient and a constant rate the mean moves at half the speed")
def _(function: Function, rng: np.random.Generator) -> bool:
    batches = [np.zeros((2, 1))] * 12
    path = np.asarray(function(partial(constant, -np.ones(1)), np.zeros(1), batches, 0.2, 0.2, 4))
    expected = [0, 0.2, 0.4, 0.6, *(0.8 + 0.1 * np.arange(9))]
    return bool(np.allclose(path.ravel(), expected, rtol=1e-9))


@exercise.fact("the order within a minibatch does not matter")
def _(function: Function, rng: np.random.Generator) -> bool:
    *_, case = exercise.draw(rng)
    path = function(*case.values())
    turned = case | {"batches": [batch[::-1] for batch in case["batches"]]}
    return bool(np.allclose(function(*turned.values()), path, rtol=1e-9))


exercise.hints(
    "Does the averaging ever influence a step of SGD? If not, what can you compute completely "
    "before you average anything?",
    r"If $s$ is never allowed to exceed 1, one formula gives the learning rate both before and "
    r"after iteration $\tau$.",
    r"Keep rows 0 to $\tau - 1$ of the path of SGD. For each $t \ge \tau$, append the mean along "
    r"axis 0 of rows $\tau$ to $t$ of that path; a slice that stops at $t + 1$ includes row $t$.",
)


@exercise.mistake("you go on from the mean; SGD goes on from its own iterate, the mean is for you")
def _(gradient, start, batches, first, last, tau):
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        if k >= tau:
            theta = path[-1] + (theta - path[-1]) / (k - tau + 2)
        path.append(theta)
    return np.array(path)


exercise.mistakes(r"""
your mean begins with the start; it begins with the iterate of step τ
    path[tau : t + 1] → path[: t + 1]
your mean begins one iterate late; the iterate of step τ belongs to it
    path[tau : t + 1] → path[min(tau + 1, t) : t + 1]
you average from the first step on; before step τ return the iterates themselves
    path[tau : t + 1] → path[: t + 1]
    range(tau, len(path)) → range(len(path))
    path[:tau] + means → means
you return the iterates; from step τ on return their mean
    path[:tau] + means → path
your rows from step τ on are all the last mean; row t is the mean up to step t
    path[tau : t + 1] → path[tau:]
your learning rate keeps falling after step τ; from there on it stays at η_τ
    min(k / tau, 1) → k / tau
your first step has k = 1; it has k = 0, and the learning rate η₀
    enumerate(batches) → enumerate(batches, start=1)
your learning rate rises from η_τ to η₀; s = k/τ is the weight of the last one
    (1 - s) * first + s * last → s * first + (1 - s) * last
you add up the gradients of a minibatch; the estimate is their mean
    np.mean([gradient → np.sum([gradient
you step after each example; every gradient of a minibatch is taken at the same θ
    theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
    → for z in batch:\n            theta = theta - lr / len(batch) * gradient(theta, z)
your learning rate jumps from η₀ to η_τ; until step τ it falls along a line
    s = min(k / tau, 1) → s = min(k // tau, 1)
you divide by one iterate too many; the mean of θ_τ to θ_t has t − τ + 1 of them
    np.mean(path[tau : t + 1], axis=0)
    → (path[tau] + np.sum(path[tau : t + 1], axis=0)) / (t - tau + 2)
""")
