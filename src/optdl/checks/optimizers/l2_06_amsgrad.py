"""Compute the path of AMSGrad: Adam, divided by the largest average so far."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_paths, random_start
from optdl.objectives import linear, named


@answer_to("L2-06", "amsgrad")
def exercise(gradient, start, lr, beta1, beta2, delta, steps):
    theta, path = start, [start]
    m, r, largest = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat = m / (1 - beta1**t)
        r_hat = r / (1 - beta2**t)
        largest = np.maximum(largest, r_hat)
        theta = theta - lr * m_hat / (np.sqrt(largest) + delta)
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    ranges = {"lr": (0.3, 0.4), "beta1": (0.5, 0.9), "beta2": (0.5, 0.75), "delta": (0.1, 0.3)}
    first, *others = random_paths(rng, **ranges)
    yield from (first, *others)
    # beside a saddle a square falls for some steps, and then rises above all before
    slope = round(rng.uniform(2, 4), 1)
    gradient = named(f"w ↦ {slope} * w[::-1]", linear, slope * np.eye(2)[::-1])
    yield {**first, "gradient": gradient, "start": np.array([3.0, 1.0]), "steps": 10}


@exercise.fact("with β₁ = 0 each entry's step is −g times a positive factor that never rises")
def _(function, rng):
    gradient = objective(rng, 3)
    path = np.asarray(function(gradient, random_start(rng, 3), 0.1, 0.0, 0.6, 0.1, 12))
    factors = np.diff(path, axis=0) / [-gradient(theta) for theta in path[:-1]]
    return np.all(np.diff(factors, axis=0) < 1e-9) and np.all(factors > 0)


exercise.help(r"""
1. Which lines of Adam stay as they are, and what do you have to keep between steps in addition?
2. The largest $\hat r$ so far is a running maximum, one number for each parameter. If it starts at
   zero, the first step needs no special case, since $\hat r$ is never negative.
3. After both bias corrections, keep for each entry the larger of the old maximum and $\hat r$. Add
   $\delta$ to the root of the result, divide $\hat m$ by the sum, and multiply by $\eta$.
your path is that of Adam; divide by the root of the largest r̂ so far
    np.maximum(largest, r_hat) → r_hat
you correct the bias of the largest r, as torch does; correct first, and keep the largest r̂
    np.maximum(largest, r_hat) → np.maximum(largest, r)
    np.sqrt(largest) → np.sqrt(largest / (1 - beta2**t))
you keep the largest r and correct no bias of it; keep the largest r̂
    np.maximum(largest, r_hat) → np.maximum(largest, r)
you put the largest r̂ into the average; r goes on as in Adam, and the largest r̂ stands beside it
    r = beta2 * r + → r = beta2 * largest +
you take one maximum for all parameters; each entry has its own, with np.maximum
    np.maximum(largest, r_hat) → np.max(np.maximum(largest, r_hat))
you compare this r̂ with the one before only; compare it with the largest of all so far
    r_hat = r → before, r_hat = (r_hat if t > 1 else 0), r
    np.maximum(largest, r_hat) → np.maximum(before, r_hat)
you put the larger r into the average, which goes on from it; keep the largest r̂ beside it
    r = beta2 * r + (1 - beta2) * g * g → r = np.maximum(r, beta2 * r + (1 - beta2) * g * g)
    np.maximum(largest, r_hat) → r_hat
""")
