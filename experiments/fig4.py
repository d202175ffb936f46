"""Fig. 4: minibatches of 6 and of 1 on CIFAR-10.

::

    python experiments/fig4.py --only=fc3-6-
    python experiments/fig4.py --only=fc3-1-
    python experiments/fig4.py --only=cnn5-1- --seeds 3
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

# Tables 2 and 3; BN and Batch Renorm cannot be trained with one example
SIX = {"vanilla": 5e-3, "BN": 5e-2, "Renorm": 5e-2, "LN": 5e-2, "BNP": 5e-2}
ONE = {"vanilla": 5e-4, "LN": 1e-2, "BNP": 1e-1}
FOUR = {"groups": 8, "weight_decay": 1e-4}
# beyond the paper: the limits of the inventor of Batch Renorm
CLIPPED = Run(
    "Renorm, clipped", "cifar10", "fc3", "Renorm", 6, 5e-2, 10, settings={"s_max": 3, "d_max": 5}
)
PANELS = [
    Panel(
        "three dense layers, minibatches of 6",
        [Run(name, "cifar10", "fc3", name, 6, rate, epochs=10) for name, rate in SIX.items()]
        + [CLIPPED],
    ),
    Panel(
        "three dense layers, minibatches of 1",
        [Run(name, "cifar10", "fc3", name, 1, rate, epochs=3) for name, rate in ONE.items()],
    ),
    Panel(
        "convolutions, minibatches of 1",
        [
            Run("vanilla", "cifar10", "cnn5", "vanilla", 1, 1e-3, 3),
            Run("4 Things", "cifar10", "cnn5", "Four", 1, 1e-3, 3, "adam", FOUR),
            Run("BNP", "cifar10", "cnn5", "BNP", 1, 1e-1, 3),
        ],
    ),
]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
