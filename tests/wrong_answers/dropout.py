"""Wrong answers to the exercises of dropout."""

# mypy: allow-untyped-defs
# ruff: noqa: B905

import numpy as np

from optdl.checks.exercise import Function

# --- L2-16:mask: dropout_mask -------------------------------------------------------------------


def kept_instead_of_dropped(u, p):
    """Take p for the probability of being kept."""
    return (u < p) / p


def draw_equal_to_p_dropped(u, p):
    """Drop a draw that equals p."""
    return (u > p) / (1 - p)


def mask_without_scale(u, p):
    """Return zeros and ones."""
    return (u >= p).astype(float)


def mask_scaled_down(u, p):
    """Multiply by 1 - p in place of dividing."""
    return (u >= p) * (1 - p)


def mask_scaled_by_p(u, p):
    """Divide by p."""
    return np.where(u < p, 0, 1 / p)


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


def binomial_mask(x, p, rng, training):
    """Draw the mask with rng.binomial, which takes other numbers from the generator."""
    mask = rng.binomial(1, 1 - p, size=x.shape) / (1 - p) if training else np.ones(x.shape)
    return x * mask, mask


def flag_forgotten_in_the_signature(x, p, rng):
    """Define the function without its fourth parameter."""
    mask = (rng.random(x.shape) >= p) / (1 - p)
    return x * mask, mask


# --- L2-16:moments: dropout_moments -------------------------------------------------------------


def moments_without_the_scale(x, p):
    """Use a mask of zeros and ones."""
    return (1 - p) * x, p * (1 - p) * x**2


def second_moment_not_centered(x, p):
    """Forget to subtract the squared mean."""
    return 1.0 * x, x**2 / (1 - p)


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


def gradient_masked_without_scale(grad, mask):
    """Use only where the mask is zero."""
    return np.where(mask > 0, grad, 0.0)


def gradient_scaled_twice(grad, mask):
    """Multiply by the mask twice."""
    return grad * mask * mask


def gradient_divided(grad, mask):
    """Divide by the mask where it is not zero."""
    return np.divide(grad, mask, out=np.zeros_like(grad), where=mask != 0)


def dropped_entries_alone(grad, mask):
    """Let the gradient pass where the unit was dropped."""
    return grad * (mask == 0)


def gradient_and_mask_as_matrices(grad, mask):
    """Write @ where * belongs."""
    return grad @ mask.T


# --- L2-17:geometric: geometric_ensemble --------------------------------------------------------


def arithmetic_mean_of_subnetworks(W, b, x, keep):
    """Average the probabilities in place of their logarithms."""
    mean = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        mean += chance * scores / scores.sum()
    return mean


def subnetworks_count_alike(W, b, x, keep):
    """Give every subnetwork the weight 1/2ⁿ."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        logarithm += np.log(scores / scores.sum()) / 2 ** len(x)
    mean = np.exp(logarithm)
    return mean / mean.sum()


def geometric_mean_not_normalized(W, b, x, keep):
    """Forget the last division."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        logarithm += chance * np.log(scores / scores.sum())
    return np.exp(logarithm)


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


def subnetworks_scaled(W, b, x, keep):
    """Use the scaled mask of inverted dropout."""
    logarithm = np.zeros(len(b))
    for k in range(2 ** len(x)):
        mask = np.array([(k >> i) & 1 for i in range(len(x))])
        scores = np.exp(W @ (mask * x / keep) + b)
        chance = keep ** mask.sum() * (1 - keep) ** (len(x) - mask.sum())
        logarithm += chance * np.log(scores / scores.sum())
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


def bias_scaled_too(W, b, x, keep):
    """Scale the bias along with the inputs."""
    scores = np.exp(keep * (W @ x + b))
    return scores / scores.sum()


def inputs_divided_by_keep(W, b, x, keep):
    """Divide by the probability, as inverted dropout does in training."""
    scores = np.exp(W @ (x / keep) + b)
    return scores / scores.sum()


def scores_instead_of_probabilities(W, b, x, keep):
    """Forget the softmax."""
    return W @ (keep * x) + b


