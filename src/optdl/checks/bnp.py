"""Exercises on BNP: the Hessian of a layer, its preconditioner, and one step of the algorithm.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Iterator

import numpy as np

from optdl.bnp import (
    absorb_normalization,
    batch_statistics,
    condition_numbers,
    layer_hessian,
    normalized_activations,
    precondition_dense,
    preconditioner,
    running_statistics,
    scale_dense,
    split_adam_step,
)
from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property

# --- Random inputs ----------------------------------------------------------------------------


def _activations(rng: np.random.Generator, rows: int, features: int) -> np.ndarray:
    """Return features with means away from zero and of different sizes."""
    sizes, means = 3.0 ** np.arange(features), rng.uniform(1, 5, size=features)
    return np.asarray((means + sizes * rng.normal(size=(rows, features))).round(2))


# --- P-09 · the Hessian of a layer ------------------------------------------------------------


def _hessian_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((2, 1), (4, 2), (6, 3)):
        yield {
            "H": _activations(rng, rows, features),
            "curvatures": rng.uniform(0.1, 2, size=rows).round(2),
        }


def forgets_the_column_of_ones(H, curvatures):
    """Leave out the bias."""
    return (H.T * (curvatures / len(H))) @ H


def puts_the_ones_last(H, curvatures):
    """Append the column of ones."""
    extended = np.column_stack([H, np.ones(len(H))])
    return (extended.T * (curvatures / len(H))) @ extended


def leaves_out_one_over_n(H, curvatures):
    """Add up the examples."""
    extended = np.column_stack([np.ones(len(H)), H])
    return (extended.T * curvatures) @ extended


def leaves_out_the_curvatures(H, curvatures):
    """Take S = I / N, as for least squares."""
    extended = np.column_stack([np.ones(len(H)), H])
    return extended.T @ extended / len(H)


def puts_s_at_both_factors(H, curvatures):
    """Scale both factors by S."""
    extended = np.column_stack([np.ones(len(H)), H])
    return (extended.T * (curvatures / len(H)) ** 2) @ extended


def divides_by_the_features(H, curvatures):
    """Divide by n, the number of features."""
    extended = np.column_stack([np.ones(len(H)), H])
    return (extended.T * (curvatures / H.shape[1])) @ extended


def _has_these_second_differences(function: Function, rng: np.random.Generator) -> bool:
    """Compare with second differences of a loss that is quadratic, where they are exact."""
    H, y, curvatures = rng.normal(size=(7, 3)), rng.normal(size=7), rng.uniform(0.1, 2, size=7)
    u, p = rng.normal(size=(2, 4))

    def loss(q: np.ndarray) -> float:
        return float(np.mean(curvatures * (q[0] + H @ q[1:] - y) ** 2) / 2)

    expected = loss(p + u) - 2 * loss(p) + loss(p - u)
    return bool(np.isclose(u @ np.asarray(function(H, curvatures)) @ u, expected))


LAYER_HESSIAN = Exercise(
    key="P-09",
    reference=layer_hessian,
    cases=_hessian_cases,
    misconceptions=(
        Misconception(
            "the bias is a parameter too: Ĥ begins with a column of ones",
            forgets_the_column_of_ones,
        ),
        Misconception("your bias comes last; in Ĥ = [e, H] it comes first", puts_the_ones_last),
        Misconception(
            "your S lacks its 1/N: the loss is a mean over the minibatch",
            leaves_out_one_over_n,
        ),
        Misconception(
            "you leave out the second derivatives; S holds L″ on its diagonal",
            leaves_out_the_curvatures,
        ),
        Misconception("you use S twice; in Ĥᵀ S Ĥ it stands once", puts_s_at_both_factors),
        Misconception(
            "you divide by n, the number of features; S divides by N, the number of examples",
            divides_by_the_features,
        ),
    ),
    properties=(
        Property("a quadratic loss has these second differences", _has_these_second_differences),
    ),
)


# --- P-11 · the preconditioner ----------------------------------------------------------------


def _preconditioner_cases(rng: np.random.Generator) -> Iterator[Case]:
    for features in (1, 2, 4):
        yield {
            "mean": rng.uniform(1, 5, size=features).round(2),
            "std": rng.uniform(0.2, 9, size=features).round(2),
        }


def does_not_invert_d(mean, std):
    """Put the standard deviations into D."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], std]))


def adds_the_mean(mean, std):
    """Put +μ into U."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def puts_the_mean_into_the_first_column(mean, std):
    """Transpose U."""
    U = np.eye(len(mean) + 1)
    U[1:, 0] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def puts_variances_into_d(mean, std):
    """Divide by σ²."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean
    return U, np.diag(np.concatenate([[1.0], 1 / std**2]))


def scales_the_mean_in_u(mean, std):
    """Put −μ/σ into U."""
    U = np.eye(len(mean) + 1)
    U[0, 1:] = -mean / std
    return U, np.diag(np.concatenate([[1.0], 1 / std]))


def puts_the_bias_last(mean, std):
    """Order the parameters as [w; b]."""
    U = np.eye(len(mean) + 1)
    U[-1, :-1] = -mean
    return U, np.diag(np.concatenate([1 / std, [1.0]]))


def leaves_out_the_bias(mean, std):
    """Return the lower right blocks alone."""
    return np.eye(len(mean)), np.diag(1 / std)


def _standardizes_a_row(function: Function, rng: np.random.Generator) -> bool:
    h, mean, std = rng.normal(size=5), rng.normal(size=5), rng.uniform(0.5, 2, size=5)
    U, D = function(mean, std)
    row = np.concatenate([[1.0], h]) @ np.asarray(U) @ np.asarray(D)
    return bool(np.allclose(row, np.concatenate([[1.0], (h - mean) / std]), rtol=1e-10))


