"""The path of gradient descent with exact line search on a quadratic."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import exact_line_search

exercise = Exercise("L1-16", exact_line_search)


@exercise.answer
def _(hessian, start, steps):
    path = [start]
    for _ in range(steps):
        g = hessian @ path[-1]
        lr = (g @ g) / (g @ hessian @ g)
        path.append(path[-1] - lr * g)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    b = round(float(rng.uniform(0.1, 0.6)), 2)
    yield {"hessian": np.diag([1.0, b]), "start": np.array([b, 1.0]), "steps": 3}
    for n, steps in ((2, 4), (3, 6), (5, 10)):
        yield {"hessian": random_hessian(rng, n), "start": rng.normal(size=n), "steps": steps}


@exercise.fact("consecutive gradients are orthogonal")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = random_hessian(rng, 4)
    gradients = np.asarray(function(H, rng.normal(size=4), 6)) @ H
    units = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    return bool(np.abs((units[1:] * units[:-1]).sum(axis=1)).max() < 1e-8)


@exercise.fact("from (b, 1) on ½(x² + by²) it follows the closed form")
def _(function: Function, rng: np.random.Generator) -> bool:
    b = rng.uniform(0.1, 0.9)
    path = function(np.diag([1.0, b]), np.array([b, 1.0]), 6)
    ratio = ((1 - b) / (1 + b)) ** np.arange(7)
    expected = np.stack([b * (-1.0) ** np.arange(7) * ratio, ratio], axis=1)
    return bool(np.allclose(path, expected, rtol=1e-9, atol=1e-12))


exercise.mistake(
    "your step is gᵀHg/gᵀg, upside down; it is gᵀg/gᵀHg",
    ("(g @ g) / (g @ hessian @ g)", "(g @ hessian @ g) / (g @ g)"),
)

exercise.mistake(
    "you go half the way; the lowest point of the line is at gᵀg/gᵀHg", ("- lr", "- 0.5 * lr")
)

exercise.mistake(
    "you go twice as far, where the loss is as high as before; the lowest point is at gᵀg/gᵀHg",
    ("- lr", "- 2 * lr"),
)

exercise.mistake(
    "you measure the curvature along w; the line runs along g, so it is gᵀHg",
    ("(g @ hessian @ g)", "(path[-1] @ hessian @ path[-1])"),
)

exercise.mistake(
    "you search the line once and keep that step size; search again in each step",
    ("        lr =", "        if len(path) == 1:\n            lr ="),
)
