"""How far the expected loss lies above its minimum where noisy labels are fitted step by step."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import spectrum
from optdl.quadratic import excess_risk


@answer_to("F-26", excess_risk)
def exercise(signal, eigenvalues, lr, steps, sigma, m):
    left = (1 - lr * eigenvalues) ** np.arange(steps + 1)[:, None]
    noise = sigma**2 / (m * eigenvalues)
    terms = eigenvalues * (left**2 * signal**2 + (1 - left) ** 2 * noise)
    return terms.sum(axis=1) / 2


@exercise.cases
def _(rng):
    for low, high, share in ((1, 3, 0.3), (3, 5, 0.8), (5, 9, 0.4)):
        n, steps = rng.integers(low, high, size=2).tolist()
        eigenvalues = spectrum(rng, n)
        lr = float((share * 2 / eigenvalues.max()).round(3))
        sigma, m = round(float(rng.uniform(1.2, 3)), 2), int(rng.integers(n + 2, 3 * n + 4))
        yield rng.normal(size=n).round(2), eigenvalues, lr, steps + 2, sigma, m


@exercise.fact("after very many steps σ²/(2m) is left for each direction, steep or flat")
def _(function, rng):
    eigenvalues = spectrum(rng, 5)
    rows = function(rng.normal(size=5), eigenvalues, 1 / eigenvalues.max(), 2000, 3.0, 9)
    return np.isclose(rows[-1], 5 * 3.0**2 / (2 * 9), rtol=1e-6)


exercise.help(r"""
1. Of the full fit $c_i+e_i$, $\tau$ steps reach $f=1-(1-\eta\lambda_i)^\tau$. How far from $c_i$?
2. By $fe_i-(1-\eta\lambda_i)^\tau c_i$. Take the mean of its square: $e_i$ has the mean 0, so the
   mixed term vanishes, and the variance $\sigma^2/(m\lambda_i)$.
3. A column of the steps $\tau$ gives powers, a row each; add the squares times $\tfrac12\lambda_i$.
your noise is that of the full fit; τ steps learn f = 1 − (1 − ηλ)^τ of it: its variance times f²
    (1 - left) ** 2 * noise → noise
you multiply the variance by the fraction that is learned; it scales the noise, so square it
    (1 - left) ** 2 → (1 - left)
your signal counts what is learned of it; what adds to the loss is the part that is still missing
    left**2 * signal**2 → (1 - left) ** 2 * signal**2
your noise has the variance σ²/m in each direction; along an eigenvector it is σ²/(mλ)
    (m * eigenvalues) → m
your variance of the fit is σ²λ/m; it is σ²/(mλ), larger where the curvature is small
    sigma**2 / (m * eigenvalues) → sigma**2 * eigenvalues / m
you take 1 − (1 − ηλ)^{2τ} of the variance; noise is learned to f = 1 − (1 − ηλ)^τ, so it is f²
    (1 - left) ** 2 → (1 - left**2)
""")
