"""Cases of the exercises on feature maps and kernels."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case


def image_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield one and several images of one and several channels: wide, high and square ones.

    Neither the images nor the channels have one mean, and the channels not one variance. The
    sizes of the kernel are 3, and in some order 1, 3 and 5.
    """
    few, more = (int(size) for size in rng.integers((2, 4), (4, 7)))
    shapes = (1, 1, 2, few + 1), (1, few, more, 3), (few, 1, few, few), (few, 5 - few, 3, more)
    for (N, c, r, s), k in zip(shapes, (3, *rng.permutation([1, 3, 5])), strict=True):
        center, spread = rng.normal(size=(N, c, 1, 1)), rng.uniform(0.5, 2, size=(c, 1, 1))
        h = 2 + center + spread * rng.normal(size=(N, c, r, s))
        yield {"h": h.round(2), "k": int(k)}
