"""Exercises on ill-conditioning, equivalent weights and clipping.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.conditioning import (
    clip_by_norm,
    clip_by_value,
    condition_number,
    difference_hessian_vector_product,
    escape_steps,
    permute_hidden_units,
    rescale_hidden_units,
    step_gain,
    uphill_step,
)
from optdl.objectives import cubic_gradient, linear, named

# --- Random inputs ----------------------------------------------------------------------------


def _positive(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a positive definite matrix with well separated eigenvalues."""
    rotation, _ = np.linalg.qr(rng.normal(size=(n, n)))
    H = (rotation * np.cumsum(rng.uniform(0.5, 1.5, size=n))) @ rotation.T
    return (H + H.T) / 2


# --- L1-17 · the condition number -------------------------------------------------------------


def _matrix_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield {"A": np.diag([-6.0, 2.0, 1.5])}
    yield {"A": np.diag([0.0, 0.5, 4.0])}
    yield {"A": rng.normal(size=(4, 2)).round(1)}
    yield {"A": np.outer([1.0, 2.0, 3.0], [2.0, 1.0]) + np.outer([1.0, -1.0, 0.0], [0.5, 0.5])}
    flat = rng.normal(size=(3, 5))
    yield {"A": flat.T @ flat}
    # zero is what is small beside the largest: not these, but the rounding of large entries
    yield {"A": np.diag([3e-13, 1e-13])}
    yield {"A": np.diag([1.0, 1e-5])}
    yield {"A": 1e5 * np.outer(rng.normal(size=3), rng.normal(size=3))}


