"""Fig. 4: minibatches of 6 and of 1 on CIFAR-10.

::

    python experiments/fig4.py --only=-6-
    python experiments/fig4.py --only=-1-
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

# Tables 2 and 3; BN and Batch Renorm cannot be trained with one example
SIX = {"vanilla": 5e-3, "BN": 5e-2, "Renorm": 5e-2, "LN": 5e-2, "BNP": 5e-2}
ONE = {"vanilla": 5e-4, "LN": 1e-2, "BNP": 1e-1}
PANELS = [
    Panel(
        "three dense layers, minibatches of 6",
        [Run(name, "cifar10", "fc3", name, 6, rate, epochs=10) for name, rate in SIX.items()],
    ),
    Panel(
        "three dense layers, minibatches of 1",
        [Run(name, "cifar10", "fc3", name, 1, rate, epochs=5) for name, rate in ONE.items()],
    ),
]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
