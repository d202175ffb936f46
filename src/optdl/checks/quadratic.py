"""Exercises on the local quadratic approximation and on gradient descent in its eigenbasis.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.objectives import (
    affine,
    constant,
    named,
    quadratic,
    sum_exp,
    sum_exp_gradient,
    sum_exp_hessian,
)
from optdl.quadratic import (
    convergence_rate,
    eigen_contributions,
    eigen_power,
    exact_line_search,
    gd_coefficients,
    largest_stable_step,
    measured_rates,
    optimal_step,
    taylor_value,
)

# --- Random inputs ----------------------------------------------------------------------------


def _hessian(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a symmetric positive definite matrix with well separated eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.cumsum(rng.uniform(0.3, 1.5, size=n))
    H = (rotation * eigenvalues) @ rotation.T
    return (H + H.T) / 2


def _spectrum(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return n ≥ 2 positive eigenvalues; from n = 3 on, the last is not the largest."""
    smallest, *between, largest = np.cumsum(rng.uniform(0.3, 1.5, size=n)).round(3)
    return np.array([smallest, largest, *rng.permutation(between)])


# --- L1-12 · the quadratic model --------------------------------------------------------------


def _objective(rng: np.random.Generator, rows: int, n: int) -> dict[str, Callable[..., Any]]:
    """Return J(w) = Σ exp(Aw), whose Hessian is full and changes from point to point."""
    A = rng.uniform(-1, 1, size=(rows, n)).round(1)
    where = f"A = {A.tolist()}"
    return {
        "value": named(f"w ↦ sum(exp(A @ w)), {where}", sum_exp, A),
        "gradient": named(f"w ↦ A.T @ exp(A @ w), {where}", sum_exp_gradient, A),
        "hessian": named(f"w ↦ A.T @ diag(exp(A @ w)) @ A, {where}", sum_exp_hessian, A),
    }


def _taylor_cases(rng: np.random.Generator) -> Iterator[Case]:
    for rows, n in ((2, 1), (3, 2), (5, 3), (6, 4)):
        center = rng.normal(size=n).round(1)
        w = center + rng.uniform(0.2, 0.8, size=n).round(1) * rng.choice([-1, 1], size=n)
        yield {**_objective(rng, rows, n), "center": center, "w": w}


def forgets_the_half(value, gradient, hessian, center, w):
    """Return the model with a quadratic term that is twice too large."""
    d = w - center
    return value(center) + d @ gradient(center) + d @ hessian(center) @ d


def takes_derivatives_at_w(value, gradient, hessian, center, w):
    """Return the model with gradient and Hessian of the wrong point."""
    d = w - center
    return value(center) + d @ gradient(w) + 0.5 * d @ hessian(w) @ d


def takes_hessian_at_w(value, gradient, hessian, center, w):
    """Return the model with the Hessian of the wrong point."""
    d = w - center
    return value(center) + d @ gradient(center) + 0.5 * d @ hessian(w) @ d


def drops_the_linear_term(value, gradient, hessian, center, w):
    """Return the model as if the center were a minimum."""
    d = w - center
    return value(center) + 0.5 * d @ hessian(center) @ d


def stops_at_first_order(value, gradient, hessian, center, w):
    """Return the tangent plane."""
    return value(center) + (w - center) @ gradient(center)


def forgets_to_subtract_the_center(value, gradient, hessian, center, w):
    """Return the model with w in place of w − ŵ."""
    return value(center) + w @ gradient(center) + 0.5 * w @ hessian(center) @ w


def _exact_on_quadratics(function: Function, rng: np.random.Generator) -> bool:
    H, c = _hessian(rng, 3), rng.normal(size=3)
    w = rng.normal(size=3)
    loss = partial(quadratic, 2.0, c, H)
    model = function(loss, partial(affine, c, H), partial(constant, H), rng.normal(size=3), w)
    return bool(np.isclose(model, loss(w), rtol=1e-9))


