"""Fig. 5: a network of five layers on CIFAR-10, minibatches of 128 and of 2.

Table 3 gives vanilla at 128 the rate 0.1, and the text says that it has Adam: both are run, and
Adam with its usual rate. ::

    python experiments/fig5.py --seeds 3
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

LARGE = {"ghost_size": 32, "weight_decay": 1e-4}
SMALL = {"groups": 8, "weight_decay": 1e-4}
PANELS = [
    Panel(
        "five layers, minibatches of 128",
        [
            Run("vanilla", "cifar10", "cnn5", "vanilla", 128, 0.1, 20),
            Run("Adam 0.001", "cifar10", "cnn5", "vanilla", 128, 1e-3, 20, "adam"),
            Run("Adam 0.1", "cifar10", "cnn5", "vanilla", 128, 0.1, 20, "adam"),
            Run("BN", "cifar10", "cnn5", "BN", 128, 0.1, 20),
            Run("4 Things", "cifar10", "cnn5", "Four", 128, 5e-3, 20, "adam", LARGE),
            Run("BNP", "cifar10", "cnn5", "BNP", 128, 0.1, 20),
        ],
    ),
    Panel(
        "five layers, minibatches of 2",
        [
            Run("vanilla", "cifar10", "cnn5", "vanilla", 2, 1e-3, 10),
            Run("BN", "cifar10", "cnn5", "BN", 2, 1e-3, 10),
            Run("Renorm", "cifar10", "cnn5", "Renorm", 2, 1e-2, 10),
            Run("4 Things", "cifar10", "cnn5", "Four", 2, 1e-4, 10, "adam", SMALL),
            Run("BNP", "cifar10", "cnn5", "BNP", 2, 1e-2, 10),
        ],
    ),
]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
