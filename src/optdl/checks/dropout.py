"""Exercises on dropout: masks, gradients, the ensemble, and a network trained with it.

Each mistake stands here as a plain function that uses nothing but its arguments and ``np``.
"""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case, Exercise, Function, Misconception, Property
from optdl.dropout import (
    dropout_backward,
    dropout_forward,
    dropout_mask,
    dropout_moments,
    dropout_sgd,
    geometric_ensemble,
    weight_scaling,
)

# --- L2-16 · the mask -------------------------------------------------------------------------


def _mask_cases(rng: np.random.Generator) -> Iterator[Case]:
    # A draw equal to p is kept: p itself is one of the draws.
    for p, shape in ((0.2, (1, 4)), (0.6, (3, 4)), (0.75, (5, 6))):
        u = rng.random(size=shape).round(2)
        u[0, :3] = p, p - 0.1, p + 0.1
        yield {"u": u, "p": p}


def forgets_the_scale(u, p):
    """Return zeros and ones."""
    return (u >= p) * 1.0


def scales_by_one_over_p(u, p):
    """Divide by the probability to drop."""
    return (u >= p) / p


def takes_p_for_the_probability_to_keep(u, p):
    """Keep with probability p, and scale by it."""
    return (u < p) / p


def keeps_the_small_draws(u, p):
    """Keep where u < 1 − p."""
    return (u < 1 - p) / (1 - p)


def keeps_what_should_be_dropped(u, p):
    """Keep where u < p."""
    return (u < p) / (1 - p)


def multiplies_by_the_kept_share(u, p):
    """Scale by 1 − p, as the first papers did at inference."""
    return (u >= p) * (1 - p)


def drops_a_draw_that_equals_p(u, p):
    """Keep where u > p."""
    return (u > p) / (1 - p)


def _mask_has_mean_one(function: Function, rng: np.random.Generator) -> bool:
    # Draws spaced evenly stand for all draws: the share below p is exactly p.
    u = rng.permutation((np.arange(1000) + 0.5) / 1000)
    means = [np.mean(function(u, p)) for p in (0.0, 0.1, 0.5, 0.8)]
    return bool(np.allclose(means, 1.0))


DROPOUT_MASK = Exercise(
    key="L2-16:mask",
    reference=dropout_mask,
    cases=_mask_cases,
    misconceptions=(
        Misconception(
            "your kept entries are 1; divide them by 1 − p, so that the mean of the mask is 1",
            forgets_the_scale,
        ),
        Misconception(
            "you divide by p, the probability of dropping; divide by 1 − p",
            scales_by_one_over_p,
        ),
        Misconception(
            "you take p for the probability of keeping; here it is the probability of dropping",
            takes_p_for_the_probability_to_keep,
        ),
        Misconception(
            "you keep where u < p; that is where an entry is dropped",
            keeps_what_should_be_dropped,
        ),
        Misconception(
            "you keep where u < 1 − p; that has the same probability, but here an entry is "
            "kept where u ≥ p",
            keeps_the_small_draws,
        ),
        Misconception(
            "your kept entries are 1 − p; they should be 1/(1 − p), in Python `1 / (1 - p)`",
            multiplies_by_the_kept_share,
        ),
        Misconception(
            "an entry whose draw equals p is kept: compare with u ≥ p, not with u > p",
            drops_a_draw_that_equals_p,
        ),
    ),
    properties=(Property("the mask has mean 1, whatever p is", _mask_has_mean_one),),
)


# --- L2-16 · forward --------------------------------------------------------------------------


def _forward_cases(rng: np.random.Generator) -> Iterator[Case]:
    for p, shape, training in (
        (0.4, (2, 3), True),
        (0.7, (3, 2), False),
        (0.25, (6, 5), True),
        (0.6, (5, 8), True),
    ):
        x = rng.uniform(1, 3, size=shape).round(2)
        yield {
            "x": x,
            "p": p,
            "rng": np.random.default_rng(rng.integers(1000)),
            "training": training,
        }


def keeps_the_small_draws_forward(x, p, rng, training):
    """Keep where u < 1 − p."""
    mask = (rng.random(x.shape) < 1 - p) / (1 - p) if training else np.ones(x.shape)
    return x * mask, mask


