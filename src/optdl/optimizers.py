"""Optimizers as small immutable objects, each written as the box of the lecture.

>>> opt = Momentum(lr=0.1, alpha=0.9)
>>> theta = np.array([1.0, 2.0])
>>> state = opt.init(theta)
>>> theta, state = opt.step(theta, state, grad=lambda theta: theta)
>>> theta, state.v
(array([0.9, 1.8]), array([-0.1, -0.2]))

``theta`` is a NumPy array, a torch tensor on any device, or lists, tuples and dicts of them, nested
as you like. ``step`` calls ``grad`` where the method wants the gradient, changes none of its
arguments, and returns new parameters and a new state. Tensors come back detached. A large network
is cheaper to step with ``in_place=True``.

Letters, fixed for the module: θ parameters, g gradient, v velocity, r mean or sum of squared
gradients, d mean of squared steps, m mean gradient, t the number of the step, 1 for the first.
The averages keep the share ρ, β₁ or β₂ of the **old** value, as in L1; L2 gives these names to the
share of the **new** one, and the classmethods ``from_l2`` translate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from optdl.problems import Problem

__all__ = [
    "SGD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "DeltaBarDelta",
    "ExponentialDecay",
    "LinearDecay",
    "Momentum",
    "Nesterov",
    "Newton",
    "Optimizer",
    "PowerDecay",
    "RMSProp",
    "RMSPropNesterov",
    "RobbinsMonro",
    "change_of_variable",
    "measured_seconds",
    "minibatch_gradient",
    "noise_floor",
    "preconditioned_descent",
    "robbins_monro",
    "run",
    "scaling_exponent",
    "solve_flops",
    "terminal_velocity",
    "torch_equivalent",
    "velocity",
]

Tree = Any
"""A NumPy array, a torch tensor, or a list, tuple or dict of trees."""

Array = Any
"""One leaf of a tree: a NumPy array or a torch tensor."""

Schedule = Callable[[int], float]
"""k ↦ ε_k, the rate of iteration k; the first iteration has k = 0."""

Gradient = Callable[[Tree], Tree]
Into = Sequence[Array | None]
Vector = Float[np.ndarray, " n"]
AnyShape = Float[np.ndarray, "..."]
Numbers = Sequence[int] | Sequence[float] | np.ndarray
Matrix = Float[np.ndarray, "n n"]


# --- Step sizes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearDecay:
    r"""A rate that falls along a line for τ iterations and then stays.

    .. math:: \epsilon_k = (1 - \alpha)\,\epsilon_0 + \alpha\,\epsilon_\tau, \qquad
        \alpha = \min(k/\tau,\ 1)

    Parameters
    ----------
    first : float
        ε₀ ≥ 0.
    tau : int
        τ ≥ 1, the iterations of the descent.
    last : float, optional
        ε_τ ≥ 0; 1 % of ε₀ when not given.

    Raises
    ------
    ValueError
        If a rate is negative or τ is less than 1.

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> schedule = LinearDecay(first=1.0, tau=4, last=0.2)
    >>> [round(schedule(k), 3) for k in (0, 1, 2, 4, 100)]
    [1.0, 0.8, 0.6, 0.2, 0.2]
    """

    first: float
    tau: int
    last: float | None = None

    def __post_init__(self) -> None:
        _require_rate("first", self.first)
        _require_rate("last", self.final)
        _require_count("tau", self.tau)

    @property
    def final(self) -> float:
        """The rate from iteration τ on."""
        return 0.01 * self.first if self.last is None else self.last

    def __call__(self, k: int) -> float:
        """Return ε_k."""
        alpha = min(k / self.tau, 1.0)
        return (1 - alpha) * self.first + alpha * self.final


@dataclass(frozen=True)
class PowerDecay:
    r"""A rate that falls like a power of the iteration.

    .. math:: \epsilon_k = \epsilon_0\,(1 + k/\tau)^{-p}

    It obeys the conditions of Robbins and Monro exactly when ½ < p ≤ 1.

    Parameters
    ----------
    first : float
        ε₀ ≥ 0.
    power : float
        p ≥ 0.
    tau : int
        τ ≥ 1: after τ iterations the rate has fallen by the factor 2^p.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> [PowerDecay(1.0, power=1.0)(k) for k in (0, 1, 3)]
    [1.0, 0.5, 0.25]
    """

    first: float
    power: float
    tau: int = 1

    def __post_init__(self) -> None:
        _require_rate("first", self.first)
        _require_count("tau", self.tau)
        if not 0 <= self.power < math.inf:
            raise ValueError(f"power must be 0 or more, got {self.power}: the rate would grow")

    def __call__(self, k: int) -> float:
        """Return ε_k."""
        return float(self.first * (1 + k / self.tau) ** -self.power)


@dataclass(frozen=True)
class ExponentialDecay:
    r"""A rate that shrinks by the same factor in each iteration.

    .. math:: \epsilon_k = \epsilon_0\, c^k

    Its sum is finite, so that gradient descent can stop short of the minimum.

    Parameters
    ----------
    first : float
        ε₀ ≥ 0.
    factor : float
        c, between 0 and 1.

    Raises
    ------
    ValueError
        If a parameter is outside its range.

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> [ExponentialDecay(1.0, factor=0.5)(k) for k in (0, 1, 3)]
    [1.0, 0.5, 0.125]
    """

    first: float
    factor: float

    def __post_init__(self) -> None:
        _require_rate("first", self.first)
        _require_share("factor", self.factor, "the rate would not fall; use a plain number")

    def __call__(self, k: int) -> float:
        """Return ε_k."""
        return float(self.first * self.factor**k)


class RobbinsMonro(NamedTuple):
    """The two conditions under which SGD converges, each true or false."""

    sum_diverges: bool
    """Σ ε_k = ∞: the steps can reach any point."""
    squares_converge: bool
    """Σ ε_k² < ∞: the noise dies out."""


def robbins_monro(
    lr: float | LinearDecay | PowerDecay | ExponentialDecay,
) -> RobbinsMonro:
    r"""Tell whether a schedule obeys the conditions of Robbins and Monro.

    .. math:: \sum_k \epsilon_k = \infty, \qquad \sum_k \epsilon_k^2 < \infty

    The answer comes from the schedule's formula: no finite number of terms could give it.

    Parameters
    ----------
    lr : float, LinearDecay, PowerDecay or ExponentialDecay
        The rate; a number is a constant rate.

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> robbins_monro(PowerDecay(0.1, power=1.0))
    RobbinsMonro(sum_diverges=True, squares_converge=True)
    >>> robbins_monro(LinearDecay(0.1, tau=100))
    RobbinsMonro(sum_diverges=True, squares_converge=False)
    """
    if isinstance(lr, PowerDecay) and lr.first > 0:
        return RobbinsMonro(lr.power <= 1, lr.power > 0.5)
    if isinstance(lr, LinearDecay | float | int):
        forever = (lr.final if isinstance(lr, LinearDecay) else lr) > 0
        return RobbinsMonro(forever, not forever)
    return RobbinsMonro(sum_diverges=False, squares_converge=True)


def noise_floor(lr: float, curvature: float, sigma: float) -> float:
    r"""Return the mean squared error at which SGD with a constant rate stalls.

    On :math:`\tfrac12 \lambda\theta^2`, with gradients that carry noise of variance σ²,

    .. math:: \mathbb E[\theta^2] \to \frac{\epsilon\,\sigma^2}{\lambda\,(2 - \epsilon\lambda)}

    Parameters
    ----------
    lr : float
        ε, below 2/λ.
    curvature : float
        λ > 0.
    sigma : float
        Standard deviation of the gradient's noise.

    Raises
    ------
    ValueError
        If the iteration is not stable: ε outside (0, 2/λ).

    Notes
    -----
    Source: L1-25

    Examples
    --------
    >>> noise_floor(lr=1.0, curvature=1.0, sigma=3.0)
    9.0
    """
    if not 0 < lr * curvature < 2:
        raise ValueError(
            f"lr · curvature must lie between 0 and 2, got {lr * curvature:g}: "
            "outside it SGD runs away and has no floor"
        )
    return lr * sigma**2 / (curvature * (2 - lr * curvature))


# --- What all methods share -------------------------------------------------------------------


class Steps(NamedTuple):
    """State of a method that remembers nothing but its number of steps."""

    t: int


class Velocity(NamedTuple):
    """State of the momentum methods."""

    t: int
    v: Tree


class Squares(NamedTuple):
    """State of AdaGrad and RMSProp."""

    t: int
    r: Tree


class SquaresVelocity(NamedTuple):
    """State of RMSProp with Nesterov momentum."""

    t: int
    r: Tree
    v: Tree


class SquaresSteps(NamedTuple):
    """State of AdaDelta."""

    t: int
    r: Tree
    d: Tree


class Moments(NamedTuple):
    """State of Adam."""

    t: int
    m: Tree
    r: Tree


class Rates(NamedTuple):
    """State of delta-bar-delta."""

    t: int
    rates: Tree
    trend: Tree


State = Any
"""One of the named tuples above; ``t`` counts the steps taken."""


@dataclass(frozen=True)
class Optimizer:
    """What all methods share: a rate, ``init``, ``step``, and the place of the gradient.

    A method defines ``update``, which steps one array, and its ``memory``, a named tuple.

    Parameters
    ----------
    lr : float or callable
        The learning rate ε ≥ 0, or a schedule k ↦ ε_k with k = 0 in the first step.

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
            _require_rate("lr", self.lr)

    def init(self, theta: Tree) -> State:
        """Return the state before the first step: every memory is zero."""
        arrays = list(_match(theta, theta, "theta"))
        names = self.memory._fields[1:]  # type: ignore[attr-defined]
        return self.memory(0, *(_rebuild(theta, iter(map(_zeros, arrays))) for _ in names))

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
            θ ↦ gradient, a tree like θ. It is called once, where the method says.
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
            If θ holds something else than arrays of floating-point numbers.
        """
        arrays, g = self._arrays(theta, state, grad, check_finite)
        memories = [_match(theta, tree, "state") for tree in state[1:]]
        t = state.t + 1
        stepped = [
            self._update(t, leaf, g_leaf, in_place)
            for leaf, g_leaf in zip(zip(arrays, *memories, strict=True), g, strict=True)
        ]
        new, *memory = (_rebuild(theta, iter(column)) for column in zip(*stepped, strict=True))
        return new, type(state)(t, *memory)

    def update(
        self, t: int, theta: Array, g: Array, *memory: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return one array of θ and its memories after step t.

        ``into`` holds an array for each result to be written to, or None for a new one.
        """
        raise NotImplementedError

    def _update(self, t: int, old: Sequence[Array], g: Array, in_place: bool) -> tuple[Array, ...]:
        theta, *memory = old
        if not in_place:
            return self.update(t, theta, g, *memory, into=[None] * len(old))
        new = self.update(t, theta, g, *memory, into=old)
        for before, after in zip(old, new, strict=True):
            if after is not before:
                before[...] = after
        return tuple(old)

    def rate(self, t: int) -> float:
        """Return the learning rate of step number t, which counts from 1."""
        if not callable(self.lr):
            return self.lr
        lr = float(self.lr(t - 1))
        _require_rate(f"lr({t - 1})", lr)
        return lr

    def _arrays(
        self, theta: Tree, state: State, grad: Gradient, check_finite: bool
    ) -> tuple[list[Array], list[Array]]:
        """Return the arrays of θ, and those of the gradient that the method asks for."""
        arrays = list(_match(theta, theta, "theta"))
        g = list(_match(theta, grad(self.interim(theta, state)), "gradient"))
        if check_finite:
            _require_finite(g, state.t + 1)
        return arrays, g


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
    >>> y = np.arange(4.0)
    >>> mean = lambda theta, rows: theta - y[rows].mean()
    >>> whole = minibatch_gradient(mean, m=4, n=4, rng=np.random.default_rng(0))
    >>> run(SGD(lr=1.0), whole, np.array([7.0]), steps=1).ravel()
    array([7. , 1.5])
    """
    if not 1 <= n <= m:
        raise ValueError(f"a minibatch has 1 to m = {m} examples; got n = {n}")
    return lambda theta: gradient(theta, rng.choice(m, size=n, replace=False))


# --- Gradient descent, and its velocity -------------------------------------------------------


@dataclass(frozen=True)
class SGD(Optimizer):
    r"""Gradient descent; stochastic when the gradient comes from a minibatch.

    .. math:: \theta \leftarrow \theta - \epsilon\, g

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.

    Notes
    -----
    Source: L1-24

    Examples
    --------
    >>> opt, theta = SGD(lr=0.5), {"weight": np.array([4.0])}
    >>> opt.step(theta, opt.init(theta), grad=lambda theta: theta)
    ({'weight': array([2.])}, Steps(t=1))
    """

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ after step t."""
        return (_sum(1.0, theta, -self.rate(t), g, into[0]),)  # θ ← θ − ε g


