"""Wrong answers to the exercises of optimizers."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- L1-24, L1-25: sgd --------------------------------------------------------------------------


def decay_counted_from_one(gradient, start, batches, first, tau):
    """Number the iterations from 1."""
    theta, path = start, [start]
    for k, batch in enumerate(batches, 1):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def decay_never_ends(gradient, start, batches, first, tau):
    """Let alpha grow beyond 1, so that the rate turns negative."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = k / tau
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def decay_to_zero(gradient, start, batches, first, tau):
    """Let the rate end at 0 in place of one hundredth."""
    theta, path = start, [start]
    for k in range(len(batches)):
        lr = first * max(1 - k / tau, 0)
        theta = theta - lr * np.mean([gradient(theta, z) for z in batches[k]], axis=0)
        path.append(theta)
    return np.array(path)


def gradients_of_the_minibatch_summed(gradient, start, batches, first, tau):
    """Add the gradients of a minibatch up."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * sum(gradient(theta, z) for z in batch)
        path.append(theta)
    return np.array(path)


def step_after_each_example(gradient, start, batches, first, tau):
    """Move after each example of a minibatch, with 1/n of the rate."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        for z in batch:
            theta = theta - lr / len(batch) * gradient(theta, z)
        path.append(theta)
    return np.array(path)


def rates_exchanged(gradient, start, batches, first, tau):
    """Weigh the first rate by alpha and the last by 1 - alpha."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = alpha * first + (1 - alpha) * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def decay_by_whole_division(gradient, start, batches, first, tau):
    """Compute k // tau, so that the rate falls at once."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k // tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01 * first
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


def last_rate_absolute(gradient, start, batches, first, tau):
    """Take 0.01 for the last rate, not 0.01 times the first."""
    theta, path = start, [start]
    for k, batch in enumerate(batches):
        alpha = min(k / tau, 1)
        lr = (1 - alpha) * first + alpha * 0.01
        theta = theta - lr * np.mean([gradient(theta, z) for z in batch], axis=0)
        path.append(theta)
    return np.array(path)


# --- L1-26: momentum ----------------------------------------------------------------------------


def damped_gradient(gradient, start, lr, alpha, steps):
    """Weigh the gradient by 1 - alpha, as in a moving average."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - (1 - alpha) * lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def moved_by_the_old_velocity(gradient, start, lr, alpha, steps):
    """Move first and update the velocity afterwards, with the gradient at the new point."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        theta = theta + v
        v = alpha * v - lr * gradient(theta)
        path.append(theta)
    return np.array(path)


def velocity_forgotten(gradient, start, lr, alpha, steps):
    """Set the velocity to zero inside the loop."""
    theta, path = start, [start]
    for _ in range(steps):
        v = np.zeros_like(start)
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
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


def gradient_where_you_are(gradient, start, lr, alpha, steps):
    """Take the gradient at theta: plain momentum."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def looked_ahead_by_the_whole_velocity(gradient, start, lr, alpha, steps):
    """Look ahead by v in place of alpha v."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta + v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def looked_behind(gradient, start, lr, alpha, steps):
    """Subtract alpha v for the interim point."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta - alpha * v)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def path_of_the_interim_points(gradient, start, lr, alpha, steps):
    """Return the interim points."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        v = alpha * v - lr * gradient(theta + alpha * v)
        theta = theta + v
        path.append(theta + alpha * v)
    return np.array(path)


def moved_from_the_interim_point(gradient, start, lr, alpha, steps):
    """Add the new velocity to the interim point."""
    theta, v, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        theta = theta + alpha * v
        v = alpha * v - lr * gradient(theta)
        theta = theta + v
        path.append(theta)
    return np.array(path)


def nesterov_one_row_short(gradient, start, lr, alpha, steps):
    """Run steps - 1 steps, so that the path has steps rows."""
    path, v = [start], 0 * start
    while len(path) < steps:
        v = alpha * v - lr * gradient(path[-1] + alpha * v)
        path.append(path[-1] + v)
    return np.array(path)


# --- L1-29: adagrad -----------------------------------------------------------------------------


def delta_inside_the_root(gradient, start, lr, delta, steps):
    """Put delta under the root."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g * g
        theta = theta - lr / np.sqrt(delta + r) * g
        path.append(theta)
    return np.array(path)


def newest_square_only(gradient, start, lr, delta, steps):
    """Overwrite r in place of adding to it."""
    theta, path = start, [start]
    for _ in range(steps):
        g = gradient(theta)
        r = g * g
        theta = theta - lr / (delta + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


def squares_without_a_root(gradient, start, lr, delta, steps):
    """Divide by r, without its root."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = r + g**2
        theta = theta - lr / (delta + r) * g
        path.append(theta)
    return np.array(path)


