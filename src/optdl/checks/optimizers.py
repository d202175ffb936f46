"""Exercises on the optimizers: a method returns every iterate, which the checks compare one by one.

The references step the objects of :mod:`optdl.optimizers`. Each mistake stands here as a plain
function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from optdl import optimizers
from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.objectives import (
    constant,
    example_gradient,
    linear,
    log_cosh_gradient,
    log_cosh_hessian,
    named,
    times,
)
from optdl.optimizers import preconditioned_descent, run

Gradient = Callable[[np.ndarray], np.ndarray]


# --- Random inputs ----------------------------------------------------------------------------


def _objective(rng: np.random.Generator, n: int) -> tuple[Gradient, Callable[..., np.ndarray]]:
    """Return gradient and Hessian of Σ log cosh(Aw − b) + ½‖w‖²: convex, smooth, not quadratic."""
    A = rng.uniform(0.5, 2.0, size=(n, n)).round(1) * rng.choice([-1, 1], size=(n, n))
    b = rng.uniform(-1, 1, size=n).round(1)
    where = f"A = {A.tolist()}, b = {b.tolist()}"
    hessian = f"w ↦ A.T @ diag(1 / cosh(A @ w - b)**2) @ A + I, {where}"
    return (
        named(f"w ↦ A.T @ tanh(A @ w - b) + w, {where}", log_cosh_gradient, A, b),
        named(hessian, log_cosh_hessian, A, b),
    )


def _start(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(1.0, 2.0, size=n).round(1) * rng.choice([-1, 1], size=n)


def _paths(rng: np.random.Generator, **settings: tuple[float, ...]) -> Iterator[Case]:
    """Yield paths of 3, 5 and 8 steps; each setting has a value for each of them."""
    for number, (n, steps) in enumerate(((1, 3), (2, 5), (4, 8))):
        gradient, _ = _objective(rng, n)
        chosen = {name: values[number] for name, values in settings.items()}
        yield {"gradient": gradient, "start": _start(rng, n), **chosen, "steps": steps}


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


def _sgd_cases(rng: np.random.Generator) -> Iterator[Case]:
    gradient = named("(theta, z) ↦ (z[:-1] @ theta - z[-1]) * z[:-1]", example_gradient)
    for n, size, steps, tau in ((1, 2, 4, 2), (2, 3, 6, 3), (3, 4, 8, 5)):
        batches = list(rng.uniform(-1, 1, size=(steps, size, n + 1)).round(1))
        start = _start(rng, n)
        yield {"gradient": gradient, "start": start, "batches": batches, "first": 0.4, "tau": tau}


def keeps_falling_after_tau(gradient, start, batches, first, tau):
    """Return the path of a rate that passes η_τ and turns negative."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        lr = (1 - k / tau) * first + k / tau * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def falls_to_zero(gradient, start, batches, first, tau):
    """Return the path of a rate that ends at 0 in place of η_τ."""
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
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def exchanges_first_and_last_rate(gradient, start, batches, first, tau):
    """Return the path of a rate that rises."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = s * first + (1 - s) * 0.01 * first
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
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * 0.01 * first
        theta = theta - lr * np.sum([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def steps_after_each_example(gradient, start, batches, first, tau):
    """Return the path of one step for each example, seen once per minibatch."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * 0.01 * first
        for z in batch:
            theta = theta - lr / len(batch) * gradient(theta, z)
        path.append(theta)
    return np.array(path)


def _rates_are_on_a_line(function: Function, rng: np.random.Generator) -> bool:
    # a gradient of −1 everywhere makes the steps equal to the rates
    batches = [np.zeros((2, 1))] * 12
    path = np.asarray(function(partial(constant, -np.ones(1)), np.zeros(1), batches, 0.5, 8))
    expected = np.interp(np.arange(12), [0, 8], [0.5, 0.005])
    return bool(np.allclose(np.diff(path.ravel()), expected, rtol=1e-9))


def _sgd_ignores_the_order_in_a_minibatch(function: Function, rng: np.random.Generator) -> bool:
    *_, case = _sgd_cases(rng)
    path = function(*case.values())
    turned = case | {"batches": [batch[::-1] for batch in case["batches"]]}
    return bool(np.allclose(function(*turned.values()), path, rtol=1e-9))


SGD = Exercise(
    key="L1-24, L1-25",
    reference=sgd,
    cases=_sgd_cases,
    misconceptions=(
        Misconception(
            "your learning rate keeps falling after iteration τ; from there on it stays at η_τ",
            keeps_falling_after_tau,
        ),
        Misconception("your learning rate falls to 0; it ends at 0.01 η₀", falls_to_zero),
        Misconception(
            "your first step has k = 1; it has k = 0, and the learning rate η₀",
            counts_iterations_from_one,
        ),
        Misconception(
            "your learning rate rises from η_τ to η₀; s = k/τ is the weight of the last one, "
            "η_τ = 0.01 η₀",
            exchanges_first_and_last_rate,
        ),
        Misconception("your learning rate is always η₀; it falls with k", never_decays),
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
        Property(
            "under a constant gradient of size 1 the steps equal the learning rates",
            _rates_are_on_a_line,
        ),
        Property(
            "the order within a minibatch does not matter",
            _sgd_ignores_the_order_in_a_minibatch,
        ),
    ),
)


