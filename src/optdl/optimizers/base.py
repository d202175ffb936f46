"""What all optimizers share: ``init`` and ``step``, and the loop that takes many steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Int

from optdl.optimizers.schedules import Schedule
from optdl.optimizers.trees import (
    Array,
    Tree,
    is_numpy,
    map_arrays,
    match,
    rebuild,
    require_finite,
    zeros,
)
from optdl.optimizers.validation import require_rate
from optdl.problems import Problem

__all__ = [
    "KERNELS",
    "FirstOrder",
    "Gradient",
    "Kernel",
    "Optimizer",
    "State",
    "Steps",
    "minibatch_gradient",
    "run",
]

Gradient = Callable[[Tree], Tree]
"""θ ↦ ∇J(θ), a tree like θ."""

State = Any
"""A named tuple: ``t`` counts the steps taken, and each other field is a tree like θ."""


class Steps(NamedTuple):
    """State of a method that remembers nothing but its number of steps."""

    t: int


@dataclass(frozen=True)
class Optimizer:
    """What all methods share: a learning rate, ``init``, ``step``, and the point of the gradient.

    Parameters
    ----------
    lr : float or callable
        The learning rate η ≥ 0, or a schedule k ↦ η_k with k = 0 in the first step.

    Raises
    ------
    ValueError
        If a parameter of the method is outside its range.

    Notes
    -----
    Source: L1-24
    """

    lr: float | Schedule

    memory: ClassVar[Callable[..., State]] = Steps

    def __post_init__(self) -> None:
        if not callable(self.lr):
            require_rate("lr", self.lr)

    def init(self, theta: Tree) -> State:
        """Return the state before the first step, in which every memory is zero."""
        arrays = list(match(theta, theta, "theta"))
        names = self.memory._fields[1:]  # type: ignore[attr-defined]
        return self.memory(0, *(rebuild(theta, iter(map(zeros, arrays))) for _ in names))

    def interim(self, theta: Tree, state: State) -> Tree:
        """Return the point at which the method wants the gradient: here θ itself."""
        return theta

    def step(
        self,
        theta: Tree,
        state: State,
        grad: Gradient,
        *,
        check_finite: bool = True,
        in_place: bool = False,
    ) -> tuple[Tree, State]:
        """Take one step.

        Parameters
        ----------
        theta : tree
            The parameters θ.
        state : named tuple
            What ``init`` or the last step returned.
        grad : callable
            θ ↦ gradient, a tree like θ. It is called once, at ``interim(theta, state)``.
        check_finite : bool
            Look for NaN and infinity in the gradient. Without it a step saves one reading of the
            gradient, and on a GPU the wait for the answer.
        in_place : bool
            Write over the arrays of ``theta`` and ``state``, which are otherwise left as they are.
            This saves memory and time, and lets a step move the parameters of a torch module.

        Returns
        -------
        theta, state
            New ones.

        Raises
        ------
        ValueError
            If the gradient or the state has another structure or shape than θ, or if the gradient
            is not finite.
        TypeError
            If θ holds anything but arrays of floating-point numbers.
        """
        raise NotImplementedError

    def rate(self, t: int) -> float:
        """Return the learning rate of step number t, which counts from 1."""
        if not callable(self.lr):
            return self.lr
        lr = float(self.lr(t - 1))
        require_rate(f"lr({t - 1})", lr)
        return lr

    def _gradient(
        self, theta: Tree, state: State, grad: Gradient, check_finite: bool
    ) -> list[Array]:
        """Return the arrays of the gradient that the method asks for."""
        g = list(match(theta, grad(self.interim(theta, state)), "gradient"))
        if check_finite:
            require_finite(g, state.t + 1)
        return g


@dataclass(frozen=True)
class FirstOrder(Optimizer):
    """A method that steps each array of θ by itself, with its gradient and what it remembers.

    A subclass names its ``memory``, a named tuple, and defines ``update``, the formula of one step.
    """

    update: ClassVar[Callable[..., tuple[Array, ...]]]
    """``update(t, theta, g, *memory)`` returns one array of θ and its memory after step t."""

    look_ahead: ClassVar[Callable[..., Array] | None] = None
    """``look_ahead(theta, *memory)`` returns where the gradient is wanted, if that is not θ."""

    def interim(self, theta: Tree, state: State) -> Tree:
        """Return the point at which the method wants the gradient: θ, or ``look_ahead`` of it."""
        if self.look_ahead is None:
            return theta
        kernel = KERNELS.get(type(self))
        if kernel is None or kernel.look_ahead is None:
            return map_arrays(self.look_ahead, theta, *state[1:])
        return map_arrays(kernel.look_ahead(self), theta, *state[1:])

    def step(
        self,
        theta: Tree,
        state: State,
        grad: Gradient,
        *,
        check_finite: bool = True,
        in_place: bool = False,
    ) -> tuple[Tree, State]:
        """Take one step; see :meth:`Optimizer.step`."""
        arrays = list(match(theta, theta, "theta"))
        g = self._gradient(theta, state, grad, check_finite)
        memories = [match(theta, tree, "state") for tree in state[1:]]
        t = state.t + 1
        stepped = [
            self._update(t, old, g_old, in_place)
            for old, g_old in zip(zip(arrays, *memories, strict=True), g, strict=True)
        ]
        new, *memory = (rebuild(theta, iter(column)) for column in zip(*stepped, strict=True))
        return new, type(state)(t, *memory)

    def _update(self, t: int, old: Sequence[Array], g: Array, in_place: bool) -> tuple[Array, ...]:
        """Return what ``update`` does, computed by a kernel where there is one."""
        theta, *memory = old
        kernel = KERNELS.get(type(self))
        if kernel is None:
            new = self.update(t, theta, g, *memory)
        else:
            into = old if in_place else [None] * len(old)
            new = kernel.update(self, t, theta, g, *memory, into=into)
        return _write(old, new) if in_place else tuple(map(_as_array, new))


class Kernel(NamedTuple):
    """Faster code for the ``update`` of a class, with the same numbers up to rounding."""

    update: Callable[..., tuple[Array, ...]]
    """Like ``FirstOrder.update``, with ``into``: for each result an array to write to, or None."""
    look_ahead: Callable[[Any], Callable[..., Array]] | None = None
    """Makes the ``look_ahead`` of an optimizer."""


KERNELS: dict[type[FirstOrder], Kernel] = {}
"""The classes that have a kernel; :mod:`optdl.optimizers.fused` fills the table."""


def _write(old: Sequence[Array], new: Sequence[Array]) -> tuple[Array, ...]:
    """Write the new arrays over the old ones."""
    for before, after in zip(old, new, strict=True):
        if after is not before:
            before[...] = after
    return tuple(old)


def _as_array(x: Array) -> Array:
    # NumPy makes a number of an array without axes
    return np.asarray(x) if is_numpy(x) else x


def run(
    opt: Optimizer,
    objective: Problem | Gradient,
    theta: Tree,
    steps: int,
    *,
    stop: Callable[[Tree], bool] | None = None,
) -> Any:
    """Step from ``theta`` and return every iterate, the start first.

    Parameters
    ----------
    opt : Optimizer
        The method.
    objective : Problem or callable
        What is minimized, or its gradient θ ↦ ∇J.
    theta : tree
        The start.
    steps : int
        The largest number of steps, 0 or more.
    stop : callable, optional
        The stopping criterion: θ ↦ true when it is good enough.

    Returns
    -------
    (t, n) array or list
        For an (n,) NumPy array the iterates as rows, otherwise a list of trees. There are
        ``steps + 1`` of them, or fewer when the criterion was met.

    Notes
    -----
    Source: L1-24, L2-09

    Examples
    --------
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
    return np.array(path) if isinstance(theta, np.ndarray) else path


def minibatch_gradient(
    gradient: Callable[[Tree, Int[np.ndarray, " n"]], Tree],
    m: int,
    n: int,
    rng: np.random.Generator,
) -> Gradient:
    r"""Return a gradient that is estimated anew from n of m examples in each call.

    .. math:: g = \frac1n \sum_{i \in B} \nabla_\theta L(f(x^{(i)}, \theta), y^{(i)})

    Parameters
    ----------
    gradient : callable
        ``gradient(theta, rows)`` is the mean gradient of the examples with these row numbers.
    m, n : int
        Examples in the sample and in a minibatch, 1 ≤ n ≤ m. A minibatch holds no example twice.
    rng : numpy.random.Generator
        Draws the minibatches.

    Raises
    ------
    ValueError
        If n is not between 1 and m.

    Notes
    -----
    Source: L1-24

    Examples
    --------
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
