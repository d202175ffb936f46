"""Wrong answers to the exercises of optimizers."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-24, L1-25, F-15: averaged_sgd -------------------------------------------------------------


def mean_of_the_newest_and_the_last_mean(gradient, start, batches, first, last, tau):
    """Give the newest iterate half of the weight in every mean."""
    theta, mean, rows = start, start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        mean = theta if k + 1 <= tau else (mean + theta) / 2
        rows.append(mean)
    return np.array(rows)


def means_without_the_iterates_before(gradient, start, batches, first, last, tau):
    """Return the means alone."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array([np.mean(path[tau : t + 1], axis=0) for t in range(tau, len(path))])


def mean_over_all_axes(gradient, start, batches, first, last, tau):
    """Forget the axis of the mean, so that all parameters share a number."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        s = min(k / tau, 1)
        lr = (1 - s) * first + s * last
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch])
        path.append(theta)
    means = [np.mean(path[tau : t + 1], axis=0) for t in range(tau, len(path))]
    return np.array(path[:tau] + means)


# --- L1-26, L1-27: restarted_nesterov -------------------------------------------------------------


def restart_tested_before_the_step(gradient, start, lr, steps):
    """Test with the gradient and the velocity of the last step, and take the step afterwards."""
    theta, v, k, path = start, 0 * start, 0, [start]
    g = gradient(start)
    for _ in range(steps):
        if gradient(theta) @ v > 0:
            v, k = 0 * start, 0
        alpha = k / (k + 3)
        g = gradient(theta + alpha * v)
        v = alpha * v - lr * g
        theta, k = theta + v, k + 1
        path.append(theta)
    return np.array(path)


def step_of_a_restart_is_lost(gradient, start, lr, steps):
    """Set the velocity to zero before it moves the point."""
    theta, v, k, path = start, 0 * start, 0, [start]
    for _ in range(steps):
        alpha = k / (k + 3)
        g = gradient(theta + alpha * v)
        v = alpha * v - lr * g
        k += 1
        if np.dot(g, v) > 0:
            v, k = 0 * start, 0
        theta = theta + v
        path.append(theta)
    return np.array(path)


def restart_in_each_entry(gradient, start, lr, steps):
    """Drop the velocity of single parameters, and count on."""
    theta, v, k, path = start, 0 * start, 0, [start]
    for _ in range(steps):
        alpha = k / (k + 3)
        g = gradient(theta + alpha * v)
        v = alpha * v - lr * g
        theta, k = theta + v, k + 1
        v = np.where(g * v > 0, 0, v)
        path.append(theta)
    return np.array(path)


def brackets_forgotten_in_alpha(gradient, start, lr, steps):
    """Write k / k + 3."""
    theta, v, k, path = start, 0 * start, 0, [start]
    for _ in range(steps):
        alpha = k / k + 3 if k else 0
        g = gradient(theta + alpha * v)
        v = alpha * v - lr * g
        theta, k = theta + v, k + 1
        if g @ v > 0:
            v, k = 0 * start, 0
        path.append(theta)
    return np.array(path)


def constant_alpha(gradient, start, lr, steps):
    """Keep α at 0.9."""
    theta, v, path = start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta + 0.9 * v)
        v = 0.9 * v - lr * g
        theta = theta + v
        if g @ v > 0:
            v = 0 * start
        path.append(theta)
    return np.array(path)


# --- F-01: momentum_rate ------------------------------------------------------------------------


def determinant_of_the_matrix(lr, alpha, eigenvalues):
    """Return the determinant, by which areas shrink."""
    found = [np.linalg.det([[1 - lr * e, alpha], [-lr * e, alpha]]) for e in eigenvalues]
    return float(np.max(np.abs(found)))


def mean_over_the_directions(lr, alpha, eigenvalues):
    """Average the rates of all directions."""
    rates = [
        np.max(np.abs(np.linalg.eigvals([[1 - lr * e, alpha], [-lr * e, alpha]])))
        for e in eigenvalues
    ]
    return float(np.mean(rates))


def root_of_alpha_or_descent(lr, alpha, eigenvalues):
    """Take the larger one of √α and the rate of gradient descent."""
    return float(max(np.sqrt(alpha), np.max(np.abs(1 - lr * np.asarray(eigenvalues)))))


def velocity_with_a_plus(lr, alpha, eigenvalues):
    """Let the velocity point uphill."""
    rates = [
        np.max(np.abs(np.linalg.eigvals([[1 + lr * e, alpha], [lr * e, alpha]])))
        for e in eigenvalues
    ]
    return float(np.max(rates))


# --- L1-29: full_adagrad --------------------------------------------------------------------------


def root_of_the_root(gradient, start, lr, delta, steps):
    """Take the root twice: of the eigenvalues, and of the whole."""
    theta, path, S = start, [start], delta * np.eye(len(start))
    for _ in range(steps):
        g = gradient(theta)
        S = S + np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        theta = theta - lr * vectors @ (vectors.T @ g / values**0.25)
        path.append(theta)
    return np.array(path)


def delta_squared(gradient, start, lr, delta, steps):
    """Start S with δ², so that the root starts with δ."""
    theta, path, S = start, [start], delta**2 * np.eye(len(start))
    for _ in range(steps):
        g = gradient(theta)
        S = S + np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        theta = theta - lr * vectors @ (vectors.T @ g / np.sqrt(values))
        path.append(theta)
    return np.array(path)


def ones_for_the_identity(gradient, start, lr, delta, steps):
    """Start with a matrix of δs."""
    n = len(start)
    theta, path, S = start, [start], delta * np.ones((n, n))
    for _ in range(steps):
        g = gradient(theta)
        S = S + np.outer(g, g)
        values, vectors = np.linalg.eigh(S)
        root = vectors @ np.diag(np.sqrt(np.abs(values) + 1e-12)) @ vectors.T
        theta = theta - lr * np.linalg.solve(root, g)
        path.append(theta)
    return np.array(path)


# --- L1-30, L1-31: centered_rmsprop ---------------------------------------------------------------


def fractions_exchanged(gradient, start, lr, rho, delta, alpha, steps):
    """Give rho to the new values and 1 - rho to the old averages."""
    theta, path = start, [start]
    m, r, v = 0 * start, 0 * start, 0 * start
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        m = (1 - rho) * m + rho * g
        r = (1 - rho) * r + rho * g * g
        v = alpha * v - lr / np.sqrt(delta + r - m**2) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def mean_without_its_weight(gradient, start, lr, rho, delta, alpha, steps):
    """Add the whole gradient to the mean."""
    theta, path = start, [start]
    m, r, v = 0 * start, 0 * start, 0 * start
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        m = rho * m + g
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(np.maximum(delta + r - m**2, delta)) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


# --- L2-06: amsgrad -------------------------------------------------------------------------------


def largest_gradient(gradient, start, lr, beta1, beta2, delta, steps):
    """Divide by the largest gradient so far."""
    theta, m, largest, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        largest = np.maximum(largest, np.abs(g))
        theta = theta - lr * m / (1 - beta1**t) / (largest + delta)
        path.append(theta)
    return np.array(path)


def largest_step_instead(gradient, start, lr, beta1, beta2, delta, steps):
    """Keep the largest m̂ as well."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    top, largest = 0 * start, 0 * start
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        top = np.maximum(top, m / (1 - beta1**t))
        largest = np.maximum(largest, r / (1 - beta2**t))
        theta = theta - lr * top / (np.sqrt(largest) + delta)
        path.append(theta)
    return np.array(path)


