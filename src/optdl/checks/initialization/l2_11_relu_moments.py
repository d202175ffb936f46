"""Predict mean squares through a ReLU network: activations forward, gradients backward."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("L2-11:moments", "relu_moments", parts=("forward", "backward"))
def exercise(widths, variances):
    forward, backward = [1.0], [1.0]
    for layer, variance in enumerate(variances):
        forward.append(0.5 * widths[layer] * variance * forward[-1])
    for layer in reversed(range(len(variances))):
        backward.append(0.5 * widths[layer + 1] * variances[layer] * backward[-1])
    return np.array(forward), np.array(backward[::-1])


@exercise.cases
def _(rng):
    for layers in (1, 2, *rng.integers([3, 5], [5, 8]).tolist()):
        widths = (rng.permutation(9)[: layers + 1] + 2).tolist()
        yield widths, rng.uniform(0.1, 1, size=layers).round(2).tolist()


@exercise.fact("with variances of 2/n_in `forward` stays 1, and `backward` begins with n_L / n_0")
def _(function, rng):
    widths = rng.integers(5, 500, size=30).tolist()
    forward, backward = function(widths, [2 / width for width in widths[:-1]])
    return np.allclose(forward, 1) and np.allclose(backward[0], widths[-1] / widths[0])


exercise.help(r"""
1. The weights of layer $\ell$ connect $n_{\ell-1}$ units to $n_\ell$ units. Over which units does a
   sum run in the forward direction, and over which in the backward direction?
2. Forward, $q_\ell=\tfrac12\,n_{\ell-1}\mathrm{Var}(W_\ell)\,q_{\ell-1}$. For $p_{\ell-1}$ the
   formula is similar, because the slope, 0 or 1, has the mean square $\tfrac12$.
3. Begin two lists with 1. Two loops append the last entry times a half, a width and a variance, one
   from the first layer to the last, one from the last layer to the first.
you treat the ReLU as linear forward; it keeps half of the mean square
    0.5 * widths[layer] * → widths[layer] *
you treat the ReLU as linear backward; its slope is zero for half of the units
    0.5 * widths[layer + 1] → widths[layer + 1]
backward you count the inputs of a layer; the gradient of an input is a sum over its n_out outputs
    widths[layer + 1] → widths[layer]
forward you count the outputs of a layer; a unit is a sum over its n_in inputs
    widths[layer] * variance * → widths[layer + 1] * variance *
backward you go through the layers from the first to the last; begin with the last
    reversed(range(len(variances))) → range(len(variances))
you multiply the first mean square by the factor of one layer; multiply that of the layer before
    forward[-1]) → forward[0])
""")