def _third_order(function: Function, rng: np.random.Generator) -> bool:
    J = _objective(rng, rows=4, n=2)
    center, d = rng.normal(size=2), rng.normal(size=2)
    errors = [
        abs(J["value"](center + h * d) - function(*J.values(), center, center + h * d))
        for h in (0.02, 0.01)
    ]
    # the error falls 8 times when the distance is halved: 2³, up to terms of fourth order
    return bool(errors[1] < errors[0] / 6)


TAYLOR_VALUE = Exercise(
    key="L1-12",
    reference=taylor_value,
    cases=_taylor_cases,
    misconceptions=(
        Misconception(
            "your quadratic term lacks its factor ½; it is ½ (w−ŵ)ᵀH(w−ŵ)", forgets_the_half
        ),
        Misconception(
            "your g and H are taken at w; the model uses both at the center ŵ",
            takes_derivatives_at_w,
        ),
        Misconception(
            "your H is taken at w; the model uses the Hessian at the center ŵ",
            takes_hessian_at_w,
        ),
        Misconception(
            "your model has no linear term; (w−ŵ)ᵀg vanishes only where the gradient is zero",
            drops_the_linear_term,
        ),
        Misconception(
            "your model is the tangent plane; the term ½ (w−ŵ)ᵀH(w−ŵ) is missing",
            stops_at_first_order,
        ),
        Misconception(
            "your terms use w; they measure the displacement w − ŵ from the center",
            forgets_to_subtract_the_center,
        ),
    ),
    properties=(
        Property("the model of a quadratic is the quadratic itself", _exact_on_quadratics),
        Property("half the distance leaves an eighth of the error", _third_order),
    ),
)


# --- L1-14 · the loss in the eigenbasis -------------------------------------------------------


def _contribution_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (2, 3, 5):
        yield {"hessian": _hessian(rng, n), "displacement": rng.normal(size=n)}


def contributions_without_half(hessian, displacement):
    """Return λα², twice too large."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    return eigenvalues * (eigenvectors.T @ displacement) ** 2


def eigenvectors_as_rows(hessian, displacement):
    """Return the terms with the rows of the eigenvector matrix as eigenvectors."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    return 0.5 * eigenvalues * (eigenvectors @ displacement) ** 2


def skips_the_change_of_basis(hessian, displacement):
    """Return the terms with the coordinates of w − w* themselves."""
    return 0.5 * np.linalg.eigvalsh(hessian) * displacement**2


