"""Batch, minibatch and online methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

__all__ = ["minibatches", "sgd", "update_cost"]


def minibatches(m: int, n: int, rng: np.random.Generator) -> tuple[Int[np.ndarray, " _"], ...]:
    """Return the indices of the minibatches of one epoch (Source: L1-09).

    With n = m it is the *batch* method, with n = 1 the *online* method. Every example occurs once,
    after one call of ``rng.permutation(m)``; the last minibatch holds the remainder. Raises
    ValueError where n is not in 1 … m.

    >>> [len(indices) for indices in minibatches(10, 4, np.random.default_rng(0))]
    [4, 4, 2]
    """
    _require_batch_size(m, n)
    order = rng.permutation(m)
    return tuple(order[start : start + n] for start in range(0, m, n))


def _require_batch_size(m: int, n: int) -> None:
    if not 1 <= n <= m:
        raise ValueError(f"a minibatch of {m} examples holds 1 to {m} of them; got n = {n}")


@dataclass(frozen=True)
class UpdateCost:
    """Name of a method, gradients for one update and updates for one pass through the data.

    The name is ``batch``, ``minibatch`` or ``online``; the gradients are those of single examples.
    """

    name: str
    gradients_per_update: int
    updates_per_epoch: int


def update_cost(m: int, n: int) -> UpdateCost:
    """Return name and cost of training on m examples with minibatches of n (Source: L1-09).

    An epoch costs m gradients for every n; the number of updates is ⌈m/n⌉. Raises ValueError where
    n is not in 1 … m.

    >>> update_cost(50_000, 100)
    UpdateCost(name='minibatch', gradients_per_update=100, updates_per_epoch=500)
    """
    _require_batch_size(m, n)
    name = {m: "batch", 1: "online"}.get(n, "minibatch")
    return UpdateCost(name, n, -(-m // n))


def sgd(
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    theta: Float[np.ndarray, " p"],
    batches: Sequence[np.ndarray],
    lr: float,
) -> Float[np.ndarray, "t p"]:
    """Take a gradient step for each minibatch; return all iterates, the start first.

    ``gradient(theta, indices)`` is the mean gradient over these examples, and ``batches`` are
    arrays of indices, such as those of :func:`minibatches`. Source: L1-09.

    >>> sgd(lambda theta, indices: theta, np.array([8.0]), [np.array([0])] * 3, lr=0.5)[:, 0]
    array([8., 4., 2., 1.])
    """
    path = [theta]
    for indices in batches:
        path.append(path[-1] - lr * gradient(path[-1], indices))
    return np.array(path)