@dataclass(frozen=True)
class Momentum(Optimizer):
    r"""Gradient descent with a velocity, also called heavy ball.

    .. math:: v \leftarrow \alpha v - \epsilon\, g, \qquad \theta \leftarrow \theta + v

    ``torch.optim.SGD(momentum=alpha)`` remembers b = −v/ε. It takes the same steps as long as the
    rate is constant; when ε changes, it rescales the whole velocity at once.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    alpha : float
        α in [0, 1), the share of the velocity that is kept.

    Notes
    -----
    Source: L1-26

    Examples
    --------
    >>> opt = Momentum(lr=1.0, alpha=0.5)
    >>> run(opt, lambda theta: np.array([-1.0]), np.array([0.0]), steps=3).ravel()
    array([0.  , 1.  , 2.5 , 4.25])
    """

    alpha: float = 0.9

    memory: ClassVar[Callable[..., State]] = Velocity

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share("alpha", self.alpha, "a velocity that is kept whole never dies down")

    @classmethod
    def from_l2(cls, eta: float, gamma: float) -> Momentum:
        r"""Return the optimizer that L2 writes with a coefficient of friction γ.

        .. math:: u^{(t)} = \gamma u^{(t-1)} - \eta\,\partial L, \quad u^{(0)} = 0, \qquad
            \vartheta^{(t)} = \vartheta^{(t-1)} + u^{(t)}

        γ is α, η is ε, u is v. The larger γ, the *less* friction there is.

        Notes
        -----
        Source: L2-03

        Examples
        --------
        >>> Momentum.from_l2(eta=0.1, gamma=0.9)
        Momentum(lr=0.1, alpha=0.9)
        """
        return cls(lr=eta, alpha=gamma)

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, v: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ and v after step t."""
        v = _sum(self.alpha, v, -self.rate(t), g, into[1])  # v ← α v − ε g
        return _sum(1.0, theta, 1.0, v, into[0]), v  # θ ← θ + v


@dataclass(frozen=True)
class Nesterov(Momentum):
    r"""Momentum with the gradient of the interim point, where the velocity alone would lead.

    .. math:: \tilde\theta = \theta + \alpha v, \qquad v \leftarrow \alpha v -
        \epsilon\, \nabla J(\tilde\theta), \qquad \theta \leftarrow \theta + v

    ``torch.optim.SGD(nesterov=True)`` keeps θ̃ in place of θ: what it calls the parameters is
    ``interim(theta, state)``. From the same start, where v = 0, both take the same path.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    alpha : float
        α in [0, 1), the share of the velocity that is kept.

    Notes
    -----
    Source: L1-27

    Examples
    --------
    >>> opt = Nesterov(lr=0.5, alpha=0.5)
    >>> run(opt, lambda theta: theta, np.array([8.0]), steps=3).ravel()
    array([ 8.  ,  4.  ,  1.  , -0.25])
    """

    def interim(self, theta: Tree, state: Velocity) -> Tree:
        """Return θ̃ = θ + α v."""
        return _map(lambda theta, v: _sum(1.0, theta, self.alpha, v), theta, state.v)


def velocity(t: int, lr: float, alpha: float, g: float | AnyShape) -> float | AnyShape:
    r"""Return the velocity after t steps of momentum from rest, under a constant gradient.

    .. math:: v_t = -\epsilon\, g\, \frac{1 - \alpha^t}{1 - \alpha}

    Notes
    -----
    Source: L1-26

    Examples
    --------
    >>> velocity(t=3, lr=1.0, alpha=0.5, g=-1.0)
    1.75
    """
    _require_share("alpha", alpha, "a velocity that is kept whole grows without end")
    return -lr * g * (1 - alpha**t) / (1 - alpha)


def terminal_velocity(lr: float, alpha: float, g: float | AnyShape) -> float:
    r"""Return the speed that momentum approaches under a constant gradient.

    .. math:: \lVert v_\infty\rVert = \frac{\epsilon\,\lVert g\rVert}{1 - \alpha}

    For α = 0.5, 0.9 and 0.99 it is 2, 10 and 100 times a step of gradient descent.

    Notes
    -----
    Source: L1-26

    Examples
    --------
    >>> round(terminal_velocity(lr=0.1, alpha=0.9, g=np.array([3.0, 4.0])), 12)
    5.0
    """
    _require_share("alpha", alpha, "a velocity that is kept whole grows without end")
    return float(lr * np.linalg.norm(g) / (1 - alpha))


# --- A rate for each parameter ----------------------------------------------------------------


@dataclass(frozen=True)
class DeltaBarDelta(Optimizer):
    r"""A rate for each parameter that grows while its derivative keeps the same sign.

    .. math:: \epsilon_i \leftarrow \begin{cases}
        \epsilon_i + \kappa & \text{if } \bar g_i\, g_i > 0\\
        (1 - \phi)\,\epsilon_i & \text{if } \bar g_i\, g_i < 0\\
        \epsilon_i & \text{otherwise}\end{cases} \qquad
        \bar g \leftarrow \rho\,\bar g + (1 - \rho)\, g, \qquad
        \theta \leftarrow \theta - \epsilon \odot g

    The sign is compared with the trend ḡ of the earlier steps. The rule is for gradients of the
    full batch: the signs of noisy ones say nothing.

    **Erratum.** L1 prints that the rate should *decrease* while the sign persists. A persistent
    sign says that the minimum is still ahead, so the rate should increase; a flip says that the
    step jumped over it, so the rate should decrease. ``as_printed=True`` follows the misprint.

    Parameters
    ----------
    lr : float
        The first rate of every parameter.
    increase : float
        κ ≥ 0, added after an agreement.
    decrease : float
        φ in [0, 1), the share taken away after a flip.
    rho : float
        ρ in [0, 1), the share of the old trend that is kept; 0 compares with the last step alone.
    as_printed : bool
        Exchange the two cases.

    Notes
    -----
    Source: L1-28

    Examples
    --------
    >>> opt = DeltaBarDelta(lr=0.5, increase=0.25, decrease=0.5, rho=0.0)
    >>> run(opt, lambda theta: theta, np.array([8.0]), steps=3).ravel()
    array([8., 4., 1., 0.])
    """

    increase: float = 0.01
    decrease: float = 0.5
    rho: float = 0.7
    as_printed: bool = False

    memory: ClassVar[Callable[..., State]] = Rates

    def __post_init__(self) -> None:
        super().__post_init__()
        if callable(self.lr):
            raise ValueError(
                "lr must be a number, got a schedule: the method sets the later rates itself"
            )
        _require_rate("increase", self.increase)
        _require_share("decrease", self.decrease, "the rate would be gone after one flip")
        _require_share("rho", self.rho, "the trend would never change")

    def init(self, theta: Tree) -> Rates:
        """Return the state before the first step: every rate is ``lr``."""
        t, rates, trend = super().init(theta)
        return Rates(t, _map(lambda zero: zero + self.rate(1), rates), trend)

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, rates: Array, trend: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ, the rates and the trend after step t."""
        agreement = -trend * g if self.as_printed else trend * g
        one = rates**0  # of the type of θ: in torch, κ times a bare True has single precision
        rates = rates + self.increase * ((agreement > 0) * one)
        rates = rates * (1 - self.decrease * ((agreement < 0) * one))
        return theta - rates * g, rates, _sum(self.rho, trend, 1 - self.rho, g)


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    r"""Gradient descent with a rate for each parameter, by the sum of its squared gradients.

    .. math:: r \leftarrow r + g \odot g, \qquad
        \theta \leftarrow \theta - \frac{\epsilon}{\delta + \sqrt r} \odot g

    δ stands outside the root, as in ``torch.optim.Adagrad(eps=delta)``.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    delta : float
        δ ≥ 0, against division by zero.

    Notes
    -----
    Source: L1-29

    Examples
    --------
    >>> opt = AdaGrad(lr=1.0, delta=0.0)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=3).ravel().round(3)
    array([ 0.   , -1.   , -1.707, -2.284])
    """

    delta: float = 1e-7

    memory: ClassVar[Callable[..., State]] = Squares

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_small("delta", self.delta)

    def diagonal(self, state: State) -> Tree:
        r"""Return the diagonal of G, by which the last step divided the gradient.

        .. math:: \theta^{(t)} = \theta^{(t-1)} - \eta\,(G^{(t)})^{-1} g^{(t)}, \qquad
            G = \operatorname{diag}(\delta + \sqrt r)

        G stands where Newton's method has the Hessian. L2 prints the lagged :math:`G^{(t-1)}`,
        which divides by zero in the first step, when nothing has been summed yet; the form in use
        has :math:`G^{(t)}`, with the newest gradient in it.

        Raises
        ------
        ValueError
            If no step was taken: G would be zero up to δ.

        Notes
        -----
        Source: L2-04

        Examples
        --------
        >>> opt, theta = AdaGrad(lr=0.1, delta=0.5), np.array([1.0])
        >>> _, state = opt.step(theta, opt.init(theta), grad=lambda theta: np.array([3.0]))
        >>> opt.diagonal(state), opt.effective_lr(state)
        (array([3.5]), array([0.02857143]))
        """
        _require_steps_taken(state.t)
        return _map(lambda r: self._scale(state.t, r), state.r)

    def effective_lr(self, state: State) -> Tree:
        """Return the rate ε / Gᵢ of each parameter in the last step.

        Notes
        -----
        Source: L2-04
        """
        lr = self.rate(max(state.t, 1))
        return _map(lambda scale: lr / scale, self.diagonal(state))

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, r: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ and r after step t."""
        r = _sum_squares(1.0, r, 1.0, g, into[1])  # r ← r + g ⊙ g
        theta = _sum_quotient(1.0, theta, -self.rate(t), g, self._scale(t, r), into[0])
        return theta, r  # θ ← θ − ε/(δ + √r) ⊙ g

    def _scale(self, t: int, r: Array) -> Array:
        return _root(r, outside=self.delta)


@dataclass(frozen=True)
class RMSProp(AdaGrad):
    r"""AdaGrad with a moving average in place of the sum, so that it forgets.

    .. math:: r \leftarrow \rho r + (1 - \rho)\, g \odot g, \qquad
        \theta \leftarrow \theta - \frac{\epsilon}{\sqrt{\delta + r}} \odot g

    δ stands **inside** the root. ``torch.optim.RMSprop`` adds its eps outside, √r + eps. Both take
    the same steps when δ = eps = 0. At a zero gradient δ = eps² gives the same scale, and elsewhere
    no δ does.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    delta : float
        δ ≥ 0, against division by zero.
    rho : float
        ρ in [0, 1), the share of the **old** average that is kept.

    Notes
    -----
    Source: L1-30, L2-04

    Examples
    --------
    >>> opt = RMSProp(lr=1.0, delta=0.0, rho=0.75)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -2.   , -3.512])
    """

    lr: float | Schedule
    delta: float = 1e-6
    rho: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share("rho", self.rho, "the newest gradient would not count")

    @classmethod
    def from_l2(cls, eta: float, gamma: float, delta: float = 1e-6) -> RMSProp:
        r"""Return the optimizer that L2 writes with γ as the share of the **new** gradient.

        .. math:: \mathrm{EMA}^{(t)} = \gamma\, g^2 + (1 - \gamma)\,\mathrm{EMA}^{(t-1)},
            \qquad \rho = 1 - \gamma

        Notes
        -----
        Source: L2-04

        Examples
        --------
        >>> RMSProp.from_l2(eta=0.01, gamma=0.25).rho
        0.75
        """
        return cls(lr=eta, delta=delta, rho=1 - gamma)

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, r: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ and r after step t."""
        r = _sum_squares(self.rho, r, 1 - self.rho, g, into[1])  # r ← ρ r + (1 − ρ) g ⊙ g
        theta = _sum_quotient(1.0, theta, -self.rate(t), g, self._scale(t, r), into[0])
        return theta, r  # θ ← θ − ε/√(δ + r) ⊙ g

    def _scale(self, t: int, r: Array) -> Array:
        return _root(r, inside=self.delta)


