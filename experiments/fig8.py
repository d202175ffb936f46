"""Fig. 8: two hidden layers of 100 units on CIFAR-10, vanilla and BNP, and condition numbers.

The Hessian is that of the first output unit's bias and weights, 101 × 101, over the minibatch of
a step of BNP; every 25th step is looked at. P is made of the running averages, which the step uses,
and of the minibatch's own statistics; with ε₁ = 0.01 and with ε₁ = 0. ::

    python experiments/fig8.py
"""

import numpy as np
from matplotlib import pyplot as plt

from optdl.experiments import Panel, Run, draw_curves, main
from optdl.plotting import plot_curves

RUNS = [
    Run("vanilla", "cifar10", "fc2", "vanilla", 60, 0.01, epochs=20),
    Run("BNP", "cifar10", "fc2", "BNP", 60, 0.1, epochs=20, watch_every=25),
]
PANELS = [Panel("", RUNS)]
KINDS = {
    "running P 0.01": "P of the step",
    "minibatch P 0.01": "P of the minibatch",
    "running P 0": "of the step, $\\epsilon_1 = 0$",
    "minibatch P 0": "of the minibatch, $\\epsilon_1 = 0$",
}


def table(experiment):
    """Return medians over the steps of all seeds, and the range of the seeds' medians, as rows."""
    records, rows = experiment.records()[RUNS[1].name], []
    for kind in KINDS:
        gains = [np.divide(r.curves["hessian"], r.curves[kind]) for r in records]
        kappa = np.concatenate([r.curves[kind.replace(" P ", " D ")] for r in records])
        medians, gain = [np.median(each) for each in gains], np.concatenate(gains)
        averages, _, least = kind.split()
        rows.append([
            "of the step (running averages)" if averages == "running" else "of the minibatch",
            least,
            f"{np.median(gain):.1f} ({min(medians):.1f}–{max(medians):.1f})",
            f"{np.median(kappa):.1f}",
            f"{np.median(gain / kappa):.2g}",
            f"{np.median(gain / kappa**2):.2g}",
        ])  # fmt: skip
    return rows


def draw(experiment):
    """Draw training curves, and the condition numbers of the first seed."""
    draw_curves(experiment)
    curves = experiment.records()[experiment.panels[0].runs[1].name][0].curves
    shown = {"Hessian": curves["hessian"]} | {KINDS[kind]: curves[kind] for kind in KINDS}
    ax = plt.subplots()[1]
    plot_curves(shown, ax, x=curves["watched_step"], xlabel="step", ylabel="condition number")
    ax.set_yscale("log")
    plt.setp(ax.lines, linewidth=0.8, linestyle="-")
    experiment.save(ax.figure, "fig8-condition-numbers")


if __name__ == "__main__":
    main(__file__, PANELS, __doc__, draw)