def forgets_the_square(hessian, displacement):
    """Return ½ λ |α|."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    return 0.5 * eigenvalues * np.abs(eigenvectors.T @ displacement)


def returns_the_sum(hessian, displacement):
    """Return the whole loss above the minimum."""
    return 0.5 * displacement @ hessian @ displacement


def orders_from_the_largest(hessian, displacement):
    """Return the terms in descending order of the eigenvalues."""
    eigenvalues, eigenvectors = np.linalg.eigh(hessian)
    return (0.5 * eigenvalues * (eigenvectors.T @ displacement) ** 2)[::-1]


def _contributions_add_up(function: Function, rng: np.random.Generator) -> bool:
    H, d = _hessian(rng, 6), rng.normal(size=6)
    return bool(np.isclose(np.sum(function(H, d)), 0.5 * d @ H @ d, rtol=1e-9))


def _one_direction_at_a_time(function: Function, rng: np.random.Generator) -> bool:
    H = _hessian(rng, 4)
    eigenvalues, eigenvectors = np.linalg.eigh(H)
    terms = function(H, 3.0 * eigenvectors[:, 2])
    return bool(np.allclose(terms, 4.5 * eigenvalues * (np.arange(4) == 2), atol=1e-9))


EIGEN_CONTRIBUTIONS = Exercise(
    key="L1-14",
    reference=eigen_contributions,
    cases=_contribution_cases,
    misconceptions=(
        Misconception(
            "your terms are λα²; the loss adds ½λα² in each direction",
            contributions_without_half,
        ),
        Misconception(
            "you read the eigenvectors as rows; eigh puts them in columns, so α = Uᵀ(w−w*)",
            eigenvectors_as_rows,
        ),
        Misconception(
            "you pair the eigenvalues with the coordinates of w−w*; "
            "pair them with its coefficients α = Uᵀ(w−w*) in the eigenbasis",
            skips_the_change_of_basis,
        ),
        Misconception("your terms grow like |α|; the loss is quadratic, ½λα²", forgets_the_square),
        Misconception(
            "you return the whole loss; return one term for each eigenvalue", returns_the_sum
        ),
        Misconception(
            "your terms start with the largest eigenvalue; the smallest comes first",
            orders_from_the_largest,
        ),
    ),
    properties=(
        Property("the terms add up to ½ dᵀHd", _contributions_add_up),
        Property("a displacement along one eigenvector fills one term", _one_direction_at_a_time),
    ),
)


# --- L1-15 · gradient descent in the eigenbasis -----------------------------------------------


def _coefficient_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps in ((2, 3), (3, 5), (5, 10)):
        eigenvalues = _spectrum(rng, n)
        lr = float(np.round(rng.uniform(0.6, 0.9) * 2 / eigenvalues.max(), 3))
        alpha0 = rng.normal(size=n).round(2)
        yield {"alpha0": alpha0, "eigenvalues": eigenvalues, "lr": lr, "steps": steps}


def climbs_instead_of_descending(alpha0, eigenvalues, lr, steps):
    """Return (1 + ηλ)^τ α, as gradient ascent does."""
    return np.array([(1 + lr * eigenvalues) ** t * alpha0 for t in range(steps + 1)])


def adds_instead_of_multiplying(alpha0, eigenvalues, lr, steps):
    """Return (1 − τηλ) α, as if each step removed the same amount."""
    return np.array([(1 - t * lr * eigenvalues) * alpha0 for t in range(steps + 1)])


def follows_the_gradient_flow(alpha0, eigenvalues, lr, steps):
    """Return exp(−τηλ) α, the limit of infinitely many infinitely small steps."""
    return np.array([np.exp(-t * lr * eigenvalues) * alpha0 for t in range(steps + 1)])


def is_one_step_ahead(alpha0, eigenvalues, lr, steps):
    """Return the rows 1 to steps + 1."""
    return np.array([(1 - lr * eigenvalues) ** (t + 1) * alpha0 for t in range(steps + 1)])


def leaves_out_the_start(alpha0, eigenvalues, lr, steps):
    """Return the rows 1 to steps, without the start."""
    return np.array([(1 - lr * eigenvalues) ** (t + 1) * alpha0 for t in range(steps)])


def decays_without_sign(alpha0, eigenvalues, lr, steps):
    """Return |1 − ηλ|^τ α."""
    return np.array([np.abs(1 - lr * eigenvalues) ** t * alpha0 for t in range(steps + 1)])


def _equals_iterated_descent(function: Function, rng: np.random.Generator) -> bool:
    H, w = _hessian(rng, 4), rng.normal(size=4)
    eigenvalues, U = np.linalg.eigh(H)
    rows = np.asarray(function(U.T @ w, eigenvalues, 0.1, 8))
    for row in rows:
        if not np.allclose(U @ row, w, atol=1e-10):
            return False
        w = w - 0.1 * H @ w
    return len(rows) == 9


def _flips_for_ever_at_the_limit(function: Function, rng: np.random.Generator) -> bool:
    eigenvalue = rng.uniform(1, 3)
    rows = np.asarray(function(np.array([1.0]), np.array([eigenvalue]), 2 / eigenvalue, 5))
    return bool(np.allclose(rows.ravel(), [1, -1, 1, -1, 1, -1]))


GD_COEFFICIENTS = Exercise(
    key="L1-15",
    reference=gd_coefficients,
    cases=_coefficient_cases,
    misconceptions=(
        Misconception(
            "your factor 1 + ηλ is that of gradient ascent; descent multiplies by 1 − ηλ",
            climbs_instead_of_descending,
        ),
        Misconception(
            "your steps subtract the same amount each time; "
            "each step multiplies the coefficient, which gives (1 − ηλ)^τ",
            adds_instead_of_multiplying,
        ),
        Misconception(
            "your decay is exp(−ηλτ), the limit for η → 0; finite steps give (1 − ηλ)^τ",
            follows_the_gradient_flow,
        ),
        Misconception("your rows are one step ahead; row 0 is the start itself", is_one_step_ahead),
        Misconception(
            "your rows begin after the first step; row 0 is the start, so there are steps + 1",
            leaves_out_the_start,
        ),
        Misconception(
            "your factor is |1 − ηλ|; without the absolute value steep directions change sign",
            decays_without_sign,
        ),
    ),
    properties=(
        Property("the rows are gradient descent on ½wᵀHw", _equals_iterated_descent),
        Property(
            "at η = 2/λ the coefficient changes sign at each step and keeps its size",
            _flips_for_ever_at_the_limit,
        ),
    ),
)


# --- L1-15 · the largest stable step ----------------------------------------------------------


def _spectrum_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (2, 3, 6):
        yield {"eigenvalues": _spectrum(rng, n)}


def stops_at_one_over_lambda_max(eigenvalues):
    """Return 1/λ_max, where the steepest direction is solved in one step."""
    return 1 / np.max(eigenvalues)


def follows_the_flattest_direction(eigenvalues):
    """Return 2/λ_min."""
    return 2 / np.min(eigenvalues)


def gives_the_fastest_step(eigenvalues):
    """Return 2/(λ_min + λ_max), the best step, not the largest one."""
    return 2 / (np.min(eigenvalues) + np.max(eigenvalues))


def trusts_the_order(eigenvalues):
    """Return 2 over the last eigenvalue, as if they were sorted."""
    return 2 / eigenvalues[-1]


def _limit_separates(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = _spectrum(rng, 4)
    limit = float(function(eigenvalues))
    below = np.abs(1 - 0.999 * limit * eigenvalues).max()
    above = np.abs(1 - 1.001 * limit * eigenvalues).max()
    return bool(below < 1 < above)


def _flat_directions_do_not_matter(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = _spectrum(rng, 3)
    with_flat_ones = np.append(eigenvalues, [1e-3, 1e-6])
    return bool(np.isclose(function(with_flat_ones), function(eigenvalues), rtol=1e-9))


LARGEST_STABLE_STEP = Exercise(
    key="L1-15:limit",
    reference=largest_stable_step,
    cases=_spectrum_cases,
    misconceptions=(
        Misconception(
            "your limit is 1/λ_max, where one step removes the steepest coefficient; "
            "gradient descent is stable up to 2/λ_max",
            stops_at_one_over_lambda_max,
        ),
        Misconception(
            "your limit follows λ_min; the steepest direction, λ_max, is the first to diverge",
            follows_the_flattest_direction,
        ),
        Misconception(
            "you return the best step, 2/(λ_min + λ_max); the limit of stability is 2/λ_max",
            gives_the_fastest_step,
        ),
        Misconception(
            "you take the last eigenvalue for λ_max; the eigenvalues come in any order",
            trusts_the_order,
        ),
    ),
    properties=(
        Property("just below the limit it converges, just above it diverges", _limit_separates),
        Property("flatter directions do not move the limit", _flat_directions_do_not_matter),
    ),
)


# --- P-05 · the rate of convergence -----------------------------------------------------------


def _rate_cases(rng: np.random.Generator) -> Iterator[Case]:
    # short of the best step, past it, and past the limit: each branch rules somewhere
    for n, share in ((2, 0.5), (2, 0.9), (4, 0.3), (4, 0.95), (5, 1.2)):
        eigenvalues = _spectrum(rng, n)
        lr = float(np.round(share * 2 / eigenvalues.max(), 3))
        yield {"lr": lr, "eigenvalues": eigenvalues}
    # eigenvalues so close that every direction overshoots
    close = rng.uniform(1.0, 1.2, size=3).round(3)
    yield {"lr": 1.5, "eigenvalues": close}


def looks_only_at_lambda_min(lr, eigenvalues):
    """Return |1 − ηλ_min|."""
    return abs(1 - lr * np.min(eigenvalues))


def looks_only_at_lambda_max(lr, eigenvalues):
    """Return |1 − ηλ_max|."""
    return abs(1 - lr * np.max(eigenvalues))


def forgets_the_absolute_value(lr, eigenvalues):
    """Return max (1 − ηλ)."""
    return np.max(1 - lr * eigenvalues)


def takes_the_best_direction(lr, eigenvalues):
    """Return min |1 − ηλ|."""
    return np.min(np.abs(1 - lr * eigenvalues))


def averages_the_directions(lr, eigenvalues):
    """Return the mean of |1 − ηλ|."""
    return np.mean(np.abs(1 - lr * eigenvalues))


def always_gives_the_optimal_rate(lr, eigenvalues):
    """Return (κ − 1)/(κ + 1), whatever the step."""
    kappa = np.max(eigenvalues) / np.min(eigenvalues)
    return (kappa - 1) / (kappa + 1)


def _rate_is_a_matrix_norm(function: Function, rng: np.random.Generator) -> bool:
    H, lr = _hessian(rng, 4), rng.uniform(0.1, 1.0)
    norm = np.linalg.norm(np.eye(4) - lr * H, ord=2)
    return bool(np.isclose(function(lr, np.linalg.eigvalsh(H)), norm, rtol=1e-9))


def _no_step_no_progress(function: Function, rng: np.random.Generator) -> bool:
    return bool(np.isclose(function(0.0, _spectrum(rng, 3)), 1.0))


CONVERGENCE_RATE = Exercise(
    key="P-05",
    reference=convergence_rate,
    cases=_rate_cases,
    misconceptions=(
        Misconception(
            "you look only at λ_min; at a large learning rate λ_max is the slower direction",
            looks_only_at_lambda_min,
        ),
        Misconception(
            "you look only at λ_max; at a small learning rate λ_min is the slower direction",
            looks_only_at_lambda_max,
        ),
        Misconception(
            "your maximum ignores the sign; a factor of −0.9 is as slow as 0.9: use |1 − ηλ|",
            forgets_the_absolute_value,
        ),
        Misconception(
            "you take the fastest direction; the slowest direction determines the rate",
            takes_the_best_direction,
        ),
        Misconception(
            "you average the directions; after many steps only the slowest is left",
            averages_the_directions,
        ),
        Misconception(
            "you return (κ−1)/(κ+1), the rate of the best step, whatever the learning rate",
            always_gives_the_optimal_rate,
        ),
    ),
    properties=(
        Property("the rate is the largest singular value of I − ηH", _rate_is_a_matrix_norm),
        Property("the learning rate 0 has the rate 1", _no_step_no_progress),
    ),
)


# --- P-05 · the optimal step ------------------------------------------------------------------


def multiplies_the_eigenvalues(eigenvalues):
    """Return 2/(λ_min · λ_max)."""
    return 2 / (np.min(eigenvalues) * np.max(eigenvalues))


def solves_only_the_steepest(eigenvalues):
    """Return 1/λ_max."""
    return 1 / np.max(eigenvalues)


def inverts_the_sum(eigenvalues):
    """Return 1/(λ_min + λ_max)."""
    return 1 / (np.min(eigenvalues) + np.max(eigenvalues))


def takes_the_largest_stable_step(eigenvalues):
    """Return 2/λ_max."""
    return 2 / np.max(eigenvalues)


def averages_all_eigenvalues(eigenvalues):
    """Return 1 over the mean of all eigenvalues."""
    return 1 / np.mean(eigenvalues)


def _optimal_step_beats_its_neighbors(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = _spectrum(rng, 5)
    step = float(function(eigenvalues))
    rates = [np.abs(1 - s * step * eigenvalues).max() for s in (0.999, 1.0, 1.001)]
    return bool(rates[1] < rates[0] and rates[1] < rates[2])


def _optimal_rate_is_set_by_kappa(function: Function, rng: np.random.Generator) -> bool:
    eigenvalues = _spectrum(rng, 4)
    kappa = eigenvalues.max() / eigenvalues.min()
    rate = np.abs(1 - function(eigenvalues) * eigenvalues).max()
    return bool(np.isclose(rate, (kappa - 1) / (kappa + 1), rtol=1e-9))


OPTIMAL_STEP = Exercise(
    key="P-05:step",
    reference=optimal_step,
    cases=_spectrum_cases,
    misconceptions=(
        Misconception(
            "you multiply the eigenvalues; the best step is 2/(λ_min + λ_max), over their sum",
            multiplies_the_eigenvalues,
        ),
        Misconception(
            "your step is 1/λ_max, which suits the steepest direction alone; "
            "the best step balances both ends of the spectrum",
            solves_only_the_steepest,
        ),
        Misconception("your step is 1/(λ_min + λ_max); the numerator is 2", inverts_the_sum),
        Misconception(
            "you return the limit of stability, 2/λ_max; "
            "there the steepest coefficient never shrinks",
            takes_the_largest_stable_step,
        ),
        Misconception(
            "you average all eigenvalues; only the smallest and the largest matter",
            averages_all_eigenvalues,
        ),
    ),
    properties=(
        Property("every other step is slower", _optimal_step_beats_its_neighbors),
        Property("the rate at this step is (κ−1)/(κ+1)", _optimal_rate_is_set_by_kappa),
    ),
)


# --- P-05 · experiment: measure the rate ------------------------------------------------------


def _measured_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, steps in ((2, 3), (2, 6), (3, 10)):
        H = _hessian(rng, n)
        limit = 2 / np.linalg.eigvalsh(H)[-1]
        lrs = (limit * np.array([0.2, 0.55, 0.9, 1.1])).round(3)
        yield {"hessian": H, "start": rng.normal(size=n), "lrs": lrs, "steps": steps}


def averages_over_all_steps(hessian, start, lrs, steps):
    """Return the geometric mean of the shrinkage over all the steps, early ones too."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            w = w - lr * hessian @ w
        rates.append((np.linalg.norm(w) / np.linalg.norm(start)) ** (1 / steps))
    return np.array(rates)


