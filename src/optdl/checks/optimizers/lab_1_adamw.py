"""AdamW."""

from __future__ import annotations

from typing import Any

import torch

from optdl.checks.exercise import Exercise
from optdl.checks.optimizers.lab_shared import (
    agrees_with_torch,
    paths,
    rests_where_there_is_no_slope,
)
from optdl.labs.drivers import optimizers as drivers


class AdamW(torch.optim.Optimizer):
    """Adam with decoupled weight decay.

    m ← β₁ m + (1 − β₁) g, r ← β₂ r + (1 − β₂) g², θ ← (1 − ε λ) θ − ε m̂ / (√r̂ + δ), where
    m̂ = m / (1 − β₁ᵗ) and r̂ = r / (1 − β₂ᵗ).

    Source: LAB-1.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Take one step with the gradients that are there."""
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), r=torch.zeros_like(p))
                state["t"] += 1
                state["m"].mul_(beta1).add_((1 - beta1) * p.grad)
                state["r"].mul_(beta2).add_((1 - beta2) * p.grad**2)
                m = state["m"] / (1 - beta1 ** state["t"])
                r = state["r"] / (1 - beta2 ** state["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))


exercise = Exercise("LAB-1:adamw", AdamW, use=drivers.follow)


exercise.cases(
    paths(
        [
            {"weight_decay": 0.0},
            {"weight_decay": 0.5},
            {"betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.2},
            {"weight_decay": 0.3},
            {"betas": (0.8, 0.9), "weight_decay": 0.1},
        ]
    )
)


exercise.fact("ten steps are those of torch.optim.AdamW")(agrees_with_torch(torch.optim.AdamW))


exercise.fact("a parameter without a slope and without decay stays where it is")(
    rests_where_there_is_no_slope(weight_decay=0.0)
)


exercise.mistake(
    "your weight decay goes through the gradient, as an L2 penalty does; AdamW "
    "shrinks the weights by 1 − ε λ, beside the gradient",
    ("(1 - beta1) * p.grad)", '(1 - beta1) * (p.grad + group["weight_decay"] * p))'),
    (
        "(1 - beta2) * p.grad**2",
        '(1 - beta2) * (p.grad + group["weight_decay"] * p) ** 2',
    ),
    ('                p.mul_(1 - group["lr"] * group["weight_decay"])\n', ""),
)

exercise.mistake(
    "the learning rate is missing in your decay: the weights shrink by 1 − ε λ",
    ('1 - group["lr"] * group["weight_decay"]', '1 - group["weight_decay"]'),
)

exercise.mistake(
    "you do not correct the averages, which begin at 0: divide m by 1 − β₁ᵗ and r by 1 − β₂ᵗ",
    (' / (1 - beta1 ** state["t"])', ""),
    (' / (1 - beta2 ** state["t"])', ""),
)

exercise.mistake(
    "your first step has t = 0 in the correction, which divides by 0; count the "
    "step before you use t",
    ('                state["t"] += 1\n', ""),
    (
        'p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))',
        'p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))\n                state["t"] += 1',
    ),
    (
        '                m = state["m"] / (1 - beta1 ** state["t"])',
        '                m = state["m"] / torch.tensor(1 - beta1 ** state["t"])',
    ),
    (
        'r = state["r"] / (1 - beta2 ** state["t"])',
        'r = state["r"] / torch.tensor(1 - beta2 ** state["t"])',
    ),
)

exercise.mistake(
    "δ stands inside your root; it is added to √r̂",
    ('(r.sqrt() + group["eps"])', '(r + group["eps"]).sqrt()'),
)

exercise.mistake("you divide by r̂ itself; take its square root", ("r.sqrt()", "r"))

exercise.mistake(
    "you count a step for each parameter; t counts the calls of `step`, or is "
    "kept for each parameter in its own state",
    (
        '"weight_decay": weight_decay}\n        )',
        '"weight_decay": weight_decay}\n        )\n        self.t = 0',
    ),
    ('state["t"] += 1', 'self.t += 1\n                state["t"] = self.t'),
)

exercise.mistake(
    "the averages and t are not in `self.state`, so that `state_dict()` does not "
    "have them and training cannot be resumed",
    (
        '"weight_decay": weight_decay}\n        )',
        '"weight_decay": weight_decay}\n        )\n        self.memory = {}',
    ),
    ("state = self.state[p]", "state = self.memory.setdefault(p, {})"),
)

exercise.mistake(
    "you change a leaf that requires a gradient while autograd records: put "
    "`@torch.no_grad()` above `step`",
    ("@torch.no_grad()\n", "\n"),
)

exercise.mistake(
    "you have β₁ and β₂ the wrong way round: the first is for the gradient",
    ("beta1, beta2 = ", "beta2, beta1 = "),
)
