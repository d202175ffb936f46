"""Wrong answers to the exercises of batchnorm."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-34, P-01: batchnorm_forward -------------------------------------------------------------


def forward_without_cache(x, gamma, beta, eps=1e-5):
    """Return y alone."""
    normalized = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + eps)
    return gamma * normalized + beta


def cache_without_gamma(x, gamma, beta, eps=1e-5):
    """Keep 1 / root for the factor, without gamma."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, 1 / root)


def cache_exchanged(x, gamma, beta, eps=1e-5):
    """Return the factor before the normalized values."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (gamma / root, normalized)


def epsilon_of_the_default(x, gamma, beta, eps=1e-5):
    """Write 1e-5 into the formula and ignore eps."""
    root = np.sqrt(x.var(axis=0) + 1e-5)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


def flat_result(x, gamma, beta, eps=1e-5):
    """Return three values in place of one and a pair."""
    root = np.sqrt(x.var(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, normalized, gamma / root


def second_moment_for_the_variance(x, gamma, beta, eps=1e-5):
    """Average x² without subtracting the mean."""
    root = np.sqrt((x**2).mean(axis=0) + eps)
    normalized = (x - x.mean(axis=0)) / root
    return gamma * normalized + beta, (normalized, gamma / root)


# --- L1-35: batchnorm_backward ------------------------------------------------------------------


def parameter_gradients_averaged(grad, cache):
    """Average the gradients of gamma and beta over the minibatch."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).mean(axis=0), grad.mean(axis=0)
    return factor * (grad - grad_beta - normalized * grad_gamma), grad_gamma, grad_beta


def gamma_and_beta_exchanged(grad, cache):
    """Return the gradient of beta before that of gamma."""
    normalized, factor = cache
    grad_gamma, grad_beta = (grad * normalized).sum(axis=0), grad.sum(axis=0)
    grad_x = factor * (grad - (grad_beta + normalized * grad_gamma) / len(grad))
    return grad_x, grad_beta, grad_gamma


def parameter_gradients_as_rows(grad, cache):
    """Keep the axis, so that the gradients of gamma and beta have shape (1, d)."""
    normalized, factor = cache
    grad_gamma = (grad * normalized).sum(axis=0, keepdims=True)
    grad_beta = grad.sum(axis=0, keepdims=True)
    grad_x = factor * (grad - (grad_beta + normalized * grad_gamma) / len(grad))
    return grad_x, grad_gamma, grad_beta


# --- L1-36:population: population_statistics ----------------------------------------------------


def population_without_correction(means, variances, m):
    """Average the variances and leave them too small."""
    return means.mean(axis=0), variances.mean(axis=0)


def mean_corrected_too(means, variances, m):
    """Multiply the mean by m/(m - 1) as well."""
    share = m / (m - 1)
    return share * means.mean(axis=0), share * variances.mean(axis=0)


def correction_in_whole_numbers(means, variances, m):
    """Divide with //."""
    return np.mean(means, axis=0), m // (m - 1) * np.mean(variances, axis=0)


def spread_of_the_means_added(means, variances, m):
    """Add the variance of the means, as in the law of total variance."""
    return means.mean(axis=0), m / (m - 1) * variances.mean(axis=0) + means.var(axis=0)


def population_over_features(means, variances, m):
    """Average over the features."""
    return means.mean(axis=1), m / (m - 1) * variances.mean(axis=1)


# --- L2-14: moving_average ----------------------------------------------------------------------


def share_of_the_new_value(values, rho, start=None):
    """Take rho for the weight of the new value, as torch does."""
    average = values[0] if start is None else start
    averages = []
    for value in values:
        average = (1 - rho) * average + rho * value
        averages.append(average)
    return np.array(averages)


def start_ignored(values, rho, start=None):
    """Start from the first value, also when a start is given."""
    average, averages = values[0], []
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def start_among_the_averages(values, rho, start=None):
    """Return the start as a first row."""
    averages = [values[0] if start is None else start]
    for value in values:
        averages.append(rho * averages[-1] + (1 - rho) * value)
    return np.array(averages)


def last_average_alone(values, rho, start=None):
    """Return the average after the last value only."""
    average = values[0] if start is None else start
    for value in values:
        average = rho * average + (1 - rho) * value
    return average


def average_updated_in_place(values, rho, start=None):
    """Change the first value in place, and append the same array every time."""
    average = values[0] if start is None else start
    averages = []
    for value in values:
        average *= rho
        average += (1 - rho) * value
        averages.append(average)
    return np.array(averages)


def averages_collected_in_a_default(values, rho, start=None, averages=[]):  # noqa: B006
    """Collect the rows in a default argument, where those of earlier calls still stand."""
    average = values[0] if start is None else start
    for value in values:
        average = rho * average + (1 - rho) * value
        averages.append(list(average))
    return [row for row in averages if len(row) == values.shape[1]]


# --- L1-36:fold: fold ---------------------------------------------------------------------------


