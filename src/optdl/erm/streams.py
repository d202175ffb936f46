"""A stream of fresh data."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from optdl.erm.arrays import Batch, Features, Weights
from optdl.erm.batch_sizes import squared_gradients
from optdl.erm.epochs import sgd
from optdl.erm.risk import Population

__all__ = ["stream", "stream_sgd"]


def stream(population: Population, n: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Yield minibatches of n new examples without end; no example comes twice (Source: L1-11).

    Parameters θ that depend only on earlier minibatches are independent of the next one. Its
    gradient at θ is therefore an unbiased estimate of ∇J*(θ), the gradient of the risk.

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
    """Pass once through a stream with SGD on ½(wᵀx − y)² and return all iterates (Source: L1-11).

    The stream comes in its order, n examples at a time. Raises ValueError where m is not a multiple
    of n.

    >>> x, y = np.ones((2, 1)), np.array([1.0, 1.0])
    >>> stream_sgd(np.zeros(1), x, y, lr=0.5, n=1)[:, 0]
    array([0.  , 0.5 , 0.75])
    """
    if n < 1 or len(y) % n:
        raise ValueError(f"the stream of {len(y)} examples must divide into minibatches of {n}")
    batches = list(np.arange(len(y)).reshape(-1, n))
    return sgd(lambda w, i: squared_gradients(w, x[i], y[i]).mean(axis=0), w, batches, lr)
