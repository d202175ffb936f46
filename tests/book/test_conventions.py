"""The page of conventions: each cell of its tables is a claim, and each claim is tried on a rule.

A rule is a source's update, written out from its box or its documentation; only those of this
course and of torch are the real thing. What a cell says must be true of its rule, and what the
other cells of its column say must be false.
"""

import ast
import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from optdl import optimizers

PAGE = Path(__file__).resolve().parents[2] / "book" / "conventions.md"
TINY = 1e-300
"""A δ that changes nothing."""

Gradient = Callable[[int, float], float]
"""The number of the step, from 0, and the parameter → the derivative there."""


class Rule(NamedTuple):
    """A source's way to step."""

    moves: Callable[..., Iterator[float]]
    """gradient, rates, options → the change of the parameter in each step."""
    defaults: dict[str, float | None]
    """The value of each option when nothing is said; None when one must be given."""
    first: int = 0
    """The first step whose gradient is remembered."""

    def __call__(
        self, gradient: Gradient | Sequence[float], rates: Sequence[float], **options: float
    ) -> list[float]:
        """Return the moves; gradients may be listed."""
        slope = gradient if callable(gradient) else lambda t, theta: gradient[t]
        unset = [name for name, value in self.defaults.items() if value is None and name != "rate"]
        options = dict.fromkeys(unset, 0.0) | options
        with np.errstate(divide="ignore", invalid="ignore"):
            return [float(move) for move in self.moves(slope, rates, **options)]


# --- This course and torch, as they are -------------------------------------------------------


def ours(make: Any, **names: str) -> Rule:
    """Return the rule of one of our optimizers; options are given by its own names."""

    def moves(gradient: Gradient, rates: Sequence[float], **options: float) -> Iterator[float]:
        arguments = {names[name]: value for name, value in options.items()}
        opt = make(lr=lambda k: rates[k], **arguments)
        theta = np.zeros(1)
        state = opt.init(theta)
        for t in range(len(rates)):
            new, state = opt.step(theta, state, lambda at, t=t: np.array([gradient(t, at[0])]))
            yield (new - theta)[0]
            theta = new

    fields = {field.name: field.default for field in dataclasses.fields(make)}
    known = {name: fields[own] for name, own in ({"rate": "lr"} | names).items()}
    return Rule(moves, {k: None if v is dataclasses.MISSING else v for k, v in known.items()})


def in_torch(make: Any, fixed: dict[str, Any] | None = None, **names: str) -> Rule:
    """Return the rule of an optimizer of torch."""

    def moves(gradient: Gradient, rates: Sequence[float], **options: float) -> Iterator[float]:
        arguments: dict[str, Any] = {names[name]: value for name, value in options.items()}
        if "beta1" in arguments:
            arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
        theta = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        opt = make([theta], **(fixed or {}), **arguments)
        for t, rate in enumerate(rates):
            before = theta.item()
            theta.grad = torch.tensor([gradient(t, before)], dtype=torch.float64)
            opt.param_groups[0]["lr"] = rate
            opt.step()
            yield theta.item() - before

    documented = {k: v.default for k, v in inspect.signature(make).parameters.items()}
    documented["beta1"], documented["beta2"] = documented.get("betas", (None, None))
    return Rule(moves, {k: documented[own] for k, own in ({"rate": "lr"} | names).items()})


# --- The lectures, Keras and optax, as they are written ---------------------------------------


def written(moves: Callable[..., Iterator[float]], first: int = 0) -> Rule:
    """Return a rule that is written out here; its defaults are those that its source documents."""
    parameters = list(inspect.signature(moves).parameters.values())[2:]
    empty = inspect.Parameter.empty
    return Rule(
        moves, {p.name: None if p.default is empty else p.default for p in parameters}, first
    )


def l1_sgd(gradient, rates):
    theta = 0.0
    for t, rate in enumerate(rates):
        step = -rate * gradient(t, theta)
        theta += step
        yield step


def keras_sgd(gradient, rates, rate=0.01):
    return l1_sgd(gradient, rates)


def l1_momentum(gradient, rates, alpha, start):
    theta, v = 0.0, start
    for t, rate in enumerate(rates):
        v = alpha * v - rate * gradient(t, theta)
        theta += v
        yield v


def l2_momentum(gradient, rates, alpha):
    theta, u = 0.0, 0.0
    for t, rate in enumerate(rates):
        u = alpha * u - rate * gradient(t, theta)
        theta += u
        yield u


def keras_momentum(gradient, rates, rate=0.01, alpha=0.0):
    return l2_momentum(gradient, rates, alpha)


