"""Fig. 3: three hidden layers of 100 units, minibatches of 60, on MNIST and CIFAR-10.

::

    python experiments/fig3.py
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

# Table 2
RATES = {
    "mnist": {"vanilla": 0.1, "BN": 0.5, "LN": 0.1, "BNP": 0.5},
    "cifar10": {"vanilla": 0.01, "BN": 0.5, "LN": 0.5, "BNP": 0.1},
}
TITLES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
PANELS = [
    Panel(
        TITLES[data],
        [Run(method, data, "fc3", method, 60, rate, epochs=20) for method, rate in rates.items()],
    )
    for data, rates in RATES.items()
]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