def puts_the_smallest_on_top(A):
    """Return the ratio of smallest to largest, as the lecture says."""
    s = np.linalg.svd(A, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    return s[-1] / s[0]


def counts_zero_as_smallest(A):
    """Divide by the smallest singular value, zero or not."""
    with np.errstate(divide="ignore"):
        s = np.linalg.svd(A, compute_uv=False)
        return s[0] / (s[-1] if s[-1] > 1e-12 * s[0] else 0.0 * s[0])


def takes_the_difference(A):
    """Subtract what should be divided."""
    s = np.linalg.svd(A, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    return s[0] - s[-1]


def squares_the_singular_values(A):
    """Return the condition number of AᵀA."""
    s = np.linalg.svd(A, compute_uv=False)
    s = s[s > 1e-12 * s[0]]
    return (s[0] / s[-1]) ** 2


def _scale_does_not_matter(function: Function, rng: np.random.Generator) -> bool:
    A = rng.normal(size=(4, 4))
    return bool(np.isclose(function(1e-9 * A), function(A)) and function(np.eye(3)) == 1)


CONDITION_NUMBER = Exercise(
    key="L1-17",
    reference=condition_number,
    cases=_matrix_cases,
    misconceptions=(
        Misconception(
            "you put the smallest on top; the condition number is the largest divided by the "
            "smallest nonzero singular value",
            puts_the_smallest_on_top,
        ),
        Misconception(
            "you divide by a singular value that counts as zero; take the smallest nonzero one",
            counts_zero_as_smallest,
        ),
        Misconception("you subtract; κ* is a ratio", takes_the_difference),
        Misconception(
            "you square the singular values, which gives κ* of AᵀA; do not square them",
            squares_the_singular_values,
        ),
    ),
    properties=(
        Property(
            "κ* does not depend on the scale of A, and that of the identity is 1",
            _scale_does_not_matter,
        ),
    ),
)


# --- L1-18 · the gain of a step ---------------------------------------------------------------


def _step_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1, 2, 3):
        yield {
            "gradient": rng.normal(size=n).round(1) + 0.05,
            "hessian": _positive(rng, n).round(1) + np.eye(n),
            "lr": round(float(rng.uniform(0.1, 0.9)), 2),
        }


def forgets_the_half(gradient, hessian, lr):
    """Count the curvature twice."""
    return -lr * gradient @ gradient + lr**2 * gradient @ hessian @ gradient


def forgets_to_square_the_rate(gradient, hessian, lr):
    """Take η for η²."""
    return -lr * gradient @ gradient + 0.5 * lr * gradient @ hessian @ gradient


def walks_uphill(gradient, hessian, lr):
    """Take a step along the gradient."""
    return lr * gradient @ gradient + 0.5 * lr**2 * gradient @ hessian @ gradient


def takes_the_norm_for_its_square(gradient, hessian, lr):
    """Use ‖g‖ where gᵀg stands."""
    return -lr * np.linalg.norm(gradient) + 0.5 * lr**2 * gradient @ hessian @ gradient


def stops_at_first_order(gradient, hessian, lr):
    """Leave out the curvature."""
    return -lr * gradient @ gradient


def _exact_on_a_bowl(function: Function, rng: np.random.Generator) -> bool:
    H, w = _positive(rng, 3), rng.normal(size=3)
    after = w - 0.3 * H @ w
    return bool(np.isclose(function(H @ w, H, 0.3), after @ H @ after / 2 - w @ H @ w / 2))


STEP_GAIN = Exercise(
    key="L1-18:gain",
    reference=step_gain,
    cases=_step_cases,
    misconceptions=(
        Misconception("the ½ before the curvature term is missing", forgets_the_half),
        Misconception("the curvature term has η²; you have η", forgets_to_square_the_rate),
        Misconception(
            "a descent step goes against the gradient: the linear term is −η gᵀg", walks_uphill
        ),
        Misconception(
            "you take ‖g‖; the linear term has gᵀg = ‖g‖²", takes_the_norm_for_its_square
        ),
        Misconception("the curvature term ½η² gᵀHg is missing", stops_at_first_order),
    ),
    properties=(Property("the prediction is exact on a quadratic", _exact_on_a_bowl),),
)


# --- L1-18 · uphill ---------------------------------------------------------------------------


def _uphill_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield {"gradient": np.array([2.0]), "hessian": np.array([[5.0]])}
    yield {"gradient": np.array([1.0, 2.0]), "hessian": np.array([[1.0, 0.0], [0.0, -3.0]])}
    for n in (2, 3, 4):
        yield {
            "gradient": rng.normal(size=n).round(1) + 0.05,
            "hessian": _positive(rng, n).round(1),
        }
    yield {"gradient": np.ones(2), "hessian": np.diag([1.0, -1.0])}
    yield {"gradient": np.zeros(2), "hessian": np.eye(2)}
    yield {"gradient": np.array([0.5, 0.0, 0.0]), "hessian": np.eye(3)}


def forgets_the_two(gradient, hessian):
    """Return the best step, half of the limit."""
    c = gradient @ hessian @ gradient
    return gradient @ gradient / c if c > 0 else np.inf


def looks_at_the_largest_eigenvalue(gradient, hessian):
    """Return 2/λmax, the limit for all directions."""
    largest = np.linalg.eigvalsh(hessian)[-1]
    return 2 / largest if gradient @ hessian @ gradient > 0 else np.inf


def turns_the_ratio_around(gradient, hessian):
    """Divide the curvature by the slope."""
    c = gradient @ hessian @ gradient
    return 2 * c / (gradient @ gradient) if c > 0 else np.inf


def returns_a_negative_rate(gradient, hessian):
    """Apply the formula where the curvature is negative."""
    return 2 * gradient @ gradient / (gradient @ hessian @ gradient)


def _gain_is_zero_there(function: Function, rng: np.random.Generator) -> bool:
    g, H = rng.normal(size=4), _positive(rng, 4)
    rate = function(g, H)
    return bool(np.isclose(-rate * g @ g + rate**2 * g @ H @ g / 2, 0))


UPHILL_STEP = Exercise(
    key="L1-18:uphill",
    reference=uphill_step,
    cases=_uphill_cases,
    misconceptions=(
        Misconception(
            "that is the best learning rate along g; a step goes uphill beyond twice that",
            forgets_the_two,
        ),
        Misconception(
            "2/λmax is the bound for a gradient along the steepest eigenvector; "
            "for this gradient it is 2gᵀg/gᵀHg",
            looks_at_the_largest_eigenvalue,
        ),
        Misconception(
            "your ratio is upside down; gᵀg stands above and gᵀHg below",
            turns_the_ratio_around,
        ),
        Misconception(
            "where gᵀHg ≤ 0 the quadratic model falls for every η; return np.inf",
            returns_a_negative_rate,
        ),
    ),
    properties=(Property("there the predicted gain is zero", _gain_is_zero_there),),
)


# --- L1-19 · Hessian-vector products ----------------------------------------------------------


def _product_cases(rng: np.random.Generator) -> Iterator[Case]:
    for n in (1, 2, 3):
        A = rng.uniform(0.5, 1.5, size=(n + 1, n)).round(1)
        formula = f"w ↦ A.T @ (A @ w) ** 3, A = {A.tolist()}"
        yield {
            "gradient": named(formula, cubic_gradient, A),
            "w": rng.uniform(0.5, 1, size=n).round(1),
            "v": rng.normal(size=n).round(1) + 0.05,
            "step": 0.2,
        }


def looks_ahead_only(gradient, w, v, step):
    """Take the one-sided difference."""
    return (gradient(w + step * v) - gradient(w)) / step


def divides_by_one_step(gradient, w, v, step):
    """Forget that the two points are two steps apart."""
    return (gradient(w + step * v) - gradient(w - step * v)) / step


def forgets_to_divide(gradient, w, v, step):
    """Return the difference of the gradients."""
    return gradient(w + step * v) - gradient(w - step * v)


def moves_along_all_axes(gradient, w, v, step):
    """Shift every coordinate by the step, and multiply by v afterwards."""
    return (gradient(w + step) - gradient(w - step)) / (2 * step) * v


def _linear_gradients_are_exact(function: Function, rng: np.random.Generator) -> bool:
    H, w, v = _positive(rng, 4), rng.normal(size=4), rng.normal(size=4)
    return bool(np.allclose(function(partial(linear, H), w, v, 0.7), H @ v))


DIFFERENCE_HESSIAN_VECTOR_PRODUCT = Exercise(
    key="L1-19",
    reference=difference_hessian_vector_product,
    cases=_product_cases,
    misconceptions=(
        Misconception(
            "you take a one-sided difference, whose error is of order s; use w + sv and w − sv",
            looks_ahead_only,
        ),
        Misconception("the two points are 2s apart; divide by 2s", divides_by_one_step),
        Misconception("divide the difference of the gradients by 2s", forgets_to_divide),
        Misconception("move along v, not along all axes at once", moves_along_all_axes),
    ),
    properties=(Property("it is exact where the gradient is linear", _linear_gradients_are_exact),),
)


# --- L1-20 · the order of hidden units --------------------------------------------------------


def _layer(rng: np.random.Generator, h: int, d: int) -> Case:
    return {
        "W": rng.normal(size=(h, d)).round(2),
        "b": rng.normal(size=h).round(2),
        "v": rng.normal(size=h).round(2),
    }


def _order_cases(rng: np.random.Generator) -> Iterator[Case]:
    for h, d, order in ((3, 1, [1, 2, 0]), (4, 2, [2, 0, 3, 1]), (5, 3, [4, 2, 0, 1, 3])):
        yield {**_layer(rng, h, d), "order": order}


def forgets_the_outgoing_weights(W, b, v, order):
    """Permute what comes in, but not what goes out."""
    return W[order], b[order], v


def forgets_the_biases(W, b, v, order):
    """Leave the biases where they are."""
    return W[order], b, v[order]


def goes_the_other_way(W, b, v, order):
    """Apply the inverse permutation."""
    inverse = np.argsort(order)
    return W[inverse], b[inverse], v[inverse]


def _same_function(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    W2, b2, v2 = function(W, b, v, [5, 0, 3, 1, 2, 4])
    x = rng.normal(size=(20, 3))
    before, after = np.tanh(x @ W.T + b) @ v, np.tanh(x @ np.asarray(W2).T + b2) @ v2
    return bool(np.allclose(before, after) and not np.allclose(W, W2))


PERMUTE_HIDDEN_UNITS = Exercise(
    key="L1-20:order",
    reference=permute_hidden_units,
    cases=_order_cases,
    parts=("W", "b", "v"),
    misconceptions=(
        Misconception("the outgoing weights belong to the units too", forgets_the_outgoing_weights),
        Misconception("the biases belong to the units too", forgets_the_biases),
        Misconception(
            "you permute the other way: new unit i is the old unit order[i]", goes_the_other_way
        ),
    ),
    properties=(Property("the network computes the same function", _same_function),),
)


# --- L1-20 · the scale of hidden units --------------------------------------------------------


def _scaling_cases(rng: np.random.Generator) -> Iterator[Case]:
    for h, d in ((2, 1), (3, 2), (4, 3)):
        yield {**_layer(rng, h, d), "factors": rng.uniform(0.5, 3, size=h).round(1)}


def forgets_the_bias_of_the_unit(W, b, v, factors):
    """Scale the weights alone."""
    return W * factors[:, None], b, v / factors


def multiplies_on_both_sides(W, b, v, factors):
    """Multiply the output by the factor too."""
    return W * factors[:, None], b * factors, v * factors


def leaves_the_output_alone(W, b, v, factors):
    """Scale the input only."""
    return W * factors[:, None], b * factors, v


def scales_the_other_way_around(W, b, v, factors):
    """Divide at the input and multiply at the output."""
    return W / factors[:, None], b / factors, v * factors


def _same_relu_network(function: Function, rng: np.random.Generator) -> bool:
    W, b, v = rng.normal(size=(6, 3)), rng.normal(size=6), rng.normal(size=6)
    W2, b2, v2 = function(W, b, v, rng.uniform(0.1, 9, size=6))
    x = rng.normal(size=(20, 3))
    before = np.maximum(x @ W.T + b, 0) @ v
    return bool(np.allclose(before, np.maximum(x @ np.asarray(W2).T + b2, 0) @ v2))


RESCALE_HIDDEN_UNITS = Exercise(
    key="L1-20:scale",
    reference=rescale_hidden_units,
    cases=_scaling_cases,
    parts=("W", "b", "v"),
    misconceptions=(
        Misconception(
            "the bias is part of the unit's input: scale it too", forgets_the_bias_of_the_unit
        ),
        Misconception(
            "you multiply the outgoing weight by the factor; divide it",
            multiplies_on_both_sides,
        ),
        Misconception(
            "you leave the outgoing weight as it is; divide it by the factor",
            leaves_the_output_alone,
        ),
        Misconception(
            "you divide at the input and multiply at the output; do it the other way round",
            scales_the_other_way_around,
        ),
    ),
    properties=(Property("the ReLU network computes the same function", _same_relu_network),),
)


# --- L1-22 · clipping by norm -----------------------------------------------------------------


def _gradient_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shapes in ([(2,)], [(2,), (1,)], [(2, 2), (2,), (1, 2)]):
        yield {
            "gradients": tuple((3 * rng.normal(size=shape)).round(1) + 0.05 for shape in shapes),
            "max_norm": 1.5,
        }
    yield {"gradients": (np.array([0.3]), np.array([-0.4])), "max_norm": 1.5}


def clips_each_part_alone(gradients, max_norm):
    """Give every array a norm of its own."""
    return [g * min(1, max_norm / np.linalg.norm(g)) for g in gradients]


def always_rescales(gradients, max_norm):
    """Lengthen short gradients too."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g * max_norm / norm for g in gradients]


def adds_up_the_norms(gradients, max_norm):
    """Add norms where squares are added."""
    norm = sum(np.linalg.norm(g) for g in gradients)
    return [g * min(1, max_norm / norm) for g in gradients]


def forgets_the_root(gradients, max_norm):
    """Compare with the squared norm."""
    square = sum(np.sum(g**2) for g in gradients)
    return [g * min(1, max_norm / square) for g in gradients]


def divides_by_the_norm(gradients, max_norm):
    """Return a gradient of norm 1 when it is too long."""
    norm = np.sqrt(sum(np.sum(g**2) for g in gradients))
    return [g / norm if norm > max_norm else g for g in gradients]


def _direction_stays(function: Function, rng: np.random.Generator) -> bool:
    parts = [100 * rng.normal(size=3), rng.normal(size=(2, 2))]
    clipped = function(parts, 2.0)
    before, after = (np.concatenate([np.ravel(p) for p in g]) for g in (parts, clipped))
    cosine = before @ after / np.linalg.norm(before) / np.linalg.norm(after)
    return bool(np.isclose(cosine, 1) and np.isclose(np.linalg.norm(after), 2.0))


CLIP_BY_NORM = Exercise(
    key="L1-22:norm",
    reference=clip_by_norm,
    cases=_gradient_cases,
    misconceptions=(
        Misconception(
            "you clip each array by its own norm, which turns the gradient; "
            "take one norm of all arrays together",
            clips_each_part_alone,
        ),
        Misconception("a gradient that is short enough stays as it is", always_rescales),
        Misconception("norms do not add; add their squares and take the root", adds_up_the_norms),
        Misconception("you compare with ‖g‖²; take the root", forgets_the_root),
        Misconception("scale to max_norm, not to 1", divides_by_the_norm),
    ),
    properties=(
        Property(
            "a long gradient keeps its direction and gets the norm max_norm", _direction_stays
        ),
    ),
)


# --- L1-22 · clipping by value ----------------------------------------------------------------


def _value_cases(rng: np.random.Generator) -> Iterator[Case]:
    for shapes in ([(3,)], [(2, 2), (3,)]):
        parts = [(2 * rng.normal(size=shape)).round(1) for shape in shapes]
        parts[0].flat[:3] = -2.5, 1.7, 0.3
        yield {"gradients": tuple(parts), "limit": 0.8}


def clips_from_above_only(gradients, limit):
    """Forget the negative entries."""
    return [np.minimum(g, limit) for g in gradients]


def drops_the_sign(gradients, limit):
    """Clip the absolute values."""
    return [np.minimum(np.abs(g), limit) for g in gradients]


def sets_large_entries_to_zero(gradients, limit):
    """Drop what is too large."""
    return [np.where(np.abs(g) > limit, 0.0, g) for g in gradients]


def scales_to_the_largest_entry(gradients, limit):
    """Shrink all entries until the largest fits."""
    largest = max(np.max(np.abs(g)) for g in gradients)
    return [g * min(1, limit / largest) for g in gradients]


def _small_entries_stay(function: Function, rng: np.random.Generator) -> bool:
    g = rng.normal(size=50)
    (clipped,) = function([g], 1.0)
    inside = np.abs(g) <= 1
    return bool(np.array_equal(clipped[inside], g[inside]) and np.all(np.abs(clipped) <= 1))


CLIP_BY_VALUE = Exercise(
    key="L1-22:value",
    reference=clip_by_value,
    cases=_value_cases,
    misconceptions=(
        Misconception("entries below −limit must be clipped too", clips_from_above_only),
        Misconception("you lose the signs", drops_the_sign),
        Misconception(
            "an entry that is too large becomes ±limit, not zero", sets_large_entries_to_zero
        ),
        Misconception(
            "you scale all entries; only those beyond the limit change",
            scales_to_the_largest_entry,
        ),
    ),
    properties=(
        Property(
            "entries within the limit are unchanged, and none is beyond it", _small_entries_stay
        ),
    ),
)


# --- F-04 · the way out of a saddle -----------------------------------------------------------


def _escape_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield {"distance": 0.125, "radius": 2.0, "lr": 0.5, "curvature": 2.0}
    yield {"distance": 3.0, "radius": 2.0, "lr": 0.5, "curvature": 1.0}
    for exponent in (-1, -3, -6, -9):
        yield {
            "distance": float(round(rng.uniform(1, 9), 1) * 10.0**exponent),
            "radius": round(float(rng.uniform(1.5, 4)), 1),
            "lr": round(float(rng.uniform(0.05, 0.4)), 2),
            "curvature": round(float(rng.uniform(0.5, 2)), 1),
        }


def grows_by_a_constant(distance, radius, lr, curvature):
    """Add ηλd in each step, where the distance is multiplied."""
    return max(0, int(np.ceil((radius - distance) / (lr * curvature * distance))))


def uses_continuous_time(distance, radius, lr, curvature):
    """Put ηλ for ln(1 + ηλ)."""
    return max(0, int(np.ceil(np.log(radius / distance) / (lr * curvature))))


def shrinks_instead(distance, radius, lr, curvature):
    """Take the factor 1 − ηλ of a positive eigenvalue."""
    factor = abs(1 - lr * curvature)
    if factor == 0:
        return 0
    return max(0, int(np.ceil(np.log(radius / distance) / abs(np.log(factor)))))


def rounds_down(distance, radius, lr, curvature):
    """Return the last step before the radius is reached."""
    return max(0, int(np.floor(np.log(radius / distance) / np.log1p(lr * curvature) - 1e-9)))


def forgets_the_radius(distance, radius, lr, curvature):
    """Ask for a distance of 1."""
    return max(0, int(np.ceil(np.log(1 / distance) / np.log1p(lr * curvature))))


def goes_negative(distance, radius, lr, curvature):
    """Return a negative number where the radius is reached at the start."""
    return int(np.ceil(np.log(radius / distance) / np.log1p(lr * curvature) - 1e-12))


def _iterating_agrees(function: Function, rng: np.random.Generator) -> bool:
    distance, lr = 10.0 ** -rng.uniform(2, 8), rng.uniform(0.05, 0.5)
    steps = function(distance, 1.0, lr, 1.5)
    after = distance * (1 + 1.5 * lr) ** np.array([steps - 1, steps])
    return bool(after[0] < 1 <= after[1] * (1 + 1e-9))


ESCAPE_STEPS = Exercise(
    key="F-04",
    reference=escape_steps,
    cases=_escape_cases,
    misconceptions=(
        Misconception(
            "each step multiplies the distance by 1 + ηλ; you add a constant amount",
            grows_by_a_constant,
        ),
        Misconception(
            "you divide by ηλ, as in continuous time; for steps divide by ln(1 + ηλ)",
            uses_continuous_time,
        ),
        Misconception(
            "you use the factor 1 − ηλ of a positive eigenvalue; along −λ it is 1 + ηλ",
            shrinks_instead,
        ),
        Misconception(
            "you round down; after so many steps the distance is still below R, so round up",
            rounds_down,
        ),
        Misconception(
            "you count the steps to the distance 1; the one to reach is R, so take ln(R/d)",
            forgets_the_radius,
        ),
        Misconception(
            "your number is negative where d ≥ R at the start; no step is needed there, "
            "so return 0",
            goes_negative,
        ),
    ),
    properties=(Property("iterating the factor 1 + ηλ gives the same number", _iterating_agrees),),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    CONDITION_NUMBER,
    STEP_GAIN,
    UPHILL_STEP,
    DIFFERENCE_HESSIAN_VECTOR_PRODUCT,
    PERMUTE_HIDDEN_UNITS,
    RESCALE_HIDDEN_UNITS,
    CLIP_BY_NORM,
    CLIP_BY_VALUE,
    ESCAPE_STEPS,
)
