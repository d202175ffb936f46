"""Compute the plain layer that gives the same output as one behind batch normalization."""

import numpy as np

from optdl.bnp import absorb_normalization
from optdl.checks.batchnorm.shared import away_from_one
from optdl.checks.exercise import answer_to


@answer_to("P-17", absorb_normalization, parts=("weight", "bias"))
def exercise(W, b, mean, std):
    absorbed = W / std
    return absorbed, b - absorbed @ mean


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for outputs, features in ((1, 1), (few, few), (few, more), (more, few)):
        W, b = rng.normal(size=(outputs, features)).round(2), rng.normal(size=outputs).round(2)
        yield W, b, away_from_one(rng, features), rng.uniform(0.2, 9, size=features).round(2)


@exercise.fact("both layers give the same output")
def _(function, rng):
    W, b, h = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(2, 5, size=(10, 3))
    absorbed, bias = function(W, b, h.mean(0), h.std(0))
    normalized = (h - h.mean(0)) / h.std(0)
    return np.allclose(h @ np.asarray(absorbed).T + bias, normalized @ W.T + b, rtol=1e-9)


exercise.help(r"""
1. If you expand $W\,\dfrac{h-\mu_H}{\sigma_H} + b$, which terms contain $h$, and which do not?
2. Two affine functions agree for every $h$ if their coefficients and their constants agree.
3. Divide each column of `W` by its entry of `std`; subtract the new matrix times `mean` from `b`.
your bias uses W; μ was divided by σ too, so it takes Ŵ
    absorbed @ mean → W @ mean
you go the other way, from the plain layer to the one behind batch normalization
    W / std → W * std ; b - absorbed @ mean → b + W @ mean
you divide μ by σ twice; Ŵ is divided by it already
    absorbed @ mean → absorbed @ (mean / std)
""")
