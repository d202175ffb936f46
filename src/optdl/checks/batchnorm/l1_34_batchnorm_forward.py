"""Normalize each feature of a minibatch, and return what the backward pass needs, too."""

from collections.abc import Iterator

import numpy as np

from optdl.batchnorm import Cache, batchnorm_backward, batchnorm_forward
from optdl.checks.batchnorm.shared import away_from_one, difference, random_features
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("L1-34, P-01", batchnorm_forward, parts=("y", ("normalized", "factor")))


@exercise.answer
def _(x, gamma, beta, eps):
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).mean(axis=0) + eps)
    normalized = centered / root
    return gamma * normalized + beta, (normalized, gamma / root)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((3, 2), (4, 3), (6, 5)):
        x, gamma, beta = random_features(rng, m, d), away_from_one(rng, d), away_from_one(rng, d)
        yield {"x": x, "gamma": gamma, "beta": beta, "eps": 0.05}


@exercise.fact("each feature of y has mean β and standard deviation γ")
def _(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = random_features(rng, 20, 4), away_from_one(rng, 4), rng.normal(size=4)
    y = np.asarray(function(x, gamma, beta, 0.0)[0])
    return bool(np.allclose(y.mean(axis=0), beta) and np.allclose(y.std(axis=0), gamma))


@exercise.fact(
    "the output does not depend on the unit and the zero point in which a feature is measured"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = random_features(rng, 7, 3), away_from_one(rng, 3), rng.normal(size=3)
    units, zero = rng.uniform(0.1, 9, size=3), rng.normal(size=3)
    y, moved = (function(each, gamma, beta, 0.0)[0] for each in (x, units * x + zero))
    return bool(np.allclose(y, moved))


@exercise.fact("the backward pass with your pair agrees with finite differences")
def _(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = random_features(rng, 4, 2), away_from_one(rng, 2), rng.normal(size=2)
    grad = rng.normal(size=x.shape)
    found, _, _ = batchnorm_backward(grad, Cache(*function(x, gamma, beta, 0.1)[1]))
    expected = difference(lambda z: float(np.sum(grad * function(z, gamma, beta, 0.1)[0])), x)
    return bool(np.allclose(found, expected, atol=1e-7))


exercise.hints(
    "Which entries of `x` belong to one feature, and along which axis do you therefore take the "
    "mean?",
    "The mean and the variance have one entry for each feature, shape `(d,)`. NumPy combines such "
    "an array with every row of an array of shape `(m, d)`, so no loop is needed.",
    r"Subtract the mean along axis 0, average the squared differences along axis 0, add $\epsilon$ "
    r"and take the root. The differences over this root are $\hat x$; $\gamma$ over it is the "
    r"factor.",
)

exercise.mistakes(r"""
your variance divides by m − 1; batch norm divides by m
    (centered**2).mean(axis=0) → (centered**2).sum(axis=0) / (len(x) - 1)
your variance is the sum of the squares; divide it by m
    (centered**2).mean → (centered**2).sum
your variance lacks the square; the deviations from the mean always add up to 0, so square them
first
    (centered**2).mean → centered.mean
you normalize each example over its features, as layer norm does; batch norm normalizes each feature
over the examples
    x.mean(axis=0) → x.mean(axis=1, keepdims=True)
    (centered**2).mean(axis=0) → (centered**2).mean(axis=1, keepdims=True)
you take one mean and one variance over all features; each feature has its own
    x.mean(axis=0) → x.mean()
    (centered**2).mean(axis=0) → (centered**2).mean()
your ε is missing; divide by √(σ² + ε)
    + eps →
your ε is outside the root; divide by √(σ² + ε)
    np.sqrt((centered**2).mean(axis=0) + eps) → np.sqrt((centered**2).mean(axis=0)) + eps
you divide by the variance; divide by its root, √(σ² + ε)
    np.sqrt((centered**2).mean(axis=0) + eps) → (centered**2).mean(axis=0) + eps
you scale x, but do not center it; subtract the mean
    centered / root → x / root
your γ is missing in the output and in the factor; y = γx̂ + β, and the factor is γ/√(σ² + ε)
    gamma * normalized → normalized
    gamma / root → 1 / root
you multiply β by γ, too; y = γx̂ + β
    gamma * normalized + beta → gamma * (normalized + beta)
you apply γ and β before you normalize, which removes them again; apply them afterwards
    centered = x - x.mean → x = gamma * x + beta\n    centered = x - x.mean
    gamma * normalized + beta → normalized
your output is right, but your pair has x − μ in place of x̂
    (normalized, gamma / root) → (centered, gamma / root)
your output is right, but your pair has the root in place of the factor γ/√(σ² + ε)
    gamma / root → root
""")
