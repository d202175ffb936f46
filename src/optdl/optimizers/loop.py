"""The loop that takes many steps, and the gradient of a minibatch that it may be given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int

from optdl.optimizers.base import Gradient, Optimizer
from optdl.optimizers.trees import Tree
from optdl.problems import Problem

__all__ = ["minibatch_gradient", "run"]


def run(
    opt: Optimizer,
    objective: Problem | Gradient,
    theta: Tree,
    steps: int,
    *,
    stop: Callable[[Tree], bool] | None = None,
) -> Any:
    """Step from ``theta`` and return every iterate, the start first (Source: L1-24, L2-09).

    For an (n,) NumPy array the iterates are the rows of an array, otherwise a list of trees. There
    are ``steps + 1`` of them, or fewer when the criterion ``stop`` was met. The criterion maps θ to
    true where it is good enough. Raises ValueError where ``steps`` is negative.

    >>> from optdl.optimizers import SGD
    >>> run(SGD(lr=0.5), lambda theta: theta, np.array([8.0]), steps=3).ravel()
    array([8., 4., 2., 1.])
    >>> len(run(SGD(lr=0.5), lambda theta: theta, np.array([8.0]), 99, stop=lambda x: x[0] < 1))
    5
    """
    if steps < 0:
        raise ValueError(f"the number of steps must be 0 or more; got {steps}")
    grad = objective.gradient if isinstance(objective, Problem) else objective
    path, state = [theta], opt.init(theta)
    while len(path) <= steps and not (stop and stop(theta)):
        theta, state = opt.step(theta, state, grad)
        path.append(theta)
    return np.array(path) if isinstance(path[0], np.ndarray) else path


def minibatch_gradient(
    gradient: Callable[[Tree, Int[np.ndarray, " n"]], Tree],
    m: int,
    n: int,
    rng: np.random.Generator,
) -> Gradient:
    r"""Return a gradient that is estimated anew from n of m examples in each call (Source: L1-24).

    .. math:: g = \frac1n \sum_{i \in B} \nabla_\theta L(f(x^{(i)}, \theta), y^{(i)})

    Here ``gradient(theta, rows)`` is the mean gradient of the examples with these row numbers; a
    minibatch holds no example twice. Raises ValueError where n is not in 1 … m.

    >>> from optdl.optimizers import SGD
    >>> y = np.arange(4.0)
    >>> mean = lambda theta, rows: theta - y[rows].mean()
    >>> whole = minibatch_gradient(mean, m=4, n=4, rng=np.random.default_rng(0))
    >>> run(SGD(lr=1.0), whole, np.array([7.0]), steps=1).ravel()
    array([7. , 1.5])
    """
    if not 1 <= n <= m:
        raise ValueError(f"a minibatch has 1 to m = {m} examples; got n = {n}")
    return lambda theta: gradient(theta, rng.choice(m, size=n, replace=False))
