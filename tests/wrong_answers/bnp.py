"""Wrong answers to the exercises of bnp."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- P-09: layer_hessian ------------------------------------------------------------------------


def hessian_of_the_summed_loss(H, curvatures):
    """Forget the 1/N."""
    extended = np.column_stack([np.ones(len(H)), H])
    return extended.T @ np.diag(curvatures) @ extended


def ones_after_the_features(H, curvatures):
    """Put the bias last."""
    extended = np.column_stack([H, np.ones(len(H))])
    return extended.T @ np.diag(curvatures / len(H)) @ extended


def weights_of_the_unit_alone(H, curvatures):
    """Leave the bias out."""
    return H.T @ np.diag(curvatures / len(H)) @ H


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


def mean_not_negated(mean, std):
    """Write +μ into U."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def mean_in_the_first_column(mean, std):
    """Transpose U."""
    U = np.eye(len(mean) + 1)
    U[1:, 0] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def scales_not_inverted(mean, std):
    """Forget the inverse of D."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], std]))


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


def ones_forgotten(H):
    """Return the normalized features without the column of ones."""
    return (H - H.mean(axis=0)) / H.std(axis=0)


def activations_by_sample_deviation(H):
    """Divide the variance by N - 1."""
    normalized = (H - H.mean(axis=0)) / H.std(axis=0, ddof=1)
    return np.column_stack([np.ones(len(H)), normalized])


def activations_by_variance(H):
    """Divide by the variance."""
    normalized = (H - H.mean(axis=0)) / H.var(axis=0)
    return np.column_stack([np.ones(len(H)), normalized])


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


def zeros_counted(H):
    """Use np.linalg.cond, which divides by singular values that are only rounding."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    return tuple(
        float(np.linalg.cond(np.column_stack([e, features])))
        for features in (H, H - mean, (H - mean) / std)
    )


def condition_without_the_ones(H):
    """Leave the column of ones out."""
    kappas = []
    for features in (H, H - H.mean(axis=0), (H - H.mean(axis=0)) / H.std(axis=0)):
        values = np.linalg.svd(features, compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[0] / nonzero[-1])
    return kappas