def takes_p_for_the_probability_to_keep_forward(x, p, rng, training):
    """Keep with probability p, and scale by it."""
    mask = (rng.random(x.shape) < p) / p if training else np.ones(x.shape)
    return x * mask, mask


def keeps_what_should_be_dropped_forward(x, p, rng, training):
    """Keep where u < p."""
    mask = (rng.random(x.shape) < p) / (1 - p) if training else np.ones(x.shape)
    return x * mask, mask


def scales_by_one_over_p_forward(x, p, rng, training):
    """Divide by the probability to drop."""
    mask = (rng.random(x.shape) >= p) / p if training else np.ones(x.shape)
    return x * mask, mask


def drops_at_inference_too(x, p, rng, training):
    """Take no notice of ``training``."""
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


def scales_at_inference_instead(x, p, rng, training):
    """Leave the kept values alone, and scale by 1 − p at inference."""
    mask = 1.0 * (rng.random(x.shape) >= p) if training else np.full(x.shape, 1 - p)
    return x * mask, mask


def scales_at_inference_too(x, p, rng, training):
    """Scale while training, and again by 1 − p at inference."""
    mask = (rng.random(x.shape) >= p) / (1 - p) if training else np.full(x.shape, 1 - p)
    return x * mask, mask


def draws_one_mask_for_the_minibatch(x, p, rng, training):
    """Drop the same units for every example."""
    mask = (rng.random(x.shape[1]) >= p) / (1 - p) if training else np.ones(x.shape[1])
    mask = np.broadcast_to(mask, x.shape)
    return x * mask, mask


def drops_whole_examples(x, p, rng, training):
    """Draw one number for each example."""
    mask = (rng.random((len(x), 1)) >= p) / (1 - p) if training else np.ones((len(x), 1))
    mask = np.broadcast_to(mask, x.shape)
    return x * mask, mask


def never_scales(x, p, rng, training):
    """Use masks of zeros and ones, and scale nowhere."""
    mask = 1.0 * (rng.random(x.shape) >= p) if training else np.ones(x.shape)
    return x * mask, mask


def returns_a_mask_without_scale(x, p, rng, training):
    """Scale the output, and forget the scale in the mask."""
    mask = 1.0 * (rng.random(x.shape) >= p) if training else np.ones(x.shape)
    return x * mask / (1 - p) if training else x * mask, mask


def _inference_is_the_identity(function: Function, rng: np.random.Generator) -> bool:
    x = rng.normal(size=(4, 3))
    y, mask = function(x, 0.6, rng, False)
    return bool(np.array_equal(y, x) and np.all(np.asarray(mask) == 1))


def _each_entry_is_dropped_by_itself(function: Function, rng: np.random.Generator) -> bool:
    x = rng.uniform(1, 2, size=(200, 50))
    y, mask = (np.asarray(part) for part in function(x, 0.3, rng, True))
    dropped = mask == 0
    spread = max(dropped.mean(axis=0).std() - 0.1, dropped.mean(axis=1).std() - 0.15)
    right = np.allclose(y, x * mask) and np.allclose(mask[~dropped], 1 / 0.7)
    return bool(right and abs(dropped.mean() - 0.3) < 0.03 and spread < 0)


