"""Exercises on the optimizers: each returns every iterate, so that no mistake can hide in the last.

The references step the objects of :mod:`optdl.optimizers`. Each mistake stands here as a plain
function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, update_wrapper
from typing import Any

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.optimizers import preconditioned_descent, run

Gradient = Callable[[np.ndarray], np.ndarray]

# --- Random inputs ----------------------------------------------------------------------------


def _gradient(A: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    return A.T @ np.tanh(A @ w - b) + w


def _hessian(A: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    return (A.T / np.cosh(A @ w - b) ** 2) @ A + np.eye(len(w))


def _named(function: Callable[..., Any], formula: str, *fixed: np.ndarray) -> Callable[..., Any]:
    """Fix the first arguments, and say in the name what is computed: a failing case shows it."""
    bound = update_wrapper(partial(function, *fixed), function)
    bound.__name__ = formula
    return bound


def _objective(rng: np.random.Generator, n: int) -> tuple[Gradient, Callable[..., np.ndarray]]:
    """Return gradient and Hessian of Σ log cosh(Aw − b) + ½‖w‖²: convex, smooth, not quadratic."""
    A = rng.uniform(0.5, 2.0, size=(n, n)).round(1) * rng.choice([-1, 1], size=(n, n))
    b = rng.uniform(-1, 1, size=n).round(1)
    where = f"A = {A.tolist()}, b = {b.tolist()}"
    return (
        _named(_gradient, f"w ↦ A.T @ tanh(A @ w - b) + w, {where}", A, b),
        _named(_hessian, f"w ↦ A.T @ diag(1 / cosh(A @ w - b)**2) @ A + I, {where}", A, b),
    )


def _start(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(1.0, 2.0, size=n).round(1) * rng.choice([-1, 1], size=n)


def _paths(rng: np.random.Generator, **settings: tuple[float, ...]) -> Iterator[Case]:
    """Yield paths of 3, 5 and 8 steps; each setting has a value for each of them."""
    for number, (n, steps) in enumerate(((1, 3), (2, 5), (4, 8))):
        gradient, _ = _objective(rng, n)
        chosen = {name: values[number] for name, values in settings.items()}
        yield {"gradient": gradient, "start": _start(rng, n), **chosen, "steps": steps}


def _constant(g: np.ndarray) -> Gradient:
    return lambda theta: np.array(g)


# --- L1-24, L1-25 · SGD with a rate that decays -----------------------------------------------


def sgd(
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    start: np.ndarray,
    batches: Sequence[np.ndarray],
    first: float,
    tau: int,
) -> np.ndarray:
    """Return every iterate of SGD with the linear decay of the lecture, one step per minibatch."""
    remaining = iter(batches)

    def mean(theta: np.ndarray) -> np.ndarray:
        return np.mean([gradient(theta, example) for example in next(remaining)], axis=0)

    opt = optimizers.SGD(optimizers.LinearDecay(first, tau))
    return run(opt, mean, start, len(batches))


def _squared_error(theta: np.ndarray, example: np.ndarray) -> np.ndarray:
    *x, y = example
    return (np.array(x) @ theta - y) * np.array(x)


def _sgd_cases(rng: np.random.Generator) -> Iterator[Case]:
    gradient = _named(_squared_error, "(theta, z) ↦ (z[:-1] @ theta - z[-1]) * z[:-1]")
    for n, size, steps, tau in ((1, 2, 4, 2), (2, 3, 6, 3), (3, 4, 8, 5)):
        batches = list(rng.uniform(-1, 1, size=(steps, size, n + 1)).round(1))
        start = _start(rng, n)
        yield {"gradient": gradient, "start": start, "batches": batches, "first": 0.4, "tau": tau}


def keeps_falling_after_tau(gradient, start, batches, first, tau):
    """Return the path of a rate that passes ε_τ and turns negative."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        lr = (1 - k / tau) * first + k / tau * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def falls_to_zero(gradient, start, batches, first, tau):
    """Return the path of a rate that ends at 0 in place of ε_τ."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        lr = (1 - min(k / tau, 1)) * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def counts_iterations_from_one(gradient, start, batches, first, tau):
    """Return the path of a schedule that is one iteration ahead."""
    theta, path = start, [start]
    for k, batch in enumerate(batches, start=1):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def exchanges_first_and_last_rate(gradient, start, batches, first, tau):
    """Return the path of a rate that rises."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = alpha * first + (1 - alpha) * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def never_decays(gradient, start, batches, first, tau):
    """Return the path of a constant rate."""
    theta, path = start, [start]
    for batch in batches:
        theta = theta - first * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def sums_over_the_minibatch(gradient, start, batches, first, tau):
    """Return the path of gradients that grow with the size of the minibatch."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.sum([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def steps_after_each_example(gradient, start, batches, first, tau):
    """Return the path of one step for each example, seen once per minibatch."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        for z in batch:
            theta = theta - lr / len(batch) * gradient(theta, z)
        path.append(theta)
    return np.array(path)


