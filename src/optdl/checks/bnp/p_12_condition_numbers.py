"""Compute condition numbers of the activations as they are, centered, and scaled as well."""

import numpy as np

from optdl.bnp import condition_numbers
from optdl.checks.bnp.shared import random_activations
from optdl.checks.exercise import answer_to


@answer_to(
    "P-12", condition_numbers, parts=("of [e, H]", "of [e, H] U", "of [e, H] U D"), rtol=1e-6
)
def exercise(H):
    e, mean, std = np.ones(len(H)), H.mean(axis=0), H.std(axis=0)
    kappas = []
    for features in (H, H - mean, (H - mean) / std):
        extended = np.column_stack([e, features])
        values = np.linalg.svd(extended, compute_uv=False)
        nonzero = values[values > 1e-12 * values[0]]
        kappas.append(nonzero[0] / nonzero[-1])
    return tuple(kappas)


@exercise.cases
def _(rng):
    few, more = rng.integers((2, 5), (5, 8))
    # with one feature the last two depend on what its variance divides by
    for rows, features in ((more, few), (few, more), (few + 1, 1)):
        yield {"H": random_activations(rng, rows, features)}
    H = random_activations(rng, more, 2)
    # large entries, and so is the rounding in place of a zero
    yield {"H": rng.choice([1e5, 1e6]) * np.column_stack([H, H[:, rng.integers(2)]])}
    # 10⁻⁷ times the largest singular value is not zero, and its square is lost in rounding
    yield {"H": random_activations(rng, more, 2) * rng.permutation([1.0, 1e7])}


@exercise.fact("κ(ĤUD) is the same for H, H + 30 and H in other units, and κ(ĤU) for H and H + 30")
def _(function, rng):
    H = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.2]
    plain, moved, rescaled = function(H), function(H + 30), function([3.0, 0.1, 8.0] * H)
    same = np.allclose(plain[1:], moved[1:], rtol=1e-6)
    return same and np.isclose(plain[2], rescaled[2], rtol=1e-6)


exercise.help(r"""
1. What do multiplications by $U$ and then by $D$ do to the features of $\hat H$, and to the ones?
2. The column of ones stays the same; $U$ centers the features, and $D$ then scales them. The same
   computation is needed for three versions of the features, so write a loop.
3. For each version, put the column of ones in front, call `np.linalg.svd` with `compute_uv=False`,
   keep the values above the threshold, and divide the first by the last, the smallest of them.
the column of ones is missing: the matrix is Ĥ = [e, H]
    np.column_stack([e, features]) → features
you divide by a singular value that is zero up to rounding; divide by the smallest one that is not
    values[values > 1e-12 * values[0]] → values
you count what is below 1e-12 as zero; the limit is 1e-12 times the largest singular value
    1e-12 * values[0] → 1e-12
you take eigenvalues of ĤᵀĤ, where rounding hides the small ones; take singular values of Ĥ itself
    np.linalg.svd(extended, compute_uv=False) → np.linalg.eigvalsh(extended.T @ extended)[::-1]
    nonzero[0] / nonzero[-1] → np.sqrt(nonzero[0] / nonzero[-1])
    with `eig…`, else you leave out a singular value of 10⁻⁷ times the largest, which is not zero
your third matrix is scaled, but not centered; it is ĤUD
    (H - mean) / std → H / std
your standard deviation divides by N − 1; here it divides by N
    H.std(axis=0) → H.std(axis=0, ddof=1)
your D holds 1/σ²; it holds 1/σ
    H.std(axis=0) → H.var(axis=0)
you take κ of ĤᵀĤ, zeros included; divide singular values of Ĥ itself that are not zero
    np.linalg.svd(extended, → np.linalg.svd(extended.T @ extended,
    values[values > 1e-12 * values[0]] → values
you take roots of eigenvalues of ĤᵀĤ, where rounding hides the small ones; take singular values
    np.linalg.svd(extended, compute_uv=False)
    → np.sqrt(np.abs(np.linalg.eigvalsh(extended.T @ extended)))[::-1]
""")
