"""Bound the difference between the mean of a channel and those of its columns."""

import numpy as np

from optdl.bnp_cnn import exact_column_statistics, statistics_bound
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-23:bound", statistics_bound)
def exercise(h, k):
    r, s = h.shape[2:]
    missed = k - 1
    share = missed * (1 / (2 * r) + 1 / (2 * s) - missed / (4 * r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


@exercise.cases
def _(rng):
    for case in image_cases(rng):
        # the largest absolute value of all is that of a negative number in the last image
        case["h"][-1, rng.integers(case["h"].shape[1]), 0, -1] = -9.0
        yield case


@exercise.fact("for h constant at its largest |h|, the bound is a column mean's largest error")
def _(function, rng):
    h = rng.normal(size=(2, 1, 4, 6))
    constant = np.full(h.shape, -np.abs(h).max())
    error = np.abs(exact_column_statistics(constant, 3)[0] - constant.mean()).max()
    return np.allclose(function(h, 3), error)


exercise.help(r"""
1. Which factor of the bound depends only on the sizes, and which one on the values in a channel?
2. $\nu$ is one number for all channels; the maximum over images, rows and columns is one for each.
3. Compute $\nu$ from the last two axes and `k`; multiply it by the largest $|h|$ over axes 0, 2, 3.
you use k in place of k − 1; the center of the kernel misses nothing
    k - 1 → k
you count the corner twice, in the rows and in the columns; subtract it once
    - missed / (4 * r * s) →
you add the corner; subtract it
    - missed / → + missed /
you count too many rows and columns; an entry misses at most (k − 1)/2 of each
    k - 1 → 2 * (k - 1)
you take the largest h; the bound needs the largest absolute value
    np.abs(h) → h
you take the height of the maps for their width, too; they need not be square
    r, s = h.shape[2:] → r = s = h.shape[2]
you take the largest distance from the mean; the bound needs the largest |h|
    np.abs(h) → np.abs(h - h.mean(axis=(0, 2, 3), keepdims=True))
you subtract the corner twice; subtract it once
    - missed / → - 2 * missed /
""")
