"""The student writes AdamW, Adam with decoupled weight decay, as an optimizer of PyTorch."""

import torch

from optdl.checks.exercise import Exercise
from optdl.checks.optimizers.lab_shared import agrees_with_torch, paths
from optdl.labs.drivers import optimizers as drivers


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay.

    m ← β₁ m + (1 − β₁) g, r ← β₂ r + (1 − β₂) g², θ ← (1 − η ω) θ − η m̂ / (√r̂ + δ), where
    m̂ = m / (1 − β₁ᵗ) and r̂ = r / (1 − β₂ᵗ). Source: LAB-1.
    """

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        settings = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(params, settings)

    @torch.no_grad()
    def step(self):
        """Take one step with the gradients that are there."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g, state = p.grad, self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), r=torch.zeros_like(p))
                state["t"] += 1
                state["m"].mul_(beta1).add_((1 - beta1) * g)
                state["r"].mul_(beta2).add_((1 - beta2) * g**2)
                m = state["m"] / (1 - beta1 ** state["t"])
                r = state["r"] / (1 - beta2 ** state["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))


exercise = Exercise("LAB-1:adamw", AdamW, use=drivers.path)


@exercise.cases
def _(rng):
    decay = rng.uniform(0.1, 0.6, size=4).round(2).tolist()
    beta1, beta2, eps = rng.uniform(0.1, 0.9, size=3).round(2).tolist()
    settings = [
        {"weight_decay": 0.0},
        {"weight_decay": decay[0]},
        {"betas": (beta1, beta2), "eps": eps, "weight_decay": decay[1]},
        {"weight_decay": decay[2]},
        {"betas": (beta2, beta1), "weight_decay": decay[3]},
        {"betas": (beta1, beta2), "eps": eps},
    ]
    return paths(rng, settings)


exercise.fact("ten steps are those of torch.optim.AdamW")(
    agrees_with_torch(exercise, torch.optim.AdamW, betas=(0.8, 0.9), weight_decay=0.4)
)

exercise.help(r"""
1. Which three quantities are remembered for each parameter? Is $\hat m$ among them, or $\hat r$?
2. The structure is that of your `SGD`, with $t$, $m$ and $r$ in `self.state[p]`, all of which begin
   at 0. $\hat m$ and $\hat r$ are only needed within one step.
3. Increase $t$, update $m$ and $r$ in place, and compute $\hat m$ and $\hat r$ as new tensors. Then
   multiply `p` by $1-\eta\omega$, and subtract $\eta\,\hat m$ over $\sqrt{\hat r}+\delta$ from it.
your decay goes through the gradient, as an L2 penalty; AdamW shrinks the weights by 1 − η ω
    g, state = p.grad, → g, state = p.grad + group["weight_decay"] * p,
    p.mul_(1 - group["lr"] * group["weight_decay"]) → pass
the learning rate is missing in your decay: the weights shrink by the factor 1 − η ω
    1 - group["lr"] * → 1 -
you do not correct the averages, which begin at 0: divide m by 1 − β₁ᵗ and r by 1 − β₂ᵗ
    / (1 - beta1 ** state["t"]) → ; / (1 - beta2 ** state["t"]) →
your first step has t = 0 in the correction, which divides by 0; increase t before you use it
    t=0 → t=-1
δ stands inside your root; it is added to √r̂
    (r.sqrt() + group["eps"]) → (r + group["eps"]).sqrt()
you add δ before you correct √r; add it to √r̂
    (r.sqrt() + group["eps"])
    → ((state["r"].sqrt() + group["eps"]) / (1 - beta2 ** state["t"]) ** 0.5)
you divide by r̂ itself; take its square root
    r.sqrt() → r
you count the updates of all parameters in one t; keep t for each parameter, in `self.state[p]`
    state["t"] += 1 → state["t"] = self.t = vars(self).get("t", 0) + 1
you count the steps of a group in one t; keep t for each parameter, in `self.state[p]`
    beta1, beta2 = → group["t"] = group.get("t", 0) + 1\n            beta1, beta2 =
    state["t"] += 1 → state["t"] = group["t"]
your β₁ and β₂ are always 0.9 and 0.999; take `group["betas"]`
    group["betas"] → 0.9, 0.999
your weight decay is always 0.01; take `group["weight_decay"]`
    group["weight_decay"] → 0.01
your δ is always 1e-8; take `group["eps"]`
    group["eps"] → 1e-8
a new optimizer finds no m, r and t in your `state_dict()`; keep them in `self.state[p]`
    self.state[p] → vars(self).setdefault("memory", {}).setdefault(p, {})
you have β₁ and β₂ the wrong way round: the first is for the gradient
    beta1, beta2 = → beta2, beta1 =
you shrink the weights after the step, and the step with them; shrink them first
    p.mul_(1 - group["lr"] * group["weight_decay"]) → pass
    (r.sqrt() + group["eps"]))
    → (r.sqrt() + group["eps"]))\n                p.mul_(1 - group["lr"] * group["weight_decay"])
you keep m̂ and r̂, which the next step corrects once more; keep m and r, and make new m̂ and r̂
    m = state → m = state["m"] = state ; r = state → r = state["r"] = state
you do not correct r, which begins at 0; divide it by 1 − β₂ᵗ
    / (1 - beta2 ** state["t"]) →
your first step has t = 2 in the correction; increase t once, before you use it
    t=0 → t=1
you do not correct m, which begins at 0; divide it by 1 − β₁ᵗ
    / (1 - beta1 ** state["t"]) →
you count the calls of `step` in one t; a parameter that joins later and a loaded state have another
    for group in → self.t = vars(self).get("t", 0) + 1\n        for group in
    state["t"] += 1 → state["t"] = self.t
""")
