"""Forward."""

from collections.abc import Iterator

import numpy as np

from optdl.batchnorm import Cache, batchnorm_backward, batchnorm_forward
from optdl.checks.batchnorm.shared import away_from_one, difference, random_features
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("L1-34, P-01", batchnorm_forward, parts=("y", ("normalized", "factor")))


@exercise.answer
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return (gamma * normalized + beta, (normalized, gamma / root))


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


@exercise.mistake("your variance divides by m − 1; batch norm divides by m")
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=0, ddof=1) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


@exercise.mistake(
    "your variance lacks the square: the deviations from the mean always add up to zero"
)
def _(x, gamma, beta, eps):
    centered = x - x.mean(axis=0)
    root = np.sqrt(np.abs(centered.mean(axis=0)) + eps)
    return gamma * centered / root + beta, (centered / root, gamma / root)


@exercise.mistake(
    "you normalize each example over its features, as layer norm does; batch "
    "norm normalizes each feature over the examples"
)
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=1, keepdims=True) + eps)
    normalized = (x - x.mean(axis=1, keepdims=True)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


@exercise.mistake("you take one mean over all features; each feature has its own mean")
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var() + eps)
    normalized = (x - x.mean()) / root
    return gamma * normalized + beta, (normalized, gamma / root)


exercise.mistake(
    "your ε is outside the root; divide by √(σ² + ε)",
    ("np.sqrt(x.var(axis=0) + eps)", "x.std(axis=0) + eps"),
)


@exercise.mistake("your ε is missing; divide by √(σ² + ε)")
def _(x, gamma, beta, eps):
    normalized = (x - x.mean(axis=0)) / x.std(axis=0)
    return gamma * normalized + beta, (normalized, gamma / x.std(axis=0))


@exercise.mistake("you divide by the variance; divide by its root")
def _(x, gamma, beta, eps):
    var = x.var(axis=0) + eps
    normalized = (x - x.mean(axis=0)) / var
    return gamma * normalized + beta, (normalized, gamma / var)


@exercise.mistake("you scale x, but do not center it; subtract the mean")
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=0) + eps)
    return gamma * x / root + beta, (x / root, gamma / root)


exercise.mistake(
    "your γ is missing in the output and in the factor",
    (
        "gamma * normalized + beta, (normalized, gamma / root)",
        "normalized + beta, (normalized, 1 / root)",
    ),
)

exercise.mistake("your β is missing: y = γx̂ + β", (" + beta", ""))

exercise.mistake("your γ scales β too: y = γx̂ + β", ("normalized + beta", "(normalized + beta)"))


@exercise.mistake(
    "you apply γ and β before you normalize, which removes them again; apply them afterwards"
)
def _(x, gamma, beta, eps):
    z = gamma * x + beta
    root = np.sqrt(z.var(axis=0) + eps)
    normalized = (z - z.mean(axis=0)) / root
    return normalized, (normalized, gamma / root)


@exercise.mistake("your variance is the sum of the squares; divide it by m")
def _(x, gamma, beta, eps):
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).sum(axis=0) + eps)
    return gamma * centered / root + beta, (centered / root, gamma / root)


@exercise.mistake("your output is right, but your pair has x − μ in place of x̂")
def _(x, gamma, beta, eps):
    centered = x - x.mean(axis=0)
    root = np.sqrt(x.var(axis=0) + eps)
    return gamma * centered / root + beta, (centered, gamma / root)


@exercise.mistake("your output is right, but the factor in your pair lacks γ; it is γ/√(σ² + ε)")
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, 1 / root)


exercise.mistake(
    "your output is right, but your pair has the root in place of the factor γ/√(σ² + ε)",
    ("gamma / ", ""),
)


@exercise.mistake("your output is right, but your pair has y in place of x̂")
def _(x, gamma, beta, eps):
    root = np.sqrt(x.var(axis=0) + eps)
    y = gamma * (x - x.mean(axis=0)) / root + beta
    return y, (y, gamma / root)
