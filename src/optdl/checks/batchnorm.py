"""Exercises on batch normalization: forward and backward, inference, and two relatives.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Callable, Iterator

import numpy as np

from optdl.batchnorm import (
    Cache,
    batchnorm_backward,
    batchnorm_forward,
    batchnorm_inference,
    fold,
    groupnorm_forward,
    moving_average,
    population_statistics,
    renorm_forward,
    scale_invariant_gradient,
)
from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property

# --- Random inputs ----------------------------------------------------------------------------


def _features(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    """Return features whose means and spreads differ."""
    return (
        rng.uniform(1, 4, size=d) + rng.uniform(0.5, 2, size=d) * rng.normal(size=(m, d))
    ).round(2)


def _away_from_one(rng: np.random.Generator, d: int) -> np.ndarray:
    """Return numbers that are neither 0 nor 1, so that none can be left out unseen."""
    return rng.uniform(1.5, 3, size=d).round(2)


def _difference(loss: Callable[[np.ndarray], float], at: np.ndarray) -> np.ndarray:
    """Return the gradient of a loss by central differences."""
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-5
        gradient[place] = (loss(at + step) - loss(at - step)) / 2e-5
    return gradient


# --- L1-34, P-01 · forward --------------------------------------------------------------------


def _forward_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((3, 2), (4, 3), (6, 5)):
        x, gamma, beta = _features(rng, m, d), _away_from_one(rng, d), _away_from_one(rng, d)
        yield {"x": x, "gamma": gamma, "beta": beta, "eps": 0.05}


def divides_the_variance_by_one_less(x, gamma, beta, eps):
    """Take the unbiased variance."""
    root = np.sqrt(x.var(axis=0, ddof=1) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


def forgets_the_square(x, gamma, beta, eps):
    """Average the deviations themselves, as one of the sources prints it."""
    centered = x - x.mean(axis=0)
    root = np.sqrt(np.abs(centered.mean(axis=0)) + eps)
    return gamma * centered / root + beta, (centered / root, gamma / root)


def normalizes_each_example(x, gamma, beta, eps):
    """Normalize over the features, as layer normalization does."""
    root = np.sqrt(x.var(axis=1, keepdims=True) + eps)
    normalized = (x - x.mean(axis=1, keepdims=True)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


def normalizes_all_features_together(x, gamma, beta, eps):
    """Take one mean and one variance for the whole minibatch."""
    root = np.sqrt(x.var() + eps)
    normalized = (x - x.mean()) / root
    return gamma * normalized + beta, (normalized, gamma / root)


def adds_eps_outside_the_root(x, gamma, beta, eps):
    """Divide by σ + ε."""
    root = x.std(axis=0) + eps
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


def leaves_out_eps(x, gamma, beta, eps):
    """Divide by σ."""
    normalized = (x - x.mean(axis=0)) / x.std(axis=0)
    return gamma * normalized + beta, (normalized, gamma / x.std(axis=0))


def divides_by_the_variance(x, gamma, beta, eps):
    """Forget the root."""
    var = x.var(axis=0) + eps
    normalized = (x - x.mean(axis=0)) / var
    return gamma * normalized + beta, (normalized, gamma / var)


def scales_without_centering(x, gamma, beta, eps):
    """Leave the mean where it is."""
    root = np.sqrt(x.var(axis=0) + eps)
    return gamma * x / root + beta, (x / root, gamma / root)


def forgets_gamma(x, gamma, beta, eps):
    """Only shift."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return normalized + beta, (normalized, 1 / root)


def forgets_beta(x, gamma, beta, eps):
    """Only scale."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized, (normalized, gamma / root)


def scales_the_shift_too(x, gamma, beta, eps):
    """Shift first, then scale: γ(x̂ + β)."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * (normalized + beta), (normalized, gamma / root)


def scales_and_shifts_before(x, gamma, beta, eps):
    """Normalize γx + β, which takes γ and β out again."""
    z = gamma * x + beta
    root = np.sqrt(z.var(axis=0) + eps)
    normalized = (z - z.mean(axis=0)) / root
    return normalized, (normalized, gamma / root)


def sums_the_squares(x, gamma, beta, eps):
    """Leave out 1/m in the variance."""
    centered = x - x.mean(axis=0)
    root = np.sqrt((centered**2).sum(axis=0) + eps)
    return gamma * centered / root + beta, (centered / root, gamma / root)


def keeps_the_centered_input(x, gamma, beta, eps):
    """Return x − μ in place of x̂ in the pair."""
    centered = x - x.mean(axis=0)
    root = np.sqrt(x.var(axis=0) + eps)
    return gamma * centered / root + beta, (centered, gamma / root)


def keeps_a_factor_without_gamma(x, gamma, beta, eps):
    """Keep one over the root."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, 1 / root)


def keeps_the_root(x, gamma, beta, eps):
    """Keep the root, where the factor should be."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, root)


def keeps_the_output(x, gamma, beta, eps):
    """Keep y in place of x̂."""
    root = np.sqrt(x.var(axis=0) + eps)
    y = gamma * (x - x.mean(axis=0)) / root + beta
    return y, (y, gamma / root)


