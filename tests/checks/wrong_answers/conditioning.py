"""Wrong answers to the exercises of conditioning."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-17: steps_needed ------------------------------------------------------------------------


def smallest_of_all_eigenvalues(hessian, q):
    """Divide by the smallest eigenvalue, zero or not."""
    values = np.linalg.eigvalsh(hessian)
    rate = (values[-1] - values[0]) / (values[-1] + values[0])
    return int(np.ceil(np.log(q) / np.log(rate)))


def steps_to_a_digit(hessian, q):
    """Return the steps to a tenth of the error, whatever q is."""
    values = np.linalg.eigvalsh(hessian)
    values = values[values > 1e-12 * values[-1]]
    low, high = values[0], values[-1]
    return 1 if low == high else int(np.ceil(-np.log(10) / np.log((high - low) / (high + low))))


# --- L1-18:gain: step_gain ----------------------------------------------------------------------


def gain_turned_positive(gradient, hessian, lr, direction):
    """Report the decrease as a positive number."""
    return lr * gradient @ direction - 0.5 * lr**2 * direction @ hessian @ direction


def hessian_before_gradient(hessian, gradient, lr, direction):
    """Take the first two arguments in the other order."""
    return -lr * gradient @ direction + 0.5 * lr**2 * direction @ hessian @ direction


# --- L1-18:uphill: uphill_step ------------------------------------------------------------------


def absolute_curvature(gradient, hessian, direction):
    """Take the absolute value of the curvature, so that a rate always exists."""
    return 2 * gradient @ direction / abs(direction @ hessian @ direction)


def none_where_nothing_rises(gradient, hessian, direction):
    """Return None in place of infinity."""
    slope, curvature = gradient @ direction, direction @ hessian @ direction
    if slope < 0:
        return 0.0
    return float(2 * slope / curvature) if curvature > 0 else None


def uphill_printed(gradient, hessian, direction):
    """Print the rate and return nothing."""
    slope, curvature = gradient @ direction, direction @ hessian @ direction
    print(2 * slope / curvature if curvature > 0 else np.inf)


# --- L1-19: power_iteration ---------------------------------------------------------------------


def last_estimate_alone(gradient, w, v, step, steps):
    """Return the last estimate in place of all."""
    for _ in range(steps):
        v = v / np.linalg.norm(v)
        product = (gradient(w + step * v) - gradient(w - step * v)) / (2 * step)
        estimate, v = v @ product, product
    return estimate


def estimates_after_the_product(gradient, w, v, step, steps):
    """Begin with the estimate after the first product, and compute one product more."""
    estimates = []
    for _ in range(steps + 1):
        v = v / np.linalg.norm(v)
        product = (gradient(w + step * v) - gradient(w - step * v)) / (2 * step)
        estimates.append(v @ product)
        v = product
    return np.array(estimates[1:])


def steps_of_their_own(gradient, w, v, step, steps):
    """Take a fixed step for the difference."""
    estimates = []
    for _ in range(steps):
        v = v / np.linalg.norm(v)
        product = (gradient(w + 1e-5 * v) - gradient(w - 1e-5 * v)) / 2e-5
        estimates.append(v @ product)
        v = product
    return np.array(estimates)


# --- F-02: gradient_cosines ---------------------------------------------------------------------


def cosines_of_steps_apart(gradient, w, lr, steps):
    """Compare gradients that are two steps apart."""
    gradients = [gradient(w)]
    for _ in range(steps + 1):
        w = w - lr * gradients[-1]
        gradients.append(gradient(w))
    unit = [g / np.linalg.norm(g) for g in gradients]
    return np.array([a @ b for a, b in zip(unit, unit[2:], strict=False)])


def fraction_of_opposed(gradient, w, lr, steps):
    """Return how many of the cosines are negative."""
    opposed, g = 0, gradient(w)
    for _ in range(steps):
        w = w - lr * g
        last, g = g, gradient(w)
        opposed += last @ g < 0
    return opposed / steps


# --- L1-20: canonical_units ---------------------------------------------------------------------


def incoming_scaled_to_one(W, b, v):
    """Give the incoming weights norm 1 in place of the outgoing weight's."""
    t = 1 / np.sqrt((W**2).sum(1) + b**2)
    order = np.argsort(v / t)
    return (W * t[:, None])[order], (b * t)[order], (v / t)[order]