def one_beta_for_both(gradient, start, lr, beta1, beta2, delta, steps):
    """Use beta1 for the squares as well."""
    theta, m, r, largest, path = start, 0 * start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta1 * r + (1 - beta1) * g**2
        largest = np.maximum(largest, r / (1 - beta1**t))
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(largest) + delta)
        path.append(theta)
    return np.array(path)


def steps_counted_across_calls(gradient, start, lr, beta1, beta2, delta, steps, count=[0]):  # noqa: B006
    """Keep the number of the step in a default argument, where it grows from call to call."""
    theta, m, r, largest, path = start, 0 * start, 0 * start, 0 * start, [start]
    for _ in range(steps):
        count[0] += 1
        t = count[0]
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        largest = np.maximum(largest, r / (1 - beta2**t))
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(largest) + delta)
        path.append(theta)
    return np.array(path)


def starts_with_a_large_maximum(gradient, start, lr, beta1, beta2, delta, steps):
    """Begin the maximum with tens."""
    theta, m, r, largest, path = start, 0 * start, 0 * start, 10 + 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        largest = np.maximum(largest, r / (1 - beta2**t))
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(largest) + delta)
        path.append(theta)
    return np.array(path)


# --- L2-05: unitless_adadelta ---------------------------------------------------------------------


