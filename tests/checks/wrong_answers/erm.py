"""Wrong answers to the exercises of erm."""

# mypy: allow-untyped-defs
# ruff: noqa: B905

import numpy as np

from optdl.checks.exercise import Function

# --- L1-01: risk_estimate -----------------------------------------------------------------------


def summed_losses(loss, model, theta, x, y):
    """Add the losses up and forget to average them."""
    losses = loss(model(x, theta), y)
    return np.sum(losses), np.std(losses) / np.sqrt(len(y))


def stopped_one_example_early(loss, model, theta, x, y):
    """Leave the last example out of the loop, and still divide by all of them."""
    predictions = model(x, theta)
    losses = [loss(predictions[i], y[i]) for i in range(len(y) - 1)]
    return sum(losses) / len(y), np.std(losses) / np.sqrt(len(y))


def estimate_alone(loss, model, theta, x, y):
    """Return the mean loss without its deviation."""
    return np.mean(loss(model(x, theta), y))


# --- L1-03: logistic_loss -----------------------------------------------------------------------


def logistic_value_alone(margin):
    """Return the loss without its derivative."""
    return np.logaddexp(0, -margin) / np.log(2)


def rising_logistic_slope(margin):
    """Lose the minus sign of the inner derivative."""
    value = np.logaddexp(0, -margin) / np.log(2)
    return value, 1 / (1 + np.exp(margin)) / np.log(2)


def slope_without_the_base(margin):
    """Forget the factor 1 / ln 2 in the derivative alone."""
    return np.logaddexp2(0, -margin / np.log(2)), -1 / (1 + np.exp(margin))


def slope_by_differences(margin):
    """Compute the derivative by a forward difference, right to a few digits only."""
    step = 1e-6
    value = np.logaddexp(0, -margin) / np.log(2)
    return value, (np.logaddexp(0, -(margin + step)) / np.log(2) - value) / step


def value_and_slope_in_rows(margin):
    """Return a list of pairs, one for each margin, in place of two arrays."""
    value = np.logaddexp(0, -margin) / np.log(2)
    slope = -1 / (1 + np.exp(margin)) / np.log(2)
    return [(float(a), float(b)) for a, b in zip(value, slope)]


# --- L1-03:hinge: hinge_risk_gradient -----------------------------------------------------------


def hinge_gradient_upwards(w, x, y):
    """Forget the minus sign."""
    active = y * (x @ w) < 1
    return x.T @ (active * y) / len(y)


def hinge_in_whole_numbers(w, x, y):
    """Collect the gradient in an integer array, which cuts the decimals off."""
    gradient = np.zeros(len(w), dtype=int)
    for j in range(len(w)):
        gradient[j] = sum(-y[i] * x[i, j] for i in range(len(y)) if y[i] * (x[i] @ w) < 1) / len(y)
    return gradient


# --- L1-05: early_stopping ----------------------------------------------------------------------


def one_epoch_too_patient(validation_errors, patience):
    """Halt only when patience is exceeded."""
    best = 0
    for epoch, error in enumerate(validation_errors):
        if error < validation_errors[best]:
            best = epoch
        if epoch - best > patience:
            return best, epoch
    return best, len(validation_errors) - 1


def epochs_from_one(validation_errors, patience):
    """Number the epochs from 1."""
    best, lowest = 1, validation_errors[0]
    for epoch, error in enumerate(validation_errors, start=1):
        if error < lowest:
            best, lowest = epoch, error
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors)


def no_answer_without_a_halt(validation_errors, patience):
    """Return only inside the loop, so that nothing comes back when patience never runs out."""
    best = 0
    for epoch, error in enumerate(validation_errors):
        if error < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return None


def error_in_place_of_its_epoch(validation_errors, patience):
    """Return the lowest error where the epoch is asked for."""
    best = 0
    for epoch, error in enumerate(validation_errors):
        if error < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return validation_errors[best], epoch
    return validation_errors[best], len(validation_errors) - 1


# --- L1-06: softmax_noise -----------------------------------------------------------------------


def features_forgotten(weights, x, labels):
    """Take the norm of the residual for that of the gradient."""
    scores = np.exp(x @ weights)
    residual = np.eye(weights.shape[1])[labels] - scores / scores.sum(axis=1, keepdims=True)
    norm = np.linalg.norm(x.T @ residual / len(x))
    return norm, np.sqrt(np.abs(np.mean(np.sum(residual**2, axis=1)) - norm**2))


def noise_in_single_precision(weights, x, labels):
    """Work in float32."""
    x, weights = x.astype(np.float32), weights.astype(np.float32)
    scores = np.exp(x @ weights)
    p = scores / scores.sum(axis=1, keepdims=True)
    residual = np.eye(weights.shape[1], dtype=np.float32)[labels] - p
    each = (x[:, :, None] * residual[:, None, :]).reshape(len(x), -1)
    mean = each.mean(axis=0)
    return np.linalg.norm(mean), np.sqrt(np.mean(np.sum((each - mean) ** 2, axis=1)))


def spread_of_each_entry(weights, x, labels):
    """Average over the entries of the gradient, too."""
    scores = np.exp(x @ weights)
    residual = np.eye(weights.shape[1])[labels] - scores / scores.sum(axis=1, keepdims=True)
    each = (x[:, :, None] * residual[:, None, :]).reshape(len(x), -1)
    return np.linalg.norm(each.mean(axis=0)), np.mean(each.std(axis=0))


# --- L1-07: standard_error ----------------------------------------------------------------------


def population_ignored(sigma, n, population=None):
    """Return σ/√n whatever the population is."""
    return sigma / np.sqrt(n)


