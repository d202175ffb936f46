"""Estimate the risks of nested least-squares fits from their empirical risks."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import expected_least_squares_risks


@answer_to("L1-02", "estimated_risks")
def exercise(losses, m):
    d = np.arange(len(losses))
    return losses * m / (m - d) * (m - 1) / (m - d - 1)


@exercise.cases
def _(rng):
    for fits, low, high in ((2, 4, 7), (4, 7, 12), (7, 20, 40)):
        losses = np.sort(rng.uniform(0.1, 2, size=fits).round(2))[::-1].copy()
        yield {"losses": losses, "m": int(rng.integers(low, high))}


@exercise.fact("the expected empirical risks of fits give their expected risks")
def _(function, rng):
    m, noise = int(rng.integers(12, 30)), rng.uniform(0.5, 2)
    empirical, risks = np.transpose([expected_least_squares_risks(d, m, noise) for d in range(9)])
    return np.allclose(function(empirical, m), risks)


exercise.help(r"""
1. Each fit has an unknown $\sigma_y$. What does its empirical risk say about $\sigma_y^2/2$?
2. The first expected value gives $\sigma_y^2/2\approx J/(1-d/m)$. Insert this into the second one.
3. Make an array of the $d$ with `np.arange`, from 0 on; divide and multiply by arrays of factors.
you take the empirical risk for the level of the noise; divide it by 1 − d/m first
    losses * m / (m - d) → losses
you return the level of the noise; the risk of the fit lies above it by the factor 1 + d/(m − d − 1)
    * (m - 1) / (m - d - 1) →
you multiply by 1 − d/m; the empirical risk is too small by this factor, so divide by it
    m / (m - d) → (m - d) / m
your risk lies above the noise by the fraction d/m, as for large m only; it is d/(m − d − 1)
    (m - 1) / (m - d - 1) → (m + d) / m
you count the features from 1; the first fit has none
    np.arange(len(losses)) → np.arange(1, len(losses) + 1)
you give all fits the same number of features; fit d has d of them
    np.arange(len(losses)) → len(losses) - 1
you divide by (1 − d/m)², as cross-validation does; the second factor is (m − 1)/(m − d − 1)
    (m - 1) / (m - d - 1) → m / (m - d)
""")