@dataclass(frozen=True)
class RMSPropNesterov(RMSProp):
    r"""RMSProp with Nesterov momentum: everything happens at the interim point.

    .. math:: \tilde\theta = \theta + \alpha v, \quad g = \nabla J(\tilde\theta), \quad
        r \leftarrow \rho r + (1 - \rho)\, g \odot g, \quad
        v \leftarrow \alpha v - \frac{\epsilon}{\sqrt{\delta + r}} \odot g, \quad
        \theta \leftarrow \theta + v

    The lecture's box lists δ and then leaves it out of the root; ``delta=0.0`` is the box to the
    letter, and divides by zero where a gradient is zero in the first step. No optimizer of torch is
    the same: ``torch.optim.RMSprop(momentum=...)`` takes the gradient at θ itself.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    delta : float
        δ ≥ 0, inside the root.
    rho : float
        ρ in [0, 1), the share of the old average that is kept.
    alpha : float
        α in [0, 1), the share of the velocity that is kept.

    Notes
    -----
    Source: L1-31

    Examples
    --------
    >>> opt = RMSPropNesterov(lr=1.0, delta=0.0, rho=0.75, alpha=0.5)
    >>> run(opt, lambda theta: np.array([3.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -2.   , -4.512])
    """

    alpha: float = 0.9

    memory: ClassVar[Callable[..., State]] = SquaresVelocity

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share("alpha", self.alpha, "a velocity that is kept whole never dies down")

    @classmethod
    def from_l2(
        cls, eta: float, gamma: float, delta: float = 1e-6, alpha: float = 0.9
    ) -> RMSPropNesterov:
        """Return the optimizer with γ = 1 − ρ, the share of the **new** gradient.

        Notes
        -----
        Source: L2-04
        """
        return cls(lr=eta, delta=delta, rho=1 - gamma, alpha=alpha)

    def interim(self, theta: Tree, state: SquaresVelocity) -> Tree:
        """Return θ̃ = θ + α v."""
        return _map(lambda theta, v: _sum(1.0, theta, self.alpha, v), theta, state.v)

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, r: Array, v: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ, r and v after step t."""
        r = _sum_squares(self.rho, r, 1 - self.rho, g, into[1])  # r ← ρ r + (1 − ρ) g ⊙ g
        v = _sum_quotient(self.alpha, v, -self.rate(t), g, self._scale(t, r), into[2])
        # v ← α v − ε/√(δ + r) ⊙ g
        return _sum(1.0, theta, 1.0, v, into[0]), r, v  # θ ← θ + v


@dataclass(frozen=True)
class AdaDelta(Optimizer):
    r"""RMSProp with the size of the last steps in place of a rate.

    .. math:: r \leftarrow \rho r + (1 - \rho)\, g \odot g, \qquad
        \Delta = -\sqrt{\frac{\delta + d}{\delta + r}} \odot g, \qquad
        d \leftarrow \rho d + (1 - \rho)\, \Delta \odot \Delta, \qquad
        \theta \leftarrow \theta + \epsilon\, \Delta

    The order matters: Δ is made of the **new** r and the **old** d. In L2's letters
    :math:`\theta \leftarrow \theta - \eta\, D^{(t-1)} (G^{(t)})^{-1} g`. δ stands inside both
    roots, as in ``torch.optim.Adadelta(eps=delta)``. d averages Δ as it is, before the rate.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule; 1 is the method as it was published.
    rho : float
        ρ in [0, 1), the share of the old averages that is kept.
    delta : float
        δ > 0. With δ = 0 the method never leaves its start, because d is 0 there.

    Notes
    -----
    Source: L2-05

    Examples
    --------
    >>> opt = AdaDelta(lr=1.0, rho=0.75, delta=1.0)
    >>> run(opt, lambda theta: np.array([2.0]), np.array([0.0]), steps=2).ravel().round(3)
    array([ 0.   , -1.414, -2.891])
    """

    lr: float | Schedule = 1.0
    rho: float = 0.9
    delta: float = 1e-6

    memory: ClassVar[Callable[..., State]] = SquaresSteps

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share("rho", self.rho, "the newest gradient would not count")
        _require_small("delta", self.delta)
        if self.delta == 0:
            raise ValueError(
                "delta must be positive, got 0: the first step would be 0, and all others"
            )

    @classmethod
    def from_l2(cls, eta: float, gamma: float, delta: float = 1e-6) -> AdaDelta:
        """Return the optimizer that L2 writes with γ = 1 − ρ, the share of the **new** value.

        Notes
        -----
        Source: L2-05

        Examples
        --------
        >>> AdaDelta.from_l2(eta=1.0, gamma=0.25).rho
        0.75
        """
        return cls(lr=eta, rho=1 - gamma, delta=delta)

    def effective_lr(self, state: SquaresSteps) -> Tree:
        """Return ε √(δ + d) / √(δ + r), the factor of the gradient that the averages now give.

        Notes
        -----
        Source: L2-05
        """
        _require_steps_taken(state.t)
        lr = self.rate(state.t)
        return _map(
            lambda r, d: lr * _root(d, inside=self.delta) / _root(r, inside=self.delta),
            state.r,
            state.d,
        )

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, r: Array, d: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ, r and d after step t."""
        r = _sum_squares(self.rho, r, 1 - self.rho, g, into[1])  # r ← ρ r + (1 − ρ) g ⊙ g
        step = _root(d, inside=self.delta)  # Δ ← √(δ + d) / √(δ + r) ⊙ g, with the old d
        step /= _root(r, inside=self.delta)
        step *= g
        d = _sum_squares(self.rho, d, 1 - self.rho, step, into[2])  # d ← ρ d + (1 − ρ) Δ ⊙ Δ
        return _sum(1.0, theta, -self.rate(t), step, into[0]), r, d  # θ ← θ − ε Δ


