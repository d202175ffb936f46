"""Compute the moving average after each of several values."""

import numpy as np

from optdl.batchnorm import moving_average
from optdl.checks.exercise import Exercise

exercise = Exercise("L2-14", moving_average)


@exercise.cases
def _(rng):
    few, many = rng.integers([2, 4], [4, 7]).tolist()
    starts = (3, 1, False), (3, 1, True), (many, few, False), (many - 1, few, True), (1, 4, False)
    for t, d, given in starts:
        values = rng.uniform(2, 6, size=(t, d)).round(2)
        # an average of 0 is a start, too
        start = rng.uniform(7, 9, size=d).round(2) * (d > 1) if given else None
        yield {"values": values, "rho": round(rng.uniform(0.55, 0.95), 2), "start": start}


@exercise.fact("with a start given, a value has the weight (1 − ρ)ρᵏ in the average k values later")
def _(function, rng):
    values = np.zeros((9, 1))
    values[2] = 1.0
    weights = np.asarray(function(values, 0.8, np.zeros(1))).ravel()
    expected = [0, 0, *(0.2 * 0.8**age for age in range(7))]
    return np.allclose(weights, expected)


exercise.help(r"""
1. Which array does each update take from the one before, and what stands for it in the first one?
2. If the start is the first value itself, the first average equals it: $\rho + (1 - \rho) = 1$.
3. Go through the rows in a loop. Multiply the average by $\rho$, add $1 - \rho$ times the row, and
   append the new average to a list. Turn the list into an array at the end.
you take a start of 0 for none; test `start is None`
    start is None → start is None or not np.any(start)
you divide by 1 − ρᵗ, as Adam does; do not, and without a start begin with the first value
    values[0] if → np.zeros(values.shape[1]) if
    append(average) → append(average / (1 - rho ** (len(averages) + 1)))
you mix each value with the value before it; mix it with the average
    averages.append(average) → averages.append(average)\n        average = value
you do not multiply the new value by 1 − ρ; the average is ρμ + (1 − ρ)μ_B
    (1 - rho) * value → value
your first row is the start; it is the average after the first value
    averages = [] → averages = [average] ; in values: → in values[1:]:
ρ and 1 − ρ are exchanged; ρ is the weight of the old average
    rho * average + (1 - rho) * value → (1 - rho) * average + rho * value
without a start you begin with zeros and correct, as Adam does; begin with the first value instead
    values[0] if → np.zeros(values.shape[1]) if
    append(average) → append(average / (1 - rho ** (len(averages) + 1) * (start is None)))
""")