def length_left_out(gradient, start, length, lr, rho, steps):
    """Start d with ones."""
    theta, path, r, d = start, [start], gradient(start) ** 2, np.ones_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(d / r) * g
        d = rho * d + (1 - rho) * change**2
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def rate_left_out(gradient, start, length, lr, rho, steps):
    """Ignore the rate."""
    theta, path, r, d = start, [start], gradient(start) ** 2, length**2 + 0 * start
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(d / r) * g
        d = rho * d + (1 - rho) * change**2
        theta = theta + change
        path.append(theta)
    return np.array(path)


def steps_uphill(gradient, start, length, lr, rho, steps):
    """Lose the minus sign of the change."""
    theta, path, r, d = start, [start], gradient(start) ** 2, length**2 + 0 * start
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = np.sqrt(d / r) * g
        d = rho * d + (1 - rho) * change**2
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def fraction_for_the_new_value(gradient, start, length, lr, rho, steps):
    """Give rho to the new value, as the second lecture does."""
    theta, path, r, d = start, [start], gradient(start) ** 2, length**2 + 0 * start
    for _ in range(steps):
        g = gradient(theta)
        r = (1 - rho) * r + rho * g * g
        change = -np.sqrt(d / r) * g
        d = (1 - rho) * d + rho * change**2
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


# --- F-03: adaptive_diagonal --------------------------------------------------------------------


def factor_over_m(gradients, batch):
    """Take (m − b)/m for the draws without repetition."""
    m, mean = len(gradients), gradients.mean(axis=0)
    return np.sqrt(mean**2 + gradients.var(axis=0) / batch * (m - batch) / m)


def squares_over_the_batch(gradients, batch):
    """Divide the mean of the squares by b."""
    return np.sqrt(np.mean(gradients**2, axis=0) / batch)


def mean_of_the_sizes(gradients, batch):
    """Average the sizes of the gradients."""
    return np.mean(np.abs(gradients), axis=0)


def consecutive_batches_only(gradients, batch):
    """Average over the minibatches that follow each other in the sample."""
    groups = [gradients[i : i + batch] for i in range(len(gradients) - batch + 1)]
    return np.sqrt(np.mean([group.mean(axis=0) ** 2 for group in groups], axis=0))


def roots_added(gradients, batch):
    """Add the mean and the standard deviation."""
    m = len(gradients)
    deviation = gradients.std(axis=0) * np.sqrt((m - batch) / (m - 1) / batch)
    return np.abs(gradients.mean(axis=0)) + deviation


# --- F-05:decoupled: decoupled_sgd ----------------------------------------------------------------


def decay_of_the_start(gradient, start, rates, alpha, decay):
    """Subtract the decay of the start in each step."""
    theta, b, path = start, 0 * start, [start]
    for lr in rates:
        b = alpha * b + gradient(theta)
        theta = theta - lr * decay * start - lr * b
        path.append(theta)
    return np.array(path)


def decay_by_the_sign(gradient, start, rates, alpha, decay):
    """Shrink by the sign of θ, which is the penalty of L1."""
    theta, b, path = start, 0 * start, [start]
    for lr in rates:
        b = alpha * b + gradient(theta)
        theta = theta - lr * decay * np.sign(theta) - lr * b
        path.append(theta)
    return np.array(path)


def no_momentum(gradient, start, rates, alpha, decay):
    """Write plain SGD."""
    theta, path = start, [start]
    for lr in rates:
        theta = (1 - lr * decay) * theta - lr * gradient(theta)
        path.append(theta)
    return np.array(path)


# --- F-05:schedule: warmup_cosine ---------------------------------------------------------------


