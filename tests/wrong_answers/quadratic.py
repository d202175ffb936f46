"""Wrong answers to the exercises of quadratic."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-12: taylor_value ------------------------------------------------------------------------


def expanded_at_w(value, gradient, hessian, center, w):
    """Take value and derivatives at w in place of the center."""
    d = w - center
    return value(w) + d @ gradient(w) + 0.5 * d @ hessian(w) @ d


def displacement_backwards(value, gradient, hessian, center, w):
    """Measure from w to the center, which flips the linear term."""
    d = center - w
    return value(center) + d @ gradient(center) + 0.5 * d @ hessian(center) @ d


def model_without_its_value(value, gradient, hessian, center, w):
    """Leave out J at the center."""
    d = w - center
    return d @ gradient(center) + 0.5 * d @ hessian(center) @ d


def diagonal_curvature(value, gradient, hessian, center, w):
    """Use the diagonal of the Hessian only."""
    d = w - center
    return value(center) + d @ gradient(center) + 0.5 * np.sum(np.diag(hessian(center)) * d**2)


def curvature_times_elementwise(value, gradient, hessian, center, w):
    """Write * for the last product, which leaves a vector."""
    d = w - center
    return value(center) + d @ gradient(center) + 0.5 * d @ hessian(center) * d


# --- L1-14: eigen_contributions -----------------------------------------------------------------


def contributions_not_halved(hessian, displacement):
    """Forget the ½."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return eigenvalues * (vectors.T @ displacement) ** 2


def coefficients_not_squared(hessian, displacement):
    """Leave the coefficients unsquared."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return 0.5 * eigenvalues * (vectors.T @ displacement)


def largest_eigenvalue_first(hessian, displacement):
    """Return the terms in descending order of the eigenvalues."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return (0.5 * eigenvalues * (displacement @ vectors) ** 2)[::-1]


def contributions_sorted_by_size(hessian, displacement):
    """Sort the terms themselves."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return np.sort(0.5 * eigenvalues * (displacement @ vectors) ** 2)


def contributions_summed(hessian, displacement):
    """Return the sum of the terms, one number."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return float(np.sum(0.5 * eigenvalues * (vectors.T @ displacement) ** 2))


def contributions_of_the_axes(hessian, displacement):
    """Use the diagonal of H and the displacement as they are, without eigenvectors."""
    return 0.5 * np.diag(hessian) * displacement**2


# --- L1-15: gd_coefficients ---------------------------------------------------------------------


def coefficients_without_the_last(alpha0, eigenvalues, lr, steps):
    """Return steps rows in place of steps + 1."""
    tau = np.arange(steps)[:, None]
    return (1 - lr * eigenvalues) ** tau * alpha0


def coefficients_from_one(alpha0, eigenvalues, lr, steps):
    """Start with the first step, so that every row comes one step early."""
    tau = np.arange(1, steps + 2)[:, None]
    return (1 - lr * eigenvalues) ** tau * alpha0


def coefficients_that_grow(alpha0, eigenvalues, lr, steps):
    """Write 1 + ηλ, the wrong sign."""
    tau = np.arange(steps + 1)[:, None]
    return (1 + lr * eigenvalues) ** tau * alpha0


def directions_in_rows(alpha0, eigenvalues, lr, steps):
    """Return (n, steps + 1): one row for each direction."""
    tau = np.arange(steps + 1)
    return (1 - lr * eigenvalues)[:, None] ** tau * alpha0[:, None]


def first_row_left_at_zero(alpha0, eigenvalues, lr, steps):
    """Forget to put alpha0 into row 0."""
    path = np.zeros((steps + 1, len(alpha0)))
    current = alpha0
    for tau in range(1, steps + 1):
        current = current - lr * eigenvalues * current
        path[tau] = current
    return path


def rows_of_whole_numbers(alpha0, eigenvalues, lr, steps):
    """Store the rows in an integer array."""
    path = np.zeros((steps + 1, len(alpha0)), dtype=int)
    for tau in range(steps + 1):
        path[tau] = (1 - lr * eigenvalues) ** tau * alpha0
    return path


# --- L1-15:limit: largest_stable_step -----------------------------------------------------------


def limit_of_the_sum(eigenvalues):
    """Divide by the sum of all eigenvalues."""
    return 2 / np.sum(eigenvalues)


def limit_for_each_direction(eigenvalues):
    """Return a limit for each eigenvalue."""
    return [2 / value for value in eigenvalues]


# --- P-05: convergence_rate ---------------------------------------------------------------------


def rate_at_the_best_step(lr, eigenvalues):
    """Return (κ - 1)/(κ + 1), the rate of the best step, whatever the step is."""
    kappa = np.max(eigenvalues) / np.min(eigenvalues)
    return (kappa - 1) / (kappa + 1)


def rate_capped_at_one(lr, eigenvalues):
    """Cut the rate off at 1 when the steps diverge."""
    return min(1.0, float(np.max(np.abs(1 - lr * eigenvalues))))


def rate_of_the_loss(lr, eigenvalues):
    """Return the square, the factor of the loss."""
    return np.max((1 - lr * eigenvalues) ** 2)


# --- P-05:step: optimal_step --------------------------------------------------------------------


