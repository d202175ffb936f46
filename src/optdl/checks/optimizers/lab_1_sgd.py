"""The student writes gradient descent with momentum as an optimizer of PyTorch."""

from __future__ import annotations

from typing import Any

import torch

from optdl.checks.exercise import Exercise
from optdl.checks.optimizers.lab_shared import (
    PARTS,
    agrees_with_torch,
    paths,
    rests_where_there_is_no_slope,
)
from optdl.labs.drivers import optimizers as drivers


class SGD(torch.optim.Optimizer):
    """Gradient descent with momentum: v ← μ v + g, θ ← θ − ε v.

    Source: LAB-1.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take one step with the gradients that are there."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["v"] = torch.zeros_like(p)
                state["v"].mul_(group["momentum"]).add_(p.grad)
                p.sub_(group["lr"] * state["v"])


exercise = Exercise("LAB-1:sgd", SGD, use=drivers.follow, parts=PARTS)

exercise.cases(paths([{}, {}, {"momentum": 0.5}, {}, {"momentum": 0.8}]))

exercise.fact("ten steps are those of torch.optim.SGD with momentum 0.9")(
    agrees_with_torch(torch.optim.SGD, momentum=0.9)
)

exercise.fact("a parameter without a slope stays where it is")(rests_where_there_is_no_slope())

exercise.hints(
    "Which quantity must be remembered for each parameter from one call of `step` to the next, and "
    "where does it belong?",
    'Loop over the groups, and over `group["params"]` in each of them. `self.state[p]` is an empty '
    "dict at first: put a tensor of zeros with the shape of `p` into it then.",
    "For each parameter with a gradient, multiply its velocity by the momentum and add the "
    "gradient, both in place. Then subtract the learning rate of its group times the velocity from "
    "`p`, in place.",
)

exercise.mistakes(r"""
you change a leaf that requires a gradient while autograd records: put `@torch.no_grad()` above
`step`
    @torch.no_grad() →
your step changes the gradients; it reads them only, and `optimizer.zero_grad()` clears them
    p.sub_(group → _ = p.grad.zero_(), p.sub_(group
`p = p - …` gives the name p to a new tensor and leaves the network's weights as they are; change
them in place, with `p.sub_(…)`
    p.sub_( → p = p - (
your step fails at a parameter whose gradient is None; skip it
    if p.grad is None: → if False:
your step ends at the first parameter whose gradient is None; skip it with `continue`, and go on to
the others
    continue → return
the velocity is not in `self.state`, so `state_dict()` does not have it and training cannot be
resumed
    self.state[p] → vars(self).setdefault("memory", {}).setdefault(p, {})
you keep the learning rate from the beginning, so no schedule can change it; read `group["lr"]` in
each step
    group["lr"] → self.defaults["lr"]
you multiply the gradient by the learning rate before it enters the velocity; here the velocity adds
up gradients, and the learning rate multiplies it in the step
    .add_(p.grad) → .add_(group["lr"] * p.grad)
    p.sub_(group["lr"] * → p.sub_(
your velocity is an average, with 1 − μ before the gradient; here it is the sum v ← μ v + g
    .add_(p.grad) → .add_((1 - group["momentum"]) * p.grad)
your first velocity is the tensor `p.grad` itself, to which the next `backward` writes; copy it with
`clone()`, or begin with zeros
    torch.zeros_like(p)\n                s → p.grad\n                else:\n                    s
you update the first group of parameters only; go through all `self.param_groups`
    in self.param_groups: → in self.param_groups[:1]:
you step along the gradient; the step goes against it
    p.sub_( → p.add_(
you take the settings of the first group for all groups; read those of each `group` in the loop, as
its rate may differ
    for group in self.param_groups:
    → group = self.param_groups[0]\n        for own in self.param_groups:
    group["params"] → own["params"]
your velocity is forgotten from step to step; keep it in `self.state[p]`
    state["v"].mul_(group["momentum"]).add_(p.grad) → state["v"] = p.grad.clone()
you step along g + μ v, as Nesterov momentum does; here the step is v
    * state["v"]) → * (p.grad + group["momentum"] * state["v"]))
you write a number for the momentum; take `group["momentum"]`
    group["momentum"] → 0.9
""")
