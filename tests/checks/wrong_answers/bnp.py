"""Wrong answers to the exercises of bnp."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- P-09: layer_hessian ------------------------------------------------------------------------


def hessian_of_the_summed_loss(H, curvatures):
    """Forget the 1/N."""
    extended = np.column_stack([np.ones(len(H)), H])
    return extended.T @ np.diag(curvatures) @ extended


def curvatures_ignored(H, curvatures):
    """Take every curvature for 1, as in least squares."""
    extended = np.column_stack([np.ones(len(H)), H])
    return extended.T @ extended / len(H)


def curvatures_on_both_sides(H, curvatures):
    """Multiply both factors by the curvature."""
    extended = np.column_stack([np.ones(len(H)), H]) * curvatures[:, None]
    return extended.T @ extended / len(H)


def matrix_of_the_examples(H, curvatures):
    """Multiply the wrong way around, which gives (N, N)."""
    extended = np.column_stack([np.ones(len(H)), H])
    S = np.diag(curvatures / len(H))
    return np.sqrt(S) @ extended @ extended.T @ np.sqrt(S)


# --- P-11:preconditioner: preconditioner --------------------------------------------------------


def mean_in_the_first_column(mean, std):
    """Transpose U."""
    U = np.eye(len(mean) + 1)
    U[1:, 0] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def product_alone(mean, std):
    """Return P = UD in place of the two matrices."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U @ np.diag(np.concatenate([[1.0], 1 / std]))


def matrices_exchanged(mean, std):
    """Return D before U."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return np.diag(np.concatenate([[1.0], 1 / std])), U


def scales_by_the_variance(mean, std):
    """Square the deviation."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std**2]))


def matrix_of_whole_numbers(mean, std):
    """Build U from an integer identity, which cuts the means off."""
    U = np.eye(len(mean) + 1, dtype=int)
    U[0, 1:] = -mean
    return U, np.diag(np.append(1.0, 1 / std))


# --- P-11:activations: normalized_activations ---------------------------------------------------


def activations_with_epsilon(H):
    """Add 1e-5 to the variance."""
    normalized = (H - H.mean(axis=0)) / np.sqrt(H.var(axis=0) + 1e-5)
    return np.hstack([np.ones((len(H), 1)), normalized])


def ones_normalized_as_well(H):
    """Extend first and normalize all columns, so that the ones become 0/0."""
    extended = np.column_stack([np.ones(len(H)), H])
    return (extended - extended.mean(axis=0)) / extended.std(axis=0)


def activations_to_the_unit_interval(H):
    """Scale each feature to [0, 1]."""
    low, high = H.min(axis=0), H.max(axis=0)
    return np.column_stack([np.ones(len(H)), (H - low) / (high - low)])


# --- P-12: condition_numbers --------------------------------------------------------------------


def condition_numbers_of_the_hessians(H):
    """Return the squares, the condition numbers of ĤᵀĤ."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    kappas = []
    for features in (H, H - mean, (H - mean) / std):
        values = np.linalg.svd(np.column_stack([e, features]), compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append((nonzero[0] / nonzero[-1]) ** 2)
    return tuple(kappas)


def inverse_condition_numbers(H):
    """Divide the smallest by the largest."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    kappas = []
    for features in (H, H - mean, (H - mean) / std):
        values = np.linalg.svd(np.column_stack([e, features]), compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[-1] / nonzero[0])
    return tuple(kappas)


def last_two_exchanged(H):
    """Return the scaled one before the centered one."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    kappas = []
    for features in (H, (H - mean) / std, H - mean):
        values = np.linalg.svd(np.column_stack([e, features]), compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[0] / nonzero[-1])
    return tuple(kappas)


# --- P-15: batch_statistics ---------------------------------------------------------------------


def running_mean_taken_for_granted(H, running_mean=None):
    """Subtract the running mean of one example also when it is None."""
    if len(H) == 1:
        return H[0], (H[0] - running_mean) ** 2
    return H.mean(axis=0), H.var(axis=0)


def single_example_left_as_a_row(H, running_mean=None):
    """Return arrays of shape (1, n) for one example."""
    if len(H) == 1 and running_mean is not None:
        return H, (H - running_mean) ** 2
    return H.mean(axis=0), H.var(axis=0)


# --- P-14:statistics: running_statistics --------------------------------------------------------


def running_shares_exchanged(minibatches, rho=0.99):
    """Give rho to the new statistics."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.ones(minibatches[0].shape[1])
    means, variances = [], []
    for H in minibatches:
        mean = (1 - rho) * mean + rho * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = (1 - rho) * var + rho * batch_var
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def share_hard_coded(minibatches, rho=0.99):
    """Use 0.99 whatever rho is given."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.ones(minibatches[0].shape[1])
    means, variances = [], []
    for H in minibatches:
        mean = 0.99 * mean + 0.01 * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = 0.99 * var + 0.01 * batch_var
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def start_in_the_first_row(minibatches, rho=0.99):
    """Return the start as the first row, T + 1 rows in all."""
    means, variances = [0 * minibatches[0][0]], [0 * minibatches[0][0] + 1]
    for H in minibatches:
        means.append(rho * means[-1] + (1 - rho) * H.mean(axis=0))
        batch_var = (H[0] - means[-1]) ** 2 if len(H) == 1 else H.var(axis=0)
        variances.append(rho * variances[-1] + (1 - rho) * batch_var)
    return np.array(means), np.array(variances)


def pairs_of_statistics(minibatches, rho=0.99):
    """Return one list of pairs in place of two arrays."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.ones(minibatches[0].shape[1])
    path = []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = rho * var + (1 - rho) * batch_var
        path.append((mean, var))
    return path


