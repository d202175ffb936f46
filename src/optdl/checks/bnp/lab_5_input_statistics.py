"""Statistics through hooks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp as drivers
from optdl.observation import observe


def input_statistics(model: nn.Module, x: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Return the mean and the variance of what each dense layer reads, in one pass.

    Source: LAB-5.
    """
    layers = [one for one in model.modules() if isinstance(one, nn.Linear)]
    seen = {}

    def observe(layer: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        h = inputs[0]
        seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))

    handles = [layer.register_forward_pre_hook(observe) for layer in layers]
    try:
        with torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return [seen[layer] for layer in layers]


exercise = Exercise(
    "LAB-5:input_statistics",
    input_statistics,
    use=drivers.read_statistics,
    parts=(
        *("the statistics", "with a graph", "hooks that are left", "the network's mode"),
        "the exception of a pass that fails",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for rows, widths, fails in [(2, [2, 1], False), (3, [2, 3, 2], False), (5, [3, 4, 2, 2], True)]:
        yield {
            "x": rng.normal(1, 2, size=(rows, widths[0])).round(2),
            "widths": widths,
            "seed": int(rng.integers(1000)),
            "fails": fails,
        }


@exercise.fact("twice the inputs plus 1 have twice the mean plus 1, and four times the variance")
def _(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the first mean and variance follow the minibatch as they must."""
    x = rng.normal(size=(5, 3))
    (mean, var), (shifted, scaled) = (
        observe(drivers.read_statistics, function, batch, [3, 2, 2], 0, False)[0][0]
        for batch in (x, 2 * x + 1)
    )
    return np.allclose(shifted, 2 * mean + 1) and np.allclose(scaled, 4 * var)


exercise.mistake(
    "your hooks stay on the network and go on working in each later pass; keep "
    "the handles and call `remove()` on each",
    ("            handle.remove()", "            pass"),
)

exercise.mistake(
    "your hooks stay on the network when the pass fails; remove them in `finally`",
    ("    finally:\n", "    except ZeroDivisionError:\n        pass\n    else:\n"),
)

exercise.mistake(
    "your statistics are those of what the layers give; they are those of what "
    "the layers read, `inputs[0]`",
    (
        "inputs: tuple[Tensor, ...]) -> None:\n        h = inputs[0]",
        "inputs: tuple[Tensor, ...], output) -> None:\n        h = output",
    ),
    ("register_forward_pre_hook", "register_forward_hook"),
)

exercise.mistake(
    "your variance divides by N − 1; BNP divides by N, which is `correction=0`",
    ("h.var(dim=0, correction=0)", "h.var(dim=0)"),
)

exercise.mistake(
    "you return standard deviations; BNP averages variances",
    ("h.var(dim=0, correction=0)", "h.std(dim=0, correction=0)"),
)

exercise.mistake(
    "your pairs are (variance, mean), as `torch.var_mean` returns them; return the mean first",
    (
        "(h.mean(dim=0), h.var(dim=0, correction=0))",
        "torch.var_mean(h, dim=0, correction=0)",
    ),
)

exercise.mistake(
    "your variance is the mean of the squares; subtract the mean before you "
    "square, or use `h.var(dim=0, correction=0)`",
    ("h.var(dim=0, correction=0)", "h.square().mean(dim=0)"),
)

exercise.mistake(
    "your list is in the order in which the layers were called; the order is "
    "that of `model.modules()`",
    ("[seen[layer] for layer in layers]", "list(seen.values())"),
)

exercise.mistake(
    "your function hides the exception of a pass that fails; remove the hooks in "
    "`finally`, which passes the exception on",
    ("    finally:\n", "    except RuntimeError:\n        pass\n    finally:\n"),
    ("[seen[layer] for layer in layers]", "list(map(seen.get, layers))"),
)

exercise.mistake(
    "you take statistics of each example over its features; they are those of "
    "each feature over the minibatch, with dim=0",
    ("h.mean(dim=0), h.var(dim=0,", "h.mean(dim=1), h.var(dim=1,"),
)

exercise.mistake(
    "your hook returns something, and what a pre-hook returns takes the place of "
    "the layer's input; let it return None",
    (
        "seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))",
        "seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))\n"
        "        return h - h.mean(dim=0)",
    ),
)

exercise.mistake(
    "your statistics hold the graph of the pass, and so its memory; compute them "
    "without a graph, under `torch.no_grad()` or after `detach()`",
    ("with torch.no_grad():", "if True:"),
)

exercise.mistake(
    "you look at the children of the network alone and miss the layers in its "
    "blocks; `modules()` finds layers at every depth",
    ("model.modules()", "model.children()"),
)

exercise.mistake(
    "you leave the network in evaluation mode; it is to stay in the mode in which it came",
    ("    seen = {}\n", "    seen = {}\n    model.eval()\n"),
)