def measures_the_loss(hessian, start, lrs, steps):
    """Return the last step's shrinkage of the loss, near the square of the rate."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append((w @ hessian @ w) / (before @ hessian @ before))
    return np.array(rates)


def inverts_the_ratio(hessian, start, lrs, steps):
    """Return the old norm over the new one."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(before) / np.linalg.norm(w))
    return np.array(rates)


def continues_from_the_last_run(hessian, start, lrs, steps):
    """Return the rates of runs that start where the run before has ended."""
    rates, w = [], start
    for lr in lrs:
        for _ in range(steps):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(w) / np.linalg.norm(before))
    return np.array(rates)


def runs_one_step_short(hessian, start, lrs, steps):
    """Return the shrinkage of the last but one step."""
    rates = []
    for lr in lrs:
        w = start
        for _ in range(steps - 1):
            before, w = w, w - lr * hessian @ w
        rates.append(np.linalg.norm(w) / np.linalg.norm(before))
    return np.array(rates)


def _long_runs_reach_the_rate(function: Function, rng: np.random.Generator) -> bool:
    H = np.diag([1.0, 2.0, 4.0])
    lrs = np.array([0.1, 0.3, 0.45])
    rates = function(H, rng.uniform(1, 2, size=3), lrs, 200)
    return bool(np.allclose(rates, [0.9, 0.7, 0.8], atol=1e-6))