DROPOUT_FORWARD = Exercise(
    key="L2-16:forward",
    reference=dropout_forward,
    cases=_forward_cases,
    parts=("y", "mask"),
    misconceptions=(
        Misconception(
            "you keep where u < 1 − p; that has the same probability, but here an entry is "
            "kept where u ≥ p",
            keeps_the_small_draws_forward,
        ),
        Misconception(
            "you take p for the probability of keeping; here it is the probability of dropping",
            takes_p_for_the_probability_to_keep_forward,
        ),
        Misconception(
            "you keep where u < p; that is where an entry is dropped",
            keeps_what_should_be_dropped_forward,
        ),
        Misconception(
            "you divide by p, the probability of dropping; divide by 1 − p",
            scales_by_one_over_p_forward,
        ),
        Misconception(
            "you drop entries at inference, too; there x passes unchanged",
            drops_at_inference_too,
        ),
        Misconception(
            "you scale at inference and not in training; divide by 1 − p in training",
            scales_at_inference_instead,
        ),
        Misconception(
            "you scale in training and at inference; scale only in training",
            scales_at_inference_too,
        ),
        Misconception(
            "you draw one mask for the whole minibatch; draw a number for each entry of x",
            draws_one_mask_for_the_minibatch,
        ),
        Misconception(
            "you keep or drop whole examples; draw a number for each entry of x",
            drops_whole_examples,
        ),
        Misconception("you never scale; divide by 1 − p in training", never_scales),
        Misconception(
            "your y is right, but the mask that you return lacks the factor 1/(1 − p), which "
            "the backward pass needs",
            returns_a_mask_without_scale,
        ),
    ),
    properties=(
        Property("inference changes nothing: its mask is all ones", _inference_is_the_identity),
        Property(
            "each entry is dropped by itself, and the others are divided by 1 − p",
            _each_entry_is_dropped_by_itself,
        ),
    ),
)


# --- L2-16 · mean and variance ----------------------------------------------------------------


def _moment_cases(rng: np.random.Generator) -> Iterator[Case]:
    for p, n in ((0.2, 1), (0.75, 3), (0.6, 6)):
        yield {"x": rng.uniform(1.5, 4, size=n).round(2) * rng.choice([-1, 1], size=n), "p": p}


def forgets_the_scale_in_the_moments(x, p):
    """Take the moments of a mask of zeros and ones."""
    return (1 - p) * x, p * (1 - p) * x**2


def returns_the_deviation(x, p):
    """Take the root of the variance."""
    return 1.0 * x, np.sqrt(p / (1 - p)) * np.abs(x)


def returns_the_second_moment(x, p):
    """Forget to subtract the square of the mean."""
    return 1.0 * x, x**2 / (1 - p)


def scales_the_variance_once(x, p):
    """Divide the variance of the mask by 1 − p, not by its square."""
    return 1.0 * x, p * x**2


def forgets_the_size_of_x(x, p):
    """Return the variance of the mask alone."""
    return 1.0 * x, np.full(x.shape, p / (1 - p))


def divides_by_p(x, p):
    """Take p and 1 − p for each other in the variance."""
    return 1.0 * x, (1 - p) / p * x**2


def _second_moment_is_that_of_two_values(function: Function, rng: np.random.Generator) -> bool:
    x = rng.normal(size=5)
    for p in (0.0, 0.3, 0.9):
        mean, var = (np.asarray(part) for part in function(x, p))
        if not np.allclose(var + mean**2, (1 - p) * (x / (1 - p)) ** 2):
            return False
    return True


DROPOUT_MOMENTS = Exercise(
    key="L2-16:moments",
    reference=dropout_moments,
    cases=_moment_cases,
    parts=("mean", "var"),
    misconceptions=(
        Misconception(
            "your moments are those of a mask without the scale; its kept entries are 1/(1 − p)",
            forgets_the_scale_in_the_moments,
        ),
        Misconception(
            "your `var` is the standard deviation; return its square",
            returns_the_deviation,
        ),
        Misconception(
            "your variance is the mean of y²; subtract the square of the mean of y",
            returns_the_second_moment,
        ),
        Misconception(
            "the scale 1/(1 − p) enters the variance squared; you use it once",
            scales_the_variance_once,
        ),
        Misconception(
            "your variance is that of the mask; the variance of y has the factor x²",
            forgets_the_size_of_x,
        ),
        Misconception("p and 1 − p are exchanged in your variance", divides_by_p),
    ),
    properties=(
        Property(
            "the squared mean plus the variance is the mean of y², (1 − p) (x / (1 − p))²",
            _second_moment_is_that_of_two_values,
        ),
    ),
)


# --- L2-17 · backward -------------------------------------------------------------------------


def _backward_cases(rng: np.random.Generator) -> Iterator[Case]:
    for p, shape in ((0.2, (2, 2)), (0.6, (3, 4)), (0.75, (6, 5))):
        mask = (rng.random(size=shape) >= p) / (1 - p)
        mask[:2, 0] = 1 / (1 - p), 0.0
        yield {"grad": rng.uniform(1, 3, size=shape).round(2), "mask": mask}


