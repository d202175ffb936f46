"""Compute the preconditioned gradients of a convolutional layer."""

import numpy as np

from optdl.bnp import precondition_conv
from optdl.checks.exercise import answer_to


@answer_to("P-24", precondition_conv, parts=("grad_weight", "grad_bias"))
def exercise(grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4):
    _, c, k, _ = grad_weight.shape
    q2 = max(c * k**2 / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / smoothed / q2
    bias = grad_bias / q2 - (center * weight).sum(axis=(1, 2, 3))
    return weight, bias


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    for (o, c, k), N, r, s, floors in (
        ((few, 1, 3), 8 * more, 2, few + 1, (0.1, 0.05)),
        ((1, more, 3), few, few, more, (0.2, 0.4)),
        # ck²/N, c/N and √(rs) fall in this order
        ((more, few, 3), 1, 2, 1, (0.05, 0.1)),
        ((few, more, 1), more, few, 5, ()),
        ((few, 2, 3), more, few, 2, ()),
    ):
        var = rng.uniform(0.5, 3, size=c)
        # variances on both sides of the floor
        var[: c // 2] = rng.uniform(0.01, 0.05, size=c // 2)
        weight, bias = rng.normal(size=(o, c, k, k)).round(2), rng.uniform(1, 2, size=o).round(2)
        mean = rng.uniform(1, 2, size=c).round(2) * rng.choice([-1, 1], size=c)
        yield weight, bias, mean, rng.permutation(var).round(2), int(N), int(r), int(s), *floors


@exercise.fact("for G_b = 1 and G_w = h, the new G_b + Σ G_w h is (1 + Σ (h − μ)²/σ̃²)/q²")
def _(function, rng):
    h, mean, var = rng.normal(size=(2, 3, 3)), rng.normal(size=2), rng.uniform(1, 2, size=2)
    weight, bias = function(h[None], np.ones(1), mean, var, 60, 5, 6)
    squares = ((h - mean[:, None, None]) ** 2).sum(axis=(1, 2))
    norm = 1 + np.sum(squares / (var + 1e-2 * var.max() + 1e-4))
    return np.allclose(bias + np.sum(np.asarray(weight)[0] * h), norm / np.sqrt(30), rtol=1e-9)


exercise.help(r"""
1. Which axes of `grad_weight` belong to $\mu(p)$ and $G_b(d)$, and how do both broadcast?
2. NumPy aligns shapes from the last axis. A vector over the input channels needs the shape $(c, 1,
   1)$, and a vector over the output channels needs the shape $(o, 1, 1, 1)$.
3. From `grad_weight`, subtract `mean` times `grad_bias`, both reshaped, and divide by
   $q^2\,\tilde\sigma^2$. Then multiply by `mean`, sum over all axes but the first, and subtract the
   sum from `grad_bias` over $q^2$.
you divide by σ̃; divide by its square
    / smoothed → / np.sqrt(smoothed)
you take the old G_w for G_b; the second line uses the new one
    (center * weight) → (center * grad_weight)
you do not divide G_b by q²; the second line starts from G_b/q²
    grad_bias / q2 → grad_bias
you divide the sum over the new G_w by q²; the new G_w already contains 1/q²
    - (center * weight) → - (center * weight / q2)
you divide by σ²; first add ε₁ max σ² + ε₂, which keeps it away from zero
    (var + eps1 * var.max() + eps2) → var
you add ε₁ itself; it multiplies the largest variance of all channels
    eps1 * var.max() → eps1
your q² contains rs; it needs the square root of rs
    np.sqrt(height * width) → height * width
you divide by q; both lines divide by q²
    smoothed = → q2, smoothed = np.sqrt(q2),
your q² counts the output channels; c counts the input channels
    c * k**2 → len(grad_weight) * k**2
you take the q² of a dense layer, max{n/N, 1}; here √(rs) stands in place of 1
    np.sqrt(height * width) → 1
your second line adds the sum; it subtracts it
    grad_bias / q2 - → grad_bias / q2 +
your q² counts the channels alone; a unit reads c k² numbers
    c * k**2 → c
your first line does not divide by q²; it divides by q² σ̃²
    / smoothed / q2 → / smoothed
you average over the k² places of the kernel; the second line sums over them
    (center * weight).sum(axis=(1, 2, 3)) → (center * weight).mean(axis=(2, 3)).sum(axis=1)
your ε₁ multiplies the variance of each channel; it multiplies the largest of all
    eps1 * var.max() → eps1 * var
""")
