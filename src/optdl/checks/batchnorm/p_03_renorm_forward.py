"""Normalize a minibatch, and correct the result to the moving averages."""

import numpy as np

from optdl.batchnorm import batchnorm_inference, renorm_forward
from optdl.checks.batchnorm.shared import away_from_one, random_features, shapes
from optdl.checks.exercise import answer_to


@answer_to("P-03", renorm_forward, parts=("y", ("normalized", "factor")))
def exercise(x, gamma, beta, mean, std, eps):
    batch_mean = x.mean(axis=0)
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (batch_mean - mean) / std
    normalized = (x - batch_mean) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


@exercise.cases
def _(rng):
    for m, d, eps in shapes(rng):
        gamma, beta, mean = (away_from_one(rng, d) for _ in range(3))
        std = rng.uniform(2, 5, size=d).round(2)
        yield random_features(rng, m, d), gamma, beta, mean, std, eps


@exercise.fact("the output equals γ(x − μ)/σ + β, the output at inference")
def _(function, rng):
    x, (gamma, beta, mean) = random_features(rng, 6, 3), rng.normal(size=(3, 3))
    std = rng.uniform(0.5, 3, size=3)
    y = function(x, gamma, beta, mean, std, 0.1)[0]
    return np.allclose(y, batchnorm_inference(x, gamma, beta, mean, std**2, 0.0))


exercise.help(r"""
1. Which part is batch normalization, and what happens to $\hat x$ before $\gamma$ and $\beta$?
2. For the gradient $s$, $d$ are constants: $y = (\gamma s)\,\hat x + (\gamma d + \beta)$.
3. Compute $\mu_B$ and $\sigma_B$ along axis 0, then $s$, $d$ and $\hat x$, and from them $y$. The
   factor is that of exercise 2 with the new scale, $\gamma s$, in place of $\gamma$.
your s is inverted; it is σ_B/σ
    batch_std / std → std / batch_std
you divide d by σ_B; divide it by σ, the moving average
    (batch_mean - mean) / std → (batch_mean - mean) / batch_std
you do not divide d by σ; it is (μ_B − μ)/σ
    (batch_mean - mean) / std → batch_mean - mean
your d has the wrong sign; it is (μ_B − μ)/σ
    batch_mean - mean → mean - batch_mean
you do not multiply d by γ; the output is γ(x̂s + d) + β
    gamma * (normalized * s + d) → gamma * normalized * s + d
you multiply d by s; the corrected value is x̂s + d
    (normalized * s + d) → (normalized + d) * s
your output is that of plain batch norm; correct x̂ to x̂s + d
    (normalized * s + d) → normalized
you take a root of `std`; it is σ already, and nothing is added to it
    s, d = → std = np.sqrt(std + eps)\n    s, d =
the factor in your pair lacks s; it is γs/σ_B
    gamma * s / batch_std → gamma / batch_std
your pair has x̂s + d in place of x̂, through which the gradient passes
    (normalized, gamma → (normalized * s + d, gamma
the variance in your σ_B divides by m − 1; divide by m
    x.var(axis=0) → x.var(axis=0, ddof=1)
you limit s to [1/3, 3] and d to [−5, 5], as the paper does; here nothing is limited
    return gamma → s, d = np.clip(s, 1 / 3, 3), np.clip(d, -5, 5)\n    return gamma
""")
