"""The indices of the minibatches of one epoch: shuffled once, then cut in order."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function
from optdl.erm import minibatches
from optdl.observation import observe, repeated

exercise = Exercise("L1-09", minibatches)


@exercise.answer
def _(m, n, rng):
    order = rng.permutation(m)
    return [order[start : start + n] for start in range(0, m, n)]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for m, n in ((5, 2), (12, 4), (20, 7), (6, 1), (9, 9), (10, 4)):
        yield {"m": m, "n": n, "rng": np.random.default_rng(int(rng.integers(10**6)))}


@exercise.fact("each example occurs exactly once")
def _(cut: Function, rng: np.random.Generator) -> bool:
    indices = np.concatenate([np.asarray(part) for part in cut(23, 5, rng)])
    return sorted(indices.tolist()) == list(range(23))


@exercise.fact("two epochs have different orders")
def _(cut: Function, rng: np.random.Generator) -> bool:
    # the generator goes on from one epoch to the next, where the answer is
    first, second = map(np.concatenate, observe(repeated, cut, 2, 50, 8, rng))
    return not np.array_equal(first, second)


@exercise.fact("the last minibatch holds the remainder")
def _(cut: Function, rng: np.random.Generator) -> bool:
    return [len(part) for part in cut(23, 5, rng)] == [5, 5, 5, 5, 3]


exercise.hints(
    "At which positions of the shuffled indices do the minibatches begin, and where does the last "
    "one begin if $n$ does not divide $m$?",
    r"They begin at $0, n, 2n, \dots$, below $m$. A slice that reaches beyond the end of an array "
    r"is simply shorter; it raises no error.",
    "Draw one permutation. For each start in a `range` with step `n`, take the slice of length `n` "
    "that begins there, and collect the slices in a list.",
)

exercise.mistakes(r"""
you drop the remaining examples; they form a last, smaller minibatch
    range(0, m, n) → range(0, m - n + 1, n)
you keep the order of the data; shuffle first, or neighbors stay together
    rng.permutation(m) → np.arange(m)
you shuffle only within each minibatch, so its members are always the same; shuffle all examples
    rng.permutation(m) → np.arange(m)
    order[start : start + n] → rng.permutation(order[start : start + n])
you shuffle anew for each minibatch, so some examples occur twice and others never; shuffle once per
epoch
    order = rng.permutation(m) →
    order[start : start + n] → rng.permutation(m)[start : start + n]
you draw with replacement; in an epoch each example occurs exactly once
    rng.permutation(m) → rng.integers(m, size=m)
you make n minibatches; n is the size of each, and there are ⌈m/n⌉
    [order[start : start + n] for start in range(0, m, n)] → np.array_split(order, n)
you deal the shuffled indices out in turn, one to each minibatch; cut them in order
    return → parts = -(-m // n)\n    return
    order[start : start + n] for start in range(0, m, n) → order[k::parts] for k in range(parts)
""")
