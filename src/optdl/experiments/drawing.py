"""Curves of several runs over each other, mean and range of the seeds, in one style."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optdl.experiments.experiment import Experiment
from optdl.experiments.runs import Run
from optdl.records import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_curves", "draw_spreads", "spread"]


def spread(records: Sequence[Record], curve: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the least and the largest value of a curve over the seeds, by epoch.

    Seeds that diverged have no part in it. Curves of different lengths are taken as far as the
    shortest goes.

    Examples
    --------
    >>> one, two = Record({"loss": [1.0, 2.0]}), Record({"loss": [3.0, 2.0, 1.0]})
    >>> [values.tolist() for values in spread([one, two], "loss")]
    [[2.0, 2.0], [1.0, 2.0], [3.0, 2.0]]
    """
    whole = [record for record in records if not record.stop.startswith("diverged")]
    records = whole or records
    length = min(len(record.curves[curve]) for record in records)
    values = np.array([record.curves[curve][:length] for record in records])
    return values.mean(0), values.min(0), values.max(0)


ORDER = ("vanilla", "BN", "LN", "BNP", "Renorm", "Four")
"""Methods that have a color and dashes of their own, in all figures."""


def draw_curves(experiment: Experiment) -> list[Path]:
    """Draw test accuracy above and training loss below, mean and range, a column for each panel."""
    from matplotlib import pyplot as plt

    from optdl.plotting import use_style

    records = experiment.records()
    panels = [
        (panel.title, [(run, records[run.name]) for run in panel.runs if run.name in records])
        for panel in experiment.panels
    ]
    panels = [(title, runs) for title, runs in panels if runs]
    if not panels:
        return []
    use_style()
    fig, axes = plt.subplots(
        2, len(panels), figsize=(1 + 4.3 * len(panels), 7.2), sharex="col", squeeze=False
    )
    for (above, below), (title, runs) in zip(axes.T, panels, strict=True):
        draw_spreads(above, runs, "test_error", "test accuracy")
        draw_spreads(below, runs, "minibatch_loss", "training loss")
        above.set(title=title, xlabel="")
        above.get_legend().remove()
        # a run that wanders off at first would press all others to the floor
        below.set_ylim(0, min(below.get_ylim()[1], 2.5))
        # where it hides no curve
        below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        below.locator_params(axis="x", integer=True, min_n_ticks=1)
    return experiment.save(fig)


def draw_spreads(
    ax: Axes, runs: Sequence[tuple[Run, Sequence[Record]]], curve: str, name: str
) -> None:
    """Draw the mean and the range of a curve for each run; errors become accuracies."""
    from optdl.plotting import COLORS, DASHES, plot_curves

    styles = _styles([run.method for run, _ in runs])
    for (run, records), style in zip(runs, styles, strict=True):
        mean, low, high = spread(records, curve)
        if curve.endswith("error"):
            mean, low, high = 1 - mean, 1 - high, 1 - low
        ax.set_prop_cycle(color=[COLORS[style]], linestyle=[DASHES[style]])
        ended = sum(record.stop.startswith("diverged") for record in records)
        label = f"{run.label} ({ended} of {len(records)} diverged)" if ended else run.label
        plot_curves({label: mean}, ax, bands={label: (low, high)}, ylabel=name)
        if len(mean) == 1:  # no line: a mark, and the range as a bar
            spans = np.array([mean - low, high - mean])
            place = 1 + (style - 2.5) / 20  # side by side
            ax.errorbar([place], mean, yerr=spans, fmt="o", capsize=3, color=COLORS[style])
            ax.set_xlim(0.5, 1.5)


def _styles(methods: Sequence[str]) -> list[int]:
    """Return the number of a style for each run: that of its method, or one that nobody has."""
    own = [
        ORDER.index(method) if method in ORDER and method not in methods[:number] else None
        for number, method in enumerate(methods)
    ]
    free = itertools.cycle([n for n in range(len(ORDER)) if n not in own] or range(len(ORDER)))
    return [next(free) if style is None else style for style in own]
