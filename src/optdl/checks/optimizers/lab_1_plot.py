"""The student draws the last loss over the learning rate, a line for each optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers.figures import drawn
from optdl.labs.optimizers import RATES
from optdl.observation import observe


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


exercise = Exercise("LAB-1:plot", plot_losses, use=drawn)


@exercise.fact("every method is drawn, whatever its name")
def _(function: Any, rng: np.random.Generator) -> bool:
    counts = {f"method {number}": int(rng.integers(1, 6)) for number in range(3)}
    losses = {name: {10.0**-k: 1.0 + k for k in range(count)} for name, count in counts.items()}
    seen = observe(drawn, function, losses)["lines"]
    return {name: len(line[0]) for name, line in seen.items()} == counts


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for names, count in [(("SGD",), 2), (("SGD", "AdamW"), 5), (("SGD", "AdamW", "Adam"), 4)]:
        rates = rng.permutation(RATES)[:count]
        yield {
            "losses": {
                name: {float(rate): float(rng.uniform(0.01, 3)) for rate in rates[k:]}
                for k, name in enumerate(names)
            }
        }


exercise.hints(
    "What does `losses` contain for one optimizer, and which part of it belongs on the x axis?",
    "For each optimizer there is a dict from rates to losses. A list of its rates in increasing "
    "order and a list of the losses in the same order make one line.",
    "Loop over the items of `losses`, sort the rates, and call `ax.plot` with the rates, their "
    "losses, and the name as the label. After the loop, set both scales and both labels, and add "
    "the legend.",
)

exercise.mistakes(r"""
your learning rates lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_xscale("log")`
    ax.set_xscale("log") → pass
your losses lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_yscale("log")`
    ax.set_yscale("log") → pass
an axis has no label; add it with `ax.set_xlabel` or `ax.set_ylabel`
    ax.set_xlabel("learning rate") → pass
there is no legend that names all lines; call `ax.legend()` once they are drawn
    ax.legend() → pass
your lines have no labels; give each `label=name`
    , label=name →
you draw the losses over 0, 1, 2, …; draw them over the learning rates
    plot(rates → plot(range(len(rates))
you draw the learning rates in the order in which they come, so the line runs back and forth; sort
them
    sorted(found) → list(found)
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for name, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for name,
""")
