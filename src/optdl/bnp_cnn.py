r"""Convolutional layers as matrix products, and what BNP makes of them.

A convolution is linear in its kernel. Lay out, for each position of each image, the numbers that
the kernel meets there, as one row of a matrix :math:`\mathcal H`. Then the layer is
:math:`\hat a = [e, \mathcal H]\,\hat w`, as in a dense layer, and all that holds there holds here:
the Hessian, the preconditioner, and why the statistics are those of the channels.

The step itself is :func:`optdl.bnp.precondition_conv`. Here all matrices are written out, which is
for understanding and for tests.

Convolutions are as networks use them: the kernel is not flipped, its size k is odd, and zeros
around the image keep the output at the size of the input ('same').

**Order of the columns.** As torch stores a kernel, ``weight[d].reshape(-1)``: input channel first,
then the row of the kernel, then its column. Column ``(p * k + i) * k + j`` belongs to
``weight[d, p, i, j]``. The paper runs down the columns of the kernel first; its
:math:`\mathcal H` has the same columns in another order.

**Order of the rows.** As NumPy stores images without channels: example, row, column.

Axis letters, fixed for the module: ``N`` images, ``c`` input channels, ``r`` and ``s`` height and
width, ``k`` kernel size, ``o`` output channels.
"""

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from optdl.bnp import (
    batch_statistics,
    extended_activations,
    preconditioner,
    smoothed_variance,
)
from optdl.special import softmax

__all__ = [
    "border_share",
    "channel_statistics",
    "conv_forward",
    "conv_layer_hessian",
    "convolution_matrix",
    "exact_column_statistics",
    "normalize_channels",
    "pad",
    "preconditioned_norm",
    "preconditioner_conv",
    "relu_curvatures",
    "rows",
    "statistics_bound",
]

Images = Float[np.ndarray, "N c r s"]
Channels = Float[np.ndarray, " c"]
Columns = Float[np.ndarray, "c*{k}*{k}"]
Square = Float[np.ndarray, "c*{k}*{k}+1 c*{k}*{k}+1"]
"""Beside an argument k; the bias comes first."""


# --- A convolution is a matrix product --------------------------------------------------------


def pad(h: Images, k: int) -> Float[np.ndarray, "N c r+{k}-1 s+{k}-1"]:
    r"""Return the images with :math:`\frac{k-1}2` rows and columns of zeros on each side.

    Here k is the height and width of the kernel. Raises ValueError where it is not odd: no border
    is then the same on both sides. Source: P-21.

    >>> pad(np.ones((1, 1, 1, 2)), 3)[0, 0]
    array([[0., 0., 0., 0.],
           [0., 1., 1., 0.],
           [0., 0., 0., 0.]])
    """
    if k < 1 or k % 2 == 0:
        raise ValueError(
            f"k must be odd and positive; got {k}: only then can equal borders keep the size"
        )
    border = (k - 1) // 2
    return np.pad(h, ((0, 0), (0, 0), (border, border), (border, border)))


