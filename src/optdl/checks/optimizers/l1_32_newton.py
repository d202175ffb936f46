"""Compute the path of Newton's method with a learning rate and damping."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_start
from optdl.objectives import constant, linear
from optdl.optimizers import run


def newton(
    gradient: Gradient,
    hessian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lr: float,
    damping: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Newton's method."""
    opt = optimizers.Newton(hessian=hessian, lr=lr, damping=damping)
    return run(opt, gradient, start, steps)


exercise = Exercise("L1-32, L2-07", newton)


@exercise.answer
def _(gradient, hessian, start, lr, damping, steps):
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - lr * np.linalg.solve(H, gradient(theta))
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps, lr, damping in ((1, 3, 0.5, 0.2), (2, 4, 1.0, 0.5), (3, 6, 0.7, 0.3)):
        gradient, hessian = objective(rng, n)
        yield {
            "gradient": gradient,
            "hessian": hessian,
            "start": random_start(rng, n),
            "lr": lr,
            "damping": damping,
            "steps": steps,
        }


@exercise.fact("on θ·Aθ each step multiplies θ by 1 − η, whatever the direction")
def _(function: Function, rng: np.random.Generator) -> bool:
    A = np.diag(rng.uniform(0.01, 100, size=3))
    start = random_start(rng, 3)
    path = function(partial(linear, 2 * A), partial(constant, 2 * A), start, 0.3, 0.0, 5)
    return bool(np.allclose(path, [0.7**t * start for t in range(6)], rtol=1e-9))


@exercise.fact("damping leads away from a saddle: a step has the factor 1 − ηλ/(λ + μ)")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = np.diag([1.0, -1.0])
    gradient, hessian = partial(linear, H), partial(constant, H)
    path = np.asarray(function(gradient, hessian, np.array([1.0, 0.1]), 1.0, 2.0, 4))
    return bool(np.allclose(path[-1], [(2 / 3) ** 4, 0.1 * 2**4], rtol=1e-9))


@exercise.fact(
    "the residual of its linear system has the size of rounding errors, unlike with an inverse"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    # Hilbert's matrix is nearly singular. Solving leaves a residual of rounding size all the same;
    # multiplying by the inverse leaves one that is larger by many powers of ten
    row = np.arange(9)
    H = 1.0 / (row[:, None] + row + 1)
    g = H @ rng.normal(size=9)
    gradient, hessian = partial(constant, g), partial(constant, H)
    path = np.asarray(function(gradient, hessian, np.zeros(9), 1.0, 0.0, 1))
    return bool(np.linalg.norm(H @ path[1] + g) < 1e-12 * np.linalg.norm(g))


exercise.mistake(
    "you multiply by the Hessian; solve the linear system with it",
    ("np.linalg.solve(H, gradient(theta))", "H @ gradient(theta)"),
)

exercise.mistake(
    "1/H inverts each entry, which is not the inverse matrix; use np.linalg.solve",
    ("np.linalg.solve(H, gradient(theta))", "(1 / H) @ gradient(theta)"),
)

exercise.mistake(
    "you use the Hessian of the start in each step; evaluate it at each θ",
    ("hessian(theta)", "hessian(start)"),
)

exercise.mistake(
    "you add μ to every entry of H; add it to the diagonal: H + μI",
    ("damping * np.eye(len(theta))", "damping"),
)

exercise.mistake(
    "you subtract the damping; it makes the curvature larger: H + μI", ("+ damping", "- damping")
)
