"""Fold the normalization at inference into the weight and the bias of the layer before it."""

import numpy as np

from optdl.batchnorm import batchnorm_inference, fold
from optdl.checks.batchnorm.shared import away_from_one
from optdl.checks.exercise import answer_to


@answer_to("L1-36:fold", fold, parts=("weight", "bias"))
def exercise(weight, bias, gamma, beta, mean, var, eps):
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias - mean) + beta


@exercise.cases
def _(rng):
    few, many = rng.integers([2, 4], [4, 7]).tolist()
    for d, n in ((2, 1), (few, many), (many, few), (few, few), (1, many)):
        vectors = {name: away_from_one(rng, d) for name in ("bias", "gamma", "beta", "mean")}
        case = {"weight": rng.normal(size=(d, n)).round(2), **vectors}
        var, eps = rng.uniform(2, 5, size=d).round(2), round(rng.uniform(0.03, 0.3), 2)
        yield {**case, "var": var, "eps": eps}


@exercise.fact("the folded layer has the outputs of the layer and the normalization behind it")
def _(function, rng):
    weight, h = rng.normal(size=(3, 4)), rng.normal(size=(6, 4))
    bias, gamma, beta, mean = rng.normal(size=(4, 3))
    rest = gamma, beta, mean, rng.uniform(0.1, 2, size=3), 1e-3
    folded, shift = function(weight, bias, *rest)
    expected = batchnorm_inference(h @ weight.T + bias, *rest)
    return np.allclose(h @ np.asarray(folded).T + shift, expected, rtol=1e-12)


exercise.help(r"""
1. What is the right-hand side at $h = 0$, and what does this tell you about $\tilde b$?
2. With $a = \gamma / \sqrt{\sigma^2 + \epsilon}$, which part of the output contains $h$?
3. Turn $a$ into a column for the weight. The bias is $a$ times (`bias` − `mean`), plus `beta`.
you scale the columns of the weight; each row belongs to one output, so scale the rows
    scale[:, None] * weight → scale * weight
you divide by the variance; divide by its root, √(σ² + ε)
    np.sqrt(var + eps) → (var + eps)
you do not multiply the bias of the layer by the scale; it is scaled with W h
    scale * (bias - mean) → bias - scale * mean
your ε is outside the root; divide by √(σ² + ε)
    np.sqrt(var + eps) → (np.sqrt(var) + eps)
""")
