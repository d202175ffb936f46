"""Say in which minimum gradient descent ends from each of many starts."""

import numpy as np

from optdl.checks.exercise import answer_to


@answer_to("L2-02", "reached_minima")
def exercise(roots, starts, lr, steps):
    w = starts
    for _ in range(steps):
        w = w - lr * np.prod(w[:, None] - roots, axis=1)
    minima = roots[::2]
    nearest = np.argmin(np.abs(w[:, None] - minima), axis=1)
    return minima[nearest]


def descents(rng, count):
    """Return roots, starts between the first and the last but on none, and a stable rate."""
    # no maximum lies in the middle between two minima
    gaps = np.resize(rng.permutation([0.5, 1.5]), count) + rng.uniform(0, 0.3, size=count)
    roots = np.cumsum(gaps).round(2)
    starts = np.linspace(roots[0], roots[-1] - 0.01, 12).round(2) + 0.005
    curvatures = np.polyval(np.polyder(np.poly(roots)), roots)
    return {"roots": roots, "starts": starts, "lr": float((1 / curvatures.max()).round(4))}


@exercise.cases
def _(rng):
    for count, number, less in ((3, 0, 0), (3, -1, 1), (5, -1, 0)):
        case = descents(rng, count)
        ends = [exercise.reference(**case, steps=steps) for steps in range(60)]
        # the last step brings a start nearer to another minimum, or one more step would
        changing = [k for k in range(1, 60) if any(ends[k] != ends[k - 1])]
        yield {**case, "steps": changing[number] - less}


@exercise.fact("in many small steps it is the minimum that no maximum separates from the start")
def _(function, rng):
    case = descents(rng, 5)
    basin = case["roots"][2 * np.searchsorted(case["roots"][1::2], case["starts"])]
    return np.allclose(function(*case.values(), 5000), basin)


exercise.help(r"""
1. What is the sign of $J'$ on each side of the last root? Is this root a minimum?
2. Every second root is a minimum, the first included. A step subtracts $\eta J'(w)$ of each start.
3. `w[:, None] - roots` has a row for each start; multiply along the rows. After the last step,
   `np.argmin` of the distances says which minimum is nearest to each end.
you count maxima as well; gradient descent leaves them, so take every second root
    roots[::2] → roots
you return the maxima; J' goes from − to + at the first root, so that is a minimum
    roots[::2] → roots[1::2]
your distances have signs, and the smallest is the most negative; take their absolute values
    np.abs(w[:, None] - minima) → (w[:, None] - minima)
    with `argmin` or `min`, else your answer is the last minimum for every start
you return where the descents end; return the minimum nearest to each end
    minima[nearest] → w
you return the number of each minimum; return the minimum itself
    minima[nearest] → nearest
you number the minima and look the number up among all roots; look it up among the minima
    return minima[nearest] → return roots[nearest]
""")
