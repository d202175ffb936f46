"""Beyond the paper: BNP with statistics that begin with the first minibatch, momentum, Adam.

Three hidden layers of 100 units, minibatches of 60. ::

    python experiments/beyond.py --seeds 3
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

CORRECTED = {"corrected": True}
STARTING = {"digits": (0.3, 15), "mnist": (0.5, 5), "cifar10": (0.1, 5)}
STARTS = [
    Panel(
        f"{data}, rate {rate:g}",
        [
            Run("BNP", data, "fc3", "BNP", 60, rate, epochs),
            Run("BNP, corrected", data, "fc3", "BNP", 60, rate, epochs, settings=CORRECTED),
        ],
    )
    for data, (rate, epochs) in STARTING.items()
]
OPTIMIZERS = {"momentum": (0.003, 0.01, 0.03), "adam": (3e-4, 1e-3, 3e-3)}
OTHERS = [
    Panel(
        f"cifar10, {optimizer}",
        [
            Run(f"{name} {rate:g}, {optimizer}", "cifar10", "fc3", name, 60, rate, 5, optimizer)
            for name in ("vanilla", "BNP")
            for rate in rates
        ],
    )
    for optimizer, rates in OPTIMIZERS.items()
]
PANELS = [*STARTS, *OTHERS]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
