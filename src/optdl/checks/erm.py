"""Exercises on empirical risk, surrogate losses, early stopping, and the noise of minibatches.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Callable, Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.erm import (
    early_stopping,
    empirical_risk,
    error_amplification,
    hinge_risk_gradient,
    logistic_loss,
    minibatches,
    per_example_gradients,
    standard_error,
    stream_sgd,
)
from optdl.objectives import line, pinball, squared_error
from optdl.observation import calls, observe, repeated

# --- Hints with their functions ---------------------------------------------------------------


def _mistakes(*pairs: tuple[str, Callable[..., object]]) -> tuple[Misconception, ...]:
    return tuple(Misconception(hint, function) for hint, function in pairs)


# --- L1-01: empirical risk --------------------------------------------------------------------


def _risk_cases(rng: np.random.Generator) -> Iterator[Case]:
    for loss, m in ((squared_error, 2), (pinball, 3), (pinball, 8), (squared_error, 30)):
        theta, x = rng.normal(size=2).round(1), rng.normal(size=m).round(1)
        y = line(x, theta) + rng.uniform(0.5, 2, size=m).round(1) * rng.choice([-1, 1], size=m)
        yield {"loss": loss, "model": line, "theta": theta, "x": x, "y": y}


def sums_the_losses(loss, model, theta, x, y):
    """Return the total loss."""
    return np.sum(loss(model(x, theta), y))


def takes_the_loss_of_the_means(loss, model, theta, x, y):
    """Return the loss of the average prediction."""
    return loss(np.mean(model(x, theta)), np.mean(y))


def swaps_prediction_and_label(loss, model, theta, x, y):
    """Return the mean of L(y, f), which only an asymmetric loss tells apart."""
    return np.mean(loss(y, model(x, theta)))


def divides_by_m_minus_one(loss, model, theta, x, y):
    """Return the total loss over m − 1."""
    return np.sum(loss(model(x, theta), y)) / (len(y) - 1)


def reports_the_worst_example(loss, model, theta, x, y):
    """Return the largest loss."""
    return np.max(loss(model(x, theta), y))


def _duplicates_leave_the_risk(risk: Function, rng: np.random.Generator) -> bool:
    theta, x, y = rng.normal(size=2), rng.normal(size=7), rng.normal(size=7)
    twice = risk(pinball, line, theta, np.tile(x, 2), np.tile(y, 2))
    return bool(np.isclose(twice, risk(pinball, line, theta, x, y)))


def _parts_average_by_size(risk: Function, rng: np.random.Generator) -> bool:
    theta, x, y = rng.normal(size=2), rng.normal(size=8), rng.normal(size=8)
    first, rest = (risk(pinball, line, theta, x[i], y[i]) for i in (slice(3), slice(3, 8)))
    return bool(np.isclose(risk(pinball, line, theta, x, y), (3 * first + 5 * rest) / 8))


EMPIRICAL_RISK = Exercise(
    key="L1-01",
    reference=empirical_risk,
    cases=_risk_cases,
    misconceptions=_mistakes(
        ("you add up the losses; the empirical risk is their mean, (1/m) Σ", sums_the_losses),
        (
            "you take the loss of the mean prediction; take the mean of the losses",
            takes_the_loss_of_the_means,
        ),
        (
            "you pass label and prediction in the wrong order; it is L(f(x, θ), y)",
            swaps_prediction_and_label,
        ),
        ("you divide by m − 1; the empirical risk divides by m", divides_by_m_minus_one),
        (
            "you return the loss of the worst example; the risk is the mean over all",
            reports_the_worst_example,
        ),
    ),
    properties=(
        Property("a second copy of the data changes nothing", _duplicates_leave_the_risk),
        Property("parts of a sample average by their sizes", _parts_average_by_size),
    ),
)


# --- L1-03: logistic loss ---------------------------------------------------------------------


def _margin_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield {"margin": np.array([0.0])}
    yield {"margin": rng.normal(size=3).round(2)}
    yield {"margin": np.append(rng.normal(scale=4, size=6).round(2), [-1200.0, 900.0])}


def measures_in_nats(margin):
    """Return the loss and its derivative in nats."""
    return np.logaddexp(0, -margin), -0.5 * (1 - np.tanh(margin / 2))


def forgets_ln2_in_the_derivative(margin):
    """Return the loss in bits, its derivative in nats."""
    return np.logaddexp(0, -margin) / np.log(2), -0.5 * (1 - np.tanh(margin / 2))


def rewards_wrong_answers(margin):
    """Return the loss of the opposite margin."""
    return np.logaddexp(0, margin) / np.log(2), 0.5 * (1 + np.tanh(margin / 2)) / np.log(2)


def overflows(margin):
    """Return the formula as written, which ends in ∞/∞."""
    with np.errstate(over="ignore", invalid="ignore"):
        odds = np.exp(-margin)
        return np.log2(1 + odds), -odds / (1 + odds) / np.log(2)


def overflows_in_the_values(margin):
    """Return infinite values for very negative margins, and right derivatives."""
    with np.errstate(over="ignore"):
        return np.log2(1 + np.exp(-margin)), -0.5 * (1 - np.tanh(margin / 2)) / np.log(2)


def drops_the_minus_of_the_derivative(margin):
    """Return the derivative without its sign."""
    return np.logaddexp(0, -margin) / np.log(2), 0.5 * (1 - np.tanh(margin / 2)) / np.log(2)


def takes_the_sigmoid_of_plus_the_margin(margin):
    """Return a derivative that is steepest for right answers."""
    return np.logaddexp(0, -margin) / np.log(2), -0.5 * (1 + np.tanh(margin / 2)) / np.log(2)


def _bounds_the_zero_one_loss(loss: Function, rng: np.random.Generator) -> bool:
    margin = np.append(rng.normal(scale=3, size=200), 0.0)
    return bool(np.all(loss(margin)[0] >= (margin <= 0)))


def _derivative_matches_differences(loss: Function, rng: np.random.Generator) -> bool:
    margin, h = rng.normal(scale=3, size=50), 1e-5
    slope = (np.asarray(loss(margin + h)[0]) - loss(margin - h)[0]) / (2 * h)
    return bool(np.allclose(loss(margin)[1], slope, atol=1e-7))


def _loss_at_opposite_margins(loss: Function, rng: np.random.Generator) -> bool:
    margin = rng.normal(scale=3, size=50)
    return bool(np.allclose(np.asarray(loss(-margin)[0]) - loss(margin)[0], margin / np.log(2)))


LOGISTIC_LOSS = Exercise(
    key="L1-03",
    reference=logistic_loss,
    cases=_margin_cases,
    parts=("values", "derivatives"),
    misconceptions=_mistakes(
        (
            "you use the natural logarithm; in nats the loss is only 0.69 at margin 0 and "
            "does not bound the 0–1 loss; divide by ln 2",
            measures_in_nats,
        ),
        (
            "your values are in bits but your derivatives are not; they need the factor 1/ln 2 too",
            forgets_ln2_in_the_derivative,
        ),
        (
            "your loss grows with the margin, so it rewards wrong answers; "
            "the exponential is e^{−yf}",
            rewards_wrong_answers,
        ),
        (
            "your e^{−yf} overflows when the margin is very negative; "
            "use np.logaddexp(0, -margin), and for the derivative a form without ∞/∞",
            overflows,
        ),
        (
            "your values are infinite where e^{−yf} overflows; "
            "divide np.logaddexp(0, -margin) by ln 2",
            overflows_in_the_values,
        ),
        (
            "your derivative lacks its minus sign; the loss falls as the margin grows",
            drops_the_minus_of_the_derivative,
        ),
        (
            "your derivative is largest for right answers; it is −1/(1 + e^{yf}) / ln 2",
            takes_the_sigmoid_of_plus_the_margin,
        ),
    ),
    properties=(
        Property("the loss is at least the 0–1 loss", _bounds_the_zero_one_loss),
        Property("the derivative agrees with differences", _derivative_matches_differences),
        Property("the loss at −yf is the loss at yf plus yf/ln 2", _loss_at_opposite_margins),
    ),
)


# --- L1-03: hinge loss ------------------------------------------------------------------------


def _hinge_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d in ((4, 1), (6, 2), (40, 3)):
        y = rng.permutation(np.resize([1, -1], m))
        # four margins in turn: above 1, between 0 and 1, far below 0, a little below 0
        target = np.resize([2.5, 0.5, -2.0, -0.3], m) * y
        w = rng.choice([-1.0, 1.0], size=d) * rng.uniform(0.5, 1.5, size=d).round(1)
        x = rng.normal(size=(m, d)).round(1)
        yield {"w": w, "x": x + np.outer(target - x @ w, w) / (w @ w), "y": y}
    # margins of exactly 1, where an example stops contributing, and a little above
    x = np.array([[0.5, 0.0], [1.0, 0.5], [0.0, 1.0], [-0.75, 0.0], [0.25, 0.0], [1.0, -1.0]])
    yield {"w": np.array([2.0, -1.0]), "x": x, "y": np.array([1, 1, -1, -1, 1, -1])}


def updates_only_on_errors(w, x, y):
    """Return the gradient of the perceptron."""
    active = y * (x @ w) < 0
    return -(x.T @ (active * y)) / len(y)


def forgets_the_labels(w, x, y):
    """Return the gradient as if all labels were 1."""
    active = y * (x @ w) < 1
    return -(x.T @ active) / len(y)


def averages_over_violators_only(w, x, y):
    """Return the mean over the examples with margin below 1."""
    active = y * (x @ w) < 1
    return -(x.T @ (active * y)) / max(active.sum(), 1)


def sums_over_the_examples(w, x, y):
    """Return the gradient of the total loss."""
    active = y * (x @ w) < 1
    return -(x.T @ (active * y))


def counts_every_example(w, x, y):
    """Return the gradient of the loss −m."""
    return -(x.T @ y) / len(y)


def compares_the_score(w, x, y):
    """Return the gradient with the score in place of the margin."""
    active = x @ w < 1
    return -(x.T @ (active * y)) / len(y)


def returns_the_ascent_direction(w, x, y):
    """Return the gradient without its minus."""
    active = y * (x @ w) < 1
    return x.T @ (active * y) / len(y)


def _hinge_risk(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    return float(np.maximum(0, 1 - y * (x @ w)).mean())


def _hinge_matches_differences(gradient: Function, rng: np.random.Generator) -> bool:
    w, x, y = rng.normal(size=3), rng.normal(size=(20, 3)), rng.choice([-1, 1], size=20)
    h = 1e-7 * np.eye(3)
    slope = [(_hinge_risk(w + e, x, y) - _hinge_risk(w - e, x, y)) / 2e-7 for e in h]
    return bool(np.allclose(gradient(w, x, y), slope, atol=1e-6))


def _hinge_rests_when_all_are_safe(gradient: Function, rng: np.random.Generator) -> bool:
    w, x = rng.normal(size=3), rng.normal(size=(20, 3))
    y = np.sign(x @ w)
    safe = w * 1.1 / np.abs(x @ w).min()
    return not np.any(gradient(safe, x, y))


HINGE_RISK_GRADIENT = Exercise(
    key="L1-03:hinge",
    reference=hinge_risk_gradient,
    cases=_hinge_cases,
    misconceptions=_mistakes(
        (
            "you count only misclassified examples; correctly classified ones with a margin "
            "below 1 contribute to the hinge too",
            updates_only_on_errors,
        ),
        ("your terms lack the labels; each term is −yᵢxᵢ", forgets_the_labels),
        (
            "you average over the examples with margin below 1; divide by all m",
            averages_over_violators_only,
        ),
        (
            "you return a sum; the empirical risk is a mean, so divide by m",
            sums_over_the_examples,
        ),
        (
            "you count every example; those with a margin of 1 or more contribute nothing",
            counts_every_example,
        ),
        (
            "you compare the score wᵀx with 1; the hinge looks at the margin y wᵀx",
            compares_the_score,
        ),
        (
            "your gradient has the opposite sign; its terms are −yᵢxᵢ",
            returns_the_ascent_direction,
        ),
    ),
    properties=(
        Property("the gradient agrees with finite differences", _hinge_matches_differences),
        Property("it vanishes once all margins exceed 1", _hinge_rests_when_all_are_safe),
    ),
)


# --- L1-05: early stopping --------------------------------------------------------------------


def _stopping_cases(rng: np.random.Generator) -> Iterator[Case]:
    def case(*errors: float, patience: int) -> Case:
        return {"validation_errors": list(errors), "patience": patience}

    yield case(0.5, 0.4, 0.4, 0.3, 0.2, 0.6, patience=2)
    yield case(0.5, 0.3, 0.4, 0.5, 0.1, 0.1, patience=2)
    yield case(0.9, 0.5, 0.6, 0.4, 0.5, 0.45, 0.44, 0.2, 0.1, patience=3)
    yield case(0.5, 0.4, 0.3, patience=4)
    yield case(0.5, 0.2, 0.4, 0.2, 0.3, 0.1, 0.5, patience=2)
    for patience in (2, 3):
        falling = 0.5 / np.arange(1, 21) + rng.uniform(0, 0.15, size=20)
        yield {"validation_errors": falling.round(2).tolist(), "patience": patience}
    yield case(0.4, 0.4, 0.6, 0.3, patience=2)


def counts_every_bad_epoch(validation_errors, patience):
    """Halt after `patience` bad epochs in total."""
    best, bad = 0, 0
    for epoch in range(1, len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        else:
            bad += 1
        if bad == patience:
            return best, epoch
    return best, len(validation_errors) - 1


def takes_a_tie_as_progress(validation_errors, patience):
    """Halt after `patience` epochs that are worse than the best."""
    best = 0
    for epoch in range(len(validation_errors)):
        if validation_errors[epoch] <= validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors) - 1


def compares_with_the_epoch_before(validation_errors, patience):
    """Halt after `patience` rises in a row."""
    best, bad = 0, 0
    for epoch in range(1, len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        bad = 0 if validation_errors[epoch] < validation_errors[epoch - 1] else bad + 1
        if bad == patience:
            return best, epoch
    return best, len(validation_errors) - 1


def knows_the_future(validation_errors, patience):
    """Keep the best epoch of all."""
    best = int(np.argmin(validation_errors))
    return best, min(best + patience, len(validation_errors) - 1)


def waits_one_epoch_more(validation_errors, patience):
    """Halt one epoch late."""
    best = 0
    for epoch in range(len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        if epoch - best > patience:
            return best, epoch
    return best, len(validation_errors) - 1


def keeps_the_last_epoch(validation_errors, patience):
    """Halt in time, but keep the last weights."""
    best = 0
    for epoch in range(len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return epoch, epoch
    return len(validation_errors) - 1, len(validation_errors) - 1


def halts_at_the_first_rise(validation_errors, patience):
    """Halt without patience."""
    for epoch in range(1, len(validation_errors)):
        if validation_errors[epoch] > validation_errors[epoch - 1]:
            return epoch - 1, epoch
    return len(validation_errors) - 1, len(validation_errors) - 1


def counts_epochs_from_one(validation_errors, patience):
    """Count epochs from 1."""
    best = 0
    for epoch in range(len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return best + 1, epoch + 1
    return best + 1, len(validation_errors)


def halts_after_the_last_epoch(validation_errors, patience):
    """Return the number of epochs where the rule never halts."""
    best = 0
    for epoch in range(len(validation_errors)):
        if validation_errors[epoch] < validation_errors[best]:
            best = epoch
        if epoch - best == patience:
            return best, epoch
    return best, len(validation_errors)


def _the_future_does_not_matter(rule: Function, rng: np.random.Generator) -> bool:
    errors = [*rng.uniform(0.3, 0.5, size=5), *np.linspace(0.6, 0.9, 6)]
    stopped = rule(errors, 4)
    return tuple(stopped) == tuple(rule([*errors, 0.0, 0.0], 4))


def _halts_after_patience_bad_epochs(rule: Function, rng: np.random.Generator) -> bool:
    errors = [*np.sort(rng.uniform(size=6))[::-1], *(1 + rng.uniform(size=9))]
    return all(tuple(rule(errors, patience)) == (5, 5 + patience) for patience in (1, 3, 9))


EARLY_STOPPING = Exercise(
    key="L1-05",
    reference=early_stopping,
    cases=_stopping_cases,
    parts=("best", "halt"),
    misconceptions=_mistakes(
        (
            "you never reset the count of bad epochs; patience counts the epochs in a row "
            "since the best one",
            counts_every_bad_epoch,
        ),
        (
            "you treat a tie as an improvement; an epoch improves only if its error is lower",
            takes_a_tie_as_progress,
        ),
        (
            "you compare with the previous epoch; compare with the best so far",
            compares_with_the_epoch_before,
        ),
        (
            "you use errors after the halt; at epoch t the later ones are not known yet",
            knows_the_future,
        ),
        (
            "you halt one epoch late; stop as soon as `patience` epochs have not improved",
            waits_one_epoch_more,
        ),
        (
            "you keep the weights of the last epoch; keep those of the best one",
            keeps_the_last_epoch,
        ),
        (
            "you halt at the first rise; wait until `patience` epochs in a row have not improved",
            halts_at_the_first_rise,
        ),
        ("you count epochs from 1; here the first one is 0", counts_epochs_from_one),
        (
            "where the rule never halts, you return the number of epochs; return the last "
            "epoch, whose number is one less",
            halts_after_the_last_epoch,
        ),
    ),
    properties=(
        Property("errors after the halt change nothing", _the_future_does_not_matter),
        Property(
            "the best epoch is the last that improves, and exactly `patience` epochs follow",
            _halts_after_patience_bad_epochs,
        ),
    ),
)


# --- L1-06: per-example gradients -------------------------------------------------------------


def _softmax_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d, c in ((1, 2, 3), (3, 2, 2), (4, 3, 5)):
        yield {
            "weights": rng.normal(size=(d, c)).round(1),
            "x": rng.normal(size=(m, d)).round(1),
            "labels": rng.integers(c, size=m),
        }


def gives_the_gradient_of_the_loss(weights, x, labels):
    """Return the gradients with the opposite sign."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return x[:, :, None] * (p - np.eye(weights.shape[1])[labels])[:, None, :]


