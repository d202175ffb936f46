"""Fig. 6: ResNet-110 on CIFAR-10, preactivation ResNet-110 on CIFAR-100, minibatches of 128.

For a GPU::

    python experiments/fig6.py --device cuda
"""

from optdl.experiments import Experiment, Panel, Run, draw_curves

COMMON = {"augment": True, "weight_decay": 1e-4}
NETWORKS = {
    # data, network, epochs, decay, rate of BNP, and what BNP+GN has for itself
    "ResNet-110": ("cifar10", "resnet110", 160, (80, 120), 0.1, (1.5e-4, 0.1)),
    "preactivation ResNet-110": ("cifar100", "resnet110-pre", 300, (150, 220), 0.01, (2e-4, 0.4)),
}


def panel(title):
    """Return the runs of one network."""
    data, network, epochs, decay, rate, (weight_decay, scale) = NETWORKS[title]
    common = {**COMMON, "decay": decay}
    runs = {
        "BN": (0.1, {"warmup_steps": 400}),
        "GN": (0.1, {"warmup_epochs": 1}),
        "BNP": (rate, {"init_scale": scale}),
        "BNP+GN": (0.1, {"warmup_epochs": 2, "weight_decay": weight_decay, "init_scale": scale}),
    }
    return Panel(
        title,
        [
            Run(name, data, network, name, 128, rate, epochs, "momentum", {**common, **own})
            for name, (rate, own) in runs.items()
        ],
    )


PANELS = [panel(title) for title in NETWORKS]

if __name__ == "__main__":
    experiment = Experiment(__file__, PANELS, description=__doc__)
    experiment.perform()
    draw_curves(experiment)