def cosine_without_the_half(k, first, warmup, tau):
    """Forget the factor one half."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(np.pi * min((k - warmup) / tau, 1)))


def cosine_in_degrees(k, first, warmup, tau):
    """Give the cosine degrees."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(180 * min((k - warmup) / tau, 1))) / 2


# --- F-18: lion -----------------------------------------------------------------------------------


def normalized_in_place_of_the_sign(gradient, start, lr, beta1, beta2, decay, steps):
    """Divide the mean by its length."""
    theta, m, path = start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta)
        c = beta1 * m + (1 - beta1) * g
        theta = theta - lr * (c / np.linalg.norm(c) + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


def signs_averaged(gradient, start, lr, beta1, beta2, decay, steps):
    """Average the signs of the gradients in place of the gradients."""
    theta, m, path = start, 0 * start, [start]
    for _ in range(steps):
        g = np.sign(gradient(theta))
        theta = theta - lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * theta)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


def decay_left_out(gradient, start, lr, beta1, beta2, decay, steps):
    """Ignore the decay."""
    theta, m, path = start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr * np.sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


def decay_with_a_minus(gradient, start, lr, beta1, beta2, decay, steps):
    """Let the decay push θ away from zero."""
    theta, m, path = start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr * (np.sign(beta1 * m + (1 - beta1) * g) - decay * theta)
        m = beta2 * m + (1 - beta2) * g
        path.append(theta)
    return np.array(path)


def memory_lost(gradient, start, lr, beta1, beta2, decay, steps):
    """Set m to the newest part of the mean."""
    theta, m, path = start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr * (np.sign(beta1 * m + (1 - beta1) * g) + decay * theta)
        m = (1 - beta2) * g
        path.append(theta)
    return np.array(path)


# --- F-13: polar_iterates -------------------------------------------------------------------------


def result_of_the_last_step_alone(matrix, steps):
    """Return the last matrix without its path."""
    X = matrix / np.linalg.norm(matrix)
    for _ in range(steps):
        X = 1.5 * X - 0.5 * X @ X.T @ X
    return X


def divided_by_the_largest_entry(matrix, steps):
    """Divide by the largest entry."""
    path = [matrix / np.abs(matrix).max()]
    for _ in range(steps):
        X = path[-1]
        path.append(1.5 * X - 0.5 * X @ X.T @ X)
    return np.array(path)


def transposed_product(matrix, steps):
    """Write XᵀXX, which fits square matrices alone."""
    path = [matrix / np.linalg.norm(matrix)]
    for _ in range(steps):
        X = path[-1]
        path.append(1.5 * X - 0.5 * X.T @ X @ X)
    return np.array(path)


def cube_without_a_transpose(matrix, steps):
    """Write XXX."""
    path = [matrix / np.linalg.norm(matrix)]
    for _ in range(steps):
        X = path[-1]
        path.append(1.5 * X - 0.5 * X @ X @ X)
    return np.array(path)


def fixed_point_with_a_slope(matrix, steps):
    """Take p(s) = (3s − s³)/3, which has the slope 0 at 1 and not the value 1."""
    path = [matrix / np.linalg.norm(matrix)]
    for _ in range(steps):
        X = path[-1]
        path.append(X - X @ X.T @ X / 3)
    return np.array(path)


def factor_by_the_decomposition(matrix, steps):
    """Return the polar factor itself in every row."""
    U, _, V = np.linalg.svd(matrix, full_matrices=False)
    return np.array([matrix / np.linalg.norm(matrix)] + [U @ V] * steps)


def rows_normalized(matrix, steps):
    """Divide each row by its own norm."""
    path = [matrix / np.linalg.norm(matrix, axis=1, keepdims=True)]
    for _ in range(steps):
        X = path[-1]
        path.append(1.5 * X - 0.5 * X @ X.T @ X)
    return np.array(path)


# --- L1-32, L2-07: newton_line_search -------------------------------------------------------------


def search_along_the_gradient(value, gradient, hessian, start, damping, steps):
    """Search along −g."""
    theta, path = start, [start]
    for _ in range(steps):
        g, lr = gradient(theta), 1.0
        while value(theta - lr * g) > value(theta) - lr * (g @ g) / 4:
            lr /= 2
        theta = theta - lr * g
        path.append(theta)
    return np.array(path)


