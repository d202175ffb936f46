"""The student draws curves over the number of examples seen, each with its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.batchnorm import NAMES, examples_seen
from optdl.labs.drivers.figures import drawn, labelled
from optdl.observation import observe


def plot_curves(ax: Any, seen: Sequence[int], curves: dict[str, list[float]], ylabel: str) -> None:
    """Draw curves over the number of examples that the network had seen.

    Source: LAB-3.
    """
    for name, values in curves.items():
        ax.plot(seen, values, marker="o", label=name)
    ax.set_xlabel("training examples seen")
    ax.set_ylabel(ylabel)
    ax.legend()


exercise = Exercise("LAB-3:plot", plot_curves, use=labelled)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for names, count, ylabel in [
        (NAMES[:1], 2, "training loss"),
        (NAMES, 4, "validation accuracy"),
        (NAMES[:2], 10, "validation accuracy"),
    ]:
        yield {
            "seen": examples_seen()[:count],
            "curves": {name: rng.uniform(size=count).round(2).tolist() for name in names},
            "ylabel": ylabel,
        }


@exercise.fact("each curve is a line with its name")
def _(plot: Any, rng: np.random.Generator) -> bool:
    curves = {f"curve {k}": rng.uniform(size=3).tolist() for k in rng.permutation(5)}
    lines = observe(drawn, plot, [10, 20, 30], curves, "loss")["lines"]
    return set(lines) == set(curves) and all(list(x) == [10, 20, 30] for x, _ in lines.values())


exercise.hints(
    "Which argument is common to all curves, and which argument gives each curve its values and "
    "its name?",
    "All curves have the numbers in `seen` as their x values. Each item of `curves` is a name and "
    "the list of y values of one line.",
    "Loop over the items of `curves`, and call `ax.plot` with `seen`, the values, and the name as "
    "the label. After the loop, label the x axis with what it shows and the y axis with `ylabel`, "
    "and add the legend.",
)

exercise.mistakes(r"""
you draw the curves over 0, 1, 2, …; draw them over the numbers in `seen`
    plot(seen, values → plot(values
your axes are swapped; the examples seen lie on the x axis
    plot(seen, values → plot(values, seen
your curves have no labels; give each `label=name`
    , label=name →
there is no legend that names all curves; call `ax.legend()` once they are drawn
    ax.legend() → pass
the x axis has no label; add it with `ax.set_xlabel`
    ax.set_xlabel("training examples seen") → pass
you give the y axis a label of your own; it is given as `ylabel`
    set_ylabel(ylabel) → set_ylabel("accuracy")
your axis of the examples is logarithmic; here it is linear
    ax.legend() → ax.legend(), ax.set_xscale("log")
you draw the last curve only; put `ax.plot` into the loop
    ax.plot → pass\n    ax.plot
you draw the curves over 1, 2, 3, …; draw them over the numbers in `seen`
    plot(seen, values → plot(range(1, len(values) + 1), values
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for name, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for name,
""")
