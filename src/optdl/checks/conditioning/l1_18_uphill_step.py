"""The learning rate up to which no step along a direction goes uphill in the quadratic model."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import uphill_step


@answer_to("L1-18:uphill", uphill_step)
def exercise(gradient, hessian, direction):
    slope, curvature = gradient @ direction, direction @ hessian @ direction
    if slope < 0:
        return 0.0
    return 2 * slope / curvature if curvature > 0 else np.inf


@exercise.cases
def _(rng):
    for slope, curvature in ((1, 0.6), (1, 5), (2, -0.6), (-1, 0.6), (-1, 5), (-1, -2)):
        n = int(rng.integers(1, 5))
        g, d = rng.normal(size=(2, n)).round(1) + 0.05
        d *= slope * np.sign(g @ d)
        H = random_hessian(rng, n)
        H *= curvature * rng.uniform(0.5, 1.5) / (d @ H @ d)
        yield {"gradient": g, "hessian": H, "direction": d}
    # gᵀd = 0 with dᵀHd of each sign, dᵀHd = 0 with gᵀd of each sign, and both zero
    a, b, h = (rng.integers(1, 9, size=3) / 4).tolist()
    gradients = [a, -a], [a, -a], [a, b], [-a, -b], [a, -a]
    curvatures = [h, h], [-h, -h], [h, -h], [h, -h], [h, -h]
    for g, values in zip(gradients, curvatures, strict=True):
        yield np.array(g), np.diag(values), b * np.ones(2)


@exercise.fact("where gᵀd, dᵀHd > 0 it is the positive rate at which the predicted change is 0")
def _(function, rng):
    d, H = rng.normal(size=4), random_hessian(rng, 4)
    g = d + 0.1 * rng.normal(size=4)
    rate = function(g, H, d)
    return rate > 0 and np.isclose(-rate * g @ d + rate**2 * d @ H @ d / 2, 0)


exercise.help(r"""
1. The predicted change is a parabola in $\eta$ through 0. When does it rise at once, or never?
2. The change is $-\eta\,\bigl(g^Td-\tfrac12\eta\,d^THd\bigr)$. Apart from $\eta=0$, where is it 0?
3. Compute $g^Td$ and $d^THd$ first. Then distinguish three cases: the parabola rises from the
   start, it never rises above 0, or it falls and comes back to 0 at its second zero.
you look at no sign; return 0 where gᵀd < 0, and otherwise np.inf where dᵀHd ≤ 0
    if slope < 0:\n        return 0.0 → ; if curvature > 0 else np.inf →
you return the best learning rate along d; a step goes uphill beyond twice that
    2 * →
you return a negative learning rate; where gᵀd < 0 even short steps go uphill, so return 0
    if slope < 0:\n        return 0.0 →
you return 0 where gᵀd = 0; with dᵀHd ≤ 0 no step goes uphill there: return np.inf
    slope < 0 → slope <= 0
you return np.inf where gᵀd < 0 and dᵀHd ≤ 0; even short steps go uphill there, so return 0
    slope < 0 → slope < 0 and curvature > 0
you divide by any dᵀHd; where gᵀd ≥ 0 and dᵀHd ≤ 0 no step goes uphill: return np.inf
    if curvature > 0 else np.inf →
""")
