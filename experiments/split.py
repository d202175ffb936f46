"""BNP in split form with momentum and Adam, in all layers and in the hidden ones alone.

``first_layer.py`` found a smaller training loss for hidden-layer BNP. Here it is followed to
convolutional networks and other optimizers, in short runs: standardized CIFAR-10, minibatches of
8, the network of five layers (with BN and LN as controls) for three epochs, and ResNet-14 (with GN)
for one. With Adam it has BN as a control, and parts of P and a longer run follow. ::

    python experiments/split.py --only=cnn5 --seeds 2
    python experiments/split.py --only=resnet14 --seeds 2
"""

from optdl.experiments import Panel, Run, Tuning, main

SPLIT, HIDDEN = {"split": True}, {"split": True, "first": False}
FIVE_LAYERS = {"vanilla": {}, "BN": {}, "LN": {}, "BNP": SPLIT, "hidden BNP": HIDDEN}
RESIDUAL = {"GN": {}, "BNP+GN": SPLIT, "hidden BNP+GN": HIDDEN}
RATES = {"adam": (3e-4, 1e-3, 3e-3), "momentum": (0.001, 0.003, 0.01)}
PARTS = ("centering", "center"), ("scaling", "scale"), ("rates", "rate")
PARTS_OF_P = {f"{name} + GN": SPLIT | {"part": part} for name, part in PARTS}


def run(label, method, optimizer, own, rate=None, epochs=1, network="resnet14"):
    """Return a run; where the rate is searched, the middle one of the grid names it."""
    last = rate or RATES[optimizer][1], epochs, optimizer, "standardized", own
    return Run(label, "cifar10", network, method, 8, *last)


def panel(title, optimizer, methods, *last):
    """Return runs whose rates are searched, from labels to settings."""
    runs = []
    for label, own in methods.items():
        method = label.removeprefix("hidden ") if "part" not in own else "BNP+GN"
        runs.append(run(f"{label}, {optimizer}", method, optimizer, own, None, *last))
    tuning = Tuning(RATES[optimizer], epochs=1, seeds=2, examples=15_000, paper=0)
    return Panel(title, runs, tuning)


PANELS = [
    *(panel(f"cnn5, {name}", name, FIVE_LAYERS, 3, "cnn5") for name in RATES),
    panel("resnet14, momentum", "momentum", RESIDUAL),
    Panel(  # the search hardly tells the rates of GN apart
        "resnet14, other rates",
        [run(f"GN, rate {rate:g}", "GN", "momentum", {}, rate) for rate in (0.01, 0.03)]
        + [run(f"GN, adam, rate {rate:g}", "GN", "adam", {}, rate) for rate in (3e-4, 3e-3)],
    ),
    panel("resnet14, adam", "adam", {"GN": {}, "BN": {}} | RESIDUAL),
    panel("resnet14, adam, parts of P", "adam", PARTS_OF_P),  # what the lead comes from
    Panel(  # whether the lead lasts
        "resnet14, adam, four epochs",
        [
            run(f"{name}, adam, four epochs", name, "adam", own | {"decay": (3,)}, rate, 4)
            for name, own, rate in (("GN", {}, 1e-3), ("BN", {}, 1e-3), ("BNP+GN", SPLIT, 3e-3))
        ],
    ),
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
