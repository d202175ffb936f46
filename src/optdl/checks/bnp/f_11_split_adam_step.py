"""Compute the changes of weight and bias by Adam's first step in the split form."""

import numpy as np

from optdl.bnp import preconditioner, split_adam_step
from optdl.checks.batchnorm.shared import away_from_one
from optdl.checks.exercise import answer_to


@answer_to("F-11", split_adam_step, parts=("change of the weight", "change of the bias"))
def exercise(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    def adam(gradient):
        return -lr * gradient / (np.abs(gradient) + eps)

    weight = adam((grad_weight - np.outer(grad_bias, mean)) / (q * std)) / (q * std)
    return weight, adam(grad_bias / q) / q - weight @ mean


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for outputs, features, size, eps in (
        (1, 1, 1.0, [0.25]),
        (more, few, 1.0, [0.1]),
        (few, more, 1.0, [0.5]),
        # components as large as the ε that is not given
        (1, few, 1e-8, []),
    ):
        weight, bias = rng.normal(size=(outputs, features)), rng.normal(size=outputs)
        mean, std = away_from_one(rng, features), rng.uniform(0.2, 2, size=features).round(2)
        q, lr = float(rng.choice([1.5, 2.0, 3.0])), float(rng.choice([0.1, 0.5]))
        yield size * weight.round(2), size * bias.round(2), mean, std, q, lr, *eps


@exercise.fact("with ε = 0 the loss falls to first order by η times the sum of |Pᵀ g|")
def _(function, rng):
    """Check gᵀΔθ = −η Σ|Pᵀg| without ε, by matrices."""
    G, mean, std = rng.normal(size=(3, 4)), rng.uniform(1, 3, size=3), rng.uniform(0.2, 2, size=3)
    U, D = preconditioner(mean, std)
    weight, bias = function(G[:, 1:], G[:, 0], mean, std, 2.0, 0.1, 0.0)
    change = np.column_stack([bias, weight])
    return np.isclose((G * change).sum(), -0.1 * abs(G @ U @ D / 2).sum(), rtol=1e-9)


exercise.help(r"""
1. For one output, which component of $P^Tg$ belongs to the bias, and which to input $j$?
2. $P^Tg$ is $G_b(i)/q$ for the bias and $\bigl(G_w(i,j)-\mu(j)\,G_b(i)\bigr)/(q\,\tilde\sigma(j))$
   for a weight. Adam acts on each of these numbers, and $P$ acts on what Adam returns.
3. For the weight, divide Adam's step by $q\,\tilde\sigma$ once more. For the bias, divide Adam's
   step by $q$, and subtract the finished change of the weight times `mean`.
you give P Pᵀ g to Adam; it takes Pᵀ g, whose components it divides, and P comes after it
    weight = adam( → weight = ( ; return weight → return adam(weight)
    adam(grad_bias / q) / q - weight @ mean → adam(grad_bias / q**2 - weight @ mean)
you return the step of z; the parameters are P z, so P is still missing
    / (q * std)) / (q * std) → / (q * std))
    adam(grad_bias / q) / q - weight @ mean → adam(grad_bias / q)
you give Adam the plain gradient; the gradient with respect to z is Pᵀ g
    adam((grad_weight - np.outer(grad_bias, mean)) / (q * std)) → adam(grad_weight)
    adam(grad_bias / q) → adam(grad_bias)
you multiply Adam's step by P Pᵀ; Pᵀ belongs before Adam
    adam((grad_weight - np.outer(grad_bias, mean)) / (q * std)) / (q * std)
    → (adam(grad_weight) - np.outer(adam(grad_bias), mean)) / (q * std) ** 2
    adam(grad_bias / q) / q → adam(grad_bias) / q**2
your change of the bias adds the sum; U has −μᵀ in its first row, so P subtracts it
    - weight @ mean → + weight @ mean
you divide by q²σ̃² before Adam; P and Pᵀ divide by qσ̃ each, one after Adam and one before
    / (q * std)) / (q * std) → / (q * std) ** 2) ; adam(grad_bias / q) / q → adam(grad_bias / q**2)
your Pᵀ lacks the 1/q; because of Adam's ε this changes the step
    / (q * std)) / → / std) / ; adam(grad_bias / q) → adam(grad_bias)
you divide by g² + ε; Adam divides by |g| + ε
    np.abs(gradient) → gradient**2
you divide by √(g² + ε); Adam adds ε to the root, so it divides by |g| + ε
    (np.abs(gradient) + eps) → np.sqrt(gradient**2 + eps)
you divide Adam's step of the bias by q twice; P divides it by q once
    adam(grad_bias / q) / q → adam(grad_bias / q) / q**2
""")
