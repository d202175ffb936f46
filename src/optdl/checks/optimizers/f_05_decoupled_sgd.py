"""Compute the path of momentum in PyTorch's form with decoupled weight decay."""

from functools import partial

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.optimizers.shared import objective, random_start
from optdl.objectives import constant


@answer_to("F-05:decoupled", "decoupled_sgd")
def exercise(gradient, start, rates, alpha, decay):
    theta, b, path = start, np.zeros_like(start), [start]
    for lr in rates:
        b = alpha * b + gradient(theta)
        theta = (1 - lr * decay) * theta - lr * b
        path.append(theta)
    return np.array(path)


@exercise.cases
def _(rng):
    sizes = rng.integers([[1, 3], [2, 4], [4, 6]], [[2, 5], [4, 7], [5, 10]]).tolist()
    for n, steps in sizes:
        rates = rng.uniform(0.01, 0.1, size=steps).round(3)
        rates[-2] *= n < 4  # a step with η = 0 leaves θ where it is
        alpha, decay = rng.uniform([0.4, 0.2], [0.95, 0.9]).round(2).tolist()
        yield objective(rng, n), random_start(rng, n), rates.tolist(), alpha, decay


@exercise.fact("with a gradient that is zero everywhere, each step multiplies θ by 1 − ηω")
def _(function, rng):
    start, rates = random_start(rng, 3), rng.uniform(0.05, 0.3, size=6).tolist()
    path = function(partial(constant, np.zeros(3)), start, rates, 0.9, 0.4)
    factors = np.cumprod([1, *(1 - 0.4 * np.array(rates))])
    return np.allclose(path, np.outer(factors, start), rtol=1e-9)


exercise.help(r"""
1. Both $b$ and $\theta$ change in a step. Which update contains $\omega$, and which $\eta_k$?
2. The decay changes one factor in $\theta \leftarrow \theta - \eta_k b$, that of the old $\theta$.
3. Multiply $b$ by $\alpha$ and add the gradient at $\theta$. Then multiply the old $\theta$ by its
   new factor, subtract $\eta_k$ times the new $b$, and append the result to the path.
you add ωθ to the gradient, an L2 penalty that the velocity remembers; let θ shrink outside of it
    gradient(theta) → gradient(theta) + decay * theta ; (1 - lr * decay) * theta → theta
your velocity holds the rates of the old steps; it sums gradients, and the newest η multiplies it
    + gradient(theta) → + lr * gradient(theta) ; theta - lr * b → theta - b
you multiply θ by 1 − ω; the decay is multiplied by η: 1 − ηω
    1 - lr * decay → 1 - decay
you shrink θ after the step; only the old θ shrinks: (1 − ηω)θ − ηb
    (1 - lr * decay) * theta - lr * b → (1 - lr * decay) * (theta - lr * b)
you take the gradient at the θ that has shrunk; take it at the old θ
    gradient(theta) → gradient((1 - lr * decay) * theta)
you step with the old velocity; put the new gradient into b first
    - lr * b → - lr * (b - gradient(theta)) / alpha
you multiply by η in the velocity and again in the step; the velocity is a sum of gradients
    + gradient(theta) → + lr * gradient(theta)
""")
