"""Exercises on convolutions as matrix products, their statistics, and their preconditioner.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import precondition_conv, scale_conv
from optdl.bnp_cnn import (
    channel_statistics,
    conv_forward,
    convolution_matrix,
    exact_column_statistics,
    normalize_channels,
    statistics_bound,
)
from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.observation import calls, observe

# --- P-21 · a convolution as a matrix product -------------------------------------------------


def _image_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, k in (((1, 1, 2, 3), 3), ((2, 2, 3, 4), 3), ((1, 3, 4, 5), 5), ((2, 2, 4, 3), 1)):
        yield {"h": (1 + rng.normal(size=shape)).round(2), "k": k}


def flips_the_kernel(h, k):
    """Turn each window around, as convolutions do in mathematics."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k][:, ::-1, ::-1].ravel()
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def runs_down_the_kernel(h, k):
    """Order the entries of the kernel column by column."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].transpose(0, 2, 1).ravel()
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def puts_channels_last(h, k):
    """Let the channel vary fastest."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].transpose(1, 2, 0).ravel()
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def runs_down_the_image(h, k):
    """Order the positions column by column."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].ravel()
            for n in range(N)
            for v in range(s)
            for u in range(r)
        ]
    )


def mixes_the_images(h, k):
    """Put the same position of all images in neighboring rows."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].ravel()
            for u in range(r)
            for v in range(s)
            for n in range(N)
        ]
    )


