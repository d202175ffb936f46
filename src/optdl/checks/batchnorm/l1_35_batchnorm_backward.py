"""Compute the gradients of x, γ and β from the gradient of a normalized minibatch."""

import numpy as np

from optdl.batchnorm import batchnorm_backward, batchnorm_forward
from optdl.checks.batchnorm.shared import away_from_one, random_features, shapes
from optdl.checks.exercise import answer_to


@answer_to("L1-35", batchnorm_backward, parts=("grad_x", "grad_gamma", "grad_beta"))
def exercise(grad, cache):
    normalized, factor = cache
    along = normalized * (grad * normalized).mean(axis=0)
    grad_x = factor * (grad - grad.mean(axis=0) - along)
    grad_gamma = (grad * normalized).sum(axis=0)
    return grad_x, grad_gamma, grad.sum(axis=0)


@exercise.cases
def _(rng):
    for m, d, eps in shapes(rng):
        x, gamma = random_features(rng, m, d), away_from_one(rng, d)
        _, cache = batchnorm_forward(x, gamma, np.zeros(d), eps)
        # a plain pair: that is what arrives at an answer in another process
        yield {"grad": rng.uniform(1, 3, size=(m, d)).round(2), "cache": tuple(cache)}


@exercise.fact("in a small step along any direction the loss changes as the three gradients say")
def _(function, rng):
    at = random_features(rng, 5, 3), away_from_one(rng, 3), rng.normal(size=3)
    along = [rng.normal(size=part.shape) for part in at]
    grad = rng.normal(size=(5, 3))

    def loss(step: float) -> float:
        x, gamma, beta = (part + step * d for part, d in zip(at, along, strict=True))
        return float(np.sum(grad * batchnorm_forward(x, gamma, beta, 0.1)[0]))

    gradients = function(grad, tuple(batchnorm_forward(*at, 0.1)[1]))
    slope = sum(map(np.vdot, gradients, along))
    return np.isclose(slope, (loss(1e-5) - loss(-1e-5)) / 2e-5, atol=1e-7)


exercise.help(r"""
1. `cache` holds $\hat x$ and the factor. Which means does the first formula need, along which axis?
2. For $\overline{\delta\hat x}$, multiply $\delta$ and $\hat x$ entry by entry, then take the mean.
3. Subtract from `grad` its mean and $\hat x$ times the mean of the products, and multiply the
   difference by the factor. The other gradients are the sums of the products and of `grad`.
you hold mean and variance constant; both depend on each example
    (grad - grad.mean(axis=0) - along) → grad
the term of the variance is missing; subtract x̂ · mean(δx̂), with the mean of the products
    - along →
the term of the mean is missing; subtract mean(δ)
    grad - grad.mean(axis=0) - along → grad - along
you add the term x̂ · mean(δx̂); subtract it
    - along → + along
you multiply only δ by the factor; multiply all three terms, in brackets
    factor * (grad - grad.mean(axis=0) - along) → factor * grad - grad.mean(axis=0) - along
your mean includes the x̂ of the example; it stands before the mean, in x̂ · mean(δx̂)
    normalized * (grad * normalized).mean → (normalized * grad * normalized).mean
your term mean(δx̂) is not multiplied by the x̂ of the example
    normalized * (grad * normalized).mean → (grad * normalized).mean
your means are over all features; take the means of each feature
    (grad * normalized).mean(axis=0) → (grad * normalized).mean() ; grad.mean(axis=0) → grad.mean()
you use sums in the gradient of x; take the means of δ and δx̂ over the examples
    grad.mean(axis=0) - along → len(grad) * (grad.mean(axis=0) + along)
the factor γ/√(σ² + ε) is missing in the gradient of x; multiply by it
    factor * (grad - grad.mean(axis=0) - along) → grad - grad.mean(axis=0) - along
you divide by the factor; multiply by it, since it is γ/√(σ² + ε)
    = factor * → = 1 / factor *
your gradient of γ is multiplied by the factor; it is the sum of δx̂
    grad_x, grad_gamma → grad_x, factor * grad_gamma
you divide Σ δx̂ by Σ x̂², which is less than m because of ε; divide it by m
    * (grad * normalized).mean(axis=0) → * (grad * normalized).sum(0) / (normalized**2).sum(0)
your gradient of x has the factor twice; multiply by it once
    grad_x = factor * → grad_x = factor**2 *
your mean of δx̂ divides by m − 1; divide by m
    (grad * normalized).mean(axis=0) → (grad * normalized).sum(0) / max(len(grad) - 1, 1)
you do not multiply the term x̂ · mean(δx̂) by the factor; multiply all three terms
    factor * (grad - grad.mean(axis=0) - along) → factor * (grad - grad.mean(axis=0)) - along
""")
