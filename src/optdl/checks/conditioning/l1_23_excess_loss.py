"""The loss that inexact gradients leave in the long run."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.conditioning.shared import random_positive
from optdl.checks.exercise import Case, Exercise, Function
from optdl.conditioning import excess_loss

exercise = Exercise("L1-23", excess_loss)


@exercise.answer
def _(hessian, bias, lr, sigma):
    curvatures = np.linalg.eigvalsh(hessian)
    variance = lr * sigma**2 / (curvatures * (2 - lr * curvatures))
    limit = np.linalg.solve(hessian, bias)
    return 0.5 * limit @ hessian @ limit + 0.5 * np.sum(curvatures * variance)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"hessian": np.array([[4.0]]), "bias": np.array([2.0]), "lr": 0.25, "sigma": 0.0}
    yield {"hessian": np.diag([0.5, 2.0]), "bias": np.zeros(2), "lr": 0.4, "sigma": 1.5}
    for n in (2, 3, 4):
        H = random_positive(rng, n)
        yield {
            "hessian": H.round(2),
            "bias": rng.normal(size=n).round(1) + 0.05,
            "lr": round(float(rng.uniform(0.1, 0.25)), 2),
            "sigma": round(float(rng.uniform(0.5, 2)), 1),
        }


@exercise.fact("the mean loss of many runs of one dimension comes near it")
def _(function: Function, rng: np.random.Generator) -> bool:
    alpha, lr, sigma = np.zeros(20_000), 0.5, 0.8
    for _ in range(40):
        alpha = alpha - lr * (1.5 * alpha + 0.6 + sigma * rng.normal(size=len(alpha)))
    expected = np.mean(1.5 * alpha**2) / 2
    found = function(np.array([[1.5]]), np.array([0.6]), lr, sigma)
    return bool(np.isclose(found, expected, rtol=0.06))


@exercise.fact("the loss of the bias does not depend on the learning rate")
def _(function: Function, rng: np.random.Generator) -> bool:
    H, bias = random_positive(rng, 3), rng.normal(size=3)
    return bool(np.isclose(function(H, bias, 0.02, 0.0), function(H, bias, 0.2, 0.0)))


exercise.hints(
    r"In the eigenbasis the loss is $\tfrac12\sum_i\lambda_i\alpha_i^2$. What are the mean and the "
    r"variance of each $\alpha_i$ after many steps?",
    r"$\mathbb E\,\alpha^2=\mu^2+V$, so the expected loss has two parts: the loss at the point to "
    r"which the bias shifts the mean, and $\tfrac12\sum_i\lambda_iV_i$.",
    "Solve one linear system for the displacement of the mean, and insert it into the loss. Then "
    "compute all $V_i$ from the eigenvalues as one array, and add the second part.",
)

exercise.mistakes(r"""
you leave out the noise; it spreads the iterates around the limit, which raises the mean loss
    + 0.5 * np.sum(curvatures * variance) →
you leave out the bias; its limit is not the minimum
    0.5 * limit @ hessian @ limit + →
you add the variances as they are; along an eigenvector the loss is ½λα², so weight each with its
eigenvalue
    curvatures * variance) → variance)
your loss lacks its factor ½; it is ½(w − w*)ᵀH(w − w*)
    0.5 * limit → limit
    0.5 * np.sum → np.sum
you take the bias for the distance from the minimum; that is H⁻¹ē
    np.linalg.solve(hessian, bias) → bias
you divide the entries of the bias by eigenvalues; divide its components along the eigenvectors, or
solve with H
    0.5 * limit @ hessian @ limit → 0.5 * np.sum(bias**2 / curvatures)
you take the diagonal entries for eigenvalues; compute the eigenvalues
    np.linalg.eigvalsh(hessian) → np.diag(hessian)
you take the standard deviation; the variance is σₑ²
    sigma**2 → sigma
your variance is that of a very small learning rate; its denominator is λ(2 − ηλ)
    (2 - lr * curvatures) → 2
you square the learning rate; η² stands in the recursion, and η in the variance that it converges to
    lr * sigma**2 → lr**2 * sigma**2
""")