def pads_after_alone(h, k):
    """Put all zeros below and to the right."""
    N, _, r, s = h.shape
    h = np.pad(h, ((0, 0), (0, 0), (0, k - 1), (0, k - 1)))
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].ravel()
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def repeats_the_edge(h, k):
    """Continue the image beyond its border by its last value."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)), mode="edge")
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].ravel()
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def leaves_out_the_border(h, k):
    """Visit only positions where the window fits into the image."""
    N, c, r, s = h.shape
    return np.array(
        [
            h[n, :, u : u + k, v : v + k].ravel()
            for n in range(N)
            for u in range(r - k + 1)
            for v in range(s - k + 1)
        ]
    ).reshape(-1, c * k * k)


def reshapes_with_the_channels_in_front(h, k):
    """Reshape windows of (N, c, r, s, k, k) as they stand."""
    m, (N, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    windows = [
        h[n, p, u : u + k, v : v + k]
        for n in range(N)
        for p in range(c)
        for u in range(r)
        for v in range(s)
    ]
    return np.array(windows).reshape(N * r * s, c * k * k)


def adds_the_column_of_ones(h, k):
    """Return [e, H]."""
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    return np.array(
        [
            np.append(1.0, h[n, :, u : u + k, v : v + k])
            for n in range(N)
            for u in range(r)
            for v in range(s)
        ]
    )


def _each_column_is_the_image_moved(function: Function, rng: np.random.Generator) -> bool:
    h = np.zeros((2, 3, 8, 9))
    h[:, :, 2:-2, 2:-2] = rng.normal(size=(2, 3, 4, 5))
    columns = np.asarray(function(h, 5)).reshape(2, 8, 9, 3, 5, 5)
    p, i, j = (int(rng.integers(limit)) for limit in (3, 5, 5))
    moved = np.roll(h[:, p], (2 - i, 2 - j), axis=(1, 2))
    return np.array_equal(columns[..., p, i, j], moved)


CONVOLUTION_MATRIX = Exercise(
    key="P-21",
    reference=convolution_matrix,
    cases=_image_cases,
    misconceptions=(
        Misconception(
            "your windows are rotated by 180°, as if you flipped the kernel; use it as it is",
            flips_the_kernel,
        ),
        Misconception(
            "your columns run down the kernel; w.reshape(-1) reads it row by row",
            runs_down_the_kernel,
        ),
        Misconception(
            "the channel varies fastest in your columns; in w of shape (c, k, k) it comes "
            "first, so it varies slowest",
            puts_channels_last,
        ),
        Misconception(
            "your rows run down the image; position (u, v) belongs to row u·s + v",
            runs_down_the_image,
        ),
        Misconception(
            "your rows mix the images; all positions of the first image come first",
            mixes_the_images,
        ),
        Misconception(
            "all your zeros come after the image; half of them belong before it",
            pads_after_alone,
        ),
        Misconception("you continue the image beyond its border; pad with zeros", repeats_the_edge),
        Misconception(
            "you visit only positions where the window fits; pad with (k − 1)/2 zeros on each "
            "side, and visit all r·s",
            leaves_out_the_border,
        ),
        Misconception(
            "you reshape windows of shape (N, c, r, s, k, k); first move the axis of the "
            "channels behind those of the positions",
            reshapes_with_the_channels_in_front,
        ),
        Misconception(
            "you include the column of ones; this matrix has a column for each kernel entry "
            "and none for the bias",
            adds_the_column_of_ones,
        ),
    ),
    properties=(
        Property(
            "each column is a feature map, shifted by the position of its kernel entry",
            _each_column_is_the_image_moved,
        ),
    ),
)


# --- P-21 · the forward pass ------------------------------------------------------------------


def _forward_cases(rng: np.random.Generator) -> Iterator[Case]:
    large = ((1, 1, 2, 3), 1, 3), ((2, 2, 3, 4), 3, 3), ((1, 3, 4, 5), 2, 5)
    # small enough to compute by hand, each with two of one kind
    small = ((1, 2, 2, 3), 1, 3), ((2, 1, 2, 3), 1, 3), ((1, 1, 2, 3), 2, 3)
    for shape, o, k in (*large, *small):
        yield {
            "h": (1 + rng.normal(size=shape)).round(2),
            "w": rng.normal(size=(o, shape[1], k, k)).round(2),
            "b": rng.uniform(1, 2, size=o).round(2),
        }


def turns_the_kernel_around(h, w, b):
    """Convolve as mathematics does."""
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    w = w[:, :, ::-1, ::-1]
    parts = [
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts) + b[:, None, None]


def transposes_the_kernel(h, w, b):
    """Swap rows and columns of the kernel."""
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    parts = [
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, j, i])
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts) + b[:, None, None]


def forgets_the_bias(h, w, b):
    """Leave out b."""
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return sum(
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    )


def adds_the_bias_for_each_entry(h, w, b):
    """Add b once for each entry of the kernel."""
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return sum(
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j]) + b[:, None, None]
        for i in range(k)
        for j in range(k)
    )


def leaves_outputs_last(h, w, b):
    """Return (N, r, s, o)."""
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return b + sum(
        np.einsum("ncrs,oc->nrso", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    )


def reshapes_where_axes_must_move(h, w, b):
    """Force the result into the shape (N, o, r, s) without moving an axis."""
    k, (N, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    parts = [
        np.einsum("ncrs,oc->nrso", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    ]
    return (b + sum(parts)).reshape(N, len(b), r, s)


def takes_the_mean_of_the_channels(h, w, b):
    """Average over the input channels."""
    k, (_, c, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    parts = [
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts) / c + b[:, None, None]


def reshapes_the_kernel_where_it_must_be_transposed(h, w, b):
    """Reshape the kernel to (c k k, o)."""
    (o, c, k, _), (_, _, r, s) = w.shape, h.shape
    w = w.reshape(-1, o).T.reshape(o, c, k, k)
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    parts = [
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts) + b[:, None, None]


def _a_kernel_with_one_entry_moves_one_channel(
    function: Function, rng: np.random.Generator
) -> bool:
    h = np.zeros((2, 3, 6, 7))
    h[:, :, 1:-1, 1:-1] = rng.normal(size=(2, 3, 4, 5))
    p, i, j = (int(index) for index in rng.integers(3, size=3))
    w, b = np.zeros((2, 3, 3, 3)), rng.normal(size=2)
    w[1, p, i, j] = 2.0
    output = np.asarray(function(h, w, b))
    moved = 2.0 * np.roll(h[:, p], (1 - i, 1 - j), axis=(1, 2))
    return bool(np.allclose(output[:, 0], b[0]) and np.allclose(output[:, 1], moved + b[1]))


CONV_FORWARD = Exercise(
    key="P-21:forward",
    reference=conv_forward,
    cases=_forward_cases,
    misconceptions=(
        Misconception("you flip the kernel; networks use it as it stands", turns_the_kernel_around),
        Misconception("you swap rows and columns of the kernel", transposes_the_kernel),
        Misconception("the bias is missing", forgets_the_bias),
        Misconception(
            "you add the bias once for each kernel entry; add it once",
            adds_the_bias_for_each_entry,
        ),
        Misconception(
            "your output channels come last; they belong to the second axis",
            leaves_outputs_last,
        ),
        Misconception(
            "you reshape to (N, o, r, s) with the numbers in the order N, r, s, o; move the "
            "axis, as np.moveaxis does",
            reshapes_where_axes_must_move,
        ),
        Misconception(
            "you average over the input channels; their contributions add up",
            takes_the_mean_of_the_channels,
        ),
        Misconception(
            "you reshape the kernel to (c k k, o), which mixes its output channels; reshape "
            "it to (o, c k k) and transpose",
            reshapes_the_kernel_where_it_must_be_transposed,
        ),
    ),
    properties=(
        Property(
            "a kernel with one nonzero entry shifts one channel, and the bias is added",
            _a_kernel_with_one_entry_moves_one_channel,
        ),
    ),
)


# --- P-23 · statistics of the columns ---------------------------------------------------------


def _column_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, k in (((1, 1, 2, 3), 3), ((2, 2, 3, 4), 3), ((2, 2, 4, 3), 5)):
        spread = rng.uniform(0.5, 2, size=(shape[1], 1, 1))
        yield {"h": (2 + spread * rng.normal(size=shape)).round(2), "k": k}


def repeats_the_channels_statistics(h, k):
    """Take the channel's statistics for each of its columns."""
    return tuple(np.repeat(part, k * k) for part in (h.mean((0, 2, 3)), h.var((0, 2, 3))))