def _rates_are_on_a_line(function: Function, rng: np.random.Generator) -> bool:
    # a gradient of −1 everywhere makes the steps equal to the rates
    batches = [np.zeros((2, 1))] * 12
    path = np.asarray(function(lambda theta, z: -np.ones(1), np.zeros(1), batches, 0.5, 8))
    expected = np.interp(np.arange(12), [0, 8], [0.5, 0.005])
    return bool(np.allclose(np.diff(path.ravel()), expected, rtol=1e-9))


def _sgd_ignores_the_order_in_a_minibatch(function: Function, rng: np.random.Generator) -> bool:
    *_, case = _sgd_cases(rng)
    path = function(*case.values())
    turned = case | {"batches": [batch[::-1] for batch in case["batches"]]}
    return bool(np.allclose(function(*turned.values()), path, rtol=1e-9))


# --- L1-26 · momentum -------------------------------------------------------------------------


def momentum(
    gradient: Gradient, start: np.ndarray, lr: float, alpha: float, steps: int
) -> np.ndarray:
    """Return every iterate of gradient descent with momentum."""
    return run(optimizers.Momentum(lr, alpha), gradient, start, steps)


def _momentum_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(0.1, 0.05, 0.02), alpha=(0.5, 0.9, 0.8))


def weights_the_gradient_by_one_minus_alpha(gradient, start, lr, alpha, steps):
    """Return the path of v ← αv − (1 − α) ε g."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - (1 - alpha) * lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def exchanges_alpha_and_one_minus_alpha(gradient, start, lr, alpha, steps):
    """Return the path of v ← (1 − α) v − ε g."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = (1 - alpha) * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def moves_by_the_old_velocity(gradient, start, lr, alpha, steps):
    """Return the path that moves before the velocity is updated."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta + v
        v = alpha * v - lr * g
        path.append(theta)
    return np.array(path)


def climbs_with_its_velocity(gradient, start, lr, alpha, steps):
    """Return the path of v ← αv + εg, θ ← θ + v."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v + lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def forgets_the_velocity(gradient, start, lr, alpha, steps):
    """Return the path of plain gradient descent."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * gradient(theta)
        path.append(theta)
    return np.array(path)


def takes_the_gradient_ahead(gradient, start, lr, alpha, steps):
    """Return the path of Nesterov's method."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta + alpha * v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def scales_the_velocity_twice(gradient, start, lr, alpha, steps):
    """Return the path of v ← αv − g, θ ← θ + αv − εg."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + lr * v
        path.append(theta)
    return np.array(path)


def _velocity_is_a_geometric_sum(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=2)
    path = np.asarray(function(_constant(g), np.zeros(2), 0.1, 0.5, 12))
    expected = [-0.1 * g * sum(0.5**k for k in range(t)) for t in range(1, 13)]
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


def _velocity_is_terminal(function: Function, rng: np.random.Generator) -> bool:
    alpha = round(float(rng.uniform(0.4, 0.8)), 2)
    path = np.asarray(function(_constant(np.array([-2.0])), np.zeros(1), 0.1, alpha, 200))
    return bool(np.isclose((path[-1] - path[-2])[0], 0.2 / (1 - alpha), rtol=1e-9))


# --- L1-27 · Nesterov momentum ----------------------------------------------------------------


def nesterov(
    gradient: Gradient, start: np.ndarray, lr: float, alpha: float, steps: int
) -> np.ndarray:
    """Return every iterate of Nesterov momentum."""
    return run(optimizers.Nesterov(lr, alpha), gradient, start, steps)


def _nesterov_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(0.1, 0.05, 0.02), alpha=(0.5, 0.9, 0.8))


def takes_the_gradient_here(gradient, start, lr, alpha, steps):
    """Return the path of ordinary momentum."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def looks_ahead_by_the_whole_velocity(gradient, start, lr, alpha, steps):
    """Return the path with the interim point θ + v."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta + v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def looks_back(gradient, start, lr, alpha, steps):
    """Return the path with the interim point θ − αv."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta - alpha * v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def moves_on_from_the_interim_point(gradient, start, lr, alpha, steps):
    """Return the path that adds the velocity to θ̃, so that αv counts twice."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        interim = theta + alpha * v
        v = alpha * v - lr * gradient(interim)
        theta = interim + v
        path.append(theta)
    return np.array(path)


def forgets_the_velocity_after_looking(gradient, start, lr, alpha, steps):
    """Return the path θ ← θ − ε g(θ̃), whose velocity is the last step alone."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = -lr * gradient(theta + alpha * v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def returns_the_interim_points(gradient, start, lr, alpha, steps):
    """Return θ̃ at each step, the parameters as torch keeps them."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta + alpha * v)
        theta = theta + v
        path.append(theta + alpha * v)
    return np.array(path)


def _asks_at_the_interim_point(function: Function, rng: np.random.Generator) -> bool:
    asked = []

    def gradient(theta: np.ndarray) -> np.ndarray:
        asked.append(float(theta[0]))
        return np.ones(1)

    function(gradient, np.zeros(1), 1.0, 0.5, 4)
    # the velocities are −1, −1.5, −1.75: θ = 0, −1, −2.5, −4.25 and θ̃ = θ + v/2
    return bool(np.allclose(asked, [0, -1.5, -3.25, -5.125], rtol=1e-9))


def _without_momentum_it_is_descent(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    start = _start(rng, 2)
    expected = run(optimizers.SGD(0.05), gradient, start, 5)
    return bool(np.allclose(function(gradient, start, 0.05, 0.0, 5), expected, rtol=1e-9))


# --- L1-29 · AdaGrad --------------------------------------------------------------------------


def adagrad(
    gradient: Gradient, start: np.ndarray, lr: float, delta: float, steps: int
) -> np.ndarray:
    """Return every iterate of AdaGrad."""
    return run(optimizers.AdaGrad(lr, delta=delta), gradient, start, steps)


def _adagrad_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(0.2, 0.1, 0.3), delta=(0.1, 0.3, 0.2))


def puts_delta_inside_the_root(gradient, start, lr, delta, steps):
    """Return the path of ε/√(δ + r)."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def forgets_the_root_of_the_sum(gradient, start, lr, delta, steps):
    """Return the path of ε/(δ + r)."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / (delta + r) * g
        path.append(theta)
    return np.array(path)


def divides_by_the_sum_of_earlier_steps(gradient, start, lr, delta, steps):
    """Return the path that adds the new square after the step, as L2 prints it."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr / (delta + np.sqrt(r)) * g
        r = r + g * g
        path.append(theta)
    return np.array(path)