# --- L1-26 · momentum -------------------------------------------------------------------------


def momentum(
    gradient: Gradient, start: np.ndarray, lr: float, alpha: float, steps: int
) -> np.ndarray:
    """Return every iterate of gradient descent with momentum."""
    return run(optimizers.Momentum(lr, alpha), gradient, start, steps)


def _momentum_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(0.1, 0.05, 0.02), alpha=(0.5, 0.9, 0.8))


def weights_the_gradient_by_one_minus_alpha(gradient, start, lr, alpha, steps):
    """Return the path of v ← αv − (1 − α) η g."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - (1 - alpha) * lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def exchanges_alpha_and_one_minus_alpha(gradient, start, lr, alpha, steps):
    """Return the path of v ← (1 − α) v − η g."""
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
    """Return the path of v ← αv + ηg, θ ← θ + v."""
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
    """Return the path of v ← αv − g, θ ← θ + αv − ηg."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + lr * v
        path.append(theta)
    return np.array(path)


def _velocity_is_a_geometric_sum(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=2)
    path = np.asarray(function(partial(constant, g), np.zeros(2), 0.1, 0.5, 12))
    expected = [-0.1 * g * sum(0.5**k for k in range(t)) for t in range(1, 13)]
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


def _velocity_is_terminal(function: Function, rng: np.random.Generator) -> bool:
    alpha = round(float(rng.uniform(0.4, 0.8)), 2)
    path = np.asarray(function(partial(constant, np.array([-2.0])), np.zeros(1), 0.1, alpha, 200))
    return bool(np.isclose((path[-1] - path[-2])[0], 0.2 / (1 - alpha), rtol=1e-9))


MOMENTUM = Exercise(
    key="L1-26",
    reference=momentum,
    cases=_momentum_cases,
    misconceptions=(
        Misconception(
            "you multiply the new gradient by 1 − α; here its weight is 1: v ← αv − ηg",
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
            "your velocity points uphill; it takes the gradient with a minus, v ← αv − ηg",
            climbs_with_its_velocity,
        ),
        Misconception(
            "your velocity starts from zero in each step; keep v from one step to the next",
            forgets_the_velocity,
        ),
        Misconception(
            "you take the gradient at θ + αv, as Nesterov does; momentum takes it at θ",
            takes_the_gradient_ahead,
        ),
        Misconception(
            "you multiply by η twice, in the velocity and in the move; the move is θ + v",
            scales_the_velocity_twice,
        ),
    ),
    properties=(
        Property(
            "under a constant gradient the velocity is a geometric sum",
            _velocity_is_a_geometric_sum,
        ),
        Property("it ends at the terminal velocity η|g|/(1 − α)", _velocity_is_terminal),
    ),
)


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
    """Return the path θ ← θ − η g(θ̃), whose velocity is the last step alone."""
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


NESTEROV = Exercise(
    key="L1-27",
    reference=nesterov,
    cases=_nesterov_cases,
    misconceptions=(
        Misconception(
            "you take the gradient at θ; Nesterov takes it at the interim point θ + αv",
            takes_the_gradient_here,
        ),
        Misconception(
            "your interim point is θ + v; the next step keeps only the share α of v: θ + αv",
            looks_ahead_by_the_whole_velocity,
        ),
        Misconception(
            "your interim point lies behind, at θ − αv; it lies ahead, at θ + αv", looks_back
        ),
        Misconception(
            "you move on from the interim point, so that αv counts twice; "
            "move from θ itself: θ ← θ + v",
            moves_on_from_the_interim_point,
        ),
        Misconception(
            "your new velocity lacks the old one; it is αv − ηg",
            forgets_the_velocity_after_looking,
        ),
        Misconception(
            "you return the interim points, which torch calls the parameters; return θ",
            returns_the_interim_points,
        ),
    ),
    properties=(
        Property("it evaluates the gradient at θ + αv", _asks_at_the_interim_point),
        Property("with α = 0 it is gradient descent", _without_momentum_it_is_descent),
    ),
)


# --- L1-29 · AdaGrad --------------------------------------------------------------------------


def adagrad(
    gradient: Gradient, start: np.ndarray, lr: float, delta: float, steps: int
) -> np.ndarray:
    """Return every iterate of AdaGrad."""
    return run(optimizers.AdaGrad(lr, delta=delta), gradient, start, steps)


def _adagrad_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(rng, lr=(0.2, 0.1, 0.3), delta=(0.1, 0.3, 0.2))


