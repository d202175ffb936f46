"""The change of a loss, divided by the change that its quadratic model predicts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from optdl import objectives
from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.objectives import affine, constant, named, quadratic
from optdl.quadratic import prediction_ratio


@answer_to("L1-12", prediction_ratio)
def exercise(value, gradient, hessian, center, w):
    d = w - center
    g, H = gradient(center), hessian(center)
    predicted = d @ g + 0.5 * d @ H @ d
    return (value(w) - value(center)) / predicted


def _objective(A: np.ndarray) -> dict[str, Callable[..., Any]]:
    """Return J(w) = Σ exp(Aw), whose Hessian is full and changes from point to point."""
    where = f"A = {A.tolist()}"
    return {
        "value": named(f"w ↦ sum(exp(A @ w)), {where}", objectives.sum_exp, A),
        "gradient": named(f"w ↦ A.T @ exp(A @ w), {where}", objectives.sum_exp_gradient, A),
        "hessian": named(f"w ↦ A.T @ diag(exp(A @ w)) @ A, {where}", objectives.sum_exp_hessian, A),
    }


@exercise.cases
def _(rng):
    for low, high in (((2, 1), (4, 2)), ((4, 2), (7, 4)), ((2, 3), (3, 6))):
        rows, n = rng.integers(low, high).tolist()
        center = rng.normal(size=n).round(1)
        J = _objective(rng.uniform(0.2, 1, size=(rows, n)).round(1) * rng.choice([-1, 1], size=n))
        # along the gradient, where the predicted change is not small
        uphill = J["gradient"](center)
        d = rng.uniform(0.3, 0.8) * uphill / np.linalg.norm(uphill)
        yield {**J, "center": center, "w": center + d.round(2)}
    # too far: the loss falls where the model predicts that it has risen again
    n, a = int(rng.integers(1, 4)), float(rng.choice([0.5, 1.0, 2.0]))
    far = np.full(n, -round(float(rng.uniform(2.5, 4)), 1) / a)
    yield {**_objective(a * np.eye(n)), "center": np.zeros(n), "w": far}


@exercise.fact("the ratio is 1 for every quadratic loss")
def _(function, rng):
    H, c = random_hessian(rng, 3), rng.normal(size=3)
    center = rng.normal(size=3)
    w = center + affine(c, H, center)
    loss = partial(quadratic, 2.0, c, H)
    ratio = function(loss, partial(affine, c, H), partial(constant, H), center, w)
    return np.isclose(ratio, 1.0, rtol=1e-9)


exercise.help(r"""
1. What is the value of the quadratic model at $w$ and at $\hat w$? What is left in the difference?
2. With $d=w-\hat w$ the model predicts the change $g^Td+\tfrac12\,d^THd$: its constant cancels.
3. Two products with $d$ give the denominator, and two calls of `value` the numerator.
your quadratic term lacks its factor ½; it is ½ (w−ŵ)ᵀH(w−ŵ)
    0.5 * →
your g and H are taken at w; the model uses both at the center ŵ
    gradient(center), hessian(center) → gradient(w), hessian(w)
your H is taken at w; the model uses the Hessian at the center ŵ
    hessian(center) → hessian(w)
you predict with the tangent alone; the model's change has the term ½ (w−ŵ)ᵀH(w−ŵ) too
    + 0.5 * d @ H @ d →
you divide values of the loss and of the model; the ratio is that of two changes: subtract J(ŵ)
    (value(w) - value(center)) / predicted → value(w) / (value(center) + predicted)
you divide J(w) by the predicted change; divide the change of J, J(w) − J(ŵ)
    (value(w) - value(center)) → value(w)
""")
