"""Compute q² of a convolutional layer."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import scale_conv
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-24:scale", scale_conv)


@exercise.answer
def _(channels, kernel, examples, positions):
    ratio = channels * kernel[0] * kernel[1] / examples
    return max(ratio, np.sqrt(positions))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for kernel, N, positions in (
        ((1, 1), 4, 1500),
        ((3, 3), 2, 64),
        ((3, 3), 128, 256),
        ((3, 5), 1, 36),
        ((5, 3), 2, 4),
    ):
        yield {
            "channels": int(rng.integers(5, 9)),
            "kernel": kernel,
            "examples": N,
            "positions": positions,
        }


@exercise.fact("with very many images q² is √(rs); with one image of one pixel it is c k²")
def _(function: Function, rng: np.random.Generator) -> bool:
    c, k, side = (int(rng.integers(*limits)) for limits in ((1, 60), (2, 8), (2, 60)))
    many = function(c, (k, k), 10**9, side**2)
    one = function(c, (k, k), 1, 1)
    return bool(np.isclose(many, side) and np.isclose(one, c * k**2))


exercise.hints(
    "How many numbers does one unit of the layer read at one position, if the kernel need not be "
    "square?",
    r"It reads as many numbers as there are input channels times rows times columns of the kernel. "
    r"This product takes the place of $c\,k^2$, and `positions` is already $rs$.",
    "Divide the product by the number of images, take the square root of the number of positions, "
    "and return the larger of the two.",
)

exercise.mistakes(r"""
you use rs; take its square root
    np.sqrt(positions) → positions
you count one side of the kernel; it has height times width entries
    * kernel[1] →
you square the kernel's height; it has height times width entries
    kernel[1] → kernel[0]
you take the smaller of the two; take the larger
    max( → min(
you count Nrs rows; the paper counts N√(rs), because the windows overlap
    / examples → / (examples * positions)
    np.sqrt(positions) → 1
you divide c k² by Nrs; divide it by N, the number of images
    / examples → / (examples * positions)
you multiply c k²/N by rs; the positions count only in √(rs)
    / examples → / examples * positions
you add the two; take the larger
    max(ratio, np.sqrt(positions)) → ratio + np.sqrt(positions)
you compare c k²/N with 1, as in a dense layer; compare it with √(rs)
    np.sqrt(positions) → 1
""")