PRECONDITIONER = Exercise(
    key="P-11:preconditioner",
    reference=preconditioner,
    cases=_preconditioner_cases,
    parts=("U", "D"),
    misconceptions=(
        Misconception("D is an inverse: it holds 1/σ, yours holds σ", does_not_invert_d),
        Misconception(
            "the sign of U is wrong: −μᵀ in its first row subtracts the mean", adds_the_mean
        ),
        Misconception(
            "your μ stands in the first column of U; Ĥ is multiplied from the right, so it "
            "belongs in the first row",
            puts_the_mean_into_the_first_column,
        ),
        Misconception("your D divides by the variance; it divides by σ", puts_variances_into_d),
        Misconception(
            "you scale μ inside U; U only centers, and D scales what is centered",
            scales_the_mean_in_u,
        ),
        Misconception("your bias comes last; in ŵ = [b; w] it comes first", puts_the_bias_last),
        Misconception(
            "your matrices lack the row and the column of the bias; each has n + 1 of them",
            leaves_out_the_bias,
        ),
    ),
    properties=(Property("[1, hᵀ] U D is 1 beside (h − μ)/σ", _standardizes_a_row),),
)


# --- P-11 · normalized activations ------------------------------------------------------------


def _activation_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((3, 2), (5, 3), (8, 4)):
        yield {"H": _activations(rng, rows, features)}


def normalizes_without_the_ones(H):
    """Leave out the column of ones."""
    return (H - H.mean(0)) / H.std(0)


def normalizes_by_n_minus_one(H):
    """Take the unbiased variance."""
    return np.column_stack([np.ones(len(H)), (H - H.mean(0)) / H.std(0, ddof=1)])


def normalizes_by_the_variance(H):
    """Forget the root."""
    return np.column_stack([np.ones(len(H)), (H - H.mean(0)) / H.var(0)])


def subtracts_the_mean_after_scaling(H):
    """Scale by D first, and then subtract a mean that was not scaled."""
    return np.column_stack([np.ones(len(H)), H / H.std(0) - H.mean(0)])


def centers_and_does_not_scale(H):
    """Stop at the matrix times U."""
    return np.column_stack([np.ones(len(H)), H - H.mean(0)])


def normalizes_each_example(H):
    """Take the statistics of a row."""
    normalized = (H - H.mean(1, keepdims=True)) / H.std(1, keepdims=True)
    return np.column_stack([np.ones(len(H)), normalized])


def puts_the_column_of_ones_last(H):
    """Append the column of ones."""
    return np.column_stack([(H - H.mean(0)) / H.std(0), np.ones(len(H))])


def scales_and_does_not_center(H):
    """Divide by σ alone."""
    return np.column_stack([np.ones(len(H)), H / H.std(0)])


def normalizes_all_features_together(H):
    """Take one mean and one standard deviation."""
    return np.column_stack([np.ones(len(H)), (H - H.mean()) / H.std()])


def _does_not_see_units_of_features(function: Function, rng: np.random.Generator) -> bool:
    H = rng.normal(size=(9, 3))
    one = np.asarray(function(H))
    other = np.asarray(function(100 + 7 * H))
    return bool(np.allclose(np.sum(one**2, 0), 9) and np.allclose(one, other, atol=1e-9))


NORMALIZED_ACTIVATIONS = Exercise(
    key="P-11:activations",
    reference=normalized_activations,
    cases=_activation_cases,
    misconceptions=(
        Misconception("the column of ones is missing: Ĝ = [e, G]", normalizes_without_the_ones),
        Misconception(
            "your variance divides by N − 1; here it divides by N", normalizes_by_n_minus_one
        ),
        Misconception(
            "you divide by the variance; divide by its square root, σ", normalizes_by_the_variance
        ),
        Misconception(
            "you subtract the mean after scaling; center first, then scale",
            subtracts_the_mean_after_scaling,
        ),
        Misconception("you center, but do not scale", centers_and_does_not_scale),
        Misconception("you scale, but do not center", scales_and_does_not_center),
        Misconception(
            "your column of ones comes last; in Ĝ = [e, G] it comes first",
            puts_the_column_of_ones_last,
        ),
        Misconception(
            "you take one mean and one standard deviation for all features; each feature has "
            "its own",
            normalizes_all_features_together,
        ),
        Misconception(
            "you normalize each example over its features; normalize each feature over the "
            "examples",
            normalizes_each_example,
        ),
    ),
    properties=(
        Property(
            "each column has the squared norm N, in whatever units a feature is measured",
            _does_not_see_units_of_features,
        ),
    ),
)


# --- P-12 · condition numbers -----------------------------------------------------------------


def _condition_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((5, 2), (8, 3), (3, 4)):
        yield {"H": _activations(rng, rows, features)}
    H = _activations(rng, 6, 2)
    yield {"H": np.column_stack([H, H[:, 0]])}
    # with one feature the last two depend on what its variance divides by
    yield {"H": _activations(rng, 3, 1)}


