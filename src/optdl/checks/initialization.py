"""Exercises on activations, initial values, and the normalization of inputs.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.initialization import (
    glorot_normal,
    glorot_uniform,
    gradient_norms,
    he_normal,
    least_squares_hessian,
    normalize_inputs,
    relu_second_moments,
    train_hidden_layer,
)

# --- L2-10 · gradients on their way back ------------------------------------------------------


def _gradient_cases(rng: np.random.Generator) -> Iterator[Case]:
    for name, sizes in (("tanh", (2, 3, 1)), ("sigmoid", (3, 2, 4, 2)), ("relu", (4, 6, 5, 3))):
        yield {
            "weights": [rng.normal(size=(o, n)).round(2) for n, o in pairwise(sizes)],
            "x": rng.normal(size=sizes[0]).round(2),
            "upstream": rng.uniform(1, 3, size=sizes[-1]).round(2),
            "name": name,
        }


def forgets_the_slope(weights, x, upstream, name):
    """Go back through the weights alone."""
    norms = [np.linalg.norm(upstream)]
    for W in weights[::-1]:
        upstream = W.T @ upstream
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


def takes_the_slope_at_the_activation(weights, x, upstream, name):
    """Take φ′ at h instead of z."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        h = {"sigmoid": 1 / (1 + np.exp(-z)), "tanh": np.tanh(z), "relu": np.maximum(z, 0)}[name]
        slope = {"sigmoid": np.exp(-h) / (1 + np.exp(-h)) ** 2, "tanh": 1 / np.cosh(h) ** 2}
        slopes.append(slope.get(name, 1.0 * (h > 0)))
    norms = [np.linalg.norm(upstream)]
    for W, s in zip(weights[::-1], slopes[::-1], strict=True):
        upstream = W.T @ (s * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms[::-1])


def orders_from_the_output(weights, x, upstream, name):
    """Return the norms in the order in which they are computed."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        h = {"sigmoid": 1 / (1 + np.exp(-z)), "tanh": np.tanh(z), "relu": np.maximum(z, 0)}[name]
        slopes.append({"sigmoid": h * (1 - h), "tanh": 1 - h**2, "relu": 1.0 * (z > 0)}[name])
    norms = [np.linalg.norm(upstream)]
    for W, s in zip(weights[::-1], slopes[::-1], strict=True):
        upstream = W.T @ (s * upstream)
        norms.append(np.linalg.norm(upstream))
    return np.array(norms)


def squares_the_norms(weights, x, upstream, name):
    """Return squared norms."""
    h, slopes = x, []
    for W in weights:
        z = W @ h
        h = {"sigmoid": 1 / (1 + np.exp(-z)), "tanh": np.tanh(z), "relu": np.maximum(z, 0)}[name]
        slopes.append({"sigmoid": h * (1 - h), "tanh": 1 - h**2, "relu": 1.0 * (z > 0)}[name])
    norms = [upstream @ upstream]
    for W, s in zip(weights[::-1], slopes[::-1], strict=True):
        upstream = W.T @ (s * upstream)
        norms.append(upstream @ upstream)
    return np.array(norms[::-1])


def _sigmoid_never_passes_more_than_a_quarter(function: Function, rng: np.random.Generator) -> bool:
    orthogonal = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(5)]
    norms = np.asarray(function(orthogonal, rng.normal(size=4), rng.normal(size=4), "sigmoid"))
    return bool(np.all(norms[:-1] <= norms[1:] / 4 + 1e-12))


GRADIENT_NORMS = Exercise(
    key="L2-10",
    reference=gradient_norms,
    cases=_gradient_cases,
    misconceptions=(
        Misconception(
            "you go back through the weights alone; multiply by the slope φ′(z), too",
            forgets_the_slope,
        ),
        Misconception(
            "you evaluate φ′ at the activation h; evaluate it at the pre-activation z = W h",
            takes_the_slope_at_the_activation,
        ),
        Misconception(
            "your norms run from the output to the input; reverse their order",
            orders_from_the_output,
        ),
        Misconception("you return squared norms; take the root", squares_the_norms),
    ),
    properties=(
        Property(
            "with orthogonal weights a sigmoid layer passes at most a quarter of the norm",
            _sigmoid_never_passes_more_than_a_quarter,
        ),
    ),
)


# --- L1-33 · symmetry -------------------------------------------------------------------------


def _symmetry_cases(rng: np.random.Generator) -> Iterator[Case]:
    for h, n, m, steps in ((2, 1, 2, 3), (3, 2, 5, 4), (4, 3, 6, 5)):
        yield {
            "W": rng.normal(size=(h, n)).round(2),
            "v": rng.normal(size=h).round(2),
            "x": rng.normal(size=(m, n)).round(2),
            "y": rng.normal(size=m).round(2),
            "lr": 0.3,
            "steps": steps,
        }


def uses_the_new_w_for_v(W, v, x, y, lr, steps):
    """Update W first, then take the gradient of v at the new W."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        W = W - lr * (np.outer(residual, v) * (1 - hidden**2)).T @ x
        hidden = np.tanh(x @ W.T)
        v = v - lr * hidden.T @ ((hidden @ v - y) / len(y))
        path.append(W)
    return np.array(path)


