"""The coefficients of gradient descent in the eigenbasis when the learning rate changes."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import spectrum
from optdl.quadratic import scheduled_coefficients


@answer_to("L1-15", scheduled_coefficients)
def exercise(alpha0, eigenvalues, lrs):
    rows = [alpha0]
    for lr in lrs:
        rows.append((1 - lr * eigenvalues) * rows[-1])
    return np.array(rows)


@exercise.cases
def _(rng):
    for low, high in (((1, 3), (3, 6)), ((4, 3), (7, 4)), ((3, 5), (5, 9))):
        n, steps = rng.integers(low, high).tolist()
        eigenvalues = spectrum(rng, n)
        lrs = (rng.uniform(0.3, 1.2, size=steps) * 2 / eigenvalues.max()).round(3)
        yield {"alpha0": rng.normal(size=n).round(2), "eigenvalues": eigenvalues, "lrs": lrs}


@exercise.fact("the learning rates 1/λ, in any order, reach the minimum in n steps")
def _(function, rng):
    eigenvalues = spectrum(rng, 4)
    rows = np.asarray(function(rng.normal(size=4), eigenvalues, 1 / rng.permutation(eigenvalues)))
    return np.allclose(rows[-1], 0, atol=1e-9)


exercise.help(r"""
1. By what factor does step $t$ multiply the coefficient $\alpha_i$, and from what does it start?
2. One step is $\alpha_i\leftarrow(1-\eta_t\lambda_i)\,\alpha_i$, for all $i$ with one $\eta_t$.
3. Begin a list with `alpha0`; multiply its last row by the factors of a step, and append.
each of your steps starts at alpha0; a step multiplies what the step before has left
    rows[-1] → alpha0
your steps subtract ηλα⁽⁰⁾; a step subtracts ηλ times what it finds: factors 1 − ηλ multiply
    (1 - lr * eigenvalues) * rows[-1] → rows[-1] - lr * eigenvalues * alpha0
you raise the newest factor to the power of the step; each step has its own, and they multiply
    (1 - lr * eigenvalues) * rows[-1] → (1 - lr * eigenvalues) ** len(rows) * alpha0
""")
