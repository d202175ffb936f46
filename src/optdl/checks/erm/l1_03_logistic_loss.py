"""The logistic loss in bits and its derivative, finite for every margin."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import logistic_loss


@answer_to("L1-03", logistic_loss, parts=("values", "derivatives"))
def exercise(margin):
    values = np.logaddexp(0, -margin) / np.log(2)
    derivatives = -0.5 * (1 - np.tanh(margin / 2)) / np.log(2)
    return values, derivatives


@exercise.cases
def _(rng):
    yield {"margin": np.zeros(1)}
    yield {"margin": rng.normal(size=rng.integers(2, 6)).round(2)}
    # where the loss is small, but not zero within the tolerance
    yield {"margin": rng.permutation([*rng.uniform(8, 22, size=2), *rng.uniform(-40, -8, size=3)])}
    # before and behind the points where e^{−yf} overflows, and where people clip
    low = [rng.uniform(*ends) for ends in ((-400, -60), (-690, -520), (-1500, -720))]
    yield {"margin": rng.permutation([*low, rng.uniform(720, 1500)]).round(1)}


@exercise.fact("the derivatives agree with difference quotients of the values")
def _(loss, rng):
    margin, h = rng.normal(scale=3, size=50), 1e-5
    slope = (np.asarray(loss(margin + h)[0]) - loss(margin - h)[0]) / (2 * h)
    return np.allclose(loss(margin)[1], slope, atol=1e-7)


exercise.help(r"""
1. Write $-\log_2$ of the right label's probability for $y=\pm1$. Which function of $yf$ gives both?
2. It is $\log_2(1+e^{-yf})$; $\frac1{1+e^z}=\frac12\bigl(1-\tanh\frac z2\bigr)$ does not overflow.
3. For the values, use NumPy's $\ln(e^a+e^b)$ with one exponent 0; for the derivatives, $\tanh$.
your sign of the margin is wrong: the loss is log₂(1 + e^{−yf}), and its derivative is negative
    np.logaddexp(0, -margin) → np.logaddexp(0, margin) ; -0.5 * (1 - np.tanh → 0.5 * (1 + np.tanh
your e^{−yf} overflows; take np.logaddexp(0, -margin) / ln 2, and a derivative without ∞/∞
    np.logaddexp(0, -margin) / np.log(2) → np.log2(1 + np.exp(-margin))
    0.5 * (1 - np.tanh(margin / 2)) → np.exp(-margin) / (1 + np.exp(-margin))
your values are infinite where e^{−yf} overflows; divide np.logaddexp(0, -margin) by ln 2
    np.logaddexp(0, -margin) / np.log(2) → np.log2(1 + np.exp(-margin))
you clip the margin at −500, which changes every loss below; use np.logaddexp(0, -margin)
    logaddexp(0, -margin) → logaddexp(0, -np.maximum(margin, -500))
""")
