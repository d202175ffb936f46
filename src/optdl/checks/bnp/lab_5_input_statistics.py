"""The student measures what each dense layer reads, through hooks that leave no trace."""

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
        *("the means", "the variances", "whether they have no graph", "whether no hook is left"),
        *("whether the network stays in training mode", "whether the exception is passed on"),
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
    x, network = rng.normal(size=(5, 3)), ([3, 2, 2], 0, False)
    means, variances, *_ = observe(drivers.read_statistics, function, x, *network)
    shifted, scaled, *_ = observe(drivers.read_statistics, function, 2 * x + 1, *network)
    return np.allclose(shifted[0], 2 * means[0] + 1) and np.allclose(scaled[0], 4 * variances[0])


exercise.hints(
    "At which moment of a forward pass can you see what a layer reads, and what must be undone "
    "afterwards, even if the pass fails?",
    "A pre-hook can store the statistics of `inputs[0]` in a dict, with the layer as the key. A "
    "`try` with a `finally` around the pass removes the hooks in either case.",
    "Collect the linear layers in a list, register the hook on each, and keep the handles. Run the "
    "network without gradients, remove the hooks, and look up the statistics of the layers in the "
    "order of the list.",
)

exercise.mistakes(r"""
your hooks stay on the network and go on working in each later pass; keep the handles and call
`remove()` on each
    handle.remove() → pass
you remove the first hook only; keep all handles and call `remove()` on each
    in handles: → in handles[:1]:
your hooks stay on the network when the pass fails; remove them in `finally`
    finally: → except ZeroDivisionError:\n        pass\n    else:
your statistics are those of what the layers give; they are those of what the layers read,
`inputs[0]`
    inputs: tuple[Tensor, ...]) → inputs: tuple[Tensor, ...], output)
    inputs[0] → output
    forward_pre_hook → forward_hook
your variance divides by N − 1; BNP divides by N, which is `correction=0`
    , correction=0 →
your variance is the mean of the squares; subtract the mean before you square, or use `h.var(dim=0,
correction=0)`
    h.var(dim=0, correction=0) → h.square().mean(dim=0)
your list is in the order in which the layers were called; the order is that of `model.modules()`
    [seen[layer] for layer in layers] → list(seen.values())
your function hides the exception of a pass that fails; remove the hooks in `finally`, which passes
the exception on
    finally: → except RuntimeError:\n        pass\n    finally:
    seen[layer] for → seen.get(layer) for
you take statistics of each example over its features; they are those of each feature over the
minibatch, with dim=0
    mean(dim=0) → mean(dim=1)
    var(dim=0 → var(dim=1
your hook returns something, and what a pre-hook returns takes the place of the layer's input; let
it return None
    correction=0)) → correction=0))\n        return h - h.mean(dim=0)
your statistics hold the graph of the pass, and so its memory; compute them without a graph, under
`torch.no_grad()` or after `detach()`
    with torch.no_grad(): → if True:
you look at the children of the network alone and miss the layers in its blocks; `modules()` finds
layers at every depth
    model.modules() → model.children()
you leave the network in evaluation mode; it is to stay in the mode in which it came
    seen = {} → seen, _ = {}, model.eval()
your hooks stay on the network when the pass fails, and your list is in the order in which the
layers were called; remove the hooks in `finally`, and go through `model.modules()`
    seen = {} → seen = []
    seen[layer] = (h.mean(dim=0), h.var(dim=0, correction=0))
    → seen.append((h.mean(dim=0), h.var(dim=0, correction=0)))
    finally: → except ZeroDivisionError:\n        pass\n    else:
    [seen[layer] for layer in layers] → seen
""")