def leaves_out_the_zeros(h, k):
    """Average over the real entries alone."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)), constant_values=np.nan)
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return np.nanmean(columns, axis=1), np.nanvar(columns, axis=1)


def looks_the_other_way(h, k):
    """Flip the kernel."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, k - 1 - i : k - 1 - i + r, k - 1 - j : k - 1 - j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return columns.mean(axis=1), columns.var(axis=1)


def orders_down_the_kernel(h, k):
    """Order the columns of the matrix down the columns of the kernel."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for j in range(k)
            for i in range(k)
        ]
    )
    return columns.mean(axis=1), columns.var(axis=1)


def measures_from_the_channels_mean(h, k):
    """Measure the spread of the column from the mean of the channel."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    center = np.repeat(h.mean(axis=(0, 2, 3)), k * k)
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return columns.mean(axis=1), np.mean((columns - center[:, None]) ** 2, axis=1)


def takes_one_row_less(h, k):
    """Divide the variance by Nrs − 1."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return columns.mean(axis=1), columns.var(axis=1, ddof=1)


def returns_the_columns_deviation(h, k):
    """Return the standard deviation for the variance."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return columns.mean(axis=1), columns.std(axis=1)


def takes_the_mean_square_of_a_column(h, k):
    """Leave the mean in the variance."""
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return columns.mean(axis=1), np.mean(columns**2, axis=1)


def _with_a_dark_border_all_columns_are_alike(function: Function, rng: np.random.Generator) -> bool:
    h = np.zeros((2, 3, 8, 9))
    h[:, :, 2:-2, 2:-2] = rng.normal(size=(2, 3, 4, 5))
    mean, var = (np.reshape(part, (3, 25)) for part in function(h, 5))
    whole = h.transpose(1, 0, 2, 3).reshape(3, 1, -1)
    return bool(np.allclose(mean, whole.mean(axis=2)) and np.allclose(var, whole.var(axis=2)))


EXACT_COLUMN_STATISTICS = Exercise(
    key="P-23:exact",
    reference=exact_column_statistics,
    cases=_column_cases,
    parts=("mean", "var"),
    misconceptions=(
        Misconception(
            "you return the channel's statistics k² times; here each column has its own",
            repeats_the_channels_statistics,
        ),
        Misconception(
            "you leave out the zeros of the padding; they are entries of the matrix, and the "
            "mean divides by Nrs",
            leaves_out_the_zeros,
        ),
        Misconception(
            "your kernel is flipped; its first entry meets the pixel at the upper left",
            looks_the_other_way,
        ),
        Misconception(
            "your columns run down the kernel; use the order of w.reshape(-1)",
            orders_down_the_kernel,
        ),
        Misconception(
            "you measure a column's variance from the channel's mean; take the column's own",
            measures_from_the_channels_mean,
        ),
        Misconception(
            "your variance divides by Nrs − 1; here it divides by Nrs", takes_one_row_less
        ),
        Misconception(
            "you return the standard deviation; return the variance",
            returns_the_columns_deviation,
        ),
        Misconception(
            "you return the mean of the squares; subtract the square of the mean",
            takes_the_mean_square_of_a_column,
        ),
    ),
    properties=(
        Property(
            "if the border of a map is zero, all its columns have the channel's statistics",
            _with_a_dark_border_all_columns_are_alike,
        ),
    ),
)