def optax_momentum(gradient, rates, alpha):
    theta, trace = 0.0, 0.0
    for t, rate in enumerate(rates):
        trace = gradient(t, theta) + alpha * trace
        theta -= rate * trace
        yield -rate * trace


def l1_nesterov(gradient, rates, alpha, start):
    theta, v = 0.0, start
    for t, rate in enumerate(rates):
        v = alpha * v - rate * gradient(t, theta + alpha * v)
        theta += v
        yield v


def keras_nesterov(gradient, rates, rate=0.01, alpha=0.0):
    w, velocity = 0.0, 0.0
    for t, rate_t in enumerate(rates):
        g = gradient(t, w)
        velocity = alpha * velocity - rate_t * g
        w += alpha * velocity - rate_t * g
        yield alpha * velocity - rate_t * g


def optax_nesterov(gradient, rates, alpha):
    theta, trace = 0.0, 0.0
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        trace = g + alpha * trace
        theta -= rate * (g + alpha * trace)
        yield -rate * (g + alpha * trace)


def l1_adagrad(gradient, rates, delta, start):
    theta, r = 0.0, start
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        r += g * g
        theta -= rate / (delta + np.sqrt(r)) * g
        yield -rate / (delta + np.sqrt(r)) * g


def l2_adagrad(gradient, rates):
    theta, total = 0.0, np.float64(0.0)
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        total += g * g if t else 0.0  # the sum begins with the gradient at ϑ of step 1
        theta -= rate / np.sqrt(total) * g
        yield -rate / np.sqrt(total) * g


def keras_adagrad(gradient, rates, rate=0.001, delta=1e-7, start=0.1):
    theta, accumulator = 0.0, start
    for t, rate_t in enumerate(rates):
        g = gradient(t, theta)
        accumulator += g * g
        theta -= rate_t * g / np.sqrt(accumulator + delta)
        yield -rate_t * g / np.sqrt(accumulator + delta)


def optax_adagrad(gradient, rates, delta=1e-7, start=0.1):
    theta, total = 0.0, start
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        total += g * g
        update = g / np.sqrt(total + delta) if total > 0 else 0.0
        theta -= rate * update
        yield -rate * update


def l1_rmsprop(gradient, rates, share, delta):
    theta, r = 0.0, 0.0
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        r = share * r + (1 - share) * g * g
        theta -= rate / np.sqrt(delta + r) * g
        yield -rate / np.sqrt(delta + r) * g


def l2_rmsprop(gradient, rates, share):
    theta, mean = 0.0, np.float64(0.0)
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        mean = share * g * g + (1 - share) * mean if t else mean
        theta -= rate / np.sqrt(mean) * g
        yield -rate / np.sqrt(mean) * g


def keras_rmsprop(gradient, rates, rate=0.001, share=0.9, delta=1e-7):
    return l1_rmsprop(gradient, rates, share, delta)


def optax_rmsprop(gradient, rates, share=0.9, delta=1e-8):
    return l1_rmsprop(gradient, rates, share, delta)


def l1_rmsprop_nesterov(gradient, rates, share, alpha):
    theta, r, v = 0.0, 0.0, 0.0
    for t, rate in enumerate(rates):
        g = gradient(t, theta + alpha * v)
        r = share * r + (1 - share) * g * g
        v = alpha * v - rate / np.sqrt(r) * g
        theta += v
        yield v


def keras_rmsprop_momentum(gradient, rates, rate=0.001, share=0.9, delta=1e-7, alpha=0.0):
    theta, velocity, momentum = 0.0, 0.0, 0.0
    for t, rate_t in enumerate(rates):
        g = gradient(t, theta)
        velocity = share * velocity + (1 - share) * g * g
        momentum = alpha * momentum + rate_t * g / np.sqrt(velocity + delta)
        theta -= momentum
        yield -momentum


def optax_rmsprop_momentum(gradient, rates, share=0.9, delta=1e-8, alpha=None):
    theta, nu, trace = 0.0, 0.0, 0.0
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        nu = share * nu + (1 - share) * g * g
        trace = -rate * g / np.sqrt(nu + delta) + alpha * trace
        theta += trace
        yield trace


def optax_rmsprop_nesterov(gradient, rates, share=0.9, delta=1e-8, alpha=None):
    theta, nu, trace = 0.0, 0.0, 0.0
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        nu = share * nu + (1 - share) * g * g
        update = -rate * g / np.sqrt(nu + delta)
        trace = update + alpha * trace
        theta += update + alpha * trace
        yield update + alpha * trace


