"""Compute the path of Lion."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.optimizers.shared import Gradient, objective, random_paths, random_start
from optdl.objectives import constant, times


def lion(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Lion, with decoupled decay."""
    theta, m, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        u = np.sign(beta1 * m + (1 - beta1) * g)
        theta = theta - lr * (u + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


exercise = Exercise("F-18", lion)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    # the steps are long, so that signs change and old gradients and new ones disagree
    settings = {"lr": (0.9, 0.7, 0.6), "beta1": (0.8, 0.9, 0.7), "beta2": (0.6, 0.7, 0.5)}
    for case in random_paths(rng, **settings, decay=(0.2, 0.1, 0.3)):
        yield case | {"steps": 3 * case["steps"]}


@exercise.fact("with ω = 0 each step has the size η in each parameter")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 3)
    path = np.asarray(function(gradient, random_start(rng, 3), 0.1, 0.9, 0.99, 0.0, 8))
    return bool(np.allclose(np.abs(np.diff(path, axis=0)), 0.1, rtol=1e-9))


@exercise.fact("the units of the loss do not matter")
def _(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = objective(rng, 2)
    settings = (random_start(rng, 2), 0.5, 0.6, 0.9, 0.1, 8)
    scaled = function(partial(times, 1000, gradient), *settings)
    return bool(np.allclose(function(gradient, *settings), scaled, rtol=1e-9))


@exercise.fact("where the gradient is zero, each step multiplies θ by 1 − ηω")
def _(function: Function, rng: np.random.Generator) -> bool:
    start = random_start(rng, 3)
    path = function(partial(constant, np.zeros(3)), start, 0.1, 0.9, 0.99, 0.4, 6)
    return bool(np.allclose(path, [0.96**t * start for t in range(7)], rtol=1e-9))


@exercise.fact("with β₁ = β₂ = 0.9 a first gradient of 10 outweighs the next six of −1")
def _(function: Function, rng: np.random.Generator) -> bool:
    given: list[float] = []

    def gradient(theta: np.ndarray) -> np.ndarray:
        given.append(-1.0 if given else 10.0)
        return np.array(given[-1:])

    path = np.asarray(function(gradient, np.zeros(1), 0.1, 0.9, 0.9, 0.0, 9))
    # m is 1 after the first step, and 2 · 0.9ᵏ − 1 after k more, which is positive up to k = 6
    return bool(np.allclose(np.diff(path.ravel()), [-0.1] * 7 + [0.1] * 2, rtol=1e-9))


exercise.hints(
    "Which lines of the pseudo-code use $m_{t-1}$? Where in the loop may you therefore overwrite "
    "it?",
    "$c_t$ and $m_t$ are two different averages of $m_{t-1}$ and $g_t$. Only the sign of $c_t$ is "
    "used, and only $m_t$ is kept for the next step.",
    r"Compute the gradient and the sign of the average with $\beta_1$. Add $\lambda$ times the old "
    r"$\theta$ to this sign, subtract $\eta$ times the sum from $\theta$, and update $m$ with "
    r"$\beta_2$ last.",
)

UPDATE = "        m = beta2 * m + (1 - beta2) * g\n"

exercise.mistakes(r"""
you update m before the step; the sign is taken with the old m
    m = beta2 * m + (1 - beta2) * g →
    u = np.sign → m = beta2 * m + (1 - beta2) * g\n        u = np.sign
you take the sign of the gradient alone; take that of β₁m + (1 − β₁)g
    beta1 * m + (1 - beta1) * g → g
you take the sign of m alone; take that of β₁m + (1 − β₁)g
    beta1 * m + (1 - beta1) * g → m
    m = beta2 * m + (1 - beta2) * g →
    u = np.sign → m = beta2 * m + (1 - beta2) * g\n        u = np.sign
your β₁ and β₂ are exchanged; β₁ weighs inside the sign, β₂ in m
    beta1 * m + (1 - beta1) * g → beta2 * m + (1 - beta2) * g
    m = beta2 * m + (1 - beta2) * g → m = beta1 * m + (1 - beta1) * g
you keep the mean of which you took the sign; m is a mean of its own, with β₂
    u = np.sign(beta1 * m + (1 - beta1) * g) → m = beta1 * m + (1 - beta1) * g
    (u + decay → (np.sign(m) + decay
    m = beta2 * m + (1 - beta2) * g →
your step has no sign; only the sign of the mean counts
    np.sign(beta1 * m + (1 - beta1) * g) → beta1 * m + (1 - beta1) * g
the decay stands inside your sign; θ shrinks outside it
    np.sign(beta1 * m + (1 - beta1) * g) → np.sign(beta1 * m + (1 - beta1) * g + decay * theta)
    (u + decay * theta) → u
your decay lacks the factor η; θ shrinks by ηωθ
    lr * (u + decay * theta) → lr * u - decay * theta
your β₁ and β₂ weigh the new gradient, as in the second lecture; here they weigh the old m
    beta1 * m + (1 - beta1) * g → (1 - beta1) * m + beta1 * g
    beta2 * m + (1 - beta2) * g → (1 - beta2) * m + beta2 * g
you shrink the new θ; only the old one shrinks
    theta - lr * (u + decay * theta) → (1 - lr * decay) * (theta - lr * u)
""")
