"""Wrong answers to the exercises of dropout."""

# mypy: allow-untyped-defs
# ruff: noqa: B905

import numpy as np

from optdl.checks.exercise import Function

# --- L2-16:mask: dropout_mask -------------------------------------------------------------------


def mask_without_scale(u, p):
    """Return zeros and ones."""
    return (u >= p).astype(float)


def mask_of_whole_numbers(u, p):
    """Write the scale into an integer array."""
    mask = np.zeros(u.shape, dtype=int)
    mask[u >= p] = 1 / (1 - p)
    return mask


def draws_left_in_the_mask(u, p):
    """Keep the draw itself where a one belongs."""
    return np.where(u >= p, u, 0) / (1 - p)


# --- L2-16:forward: dropout_forward -------------------------------------------------------------


def dropped_at_inference_too(x, p, rng, training):
    """Ignore the flag."""
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


def scaled_at_inference(x, p, rng, training):
    """Scale by 1 - p at inference although training divides already."""
    if not training:
        return x * (1 - p), np.ones_like(x)
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


def one_mask_for_all_examples(x, p, rng, training):
    """Draw one mask and use it for every example."""
    if not training:
        return x, np.ones_like(x)
    mask = np.tile((rng.random(x.shape[1]) >= p) / (1 - p), (len(x), 1))
    return x * mask, mask


def mask_returned_unscaled(x, p, rng, training):
    """Scale the output and return the mask without its scale."""
    if not training:
        return x, np.ones_like(x)
    mask = (rng.random(x.shape) >= p).astype(float)
    return x * mask / (1 - p), mask


def mask_returned_first(x, p, rng, training):
    """Return the mask before the output."""
    mask = (rng.random(x.shape) >= p) / (1 - p) if training else np.ones(x.shape)
    return mask, x * mask


def no_mask_at_inference(x, p, rng, training):
    """Return None for the mask at inference."""
    if not training:
        return x, None
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


def flag_forgotten_in_the_signature(x, p, rng):
    """Define the function without its fourth parameter."""
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


# --- L2-16:moments: dropout_moments -------------------------------------------------------------


def deviation_for_variance(x, p):
    """Return the standard deviation."""
    return x, np.sqrt(p / (1 - p)) * np.abs(x)


def noise_linear_in_x(x, p):
    """Leave x unsquared, so that the variance takes the sign of x."""
    return x.copy(), p / (1 - p) * x


def odds_upside_down(x, p):
    """Write (1 - p)/p."""
    return x.copy(), (1 - p) / p * x**2


def moments_over_all_entries(x, p):
    """Return one mean and one variance for the whole array."""
    return np.mean(x), np.var(x) * p / (1 - p)


def moments_by_sampling(x, p):
    """Estimate the moments from ten thousand masks."""
    rng = np.random.default_rng(0)
    y = x * (rng.random((10_000, len(x))) >= p) / (1 - p)
    return y.mean(axis=0), y.var(axis=0)


# --- L2-17:backward: dropout_backward -----------------------------------------------------------


def gradient_not_masked(grad, mask):
    """Let the gradient pass everywhere, only scaled."""
    return grad * mask.max()


def gradient_scaled_twice(grad, mask):
    """Multiply by the mask twice."""
    return grad * mask * mask


def dropped_entries_alone(grad, mask):
    """Let the gradient pass where the unit was dropped."""
    return grad * (mask == 0)


def gradient_and_mask_as_matrices(grad, mask):
    """Write @ where * belongs."""
    return grad @ mask.T


# --- L2-17:geometric: geometric_ensemble --------------------------------------------------------


def subnetworks_count_alike(W, b, x, keep):
    """Give every subnetwork the weight 1/2ⁿ."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        logarithm += np.log(scores / scores.sum()) / 2 ** len(x)
    mean = np.exp(logarithm)
    return mean / mean.sum()


def full_network_left_out(W, b, x, keep):
    """Stop one mask early, before the one that keeps all."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x) - 1):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        logarithm += chance * np.log(scores / scores.sum())
    mean = np.exp(logarithm)
    return mean / mean.sum()


def chances_exchanged(W, b, x, keep):
    """Swap the probabilities of keeping and of dropping."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = (1 - keep) ** mask.sum() * keep ** (len(x) - mask.sum())
        logarithm += chance * np.log(scores / scores.sum())
    mean = np.exp(logarithm)
    return mean / mean.sum()


def bases_mixed(W, b, x, keep):
    """Take logarithms to base 2 and come back with exp."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        logarithm += chance * np.log2(scores / scores.sum())
    mean = np.exp(logarithm)
    return mean / mean.sum()


# --- L2-17:scaling: weight_scaling --------------------------------------------------------------


def inputs_not_scaled(W, b, x, keep):
    """Forget to scale."""
    scores = np.exp(W @ x + b)
    return scores / scores.sum()


def scaled_by_the_dropped_share(W, b, x, keep):
    """Multiply by p in place of 1 - p."""
    scores = np.exp(W @ ((1 - keep) * x) + b)
    return scores / scores.sum()


def sigmoid_for_softmax(W, b, x, keep):
    """Use a sigmoid for each class."""
    return 1 / (1 + np.exp(-(W @ (keep * x) + b)))


def shift_in_the_numerator_only(W, b, x, keep):
    """Subtract the maximum above the line and not below."""
    scores = W @ (keep * x) + b
    return np.exp(scores - scores.max()) / np.exp(scores).sum()


# --- L2-18: dropout_sgd -------------------------------------------------------------------------


def weights_of_the_caller_changed(W, V, x, y, masks, lr):
    """Update the caller's arrays in place."""
    for inputs, labels, mask in zip(x, y, masks):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        error = error / len(labels)
        back = (error @ V) * mask * (z > 0)
        W -= lr * back.T @ inputs
        V -= lr * error.T @ hidden
    return W, V


def last_minibatch_skipped(W, V, x, y, masks, lr):
    """Take one step too few."""
    for t in range(len(x) - 1):
        z = x[t] @ W.T
        hidden = masks[t] * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[y[t]]
        error = error / len(y[t])
        back = (error @ V) * masks[t] * (z > 0)
        W, V = W - lr * back.T @ x[t], V - lr * error.T @ hidden
    return W, V


WRONG: dict[str, tuple[Function, ...]] = {
    "L2-16:mask": (
        mask_without_scale,
        mask_of_whole_numbers,
        draws_left_in_the_mask,
    ),
    "L2-16:forward": (
        dropped_at_inference_too,
        scaled_at_inference,
        one_mask_for_all_examples,
        mask_returned_unscaled,
        mask_returned_first,
        no_mask_at_inference,
        flag_forgotten_in_the_signature,
    ),
    "L2-16:moments": (
        deviation_for_variance,
        noise_linear_in_x,
        odds_upside_down,
        moments_over_all_entries,
        moments_by_sampling,
    ),
    "L2-17:backward": (
        gradient_not_masked,
        gradient_scaled_twice,
        dropped_entries_alone,
        gradient_and_mask_as_matrices,
    ),
    "L2-17:geometric": (
        subnetworks_count_alike,
        full_network_left_out,
        chances_exchanged,
        bases_mixed,
    ),
    "L2-17:scaling": (
        inputs_not_scaled,
        scaled_by_the_dropped_share,
        sigmoid_for_softmax,
        shift_in_the_numerator_only,
    ),
    "L2-18": (
        weights_of_the_caller_changed,
        last_minibatch_skipped,
    ),
}
