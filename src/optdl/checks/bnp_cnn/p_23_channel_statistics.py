"""Compute the mean and the variance of each channel."""

import numpy as np

from optdl.bnp_cnn import channel_statistics
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-23:channels", channel_statistics, parts=("mean", "var"))
def exercise(h):
    axes = (0, 2, 3)
    return h.mean(axis=axes), h.var(axis=axes)


@exercise.cases
def _(rng):
    for case in image_cases(rng):
        yield {"h": case["h"]}


@exercise.fact("a channel has the same statistics among others as it has alone")
def _(function, rng):
    h = rng.normal(size=(3, 4, 5, 6))
    return np.allclose(np.array(function(h))[:, 2], np.ravel(function(h[:, [2]])))


exercise.help(r"""
1. Over which of the four indices $n$, $p$, $u$ and $v$ do the sums run, and which index remains?
2. The methods `mean` and `var` accept a tuple of axes: all numbers along these are one sample.
3. Call `h.mean` and `h.var`, each with a tuple of three axes, those of images, rows and columns.
you average over the images only; the positions are rows of the matrix, too
    (0, 2, 3) → 0
you take the statistics of all channels together; each channel has its own
    h.mean(axis=axes), h.var(axis=axes)
    → np.full(h.shape[1], h.mean()), np.full(h.shape[1], h.var())
you average the images' variances, which lack the spread between images; take one over all
    h.var(axis=axes) → h.var(axis=(2, 3)).mean(axis=0)
you count the padding as data; take the map without it
    axes = → h, axes = np.pad(h, ((0, 0), (0, 0), (1, 1), (1, 1))),
your variance divides by Nrs − 1; here it divides by Nrs
    h.var(axis=axes) → h.var(axis=axes, ddof=1)
you return the mean of the squares; subtract the square of the mean
    h.var(axis=axes) → np.mean(h**2, axis=axes)
""")