def l2_adadelta(gradient, rates, share, start):
    theta, G2, D2 = 0.0, np.float64(0.0), np.float64(start)
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        G2 = share * g * g + (1 - share) * G2 if t else G2
        change = -rate * np.sqrt(D2) / np.sqrt(G2) * g
        D2 = share * change * change + (1 - share) * D2 if t else D2
        theta += change
        yield change


def keras_adadelta(gradient, rates, rate=0.001, share=0.95, delta=1e-7):
    theta, grads, steps = 0.0, 0.0, 0.0
    for t, rate_t in enumerate(rates):
        g = gradient(t, theta)
        grads = share * grads + (1 - share) * g * g
        change = -np.sqrt(steps + delta) * g / np.sqrt(grads + delta)
        steps = share * steps + (1 - share) * change * change
        theta += rate_t * change
        yield rate_t * change


def optax_adadelta(gradient, rates, rate=1.0, share=0.9, delta=1e-6):
    return keras_adadelta(gradient, rates, rate, share, delta)


def l2_adam(gradient, rates, beta1, beta2):
    theta, m, r = 0.0, np.float64(0.0), np.float64(0.0)
    for t, rate in enumerate(rates):
        g = gradient(t, theta)
        m = beta1 * g + (1 - beta1) * m if t else m
        r = beta2 * g * g + (1 - beta2) * r if t else r
        m_hat = m / np.float64(1 - (1 - beta1) ** t)
        r_hat = r / np.float64(1 - (1 - beta2) ** t)
        theta -= rate * m_hat / np.sqrt(r_hat)
        yield -rate * m_hat / np.sqrt(r_hat)


def keras_adam(gradient, rates, rate=0.001, beta1=0.9, beta2=0.999, delta=1e-7):
    theta, m, v = 0.0, 0.0, 0.0
    for t, rate_t in enumerate(rates, 1):
        g = gradient(t - 1, theta)
        alpha = rate_t * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        m += (g - m) * (1 - beta1)
        v += (g * g - v) * (1 - beta2)
        theta -= m * alpha / (np.sqrt(v) + delta)
        yield -m * alpha / (np.sqrt(v) + delta)


def optax_adam(gradient, rates, beta1=0.9, beta2=0.999, delta=1e-8):
    theta, mu, nu = 0.0, 0.0, 0.0
    for t, rate in enumerate(rates, 1):
        g = gradient(t - 1, theta)
        mu = beta1 * mu + (1 - beta1) * g
        nu = beta2 * nu + (1 - beta2) * g * g
        update = mu / (1 - beta1**t) / (np.sqrt(nu / (1 - beta2**t)) + delta)
        theta -= rate * update
        yield -rate * update


def keras_adamw(gradient, rates, rate=0.001, beta1=0.9, beta2=0.999, delta=1e-7, decay=0.004):
    theta, m, v = 0.0, 0.0, 0.0
    for t, rate_t in enumerate(rates, 1):
        g = gradient(t - 1, theta)
        before = theta
        theta -= theta * decay * rate_t
        alpha = rate_t * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        m += (g - m) * (1 - beta1)
        v += (g * g - v) * (1 - beta2)
        theta -= m * alpha / (np.sqrt(v) + delta)
        yield theta - before


def optax_adamw(gradient, rates, beta1=0.9, beta2=0.999, delta=1e-8, decay=1e-4):
    theta, mu, nu = 0.0, 0.0, 0.0
    for t, rate in enumerate(rates, 1):
        g = gradient(t - 1, theta)
        mu = beta1 * mu + (1 - beta1) * g
        nu = beta2 * nu + (1 - beta2) * g * g
        update = mu / (1 - beta1**t) / (np.sqrt(nu / (1 - beta2**t)) + delta)
        update = update + decay * theta
        theta -= rate * update
        yield -rate * update


def dampened(params: Any, lr: float = 1e-3, momentum: float = 0.0) -> torch.optim.SGD:
    """Return torch's momentum with the dampening that looks like a moving average."""
    return torch.optim.SGD(params, lr=lr, momentum=momentum, dampening=momentum)


