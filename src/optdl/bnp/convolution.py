r"""One step of BNP in a convolution, as Algorithm 3 writes it.

It stands apart from what :class:`~optdl.bnp.BNP` imports: two exercises ask for it in an assignment
whose lab uses that class, so a notebook that is graded may import the one and not the other.

Axis letters: ``o`` output channels, ``c`` input channels, ``k`` kernel size, ``r`` and ``s`` height
and width.
"""

import math

from optdl.bnp.algorithm import Array, matching, smoothed_variance


def scale_conv(channels: int, kernel: tuple[int, ...], examples: int, positions: float) -> float:
    r"""Return :math:`q^2 = \max\{c k^2/N, \sqrt{rs}\}` of a convolution (Source: P-24).

    Here c is the number of input channels that one output channel sees, N that of the images, and
    rs, the ``positions``, is height times width of the output. The ``kernel`` is a tuple of its
    lengths, whose product is k².

    >>> scale_conv(64, (3, 3), 128, 256), scale_conv(64, (3, 3), 2, 256)
    (16.0, 288.0)
    """
    return max(channels * math.prod(kernel) / examples, math.sqrt(positions))


def precondition_conv(
    grad_weight: Array,
    grad_bias: Array,
    mean: Array,
    var: Array,
    batch_size: int,
    height: int,
    width: int,
    eps1: float = 1e-2,
    eps2: float = 1e-4,
) -> tuple[Array, Array]:
    r"""Precondition the gradient of a convolution: steps 3 to 5 of Algorithm 3 (Source: P-24).

    .. math::
        G_w(d,p,i,j) &\leftarrow
            \tfrac1{q^2}\,[G_w(d,p,i,j) - \mu(p)\,G_b(d)]\,/\,\tilde\sigma^2(p) \\
        G_b(d) &\leftarrow \tfrac1{q^2}\,G_b(d) - \textstyle\sum_{p,i,j} \mu(p)\,G_w(d,p,i,j)

    Here ``height`` and ``width`` are those of the output. All else is as in
    :func:`optdl.bnp.precondition_dense`. ``grad_weight`` is (o, c, k, k), as in ``nn.Conv2d``, and
    ``mean`` and ``var``, (c,), are those of the input channels.

    >>> import numpy as np
    >>> weight, bias = np.full((1, 1, 1, 1), 5.0), np.array([1.0])
    >>> mean, var = np.array([2.0]), np.array([3.0])
    >>> weight, bias = precondition_conv(weight, bias, mean, var, 8, 1, 1, eps1=0.0, eps2=0.0)
    >>> weight.item(), bias
    (1.0, array([-1.]))
    """
    outputs, channels = matching(grad_weight, grad_bias, mean, var, 3)
    scale = scale_conv(channels, grad_weight.shape[2:], batch_size, height * width)
    smoothed = smoothed_variance(var, eps1, eps2).reshape(channels, 1, 1)
    center = mean.reshape(channels, 1, 1)
    weight = (grad_weight - grad_bias.reshape(outputs, 1, 1, 1) * center) / (scale * smoothed)
    return weight, grad_bias / scale - (weight * center).reshape(outputs, -1).sum(1)