def puts_delta_inside_the_root(gradient, start, lr, delta, steps):
    """Return the path of η/√(δ + r)."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def forgets_the_root_of_the_sum(gradient, start, lr, delta, steps):
    """Return the path of η/(δ + r)."""
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
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.2, 0.1, 10))
    t = np.arange(1, 11)[:, None]
    expected = -0.2 * g / (0.1 + np.abs(g) * np.sqrt(t))
    return bool(np.allclose(np.diff(path, axis=0), expected, rtol=1e-9))


def _entries_do_not_touch_each_other(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=3)
    together = np.asarray(function(partial(constant, g), np.zeros(3), 0.2, 0.1, 5))
    alone = np.asarray(function(partial(constant, g[:1]), np.zeros(1), 0.2, 0.1, 5))
    return bool(np.allclose(together[:, :1], alone, rtol=1e-9))


ADAGRAD = Exercise(
    key="L1-29",
    reference=adagrad,
    cases=_adagrad_cases,
    misconceptions=(
        Misconception(
            "your δ stands inside the root; in AdaGrad it stands outside: δ + √r",
            puts_delta_inside_the_root,
        ),
        Misconception(
            "you divide by δ + r; divide by δ + √r, with the root of the sum",
            forgets_the_root_of_the_sum,
        ),
        Misconception(
            "you divide by the sum of the earlier steps; add the newest g ⊙ g first",
            divides_by_the_sum_of_earlier_steps,
        ),
        Misconception(
            "your r is the mean of the squares; in AdaGrad it is their sum",
            averages_the_squares,
        ),
        Misconception(
            "all your parameters share one learning rate; each entry has a sum of its own, "
            "of g ⊙ g",
            shares_one_rate_among_all,
        ),
        Misconception(
            "your r is the newest square alone; add to the r of the last step",
            forgets_the_earlier_squares,
        ),
        Misconception(
            "your r is the sum of |g|; it is the sum of the squares, g ⊙ g",
            adds_the_gradients_unsquared,
        ),
    ),
    properties=(
        Property(
            "under a constant gradient the steps fall like 1/√t",
            _steps_fall_like_the_root_of_t,
        ),
        Property("no entry depends on another", _entries_do_not_touch_each_other),
    ),
)


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
    """Return the path of η/(√r + δ), as torch has it."""
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
    """Return the path of η/(δ + r)."""
    theta, r, v, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / (delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def corrects_the_bias_of_the_mean(gradient, start, lr, rho, delta, alpha, steps):
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
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.1, 0.75, 0.0, 0.5, 3))
    return bool(np.allclose(path[1], -0.1 * np.sign(g) / 0.5, rtol=1e-9))


def _units_do_not_matter(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    start = _start(rng, 2)
    settings = (start, 0.05, 0.8, 0.0, 0.7, 6)
    scaled = function(partial(times, 100, gradient), *settings)
    return bool(np.allclose(function(gradient, *settings), scaled, rtol=1e-9))


RMSPROP = Exercise(
    key="L1-30, L1-31",
    reference=rmsprop,
    cases=_rmsprop_cases,
    misconceptions=(
        Misconception(
            "your ρ is the weight of the new square; it is that of the old: ρr + (1 − ρ)g ⊙ g",
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
            "your new square lacks its weight: r ← ρr + (1 − ρ)g ⊙ g",
            adds_squares_without_one_minus_rho,
        ),
        Misconception(
            "your r is the sum of all squares, as in AdaGrad; here it is ρr + (1 − ρ)g ⊙ g",
            never_forgets_a_square,
        ),
        Misconception(
            "you divide by δ + r; divide by its root, √(δ + r)", forgets_the_root_of_the_mean
        ),
        Misconception(
            "you divide r by 1 − ρᵗ, as Adam does; RMSProp does not correct the bias",
            corrects_the_bias_of_the_mean,
        ),
    ),
    properties=(
        Property(
            "the first step is η/√(1 − ρ) in every direction", _first_step_is_one_over_the_root
        ),
        Property("with δ = 0 the units of the loss do not matter", _units_do_not_matter),
    ),
)


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
    """Return the path whose d averages (ηΔ)²."""
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
    """Return the path whose d stays 0: RMSProp with the rate η√δ."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        theta = theta - lr * np.sqrt(delta) / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def _two_steps_by_hand(function: Function, rng: np.random.Generator) -> bool:
    # ρ = ½, δ = 1, g = √2: r = 1, 1½ and Δ² = (1 + 0)/2 · 2 = 1, then (1 + ½)/2½ · 2 = 6/5
    path = function(partial(constant, np.array([2**0.5])), np.zeros(1), 1.0, 0.5, 1.0, 2)
    return bool(np.allclose(np.ravel(path), [0, -1, -1 - 1.2**0.5], rtol=1e-9))