def divided_by_the_old_squares(gradient, start, lr, delta, steps):
    """Add the newest square after the step."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        theta = theta - lr / (delta + np.sqrt(r)) * g
        r = r + g * g
        path.append(theta)
    return np.array(path)


def one_rate_for_all(gradient, start, lr, delta, steps):
    """Sum the squares over all parameters."""
    theta, r, path = start, 0.0, [start]
    for _ in range(steps):
        g = gradient(theta)
        r += g @ g
        theta = theta - lr / (delta + np.sqrt(r)) * g
        path.append(theta)
    return np.array(path)


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


def delta_outside_the_root(gradient, start, lr, rho, delta, alpha, steps):
    """Add delta after the root, as AdaGrad does."""
    theta, path = start, [start]
    r, v = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = rho * r + (1 - rho) * g * g
        v = alpha * v - lr / (delta + np.sqrt(r)) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


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


def no_look_ahead(gradient, start, lr, rho, delta, alpha, steps):
    """Take the gradient at theta."""
    theta, path = start, [start]
    r, v = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g**2
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def squares_summed_forever(gradient, start, lr, rho, delta, alpha, steps):
    """Add the squares up as in AdaGrad."""
    theta, path = start, [start]
    r, v = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta + alpha * v)
        r = r + g * g
        v = alpha * v - lr / np.sqrt(delta + r) * g
        theta = theta + v
        path.append(theta)
    return np.array(path)


def momentum_left_out(gradient, start, lr, rho, delta, alpha, steps):
    """Write RMSProp alone, for any alpha."""
    theta, r, path = start, np.zeros_like(start), [start]
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        theta = theta - lr / np.sqrt(delta + r) * g
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


def steps_averaged_too_early(gradient, start, lr, rho, delta, steps):
    """Update d with the last change before the new change is made."""
    theta, path = start, [start]
    r, d, change = 0 * start, 0 * start, 0 * start
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        change = -np.sqrt(delta + d) / np.sqrt(delta + r) * g
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


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


def rate_inside_the_change(gradient, start, lr, rho, delta, steps):
    """Multiply the change by the rate before it is averaged."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -lr * np.sqrt(delta + d) / np.sqrt(delta + r) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + change
        path.append(theta)
    return np.array(path)


def deltas_outside_both_roots(gradient, start, lr, rho, delta, steps):
    """Add delta to the roots."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -(np.sqrt(d) + delta) / (np.sqrt(r) + delta) * g
        d = rho * d + (1 - rho) * change * change
        theta = theta + lr * change
        path.append(theta)
    return np.array(path)


def quotient_of_gradients_and_steps(gradient, start, lr, rho, delta, steps):
    """Put the squared gradients above and the squared steps below."""
    theta, path = start, [start]
    r, d = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        r = rho * r + (1 - rho) * g * g
        change = -np.sqrt(delta + r) / np.sqrt(delta + d) * g
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


def bias_left_in(gradient, start, lr, beta1, beta2, delta, steps):
    """Leave both hats out."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for _ in range(steps):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


def adam_counts_from_zero(gradient, start, lr, beta1, beta2, delta, steps):
    """Give the first step t = 0, and divide by zero."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(steps):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        path.append(theta)
    return np.array(path)


def adam_counts_from_two(gradient, start, lr, beta1, beta2, delta, steps):
    """Use t + 1 where t already starts at 1."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1 ** (t + 1)), r / (1 - beta2 ** (t + 1))
        theta = theta - lr * m_hat / (np.sqrt(r_hat) + delta)
        path.append(theta)
    return np.array(path)


def adam_delta_inside(gradient, start, lr, beta1, beta2, delta, steps):
    """Put delta under the root."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        m_hat, r_hat = m / (1 - beta1**t), r / (1 - beta2**t)
        theta = theta - lr * m_hat / np.sqrt(r_hat + delta)
        path.append(theta)
    return np.array(path)


def hats_fed_back(gradient, start, lr, beta1, beta2, delta, steps):
    """Overwrite the averages with their corrected values."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = (beta1 * m + (1 - beta1) * g) / (1 - beta1**t)
        r = (beta2 * r + (1 - beta2) * g * g) / (1 - beta2**t)
        theta = theta - lr * m / (np.sqrt(r) + delta)
        path.append(theta)
    return np.array(path)


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


def only_the_mean_corrected(gradient, start, lr, beta1, beta2, delta, steps):
    """Correct the mean and leave the squares."""
    theta, path = start, [start]
    m, r = np.zeros_like(start), np.zeros_like(start)
    for t in range(1, steps + 1):
        g = gradient(theta)
        m = beta1 * m + (1 - beta1) * g
        r = beta2 * r + (1 - beta2) * g * g
        theta = theta - lr * (m / (1 - beta1**t)) / (np.sqrt(r) + delta)
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


