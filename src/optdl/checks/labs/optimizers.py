"""Checks of the lab on optimizers: two optimizers of PyTorch, a training loop, a sweep of rates.

An optimizer is driven over parameters of :mod:`optdl.labs.drivers.optimizers`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.labs.drivers import optimizers as drivers
from optdl.labs.drivers.figures import drawn
from optdl.labs.optimizers import LAB, RATES, accuracy, final_losses, network
from optdl.observation import observe

__all__ = ["EXERCISES", "RECORD"]

# --- Paths of an optimizer --------------------------------------------------------------------


def _paths(options: Sequence[dict[str, Any]]) -> Callable[[np.random.Generator], Iterator[Case]]:
    def cases(rng: np.random.Generator) -> Iterator[Case]:
        for number, chosen in enumerate(options):
            shapes: tuple[tuple[int, ...], ...] = ((2,), (1,), (1,))
            if number % 2:
                shapes = ((2, 3), (4,), (2,), (1,))
            yield {
                "start": [rng.normal(size=shape).round(2) for shape in shapes],
                "options": chosen,
                "rates": [0.1] * 4 if number < 2 else [0.1, 0.1, 0.05, 0.02, 0.02],
                "saved": number == 3,
                "zeroed": number == 4,
            }

    return cases


def _rests_where_there_is_no_slope(**options: Any) -> Callable[[Any, np.random.Generator], bool]:
    """Return whether a parameter at the minimum of its loss stays there, for four steps."""

    def holds(kind: Any, rng: np.random.Generator) -> bool:
        start, rates = [np.ones(3), np.ones(1)], [float(rng.uniform(0.01, 0.3))] * 4
        path = observe(drivers.follow, kind, start, options, rates, False, False)
        return disagreement(tuple(start * 4), path, 0, 0) is None

    return holds


def _agrees_with_torch(theirs: Any, **fixed: Any) -> Callable[[Any, np.random.Generator], bool]:
    """Return whether an optimizer takes the same ten steps as one of PyTorch's own, in float32."""

    def holds(kind: Any, rng: np.random.Generator) -> bool:
        start = rng.normal(size=6).astype(np.float32)
        ours = observe(drivers.descend_quartic, kind, start, 0.05, 10, {})
        expected = drivers.descend_quartic(theirs, start, 0.05, 10, fixed)
        return disagreement(expected, ours, 1e-5, 1e-6) is None

    return holds


# --- SGD with momentum ------------------------------------------------------------------------


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
                    state["velocity"] = torch.zeros_like(p)
                state["velocity"].mul_(group["momentum"]).add_(p.grad)
                p.sub_(group["lr"] * state["velocity"])


SGD_WITH_MOMENTUM = Exercise(
    key="LAB-1:sgd",
    reference=SGD,
    use=drivers.follow,
    cases=_paths([{}, {}, {"momentum": 0.5}, {}, {"momentum": 0.8}]),
    misconceptions=(
        mistake(
            "you change a leaf that requires a gradient while autograd records: put "
            "`@torch.no_grad()` above `step`",
            SGD,
            ("@torch.no_grad()\n", "\n"),
        ),
        mistake(
            "`p = p - …` gives the name p to a new tensor and leaves the network's weights as "
            "they are; change them in place, with `p.sub_(…)`",
            SGD,
            (
                'p.sub_(group["lr"] * state["velocity"])',
                'p = p - group["lr"] * state["velocity"]',
            ),
        ),
        mistake(
            "your step fails at a parameter whose gradient is None; skip it",
            SGD,
            ("if p.grad is None:", "if False:"),
        ),
        mistake(
            "the velocity is not in `self.state`, so that `state_dict()` does not have it and "
            "training cannot be resumed",
            SGD,
            (
                '{"lr": lr, "momentum": momentum})',
                '{"lr": lr, "momentum": momentum})\n        self.memory = {}',
            ),
            ("state = self.state[p]", "state = self.memory.setdefault(p, {})"),
        ),
        mistake(
            "you keep the learning rate of the beginning, so that no schedule can change it; "
            'read `group["lr"]` in each step',
            SGD,
            (
                '{"lr": lr, "momentum": momentum})',
                '{"lr": lr, "momentum": momentum})\n        self.lr = lr',
            ),
            ('p.sub_(group["lr"]', "p.sub_(self.lr"),
        ),
        mistake(
            "you multiply the gradient by the rate before it enters the velocity; here the "
            "velocity collects gradients, and the rate multiplies it in the step",
            SGD,
            (".add_(p.grad)", '.add_(group["lr"] * p.grad)'),
            ('p.sub_(group["lr"] * state["velocity"])', 'p.sub_(state["velocity"])'),
        ),
        mistake(
            "your velocity is an average, with 1 − μ before the gradient; here it is the sum "
            "v ← μ v + g",
            SGD,
            (".add_(p.grad)", '.add_((1 - group["momentum"]) * p.grad)'),
        ),
        mistake(
            "your first velocity is the tensor `p.grad` itself, which the next `backward` "
            "writes to; copy it with `clone()`, or begin with zeros",
            SGD,
            ('state["velocity"] = torch.zeros_like(p)\n', 'state["velocity"] = p.grad\n'),
            (
                'state["velocity"].mul_(group["momentum"]).add_(p.grad)',
                'if state["velocity"] is not p.grad or state.setdefault("begun", False):\n'
                '                    state["velocity"].mul_(group["momentum"]).add_(p.grad)\n'
                '                state["begun"] = True',
            ),
        ),
        mistake(
            "you step the first group of parameters only; go through all `self.param_groups`",
            SGD,
            ("in self.param_groups:", "in self.param_groups[:1]:"),
        ),
        mistake(
            "you step along the gradient; the step goes against it",
            SGD,
            ("p.sub_(", "p.add_("),
        ),
    ),
    properties=(
        Property(
            "ten steps are those of torch.optim.SGD with momentum 0.9",
            _agrees_with_torch(torch.optim.SGD, momentum=0.9),
        ),
        Property("a parameter without a slope stays where it is", _rests_where_there_is_no_slope()),
    ),
)