def passes_the_gradient_of_dropped_units(grad, mask):
    """Let the whole gradient pass."""
    return 1.0 * grad


def forgets_the_scale_backward(grad, mask):
    """Only zero the dropped entries."""
    return grad * (mask > 0)


def scales_twice(grad, mask):
    """Multiply by the mask twice."""
    return grad * mask * mask


def undoes_the_scale(grad, mask):
    """Divide by the scale, as if to undo it."""
    return grad * (mask > 0) / mask.max()


def draws_a_new_mask(grad, mask):
    """Draw a mask again in the backward pass."""
    draws = np.random.default_rng(0).random(mask.shape)
    return grad * (draws >= np.mean(mask == 0)) * mask.max()


def uses_the_mask_of_the_first_example(grad, mask):
    """Use one mask for the whole minibatch."""
    return grad * mask[0]


def _is_the_adjoint(function: Function, rng: np.random.Generator) -> bool:
    # The loss ⟨g, M ⊙ x⟩ is linear in x: its gradient at x gives the loss back.
    mask = (rng.random(size=(5, 7)) >= 0.4) / 0.6
    grad, x = rng.normal(size=(2, 5, 7))
    return bool(np.isclose(np.sum(grad * (x * mask)), np.sum(function(grad, mask) * x)))


DROPOUT_BACKWARD = Exercise(
    key="L2-17:backward",
    reference=dropout_backward,
    cases=_backward_cases,
    misconceptions=(
        Misconception(
            "you let the whole gradient pass; a dropped entry has no influence on y, so its "
            "gradient is 0",
            passes_the_gradient_of_dropped_units,
        ),
        Misconception(
            "your gradient lacks the scale; multiply by the mask, whose kept entries are 1/(1 − p)",
            forgets_the_scale_backward,
        ),
        Misconception(
            "you multiply by the mask twice; multiply once, since the mask includes the scale",
            scales_twice,
        ),
        Misconception(
            "you divide by the scale; the backward pass multiplies by it", undoes_the_scale
        ),
        Misconception(
            "you draw a new mask; use the argument `mask`, the mask of the forward pass",
            draws_a_new_mask,
        ),
        Misconception(
            "you use the mask of the first example for all; each example has its own row",
            uses_the_mask_of_the_first_example,
        ),
    ),
    properties=(
        Property(
            "the sum of `grad` · y equals the sum of your gradient · x, since y = mask · x is "
            "linear in x",
            _is_the_adjoint,
        ),
    ),
)


# --- L2-17 · the ensemble ---------------------------------------------------------------------


def _layer_cases(rng: np.random.Generator) -> Iterator[Case]:
    for c, n, keep in ((2, 2, 0.7), (3, 3, 0.4), (3, 5, 0.8)):
        yield {
            "W": rng.normal(size=(c, n), scale=2).round(2),
            "b": rng.normal(size=c).round(2),
            "x": rng.uniform(1, 2, size=n).round(2),
            "keep": keep,
        }


def takes_the_arithmetic_mean(W, b, x, keep):
    """Average the probabilities."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    scores = np.exp((masks * x) @ W.T + b)
    return chances @ (scores / scores.sum(axis=1, keepdims=True))


def forgets_to_normalize(W, b, x, keep):
    """Return geometric means that do not add up to one."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    scores = np.exp((masks * x) @ W.T + b)
    return np.exp(chances @ np.log(scores / scores.sum(axis=1, keepdims=True)))


def counts_all_subnetworks_alike(W, b, x, keep):
    """Give every mask the same weight."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    scores = np.exp((masks * x) @ W.T + b)
    means = np.exp(np.log(scores / scores.sum(axis=1, keepdims=True)).mean(axis=0))
    return means / means.sum()


def scales_the_subnetworks(W, b, x, keep):
    """Divide what is kept by keep."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    means = np.exp(chances @ ((masks * x / keep) @ W.T + b))
    return means / means.sum()


