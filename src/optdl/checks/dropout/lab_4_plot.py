"""The student draws the training and the validation loss of each run by epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe


def plot_curves(ax: Any, curves: dict[str, dict[str, list[float]]]) -> None:
    """Draw the training and the validation loss of each run by epoch.

    Source: LAB-4.
    """
    for name, losses in curves.items():
        for kind in ("training", "validation"):
            epochs = range(1, len(losses[kind]) + 1)
            ax.plot(epochs, losses[kind], label=f"{name}, {kind}")
    ax.set_yscale("log")
    ax.set_xlabel("epoch")
    ax.set_ylabel("loss")
    ax.legend()


exercise = Exercise("LAB-4:plot", plot_curves, use=drawn)


@exercise.fact("runs of different lengths, as early stopping leaves them, are drawn whole")
def _(function: Any, rng: np.random.Generator) -> bool:
    lengths = {f"run {number}": int(rng.integers(1, 9)) for number in range(3)}
    kinds = "training", "validation"
    curves = {
        name: {kind: [1.0 + k for k in range(length)] for kind in kinds}
        for name, length in lengths.items()
    }
    lines = observe(drawn, function, curves)["lines"]
    whole = {f"{name}, {kind}": length for name, length in lengths.items() for kind in kinds}
    return {label: len(line[0]) for label, line in lines.items()} == whole


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for lengths in [{"p = 0": 3}, {"p = 0": 6, "p = 0.5": 4}, {"a": 4, "b": 2, "c": 5}]:
        yield {
            "curves": {
                name: {
                    kind: rng.uniform(0.01, 3, size=length).round(3).tolist()
                    for kind in ("training", "validation")
                }
                for name, length in lengths.items()
            }
        }


exercise.hints(
    "How many lines does one run contribute to the figure, and how do you know how many epochs "
    "each of them has?",
    "You need two loops: one over the runs, and inside it one over the two kinds of loss. A run "
    "that was stopped early has shorter lists, so take the number of epochs of each line from its "
    "own list.",
    "For each run and each kind of loss, call `ax.plot` with the epochs, the losses, and a label "
    "made of both names. After the loops, set the scale of the y axis and both labels, and add the "
    "legend.",
)

exercise.mistakes(r"""
your epochs are counted from 0; count them from 1
    range(1, len(losses[kind]) + 1) → range(len(losses[kind]))
your losses lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_yscale("log")`
    ax.set_yscale("log") → pass
an axis has no label; add it with `ax.set_xlabel` or `ax.set_ylabel`
    ax.set_xlabel("epoch") → pass
there is no legend that names all lines; call `ax.legend()` once they are drawn
    ax.legend() → pass
your lines have no labels; give each one such as `p = 0, training`
    , label=f"{name}, {kind}" →
both lines of a run have the same label; say which is training and which is validation
    f"{name}, {kind}" → name
you draw the validation losses only; draw both losses of each run
    "training", →
you draw the training losses under the label of the validation losses, and the other way round
    plot(epochs, losses[kind]
    → plot(epochs, losses[{"training", "validation"}.difference([kind]).pop()]
you draw the first run only; draw all of them
    in curves.items(): → in list(curves.items())[:1]:
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for name, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for name,
""")
