"""Compute the mean and the variance of each channel."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp_cnn import channel_statistics
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-23:channels", channel_statistics, parts=("mean", "var"))


@exercise.answer
def _(h):
    axes = (0, 2, 3)
    return h.mean(axis=axes), h.var(axis=axes)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shape in ((1, 1, 2, 3), (3, 2, 2, 3), (2, 4, 3, 3)):
        spread = rng.uniform(0.5, 2, size=(shape[1], 1, 1))
        center = rng.normal(size=(shape[0], 1, 1, 1))
        yield {"h": (center + 1 + spread * rng.normal(size=shape)).round(2)}


@exercise.fact(
    "the order of a channel's numbers does not matter; shifting and scaling them changes the mean "
    "and the variance of this channel only"
)
def _(function: Function, rng: np.random.Generator) -> bool:
    h = rng.normal(size=(3, 4, 5, 6))
    mean, var = (np.asarray(part) for part in function(h))
    h[:, 1] = 10 + 3 * h[::-1, 1, ::-1]
    moved, wider = (np.asarray(part) for part in function(h))
    mean, var = mean.copy(), var.copy()
    mean[1], var[1] = 10 + 3 * mean[1], 9 * var[1]
    return bool(np.allclose(moved, mean) and np.allclose(wider, var))


exercise.hints(
    "Over which of the four indices $n$, $p$, $u$ and $v$ do the sums run, and which index "
    "remains?",
    "The methods `mean` and `var` accept a tuple of axes, and treat all numbers along these axes "
    "as one sample.",
    "Call `h.mean` and `h.var`, each with a tuple of three axes: those of the images, the rows and "
    "the columns.",
)

exercise.mistakes(r"""
you average over the images only; the positions are rows of the matrix, too
    (0, 2, 3) → 0
you average over the channels; each channel has its own mean, over all images
    (0, 2, 3) → (1, 2, 3)
you take one mean for all channels; each has its own
    h.mean(axis=axes), h.var(axis=axes)
    → np.full(h.shape[1], h.mean()), np.full(h.shape[1], h.var())
you average the images' variances, which lack the spread between images; take one variance over all
images
    h.var(axis=axes) → h.var(axis=(2, 3)).mean(axis=0)
you count the padding as data; take the map without it
    axes = (0, 2, 3) → axes, h = (0, 2, 3), np.pad(h, ((0, 0), (0, 0), (1, 1), (1, 1)))
your variance divides by Nrs − 1; here it divides by Nrs
    h.var(axis=axes) → h.var(axis=axes, ddof=1)
you return statistics of each image; all images share the mean and the variance of a channel
    (0, 2, 3) → (2, 3)
you return the mean of the squares; subtract the square of the mean
    h.var(axis=axes) → np.mean(h**2, axis=axes)
""")