# --- P-14:scale: scale_dense --------------------------------------------------------------------


def scale_not_squared(features, rows):
    """Return q in place of its square."""
    return max(np.sqrt(features / rows), 1.0)


def scale_upside_down(features, rows):
    """Divide the rows by the features."""
    return max(rows / features, 1.0)


def scale_in_whole_numbers(features, rows):
    """Divide with //."""
    return float(max(features // rows, 1))


def scale_with_the_bias(features, rows):
    """Count the bias as an input."""
    return max((features + 1) / rows, 1.0)


# --- P-17: absorb_normalization -----------------------------------------------------------------


def bias_not_moved(W, b, mean, std):
    """Leave the bias as it is."""
    return W / std, b


def mean_divided_again(W, b, mean, std):
    """Divide the mean by the deviation a second time."""
    absorbed = W / std
    return absorbed, b - absorbed @ (mean / std)


def bias_as_a_column(W, b, mean, std):
    """Return the bias with shape (o, 1)."""
    absorbed = W / std
    return absorbed, (b - absorbed @ mean)[:, None]


def divided_by_variance(W, b, mean, std):
    """Divide by σ²."""
    absorbed = W / std**2
    return absorbed, b - absorbed @ mean


# --- F-11: split_adam_step ----------------------------------------------------------------------


def _adam(gradient, lr, eps):
    return -lr * gradient / (np.abs(gradient) + eps)


def plain_step_of_bnp(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Descend along the preconditioned gradient, without Adam."""
    weight = -lr * (grad_weight - np.outer(grad_bias, mean)) / std**2 / q**2
    return weight, -lr * grad_bias / q**2 - weight @ mean


def plain_adam(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget BNP."""
    return _adam(grad_weight, lr, eps), _adam(grad_bias, lr, eps)


def deviations_multiplied_on_the_way_back(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Take the inverse of D on the way back."""
    weight = _adam((grad_weight - np.outer(grad_bias, mean)) / std / q, lr, eps) * std / q
    return weight, _adam(grad_bias / q, lr, eps) / q - weight @ mean


def length_of_the_gradient_for_its_size(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Divide by the norm of each output's gradient."""
    weight, bias = (grad_weight - np.outer(grad_bias, mean)) / std / q, grad_bias / q
    length = np.sqrt((weight**2).sum(axis=1) + bias**2) + eps
    weight = -lr * weight / length[:, None] / std / q
    return weight, -lr * bias / length / q - weight @ mean


WRONG: dict[str, tuple[Function, ...]] = {
    "P-09": (
        hessian_of_the_summed_loss,
        curvatures_ignored,
        curvatures_on_both_sides,
        matrix_of_the_examples,
    ),
    "P-11:preconditioner": (
        mean_in_the_first_column,
        product_alone,
        matrices_exchanged,
        scales_by_the_variance,
        matrix_of_whole_numbers,
    ),
    "P-11:activations": (
        activations_with_epsilon,
        ones_normalized_as_well,
        activations_to_the_unit_interval,
    ),
    "P-12": (
        condition_numbers_of_the_hessians,
        inverse_condition_numbers,
        last_two_exchanged,
    ),
    "P-15": (
        running_mean_taken_for_granted,
        single_example_left_as_a_row,
    ),
    "P-14:statistics": (
        running_shares_exchanged,
        share_hard_coded,
        start_in_the_first_row,
        pairs_of_statistics,
    ),
    "P-14:scale": (
        scale_not_squared,
        scale_upside_down,
        scale_in_whole_numbers,
        scale_with_the_bias,
    ),
    "P-14:step": (),
    "P-17": (
        bias_not_moved,
        mean_divided_again,
        bias_as_a_column,
        divided_by_variance,
    ),
    "F-11": (
        plain_step_of_bnp,
        plain_adam,
        deviations_multiplied_on_the_way_back,
        length_of_the_gradient_for_its_size,
    ),
}
