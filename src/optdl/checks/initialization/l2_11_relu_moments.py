"""Predict mean squares through a ReLU network: activations forward, gradients backward."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function


def relu_moments(
    widths: Sequence[int], variances: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean squares of activations, from 1, and those of gradients, to 1."""
    forward, backward = [1.0], [1.0]
    for layer, variance in enumerate(variances):
        forward.append(0.5 * widths[layer] * variance * forward[-1])
    for layer in reversed(range(len(variances))):
        backward.append(0.5 * widths[layer + 1] * variances[layer] * backward[-1])
    return np.array(forward), np.array(backward[::-1])


exercise = Exercise("L2-11:moments", relu_moments, parts=("forward", "backward"))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for layers in (1, 3, 5):
        yield {
            "widths": [int(width) for width in rng.permutation(8)[: layers + 1] + 2],
            "variances": rng.uniform(0.1, 1, size=layers).round(2).tolist(),
        }


@exercise.fact("variances of 2/n_in keep the activations, and lose n_0/n_L of the gradient in all")
def _(function: Function, rng: np.random.Generator) -> bool:
    widths = [int(width) for width in rng.integers(5, 500, size=30)]
    forward, backward = function(widths, [2 / width for width in widths[:-1]])
    return bool(np.allclose(forward, 1) and np.allclose(backward[0], widths[-1] / widths[0]))


@exercise.fact("variances of 2/n_out keep the gradients, layer by layer")
def _(function: Function, rng: np.random.Generator) -> bool:
    widths = [int(width) for width in rng.integers(5, 500, size=30)]
    _, backward = function(widths, [2 / width for width in widths[1:]])
    return bool(np.allclose(backward, 1))


@exercise.fact("in a wide network of this kind both mean squares come out so")
def _(function: Function, rng: np.random.Generator) -> bool:
    widths, variances = [300, 900, 200], [0.004, 0.003]
    W = [
        rng.normal(0, v**0.5, size=(k, n))
        for v, (n, k) in zip(variances, pairwise(widths), strict=True)
    ]
    x = rng.normal(size=(300, 500))
    h, slopes = x, list[np.ndarray]()
    for weight in W:
        z = weight @ h
        h, slopes = np.maximum(z, 0), [*slopes, z > 0]
    g = rng.normal(size=h.shape)
    ends = [np.mean(h**2) / np.mean(x**2)]
    first = g
    for weight, slope in zip(W[::-1], slopes[::-1], strict=True):
        first = weight.T @ (slope * first)
    ends.append(np.mean(first**2) / np.mean(g**2))
    forward, backward = function(widths, variances)
    return bool(np.allclose([forward[-1], backward[0]], ends, rtol=0.2))


exercise.hints(
    r"The weights of layer $\ell$ connect $n_{\ell-1}$ units to $n_\ell$ units. Over which units "
    r"does a sum run in the forward direction, and over which in the backward direction?",
    r"Forward, $q_\ell=\tfrac12\,n_{\ell-1}\mathrm{Var}(W_\ell)\,q_{\ell-1}$. For $p_{\ell-1}$ "
    r"the formula is similar, because the slope, 0 or 1, has the mean square $\tfrac12$.",
    "Begin two lists with 1. Two loops append the last entry times a half, a width and a variance, "
    "one from the first layer to the last, one from the last layer to the first.",
)

exercise.mistakes(r"""
you treat the ReLU as linear forward; it keeps half of the mean square
    0.5 * widths[layer] * → widths[layer] *
you treat the ReLU as linear backward; its slope is zero for half of the units
    0.5 * widths[layer + 1] → widths[layer + 1]
backward you count the inputs of a layer; the gradient of an input is a sum over its n_out outputs
    widths[layer + 1] → widths[layer]
forward you count the outputs of a layer; a unit is a sum over its n_in inputs
    widths[layer] * variance * → widths[layer + 1] * variance *
your gradients stand from the output to the input; return them from the input to the output
    backward[::-1] → backward
backward you go through the layers from the first to the last; begin with the last
    reversed(range(len(variances))) → range(len(variances))
you square the variances; use them as they are
    * variance * → * variance**2 *
you multiply the first mean square by the factor of one layer; multiply that of the layer before
    forward[-1]) → forward[0])
""")
