"""Statistics of the columns."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp_cnn import exact_column_statistics
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-23:exact", exact_column_statistics, parts=("mean", "var"))


@exercise.answer
def _(h, k):
    m, (_, c, r, s) = ((k - 1) // 2, h.shape)
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for i in range(k)
            for j in range(k)
        ]
    )
    return (columns.mean(axis=1), columns.var(axis=1))


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shape, k in (((1, 1, 2, 3), 3), ((2, 2, 3, 4), 3), ((2, 2, 4, 3), 5)):
        spread = rng.uniform(0.5, 2, size=(shape[1], 1, 1))
        yield {"h": (2 + spread * rng.normal(size=shape)).round(2), "k": k}


@exercise.fact("if the border of a map is zero, all its columns have the channel's statistics")
def _(function: Function, rng: np.random.Generator) -> bool:
    h = np.zeros((2, 3, 8, 9))
    h[:, :, 2:-2, 2:-2] = rng.normal(size=(2, 3, 4, 5))
    mean, var = (np.reshape(part, (3, 25)) for part in function(h, 5))
    whole = h.transpose(1, 0, 2, 3).reshape(3, 1, -1)
    return bool(np.allclose(mean, whole.mean(axis=2)) and np.allclose(var, whole.var(axis=2)))


@exercise.mistake("you return the channel's statistics k² times; here each column has its own")
def _(h, k):
    return tuple(np.repeat(part, k * k) for part in (h.mean((0, 2, 3)), h.var((0, 2, 3))))


exercise.mistake(
    "you leave out the zeros of the padding; they are entries of the matrix, and "
    "the mean divides by Nrs",
    ("m)))", "m)), constant_values=np.nan)"),
    (
        "columns.mean(axis=1), columns.var(axis=1)",
        "np.nanmean(columns, axis=1), np.nanvar(columns, axis=1)",
    ),
)

exercise.mistake(
    "your kernel is flipped; its first entry meets the pixel at the upper left",
    ("i : i + r, j :", "k - 1 - i : k - 1 - i + r, k - 1 - j : k - 1 -"),
)


@exercise.mistake("your columns run down the kernel; use the order of w.reshape(-1)")
def _(h, k):
    m, (_, c, r, s) = (k - 1) // 2, h.shape
    h = np.pad(h, ((0, 0), (0, 0), (m, m), (m, m)))
    columns = np.array(
        [
            h[:, p, i : i + r, j : j + s].ravel()
            for p in range(c)
            for j in range(k)
            for i in range(k)
        ]
    )
    return columns.mean(axis=1), columns.var(axis=1)


exercise.mistake(
    "you measure a column's variance from the channel's mean; take the column's own",
    (
        "m, (_, c, r, s) = ((k - 1) // 2, h.shape)",
        "m, (_, c, r, s) = ((k - 1) // 2, h.shape)\n"
        "    center = np.repeat(h.mean(axis=(0, 2, 3)), k * k)",
    ),
    ("columns.var(axis=1)", "np.mean((columns - center[:, None]) ** 2, axis=1)"),
)

exercise.mistake(
    "your variance divides by Nrs − 1; here it divides by Nrs", ("=1))", "=1, ddof=1))")
)

exercise.mistake("you return the standard deviation; return the variance", ("var", "std"))

exercise.mistake(
    "you return the mean of the squares; subtract the square of the mean",
    ("columns.var(axis=1)", "np.mean(columns**2, axis=1)"),
)
