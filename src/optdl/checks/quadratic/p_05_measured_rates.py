"""The factor by which the last step of gradient descent multiplies the distance, measured."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.quadratic import measured_rates


@answer_to("P-05:measured", measured_rates)
def exercise(hessian, start, lrs, steps):
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(w) / np.linalg.norm(before))
    return np.array(rates)


@exercise.cases
def _(rng):
    for low, high in (((2, 1, 3), (4, 2, 5)), ((4, 3, 2), (6, 5, 4)), ((2, 6, 3), (4, 11, 6))):
        n, steps, runs = rng.integers(low, high).tolist()
        H = random_hessian(rng, n)
        # from runs that converge slowly to one that diverges
        lrs = np.append(rng.uniform(0.1, 0.95, size=runs - 1), 1.1) * 2 / np.linalg.eigvalsh(H)[-1]
        yield {"hessian": H, "start": rng.normal(size=n), "lrs": lrs.round(3), "steps": steps}


@exercise.fact("a long run from a general start comes near max |1 − ηλ|")
def _(function, rng):
    H = np.diag([1.0, 2.0, 4.0])
    lrs = np.array([0.1, 0.3, 0.45])
    rates = function(H, rng.uniform(1, 2, size=3), lrs, 200)
    return np.allclose(rates, [0.9, 0.7, 0.8], atol=1e-6)


exercise.help(r"""
1. What is the gradient of $\tfrac12w^T Hw$, and which iterates does the last step's factor compare?
2. One step is $w\leftarrow w-\eta Hw$. Remember what $w$ was before it: the last two are needed.
3. Use two nested loops, over the learning rates and over the steps. In the inner loop keep the old
   `w` under a second name; after it, append the quotient of the two norms.
you average over all steps; early steps are faster, so use the last step alone
    np.linalg.norm(w) / np.linalg.norm(before)
    → (np.linalg.norm(w) / np.linalg.norm(start)) ** (1 / steps)
you return the predicted rates; run gradient descent and measure
    np.array(rates) → np.abs(1 - np.outer(lrs, np.linalg.eigvalsh(hessian))).max(axis=1)
you compare losses, which shrink by the square of the rate; compare norms of w
    np.linalg.norm(w) / np.linalg.norm(before) → w @ hessian @ w / (before @ hessian @ before)
your runs continue one another; the run of each learning rate begins at `start`
    rates = [] → rates, w = [], start ; w = start →
""")
