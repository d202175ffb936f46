"""The methods for a dense network on equal terms: every one with both kinds of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optdl.experiments.runs import INPUTS, Panel, Run, Settings, Tuning

__all__ = ["DENSE_METHODS", "convolutional_panel", "dense_panels"]

DENSE_METHODS: Mapping[str, tuple[str, Settings]] = {
    "vanilla": ("vanilla", Settings()),
    "BN": ("BN", Settings()),
    "BN+input": ("BN", Settings(input=True)),
    "LN": ("LN", Settings()),
    "Renorm": ("Renorm", Settings()),
    "Renorm, clipped": ("Renorm", Settings(s_max=3.0, d_max=5.0)),
    "BNP": ("BNP", Settings()),
    "BNP, not the first layer": ("BNP", Settings(first=False)),
}
"""Labels to methods and settings. "BN+input" is the paper's equation (2) from ℓ = 1 on."""


def dense_panels(
    title: str, data: str, batch: int, epochs: int, paper: Mapping[str, float], tuning: Tuning
) -> list[Panel]:
    """Return two panels, raw and standardized inputs, with every method that takes the batch size.

    Source: P-19, F-10

    Where the paper has no rate, that of BN or of vanilla serves, with which the method shares most.
    """

    def rate(method: str) -> float:
        return paper.get(method, paper.get("BN", paper["vanilla"]))

    return [
        Panel(
            f"{title}, {inputs} inputs",
            [
                Run(label, data, "fc3", method, batch, rate(method), epochs, "sgd", inputs, own)
                for label, (method, own) in DENSE_METHODS.items()
                if batch > 1 or method not in ("BN", "Renorm")
            ],
            tuning,
        )
        for inputs in INPUTS
    ]


def convolutional_panel(
    title: str,
    batch: int,
    epochs: int,
    paper: Mapping[str, float],
    tuning: Tuning,
    four_settings: Settings,
) -> Panel:
    """Return a panel of the network of five layers on CIFAR-10, with standardized inputs.

    "Adam" is the network without any method, "4 Things" has Adam, too, and a weight decay of
    0.0001. ``paper`` has the rates, ``four_settings`` groups or ghost minibatches of 4 Things.
    """
    methods = {
        "Adam": ("vanilla", "adam", Settings()),
        "4 Things": ("Four", "adam", replace(four_settings, weight_decay=1e-4)),
    }
    runs = []
    for label, rate in paper.items():
        method, optimizer, settings = methods.get(label, (label, "sgd", Settings()))
        training = (batch, rate, epochs, optimizer, "standardized", settings)
        runs.append(Run(label, "cifar10", "cnn5", method, *training))
    return Panel(title, runs, tuning)
