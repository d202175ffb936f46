"""BNP in split form with momentum and Adam, in all layers and in the hidden ones alone.

``first_layer.py`` found a smaller training loss for hidden-layer BNP. Here it is followed to
convolutional networks and other optimizers, in short runs: standardized CIFAR-10, minibatches of
8, the network of five layers (with BN and LN as controls) for three epochs, and ResNet-14 (with GN)
for one. With Adam it has BN as a control, and parts of P and a longer run follow. ::

    python experiments/split.py --only=cnn5 --seeds 2
    python experiments/split.py --only=resnet14 --seeds 2
"""

from dataclasses import replace

from optdl.experiments import Panel, Run, Tuning, main

SPLIT = {"split": True}
HIDDEN = {"split": True, "first": False}
METHODS = {
    "cnn5": {"vanilla": {}, "BN": {}, "LN": {}, "BNP": SPLIT, "hidden BNP": HIDDEN},
    "resnet14": {"GN": {}, "BNP+GN": SPLIT, "hidden BNP+GN": HIDDEN},
}
EPOCHS = {"cnn5": 3, "resnet14": 1}
RATES = {"adam": (3e-4, 1e-3, 3e-3), "momentum": (0.001, 0.003, 0.01)}


def panel(network: str, name: str) -> Panel:
    """Return the methods of a network with one optimizer."""
    rates, last, runs = RATES[name], (EPOCHS[network], name, "standardized"), []
    for label, own in METHODS[network].items():
        method = label.removeprefix("hidden ")
        runs.append(Run(f"{label}, {name}", "cifar10", network, method, 8, rates[1], *last, own))
    tuning = Tuning(rates, epochs=1, seeds=2, examples=15_000, paper=0)
    return Panel(f"{network}, {name}", runs, tuning)


RESIDUAL, ADAM = panel("resnet14", "momentum"), panel("resnet14", "adam")
GN, BOTH, _ = ADAM.runs
BN = replace(GN, label="BN, adam", method="BN")
ADAM.runs.insert(1, BN)
OTHER_RATES = Panel(  # the search hardly tells the rates of GN apart
    "resnet14, other rates",
    [replace(RESIDUAL.runs[0].at(rate), label=f"GN, rate {rate:g}") for rate in (0.01, 0.03)]
    + [replace(GN.at(rate), label=f"GN, adam, rate {rate:g}") for rate in (3e-4, 3e-3)],
)
PARTS = Panel(  # what of P the lead comes from
    "resnet14, adam, parts of P",
    [
        replace(BOTH, label=f"{name} + GN, adam", settings=SPLIT | {"part": part})
        for part, name in (("center", "centering"), ("scale", "scaling"), ("rate", "rates"))
    ],
    ADAM.tuning,
)
LONGER = [  # whether the lead lasts
    replace(run.at(rate), label=f"{run.method}, adam, four epochs", epochs=4,
            settings=run.settings | {"decay": (3,)})
    for run, rate in ((GN, 1e-3), (BN, 1e-3), (BOTH, 3e-3))
]  # fmt: skip
PANELS = [panel("cnn5", "adam"), panel("cnn5", "momentum")]
PANELS += [RESIDUAL, OTHER_RATES, ADAM, PARTS, Panel("resnet14, adam, four epochs", LONGER)]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
