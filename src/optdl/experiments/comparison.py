"""The methods for a dense network on equal terms: every one with both kinds of inputs."""

from __future__ import annotations

from collections.abc import Mapping

from optdl.experiments.runs import INPUTS, Panel, Run, Settings, Tuning

__all__ = ["DENSE_METHODS", "dense_panels"]

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
"""Labels to methods and settings. "BN+input" is equation (2) of the paper from the first layer on."""


def dense_panels(
    title: str, data: str, batch: int, epochs: int, paper: Mapping[str, float], tuning: Tuning
) -> list[Panel]:
    """Return two panels, raw and standardized inputs, with every method that takes the batch size.

    Parameters
    ----------
    paper : mapping
        Methods to the paper's rates. Where it has none, the rate of BN or of vanilla serves, with
        which the method shares most.
    """
    return [
        Panel(
            f"{title}, {inputs} inputs",
            [
                Run(
                    label,
                    data,
                    "fc3",
                    method,
                    batch,
                    paper.get(method, paper.get("BN", paper["vanilla"])),
                    epochs,
                    inputs=inputs,
                    settings=settings,
                )
                for label, (method, settings) in DENSE_METHODS.items()
                if batch > 1 or method not in ("BN", "Renorm")
            ],
            tuning,
        )
        for inputs in INPUTS
    ]