# --- AdamW ------------------------------------------------------------------------------------


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


ADAMW = Exercise(
    key="LAB-1:adamw",
    reference=AdamW,
    use=drivers.follow,
    cases=_paths(
        [
            {"weight_decay": 0.0},
            {"weight_decay": 0.5},
            {"betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.2},
            {"weight_decay": 0.3},
            {"betas": (0.8, 0.9), "weight_decay": 0.1},
        ]
    ),
    misconceptions=(
        mistake(
            "your weight decay goes through the gradient, as an L2 penalty does; AdamW shrinks "
            "the weights by 1 − ε λ, beside the gradient",
            AdamW,
            ("(1 - beta1) * p.grad)", '(1 - beta1) * (p.grad + group["weight_decay"] * p))'),
            (
                "(1 - beta2) * p.grad**2",
                '(1 - beta2) * (p.grad + group["weight_decay"] * p) ** 2',
            ),
            ('                p.mul_(1 - group["lr"] * group["weight_decay"])\n', ""),
        ),
        mistake(
            "the learning rate is missing in your decay: the weights shrink by 1 − ε λ",
            AdamW,
            ('1 - group["lr"] * group["weight_decay"]', '1 - group["weight_decay"]'),
        ),
        mistake(
            "you do not correct the averages, which begin at 0: divide m by 1 − β₁ᵗ and r by "
            "1 − β₂ᵗ",
            AdamW,
            (' / (1 - beta1 ** state["t"])', ""),
            (' / (1 - beta2 ** state["t"])', ""),
        ),
        mistake(
            "your first step has t = 0 in the correction, which divides by 0; count the step "
            "before you use t",
            AdamW,
            ('                state["t"] += 1\n', ""),
            (
                'p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))',
                'p.sub_(group["lr"] * m / (r.sqrt() + group["eps"]))\n'
                '                state["t"] += 1',
            ),
            (
                '                m = state["m"] / (1 - beta1 ** state["t"])',
                '                m = state["m"] / torch.tensor(1 - beta1 ** state["t"])',
            ),
            (
                'r = state["r"] / (1 - beta2 ** state["t"])',
                'r = state["r"] / torch.tensor(1 - beta2 ** state["t"])',
            ),
        ),
        mistake(
            "δ stands inside your root; it is added to √r̂",
            AdamW,
            ('(r.sqrt() + group["eps"])', '(r + group["eps"]).sqrt()'),
        ),
        mistake(
            "you divide by r̂ itself; take its square root",
            AdamW,
            ("r.sqrt()", "r"),
        ),
        mistake(
            "you count a step for each parameter; t counts the calls of `step`, or is kept for "
            "each parameter in its own state",
            AdamW,
            (
                '"weight_decay": weight_decay}\n        )',
                '"weight_decay": weight_decay}\n        )\n        self.t = 0',
            ),
            ('state["t"] += 1', 'self.t += 1\n                state["t"] = self.t'),
        ),
        mistake(
            "the averages and t are not in `self.state`, so that `state_dict()` does not have "
            "them and training cannot be resumed",
            AdamW,
            (
                '"weight_decay": weight_decay}\n        )',
                '"weight_decay": weight_decay}\n        )\n        self.memory = {}',
            ),
            ("state = self.state[p]", "state = self.memory.setdefault(p, {})"),
        ),
        mistake(
            "you change a leaf that requires a gradient while autograd records: put "
            "`@torch.no_grad()` above `step`",
            AdamW,
            ("@torch.no_grad()\n", "\n"),
        ),
        mistake(
            "you have β₁ and β₂ the wrong way round: the first is for the gradient",
            AdamW,
            ("beta1, beta2 = ", "beta2, beta1 = "),
        ),
    ),
    properties=(
        Property("ten steps are those of torch.optim.AdamW", _agrees_with_torch(torch.optim.AdamW)),
        Property(
            "a parameter without a slope and without decay stays where it is",
            _rests_where_there_is_no_slope(weight_decay=0.0),
        ),
    ),
)


# --- The training loop ------------------------------------------------------------------------


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: Any) -> list[float]:
    """Return the loss of each step, a mean over its minibatch, while the model is trained.

    Source: LAB-1.
    """
    model.train()
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses


