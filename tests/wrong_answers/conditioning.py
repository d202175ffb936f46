"""Wrong answers to the exercises of conditioning."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-17: condition_number --------------------------------------------------------------------


def smallest_counted_even_if_zero(A):
    """Divide by the smallest singular value, also when it is only rounding."""
    values = np.linalg.svd(A, compute_uv=False)
    return values[0] / values[-1]


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


def condition_number_squared(A):
    """Take eigenvalues of AᵀA without the root."""
    values = np.linalg.eigvalsh(A.T @ A)
    values = values[values > 1e-12 * values[-1]]
    return values[-1] / values[0]


def exact_zeros_dropped(A):
    """Drop singular values equal to 0, and keep those that are rounding."""
    values = np.linalg.svd(A, compute_uv=False)
    values = values[values != 0]
    return values.max() / values.min()


def frobenius_over_smallest(A):
    """Divide the Frobenius norm by the smallest singular value."""
    values = np.linalg.svd(A, compute_uv=False)
    values = values[values > 1e-12 * values[0]]
    return np.linalg.norm(A) / values[-1]


# --- L1-18:gain: step_gain ----------------------------------------------------------------------


def gain_with_a_whole_second_term(gradient, hessian, lr):
    """Forget the ½."""
    return -lr * gradient @ gradient + lr**2 * gradient @ hessian @ gradient


def rate_not_squared(gradient, hessian, lr):
    """Leave ε unsquared in the second term."""
    return -lr * gradient @ gradient + 0.5 * lr * gradient @ hessian @ gradient


def gain_turned_positive(gradient, hessian, lr):
    """Report the decrease as a positive number."""
    return lr * gradient @ gradient - 0.5 * lr**2 * gradient @ hessian @ gradient


def gain_of_a_straight_line(gradient, hessian, lr):
    """Leave the curvature out."""
    return -lr * np.sum(gradient**2)


def hessian_before_gradient(hessian, gradient, lr):
    """Take the first two arguments in the other order."""
    return -lr * gradient @ gradient + 0.5 * lr**2 * gradient @ hessian @ gradient


def gain_with_the_norm(gradient, hessian, lr):
    """Write the norm of g where its square belongs."""
    curvature = gradient @ hessian @ gradient
    return -lr * np.linalg.norm(gradient) + 0.5 * lr**2 * curvature


# --- L1-18:uphill: uphill_step ------------------------------------------------------------------


def best_step_along_the_gradient(gradient, hessian):
    """Return the step of the lowest loss, half of what is asked."""
    curvature = gradient @ hessian @ gradient
    return gradient @ gradient / curvature if curvature > 0 else np.inf


def negative_rate_returned(gradient, hessian):
    """Divide without looking at the sign of the curvature."""
    return 2 * gradient @ gradient / (gradient @ hessian @ gradient)


def absolute_curvature(gradient, hessian):
    """Take the absolute value of the curvature, so that a rate always exists."""
    return 2 * gradient @ gradient / abs(gradient @ hessian @ gradient)


def none_where_nothing_rises(gradient, hessian):
    """Return None in place of infinity."""
    curvature = gradient @ hessian @ gradient
    if curvature > 0:
        return float(2 * gradient @ gradient / curvature)
    return None


def limit_of_the_whole_hessian(gradient, hessian):
    """Return 2/λ of the largest eigenvalue, whatever the gradient is."""
    largest = np.linalg.eigvalsh(hessian)[-1]
    return 2 / largest if gradient @ hessian @ gradient > 0 else np.inf


def uphill_printed(gradient, hessian):
    """Print the rate and return nothing."""
    curvature = gradient @ hessian @ gradient
    print(2 * gradient @ gradient / curvature if curvature > 0 else np.inf)


# --- L1-19: difference_hessian_vector_product ---------------------------------------------------


def one_sided_difference(gradient, w, v, step):
    """Take the difference to the gradient at w itself."""
    return (gradient(w + step * v) - gradient(w)) / step


def difference_over_one_step(gradient, w, v, step):
    """Divide by s where the points lie 2s apart."""
    return (gradient(w + step * v) - gradient(w - step * v)) / step


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


def inverse_permutation(W, b, v, order):
    """Put the old unit i at order[i]."""
    back = np.argsort(order)
    return W[back], b[back], v[back]


def outgoing_weights_left(W, b, v, order):
    """Forget v."""
    return W[order], b[order], v


def biases_left(W, b, v, order):
    """Forget b."""
    return W[order], b, v[order]


def incoming_and_outgoing_returned_reversed(W, b, v, order):
    """Return v, b, W."""
    return v[order], b[order], W[order]


def permuted_while_reading(W, b, v, order):
    """Write into the arrays that are still read."""
    for new, old in enumerate(order):
        W[new], b[new], v[new] = W[old].copy(), b[old], v[old]
    return W, b, v


# --- L1-20:scale: rescale_hidden_units ----------------------------------------------------------


def outgoing_scaled_alike(W, b, v, factors):
    """Multiply v by factors in place of dividing."""
    return W * factors[:, None], b * factors, v * factors


def bias_not_scaled(W, b, v, factors):
    """Leave the bias as it is."""
    return W * factors[:, None], b, v / factors


def columns_scaled(W, b, v, factors):
    """Multiply W by factors without a second axis, which fits no row."""
    return W * factors, b * factors, v / factors


def scaled_the_other_way(W, b, v, factors):
    """Divide the input and multiply the output."""
    return W / factors[:, None], b / factors, v * factors


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


def each_part_clipped_alone(gradients, max_norm):
    """Clip each array by its own norm."""
    return [g * min(1.0, max_norm / np.linalg.norm(g)) for g in gradients]


def always_rescaled(gradients, max_norm):
    """Give every gradient the norm max_norm, also a short one."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * max_norm / norm for g in gradients]


