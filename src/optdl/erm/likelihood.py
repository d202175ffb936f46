"""The log-likelihood of softmax regression, and its gradients."""

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Classes, Features, require_labels
from optdl.special import log_softmax

__all__ = ["batch_gradient", "per_example_gradients"]


def residuals(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "m c"]:
    """Return e_y − softmax(Wᵀx) of each example."""
    require_labels(labels, x, "a class 0 … c−1", labels >= 0)
    return np.eye(weights.shape[1])[labels] - np.exp(log_softmax(x @ weights))


def per_example_gradients(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "m d c"]:
    r"""Return the gradient of log p(y | x) with respect to W, for each example (Source: L1-06).

    .. math:: \nabla_W \log p(y \mid x) = x\,(e_y - \operatorname{softmax}(W^T x))^T

    >>> per_example_gradients(np.zeros((1, 2)), np.array([[3.0]]), np.array([1]))
    array([[[-1.5,  1.5]]])
    """
    residual = residuals(weights, x, labels)
    return x[:, :, None] * residual[:, None, :]


def batch_gradient(
    weights: Float[np.ndarray, "d c"], x: Features, labels: Classes
) -> Float[np.ndarray, "d c"]:
    """Return the gradient of the mean log-likelihood, one array for all examples.

    If all examples are copied equally often it does not change. Source: L1-06, L1-08.

    >>> batch_gradient(np.zeros((1, 2)), np.array([[3.0], [1.0]]), np.array([1, 1]))
    array([[-1.,  1.]])
    """
    residual = residuals(weights, x, labels)
    return x.T @ residual / len(labels)