# --- P-23 · statistics of the channels --------------------------------------------------------


def _channel_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape in ((1, 1, 2, 3), (2, 2, 2, 3), (3, 4, 3, 2)):
        spread = rng.uniform(0.5, 2, size=(shape[1], 1, 1))
        center = rng.normal(size=(shape[0], 1, 1, 1))
        yield {"h": (center + 1 + spread * rng.normal(size=shape)).round(2)}


def averages_over_the_images_alone(h):
    """Take a mean for each pixel."""
    return h.mean(axis=0), h.var(axis=0)


def averages_over_the_channels(h):
    """Take a mean for each image."""
    return h.mean(axis=(1, 2, 3)), h.var(axis=(1, 2, 3))


def averages_over_everything(h):
    """Take one mean for all channels."""
    return np.full(h.shape[1], h.mean()), np.full(h.shape[1], h.var())


def averages_the_variances_of_the_images(h):
    """Take the variance within each image, and the mean of these."""
    return h.mean(axis=(0, 2, 3)), h.var(axis=(2, 3)).mean(axis=0)


def counts_the_padding(h):
    """Take the padded image for data."""
    h = np.pad(h, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3))


def divides_by_one_less(h):
    """Take the unbiased variance."""
    return h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3), ddof=1)


def returns_the_deviation(h):
    """Return the standard deviation for the variance."""
    return h.mean(axis=(0, 2, 3)), h.std(axis=(0, 2, 3))


def keeps_the_images_apart(h):
    """Take a mean for each image and each channel."""
    return h.mean(axis=(2, 3)), h.var(axis=(2, 3))


def takes_the_mean_square(h):
    """Leave the mean in the variance."""
    return h.mean(axis=(0, 2, 3)), np.mean(h**2, axis=(0, 2, 3))


def _channels_do_not_see_each_other(function: Function, rng: np.random.Generator) -> bool:
    h = rng.normal(size=(3, 4, 5, 6))
    mean, var = (np.asarray(part) for part in function(h))
    h[:, 1] = 10 + 3 * h[::-1, 1, ::-1]
    moved, wider = (np.asarray(part) for part in function(h))
    mean, var = mean.copy(), var.copy()
    mean[1], var[1] = 10 + 3 * mean[1], 9 * var[1]
    return bool(np.allclose(moved, mean) and np.allclose(wider, var))


CHANNEL_STATISTICS = Exercise(
    key="P-23:channels",
    reference=channel_statistics,
    cases=_channel_cases,
    parts=("mean", "var"),
    misconceptions=(
        Misconception(
            "you average over the images only; the positions are rows of the matrix, too",
            averages_over_the_images_alone,
        ),
        Misconception(
            "you average over the channels; each channel has its own mean, over all images",
            averages_over_the_channels,
        ),
        Misconception(
            "you take one mean for all channels; each has its own", averages_over_everything
        ),
        Misconception(
            "you average the images' variances; the spread between images is then missing",
            averages_the_variances_of_the_images,
        ),
        Misconception("you count the padding as data; take the map without it", counts_the_padding),
        Misconception(
            "your variance divides by Nrs − 1; here it divides by Nrs", divides_by_one_less
        ),
        Misconception(
            "you return the standard deviation; return the variance", returns_the_deviation
        ),
        Misconception(
            "you return statistics of each image; all images share the mean and the variance "
            "of a channel",
            keeps_the_images_apart,
        ),
        Misconception(
            "you return the mean of the squares; subtract the square of the mean",
            takes_the_mean_square,
        ),
    ),
    properties=(
        Property(
            "shifting and scaling one channel changes the statistics of this channel only",
            _channels_do_not_see_each_other,
        ),
    ),
)


# --- P-23 · a bound on the difference of the means --------------------------------------------


def _bound_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape, k in (((1, 1, 2, 3), 3), ((2, 2, 3, 4), 3), ((2, 3, 5, 4), 5)):
        h = rng.uniform(0.5, 3, size=shape).round(2)
        h[-1, 0, 0, -1] = -4.0
        yield {"h": h, "k": k}