def convolution_matrix(h: Images, k: int) -> Float[np.ndarray, "N*r*s c*{k}*{k}"]:
    r"""Return :math:`\mathcal H`: a convolution is :math:`\mathcal H\,\mathrm{vec}(w)`.

    Row ``(n * r + u) * s + v`` holds the window of the padded image n around position (u, v), in
    the order of ``weight[d].reshape(-1)``:

    .. math:: \mathcal H_{(n,u,v),\,(p,i,j)} =
        h\bigl(n,\ p,\ u + i - \tfrac{k-1}2,\ v + j - \tfrac{k-1}2\bigr)

    with zeros outside the image. Read downwards, each column is the whole feature map, shifted. k
    is odd, as in :func:`pad`. Source: P-21.

    >>> h = np.array([[[[1.0, 2.0, 3.0]]]])
    >>> convolution_matrix(h, 3)[:, 3:6]  # the kernel's middle row; the others meet zeros
    array([[0., 1., 2.],
           [1., 2., 3.],
           [2., 3., 0.]])
    """
    windows = sliding_window_view(pad(h, k), (k, k), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(rows(h), h.shape[1] * k**2)


def rows(h: Images) -> int:
    r"""Return :math:`N r s`, the rows of :math:`\mathcal H`: how many examples a kernel sees.

    A dense layer has N of them, and with N = 1 nothing to center or scale. A convolution still has
    rs. Source: P-21, P-25.

    >>> rows(np.ones((1, 3, 32, 32)))
    1024
    """
    examples, _, height, width = h.shape
    return examples * height * width


def conv_forward(
    h: Images, w: Float[np.ndarray, "o c k k"], b: Float[np.ndarray, " o"]
) -> Float[np.ndarray, "N o r s"]:
    r"""Return the output of the layer, from one matrix product (Source: P-21).

    .. math:: \hat a = [e, \mathcal H]\,\hat w, \qquad
        \hat w = \begin{bmatrix} b_d \\ \mathrm{vec}(w_d) \end{bmatrix}

    for all output channels d at once. w and b are those of ``nn.Conv2d``, with an odd k. Raises
    ValueError where they do not fit each other or h.

    >>> h, w = np.array([[[[1.0, 2.0, 3.0]]]]), np.zeros((1, 1, 3, 3))
    >>> w[0, 0, 1] = [0.0, 0.0, 1.0]  # look one to the right
    >>> conv_forward(h, w, np.array([10.0]))[0, 0]
    array([[12., 13., 10.]])
    """
    outputs, channels, k, width = w.shape
    if channels != h.shape[1] or k != width or len(b) != outputs:
        raise ValueError(
            f"expected w of shape (o, c, k, k) and b of shape (o,) with c = {h.shape[1]}, the "
            f"channels of h; got {w.shape} and {b.shape}"
        )
    weights = np.column_stack([b, w.reshape(outputs, -1)])
    output = extended_activations(convolution_matrix(h, k)) @ weights.T
    return np.moveaxis(output.reshape(len(h), *h.shape[2:], outputs), -1, 1)


def conv_layer_hessian(h: Images, k: int, curvatures: Float[np.ndarray, "N r*s r*s"]) -> Square:
    r"""Return the Hessian of the mean loss in one output channel's bias and kernel (Source: P-22).

    .. math:: \nabla^2_{\hat w}\mathcal L = \hat{\mathcal H}^T S\,\hat{\mathcal H}, \qquad
        S = \tfrac1N \operatorname{diag}\bigl(S_1, \dots, S_N\bigr), \quad
        S_n = \frac{\partial^2 L}{\partial v_a^2}\bigl(v_a^{(n)}\bigr)

    The outputs of one image meet in one loss, so that its block :math:`S_n` is a full rs × rs
    matrix. Different images do not meet: S is block-diagonal. The bias comes first. The
    ``curvatures`` are the matrices :math:`\partial^2 L/\partial v_a^2`, one for each image. Raises
    ValueError where there is not one rs × rs matrix for each, or k is not odd.

    >>> h = np.array([[[[1.0, 3.0]]]])
    >>> conv_layer_hessian(h, 1, np.eye(2)[None])
    array([[ 2.,  4.],
           [ 4., 10.]])
    """
    positions = h.shape[2] * h.shape[3]
    if curvatures.shape != (len(h), positions, positions):
        raise ValueError(
            f"expected curvatures of shape {(len(h), positions, positions)}, one matrix over the "
            f"positions of each image; got {curvatures.shape}"
        )
    extended = extended_activations(convolution_matrix(h, k)).reshape(len(h), positions, -1)
    blocks = extended.transpose(0, 2, 1) @ curvatures @ extended
    # over the images alone: the loss of an image has the sum over its positions in it already
    return np.asarray(blocks.mean(axis=0))


def relu_curvatures(
    outputs: Float[np.ndarray, "N rs"], dense: Float[np.ndarray, "classes rs"]
) -> Float[np.ndarray, "N rs rs"]:
    r"""Return :math:`S_n` of a channel before ReLU, a dense layer and the cross entropy.

    .. math:: S_n = B_n^T\bigl(\operatorname{diag}(p_n) - p_np_n^T\bigr)B_n, \qquad
        B_n = V\operatorname{diag}\bigl([a_n > 0]\bigr)

    V is ``dense``, the weights of a dense layer without a bias, :math:`p_n` the softmax of the
    scores :math:`V\max(a_n, 0)`. ReLU has no second derivative, so only the cross entropy's is
    left; the label does not matter. Row n of the ``outputs`` is :math:`a_n`, and the result is what
    :func:`conv_layer_hessian` takes. Source: P-22, P-24.

    >>> relu_curvatures(np.array([[1.0, -1.0]]), np.array([[1.0, 5.0], [1.0, 7.0]]))
    array([[[0., 0.],
            [0., 0.]]])
    >>> relu_curvatures(np.array([[0.001]]), np.array([[2.0], [-2.0]])).round(3)
    array([[[4.]]])
    """
    p = softmax(np.maximum(outputs, 0) @ dense.T)
    inner = p[:, :, None] * (np.eye(len(dense)) - p[:, None, :])
    slopes = dense * (outputs > 0)[:, None, :]
    return np.asarray(slopes.transpose(0, 2, 1) @ inner @ slopes)


# --- The columns' statistics, and the channels' -----------------------------------------------


def exact_column_statistics(h: Images, k: int) -> tuple[Columns, Columns]:
    r"""Return the mean and the variance of each column of :math:`\mathcal H` (Source: P-23).

    The column of :math:`w(p, i, j)` is the padded feature map of channel p under the window that
    this entry of the kernel runs over. Its zeros count as numbers like any other:

    .. math::
        \mu_H(p,i,j) &= \frac1{Nrs}\sum_{n,u,v}
            h\bigl(n, p, u + i - \tfrac{k-1}2, v + j - \tfrac{k-1}2\bigr) \\
        \sigma_H^2(p,i,j) &= \frac1{Nrs}\sum_{n,u,v}
            \bigl(h(\cdots) - \mu_H(p,i,j)\bigr)^2

    They have the order of the columns; ``mean.reshape(c, k, k)`` lies as the kernel does. k is odd,
    as in :func:`pad`.

    >>> mean, var = exact_column_statistics(np.array([[[[1.0, 3.0]]]]), 3)
    >>> mean.reshape(3, 3)[1]
    array([0.5, 2. , 1.5])
    >>> var.reshape(3, 3)[1]
    array([0.25, 1.  , 2.25])
    """
    return batch_statistics(convolution_matrix(h, k))


def channel_statistics(h: Images) -> tuple[Channels, Channels]:
    r"""Return the mean and the variance of each channel, over images and positions (Source: P-23).

    .. math::
        \mu(p) = \frac1{Nrs}\sum_{n,u,v} h(n,p,u,v), \qquad
        \sigma^2(p) = \frac1{Nrs}\sum_{n,u,v} \bigl(h(n,p,u,v) - \mu(p)\bigr)^2

    They stand for all k² columns of the channel. Batch normalization takes the same ones. h comes
    without padding.

    >>> channel_statistics(np.array([[[[1.0, 3.0]]]]))
    (array([2.]), array([1.]))
    """
    return h.mean(axis=(0, 2, 3)), h.var(axis=(0, 2, 3))


def border_share(height: int, width: int, k: int) -> float:
    r"""Return the largest fraction of a feature map that a kernel's entry misses (Source: P-23).

    A corner of the kernel is :math:`\frac{k-1}2` rows and columns off the center. It misses so
    many rows and columns of the map and meets zeros in their place:

    .. math:: \nu = (k-1)\Bigl(\frac1{2r} + \frac1{2s} - \frac{k-1}{4rs}\Bigr)
        = 1 - \Bigl(1 - \frac{k-1}{2r}\Bigr)\Bigl(1 - \frac{k-1}{2s}\Bigr)

    The paper states the first form for all k. It needs :math:`\frac{k-1}2 \le r, s`, as no more
    rows can be missed than there are: with r = s = 1 and k = 5 the formula gives 0, and the corner
    misses everything. Here the number of missed rows stops at r, that of columns at s. r and s are
    ``height`` and ``width``, and ν lies between 0 and 1.

    >>> border_share(32, 32, 3), border_share(1, 1, 5)
    (0.0615234375, 1.0)
    """
    border = (k - 1) // 2
    return 1 - (1 - min(border, height) / height) * (1 - min(border, width) / width)


def statistics_bound(h: Images, k: int) -> Channels:
    r"""Return how far a column's mean can be from its channel's mean, by channel (Source: P-23).

    .. math:: |\mu_H(p,i,j) - \mu(p)| \le
        (k-1)\Bigl(\frac1{2r} + \frac1{2s} - \frac{k-1}{4rs}\Bigr) \max_{n,u,v} |h(n,p,u,v)|

    A map of ones reaches it at the corners of the kernel.

    For kernels that are larger than the feature map see :func:`border_share`.

    >>> statistics_bound(np.full((1, 1, 4, 4), -2.0), 3)
    array([0.875])
    """
    return border_share(h.shape[2], h.shape[3], k) * np.abs(h).max(axis=(0, 2, 3))


# --- Normalized and preconditioned ------------------------------------------------------------


def normalize_channels(h: Images) -> Images:
    r"""Return :math:`(h - \mu(p))/\sigma(p)`, each channel by its own mean and deviation.

    It is what batch normalization makes of feature maps, and what the preconditioner makes of the
    columns of :math:`\mathcal H`, up to their zeros. With one image (N = 1) there are still rs
    numbers in each channel. A mean over the images alone, pixel by pixel, would leave nothing. A
    constant channel raises ValueError. Source: P-25.

    >>> normalize_channels(np.array([[[[1.0, 3.0]], [[70.0, 50.0]]]]))[0, :, 0]
    array([[-1.,  1.],
           [ 1., -1.]])
    """
    mean, var = channel_statistics(h)
    if not np.all(var > 0):
        raise ValueError(
            f"each channel must vary; channel {int(np.argmin(var))} is constant and cannot be "
            "scaled to deviation 1"
        )
    return (h - mean[:, None, None]) / np.sqrt(var)[:, None, None]


def preconditioner_conv(mean: Channels, std: Channels, k: int) -> tuple[Square, Square]:
    r"""Return U, which centers, and D, which scales, with the channels' statistics (Source: P-24).

    .. math:: U = \begin{bmatrix} 1 & -(\mu \otimes e)^T \\ 0 & I \end{bmatrix}, \qquad
        D = \begin{bmatrix} 1 & 0 \\ 0 & \operatorname{diag}(\sigma \otimes e) \end{bmatrix}^{-1}

    with e, the vector of k² ones. P = UD, and one step of BNP is :math:`\frac1{q^2} P P^T` on the
    gradient ``np.vstack([grad_bias, grad_weight.reshape(o, -1).T])``:
    :func:`optdl.bnp.precondition_conv` computes it without a matrix. ``mean`` and ``std`` are those
    of the input channels. A deviation that is not positive raises ValueError.

    >>> U, D = preconditioner_conv(np.array([3.0]), np.array([2.0]), 1)
    >>> U @ D
    array([[ 1. , -1.5],
           [ 0. ,  0.5]])
    """
    # repeat and not tile: the columns of a channel lie side by side, as torch stores a kernel
    return preconditioner(np.repeat(mean, k**2), np.repeat(std, k**2))


def preconditioned_norm(h: Images, k: int, hessian: Square) -> float:
    r"""Return the largest eigenvalue of a layer's Hessian after centering and scaling.

    .. math:: \lambda_{max}\bigl(P^T\,\nabla^2_{\hat w}\mathcal L\,P\bigr), \qquad P = UD

    with the mean and the smoothed variance of the minibatch's channels. The scale q² should be
    proportional to it: then one learning rate suits all layers. The ``hessian`` is one as
    :func:`conv_layer_hessian` returns it, bias first. Raises ValueError where it does not have c k²
    + 1 rows and columns. Source: P-24.

    >>> h = np.array([[[[1.0, 3.0]]]])
    >>> adds_up = conv_layer_hessian(h, 1, np.eye(2)[None])
    >>> averages = conv_layer_hessian(h, 1, np.full((1, 2, 2), 1 / 2**2))
    >>> [round(preconditioned_norm(h, 1, hessian), 9) for hessian in (adds_up, averages)]
    [2.0, 1.0]
    """
    columns = h.shape[1] * k**2
    if hessian.shape != (columns + 1, columns + 1):
        raise ValueError(
            f"expected a Hessian of shape {(columns + 1, columns + 1)}, the bias and c k² entries "
            f"of the kernel; got {hessian.shape}"
        )
    mean, var = channel_statistics(h)
    U, D = preconditioner_conv(mean, np.sqrt(smoothed_variance(var)), k)
    return float(np.linalg.eigvalsh(D @ U.T @ hessian @ U @ D)[-1])
