"""Compute the gradient of the weight of a layer whose outputs are normalized."""

import numpy as np

from optdl.batchnorm import scale_invariant_gradient
from optdl.checks.exercise import answer_to


@answer_to("P-08", scale_invariant_gradient)
def exercise(W, h, upstream):
    z = h @ W.T
    std = z.std(axis=0)
    normalized = (z - z.mean(axis=0)) / std
    along = normalized * (upstream * normalized).mean(axis=0)
    back = (upstream - upstream.mean(axis=0) - along) / std
    return back.T @ h


@exercise.cases
def _(rng):
    few, many = rng.integers([2, 4], [4, 6]).tolist()
    for o, n, m in ((1, 2, 3), (2, few, 4), (few, many, many + 2), (many, few, few + 3)):
        W, h = rng.uniform(0.5, 2, size=(o, n)), rng.uniform(-2, 3, size=(m, n))
        yield W.round(2), h.round(2), rng.uniform(1, 4, size=(m, o)).round(2)


@exercise.fact("each row is orthogonal to the same row of W, and at 8W it is an eighth of it")
def _(function, rng):
    W, h, upstream = (rng.normal(size=s) for s in ((3, 4), (7, 4), (7, 3)))
    gradient, large = (np.asarray(function(some, h, upstream)) for some in (W, 8 * W))
    orthogonal = np.allclose((gradient * W).sum(axis=1), 0)
    return orthogonal and np.allclose(8 * large, gradient) and np.any(large)


exercise.help(r"""
1. $W$ determines $z = hW^T$, and $z$ determines $\mathrm{BN}(z)$. Which step do you know already?
2. Exercise 3 with the factor $1/\sigma$ gives $\partial f/\partial z$. With $z=hW^T$ the chain rule
   then gives $\partial f/\partial W_{jk}=\sum_i(\partial f/\partial z_{ij})\,h_{ik}$.
3. Normalize $hW^T$ along axis 0, and apply the formula of exercise 3 to `upstream`, with one over
   the standard deviation as the factor. Multiply the transpose of the result by `h`.
you hold mean and variance constant; both depend on W
    (upstream - upstream.mean(axis=0) - along) → upstream
you hold the variance constant; it depends on W, so subtract ẑ · mean(δẑ), where ẑ is BN(hWᵀ)
    - along →
you hold the mean constant; it depends on W, so subtract mean(δ)
    upstream - upstream.mean(axis=0) - along → upstream - along
you subtract sums over the examples; subtract means over them
    upstream.mean(axis=0) - along → len(h) * (upstream.mean(axis=0) + along)
your σ divides by m − 1; batch norm divides by m
    z.std(axis=0) → z.std(axis=0, ddof=1)
you do not divide by σ, the standard deviation of hWᵀ
    - along) / std → - along)
you project a gradient with constant mean and variance; let both depend on W, as in exercise 3
    return back.T @ h → G = (upstream / std).T @ h\n
        return G - np.sum(G * W, axis=1)[:, None] / np.sum(W**2, axis=1)[:, None] * W
""")
