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

* ``sgd``, ``momentum``, ``nesterov``, ``delta_bar_delta``, ``adagrad``, ``rmsprop``,
  ``rmsprop_nesterov``, ``adadelta``, ``adam``, ``adamw``, ``lion``, ``muon``, ``newton``: one
  method each. Its ``update`` is the formula, and it is what runs.
* ``schedules``: learning rates that depend on the iteration; ``averaging``: the noise floor of
  SGD, and averages that get below it.
* ``momentum_theory``: the rate of momentum on a quadratic; ``diagonals``: what adaptive methods
  divide by; ``preconditioning``: other coordinates; ``shampoo``: a preconditioner for the rows and
  one for the columns of a matrix; ``cost``: what a step costs.
* ``equivalents``: the same steps in torch.
* ``base``: ``init`` and ``step``, on ``trees`` and ``validation``; ``loop``: many steps.
"""

from optdl.optimizers.adadelta import AdaDelta
from optdl.optimizers.adagrad import AdaGrad
from optdl.optimizers.adam import Adam
from optdl.optimizers.adamw import AdamW, with_l2_penalty
from optdl.optimizers.averaging import (
    averaged_variance,
    noise_floor,
)
from optdl.optimizers.base import FirstOrder, Optimizer
from optdl.optimizers.cost import measured_seconds, scaling_exponent
from optdl.optimizers.delta_bar_delta import DeltaBarDelta
from optdl.optimizers.diagonals import (
    Diagonals,
    adaptive_diagonal,
    fisher_diagonal,
    network_diagonals,
)
from optdl.optimizers.equivalents import torch_equivalent
from optdl.optimizers.lion import Lion
from optdl.optimizers.loop import minibatch_gradient, run
from optdl.optimizers.momentum import Momentum, velocity
from optdl.optimizers.momentum_theory import (
    MomentumConstants,
    momentum_coefficients,
    momentum_eigenvalues,
    momentum_matrix,
    momentum_rate,
    optimal_momentum,
    standard_nesterov,
    steps_to_reduce,
)
from optdl.optimizers.muon import Muon, newton_schulz
from optdl.optimizers.nesterov import Nesterov
from optdl.optimizers.newton import Newton
from optdl.optimizers.preconditioning import change_of_variable, preconditioned_descent
from optdl.optimizers.rmsprop import RMSProp
from optdl.optimizers.rmsprop_nesterov import RMSPropNesterov
from optdl.optimizers.schedules import (
    CosineDecay,
    ExponentialDecay,
    LinearDecay,
    PowerDecay,
    Warmup,
)
from optdl.optimizers.sgd import SGD
from optdl.optimizers.shampoo import shampoo_direction

__all__ = [
    "SGD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "CosineDecay",
    "DeltaBarDelta",
    "Diagonals",
    "ExponentialDecay",
    "FirstOrder",
    "LinearDecay",
    "Lion",
    "Momentum",
    "MomentumConstants",
    "Muon",
    "Nesterov",
    "Newton",
    "Optimizer",
    "PowerDecay",
    "RMSProp",
    "RMSPropNesterov",
    "Warmup",
    "adaptive_diagonal",
    "averaged_variance",
    "change_of_variable",
    "fisher_diagonal",
    "measured_seconds",
    "minibatch_gradient",
    "momentum_coefficients",
    "momentum_eigenvalues",
    "momentum_matrix",
    "momentum_rate",
    "network_diagonals",
    "newton_schulz",
    "noise_floor",
    "optimal_momentum",
    "preconditioned_descent",
    "run",
    "scaling_exponent",
    "shampoo_direction",
    "standard_nesterov",
    "steps_to_reduce",
    "torch_equivalent",
    "velocity",
    "with_l2_penalty",
]