def layers_balanced_as_a_whole(W, b, v):
    """Use one factor for all units."""
    t = np.sqrt(np.linalg.norm(v) / np.sqrt((W**2).sum() + (b**2).sum()))
    order = np.argsort(v)
    return W[order] * t, b[order] * t, v[order] / t


# --- L1-21: critical_point_kind -----------------------------------------------------------------


def kind_by_trace(gradient, hessian, tolerance):
    """Decide by the sign of the trace."""
    if np.linalg.norm(gradient) > tolerance:
        return "not critical"
    trace = np.trace(hessian)
    if trace > tolerance:
        return "minimum"
    return "maximum" if trace < -tolerance else "strict saddle"


def never_degenerate(gradient, hessian, tolerance):
    """Call everything that is no extremum a saddle."""
    if np.linalg.norm(gradient) > tolerance:
        return "not critical"
    values = np.linalg.eigvalsh(hessian)
    if values[0] > tolerance:
        return "minimum"
    return "maximum" if values[-1] < -tolerance else "strict saddle"


def kind_swapped(gradient, hessian, tolerance):
    """Take positive eigenvalues for those of a maximum."""
    if np.linalg.norm(gradient) > tolerance:
        return "not critical"
    low, *_, high = np.linalg.eigvalsh(hessian)
    if low < -tolerance and high > tolerance:
        return "strict saddle"
    if low > tolerance:
        return "maximum"
    return "minimum" if high < -tolerance else "degenerate"


# --- L1-22:norm: clip_by_norm -------------------------------------------------------------------


def clipped_with_a_small_number(gradients, max_norm):
    """Add 1e-6 to the norm, so that nothing is divided by zero."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * min(1.0, max_norm / (norm + 1e-6)) for g in gradients]


def long_gradient_set_to_zero(gradients, max_norm):
    """Throw a long gradient away in place of shortening it."""
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return [g if norm <= max_norm else 0 * g for g in gradients]


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


# --- L1-23: excess_loss -------------------------------------------------------------------------


def variance_alone(hessian, bias, lr, sigma):
    """Return the sum of the variances."""
    values = np.linalg.eigvalsh(hessian)
    return np.sum(lr * sigma**2 / (values * (2 - lr * values)))


def loss_at_the_mean(hessian, bias, lr, sigma):
    """Add the standard deviations to the limit before squaring."""
    values, vectors = np.linalg.eigh(hessian)
    spread = np.sqrt(lr * sigma**2 / (values * (2 - lr * values)))
    w = vectors.T @ np.linalg.solve(hessian, bias) + spread
    return 0.5 * values @ w**2


def bias_scaled_by_the_rate(hessian, bias, lr, sigma):
    """Take the limit of the bias to be in proportion to the learning rate."""
    values = np.linalg.eigvalsh(hessian)
    w = lr * np.linalg.solve(hessian, bias)
    return 0.5 * w @ hessian @ w + 0.5 * np.sum(lr * sigma**2 / (2 - lr * values))


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-17": (
        smallest_of_all_eigenvalues,
        steps_to_a_digit,
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
        last_estimate_alone,
        estimates_after_the_product,
        steps_of_their_own,
    ),
    "F-02": (
        cosines_of_steps_apart,
        fraction_of_opposed,
    ),
    "L1-20": (
        incoming_scaled_to_one,
        layers_balanced_as_a_whole,
    ),
    "L1-21": (
        kind_by_trace,
        never_degenerate,
        kind_swapped,
    ),
    "L1-22:norm": (
        clipped_with_a_small_number,
        long_gradient_set_to_zero,
    ),
    "L1-23": (
        variance_alone,
        loss_at_the_mean,
        bias_scaled_by_the_rate,
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
