"""Compute the path of Lion."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_paths, random_start
from optdl.objectives import constant, named, times


@answer_to("F-18", "lion")
def exercise(gradient, start, lr, beta1, beta2, decay, steps):
    theta, m, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        u = np.sign(beta1 * m + (1 - beta1) * g)
        theta = theta - lr * (u + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    ranges = {"lr": (0.6, 0.9), "beta1": (0.65, 0.85), "beta2": (0.4, 0.65), "decay": (0.1, 0.3)}
    first, *others = random_paths(rng, **ranges)
    yield from (case | {"steps": 4 * case["steps"]} for case in (first, *others))
    slopes = np.array([0.0, round(rng.uniform(-2, -1), 1)])  # the sign of 0 is 0
    gradient = named(f"w ↦ {slopes.tolist()}", constant, slopes)
    yield {**first, "gradient": gradient, "start": random_start(rng, 2)}


@exercise.fact("the units of the loss do not matter")
def _(function, rng):
    gradient = objective(rng, 2)
    settings = (random_start(rng, 2), 0.5, 0.6, 0.9, 0.1, 8)
    scaled = function(partial(times, 1000, gradient), *settings)
    return np.allclose(function(gradient, *settings), scaled, rtol=1e-9)


exercise.help(r"""
1. Which lines of the pseudo-code use $m_{t-1}$? Where in the loop may you therefore overwrite it?
2. $c_t$ and $m_t$ are two averages; only the sign of $c_t$ is used, and only $m_t$ is kept.
3. Take the sign of the average with $\beta_1$, add $\lambda\theta$, step, and then update $m$.
you update m before the step; the sign is taken with the old m
    beta1 * m → beta1 * (beta2 * m + (1 - beta2) * g)
your step has no sign; only the sign of the mean counts
    np.sign(beta1 * m + (1 - beta1) * g) → beta1 * m + (1 - beta1) * g
the decay stands inside your sign; θ shrinks outside it
    np.sign(beta1 * m + (1 - beta1) * g) → np.sign(beta1 * m + (1 - beta1) * g + decay * theta)
    (u + decay * theta) → u
your decay lacks the factor η; θ shrinks by ηλθ
    lr * (u + decay * theta) → lr * u - decay * theta
your β₁ and β₂ weigh the new gradient, as in the second lecture; here they weigh the old m
    theta, m, path = start → beta1, beta2 = 1 - beta1, 1 - beta2\n    theta, m, path = start
you shrink the new θ; only the old one shrinks
    theta - lr * (u + decay * theta) → (1 - lr * decay) * (theta - lr * u)
you add λθ to the gradient, where m and the sign take it in; the decay stands outside of both
    g = gradient(theta) → g = gradient(theta) + decay * theta ; (u + decay * theta) → u
your sign of 0 is 1; it is 0, so that such an entry moves by the decay alone: `np.sign`
    u = np.sign( → u = np.where(1, 2.0, 0) * np.heaviside(
    (1 - beta1) * g) → (1 - beta1) * g, 1) - 1
you average m from c; c is for the sign alone, and m is averaged from the old m
    m = beta2 * m + → m = beta2 * (beta1 * m + (1 - beta1) * g) +
""")
