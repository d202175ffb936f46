"""Compute the output of a convolutional layer as one matrix product."""

import numpy as np

from optdl.bnp_cnn import conv_forward
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-21:forward", conv_forward)
def exercise(h, w, b):
    o, _, k, _ = w.shape
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(N)
        for u in range(r)
        for v in range(s)
    ]
    product = np.array(rows) @ w.reshape(o, -1).T + b
    return np.moveaxis(product.reshape(N, r, s, o), -1, 1)


@exercise.cases
def _(rng):
    for case, o in zip(image_cases(rng), (1, 1, 2, 3), strict=True):
        h, k = case.values()
        b = rng.uniform(1, 2, size=o).round(2) * rng.choice([-1, 1], size=o)
        yield h, rng.normal(size=(o, h.shape[1], k, k)).round(2), b


@exercise.fact("if w[d] is 1 at the center of one map and else 0, output d is this map plus b[d]")
def _(function, rng):
    h, w, b = rng.normal(size=(2, 3, 4, 5)), np.zeros((2, 3, 3, 3)), rng.normal(size=2)
    w[[0, 1], [2, 0], 1, 1] = 1.0
    return np.allclose(function(h, w, b), h[:, [2, 0]] + b[:, None, None])


exercise.help(r"""
1. What shape has the matrix of the kernels if its product with $\mathcal H$ gives all $o$ channels?
2. Each `w[d]`, flattened, is one column of a $(ck^2, o)$ matrix. The product has one row for each
   position, ordered by image, row and column, and one column for each output channel.
3. Multiply $\mathcal H$ by this matrix, add `b`, reshape to $(N, r, s, o)$, and move the last axis.
you flip the kernel; networks use it as it stands
    w.reshape(o, -1) → w[:, :, ::-1, ::-1].reshape(o, -1)
you swap rows and columns of the kernel; its third axis runs down the image
    w.reshape(o, -1) → w.swapaxes(2, 3).reshape(o, -1)
you reshape to (N, o, r, s) numbers in the order N, r, s, o; move the axis, as np.moveaxis does
    np.moveaxis(product.reshape(N, r, s, o), -1, 1) → product.reshape(N, o, r, s)
you keep the last input channel alone, as `=` in a loop does; add up the channels
    np.pad(h, → np.pad(h[:, -1:], ; w.reshape(o, -1) → w[:, -1].reshape(o, -1)
your reshape to (c k k, o) mixes the output channels; reshape to (o, c k k) and transpose
    w.reshape(o, -1).T → w.reshape(-1, o)
beyond the border your image goes on at its other side; pad it with zeros
    (m, m), (m, m)) → (m, m), (m, m)), "wrap"
""")