Torch = torch.optim
RULES = {
    "SGD": {
        "ours": ours(optimizers.SGD),
        "L1": written(l1_sgd),
        "L2": written(l1_sgd),
        "torch": in_torch(Torch.SGD),
        "Keras": written(keras_sgd),
        "optax": written(l1_sgd),
    },
    "Momentum": {
        "ours": ours(optimizers.Momentum, alpha="alpha"),
        "L1": written(l1_momentum),
        "L2": written(l2_momentum),
        "torch": in_torch(Torch.SGD, alpha="momentum"),
        "torch, `dampening=α`": in_torch(dampened, alpha="momentum"),
        "Keras": written(keras_momentum),
        "optax": written(optax_momentum),
    },
    "Nesterov momentum": {
        "ours": ours(optimizers.Nesterov, alpha="alpha"),
        "L1": written(l1_nesterov),
        "torch": in_torch(Torch.SGD, {"nesterov": True}, alpha="momentum"),
        "Keras": written(keras_nesterov),
        "optax": written(optax_nesterov),
    },
    "AdaGrad": {
        "ours": ours(optimizers.AdaGrad, delta="delta"),
        "L1": written(l1_adagrad),
        "L2": written(l2_adagrad, first=1),
        "torch": in_torch(Torch.Adagrad, delta="eps", start="initial_accumulator_value"),
        "Keras": written(keras_adagrad),
        "optax": written(optax_adagrad),
    },
    "RMSProp": {
        "ours": ours(optimizers.RMSProp, share="rho", delta="delta"),
        "L1": written(l1_rmsprop),
        "L2": written(l2_rmsprop, first=1),
        "torch": in_torch(Torch.RMSprop, share="alpha", delta="eps"),
        "Keras": written(keras_rmsprop),
        "optax": written(optax_rmsprop),
    },
    "RMSProp with momentum": {
        "ours": ours(optimizers.RMSPropNesterov, share="rho", delta="delta", alpha="alpha"),
        "L1": written(l1_rmsprop_nesterov),
        "torch": in_torch(Torch.RMSprop, share="alpha", delta="eps", alpha="momentum"),
        "Keras": written(keras_rmsprop_momentum),
        "optax": written(optax_rmsprop_momentum),
        "optax, `nesterov=True`": written(optax_rmsprop_nesterov),
    },
    "AdaDelta": {
        "ours": ours(optimizers.AdaDelta, share="rho", delta="delta"),
        "L2": written(l2_adadelta, first=1),
        "torch": in_torch(Torch.Adadelta, share="rho", delta="eps"),
        "Keras": written(keras_adadelta),
        "optax": written(optax_adadelta),
    },
    "Adam": {
        "ours": ours(optimizers.Adam, beta1="beta1", beta2="beta2", delta="delta"),
        "L2": written(l2_adam, first=1),
        "torch": in_torch(Torch.Adam, beta1="beta1", beta2="beta2", delta="eps"),
        "Keras": written(keras_adam),
        "optax": written(optax_adam),
    },
    "AdamW": {
        "ours": ours(optimizers.AdamW, beta1="beta1", beta2="beta2", delta="delta", decay="decay"),
        "torch": in_torch(
            Torch.AdamW, beta1="beta1", beta2="beta2", delta="eps", decay="weight_decay"
        ),
        "torch, `Adam(weight_decay=ω)`": in_torch(
            Torch.Adam, beta1="beta1", beta2="beta2", delta="eps", decay="weight_decay"
        ),
        "Keras": written(keras_adamw),
        "optax": written(optax_adamw),
    },
}


# --- What a cell can say ----------------------------------------------------------------------


def near(got: Sequence[float], *expected: float) -> bool:
    return bool(np.allclose(got, expected, rtol=1e-12, atol=0, equal_nan=True))


def steps_by_the_rate(rule: Rule) -> bool:
    return near(rule([3.0, -1.0], [0.5, 0.25]), -1.5, 0.25)


def velocity_holds_the_rate(rule: Rule) -> bool:
    """Say whether a velocity goes on when the rate has become 0."""
    return rule([1.0, 1.0], [1.0, 0.0], alpha=0.5)[1] < 0


def velocity_without_the_rate(rule: Rule) -> bool:
    return rule([1.0, 1.0], [1.0, 0.0], alpha=0.5)[1] == 0


def new_gradient_counts_whole(rule: Rule) -> bool:
    """Say whether the gradient has the factor 1, not 1 − α, beside the velocity."""
    return near(rule([1.0, 1.0], [1.0, 1.0], alpha=0.5), -1.0, -1.5)


def new_gradient_is_dampened(rule: Rule) -> bool:
    return near(rule([1.0, 1.0], [1.0, 1.0], alpha=0.5), -1.0, -1.0)


def starts_at_zero(rule: Rule) -> bool:
    return rule.defaults.get("start", 0.0) == 0


def start_is_an_input(rule: Rule) -> bool:
    """Say whether a velocity must be given, and the first step then keeps a share of it."""
    if "start" not in rule.defaults or rule.defaults["start"] is not None:
        return False
    return near(rule([1.0], [1.0], alpha=0.5, start=3.0), 0.5)


