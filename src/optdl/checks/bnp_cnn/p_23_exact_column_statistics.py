"""Compute the mean and the variance of each column of a convolution's matrix."""

import numpy as np

from optdl.bnp_cnn import exact_column_statistics
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-23:exact", exact_column_statistics, parts=("mean", "var"))
def exercise(h, k):
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    padded = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = [
        padded[:, p, i : i + r, j : j + s] for p in range(c) for i in range(k) for j in range(k)
    ]
    mean = [column.mean() for column in columns]
    var = [column.var() for column in columns]
    return np.array(mean), np.array(var)


exercise.cases(image_cases)


@exercise.fact("if a map has a border of (k − 1)/2 zeros, all its columns have its statistics")
def _(function, rng):
    h = np.zeros((2, 3, 8, 9))
    h[:, :, 2:-2, 2:-2] = rng.normal(size=(2, 3, 4, 5))
    mean, var = (np.reshape(part, (3, 25)) for part in function(h, 5))
    whole = h.transpose(1, 0, 2, 3).reshape(3, 1, -1)
    return np.allclose(mean, whole.mean(axis=2)) and np.allclose(var, whole.var(axis=2))


exercise.help(r"""
1. Which part of the padded maps of channel $p$ does the kernel entry $(i, j)$ meet on its way?
2. In each image, it meets a window of $r$ rows and $s$ columns that starts at row $i$ and column
   $j$ of the padded map. The numbers in these windows form column $(p, i, j)$ of $\mathcal H$.
3. Pad as in exercise 1. Loop over $p$, $i$ and $j$, cut this window out of all images at once, take
   the mean and the variance of all its numbers, and collect them in two arrays.
you return the channel's statistics k² times; here each column has its own
    padded[:, p, i : i + r, j : j + s] → h[:, p]
you leave out the zeros of the padding; they are entries of the matrix, and the mean divides by Nrs
    (m, m), (m, m)) → (m, m), (m, m)), constant_values=np.nan ; column.mean() → np.nanmean(column)
    column.var() → np.nanvar(column)
your columns run down the kernel; use the order of w.reshape(-1)
    for i in range(k) for j in range(k) → for j in range(k) for i in range(k)
your variance divides by Nrs − 1; here it divides by Nrs
    column.var() → column.var(ddof=1)
you return the mean of the squares; subtract the square of the mean
    column.var() → np.mean(column**2)
your variance is around the mean of the channel; take that of the column itself
    [column.var() for column in columns]
    → [np.mean((v - h[:, n // k**2].mean()) ** 2) for n, v in enumerate(columns)]
""")
