"""The value at w of the quadratic model of a loss around a center."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.quadratic.shared import random_hessian
from optdl.objectives import (
    affine,
    constant,
    named,
    quadratic,
    sum_exp,
    sum_exp_gradient,
    sum_exp_hessian,
)
from optdl.quadratic import taylor_value

exercise = Exercise("L1-12", taylor_value)


@exercise.answer
def _(value, gradient, hessian, center, w):
    d = w - center
    g, H = gradient(center), hessian(center)
    return value(center) + d @ g + 0.5 * d @ H @ d


def _objective(rng: np.random.Generator, rows: int, n: int) -> dict[str, Callable[..., Any]]:
    """Return J(w) = Σ exp(Aw), whose Hessian is full and changes from point to point."""
    A = rng.uniform(-1, 1, size=(rows, n)).round(1)
    where = f"A = {A.tolist()}"
    return {
        "value": named(f"w ↦ sum(exp(A @ w)), {where}", sum_exp, A),
        "gradient": named(f"w ↦ A.T @ exp(A @ w), {where}", sum_exp_gradient, A),
        "hessian": named(f"w ↦ A.T @ diag(exp(A @ w)) @ A, {where}", sum_exp_hessian, A),
    }


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, n in ((2, 1), (3, 2), (5, 3), (6, 4)):
        center = rng.normal(size=n).round(1)
        w = center + rng.uniform(0.2, 0.8, size=n).round(1) * rng.choice([-1, 1], size=n)
        yield {**_objective(rng, rows, n), "center": center, "w": w}


@exercise.fact("the model of a quadratic is the quadratic itself")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, c = random_hessian(rng, 3), rng.normal(size=3)
    w = rng.normal(size=3)
    loss = partial(quadratic, 2.0, c, H)
    model = function(loss, partial(affine, c, H), partial(constant, H), rng.normal(size=3), w)
    return bool(np.isclose(model, loss(w), rtol=1e-9))


@exercise.fact("half the distance leaves an eighth of the error")
def _(function: Function, rng: np.random.Generator) -> bool:
    J = _objective(rng, rows=4, n=2)
    center, d = rng.normal(size=2), rng.normal(size=2)
    errors = [
        abs(J["value"](center + h * d) - function(*J.values(), center, center + h * d))
        for h in (0.02, 0.01)
    ]
    # the error falls 8 times when the distance is halved: 2³, up to terms of fourth order
    return bool(errors[1] < errors[0] / 6)


exercise.mistake("your quadratic term lacks its factor ½; it is ½ (w−ŵ)ᵀH(w−ŵ)", ("0.5 * ", ""))

exercise.mistake(
    "your g and H are taken at w; the model uses both at the center ŵ",
    ("gradient(center), hessian(center)", "gradient(w), hessian(w)"),
)

exercise.mistake(
    "your H is taken at w; the model uses the Hessian at the center ŵ",
    ("hessian(center)", "hessian(w)"),
)

exercise.mistake(
    "your model has no linear term; (w−ŵ)ᵀg vanishes only where the gradient is zero",
    (" + d @ g", ""),
)

exercise.mistake(
    "your model is the tangent plane; the term ½ (w−ŵ)ᵀH(w−ŵ) is missing",
    (" + 0.5 * d @ H @ d", ""),
)

exercise.mistake(
    "your terms use w; they measure the displacement w − ŵ from the center",
    ("d = w - center", "d = w"),
)