def places(rule: Rule, **options: float) -> tuple[list[float], list[float]]:
    """Return where the rule is in each step, and where it takes the gradient."""
    asked = []

    def gradient(t: int, theta: float) -> float:
        asked.append((t, theta))
        return theta - 1.0

    moves = rule(gradient, [0.2] * 6, **options)
    return [0.0, *np.cumsum(moves)[:-1]], [dict(asked)[t] for t in range(6)]


def settings(rule: Rule) -> dict[str, float]:
    """Return values for all options that a rule with a velocity has."""
    values = {"alpha": 0.5, "share": 0.75, "delta": TINY}
    return {name: value for name, value in values.items() if name in rule.defaults}


def looks_ahead(rule: Rule) -> bool:
    """Say whether the gradient is taken at θ + αv, where v is the last move."""
    here, asked = places(rule, **settings(rule))
    ahead = [b + 0.5 * (b - a) for a, b in pairwise(here)]
    return near(asked[1:], *ahead)


def is_the_interim_point(rule: Rule) -> bool:
    """Say whether the gradient is taken where the rule is, and that is our interim point."""
    here, asked = places(rule, **settings(rule))
    adaptive = "share" in rule.defaults
    own = RULES["RMSProp with momentum" if adaptive else "Nesterov momentum"]["ours"]
    return near(asked, *here) and near(here, *places(own, **settings(own))[1])


def stays_at_theta(rule: Rule) -> bool:
    here, asked = places(rule, **settings(rule))
    return near(asked, *here) and not is_the_interim_point(rule)


def second(rule: Rule, **options: float) -> float:
    """Return the move with the gradient 2 after one of 0; options it does not have are dropped."""
    known = {name: value for name, value in options.items() if name in rule.defaults}
    return rule([0.0, 2.0], [1.0, 1.0], **known)[1]


def delta(form: Callable[[float, float], float], *squares: float) -> Callable[[Rule], bool]:
    """Say whether the factor of the gradient is this form of δ and r, for one of these r."""

    def holds(rule: Rule) -> bool:
        move = second(rule, delta=0.5, share=0.75, alpha=0.0)
        return "delta" in rule.defaults and any(near([move], -2 * form(0.5, r)) for r in squares)

    return holds


def no_delta(rule: Rule) -> bool:
    return "delta" not in rule.defaults


def inside(delta: float, r: float) -> float:
    return 1 / math.sqrt(delta + r)


def outside(delta: float, r: float) -> float:
    return 1 / (delta + math.sqrt(r))


def both_roots(delta: float, r: float) -> float:
    return math.sqrt(delta) / math.sqrt(delta + r)  # after a gradient of 0 no step was remembered


def adam_delta(beside_the_hat: bool) -> Callable[[Rule], bool]:
    def holds(rule: Rule) -> bool:
        if "delta" not in rule.defaults:
            return False
        move = second(rule, delta=0.5, beta1=0.5, beta2=0.75)
        m_hat, r, hat = 1 / (1 - 0.5**2), 1.0, 1 - 0.75**2
        root = math.sqrt(r / hat) + 0.5 if beside_the_hat else (math.sqrt(r) + 0.5) / math.sqrt(hat)
        return near([move], -m_hat / root)

    return holds


def r_starts_at(value: float) -> Callable[[Rule], bool]:
    def holds(rule: Rule) -> bool:
        if rule.defaults.get("start", 0.0) is None:
            return False
        return near([second(rule, delta=TINY)], -2 / math.sqrt(value + 4))

    return holds


def r_is_an_input(rule: Rule) -> bool:
    if "start" not in rule.defaults or rule.defaults["start"] is not None:
        return False
    return near([second(rule, delta=TINY, start=5.0)], -2 / math.sqrt(5 + 4))


def share_of(r: float) -> Callable[[Rule], bool]:
    """Say whether ¾ of 0 and ¼ of 4 make r = 1 (the share of the old), or r = 3 (of the new)."""
    return lambda rule: near([second(rule, share=0.75, delta=TINY)], -2 / math.sqrt(r))


def share_in_adadelta(r: float) -> Callable[[Rule], bool]:
    def holds(rule: Rule) -> bool:
        remembered, small = (0.5, 0.5) if "delta" in rule.defaults else (1.0, 0.0)
        move = second(rule, share=0.75, delta=0.5, start=1.0)
        return near([move], -2 * math.sqrt(remembered) / math.sqrt(small + r))

    return holds


