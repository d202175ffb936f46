"""Build the matrix whose rows are the windows that a kernel meets."""

import numpy as np

from optdl.bnp_cnn import convolution_matrix
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-21", convolution_matrix)
def exercise(h, k):
    m, (N, _, r, s) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    rows = [
        padded[n, :, u : u + k, v : v + k].reshape(-1)
        for n in range(N)
        for u in range(r)
        for v in range(s)
    ]
    return np.array(rows)


exercise.cases(image_cases)


@exercise.fact("for k = 3 row 0, as (c, 3, 3), is h[0, :, :2, :2] at [:, 1:, 1:] and else 0")
def _(function, rng):
    h = rng.normal(size=(2, 3, 6, 7))
    expected = np.zeros((3, 3, 3))
    expected[:, 1:, 1:] = h[0, :, :2, :2]
    return np.array_equal(function(h, 3)[0], expected.ravel())


exercise.help(r"""
1. Which rows and columns of the padded image are covered when the center lies at $(u, v)$ of $h$?
2. Padding moves the image, so the window of $(u, v)$ starts at $(u, v)$ of the padded image.
3. Pad axes 2 and 3 with `np.pad`. Loop over the images, their rows and their columns; each time,
   cut the window out of all channels, flatten it, and append it to a list.
your windows are rotated by 180°, as if you flipped the kernel; use it as it is
    .reshape(-1) → [:, ::-1, ::-1].reshape(-1)
your columns run down the kernel; w.reshape(-1) reads it row by row
    .reshape(-1) → .swapaxes(1, 2).reshape(-1)
the channel varies fastest in your columns; in w.reshape(-1) of (c, k, k) it varies slowest
    .reshape(-1) → .transpose(1, 2, 0).reshape(-1)
your rows run down the image; position (u, v) belongs to row u·s + v
    for u in range(r)\n        for v in range(s) → for v in range(s)\n        for u in range(r)
all your zeros come after the image; half of them belong before it
    (m, m), (m, m) → (0, k - 1), (0, k - 1)
you visit only positions where the window fits; pad with (k − 1)/2 zeros, and visit all r·s
    padded[n → h[n ; range(r) → range(r - k + 1) ; range(s) → range(s - k + 1)
your reshape takes windows in the order (N, c, r, s, k, k); first move c behind the positions
    (rows) → (rows).reshape(N, r * s, -1, k * k).swapaxes(1, 2).reshape(N * r * s, -1)
beyond the border your image goes on at its other side; pad it with zeros
    (m, m), (m, m)) → (m, m), (m, m)), "wrap"
""")