def _batches(rng: np.random.Generator) -> Iterator[Case]:
    for steps, m, momentum in [(3, 2, 0.0), (4, 5, 0.0), (6, 3, 0.9)]:
        yield {
            "x": rng.normal(size=(steps, m, 4)).round(2),
            "y": rng.integers(0, 3, size=(steps, m)),
            "seed": int(rng.integers(1000)),
            "momentum": momentum,
        }


def _learns_one_minibatch_by_heart(function: Any, rng: np.random.Generator) -> bool:
    """Return whether nothing happens without minibatches, and the loss falls if one comes often."""
    seed, steps = int(rng.integers(1000)), 30
    nothing, before, after, losses = observe(drivers.repeat, function, seed, steps)
    rests = nothing == [] and disagreement(before, after, 0, 0) is None
    return rests and len(losses) == steps and all(b < a for a, b in itertools.pairwise(losses))


TRAIN = Exercise(
    key="LAB-1:train",
    reference=train,
    use=drivers.trained,
    cases=_batches,
    parts=("the losses", "their type", "the weights"),
    misconceptions=(
        mistake(
            "you never clear the gradients, and `backward` adds to them; call "
            "`optimizer.zero_grad()` in each step",
            train,
            ("        optimizer.zero_grad()\n", ""),
        ),
        mistake(
            "your weights stay as they are: take a step with `optimizer.step()` after "
            "`backward`, and clear the gradients before `backward`, not behind it",
            train,
            ("        optimizer.zero_grad()\n", ""),
            ("optimizer.step()", "optimizer.zero_grad()\n        optimizer.step()"),
        ),
        mistake(
            "you step before `backward`, with the gradients of the minibatch before; the order "
            "is zero_grad, loss, backward, step",
            train,
            ("        optimizer.step()\n", ""),
            (
                "        optimizer.zero_grad()\n",
                "        optimizer.step()\n        optimizer.zero_grad()\n",
            ),
        ),
        mistake(
            "you keep the loss as a tensor, and with it the nodes of its graph; keep the number, "
            "`loss.item()`",
            train,
            ("loss.item()", "loss"),
        ),
        mistake(
            "your loss is a sum over the minibatch; cross_entropy takes the mean unless you "
            "tell it otherwise",
            train,
            ("cross_entropy(model(x), y)", 'cross_entropy(model(x), y, reduction="sum")'),
        ),
        mistake(
            "your model stays in evaluation mode, so that dropout does nothing; call "
            "`model.train()` first",
            train,
            ("    model.train()\n", ""),
        ),
        mistake(
            "you apply softmax before cross_entropy, which applies it itself; give it the scores",
            train,
            ("cross_entropy(model(x), y)", "cross_entropy(model(x).softmax(dim=1), y)"),
        ),
        mistake(
            "you return after the first minibatch; move `return` out of the loop",
            train,
            ("    return losses", "        return losses"),
        ),
        mistake(
            "your losses are those after each step; return the loss from which the step was taken",
            train,
            (
                "losses.append(loss.item())",
                "losses.append(nn.functional.cross_entropy(model(x), y).item())",
            ),
        ),
    ),
    properties=(
        Property(
            "without minibatches nothing changes, and the loss of a minibatch falls at each "
            "step if it comes again and again",
            _learns_one_minibatch_by_heart,
        ),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_losses(ax: Any, losses: dict[str, dict[float, float]]) -> None:
    """Draw the last losses over the rates: one labelled line for each optimizer.

    Source: LAB-1.
    """
    for name, found in losses.items():
        rates = sorted(found)
        ax.plot(rates, [found[rate] for rate in rates], marker="o", label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("learning rate")
    ax.set_ylabel("loss of the last 20 steps")
    ax.legend()


def _draws_whatever_the_names_are(function: Any, rng: np.random.Generator) -> bool:
    """Return whether methods of other names are drawn, each with as many rates as it has."""
    counts = {f"method {number}": int(rng.integers(1, 6)) for number in range(3)}
    losses = {name: {10.0**-k: 1.0 + k for k in range(count)} for name, count in counts.items()}
    seen = observe(drawn, function, losses)["lines"]
    return {name: len(line[0]) for name, line in seen.items()} == counts


def _sweeps(rng: np.random.Generator) -> Iterator[Case]:
    for names, count in [(("SGD",), 2), (("SGD", "AdamW"), 5), (("SGD", "AdamW", "Adam"), 4)]:
        rates = rng.permutation(RATES)[:count]
        yield {
            "losses": {
                name: {float(rate): float(rng.uniform(0.01, 3)) for rate in rates[k:]}
                for k, name in enumerate(names)
            }
        }


PLOT_LOSSES = Exercise(
    key="LAB-1:plot",
    reference=plot_losses,
    use=drawn,
    cases=_sweeps,
    misconceptions=(
        mistake(
            "your rates lie on a linear axis, where the small ones cannot be told apart; use "
            '`ax.set_xscale("log")`',
            plot_losses,
            ('    ax.set_xscale("log")\n', ""),
        ),
        mistake(
            "your losses lie on a linear axis, where the small ones cannot be told apart; use "
            '`ax.set_yscale("log")`',
            plot_losses,
            ('    ax.set_yscale("log")\n', ""),
        ),
        mistake(
            "an axis has no label; add it with `ax.set_xlabel` and `ax.set_ylabel`",
            plot_losses,
            ('    ax.set_xlabel("learning rate")\n', ""),
        ),
        mistake(
            "there is no legend, so nobody knows which line is which; call `ax.legend()`",
            plot_losses,
            ("    ax.legend()", "    pass"),
        ),
        mistake(
            "you draw the losses over 0, 1, 2, …; draw them over the rates",
            plot_losses,
            ("ax.plot(rates, [", "ax.plot(range(len(rates)), ["),
        ),
        mistake(
            "you draw the rates in the order in which they come, so that the line runs back "
            "and forth; sort them",
            plot_losses,
            ("sorted(found)", "list(found)"),
        ),
        mistake(
            "your lines have no labels; give each `label=name`",
            plot_losses,
            (", label=name", ""),
        ),
    ),
    properties=(
        Property("every method is drawn, whatever its name", _draws_whatever_the_names_are),
    ),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    SGD_WITH_MOMENTUM,
    ADAMW,
    TRAIN,
    PLOT_LOSSES,
)


# --- The record -------------------------------------------------------------------------------


def _is_rate(value: Any) -> bool:
    return value in RATES


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights on the validation examples."""
    model = network(0)
    model.load_state_dict(dict(weights))
    return accuracy(model)


def _best(name: str) -> Callable[[Any], float]:
    def find(record: Any) -> float:
        losses = final_losses(record)[name]
        return min(losses, key=lambda rate: losses[rate])

    return find


_ASKED = "one of the rates " + ", ".join(map(str, RATES))

RECORD = RecordCheck(
    key="LAB-1:record",
    lab=LAB,
    predictions={"SGD": (_ASKED, _is_rate), "AdamW": (_ASKED, _is_rate)},
    evaluate=_evaluate,
    level=0.88,
    readings={
        "SGD": (
            "the rate at which the mean of the last 20 losses of SGD is smallest",
            _best("SGD"),
        ),
        "AdamW": (
            "the rate at which the mean of the last 20 losses of AdamW is smallest",
            _best("AdamW"),
        ),
    },
)