MEASURED_RATES = Exercise(
    key="P-05:measured",
    reference=measured_rates,
    cases=_measured_cases,
    misconceptions=(
        Misconception(
            "you average over all steps; early steps are faster, so use the last step alone",
            averages_over_all_steps,
        ),
        Misconception(
            "you compare losses, which shrink by the square of the rate; compare norms of w",
            measures_the_loss,
        ),
        Misconception(
            "your ratio is upside down; divide the new norm by the old one", inverts_the_ratio
        ),
        Misconception(
            "your runs continue one another; the run of each learning rate begins at `start`",
            continues_from_the_last_run,
        ),
        Misconception("your run is one step short; take `steps` steps", runs_one_step_short),
    ),
    properties=(Property("a long run reaches max |1 − ηλ|", _long_runs_reach_the_rate),),
)


# --- L1-16 · exact line search ----------------------------------------------------------------


def _line_search_cases(rng: np.random.Generator) -> Iterator[Case]:
    b = round(float(rng.uniform(0.1, 0.6)), 2)
    yield {"hessian": np.diag([1.0, b]), "start": np.array([b, 1.0]), "steps": 3}
    for n, steps in ((2, 4), (3, 6), (5, 10)):
        yield {"hessian": _hessian(rng, n), "start": rng.normal(size=n), "steps": steps}


