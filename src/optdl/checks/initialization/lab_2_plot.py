"""The student draws the deviation of the activations by depth, a line for each start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe


def plot_deviations(ax: Any, deviations: dict[str, list[float]]) -> None:
    """Draw the standard deviation of the activations over the hidden layers.

    Source: LAB-2.
    """
    for start, values in deviations.items():
        layers = range(1, len(values) + 1)
        ax.plot(layers, values, marker="o", label=start)
    ax.set_yscale("log")
    ax.set_xlabel("hidden layer")
    ax.set_ylabel("standard deviation of the activations")
    ax.legend()


exercise = Exercise("LAB-2:plot", plot_deviations, use=drawn)


@exercise.fact("networks of different depths are drawn from layer 1 to the last")
def _(function: Any, rng: np.random.Generator) -> bool:
    depths = {f"start {number}": int(rng.integers(1, 9)) for number in range(3)}
    curves = {name: [0.5] * depth for name, depth in depths.items()}
    lines = observe(drawn, function, curves)["lines"]
    ends = {name: (line[0][0], line[0][-1]) for name, line in lines.items()}
    return ends == {name: (1.0, float(depth)) for name, depth in depths.items()}


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for starts, depth in [(("He",), 2), (("small", "He"), 4), (("He", "Glorot", "small"), 7)]:
        yield {
            "deviations": {
                start: [float(value) for value in rng.uniform(0.1, 2, size=depth).round(3)]
                for start in starts
            }
        }


exercise.hints(
    "How many points does the line of one start have, and which numbers belong below them on the x "
    "axis?",
    "Each start gives one line: its list of deviations, drawn over the numbers of the hidden "
    "layers. There are as many layers as the list has entries.",
    "Loop over the items of `deviations`, and call `ax.plot` with the numbers of the layers, the "
    "values, and the name as the label. After the loop, set the scale of the y axis and both "
    "labels, and add the legend.",
)

exercise.mistakes(r"""
your deviations lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_yscale("log")`
    ax.set_yscale("log") → pass
your layers lie on a logarithmic axis; a deviation that changes by one factor in each layer is a
straight line over a linear axis
    ax.set_yscale → ax.set_xscale("log"), ax.set_yscale
your layers begin at 0; the first hidden layer has the number 1
    range(1, len(values) + 1) → range(len(values))
your axes are exchanged: the layers belong on the x axis
    plot(layers, values → plot(values, layers
an axis has no label; add it with `ax.set_xlabel` or `ax.set_ylabel`
    ax.set_xlabel("hidden layer") → pass
there is no legend that names all lines; call `ax.legend()` once they are drawn
    ax.legend() → pass
your lines have no labels; give each `label=start`
    , label=start →
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for start, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for start,
""")
