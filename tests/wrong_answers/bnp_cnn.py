"""Wrong answers to the exercises of bnp_cnn."""

# mypy: allow-untyped-defs

import numpy as np

from optdl.checks.exercise import Function

# --- P-21: convolution_matrix -------------------------------------------------------------------


def windows_without_padding(h, k):
    """Take only windows that lie inside the image."""
    images, _, height, width = h.shape
    rows = [
        h[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height - k + 1)
        for v in range(width - k + 1)
    ]
    return np.array(rows)


def windows_flipped(h, k):
    """Flip each window, as a convolution in mathematics does."""
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        padded[n, :, u : u + k, v : v + k][:, ::-1, ::-1].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    return np.array(rows)


def channel_last_in_the_columns(h, k):
    """Order the columns by the kernel first and the channel last."""
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        np.moveaxis(padded[n, :, u : u + k, v : v + k], 0, -1).reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    return np.array(rows)


def positions_down_the_columns(h, k):
    """Go through the image column by column."""
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for v in range(width)
        for u in range(height)
    ]
    return np.array(rows)


def border_repeated(h, k):
    """Pad with the pixels of the border in place of zeros."""
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)), mode="edge")
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    return np.array(rows)


def padded_at_the_end_only(h, k):
    """Pad at the right and below alone, so that every window starts at its position."""
    images, _, height, width = h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (0, k - 1), (0, k - 1)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    return np.array(rows)


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


def kernel_flipped(h, w, b):
    """Flip the kernel."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    result = np.zeros((images, outputs, height, width))
    for u in range(height):
        for v in range(width):
            window = padded[:, :, u : u + k, v : v + k]
            flipped = w[:, :, ::-1, ::-1]
            result[:, :, u, v] = np.tensordot(window, flipped, axes=([1, 2, 3], [1, 2, 3])) + b
    return result


def product_only_reshaped(h, w, b):
    """Reshape the product into (N, o, r, s) without moving the axes."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    product = np.array(rows) @ w.reshape(outputs, -1).T + b
    return product.reshape(images, outputs, height, width)


def channels_left_last(h, w, b):
    """Return (N, r, s, o)."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    product = np.array(rows) @ w.reshape(outputs, -1).T + b
    return product.reshape(images, height, width, outputs)


def kernel_reshaped_the_wrong_way(h, w, b):
    """Reshape the kernel to (c k k, o) in place of transposing it."""
    outputs, _, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(images)
        for u in range(height)
        for v in range(width)
    ]
    product = np.array(rows) @ w.reshape(-1, outputs) + b
    return np.moveaxis(product.reshape(images, height, width, outputs), -1, 1)


def bias_once_per_channel(h, w, b):
    """Add the bias inside the loop over input channels."""
    outputs, channels, k, _ = w.shape
    border, (images, _, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    result = np.zeros((images, outputs, height, width))
    for p in range(channels):
        for u in range(height):
            for v in range(width):
                window = padded[:, p, u : u + k, v : v + k]
                result[:, :, u, v] += np.einsum("nij,oij->no", window, w[:, p]) + b
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


def channel_statistics_repeated(h, k):
    """Repeat the statistics of the channel, without the zeros."""
    mean, var = h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3))
    return np.repeat(mean, k * k), np.repeat(var, k * k)


def zeros_not_counted(h, k):
    """Average over the pixels alone and leave the zeros of the border out."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    edges = ((0, 0), (0, 0), (border, border), (border, border))
    padded = np.pad(h, edges, constant_values=np.nan)
    columns = [
        padded[:, p, i : i + height, j : j + width]
        for p in range(channels)
        for i in range(k)
        for j in range(k)
    ]
    return np.array([np.nanmean(c) for c in columns]), np.array([np.nanvar(c) for c in columns])


