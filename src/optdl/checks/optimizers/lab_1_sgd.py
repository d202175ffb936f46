"""The student writes gradient descent with momentum as an optimizer of PyTorch."""

import torch

from optdl.checks.exercise import Exercise
from optdl.checks.optimizers.lab_shared import agrees_with_torch, paths
from optdl.labs.drivers import optimizers as drivers


class SGD(torch.optim.Optimizer):
    """Gradient descent with momentum: v ← α v − η g, θ ← θ + v. Source: LAB-1."""

    def __init__(self, params, lr, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        """Take one step with the gradients that are there."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["v"] = torch.zeros_like(p)
                state["v"].mul_(group["momentum"]).sub_(group["lr"] * p.grad)
                p.add_(state["v"])


exercise = Exercise("LAB-1:sgd", SGD, use=drivers.path)


@exercise.cases
def _(rng):
    first, second = rng.uniform(0.3, 0.8, size=2).round(2).tolist()
    return paths(rng, [{}, {"momentum": first}, {"momentum": second}] * 2)


exercise.fact("ten steps at one rate are those of torch.optim.SGD with momentum 0.9")(
    agrees_with_torch(exercise, torch.optim.SGD, momentum=0.9)
)

exercise.help(r"""
1. Which quantity is remembered for each parameter from step to step, and where does it belong?
2. Loop over the groups, and over `group["params"]` in each of them. `self.state[p]` is an empty
   dict at first: put a tensor of zeros with the shape of `p` into it then.
3. For each parameter with a gradient, multiply its velocity by the momentum, and subtract its
   group's learning rate times the gradient. Then add the velocity to `p`. Do all of it in place.
you change a leaf that requires a gradient and autograd records; put `@torch.no_grad()` above `step`
    @torch.no_grad() →
`p = p + …` makes a new tensor, and the network keeps its weights; change them with `p.add_(…)`
    p.add_( → p = p + (
    with `p = p…`, else your step leaves the parameters as they are; change `p` in place
your step ends at the first parameter whose gradient is None; skip it, and go on to the others
    continue → return
a new optimizer finds no velocity in your `state_dict()`; keep it in `self.state[p]`
    self.state[p] → vars(self).setdefault("memory", {}).setdefault(p, {})
you use the settings of the beginning; read those of each `group`, which schedules change
    group["lr"] → self.defaults["lr"] ; group["momentum"] → self.defaults["momentum"]
the rate multiplies your whole velocity, as in PyTorch; here it multiplies the new gradient only
    .sub_(group["lr"] * p.grad) → .sub_(p.grad) ; p.add_( → p.add_(group["lr"] *
your velocity is an average, with 1 − α before the gradient; here it is v ← α v − η g
    * p.grad) → * (1 - group["momentum"]) * p.grad)
you update the first group of parameters only; go through all `self.param_groups`
    in self.param_groups: → in self.param_groups[:1]:
your steps are −η g, without a velocity; keep v in `self.state[p]`: v ← α v − η g
    state["v"].mul_(group["momentum"]).sub_(group["lr"] * p.grad)
    → state["v"] = -group["lr"] * p.grad
your step is α v − η g with the updated velocity, as in Nesterov momentum; here the step is v
    p.add_(state["v"]) → p.add_(group["momentum"] * state["v"] - group["lr"] * p.grad)
your learning rate is that of the beginning; read `group["lr"]`, which schedules and groups change
    group["lr"] → self.defaults["lr"]
your momentum is always 0.9; take `group["momentum"]`
    group["momentum"] → 0.9
your velocity takes in the whole gradient; multiply it by the learning rate: v ← α v − η g
    .sub_(group["lr"] * p.grad) → .sub_(p.grad)
you move a parameter without a gradient by its old velocity; skip it, and its velocity stays
    continue → p.grad = torch.zeros_like(p)
""")
