"""Batch, minibatch and online training, and a stream of fresh data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from optdl.erm.noise import squared_gradients
from optdl.erm.risk import Population

__all__ = ["minibatches", "sgd", "stored_activations", "stream", "stream_sgd", "update_cost"]

Features = Float[np.ndarray, "m d"]
Weights = Float[np.ndarray, " d"]
Batch = tuple[Float[np.ndarray, "n d"], Shaped[np.ndarray, " n"]]


def minibatches(m: int, n: int, rng: np.random.Generator) -> tuple[Int[np.ndarray, " _"], ...]:
    """Return the indices of the minibatches of one epoch. Source: L1-09.

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

    Raises
    ------
    ValueError
        If n is not in 1 … m.

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
    """Return name and cost of training on m examples with minibatches of n. Source: L1-09.

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


def stored_activations(n: int, widths: Sequence[int]) -> int:
    """Return how many numbers a dense network stores for the backward pass. Source: L1-09.

    Every layer stores its input, one row for each example: n (w₀ + w₁ + … + w_{L−1}) numbers for
    the widths w₀ (input) … w_L (output). The memory is proportional to n.

    Notes
    -----
    The weights are not counted: they do not depend on n.

    Examples
    --------
    >>> stored_activations(1, [784, 100, 10]), stored_activations(64, [784, 100, 10])
    (884, 56576)
    """
    return n * sum(widths[:-1])


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


def stream(population: Population, n: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Yield minibatches of n new examples without end; no example comes twice. Source: L1-11.

    Notes
    -----
    Parameters θ that depend only on earlier minibatches are independent of the next one. Its
    gradient at θ is therefore an unbiased estimate of ∇J*(θ), the gradient of the risk.

    Examples
    --------
    >>> from optdl.erm import LinearPopulation
    >>> population = LinearPopulation(np.array([1.0]), np.eye(1), noise=1.0)
    >>> x, y = next(stream(population, 4, np.random.default_rng(0)))
    >>> x.shape, y.shape
    ((4, 1), (4,))
    """
    while True:
        yield population.sample(n, rng)


def stream_sgd(
    w: Weights, x: Features, y: Float[np.ndarray, " m"], lr: float, n: int
) -> Float[np.ndarray, "t d"]:
    """Pass once through a stream with SGD on ½(wᵀx − y)² and return all iterates. Source: L1-11.

    Parameters
    ----------
    x, y : (m, d) and (m,) arrays
        The stream, in the order in which it arrives. Each example is used once.
    n : int
        Minibatch size; m is a multiple of it.

    Returns
    -------
    (m/n + 1, d) array
        The iterates, the start first.

    Raises
    ------
    ValueError
        If m is not a multiple of n.

    Examples
    --------
    >>> x, y = np.ones((2, 1)), np.array([1.0, 1.0])
    >>> stream_sgd(np.zeros(1), x, y, lr=0.5, n=1)[:, 0]
    array([0.  , 0.5 , 0.75])
    """
    if n < 1 or len(y) % n:
        raise ValueError(f"the stream of {len(y)} examples must divide into minibatches of {n}")
    batches = list(np.arange(len(y)).reshape(-1, n))
    return sgd(lambda w, i: squared_gradients(w, x[i], y[i]).mean(axis=0), w, batches, lr)