def norm_without_its_root(gradients, max_norm):
    """Compare with the sum of squares."""
    norm = sum(np.sum(g**2) for g in gradients)
    return [g * min(1.0, max_norm / norm) for g in gradients]


def norms_added(gradients, max_norm):
    """Add the norms of the parts up for the norm of all."""
    norm = sum(np.linalg.norm(g) for g in gradients)
    return [g * min(1.0, max_norm / norm) for g in gradients]


def clipped_with_a_small_number(gradients, max_norm):
    """Add 1e-6 to the norm, so that nothing is divided by zero."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * min(1.0, max_norm / (norm + 1e-6)) for g in gradients]


def clipped_parts_flattened(gradients, max_norm):
    """Return one long array in place of the parts."""
    flat = np.concatenate([g.ravel() for g in gradients])
    return flat * min(1.0, max_norm / np.linalg.norm(flat))


def long_gradient_set_to_zero(gradients, max_norm):
    """Throw a long gradient away in place of shortening it."""
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return [g if norm <= max_norm else 0 * g for g in gradients]


# --- L1-22:value: clip_by_value -----------------------------------------------------------------


def clipped_from_above_only(gradients, limit):
    """Forget the lower limit."""
    return [np.minimum(g, limit) for g in gradients]


def negative_entries_cut_to_zero(gradients, limit):
    """Clip to the range from 0 to c."""
    return [np.clip(g, 0, limit) for g in gradients]


def sign_lost(gradients, limit):
    """Clip the absolute value and lose the sign."""
    return [np.minimum(np.abs(g), limit) for g in gradients]


def large_entries_removed(gradients, limit):
    """Set entries beyond the limit to zero."""
    return [np.where(np.abs(g) > limit, 0.0, g) for g in gradients]


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


def largest_entry_brought_to_the_limit(gradients, limit):
    """Scale each array so that its largest entry is at the limit."""
    return [g * min(1, limit / np.abs(g).max()) for g in gradients]


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
        smallest_counted_even_if_zero,
        smallest_over_largest,
        eigenvalues_of_the_matrix,
        condition_number_squared,
        exact_zeros_dropped,
        frobenius_over_smallest,
    ),
    "L1-18:gain": (
        gain_with_a_whole_second_term,
        rate_not_squared,
        gain_turned_positive,
        gain_of_a_straight_line,
        hessian_before_gradient,
        gain_with_the_norm,
    ),
    "L1-18:uphill": (
        best_step_along_the_gradient,
        negative_rate_returned,
        absolute_curvature,
        none_where_nothing_rises,
        limit_of_the_whole_hessian,
        uphill_printed,
    ),
    "L1-19": (
        one_sided_difference,
        difference_over_one_step,
        difference_times_the_step,
        own_step_size,
        direction_normalized,
        curvature_along_v,
        point_moved_in_place,
    ),
    "L1-20:order": (
        features_permuted,
        inverse_permutation,
        outgoing_weights_left,
        biases_left,
        incoming_and_outgoing_returned_reversed,
        permuted_while_reading,
    ),
    "L1-20:scale": (
        outgoing_scaled_alike,
        bias_not_scaled,
        columns_scaled,
        scaled_the_other_way,
        one_factor_for_all,
        weights_scaled_in_place,
    ),
    "L1-22:norm": (
        each_part_clipped_alone,
        always_rescaled,
        norm_without_its_root,
        norms_added,
        clipped_with_a_small_number,
        clipped_parts_flattened,
        long_gradient_set_to_zero,
    ),
    "L1-22:value": (
        clipped_from_above_only,
        negative_entries_cut_to_zero,
        sign_lost,
        large_entries_removed,
        limits_swapped,
        large_entries_made_positive,
        largest_entry_brought_to_the_limit,
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
