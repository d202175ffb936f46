"""Compute the path of damped Newton steps that are halved until the loss falls enough."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, random_start
from optdl.objectives import (
    affine,
    constant,
    log_cosh,
    log_cosh_gradient,
    log_cosh_hessian,
    named,
    quadratic,
)


def newton_line_search(
    value: Callable[[np.ndarray], float],
    gradient: Gradient,
    hessian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    damping: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Newton's method with a line search."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        d = -np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
        lr = 1.0
        while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:
            lr = lr / 2
        theta = theta + lr * d
        path.append(theta)
    return np.array(path)


exercise = Exercise("L1-32, L2-07", newton_line_search)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for n, damping, steps in ((1, 0.2, 3), (1, 0.0, 3), (2, 0.5, 4), (3, 0.3, 5)):
        A = rng.uniform(2.0, 4.0, size=(n, n)).round(1) * rng.choice([-1, 1], size=(n, n))
        b = rng.uniform(-1, 1, size=n).round(1)
        where = f"A = {A.tolist()}, b = {b.tolist()}"
        hessian = f"w ↦ A.T @ diag(1 / cosh(A @ w - b)**2) @ A + I, {where}"
        yield {
            "value": named(f"w ↦ sum(log(cosh(A @ w - b))) + w @ w / 2, {where}", log_cosh, A, b),
            "gradient": named(f"w ↦ A.T @ tanh(A @ w - b) + w, {where}", log_cosh_gradient, A, b),
            "hessian": named(hessian, log_cosh_hessian, A, b),
            "start": random_start(rng, n),
            "damping": damping,
            "steps": steps,
        }


@exercise.fact("on a quadratic the first step is accepted, and reaches the minimum")
def _(function: Function, rng: np.random.Generator) -> bool:
    M, c = rng.normal(size=(3, 3)), rng.normal(size=3)
    H = M @ M.T + np.eye(3)
    parts = partial(quadratic, 0.0, c, H), partial(affine, c, H), partial(constant, H)
    path = np.asarray(function(*parts, random_start(rng, 3), 0.0, 1))
    return bool(np.allclose(H @ path[1] + c, 0, atol=1e-9))


@exercise.fact("without damping a linear change of the parameters changes nothing")
def _(function: Function, rng: np.random.Generator) -> bool:
    value, gradient, hessian, start, *_ = exercise.draw(rng)[2].values()
    P = rng.uniform(0.5, 1.5, size=(2, 2)) + 2 * np.eye(2)
    path = np.asarray(function(value, gradient, hessian, start, 0.0, 3))
    changed = function(
        lambda z: value(P @ z),
        lambda z: P.T @ gradient(P @ z),
        lambda z: P.T @ hessian(P @ z) @ P,
        np.linalg.solve(P, start),
        0.0,
        3,
    )
    return bool(np.allclose(np.asarray(changed) @ P.T, path, rtol=1e-7))


@exercise.fact(
    "the residual of its linear system has the size of rounding errors, unlike with an inverse"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    # Hilbert's matrix is nearly singular. Solving leaves a residual of rounding size all the same;
    # multiplying by the inverse leaves one that is larger by many powers of ten
    row = np.arange(9)
    H = 1.0 / (row[:, None] + row + 1)
    g = H @ rng.normal(size=9)
    parts = partial(quadratic, 0.0, g, H), partial(affine, g, H), partial(constant, H)
    path = np.asarray(function(*parts, np.zeros(9), 0.0, 1))
    return bool(np.linalg.norm(H @ path[1] + g) < 1e-12 * np.linalg.norm(g))


exercise.hints(
    r"Which quantities in the test depend on $\theta$ alone, and which depend on $\eta$, too?",
    r"Compute everything that depends on $\theta$ alone before the halving. How often you must "
    r"halve $\eta$ is not known in advance, so use a `while` loop.",
    r"Let `np.linalg.solve` solve the system with the matrix $H + \mu I$ and the right-hand side "
    r"$-g$. Set $\eta$ to 1, halve it while the inequality of the task is true, and move by "
    r"$\eta d$.",
)

TEST = "value(theta + lr * d) > value(theta) + lr * (g @ d) / 4"

exercise.mistakes(r"""
you take the whole step always; halve it until the test of the task holds
    while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:\n            lr = lr / 2 →
you are content with any decrease; the loss must fall by a quarter of −η g·d
    + lr * (g @ d) / 4 →
your test lacks η; a shorter step has to decrease the loss by less: ¼ η g·d
    + lr * (g @ d) / 4 → + (g @ d) / 4
    while value(theta + lr * d) → while lr > 1e-9 and value(theta + lr * d)
your next step begins with the last η; each step begins with η = 1
    lr = 1.0 →
    theta, path = start, [start] → theta, path, lr = start, [start], 1.0
you test with the squared length of d; the slope along d is g·d
    lr * (g @ d) / 4 → lr * (-d @ d) / 4
you halve once at most; halve until the test holds
    while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4
    → if value(theta + lr * d) > value(theta) + lr * (g @ d) / 4
you multiply by the Hessian; solve the linear system with it
    np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
    → (hessian(theta) + damping * np.eye(len(g))) @ g
you use the Hessian of the start in each step; evaluate it at each θ
    hessian(theta) → hessian(start)
you add μ to every entry of H; add it to the diagonal: H + μI
    damping * np.eye(len(g)) → damping
you leave out the damping; solve with H + μI
    + damping * np.eye(len(g)) →
the sign of the slope is wrong in your test: g·d is negative, and the loss must fall below J(θ) + ¼
η g·d
    + lr * (g @ d) / 4 → - lr * (g @ d) / 4
you stay where you are if the whole step fails; halve η and test again within the same step
    lr = 1.0\n
            while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:\n
                lr = lr / 2\n
            theta
    → if value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:\n
                lr = lr / 2\n
                d = 0 * d\n
            theta
    path.append → lr = 1.0 if np.any(d) else lr\n        path.append
    theta, path = start, [start] → theta, path, lr = start, [start], 1.0
""")
