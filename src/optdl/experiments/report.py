"""Results as curves of several runs in one style, with the range of the seeds."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import PercentFormatter

from optdl.experiments.experiment import Experiment
from optdl.experiments.runs import Panel, Run, file_name
from optdl.experiments.tuning import scores
from optdl.plotting import COLORS, DASHES, plot_curves, use_style
from optdl.records import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["accuracy", "draw_curves", "draw_panel", "draw_rates", "draw_spreads", "main", "spread"]


def main(file: str, panels: Sequence[Panel], description: str) -> None:
    """Do what a figure lacks, as the command line asks, say how accurate each run is, and draw."""
    experiment = Experiment(file, panels, description=description)
    for name, records in experiment.perform().items():
        print(f"{name}: {accuracy(records, 'test_error')}")
    draw_curves(experiment)


def spread(records: Sequence[Record], curve: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean, the least and the largest value of a curve over the seeds, by epoch.

    Seeds that diverged have no part in it, unless all did. Curves of different lengths are taken
    as far as the shortest goes.

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
    """Draw each panel that has results, as :func:`draw_panel` does, and save the figures."""
    use_style()
    files = []
    for panel in experiment.panels:
        if _drawn(experiment, panel):
            draw_panel(experiment, panel)
            fig = plt.gcf()
            # a run that wanders off at first would press all others to the floor
            fig.axes[0].set(title=panel.title, ylim=(0, min(fig.axes[0].get_ylim()[1], 2.5)))
            name = f"{experiment.name}-{file_name(panel.title)}"
            files += experiment.save(fig, name.strip("-"))
    return files


def _drawn(
    experiment: Experiment, panel: Panel, methods: Container[str] | None = None
) -> list[tuple[Run, list[Record]]]:
    """Return the runs of a panel that have results, with the chosen rate or else the paper's."""
    records = experiment.records()
    variants = [experiment.variants(panel, run)[:1] for run in _labeled(panel, methods)]
    return [(run, records[run.name]) for some in variants for run in some if run.name in records]


def draw_panel(
    experiment: Experiment,
    panel: Panel,
    axes: Sequence[Axes] | None = None,
    methods: Container[str] | None = None,
) -> None:
    """Draw a panel's training loss, and its test accuracy in percent.

    A run is drawn with its chosen rate, or else with that of the paper, if it has results and its
    label is among the ``methods``. New axes are one above the other, to be read on a phone.
    """
    runs = _drawn(experiment, panel, methods)
    if axes is None:
        axes = plt.subplots(2, 1, figsize=(5.6, 7.2), sharex=True)[1]
    draw_spreads(axes[0], runs, "minibatch_loss", "training loss")
    draw_spreads(axes[1], runs, "test_error", "test accuracy")
    for ax in axes:
        ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    _finish(axes, axes[1])


def draw_rates(
    experiment: Experiment,
    panels: Sequence[Panel],
    axes: Sequence[Axes],
    classes: int,
    methods: Container[str] | None = None,
) -> None:
    """Draw the validation accuracy of the search for rates, one panel on each of the axes.

    A method has the color and the dashes that it has in :func:`draw_panel`. A seed that diverged
    counts as a guess, with the accuracy 1/classes.
    """
    for ax, panel in zip(axes, panels, strict=True):
        runs = _labeled(panel, methods)
        styles = _styles([run.method for run in runs])
        for run, (color, dashes) in zip(runs, styles, strict=True):
            accuracies = scores(Record.load(experiment.tuning_file(run)), classes)
            ax.set_prop_cycle(color=[COLORS[color]], linestyle=[DASHES[dashes]])
            plot_curves({run.label: [*accuracies.values()]}, ax, x=[*accuracies])
        ax.set(xscale="log", title=panel.title.partition(", ")[2])
        ax.set(xlabel="learning rate", ylabel="validation accuracy")
    _finish(axes, *axes)


def _labeled(panel: Panel, methods: Container[str] | None) -> list[Run]:
    """Return the runs of a panel that have one of the labels, or all of them."""
    return [run for run in panel.runs if methods is None or run.label in methods]


def _finish(axes: Sequence[Axes], *accuracies: Axes) -> None:
    """Draw accuracies in percent, one label of a common axis, and one legend below all axes."""
    for ax in accuracies:
        ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for ax in axes:
        ax.legend().remove()
        if ax is not axes[-1] and ax.get_shared_x_axes().joined(ax, axes[-1]):
            ax.set_xlabel("")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside lower center", ncols=3)


def draw_spreads(
    ax: Axes, runs: Sequence[tuple[Run, Sequence[Record]]], curve: str, name: str
) -> None:
    """Draw the mean and the range of a curve for each run with its seeds; of errors, accuracies."""
    styles = _styles([run.method for run, _ in runs])
    for number, ((run, records), (color, dashes)) in enumerate(zip(runs, styles, strict=True)):
        mean, low, high = spread(records, curve)
        if curve.endswith("error"):
            mean, low, high = 1 - mean, 1 - high, 1 - low
        ax.set_prop_cycle(color=[COLORS[color]], linestyle=[DASHES[dashes]])
        ended = sum(record.stop.startswith("diverged") for record in records)
        label = f"{run.label} ({ended} of {len(records)} diverged)" if ended else run.label
        plot_curves({label: mean}, ax, bands={label: (low, high)}, ylabel=name)
        if len(mean) == 1:  # no line: a mark, and the range as a bar
            spans = np.array([mean - low, high - mean])
            position = 1 + (number - len(runs) / 2) / 20  # side by side
            ax.errorbar([position], mean, yerr=spans, fmt="o", capsize=3, color=COLORS[color])
            ax.set_xlim(0.5, 1.5)


def _styles(methods: Sequence[str]) -> list[tuple[int, int]]:
    """Return the number of a color and of dashes for each run.

    The first run of a method has those of the method, or some that nobody has; the next ones have
    its color, and other dashes.
    """
    unused = [n for n, method in enumerate(ORDER) if method not in methods]
    free, colors = itertools.cycle(unused or range(len(ORDER))), {}
    for method in dict.fromkeys(methods):
        colors[method] = ORDER.index(method) if method in ORDER else next(free)
    return [
        (colors[method], (colors[method] + 2 * methods[:number].count(method)) % len(ORDER))
        for number, method in enumerate(methods)
    ]


def accuracy(records: Sequence[Record], curve: str) -> str:
    """Return mean and range of a curve's last accuracies in percent, and how many seeds diverged.

    A single seed has no range; where no record has the curve, the text is empty.

    >>> one, two = Record({"error": [0.5, 0.4]}), Record({"error": [0.5, 0.5]})
    >>> accuracy([one, two, Record({"error": [0.9]}, stop="diverged at step 3")], "error")
    '55.0 (50.0–60.0), 1 of 3 diverged'
    >>> accuracy([one], "error")
    '60.0'
    """
    whole = [record for record in records if not record.stop.startswith("diverged")]
    last = [100 * (1 - record.curves[curve][-1]) for record in whole if curve in record.curves]
    lost = len(records) - len(whole)
    if not last:
        return f"all {lost} diverged" if lost and not whole else ""
    text = f"{fmean(last):.1f}"  # `sum` gives another one in Python 3.11
    if len(last) > 1:
        text += f" ({min(last):.1f}–{max(last):.1f})"
    return f"{text}, {lost} of {len(records)} diverged" if lost else text
