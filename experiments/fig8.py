"""Fig. 8: two hidden layers of 100 units on CIFAR-10, vanilla and BNP, and condition numbers.

The Hessian is that of the first output unit's bias and weights, 101 × 101, over the minibatch of
a step of BNP; every 25th step is looked at. ::

    python experiments/fig8.py
"""

from matplotlib import pyplot as plt

from optdl.experiments import Experiment, Panel, Run, draw_spreads
from optdl.plotting import plot_curves, use_style

RUNS = [
    Run("vanilla", "cifar10", "fc2", "vanilla", 60, 0.01, epochs=20),
    Run("BNP", "cifar10", "fc2", "BNP", 60, 0.1, epochs=20, watch_every=25),
]
PANELS = [Panel("", RUNS)]
NAMES = {"hessian": "Hessian", "preconditioned": "$P^T$ Hessian $P$", "D": "$D$"}


def draw(experiment):
    """Draw training curves, and the condition numbers of the first seed."""
    use_style()
    fig, axes = plt.subplots(1, 4, figsize=(17, 3.6))
    found = experiment.records()
    runs = [(run, found[run.name]) for run in experiment.panels[0].runs if run.name in found]
    draw_spreads(axes[0], runs, "validation_error", "test accuracy")
    draw_spreads(axes[1], runs, "minibatch_loss", "training loss")
    watched = next(records[0].curves for run, records in runs if run.watch_every)
    for ax, names in ((axes[2], ("hessian", "preconditioned")), (axes[3], ("D",))):
        curves = {NAMES[name]: watched[name] for name in names}
        plot_curves(curves, ax, x=watched["watched_step"], xlabel="step", ylabel="κ")
        ax.set_yscale("log")
    return experiment.save(fig)


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw(experiment)
