"""Wrong answers to the exercises of conditioning."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-17: condition_number --------------------------------------------------------------------


def smallest_over_largest(A):
    """Return 1/κ."""
    values = np.linalg.svd(A, compute_uv=False)
    values = values[values > 1e-12 * values[0]]
    return values[-1] / values[0]


def eigenvalues_of_the_matrix(A):
    """Use eigenvalues, which a matrix that is not square does not have."""
    values = np.abs(np.linalg.eigvals(A))
    values = values[values > 1e-12 * values.max()]
    return values.max() / values.min()


def frobenius_over_smallest(A):
    """Divide the Frobenius norm by the smallest singular value."""
    values = np.linalg.svd(A, compute_uv=False)
    values = values[values > 1e-12 * values[0]]
    return np.linalg.norm(A) / values[-1]


# --- L1-18:gain: step_gain ----------------------------------------------------------------------


def gain_turned_positive(gradient, hessian, lr):
    """Report the decrease as a positive number."""
    return lr * gradient @ gradient - 0.5 * lr**2 * gradient @ hessian @ gradient


def hessian_before_gradient(hessian, gradient, lr):
    """Take the first two arguments in the other order."""
    return -lr * gradient @ gradient + 0.5 * lr**2 * gradient @ hessian @ gradient


# --- L1-18:uphill: uphill_step ------------------------------------------------------------------


def absolute_curvature(gradient, hessian):
    """Take the absolute value of the curvature, so that a rate always exists."""
    return 2 * gradient @ gradient / abs(gradient @ hessian @ gradient)


def none_where_nothing_rises(gradient, hessian):
    """Return None in place of infinity."""
    curvature = gradient @ hessian @ gradient
    if curvature > 0:
        return float(2 * gradient @ gradient / curvature)
    return None


def uphill_printed(gradient, hessian):
    """Print the rate and return nothing."""
    curvature = gradient @ hessian @ gradient
    print(2 * gradient @ gradient / curvature if curvature > 0 else np.inf)


# --- L1-19: difference_hessian_vector_product ---------------------------------------------------


def difference_times_the_step(gradient, w, v, step):
    """Write / 2 * step, which multiplies by the step."""
    return (gradient(w + step * v) - gradient(w - step * v)) / 2 * step


def own_step_size(gradient, w, v, step):
    """Use a step of 1e-5 and ignore the one that is given."""
    h = 1e-5
    return (gradient(w + h * v) - gradient(w - h * v)) / (2 * h)


def direction_normalized(gradient, w, v, step):
    """Scale v to length 1 first, and never back."""
    u = v / np.linalg.norm(v)
    return (gradient(w + step * u) - gradient(w - step * u)) / (2 * step)


def curvature_along_v(gradient, w, v, step):
    """Return vᵀHv, one number."""
    return float(v @ (gradient(w + step * v) - gradient(w - step * v)) / (2 * step))


def point_moved_in_place(gradient, w, v, step):
    """Move w in place and go back by one step only, so that the second point is w itself."""
    w += step * v
    ahead = gradient(w)
    w -= step * v
    return (ahead - gradient(w)) / (2 * step)


# --- L1-20:order: permute_hidden_units ----------------------------------------------------------


def features_permuted(W, b, v, order):
    """Permute the columns of W, of which there are too few."""
    return W[:, order], b[order], v[order]


def incoming_and_outgoing_returned_reversed(W, b, v, order):
    """Return v, b, W."""
    return v[order], b[order], W[order]


def permuted_while_reading(W, b, v, order):
    """Write into the arrays that are still read."""
    for new, old in enumerate(order):
        W[new], b[new], v[new] = W[old].copy(), b[old], v[old]
    return W, b, v


# --- L1-20:scale: rescale_hidden_units ----------------------------------------------------------


def columns_scaled(W, b, v, factors):
    """Multiply W by factors without a second axis, which fits no row."""
    return W * factors, b * factors, v / factors


def one_factor_for_all(W, b, v, factors):
    """Use the first factor for all units."""
    return W * factors[0], b * factors[0], v / factors[0]


def weights_scaled_in_place(W, b, v, factors):
    """Scale the caller's arrays in place."""
    W *= factors[:, None]
    b *= factors
    v /= factors
    return W, b, v


