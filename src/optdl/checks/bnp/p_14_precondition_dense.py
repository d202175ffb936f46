"""Compute the preconditioned gradients of a dense layer by steps 3 to 5 of BNP."""

import numpy as np

from optdl.bnp import precondition_dense
from optdl.checks.batchnorm.shared import away_from_one
from optdl.checks.exercise import answer_to


@answer_to("P-14:step", precondition_dense, parts=("weight", "bias"))
def exercise(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    q2 = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    bias = grad_bias / q2 - weight @ mean
    return weight, bias


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for outputs, features, rows, floors in (
        (few, 1, more, (0.5, 0.2)),
        (1, few, few + 1, (0.3, 0.1)),
        (few, more, 1, (0.1, 0.4)),
        (more + 1, more, few, ()),
    ):
        var = rng.uniform(0.5, 4, size=features)
        # variances on both sides of the floor
        var[: features // 2] = rng.uniform(0.001, 0.04, size=features // 2)
        weight = rng.normal(size=(outputs, features)).round(2)
        bias, mean = rng.uniform(0.5, 2, size=outputs).round(2), away_from_one(rng, features)
        yield weight, bias, mean, rng.permutation(var).round(3), int(rows), *floors


@exercise.fact("for G_b = 1 and G_w = hᵀ, the new G_b + G_w h is (1 + Σ (h − μ)²/σ̃²)/q²")
def _(function, rng):
    h, mean, var = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.1, 5, size=6)
    weight, bias = function(h[None], np.ones(1), mean, var, 2, 0.02, 0.3)
    norm = 1 + np.sum((h - mean) ** 2 / (var + 0.02 * var.max() + 0.3))
    return np.allclose(bias + np.asarray(weight) @ h, norm / 3)


exercise.help(r"""
1. Which of $i$ and $j$ counts the outputs, and which axis of `grad_weight` does each run along?
2. All $\mu(j)\,G_b(i)$ form an outer product, and the sum over $j$ is a matrix times a vector.
3. From `grad_weight`, subtract the outer product of `grad_bias` and `mean`, and divide its rows by
   $q^2\,\tilde\sigma^2$. Then subtract the new matrix times `mean` from `grad_bias` over $q^2$.
your step 5 uses the old G_w; use the new one from step 4
    - weight @ mean → - grad_weight @ mean
you divide by σ̃; step 4 divides by σ̃²
    / smoothed → / np.sqrt(smoothed)
you divide by q; both steps divide by q²
    max(grad_weight.shape[1] / batch_size, 1) → np.sqrt(max(grad_weight.shape[1] / batch_size, 1))
your n counts the outputs; q² counts the inputs, the columns of G_w
    grad_weight.shape[1] → grad_weight.shape[0]
you divide the sum of step 5 by q² as well; the new G_w has been divided already
    grad_bias / q2 - weight @ mean → (grad_bias - weight @ mean) / q2
you add ε₁ itself; it multiplies the largest variance of the layer
    eps1 * var.max() → eps1
you add ε₁ times each feature's own variance; take the largest variance of the layer
    eps1 * var.max() → eps1 * var
your step 4 adds μ(j) G_b(i); it subtracts it
    grad_weight - np.outer → grad_weight + np.outer
your step 5 adds the sum; it subtracts it
    - weight @ mean → + weight @ mean
you take step 5 before step 4; G_w uses the old G_b, and G_b the new G_w
    - weight @ → - grad_weight @
    np.outer(grad_bias, → np.outer(grad_bias / q2 - grad_weight @ mean,
you divide by σ²; step 3 adds ε₁ max σ² + ε₂ to it
    / smoothed → / var
you take the larger of σ² and ε₁ max σ² + ε₂; add the two
    var + eps1 * var.max() + eps2 → np.maximum(var, eps1 * var.max() + eps2)
your σ̃² lacks ε₂; it is σ² + ε₁ max σ² + ε₂
    + eps2 →
your step 4 does not divide by q²; it divides by q² σ̃²
    / smoothed / q2 → / smoothed
""")
