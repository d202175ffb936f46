"""Split the curvature along a direction into what centering leaves and what it removes."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("F-08", "curvature_parts", parts=("left", "removed"))
def exercise(x, s, v):
    scores = x @ v / np.linalg.norm(v)
    mean = np.average(scores, weights=s)
    spread = np.average((scores - mean) ** 2, weights=s)
    return np.mean(s) * spread, np.mean(s) * mean**2


@exercise.cases
def _(rng):
    for m, n in ((2, 1), (3, 2), (6, 4)):
        x = (rng.uniform(1, 2) + rng.normal(size=(m, n))).round(2)
        s, v = rng.uniform(0.1, 2, size=m), rng.uniform(1, 2, size=n) * rng.choice([-1, 1])
        yield x, s.round(2), v.round(2)


@exercise.fact("their sum is vᵀHv/vᵀv; of inputs without their mean they are `left` and 0")
def _(function, rng):
    x, s, v = rng.normal(1, 1, size=(9, 4)), rng.uniform(0.1, 1, size=9), rng.normal(size=4)
    left, removed = function(x, s, v)
    centered = function(x - s @ x / s.sum(), s, v)
    whole = s @ (x @ v) ** 2 / len(x) / (v @ v)
    return np.allclose(left + removed, whole) and np.allclose(centered, (left, 0), atol=1e-12)


exercise.help(r"""
1. Along a unit vector $u$, what are $u^TCu$ and $u\cdot\bar x$ in terms of the scores $u\cdot x_i$?
2. They are the scores' variance and mean, weighted by the $s_i$. Centering makes the mean zero.
3. Take `np.average(…, weights=s)` of the scores, then of their squared distances. What is left?
your mean of the scores is not weighted; here the weights are the sᵢ
    np.average(scores, weights=s) → np.mean(scores)
your first part is the mean square of the scores, the whole curvature; take their variance
    (scores - mean) ** 2 → scores**2
your mean of the scores is not weighted; here the weights are the sᵢ
    mean = np.average(scores, weights=s) → mean = np.mean(scores)
    np.mean(s) * mean**2 → np.mean(s * scores**2) - np.mean(s) * spread
your parts lack the mean of the sᵢ, by which weighted averages divide
    np.mean(s) * spread, np.mean(s) * mean**2 → spread, mean**2
""")
