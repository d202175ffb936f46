"""The learning rate at which gradient descent converges fastest."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.checks.quadratic.shared import spectrum, spectrum_cases
from optdl.quadratic import optimal_step


@answer_to("P-05:step", optimal_step)
def exercise(eigenvalues):
    return 2 / (np.min(eigenvalues) + np.max(eigenvalues))


exercise.cases(spectrum_cases)


@exercise.fact("every other learning rate is slower")
def _(function, rng):
    eigenvalues = spectrum(rng, 5)
    step = float(function(eigenvalues))
    rates = [np.abs(1 - s * step * eigenvalues).max() for s in (0.999, 1.0, 1.001)]
    return rates[1] < rates[0] and rates[1] < rates[2]


exercise.help(r"""
1. Over $\eta$, sketch $|1-\eta\lambda|$ for both ends of the spectrum. Where is the maximum lowest?
2. It is lowest where the curves cross: $1-\eta\lambda_{min}=-(1-\eta\lambda_{max})$.
3. Solve this equation for $\eta$. Two NumPy functions find the two eigenvalues in any order.
your step is 1/λ_max, for the steepest direction alone; the best one balances both ends
    2 / (np.min(eigenvalues) + np.max(eigenvalues)) → 1 / np.max(eigenvalues)
you return the limit of stability, 2/λ_max; there the steepest coefficient never shrinks
    (np.min(eigenvalues) + np.max(eigenvalues)) → np.max(eigenvalues)
you take the first and the last eigenvalue for λ_min and λ_max; they come in any order
    np.min(eigenvalues) + np.max(eigenvalues) → eigenvalues[0] + eigenvalues[-1]
you take the geometric mean of λ_min and λ_max; 1/η is their arithmetic mean
    2 / (np.min(eigenvalues) + np.max(eigenvalues))
    → 1 / np.sqrt(np.min(eigenvalues) * np.max(eigenvalues))
you add up all eigenvalues; add the smallest and the largest
    np.min(eigenvalues) + np.max(eigenvalues) → np.sum(eigenvalues)
""")