def averages_the_squares(gradient, start, lr, delta, steps):
    """Return the path with the mean of the squares, which never lowers the rate."""
    theta, r, path = start, np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / (delta + np.sqrt(r / t)) * g
        path.append(theta)
    return np.array(path)


def shares_one_rate_among_all(gradient, start, lr, delta, steps):
    """Return the path with the norm of the gradients in place of each entry's own sum."""
    theta, r, path = start, 0.0, [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g @ g
        theta = theta - lr / (delta + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


def forgets_the_earlier_squares(gradient, start, lr, delta, steps):
    """Return the path with r = g ⊙ g, so that only the signs are left."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr / (delta + np.abs(g)) * g
        path.append(theta)
    return np.array(path)


def adds_the_gradients_unsquared(gradient, start, lr, delta, steps):
    """Return the path of r ← r + |g| without squares."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + np.abs(g)
        theta = theta - lr / (delta + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


def _steps_fall_like_the_root_of_t(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.5, 3.0, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(_constant(g), np.zeros(3), 0.2, 0.1, 10))
    t = np.arange(1, 11)[:, None]
    expected = -0.2 * g / (0.1 + np.abs(g) * np.sqrt(t))
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


def _entries_do_not_touch_each_other(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=3)
    together = np.asarray(function(_constant(g), np.zeros(3), 0.2, 0.1, 5))
    alone = np.asarray(function(_constant(g[:1]), np.zeros(1), 0.2, 0.1, 5))
    return bool(np.allclose(together[:, :1], alone, rtol=1e-9))


# --- L1-30, L1-31 · RMSProp, with and without Nesterov momentum -------------------------------


def rmsprop(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    rho: float,
    delta: float,
    alpha: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of RMSProp with Nesterov momentum; α = 0 is RMSProp alone."""
    return run(optimizers.RMSPropNesterov(lr, rho, alpha, delta=delta), gradient, start, steps)


def _rmsprop_cases(rng: np.random.Generator) -> Iterator[Case]:
    for (n, steps), alpha, delta in (
        ((1, 3), 0.0, 0.3),
        ((1, 3), 0.5, 0.0),
        ((2, 5), 0.9, 0.2),
        ((4, 8), 0.8, 0.1),
    ):
        gradient, _ = _objective(rng, n)
        yield {
            "gradient": gradient,
            "start": _start(rng, n),
            "lr": 0.05,
            "rho": 0.8,
            "delta": delta,
            "alpha": alpha,
            "steps": steps,
        }


def gives_rho_to_the_new_square(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of r ← (1 − ρ) r + ρ g ⊙ g."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = (1 - rho) * r + rho * g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def adds_delta_outside_the_root(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of ε/(√r + δ), as torch has it."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / (np.sqrt(r) + delta) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def squares_at_theta_itself(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of RMSProp with ordinary momentum."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def divides_the_old_velocity_too(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of a plain velocity that is divided by the root in each step."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = (alpha * v - lr * g) / np.sqrt(delta + r)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def adds_squares_without_one_minus_rho(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of r ← ρ r + g ⊙ g."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def never_forgets_a_square(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of r ← r + g ⊙ g, as in AdaGrad."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = r + g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def forgets_the_root_of_the_mean(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path of ε/(δ + r)."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / (delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def frees_the_mean_of_its_bias(gradient, start, lr, rho, delta, alpha, steps):
    """Return the path with r/(1 − ρᵗ), a hat that belongs to Adam."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(delta + r / (1 - rho**t)) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def _first_step_is_one_over_the_root(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.5, 5.0, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(_constant(g), np.zeros(3), 0.1, 0.75, 0.0, 0.5, 3))
    return bool(np.allclose(path[1], -0.1 * np.sign(g) / 0.5, rtol=1e-9))


def _units_do_not_matter(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    start = _start(rng, 2)
    settings = (start, 0.05, 0.8, 0.0, 0.7, 6)
    scaled = function(lambda theta: 100 * gradient(theta), *settings)
    return bool(np.allclose(function(gradient, *settings), scaled, rtol=1e-9))


# --- L2-05 · AdaDelta -------------------------------------------------------------------------


def adadelta(
    gradient: Gradient, start: np.ndarray, lr: float, rho: float, delta: float, steps: int
) -> np.ndarray:
    """Return every iterate of AdaDelta."""
    return run(optimizers.AdaDelta(lr, rho, delta=delta), gradient, start, steps)


def _adadelta_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(1.0, 0.5, 0.8), rho=(0.8, 0.9, 0.7), delta=(0.1, 0.2, 0.05))


def divides_before_it_accumulates(gradient, start, lr, rho, delta, steps):
    """Return the path that divides by the r of the step before."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        r = rho * r + (1 - rho) * g * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def accumulates_steps_before_it_steps(gradient, start, lr, rho, delta, steps):
    """Return the path that updates d first, and then makes the step anew with it."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta - lr * np.sqrt(delta + d) / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def uses_steps_one_turn_late(gradient, start, lr, rho, delta, steps):
    """Return the path whose d lags by one step more."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    change = np.zeros_like(start)
    for t in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        before = change
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        if t > 0:
            d = rho * d + (1 - rho) * before * before
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def turns_the_quotient_upside_down(gradient, start, lr, rho, delta, steps):
    """Return the path of √(δ + r)/√(δ + d)."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(delta + r) / np.sqrt(delta + d) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def forgets_both_roots(gradient, start, lr, rho, delta, steps):
    """Return the path of (δ + d)/(δ + r)."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -(delta + d) / (delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def leaves_delta_outside_both_roots(gradient, start, lr, rho, delta, steps):
    """Return the path of (√d + δ)/(√r + δ)."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -(np.sqrt(d) + delta) / (np.sqrt(r) + delta) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def averages_the_step_after_the_rate(gradient, start, lr, rho, delta, steps):
    """Return the path whose d averages (εΔ)²."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -lr * np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + change
        path.append(theta)
    return np.array(path)


def gives_rho_to_the_new_values(gradient, start, lr, rho, delta, steps):
    """Return the path of averages that keep 1 − ρ of the old value."""
    theta, r, d, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = (1 - rho) * r + rho * g * g
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = (1 - rho) * d + rho * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def never_averages_the_steps(gradient, start, lr, rho, delta, steps):
    """Return the path whose d stays 0: RMSProp with the rate ε√δ."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        theta = theta - lr * np.sqrt(delta) / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def _two_steps_by_hand(function: Function, rng: np.random.Generator) -> bool:
    # ρ = ½, δ = 1, g = √2: r = 1, 1½ and Δ² = (1 + 0)/2 · 2 = 1, then (1 + ½)/2½ · 2 = 6/5
    path = function(_constant(np.array([2**0.5])), np.zeros(1), 1.0, 0.5, 1.0, 2)
    return bool(np.allclose(np.ravel(path), [0, -1, -1 - 1.2**0.5], rtol=1e-9))


def _loss_can_change_its_units(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(1, 3, size=2)
    small = function(_constant(g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    large = function(_constant(1000 * g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    return bool(np.allclose(small, large, rtol=1e-6, atol=0))


# --- L2-06 · Adam -----------------------------------------------------------------------------


def adam(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    delta: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Adam."""
    return run(optimizers.Adam(lr, beta1, beta2, delta=delta), gradient, start, steps)


def _adam_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(
        rng,
        lr=(0.2, 0.1, 0.3),
        beta1=(0.5, 0.9, 0.8),
        beta2=(0.75, 0.99, 0.9),
        delta=(0.1, 0.3, 0.2),
    )


def wears_no_hats(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path without any correction of the bias."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def forgets_the_hat_on_r(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path with a hat on m alone."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def forgets_the_hat_on_m(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path with a hat on r alone."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (np.sqrt(r / (1 - beta2**t)) + delta)
        path.append(theta)
    return np.array(path)


def counts_steps_from_zero(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path that divides by 1 − β⁰ = 0 in its first step."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(steps):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / np.float64(1 - beta1**t), r / np.float64(1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def counts_steps_from_two(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path whose t is one too large."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(2, steps + 2):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def keeps_the_hats_on(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path that remembers m̂ and r̂ in place of m and r."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = (beta1 * m + (1 - beta1) * g) / (1 - beta1**t)
        r = (beta2 * r + (1 - beta2) * g * g) / (1 - beta2**t)
        theta = theta - lr * m / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def moves_delta_under_the_root(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path of m̂/√(r̂ + δ)."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / np.sqrt(r_hat + delta)
        path.append(theta)
    return np.array(path)


def gives_beta_to_the_new_gradient(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path of L2's letters with the usual numbers."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * g + (1 - beta1) * m
        r = beta2 * g * g + (1 - beta2) * r
        m_hat, r_hat = m / (1 - (1 - beta1) ** t), r / (1 - (1 - beta2) ** t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def exchanges_the_betas(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path with β₂ for m and β₁ for r."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta2 * m + (1 - beta2) * g
        r = beta1 * r + (1 - beta1) * g * g
        m_hat, r_hat = m / (1 - beta2**t), r / (1 - beta1**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def _steps_by_its_rate_from_the_first_step(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(0.1, 10, size=3) * np.array([1, -1, 1])
    path = np.asarray(function(_constant(g), np.zeros(3), 0.1, 0.9, 0.999, 0.0, 6))
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * np.sign(g), rtol=1e-7))


def _without_memory_it_follows_signs(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    path = np.asarray(function(gradient, _start(rng, 2), 0.1, 0.0, 0.0, 0.0, 4))
    signs = np.sign([gradient(theta) for theta in path[:-1]])
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * signs, rtol=1e-7))


# --- L1-32, L2-07 · Newton's method with a rate and damping -----------------------------------


def newton(
    gradient: Gradient,
    hessian: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    lr: float,
    damping: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of Newton's method."""
    opt = optimizers.Newton(hessian=hessian, lr=lr, damping=damping)
    return run(opt, gradient, start, steps)


def _newton_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps, lr, damping in ((1, 3, 0.5, 0.0), (2, 4, 1.0, 0.5), (3, 6, 0.7, 0.3)):
        gradient, hessian = _objective(rng, n)
        yield {
            "gradient": gradient,
            "hessian": hessian,
            "start": _start(rng, n),
            "lr": lr,
            "damping": damping,
            "steps": steps,
        }


def multiplies_by_the_hessian(gradient, hessian, start, lr, damping, steps):
    """Return the path of θ − η(H + μI)g."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - lr * H @ gradient(theta)
        path.append(theta)
    return np.array(path)


def divides_by_the_diagonal(gradient, hessian, start, lr, damping, steps):
    """Return the path that uses the diagonal of H alone."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * gradient(theta) / (np.diag(hessian(theta)) + damping)
        path.append(theta)
    return np.array(path)


def inverts_each_entry(gradient, hessian, start, lr, damping, steps):
    """Return the path of 1/H entry by entry."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - lr * (1 / H) @ gradient(theta)
        path.append(theta)
    return np.array(path)


def keeps_the_first_hessian(gradient, hessian, start, lr, damping, steps):
    """Return the path with the Hessian of the start."""
    theta, path = start, [start]
    H = hessian(start) + damping * np.eye(len(start))
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(H, gradient(theta))
        path.append(theta)
    return np.array(path)


def forgets_the_rate(gradient, hessian, start, lr, damping, steps):
    """Return the path of η = 1."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - np.linalg.solve(H, gradient(theta))
        path.append(theta)
    return np.array(path)


def forgets_the_damping(gradient, hessian, start, lr, damping, steps):
    """Return the path of μ = 0."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(hessian(theta), gradient(theta))
        path.append(theta)
    return np.array(path)


def damps_every_entry(gradient, hessian, start, lr, damping, steps):
    """Return the path of H + μ, with μ in every entry."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(hessian(theta) + damping, gradient(theta))
        path.append(theta)
    return np.array(path)


def damps_in_the_wrong_direction(gradient, hessian, start, lr, damping, steps):
    """Return the path of H − μI."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) - damping * np.eye(len(theta))
        theta = theta - lr * np.linalg.solve(H, gradient(theta))
        path.append(theta)
    return np.array(path)


def _shrinks_every_direction_alike(function: Function, rng: np.random.Generator) -> bool:
    A = np.diag(rng.uniform(0.01, 100, size=3))
    start = _start(rng, 3)
    path = function(lambda theta: 2 * A @ theta, lambda theta: 2 * A, start, 0.3, 0.0, 5)
    return bool(np.allclose(path, [0.7**t * start for t in range(6)], rtol=1e-9))


def _damping_leads_away_from_a_saddle(function: Function, rng: np.random.Generator) -> bool:
    H = np.diag([1.0, -1.0])
    path = np.asarray(function(lambda w: H @ w, lambda w: H, np.array([1.0, 0.1]), 1.0, 2.0, 4))
    return bool(np.allclose(path[-1], [(2 / 3) ** 4, 0.1 * 2**4], rtol=1e-9))


def _solves_to_the_last_digit(function: Function, rng: np.random.Generator) -> bool:
    # Hilbert's matrix is nearly singular. Solving leaves a residual of rounding size all the same;
    # multiplying by the inverse leaves one that is larger by many powers of ten
    row = np.arange(9)
    H = 1.0 / (row[:, None] + row + 1)
    g = H @ rng.normal(size=9)
    path = np.asarray(function(lambda w: g, lambda w: H, np.zeros(9), 1.0, 0.0, 1))
    return bool(np.linalg.norm(H @ path[1] + g) < 1e-12 * np.linalg.norm(g))


# --- P-07 · preconditioning -------------------------------------------------------------------


def _preconditioned_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps in ((2, 3), (2, 5), (4, 8)):
        gradient, _ = _objective(rng, n)
        # far from symmetric, so that P, Pᵀ, PPᵀ and PᵀP differ
        P = np.eye(n) + np.triu(rng.uniform(0.2, 0.6, size=(n, n))).round(2)
        start = _start(rng, n)
        case = {"gradient": gradient, "preconditioner": P, "start": start, "lr": 0.02}
        yield {**case, "steps": steps}


def multiplies_by_p_alone(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − αP∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def multiplies_by_p_transposed_alone(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − αPᵀ∇L, the step of z taken in θ."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner.T @ gradient(theta)
        path.append(theta)
    return np.array(path)


def transposes_the_wrong_factor(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − αPᵀP∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner.T @ preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def squares_p_without_transposing(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − αPP∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner @ preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def returns_z(gradient, preconditioner, start, lr, steps):
    """Return the path in the variable z."""
    z = np.linalg.solve(preconditioner, start)
    path = [z]
    for _ in range(steps):
        z = z - lr * preconditioner.T @ gradient(preconditioner @ z)
        path.append(z)
    return np.array(path)


def solves_with_the_preconditioner(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − α(PPᵀ)⁻¹∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(preconditioner @ preconditioner.T, gradient(theta))
        path.append(theta)
    return np.array(path)


def leaves_the_preconditioner_out(gradient, preconditioner, start, lr, steps):
    """Return the path of plain gradient descent."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * gradient(theta)
        path.append(theta)
    return np.array(path)


def _agrees_with_descent_in_z(function: Function, rng: np.random.Generator) -> bool:
    *_, case = _preconditioned_cases(rng)
    gradient, P, start, lr, steps = case.values()
    z = run(optimizers.SGD(lr), lambda z: P.T @ gradient(P @ z), np.linalg.solve(P, start), steps)
    return bool(np.allclose(function(*case.values()), z @ P.T, rtol=1e-8))


def _a_good_preconditioner_is_newton(function: Function, rng: np.random.Generator) -> bool:
    # PPᵀ = H⁻¹ reaches the minimum of a quadratic in one step
    M = rng.normal(size=(3, 3))
    H = M @ M.T + np.eye(3)
    P = np.linalg.inv(np.linalg.cholesky(H)).T
    path = np.asarray(function(lambda w: H @ w, P, _start(rng, 3), 1.0, 2))
    return bool(np.allclose(path[1:], 0, atol=1e-9))


EXERCISES = (
    Exercise(
        key="L1-24, L1-25",
        reference=sgd,
        cases=_sgd_cases,
        misconceptions=(
            Misconception(
                "your rate keeps falling after iteration τ; from there on it stays at ε_τ",
                keeps_falling_after_tau,
            ),
            Misconception("your rate falls to 0; it ends at ε_τ = 0.01 ε₀", falls_to_zero),
            Misconception(
                "your first step has k = 1; it has k = 0, and the rate ε₀",
                counts_iterations_from_one,
            ),
            Misconception(
                "your rate rises from ε_τ to ε₀; α = k/τ weights the last rate, not the first",
                exchanges_first_and_last_rate,
            ),
            Misconception("your rate is always ε₀; it decays with k", never_decays),
            Misconception(
                "you add up the gradients of a minibatch; the estimate is their mean",
                sums_over_the_minibatch,
            ),
            Misconception(
                "you step after each example; every gradient of a minibatch is taken at the same θ",
                steps_after_each_example,
            ),
        ),
        properties=(
            Property("under a constant gradient the steps show the rates", _rates_are_on_a_line),
            Property(
                "the order within a minibatch does not matter",
                _sgd_ignores_the_order_in_a_minibatch,
            ),
        ),
    ),
    Exercise(
        key="L1-26",
        reference=momentum,
        cases=_momentum_cases,
        misconceptions=(
            Misconception(
                "you weight the new gradient by 1 − α; here it enters whole: v ← αv − εg",
                weights_the_gradient_by_one_minus_alpha,
            ),
            Misconception(
                "you keep the share 1 − α of the velocity; α itself is the share that is kept",
                exchanges_alpha_and_one_minus_alpha,
            ),
            Misconception(
                "you move by the old velocity; first update v, then move by the new one",
                moves_by_the_old_velocity,
            ),
            Misconception(
                "your velocity points uphill; it takes the gradient with a minus, v ← αv − εg",
                climbs_with_its_velocity,
            ),
            Misconception(
                "your velocity is forgotten after each step; carry v from one step to the next",
                forgets_the_velocity,
            ),
            Misconception(
                "you take the gradient at θ + αv, which is Nesterov's; momentum takes it at θ",
                takes_the_gradient_ahead,
            ),
            Misconception(
                "you multiply by ε twice, in the velocity and in the move; the move is θ + v",
                scales_the_velocity_twice,
            ),
        ),
        properties=(
            Property(
                "under a constant gradient the velocity is a geometric sum",
                _velocity_is_a_geometric_sum,
            ),
            Property("it ends at the terminal velocity ε|g|/(1 − α)", _velocity_is_terminal),
        ),
    ),
    Exercise(
        key="L1-27",
        reference=nesterov,
        cases=_nesterov_cases,
        misconceptions=(
            Misconception(
                "you take the gradient at θ; Nesterov takes it at the interim point θ + αv",
                takes_the_gradient_here,
            ),
            Misconception(
                "your interim point is θ + v; only αv is left of the velocity: θ + αv",
                looks_ahead_by_the_whole_velocity,
            ),
            Misconception("you look back, to θ − αv; the interim point is θ + αv", looks_back),
            Misconception(
                "you move on from the interim point, so that αv counts twice; "
                "move from θ itself: θ ← θ + v",
                moves_on_from_the_interim_point,
            ),
            Misconception(
                "your new velocity has lost the old one; it is αv − εg",
                forgets_the_velocity_after_looking,
            ),
            Misconception(
                "you return the interim points, which torch calls the parameters; return θ",
                returns_the_interim_points,
            ),
        ),
        properties=(
            Property("the gradient is asked for at θ + αv", _asks_at_the_interim_point),
            Property("with α = 0 it is gradient descent", _without_momentum_it_is_descent),
        ),
    ),
    Exercise(
        key="L1-29",
        reference=adagrad,
        cases=_adagrad_cases,
        misconceptions=(
            Misconception(
                "your δ stands inside the root; in AdaGrad it stands outside: δ + √r",
                puts_delta_inside_the_root,
            ),
            Misconception(
                "you divide by the sum itself; divide by its root, δ + √r",
                forgets_the_root_of_the_sum,
            ),
            Misconception(
                "you divide by the sum of the earlier steps; add the newest g ⊙ g first",
                divides_by_the_sum_of_earlier_steps,
            ),
            Misconception(
                "you take the mean of the squares, which does not grow; AdaGrad takes their sum",
                averages_the_squares,
            ),
            Misconception(
                "all your parameters share one rate; each entry has a sum of its own, g ⊙ g",
                shares_one_rate_among_all,
            ),
            Misconception(
                "your r holds the newest square alone; carry it from step to step",
                forgets_the_earlier_squares,
            ),
            Misconception(
                "you add |g| up; r adds the squares, g ⊙ g", adds_the_gradients_unsquared
            ),
        ),
        properties=(
            Property(
                "under a constant gradient the steps fall like 1/√t",
                _steps_fall_like_the_root_of_t,
            ),
            Property("no entry touches another", _entries_do_not_touch_each_other),
        ),
    ),
    Exercise(
        key="L1-30, L1-31",
        reference=rmsprop,
        cases=_rmsprop_cases,
        misconceptions=(
            Misconception(
                "your ρ weights the new square; it is the share of the old: r ← ρr + (1 − ρ)g ⊙ g",
                gives_rho_to_the_new_square,
            ),
            Misconception(
                "your δ stands outside the root, as in torch; the lecture has it inside: √(δ + r)",
                adds_delta_outside_the_root,
            ),
            Misconception(
                "you take the gradient at θ; with Nesterov momentum it is taken at θ + αv",
                squares_at_theta_itself,
            ),
            Misconception(
                "you divide the old velocity by the root too; only the gradient is divided",
                divides_the_old_velocity_too,
            ),
            Misconception(
                "your new square lacks its weight 1 − ρ", adds_squares_without_one_minus_rho
            ),
            Misconception(
                "your r adds up all squares, as in AdaGrad; RMSProp forgets: r ← ρr + (1 − ρ)g ⊙ g",
                never_forgets_a_square,
            ),
            Misconception("you divide by δ + r; divide by its root", forgets_the_root_of_the_mean),
            Misconception(
                "you correct the bias of r, which Adam does; RMSProp does not",
                frees_the_mean_of_its_bias,
            ),
        ),
        properties=(
            Property(
                "the first step is ε/√(1 − ρ) in every direction", _first_step_is_one_over_the_root
            ),
            Property("with δ = 0 the units of the loss do not matter", _units_do_not_matter),
        ),
    ),
    Exercise(
        key="L2-05",
        reference=adadelta,
        cases=_adadelta_cases,
        misconceptions=(
            Misconception(
                "you divide by the r of the step before; update r first, then make the step",
                divides_before_it_accumulates,
            ),
            Misconception(
                "you update d before you step; the step Δ is made with the old d",
                accumulates_steps_before_it_steps,
            ),
            Misconception(
                "your d lags by one step too many; after each step it takes in that very Δ",
                uses_steps_one_turn_late,
            ),
            Misconception(
                "your quotient is upside down; the steps stand above, the gradients below",
                turns_the_quotient_upside_down,
            ),
            Misconception(
                "you divide the averages of the squares; divide their roots", forgets_both_roots
            ),
            Misconception(
                "your δ stands outside the roots; here it stands inside both",
                leaves_delta_outside_both_roots,
            ),
            Misconception(
                "your d averages the step after the rate η; it averages Δ before it",
                averages_the_step_after_the_rate,
            ),
            Misconception(
                "your ρ weights the new values; it is the share of the old averages",
                gives_rho_to_the_new_values,
            ),
            Misconception(
                "your d is never updated; it averages the squares of the steps",
                never_averages_the_steps,
            ),
        ),
        properties=(
            Property("its first two steps are those made by hand", _two_steps_by_hand),
            Property("without δ the units of the loss do not matter", _loss_can_change_its_units),
        ),
    ),
    Exercise(
        key="L2-06",
        reference=adam,
        cases=_adam_cases,
        misconceptions=(
            Misconception(
                "your averages wear no hats; divide m by 1 − β₁ᵗ and r by 1 − β₂ᵗ", wears_no_hats
            ),
            Misconception("your r has no hat; divide it by 1 − β₂ᵗ", forgets_the_hat_on_r),
            Misconception("your m has no hat; divide it by 1 − β₁ᵗ", forgets_the_hat_on_m),
            Misconception(
                "your t counts from 0, so that the first step divides by 1 − β⁰ = 0; "
                "it counts from 1",
                counts_steps_from_zero,
            ),
            Misconception(
                "your t is one too large; it is 1 in the first step", counts_steps_from_two
            ),
            Misconception(
                "you carry m̂ and r̂ over to the next step; carry m and r, without their hats",
                keeps_the_hats_on,
            ),
            Misconception(
                "your δ stands inside the root; in Adam it stands outside: √r̂ + δ",
                moves_delta_under_the_root,
            ),
            Misconception(
                "your β weights the new gradient, as in the second lecture; "
                "here it is the share of the old average",
                gives_beta_to_the_new_gradient,
            ),
            Misconception(
                "your β₁ and β₂ have changed places; β₁ belongs to m, β₂ to r", exchanges_the_betas
            ),
        ),
        properties=(
            Property(
                "under a constant gradient every step is ε, from the first one on",
                _steps_by_its_rate_from_the_first_step,
            ),
            Property(
                "with β₁ = β₂ = 0 it follows the signs of the gradient",
                _without_memory_it_follows_signs,
            ),
        ),
    ),
    Exercise(
        key="L1-32, L2-07",
        reference=newton,
        cases=_newton_cases,
        misconceptions=(
            Misconception(
                "you multiply by the Hessian; solve the system with it", multiplies_by_the_hessian
            ),
            Misconception(
                "you use the diagonal of the Hessian alone; solve with all of it",
                divides_by_the_diagonal,
            ),
            Misconception(
                "1/H inverts each entry; the inverse of a matrix is something else: use solve",
                inverts_each_entry,
            ),
            Misconception(
                "you keep the Hessian of the start; take it anew at each θ",
                keeps_the_first_hessian,
            ),
            Misconception("your rate η is missing; it multiplies the step", forgets_the_rate),
            Misconception("your damping is missing; solve with H + μI", forgets_the_damping),
            Misconception(
                "you add μ to every entry of H; add it to the diagonal: H + μI", damps_every_entry
            ),
            Misconception(
                "you subtract the damping; it makes the curvature larger: H + μI",
                damps_in_the_wrong_direction,
            ),
        ),
        properties=(
            Property(
                "on θ·Aθ each step is 1 − η times the last, in every direction",
                _shrinks_every_direction_alike,
            ),
            Property(
                "damping leads away from a saddle: each step scales a coordinate by 1 − ηλ/(λ + μ)",
                _damping_leads_away_from_a_saddle,
            ),
            Property(
                "it solves the system to the last digit; an inverse does not",
                _solves_to_the_last_digit,
            ),
        ),
    ),
    Exercise(
        key="P-07",
        reference=preconditioned_descent,
        cases=_preconditioned_cases,
        misconceptions=(
            Misconception(
                "you multiply by P alone; the chain rule brings in Pᵀ too: PPᵀ∇L",
                multiplies_by_p_alone,
            ),
            Misconception(
                "yours is the step of z, Pᵀ∇L; back in θ = Pz it is PPᵀ∇L",
                multiplies_by_p_transposed_alone,
            ),
            Misconception(
                "your factors have changed places; it is PPᵀ, not PᵀP",
                transposes_the_wrong_factor,
            ),
            Misconception(
                "you multiply by P twice; the second factor is its transpose, PPᵀ",
                squares_p_without_transposing,
            ),
            Misconception("you return z; return θ = Pz", returns_z),
            Misconception("you solve with PPᵀ; multiply by it", solves_with_the_preconditioner),
            Misconception(
                "your path is that of plain descent; multiply the gradient by PPᵀ",
                leaves_the_preconditioner_out,
            ),
        ),
        properties=(
            Property("it is gradient descent in z", _agrees_with_descent_in_z),
            Property(
                "with PPᵀ = H⁻¹ one step reaches the minimum of a quadratic",
                _a_good_preconditioner_is_newton,
            ),
        ),
    ),
)
