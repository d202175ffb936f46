"""The steps of gradient descent that a Hessian, which may be singular, costs."""

import numpy as np

from optdl.checks.exercise import Case, answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import steps_needed


@answer_to("L1-17", steps_needed)
def exercise(hessian, q):
    values = np.linalg.eigvalsh(hessian)
    values = values[values > 1e-12 * values[-1]]
    low, high = values[0], values[-1]
    if low == high:
        return 1
    return int(np.ceil(np.log(q) / np.log((high - low) / (high + low))))


@exercise.cases
def _(rng):
    def case(hessian: np.ndarray, least: float, most: float) -> Case:
        return {"hessian": hessian, "q": float(f"{10 ** -rng.uniform(least, most):.2g}")}

    def diagonal(*values: float) -> np.ndarray:
        return np.diag(rng.permutation(values))

    low, high = rng.uniform([0.3, 4], [3, 20]).round(2)
    rank, flat = rng.integers([2, 1], [4, 3]).tolist()
    between = rng.uniform(low, high, size=rank).round(2)
    yield case(np.diag([high, low]), 0.2, 6)
    yield case(diagonal(high, high / 1.1), 4, 8)
    yield case(diagonal(low, high, *between, *[0.0] * flat), 1, 3)
    yield case(diagonal(*[high] * flat, *[0.0] * rank), 2, 4)
    yield case(diagonal(high, 0.0), 2, 4)
    A = rng.normal(size=(rank, rank + flat))
    yield case(A.T @ A, 0.5, 2)
    # an eigenvalue that counts, though small, where rounding up and to the nearest differ
    ratio, k = 10 ** -rng.uniform(9, 11), int(rng.integers(2, 9))
    yield {"hessian": diagonal(high, high * ratio), "q": 1 - 2 * ratio * (k - 0.7)}
    # zero is what is small beside the largest: not these, but the rounding of large entries
    yield case(1e-13 * diagonal(low, high), 0.2, 1)
    yield case(diagonal(low, high, *[1e-14 * high] * flat), 0.2, 2)
    yield case(1e6 * diagonal(low, high, 1e-14 * high), 0.2, 2)
    # exactly 2 steps
    yield {"hessian": 2.0**k * diagonal(1.0, 3.0), "q": 0.25}


@exercise.fact("at the best fixed rate, gradient descent from the worst start needs so many steps")
def _(function, rng):
    H, q = random_hessian(rng, 3), 0.003
    values, U = np.linalg.eigh(H)
    start = w = U[:, 0] + U[:, -1]
    count, lr = 0, 2 / (values[0] + values[-1])
    while np.linalg.norm(w) > q * np.linalg.norm(start):
        w, count = w - lr * H @ w, count + 1
    return function(H, q) == count


exercise.help(r"""
1. Along which eigenvectors does descent move, and which two eigenvalues decide how fast it is?
2. Let $\kappa$ be the ratio of the largest to the smallest nonzero eigenvalue. At worst a step
   multiplies the error by $r=\frac{\kappa-1}{\kappa+1}$. Find the first $k$ with $r^k\le q$.
3. Remove the eigenvalues that count as zero, and compute $r$ from the first and the last one left.
   Solve $r^k=q$ with two logarithms, and treat $r=0$ as a case of its own.
you keep eigenvalues that are rounding errors; count all below 1e-12 times the largest as zero
    values > 1e-12 * values[-1] → values > 0
you count as zero what is below 1e-12; compare with 1e-12 times the largest eigenvalue
    values > 1e-12 * values[-1] → values > 1e-12
you count the steps until the loss is the fraction q; a step shrinks it by r², the distance by r
    np.log(q) → np.log(q) / 2
your learning rate is 1/λmax, with the factor 1 − 1/κ; the best one has (κ − 1)/(κ + 1)
    (high + low) → high
you use ½κ ln(1/q), which is close for a large κ only; take the exact expression
    np.log(q) / np.log((high - low) / (high + low)) → np.log(1 / q) * high / low / 2
your formula gives 0 steps where all eigenvalues left are equal; one step with η = 1/λ is needed
    if low == high:\n        return 1 →
you round down, so the error may still be too large; round up
    np.ceil( → np.floor(
""")
