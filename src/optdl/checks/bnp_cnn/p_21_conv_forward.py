"""The forward pass."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp_cnn import conv_forward
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise("P-21:forward", conv_forward)


@exercise.answer
def _(h, w, b):
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    parts = [
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    ]
    return sum(parts) + b[:, None, None]


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    large = ((1, 1, 2, 3), 1, 3), ((2, 2, 3, 4), 3, 3), ((1, 3, 4, 5), 2, 5)
    # small enough to compute by hand, each with two of one kind
    small = ((1, 2, 2, 3), 1, 3), ((2, 1, 2, 3), 1, 3), ((1, 1, 2, 3), 2, 3)
    for shape, o, k in (*large, *small):
        yield {
            "h": (1 + rng.normal(size=shape)).round(2),
            "w": rng.normal(size=(o, shape[1], k, k)).round(2),
            "b": rng.uniform(1, 2, size=o).round(2),
        }


@exercise.fact("a kernel with one nonzero entry shifts one channel, and the bias is added")
def _(function: Function, rng: np.random.Generator) -> bool:
    h = np.zeros((2, 3, 6, 7))
    h[:, :, 1:-1, 1:-1] = rng.normal(size=(2, 3, 4, 5))
    p, i, j = (int(index) for index in rng.integers(3, size=3))
    w, b = np.zeros((2, 3, 3, 3)), rng.normal(size=2)
    w[1, p, i, j] = 2.0
    output = np.asarray(function(h, w, b))
    moved = 2.0 * np.roll(h[:, p], (1 - i, 1 - j), axis=(1, 2))
    return bool(np.allclose(output[:, 0], b[0]) and np.allclose(output[:, 1], moved + b[1]))


exercise.mistake(
    "you flip the kernel; networks use it as it stands",
    (
        "h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))",
        "h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))\n"
        "    w = w[:, :, ::-1, ::-1]",
    ),
)

exercise.mistake("you swap rows and columns of the kernel", ("i, j", "j, i"))

exercise.mistake(
    "the bias is missing",
    ("parts = [", "return sum("),
    ("]\n    return sum(parts) + b[:, None, None]", ")"),
)


@exercise.mistake("you add the bias once for each kernel entry; add it once")
def _(h, w, b):
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return sum(
        np.einsum("ncrs,oc->nors", h[:, :, i : i + r, j : j + s], w[:, :, i, j]) + b[:, None, None]
        for i in range(k)
        for j in range(k)
    )


@exercise.mistake("your output channels come last; they belong to the second axis")
def _(h, w, b):
    k, (_, _, r, s) = w.shape[-1], h.shape
    h = np.pad(h, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    return b + sum(
        np.einsum("ncrs,oc->nrso", h[:, :, i : i + r, j : j + s], w[:, :, i, j])
        for i in range(k)
        for j in range(k)
    )


exercise.mistake(
    "you reshape to (N, o, r, s) with the numbers in the order N, r, s, o; move "
    "the axis, as np.moveaxis does",
    ("nors", "nrso"),
    ("(_, _, r", "(N, _, r"),
    ("sum(parts) + b[:, None, None]", "(b + sum(parts)).reshape(N, len(b), r, s)"),
)

exercise.mistake(
    "you average over the input channels; their contributions add up",
    ("(_, _, r", "(_, c, r"),
    ("parts) +", "parts) / c +"),
)

exercise.mistake(
    "you reshape the kernel to (c k k, o), which mixes its output channels; "
    "reshape it to (o, c k k) and transpose",
    (
        "k, (_, _, r, s) = w.shape[-1], h.shape",
        "(o, c, k, _), (_, _, r, s) = (w.shape, h.shape)\n"
        "    w = w.reshape(-1, o).T.reshape(o, c, k, k)",
    ),
)
