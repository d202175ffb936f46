"""Wrong answers to the exercises of optimizers."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-24, L1-25: sgd --------------------------------------------------------------------------


def decay_by_whole_division(gradient, start, batches, first, tau):
    """Compute k // tau, so that the rate falls at once."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k // tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


# --- L1-26: momentum ----------------------------------------------------------------------------


def moved_by_the_old_velocity(gradient, start, lr, alpha, steps):
    """Move first and update the velocity afterwards, with the gradient at the new point."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        theta = theta + v
        v = alpha * v - lr * gradient(theta)
        path.append(theta)
    return np.array(path)


def rate_and_momentum_exchanged(gradient, start, lr, alpha, steps):
    """Swap the roles of lr and alpha."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = lr * v - alpha * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def velocity_subtracted(gradient, start, lr, alpha, steps):
    """Subtract a velocity that already holds the minus sign."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta - v
        path.append(theta)
    return np.array(path)


def path_of_the_velocity(gradient, start, lr, alpha, steps):
    """Collect the velocity in place of the point."""
    theta, v, path = start, np.zeros_like(start), [np.zeros_like(start)]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(v)
    return np.array(path)


def velocity_starts_with_the_gradient(gradient, start, lr, alpha, steps):
    """Start the velocity with the first gradient in place of zero."""
    theta, v, path = start, gradient(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


# --- L1-27: nesterov ----------------------------------------------------------------------------


def nesterov_one_row_short(gradient, start, lr, alpha, steps):
    """Run steps - 1 steps, so that the path has steps rows."""
    path, v = [start], 0 * start
    while len(path) < steps:
        v = alpha * v - lr * gradient(path[-1] + alpha * v)
        path.append(path[-1] + v)
    return np.array(path)


# --- L1-29: adagrad -----------------------------------------------------------------------------


def brackets_missing_around_delta(gradient, start, lr, delta, steps):
    """Write lr / delta + √r."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / delta + np.sqrt(r) * g
        path.append(theta)
    return np.array(path)


def delta_of_the_library(gradient, start, lr, delta, steps):
    """Use 1e-7 whatever delta is given."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / (1e-7 + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


# --- L1-30, L1-31: rmsprop ----------------------------------------------------------------------


def shares_exchanged(gradient, start, lr, rho, delta, alpha, steps):
    """Give rho to the new square and 1 - rho to the old average."""
    theta, path = start, [start]
    r, v = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = (1 - rho) * r + rho * g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def average_starts_at_one(gradient, start, lr, rho, delta, alpha, steps):
    """Start r with ones."""
    theta, path = start, [start]
    r, v = np.ones_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def average_not_squared(gradient, start, lr, rho, delta, alpha, steps):
    """Average the absolute value of the gradient, and take the root of it all the same."""
    theta, path = start, [start]
    r, v = 0 * start, 0 * start
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * abs(g)
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


# --- L2-05: adadelta ----------------------------------------------------------------------------


def no_delta_above(gradient, start, lr, rho, delta, steps):
    """Leave delta out of the upper root, so that nothing ever moves."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def rate_left_out(gradient, start, lr, rho, delta, steps):
    """Ignore the rate."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt((delta + d) / (delta + r)) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + change
        path.append(theta)
    return np.array(path)


def steps_uphill(gradient, start, lr, rho, delta, steps):
    """Lose the minus sign of the change."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


# --- L2-06: adam --------------------------------------------------------------------------------


def one_beta_for_both(gradient, start, lr, beta1, beta2, delta, steps):
    """Use beta1 for the squares as well."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta1 * r + (1 - beta1) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta1**t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def steps_counted_across_calls(gradient, start, lr, beta1, beta2, delta, steps, count=[0]):  # noqa: B006
    """Keep the number of the step in a default argument, where it grows from call to call."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        count[0] += 1
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1 ** count[0]), r / (1 - beta2 ** count[0])
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def beta_times_t(gradient, start, lr, beta1, beta2, delta, steps):
    """Multiply beta by t in place of raising it to the power."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1 * t), r / (1 - beta2 * t)
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


# --- L1-32, L2-07: newton -----------------------------------------------------------------------


def damping_left_out(gradient, hessian, start, lr, damping, steps):
    """Solve with H alone."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(hessian(theta), gradient(theta))
        path.append(theta)
    return np.array(path)


def full_newton_step(gradient, hessian, start, lr, damping, steps):
    """Ignore the rate."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - np.linalg.solve(H, gradient(theta))
        path.append(theta)
    return np.array(path)


def damping_relative_to_the_diagonal(gradient, hessian, start, lr, damping, steps):
    """Scale the damping by the diagonal of H, as Marquardt does."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta)
        H = H + damping * np.diag(np.diag(H))
        theta = theta - lr * np.linalg.solve(H, gradient(theta))
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


# --- F-05:adamw: adamw --------------------------------------------------------------------------


def decay_of_the_start(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Subtract the decay of the start in each step."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        step = m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        theta = theta - lr * decay * start - lr * step
        path.append(theta)
    return np.array(path)


def decay_by_the_sign(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Shrink by the sign of θ, which is the penalty of L1."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        step = m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        theta = theta - lr * decay * np.sign(theta) - lr * step
        path.append(theta)
    return np.array(path)


def biased_averages_with_decay(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Leave the bias of both averages as it is."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for _ in range(steps):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        theta = theta * (1 - lr * decay) - lr * m / (np.sqrt(r) + delta)
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


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-24, L1-25": (decay_by_whole_division,),
    "L1-26": (
        moved_by_the_old_velocity,
        rate_and_momentum_exchanged,
        velocity_subtracted,
        path_of_the_velocity,
        velocity_starts_with_the_gradient,
    ),
    "L1-27": (nesterov_one_row_short,),
    "L1-29": (
        brackets_missing_around_delta,
        delta_of_the_library,
    ),
    "L1-30, L1-31": (
        shares_exchanged,
        average_starts_at_one,
        average_not_squared,
    ),
    "L2-05": (
        no_delta_above,
        rate_left_out,
        steps_uphill,
    ),
    "L2-06": (
        one_beta_for_both,
        steps_counted_across_calls,
        beta_times_t,
    ),
    "L1-32, L2-07": (
        damping_left_out,
        full_newton_step,
        damping_relative_to_the_diagonal,
    ),
    "P-07": (gradient_at_p_theta,),
    "F-01": (
        determinant_of_the_matrix,
        mean_over_the_directions,
        root_of_alpha_or_descent,
        velocity_with_a_plus,
    ),
    "F-03": (
        factor_over_m,
        squares_over_the_batch,
        mean_of_the_sizes,
        consecutive_batches_only,
        roots_added,
    ),
    "F-05:adamw": (
        decay_of_the_start,
        decay_by_the_sign,
        biased_averages_with_decay,
    ),
    "F-05:schedule": (
        cosine_without_the_half,
        cosine_in_degrees,
    ),
}