@dataclass(frozen=True)
class Adam(Optimizer):
    r"""A mean gradient over the root of the mean squared gradient, both freed of their bias.

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1)\, g, \qquad
        r \leftarrow \beta_2 r + (1 - \beta_2)\, g \odot g

    .. math:: \hat m = \frac{m}{1 - \beta_1^t}, \qquad \hat r = \frac{r}{1 - \beta_2^t}, \qquad
        \theta \leftarrow \theta - \epsilon\, \frac{\hat m}{\sqrt{\hat r} + \delta}

    t counts from 1. δ stands outside the root and beside r̂, as in ``torch.optim.Adam(eps=delta)``.
    L2 has no δ, and lags: it steps with m̂ and r̂ of t − 1, which is 0/0 in the first step.

    Parameters
    ----------
    lr : float or callable
        ε ≥ 0, or a schedule.
    beta1, beta2 : float
        In [0, 1), the shares of the **old** averages that are kept.
    delta : float
        δ ≥ 0, against division by zero.

    Notes
    -----
    Source: L2-06

    Examples
    --------
    >>> opt = Adam(lr=1.0, beta1=0.5, beta2=0.75, delta=0.0)
    >>> grads = iter([2.0, 2.0, -1.0])
    >>> run(opt, lambda theta: np.array([next(grads)]), np.array([0.0]), steps=3).ravel().round(3)
    array([ 0.   , -1.   , -2.   , -2.174])
    """

    lr: float | Schedule = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    delta: float = 1e-8

    memory: ClassVar[Callable[..., State]] = Moments

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_share("beta1", self.beta1, "the newest gradient would not count")
        _require_share("beta2", self.beta2, "the newest gradient would not count")
        _require_small("delta", self.delta)

    @classmethod
    def from_l2(cls, eta: float, beta1: float, beta2: float, delta: float = 1e-8) -> Adam:
        r"""Return the optimizer that L2 writes with β as the share of the **new** gradient.

        .. math:: m = \beta_1\, g + (1 - \beta_1)\, m, \qquad
            \hat m = \frac{m}{1 - (1 - \beta_1)^t}

        The usual β₁ = 0.9, β₂ = 0.999 are 0.1 and 0.001 in L2.

        Notes
        -----
        Source: L2-06

        Examples
        --------
        >>> Adam.from_l2(eta=0.01, beta1=0.25, beta2=0.125)
        Adam(lr=0.01, beta1=0.75, beta2=0.875, delta=1e-08)
        """
        return cls(lr=eta, beta1=1 - beta1, beta2=1 - beta2, delta=delta)

    def effective_lr(self, state: Moments) -> Tree:
        """Return the rate ε / (√r̂ + δ) of each parameter in the last step.

        Notes
        -----
        Source: L2-06
        """
        _require_steps_taken(state.t)
        lr = self.rate(state.t)
        return _map(lambda r: lr / self._scale(state.t, r), state.r)

    def update(  # type: ignore[override]
        self, t: int, theta: Array, g: Array, m: Array, r: Array, into: Into
    ) -> tuple[Array, ...]:
        """Return θ, m and r after step t."""
        m = _sum(self.beta1, m, 1 - self.beta1, g, into[1])  # m ← β₁ m + (1 − β₁) g
        r = _sum_squares(self.beta2, r, 1 - self.beta2, g, into[2])  # r ← β₂ r + (1 − β₂) g ⊙ g
        lr = self.rate(t) / (1 - self.beta1**t)  # the hat on m, which is one number for all entries
        theta = _sum_quotient(1.0, theta, -lr, m, self._scale(t, r), into[0])
        return theta, m, r  # θ ← θ − ε m̂ / (√r̂ + δ)

    def _scale(self, t: int, r: Array) -> Array:
        return _root(r, over=1 - self.beta2**t, outside=self.delta)  # √r̂ + δ