def columns_by_sample_variance(h, k):
    """Divide the variance by the rows minus 1."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    columns = [
        padded[:, p, i : i + height, j : j + width]
        for p in range(channels)
        for i in range(k)
        for j in range(k)
    ]
    return np.array([c.mean() for c in columns]), np.array([c.var(ddof=1) for c in columns])


def kernel_before_channel(h, k):
    """Order the columns by the kernel first and the channel last."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    columns = [
        padded[:, p, i : i + height, j : j + width]
        for i in range(k)
        for j in range(k)
        for p in range(channels)
    ]
    return np.array([c.mean() for c in columns]), np.array([c.var() for c in columns])


def second_moments_of_columns(h, k):
    """Return the mean of the squares for the variance."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    columns = [
        padded[:, p, i : i + height, j : j + width]
        for p in range(channels)
        for i in range(k)
        for j in range(k)
    ]
    return np.array([c.mean() for c in columns]), np.array([(c**2).mean() for c in columns])


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


def spread_around_the_channel(h, k):
    """Measure the variance of a column from the mean of its channel."""
    border, (_, channels, height, width) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))
    mean, var = [], []
    for p in range(channels):
        for i in range(k):
            for j in range(k):
                column = padded[:, p, i : i + height, j : j + width]
                mean.append(column.mean())
                var.append(np.mean((column - h[:, p].mean()) ** 2))
    return np.array(mean), np.array(var)


# --- P-23:channels: channel_statistics ----------------------------------------------------------


def statistics_of_each_image(h):
    """Average over the positions only: (N, c)."""
    return h.mean(axis=(2, 3)), h.var(axis=(2, 3))


def statistics_of_each_pixel(h):
    """Average over the images only: (c, r, s)."""
    return h.mean(axis=0), h.var(axis=0)


def variance_within_images(h):
    """Average the variances of the images, without the spread between them."""
    return h.mean(axis=(0, 2, 3)), h.var(axis=(2, 3)).mean(axis=0)


def channels_by_sample_variance(h):
    """Divide by one less."""
    return h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3), ddof=1)


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


def bound_without_the_corner(h, k):
    """Count the corner twice: leave out the last term."""
    r, s = h.shape[2:]
    return (k - 1) * (1 / (2 * r) + 1 / (2 * s)) * np.abs(h).max(axis=(0, 2, 3))


def bound_by_the_largest_value(h, k):
    """Take the largest entry, without the absolute value."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * h.max(axis=(0, 2, 3))


def one_bound_for_all_channels(h, k):
    """Take the largest entry of all channels."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * np.full(h.shape[1], np.abs(h).max())


def bound_with_the_mean(h, k):
    """Multiply by the mean absolute value."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * np.abs(h).mean(axis=(0, 2, 3))


def bound_by_precedence(h, k):
    """Write 1 / 2 * r, which multiplies by r."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / 2 * r + 1 / 2 * s - (k - 1) / 4 * r * s)
    return share * np.abs(h).max(axis=(0, 2, 3))


def bound_of_k(h, k):
    """Write k for k - 1."""
    r, s = h.shape[2:]
    share = k * (1 / (2 * r) + 1 / (2 * s) - k / (4 * r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


def bound_of_the_first_image(h, k):
    """Look for the maximum in the first image only."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * np.abs(h[0]).max(axis=(1, 2))


# --- P-24:scale: scale_conv ---------------------------------------------------------------------


def positions_without_a_root(channels, kernel, examples, positions):
    """Take rs where its root belongs."""
    return max(channels * kernel[0] * kernel[1] / examples, positions)


def square_kernel_assumed(channels, kernel, examples, positions):
    """Square the height of the kernel."""
    return max(channels * kernel[0] ** 2 / examples, np.sqrt(positions))


def kernel_sides_added(channels, kernel, examples, positions):
    """Add the sides of the kernel."""
    return max(channels * sum(kernel) / examples, np.sqrt(positions))


def dense_scale_of_a_convolution(channels, kernel, examples, positions):
    """Take the maximum with 1, as for a dense layer."""
    return max(channels * kernel[0] * kernel[1] / examples, 1.0)


def smaller_of_the_two(channels, kernel, examples, positions):
    """Take the minimum."""
    return min(channels * np.prod(kernel) / examples, np.sqrt(positions))


