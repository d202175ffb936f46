"""The indices of the minibatches of one epoch: shuffled once, then cut in order."""

import numpy as np

from optdl.checks.exercise import answer_to
from optdl.erm import minibatches


@answer_to("L1-09", minibatches)
def exercise(m, n, rng):
    order = rng.permutation(m)
    return [order[start : start + n] for start in range(0, m, n)]


@exercise.cases
def _(rng):
    n, k, m = rng.integers([4, 2, 3], [8, 5, 9]).tolist()
    # the remainder is not n − 1, where minibatches of nearly one size would be the same
    for examples, size in ((k * n + int(rng.integers(1, n - 1)), n), (k * n, n), (m, 1), (m, m)):
        yield {"m": examples, "n": size, "rng": np.random.default_rng(int(rng.integers(10**6)))}


@exercise.fact("for m = 23 and n = 5 each index occurs once, and the sizes are 5, 5, 5, 5 and 3")
def _(cut, rng):
    parts = [np.asarray(part) for part in cut(23, 5, rng)]
    sizes = [len(part) for part in parts]
    return sorted(np.concatenate(parts)) == [*range(23)] and sizes == [5, 5, 5, 5, 3]


exercise.help(r"""
1. Where do the minibatches begin, and where does the last one if $n$ does not divide $m$?
2. They begin at $0, n, 2n, \dots$, below $m$. A slice beyond the end of an array is just shorter.
3. Draw one permutation, and collect its slices of length `n` from a `range` with step `n`.
where n divides m, you have an empty minibatch at the end; there are ⌈m/n⌉ minibatches
    range(0, m, n) → range(0, m + 1, n)
you shuffle only within each minibatch, so its members are always the same; shuffle all examples
    rng.permutation(m) → np.arange(m)
    order[start : start + n] → rng.permutation(order[start : start + n])
you draw with replacement; in an epoch each example occurs exactly once
    rng.permutation(m) → rng.integers(m, size=m)
you take every k-th index; a minibatch is n indices in a row
    [order[start : start + n] for start in range(0, m, n)]
    → [order[b :: -(-m // n)] for b in range(-(-m // n))]
your minibatches are of nearly equal size; all have n indices, but for the last
    [order[start : start + n] for start in range(0, m, n)] → np.array_split(order, -(-m // n))
""")