# --- The curvature itself ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Newton(Optimizer):
    r"""Newton's method, with a rate and with damping.

    .. math:: \theta \leftarrow \theta - \eta\,(H + \mu I)^{-1} \nabla J(\theta)

    The inverse is never formed; a linear system is solved. With η = 1 and μ = 0 one step reaches
    the minimum of a quadratic. On :math:`\theta \cdot A\theta` a rate shrinks every direction
    alike, :math:`\theta^{(t)} = (1 - \eta)\,\theta^{(t-1)}`, whatever A and whatever linear
    coordinates.

    H must be positive definite to go downhill. Where it is not, a step is drawn to the nearest
    critical point, be it a saddle or a maximum. Damping with μ above −λ_min turns the step
    downhill again; the larger μ, the more it is a short step of gradient descent.

    Parameters
    ----------
    hessian : callable
        θ ↦ H, an (n, n) array of the same kind as θ. n counts all entries of θ, in the order
        in which they stand in it.
    lr : float or callable
        η ≥ 0, or a schedule.
    damping : float
        μ ≥ 0.

    Raises
    ------
    ValueError
        If a parameter is outside its range, H has another shape, or H + μI is singular.

    Notes
    -----
    Source: L1-32, L2-07

    Examples
    --------
    >>> H = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> opt = Newton(hessian=lambda theta: H)
    >>> run(opt, lambda theta: H @ theta - np.array([3.0, 4.0]), np.zeros(2), steps=1)
    array([[0., 0.],
           [1., 1.]])
    """

    hessian: Callable[[Tree], Array]
    lr: float | Schedule = 1.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.damping < math.inf:
            raise ValueError(
                f"damping must be 0 or more, got {self.damping}: it would lower the curvature"
            )

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
        arrays, g = self._arrays(theta, state, grad, check_finite)
        g = _ravel(g)
        damped = self._damped(theta, g)
        t = state.t + 1
        new = _sum(1.0, _ravel(arrays), -self.rate(t), _solve(damped, g))  # θ ← θ − η (H + μI)⁻¹ g
        new = list(_split(new, arrays))
        if in_place:
            for before, after in zip(arrays, new, strict=True):
                before[...] = after
            new = arrays
        return _rebuild(theta, iter(new)), Steps(t)

    def _damped(self, theta: Tree, g: Array) -> Array:
        n = len(g)
        H = self.hessian(theta)
        if tuple(H.shape) != (n, n):
            raise ValueError(
                f"the Hessian of {n} parameters must have shape ({n}, {n}), "
                f"got {tuple(H.shape)}; reshape what hessian returns"
            )
        if not self.damping:
            return H
        damped = 1.0 * H
        damped[range(n), range(n)] += self.damping
        return damped