def damping_on_every_entry(gradient, hessian, start, lr, damping, steps):
    """Add the damping to all entries of H, not to its diagonal."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * np.linalg.solve(hessian(theta) + damping, gradient(theta))
        path.append(theta)
    return np.array(path)


def hessian_of_the_start(gradient, hessian, start, lr, damping, steps):
    """Compute the Hessian once, at the start."""
    H = hessian(start) + damping * np.eye(len(start))
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - lr * np.linalg.solve(H, gradient(path[-1])))
    return np.array(path)


def reciprocal_entries(gradient, hessian, start, lr, damping, steps):
    """Divide by the entries of H where a system has to be solved."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) + damping * np.eye(len(theta))
        theta = theta - lr * (1 / H) @ gradient(theta)
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


def damping_subtracted(gradient, hessian, start, lr, damping, steps):
    """Subtract the damping."""
    theta, path = start, [start]
    for _ in range(steps):
        H = hessian(theta) - damping * np.eye(len(theta))
        theta = theta - lr * np.linalg.solve(H, gradient(theta))
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


def multiplied_by_p_once(gradient, preconditioner, start, lr, steps):
    """Multiply the gradient by P alone."""
    theta, path = start, [start]
    for _ in range(steps):
        theta = theta - lr * preconditioner @ gradient(theta)
        path.append(theta)
    return np.array(path)


def transpose_on_the_left(gradient, preconditioner, start, lr, steps):
    """Write PᵀP."""
    P, path = preconditioner, [start]
    for _ in range(steps):
        path.append(path[-1] - lr * P.T @ P @ gradient(path[-1]))
    return np.array(path)


def path_of_z(gradient, preconditioner, start, lr, steps):
    """Return the path of z."""
    P = preconditioner
    z = np.linalg.solve(P, start)
    path = [z]
    for _ in range(steps):
        z = z - lr * P.T @ gradient(P @ z)
        path.append(z)
    return np.array(path)


def p_squared(gradient, preconditioner, start, lr, steps):
    """Multiply by P twice, without the transpose."""
    P, path = preconditioner, [start]
    for _ in range(steps):
        path.append(path[-1] - lr * P @ P @ gradient(path[-1]))
    return np.array(path)


def gradient_at_p_theta(gradient, preconditioner, start, lr, steps):
    """Take the start for z, and multiply by P on the way out."""
    P, z = preconditioner, start
    path = [P @ z]
    for _ in range(steps):
        z = z - lr * P.T @ gradient(P @ z)
        path.append(P @ z)
    return np.array(path)


def preconditioner_inverted(gradient, preconditioner, start, lr, steps):
    """Solve with PPᵀ in place of multiplying."""
    M = preconditioner @ preconditioner.T
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - lr * np.linalg.solve(M, gradient(path[-1])))
    return np.array(path)


# --- F-01: momentum_rate ------------------------------------------------------------------------


def larger_eigenvalue_with_its_sign(lr, alpha, eigenvalues):
    """Take the largest real part of all eigenvalues."""
    found = [np.linalg.eigvals([[1 - lr * e, alpha], [-lr * e, alpha]]) for e in eigenvalues]
    return float(np.max(np.real(found)))


def determinant_of_the_matrix(lr, alpha, eigenvalues):
    """Return the determinant, by which areas shrink."""
    found = [np.linalg.det([[1 - lr * e, alpha], [-lr * e, alpha]]) for e in eigenvalues]
    return float(np.max(np.abs(found)))


def smallest_eigenvalue_alone(lr, alpha, eigenvalues):
    """Look along the flattest direction alone."""
    e = np.min(eigenvalues)
    return float(np.max(np.abs(np.linalg.eigvals([[1 - lr * e, alpha], [-lr * e, alpha]]))))


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


def variance_over_m_minus_one(gradients, batch):
    """Estimate the variance with m − 1, beside the factor that has it already."""
    m, mean = len(gradients), gradients.mean(axis=0)
    variance = gradients.var(axis=0, ddof=1)
    return np.sqrt(mean**2 + variance / batch * (m - batch) / (m - 1))


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


