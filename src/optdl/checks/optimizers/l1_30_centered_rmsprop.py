"""Compute the path of centered RMSProp with Nesterov momentum."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import random_paths
from optdl.objectives import constant


@answer_to("L1-30, L1-31", "centered_rmsprop")
def exercise(gradient, start, lr, rho, delta, alpha, steps):
    theta, path = start, [start]
    m, r, v = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        m = rho * m + (1 - rho) * g
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(delta + r - m * m) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    ranges = {"lr": (0.02, 0.08), "rho": (0.7, 0.9), "delta": (0.1, 0.3), "alpha": (0.7, 0.9)}
    first, *others = random_paths(rng, **ranges)
    return iter((first | {"alpha": 0.0}, *others))


@exercise.fact("with α = 0, ρ = ½ and a constant g, step 80 is −ηg/√δ, as the variance is 0")
def _(function, rng):
    g = rng.normal(size=2)
    path = np.asarray(function(partial(constant, g), np.zeros(2), 0.1, 0.5, 0.04, 0.0, 80))
    return np.allclose(path[-1] - path[-2], -0.5 * g, rtol=1e-7)


exercise.help(r"""
1. What does RMSProp with Nesterov momentum keep between steps, and what is kept here in addition?
2. Both averages have one form: $\rho$ times the old one, and $1 - \rho$ times $g$ or $g \odot g$.
3. Multiply $v$ by $\alpha$, and subtract $\eta g$ over the root of $\delta + r - m \odot m$.
you divide by the root of the mean square, as RMSProp does; subtract the square of the mean m first
    delta + r - m * m → delta + r
you subtract m; a variance is the mean of the squares minus the square of the mean: r − m ⊙ m
    delta + r - m * m → delta + np.abs(r - m)
your r averages (g − m)²; it averages g ⊙ g, and m ⊙ m is subtracted from it
    (1 - rho) * g * g → (1 - rho) * (g - m) ** 2 ; delta + r - m * m → delta + r
you take the gradient at θ; with Nesterov momentum it is taken at θ + αv
    gradient(theta + alpha * v) → gradient(theta)
you step along the mean m; m serves the divisor only, and the step goes along g
    r - m * m) * g → r - m * m) * m
your δ stands outside the root, as in torch; here it stands inside: √(δ + r − m ⊙ m)
    np.sqrt(delta + r - m * m) → (np.sqrt(r - m * m) + delta)
you add the square of the mean; a variance is the mean square minus the square of the mean
    r - m * m → r + m * m
you subtract the square of the old mean; put the new gradient into m first
    m = rho * m → old, m = m, rho * m ; delta + r - m * m → np.abs(delta + r - old * old)
you divide by the variance; divide by its root, √(δ + r − m ⊙ m)
    np.sqrt(delta + r - m * m) → (delta + r - m * m)
you divide m and r by 1 − ρᵗ, as Adam does; RMSProp does not correct the bias
    r - m * m → r / (1 - rho ** len(path)) - (m / (1 - rho ** len(path))) ** 2
you divide all of the velocity; only the gradient is divided, and α v stays as it is
    theta = theta + v → theta = theta + v / np.sqrt(delta + r - m * m)
    lr / np.sqrt(delta + r - m * m) * g → lr * g
""")
