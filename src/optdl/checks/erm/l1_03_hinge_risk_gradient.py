"""The gradient of the empirical hinge risk of a linear classifier."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import hinge_risk_gradient

exercise = Exercise("L1-03:hinge", hinge_risk_gradient)


@exercise.answer
def _(w, x, y):
    active = y * (x @ w) < 1
    return -x.T @ (active * y) / len(y)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((4, 1), (6, 2), (40, 3)):
        y = rng.permutation(np.resize([1, -1], m))
        # margins above 1, between 0 and 1, far below 0 and a little below 0
        target = rng.permutation(np.resize([2.5, 0.5, -6.0, -0.3], m)) * y
        w = rng.choice([-1.0, 1.0], size=d) * rng.uniform(0.5, 1.5, size=d).round(1)
        x = rng.normal(size=(m, d)).round(1)
        yield {"w": w, "x": x + np.outer(target - x @ w, w) / (w @ w), "y": y}
    # margins of exactly 1, where an example stops contributing, and margins near 1 and near 0
    x = np.array([[0.5, 0.0], [1, 0.5], [0, 1], [-0.75, 0], [1, -1], [0.5, 1.1], [0.45, 0]])
    yield {"w": np.array([2.0, -1.0]), "x": x, "y": np.array([1, 1, -1, -1, -1, 1, 1])}


def _hinge_risk(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return float(np.maximum(0, 1 - y * (x @ w)).mean())


@exercise.fact("the gradient agrees with finite differences")
def _(gradient: Function, rng: np.random.Generator) -> bool:
    w, x, y = rng.normal(size=3), rng.normal(size=(20, 3)), rng.choice([-1, 1], size=20)
    h = 1e-7 * np.eye(3)
    slope = [(_hinge_risk(w + e, x, y) - _hinge_risk(w - e, x, y)) / 2e-7 for e in h]
    return bool(np.allclose(gradient(w, x, y), slope, atol=1e-6))


@exercise.fact("it vanishes once all margins exceed 1")
def _(gradient: Function, rng: np.random.Generator) -> bool:
    w, x = rng.normal(size=3), rng.normal(size=(20, 3))
    y = np.sign(x @ w)
    safe = w * 1.1 / np.abs(x @ w).min()
    return not np.any(gradient(safe, x, y))


exercise.hints(
    r"For which margins does $\max(0,\,1-y\,w^Tx)$ have a nonzero slope, and what is the gradient "
    r"of the loss of one such example with respect to $w$?",
    r"By the chain rule this gradient is the derivative of the hinge with respect to the margin, "
    r"$-1$ or $0$, times the gradient of the margin $y\,w^Tx$ with respect to $w$.",
    "Compute all margins and compare them with the threshold. Multiply the mask by the labels, "
    "let one product with the transposed `x` add up the examples, and take the mean.",
)

exercise.mistakes(r"""
you count only misclassified examples; correctly classified ones with a margin below 1 contribute to
the hinge too
    < 1 → < 0
you count an example with a margin of exactly 1; it contributes nothing
    < 1 → <= 1
you count every example; those with a margin of 1 or more contribute nothing
    y * (x @ w) < 1 → np.ones(len(y))
you compare the score wᵀx with 1; the hinge looks at the margin y wᵀx
    y * (x @ w) → x @ w
your terms lack the labels; each term is −yᵢxᵢ
    (active * y) → active
you average over the examples with margin below 1; divide by all m
    len(y) → max(active.sum(), 1)
you keep the term of the last example alone, as `=` in a loop does; add up the terms
    x.T @ (active * y) → (x[active] * y[active, None])[-1]
""")
