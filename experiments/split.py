"""BNP in split form with momentum and Adam, in all layers and in the hidden ones alone.

``first_layer.py`` found a smaller training loss for hidden-layer BNP. Here it is followed to
convolutional networks and other optimizers, in short runs: standardized CIFAR-10, minibatches of
8, the network of five layers (with BN and LN as controls) for three epochs, and ResNet-14 (with GN)
for one. ::

    python experiments/split.py --only=cnn5 --seeds 3
    python experiments/split.py --only=resnet14 --seeds 2
"""

from dataclasses import replace

from optdl.experiments import Experiment, Panel, Run, Settings, Tuning, draw_curves, table

SPLIT = Settings(split=True)
HIDDEN = Settings(split=True, first=False)
METHODS = {
    "cnn5": {
        "vanilla": ("vanilla", Settings()),
        "BN": ("BN", Settings()),
        "LN": ("LN", Settings()),
        "BNP": ("BNP", SPLIT),
        "hidden BNP": ("BNP", HIDDEN),
    },
    "resnet14": {
        "GN": ("GN", Settings()),
        "BNP+GN": ("BNP+GN", SPLIT),
        "hidden BNP+GN": ("BNP+GN", HIDDEN),
    },
}
EPOCHS = {"cnn5": 3, "resnet14": 1}
RATES = {"adam": (3e-4, 1e-3, 3e-3), "momentum": (0.001, 0.003, 0.01)}


def panel(network: str, optimizer: str) -> Panel:
    """Return the methods of a network with one optimizer."""
    runs = [
        Run(
            f"{label}, {optimizer}",
            "cifar10",
            network,
            method,
            8,
            RATES[optimizer][1],
            EPOCHS[network],
            optimizer,
            "standardized",
            settings,
        )
        for label, (method, settings) in METHODS[network].items()
    ]
    tuning = Tuning(RATES[optimizer], epochs=1, seeds=2, examples=15_000, paper=0)
    return Panel(f"{network}, {optimizer}", runs, tuning)


RESIDUAL = panel("resnet14", "momentum")
OTHER_RATES = Panel(  # the search hardly tells the rates of GN apart
    "resnet14, other rates",
    [replace(RESIDUAL.runs[0].at(rate), label=f"GN, rate {rate:g}") for rate in (0.01, 0.03)],
    paper=False,
)
PANELS = [panel("cnn5", "adam"), panel("cnn5", "momentum"), RESIDUAL, OTHER_RATES]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
    for each in experiment.panels:
        print(f"\n{table(experiment, each)}")