def best_step_without_the_two(eigenvalues):
    """Return 1 over the sum."""
    return 1 / (np.min(eigenvalues) + np.max(eigenvalues))


def best_step_by_the_difference(eigenvalues):
    """Subtract the eigenvalues in place of adding them."""
    return 2 / (np.max(eigenvalues) - np.min(eigenvalues))


def best_step_of_first_and_last(eigenvalues):
    """Take the list for sorted."""
    return 2 / (eigenvalues[0] + eigenvalues[-1])


def best_step_from_a_grid(eigenvalues):
    """Search a grid of 2001 steps: right to three digits."""
    grid = np.linspace(0, 2 / eigenvalues.max(), 2001)
    rates = [np.max(np.abs(1 - step * eigenvalues)) for step in grid]
    return grid[int(np.argmin(rates))]


# --- P-05:measured: measured_rates --------------------------------------------------------------


def rates_upside_down(hessian, start, lrs, steps):
    """Divide the norm before by the norm after."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(before) / np.linalg.norm(w))
    return np.array(rates)


def rate_of_the_first_step(hessian, start, lrs, steps):
    """Measure the first step in place of the last."""
    rates = []
    for lr in lrs:
        after = start - lr * hessian @ start
        rates.append(np.linalg.norm(after) / np.linalg.norm(start))
    return np.array(rates)


def one_step_too_few(hessian, start, lrs, steps):
    """Run steps - 1 steps."""
    rates = []
    for lr in lrs:
        path = [start]
        for _ in range(steps - 1):
            path.append(path[-1] - lr * hessian @ path[-1])
        rates.append(np.linalg.norm(path[-1]) / np.linalg.norm(path[-2]))
    return np.array(rates)


def rates_of_squared_norms(hessian, start, lrs, steps):
    """Compare w @ w, the squared distances."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * (hessian @ w)
        rates.append((w @ w) / (before @ before))
    return np.array(rates)


def returned_inside_the_loop(hessian, start, lrs, steps):
    """Indent the return too far, so that only the first step size is measured."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(w) / np.linalg.norm(before))
        return np.array(rates)
    return None


# --- L1-16: exact_line_search -------------------------------------------------------------------


def line_search_with_a_plain_norm(hessian, start, steps):
    """Put ‖g‖ where its square belongs."""
    path = [start]
    for _ in range(steps):
        g = hessian @ path[-1]
        path.append(path[-1] - np.linalg.norm(g) / (g @ hessian @ g) * g)
    return np.array(path)


def line_search_one_step_short(hessian, start, steps):
    """Count the start as a step."""
    path = [start]
    for _ in range(1, steps):
        g = hessian @ path[-1]
        path.append(path[-1] - (g @ g) / (g @ hessian @ g) * g)
    return np.array(path)


def line_search_without_a_copy(hessian, start, steps):
    """Put the same array into every row of the path."""
    w, path = start.copy(), []
    path.append(w)
    for _ in range(steps):
        g = hessian @ w
        w -= (g @ g) / (g @ hessian @ g) * g
        path.append(w)
    return np.array(path)


def path_of_pairs(hessian, start, steps):
    """Return point and gradient of each row, nested in pairs."""
    w, path = start, []
    for _ in range(steps + 1):
        g = hessian @ w
        path.append((w, g))
        w = w - (g @ g) / (g @ hessian @ g) * g
    return np.array(path)


# --- L2-01: eigen_power -------------------------------------------------------------------------


def power_one_too_low(weight, k):
    """Multiply k - 1 times starting from the identity."""
    power = np.eye(len(weight))
    for _ in range(k - 1):
        power = power @ weight
    return power


def eigenvalues_made_positive(weight, k):
    """Take absolute values, which shows at odd powers."""
    eigenvalues, V = np.linalg.eig(weight)
    return (V @ np.diag(np.abs(eigenvalues) ** k) @ np.linalg.inv(V)).real


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-12": (
        expanded_at_w,
        displacement_backwards,
        model_without_its_value,
        diagonal_curvature,
        curvature_times_elementwise,
    ),
    "L1-14": (
        contributions_not_halved,
        coefficients_not_squared,
        largest_eigenvalue_first,
        contributions_sorted_by_size,
        contributions_summed,
        contributions_of_the_axes,
    ),
    "L1-15": (
        coefficients_without_the_last,
        coefficients_from_one,
        coefficients_that_grow,
        directions_in_rows,
        first_row_left_at_zero,
        rows_of_whole_numbers,
    ),
    "L1-15:limit": (
        limit_of_the_sum,
        limit_for_each_direction,
    ),
    "P-05": (
        rate_at_the_best_step,
        rate_capped_at_one,
        rate_of_the_loss,
    ),
    "P-05:step": (
        best_step_without_the_two,
        best_step_by_the_difference,
        best_step_of_first_and_last,
        best_step_from_a_grid,
    ),
    "P-05:measured": (
        rates_upside_down,
        rate_of_the_first_step,
        one_step_too_few,
        rates_of_squared_norms,
        returned_inside_the_loop,
    ),
    "L1-16": (
        line_search_with_a_plain_norm,
        line_search_one_step_short,
        line_search_without_a_copy,
        path_of_pairs,
    ),
    "L2-01": (
        power_one_too_low,
        eigenvalues_made_positive,
    ),
}
