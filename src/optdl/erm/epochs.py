"""Batch, minibatch and online methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

__all__ = ["minibatches", "sgd", "update_cost"]


def minibatches(m: int, n: int, rng: np.random.Generator) -> tuple[Int[np.ndarray, " _"], ...]:
    """Return the indices of the minibatches of one epoch (Source: L1-09).

    Parameters
    ----------
    n : int
        Examples in a minibatch: n = m is the *batch* method, n = 1 the *online* method.
    rng : numpy.random.Generator
        Shuffles the examples, by one call of ``rng.permutation(m)``.

    Returns
    -------
    tuple of int arrays
        Every example occurs exactly once; the last minibatch holds the remainder.

    Examples
    --------
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
    """Name and cost of training with minibatches of one size.

    Parameters
    ----------
    name : str
        ``batch``, ``minibatch`` or ``online``.
    gradients_per_update : int
        Per-example gradients computed for one update.
    updates_per_epoch : int
        Updates for one pass through the data.
    """

    name: str
    gradients_per_update: int
    updates_per_epoch: int


def update_cost(m: int, n: int) -> UpdateCost:
    """Return name and cost of training on m examples with minibatches of n (Source: L1-09).

    An epoch costs m gradients for every n; the number of updates is ⌈m/n⌉.

    Raises
    ------
    ValueError
        If n is not in 1 … m.

    Examples
    --------
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
    """Take one gradient step for each minibatch and return all iterates, the start first.

    Source: L1-09

    Parameters
    ----------
    gradient : callable
        ``gradient(theta, indices)`` gives the mean gradient over these examples.
    batches : sequence of index arrays
        The minibatches, for instance those of :func:`minibatches`.

    Examples
    --------
    >>> sgd(lambda theta, indices: theta, np.array([8.0]), [np.array([0])] * 3, lr=0.5)[:, 0]
    array([8., 4., 2., 1.])
    """
    path = [theta]
    for indices in batches:
        path.append(path[-1] - lr * gradient(path[-1], indices))
    return np.array(path)
