"""Optimizers as small immutable objects, each in a file of its own.

>>> import numpy as np
>>> opt = Momentum(lr=0.1, alpha=0.9)
>>> theta = np.array([1.0, 2.0])
>>> state = opt.init(theta)
>>> theta, state = opt.step(theta, state, grad=lambda theta: theta)
>>> theta, state.v
(array([0.9, 1.8]), array([-0.1, -0.2]))

``theta`` is a NumPy array, a torch tensor on any device, or lists, tuples and dicts of them, nested
as you like. ``step`` calls ``grad`` where the method wants the gradient, changes none of its
arguments, and returns new parameters and a new state. Tensors come back detached.

Letters: θ parameters, g gradient, η learning rate, v velocity, α the share of it that is kept, r
mean or sum of squared gradients, d mean of squared steps, m mean gradient, δ a guard against
division by zero, t the number of the step, 1 for the first. The averages keep the share ρ, β₁ or β₂
of the **old** value, as in L1; L2 gives these names to the share of the **new** one, and the
classmethods ``from_l2`` translate. L1 writes ε for the learning rate.

Constants are checked when a method or a schedule is made: another value raises ValueError, a text
TypeError. The shares ρ, α, β₁, β₂, ``decrease`` and ``factor`` lie in [0, 1). Rates, δ, ``decay``,
``damping``, ``increase``, ``power`` and ``stable`` are 0 or more and finite. The counts ``tau``,
``steps`` and ``repeats`` are 1 or more. ``lr`` is a rate or a schedule k ↦ η_k with k = 0 in the
first step, whose rates are checked in each step.

* ``sgd``, ``momentum``, ``nesterov``, ``delta_bar_delta``, ``adagrad``, ``rmsprop``,
  ``rmsprop_nesterov``, ``adadelta``, ``adam``, ``adamw``, ``lion``, ``muon``, ``newton``: one
  method each. Its ``update`` is the formula, and it is what runs.
* ``schedules``: learning rates that depend on the iteration; ``averaging``: the noise floor of
  SGD, and averages that get below it.
* ``momentum_theory``: the rate of momentum on a quadratic; ``diagonals``: what adaptive methods
  divide by; ``preconditioning``: other coordinates; ``shampoo``: a preconditioner for the rows and
  one for the columns of a matrix; ``cost``: what a step costs.
* ``equivalents``: the same steps in torch; ``in_torch``, which is imported by itself: these steps
  as an optimizer of torch, and any of torch's in turned coordinates.
* ``base``: ``init`` and ``step``, on ``trees`` and ``validation``; ``loop``: many steps.
"""

from optdl.optimizers.adadelta import *
from optdl.optimizers.adagrad import *
from optdl.optimizers.adam import *
from optdl.optimizers.adamw import *
from optdl.optimizers.averaging import *
from optdl.optimizers.base import *
from optdl.optimizers.cost import *
from optdl.optimizers.delta_bar_delta import *
from optdl.optimizers.diagonals import *
from optdl.optimizers.equivalents import *
from optdl.optimizers.lion import *
from optdl.optimizers.loop import *
from optdl.optimizers.momentum import *
from optdl.optimizers.momentum_theory import *
from optdl.optimizers.muon import *
from optdl.optimizers.nesterov import *
from optdl.optimizers.newton import *
from optdl.optimizers.preconditioning import *
from optdl.optimizers.rmsprop import *
from optdl.optimizers.rmsprop_nesterov import *
from optdl.optimizers.schedules import *
from optdl.optimizers.sgd import *
from optdl.optimizers.shampoo import *

# the classes and functions that the modules name in their own __all__
__all__ = [
    name
    for name, value in list(globals().items())
    if getattr(value, "__module__", "").startswith(f"{__name__}.")
]