def share_in_adam(old: tuple[float, float]) -> Callable[[Rule], bool]:
    """Say whether β₁ = 0.9, β₂ = 0.8 leave these shares to the old averages."""

    def holds(rule: Rule) -> bool:
        g = [3.0, 3.0, -1.0]
        tiny = {"delta": TINY} if "delta" in rule.defaults else {}
        tiny |= {"decay": 0.0} if "decay" in rule.defaults else {}
        move = rule(g, [1.0] * 3, beta1=0.9, beta2=0.8, **tiny)[2]
        seen = np.array(g[rule.first :])
        # freed of its bias, an average is a weighted mean of what it has seen
        first, second = (share ** np.arange(len(seen))[::-1] for share in old)
        m, r = np.average(seen, weights=first), np.average(seen**2, weights=second)
        return near([move], -m / math.sqrt(r))

    return holds


def remembers_steps(rate: float) -> Callable[[Rule], bool]:
    """Say whether the average is of the steps times this, when the rate is ½."""

    def holds(rule: Rule) -> bool:
        if rule.first:  # L2: D starts with 1, and ρ weighs the new
            move = rule([2.0] * 3, [0.5] * 3, share=0.75, start=1.0)[2]
            d = 0.25 + 0.75 * (rate * 2) ** 2 / 3
            return near([move], -0.5 * 2 * math.sqrt(d / 3.75))
        move = rule([2.0] * 2, [0.5] * 2, share=0.75, delta=0.5)[1]
        d = 0.25 * (rate * 2) ** 2 * 0.5 / 1.5
        return near([move], -0.5 * 2 * math.sqrt((0.5 + d) / (0.5 + 1.75)))

    return holds


def shrinks_by(size: float) -> Callable[[Rule], bool]:
    """Say whether θ moves so far where the gradient is 0, the rate ½, ω 0.1 and θ = 1."""

    def holds(rule: Rule) -> bool:
        options = {"beta1": 0.0, "beta2": 0.5, "delta": TINY, "decay": 0.1}
        first, then = rule([-1.0, 0.0], [1.0, 0.5], **options)
        return near([first, then], 1.0, -size)

    return holds


def first_step(rule: Rule) -> str:
    """Return the size of the first step in words of η, at the gradient 1 and all defaults."""
    for name, letter in (("share", "ρ"), ("start", "r")):
        if name in rule.defaults and rule.defaults[name] is None and not rule.first:
            [low], [high] = (rule([1.0], [1.0], **{name: value}) for value in (0.5, 0.9))
            assert low != high
            return f"depends on {letter}"
    size = abs(rule([1.0], [1.0])[0])
    return "∞" if math.isinf(size) else "0/0" if math.isnan(size) else f"{size:.2g} η"


LETTERS = {
    "rate": "η",
    "alpha": "α",
    "share": "ρ",
    "beta1": "β₁",
    "beta2": "β₂",
    "delta": "δ",
    "decay": "ω",
}


def defaults(rule: Rule) -> str:
    """Return the values of the options that nobody has to give."""
    told = [
        f"{LETTERS[name]} {value:g}".replace("e-0", "e-")
        for name, value in rule.defaults.items()
        if name in LETTERS and value is not None
    ]
    return ", ".join(told) or "none"