def keeps_v_fixed(W, v, x, y, lr, steps):
    """Train the hidden layer alone."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        W = W - lr * (np.outer(residual, v) * (1 - hidden**2)).T @ x
        path.append(W)
    return np.array(path)


def adds_up_the_examples(W, v, x, y, lr, steps):
    """Take the sum of the examples' gradients, not their mean."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = hidden @ v - y
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def forgets_the_slope_of_tanh(W, v, x, y, lr, steps):
    """Leave out 1 − tanh²."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        W, v = W - lr * np.outer(residual, v).T @ x, v - lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def climbs(W, v, x, y, lr, steps):
    """Add the gradient."""
    path = [W]
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W + lr * back.T @ x, v + lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def leaves_out_the_start(W, v, x, y, lr, steps):
    """Return the weights after each step, without those before the first."""
    path = []
    for _ in range(steps):
        hidden = np.tanh(x @ W.T)
        residual = (hidden @ v - y) / len(y)
        back = np.outer(residual, v) * (1 - hidden**2)
        W, v = W - lr * back.T @ x, v - lr * hidden.T @ residual
        path.append(W)
    return np.array(path)


def _twins_stay_twins(function: Function, rng: np.random.Generator) -> bool:
    W, v = np.tile(rng.normal(size=3), (4, 1)), np.full(4, 0.7)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=6)
    path = np.asarray(function(W, v, x, y, 0.2, 6))
    return bool(np.allclose(path, path[:, :1], rtol=1e-12) and not np.allclose(path[-1], W))


TRAIN_HIDDEN_LAYER = Exercise(
    key="L1-33",
    reference=train_hidden_layer,
    cases=_symmetry_cases,
    misconceptions=(
        Misconception(
            "you compute the gradient of v after W was updated; compute both gradients first",
            uses_the_new_w_for_v,
        ),
        Misconception("your v stays constant; update both layers", keeps_v_fixed),
        Misconception(
            "you add up the examples' gradients; the loss is a mean over the examples",
            adds_up_the_examples,
        ),
        Misconception(
            "the slope of tanh, 1 − tanh², is missing from the gradient of W",
            forgets_the_slope_of_tanh,
        ),
        Misconception("you add the gradient; descent subtracts it", climbs),
        Misconception(
            "your path lacks the initial weights; return steps + 1 arrays",
            leaves_out_the_start,
        ),
    ),
    properties=(
        Property("units with equal initial weights keep equal weights", _twins_stay_twins),
    ),
)


# --- L2-11 · initial weights ------------------------------------------------------------------


def _weight_cases(rng: np.random.Generator) -> Iterator[Case]:
    for fan_in, fan_out in ((1, 3), (4, 2), (5, 7)):
        yield {"fan_in": fan_in, "fan_out": fan_out, "rng": np.random.default_rng(rng.integers(99))}


def _variance_is(expected: float, function: Function, rng: np.random.Generator) -> bool:
    """Return whether the mean is 0 and the variance as expected, within six standard errors."""
    W = np.asarray(function(300, 200, rng))
    error = 6 / np.sqrt(W.size)
    return bool(
        W.shape == (200, 300)
        and abs(W.mean()) < error * np.sqrt(expected)
        and abs(W.var() / expected - 1) < error * np.sqrt(2)
    )


def _glorot_moments(function: Function, rng: np.random.Generator) -> bool:
    return _variance_is(2 / 500, function, rng)


# --- L2-11 · Glorot's normal distribution -----------------------------------------------------


def passes_the_variance_as_deviation(fan_in, fan_out, rng):
    """Pass the variance where NumPy expects the standard deviation."""
    return rng.normal(0, 2 / (fan_in + fan_out), size=(fan_out, fan_in))


def looks_at_the_inputs_alone(fan_in, fan_out, rng):
    """Take the variance 1 / fan_in."""
    return rng.normal(0, np.sqrt(1 / fan_in), size=(fan_out, fan_in))


def forgets_the_two_of_glorot(fan_in, fan_out, rng):
    """Take the variance 1 / (fan_in + fan_out)."""
    return rng.normal(0, np.sqrt(1 / (fan_in + fan_out)), size=(fan_out, fan_in))


def puts_inputs_in_rows(fan_in, fan_out, rng):
    """Return the shape (fan_in, fan_out)."""
    return rng.normal(0, np.sqrt(2 / (fan_in + fan_out)), size=(fan_in, fan_out))


def draws_the_transpose(fan_in, fan_out, rng):
    """Draw the shape (fan_in, fan_out) and transpose the result."""
    return rng.normal(0, np.sqrt(2 / (fan_in + fan_out)), size=(fan_in, fan_out)).T


GLOROT_NORMAL = Exercise(
    key="L2-11:glorot-normal",
    reference=glorot_normal,
    cases=_weight_cases,
    misconceptions=(
        Misconception(
            "2 / (fan_in + fan_out) is the variance; NumPy expects the standard deviation",
            passes_the_variance_as_deviation,
        ),
        Misconception(
            "you use fan_in alone; Glorot uses the mean of fan_in and fan_out",
            looks_at_the_inputs_alone,
        ),
        Misconception(
            "the 2 is missing: one over the mean of fan_in and fan_out is 2 over their sum",
            forgets_the_two_of_glorot,
        ),
        Misconception(
            "a weight has shape (fan_out, fan_in): one row for each unit", puts_inputs_in_rows
        ),
        Misconception(
            "you draw (fan_in, fan_out) numbers and transpose them; draw (fan_out, fan_in)",
            draws_the_transpose,
        ),
    ),
    properties=(
        Property("mean 0, variance 2 / (fan_in + fan_out), one row for each unit", _glorot_moments),
    ),
)


# --- L2-11 · Glorot's uniform distribution ----------------------------------------------------


def takes_the_deviation_as_bound(fan_in, fan_out, rng):
    """Draw from the uniform distribution on plus or minus the standard deviation."""
    bound = np.sqrt(2 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


def forgets_the_root_of_the_bound(fan_in, fan_out, rng):
    """Take a = 6 / (fan_in + fan_out)."""
    bound = 6 / (fan_in + fan_out)
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


def takes_three_for_six(fan_in, fan_out, rng):
    """Take a² = 3 / (fan_in + fan_out)."""
    bound = np.sqrt(3 / (fan_in + fan_out))
    return rng.uniform(-bound, bound, size=(fan_out, fan_in))


def draws_from_zero_up(fan_in, fan_out, rng):
    """Draw from the uniform distribution on [0, a]."""
    return rng.uniform(0, np.sqrt(6 / (fan_in + fan_out)), size=(fan_out, fan_in))


GLOROT_UNIFORM = Exercise(
    key="L2-11:glorot-uniform",
    reference=glorot_uniform,
    cases=_weight_cases,
    misconceptions=(
        Misconception(
            "your bound is the standard deviation; the uniform distribution on [−a, a] has the "
            "variance a²/3",
            takes_the_deviation_as_bound,
        ),
        Misconception(
            "your bound lacks the square root: a² = 6 / (fan_in + fan_out)",
            forgets_the_root_of_the_bound,
        ),
        Misconception(
            "a² is three times the variance 2 / (fan_in + fan_out): 6, not 3, over the sum",
            takes_three_for_six,
        ),
        Misconception(
            "you draw from [0, a]; draw from [−a, a], so that the mean is 0", draws_from_zero_up
        ),
    ),
    properties=(
        Property("mean 0, variance 2 / (fan_in + fan_out), one row for each unit", _glorot_moments),
    ),
)


# --- L2-11 · He's normal distribution ---------------------------------------------------------


def forgets_the_two_of_he(fan_in, fan_out, rng):
    """Take the variance 1 / fan_in, as for a linear layer."""
    return rng.normal(0, np.sqrt(1 / fan_in), size=(fan_out, fan_in))


def counts_the_outputs(fan_in, fan_out, rng):
    """Take the variance 2 / fan_out."""
    return rng.normal(0, np.sqrt(2 / fan_out), size=(fan_out, fan_in))


def passes_the_variance_of_he_as_deviation(fan_in, fan_out, rng):
    """Pass the variance where NumPy expects the standard deviation."""
    return rng.normal(0, 2 / fan_in, size=(fan_out, fan_in))


def uses_the_formula_of_glorot(fan_in, fan_out, rng):
    """Take the variance 2 / (fan_in + fan_out)."""
    return rng.normal(0, np.sqrt(2 / (fan_in + fan_out)), size=(fan_out, fan_in))


def _he_moments(function: Function, rng: np.random.Generator) -> bool:
    return _variance_is(2 / 300, function, rng)


HE_NORMAL = Exercise(
    key="L2-11:he-normal",
    reference=he_normal,
    cases=_weight_cases,
    misconceptions=(
        Misconception(
            "the 2 is missing: the ReLU sets half of the mean square to zero",
            forgets_the_two_of_he,
        ),
        Misconception(
            "you divide by fan_out; to keep the signal forward, divide by fan_in",
            counts_the_outputs,
        ),
        Misconception(
            "2 / fan_in is the variance; NumPy expects the standard deviation",
            passes_the_variance_of_he_as_deviation,
        ),
        Misconception(
            "this is Glorot's variance; He's depends on fan_in alone",
            uses_the_formula_of_glorot,
        ),
    ),
    properties=(Property("mean 0, variance 2 / fan_in, one row for each unit", _he_moments),),
)


# --- L2-11 · second moments in a ReLU network -------------------------------------------------


def _moment_cases(rng: np.random.Generator) -> Iterator[Case]:
    for layers in (1, 3, 6):
        fans = [int(fan) for fan in rng.integers(2, 9, size=layers)]
        yield {
            "first": round(float(rng.uniform(0.5, 2)), 2),
            "fans": fans,
            "variances": rng.uniform(0.1, 1, size=layers).round(2).tolist(),
        }


def forgets_the_half_of_the_relu(first, fans, variances):
    """Treat the ReLU as if it were linear."""
    return first * np.cumprod([1.0] + [n * v for n, v in zip(fans, variances, strict=True)])


def forgets_the_fan(first, fans, variances):
    """Multiply by half of each variance alone."""
    return first * np.cumprod([1.0] + [0.5 * v for v in variances])


def adds_layer_by_layer(first, fans, variances):
    """Add the factors of the layers."""
    return first + np.cumsum([0.0] + [0.5 * n * v for n, v in zip(fans, variances, strict=True)])


def starts_after_the_first_layer(first, fans, variances):
    """Leave out q₀."""
    return first * np.cumprod([0.5 * n * v for n, v in zip(fans, variances, strict=True)])


def takes_variances_for_deviations(first, fans, variances):
    """Square the variances."""
    return first * np.cumprod(
        [1.0] + [0.5 * n * v**2 for n, v in zip(fans, variances, strict=True)]
    )


def _he_keeps_the_mean_square(function: Function, rng: np.random.Generator) -> bool:
    fans = [int(fan) for fan in rng.integers(5, 500, size=50)]
    return bool(np.allclose(function(3.0, fans, [2 / fan for fan in fans]), 3.0))


RELU_SECOND_MOMENTS = Exercise(
    key="L2-11:second-moments",
    reference=relu_second_moments,
    cases=_moment_cases,
    misconceptions=(
        Misconception(
            "you treat the ReLU as linear; it keeps half of the mean square",
            forgets_the_half_of_the_relu,
        ),
        Misconception(
            "the number of inputs is missing: a unit adds up that many terms", forgets_the_fan
        ),
        Misconception("you add the factors of the layers; multiply them", adds_layer_by_layer),
        Misconception(
            "q₀ is missing: return one value more than there are layers",
            starts_after_the_first_layer,
        ),
        Misconception(
            "you square the variances; use them as they are",
            takes_variances_for_deviations,
        ),
    ),
    properties=(
        Property("He's weights keep the mean square, layer by layer", _he_keeps_the_mean_square),
    ),
)


# --- L2-13 · inputs ---------------------------------------------------------------------------


def _input_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, k, d in ((3, 2, 1), (4, 3, 2), (6, 4, 3)):
        scale, shift = np.array([1.0, 0.2, 5.0])[:d], np.array([2.0, -1.0, 30.0])[:d]
        yield {
            "train": (shift + scale * rng.normal(size=(m, d))).round(2),
            "other": (shift + scale * rng.normal(size=(k, d))).round(2),
            "eps": 0.05,
        }


def normalizes_each_by_itself(train, other, eps):
    """Take new statistics for the other examples."""
    return tuple((x - x.mean(0)) / np.sqrt(x.var(0) + eps) for x in (train, other))


def takes_statistics_of_both(train, other, eps):
    """Take the statistics of all examples together."""
    both = np.concatenate([train, other])
    return tuple((x - both.mean(0)) / np.sqrt(both.var(0) + eps) for x in (train, other))


def adds_eps_outside_the_root(train, other, eps):
    """Divide by σ + ε."""
    return tuple((x - train.mean(0)) / (train.std(0) + eps) for x in (train, other))


def divides_by_the_variance(train, other, eps):
    """Forget the root."""
    return tuple((x - train.mean(0)) / (train.var(0) + eps) for x in (train, other))


def divides_the_variance_by_one_less(train, other, eps):
    """Take the unbiased variance."""
    return tuple((x - train.mean(0)) / np.sqrt(train.var(0, ddof=1) + eps) for x in (train, other))


def normalizes_all_features_together(train, other, eps):
    """Take one mean and one variance for the whole array."""
    return tuple((x - train.mean()) / np.sqrt(train.var() + eps) for x in (train, other))


def scales_without_centering(train, other, eps):
    """Divide by the standard deviation without subtracting the mean."""
    return tuple(x / np.sqrt(train.var(0) + eps) for x in (train, other))


def _train_is_centered_and_others_are_not_looked_at(
    function: Function, rng: np.random.Generator
) -> bool:
    train, other = 5 + 3 * rng.normal(size=(50, 4)), rng.normal(size=(3, 4))
    one, _ = function(train, other, 0.0)
    again, _ = function(train, other + 100, 0.0)
    centered = np.allclose(np.mean(one, 0), 0, atol=1e-12) and np.allclose(np.std(one, 0), 1)
    return bool(centered and np.array_equal(one, again))


NORMALIZE_INPUTS = Exercise(
    key="L2-13:inputs",
    reference=normalize_inputs,
    cases=_input_cases,
    parts=("train", "other"),
    misconceptions=(
        Misconception(
            "you normalize the other examples by their own statistics; use the training set's",
            normalizes_each_by_itself,
        ),
        Misconception(
            "your statistics include the other examples; use the training set alone",
            takes_statistics_of_both,
        ),
        Misconception("you add ε to σ; add it to σ², under the root", adds_eps_outside_the_root),
        Misconception(
            "you divide by the variance; divide by its square root", divides_by_the_variance
        ),
        Misconception(
            "your variance divides by m − 1; here it divides by m",
            divides_the_variance_by_one_less,
        ),
        Misconception(
            "you take one mean over all features; each feature has its own",
            normalizes_all_features_together,
        ),
        Misconception(
            "you divide by the deviation but do not subtract the mean first",
            scales_without_centering,
        ),
    ),
    properties=(
        Property(
            "each feature of the training set has mean 0 and variance 1, whatever the other "
            "examples are",
            _train_is_centered_and_others_are_not_looked_at,
        ),
    ),
)


# --- L2-13 · the Hessian of least squares -----------------------------------------------------


def _hessian_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((2, 1), (4, 2), (7, 3)):
        yield {"x": (rng.uniform(1, 3, size=d) + rng.normal(size=(m, d))).round(2)}


def forgets_the_bias(x):
    """Leave out the column of ones."""
    return x.T @ x / len(x)


def forgets_the_mean(x):
    """Add up the examples."""
    extended = np.column_stack([np.ones(len(x)), x])
    return extended.T @ extended


def puts_the_bias_last(x):
    """Append the column of ones."""
    extended = np.column_stack([x, np.ones(len(x))])
    return extended.T @ extended / len(x)


def centers_first(x):
    """Center the features before the Hessian is computed."""
    extended = np.column_stack([np.ones(len(x)), x - x.mean(0)])
    return extended.T @ extended / len(x)


def keeps_the_two_of_the_square(x):
    """Differentiate the square without the ½ of the loss."""
    extended = np.column_stack([np.ones(len(x)), x])
    return 2 * extended.T @ extended / len(x)


def _is_the_second_difference(function: Function, rng: np.random.Generator) -> bool:
    """Compare with the second difference of the loss, which is exact for a quadratic."""
    x, y, u, p = (rng.normal(size=s) for s in ((6, 2), 6, 3, 3))

    def loss(q: np.ndarray) -> float:
        return float(np.mean((q[0] + x @ q[1:] - y) ** 2) / 2)

    return bool(np.isclose(u @ function(x) @ u, loss(p + u) - 2 * loss(p) + loss(p - u)))


LEAST_SQUARES_HESSIAN = Exercise(
    key="L2-13:hessian",
    reference=least_squares_hessian,
    cases=_hessian_cases,
    misconceptions=(
        Misconception("the bias is a parameter too: add a column of ones", forgets_the_bias),
        Misconception("you add up the examples; the loss is a mean over them", forgets_the_mean),
        Misconception("your bias is the last parameter; put it first", puts_the_bias_last),
        Misconception(
            "you center the inputs; use the inputs as they are given",
            centers_first,
        ),
        Misconception(
            "your Hessian is twice too large: the ½ of the loss cancels the 2 of the square",
            keeps_the_two_of_the_square,
        ),
    ),
    properties=(
        Property(
            "second differences of the loss agree with the Hessian", _is_the_second_difference
        ),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    GRADIENT_NORMS,
    TRAIN_HIDDEN_LAYER,
    GLOROT_NORMAL,
    GLOROT_UNIFORM,
    HE_NORMAL,
    RELU_SECOND_MOMENTS,
    NORMALIZE_INPUTS,
    LEAST_SQUARES_HESSIAN,
)
