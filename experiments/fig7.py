"""Fig. 7: ResNet-18 on ImageNet, minibatches of 256.

The images come from a folder in ImageNet's layout; for a GPU::

    python experiments/fig7.py --device cuda --imagenet FOLDER --readers 16 --seeds 1
"""

from optdl.experiments import Panel, Run, main

COMMON = {"size": 224, "decay": (30, 60, 90), "weight_decay": 1e-4}
METHODS = {
    "BN": COMMON,
    "GN": COMMON | {"group_size": 32},
    "BNP+GN": COMMON | {"group_size": 32, "weight_decay": 8.5e-4},
}
RUNS = [
    Run(name, "imagenet", "resnet18", name, 256, 0.1, 100, "momentum", "standardized", own)
    for name, own in METHODS.items()
]
PANELS = [Panel("ResNet-18 on ImageNet", RUNS)]

if __name__ == "__main__":
    main(__file__, PANELS, __doc__)
