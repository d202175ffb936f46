"""The factors of μP on initial weights and on Adam's rates, layer by layer."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.initialization import mup_factors


@answer_to("F-22", mup_factors, parts=("scales", "rates"))
def exercise(widths, base):
    rates = np.divide(base[:-1], widths[:-1])
    scales = np.ones(len(rates))
    scales[-1] = np.sqrt(rates[-1])
    return scales, rates


@exercise.cases
def _(rng):
    for layers in (2, 3, 5):
        ends, hidden = rng.integers(2, 20, size=2).tolist(), rng.permutation(9)[1:layers] + 2
        wide = hidden * rng.integers(2, 6, size=layers - 1)
        base, widths = ([ends[0], *inner.tolist(), ends[1]] for inner in (hidden, wide))
        yield {"widths": widths, "base": base}


@exercise.fact("with 4 times the width three layers have rates 1, ¼, ¼ and deviations 1, 1, ½")
def _(function, rng):
    n = int(rng.integers(4, 90))
    scales, rates = function([7, 4 * n, 4 * n, 3], [7, n, n, 3])
    return np.allclose(scales, [1, 1, 0.5]) and np.allclose(rates, [1, 0.25, 0.25])


exercise.help(r"""
1. Is $n_{\ell-1}$ or $n_\ell$ the fan-in of layer $\ell$, and in which layer is it the same?
2. The factor on a rate is the narrow fan-in over the wide one, layer by layer; it is 1 in the
   first. Of the deviations only the last has a factor other than 1, the root of its rate's factor.
3. For the rates divide `base[:-1]` by `widths[:-1]`. The deviations are ones, the last is a root.
the last deviation lacks its factor, the root of the factor on its rate
    scales[-1] = np.sqrt(rates[-1]) → pass
you divide by the fan-out; the rate of a layer falls with its fan-in
    np.divide(base[:-1], widths[:-1]) → np.divide(base[1:], widths[1:])
you scale the deviations of all layers; before the last layer s/√n stays as it is
    scales[-1] = np.sqrt(rates[-1]) → scales = np.sqrt(rates)
""")
