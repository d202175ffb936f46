"""The gradient of the empirical hinge risk of a linear classifier."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import hinge_risk_gradient


@answer_to("L1-03:hinge", hinge_risk_gradient)
def exercise(w, x, y):
    active = y * (x @ w) < 1
    return -x.T @ (active * y) / len(y)


@exercise.cases
def _(rng):
    for low, high in (((2, 4), (4, 7)), ((4, 1), (9, 4)), ((20, 2), (40, 6))):
        m, d = rng.integers(low, high).tolist()
        y = rng.permutation(np.resize([1, -1], m))
        # margins above 1, between 0 and 1, far below 0 and a little below 0
        target = np.resize(rng.permutation([2.5, 0.5, -6.0, -0.3]), m) * y
        w = rng.choice([-1.0, 1.0], size=d) * rng.uniform(0.5, 1.5, size=d).round(1)
        x = rng.normal(size=(m, d)).round(1)
        yield {"w": w, "x": x + np.outer(target - x @ w, w) / (w @ w), "y": y}
    # margins of exactly 1, where an example stops contributing, of exactly 0, and near both;
    # all numbers are sums of few powers of 2, so no way to compute the margins rounds
    margins = rng.permutation([1.0, 1.0, 0.0, 1.125, 0.875, 0.125, -0.125])
    y = rng.permutation([1, 1, 1, 1, -1, -1, -1])
    w = rng.choice([-2.0, -1.0, 0.5, 1.0, 4.0], size=2)
    first = rng.integers(-4, 5, size=7) / 4
    yield {"w": w, "x": np.stack([first, (y * margins - w[0] * first) / w[1]], axis=1), "y": y}


@exercise.fact("away from margin 1, it agrees with difference quotients of the mean hinge loss")
def _(gradient, rng):
    w, x, y = rng.normal(size=3), rng.normal(size=(20, 3)), rng.choice([-1, 1], size=20)
    either = w + 1e-7 * np.array([np.eye(3), -np.eye(3)])
    above, below = np.maximum(0, 1 - y * (either @ x.T)).mean(axis=2)
    return np.allclose(gradient(w, x, y), (above - below) / 2e-7, atol=1e-6)


exercise.help(r"""
1. For which margins has $\max(0,\,1-y\,w^Tx)$ a slope, and what is the gradient there?
2. It is the derivative in the margin, $-1$ or $0$, times the gradient of the margin in $w$.
3. Compute all margins and compare them with the threshold. Multiply the mask by the labels, let one
   product with the transposed `x` add up the examples, and take the mean.
you count only misclassified examples; all with a margin below 1 contribute to the hinge
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
you keep only the last example with a margin below 1, as `=` in a loop does; add up all of them
    x.T @ (active * y) → (x[active] * y[active, None])[-1]
you count misclassified examples only; each with a margin below 1 counts
    < 1 → <= 0
""")