def inverts_the_line_search_step(hessian, start, steps):
    """Return the iterates with step gᵀHg/gᵀg."""
    w, path = start, [start]
    for _ in range(steps):
        g = hessian @ w
        w = w - (g @ hessian @ g) / (g @ g) * g
        path.append(w)
    return np.array(path)


def halves_the_line_search_step(hessian, start, steps):
    """Return the iterates with half the right step."""
    w, path = start, [start]
    for _ in range(steps):
        g = hessian @ w
        w = w - 0.5 * (g @ g) / (g @ hessian @ g) * g
        path.append(w)
    return np.array(path)


def doubles_the_line_search_step(hessian, start, steps):
    """Return the iterates with twice the right step: the loss never falls."""
    w, path = start, [start]
    for _ in range(steps):
        g = hessian @ w
        w = w - 2 * (g @ g) / (g @ hessian @ g) * g
        path.append(w)
    return np.array(path)


def measures_curvature_along_w(hessian, start, steps):
    """Return the iterates with step gᵀg/wᵀHw."""
    w, path = start, [start]
    for _ in range(steps):
        g = hessian @ w
        w = w - (g @ g) / (w @ hessian @ w) * g
        path.append(w)
    return np.array(path)


def keeps_the_first_step_size(hessian, start, steps):
    """Return the iterates with the step size of the first step throughout."""
    w, path = start, [start]
    g = hessian @ w
    alpha = (g @ g) / (g @ hessian @ g)
    for _ in range(steps):
        w = w - alpha * hessian @ w
        path.append(w)
    return np.array(path)


