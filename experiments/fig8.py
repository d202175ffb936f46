"""Fig. 8: two hidden layers of 100 units on CIFAR-10, vanilla and BNP, and condition numbers.

The Hessian is that of the first output unit's bias and weights, 101 × 101, over the minibatch of
a step of BNP; every 25th step is looked at. P is made of the running averages, which the step uses,
and of the minibatch's own statistics; with ε₁ = 0.01 and with ε₁ = 0. ::

    python experiments/fig8.py
"""

import numpy as np
from matplotlib import pyplot as plt

from optdl.experiments import Panel, Run, draw_spreads, main
from optdl.plotting import plot_curves, use_style

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


def gains(record):
    """Return for each kind of P the gain κ(H)/κ(PᵀHP) and κ(D), step by step."""
    before = np.array(record.curves["hessian"])
    return {
        kind: (before / record.curves[kind], np.array(record.curves[kind.replace(" P ", " D ")]))
        for kind in KINDS
    }


def table(experiment):
    """Return medians over the steps of all seeds, and the range of the seeds' medians, as rows."""
    [watched] = [run for run in experiment.panels[0].runs if run.watch_every]
    records, rows = experiment.records()[watched.name], []
    for kind in KINDS:
        pairs = [gains(record)[kind] for record in records]
        medians = [np.median(gain) for gain, _ in pairs]
        gain, kappa = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
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
    use_style()
    fig, ((above, first), (below, second)) = plt.subplots(2, 2, figsize=(10, 6.4))
    by_run = experiment.records()
    runs = [(run, by_run[run.name]) for run in experiment.panels[0].runs if run.name in by_run]
    draw_spreads(above, runs, "test_error", "test accuracy")
    draw_spreads(below, runs, "minibatch_loss", "training loss")
    records = next(records for run, records in runs if run.watch_every)
    curves = records[0].curves
    shown = {"Hessian": curves["hessian"]} | {KINDS[kind]: curves[kind] for kind in KINDS}
    deviations = {KINDS[kind]: curves[kind.replace(" P ", " D ")] for kind in KINDS}
    for ax, each, name in ((first, shown, "condition number"), (second, deviations, "κ(D)")):
        plot_curves(each, ax, x=curves["watched_step"], xlabel="step", ylabel=name)
        ax.set_yscale("log")
        ax.locator_params(axis="x", nbins=5)
        for line in ax.lines:
            line.set(linewidth=0.8, linestyle="-")
    return experiment.save(fig)


if __name__ == "__main__":
    main(__file__, PANELS, __doc__, draw)
