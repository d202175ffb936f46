"""Compute q² of a convolutional layer."""

import numpy as np

from optdl.bnp import scale_conv
from optdl.checks.exercise import answer_to


@answer_to("P-24:scale", scale_conv)
def exercise(channels, kernel, examples, positions):
    ratio = channels * kernel[0] * kernel[1] / examples
    return max(ratio, np.sqrt(positions))


@exercise.cases
def _(rng):
    c, N = (int(size) for size in rng.integers((5, 20), (9, 99)))
    wide, high = (int(size) for size in rng.permutation([5, 7]))
    # c k²/N is below 1, between 1 and √(rs), and above √(rs), there with kernels of all forms
    for kernel, examples, positions in (
        ((1, 1), N, int(rng.integers(2, 20))),
        ((3, 3), int(rng.integers(2, 9)), int(rng.integers(1500, 3000))),
        ((3, 3), 2, int(rng.integers(2, 9))),
        ((3, wide), 1, int(rng.integers(20, 90))),
        ((high, 1), 3, int(rng.integers(2, 9))),
    ):
        yield {"channels": c, "kernel": kernel, "examples": examples, "positions": positions}


@exercise.fact("q² N is the larger of c k² and N √(rs)")
def _(function, rng):
    c, k, side = (int(rng.integers(*limits)) for limits in ((1, 60), (2, 8), (2, 60)))
    many = function(c, (k, k), 10**9, side**2)
    one = function(c, (k, k), 1, 1)
    return np.isclose(many, side) and np.isclose(one, c * k**2)


exercise.help(r"""
1. How many numbers does one unit read at one position, if the kernel need not be square?
2. Input channels times rows times columns of the kernel; `positions` is already $rs$.
3. Divide the product by the number of images, and return the larger of this and $\sqrt{rs}$.
you use rs; take its square root
    np.sqrt(positions) → positions
you take the smaller of the two; take the larger
    max( → min(
you divide c k² by Nrs; divide it by N, the number of images
    / examples → / (examples * positions)
you add the two; take the larger
    max(ratio, np.sqrt(positions)) → ratio + np.sqrt(positions)
""")