def stops_one_step_short(hessian, start, steps):
    """Return steps rows instead of steps + 1."""
    w, path = start, [start]
    for _ in range(steps - 1):
        g = hessian @ w
        w = w - (g @ g) / (g @ hessian @ g) * g
        path.append(w)
    return np.array(path)


def _gradients_are_orthogonal(function: Function, rng: np.random.Generator) -> bool:
    H = _hessian(rng, 4)
    gradients = np.asarray(function(H, rng.normal(size=4), 6)) @ H
    units = gradients / np.linalg.norm(gradients, axis=1, keepdims=True)
    return bool(np.abs((units[1:] * units[:-1]).sum(axis=1)).max() < 1e-8)


def _matches_the_closed_form(function: Function, rng: np.random.Generator) -> bool:
    b = rng.uniform(0.1, 0.9)
    path = function(np.diag([1.0, b]), np.array([b, 1.0]), 6)
    ratio = ((1 - b) / (1 + b)) ** np.arange(7)
    expected = np.stack([b * (-1.0) ** np.arange(7) * ratio, ratio], axis=1)
    return bool(np.allclose(path, expected, rtol=1e-9, atol=1e-12))


EXACT_LINE_SEARCH = Exercise(
    key="L1-16",
    reference=exact_line_search,
    cases=_line_search_cases,
    misconceptions=(
        Misconception(
            "your step is gᵀHg/gᵀg, upside down; it is gᵀg/gᵀHg", inverts_the_line_search_step
        ),
        Misconception(
            "you go half the way; the lowest point of the line is at gᵀg/gᵀHg",
            halves_the_line_search_step,
        ),
        Misconception(
            "you go twice as far, where the loss is as high as before; "
            "the lowest point is at gᵀg/gᵀHg",
            doubles_the_line_search_step,
        ),
        Misconception(
            "you measure the curvature along w; the line runs along g, so it is gᵀHg",
            measures_curvature_along_w,
        ),
        Misconception(
            "you search the line once and keep that step size; search again in each step",
            keeps_the_first_step_size,
        ),
        Misconception(
            "your path is one step short; with the start it has steps + 1 rows",
            stops_one_step_short,
        ),
    ),
    properties=(
        Property("consecutive gradients are orthogonal", _gradients_are_orthogonal),
        Property("from (b, 1) on ½(x² + by²) it follows the closed form", _matches_the_closed_form),
    ),
)