# --- L1-22:norm: clip_by_norm -------------------------------------------------------------------


def clipped_with_a_small_number(gradients, max_norm):
    """Add 1e-6 to the norm, so that nothing is divided by zero."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * min(1.0, max_norm / (norm + 1e-6)) for g in gradients]


def long_gradient_set_to_zero(gradients, max_norm):
    """Throw a long gradient away in place of shortening it."""
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return [g if norm <= max_norm else 0 * g for g in gradients]


# --- L1-22:value: clip_by_value -----------------------------------------------------------------


def negative_entries_cut_to_zero(gradients, limit):
    """Clip to the range from 0 to c."""
    return [np.clip(g, 0, limit) for g in gradients]


def sign_lost(gradients, limit):
    """Clip the absolute value and lose the sign."""
    return [np.minimum(np.abs(g), limit) for g in gradients]


def limits_swapped(gradients, limit):
    """Give the upper limit first."""
    return [np.clip(g, limit, -limit) for g in gradients]


def large_entries_made_positive(gradients, limit):
    """Write +c for every entry beyond the limit, also for the negative ones."""
    clipped = []
    for g in gradients:
        g = g.copy()
        g[np.abs(g) > limit] = limit
        clipped.append(g)
    return clipped


# --- F-04: escape_steps --------------------------------------------------------------------


def steps_not_rounded(distance, radius, lr, curvature):
    """Return a number that is not whole."""
    return max(0.0, np.log(radius / distance) / np.log(1 + lr * curvature))


def decimal_and_natural_logarithms(distance, radius, lr, curvature):
    """Mix logarithms of two bases."""
    return max(0, int(np.ceil(np.log10(radius / distance) / np.log(1 + lr * curvature) - 1e-12)))


def distance_over_radius(distance, radius, lr, curvature):
    """Turn the ratio around, and drop the sign."""
    return abs(int(np.floor(np.log(distance / radius) / np.log(1 + lr * curvature) + 1e-12)))


def learning_rate_forgotten(distance, radius, lr, curvature):
    """Multiply by 1 + λ in each step."""
    return max(0, int(np.ceil(np.log(radius / distance) / np.log(1 + curvature) - 1e-12)))


def escape_in_time_units(distance, radius, lr, curvature):
    """Return ln(R/d)/λ, a time and not a number of steps."""
    return max(0, int(np.ceil(np.log(radius / distance) / curvature)))


def one_step_more(distance, radius, lr, curvature):
    """Count the start as a step."""
    return max(0, int(np.ceil(np.log(radius / distance) / np.log(1 + lr * curvature) - 1e-12))) + 1


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-17": (
        smallest_over_largest,
        eigenvalues_of_the_matrix,
        frobenius_over_smallest,
    ),
    "L1-18:gain": (
        gain_turned_positive,
        hessian_before_gradient,
    ),
    "L1-18:uphill": (
        absolute_curvature,
        none_where_nothing_rises,
        uphill_printed,
    ),
    "L1-19": (
        difference_times_the_step,
        own_step_size,
        direction_normalized,
        curvature_along_v,
        point_moved_in_place,
    ),
    "L1-20:order": (
        features_permuted,
        incoming_and_outgoing_returned_reversed,
        permuted_while_reading,
    ),
    "L1-20:scale": (
        columns_scaled,
        one_factor_for_all,
        weights_scaled_in_place,
    ),
    "L1-22:norm": (
        clipped_with_a_small_number,
        long_gradient_set_to_zero,
    ),
    "L1-22:value": (
        negative_entries_cut_to_zero,
        sign_lost,
        limits_swapped,
        large_entries_made_positive,
    ),
    "F-04": (
        steps_not_rounded,
        decimal_and_natural_logarithms,
        distance_over_radius,
        learning_rate_forgotten,
        escape_in_time_units,
        one_step_more,
    ),
}