def population_always_needed(sigma, n, population=None):
    """Compute with the population even when it is None, which raises."""
    return sigma / np.sqrt(n) * np.sqrt((population - n) / (population - 1))


def correction_by_whole_division(sigma, n, population=None):
    """Divide with //, so that the correction becomes 0 or 1."""
    error = sigma / n**0.5
    if population is not None:
        error *= ((population - n) // (population - 1)) ** 0.5
    return error


# --- L1-07:size: examples_needed ----------------------------------------------------------------


def one_example_more(error, sigma, population=None):
    """Go one example too far."""
    n = (sigma / error) ** 2
    if population is not None:
        n = n * population / (population - 1 + n)
    return int(n) + 2


def population_between_the_two(error, sigma, population=None):
    """Apply the factor of the variance to the size, with N over N − 1."""
    n = (sigma / error) ** 2
    if population is not None:
        n = min(population, n * (population - 1) / population)
    return int(np.ceil(n))


# --- L1-09: minibatches -------------------------------------------------------------------------


def remainder_first(m, n, rng):
    """Put the smaller minibatch first."""
    order = rng.permutation(m)
    cuts = np.arange(m % n, m, n) if m % n else np.arange(n, m, n)
    return np.split(order, cuts)


def shuffled_for_each_minibatch(m, n, rng):
    """Draw a new permutation for each minibatch, so that examples repeat."""
    return [rng.permutation(m)[: min(n, m - start)] for start in range(0, m, n)]


def examples_from_one(m, n, rng):
    """Number the examples from 1."""
    order = rng.permutation(m) + 1
    return [order[start : start + n] for start in range(0, m, n)]


def shuffled_by_another_generator(m, n, rng):
    """Make a generator of its own and leave rng unused."""
    order = np.random.RandomState(0).permutation(m)
    return [order[start : start + n] for start in range(0, m, n)]


def last_minibatch_filled_up(m, n, rng):
    """Fill the last minibatch with examples from the front."""
    order = rng.permutation(m)
    return [np.take(order, range(start, start + n), mode="wrap") for start in range(0, m, n)]


# --- L1-10: error_amplification -----------------------------------------------------------------


def squared_norms_compared(hessian, gradient, error, damping):
    """Use v @ v for the norm, which is its square."""
    H = hessian + damping * np.eye(len(gradient))
    e, g = np.linalg.solve(H, error), np.linalg.solve(H, gradient)
    return ((e @ e) / (g @ g)) / ((error @ error) / (gradient @ gradient))


def inverse_of_the_diagonal(hessian, gradient, error, damping):
    """Divide by the diagonal of H + μI only."""
    d, norm = np.diag(hessian) + damping, np.linalg.norm
    return norm(error / d) / norm(gradient / d) * norm(gradient) / norm(error)


def brackets_forgotten(hessian, gradient, error, damping):
    """Divide by ‖e‖ and then again by ‖g‖, for want of brackets."""
    H, norm = hessian + damping * np.eye(len(gradient)), np.linalg.norm
    top = norm(np.linalg.solve(H, error)) / norm(np.linalg.solve(H, gradient))
    return top / norm(error) / norm(gradient)


# --- L1-11: stream_sgd --------------------------------------------------------------------------


def stream_path_of_one_array(w, x, y, lr, n):
    """Append the same array again and again and change it in place."""
    path = [w]
    for start in range(0, len(y), n):
        residual = x[start : start + n] @ w - y[start : start + n]
        w -= lr * x[start : start + n].T @ residual / n
        path.append(w)
    return np.array(path)


def stream_in_strides(w, x, y, lr, n):
    """Take every k-th example for a minibatch, not n neighbors."""
    steps = len(y) // n
    path = [w]
    for k in range(steps):
        path.append(path[-1] - lr * x[k::steps].T @ (x[k::steps] @ path[-1] - y[k::steps]) / n)
    return np.array(path)


def stream_without_its_start(w, x, y, lr, n):
    """Return the iterates after each step, without row 0."""
    path = []
    for start in range(0, len(y), n):
        now = slice(start, start + n)
        w = w - lr * x[now].T @ (x[now] @ w - y[now]) / n
        path.append(w)
    return np.array(path)


WRONG: dict[str, tuple[Function, ...]] = {
    "L1-01": (
        summed_losses,
        stopped_one_example_early,
        estimate_alone,
    ),
    "L1-03": (
        logistic_value_alone,
        rising_logistic_slope,
        slope_without_the_base,
        slope_by_differences,
        value_and_slope_in_rows,
    ),
    "L1-03:hinge": (
        hinge_gradient_upwards,
        hinge_in_whole_numbers,
    ),
    "L1-05": (
        one_epoch_too_patient,
        epochs_from_one,
        no_answer_without_a_halt,
        error_in_place_of_its_epoch,
    ),
    "L1-06": (
        features_forgotten,
        noise_in_single_precision,
        spread_of_each_entry,
    ),
    "L1-07": (
        population_ignored,
        population_always_needed,
        correction_by_whole_division,
    ),
    "L1-07:size": (
        one_example_more,
        population_between_the_two,
    ),
    "L1-09": (
        remainder_first,
        shuffled_for_each_minibatch,
        examples_from_one,
        shuffled_by_another_generator,
        last_minibatch_filled_up,
    ),
    "L1-10": (
        squared_norms_compared,
        inverse_of_the_diagonal,
        brackets_forgotten,
    ),
    "L1-11": (
        stream_path_of_one_array,
        stream_in_strides,
        stream_without_its_start,
    ),
}
