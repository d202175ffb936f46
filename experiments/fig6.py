"""Fig. 6: ResNet-110 on CIFAR-10, preactivation ResNet-110 on CIFAR-100, minibatches of 128.

In small on a CPU, a network of 14 layers with one drop of the rate, then for a GPU::

    python experiments/fig6.py --only=resnet14 --seeds 2
    python experiments/fig6.py --only=cifar10-resnet110 --device cuda

``gpu.py`` trains ResNet-110 on a schedule that is cut to a few minutes.
"""

from dataclasses import replace

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
    common, both = {"augment": True, "decay": decay, "weight_decay": 1e-4}, {"init_scale": scale}
    both |= {"weight_decay": weight_decay, "warmup_epochs": 2}
    rows = (
        ("BN", 0.1, {"warmup_steps": 400}),
        ("GN", 0.1, {"warmup_epochs": 1}),
        ("BNP", rate, {"init_scale": scale}),
        ("BNP+GN", 0.1, both),
    )
    last = epochs, "momentum", "standardized"
    return Panel(
        title,
        [Run(name, data, network, name, 128, lr, *last, common | own) for name, lr, own in rows],
    )


def small():
    """Return the runs in small: the four methods are trained alike, but for the rate."""
    settings = {"augment": True, "decay": (8,), "weight_decay": 1e-4, "warmup_epochs": 1}
    runs = [
        Run(name, "cifar10", "resnet14", name, 128, 0.1, 10, "momentum", "standardized", settings)
        for name in METHODS
    ]
    tuning = Tuning(rates=(0.03, 0.1, 0.3), epochs=2, seeds=2, examples=15_000, paper=0)
    return Panel("ResNet-14, one drop of the rate", runs, tuning)


def other_rates():
    """Return runs in small at other rates: two epochs hardly told the rates of GN apart."""
    runs = {run.method: run for run in small().runs}
    pairs = [("GN", 0.1), ("GN", 0.3), ("BNP", 0.1), ("BNP+GN", 0.3)]
    return Panel(
        "ResNet-14, other rates",
        [replace(runs[name].at(rate), label=f"{name}, rate {rate:g}") for name, rate in pairs],
    )


def paper_weights():
    """Return runs in small at the paper's rate, where BNP has its weights and weight decay.

    BN and GN with those of BNP+GN, too, tell how much of a gain is not BNP's.
    """
    runs = {run.method: run.at(0.1) for run in small().runs}
    plain = runs["BNP"].settings
    scaled = plain | {"init_scale": 0.1}
    both = scaled | {"weight_decay": 1.5e-4}
    theirs, same = "the paper's", "weights of BNP+GN"
    kinds = [("BN", theirs, plain), ("BNP", theirs, scaled), ("BNP+GN", theirs, both)]
    kinds += [("GN", same, both), ("BN", same, both)]
    return Panel(
        "ResNet-14, the paper's rate and weights",
        [
            replace(runs[name], label=f"{name}, {label}", settings=settings)
            for name, label, settings in kinds
        ],
    )


PANELS = [small(), *map(large, LARGE), paper_weights(), other_rates()]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
