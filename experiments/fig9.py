"""Fig. 9 and Table 1: the time of an epoch with BN and with BNP, minibatches of 16, 256 and 512.

Two hidden layers of 100 units on CIFAR-10, the ordinary way: one seed, autograd, torch's own BN.
The two methods take turns, epoch by epoch. ::

    python experiments/fig9.py
"""

import numpy as np
from matplotlib import pyplot as plt

from optdl.experiments import Experiment, Panel, Run, perform_in_turns
from optdl.plotting import COLORS, DASHES, plot_curves, use_style

PAPER = {16: (16.08, 16.69), 256: (10.81, 10.70), 512: (10.67, 10.57)}
PANELS = [
    Panel(
        f"minibatches of {batch}",
        [Run(name, "cifar10", "fc2", name, batch, 0.01, epochs=20) for name in ("BN", "BNP")],
    )
    for batch in PAPER
]


def table(experiment):
    """Print Table 1: the mean time of an epoch, ours and the paper's, and their ratios."""
    found = experiment.records()
    print("batch   BN/s  BNP/s  ratio (range of seeds)   the paper's ratio, V100")
    for panel, paper in zip(experiment.panels, PAPER.values(), strict=True):
        bn, bnp = (
            np.array([record.curves["epoch_seconds"] for record in found[run.name]])
            for run in panel.runs
        )
        ratios = np.median(bnp / bn, axis=1)
        print(
            f"{panel.runs[0].batch:5} {bn.mean():6.2f} {bnp.mean():6.2f}  {np.median(ratios):5.2f} "
            f"({ratios.min():.2f} to {ratios.max():.2f})     {paper[1] / paper[0]:19.2f}"
        )


def draw_times(experiment, axes):
    """Draw the time since the start, mean and range, for each size of the minibatch."""
    found = experiment.records()
    for ax, panel in zip(axes, experiment.panels, strict=True):
        curves, bands = {}, {}
        for run in panel.runs:
            times = np.cumsum([r.curves["epoch_seconds"] for r in found[run.name]], axis=1)
            curves[run.label] = times.mean(axis=0)
            bands[run.label] = (times.min(axis=0), times.max(axis=0))
        ax.set_prop_cycle(color=(COLORS[1], COLORS[3]), linestyle=(DASHES[1], DASHES[3]))
        plot_curves(curves, ax, bands=bands, ylabel="seconds")
        ax.set_title(panel.title)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_ylim(0, None)


def draw(experiment):
    """Draw the figure, and save it."""
    use_style()
    fig, axes = plt.subplots(1, len(PANELS), figsize=(13, 3.6))
    draw_times(experiment, axes)
    return experiment.save(fig)


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    perform_in_turns(experiment)
    table(experiment)
    draw(experiment)