def takes_k_for_k_minus_one(h, k):
    """Let the whole kernel reach beyond the border."""
    r, s = h.shape[2:]
    share = k * (1 / (2 * r) + 1 / (2 * s) - k / (4 * r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


def counts_the_corner_twice(h, k):
    """Leave out the last term."""
    r, s = h.shape[2:]
    return (k - 1) * (1 / (2 * r) + 1 / (2 * s)) * np.abs(h).max(axis=(0, 2, 3))


def adds_the_corner(h, k):
    """Add the last term."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) + (k - 1) / (4 * r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


def counts_both_sides(h, k):
    """Let a column miss k − 1 rows and columns."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / r + 1 / s - (k - 1) / (r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


def takes_the_largest_number(h, k):
    """Forget the absolute value."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * h.max(axis=(0, 2, 3))


def takes_the_largest_of_all_channels(h, k):
    """Let the channels share one maximum."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return np.full(h.shape[1], share * np.abs(h).max())


def takes_the_largest_of_each_image(h, k):
    """Take the maximum over the wrong axes."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * np.abs(h).max(axis=(1, 2, 3))


def takes_the_mean_size(h, k):
    """Take the mean of |h| for its maximum."""
    r, s = h.shape[2:]
    share = (k - 1) * (1 / (2 * r) + 1 / (2 * s) - (k - 1) / (4 * r * s))
    return share * np.abs(h).mean(axis=(0, 2, 3))


def _no_column_errs_more(function: Function, rng: np.random.Generator) -> bool:
    """Try random maps, and a constant one, which reaches the bound."""
    maps = [1 + rng.normal(size=(2, 3, 5, 4)) for _ in range(20)]
    arguments = [*((h, 5) for h in maps), (np.full((1, 1, 4, 6), -2.0), 3)]
    *bounds, reached = observe(calls, function, *arguments)
    for h, bound in zip(maps, bounds, strict=True):
        error = exact_column_statistics(h, 5)[0].reshape(3, 25) - h.mean((0, 2, 3))[:, None]
        if np.any(np.abs(error).max(axis=1) > np.asarray(bound) + 1e-12):
            return False
    return bool(np.allclose(reached, 2 * (1 - 0.75 * 5 / 6)))


STATISTICS_BOUND = Exercise(
    key="P-23:bound",
    reference=statistics_bound,
    cases=_bound_cases,
    misconceptions=(
        Misconception(
            "you use k in place of k − 1; the center of the kernel misses nothing",
            takes_k_for_k_minus_one,
        ),
        Misconception(
            "you count the corner twice, in the rows and in the columns; subtract it once",
            counts_the_corner_twice,
        ),
        Misconception("you add the corner; subtract it", adds_the_corner),
        Misconception(
            "you count too many rows and columns; an entry misses at most (k − 1)/2 of each",
            counts_both_sides,
        ),
        Misconception(
            "you take the largest h; the bound needs the largest absolute value",
            takes_the_largest_number,
        ),
        Misconception(
            "you take the maximum over all channels; each has its own",
            takes_the_largest_of_all_channels,
        ),
        Misconception(
            "your maximum runs over the wrong axes; return one number for each channel",
            takes_the_largest_of_each_image,
        ),
        Misconception(
            "you take the mean of |h|; only the maximum makes it a bound", takes_the_mean_size
        ),
    ),
    properties=(
        Property("no error exceeds the bound, and a constant map reaches it", _no_column_errs_more),
    ),
)


# --- P-24 · the scale of a layer --------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    for kernel, N, positions in (
        ((1, 1), 4, 20),
        ((3, 3), 2, 64),
        ((3, 3), 128, 256),
        ((3, 5), 1, 36),
    ):
        yield {
            "channels": int(rng.integers(5, 9)),
            "kernel": kernel,
            "examples": N,
            "positions": positions,
        }


def forgets_the_root(channels, kernel, examples, positions):
    """Take rs."""
    return max(channels * kernel[0] * kernel[1] / examples, positions)


def forgets_the_images(channels, kernel, examples, positions):
    """Take c k²."""
    return max(channels * kernel[0] * kernel[1], np.sqrt(positions))


def forgets_to_square_the_kernel(channels, kernel, examples, positions):
    """Take c k / N."""
    return max(channels * kernel[0] / examples, np.sqrt(positions))


def forgets_the_channels(channels, kernel, examples, positions):
    """Take k² / N."""
    return max(kernel[0] * kernel[1] / examples, np.sqrt(positions))


def takes_the_smaller(channels, kernel, examples, positions):
    """Take the minimum."""
    return min(channels * kernel[0] * kernel[1] / examples, np.sqrt(positions))


def counts_all_rows(channels, kernel, examples, positions):
    """Treat the Nrs rows as independent, as those of a dense layer."""
    return max(channels * kernel[0] * kernel[1] / (examples * positions), 1)


def returns_q(channels, kernel, examples, positions):
    """Return q, not its square."""
    return np.sqrt(max(channels * kernel[0] * kernel[1] / examples, np.sqrt(positions)))


def adds_the_two(channels, kernel, examples, positions):
    """Add what should be compared."""
    return channels * kernel[0] * kernel[1] / examples + np.sqrt(positions)


def takes_the_one_of_a_dense_layer(channels, kernel, examples, positions):
    """Take 1 for √(rs)."""
    return max(channels * kernel[0] * kernel[1] / examples, 1)


def _many_images_leave_the_root(function: Function, rng: np.random.Generator) -> bool:
    c, k, side = (int(rng.integers(*limits)) for limits in ((1, 60), (2, 8), (2, 60)))
    many = function(c, (k, k), 10**9, side**2)
    one = function(c, (k, k), 1, 1)
    return bool(np.isclose(many, side) and np.isclose(one, c * k**2))


SCALE_CONV = Exercise(
    key="P-24:scale",
    reference=scale_conv,
    cases=_scale_cases,
    misconceptions=(
        Misconception("you use rs; take its square root", forgets_the_root),
        Misconception("you do not divide c k² by N, the number of images", forgets_the_images),
        Misconception(
            "you count one side of the kernel; it has height times width entries",
            forgets_to_square_the_kernel,
        ),
        Misconception(
            "you count one input channel; an output reads all c of them", forgets_the_channels
        ),
        Misconception("you take the smaller of the two; take the larger", takes_the_smaller),
        Misconception(
            "you count Nrs rows; the paper counts N√(rs), because the windows overlap",
            counts_all_rows,
        ),
        Misconception("you return q; return its square", returns_q),
        Misconception("you add the two; take the larger", adds_the_two),
        Misconception(
            "you compare c k²/N with 1, as in a dense layer; compare it with √(rs)",
            takes_the_one_of_a_dense_layer,
        ),
    ),
    properties=(
        Property(
            "with very many images q² is √(rs); with one image of one pixel it is c k²",
            _many_images_leave_the_root,
        ),
    ),
)


# --- P-24 · one step --------------------------------------------------------------------------


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    for (o, c, k), N, r, s in (((2, 2, 1), 4, 4, 5), ((2, 2, 3), 1, 2, 3), ((3, 3, 3), 16, 4, 4)):
        yield {
            "grad_weight": rng.normal(size=(o, c, k, k)).round(2),
            "grad_bias": rng.uniform(1, 2, size=o).round(2),
            "mean": rng.uniform(1, 2, size=c).round(2),
            "var": rng.uniform(0.5, 3, size=c).round(2),
            "batch_size": N,
            "height": r,
            "width": s,
            "eps1": 0.1,
            "eps2": 0.05,
        }


def divides_by_the_deviation(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Divide by σ̃."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = np.sqrt(var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def uses_the_old_gradient_for_the_bias(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take G_w as it came for the bias."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * grad_weight).sum(axis=(1, 2, 3))


def uses_the_new_bias_for_the_weight(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Update the bias first."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    bias = grad_bias / q2 - (m * grad_weight).sum(axis=(1, 2, 3))
    return (grad_weight - m * bias[:, None, None, None]) / (q2 * smoothed), bias


def forgets_the_sum_over_the_kernel(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take the mean over the kernel's entries, and the sum over the channels alone."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).mean(axis=(2, 3)).sum(axis=1)


def indexes_the_mean_by_output(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Subtract μ(d) G_b(d)."""
    c, *kernel = grad_weight.shape[1:]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - (mean * grad_bias)[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (mean[:, None, None] * weight).sum(axis=(1, 2, 3))


def scales_the_weight_alone(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Leave G_b unscaled."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias - (m * weight).sum(axis=(1, 2, 3))


def scales_twice(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Divide the sum by q² again."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, (grad_bias - (m * weight).sum(axis=(1, 2, 3))) / q2


def forgets_the_floor(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Divide by σ² as it is."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * var[:, None, None])
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def forgets_the_root_in_the_step(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take rs for its root."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, height * width)
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def forgets_the_images_in_the_step(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take c k² without N."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel), np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def divides_by_q(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Divide by q."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q = np.sqrt(max(c * np.prod(kernel) / batch_size, np.sqrt(height * width)))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q * smoothed)
    return weight, grad_bias / q - (m * weight).sum(axis=(1, 2, 3))


def takes_the_scale_of_a_dense_layer(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Take q² = max{c k²/N, 1}."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, 1)
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def does_not_center(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Leave μ G_b out of the first line."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    weight = grad_weight / (q2 * (var + eps1 * var.max() + eps2)[:, None, None])
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def adds_the_sum(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Add in the second line."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = (var + eps1 * var.max() + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 + (m * weight).sum(axis=(1, 2, 3))


def takes_a_share_of_each_variance(
    grad_weight, grad_bias, mean, var, batch_size, height, width, eps1=1e-2, eps2=1e-4
):
    """Add ε₁ times the channel's own variance."""
    (c, *kernel), m = grad_weight.shape[1:], mean[:, None, None]
    q2 = max(c * np.prod(kernel) / batch_size, np.sqrt(height * width))
    smoothed = ((1 + eps1) * var + eps2)[:, None, None]
    weight = (grad_weight - m * grad_bias[:, None, None, None]) / (q2 * smoothed)
    return weight, grad_bias / q2 - (m * weight).sum(axis=(1, 2, 3))


def _is_the_matrix_form(function: Function, rng: np.random.Generator) -> bool:
    """Compare with P Pᵀ / q², written out."""
    weight, bias = rng.normal(size=(4, 2, 3, 3)), rng.normal(size=4)
    mean, var = rng.normal(size=2), rng.uniform(1, 2, size=2)
    smoothed = np.repeat(var + 0.01 * var.max() + 0.0001, 9)
    P = np.diag([1.0, *smoothed**-0.5])
    P[0, 1:] = -np.repeat(mean, 9) * smoothed**-0.5
    expected = P @ P.T @ np.vstack([bias, weight.reshape(4, -1).T]) / np.sqrt(30)
    new_weight, new_bias = function(weight, bias, mean, var, 60, 5, 6)
    return bool(
        np.allclose(np.reshape(new_weight, (4, -1)).T, expected[1:], rtol=1e-10, atol=1e-12)
        and np.allclose(new_bias, expected[0], rtol=1e-10, atol=1e-12)
    )


PRECONDITION_CONV = Exercise(
    key="P-24",
    reference=precondition_conv,
    cases=_step_cases,
    parts=("grad_weight", "grad_bias"),
    misconceptions=(
        Misconception("you divide by σ̃; divide by its square", divides_by_the_deviation),
        Misconception(
            "you take the old G_w for G_b; the second line uses the new one",
            uses_the_old_gradient_for_the_bias,
        ),
        Misconception(
            "you update G_b first; the new G_w comes from the old G_b",
            uses_the_new_bias_for_the_weight,
        ),
        Misconception(
            "you average over the kernel's entries for G_b; sum over i and j too",
            forgets_the_sum_over_the_kernel,
        ),
        Misconception(
            "your μ is indexed by the output channel d; it belongs to the input channel p",
            indexes_the_mean_by_output,
        ),
        Misconception("you do not divide G_b by q²", scales_the_weight_alone),
        Misconception(
            "you divide the sum over the new G_w by q²; the new G_w already contains 1/q²",
            scales_twice,
        ),
        Misconception(
            "you divide by σ²; first add ε₁ max σ² + ε₂, which keeps it away from zero",
            forgets_the_floor,
        ),
        Misconception(
            "your q² contains rs; it needs the square root of rs",
            forgets_the_root_in_the_step,
        ),
        Misconception(
            "your q² does not contain N; it is the larger of c k²/N and √(rs)",
            forgets_the_images_in_the_step,
        ),
        Misconception("you divide by q; both lines divide by q²", divides_by_q),
        Misconception(
            "you take the q² of a dense layer, max{n/N, 1}; here √(rs) stands in place of 1",
            takes_the_scale_of_a_dense_layer,
        ),
        Misconception("your first line does not subtract μ(p) G_b(d)", does_not_center),
        Misconception("your second line adds the sum; it subtracts it", adds_the_sum),
        Misconception(
            "you add ε₁ times each channel's own variance; take the largest variance of all "
            "channels",
            takes_a_share_of_each_variance,
        ),
    ),
    properties=(Property("the step is the matrix P Pᵀ / q²", _is_the_matrix_form),),
)


# --- P-25 · one image -------------------------------------------------------------------------


def _normalize_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shape in ((1, 1, 2, 3), (1, 2, 3, 2), (2, 2, 2, 3), (3, 4, 3, 2)):
        spread = rng.uniform(0.5, 2, size=(shape[1], 1, 1))
        center = rng.normal(size=(shape[0], 1, 1, 1))
        yield {"h": (center + 3 + spread * rng.normal(size=shape)).round(2)}


def normalizes_each_pixel(h):
    """Take the mean and the deviation of each pixel over the images."""
    return (h - h.mean(axis=0)) / h.std(axis=0)


def normalizes_each_image(h):
    """Take the mean and the deviation of each image's channel."""
    axes = (2, 3)
    return (h - h.mean(axis=axes, keepdims=True)) / h.std(axis=axes, keepdims=True)


def normalizes_all_channels_of_an_image(h):
    """Take the mean and the deviation of each image."""
    axes = (1, 2, 3)
    return (h - h.mean(axis=axes, keepdims=True)) / h.std(axis=axes, keepdims=True)


def normalizes_everything_together(h):
    """Take one mean and one deviation."""
    return (h - h.mean()) / h.std()


def divides_by_the_variance(h):
    """Forget the root."""
    axes = (0, 2, 3)
    return (h - h.mean(axis=axes, keepdims=True)) / h.var(axis=axes, keepdims=True)


def takes_the_unbiased_variance(h):
    """Divide the variance by Nrs − 1."""
    axes = (0, 2, 3)
    return (h - h.mean(axis=axes, keepdims=True)) / h.std(axis=axes, keepdims=True, ddof=1)


def scales_without_centering(h):
    """Leave the mean where it is."""
    return h / h.std(axis=(0, 2, 3), keepdims=True)


def centers_without_scaling(h):
    """Subtract the mean alone."""
    return h - h.mean(axis=(0, 2, 3), keepdims=True)


def scales_before_it_centers(h):
    """Divide h alone by the standard deviation."""
    axes = (0, 2, 3)
    return h / h.std(axis=axes, keepdims=True) - h.mean(axis=axes, keepdims=True)


def _one_image_is_centered_and_scaled(function: Function, rng: np.random.Generator) -> bool:
    """Try one image, then a second one: each channel keeps one scale for both."""
    h = 5 + rng.normal(size=(1, 3, 4, 5))
    one = np.asarray(function(h))
    moments = np.allclose(one.mean((0, 2, 3)), 0) and np.allclose(one.std((0, 2, 3)), 1)
    both = np.asarray(function(np.concatenate([h, 2 * h])))
    return bool(moments and np.allclose(np.ptp(both[1], (1, 2)), 2 * np.ptp(both[0], (1, 2))))


NORMALIZE_CHANNELS = Exercise(
    key="P-25",
    reference=normalize_channels,
    cases=_normalize_cases,
    misconceptions=(
        Misconception(
            "you normalize each pixel over the images; with one image nothing is left",
            normalizes_each_pixel,
        ),
        Misconception(
            "you normalize each image by itself; all images share a channel's mean",
            normalizes_each_image,
        ),
        Misconception(
            "you normalize each image over all its channels, as layer normalization does",
            normalizes_all_channels_of_an_image,
        ),
        Misconception(
            "you take one mean for all channels; each has its own",
            normalizes_everything_together,
        ),
        Misconception(
            "you divide by the variance; divide by its square root, σ", divides_by_the_variance
        ),
        Misconception(
            "your variance divides by Nrs − 1; here it divides by Nrs",
            takes_the_unbiased_variance,
        ),
        Misconception("you scale, but do not center", scales_without_centering),
        Misconception("you center, but do not scale", centers_without_scaling),
        Misconception(
            "you divide h alone by σ; subtract the mean first, and divide the difference",
            scales_before_it_centers,
        ),
    ),
    properties=(
        Property(
            "one image is centered and scaled; two share one scale",
            _one_image_is_centered_and_scaled,
        ),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    CONVOLUTION_MATRIX,
    CONV_FORWARD,
    EXACT_COLUMN_STATISTICS,
    CHANNEL_STATISTICS,
    STATISTICS_BOUND,
    SCALE_CONV,
    PRECONDITION_CONV,
    NORMALIZE_CHANNELS,
)