def scaled_without_centering(H):
    """Scale the features as they are for the third number."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    kappas = []
    for features in (H, H - mean, H / std):
        values = np.linalg.svd(np.column_stack([e, features]), compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[0] / nonzero[-1])
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


def scaled_by_the_variances(H):
    """Divide by the variance, which shows in the third number only."""
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.var(axis=0)
    kappas = []
    for features in (H, H - mean, (H - mean) / std):
        values = np.linalg.svd(np.column_stack([e, features]), compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[0] / nonzero[-1])
    return tuple(kappas)


# --- P-15: batch_statistics ---------------------------------------------------------------------


def running_mean_ignored(H, running_mean=None):
    """Leave the variance of one example at zero."""
    return H.mean(axis=0), H.var(axis=0)


def always_from_the_running_mean(H, running_mean=None):
    """Measure every minibatch from the running mean, when there is one."""
    center = H.mean(axis=0) if running_mean is None else running_mean
    return H.mean(axis=0), np.mean((H - center) ** 2, axis=0)


def running_mean_returned(H, running_mean=None):
    """Return the running mean for the mean of one example."""
    if len(H) == 1 and running_mean is not None:
        return running_mean, (H[0] - running_mean) ** 2
    return H.mean(axis=0), H.var(axis=0)


def batch_by_sample_variance(H, running_mean=None):
    """Divide by N - 1, which is 0/0 for one example."""
    if len(H) == 1 and running_mean is not None:
        return H[0], (H[0] - running_mean) ** 2
    return H.mean(axis=0), H.var(axis=0, ddof=1)


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


def measured_from_the_old_mean(minibatches, rho=0.99):
    """Measure a single example from the mean before the update."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.ones(minibatches[0].shape[1])
    means, variances = [], []
    for H in minibatches:
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        mean = rho * mean + (1 - rho) * H.mean(axis=0)
        var = rho * var + (1 - rho) * batch_var
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def variance_starts_at_zero(minibatches, rho=0.99):
    """Start the variance with zeros."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.zeros(minibatches[0].shape[1])
    means, variances = [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = rho * var + (1 - rho) * batch_var
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


def bias_corrected_averages(minibatches, rho=0.99):
    """Correct the bias as Adam does."""
    mean, var = np.zeros(minibatches[0].shape[1]), np.ones(minibatches[0].shape[1])
    means, variances = [], []
    for t, H in enumerate(minibatches, start=1):
        mean = rho * mean + (1 - rho) * H.mean(axis=0)
        batch_var = (H[0] - mean) ** 2 if len(H) == 1 else H.var(axis=0)
        var = rho * var + (1 - rho) * batch_var
        means.append(mean / (1 - rho**t))
        variances.append(var / (1 - rho**t))
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


def scale_without_a_floor(features, rows):
    """Forget the maximum with 1."""
    return features / rows


def scale_upside_down(features, rows):
    """Divide the rows by the features."""
    return max(rows / features, 1.0)


def scale_capped(features, rows):
    """Take the minimum."""
    return min(features / rows, 1.0)


def scale_in_whole_numbers(features, rows):
    """Divide with //."""
    return float(max(features // rows, 1))


def scale_with_the_bias(features, rows):
    """Count the bias as an input."""
    return max((features + 1) / rows, 1.0)


# --- P-14:step: precondition_dense --------------------------------------------------------------


def bias_reads_the_old_gradient(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Use the old gradient of the weight in step 5."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias / q2 - grad_weight @ mean


def weight_reads_the_new_bias(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Do step 5 before step 4."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = var + eps1 * var.max() + eps2
    bias = grad_bias / q2 - grad_weight @ mean
    return (grad_weight - np.outer(bias, mean)) / smoothed / q2, bias


def floors_left_out(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Divide by the variance as it is."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    weight = (grad_weight - np.outer(grad_bias, mean)) / var / q2
    return weight, grad_bias / q2 - weight @ mean


def floors_exchanged(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Swap eps1 and eps2."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = var + eps2 * var.max() + eps1
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias / q2 - weight @ mean


def floor_of_each_feature(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Take each feature's own variance where the largest belongs."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = var + eps1 * var + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias / q2 - weight @ mean


def bias_not_rescaled(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Forget q² in the first term of step 5."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias - weight @ mean


def outputs_counted_for_inputs(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Compute q² from the number of outputs."""
    q2 = max(len(grad_weight) / batch_size, 1.0)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias / q2 - weight @ mean


def divided_by_the_deviation(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Take the root of the smoothed variance."""
    q2 = max(grad_weight.shape[1] / batch_size, 1.0)
    smoothed = np.sqrt(var + eps1 * var.max() + eps2)
    weight = (grad_weight - np.outer(grad_bias, mean)) / smoothed / q2
    return weight, grad_bias / q2 - weight @ mean


# --- P-17: absorb_normalization -----------------------------------------------------------------


def bias_not_moved(W, b, mean, std):
    """Leave the bias as it is."""
    return W / std, b


def bias_moved_by_the_old_weight(W, b, mean, std):
    """Subtract Wμ in place of Ŵμ."""
    return W / std, b - W @ mean


def bias_moved_up(W, b, mean, std):
    """Add Ŵμ."""
    absorbed = W / std
    return absorbed, b + absorbed @ mean


def weight_multiplied(W, b, mean, std):
    """Multiply by the deviations."""
    absorbed = W * std
    return absorbed, b - absorbed @ mean


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


def adam_after_the_step_of_bnp(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Precondition fully, then let Adam divide by the size of the result."""
    factor = np.eye(len(mean) + 1)
    factor[0, 1:] = -mean
    P = factor @ np.diag([1.0, *(1 / std)]) / q
    step = _adam(np.column_stack([grad_bias, grad_weight]) @ P @ P.T, lr, eps)
    return step[:, 1:], step[:, 0]


def step_left_in_the_other_coordinates(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget the way back to the parameters."""
    factor = np.eye(len(mean) + 1)
    factor[0, 1:] = -mean
    step = _adam(
        np.column_stack([grad_bias, grad_weight]) @ factor @ np.diag([1.0, *(1 / std)]) / q, lr, eps
    )
    return step[:, 1:], step[:, 0]


def adam_of_the_given_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget the way to the other coordinates."""
    weight = _adam(grad_weight, lr, eps) / std / q
    return weight, _adam(grad_bias, lr, eps) / q - weight @ mean


def plain_step_of_bnp(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Descend along the preconditioned gradient, without Adam."""
    weight = -lr * (grad_weight - np.outer(grad_bias, mean)) / std**2 / q**2
    return weight, -lr * grad_bias / q**2 - weight @ mean


def plain_adam(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget BNP."""
    return _adam(grad_weight, lr, eps), _adam(grad_bias, lr, eps)


def mean_added_on_the_way_back(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Take the inverse of U on the way back."""
    weight = _adam((grad_weight - np.outer(grad_bias, mean)) / std / q, lr, eps) / std / q
    return weight, _adam(grad_bias / q, lr, eps) / q + weight @ mean


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
        ones_after_the_features,
        weights_of_the_unit_alone,
        curvatures_ignored,
        curvatures_on_both_sides,
        matrix_of_the_examples,
    ),
    "P-11:preconditioner": (
        mean_not_negated,
        mean_in_the_first_column,
        scales_not_inverted,
        product_alone,
        matrices_exchanged,
        scales_by_the_variance,
        matrix_of_whole_numbers,
    ),
    "P-11:activations": (
        ones_forgotten,
        activations_by_sample_deviation,
        activations_by_variance,
        activations_with_epsilon,
        ones_normalized_as_well,
        activations_to_the_unit_interval,
    ),
    "P-12": (
        condition_numbers_of_the_hessians,
        zeros_counted,
        condition_without_the_ones,
        scaled_without_centering,
        inverse_condition_numbers,
        last_two_exchanged,
        scaled_by_the_variances,
    ),
    "P-15": (
        running_mean_ignored,
        always_from_the_running_mean,
        running_mean_returned,
        batch_by_sample_variance,
        running_mean_taken_for_granted,
        single_example_left_as_a_row,
    ),
    "P-14:statistics": (
        running_shares_exchanged,
        measured_from_the_old_mean,
        variance_starts_at_zero,
        share_hard_coded,
        start_in_the_first_row,
        bias_corrected_averages,
        pairs_of_statistics,
    ),
    "P-14:scale": (
        scale_not_squared,
        scale_without_a_floor,
        scale_upside_down,
        scale_capped,
        scale_in_whole_numbers,
        scale_with_the_bias,
    ),
    "P-14:step": (
        bias_reads_the_old_gradient,
        weight_reads_the_new_bias,
        floors_left_out,
        floors_exchanged,
        floor_of_each_feature,
        bias_not_rescaled,
        outputs_counted_for_inputs,
        divided_by_the_deviation,
    ),
    "P-17": (
        bias_not_moved,
        bias_moved_by_the_old_weight,
        bias_moved_up,
        weight_multiplied,
        mean_divided_again,
        bias_as_a_column,
        divided_by_variance,
    ),
    "F-11": (
        adam_after_the_step_of_bnp,
        step_left_in_the_other_coordinates,
        adam_of_the_given_gradient,
        plain_step_of_bnp,
        plain_adam,
        mean_added_on_the_way_back,
        deviations_multiplied_on_the_way_back,
        length_of_the_gradient_for_its_size,
    ),
}
