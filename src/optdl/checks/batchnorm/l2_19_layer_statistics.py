"""Measure and normalize inner layers once, as inputs are normalized."""

from itertools import pairwise

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("L2-19", "layer_statistics", parts=("means", "deviations"))
def exercise(weights, x):
    means, deviations = [], []
    for W in weights:
        h = np.tanh(x @ W.T)
        mean, std = h.mean(axis=0), h.std(axis=0)
        means.append(mean)
        deviations.append(std)
        x = (h - mean) / std
    return means, deviations


def network(rng, widths):
    """Return the weights of layers of these widths; none is 0, or a unit might be constant."""
    return [rng.choice([-1.9, -0.8, 0.3, 1.1, 1.6], size=n[::-1]) for n in pairwise(widths)]


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 4), (4, 7)).tolist()
    for m, widths in ((3, (1, 2, 1)), (more, (few, more, few)), (few + 2, (more, few, 3, few))):
        yield {"weights": network(rng, widths), "x": rng.normal(size=(m, widths[0])).round(2)}


@exercise.fact("each layer, reading the layer before it normalized, has these means and deviations")
def _(function, rng):
    h, weights, error = rng.normal(1, 1, size=(20, 5)), network(rng, (5, 4, 3, 6)), 0
    for W, mean, std in zip(weights, *function(weights, h), strict=True):
        h = (np.tanh(h @ W.T) - mean) / std
        error += np.abs(h.mean(0)).max() + np.abs(h.var(0) - 1).max()
    return error < 1e-9


exercise.help(r"""
1. What does the second layer read once the first is normalized, and what did it read before?
2. Each layer computes and measures its outputs, and hands on its *normalized* outputs.
3. In a loop: $\tanh(xW^T)$, its mean and deviation over axis 0, append both, and the new `x`.
you measure all layers at once; each has to read the normalized outputs of the layer before it
    (h - mean) / std → h
you center what the next layer reads, but do not scale it; divide by the deviation, too
    (h - mean) / std → h - mean
you measure and normalize before tanh; measure the outputs of tanh, and normalize those
    h = np.tanh(x @ W.T) → h = x @ W.T ; x = (h - mean) / std → x = np.tanh((h - mean) / std)
you measure and divide by the variance; its root is the standard deviation
    h.std(axis=0) → h.var(axis=0)
your variance divides by m − 1; here it divides by m, as for the inputs
    h.std(axis=0) → h.std(axis=0, ddof=1)
you normalize `x` as well; the first layer reads it as it is
    means, deviations = [], [] → x, means, deviations = (x - x.mean(0)) / x.std(0), [], []
""")