# column → text → whether it is true of a rule; or a function that returns the text
Column = dict[str, Callable[[Rule], bool]] | Callable[[Rule], str]
VELOCITY: Column = {
    r"$v \leftarrow \alpha v - \eta g$": velocity_holds_the_rate,
    r"$b \leftarrow \alpha b + g$": velocity_without_the_rate,
}
GRADIENT: Column = {
    r"the interim point $\theta + \alpha v$": looks_ahead,
    "its own θ, which is our interim point": is_the_interim_point,
    r"$\theta$": stays_at_theta,
}
IN, OUT, NONE = r"inside: $\sqrt{\delta + r}$", r"outside: $\delta + \sqrt r$", "no δ"
OLD, NEW = "the old average", "the new gradient"
CLAIMS: dict[str, dict[str, Column]] = {
    "SGD": {
        "Step": {r"$\theta \leftarrow \theta - \eta g$": steps_by_the_rate},
        "Defaults": defaults,
    },
    "Momentum": {
        "Velocity": VELOCITY,
        "Factor of the gradient": {
            "1": new_gradient_counts_whole,
            r"1, then $1 - \alpha$": new_gradient_is_dampened,
        },
        "First velocity": {"0": starts_at_zero, "an input": start_is_an_input},
        "Defaults": defaults,
    },
    "Nesterov momentum": {
        "Gradient at": GRADIENT,
        "Velocity": VELOCITY,
        "First step": {
            r"$\eta g$": lambda rule: near(rule([1.0], [1.0], alpha=0.5), -1.0),
            r"$(1 + \alpha)\,\eta g$": lambda rule: near(rule([1.0], [1.0], alpha=0.5), -1.5),
        },
        "Defaults": defaults,
    },
    "AdaGrad": {
        "δ": {IN: delta(inside, 4.0, 4.1), OUT: delta(outside, 4.0, 4.1), NONE: no_delta},
        "First r": {"0": r_starts_at(0.0), "0.1": r_starts_at(0.1), "an input": r_is_an_input},
        "First step": first_step,
        "Defaults": defaults,
    },
    "RMSProp": {
        "δ": {IN: delta(inside, 1.0), OUT: delta(outside, 1.0), NONE: no_delta},
        "ρ or β weighs": {OLD: share_of(1.0), NEW: share_of(3.0)},
        "First step": first_step,
        "Defaults": defaults,
    },
    "RMSProp with momentum": {
        "Gradient at": GRADIENT,
        "Velocity": VELOCITY,
        "δ": {IN: delta(inside, 1.0), OUT: delta(outside, 1.0), NONE: no_delta},
        "Defaults": defaults,
    },
    "AdaDelta": {
        "δ": {"inside both roots": delta(both_roots, 1.0), NONE: no_delta},
        "ρ or β weighs": {OLD: share_in_adadelta(1.0), NEW: share_in_adadelta(3.0)},
        "Averages steps": {
            "before the rate": remembers_steps(1.0),
            "after the rate": remembers_steps(0.5),
        },
        "First step": first_step,
        "Defaults": defaults,
    },
    "Adam": {
        "δ": {
            r"beside $\sqrt{\hat r}$": adam_delta(beside_the_hat=True),
            r"beside $\sqrt r$": adam_delta(beside_the_hat=False),
            NONE: no_delta,
        },
        "The shares weigh": {
            OLD: share_in_adam((0.9, 0.8)),
            NEW: share_in_adam((0.1, 0.2)),
        },
        "First step": first_step,
        "Defaults": defaults,
    },
}
CLAIMS["AdamW"] = {
    "θ shrinks by": {
        r"$1 - \eta\omega$": shrinks_by(0.5 * 0.1),
        r"$1 - \omega$": shrinks_by(0.1),
        # the average r is ½ after the gradient −1, then ½ r + ½ 0.1²; Adam's r̂ divides by 1 − ½²
        r"nothing of its own: ωθ is added to $g$": shrinks_by(0.05 / math.sqrt(0.255 / 0.75)),
    },
    **CLAIMS["Adam"],
}


# --- The tables of the page -------------------------------------------------------------------


class Cell(NamedTuple):
    method: str
    source: str
    column: str
    text: str


def rows(table: str) -> list[list[str]]:
    """Return the cells of each row of a Markdown table, its head first."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line
    ]


def tables(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of each table of the page by the caption."""
    found = re.findall(r"```{stacking-table} ([^\n]*)\n(.*?)```", page, re.DOTALL)
    return {caption: rows(table) for caption, table in found}


def cells() -> list[Cell]:
    """Return every cell that says something of a source."""
    return [
        Cell(caption, source, column, text)
        for caption, (head, *body) in tables(PAGE.read_text("utf-8")).items()
        if head[0] == "Source"
        for source, *texts in body
        for column, text in zip(head[1:], texts, strict=True)
    ]


@pytest.mark.row(
    "L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L1-31", "L2-03", "L2-05", "L2-06", "F-05"
)
@pytest.mark.parametrize("cell", cells(), ids=lambda cell: "-".join(cell[:3]).replace(" ", "_"))
def test_a_cell_is_true_of_its_source_and_the_others_of_its_column_are_not(cell: Cell) -> None:
    rule, column = RULES[cell.method][cell.source], CLAIMS[cell.method][cell.column]
    if callable(column):
        assert cell.text == column(rule)
    else:
        assert [text for text, holds in column.items() if holds(rule)] == [cell.text]


def test_every_source_and_every_column_has_its_cell() -> None:
    said = {cell[:3] for cell in cells()}
    assert said == {
        (method, source, column)
        for method, sources in RULES.items()
        for source in sources
        for column in CLAIMS[method]
    }


@pytest.mark.parametrize("method", CLAIMS)
def test_a_column_that_says_one_thing_of_all_can_say_another(method: str) -> None:
    for column, claims in CLAIMS[method].items():
        made = {cell.text for cell in cells() if (cell.method, cell.column) == (method, column)}
        alone = not callable(claims) and len(made) == len(claims) == 1
        assert not alone or method == "SGD", f"{column} says {made} of all, and nothing else"


# --- The table of conversions -----------------------------------------------------------------