def _has_mean_beta_and_deviation_gamma(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = _features(rng, 20, 4), _away_from_one(rng, 4), rng.normal(size=4)
    y = np.asarray(function(x, gamma, beta, 0.0)[0])
    return bool(np.allclose(y.mean(axis=0), beta) and np.allclose(y.std(axis=0), gamma))


def _units_of_a_feature_do_not_matter(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = _features(rng, 7, 3), _away_from_one(rng, 3), rng.normal(size=3)
    units, zero = rng.uniform(0.1, 9, size=3), rng.normal(size=3)
    y, moved = (function(each, gamma, beta, 0.0)[0] for each in (x, units * x + zero))
    return bool(np.allclose(y, moved))


def _cache_serves_the_backward_pass(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = _features(rng, 4, 2), _away_from_one(rng, 2), rng.normal(size=2)
    grad = rng.normal(size=x.shape)
    found, _, _ = batchnorm_backward(grad, Cache(*function(x, gamma, beta, 0.1)[1]))
    expected = _difference(lambda z: float(np.sum(grad * function(z, gamma, beta, 0.1)[0])), x)
    return bool(np.allclose(found, expected, atol=1e-7))


BATCHNORM_FORWARD = Exercise(
    key="L1-34, P-01",
    reference=batchnorm_forward,
    cases=_forward_cases,
    parts=("y", ("normalized", "factor")),
    misconceptions=(
        Misconception(
            "your variance divides by m − 1; batch norm divides by m",
            divides_the_variance_by_one_less,
        ),
        Misconception(
            "your variance lacks the square: the deviations from the mean always add up to zero",
            forgets_the_square,
        ),
        Misconception(
            "you normalize each example over its features, as layer norm does; "
            "batch norm normalizes each feature over the examples",
            normalizes_each_example,
        ),
        Misconception(
            "you take one mean over all features; each feature has its own mean",
            normalizes_all_features_together,
        ),
        Misconception("your ε is outside the root; divide by √(σ² + ε)", adds_eps_outside_the_root),
        Misconception("your ε is missing; divide by √(σ² + ε)", leaves_out_eps),
        Misconception("you divide by the variance; divide by its root", divides_by_the_variance),
        Misconception(
            "you scale x, but do not center it; subtract the mean", scales_without_centering
        ),
        Misconception("your γ is missing in the output and in the factor", forgets_gamma),
        Misconception("your β is missing: y = γx̂ + β", forgets_beta),
        Misconception("your γ scales β too: y = γx̂ + β", scales_the_shift_too),
        Misconception(
            "you apply γ and β before you normalize, which removes them again; "
            "apply them afterwards",
            scales_and_shifts_before,
        ),
        Misconception(
            "your variance is the sum of the squares; divide it by m",
            sums_the_squares,
        ),
        Misconception(
            "your output is right, but your pair has x − μ in place of x̂",
            keeps_the_centered_input,
        ),
        Misconception(
            "your output is right, but the factor in your pair lacks γ; it is γ/√(σ² + ε)",
            keeps_a_factor_without_gamma,
        ),
        Misconception(
            "your output is right, but your pair has the root in place of the factor γ/√(σ² + ε)",
            keeps_the_root,
        ),
        Misconception("your output is right, but your pair has y in place of x̂", keeps_the_output),
    ),
    properties=(
        Property(
            "each feature of y has mean β and standard deviation γ",
            _has_mean_beta_and_deviation_gamma,
        ),
        Property(
            "the output does not depend on the unit and the zero point in which a feature is "
            "measured",
            _units_of_a_feature_do_not_matter,
        ),
        Property(
            "the backward pass with your pair agrees with finite differences",
            _cache_serves_the_backward_pass,
        ),
    ),
)


# --- L1-35 · backward -------------------------------------------------------------------------


def _backward_cases(rng: np.random.Generator) -> Iterator[Case]:
    # Two examples would not do: their gradient is almost zero whatever arrives.
    for m, d in ((3, 1), (4, 2), (6, 3)):
        x, gamma = _features(rng, m, d), _away_from_one(rng, d)
        _, cache = batchnorm_forward(x, gamma, np.zeros(d), 0.05)
        # a plain pair: that is what arrives at an answer in another process
        yield {"grad": rng.uniform(1, 3, size=(m, d)).round(2), "cache": tuple(cache)}


def holds_the_statistics_constant(grad, cache):
    """Send the gradient through x alone."""
    normalized, factor = cache
    return factor * grad, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def forgets_the_variance(grad, cache):
    """Send the gradient through x and the mean."""
    normalized, factor = cache
    grad_x = factor * (grad - grad.mean(axis=0))
    return grad_x, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def forgets_the_mean(grad, cache):
    """Send the gradient through x and the variance."""
    normalized, factor = cache
    grad_x = factor * (grad - normalized * (grad * normalized).mean(axis=0))
    return grad_x, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def adds_both_terms(grad, cache):
    """Add what should be subtracted."""
    normalized, factor = cache
    both = grad.mean(axis=0) + normalized * (grad * normalized).mean(axis=0)
    return factor * (grad + both), (grad * normalized).sum(axis=0), grad.sum(axis=0)


def adds_the_term_of_the_variance(grad, cache):
    """Subtract the term of the mean alone, and add that of the variance."""
    normalized, factor = cache
    along = normalized * (grad * normalized).mean(axis=0)
    grad_x = factor * (grad - grad.mean(axis=0) + along)
    return grad_x, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def multiplies_the_first_term_alone(grad, cache):
    """Leave out the brackets behind the factor."""
    normalized, factor = cache
    both = grad.mean(axis=0) + normalized * (grad * normalized).mean(axis=0)
    return factor * grad - both, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def averages_with_the_outer_normalized(grad, cache):
    """Put the x̂ of the example under the mean, too."""
    normalized, factor = cache
    grad_x = factor * (grad - grad.mean(axis=0) - (normalized**2 * grad).mean(axis=0))
    return grad_x, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def averages_over_all_features(grad, cache):
    """Take the means over examples and features."""
    normalized, factor = cache
    grad_x = factor * (grad - grad.mean() - normalized * (grad * normalized).mean())
    return grad_x, (grad * normalized).sum(axis=0), grad.sum(axis=0)


def sums_where_it_should_average(grad, cache):
    """Leave out 1/m."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    return factor * (grad - grad_beta - normalized * grad_gamma), grad_gamma, grad_beta


def forgets_the_factor(grad, cache):
    """Leave out γ over the root."""
    normalized, _ = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    return grad - (grad_beta + normalized * grad_gamma) / len(grad), grad_gamma, grad_beta


def divides_by_the_factor(grad, cache):
    """Take the factor for the root."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    grad_x = (grad - (grad_beta + normalized * grad_gamma) / len(grad)) / factor
    return grad_x, grad_gamma, grad_beta


def forgets_the_last_normalized(grad, cache):
    """Leave out x̂ before the mean of δx̂."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    return factor * (grad - (grad_beta + grad_gamma) / len(grad)), grad_gamma, grad_beta


def leaves_x_out_of_gamma(grad, cache):
    """Return the gradient of β for γ as well."""
    normalized, factor = cache
    back = grad - grad.mean(axis=0) - normalized * (grad * normalized).mean(axis=0)
    return factor * back, grad.sum(axis=0), grad.sum(axis=0)


def scales_the_gradient_of_gamma(grad, cache):
    """Multiply the gradient of γ by the factor of x."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    grad_x = factor * (grad - (grad_beta + normalized * grad_gamma) / len(grad))
    return grad_x, factor * grad_gamma, grad_beta


def averages_gamma_and_beta(grad, cache):
    """Average the gradients of γ and β over the minibatch."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).mean(axis=0), grad.mean(axis=0)
    return factor * (grad - grad_beta - normalized * grad_gamma), grad_gamma, grad_beta


def _agrees_with_differences(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = _features(rng, 5, 3), _away_from_one(rng, 3), rng.normal(size=3)
    grad = rng.normal(size=x.shape)
    found = function(grad, tuple(batchnorm_forward(x, gamma, beta, 0.1)[1]))

    def loss(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> float:
        return float(np.sum(grad * batchnorm_forward(x, gamma, beta, 0.1)[0]))

    expected = (
        _difference(lambda z: loss(z, gamma, beta), x),
        _difference(lambda z: loss(x, z, beta), gamma),
        _difference(lambda z: loss(x, gamma, z), beta),
    )
    return all(np.allclose(*pair, atol=1e-7) for pair in zip(found, expected, strict=True))


def _neither_shifts_nor_stretches(function: Function, rng: np.random.Generator) -> bool:
    x, gamma = _features(rng, 8, 3), _away_from_one(rng, 3)
    _, cache = batchnorm_forward(x, gamma, np.zeros(3), 0.0)
    grad_x = np.asarray(function(rng.normal(size=x.shape), tuple(cache))[0])
    sums = [grad_x.sum(axis=0), (grad_x * cache.normalized).sum(axis=0)]
    return bool(np.allclose(sums, 0, atol=1e-12))


BATCHNORM_BACKWARD = Exercise(
    key="L1-35",
    reference=batchnorm_backward,
    cases=_backward_cases,
    parts=("grad_x", "grad_gamma", "grad_beta"),
    misconceptions=(
        Misconception(
            "you hold mean and variance constant; both depend on each example",
            holds_the_statistics_constant,
        ),
        Misconception(
            "the term of the variance is missing: − x̂ · mean(δx̂), with the mean of the products",
            forgets_the_variance,
        ),
        Misconception("the term of the mean is missing: − mean(δ)", forgets_the_mean),
        Misconception(
            "you add the terms of the mean and of the variance; subtract both", adds_both_terms
        ),
        Misconception(
            "you add the term x̂ · mean(δx̂); subtract it",
            adds_the_term_of_the_variance,
        ),
        Misconception(
            "you multiply only δ by the factor; multiply all three terms, in brackets",
            multiplies_the_first_term_alone,
        ),
        Misconception(
            "your mean includes the x̂ of the example; it stands before the mean: x̂ · mean(δx̂)",
            averages_with_the_outer_normalized,
        ),
        Misconception(
            "your means are over all features; take those of each feature",
            averages_over_all_features,
        ),
        Misconception(
            "you use sums in the gradient of x; take the means of δ and δx̂ over the examples",
            sums_where_it_should_average,
        ),
        Misconception(
            "the factor γ/√(σ² + ε) before the gradient of x is missing", forgets_the_factor
        ),
        Misconception(
            "you divide by the factor; multiply by it, since it is γ/√(σ² + ε)",
            divides_by_the_factor,
        ),
        Misconception(
            "your term mean(δx̂) is not multiplied by the x̂ of the example",
            forgets_the_last_normalized,
        ),
        Misconception("your gradient of γ lacks x̂; it equals that of β", leaves_x_out_of_gamma),
        Misconception(
            "your gradient of γ is multiplied by the factor; it is the sum of δx̂",
            scales_the_gradient_of_gamma,
        ),
        Misconception(
            "you average the gradients of γ and β; both are sums over the examples",
            averages_gamma_and_beta,
        ),
    ),
    properties=(
        Property("all three gradients agree with finite differences", _agrees_with_differences),
        Property(
            "for ε = 0 the gradient of x, and its product with x̂, add up to 0 over the minibatch",
            _neither_shifts_nor_stretches,
        ),
    ),
)


# --- L1-36 · statistics of the population -----------------------------------------------------


def _population_cases(rng: np.random.Generator) -> Iterator[Case]:
    for b, d, m in ((3, 1, 2), (4, 2, 8), (5, 3, 16)):
        means = rng.uniform(-3, 3, size=(b, d)).round(2)
        variances = rng.uniform(1, 5, size=(b, d)).round(2)
        yield {"means": means, "variances": variances, "m": m}


def forgets_that_minibatches_are_small(means, variances, m):
    """Average the variances as they are."""
    return means.mean(axis=0), variances.mean(axis=0)


def turns_the_factor_upside_down(means, variances, m):
    """Multiply by (m − 1)/m."""
    return means.mean(axis=0), (m - 1) / m * variances.mean(axis=0)


def counts_minibatches(means, variances, m):
    """Correct for the number of minibatches."""
    b = len(means)
    return means.mean(axis=0), b / (b - 1) * variances.mean(axis=0)


def averages_the_deviations(means, variances, m):
    """Average σ, and square it then."""
    return means.mean(axis=0), m / (m - 1) * np.sqrt(variances).mean(axis=0) ** 2


def returns_the_deviation(means, variances, m):
    """Return the root of the variance."""
    return means.mean(axis=0), np.sqrt(m / (m - 1) * variances.mean(axis=0))


def takes_the_variance_of_the_means(means, variances, m):
    """Measure how the means spread."""
    return means.mean(axis=0), means.var(axis=0)


def adds_the_variance_of_the_means(means, variances, m):
    """Add up the spread within minibatches and between them."""
    return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)


def corrects_the_mean_too(means, variances, m):
    """Multiply both by m/(m − 1)."""
    return m / (m - 1) * means.mean(axis=0), m / (m - 1) * variances.mean(axis=0)


def divides_the_sum_by_one_less(means, variances, m):
    """Divide the sum of the variances by m − 1, although it has one term for each minibatch."""
    return means.mean(axis=0), variances.sum(axis=0) / (m - 1)


def keeps_the_last_minibatch(means, variances, m):
    """Look at the last minibatch alone."""
    return means[-1], m / (m - 1) * variances[-1]


def _every_pair_of_examples(function: Function, rng: np.random.Generator) -> bool:
    # All n² ordered pairs, each drawn with replacement: their average is free of chance.
    x = _features(rng, 6, 2)
    pairs = np.array([[one, other] for one in x for other in x])
    mean, var = function(pairs.mean(axis=1), pairs.var(axis=1), 2)
    return bool(np.allclose(mean, x.mean(axis=0)) and np.allclose(var, x.var(axis=0)))


POPULATION_STATISTICS = Exercise(
    key="L1-36:population",
    reference=population_statistics,
    cases=_population_cases,
    parts=("mean", "variance"),
    misconceptions=(
        Misconception(
            "your variance is the mean of those of the minibatches, which is too small; "
            "multiply it by m/(m − 1)",
            forgets_that_minibatches_are_small,
        ),
        Misconception(
            "your factor is inverted; multiply the variance by m/(m − 1)",
            turns_the_factor_upside_down,
        ),
        Misconception(
            "you correct with the number of minibatches; m is the number of examples in a "
            "minibatch",
            counts_minibatches,
        ),
        Misconception(
            "you average the standard deviations; average the variances",
            averages_the_deviations,
        ),
        Misconception(
            "you return the standard deviation; return the variance", returns_the_deviation
        ),
        Misconception(
            "you take the variance of the means; take the mean of the variances",
            takes_the_variance_of_the_means,
        ),
        Misconception(
            "you add the variance of the means; multiply by the factor m/(m − 1) instead",
            adds_the_variance_of_the_means,
        ),
        Misconception(
            "you multiply the mean by m/(m − 1) too; only the variance is biased",
            corrects_the_mean_too,
        ),
        Misconception(
            "you divide the sum of the variances by m − 1; multiply their mean by m/(m − 1)",
            divides_the_sum_by_one_less,
        ),
        Misconception(
            "you use only the last minibatch; average over all minibatches",
            keeps_the_last_minibatch,
        ),
    ),
    properties=(
        Property(
            "from all pairs of examples as minibatches of 2 it returns their mean and variance",
            _every_pair_of_examples,
        ),
    ),
)


# --- L2-14 · moving averages ------------------------------------------------------------------

SHAPES_OF_AVERAGES = (
    (3, 1, 0.75, False),
    (3, 1, 0.9, True),
    (6, 3, 0.6, False),
    (4, 2, 0.8, True),
)


def _moving_cases(rng: np.random.Generator) -> Iterator[Case]:
    for t, d, rho, given in SHAPES_OF_AVERAGES:
        values = rng.uniform(2, 6, size=(t, d)).round(2)
        start = rng.uniform(-3, -1, size=d).round(2) if given else None
        yield {"values": values, "rho": rho, "start": start}


def exchanges_the_shares(values, rho, start):
    """Give ρ to the new value."""
    average, averages = values[0] if start is None else start, []
    for value in values:
        average = (1 - rho) * average + rho * value
        averages.append(average)
    return np.array(averages)


def starts_from_zero(values, rho, start):
    """Take 0 for the average before the first value."""
    average, averages = np.zeros(values.shape[1]) if start is None else start, []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def ignores_the_start(values, rho, start):
    """Start from the first value, whatever is given."""
    average, averages = values[0], []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def asks_whether_the_start_is_true(values, rho, start):
    """Take `start` for a truth value, which an array of several numbers is not."""
    average, averages = start if start else values[0], []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def corrects_the_bias(values, rho, start):
    """Start from zero, and divide by 1 − ρᵗ, as Adam does."""
    average, averages = np.zeros(values.shape[1]) if start is None else start, []
    for t, value in enumerate(values, start=1):
        average = rho * average + (1 - rho) * value
        averages.append(average / (1 - rho**t))
    return np.array(averages)


def takes_the_plain_mean(values, rho, start):
    """Return the mean of all values so far."""
    return np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]


def mixes_with_the_last_value(values, rho, start):
    """Mix each value with the one before it, not with the average."""
    first = values[0] if start is None else start
    before = np.concatenate([first[None], values[:-1]])
    return rho * before + (1 - rho) * values


def adds_values_without_their_share(values, rho, start):
    """Leave out 1 − ρ."""
    average, averages = values[0] if start is None else start, []
    for value in values:
        average = rho * average + value
        averages.append(average)
    return np.array(averages)


def begins_with_the_start(values, rho, start):
    """Return the start in the first row, and leave out the first value."""
    averages = [values[0] if start is None else start]
    for value in values[1:]:
        averages.append(rho * averages[-1] + (1 - rho) * value)
    return np.array(averages)


def returns_the_last_average(values, rho, start):
    """Return one average in place of all."""
    average = values[0] if start is None else start
    for value in values:
        average = rho * average + (1 - rho) * value
    return average


def returns_the_start_too(values, rho, start):
    """Return one average more than there are values."""
    average = values[0] if start is None else start
    averages = [average]
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def _without_memory_it_is_the_values(function: Function, rng: np.random.Generator) -> bool:
    values = rng.normal(size=(5, 2))
    given = np.asarray(function(values, 0.0, np.ones(2)))
    return bool(np.allclose(given, values) and np.allclose(function(values, 0.0, None), values))


def _forgets_a_value_geometrically(function: Function, rng: np.random.Generator) -> bool:
    values = np.zeros((9, 1))
    values[2] = 1.0
    shares = np.asarray(function(values, 0.8, np.zeros(1))).ravel()
    expected = [0, 0, *(0.2 * 0.8**age for age in range(7))]
    return bool(np.allclose(shares, expected))


MOVING_AVERAGE = Exercise(
    key="L2-14",
    reference=moving_average,
    cases=_moving_cases,
    misconceptions=(
        Misconception(
            "your ρ weights the new value; here it is the share of the old average",
            exchanges_the_shares,
        ),
        Misconception(
            "you start from 0; if no start is given, start from the first value",
            starts_from_zero,
        ),
        Misconception(
            "you do not use `start`; if it is given, it is the average before the first value",
            ignores_the_start,
        ),
        Misconception(
            "you use `start` as a truth value, and an array of several numbers has none; "
            "test `start is None`",
            asks_whether_the_start_is_true,
        ),
        Misconception(
            "you divide by 1 − ρᵗ, as the bias correction of Adam does; leave this out",
            corrects_the_bias,
        ),
        Misconception(
            "you return the plain mean of all values so far; the weight of a value falls with "
            "its age",
            takes_the_plain_mean,
        ),
        Misconception(
            "you mix each value with the value before it; mix it with the average",
            mixes_with_the_last_value,
        ),
        Misconception(
            "your new value is not multiplied by its share, 1 − ρ",
            adds_values_without_their_share,
        ),
        Misconception(
            "your first row is the start; it is the average after the first value",
            begins_with_the_start,
        ),
        Misconception(
            "you return only the last average; return the average after each value",
            returns_the_last_average,
        ),
        Misconception(
            "your first row is the average before any value; return one row for each value",
            returns_the_start_too,
        ),
    ),
    properties=(
        Property("with ρ = 0 the averages are the values", _without_memory_it_is_the_values),
        Property(
            "the weight of a value is multiplied by ρ with each later value",
            _forgets_a_value_geometrically,
        ),
    ),
)


# --- L1-36 · folding --------------------------------------------------------------------------


def _fold_cases(rng: np.random.Generator) -> Iterator[Case]:
    for d, n in ((2, 2), (3, 2), (4, 5)):
        yield {
            "weight": rng.normal(size=(d, n)).round(2),
            "bias": _away_from_one(rng, d),
            "gamma": _away_from_one(rng, d),
            "beta": _away_from_one(rng, d),
            "mean": _away_from_one(rng, d),
            "var": rng.uniform(2, 5, size=d).round(2),
            "eps": 0.05,
        }


def leaves_the_bias_as_it_is(weight, bias, gamma, beta, mean, var, eps):
    """Return the old bias."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, bias


def shifts_without_scaling_the_bias(weight, bias, gamma, beta, mean, var, eps):
    """Leave the scale out before b."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, bias + beta - scale * mean


def forgets_to_shift_by_the_mean(weight, bias, gamma, beta, mean, var, eps):
    """Leave the mean out."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * bias + beta


def shifts_by_the_unscaled_mean(weight, bias, gamma, beta, mean, var, eps):
    """Subtract the mean after the scale."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * bias + beta - mean


def adds_the_mean(weight, bias, gamma, beta, mean, var, eps):
    """Add the mean, where it should be subtracted."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias + mean) + beta


def drops_the_bias(weight, bias, gamma, beta, mean, var, eps):
    """Think that the normalization takes b out, as it does in training."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, beta - scale * mean


def drops_beta(weight, bias, gamma, beta, mean, var, eps):
    """Leave β out."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias - mean)


def scales_beta_too(weight, bias, gamma, beta, mean, var, eps):
    """Scale β with the rest."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias - mean + beta)


def scales_the_columns(weight, bias, gamma, beta, mean, var, eps):
    """Scale the inputs in place of the outputs."""
    scale = gamma / np.sqrt(var + eps)
    return scale * weight, scale * (bias - mean) + beta


def divides_by_the_variance_in_the_scale(weight, bias, gamma, beta, mean, var, eps):
    """Forget the root."""
    scale = gamma / (var + eps)
    return scale[:, None] * weight, scale * (bias - mean) + beta


def leaves_eps_out_of_the_scale(weight, bias, gamma, beta, mean, var, eps):
    """Forget ε."""
    scale = gamma / np.sqrt(var)
    return scale[:, None] * weight, scale * (bias - mean) + beta


def adds_eps_outside_the_root_of_the_scale(weight, bias, gamma, beta, mean, var, eps):
    """Divide by σ + ε."""
    scale = gamma / (np.sqrt(var) + eps)
    return scale[:, None] * weight, scale * (bias - mean) + beta


def subtracts_the_mean_from_the_weight(weight, bias, gamma, beta, mean, var, eps):
    """Center the weight as well as the bias."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * (weight - mean[:, None]), scale * (bias - mean) + beta


def forgets_gamma_in_the_scale(weight, bias, gamma, beta, mean, var, eps):
    """Only divide."""
    scale = 1 / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias - mean) + beta


def _folded_layer_is_both(function: Function, rng: np.random.Generator) -> bool:
    weight, h = rng.normal(size=(3, 4)), rng.normal(size=(6, 4))
    bias, gamma, beta, mean = rng.normal(size=(4, 3))
    rest = gamma, beta, mean, rng.uniform(0.1, 2, size=3), 1e-3
    folded, shift = function(weight, bias, *rest)
    expected = batchnorm_inference(h @ weight.T + bias, *rest)
    return bool(np.allclose(h @ np.asarray(folded).T + shift, expected, rtol=1e-12))


FOLD = Exercise(
    key="L1-36:fold",
    reference=fold,
    cases=_fold_cases,
    parts=("weight", "bias"),
    misconceptions=(
        Misconception(
            "you return the old bias; it has to be scaled and shifted, too",
            leaves_the_bias_as_it_is,
        ),
        Misconception(
            "the old bias is not scaled; it is a part of the value that is normalized",
            shifts_without_scaling_the_bias,
        ),
        Misconception(
            "your bias lacks the mean; it is γ(b − μ)/√(σ² + ε) + β",
            forgets_to_shift_by_the_mean,
        ),
        Misconception(
            "you subtract the mean without scaling it; the bias is γ(b − μ)/√(σ² + ε) + β",
            shifts_by_the_unscaled_mean,
        ),
        Misconception(
            "you add the mean; subtract it, the bias is γ(b − μ)/√(σ² + ε) + β", adds_the_mean
        ),
        Misconception(
            "the old bias is missing; at inference the mean is fixed and does not remove b",
            drops_the_bias,
        ),
        Misconception("your bias lacks β; it is γ(b − μ)/√(σ² + ε) + β", drops_beta),
        Misconception("you scale β; it is added last, in γ(b − μ)/√(σ² + ε) + β", scales_beta_too),
        Misconception(
            "you scale the columns of the weight; each row belongs to one output, so scale the "
            "rows",
            scales_the_columns,
        ),
        Misconception(
            "you divide by the variance; divide by its root",
            divides_by_the_variance_in_the_scale,
        ),
        Misconception("your ε is missing; the scale is γ/√(σ² + ε)", leaves_eps_out_of_the_scale),
        Misconception(
            "your ε is outside the root; the scale is γ/√(σ² + ε)",
            adds_eps_outside_the_root_of_the_scale,
        ),
        Misconception(
            "you subtract the mean from the weight; only the bias is shifted",
            subtracts_the_mean_from_the_weight,
        ),
        Misconception("your scale lacks γ; it is γ/√(σ² + ε)", forgets_gamma_in_the_scale),
    ),
    properties=(
        Property(
            "the folded layer has the same outputs as the layer and the normalization",
            _folded_layer_is_both,
        ),
    ),
)


# --- P-03 · batch renormalization -------------------------------------------------------------


def _renorm_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((3, 2), (4, 3), (6, 5)):
        yield {
            "x": _features(rng, m, d),
            "gamma": _away_from_one(rng, d),
            "beta": _away_from_one(rng, d),
            "mean": rng.uniform(-3, -1, size=d).round(2),
            "std": rng.uniform(2, 5, size=d).round(2),
            "eps": 0.05,
        }


def turns_s_upside_down(x, gamma, beta, mean, std, eps):
    """Take s = σ/σ_B."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = std / batch_std, (x.mean(axis=0) - mean) / std
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


def divides_d_by_the_minibatch(x, gamma, beta, mean, std, eps):
    """Take d = (μ_B − μ)/σ_B."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (x.mean(axis=0) - mean) / batch_std
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


def does_not_divide_d(x, gamma, beta, mean, std, eps):
    """Take d = μ_B − μ."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, x.mean(axis=0) - mean
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


def shifts_the_wrong_way(x, gamma, beta, mean, std, eps):
    """Take d = (μ − μ_B)/σ."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (mean - x.mean(axis=0)) / std
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


def adds_d_after_gamma(x, gamma, beta, mean, std, eps):
    """Leave out γ before d."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (x.mean(axis=0) - mean) / std
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * normalized * s + d + beta, (normalized, gamma * s / batch_std)


def scales_d_by_s(x, gamma, beta, mean, std, eps):
    """Shift first, then scale: (x̂ + d)s."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / std, (x.mean(axis=0) - mean) / std
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized + d) * s + beta, (normalized, gamma * s / batch_std)


def does_not_correct(x, gamma, beta, mean, std, eps):
    """Return plain batch normalization."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * normalized + beta, (normalized, gamma / batch_std)


def keeps_a_factor_without_s(x, gamma, beta, mean, std, eps):
    """Keep the factor of plain batch normalization."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (x - mean) / std + beta, (normalized, gamma / batch_std)


def keeps_what_is_corrected(x, gamma, beta, mean, std, eps):
    """Normalize with the moving averages alone, as inference does."""
    normalized = (x - mean) / std
    return gamma * normalized + beta, (normalized, gamma / std)


def keeps_a_factor_with_s_alone(x, gamma, beta, mean, std, eps):
    """Keep γs, and forget to divide by σ_B."""
    batch_std = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (x - mean) / std + beta, (normalized, gamma * batch_std / std)


def takes_the_root_of_the_deviation(x, gamma, beta, mean, std, eps):
    """Take std for a variance."""
    batch_std, root = np.sqrt(x.var(axis=0) + eps), np.sqrt(std + eps)
    s, d = batch_std / root, (x.mean(axis=0) - mean) / root
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


def divides_the_variance_of_renorm_by_one_less(x, gamma, beta, mean, std, eps):
    """Take the unbiased variance of the minibatch."""
    batch_std = np.sqrt(x.var(axis=0, ddof=1) + eps)
    normalized = (x - x.mean(axis=0)) / batch_std
    return gamma * (x - mean) / std + beta, (normalized, gamma / std)


def leaves_eps_out_of_renorm(x, gamma, beta, mean, std, eps):
    """Forget ε."""
    normalized = (x - x.mean(axis=0)) / x.std(axis=0)
    return gamma * (x - mean) / std + beta, (normalized, gamma / std)


def _trains_on_what_inference_sees(function: Function, rng: np.random.Generator) -> bool:
    x, (gamma, beta, mean) = _features(rng, 6, 3), rng.normal(size=(3, 3))
    std = rng.uniform(0.5, 3, size=3)
    y = function(x, gamma, beta, mean, std, 0.1)[0]
    return bool(np.allclose(y, batchnorm_inference(x, gamma, beta, mean, std**2, 0.0)))


def _gradient_passes_through_the_minibatch(function: Function, rng: np.random.Generator) -> bool:
    x, (gamma, beta, mean) = _features(rng, 5, 2), rng.normal(size=(3, 2))
    std, grad = rng.uniform(0.5, 3, size=2), rng.normal(size=x.shape)
    s, d = np.sqrt(x.var(axis=0) + 0.1) / std, (x.mean(axis=0) - mean) / std

    def loss(z: np.ndarray) -> float:
        return float(np.sum(grad * batchnorm_forward(z, gamma * s, gamma * d + beta, 0.1)[0]))

    found, _, _ = batchnorm_backward(grad, Cache(*function(x, gamma, beta, mean, std, 0.1)[1]))
    return bool(np.allclose(found, _difference(loss, x), atol=1e-7))


RENORM_FORWARD = Exercise(
    key="P-03",
    reference=renorm_forward,
    cases=_renorm_cases,
    parts=("y", ("normalized", "factor")),
    misconceptions=(
        Misconception("your s is inverted; it is σ_B/σ", turns_s_upside_down),
        Misconception(
            "you divide d by σ_B; divide it by σ, the moving average",
            divides_d_by_the_minibatch,
        ),
        Misconception("your d is not divided by σ", does_not_divide_d),
        Misconception("your d has the wrong sign; it is (μ_B − μ)/σ", shifts_the_wrong_way),
        Misconception(
            "you do not multiply d by γ; the output is γ(x̂s + d) + β", adds_d_after_gamma
        ),
        Misconception("you multiply d by s; the corrected value is x̂s + d", scales_d_by_s),
        Misconception(
            "your output is that of plain batch norm; correct x̂ to x̂s + d", does_not_correct
        ),
        Misconception(
            "your output is right, but the factor in your pair lacks s; it is γs/σ_B",
            keeps_a_factor_without_s,
        ),
        Misconception(
            "your output is right, but your pair has the corrected x̂s + d in place of x̂; "
            "s and d are constants, and the gradient passes through μ_B and σ_B",
            keeps_what_is_corrected,
        ),
        Misconception(
            "your output is right, but the factor in your pair is not divided by σ_B; it is γs/σ_B",
            keeps_a_factor_with_s_alone,
        ),
        Misconception(
            "you take a root of `std`; it is σ already, and nothing is added to it",
            takes_the_root_of_the_deviation,
        ),
        Misconception(
            "your output is right, but the variance in your σ_B divides by m − 1; divide by m",
            divides_the_variance_of_renorm_by_one_less,
        ),
        Misconception(
            "your output is right, but your x̂ lacks ε; σ_B is √(variance + ε)",
            leaves_eps_out_of_renorm,
        ),
    ),
    properties=(
        Property(
            "the output equals γ(x − μ)/σ + β, the output at inference",
            _trains_on_what_inference_sees,
        ),
        Property(
            "the backward pass with your pair agrees with finite differences at constant s and d",
            _gradient_passes_through_the_minibatch,
        ),
    ),
)


# --- P-04 · groups of features ----------------------------------------------------------------


def _group_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d, groups in ((1, 6, 2), (3, 6, 3), (4, 12, 3)):
        x, gamma, beta = _features(rng, m, d), _away_from_one(rng, d), _away_from_one(rng, d)
        yield {"x": x, "gamma": gamma, "beta": beta, "groups": groups, "eps": 0.05}


def takes_one_group(x, gamma, beta, groups, eps):
    """Return layer normalization, whatever the number of groups."""
    centered = x - x.mean(axis=1, keepdims=True)
    return gamma * centered / np.sqrt(x.var(axis=1, keepdims=True) + eps) + beta


def shares_groups_among_examples(x, gamma, beta, groups, eps):
    """Let all examples into the statistics of a group."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=(0, 2), keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=(0, 2), keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def takes_groups_for_their_size(x, gamma, beta, groups, eps):
    """Make groups of that many features."""
    grouped = x.reshape(len(x), -1, groups)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def deals_features_out_in_turn(x, gamma, beta, groups, eps):
    """Put features 0, G, 2G, … into the first group."""
    grouped = x.reshape(len(x), -1, groups)
    centered = grouped - grouped.mean(axis=1, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=1, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def divides_the_group_by_one_less(x, gamma, beta, groups, eps):
    """Take the unbiased variance of a group."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=2, keepdims=True, ddof=1) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def adds_eps_outside_the_root_of_a_group(x, gamma, beta, groups, eps):
    """Divide by σ + ε."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / (grouped.std(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def averages_across_the_groups(x, gamma, beta, groups, eps):
    """Take the mean of the first features of all groups, of the second features, and so on."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=1, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=1, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def normalizes_each_feature(x, gamma, beta, groups, eps):
    """Return batch normalization."""
    return gamma * (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps) + beta


def divides_by_the_variance_of_a_group(x, gamma, beta, groups, eps):
    """Forget the root."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / (grouped.var(axis=2, keepdims=True) + eps)
    return gamma * normalized.reshape(x.shape) + beta


def forgets_gamma_and_beta(x, gamma, beta, groups, eps):
    """Only normalize."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    return (centered / np.sqrt(grouped.var(axis=2, keepdims=True) + eps)).reshape(x.shape)


def _examples_do_not_see_each_other(function: Function, rng: np.random.Generator) -> bool:
    x, gamma, beta = rng.normal(size=(4, 6)), _away_from_one(rng, 6), rng.normal(size=6)
    y = np.asarray(function(x, gamma, beta, 2, 0.1))
    alone = [function(x[i : i + 1], gamma, beta, 2, 0.1) for i in range(4)]
    return bool(np.allclose(y, np.concatenate(alone)))


def _groups_have_mean_zero(function: Function, rng: np.random.Generator) -> bool:
    y = np.asarray(function(rng.normal(size=(3, 8)), np.ones(8), np.zeros(8), 2, 0.0))
    grouped = y.reshape(3, 2, 4)
    centered = np.allclose(grouped.mean(axis=2), 0, atol=1e-12)
    return bool(centered and np.allclose(grouped.std(axis=2), 1))


GROUPNORM_FORWARD = Exercise(
    key="P-04",
    reference=groupnorm_forward,
    cases=_group_cases,
    misconceptions=(
        Misconception(
            "you take all features for one group, as layer norm does; use `groups`",
            takes_one_group,
        ),
        Misconception(
            "your statistics of a group are over all examples; each example has its own",
            shares_groups_among_examples,
        ),
        Misconception(
            "`groups` is the number of groups, not the number of features in a group",
            takes_groups_for_their_size,
        ),
        Misconception(
            "your groups are every G-th feature; a group is a block of neighboring features",
            deals_features_out_in_turn,
        ),
        Misconception(
            "your variance divides by d/G − 1; divide by d/G",
            divides_the_group_by_one_less,
        ),
        Misconception(
            "your ε is outside the root; divide by √(σ² + ε)",
            adds_eps_outside_the_root_of_a_group,
        ),
        Misconception(
            "you average across the groups; average within each group",
            averages_across_the_groups,
        ),
        Misconception(
            "your output is that of batch norm; take the statistics of each example and group",
            normalizes_each_feature,
        ),
        Misconception(
            "you divide by the variance; divide by its root, √(σ² + ε)",
            divides_by_the_variance_of_a_group,
        ),
        Misconception("your γ and β are missing: y = γx̂ + β", forgets_gamma_and_beta),
    ),
    properties=(
        Property(
            "the output for an example does not depend on the other examples",
            _examples_do_not_see_each_other,
        ),
        Property("each group of an example has mean 0 and variance 1", _groups_have_mean_zero),
    ),
)


# --- P-08 · scale invariance ------------------------------------------------------------------


def _invariance_cases(rng: np.random.Generator) -> Iterator[Case]:
    for o, n, m in ((2, 2, 3), (3, 2, 5), (4, 3, 6)):
        yield {
            "W": rng.uniform(0.5, 2, size=(o, n)).round(2),
            "h": rng.uniform(-2, 3, size=(m, n)).round(2),
            "upstream": rng.uniform(1, 4, size=(m, o)).round(2),
        }


def cuts_off_the_statistics(W, h, upstream):
    """Take mean and variance for constants."""
    z = h @ W.T
    return (upstream / z.std(axis=0)).T @ h


def cuts_off_the_variance(W, h, upstream):
    """Take the variance for a constant."""
    z = h @ W.T
    return ((upstream - upstream.mean(axis=0)) / z.std(axis=0)).T @ h


def cuts_off_the_mean(W, h, upstream):
    """Take the mean for a constant."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    along = normalized * (upstream * normalized).mean(axis=0)
    return ((upstream - along) / z.std(axis=0)).T @ h


def subtracts_sums(W, h, upstream):
    """Leave out 1/m in both terms."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    along = normalized * (upstream * normalized).sum(axis=0)
    return ((upstream - upstream.sum(axis=0) - along) / z.std(axis=0)).T @ h


def takes_the_unbiased_deviation(W, h, upstream):
    """Divide the variance by m − 1."""
    z = h @ W.T
    std = z.std(axis=0, ddof=1)
    normalized = (z - z.mean(axis=0)) / std
    along = normalized * (upstream * normalized).mean(axis=0)
    return ((upstream - upstream.mean(axis=0) - along) / std).T @ h


def forgets_to_divide(W, h, upstream):
    """Leave out 1/σ."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return back.T @ h


def divides_by_the_variance_of_the_outputs(W, h, upstream):
    """Divide by σ²."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return (back / z.var(axis=0)).T @ h


def multiplies_by_the_deviation(W, h, upstream):
    """Let the gradient grow with W."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return (back * z.std(axis=0)).T @ h


def normalizes_the_weight(W, h, upstream):
    """Divide each row of W by its length, in place of its outputs by their deviation."""
    length = np.linalg.norm(W, axis=1, keepdims=True)
    grad = upstream.T @ h
    return (grad - W * np.sum(grad * W, axis=1, keepdims=True) / length**2) / length


def leaves_the_normalization_out(W, h, upstream):
    """Return the gradient of a plain layer."""
    return upstream.T @ h


def stops_at_the_layer(W, h, upstream):
    """Return the gradient of the layer's outputs."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return back / z.std(axis=0)


def averages_the_examples(W, h, upstream):
    """Divide by m."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return (back / z.std(axis=0)).T @ h / len(h)


def sums_over_the_outputs(W, h, upstream):
    """Take the statistics of each example, over its outputs."""
    z = h @ W.T
    std = z.std(axis=1, keepdims=True)
    normalized = (z - z.mean(axis=1, keepdims=True)) / std
    along = normalized * (upstream * normalized).mean(axis=1, keepdims=True)
    return ((upstream - upstream.mean(axis=1, keepdims=True) - along) / std).T @ h


def puts_inputs_in_rows(W, h, upstream):
    """Return the shape (n, o)."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    back = upstream - upstream.mean(axis=0) - normalized * (upstream * normalized).mean(axis=0)
    return h.T @ (back / z.std(axis=0))


def _shrinks_as_the_weight_grows(function: Function, rng: np.random.Generator) -> bool:
    W, h, upstream = (rng.normal(size=s) for s in ((3, 4), (7, 4), (7, 3)))
    large = np.asarray(function(8 * W, h, upstream))
    return bool(np.allclose(8 * large, function(W, h, upstream)) and np.any(large))


def _is_at_right_angles(function: Function, rng: np.random.Generator) -> bool:
    W, h, upstream = (rng.normal(size=s) for s in ((3, 4), (7, 4), (7, 3)))
    g = np.asarray(function(W, h, upstream))
    return bool(np.allclose(np.sum(g * W, axis=1), 0, atol=1e-12) and np.any(g))


def _is_the_gradient(function: Function, rng: np.random.Generator) -> bool:
    W, h, upstream = (rng.normal(size=s) for s in ((2, 3), (6, 3), (6, 2)))

    def loss(W: np.ndarray) -> float:
        return float(np.sum(upstream * batchnorm_forward(h @ W.T, np.ones(2), np.zeros(2), 0.0)[0]))

    return bool(np.allclose(function(W, h, upstream), _difference(loss, W), atol=1e-6))


SCALE_INVARIANT_GRADIENT = Exercise(
    key="P-08",
    reference=scale_invariant_gradient,
    cases=_invariance_cases,
    misconceptions=(
        Misconception(
            "you hold mean and variance constant; both depend on W", cuts_off_the_statistics
        ),
        Misconception(
            "you hold the variance constant; it depends on W, and the term − ẑ · mean(δẑ) is "
            "missing, where ẑ is BN(hWᵀ)",
            cuts_off_the_variance,
        ),
        Misconception(
            "you hold the mean constant; it depends on W, and the term − mean(δ) is missing",
            cuts_off_the_mean,
        ),
        Misconception(
            "you subtract sums over the examples; subtract means over them",
            subtracts_sums,
        ),
        Misconception(
            "your σ divides by m − 1; batch norm divides by m",
            takes_the_unbiased_deviation,
        ),
        Misconception("you do not divide by σ, the standard deviation of hWᵀ", forgets_to_divide),
        Misconception(
            "you divide by the variance; divide by its root",
            divides_by_the_variance_of_the_outputs,
        ),
        Misconception(
            "you multiply by σ, so that your gradient grows with W; divide by it",
            multiplies_by_the_deviation,
        ),
        Misconception(
            "you normalize the rows of W; normalize the outputs hWᵀ", normalizes_the_weight
        ),
        Misconception(
            "you return the gradient of a plain layer; go back through the normalization first",
            leaves_the_normalization_out,
        ),
        Misconception(
            "you return the gradient of the outputs hWᵀ; multiply by h to get that of W",
            stops_at_the_layer,
        ),
        Misconception("you average over the examples; f is a sum over them", averages_the_examples),
        Misconception(
            "your statistics are over the outputs of an example; "
            "take those of each output over the examples",
            sums_over_the_outputs,
        ),
        Misconception("your gradient is transposed; it has the shape of W", puts_inputs_in_rows),
    ),
    properties=(
        Property("the gradient at 8W is an eighth of that at W", _shrinks_as_the_weight_grows),
        Property(
            "each row of the gradient is orthogonal to the same row of W", _is_at_right_angles
        ),
        Property("the gradient agrees with finite differences", _is_the_gradient),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    BATCHNORM_FORWARD,
    BATCHNORM_BACKWARD,
    POPULATION_STATISTICS,
    MOVING_AVERAGE,
    FOLD,
    RENORM_FORWARD,
    GROUPNORM_FORWARD,
    SCALE_INVARIANT_GRADIENT,
)
