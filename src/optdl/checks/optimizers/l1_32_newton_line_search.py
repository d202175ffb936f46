"""Compute the path of damped Newton steps that are halved until the loss falls enough."""

from functools import partial

import numpy as np

from optdl import objectives
from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import random_start
from optdl.objectives import log_cosh, log_cosh_gradient, log_cosh_hessian, named


@answer_to("L1-32, L2-07", "newton_line_search")
def exercise(value, gradient, hessian, start, damping, steps):
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


@exercise.cases
def _(rng):
    for n, steepest, damping, steps in (
        (1, 4, 0.2, 3),
        (1, 4, 0.0, 3),
        (1, 60, 0.2, 4),  # with so steep a loss η is halved often
        (rng.integers(2, 4), 4, 0.3, 5),
        (2, 4, 0.1, 2),  # from the minimum, where every step is 0
    ):
        A = rng.uniform(steepest / 2, steepest, size=(n, n)).round(1)
        b = rng.uniform(-1, 1, size=n).round(1) * (steps > 2)
        start, where = random_start(rng, int(n)), f"A = {A.tolist()}, b = {b.tolist()}"
        start = start * (steps > 2)
        if not damping:  # from here a whole step lowers the loss, but by less than a quarter
            start = ((b + 1.07) / A[0]).round(3)
        value = named(f"w ↦ sum(log(cosh(A @ w - b))) + w @ w / 2, {where}", log_cosh, A, b)
        gradient = named(f"w ↦ A.T @ tanh(A @ w - b) + w, {where}", log_cosh_gradient, A, b)
        hessian = f"w ↦ A.T @ diag(1 / cosh(A @ w - b)**2) @ A + I, {where}"
        parts = value, gradient, named(hessian, log_cosh_hessian, A, b)
        yield *parts, start, round(damping * rng.uniform(1, 2), 2), steps


@exercise.fact("its system is solved up to rounding, unlike with an inverse", is_visible=True)
def _(function, rng):
    row = np.arange(9)
    H = 1.0 / (row[:, None] + row + 1)
    g = H @ rng.normal(size=9)
    value, slope = partial(objectives.quadratic, 0.0, g, H), partial(objectives.affine, g, H)
    hessian = partial(objectives.constant, H)
    path = np.asarray(function(value, slope, hessian, np.zeros(9), 0.0, 1))
    residual = np.linalg.norm(H @ path[1] + g) / np.linalg.norm(g)
    return residual < 1e-12 or residual > 0.01  # then the step is wrong for another reason


exercise.help(r"""
1. Which quantities in the test depend on $\theta$ alone, and which depend on $\eta$, too?
2. Compute what depends on $\theta$ alone first. How often you halve is not known: use `while`.
3. Let `np.linalg.solve` solve the system with the matrix $H + \mu I$ and the right-hand side $-g$.
   Set $\eta$ to 1, halve it while the inequality of the task is true, and move by $\eta d$.
you take the whole step always; halve η as long as the inequality of the task is true
    while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:\n            lr = lr / 2 →
you accept a smaller decrease than the task; the loss must fall by a quarter of −η g·d
    + lr * (g @ d) / 4 →
your test asks for half of −η g·d; the loss must fall by a quarter of it
    / 4 → / 2
your test lacks η; a shorter step has to decrease the loss by less: ¼ η g·d
    + lr * (g @ d) / 4 → + (g @ d) / 4
your next step begins with the last η; each step begins with η = 1
    lr = 1.0 → lr = lr if len(path) > 1 else 1.0
you test with the squared length of g; the slope along d is g·d
    lr * (g @ d) / 4 → lr * (-g @ g) / 4
your first trial is η = ½; begin with η = 1
    lr = 1.0 → lr = 0.5
you halve once at most; halve as long as the inequality of the task is true
    while → if
you multiply by the Hessian; solve the linear system with it
    np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
    → (hessian(theta) + damping * np.eye(len(g))) @ g
you use the Hessian of the start in each step; evaluate it at each θ
    hessian(theta) → hessian(start)
you add μ to every entry of H; add it to the diagonal: H + μI
    damping * np.eye(len(g)) → damping
your test has the wrong sign: g·d is negative, and the loss must fall below J(θ) + ¼ η g·d
    + lr * (g @ d) / 4 → - lr * (g @ d) / 4
you add μ times the diagonal of H; add μ itself to the diagonal
    damping * np.eye(len(g)) → damping * np.diag(np.diag(hessian(theta)))
your test lacks η, and the halving ends at a tiny η; the loss has to fall by ¼ η g·d only
    + lr * (g @ d) / 4: → + (g @ d) / 4 and lr > 1e-14:
""")
