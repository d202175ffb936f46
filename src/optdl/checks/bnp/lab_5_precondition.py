"""The student preconditions the two gradients of a dense layer in place."""

from functools import partial

import numpy as np
import torch

import optdl.bnp
from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp as drivers


def precondition(grad_weight, grad_bias, mean, var, batch_size, eps1=0.01, eps2=0.0001):
    """Change the gradients of a layer by steps 3 to 5 of Algorithm 2, in place (Source: LAB-5)."""
    q2 = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    grad_weight.sub_(torch.outer(grad_bias, mean)).div_(q2 * smoothed)
    grad_bias.div_(q2).sub_(grad_weight @ mean)


exercise = Exercise("LAB-5:precondition", precondition, use=drivers.precondition)


def _layer(rng, outputs, inputs):
    gradients = [rng.normal(size=shape).round(2) for shape in ((outputs, inputs), (outputs,))]
    return gradients, rng.normal(size=inputs).round(2), rng.uniform(0.2, 3, size=inputs).round(2)


@exercise.cases
def _(rng):
    for small in (False, True, True, False):
        outputs, inputs = rng.choice(range(2, 8), size=2, replace=False).tolist()
        rows = int(rng.integers(1, inputs) if small else rng.integers(inputs + 1, 20))
        eps1, eps2 = rng.uniform([0.1, 0.01], [0.3, 0.1]).round(2).tolist()
        yield *_layer(rng, outputs, inputs), rows, {"eps1": eps1, "eps2": eps2}
    for outputs in (1, 2):
        yield *_layer(rng, outputs, 5), 3, {}


@exercise.fact("the gradients are those of `optdl.bnp.precondition_dense`, in float32, too")
def _(function, rng):
    for dtype, rtol in ((np.float64, 1e-9), (np.float32, 1e-3)):
        gradients, *rest = _layer(rng, 3, 6)
        weight, bias, mean, var = (value.astype(dtype) for value in (*gradients, *rest))
        gradients = exercise.observe(function, [weight, bias], mean, var, 4, {})[:2]
        expected = optdl.bnp.precondition_dense(weight, bias, mean, var, 4)
        if not all(map(partial(np.allclose, rtol=rtol, atol=rtol), gradients, expected)):
            return False
    return True


exercise.help(r"""
1. Which of the four tensors change, which stay, and which operations can be done in place?
2. All products $\mu(j)\,G_b(i)$ together are the `torch.outer` of two vectors, and the sum over $j$
   is a product of a matrix and a vector. Compute $\tilde\sigma^2$ and $q^2$ as new values first.
3. In place, subtract the outer product from `grad_weight`, and divide by $q^2\,\tilde\sigma^2$.
   Then divide `grad_bias` by $q^2$, in place, and subtract the new `grad_weight` times `mean`.
you compute new tensors, and the gradients stay as they are: `a = a - b` gives the name a to another
tensor; change the tensor itself, with `sub_`, `div_` or `copy_`
    grad_weight.sub_( → grad_weight = grad_weight.sub( ; .div_(q2 * → .div(q2 *
    grad_bias.div_(q2).sub_( → grad_bias = grad_bias.div(q2).sub(
your new bias gradient uses the old weight gradient; it uses the new one
    grad_weight.sub_( → old = grad_weight.clone()\n    grad_weight.sub_( ; grad_weight @ → old @
you change the bias gradient first; G_w takes the old G_b, and then G_b takes the new G_w
    grad_bias.div_(q2).sub_(grad_weight @ mean) →
    grad_weight.sub_( → grad_bias.div_(q2).sub_(grad_weight @ mean)\n    grad_weight.sub_(
you divide G_b by q² first; the weight gradient takes the G_b that is given
    grad_bias.div_(q2) → grad_bias ; grad_weight.sub_( → grad_bias.div_(q2)\n    grad_weight.sub_(
you divide by the standard deviation; P and Pᵀ divide by it once each, which makes the variance
    smoothed) → smoothed.sqrt())
your q² counts the outputs of the layer; it is max{n/N, 1} with the number n of inputs
    shape[1] → shape[0]
your q² falls below 1 for minibatches that are larger than the layer; it is max{n/N, 1}
    max(grad_weight.shape[1] / batch_size, 1) → grad_weight.shape[1] / batch_size
you divide by q; both gradients are divided by q² = max{n/N, 1}
    batch_size, 1) → batch_size, 1) ** 0.5
you do not divide the bias gradient by q²; both gradients are divided
    bias.div_(q2) → bias
you leave out the largest variance in the floor; σ̃² is σ² + ε₁ max σ² + ε₂
    eps1 * var.max() → eps1
you subtract the means times the sum of the bias gradient; each output i has its own G_b(i)
    torch.outer(grad_bias, mean) → grad_bias.sum() * mean
you add the means times the bias gradient; they are subtracted from the weight gradient
    grad_weight.sub_( → grad_weight.add_(
you take the largest σ; ε₁ multiplies the largest variance, σ²
    var.max() → var.max().sqrt()
your ε₁ and ε₂ are exchanged; ε₁ multiplies the largest variance
    eps1 * var.max() + eps2 → eps2 * var.max() + eps1
you round n/N down to a whole number; q² is max{n/N, 1} with the fraction itself
    / batch_size → // batch_size
your quotient is upside down; q² is max{n/N, 1}
    grad_weight.shape[1] / batch_size → batch_size / grad_weight.shape[1]
you return new gradients, and the given ones stay as they are; change these in place
    grad_weight.sub_( → grad_weight = grad_weight.sub( ; .div_(q2 * → .div(q2 *
    grad_bias.div_(q2).sub_( → return grad_weight, grad_bias.div(q2).sub(
the bias gradient that is given stays as it is; change it in place
    grad_bias.div_(q2).sub_( → grad_bias = grad_bias.div(q2).sub(
""")