def nine_tenths_of_the_slope(value, gradient, hessian, start, damping, steps):
    """Ask for nine tenths of what the slope promises, and give up at a small η."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        d = -np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
        lr = 1.0
        while value(theta + lr * d) > value(theta) + 0.9 * lr * (g @ d) and lr > 1e-6:
            lr /= 2
        theta = theta + lr * d
        path.append(theta)
    return np.array(path)


def shrunk_by_a_tenth(value, gradient, hessian, start, damping, steps):
    """Multiply η by 0.9 in place of halving it."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        d = -np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
        lr = 1.0
        while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:
            lr *= 0.9
        theta = theta + lr * d
        path.append(theta)
    return np.array(path)


def damping_relative_to_the_diagonal(value, gradient, hessian, start, damping, steps):
    """Scale the damping by the diagonal of H, as Marquardt does."""
    theta, path = start, [start]
    for _ in range(steps):
        g, H = gradient(theta), hessian(theta)
        d = -np.linalg.solve(H + damping * np.diag(np.diag(H)), g)
        lr = 1.0
        while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:
            lr /= 2
        theta = theta + lr * d
        path.append(theta)
    return np.array(path)


def trial_points_in_the_path(value, gradient, hessian, start, damping, steps):
    """Collect the rejected points, too."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        d = -np.linalg.solve(hessian(theta) + damping * np.eye(len(g)), g)
        lr = 1.0
        while value(theta + lr * d) > value(theta) + lr * (g @ d) / 4:
            path.append(theta + lr * d)
            lr /= 2
        theta = theta + lr * d
        path.append(theta)
    return np.array(path)


# --- P-07: preconditioned_descent ---------------------------------------------------------------


def gradient_at_p_theta(gradient, preconditioner, start, lr, steps):
    """Take the start for z, and multiply by P on the way out."""
    P, z = preconditioner, start
    path = [P @ z]
    for _ in range(steps):
        z = z - lr * P.T @ gradient(P @ z)
        path.append(P @ z)
    return np.array(path)


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-24, L1-25, F-15": (
        mean_of_the_newest_and_the_last_mean,
        means_without_the_iterates_before,
        mean_over_all_axes,
    ),
    "L1-26, L1-27": (
        restart_tested_before_the_step,
        step_of_a_restart_is_lost,
        restart_in_each_entry,
        brackets_forgotten_in_alpha,
        constant_alpha,
    ),
    "F-01": (
        determinant_of_the_matrix,
        mean_over_the_directions,
        root_of_alpha_or_descent,
        velocity_with_a_plus,
    ),
    "L1-29": (
        root_of_the_root,
        delta_squared,
        ones_for_the_identity,
    ),
    "L1-30, L1-31": (
        fractions_exchanged,
        mean_without_its_weight,
    ),
    "L2-06": (
        largest_gradient,
        largest_step_instead,
        one_beta_for_both,
        steps_counted_across_calls,
        starts_with_a_large_maximum,
    ),
    "L2-05": (
        length_left_out,
        rate_left_out,
        steps_uphill,
        fraction_for_the_new_value,
    ),
    "F-03": (
        factor_over_m,
        squares_over_the_batch,
        mean_of_the_sizes,
        consecutive_batches_only,
        roots_added,
    ),
    "F-05:decoupled": (
        decay_of_the_start,
        decay_by_the_sign,
        no_momentum,
    ),
    "F-05:schedule": (
        cosine_without_the_half,
        cosine_in_degrees,
    ),
    "F-18": (
        normalized_in_place_of_the_sign,
        signs_averaged,
        decay_left_out,
        decay_with_a_minus,
        memory_lost,
    ),
    "F-13": (
        result_of_the_last_step_alone,
        divided_by_the_largest_entry,
        transposed_product,
        cube_without_a_transpose,
        fixed_point_with_a_slope,
        factor_by_the_decomposition,
        rows_normalized,
    ),
    "L1-32, L2-07": (
        search_along_the_gradient,
        nine_tenths_of_the_slope,
        shrunk_by_a_tenth,
        damping_relative_to_the_diagonal,
        trial_points_in_the_path,
    ),
    "P-07": (gradient_at_p_theta,),
}
