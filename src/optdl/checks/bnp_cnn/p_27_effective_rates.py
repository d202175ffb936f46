"""The effective learning rate of weights without a length, step by step."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("P-27", "effective_rates")
def exercise(length, rates, slopes):
    square, effective = length**2, []
    for lr, slope in zip(rates, slopes, strict=True):
        effective.append(lr / square)
        square = square + lr**2 * slope**2 / square
    return np.array(effective)


@exercise.cases
def _(rng):
    for steps in (2, 4, 8):
        length, rates = round(float(rng.uniform(1.5, 3)), 2), rng.uniform(0.5, 2, size=steps)
        yield length, rates.round(2), rng.uniform(1.5, 4, size=steps).round(2)


@exercise.fact("gradient descent on z₁/‖z‖, with z in the plane, has these effective rates")
def _(function, rng):
    z, rates = rng.normal(size=2), rng.uniform(0.1, 1, size=20)
    start, slopes, expected = np.linalg.norm(z), [], []
    for lr in rates:
        norm = np.linalg.norm(z)
        gradient = np.array([z[1] ** 2, -z[0] * z[1]]) / norm**3
        slopes.append(np.linalg.norm(gradient) * norm)
        expected.append(lr / norm**2)
        z = z - lr * gradient
    return np.allclose(function(start, rates, np.array(slopes)), expected)


exercise.help(r"""
1. How long is the gradient at $z$, if it is $c_k$ long at $z/\lVert z\rVert$, and at what angle?
2. It is $c_k/\lVert z\rVert$ long and orthogonal to $z$: use Pythagoras for $\lVert z\rVert^2$.
3. Keep $\lVert z\rVert^2$ in a variable. In the loop, first append the rate over this variable, and
   then add to it the squared rate times the squared length of the gradient.
your gradient is as long at z as on the unit sphere; at z its length is c/‖z‖
    slope**2 / square → slope**2
you divide the rate by ‖z‖; the effective rate is η/‖z‖²
    effective.append(lr / square) → effective.append(lr / np.sqrt(square))
you take ‖z‖ from after the step; the effective rate of a step takes it from before
    effective.append(lr / square) → effective.append(lr / (square + lr**2 * slope**2 / square))
you add the lengths; z and the step are orthogonal, so their squares add up
    square + lr**2 * slope**2 / square → (np.sqrt(square) + lr * slope / np.sqrt(square)) ** 2
you shorten z; a step at a right angle makes it longer
    square + lr**2 → square - lr**2
""")
