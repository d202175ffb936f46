"""What the learning rate does: vanilla, BN, LN and BNP on CIFAR-10, minibatches of 60.

Three hidden layers of 100 units, five epochs, seven rates. ::

    python experiments/sensitivity.py --seeds 3
"""

import numpy as np
from matplotlib import pyplot as plt

from optdl.experiments import Experiment, Panel, Run
from optdl.plotting import plot_curves, use_style

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
METHODS = ("vanilla", "BN", "LN", "BNP")
PANELS = [
    Panel(name, [Run(name, "cifar10", "fc3", name, 60, rate, epochs=5) for rate in RATES])
    for name in METHODS
]


def draw(experiment):
    """Draw the test accuracy of the last epoch against the rate; a diverged seed guesses."""
    use_style()
    found = experiment.records()
    ax = plt.subplots()[1]
    curves, bands = {}, {}
    for panel in experiment.panels:
        ends = np.array([[accuracy(r) for r in found[run.name]] for run in panel.runs])
        curves[panel.title] = ends.mean(axis=1)
        bands[panel.title] = (ends.min(axis=1), ends.max(axis=1))
    plot_curves(curves, ax, x=RATES, bands=bands, xlabel="learning rate", ylabel="test accuracy")
    ax.set(xscale="log", title=f"{experiment.panels[0].runs[0].epochs} epochs")
    return experiment.save(ax.figure)


def accuracy(record):
    """Return the last test accuracy; that of a guess where the run diverged."""
    return 0.1 if record.stop.startswith("diverged") else 1 - record.curves["validation_error"][-1]


if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw(experiment)
