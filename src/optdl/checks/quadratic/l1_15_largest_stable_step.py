"""The limit of the learning rate, below which gradient descent converges."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import spectrum, spectrum_cases
from optdl.quadratic import largest_stable_step


@answer_to("L1-15:limit", largest_stable_step)
def exercise(eigenvalues):
    return 2 / np.max(eigenvalues)


exercise.cases(spectrum_cases)


@exercise.fact("the limit is the positive η at which the largest |1 − ηλ| is 1")
def _(function, rng):
    eigenvalues = spectrum(rng, 4)
    limit = float(function(eigenvalues))
    below = np.abs(1 - 0.999 * limit * eigenvalues).max()
    above = np.abs(1 - 1.001 * limit * eigenvalues).max()
    return below < 1 < above


exercise.help(r"""
1. For which $1-\eta\lambda$ does a coefficient shrink? Which one is first to stop as $\eta$ grows?
2. The condition $|1-\eta\lambda_i|<1$ means $0<\eta\lambda_i<2$, and it must hold for every $i$.
3. Solve the right-hand inequality for $\eta$. Each eigenvalue gives a bound; return the strictest.
your limit follows λ_min; the steepest direction, λ_max, is the first to diverge
    np.max → np.min
you return the best step, 2/(λ_min + λ_max); the limit of stability is 2/λ_max
    np.max(eigenvalues) → (np.min(eigenvalues) + np.max(eigenvalues))
you divide by the sum of the eigenvalues; the largest alone limits the step
    np.max → np.sum
""")
