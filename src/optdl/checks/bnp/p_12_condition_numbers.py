"""Condition numbers."""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import condition_numbers
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import Case, Exercise, Function

exercise = Exercise(
    "P-12", condition_numbers, parts=("of [e, H]", "of [e, H] U", "of [e, H] U D"), rtol=1e-6
)


@exercise.answer
def _(H):
    e, kappas = (np.ones(len(H)), [])
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((5, 2), (8, 3), (3, 4)):
        yield {"H": random_activations(rng, rows, features)}
    H = random_activations(rng, 6, 2)
    yield {"H": np.column_stack([H, H[:, 0]])}
    # with one feature the last two depend on what its variance divides by
    yield {"H": random_activations(rng, 3, 1)}


@exercise.fact("a duplicated feature acts like one feature that is √2 times as large")
def _(function: Function, rng: np.random.Generator) -> bool:
    # the entries are large, and so is the rounding in place of a zero
    h = 1e5 * rng.normal(size=(6, 1))
    twice, once = function(np.column_stack([h, h])), function(np.sqrt(2) * h)
    return bool(np.allclose(twice[:2], once[:2], rtol=1e-6) and np.isclose(twice[2], np.sqrt(2)))


@exercise.fact("centering helps, and undoes any shift; scaling undoes any change of units")
def _(function: Function, rng: np.random.Generator) -> bool:
    H = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.2]
    plain, centered, scaled = function(H + 30)
    _, again, rescaled = function([3.0, 0.1, 8.0] * H)
    return bool(
        centered < plain
        and np.isclose(centered, function(H)[1], rtol=1e-6)
        and not np.isclose(again, centered)
        and np.isclose(rescaled, scaled, rtol=1e-6)
    )


exercise.mistake(
    "the column of ones is missing: the matrix is Ĥ = [e, H]",
    ("e, kappas = (np.ones(len(H)), [])", "kappas = []"),
    ("np.column_stack([e, A])", "A"),
)


@exercise.mistake(
    "you divide by a singular value that is zero up to rounding; divide by the "
    "smallest one that is not"
)
def _(H):
    U, D = np.eye(H.shape[1] + 1), np.diag(np.concatenate([[1.0], 1 / H.std(0)]))
    U[0, 1:] = -H.mean(0)
    extended = np.column_stack([np.ones(len(H)), H])
    return tuple(np.linalg.cond(A) for A in (extended, extended @ U, extended @ U @ D))


exercise.mistake(
    "you return κ(ĤᵀĤ), the square; take singular values of Ĥ",
    ("s[0] / s[s > 1e-12 * s[0]][-1]", "(s[0] / s[s > 1e-12 * s[0]][-1]) ** 2"),
)

exercise.mistake(
    "you return smallest over largest; κ is at least 1",
    ("[0] / s[s > 1e-12 * s[0]][-1]", "[s > 1e-12 * s[0]][-1] / s[0]"),
)

exercise.mistake(
    "your third matrix is scaled, but not centered: it is ĤUD", ("(H - H.mean(0))", "H")
)

exercise.mistake("you multiply by σ; D is the inverse", (") / H", ") * H"))

exercise.mistake(
    "the sign of U is wrong: you add the mean, and the features move away from zero",
    ("- H.mean(0), (H - H.mean(0))", "+ H.mean(0), (H + H.mean(0))"),
)

exercise.mistake(
    "your standard deviation divides by N − 1; here it divides by N", ("std(0))", "std(0, ddof=1))")
)

exercise.mistake("your D holds 1/σ²; it holds 1/σ", ("std", "var"))

exercise.mistake(
    "your third matrix is Ĥ D U; P = U D centers first",
    ("(H - H.mean(0)) / H.std", "H / H.std(0) - H.mean"),
)