def penalty_in_the_gradient(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Add the penalty to the gradient, as torch's Adam does."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta) + decay * theta
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        step = m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        theta = theta - lr * step
        path.append(theta)
    return np.array(path)


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


def decay_without_the_rate(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Shrink by 1 − ω, whatever the learning rate is."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        step = m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        theta = theta * (1 - decay) - lr * step
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


def decay_at_the_end(gradient, start, lr, beta1, beta2, decay, delta, steps):
    """Shrink the new θ in place of the old one."""
    theta, m, r, path = start, 0 * start, 0 * start, [start]
    for t in range(1, steps + 1):
        g = gradient(theta)
        m, r = beta1 * m + (1 - beta1) * g, beta2 * r + (1 - beta2) * g**2
        step = m / (1 - beta1**t) / (np.sqrt(r / (1 - beta2**t)) + delta)
        theta = (theta - lr * step) * (1 - lr * decay)
        path.append(theta)
    return np.array(path)


# --- F-05:schedule: warmup_cosine ---------------------------------------------------------------


def zero_in_the_first_iteration(k, first, warmup, tau):
    """Begin the warm-up with the rate 0."""
    if k < warmup:
        return first * k / warmup
    return first * (1 + np.cos(np.pi * min((k - warmup) / tau, 1))) / 2


def warmup_within_tau(k, first, warmup, tau):
    """Let the whole schedule end at τ."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(np.pi * min((k - warmup) / max(tau - warmup, 1), 1))) / 2


def periodic_cosine(k, first, warmup, tau):
    """Forget that the rate stays at 0."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(np.pi * (k - warmup) / tau)) / 2


def cosine_without_the_half(k, first, warmup, tau):
    """Forget the factor one half."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(np.pi * min((k - warmup) / tau, 1)))


def line_in_place_of_the_cosine(k, first, warmup, tau):
    """Let the rate fall along a line."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 - min((k - warmup) / tau, 1))


def cosine_in_degrees(k, first, warmup, tau):
    """Give the cosine degrees."""
    if k < warmup:
        return first * (k + 1) / warmup
    return first * (1 + np.cos(180 * min((k - warmup) / tau, 1))) / 2


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-24, L1-25": (
        decay_counted_from_one,
        decay_never_ends,
        decay_to_zero,
        gradients_of_the_minibatch_summed,
        step_after_each_example,
        rates_exchanged,
        decay_by_whole_division,
        last_rate_absolute,
    ),
    "L1-26": (
        damped_gradient,
        moved_by_the_old_velocity,
        velocity_forgotten,
        rate_and_momentum_exchanged,
        velocity_subtracted,
        path_of_the_velocity,
        velocity_starts_with_the_gradient,
    ),
    "L1-27": (
        gradient_where_you_are,
        looked_ahead_by_the_whole_velocity,
        looked_behind,
        path_of_the_interim_points,
        moved_from_the_interim_point,
        nesterov_one_row_short,
    ),
    "L1-29": (
        delta_inside_the_root,
        newest_square_only,
        squares_without_a_root,
        divided_by_the_old_squares,
        one_rate_for_all,
        brackets_missing_around_delta,
        delta_of_the_library,
    ),
    "L1-30, L1-31": (
        delta_outside_the_root,
        shares_exchanged,
        no_look_ahead,
        squares_summed_forever,
        momentum_left_out,
        average_starts_at_one,
        average_not_squared,
    ),
    "L2-05": (
        steps_averaged_too_early,
        no_delta_above,
        rate_inside_the_change,
        deltas_outside_both_roots,
        quotient_of_gradients_and_steps,
        rate_left_out,
        steps_uphill,
    ),
    "L2-06": (
        bias_left_in,
        adam_counts_from_zero,
        adam_counts_from_two,
        adam_delta_inside,
        hats_fed_back,
        one_beta_for_both,
        steps_counted_across_calls,
        beta_times_t,
        only_the_mean_corrected,
    ),
    "L1-32, L2-07": (
        damping_left_out,
        damping_on_every_entry,
        hessian_of_the_start,
        reciprocal_entries,
        full_newton_step,
        damping_subtracted,
        damping_relative_to_the_diagonal,
    ),
    "P-07": (
        multiplied_by_p_once,
        transpose_on_the_left,
        path_of_z,
        p_squared,
        gradient_at_p_theta,
        preconditioner_inverted,
    ),
    "F-01": (
        larger_eigenvalue_with_its_sign,
        determinant_of_the_matrix,
        smallest_eigenvalue_alone,
        mean_over_the_directions,
        root_of_alpha_or_descent,
        velocity_with_a_plus,
    ),
    "F-03": (
        variance_over_m_minus_one,
        factor_over_m,
        squares_over_the_batch,
        mean_of_the_sizes,
        consecutive_batches_only,
        roots_added,
    ),
    "F-05:adamw": (
        penalty_in_the_gradient,
        decay_of_the_start,
        decay_by_the_sign,
        decay_without_the_rate,
        biased_averages_with_decay,
        decay_at_the_end,
    ),
    "F-05:schedule": (
        zero_in_the_first_iteration,
        warmup_within_tau,
        periodic_cosine,
        cosine_without_the_half,
        line_in_place_of_the_cosine,
        cosine_in_degrees,
    ),
}
