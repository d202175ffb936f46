"""Compute the path of SGD with a linear decay of the learning rate."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import random_start
from optdl.objectives import constant, example_gradient, named
from optdl.optimizers import run


def sgd(
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    batches: Sequence[np.ndarray],
    first: float,
    tau: int,
) -> np.ndarray:
    """Return every iterate of SGD with the linear decay of the lecture, one step per minibatch."""
    remaining = iter(batches)

    def mean(theta: np.ndarray) -> np.ndarray:
        return np.mean([gradient(theta, example) for example in next(remaining)], axis=0)

    opt = optimizers.SGD(optimizers.LinearDecay(first, tau))
    return run(opt, mean, start, len(batches))


exercise = Exercise("L1-24, L1-25", sgd)


@exercise.answer
def _(gradient, start, batches, first, tau):
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    gradient = named("(theta, z) ↦ (z[:-1] @ theta - z[-1]) * z[:-1]", example_gradient)
    for n, size, steps, first, tau in ((1, 2, 4, 0.4, 2), (2, 3, 6, 0.3, 3), (3, 4, 8, 0.5, 5)):
        batches = list(rng.uniform(-1, 1, size=(steps, size, n + 1)).round(1))
        start = random_start(rng, n)
        yield {"gradient": gradient, "start": start, "batches": batches, "first": first, "tau": tau}


@exercise.fact("under a constant gradient of −1 the steps equal the learning rates")
def _(function: Function, rng: np.random.Generator) -> bool:
    batches = [np.zeros((2, 1))] * 12
    path = np.asarray(function(partial(constant, -np.ones(1)), np.zeros(1), batches, 0.5, 8))
    expected = np.interp(np.arange(12), [0, 8], [0.5, 0.005])
    return bool(np.allclose(np.diff(path.ravel()), expected, rtol=1e-9))


@exercise.fact("the order within a minibatch does not matter")
def _(function: Function, rng: np.random.Generator) -> bool:
    *_, case = exercise.draw(rng)
    path = function(*case.values())
    turned = case | {"batches": [batch[::-1] for batch in case["batches"]]}
    return bool(np.allclose(function(*turned.values()), path, rtol=1e-9))


exercise.mistake(
    "your learning rate keeps falling after iteration τ; from there on it stays at η_τ",
    ("min(k / tau, 1)", "k / tau"),
)

exercise.mistake("your learning rate falls to 0; it ends at 0.01 η₀", (" + s * 0.01 * first", ""))

exercise.mistake("your last learning rate is 0.01; it is 0.01 η₀", ("s * 0.01 * first", "s * 0.01"))

exercise.mistake(
    "your first step has k = 1; it has k = 0, and the learning rate η₀",
    ("enumerate(batches)", "enumerate(batches, start=1)"),
)

exercise.mistake(
    "your learning rate rises from η_τ to η₀; s = k/τ is the weight of the last one, η_τ = 0.01 η₀",
    ("(1 - s) * first + s * 0.01", "s * first + (1 - s) * 0.01"),
)

exercise.mistake(
    "your learning rate is always η₀; it falls with k",
    ("lr = (1 - s) * first + s * 0.01 * first", "lr = first"),
)

exercise.mistake(
    "you add up the gradients of a minibatch; the estimate is their mean", ("np.mean", "np.sum")
)

exercise.mistake(
    "you step after each example; every gradient of a minibatch is taken at the same θ",
    (
        "theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)",
        "for z in batch:\n            theta = theta - lr / len(batch) * gradient(theta, z)",
    ),
)
