"""Compute the path of AdaDelta without δ, from a length that the user knows."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_paths, random_start


@answer_to("L2-05", "unitless_adadelta")
def exercise(gradient, start, length, lr, rho, steps):
    theta, path = start, [start]
    r, d = gradient(start) ** 2, length**2 * np.ones_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(d / r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    return random_paths(rng, length=(0.1, 0.3), lr=(0.5, 0.8), rho=(0.7, 0.9))


@exercise.fact("with θ and ℓ in a unit that is 4 times as large it takes the same path")
def _(function, rng):
    gradient, start = objective(rng, 2), random_start(rng, 2)
    path = function(gradient, start, 0.2, 0.7, 0.9, 6)
    other = function(lambda z: 4 * gradient(4 * z), start / 4, 0.05, 0.7, 0.9, 6)
    return np.allclose(4 * np.asarray(other), path, rtol=1e-9)


exercise.help(r"""
1. What do $r$ and $d$ hold before the first step, and what shape does each of them have?
2. In the first step $g$ is $g_0$ again, and an $r$ that equals $g_0 \odot g_0$ stays as it is.
3. Update $r$, compute $\Delta$, update $d$ with $\Delta\odot\Delta$, and add $\eta\Delta$.
your r starts at zero, so the first step is too long; it starts at the first gradient's square
    gradient(start) ** 2 → np.zeros_like(start)
your d is never updated; it averages the squares of the steps
    d = rho * d + (1 - rho) * change * change →
your d averages the squares of ηΔ; it averages those of Δ, before the multiplication by η
    change * change → (lr * change) ** 2
you update d before you step; the step Δ is made with the old d
    theta + lr * change → theta - lr * np.sqrt(d / r) * g
your quotient lacks the root; it is √d over √r
    np.sqrt(d / r) → (d / r)
you step with the r of the earlier gradients; put the new g ⊙ g into r first
    r = rho * r + (1 - rho) * g * g\n        change = -np.sqrt(d / r) * g
    → change = -np.sqrt(d / r) * g\n        r = rho * r + (1 - rho) * g * g
all your parameters share one r, the squared length of the gradient; each has its own g²
    gradient(start) ** 2 → gradient(start) @ gradient(start)
    (1 - rho) * g * g → (1 - rho) * (g @ g)
your d averages the sizes of the steps; it averages their squares
    change * change → np.abs(change)
""")
