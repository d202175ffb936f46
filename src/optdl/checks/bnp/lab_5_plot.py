"""The student draws the training loss of each method over the steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from optdl.checks.exercise import Case, Exercise
from optdl.labs.bnp import METHODS
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe


def plot_curves(ax: Any, curves: dict[str, list[float]], every: int) -> None:
    """Draw training losses over the steps: one labelled line for each method.

    Source: LAB-5.
    """
    for name, losses in curves.items():
        steps = [every * (k + 1) for k in range(len(losses))]
        ax.plot(steps, losses, marker="o", label=name)
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("training loss")
    ax.legend()


exercise = Exercise("LAB-5:plot", plot_curves, use=drawn)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for names, count, every in [(("SGD",), 2, 10), (METHODS[:3], 5, 20), (METHODS, 4, 25)]:
        yield {
            "curves": {name: rng.uniform(0.05, 2, size=count).round(3).tolist() for name in names},
            "every": every,
        }


@exercise.fact("each line holds the losses of its method")
def _(function: Any, rng: np.random.Generator) -> bool:
    curves = {name: rng.uniform(0.1, 2, size=n).tolist() for n, name in enumerate(METHODS, start=1)}
    lines = observe(drawn, function, curves, 7)["lines"]
    return sorted(lines) == sorted(curves) and all(
        np.allclose(lines[name][1], curves[name]) and lines[name][0][-1] == 7 * len(curves[name])
        for name in curves
    )


exercise.hints(
    "After how many steps was the first loss in a list measured, and after how many steps was the "
    "last?",
    "The x values of a line are the multiples of `every`, beginning with `every` itself, and there "
    "are as many of them as there are losses in the list.",
    "Loop over the items of `curves`, make the list of steps, and call `ax.plot` with the steps, "
    "the losses, and the name as the label. After the loop, set the scale of the y axis and both "
    "labels, and add the legend.",
)

exercise.mistakes(r"""
you draw the losses over 0, 1, 2, …; draw them over the steps, of which there are `every` between
two measurements
    [every * (k + 1) for k in range(len(losses))] → range(len(losses))
your first measurement stands at step 0; it was made after `every` steps
    (k + 1) → k
your steps lie on a logarithmic axis; leave that axis linear
    ax.legend() → ax.set_xscale("log")\n    ax.legend()
your losses lie on a linear axis, where the small ones cannot be told apart; use
`ax.set_yscale("log")`
    ax.set_yscale("log") → pass
an axis has no label; add it with `ax.set_xlabel` or `ax.set_ylabel`
    ax.set_xlabel("step") → pass
there is no legend that names all lines; call `ax.legend()` once they are drawn
    ax.legend() → pass
your lines have no labels; give each `label=name`
    , label=name →
you draw on other axes than `ax`, as `plt.plot` may do; call the methods of `ax`
    for name, → ax = ax.figure.add_axes((0, 0, 1, 1))\n    for name,
""")