def mean_not_subtracted(weight, bias, gamma, beta, mean, var, eps=1e-5):
    """Scale the bias without centering it."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * bias + beta


def folded_without_beta(weight, bias, gamma, beta, mean, var, eps=1e-5):
    """Forget beta."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weight, scale * (bias - mean)


def mean_added(weight, bias, gamma, beta, mean, var, eps=1e-5):
    """Add the mean in place of subtracting it."""
    scale = gamma / np.sqrt(var + eps)
    return np.diag(scale) @ weight, scale * (bias + mean) + beta


def name_of_no_variable(weight, bias, gamma, beta, mean, var, eps=1e-5):
    """Write weights for weight, which raises NameError."""
    scale = gamma / np.sqrt(var + eps)
    return scale[:, None] * weights, scale * (bias - mean) + beta


# --- P-03: renorm_forward -----------------------------------------------------------------------


def epsilon_added_to_sigma(x, gamma, beta, mean, std, eps=1e-5):
    """Add epsilon to the moving deviation as well."""
    sigma = np.sqrt(std**2 + eps)
    batch_mean, batch_std = x.mean(axis=0), np.sqrt(x.var(axis=0) + eps)
    s, d = batch_std / sigma, (batch_mean - mean) / sigma
    normalized = (x - batch_mean) / batch_std
    return gamma * (normalized * s + d) + beta, (normalized, gamma * s / batch_std)


# --- P-04: groupnorm_forward --------------------------------------------------------------------


def groups_ignored(x, gamma, beta, groups=1, eps=1e-5):
    """Normalize over all features: layer normalization."""
    centered = x - x.mean(axis=1, keepdims=True)
    return gamma * centered / np.sqrt(x.var(axis=1, keepdims=True) + eps) + beta


def groups_left_folded(x, gamma, beta, groups=1, eps=1e-5):
    """Return the normalized groups as (m, G, d/G)."""
    grouped = x.reshape(len(x), groups, -1)
    centered = grouped - grouped.mean(axis=2, keepdims=True)
    normalized = centered / np.sqrt(grouped.var(axis=2, keepdims=True) + eps)
    return normalized * gamma.reshape(groups, -1) + beta.reshape(groups, -1)


def last_group_left_out(x, gamma, beta, groups=1, eps=1e-5):
    """Stop one group early, so that the last one is not normalized."""
    y, size = x.copy(), x.shape[1] // groups
    for g in range(groups - 1):
        part = x[:, g * size : (g + 1) * size]
        deviation = np.sqrt(part.var(axis=1, keepdims=True) + eps)
        y[:, g * size : (g + 1) * size] = (part - part.mean(axis=1, keepdims=True)) / deviation
    return gamma * y + beta


# --- P-08: scale_invariant_gradient -------------------------------------------------------------


def gradient_transposed(W, h, upstream):
    """Return (n, o)."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    along = normalized * (upstream * normalized).mean(axis=0)
    back = (upstream - upstream.mean(axis=0) - along) / z.std(axis=0)
    return h.T @ back


def mean_of_the_examples(W, h, upstream):
    """Divide the gradient by m."""
    z = h @ W.T
    normalized = (z - z.mean(axis=0)) / z.std(axis=0)
    along = normalized * (upstream * normalized).mean(axis=0)
    back = (upstream - upstream.mean(axis=0) - along) / z.std(axis=0)
    return back.T @ h / len(h)


def normalized_with_epsilon(W, h, upstream):
    """Add 1e-5 to the variance, where ε is 0."""
    z = h @ W.T
    std = np.sqrt(z.var(axis=0) + 1e-5)
    normalized = (z - z.mean(axis=0)) / std
    along = normalized * (upstream * normalized).mean(axis=0)
    return ((upstream - upstream.mean(axis=0) - along) / std).T @ h


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-34, P-01": (
        forward_without_cache,
        cache_without_gamma,
        cache_exchanged,
        epsilon_of_the_default,
        flat_result,
        second_moment_for_the_variance,
    ),
    "L1-35": (
        parameter_gradients_averaged,
        gamma_and_beta_exchanged,
        parameter_gradients_as_rows,
    ),
    "L1-36:population": (
        population_without_correction,
        mean_corrected_too,
        correction_in_whole_numbers,
        spread_of_the_means_added,
        population_over_features,
    ),
    "L2-14": (
        share_of_the_new_value,
        start_ignored,
        start_among_the_averages,
        last_average_alone,
        average_updated_in_place,
        averages_collected_in_a_default,
    ),
    "L1-36:fold": (
        mean_not_subtracted,
        folded_without_beta,
        mean_added,
        name_of_no_variable,
    ),
    "P-03": (epsilon_added_to_sigma,),
    "P-04": (
        groups_ignored,
        groups_left_folded,
        last_group_left_out,
    ),
    "P-08": (
        gradient_transposed,
        mean_of_the_examples,
        normalized_with_epsilon,
    ),
}