def _loss_can_change_its_units(function: Function, rng: np.random.Generator) -> bool:
    g = rng.uniform(1, 3, size=2)
    small = function(partial(constant, g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    large = function(partial(constant, 1000 * g), np.zeros(2), 1.0, 0.9, 1e-18, 6)
    return bool(np.allclose(small, large, rtol=1e-6, atol=0))


ADADELTA = Exercise(
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
            "your d lags by one step more; after each step, average the Δ of that step",
            uses_steps_one_turn_late,
        ),
        Misconception(
            "your quotient is inverted; √(δ + d) is its numerator, √(δ + r) its denominator",
            turns_the_quotient_upside_down,
        ),
        Misconception(
            "your quotient lacks the roots; it is √(δ + d) over √(δ + r)", forgets_both_roots
        ),
        Misconception(
            "your δ stands outside the roots; here it stands inside both",
            leaves_delta_outside_both_roots,
        ),
        Misconception(
            "your d averages ηΔ; it averages Δ, before the multiplication by η",
            averages_the_step_after_the_rate,
        ),
        Misconception(
            "your ρ is the weight of the new values; it is that of the old averages",
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
)


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


def leaves_both_averages_biased(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path without any correction of the bias."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def leaves_r_biased(gradient, start, lr, beta1, beta2, delta, steps):
    """Return the path with a hat on m alone."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def leaves_m_biased(gradient, start, lr, beta1, beta2, delta, steps):
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


def carries_the_corrected_averages(gradient, start, lr, beta1, beta2, delta, steps):
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
    path = np.asarray(function(partial(constant, g), np.zeros(3), 0.1, 0.9, 0.999, 0.0, 6))
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * np.sign(g), rtol=1e-7))


def _without_memory_it_follows_signs(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    path = np.asarray(function(gradient, _start(rng, 2), 0.1, 0.0, 0.0, 0.0, 4))
    signs = np.sign([gradient(theta) for theta in path[:-1]])
    return bool(np.allclose(np.diff(path, axis=0), -0.1 * signs, rtol=1e-7))


ADAM = Exercise(
    key="L2-06",
    reference=adam,
    cases=_adam_cases,
    misconceptions=(
        Misconception(
            "you correct the bias of neither average; divide m by 1 − β₁ᵗ and r by 1 − β₂ᵗ",
            leaves_both_averages_biased,
        ),
        Misconception("you do not correct the bias of r; divide it by 1 − β₂ᵗ", leaves_r_biased),
        Misconception("you do not correct the bias of m; divide it by 1 − β₁ᵗ", leaves_m_biased),
        Misconception(
            "your t counts from 0, so that the first step divides by 1 − β⁰ = 0; it counts from 1",
            counts_steps_from_zero,
        ),
        Misconception("your t is one too large; it is 1 in the first step", counts_steps_from_two),
        Misconception(
            "you keep m̂ and r̂ for the next step; keep m and r, which are not corrected",
            carries_the_corrected_averages,
        ),
        Misconception(
            "your δ stands inside the root; in Adam it stands outside: √r̂ + δ",
            moves_delta_under_the_root,
        ),
        Misconception(
            "your β is the weight of the new gradient, as in the second lecture; "
            "here it is that of the old average",
            gives_beta_to_the_new_gradient,
        ),
        Misconception(
            "your β₁ and β₂ are exchanged; β₁ belongs to m, β₂ to r", exchanges_the_betas
        ),
    ),
    properties=(
        Property(
            "under a constant gradient every step is η, from the first one on",
            _steps_by_its_rate_from_the_first_step,
        ),
        Property(
            "with β₁ = β₂ = 0 it follows the signs of the gradient",
            _without_memory_it_follows_signs,
        ),
    ),
)


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
    path = function(partial(linear, 2 * A), partial(constant, 2 * A), start, 0.3, 0.0, 5)
    return bool(np.allclose(path, [0.7**t * start for t in range(6)], rtol=1e-9))


def _damping_leads_away_from_a_saddle(function: Function, rng: np.random.Generator) -> bool:
    H = np.diag([1.0, -1.0])
    gradient, hessian = partial(linear, H), partial(constant, H)
    path = np.asarray(function(gradient, hessian, np.array([1.0, 0.1]), 1.0, 2.0, 4))
    return bool(np.allclose(path[-1], [(2 / 3) ** 4, 0.1 * 2**4], rtol=1e-9))


def _solves_to_the_last_digit(function: Function, rng: np.random.Generator) -> bool:
    # Hilbert's matrix is nearly singular. Solving leaves a residual of rounding size all the same;
    # multiplying by the inverse leaves one that is larger by many powers of ten
    row = np.arange(9)
    H = 1.0 / (row[:, None] + row + 1)
    g = H @ rng.normal(size=9)
    gradient, hessian = partial(constant, g), partial(constant, H)
    path = np.asarray(function(gradient, hessian, np.zeros(9), 1.0, 0.0, 1))
    return bool(np.linalg.norm(H @ path[1] + g) < 1e-12 * np.linalg.norm(g))


NEWTON = Exercise(
    key="L1-32, L2-07",
    reference=newton,
    cases=_newton_cases,
    misconceptions=(
        Misconception(
            "you multiply by the Hessian; solve the linear system with it",
            multiplies_by_the_hessian,
        ),
        Misconception(
            "you use the diagonal of the Hessian alone; solve with all of it",
            divides_by_the_diagonal,
        ),
        Misconception(
            "1/H inverts each entry, which is not the inverse matrix; use np.linalg.solve",
            inverts_each_entry,
        ),
        Misconception(
            "you use the Hessian of the start in each step; evaluate it at each θ",
            keeps_the_first_hessian,
        ),
        Misconception("the learning rate η is missing; it multiplies the step", forgets_the_rate),
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
            "on θ·Aθ each step multiplies θ by 1 − η, whatever the direction",
            _shrinks_every_direction_alike,
        ),
        Property(
            "damping leads away from a saddle: a step has the factor 1 − ηλ/(λ + μ)",
            _damping_leads_away_from_a_saddle,
        ),
        Property(
            "its residual has the size of rounding errors, which an inverse does not reach",
            _solves_to_the_last_digit,
        ),
    ),
)


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
    """Return the path of θ − ηP∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def multiplies_by_p_transposed_alone(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − ηPᵀ∇L, the step of z taken in θ."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner.T @ gradient(theta)
        path.append(theta)
    return np.array(path)


def transposes_the_wrong_factor(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − ηPᵀP∇L."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner.T @ preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def squares_p_without_transposing(gradient, preconditioner, start, lr, steps):
    """Return the path of θ − ηPP∇L."""
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
    """Return the path of θ − η(PPᵀ)⁻¹∇L."""
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
    path = np.asarray(function(partial(linear, H), P, _start(rng, 3), 1.0, 2))
    return bool(np.allclose(path[1:], 0, atol=1e-9))


PRECONDITIONED_DESCENT = Exercise(
    key="P-07",
    reference=preconditioned_descent,
    cases=_preconditioned_cases,
    misconceptions=(
        Misconception(
            "you multiply by P alone; by the chain rule it is PPᵀ∇L",
            multiplies_by_p_alone,
        ),
        Misconception(
            "your step is that of z, Pᵀ∇L; for θ = Pz it is PPᵀ∇L",
            multiplies_by_p_transposed_alone,
        ),
        Misconception(
            "your factors are exchanged; the matrix is PPᵀ, not PᵀP",
            transposes_the_wrong_factor,
        ),
        Misconception(
            "you multiply by P twice; the second factor is its transpose, PPᵀ",
            squares_p_without_transposing,
        ),
        Misconception("you return z; return θ = Pz", returns_z),
        Misconception("you solve with PPᵀ; multiply by it", solves_with_the_preconditioner),
        Misconception(
            "your path is that of gradient descent; multiply the gradient by PPᵀ",
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
)


# --- F-01 · the rate of momentum on a quadratic -----------------------------------------------


def _rate_cases(rng: np.random.Generator) -> Iterator[Case]:
    for lr, alpha, eigenvalues in (
        (0.1, 0.5, [1.0]),  # complex
        (0.05, 0.3, [1.0]),  # real
        (0.2, 0.6, [0.05, 3.0]),  # the smallest eigenvalue decides
        (0.9, 0.1, [0.9, 2.3]),  # the largest, with a negative z
        (1.1, 0.4, [1.0, 0.5, 3.0]),  # divergence
    ):
        noise = rng.uniform(0.98, 1.02, size=len(eigenvalues))
        drawn = (np.array(eigenvalues) * noise).round(4)
        yield {"lr": lr, "alpha": alpha, "eigenvalues": drawn}


def is_always_the_root_of_alpha(lr, alpha, eigenvalues):
    """Return √α, the modulus of complex eigenvalues."""
    return np.sqrt(alpha)


def uses_the_rate_of_gradient_descent(lr, alpha, eigenvalues):
    """Return the largest |1 − ηλ|."""
    return np.max(np.abs(1 - lr * np.array(eigenvalues)))


def takes_the_fastest_direction(lr, alpha, eigenvalues):
    """Return the smallest spectral radius."""
    rates = []
    for e in eigenvalues:
        M = np.array([[1 - lr * e, alpha], [-lr * e, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.min(rates)


def takes_real_parts(lr, alpha, eigenvalues):
    """Return the largest real part in place of the modulus."""
    rates = []
    for e in eigenvalues:
        M = np.array([[1 - lr * e, alpha], [-lr * e, alpha]])
        rates.append(np.max(np.linalg.eigvals(M).real))
    return np.max(rates)


def takes_the_norm_of_the_matrix(lr, alpha, eigenvalues):
    """Return the largest singular value."""
    rates = []
    for e in eigenvalues:
        M = np.array([[1 - lr * e, alpha], [-lr * e, alpha]])
        rates.append(np.linalg.norm(M, 2))
    return np.max(rates)


def moves_the_coefficient_by_the_old_velocity(lr, alpha, eigenvalues):
    """Return the rate of (c, v) ↦ (c + v, αv − ηλc)."""
    rates = []
    for e in eigenvalues:
        M = np.array([[1, 1], [-lr * e, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.max(rates)


def weights_the_curvature_by_one_minus_alpha(lr, alpha, eigenvalues):
    """Return the rate of v ← αv − (1 − α)ηλc."""
    rates = []
    for e in eigenvalues:
        pull = (1 - alpha) * lr * e
        M = np.array([[1 - pull, alpha], [-pull, alpha]])
        rates.append(np.max(np.abs(np.linalg.eigvals(M))))
    return np.max(rates)


def _best_constants_give_the_best_rate(function: Function, rng: np.random.Generator) -> bool:
    low, high = rng.uniform(0.5, 1.0), rng.uniform(20.0, 40.0)
    best = optimizers.optimal_momentum(low, high)
    rate = function(best.lr, best.alpha, np.linspace(low, high, 5))
    return bool(np.isclose(rate, best.rate, atol=1e-5))  # double roots lose half of the digits


def _without_velocity_it_is_that_of_descent(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = rng.uniform(0.1, 5.0, size=3)
    expected = np.max(np.abs(1 - 0.3 * eigenvalues))
    return bool(np.isclose(function(0.3, 0.0, eigenvalues), expected, rtol=1e-8))


MOMENTUM_RATE = Exercise(
    key="F-01",
    reference=optimizers.momentum_rate,
    cases=_rate_cases,
    misconceptions=(
        Misconception(
            "your result is always √α; that is the modulus of complex eigenvalues only",
            is_always_the_root_of_alpha,
        ),
        Misconception(
            "your result is that of gradient descent, |1 − ηλ|; form the 2×2 matrix of c and v",
            uses_the_rate_of_gradient_descent,
        ),
        Misconception(
            "you return the factor of the fastest direction; the slowest one decides: take the "
            "largest",
            takes_the_fastest_direction,
        ),
        Misconception(
            "you take the real part of z; a complex z shrinks by its modulus |z|",
            takes_real_parts,
        ),
        Misconception(
            "you take the norm of the matrix, which bounds one step; "
            "the long run is ruled by its eigenvalues",
            takes_the_norm_of_the_matrix,
        ),
        Misconception(
            "your matrix moves c by the old velocity; c moves by the new one, so that its row "
            "is (1 − ηλ, α)",
            moves_the_coefficient_by_the_old_velocity,
        ),
        Misconception(
            "your gradient has the weight 1 − α; here it is 1: v ← αv − ηλc",
            weights_the_curvature_by_one_minus_alpha,
        ),
    ),
    properties=(
        Property("with η* and α* it is (√κ − 1)/(√κ + 1)", _best_constants_give_the_best_rate),
        Property("with α = 0 it is the largest |1 − ηλ|", _without_velocity_it_is_that_of_descent),
    ),
    rtol=1e-7,
)


# --- F-03 · what adaptive methods divide by ---------------------------------------------------


def _diagonal_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, n, batch in ((3, 1, 2), (4, 2, 1), (4, 2, 4), (6, 3, 2), (9, 4, 5)):
        gradients = rng.uniform(-1, 2, size=(m, n)).round(1) + 0.25
        yield {"gradients": gradients, "batch": batch}


def takes_the_full_gradient(gradients, batch):
    """Return |ḡ|, as if there were no noise."""
    return np.abs(np.mean(gradients, axis=0))


def takes_the_fisher_diagonal(gradients, batch):
    """Return the root of the mean square, right for minibatches of one example."""
    return np.sqrt(np.mean(gradients**2, axis=0))


def forgets_the_mean(gradients, batch):
    """Return the standard deviation of the minibatch gradient alone."""
    m = len(gradients)
    return np.sqrt(np.var(gradients, axis=0) / batch * (m - batch) / (m - 1))


def draws_with_repetition(gradients, batch):
    """Return the root for examples that are drawn independently."""
    mean = np.mean(gradients, axis=0)
    return np.sqrt(mean**2 + np.var(gradients, axis=0) / batch)


def divides_the_standard_deviation(gradients, batch):
    """Return the root with σ/b in place of σ²/b."""
    m, mean = len(gradients), np.mean(gradients, axis=0)
    return np.sqrt(mean**2 + np.std(gradients, axis=0) / batch * (m - batch) / (m - 1))


def leaves_out_the_root(gradients, batch):
    """Return the expected square itself."""
    m, mean = len(gradients), np.mean(gradients, axis=0)
    return mean**2 + np.var(gradients, axis=0) / batch * (m - batch) / (m - 1)


def shares_one_number_among_all(gradients, batch):
    """Return the root of the mean over all parameters."""
    m, mean = len(gradients), np.mean(gradients, axis=0)
    square = mean**2 + np.var(gradients, axis=0) / batch * (m - batch) / (m - 1)
    return np.full(len(mean), np.sqrt(np.mean(square)))


def _is_the_mean_over_all_pairs(function: Function, rng: np.random.Generator) -> bool:
    gradients = rng.normal(size=(5, 3))
    pairs = [(gradients[i] + gradients[j]) / 2 for i in range(5) for j in range(i)]
    expected = np.sqrt(np.mean(np.square(pairs), axis=0))
    return bool(np.allclose(function(gradients, 2), expected, rtol=1e-9))


def _whole_sample_has_no_noise(function: Function, rng: np.random.Generator) -> bool:
    gradients = rng.normal(size=(7, 2))
    expected = np.abs(gradients.mean(axis=0))
    return bool(np.allclose(function(gradients, 7), expected, rtol=1e-9))


ADAPTIVE_DIAGONAL = Exercise(
    key="F-03",
    reference=optimizers.adaptive_diagonal,
    cases=_diagonal_cases,
    misconceptions=(
        Misconception(
            "you return the size of the mean gradient; add the variance of the minibatch's",
            takes_the_full_gradient,
        ),
        Misconception(
            "you return the root of the Fisher diagonal; a larger minibatch has less noise",
            takes_the_fisher_diagonal,
        ),
        Misconception(
            "your square lacks that of the mean gradient: E[g²] = (E g)² + variance",
            forgets_the_mean,
        ),
        Misconception(
            "your examples are drawn with repetition; without it the variance has the factor "
            "(m − b)/(m − 1)",
            draws_with_repetition,
        ),
        Misconception(
            "you divide the standard deviation by b; divide the variance by it",
            divides_the_standard_deviation,
        ),
        Misconception("you return the expected square; return its root", leaves_out_the_root),
        Misconception(
            "all your parameters share one number; each has its own, as in g ⊙ g",
            shares_one_number_among_all,
        ),
    ),
    properties=(
        Property("it is the mean over all pairs of examples", _is_the_mean_over_all_pairs),
        Property(
            "with the whole sample it is the size of the gradient", _whole_sample_has_no_noise
        ),
    ),
)


# --- F-05 · AdamW -----------------------------------------------------------------------------


def adamw(
    gradient: Gradient,
    start: np.ndarray,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
    delta: float,
    steps: int,
) -> np.ndarray:
    """Return every iterate of AdamW."""
    opt = optimizers.AdamW(lr, beta1, beta2, decay=decay, delta=delta)
    return run(opt, gradient, start, steps)


def _adamw_cases(rng: np.random.Generator) -> Iterator[Case]:
    return _paths(
        rng,
        lr=(0.2, 0.1, 0.3),
        beta1=(0.5, 0.9, 0.8),
        beta2=(0.75, 0.99, 0.9),
        decay=(0.5, 0.8, 0.3),
        delta=(0.1, 0.3, 0.2),
    )


def adds_the_decay_to_the_gradient(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path of Adam with an L2 penalty."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta) + decay * theta
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def forgets_the_decay(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path of Adam."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def decays_without_the_rate(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path that shrinks by 1 − ω in each step."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = (1 - decay) * theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def decays_after_the_step(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path that shrinks what Adam has reached."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        theta = (1 - lr * decay) * theta
        path.append(theta)
    return np.array(path)


def lets_the_parameters_grow(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path of θ(1 + ηω)."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = (1 + lr * decay) * theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def divides_the_decay_by_the_root(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path of θ − η(m̂ + ωθ)/(√r̂ + δ)."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * (m_hat + decay * theta) / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def shrinks_before_it_takes_the_gradient(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Return the path whose gradient is that of the shrunken θ."""
    theta, m, r, path = start, np.zeros_like(start), np.zeros_like(start), [start]
    for t in range(1, steps + 1):
        theta = (1 - lr * decay) * theta
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def _without_a_gradient_it_shrinks(function: Function, rng: np.random.Generator) -> bool:
    start = _start(rng, 3)
    path = function(partial(constant, np.zeros(3)), start, 0.1, 0.9, 0.99, 0.4, 0.1, 6)
    return bool(np.allclose(path, [0.96**t * start for t in range(7)], rtol=1e-9))


def _without_decay_it_is_adam(function: Function, rng: np.random.Generator) -> bool:
    gradient, _ = _objective(rng, 2)
    start = _start(rng, 2)
    expected = run(optimizers.Adam(0.1, 0.8, 0.9, delta=0.1), gradient, start, 6)
    path = function(gradient, start, 0.1, 0.8, 0.9, 0.0, 0.1, 6)
    return bool(np.allclose(path, expected, rtol=1e-9))


ADAMW = Exercise(
    key="F-05:adamw",
    reference=adamw,
    cases=_adamw_cases,
    misconceptions=(
        Misconception(
            "you add ωθ to the gradient, which is an L2 penalty; here θ shrinks by itself",
            adds_the_decay_to_the_gradient,
        ),
        Misconception("your path is that of Adam; θ shrinks by 1 − ηω too", forgets_the_decay),
        Misconception(
            "you multiply θ by 1 − ω; the decay is multiplied by η: 1 − ηω",
            decays_without_the_rate,
        ),
        Misconception(
            "you shrink θ after the step of Adam; only the old θ shrinks: (1 − ηω)θ − η m̂/…",
            decays_after_the_step,
        ),
        Misconception("your θ grows; it shrinks by 1 − ηω", lets_the_parameters_grow),
        Misconception(
            "you divide the decay by √r̂ + δ; it stands outside the quotient",
            divides_the_decay_by_the_root,
        ),
        Misconception(
            "you take the gradient at the θ that has shrunk; take it at the old θ",
            shrinks_before_it_takes_the_gradient,
        ),
    ),
    properties=(
        Property(
            "where the gradient is zero, each step multiplies θ by 1 − ηω",
            _without_a_gradient_it_shrinks,
        ),
        Property("with ω = 0 it is Adam", _without_decay_it_is_adam),
    ),
)


# --- F-05 · warm-up and cosine decay ----------------------------------------------------------


def warmup_cosine(k: int, first: float, warmup: int, tau: int) -> float:
    """Return the rate of iteration k: a linear warm-up, then a cosine decay to 0."""
    return optimizers.Warmup(optimizers.CosineDecay(first, tau), warmup)(k)


def _warmup_cosine_cases(rng: np.random.Generator) -> Iterator[Case]:
    first = round(float(rng.uniform(0.2, 0.9)), 2)
    for k, warmup, tau in ((0, 2, 4), (1, 2, 4), (2, 2, 4), (3, 2, 4), (6, 2, 4), (9, 2, 4)):
        yield {"k": k, "first": first, "warmup": warmup, "tau": tau}
    for k in (3, 17, 34, 60):
        yield {"k": k, "first": first, "warmup": 10, "tau": 40}


def starts_with_rate_zero(k, first, warmup, tau):
    """Return k/w η₀ while the rate rises."""
    if k < warmup:
        return first * k / warmup
    s = min((k - warmup) / tau, 1)
    return first * (1 + np.cos(np.pi * s)) / 2


def begins_the_cosine_with_the_warmup(k, first, warmup, tau):
    """Return the rate whose cosine counts from iteration 0."""
    if k < warmup:
        return first * (k + 1) / warmup
    s = min(k / tau, 1)
    return first * (1 + np.cos(np.pi * s)) / 2


def lets_the_cosine_rise_again(k, first, warmup, tau):
    """Return the rate without the end of the schedule."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(np.pi * (k - warmup) / tau)) / 2


def takes_a_whole_period(k, first, warmup, tau):
    """Return the rate with 2π in place of π."""
    if k < warmup:
        return first * (k + 1) / warmup
    s = min((k - warmup) / tau, 1)
    return first * (1 + np.cos(2 * np.pi * s)) / 2


def takes_a_quarter_of_a_period(k, first, warmup, tau):
    """Return η₀ cos(πs/2)."""
    if k < warmup:
        return first * (k + 1) / warmup
    s = min((k - warmup) / tau, 1)
    return first * np.cos(np.pi * s / 2)


def has_no_warmup(k, first, warmup, tau):
    """Return the cosine alone."""
    s = min(k / tau, 1)
    return first * (1 + np.cos(np.pi * s)) / 2


def counts_the_warmup_in_tau(k, first, warmup, tau):
    """Return the rate that ends at iteration τ in place of w + τ."""
    if k < warmup:
        return first * (k + 1) / warmup
    s = min((k - warmup) / (tau - warmup), 1)
    return first * (1 + np.cos(np.pi * s)) / 2


def _reaches_first_after_the_warmup(function: Function, rng: np.random.Generator) -> bool:
    rates = [function(k, 0.6, 6, 20) for k in range(7)]
    return bool(np.allclose(rates, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.6], rtol=1e-9))


def _is_half_way_at_half_time(function: Function, rng: np.random.Generator) -> bool:
    rates = [function(k, 0.8, 5, 20) for k in (10, 15, 20)]
    return bool(np.isclose(rates[1], 0.4) and np.isclose(rates[0] + rates[2], 0.8))


WARMUP_COSINE = Exercise(
    key="F-05:schedule",
    reference=warmup_cosine,
    cases=_warmup_cosine_cases,
    misconceptions=(
        Misconception(
            "your first learning rate is 0; in iteration k of the warm-up it is (k + 1)/w · η₀",
            starts_with_rate_zero,
        ),
        Misconception(
            "your cosine counts from iteration 0; it begins after the warm-up, with k − w",
            begins_the_cosine_with_the_warmup,
        ),
        Misconception(
            "your learning rate rises again after iteration w + τ; from there on it is 0",
            lets_the_cosine_rise_again,
        ),
        Misconception(
            "your cosine takes a whole period, 2π; half a period, π, leads from η₀ to 0",
            takes_a_whole_period,
        ),
        Misconception(
            "your learning rate is η₀ cos(πs/2); it is η₀ (1 + cos πs)/2",
            takes_a_quarter_of_a_period,
        ),
        Misconception(
            "your schedule has no warm-up; the learning rate first rises, in w iterations",
            has_no_warmup,
        ),
        Misconception(
            "your schedule ends at iteration τ; the decay alone has τ iterations, after the "
            "warm-up",
            counts_the_warmup_in_tau,
        ),
    ),
    properties=(
        Property(
            "it rises in equal increments and then stands at η₀",
            _reaches_first_after_the_warmup,
        ),
        Property("in the middle of the decay it is η₀/2", _is_half_way_at_half_time),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    SGD,
    MOMENTUM,
    NESTEROV,
    ADAGRAD,
    RMSPROP,
    ADADELTA,
    ADAM,
    NEWTON,
    PRECONDITIONED_DESCENT,
    MOMENTUM_RATE,
    ADAPTIVE_DIAGONAL,
    ADAMW,
    WARMUP_COSINE,
)