def solve_flops(n: int) -> int:
    r"""Return the additions and multiplications that solve Hx = g by elimination.

    .. math:: \tfrac23 n^3 + \tfrac32 n^2 - \tfrac76 n

    A step of gradient descent needs 2n.

    Notes
    -----
    Source: L2-08

    Examples
    --------
    >>> solve_flops(1), solve_flops(2), solve_flops(1000)
    (1, 9, 668165500)
    """
    _require_count("n", n)
    return (4 * n**3 + 9 * n**2 - 7 * n) // 6


def scaling_exponent(sizes: Numbers, costs: Numbers) -> float:
    """Return the exponent p of costs ≈ C · sizeᵖ: the slope of the line in log–log axes.

    Raises
    ------
    ValueError
        If there are fewer than two points, or one is not positive.

    Notes
    -----
    Source: L2-08

    Examples
    --------
    >>> round(scaling_exponent([10, 20, 40], [5.0, 40.0, 320.0]), 12)
    3.0
    """
    if len(sizes) != len(costs) or len(sizes) < 2 or min(*sizes, *costs) <= 0:
        raise ValueError(
            "a line in log–log axes needs two points or more, all positive; "
            f"got sizes {sizes} and costs {costs}"
        )
    return float(np.polyfit(np.log(sizes), np.log(costs), deg=1)[0])