def leaves_out_the_empty_subnetwork(W, b, x, keep):
    """Start with one unit."""
    masks = np.arange(1, 2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    means = np.exp(chances / chances.sum() @ ((masks * x) @ W.T + b))
    return means / means.sum()


def takes_keep_for_the_probability_to_drop(W, b, x, keep):
    """Weight the masks with keep and 1 − keep exchanged."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, 1 - keep, keep), axis=1)
    means = np.exp(chances @ ((masks * x) @ W.T + b))
    return means / means.sum()


def leaves_the_dropped_inputs_out_of_the_weights(W, b, x, keep):
    """Weight a mask by the factors of what is kept alone."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1.0), axis=1)
    means = np.exp(chances @ ((masks * x) @ W.T + b))
    return means / means.sum()


def drops_the_bias_too(W, b, x, keep):
    """Leave the bias out."""
    masks = np.arange(2 ** len(x))[:, None] >> np.arange(len(x)) & 1
    chances = np.prod(np.where(masks, keep, 1 - keep), axis=1)
    means = np.exp(chances @ ((masks * x) @ W.T))
    return means / means.sum()


def _two_subnetworks_by_hand(function: Function, rng: np.random.Generator) -> bool:
    # One input: it is there with probability r, or it is not.
    W, b, x = rng.normal(size=(3, 1)), rng.normal(size=3), rng.normal(size=1)
    there, gone = np.exp(W[:, 0] * x[0] + b), np.exp(b)
    product = (there / there.sum()) ** 0.3 * (gone / gone.sum()) ** 0.7
    return bool(np.allclose(function(W, b, x, 0.3), product / product.sum()))


GEOMETRIC_ENSEMBLE = Exercise(
    key="L2-17:geometric",
    reference=geometric_ensemble,
    cases=_layer_cases,
    misconceptions=(
        Misconception(
            "you average the probabilities; average their logarithms",
            takes_the_arithmetic_mean,
        ),
        Misconception(
            "your geometric means do not add up to 1; divide them by their sum",
            forgets_to_normalize,
        ),
        Misconception(
            "you give all masks the same weight; the weight of a mask is its probability",
            counts_all_subnetworks_alike,
        ),
        Misconception(
            "you divide the kept inputs by `keep`; here the entries of a mask are 0 and 1",
            scales_the_subnetworks,
        ),
        Misconception(
            "the subnetwork without any input is missing; it predicts softmax(b)",
            leaves_out_the_empty_subnetwork,
        ),
        Misconception(
            "you take `keep` for the probability of dropping an input",
            takes_keep_for_the_probability_to_drop,
        ),
        Misconception(
            "your weight of a mask lacks the factor 1 − `keep` for each input that is dropped",
            leaves_the_dropped_inputs_out_of_the_weights,
        ),
        Misconception("your bias is missing; it is never dropped", drops_the_bias_too),
    ),
    properties=(
        Property(
            "with one input the answer is the normalized geometric mean of two subnetworks",
            _two_subnetworks_by_hand,
        ),
    ),
)


# --- L2-17 · weight scaling -------------------------------------------------------------------


def uses_all_inputs_in_full(W, b, x, keep):
    """Scale nothing."""
    scores = np.exp(W @ x + b)
    return scores / scores.sum()


def divides_by_keep(W, b, x, keep):
    """Divide, as inverted dropout does while training."""
    scores = np.exp(W @ x / keep + b)
    return scores / scores.sum()


def scales_the_bias_too(W, b, x, keep):
    """Scale the scores."""
    scores = np.exp(keep * (W @ x + b))
    return scores / scores.sum()


def scales_the_probabilities(W, b, x, keep):
    """Scale after the softmax."""
    scores = np.exp(W @ x + b)
    return keep * scores / scores.sum()


def scales_by_what_is_dropped(W, b, x, keep):
    """Scale by 1 − keep."""
    scores = np.exp((1 - keep) * (W @ x) + b)
    return scores / scores.sum()


def returns_the_scores(W, b, x, keep):
    """Leave the softmax out."""
    return W @ (keep * x) + b


def divides_the_scores_by_their_sum(W, b, x, keep):
    """Leave the exponential out of the softmax."""
    scores = W @ (keep * x) + b
    return scores / scores.sum()


def _is_the_mean_of_all_subnetworks(function: Function, rng: np.random.Generator) -> bool:
    W, b, x = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    masks = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    scores = np.exp((masks * x) @ W.T + b)
    chances = 0.3 ** masks.sum(axis=1) * 0.7 ** (3 - masks.sum(axis=1))
    means = np.prod((scores / scores.sum(axis=1, keepdims=True)) ** chances[:, None], axis=0)
    return bool(np.allclose(function(W, b, x, 0.3), means / means.sum()))


WEIGHT_SCALING = Exercise(
    key="L2-17:scaling",
    reference=weight_scaling,
    cases=_layer_cases,
    misconceptions=(
        Misconception(
            "you do not scale the inputs; multiply them by `keep`", uses_all_inputs_in_full
        ),
        Misconception(
            "you divide by `keep`, as inverted dropout does in training; multiply by it here",
            divides_by_keep,
        ),
        Misconception("you scale the bias, too; it is never dropped", scales_the_bias_too),
        Misconception(
            "you scale the probabilities; scale the inputs x",
            scales_the_probabilities,
        ),
        Misconception(
            "you multiply by 1 − `keep`, the probability of dropping; multiply by `keep`",
            scales_by_what_is_dropped,
        ),
        Misconception("you return the scores; the softmax is missing", returns_the_scores),
        Misconception(
            "you divide the scores by their sum; the softmax takes their exponentials first",
            divides_the_scores_by_their_sum,
        ),
    ),
    properties=(
        Property(
            "the answer is the normalized geometric mean of all subnetworks",
            _is_the_mean_of_all_subnetworks,
        ),
    ),
)


# --- L2-18 · training with dropout ------------------------------------------------------------


def _training_cases(rng: np.random.Generator) -> Iterator[Case]:
    for t, m, n, h, c in ((3, 2, 2, 3, 2), (4, 3, 3, 5, 3), (5, 4, 3, 6, 3)):
        masks = (rng.random((t, m, h)) >= 0.4) / 0.6
        masks[:, 0, 0], masks[0, :, 1] = 1 / 0.6, 0.0
        yield {
            "W": rng.normal(size=(h, n)).round(2),
            "V": rng.normal(size=(c, h)).round(2),
            "x": rng.normal(size=(t, m, n)).round(2),
            "y": rng.integers(c, size=(t, m)),
            "masks": masks,
            "lr": 0.3,
        }


def forgets_the_mask_in_the_backward_pass(W, V, x, y, masks, lr):
    """Mask the forward pass alone."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * (z > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def forgets_the_scale_in_the_backward_pass(W, V, x, y, masks, lr):
    """Zero the dropped units backward, but do not scale the kept ones."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * (hidden > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def keeps_the_first_mask(W, V, x, y, masks, lr):
    """Use the mask of the first minibatch in every step."""
    for inputs, labels in zip(x, y, strict=True):
        z = inputs @ W.T
        hidden = masks[0] * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * masks[0] * (z > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def trains_without_dropout(W, V, x, y, masks, lr):
    """Use all units."""
    for inputs, labels in zip(x, y, strict=True):
        z = inputs @ W.T
        hidden = np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * (z > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def adds_up_the_examples(W, V, x, y, masks, lr):
    """Take the sum of the examples' gradients, not their mean."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


def forgets_the_slope_of_the_relu(W, V, x, y, masks, lr):
    """Go back through the mask alone."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        hidden = mask * np.maximum(inputs @ W.T, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * mask / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def forgets_the_mask_in_the_gradient_of_v(W, V, x, y, masks, lr):
    """Multiply the error by max(Z, 0) in the gradient of V."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        scores = np.exp(mask * np.maximum(z, 0) @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0) / len(labels)
        step = lr * error.T @ np.maximum(z, 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - step
    return W, V


def normalizes_over_the_examples(W, V, x, y, masks, lr):
    """Let the probabilities of a class add up to 1 over the minibatch."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=0) - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def normalizes_over_the_minibatch(W, V, x, y, masks, lr):
    """Divide by the sum over all classes and examples."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum() - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0) / len(labels)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden / len(labels)
    return W, V


def takes_all_gradients_at_the_first_weights(W, V, x, y, masks, lr):
    """Compute every gradient before the first step."""
    steps = []
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0) / len(labels)
        steps.append((back.T @ inputs, error.T @ hidden / len(labels)))
    return W - lr * sum(step for step, _ in steps), V - lr * sum(step for _, step in steps)


def goes_back_through_the_new_weights(W, V, x, y, masks, lr):
    """Update V first, and go back through the new one."""
    for inputs, labels, mask in zip(x, y, masks, strict=True):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        V = V - lr * error.T @ hidden / len(labels)
        W = W - lr * ((error @ V) * mask * (z > 0) / len(labels)).T @ inputs
    return W, V


def _dropped_units_rest_and_others_follow_the_loss(
    function: Function, rng: np.random.Generator
) -> bool:
    W, V = rng.normal(size=(3, 2)), rng.normal(size=(2, 3))
    x, y = rng.normal(size=(1, 4, 2)), np.array([[0, 1, 1, 0]])
    mask = np.array([[0.0, 2.0, 2.0], [0.0, 0.0, 2.0], [0.0, 2.0, 0.0], [0.0, 2.0, 2.0]])

    def loss(first: np.ndarray, second: np.ndarray) -> float:
        scores = (mask * np.maximum(x[0] @ first.T, 0)) @ second.T
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(4), y[0]]))

    new_W, new_V = (np.asarray(part) for part in function(W, V, x, y, mask[None], 1e-6))
    fallen = loss(W, V) - loss(new_W, new_V)
    gradient = np.concatenate([(W - new_W).ravel(), (V - new_V).ravel()]) / 1e-6
    rests = np.array_equal(new_W[0], W[0]) and np.array_equal(new_V[:, 0], V[:, 0])
    # To first order a step of descent lowers the loss by lr ‖gradient‖².
    return bool(rests and np.isclose(fallen, 1e-6 * gradient @ gradient, rtol=1e-3))


DROPOUT_SGD = Exercise(
    key="L2-18",
    reference=dropout_sgd,
    cases=_training_cases,
    parts=("W", "V"),
    misconceptions=(
        Misconception(
            "the mask is missing in your gradient of W", forgets_the_mask_in_the_backward_pass
        ),
        Misconception(
            "your gradient of W lacks the scale 1/(1 − p); multiply by the mask, which includes it",
            forgets_the_scale_in_the_backward_pass,
        ),
        Misconception(
            "you use the first mask in every step; each minibatch has its own mask",
            keeps_the_first_mask,
        ),
        Misconception("you do not use the masks", trains_without_dropout),
        Misconception(
            "you add up the gradients of the examples; the loss is a mean, so divide by m",
            adds_up_the_examples,
        ),
        Misconception(
            "the derivative of the ReLU is missing in your gradient of W: multiply by (Z > 0)",
            forgets_the_slope_of_the_relu,
        ),
        Misconception(
            "you use the new V in the gradient of W; compute both gradients, then update both "
            "weights",
            goes_back_through_the_new_weights,
        ),
        Misconception(
            "the mask is missing in your gradient of V; its factor is H, not max(Z, 0)",
            forgets_the_mask_in_the_gradient_of_v,
        ),
        Misconception(
            "your softmax runs over the examples; the probabilities of each row add up to 1",
            normalizes_over_the_examples,
        ),
        Misconception(
            "your softmax runs over the whole minibatch; the probabilities of each row add up to 1",
            normalizes_over_the_minibatch,
        ),
        Misconception(
            "you compute all gradients at the first weights; each step starts from the weights "
            "of the step before",
            takes_all_gradients_at_the_first_weights,
        ),
    ),
    properties=(
        Property(
            "the weights of a unit that is dropped for all examples do not change, and the "
            "others follow the gradient",
            _dropped_units_rest_and_others_follow_the_loss,
        ),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES = (
    DROPOUT_MASK,
    DROPOUT_FORWARD,
    DROPOUT_MOMENTS,
    DROPOUT_BACKWARD,
    GEOMETRIC_ENSEMBLE,
    WEIGHT_SCALING,
    DROPOUT_SGD,
)
