"""The loss that inexact gradients leave in the long run."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import random_hessian
from optdl.conditioning import excess_loss


@answer_to("L1-23", excess_loss)
def exercise(hessian, bias, lr, sigma):
    curvatures = np.linalg.eigvalsh(hessian)
    variance = lr * sigma**2 / (curvatures * (2 - lr * curvatures))
    limit = np.linalg.solve(hessian, bias)
    return 0.5 * limit @ hessian @ limit + 0.5 * np.sum(curvatures * variance)


@exercise.cases
def _(rng):
    for low, high, bias, noise in ((1, 4, 1, 0), (1, 2, 0, 1), (2, 4, 1, 1), (4, 7, 1, 1)):
        n = int(rng.integers(low, high))
        H = random_hessian(rng, n).round(2)
        lr = round(float(rng.uniform(0.2, 0.9)) * 2 / float(np.linalg.eigvalsh(H)[-1]), 3)
        sigma = noise * round(float(rng.uniform(0.5, 2)), 1)
        yield H, bias * (rng.normal(size=n).round(1) + 0.05), lr, sigma


@exercise.fact("the mean loss of many runs of one dimension comes near it")
def _(function, rng):
    alpha, lr, sigma = np.zeros(20_000), 0.5, 0.8
    for _ in range(40):
        alpha = alpha - lr * (1.5 * alpha + 0.6 + sigma * rng.normal(size=len(alpha)))
    expected = np.mean(1.5 * alpha**2) / 2
    found = function(np.array([[1.5]]), np.array([0.6]), lr, sigma)
    return np.isclose(found, expected, rtol=0.06)


exercise.help(r"""
1. In the eigenbasis, what are the mean and the variance of each $\alpha_i$ after many steps?
2. $\mathbb E\,\alpha^2=\mu^2+V$: the loss of the shifted mean, plus $\tfrac12\sum_i\lambda_iV_i$.
3. Solve one linear system for the displacement of the mean, and insert it into the loss. Then
   compute all $V_i$ from the eigenvalues as one array, and add the second part.
you add the variances as they are; the loss is ½λα², so weight each with its eigenvalue
    curvatures * variance) → variance)
you take the bias for the distance from the minimum; that is H⁻¹ē
    np.linalg.solve(hessian, bias) → bias
you divide the entries of the bias by eigenvalues; divide its components along the eigenvectors
    0.5 * limit @ hessian @ limit → 0.5 * np.sum(bias**2 / curvatures)
your variance is that of a very small learning rate; its denominator is λ(2 − ηλ)
    (2 - lr * curvatures) → 2
you square the learning rate; η² stands in the recursion, and η in the variance that it converges to
    lr * sigma**2 → lr**2 * sigma**2
""")