ARGUMENTS = {
    "lr": "rate",
    "momentum": "alpha",
    "decay": "share",
    "eps": "delta",
    "epsilon": "delta",
    "beta_1": "beta1",
    "beta_2": "beta2",
    "b1": "beta1",
    "b2": "beta2",
    "initial_accumulator_value": "start",
    "weight_decay": "decay",
}
VALUES = {"alpha": 0.6, "rho": 0.8, "beta1": 0.7, "beta2": 0.9, "delta": 0.1, "decay": 0.3}


def conversions() -> list[tuple[str, str, str]]:
    """Return our optimizer, a library and what its cell says."""
    (head, *body) = tables(PAGE.read_text("utf-8"))["The same steps elsewhere"]
    return [
        (own, library, text)
        for own, *texts in body
        for library, text in zip(head[1:], texts, strict=True)
    ]


def call(code: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of a call; ``a`` alone stands for ``a=a``."""
    tree = ast.parse(code.strip("`"), mode="eval").body
    assert isinstance(tree, ast.Call)
    assert isinstance(tree.func, ast.Name)
    given = {ast.unparse(one): ast.unparse(one) for one in tree.args}
    return tree.func.id, given | {one.arg or "": ast.unparse(one.value) for one in tree.keywords}


def option(name: str, library: str, method: str) -> str:
    """Return our word for an argument of a library."""
    if name == "rho" or ((name, library) == ("alpha", "torch") and method.startswith("RMSProp")):
        return "share"
    return ARGUMENTS.get(name, name)


def both_paths(
    own: str, library: str, code: str, rates: Sequence[float], small: float
) -> tuple[list[float], list[float]]:
    """Return where the two rules go: ours, seen at its interim point if theirs is, and theirs."""
    values = VALUES | {"delta": small}
    name, arguments = call(own)
    make = getattr(optimizers, name)
    method = {"Nesterov": "Nesterov momentum", "RMSPropNesterov": "RMSProp with momentum"}
    rule = RULES[method.get(name, name)]
    _, theirs = call(code)
    ahead = theirs.pop("nesterov", "False") == "True"
    given = {}
    for argument, value in theirs.items():
        names = ("beta1", "beta2") if argument == "betas" else (option(argument, library, name),)
        worth = np.atleast_1d(eval(value, {}, values | {"lr": 1.0}))
        given |= dict(zip(names, map(float, worth), strict=True))
    given.pop("rate")
    source = f"{library}, `nesterov=True`" if ahead and name == "RMSPropNesterov" else library
    slope = lambda t, theta: (theta - 1.0) * (1.0 + 0.5 * math.sin(t))  # noqa: E731
    there = np.cumsum(rule[source](slope, rates, **given))
    opt = make(
        lr=lambda k: rates[min(k, len(rates) - 1)], **{k: values[k] for k in arguments if k != "lr"}
    )
    theta, here = np.zeros(1), []
    state = opt.init(theta)
    for t in range(len(rates)):
        theta, state = opt.step(theta, state, lambda at, t=t: slope(t, at))
        here.append(float((opt.interim(theta, state) if ahead else theta)[0]))
    return here, list(there)


@pytest.mark.row("L1-24", "L1-26", "L1-27", "L1-29", "L1-30", "L1-31", "L2-05", "L2-06", "F-05")
@pytest.mark.parametrize(("own", "library", "text"), conversions())
def test_a_conversion_takes_the_same_steps(own: str, library: str, text: str) -> None:
    constant, varying = [0.1] * 100, [0.1 / (1 + t / 10) for t in range(100)]
    if text == "none":
        assert "Nesterov" in own
        return
    [code] = re.findall(r"`([^`]+)`$", text)
    only_without_delta, only_constant = "with `delta=0`" in text, "constant rate" in text
    small = 0.0 if only_without_delta else VALUES["delta"]
    rates = constant if only_constant else varying
    np.testing.assert_allclose(*both_paths(own, library, code, rates, small), rtol=0, atol=1e-12)
    # what the cell restricts itself to is needed
    if only_constant:
        here, there = both_paths(own, library, code, varying, small)
        assert not np.allclose(here, there, atol=1e-4)
    if only_without_delta:
        here, there = both_paths(own, library, code.replace("=0)", "=delta)"), rates, 0.1)
        assert not np.allclose(here, there, atol=1e-4)


def test_a_conversion_is_given_for_each_optimizer_and_library() -> None:
    owns = {call(own)[0] for own, _, _ in conversions()}
    assert owns == {
        "SGD", "Momentum", "Nesterov", "AdaGrad", "RMSProp", "RMSPropNesterov", "AdaDelta", "Adam",
        "AdamW",
    }  # fmt: skip
    assert {library for _, library, _ in conversions()} == {"torch", "Keras", "optax"}
