"""Bound the difference between the mean of a channel and those of its columns."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp_cnn import exact_column_statistics, statistics_bound
from optdl.checks.exercise import Case, Exercise, Function
from optdl.observation import calls, observe

exercise = Exercise("P-23:bound", statistics_bound)


@exercise.answer
def _(h, k):
    r, s = h.shape[2:]
    missed = k - 1
    share = missed * (1 / (2 * r) + 1 / (2 * s) - missed / (4 * r * s))
    return share * np.abs(h).max(axis=(0, 2, 3))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shape, k in (((1, 1, 2, 3), 3), ((3, 2, 3, 4), 3), ((2, 3, 5, 4), 5)):
        h = rng.uniform(0.5, 3, size=shape).round(2)
        h[-1, 0, 0, -1] = -4.0
        yield {"h": h, "k": k}


@exercise.fact("no error exceeds the bound, and a constant map reaches it")
def _(function: Function, rng: np.random.Generator) -> bool:
    """Try random maps, and a constant one, which reaches the bound."""
    maps = [1 + rng.normal(size=(2, 3, 5, 4)) for _ in range(20)]
    arguments = [*((h, 5) for h in maps), (np.full((1, 1, 4, 6), -2.0), 3)]
    *bounds, reached = observe(calls, function, *arguments)
    for h, bound in zip(maps, bounds, strict=True):
        error = exact_column_statistics(h, 5)[0].reshape(3, 25) - h.mean((0, 2, 3))[:, None]
        if np.any(np.abs(error).max(axis=1) > np.asarray(bound) + 1e-12):
            return False
    return bool(np.allclose(reached, 2 * (1 - 0.75 * 5 / 6)))


exercise.hints(
    "Which factor of the bound depends only on the sizes, and which factor depends on the values "
    "in a channel?",
    r"$\nu$ is one number for all channels, computed from $k$, $r$ and $s$. The maximum runs over "
    r"images, rows and columns, so there is one for each channel.",
    r"Take $r$ and $s$ from the last two entries of the shape, compute $\nu$, and multiply it by "
    r"the maximum of the absolute values over axes 0, 2 and 3.",
)

exercise.mistakes(r"""
you use k in place of k − 1; the center of the kernel misses nothing
    k - 1 → k
you count the corner twice, in the rows and in the columns; subtract it once
    - missed / (4 * r * s) →
you add the corner; subtract it
    - missed / → + missed /
you count too many rows and columns; an entry misses at most (k − 1)/2 of each
    k - 1 → 2 * (k - 1)
you take the largest h; the bound needs the largest absolute value
    np.abs(h) → h
you return one number, from the maximum over all channels; return one number for each channel, from
its own maximum
    max(axis=(0, 2, 3)) → max()
you take the maximum over all channels; each has its own
    np.abs(h).max(axis=(0, 2, 3)) → np.full(h.shape[1], np.abs(h).max())
your maximum runs over the wrong axes; return one number for each channel
    (0, 2, 3) → (1, 2, 3)
you look only at the first image; the maximum runs over all of them
    np.abs(h).max(axis=(0, 2, 3)) → np.abs(h[0]).max(axis=(1, 2))
you take the mean of |h|; only the maximum makes it a bound
    .max( → .mean(
you take the height of the maps for their width, too; they need not be square
    r, s = h.shape[2:] → r = s = h.shape[2]
""")
