"""The student draws the mean loss of each epoch, a line for each method."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.bnp_cnn import METHODS
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe


def plot_epochs(ax: Any, losses: dict[str, list[float]]) -> None:
    """Draw the mean loss of each epoch, counted from 1: one labelled line for each method.

    Source: LAB-6.
    """
    for name, values in losses.items():
        ax.plot(range(1, len(values) + 1), values, marker="o", label=name)
    ax.set_yscale("log")
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean training loss")
    ax.legend()


exercise = Exercise("LAB-6:plot", plot_epochs, use=drawn)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for names, count in [(METHODS[:1], 2), (METHODS[:2], 4), (METHODS, 6)]:
        lengths = count - np.arange(len(names)) % 2  # a run that diverged is shorter
        yield {
            "losses": {
                name: rng.uniform(0.01, 2, size=length).round(3).tolist()
                for name, length in zip(names, lengths, strict=True)
            }
        }


@exercise.fact("each line has a point for each epoch")
def _(function: Any, rng: np.random.Generator) -> bool:
    losses = {name: rng.uniform(0.1, 2, size=n).tolist() for n, name in enumerate(METHODS, 1)}
    lines = observe(drawn, function, losses)["lines"]
    return sorted(lines) == sorted(losses) and all(
        np.allclose(lines[name][1], losses[name]) and lines[name][0][-1] == len(losses[name])
        for name in losses
    )


exercise.hints(
    "How many points does the line of one method have, and over which numbers are they drawn?",
    "Each method gives one line. A run that diverged has a shorter list, so take the number of "
    "epochs of each line from its own list.",
    "Loop over the items of `losses`, and call `ax.plot` with the epochs, the values, and the name "
    "as the label. After the loop, set the scale of the y axis and both labels, and add the "
    "legend.",
)

exercise.mistakes(r"""
your epochs begin at 0; the mean loss of the first epoch stands at 1
    range(1, len(values) + 1) → range(len(values))
your losses lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_yscale("log")`
    ax.set_yscale("log") → pass
an axis has no label; add it with `ax.set_xlabel` or `ax.set_ylabel`
    ax.set_xlabel("epoch") → pass
there is no legend that names all lines; call `ax.legend()` once they are drawn
    ax.legend() → pass
your lines have no labels; give each `label=name`
    , label=name →
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for name, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for name,
""")