def takes_condition_numbers_without_the_ones(H):
    """Leave out the column of ones."""
    kappas = []
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.std(0)):
        s = np.linalg.svd(A, compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def divides_by_a_singular_value_of_zero(H):
    """Count singular values that are zero."""
    U, D = np.eye(H.shape[1] + 1), np.diag(np.concatenate([[1.0], 1 / H.std(0)]))
    U[0, 1:] = -H.mean(0)
    extended = np.column_stack([np.ones(len(H)), H])
    return tuple(np.linalg.cond(A) for A in (extended, extended @ U, extended @ U @ D))


def takes_eigenvalues_of_the_product(H):
    """Take κ of the matrix times its transpose."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append((s[0] / s[s > 1e-12 * s[0]][-1]) ** 2)
    return tuple(kappas)


def divides_the_smallest_by_the_largest(H):
    """Return 1/κ."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[s > 1e-12 * s[0]][-1] / s[0])
    return tuple(kappas)


def scales_what_is_not_centered(H):
    """Leave U out of the third matrix."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), H / H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def multiplies_by_the_deviation(H):
    """Use the inverse of D."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), (H - H.mean(0)) * H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def moves_the_mean_further_away(H):
    """Add the mean, as U with the wrong sign does."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H + H.mean(0), (H + H.mean(0)) / H.std(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def scales_by_n_minus_one(H):
    """Take the unbiased variance."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.std(0, ddof=1)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def scales_by_the_variance(H):
    """Put the variances into D."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), (H - H.mean(0)) / H.var(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def multiplies_by_d_before_u(H):
    """Take the product Ĥ D U."""
    e, kappas = np.ones(len(H)), []
    for A in (H, H - H.mean(0), H / H.std(0) - H.mean(0)):
        s = np.linalg.svd(np.column_stack([e, A]), compute_uv=False)
        kappas.append(s[0] / s[s > 1e-12 * s[0]][-1])
    return tuple(kappas)


def _a_feature_twice_is_one_larger(function: Function, rng: np.random.Generator) -> bool:
    # the entries are large, and so is the rounding in place of a zero
    h = 1e5 * rng.normal(size=(6, 1))
    twice, once = function(np.column_stack([h, h])), function(np.sqrt(2) * h)
    return bool(np.allclose(twice[:2], once[:2], rtol=1e-6) and np.isclose(twice[2], np.sqrt(2)))


def _centering_helps_and_the_mean_is_forgotten(
    function: Function, rng: np.random.Generator
) -> bool:
    H = rng.normal(size=(20, 3)) * [1.0, 5.0, 0.2]
    plain, centered, scaled = function(H + 30)
    _, again, rescaled = function([3.0, 0.1, 8.0] * H)
    return bool(
        centered < plain
        and np.isclose(centered, function(H)[1], rtol=1e-6)
        and not np.isclose(again, centered)
        and np.isclose(rescaled, scaled, rtol=1e-6)
    )


CONDITION_NUMBERS = Exercise(
    key="P-12",
    reference=condition_numbers,
    cases=_condition_cases,
    parts=("of [e, H]", "of [e, H] U", "of [e, H] U D"),
    misconceptions=(
        Misconception(
            "the column of ones is missing: the matrix is Ĥ = [e, H]",
            takes_condition_numbers_without_the_ones,
        ),
        Misconception(
            "you divide by a singular value that is zero up to rounding; divide by the "
            "smallest one that is not",
            divides_by_a_singular_value_of_zero,
        ),
        Misconception(
            "you return κ(ĤᵀĤ), the square; take singular values of Ĥ",
            takes_eigenvalues_of_the_product,
        ),
        Misconception(
            "you return smallest over largest; κ is at least 1",
            divides_the_smallest_by_the_largest,
        ),
        Misconception(
            "your third matrix is scaled, but not centered: it is ĤUD",
            scales_what_is_not_centered,
        ),
        Misconception("you multiply by σ; D is the inverse", multiplies_by_the_deviation),
        Misconception(
            "the sign of U is wrong: you add the mean, and the features move away from zero",
            moves_the_mean_further_away,
        ),
        Misconception(
            "your standard deviation divides by N − 1; here it divides by N",
            scales_by_n_minus_one,
        ),
        Misconception("your D holds 1/σ²; it holds 1/σ", scales_by_the_variance),
        Misconception(
            "your third matrix is Ĥ D U; P = U D centers first", multiplies_by_d_before_u
        ),
    ),
    properties=(
        Property(
            "a duplicated feature acts like one feature that is √2 times as large",
            _a_feature_twice_is_one_larger,
        ),
        Property(
            "centering helps, and undoes any shift; scaling undoes any change of units",
            _centering_helps_and_the_mean_is_forgotten,
        ),
    ),
    rtol=1e-6,
)


# --- P-15 · statistics of a minibatch ---------------------------------------------------------


def _batch_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, features in ((1, 2), (3, 2), (5, 3)):
        running = rng.uniform(1, 3, size=features).round(2)
        yield {"H": _activations(rng, rows, features), "running_mean": running}
    yield {"H": _activations(rng, 4, 2)}
    yield {"H": _activations(rng, 1, 3)}


def divides_the_variance_by_n_minus_one(H, running_mean=None):
    """Take the unbiased variance."""
    if len(H) == 1 and running_mean is not None:
        return H[0], (H[0] - running_mean) ** 2
    return H.mean(0), H.var(0, ddof=1)


def measures_one_example_from_itself(H, running_mean=None):
    """Take the mean of the minibatch where the running mean is needed."""
    return H.mean(0), H.var(0)


def always_measures_from_the_running_mean(H, running_mean=None):
    """Use the running mean for minibatches of any size."""
    center = H.mean(0) if running_mean is None else running_mean
    return H.mean(0), np.mean((H - center) ** 2, axis=0)


def returns_the_standard_deviation(H, running_mean=None):
    """Take the root."""
    center = running_mean if running_mean is not None and len(H) == 1 else H.mean(0)
    return H.mean(0), np.sqrt(np.mean((H - center) ** 2, axis=0))


def returns_the_running_mean(H, running_mean=None):
    """Give back the mean from which one example was measured."""
    center = running_mean if running_mean is not None and len(H) == 1 else H.mean(0)
    return center, np.mean((H - center) ** 2, axis=0)


def takes_statistics_of_each_example(H, running_mean=None):
    """Average over the features."""
    if len(H) == 1 and running_mean is not None:
        return H[0], (H[0] - running_mean) ** 2
    return H.mean(1), H.var(1)


def _running_mean_serves_one_example_alone(function: Function, rng: np.random.Generator) -> bool:
    H, running = rng.normal(size=(6, 3)), rng.normal(size=3)
    _, alone = function(H[:1], running)
    _, many = function(H, running)
    _, moved = function(H + 5, running - 9)
    return bool(
        np.allclose(alone, (H[0] - running) ** 2)
        and np.allclose(many, np.mean(H**2, 0) - np.mean(H, 0) ** 2)
        and np.allclose(many, moved)
    )


BATCH_STATISTICS = Exercise(
    key="P-15",
    reference=batch_statistics,
    cases=_batch_cases,
    parts=("mean", "variance"),
    misconceptions=(
        Misconception(
            "your variance divides by N − 1; BNP divides by N",
            divides_the_variance_by_n_minus_one,
        ),
        Misconception(
            "you measure one example from its own mean, so that its variance is 0; measure it "
            "from the running mean",
            measures_one_example_from_itself,
        ),
        Misconception(
            "you use the running mean for minibatches of any size; only a minibatch of one "
            "needs it, and a larger one is measured from its own mean",
            always_measures_from_the_running_mean,
        ),
        Misconception(
            "you return the standard deviation; return the variance",
            returns_the_standard_deviation,
        ),
        Misconception(
            "your mean of one example is the running mean; it is the example itself",
            returns_the_running_mean,
        ),
        Misconception(
            "you average over the features of an example; average over the examples",
            takes_statistics_of_each_example,
        ),
    ),
    properties=(
        Property(
            "one example is measured from the running mean, several from their own mean",
            _running_mean_serves_one_example_alone,
        ),
    ),
)


# --- P-14 · running statistics ----------------------------------------------------------------


def _running_cases(rng: np.random.Generator) -> Iterator[Case]:
    for sizes, features, rho in (((2, 1, 3), 1, 0.5), ((1, 4, 2, 3), 2, 0.8), ((3,) * 5, 3, 0.9)):
        yield {
            "minibatches": [_activations(rng, rows, features) for rows in sizes],
            "rho": rho,
        }


def swaps_the_shares(minibatches, rho=0.99):
    """Give ρ to the minibatch."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        mean = (1 - rho) * mean + rho * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        var = (1 - rho) * var + rho * np.mean((H - center) ** 2, axis=0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def starts_with_a_variance_of_zero(minibatches, rho=0.99):
    """Start at σ² = 0."""
    mean, var, means, variances = 0.0, 0.0, [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def starts_at_the_first_minibatch(minibatches, rho=0.99):
    """Take the first minibatch as it is."""
    mean, var = minibatches[0].mean(0), minibatches[0].var(0)
    means, variances = [mean], [var]
    for H in minibatches[1:]:
        mean = rho * mean + (1 - rho) * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def corrects_the_bias_of_the_start(minibatches, rho=0.99):
    """Divide by 1 − ρᵗ, as Adam does."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for t, H in enumerate(minibatches, 1):
        mean = rho * mean + (1 - rho) * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)
        means.append(mean / (1 - rho**t))
        variances.append(var / (1 - rho**t))
    return np.array(means), np.array(variances)


def measures_from_the_old_mean(minibatches, rho=0.99):
    """Update the mean after the variance has used it."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        center = mean if len(H) == 1 else H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - center) ** 2, axis=0)
        mean = rho * mean + (1 - rho) * H.mean(0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def gives_one_example_no_spread(minibatches, rho=0.99):
    """Measure one example from itself."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        var = rho * var + (1 - rho) * H.var(0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def measures_all_from_the_running_mean(minibatches, rho=0.99):
    """Use the running mean for minibatches of any size."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        var = rho * var + (1 - rho) * np.mean((H - mean) ** 2, axis=0)
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def averages_standard_deviations(minibatches, rho=0.99):
    """Average σ, and square at the end."""
    mean, std, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        center = mean if len(H) == 1 else H.mean(0)
        std = rho * std + (1 - rho) * np.sqrt(np.mean((H - center) ** 2, axis=0))
        means.append(mean)
        variances.append(std**2)
    return np.array(means), np.array(variances)


def keeps_an_unbiased_variance(minibatches, rho=0.99):
    """Divide by N − 1."""
    mean, var, means, variances = 0.0, 1.0, [], []
    for H in minibatches:
        mean = rho * mean + (1 - rho) * H.mean(0)
        one = (H[0] - mean) ** 2 if len(H) == 1 else H.var(0, ddof=1)
        var = rho * var + (1 - rho) * one
        means.append(mean)
        variances.append(var)
    return np.array(means), np.array(variances)


def _forgets_the_start_at_the_rate_rho(function: Function, rng: np.random.Generator) -> bool:
    """Compare with the closed form for one minibatch that comes again and again."""
    H = rng.normal(3, 2, size=(6, 4))
    kept = 0.9 ** np.arange(1, 8)[:, None]
    means, variances = function([H] * 7, 0.9)
    return bool(
        np.allclose(means, (1 - kept) * H.mean(0))
        and np.allclose(variances, kept + (1 - kept) * H.var(0))
    )


RUNNING_STATISTICS = Exercise(
    key="P-14:statistics",
    reference=running_statistics,
    cases=_running_cases,
    parts=("means", "variances"),
    misconceptions=(
        Misconception(
            "ρ is on the wrong term: it is the share of the old statistics", swaps_the_shares
        ),
        Misconception("your variance starts at 0; it starts at 1", starts_with_a_variance_of_zero),
        Misconception(
            "you start at the first minibatch; start at μ = 0 and σ² = 1",
            starts_at_the_first_minibatch,
        ),
        Misconception(
            "you divide by 1 − ρᵗ as Adam does; BNP has no bias correction",
            corrects_the_bias_of_the_start,
        ),
        Misconception(
            "you update μ after using it; one example is measured from the new μ",
            measures_from_the_old_mean,
        ),
        Misconception(
            "you use the mean of a minibatch of one, so that its variance is 0; measure it "
            "from the running mean",
            gives_one_example_no_spread,
        ),
        Misconception(
            "you measure every minibatch from the running mean; only a minibatch of one "
            "example needs it",
            measures_all_from_the_running_mean,
        ),
        Misconception(
            "you average standard deviations; average variances", averages_standard_deviations
        ),
        Misconception(
            "your variance divides by N − 1; BNP divides by N", keeps_an_unbiased_variance
        ),
    ),
    properties=(
        Property(
            "after t equal minibatches ρᵗ of the start is left",
            _forgets_the_start_at_the_rate_rho,
        ),
    ),
)


# --- P-14 · the scale of a layer --------------------------------------------------------------


def _scale_cases(rng: np.random.Generator) -> Iterator[Case]:
    for features, rows in ((3072, 60), (100, 256), (10, 10), (500, int(rng.integers(11, 90)))):
        yield {"features": features, "rows": rows}


def returns_q(features, rows):
    """Take the root."""
    return np.sqrt(max(features / rows, 1))


def takes_the_smaller(features, rows):
    """Take the minimum."""
    return min(features / rows, 1)


def lets_the_scale_fall_below_one(features, rows):
    """Leave out the maximum."""
    return features / rows


def divides_the_rows_by_the_features(features, rows):
    """Turn the fraction around."""
    return max(rows / features, 1)


def adds_one(features, rows):
    """Add what should be compared."""
    return features / rows + 1


def _keeps_the_larger_side_of_the_matrix(function: Function, rng: np.random.Generator) -> bool:
    features, rows = (int(size) for size in rng.integers(1, 500, size=2))
    return all(np.isclose(function(n, N) * N, max(n, N)) for n, N in ((features, rows), (7, 500)))


SCALE_DENSE = Exercise(
    key="P-14:scale",
    reference=scale_dense,
    cases=_scale_cases,
    misconceptions=(
        Misconception("you return q; the step divides by q²", returns_q),
        Misconception("you take the smaller of n/N and 1; take the larger", takes_the_smaller),
        Misconception(
            "your q² is below 1 where N is larger than n: the maximum is missing",
            lets_the_scale_fall_below_one,
        ),
        Misconception(
            "your fraction is upside down: n is the number of features, N that of examples",
            divides_the_rows_by_the_features,
        ),
        Misconception("you add 1; take the larger of n/N and 1", adds_one),
    ),
    properties=(Property("q² N is the larger of n and N", _keeps_the_larger_side_of_the_matrix),),
)


# --- P-14 · one step --------------------------------------------------------------------------


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, features, rows, floors in (
        (1, 1, 4, {"eps1": 0.5, "eps2": 0.2}),
        (2, 3, 8, {"eps1": 0.3, "eps2": 0.1}),
        (3, 6, 2, {"eps1": 0.1, "eps2": 0.4}),
        (2, 4, 3, {}),
    ):
        yield {
            "grad_weight": rng.normal(size=(outputs, features)).round(2),
            "grad_bias": rng.uniform(0.5, 2, size=outputs).round(2),
            "mean": rng.uniform(1, 3, size=features).round(2),
            "var": rng.uniform(0.2, 4, size=features).round(2),
            "batch_size": rows,
            **floors,
        }


def uses_the_old_weight_gradient(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Take step 5 with the G_w from before step 4."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - grad_weight @ mean


def divides_by_the_deviation(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Divide by σ̃."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = np.sqrt(var + eps1 * var.max() + eps2)
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def divides_by_q(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Divide by q where q² belongs."""
    scale = np.sqrt(max(grad_weight.shape[1] / batch_size, 1))
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def scales_by_the_smaller(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Take q² = min{n/N, 1}."""
    scale = min(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def scales_by_the_outputs(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Count the outputs for n."""
    scale = max(grad_weight.shape[0] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def does_not_scale_the_bias(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Leave 1/q² out of step 5."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias - weight @ mean


def scales_the_new_gradient_twice(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Divide the sum of step 5 by q² as well."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, (grad_bias - weight @ mean) / scale


def adds_eps1_without_the_maximum(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Add ε₁ itself."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * (var + eps1 + eps2))
    return weight, grad_bias / scale - weight @ mean


def takes_a_share_of_each_variance(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Add ε₁ times the feature's own variance."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * ((1 + eps1) * var + eps2))
    return weight, grad_bias / scale - weight @ mean


def takes_the_largest_mean(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Add ε₁ times the largest mean."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * np.abs(mean).max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def adds_the_floor_to_the_deviation(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Square what was added to σ."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    std = np.sqrt(var)
    smoothed = (std + eps1 * std.max() + eps2) ** 2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def adds_the_floor_after_the_division(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Divide by σ² alone, and add the floor to the quotient."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    floor = eps1 * var.max() + eps2
    weight = ((grad_weight - np.outer(grad_bias, mean)) / var + floor) / scale
    return weight, grad_bias / scale - weight @ mean


def does_not_center(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Leave μ G_b out of step 4."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    weight = grad_weight / (scale * (var + eps1 * var.max() + eps2))
    return weight, grad_bias / scale - weight @ mean


def adds_the_mean_times_the_bias(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Add in step 4."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight + np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def adds_the_sum(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Add in step 5."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale + weight @ mean


def transforms_the_bias_first(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Take step 5 before step 4."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    bias = grad_bias / scale - grad_weight @ mean
    return (grad_weight - np.outer(bias, mean)) / (scale * smoothed), bias


def multiplies_by_p_alone(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Leave Pᵀ out."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    weight = grad_weight / (scale * np.sqrt(var + eps1 * var.max() + eps2))
    return weight, grad_bias / scale - weight @ mean


def multiplies_by_the_transpose_alone(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Leave P out."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    std = np.sqrt(var + eps1 * var.max() + eps2)
    return (grad_weight - np.outer(grad_bias, mean)) / (scale * std), grad_bias / scale


def divides_before_it_centers(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Divide G_w alone by σ̃²."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max() + eps2
    weight = (grad_weight / smoothed - np.outer(grad_bias, mean)) / scale
    return weight, grad_bias / scale - weight @ mean


def leaves_out_the_floor(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Divide by σ² as it is."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * var)
    return weight, grad_bias / scale - weight @ mean


def takes_the_floor_as_a_minimum(
    grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4
):
    """Take the larger of σ² and the floor."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = np.maximum(var, eps1 * var.max() + eps2)
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def leaves_out_eps2(grad_weight, grad_bias, mean, var, batch_size, eps1=1e-2, eps2=1e-4):
    """Add ε₁ max σ² alone."""
    scale = max(grad_weight.shape[1] / batch_size, 1)
    smoothed = var + eps1 * var.max()
    weight = (grad_weight - np.outer(grad_bias, mean)) / (scale * smoothed)
    return weight, grad_bias / scale - weight @ mean


def _is_the_matrix_form(function: Function, rng: np.random.Generator) -> bool:
    """Compare with P Pᵀ written out, and see that the step goes downhill."""
    G_w, G_b = rng.normal(size=(4, 6)), rng.normal(size=4)
    mean, var = rng.normal(size=6), rng.uniform(0.1, 5, size=6)
    P = np.eye(7)
    P[0, 1:] = -mean
    P[:, 1:] /= np.sqrt(var + 0.02 * var.max() + 0.3)
    right = P @ P.T @ np.vstack([G_b, G_w.T]) / 3
    weight, bias = (np.asarray(one) for one in function(G_w, G_b, mean, var, 2, 0.02, 0.3))
    downhill = np.sum(weight * G_w) + np.sum(bias * G_b) > 0
    return bool(np.allclose(np.vstack([bias, weight.T]), right, rtol=1e-9) and downhill)


PRECONDITION_DENSE = Exercise(
    key="P-14:step",
    reference=precondition_dense,
    cases=_step_cases,
    parts=("weight", "bias"),
    misconceptions=(
        Misconception(
            "your step 5 uses the old G_w; use the new one from step 4",
            uses_the_old_weight_gradient,
        ),
        Misconception("you divide by σ̃; step 4 divides by σ̃²", divides_by_the_deviation),
        Misconception("you divide by q; both steps divide by q²", divides_by_q),
        Misconception("you take q² = min{n/N, 1}; it is the maximum", scales_by_the_smaller),
        Misconception(
            "your n counts the outputs; q² counts the inputs, the columns of G_w",
            scales_by_the_outputs,
        ),
        Misconception("your step 5 lacks the 1/q² before G_b", does_not_scale_the_bias),
        Misconception(
            "you divide the sum of step 5 by q² as well; the new G_w has been divided already",
            scales_the_new_gradient_twice,
        ),
        Misconception(
            "you add ε₁ itself; it multiplies the largest variance of the layer",
            adds_eps1_without_the_maximum,
        ),
        Misconception(
            "you add ε₁ times each feature's own variance; take the largest variance of the layer",
            takes_a_share_of_each_variance,
        ),
        Misconception(
            "you take the maximum of the means; take the maximum of the variances",
            takes_the_largest_mean,
        ),
        Misconception(
            "you add the floor to σ and then square; add it to σ²",
            adds_the_floor_to_the_deviation,
        ),
        Misconception(
            "you add the floor to the quotient; it belongs in the denominator",
            adds_the_floor_after_the_division,
        ),
        Misconception("your step 4 does not subtract μ(j) G_b(i)", does_not_center),
        Misconception(
            "your step 4 adds μ(j) G_b(i); it subtracts it", adds_the_mean_times_the_bias
        ),
        Misconception("your step 5 adds the sum; it subtracts it", adds_the_sum),
        Misconception(
            "you take step 5 before step 4: G_w uses the old G_b, and G_b the new G_w",
            transforms_the_bias_first,
        ),
        Misconception(
            "you multiply the gradient by P alone; it is P Pᵀ, which divides by σ̃ twice and "
            "subtracts μ twice",
            multiplies_by_p_alone,
        ),
        Misconception(
            "you multiply the gradient by Pᵀ alone; it is P Pᵀ, which divides by σ̃ twice and "
            "changes G_b as well",
            multiplies_by_the_transpose_alone,
        ),
        Misconception(
            "you subtract μ(j) G_b(i) after dividing; step 4 divides the difference by σ̃²(j)",
            divides_before_it_centers,
        ),
        Misconception("you divide by σ²; step 3 adds ε₁ max σ² + ε₂ to it", leaves_out_the_floor),
        Misconception(
            "you take the larger of σ² and ε₁ max σ² + ε₂; add the two",
            takes_the_floor_as_a_minimum,
        ),
        Misconception("your σ̃² lacks ε₂: it is σ² + ε₁ max σ² + ε₂", leaves_out_eps2),
    ),
    properties=(
        Property(
            "the result is P Pᵀ [G_b; G_w] / q², so that its negative is a descent direction",
            _is_the_matrix_form,
        ),
    ),
)


# --- P-17 · batch norm as a plain layer -------------------------------------------------------


def _absorb_cases(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, features in ((1, 1), (2, 2), (3, 4)):
        yield {
            "W": rng.normal(size=(outputs, features)).round(2),
            "b": rng.normal(size=outputs).round(2),
            "mean": rng.uniform(1, 5, size=features).round(2),
            "std": rng.uniform(0.2, 9, size=features).round(2),
        }


def absorbs_the_variance(W, b, mean, std):
    """Divide by σ²."""
    absorbed = W / std**2
    return absorbed, b - absorbed @ mean


def shifts_by_the_old_weight(W, b, mean, std):
    """Subtract W μ, where μ was divided by σ too."""
    return W / std, b - W @ mean


def shifts_the_wrong_way(W, b, mean, std):
    """Add Ŵ μ."""
    absorbed = W / std
    return absorbed, b + absorbed @ mean


def multiplies_the_weight_by_the_deviation(W, b, mean, std):
    """Take W diag(σ)."""
    absorbed = W * std
    return absorbed, b - absorbed @ mean


def leaves_the_bias_as_it_is(W, b, mean, std):
    """Absorb the scale alone."""
    return W / std, b


def divides_the_shift_twice(W, b, mean, std):
    """Divide by σ in Ŵ and again in μ/σ."""
    absorbed = W / std
    return absorbed, b - absorbed @ (mean / std)


def forgets_the_old_bias(W, b, mean, std):
    """Leave b out."""
    absorbed = W / std
    return absorbed, -absorbed @ mean


def _equals_the_normalized_layer(function: Function, rng: np.random.Generator) -> bool:
    W, b, h = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(2, 5, size=(10, 3))
    absorbed, bias = function(W, b, h.mean(0), h.std(0))
    normalized = (h - h.mean(0)) / h.std(0)
    return bool(np.allclose(h @ np.asarray(absorbed).T + bias, normalized @ W.T + b, rtol=1e-9))


def _one_step_of_either_is_one_step_of_bnp(function: Function, rng: np.random.Generator) -> bool:
    """Take a step of least squares behind batch norm, and its twin on the absorbed weights."""
    W, b, h = rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(2, 5, size=(10, 3))
    mean, std, target = h.mean(0), h.std(0), rng.normal(size=(10, 2))
    normalized = (h - mean) / std
    error = (normalized @ W.T + b - target) / 10
    expected = function(W - 0.3 * error.T @ normalized, b - 0.3 * error.sum(0), mean, std)
    step = precondition_dense(error.T @ h, error.sum(0), mean, std**2, 10, 0.0, 0.0)
    start = function(W, b, mean, std)
    return all(
        np.allclose(np.asarray(one) - 0.3 * change, other, rtol=1e-9)
        for one, change, other in zip(start, step, expected, strict=True)
    )


ABSORB_NORMALIZATION = Exercise(
    key="P-17",
    reference=absorb_normalization,
    cases=_absorb_cases,
    parts=("weight", "bias"),
    misconceptions=(
        Misconception(
            "you absorb with the variance; batch norm divides by σ", absorbs_the_variance
        ),
        Misconception(
            "your bias uses W; μ was divided by σ too, so it takes Ŵ",
            shifts_by_the_old_weight,
        ),
        Misconception("you add Ŵ μ; batch norm subtracts the mean", shifts_the_wrong_way),
        Misconception(
            "you multiply the weight by σ; divide it by σ",
            multiplies_the_weight_by_the_deviation,
        ),
        Misconception(
            "you leave the bias as it is; b̂ = b − Ŵ μ holds what the mean contributes",
            leaves_the_bias_as_it_is,
        ),
        Misconception(
            "your shift divides by σ twice: Ŵ holds 1/σ already", divides_the_shift_twice
        ),
        Misconception("b is missing from your b̂", forgets_the_old_bias),
    ),
    properties=(
        Property("both layers give the same output", _equals_the_normalized_layer),
        Property(
            "a step of gradient descent behind batch norm is a step of BNP on Ŵ and b̂",
            _one_step_of_either_is_one_step_of_bnp,
        ),
    ),
)


# --- F-11 · a step of Adam in the split form --------------------------------------------------


def _split_cases(rng: np.random.Generator) -> Iterator[Case]:
    for outputs, features in ((1, 1), (2, 3), (4, 2)):
        yield {
            "grad_weight": rng.normal(size=(outputs, features)).round(2),
            "grad_bias": rng.normal(size=outputs).round(2),
            "mean": rng.uniform(1, 3, size=features).round(2),
            "std": rng.uniform(0.2, 2, size=features).round(2),
            "q": float(rng.choice([1.5, 2.0, 3.0])),
            "lr": float(rng.choice([0.1, 0.5])),
            "eps": 0.25,
        }


def gives_adam_the_preconditioned_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Let Adam take P Pᵀ g, as after step()."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std) ** 2
    bias = grad_bias / q**2 - weight @ mean
    return -lr * weight / (abs(weight) + eps), -lr * bias / (abs(bias) + eps)


def leaves_adam_in_z(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Return the step of z."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    return -lr * weight / (abs(weight) + eps), -lr * bias / (abs(bias) + eps)


def gives_adam_the_plain_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Multiply Adam's step on θ by P."""
    weight = -lr * grad_weight / (abs(grad_weight) + eps) / (q * std)
    return weight, -lr * grad_bias / (abs(grad_bias) + eps) / q - weight @ mean


def gives_the_step_both_factors(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Multiply Adam's step on θ by P Pᵀ."""
    weight = -lr * grad_weight / (abs(grad_weight) + eps)
    bias = -lr * grad_bias / (abs(grad_bias) + eps)
    weight = (weight - np.outer(bias, mean)) / (q * std) ** 2
    return weight, bias / q**2 - weight @ mean


def exchanges_p_and_its_transpose(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Give P g to Adam, and multiply its step by Pᵀ."""
    weight = grad_weight / (q * std)
    bias = grad_bias / q - weight @ mean
    weight = -lr * weight / (abs(weight) + eps)
    bias = -lr * bias / (abs(bias) + eps)
    return (weight - np.outer(bias, mean)) / (q * std), bias / q


def does_not_center_the_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Leave Uᵀ out of Pᵀ."""
    weight = grad_weight / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps) / (q * std)
    return weight, -lr * bias / (abs(bias) + eps) / q - weight @ mean


def does_not_move_the_bias_back(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Leave U out of P."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps) / (q * std)
    return weight, -lr * bias / (abs(bias) + eps) / q


def shifts_the_bias_before_it_scales(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Apply D after U: subtract the sum over V_w, which is not yet divided by σ̃."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps)
    bias = -lr * bias / (abs(bias) + eps)
    return weight / (q * std), (bias - weight @ mean) / q


def divides_the_gradient_by_the_variance(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Divide by σ̃² before Adam and not after."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std) ** 2
    bias = grad_bias / q**2
    weight = -lr * weight / (abs(weight) + eps)
    return weight, -lr * bias / (abs(bias) + eps) - weight @ mean


def leaves_q_out_of_the_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Divide by q after Adam alone."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / std
    weight = -lr * weight / (abs(weight) + eps) / (q * std)
    return weight, -lr * grad_bias / (abs(grad_bias) + eps) / q - weight @ mean


def leaves_q_out_of_the_step(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Divide by q before Adam alone."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (abs(weight) + eps) / std
    return weight, -lr * bias / (abs(bias) + eps) - weight @ mean


def moves_with_the_gradient(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget the minus sign."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = lr * weight / (abs(weight) + eps) / (q * std)
    return weight, lr * bias / (abs(bias) + eps) / q - weight @ mean


def divides_by_the_square(grad_weight, grad_bias, mean, std, q, lr, eps=1e-8):
    """Forget Adam's root: divide by g² + ε."""
    weight = (grad_weight - np.outer(grad_bias, mean)) / (q * std)
    bias = grad_bias / q
    weight = -lr * weight / (weight**2 + eps) / (q * std)
    return weight, -lr * bias / (bias**2 + eps) / q - weight @ mean


def _lowers_the_loss_to_first_order(function: Function, rng: np.random.Generator) -> bool:
    """Check gᵀΔθ = −η Σ|Pᵀg| without ε, by matrices."""
    G, mean, std = rng.normal(size=(3, 4)), rng.uniform(1, 3, size=3), rng.uniform(0.2, 2, size=3)
    U, D = preconditioner(mean, std)
    weight, bias = function(G[:, 1:], G[:, 0], mean, std, 2.0, 0.1, 0.0)
    change = np.column_stack([bias, weight])
    return bool(np.isclose((G * change).sum(), -0.1 * abs(G @ U @ D / 2).sum(), rtol=1e-9))


SPLIT_ADAM_STEP = Exercise(
    key="F-11",
    reference=split_adam_step,
    cases=_split_cases,
    parts=("change of the weight", "change of the bias"),
    misconceptions=(
        Misconception(
            "you give P Pᵀ g to Adam, which divides each component by its own size; it takes Pᵀ g, "
            "and P comes after it",
            gives_adam_the_preconditioned_gradient,
        ),
        Misconception(
            "you return the step of z; the parameters are P z, so P is still missing",
            leaves_adam_in_z,
        ),
        Misconception(
            "you give Adam the plain gradient; the gradient with respect to z is Pᵀ g",
            gives_adam_the_plain_gradient,
        ),
        Misconception(
            "you multiply Adam's step by P Pᵀ; Pᵀ belongs before Adam",
            gives_the_step_both_factors,
        ),
        Misconception(
            "you give P g to Adam and take Pᵀ of its step; it is the other way around",
            exchanges_p_and_its_transpose,
        ),
        Misconception(
            "your Pᵀ g lacks the − μ(j) G_b(i) of the weight", does_not_center_the_gradient
        ),
        Misconception("your P lacks the − Σ ΔW(i,j) μ(j) of the bias", does_not_move_the_bias_back),
        Misconception(
            "you subtract the sum before dividing by σ̃; D comes first, so the sum takes ΔW",
            shifts_the_bias_before_it_scales,
        ),
        Misconception(
            "you divide by q²σ̃² before Adam; P and Pᵀ divide by qσ̃ each, one after Adam and one "
            "before",
            divides_the_gradient_by_the_variance,
        ),
        Misconception(
            "your Pᵀ lacks the 1/q; with Adam's ε this is another step",
            leaves_q_out_of_the_gradient,
        ),
        Misconception("your P lacks the 1/q", leaves_q_out_of_the_step),
        Misconception("you move with the gradient; it is −η", moves_with_the_gradient),
        Misconception(
            "you divide by g² + ε; Adam divides by √(g²) + ε = |g| + ε", divides_by_the_square
        ),
    ),
    properties=(
        Property(
            "to first order the loss falls by η times the sum of |Pᵀ g|",
            _lowers_the_loss_to_first_order,
        ),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    LAYER_HESSIAN,
    PRECONDITIONER,
    NORMALIZED_ACTIVATIONS,
    CONDITION_NUMBERS,
    BATCH_STATISTICS,
    RUNNING_STATISTICS,
    SCALE_DENSE,
    PRECONDITION_DENSE,
    ABSORB_NORMALIZATION,
    SPLIT_ADAM_STEP,
)
