"""Fig. 6: ResNet-110 on CIFAR-10, preactivation ResNet-110 on CIFAR-100, minibatches of 128.

In small on a CPU, a network of 14 layers with one drop of the rate, then for a GPU::

    python experiments/fig6.py --only=resnet14 --seeds 2
    python experiments/fig6.py --only=cifar10-resnet110 --device cuda

``gpu.py`` trains ResNet-110 on a schedule that is cut to a few minutes.
"""

from optdl.experiments import Panel, Run, Tuning, main

METHODS = ("BN", "GN", "BNP", "BNP+GN")
LARGE = {
    # data, network, epochs, decay, rate of BNP, and what BNP+GN has for itself
    "ResNet-110": ("cifar10", "resnet110", 160, (80, 120), 0.1, (1.5e-4, 0.1)),
    "preactivation ResNet-110": ("cifar100", "resnet110-pre", 300, (150, 220), 0.01, (2e-4, 0.4)),
}


def large(title):
    """Return the runs of one network, as the paper has them."""
    data, network, epochs, decay, rate, (weight_decay, scale) = LARGE[title]
    common = {"augment": True, "decay": decay, "weight_decay": 1e-4}
    both = {"init_scale": scale, "weight_decay": weight_decay, "warmup_epochs": 2}
    owns = {"warmup_steps": 400}, {"warmup_epochs": 1}, {"init_scale": scale}, both
    last = epochs, "momentum", "standardized"
    runs = [
        Run(name, data, network, name, 128, rate if name == "BNP" else 0.1, *last, common | own)
        for name, own in zip(METHODS, owns, strict=True)
    ]
    return Panel(title, runs)


def small(label, rate=0.1, **own):
    """Return a run in small of the method that its label begins with; else all are alike."""
    settings = {"augment": True, "decay": (8,), "weight_decay": 1e-4, "warmup_epochs": 1} | own
    last = 10, "momentum", "standardized", settings
    return Run(label, "cifar10", "resnet14", label.partition(",")[0], 128, rate, *last)


SEARCH = Tuning(rates=(0.03, 0.1, 0.3), epochs=2, seeds=2, examples=15_000, paper=0)
BOTH = {"init_scale": 0.1, "weight_decay": 1.5e-4}
WEIGHTS = {
    "BN, the paper's": {},
    "BNP, the paper's": {"init_scale": 0.1},
    "BNP+GN, the paper's": BOTH,
    # in BN and GN, too, they tell how much of a gain is not BNP's
    "GN, weights of BNP+GN": BOTH,
    "BN, weights of BNP+GN": BOTH,
}
# two epochs hardly told the rates of GN apart
OTHER_RATES = [("GN", 0.1), ("GN", 0.3), ("BNP", 0.1), ("BNP+GN", 0.3)]
THEIRS = [small(label, **own) for label, own in WEIGHTS.items()]
OTHERS = [small(f"{name}, rate {rate:g}", rate) for name, rate in OTHER_RATES]
PANELS = [
    Panel("ResNet-14, one drop of the rate", [*map(small, METHODS)], SEARCH),
    *map(large, LARGE),
    Panel("ResNet-14, the paper's rate and weights", THEIRS),
    Panel("ResNet-14, other rates", OTHERS),
]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