def measured_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest time of some calls; the others were disturbed.

    Notes
    -----
    Source: L2-08

    Examples
    --------
    >>> 0 < measured_seconds(lambda: sum(range(1000))) < 1
    True
    """
    _require_count("repeats", repeats)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


# --- Preconditioning --------------------------------------------------------------------------


def preconditioned_descent(
    gradient: Callable[[Vector], Vector],
    preconditioner: Matrix,
    start: Vector,
    lr: float,
    steps: int,
) -> Float[np.ndarray, "t n"]:
    r"""Take the steps of gradient descent in z, where θ = Pz, without ever leaving θ.

    .. math:: \theta_{k+1} = \theta_k - \alpha\, P P^T\, \nabla L(\theta_k)

    Parameters
    ----------
    gradient : callable
        ∇L: (n,) array to (n,) array.
    preconditioner : (n, n) array
        P, invertible. The matrix that multiplies the gradient is PPᵀ.
    start : (n,) array
        θ₀.
    lr : float
        α ≥ 0.
    steps : int
        The number of steps.

    Returns
    -------
    (steps + 1, n) array
        θ₀, θ₁, …

    Raises
    ------
    ValueError
        If P does not fit the start, or is singular.

    Notes
    -----
    Source: P-07

    Examples
    --------
    >>> P = np.diag([1.0, 0.5])  # makes the curvatures 1 and 4 equal
    >>> preconditioned_descent(lambda w: np.array([1.0, 4.0]) * w, P, np.ones(2), 1.0, steps=1)
    array([[1., 1.],
           [0., 0.]])
    """
    P = _require_preconditioner(preconditioner, len(start))
    return run(SGD(lr), lambda theta: P @ (P.T @ gradient(theta)), start, steps)


def change_of_variable(problem: Problem, preconditioner: Matrix) -> Problem:
    r"""Return the problem in the variable z, where θ = Pz.

    .. math:: z \mapsto L(Pz), \qquad P^T\, \nabla L(Pz), \qquad P^T\, \nabla^2 L(Pz)\, P

    The condition number of the last matrix rules how fast gradient descent in z converges.

    Parameters
    ----------
    problem : Problem
        L with its derivatives.
    preconditioner : (n, n) array
        P, invertible.

    Raises
    ------
    ValueError
        If P does not fit the problem, or is singular.

    Notes
    -----
    Source: P-07

    Examples
    --------
    >>> from optdl.problems import quadratic
    >>> bowl = change_of_variable(quadratic(np.diag([1.0, 4.0])), np.diag([1.0, 0.5]))
    >>> bowl.hessian(np.zeros(2))
    array([[1., 0.],
           [0., 1.]])
    """
    P = _require_preconditioner(preconditioner, len(problem.start))
    minimum = problem.minimum
    return Problem(
        f"{problem.name}, preconditioned",
        lambda z: problem.value(P @ z),
        lambda z: P.T @ problem.gradient(P @ z),
        lambda z: P.T @ problem.hessian(P @ z) @ P,
        None if minimum is None else np.linalg.solve(P, minimum),
        np.linalg.solve(P, problem.start),
    )


# --- The same in torch ------------------------------------------------------------------------


def torch_equivalent(opt: Optimizer) -> tuple[str, dict[str, Any]]:
    """Return the class of ``torch.optim``, with its arguments, that takes the same steps.

    For Nesterov what torch calls the parameters is our interim point, ``interim(theta, state)``.

    Raises
    ------
    ValueError
        If there is none, with the reason.

    Notes
    -----
    Source: L1-24, L1-26, L1-27, L1-29, L1-30, L2-05, L2-06

    Examples
    --------
    >>> torch_equivalent(AdaGrad(lr=0.1, delta=1e-7))
    ('Adagrad', {'lr': 0.1, 'eps': 1e-07})
    """
    if callable(opt.lr):
        raise ValueError("torch.optim takes a number as lr, got a schedule: use lr_scheduler there")
    lr: dict[str, Any] = {"lr": opt.lr}
    match opt:
        case SGD():
            return "SGD", lr
        case Nesterov() if opt.alpha:  # torch refuses Nesterov without momentum
            return "SGD", lr | {"momentum": opt.alpha, "nesterov": True}
        case Momentum():
            return "SGD", lr | {"momentum": opt.alpha}
        case RMSProp(delta=0) if not isinstance(opt, RMSPropNesterov):
            return "RMSprop", lr | {"alpha": opt.rho, "eps": 0.0}
        case AdaGrad() if not isinstance(opt, RMSProp):
            return "Adagrad", lr | {"eps": opt.delta}
        case AdaDelta():
            return "Adadelta", lr | {"rho": opt.rho, "eps": opt.delta}
        case Adam():
            return "Adam", lr | {"betas": (opt.beta1, opt.beta2), "eps": opt.delta}
    raise ValueError(f"torch.optim has no equal of {opt}; {_difference(opt)}")


def _difference(opt: Optimizer) -> str:
    if isinstance(opt, RMSPropNesterov):
        return "its RMSprop takes the gradient at θ, not at the interim point"
    if isinstance(opt, RMSProp):
        return "its RMSprop adds eps outside the root; only delta=0 is the same"
    return f"it has no {type(opt).__name__}"


# --- Arithmetic -------------------------------------------------------------------------------
# Sums of whole arrays, written into ``out`` or, without it, into a new array of the kind of x. In
# torch each reads the memory once for two operations, which is what a step of many parameters waits
# for.


def _sum(a: float, x: Array, b: float, y: Array, out: Array | None = None) -> Array:
    """Return a x + b y."""
    if _is_numpy(x):
        return _numpy_sum(a, x, np.multiply(y, b, out=np.empty_like(x)), out)
    if a == 1:
        return _torch().add(x, y, alpha=b, out=out)
    return _torch().mul(x, a, out=out).add_(y, alpha=b)


def _sum_squares(a: float, x: Array, b: float, y: Array, out: Array | None = None) -> Array:
    """Return a x + b y ⊙ y."""
    if _is_numpy(x):
        squares = np.multiply(y, y, out=np.empty_like(x))
        squares *= b
        return _numpy_sum(a, x, squares, out)
    if a == 1:
        return _torch().addcmul(x, y, y, value=b, out=out)
    return _torch().mul(x, a, out=out).addcmul_(y, y, value=b)


def _sum_quotient(
    a: float, x: Array, b: float, y: Array, z: Array, out: Array | None = None
) -> Array:
    """Return a x + b y / z. z is overwritten."""
    if _is_numpy(x):
        np.divide(y, z, out=z)
        z *= b
        return _numpy_sum(a, x, z, out)
    if a == 1:
        return _torch().addcdiv(x, y, z, value=b, out=z if out is None else out)
    return _torch().mul(x, a, out=out).addcdiv_(y, z, value=b)


def _numpy_sum(a: float, x: Array, rest: Array, out: Array | None) -> Array:
    """Return a x + rest, in the place of the rest when no other is given."""
    kept = x if a == 1 else np.multiply(x, a, out=np.empty_like(x) if out is None else out)
    return np.add(kept, rest, out=rest if out is None else out)


def _root(r: Array, *, over: float = 1.0, inside: float = 0.0, outside: float = 0.0) -> Array:
    """Return √(inside + r / over) + outside, as a new array."""
    out = r / over if over != 1 else r + inside
    out = np.asarray(out) if _is_numpy(r) else out  # NumPy makes a number of an array of one
    out **= 0.5  # NumPy and torch both know this power as the square root
    if outside:
        out += outside
    return out


def _zeros(array: Array) -> Array:
    return np.zeros_like(array) if _is_numpy(array) else array * 0


def _is_numpy(array: Any) -> bool:
    return isinstance(array, np.ndarray | np.floating)


def _ravel(arrays: Sequence[Array]) -> Array:
    """Return the entries of all arrays in one."""
    rows = [array.reshape(-1) for array in arrays]
    if isinstance(rows[0], np.ndarray):
        return np.concatenate(rows)
    return _torch().cat(rows)


def _split(row: Array, arrays: Sequence[Array]) -> Iterator[Array]:
    """Yield the entries of one array in the shapes of many."""
    start = 0
    for array in arrays:
        size = math.prod(array.shape)
        yield row[start : start + size].reshape(array.shape)
        start += size


def _solve(H: Array, g: Array) -> Array:
    """Return H⁻¹g."""
    linalg = np.linalg if isinstance(g, np.ndarray) else _torch().linalg
    try:
        return linalg.solve(H, g)
    except linalg.LinAlgError:
        raise ValueError(
            "the Hessian is singular: some direction is flat, and no step along it is best; "
            "use damping > 0"
        ) from None


def _torch() -> Any:
    # only for tensors: who steps NumPy arrays need not wait for torch to be loaded
    import torch

    return torch


# --- Trees ------------------------------------------------------------------------------------


def _match(theta: Tree, tree: Tree, name: str, path: str = "") -> Iterator[Array]:
    """Yield the arrays of a tree in the order of θ; it must have the structure of θ."""
    if isinstance(theta, dict):
        if not isinstance(tree, dict) or set(tree) != set(theta):
            raise ValueError(_mismatch(name, path, f"a dict with keys {list(theta)}", tree))
        for key, item in theta.items():
            yield from _match(item, tree[key], name, f"{path}[{key!r}]")
    elif isinstance(theta, list | tuple):
        if not isinstance(tree, list | tuple) or len(tree) != len(theta):
            raise ValueError(_mismatch(name, path, f"a list of {len(theta)}", tree))
        for number, item in enumerate(theta):
            yield from _match(item, tree[number], name, f"{path}[{number}]")
    else:
        yield _leaf(theta, tree, name, path)


def _leaf(theta: Array, array: Array, name: str, path: str) -> Array:
    """Return one array without its history, when it is as θ is."""
    _require_floating(array, name, path)
    is_numpy = _is_numpy(array)
    if is_numpy != _is_numpy(theta):
        raise TypeError(_mismatch(name, path, f"a {type(theta).__name__} like theta", array))
    if array.shape != theta.shape:
        raise ValueError(_mismatch(name, path, f"shape {tuple(theta.shape)} like theta", array))
    return array if is_numpy else array.detach()


def _mismatch(name: str, path: str, expected: str, got: Any) -> str:
    shape = f" of shape {tuple(got.shape)}" if hasattr(got, "shape") else ""
    shape = f" with keys {list(got)}" if isinstance(got, dict) else shape
    shape = f" of {len(got)}" if isinstance(got, list | tuple) else shape
    return f"{name}{path} must be {expected}, got {type(got).__name__}{shape}"


def _rebuild(theta: Tree, arrays: Iterator[Array]) -> Tree:
    """Return a tree with the structure of θ, filled with these arrays in order."""
    if isinstance(theta, dict):
        return {key: _rebuild(item, arrays) for key, item in theta.items()}
    if isinstance(theta, list | tuple):
        return type(theta)(_rebuild(item, arrays) for item in theta)
    return next(arrays)


def _map(function: Callable[..., Array], theta: Tree, *trees: Tree) -> Tree:
    """Return the tree of what a function makes of the arrays that stand at the same place."""
    rows = [_match(theta, tree, "state") for tree in (theta, *trees)]
    return _rebuild(theta, map(function, *rows))


# --- Boundary checks --------------------------------------------------------------------------


def _require_rate(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(
            f"{name} must be 0 or more and finite, got {value}: "
            "a negative rate climbs, and the method subtracts by itself"
        )


def _require_share(name: str, value: float, why: str) -> None:
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}: {why}")


def _require_small(name: str, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more, got {value}: it guards a division")


def _require_count(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{name} must be 1 or more; got {value}")


def _require_steps_taken(t: int) -> None:
    if t < 1:
        raise ValueError(
            "expected a state after 1 step or more, got t = 0: no gradient was seen yet"
        )


def _require_floating(array: Any, name: str, path: str) -> None:
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise TypeError(
            f"{name}{path} must be a NumPy array or a torch tensor, got {type(array).__name__}; "
            "write np.array(1.0) for a number"
        )
    if not (dtype.kind == "f" if isinstance(dtype, np.dtype) else dtype.is_floating_point):
        raise TypeError(
            f"{name}{path} must hold floating-point numbers, got {dtype}: "
            "a step would be cut to whole numbers"
        )


def _require_finite(g: Sequence[Array], t: int) -> None:
    for array in g:
        # a sum is the cheapest reading of an array; only a sum that overflows needs a second look
        if not math.isfinite(array.sum()) and not _all_finite(array):
            raise ValueError(
                f"the gradient of step {t} must be finite, got NaN or infinity in it: "
                "the steps may be too large; try a smaller lr, or clip the gradient"
            )


def _all_finite(array: Array) -> bool:
    return bool((abs(array) < math.inf).all())  # NaN is not less than anything


def _require_preconditioner(P: AnyShape, n: int) -> Matrix:
    if P.shape != (n, n):
        raise ValueError(f"P must have shape ({n}, {n}) for {n} parameters; got {P.shape}")
    if np.linalg.matrix_rank(P) < n:
        raise ValueError(
            "P must be invertible; this one is singular, so that θ = Pz reaches not all θ"
        )
    return P
