"""Wrong answers to the exercises of quadratic."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-12: prediction_ratio --------------------------------------------------------------------


def ratio_expanded_at_w(value, gradient, hessian, center, w):
    """Take the derivatives at w and measure from the center to w all the same."""
    d = w - center
    change = value(w) - value(center)
    return change / (d @ gradient(w) - 0.5 * d @ hessian(w) @ d + d @ hessian(center) @ d)


def displacement_backwards(value, gradient, hessian, center, w):
    """Measure from w to the center, which flips the linear term."""
    d = center - w
    return (value(w) - value(center)) / (d @ gradient(center) + 0.5 * d @ hessian(center) @ d)


def diagonal_curvature(value, gradient, hessian, center, w):
    """Use the diagonal of the Hessian only."""
    d = w - center
    predicted = d @ gradient(center) + 0.5 * np.sum(np.diag(hessian(center)) * d**2)
    return (value(w) - value(center)) / predicted


def curvature_times_elementwise(value, gradient, hessian, center, w):
    """Write * for the last product, which leaves a vector."""
    d = w - center
    predicted = d @ gradient(center) + 0.5 * d @ hessian(center) * d
    return (value(w) - value(center)) / predicted


# --- L1-14: contributions_from_gradient ---------------------------------------------------------


def slopes_not_squared(hessian, gradient):
    """Leave the slopes unsquared."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return 0.5 * (vectors.T @ gradient) / eigenvalues


def largest_eigenvalue_first(hessian, gradient):
    """Return the terms in descending order of the eigenvalues."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return (0.5 * (gradient @ vectors) ** 2 / eigenvalues)[::-1]


def contributions_sorted_by_size(hessian, gradient):
    """Sort the terms themselves."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    return np.sort(0.5 * (gradient @ vectors) ** 2 / eigenvalues)


def contributions_summed(hessian, gradient):
    """Return the sum of the terms, one number."""
    return float(0.5 * gradient @ np.linalg.solve(hessian, gradient))


def contributions_of_the_axes(hessian, gradient):
    """Solve for the displacement and split the loss over the coordinates."""
    return 0.5 * gradient * np.linalg.solve(hessian, gradient)


# --- L1-15: scheduled_coefficients --------------------------------------------------------------


def coefficients_without_the_last(alpha0, eigenvalues, lrs):
    """Return as many rows as steps, and so leave out the last."""
    rows = [alpha0]
    for lr in lrs[:-1]:
        rows.append((1 - lr * eigenvalues) * rows[-1])
    return np.array(rows)


def coefficients_without_the_start(alpha0, eigenvalues, lrs):
    """Leave out row 0."""
    return alpha0 * np.cumprod(1 - lrs[:, None] * eigenvalues, axis=0)


def coefficients_that_grow(alpha0, eigenvalues, lrs):
    """Write 1 + ηλ, the wrong sign."""
    rows = [alpha0]
    for lr in lrs:
        rows.append((1 + lr * eigenvalues) * rows[-1])
    return np.array(rows)


def directions_in_rows(alpha0, eigenvalues, lrs):
    """Return (n, s + 1): one row for each direction."""
    rows = [alpha0]
    for lr in lrs:
        rows.append((1 - lr * eigenvalues) * rows[-1])
    return np.array(rows).T


def rows_of_whole_numbers(alpha0, eigenvalues, lrs):
    """Store the rows in an integer array."""
    path = np.zeros((len(lrs) + 1, len(alpha0)), dtype=int)
    current = alpha0
    path[0] = current
    for tau, lr in enumerate(lrs, 1):
        current = (1 - lr * eigenvalues) * current
        path[tau] = current
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


# --- L1-16: search_along ------------------------------------------------------------------------


def search_with_a_plain_norm(hessian, start, directions):
    """Take the directions for unit vectors and forget the curvature's square of the length."""
    path = [start]
    for p in directions:
        g = hessian @ path[-1]
        path.append(path[-1] - (g @ p) / (p @ hessian @ p) * p / np.linalg.norm(p))
    return np.array(path)


def search_one_step_short(hessian, start, directions):
    """Count the start as a step."""
    path = [start]
    for p in directions[1:]:
        g = hessian @ path[-1]
        path.append(path[-1] - (g @ p) / (p @ hessian @ p) * p)
    return np.array(path)


def search_without_a_copy(hessian, start, directions):
    """Put the same array into every row of the path."""
    w, path = start.copy(), []
    path.append(w)
    for p in directions:
        g = hessian @ w
        w -= (g @ p) / (p @ hessian @ p) * p
        path.append(w)
    return np.array(path)


def search_along_columns(hessian, start, directions):
    """Read the directions as columns."""
    path = [start]
    for p in directions[:, : len(start)].T[:, : len(start)]:
        g = hessian @ path[-1]
        path.append(path[-1] - (g @ p) / (p @ hessian @ p) * p)
    return np.array(path)


def path_of_pairs(hessian, start, directions):
    """Return point and gradient of each row, nested in pairs."""
    w, path = start, [(start, hessian @ start)]
    for p in directions:
        w = w - (hessian @ w @ p) / (p @ hessian @ p) * p
        path.append((w, hessian @ w))
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
        ratio_expanded_at_w,
        displacement_backwards,
        diagonal_curvature,
        curvature_times_elementwise,
    ),
    "L1-14": (
        slopes_not_squared,
        largest_eigenvalue_first,
        contributions_sorted_by_size,
        contributions_summed,
        contributions_of_the_axes,
    ),
    "L1-15": (
        coefficients_without_the_last,
        coefficients_without_the_start,
        coefficients_that_grow,
        directions_in_rows,
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
        search_with_a_plain_norm,
        search_one_step_short,
        search_without_a_copy,
        search_along_columns,
        path_of_pairs,
    ),
    "L2-01": (
        power_one_too_low,
        eigenvalues_made_positive,
    ),
}