def sigmoid_for_softmax(W, b, x, keep):
    """Use a sigmoid for each class."""
    return 1 / (1 + np.exp(-(W @ (keep * x) + b)))


def shift_in_the_numerator_only(W, b, x, keep):
    """Subtract the maximum above the line and not below."""
    scores = W @ (keep * x) + b
    return np.exp(scores - scores.max()) / np.exp(scores).sum()


# --- L2-18: dropout_sgd -------------------------------------------------------------------------


def output_layer_moved_first(W, V, x, y, masks, lr):
    """Use the new V in the gradient of W."""
    for inputs, labels, mask in zip(x, y, masks):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        V = V - lr * error.T @ hidden / len(labels)
        W = W - lr * ((error @ V) * mask * (z > 0)).T @ inputs / len(labels)
    return W, V


def mask_forgotten_on_the_way_back(W, V, x, y, masks, lr):
    """Leave the mask out of the backward pass."""
    for inputs, labels, mask in zip(x, y, masks):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        error = error / len(labels)
        back = (error @ V) * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


def relu_forgotten_on_the_way_back(W, V, x, y, masks, lr):
    """Leave the slope of the ReLU out."""
    for inputs, labels, mask in zip(x, y, masks):
        hidden = mask * np.maximum(inputs @ W.T, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        error = error / len(labels)
        back = (error @ V) * mask
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


def cross_entropy_summed(W, V, x, y, masks, lr):
    """Add the losses of a minibatch up."""
    for inputs, labels, mask in zip(x, y, masks):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        back = (error @ V) * mask * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


def first_mask_for_all_steps(W, V, x, y, masks, lr):
    """Use the mask of the first step in all of them."""
    for inputs, labels in zip(x, y):
        z = inputs @ W.T
        hidden = masks[0] * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = scores / scores.sum(axis=1, keepdims=True) - np.eye(len(V))[labels]
        error = error / len(labels)
        back = (error @ V) * masks[0] * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
    return W, V


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


def softmax_down_the_columns(W, V, x, y, masks, lr):
    """Normalize over the examples in place of the classes."""
    for inputs, labels, mask in zip(x, y, masks):
        z = inputs @ W.T
        hidden = mask * np.maximum(z, 0)
        scores = np.exp(hidden @ V.T)
        error = (scores / scores.sum(axis=0) - np.eye(len(V))[labels]) / len(labels)
        back = (error @ V) * mask * (z > 0)
        W, V = W - lr * back.T @ inputs, V - lr * error.T @ hidden
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
        kept_instead_of_dropped,
        draw_equal_to_p_dropped,
        mask_without_scale,
        mask_scaled_down,
        mask_scaled_by_p,
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
        binomial_mask,
        flag_forgotten_in_the_signature,
    ),
    "L2-16:moments": (
        moments_without_the_scale,
        second_moment_not_centered,
        deviation_for_variance,
        noise_linear_in_x,
        odds_upside_down,
        moments_over_all_entries,
        moments_by_sampling,
    ),
    "L2-17:backward": (
        gradient_not_masked,
        gradient_masked_without_scale,
        gradient_scaled_twice,
        gradient_divided,
        dropped_entries_alone,
        gradient_and_mask_as_matrices,
    ),
    "L2-17:geometric": (
        arithmetic_mean_of_subnetworks,
        subnetworks_count_alike,
        geometric_mean_not_normalized,
        full_network_left_out,
        chances_exchanged,
        bases_mixed,
        subnetworks_scaled,
    ),
    "L2-17:scaling": (
        inputs_not_scaled,
        scaled_by_the_dropped_share,
        bias_scaled_too,
        inputs_divided_by_keep,
        scores_instead_of_probabilities,
        sigmoid_for_softmax,
        shift_in_the_numerator_only,
    ),
    "L2-18": (
        output_layer_moved_first,
        mask_forgotten_on_the_way_back,
        relu_forgotten_on_the_way_back,
        cross_entropy_summed,
        first_mask_for_all_steps,
        weights_of_the_caller_changed,
        softmax_down_the_columns,
        last_minibatch_skipped,
    ),
}
