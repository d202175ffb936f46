"""Compute the path of Nesterov momentum that grows, and restarts when it leads uphill."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_start
from optdl.objectives import constant, linear, named, ramp


@answer_to("L1-26, L1-27", "restarted_nesterov")
def exercise(gradient, start, lr, steps):
    theta, v, k, path = start, np.zeros_like(start), 0, [start]
    for _ in range(steps):
        alpha = k / (k + 3)
        g = gradient(theta + alpha * v)
        v = alpha * v - lr * g
        theta = theta + v
        k = k + 1
        if g @ v > 0:
            v, k = np.zeros_like(v), 0
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    slope, factor = rng.uniform([0.5, 1.2], [2.0, 1.6]).round(2)
    gradient = named(f"w ↦ {slope} * w", linear, np.array([[slope]]))
    yield gradient, random_start(rng, 1), round(float(factor / slope), 2), int(rng.integers(4, 7))
    paths = (1, 0.05, 0.1, 4), (1, 0.1, 0.2, 12), (2, 0.1, 0.2, 16), (4, 0.03, 0.05, 30)
    for n, low, high, steps in paths:
        gradient, lr = objective(rng, n), round(rng.uniform(low, high), 3)
        yield gradient, random_start(rng, n), lr, steps + int(rng.integers(3))
    # it runs into a flat part, where gᵀv is 0
    gradient, lr = named("w ↦ maximum(w, 0)", ramp), round(rng.uniform(0.1, 0.2), 3)
    yield gradient, rng.uniform(1, 2, size=2).round(1), lr, 12 + int(rng.integers(3))


@exercise.fact("under a constant gradient g step t is −ηg (t + 3)/4")
def _(function, rng):
    g = rng.normal(size=2)
    path = np.asarray(function(partial(constant, g), np.zeros(2), 0.1, 20))
    expected = [-0.1 * g * (t + 3) / 4 for t in range(1, 21)]
    return np.allclose(np.diff(path, axis=0), expected, rtol=1e-9)


exercise.help(r"""
1. Which three quantities does one step hand on to the next, and what are their values at the start?
2. $k$ is one of them. It counts the steps since the last restart, and is not the step's number.
3. Compute $\alpha$ from $k$, then $g$ at the interim point, the new $v$ and the new $\theta$, and
   add 1 to $k$. If the inner product of $g$ and the new $v$ is positive, set $v$ and $k$ to zero.
you take the gradient at θ; Nesterov takes it at the interim point θ + αv
    gradient(theta + alpha * v) → gradient(theta)
you never restart; where g·v > 0 the velocity leads uphill: set v and k to zero
    if g @ v > 0:\n            v, k = np.zeros_like(v), 0 →
you restart where g·v is 0, too; the loss is flat there, and the velocity goes on
    g @ v > 0 → g @ v >= 0
your α is one step ahead; the first step after a restart has k = 0, the second k = 1
    k / (k + 3) → (k + 1) / (k + 4)
your α stays large after a restart; count k from 0 again
    v, k = np.zeros_like(v), 0 → v = np.zeros_like(v)
you take back the step that leads uphill; keep the new θ, and set v and k to zero
    v, k = np → theta = theta - v\n            v, k = np
you test with the gradient at the new θ; the test uses the g of this step
    g @ v > 0 → gradient(theta) @ v > 0
you test with the velocity from before the step; test with the new one
    g @ v > 0 → g @ (v + lr * g) > 1e-12
you return the interim points; return θ
    path.append(theta) → path.append(theta + lr * g)
after a restart you count on, so the next step has k = 1; it has k = 0
    v, k = np.zeros_like(v), 0 → v, k = np.zeros_like(v), 1
you restart entry by entry; g·v is one number, and where it is positive all of v is set to zero
    g @ v > 0 → (g * v > 0).any() ; v, k = np.zeros_like(v) → v, k = np.where(g * v > 0, 0.0, v)
""")
