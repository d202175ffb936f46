"""Wrong answers to the exercises of bnp_cnn."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- P-21: convolution_matrix -------------------------------------------------------------------


def last_image_left_out(h, k):
    """Loop over one image too few."""
    border, (images, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    H = np.zeros((images * height * width, channels * k * k))
    row = 0
    for n in range(images - 1):
        for u in range(height):
            for v in range(width):
                H[row] = padded[n, :, u : u + k, v : v + k].ravel()
                row += 1
    return H


# --- P-21:forward: conv_forward -----------------------------------------------------------------


def convolution_without_bias(h, w, b):
    """Forget the bias."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    result = np.zeros((images, outputs, height, width))
    for u in range(height):
        for v in range(width):
            window = padded[:, :, u : u + k, v : v + k]
            result[:, :, u, v] = np.tensordot(window, w, axes=([1, 2, 3], [1, 2, 3]))
    return result


def first_channel_alone(h, w, b):
    """Convolve the first input channel only."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    result = np.zeros((images, outputs, height, width))
    for i in range(k):
        for j in range(k):
            moved = padded[:, 0, i : i + height, j : j + width]
            result += moved[:, None] * w[:, 0, i, j][:, None, None]
    return result + b[:, None, None]


# --- P-23:exact: exact_column_statistics --------------------------------------------------------


def statistics_left_as_kernels(h, k):
    """Return arrays of shape (c, k, k)."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    mean, var = np.zeros((channels, k, k)), np.zeros((channels, k, k))
    for i in range(k):
        for j in range(k):
            window = padded[:, :, i : i + height, j : j + width]
            mean[:, i, j], var[:, i, j] = window.mean(axis=(0, 2, 3)), window.var(axis=(0, 2, 3))
    return mean, var


# --- P-23:channels: channel_statistics ----------------------------------------------------------


def channel_deviations(h):
    """Return standard deviations."""
    return h.mean(axis=(0, 2, 3)), h.std(axis=(0, 2, 3))


def variance_before_mean(h):
    """Return the variance first."""
    return h.var(axis=(0, 2, 3)), h.mean(axis=(0, 2, 3))


def axes_of_the_image_kept(h):
    """Keep the averaged axes."""
    return h.mean(axis=(0, 2, 3), keepdims=True), h.var(axis=(0, 2, 3), keepdims=True)


# --- P-23:bound: statistics_bound ---------------------------------------------------------------


def bound_by_precedence(h, k):
    """Write 1 / 2 * r, which multiplies by r."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / 2 * r + 1 / 2 * s - (k - 1) / 4 * r * s)
    return share * np.abs(h).max(axis=(0, 2, 3))


# --- P-24:scale: scale_conv ---------------------------------------------------------------------


def kernel_sides_added(channels, kernel, examples, positions):
    """Add the sides of the kernel."""
    return max(channels * sum(kernel) / examples, np.sqrt(positions))


def positions_in_the_denominator(channels, kernel, examples, positions):
    """Divide by N times the root of rs, and compare with 1."""
    return max(channels * np.prod(kernel) / (examples * np.sqrt(positions)), 1.0)


def kernel_used_as_a_number(channels, kernel, examples, positions):
    """Square the kernel, which is a pair: this raises."""
    return max(channels * kernel**2 / examples, np.sqrt(positions))


# --- P-24: precondition_conv --------------------------------------------------------------------


def statistics_along_the_kernel(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Let mean and variance broadcast along the last axis of the kernel."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - mean * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (mean * weight).sum(axis=(1, 2, 3))


def square_output_assumed(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take the height for the root of the positions, as if the output were square."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, height)
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (center * weight).sum(axis=(1, 2, 3))


def gradient_of_the_caller_changed(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Work on the gradient of the weight in place."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    center = mean[:, None, None]
    grad_weight -= center * grad_bias[:, None, None, None]
    grad_weight /= q2 * (var + eps1 * var.max() + eps2)[:, None, None]
    return grad_weight, grad_bias / q2 - (center * grad_weight).sum(axis=(1, 2, 3))


# --- P-25: normalize_channels -------------------------------------------------------------------


def channels_with_epsilon(h):
    """Add 1e-5 to the variance."""
    mean, var = h.mean(axis=(0, 2, 3), keepdims=True), h.var(axis=(0, 2, 3), keepdims=True)
    return (h - mean) / np.sqrt(var + 1e-5)


def channels_broadcast_wrongly(h):
    """Subtract a (c,) array without axes for the positions, which raises or hits the columns."""
    return (h - h.mean(axis=(0, 2, 3))) / h.std(axis=(0, 2, 3))


def channels_in_single_precision(h):
    """Compute in float32."""
    h = h.astype("float32")
    return (h - h.mean(axis=(0, 2, 3), keepdims=True)) / h.std(axis=(0, 2, 3), keepdims=True)


WRONG: dict[str, tuple[Function, ...]] = {
    "P-21": (last_image_left_out,),
    "P-21:forward": (
        convolution_without_bias,
        first_channel_alone,
    ),
    "P-23:exact": (statistics_left_as_kernels,),
    "P-23:channels": (
        channel_deviations,
        variance_before_mean,
        axes_of_the_image_kept,
    ),
    "P-23:bound": (bound_by_precedence,),
    "P-24:scale": (
        kernel_sides_added,
        positions_in_the_denominator,
        kernel_used_as_a_number,
    ),
    "P-24": (
        statistics_along_the_kernel,
        square_output_assumed,
        gradient_of_the_caller_changed,
    ),
    "P-25": (
        channels_with_epsilon,
        channels_broadcast_wrongly,
        channels_in_single_precision,
    ),
}