def positions_in_the_denominator(channels, kernel, examples, positions):
    """Divide by N times the root of rs, and compare with 1."""
    return max(channels * np.prod(kernel) / (examples * np.sqrt(positions)), 1.0)


def kernel_used_as_a_number(channels, kernel, examples, positions):
    """Square the kernel, which is a pair: this raises."""
    return max(channels * kernel**2 / examples, np.sqrt(positions))


# --- P-24: precondition_conv --------------------------------------------------------------------


def convolution_bias_reads_the_old_gradient(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Use the old gradient of the kernel in the second line."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (center * grad_weight).sum(axis=(1, 2, 3))


def statistics_along_the_kernel(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Let mean and variance broadcast along the last axis of the kernel."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - mean * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (mean * weight).sum(axis=(1, 2, 3))


def dense_scale_for_a_kernel(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Compare with 1 in place of the root of the positions."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, 1.0)
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (center * weight).sum(axis=(1, 2, 3))


def kernel_positions_averaged(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Average over the positions of the kernel where the sum belongs."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (center * weight).mean(axis=(2, 3)).sum(axis=1)


def convolution_floor_without_maximum(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Add both epsilons as they are, without the largest variance."""
    _, channels, k, _ = grad_weight.shape
    q2 = max(channels * k**2 / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 + eps2)[:, None, None]
    center = mean[:, None, None]
    weight = (grad_weight - center * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (center * weight).sum(axis=(1, 2, 3))


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


def each_image_by_itself(h):
    """Normalize each channel of each image: instance normalization."""
    return (h - h.mean(axis=(2, 3), keepdims=True)) / h.std(axis=(2, 3), keepdims=True)


def each_pixel_by_itself(h):
    """Normalize over the images, which is 0/0 for one of them."""
    return (h - h.mean(axis=0)) / h.std(axis=0)


def all_channels_together(h):
    """Normalize by one mean and one deviation."""
    return (h - h.mean()) / h.std()


def channels_divided_by_variance(h):
    """Divide by the variance."""
    return (h - h.mean(axis=(0, 2, 3), keepdims=True)) / h.var(axis=(0, 2, 3), keepdims=True)


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
    "P-21": (
        windows_without_padding,
        windows_flipped,
        channel_last_in_the_columns,
        positions_down_the_columns,
        border_repeated,
        padded_at_the_end_only,
        last_image_left_out,
    ),
    "P-21:forward": (
        convolution_without_bias,
        kernel_flipped,
        product_only_reshaped,
        channels_left_last,
        kernel_reshaped_the_wrong_way,
        bias_once_per_channel,
        first_channel_alone,
    ),
    "P-23:exact": (
        channel_statistics_repeated,
        zeros_not_counted,
        columns_by_sample_variance,
        kernel_before_channel,
        second_moments_of_columns,
        statistics_left_as_kernels,
        spread_around_the_channel,
    ),
    "P-23:channels": (
        statistics_of_each_image,
        statistics_of_each_pixel,
        variance_within_images,
        channels_by_sample_variance,
        channel_deviations,
        variance_before_mean,
        axes_of_the_image_kept,
    ),
    "P-23:bound": (
        bound_without_the_corner,
        bound_by_the_largest_value,
        one_bound_for_all_channels,
        bound_with_the_mean,
        bound_by_precedence,
        bound_of_k,
        bound_of_the_first_image,
    ),
    "P-24:scale": (
        positions_without_a_root,
        square_kernel_assumed,
        kernel_sides_added,
        dense_scale_of_a_convolution,
        smaller_of_the_two,
        positions_in_the_denominator,
        kernel_used_as_a_number,
    ),
    "P-24": (
        convolution_bias_reads_the_old_gradient,
        statistics_along_the_kernel,
        dense_scale_for_a_kernel,
        kernel_positions_averaged,
        convolution_floor_without_maximum,
        square_output_assumed,
        gradient_of_the_caller_changed,
    ),
    "P-25": (
        each_image_by_itself,
        each_pixel_by_itself,
        all_channels_together,
        channels_divided_by_variance,
        channels_with_epsilon,
        channels_broadcast_wrongly,
        channels_in_single_precision,
    ),
}