def divides_each_by_m(weights, x, labels):
    """Return terms of the mean."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return x[:, :, None] * (np.eye(weights.shape[1])[labels] - p)[:, None, :] / len(x)


def normalizes_over_the_examples(weights, x, labels):
    """Return the gradients with a softmax over the wrong axis."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=0, keepdims=True))
    p /= p.sum(axis=0, keepdims=True)
    return x[:, :, None] * (np.eye(weights.shape[1])[labels] - p)[:, None, :]


def sums_over_the_batch(weights, x, labels):
    """Return one gradient for the whole batch."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return x.T @ (np.eye(weights.shape[1])[labels] - p)


def updates_only_the_right_class(weights, x, labels):
    """Return gradients that leave the columns of the wrong classes at zero."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    right = np.eye(weights.shape[1])[labels]
    return x[:, :, None] * (right * (1 - p))[:, None, :]


def swaps_features_and_classes(weights, x, labels):
    """Return each gradient transposed."""
    scores = x @ weights
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    return (np.eye(weights.shape[1])[labels] - p)[:, :, None] * x[:, None, :]


def _sum_is_the_slope_of_the_log_likelihood(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    direction, h = rng.normal(size=W.shape), 1e-5

    def likelihood(weights: np.ndarray) -> float:
        scores = x @ weights
        return float((scores[np.arange(6), labels] - np.log(np.exp(scores).sum(axis=1))).sum())

    slope = (likelihood(W + h * direction) - likelihood(W - h * direction)) / (2 * h)
    return bool(np.isclose(np.sum(gradients(W, x, labels) * direction), slope, rtol=1e-6))


def _classes_balance(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    return bool(np.allclose(np.sum(gradients(W, x, labels), axis=2), 0))


def _examples_do_not_mix(gradients: Function, rng: np.random.Generator) -> bool:
    W, x, labels = rng.normal(size=(3, 4)), rng.normal(size=(6, 3)), rng.integers(4, size=6)
    return bool(np.allclose(gradients(W, x[2:3], labels[2:3])[0], gradients(W, x, labels)[2]))


PER_EXAMPLE_GRADIENTS = Exercise(
    key="L1-06",
    reference=per_example_gradients,
    cases=_softmax_cases,
    misconceptions=_mistakes(
        (
            "you return the gradient of the negative log-likelihood; "
            "here the residual is e_y − softmax",
            gives_the_gradient_of_the_loss,
        ),
        ("you divide by m; each example keeps its own full gradient", divides_each_by_m),
        (
            "your softmax sums to 1 over the examples; it must sum to 1 over the classes",
            normalizes_over_the_examples,
        ),
        (
            "you add up the gradients; return one (d, c) gradient for each example",
            sums_over_the_batch,
        ),
        (
            "you change only the column of the right class; "
            "the residual of every other class is "
            "minus its probability",
            updates_only_the_right_class,
        ),
        (
            "your gradients are transposed; each has the shape of W, features by classes",
            swaps_features_and_classes,
        ),
    ),
    properties=(
        Property(
            "the sum is the slope of the log-likelihood",
            _sum_is_the_slope_of_the_log_likelihood,
        ),
        Property("each gradient sums to 0 over the classes", _classes_balance),
        Property("an example's gradient ignores the others", _examples_do_not_mix),
    ),
)


# --- L1-07: standard error --------------------------------------------------------------------


def _error_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield {"sigma": 2.0, "n": 9, "population": None}
    yield {"sigma": 1.0, "n": 4, "population": 10}
    yield {"sigma": round(float(rng.uniform(1, 3)), 1), "n": 10, "population": 10}
    for _ in range(3):
        n = int(rng.integers(5, 200))
        sigma = round(float(rng.uniform(0.5, 3)), 2)
        yield {"sigma": sigma, "n": n, "population": n + int(rng.integers(1, 300))}


def divides_by_n(sigma, n, population=None):
    """Return σ/n."""
    factor = 1.0 if population is None else np.sqrt((population - n) / (population - 1))
    return sigma / n * factor


def returns_the_variance(sigma, n, population=None):
    """Return the square of the standard error."""
    factor = 1.0 if population is None else (population - n) / (population - 1)
    return sigma**2 / n * factor


def forgets_the_root_of_the_factor(sigma, n, population=None):
    """Return the error with the factor of the variance."""
    factor = 1.0 if population is None else (population - n) / (population - 1)
    return sigma / np.sqrt(n) * factor


def ignores_the_finite_population(sigma, n, population=None):
    """Return σ/√n in every case."""
    return sigma / np.sqrt(n)


def divides_the_factor_by_population(sigma, n, population=None):
    """Return the error with (N − n)/N."""
    factor = 1.0 if population is None else np.sqrt((population - n) / population)
    return sigma / np.sqrt(n) * factor


def divides_by_n_minus_one(sigma, n, population=None):
    """Return σ/√(n − 1)."""
    factor = 1.0 if population is None else np.sqrt((population - n) / (population - 1))
    return sigma / np.sqrt(n - 1) * factor


def does_not_divide_at_all(sigma, n, population=None):
    """Return the spread of single examples."""
    factor = 1.0 if population is None else np.sqrt((population - n) / (population - 1))
    return sigma * factor


def _four_times_the_work_halves_the_error(error: Function, rng: np.random.Generator) -> bool:
    sigma, n = float(rng.uniform(1, 2)), int(rng.integers(2, 50))
    return bool(np.isclose(error(sigma, 4 * n, None), error(sigma, n, None) / 2))


def _matches_all_pairs(error: Function, rng: np.random.Generator) -> bool:
    values = rng.normal(size=6)
    means = [(values[i] + values[j]) / 2 for i in range(6) for j in range(i)]
    return bool(np.isclose(error(float(values.std()), 2, 6), np.std(means)))


def _one_draw_has_the_full_spread(error: Function, rng: np.random.Generator) -> bool:
    return bool(np.isclose(error(2.5, 1, int(rng.integers(5, 50))), 2.5))


STANDARD_ERROR = Exercise(
    key="L1-07",
    reference=standard_error,
    cases=_error_cases,
    misconceptions=_mistakes(
        ("your standard error divides by n; it is σ / √n", divides_by_n),
        ("you return the variance of the mean; take its square root", returns_the_variance),
        (
            "your factor (N − n)/(N − 1) belongs to the variance; "
            "the standard error needs its square root",
            forgets_the_root_of_the_factor,
        ),
        (
            "you ignore the size of the population; drawing without replacement "
            "multiplies by √((N − n)/(N − 1))",
            ignores_the_finite_population,
        ),
        (
            "your factor is √((N − n)/N), which goes with s over N − 1; "
            "with σ over N it is √((N − n)/(N − 1))",
            divides_the_factor_by_population,
        ),
        (
            "you divide by √(n − 1), which belongs to estimates of σ; the mean of n has σ / √n",
            divides_by_n_minus_one,
        ),
        (
            "you return the standard deviation of one example; "
            "that of the mean of n is √n times smaller",
            does_not_divide_at_all,
        ),
    ),
    properties=(
        Property("four times as many values halve it", _four_times_the_work_halves_the_error),
        Property("it is the standard deviation over all pairs out of six", _matches_all_pairs),
        Property("a single draw has the standard deviation σ", _one_draw_has_the_full_spread),
    ),
)


# --- L1-09: minibatches -----------------------------------------------------------------------


def _minibatch_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, n in ((5, 2), (12, 4), (20, 7), (6, 1), (9, 9), (10, 4)):
        yield {"m": m, "n": n, "rng": np.random.default_rng(int(rng.integers(10**6)))}


def drops_the_last_minibatch(m, n, rng):
    """Cut full minibatches only."""
    order = rng.permutation(m)
    return tuple(order[k * n : (k + 1) * n] for k in range(m // n))


def forgets_to_shuffle(m, n, rng):
    """Cut the examples in their order."""
    return tuple(np.arange(start, min(start + n, m)) for start in range(0, m, n))


def shuffles_for_each_minibatch(m, n, rng):
    """Cut each minibatch from another order."""
    return tuple(rng.permutation(m)[start : start + n] for start in range(0, m, n))


def draws_with_replacement(m, n, rng):
    """Draw each example anew."""
    return tuple(rng.integers(m, size=min(n, m - start)) for start in range(0, m, n))


def makes_n_minibatches(m, n, rng):
    """Cut into n parts."""
    return tuple(np.array_split(rng.permutation(m), n))


def shuffles_only_within_minibatches(m, n, rng):
    """Cut first, shuffle then."""
    return tuple(rng.permutation(np.arange(start, min(start + n, m))) for start in range(0, m, n))


def _each_example_comes_once(cut: Function, rng: np.random.Generator) -> bool:
    indices = np.concatenate([np.asarray(part) for part in cut(23, 5, rng)])
    return sorted(indices.tolist()) == list(range(23))


def _epochs_differ(cut: Function, rng: np.random.Generator) -> bool:
    # the generator goes on from one epoch to the next, where the answer is
    first, second = map(np.concatenate, observe(repeated, cut, 2, 50, 8, rng))
    return not np.array_equal(first, second)


def _sizes_are_right(cut: Function, rng: np.random.Generator) -> bool:
    return [len(part) for part in cut(23, 5, rng)] == [5, 5, 5, 5, 3]


MINIBATCHES = Exercise(
    key="L1-09",
    reference=minibatches,
    cases=_minibatch_cases,
    misconceptions=_mistakes(
        (
            "you drop the remaining examples; they form a last, smaller minibatch",
            drops_the_last_minibatch,
        ),
        (
            "you keep the order of the data; shuffle first, or neighbors stay together",
            forgets_to_shuffle,
        ),
        (
            "you shuffle anew for each minibatch, so some examples occur twice and others "
            "never; "
            "shuffle once per epoch",
            shuffles_for_each_minibatch,
        ),
        (
            "you draw with replacement; in an epoch each example occurs exactly once",
            draws_with_replacement,
        ),
        (
            "you make n minibatches; n is the size of each, and there are ⌈m/n⌉",
            makes_n_minibatches,
        ),
        (
            "you shuffle only within each minibatch, so its members are always the same; "
            "shuffle all examples",
            shuffles_only_within_minibatches,
        ),
    ),
    properties=(
        Property("each example occurs exactly once", _each_example_comes_once),
        Property("the last minibatch holds the remainder", _sizes_are_right),
        Property("two epochs have different orders", _epochs_differ),
    ),
)


# --- L1-10: amplification of errors -----------------------------------------------------------


def _stiff_hessian(rng: np.random.Generator, p: int) -> np.ndarray:
    """Return a symmetric matrix with eigenvalues from 1 to 50."""
    rotation, _ = np.linalg.qr(rng.normal(size=(p, p)))
    H = (rotation * np.geomspace(1, 50, p)) @ rotation.T
    return ((H + H.T) / 2).round(3)


def _amplification_cases(rng: np.random.Generator) -> Iterator[Case]:
    diagonal = np.diag([50.0, 2.0])
    yield {"hessian": diagonal, "gradient": np.array([4.0, 1.0]), "error": np.array([0.1, 0.3])}
    for p in (2, 3, 6):
        yield {
            "hessian": _stiff_hessian(rng, p),
            "gradient": rng.normal(size=p).round(2),
            "error": rng.normal(scale=0.1, size=p).round(3),
        }


def multiplies_by_the_hessian(hessian, gradient, error):
    """Return the amplification by H."""
    after = np.linalg.norm(hessian @ error) / np.linalg.norm(hessian @ gradient)
    return after * np.linalg.norm(gradient) / np.linalg.norm(error)


def compares_absolute_errors(hessian, gradient, error):
    """Return the growth of the error itself."""
    return np.linalg.norm(np.linalg.solve(hessian, error)) / np.linalg.norm(error)


def gives_only_the_error_after(hessian, gradient, error):
    """Return the relative error of H⁻¹g."""
    after = np.linalg.norm(np.linalg.solve(hessian, error))
    return after / np.linalg.norm(np.linalg.solve(hessian, gradient))


def returns_the_bound(hessian, gradient, error):
    """Return κ(H)."""
    return np.linalg.cond(hessian)


def divides_before_by_after(hessian, gradient, error):
    """Return the inverse of the ratio."""
    after = np.linalg.norm(np.linalg.solve(hessian, error))
    after = after / np.linalg.norm(np.linalg.solve(hessian, gradient))
    return np.linalg.norm(error) / np.linalg.norm(gradient) / after


def measures_the_error_against_the_estimate(hessian, gradient, error):
    """Return the amplification relative to g + e."""
    estimate = gradient + error
    after = np.linalg.norm(np.linalg.solve(hessian, error))
    after = after / np.linalg.norm(np.linalg.solve(hessian, estimate))
    return after * np.linalg.norm(estimate) / np.linalg.norm(error)


def inverts_only_the_diagonal(hessian, gradient, error):
    """Return the amplification by the inverse diagonal."""
    after = np.linalg.norm(error / np.diag(hessian)) / np.linalg.norm(gradient / np.diag(hessian))
    return after * np.linalg.norm(gradient) / np.linalg.norm(error)


def _never_above_kappa(amplify: Function, rng: np.random.Generator) -> bool:
    H = _stiff_hessian(rng, 4)
    kappa = np.linalg.cond(H)
    pairs = [(H, rng.normal(size=4), rng.normal(size=4)) for _ in range(50)]
    gains = observe(calls, amplify, *pairs)
    return bool(np.all(np.array(gains) <= kappa * (1 + 1e-9)) and max(gains) > 1)


def _reaches_kappa(amplify: Function, rng: np.random.Generator) -> bool:
    H = _stiff_hessian(rng, 4)
    _, u = np.linalg.eigh(H)
    return bool(np.isclose(amplify(H, u[:, -1], 0.01 * u[:, 0]), np.linalg.cond(H)))


def _scale_does_not_matter(amplify: Function, rng: np.random.Generator) -> bool:
    H, g, e = _stiff_hessian(rng, 3), rng.normal(size=3), rng.normal(size=3)
    return bool(np.isclose(amplify(7 * H, 3 * g, 0.1 * e), amplify(H, g, e)))


ERROR_AMPLIFICATION = Exercise(
    key="L1-10",
    reference=error_amplification,
    cases=_amplification_cases,
    misconceptions=_mistakes(
        ("you multiply by H; a Newton step needs H⁻¹g", multiplies_by_the_hessian),
        (
            "you compare absolute errors; divide each by the norm of its own vector",
            compares_absolute_errors,
        ),
        (
            "you return the relative error of H⁻¹g; divide it by that of g",
            gives_only_the_error_after,
        ),
        (
            "you return the bound κ(H); "
            "compute the amplification of this error, which may be smaller",
            returns_the_bound,
        ),
        (
            "you return the inverse; divide the error of H⁻¹g by the error of g",
            divides_before_by_after,
        ),
        (
            "you divide by the norm of the estimate g + e; a relative error refers to the exact g",
            measures_the_error_against_the_estimate,
        ),
        (
            "you invert only the diagonal of H; use np.linalg.solve",
            inverts_only_the_diagonal,
        ),
    ),
    properties=(
        Property("it is never above κ(H)", _never_above_kappa),
        Property("the worst directions attain κ(H)", _reaches_kappa),
        Property("the scales of H, g and e do not matter", _scale_does_not_matter),
    ),
)


# --- L1-11: an experiment on a stream ---------------------------------------------------------


def _stream_cases(rng: np.random.Generator) -> Iterator[Case]:
    for m, d, n in ((6, 1, 2), (12, 2, 3), (40, 3, 8)):
        x = rng.normal(size=(m, d)).round(1)
        y = (x @ rng.normal(size=d) + rng.normal(size=m)).round(1)
        yield {"w": rng.normal(size=d).round(1), "x": x, "y": y, "lr": 0.2, "n": n}


def sums_over_the_minibatch(w, x, y, lr, n):
    """Step along the sum."""
    path = [w]
    for k in range(0, len(y), n):
        residual = x[k : k + n] @ path[-1] - y[k : k + n]
        path.append(path[-1] - lr * x[k : k + n].T @ residual)
    return np.array(path)


def uses_all_the_data_at_each_step(w, x, y, lr, n):
    """Step along the batch gradient."""
    path = [w]
    for _ in range(0, len(y), n):
        path.append(path[-1] - lr * x.T @ (x @ path[-1] - y) / len(y))
    return np.array(path)


def uses_the_first_minibatch_again(w, x, y, lr, n):
    """Step along the gradient of one minibatch."""
    path = [w]
    for _ in range(0, len(y), n):
        path.append(path[-1] - lr * x[:n].T @ (x[:n] @ path[-1] - y[:n]) / n)
    return np.array(path)


def takes_gradients_at_the_start(w, x, y, lr, n):
    """Step along gradients at the start."""
    path = [w]
    for k in range(0, len(y), n):
        residual = x[k : k + n] @ w - y[k : k + n]
        path.append(path[-1] - lr * x[k : k + n].T @ residual / n)
    return np.array(path)


def forgets_the_half(w, x, y, lr, n):
    """Step along the gradient of (wᵀx − y)²."""
    path = [w]
    for k in range(0, len(y), n):
        residual = x[k : k + n] @ path[-1] - y[k : k + n]
        path.append(path[-1] - 2 * lr * x[k : k + n].T @ residual / n)
    return np.array(path)


def climbs(w, x, y, lr, n):
    """Step uphill."""
    path = [w]
    for k in range(0, len(y), n):
        residual = x[k : k + n] @ path[-1] - y[k : k + n]
        path.append(path[-1] + lr * x[k : k + n].T @ residual / n)
    return np.array(path)


def leaves_out_the_start(w, x, y, lr, n):
    """Return the iterates after the start."""
    path = [w]
    for k in range(0, len(y), n):
        residual = x[k : k + n] @ path[-1] - y[k : k + n]
        path.append(path[-1] - lr * x[k : k + n].T @ residual / n)
    return np.array(path[1:])


def returns_one_array_many_times(w, x, y, lr, n):
    """Return the last iterate in every row."""
    now = w.copy()
    path = [now]
    for k in range(0, len(y), n):
        now -= lr * x[k : k + n].T @ (x[k : k + n] @ now - y[k : k + n]) / n
        path.append(now)
    return np.array(path)


def _sees_each_example_once(run: Function, rng: np.random.Generator) -> bool:
    x, y, w = rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=2)
    later = y.copy()
    later[4:] += 5.0
    before, after = np.asarray(run(w, x, y, 0.1, 4)), np.asarray(run(w, x, later, 0.1, 4))
    return bool(np.allclose(before[:2], after[:2]) and not np.allclose(before[2], after[2]))


def _mean_follows_the_risk(run: Function, rng: np.random.Generator) -> bool:
    x, w = np.ones((100, 4, 1)), np.array([3.0])
    x *= rng.choice([-1.0, 1.0], size=x.shape)
    y = x[:, :, 0] * 1.0 + rng.normal(size=(100, 4))
    streams = [(w, stream, labels, 0.5, 2) for stream, labels in zip(x, y, strict=True)]
    ends = [path[-1][0] for path in observe(calls, run, *streams)]
    # ∇J*(w) = w − 1, so that two steps with η = ½ leave a quarter of the distance
    return bool(abs(np.mean(ends) - 1.5) < 5 * np.std(ends) / np.sqrt(100))


STREAM_SGD = Exercise(
    key="L1-11",
    reference=stream_sgd,
    cases=_stream_cases,
    misconceptions=_mistakes(
        (
            "you add up the gradients of a minibatch; take their mean",
            sums_over_the_minibatch,
        ),
        (
            "you use all the data in each step; a stream gives n new examples for each step",
            uses_all_the_data_at_each_step,
        ),
        (
            "you use the same minibatch in every step; move on by n examples",
            uses_the_first_minibatch_again,
        ),
        (
            "you take all gradients at the start; take each at the current w",
            takes_gradients_at_the_start,
        ),
        (
            "your gradient is twice too large; the loss is ½(wᵀx − y)²",
            forgets_the_half,
        ),
        ("you add the gradient; subtract it", climbs),
        ("your path lacks the start; it has m/n + 1 rows", leaves_out_the_start),
        (
            "your rows are all one array, changed in place; store a new array in each step",
            returns_one_array_many_times,
        ),
    ),
    properties=(
        Property("a step uses its own examples and no later ones", _sees_each_example_once),
        Property("on average it follows the gradient of the risk", _mean_follows_the_risk),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    EMPIRICAL_RISK,
    LOGISTIC_LOSS,
    HINGE_RISK_GRADIENT,
    EARLY_STOPPING,
    PER_EXAMPLE_GRADIENTS,
    STANDARD_ERROR,
    MINIBATCHES,
    ERROR_AMPLIFICATION,
    STREAM_SGD,
)
