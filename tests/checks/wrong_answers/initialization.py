"""Wrong answers to the exercises of initialization."""

# mypy: allow-untyped-defs
# ruff: noqa: B905

import numpy as np

from optdl.checks.exercise import Function

# --- L2-10: gradient_norms ----------------------------------------------------------------------


def norms_from_the_output(weights, x, upstream, name):
    """Return the norms from the output to the input."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        if name == "sigmoid":
            h = 1 / (1 + np.exp(-z))
            slopes.append(h * (1 - h))
        elif name == "tanh":
            h = np.tanh(z)
            slopes.append(1 - h**2)
        else:
            h = np.maximum(z, 0)
            slopes.append((z > 0) * 1.0)
    norms = [np.linalg.norm(upstream)]
    for W, slope in zip(weights[::-1], slopes[::-1]):
        upstream = W.T @ (slope * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms)


def sigmoid_slope_incomplete(weights, x, upstream, name):
    """Write 1 - h for the slope of the sigmoid."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        if name == "sigmoid":
            h = 1 / (1 + np.exp(-z))
            slopes.append(1 - h)
        elif name == "tanh":
            h = np.tanh(z)
            slopes.append(1 - h**2)
        else:
            h = np.maximum(z, 0)
            slopes.append((z > 0) * 1.0)
    norms = [np.linalg.norm(upstream)]
    for W, slope in zip(weights[::-1], slopes[::-1]):
        upstream = W.T @ (slope * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


def slope_of_the_activation_not_of_z(weights, x, upstream, name):
    """Put h where z belongs in the derivative."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        if name == "sigmoid":
            h = 1 / (1 + np.exp(-z))
            s = 1 / (1 + np.exp(-h))
            slopes.append(s * (1 - s))
        elif name == "tanh":
            h = np.tanh(z)
            slopes.append(1 - np.tanh(h) ** 2)
        else:
            h = np.maximum(z, 0)
            slopes.append((h >= 0) * 1.0)
    norms = [np.linalg.norm(upstream)]
    for W, slope in zip(weights[::-1], slopes[::-1]):
        upstream = W.T @ (slope * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


def output_norm_missing(weights, x, upstream, name):
    """Return L norms, without that of the upstream gradient."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        if name == "sigmoid":
            h = 1 / (1 + np.exp(-z))
            slopes.append(h * (1 - h))
        elif name == "tanh":
            h = np.tanh(z)
            slopes.append(1 - h**2)
        else:
            h = np.maximum(z, 0)
            slopes.append((z > 0) * 1.0)
    norms = []
    for W, slope in zip(weights[::-1], slopes[::-1]):
        upstream = W.T @ (slope * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


def every_activation_is_tanh(weights, x, upstream, name):
    """Ignore the name of the activation."""
    h, slopes = x, []
    for W in weights:
        h = np.tanh(W @ h)
        slopes.append(1 - h**2)
    norms = [np.linalg.norm(upstream)]
    for W, slope in zip(weights[::-1], slopes[::-1]):
        upstream = W.T @ (slope * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


# --- L1-33: train_hidden_layer ------------------------------------------------------------------


def loss_not_halved(W, v, x, y, lr, steps):
    """Differentiate the mean square, twice the loss."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = 2 * (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def weights_updated_in_place(W, v, x, y, lr, steps):
    """Change W in place, so that all rows of the path are the last one."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W -= lr * back.T @ x
        v -= lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def last_weights_alone(W, v, x, y, lr, steps):
    """Return W after the last step, without the path."""
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
    return W


# --- L2-11:glorot-uniform: glorot_uniform -------------------------------------------------------


def uniform_limits_exchanged(fan_in, fan_out, rng):
    """Give the upper limit first."""
    a = np.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(a, -a, size=(fan_out, fan_in))


def uniform_rounded(fan_in, fan_out, rng):
    """Round the weights to four digits."""
    a = np.sqrt(6 / (fan_in + fan_out))
    return rng.uniform(-a, a, size=(fan_out, fan_in)).round(4)


def bound_of_the_inputs_alone(fan_in, fan_out, rng):
    """Count the inputs twice and the outputs never."""
    a = np.sqrt(6 / (fan_in + fan_in))
    return rng.uniform(-a, a, size=(fan_out, fan_in))


# --- L2-11:leaky: leaky_normal ------------------------------------------------------------------


def mean_of_the_slopes(fan_in, fan_out, slope, rng):
    """Square the mean of the two slopes."""
    kept = ((1 + slope) / 2) ** 2
    return rng.normal(0, np.sqrt(1 / (kept * fan_in)), size=(fan_out, fan_in))


def root_of_two_only(fan_in, fan_out, slope, rng):
    """Put the root over the gain alone, as if it were the whole deviation."""
    return rng.normal(0, np.sqrt(2 / (1 + slope**2)) / fan_in, size=(fan_out, fan_in))


def leaky_shape_transposed(fan_in, fan_out, slope, rng):
    """Draw (fan_in, fan_out)."""
    return rng.normal(0, np.sqrt(2 / ((1 + slope**2) * fan_in)), size=(fan_in, fan_out))


def leaky_brackets_forgotten(fan_in, fan_out, slope, rng):
    """Write 2 / (1 + a²) * n, which multiplies by n."""
    return rng.normal(0, np.sqrt(2 / (1 + slope**2) * fan_in), size=(fan_out, fan_in))


def leaky_with_a_seed_of_its_own(fan_in, fan_out, slope, rng):
    """Make a generator with seed 0 and leave rng alone."""
    rng = np.random.default_rng(0)
    return rng.normal(0, np.sqrt(2 / ((1 + slope**2) * fan_in)), size=(fan_out, fan_in))


def slope_subtracted(fan_in, fan_out, slope, rng):
    """Subtract the square of the slope."""
    return rng.normal(0, np.sqrt(2 / ((1 - slope**2) * fan_in)), size=(fan_out, fan_in))


def leaky_in_single_precision(fan_in, fan_out, slope, rng):
    """Return float32."""
    weight = rng.normal(0, np.sqrt(2 / ((1 + slope**2) * fan_in)), size=(fan_out, fan_in))
    return weight.astype(np.float32)


# --- L2-11:moments: relu_moments ----------------------------------------------------------------


def backward_is_forward_reversed(widths, variances):
    """Turn the forward moments round."""
    q = [1.0]
    for n, variance in zip(widths, variances):
        q.append(n * variance / 2 * q[-1])
    return np.array(q), np.array(q[::-1])


def backward_is_the_reciprocal(widths, variances):
    """Divide by the forward factors."""
    q = [1.0]
    for n, variance in zip(widths, variances):
        q.append(n * variance / 2 * q[-1])
    return np.array(q), q[-1] / np.array(q)


def moments_exchanged(widths, variances):
    """Return the gradients first."""
    q, p = [1.0], [1.0]
    for n, variance in zip(widths, variances):
        q.append(n * variance / 2 * q[-1])
    for n, variance in zip(widths[:0:-1], variances[::-1]):
        p.insert(0, n * variance / 2 * p[0])
    return np.array(p), np.array(q)


def variance_of_the_next_layer(widths, variances):
    """Pair each layer's outputs with the variance of the wrong layer, backward."""
    q, p = [1.0], [1.0]
    for n, variance in zip(widths, variances):
        q.append(n * variance / 2 * q[-1])
    for n, variance in zip(widths[:0:-1], variances):
        p.insert(0, n * variance / 2 * p[0])
    return np.array(q), np.array(p)


def ends_left_out(widths, variances):
    """Leave out both ones."""
    q, p = [1.0], [1.0]
    for n, variance in zip(widths, variances):
        q.append(n * variance / 2 * q[-1])
    for n, variance in zip(widths[:0:-1], variances[::-1]):
        p.insert(0, n * variance / 2 * p[0])
    return np.array(q[1:]), np.array(p[:-1])


def deviations_for_mean_squares(widths, variances):
    """Take the root of each factor."""
    q, p = [1.0], [1.0]
    for n, variance in zip(widths, variances):
        q.append(np.sqrt(n * variance / 2) * q[-1])
    for n, variance in zip(widths[:0:-1], variances[::-1]):
        p.insert(0, np.sqrt(n * variance / 2) * p[0])
    return np.array(q), np.array(p)


# --- L2-13:inputs: normalize_inputs -------------------------------------------------------------


def others_returned_first(train, other, eps):
    """Return the two arrays in the other order."""
    mean, std = train.mean(axis=0), np.sqrt(train.var(axis=0) + eps)
    return (other - mean) / std, (train - mean) / std


# --- L2-13:hessian: least_squares_hessian -------------------------------------------------------


def hessian_of_the_sum(x):
    """Forget the 1/m."""
    extended = np.column_stack([np.ones(len(x)), x])
    return extended.T @ extended


def hessian_of_full_squares(x):
    """Keep the factor 2 of the square."""
    extended = np.column_stack([np.ones(len(x)), x])
    return 2 * extended.T @ extended / len(x)


def hessian_of_centered_inputs(x):
    """Center the inputs first."""
    extended = np.column_stack([np.ones(len(x)), x - x.mean(axis=0)])
    return extended.T @ extended / len(x)


def upper_triangle_only(x):
    """Fill the upper triangle and forget the lower one."""
    m, d = x.shape
    extended = np.hstack([np.ones((m, 1)), x])
    H = np.zeros((d + 1, d + 1))
    for i in range(d + 1):
        for j in range(i, d + 1):
            H[i, j] = np.mean(extended[:, i] * extended[:, j])
    return H


WRONG: dict[str, tuple[Function, ...]] = {
    "L2-10": (
        norms_from_the_output,
        sigmoid_slope_incomplete,
        slope_of_the_activation_not_of_z,
        output_norm_missing,
        every_activation_is_tanh,
    ),
    "L1-33": (
        loss_not_halved,
        weights_updated_in_place,
        last_weights_alone,
    ),
    "L2-11:glorot-uniform": (
        uniform_limits_exchanged,
        uniform_rounded,
        bound_of_the_inputs_alone,
    ),
    "L2-11:leaky": (
        mean_of_the_slopes,
        root_of_two_only,
        leaky_shape_transposed,
        leaky_brackets_forgotten,
        leaky_with_a_seed_of_its_own,
        slope_subtracted,
        leaky_in_single_precision,
    ),
    "L2-11:moments": (
        backward_is_forward_reversed,
        backward_is_the_reciprocal,
        moments_exchanged,
        variance_of_the_next_layer,
        ends_left_out,
        deviations_for_mean_squares,
    ),
    "L2-13:inputs": (others_returned_first,),
    "L2-13:hessian": (
        hessian_of_the_sum,
        hessian_of_full_squares,
        hessian_of_centered_inputs,
        upper_triangle_only,
    ),
}
