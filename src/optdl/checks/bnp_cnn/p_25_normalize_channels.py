"""Center and scale each channel over all images and positions."""

import numpy as np

from optdl.bnp_cnn import normalize_channels
from optdl.checks.bnp_cnn.shared import image_cases
from optdl.checks.exercise import answer_to


@answer_to("P-25", normalize_channels)
def exercise(h):
    axes = (0, 2, 3)
    mean, std = h.mean(axis=axes, keepdims=True), h.std(axis=axes, keepdims=True)
    return (h - mean) / std


@exercise.cases
def _(rng):
    for case in image_cases(rng):
        yield {"h": case["h"]}
    h = rng.normal(size=(2, 2, 3, rng.integers(4, 7))).round(1)
    h[0, 1, 0, 0] = 25.0  # an outlier, further from the mean than three deviations
    yield {"h": h}


@exercise.fact("each channel of the answer has mean 0 and variance 1")
def _(function, rng):
    answer = np.asarray(function(5 + rng.normal(size=(2, 3, 4, 5))))
    return np.allclose(answer.mean((0, 2, 3)), 0) and np.allclose(answer.var((0, 2, 3)), 1)


exercise.help(r"""
1. How many means does $h$ need, and in what shape can they be subtracted from it directly?
2. The statistics run over images and positions; `keepdims=True` gives the shape $(1, c, 1, 1)$.
3. Take mean and deviation over axes 0, 2 and 3, keeping these axes; subtract, then divide.
you normalize each pixel over the images; normalize each channel over images and positions
    (0, 2, 3) → 0
you normalize each channel of each image; all images share a channel's mean and deviation
    (0, 2, 3) → (2, 3)
you normalize each image, as layer normalization does; normalize each channel over all images
    (0, 2, 3) → (1, 2, 3)
""")
