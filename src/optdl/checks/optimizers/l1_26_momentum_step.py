"""Take one step of momentum, or of Nesterov momentum."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_start
from optdl.objectives import constant, linear


@answer_to("L1-26, L1-27:step", "momentum_step", parts=("θ", "v"))
def exercise(gradient, theta, v, lr, alpha, nesterov):
    g = gradient(theta + alpha * v if nesterov else theta)
    v = alpha * v - lr * g
    return theta + v, v


@exercise.cases
def _(rng):
    for nesterov in (False, True, False, True):
        n = int(rng.integers(1, 5))
        lr, alpha = rng.uniform((0.05, 0.3), (0.2, 0.9)).round(2).tolist()
        theta, v = random_start(rng, n), random_start(rng, n)
        yield objective(rng, n), theta, v, lr, alpha, nesterov


@exercise.fact("under a constant gradient g, t steps from v = 0 give v = −ηg (1 − αᵗ)/(1 − α)")
def _(function, rng):
    g, theta, v = rng.normal(size=3), np.zeros(3), np.zeros(3)
    for _ in range(5):
        theta, v = np.array(function(partial(constant, g), theta, v, 0.1, 0.8, rng.random() < 0.5))
    return np.allclose(v, -0.1 * g * (1 - 0.8**5) / 0.2, rtol=1e-9)


@exercise.fact("where J = ½λθ², Nesterov's step is that of momentum with α(1 − ηλ) in place of α")
def _(function, rng):
    theta, v = rng.normal(size=(2, 2))
    given = partial(linear, 4 * np.eye(2)), theta, v, 0.1
    return np.allclose(function(*given, 0.5, True), function(*given, 0.3, False), rtol=1e-9)


exercise.help(r"""
1. At which point does each of the two methods take the gradient?
2. Nesterov's point is $\theta + \alpha v$ with the old $v$. All else is the same in both.
3. Compute $g$ at the point of the method, the new $v = \alpha v - \eta g$, and $\theta + v$.
your interim point is θ + v; it is θ + αv
    theta + alpha * v if → theta + v if
you step from the interim point; only the gradient is taken there, and the step begins at θ
    gradient(theta + alpha → gradient(theta := theta + alpha
you multiply the gradient by 1 − α; the velocity is a sum, and not an average
    - lr * g → - lr * (1 - alpha) * g
you move by the old velocity; move by the new one
    v = alpha * v - lr * g\n    return theta + v, v → return theta + v, alpha * v - lr * g
your velocity is a sum of gradients, as in PyTorch; here it contains −η
    v = alpha * v - lr * g → v = alpha * v + g ; return theta + v → return theta - lr * v
your Nesterov step is that of PyTorch, with g at θ; here g is taken at θ + αv, and the step is v
    alpha * v if nesterov else theta → 0 * v
    return theta + v, → return theta + (alpha * v - lr * g if nesterov else v),
""")