# --- L2-01 · powers of a matrix ---------------------------------------------------------------


def _power_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n, k in ((2, 2), (2, 3), (3, 5), (4, 8)):
        V = np.eye(n) + 0.3 * rng.normal(size=(n, n))
        eigenvalues = rng.permutation(np.linspace(-1.2, 1.3, n)) + rng.uniform(-0.1, 0.1, size=n)
        yield {"weight": V @ np.diag(eigenvalues) @ np.linalg.inv(V), "k": k}


def transposes_instead_of_inverting(weight, k):
    """Return V diag(λᵏ) Vᵀ, right only for symmetric matrices."""
    eigenvalues, V = np.linalg.eig(weight)
    return V @ np.diag(eigenvalues**k) @ V.T


def multiplies_the_eigenvalues_by_k(weight, k):
    """Return V diag(kλ) V⁻¹ = kW."""
    eigenvalues, V = np.linalg.eig(weight)
    return V @ np.diag(k * eigenvalues) @ np.linalg.inv(V)


def raises_each_entry(weight, k):
    """Return the entrywise power."""
    return weight**k


def puts_the_inverse_first(weight, k):
    """Return V⁻¹ diag(λᵏ) V."""
    eigenvalues, V = np.linalg.eig(weight)
    return np.linalg.inv(V) @ np.diag(eigenvalues**k) @ V


def returns_only_the_diagonal(weight, k):
    """Return diag(λᵏ), still in the eigenbasis."""
    return np.diag(np.linalg.eigvals(weight) ** k)


def assumes_symmetry(weight, k):
    """Return the power of the symmetric matrix that eigh reads from the lower triangle."""
    eigenvalues, V = np.linalg.eigh(weight)
    return V @ np.diag(eigenvalues**k) @ V.T


def _power_is_repeated_product(function: Function, rng: np.random.Generator) -> bool:
    W = 0.5 * rng.normal(size=(4, 4))
    expected = W @ W @ W @ W @ W
    return bool(np.allclose(function(W, 5), expected, rtol=1e-8, atol=1e-10))


def _powers_add(function: Function, rng: np.random.Generator) -> bool:
    W = 0.5 * rng.normal(size=(3, 3))
    return bool(np.allclose(function(W, 2) @ function(W, 3), function(W, 5), atol=1e-10))


EIGEN_POWER = Exercise(
    key="L2-01",
    reference=eigen_power,
    cases=_power_cases,
    rtol=1e-8,
    atol=1e-10,
    misconceptions=(
        Misconception(
            "you use Vᵀ; V is not orthogonal here, so it takes the inverse V⁻¹",
            transposes_instead_of_inverting,
        ),
        Misconception(
            "you multiply the eigenvalues by k; raise them to the power k",
            multiplies_the_eigenvalues_by_k,
        ),
        Misconception(
            "you raise each entry of W to the power k; the matrix power multiplies k factors W",
            raises_each_entry,
        ),
        Misconception("you exchanged V and V⁻¹; W = V diag(λ) V⁻¹", puts_the_inverse_first),
        Misconception(
            "your result is still in the eigenbasis; transform it back with V · … · V⁻¹",
            returns_only_the_diagonal,
        ),
        Misconception(
            "`eigh` is for symmetric matrices and reads one triangle of W; use `eig`",
            assumes_symmetry,
        ),
    ),
    properties=(
        Property("the fifth power is W @ W @ W @ W @ W", _power_is_repeated_product),
        Property("W² W³ = W⁵", _powers_add),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    TAYLOR_VALUE,
    EIGEN_CONTRIBUTIONS,
    GD_COEFFICIENTS,
    LARGEST_STABLE_STEP,
    CONVERGENCE_RATE,
    OPTIMAL_STEP,
    MEASURED_RATES,
    EXACT_LINE_SEARCH,
    EIGEN_POWER,
)
