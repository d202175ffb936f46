"""What a run is: plain data, refused where it names something that is not known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from optdl.records import Record

__all__ = [
    "DATA", "DENSE_METHODS", "INPUTS", "METHODS", "NETWORKS", "Panel", "Run", "Tuning",
    "convolutional_panel", "dense_panels",
]  # fmt: skip

FULLY_CONNECTED = {"fc3": (100, 100, 100), "fc2": (100, 100)}
"""Fully connected networks, by their hidden layers."""

RESIDUAL = ("resnet8", "resnet14", "resnet20", "resnet110", "resnet110-pre", "resnet18")
NETWORKS = (*FULLY_CONNECTED, "cnn5", *RESIDUAL)
DATA = ("digits", "mnist", "cifar10", "cifar100", "imagenet", "generated")
INPUTS = ("raw", "standardized")
"""Pixels between 0 and 1; or with mean 0 and variance 1 in each channel of the training images."""

Pair = tuple[float, float]
"""Two learning rates: that of the later layers, and that of the first."""

OPTIMIZERS = ("sgd", "momentum", "adam")


_TRAINING = {"weight_decay", "augment", "decay", "warmup_steps", "warmup_epochs"}
_OF_NETWORK: Mapping[str, set[str]] = {
    **{name: {"first_rate"} for name in FULLY_CONNECTED},
    "cnn5": _TRAINING,
    **{name: {*_TRAINING, "init_scale"} for name in RESIDUAL},
    "resnet18": {*_TRAINING, "init_scale", "size"},
}
METHODS: Mapping[str, Sequence[str]] = {
    "fully connected": ("vanilla", "BN", "LN", "Renorm", "BNP"),
    "cnn5": ("vanilla", "BN", "LN", "Renorm", "Four", "GN", "BNP"),
    "resnet": ("vanilla", "BN", "GN", "BNP", "BNP+GN"),
}
"""Kinds of networks to the methods that they can have."""

_BNP = {"first", "corrected", "split", "part"}
SETTINGS: Mapping[str, set[str]] = {
    "vanilla": set(),
    "BN": {"input"},
    "LN": set(),
    "Renorm": {"input", "s_max", "d_max"},
    "Four": {"groups", "ghost_size"},
    "GN": {"group_size"},
    "BNP": _BNP,
    "BNP+GN": {*_BNP, "group_size"},
}
"""Methods to what may be set beside their names. A network has settings of its own.

- ``input``, ``first``: whether BN, or Renorm, stands at the network's input, too, which no residual
  network has; whether BNP preconditions the first layer.
- ``first_rate``: learning rate of the first layer, where the others have that of the run.
- ``s_max``, ``d_max``: :class:`optdl.batchnorm.BatchRenorm`.
- ``corrected``, ``split``: :class:`optdl.bnp.BNP`.
- ``part``: what of P BNP has: "center" for U, "scale" for D, "rate" for a number; else all.
- ``groups``, ``ghost_size``: :class:`optdl.batchnorm.FourThingsNorm`.
- ``group_size``: channels in a group of GN.
- ``init_scale``: a factor of the initial weights of a residual network.
- ``weight_decay``: λ of the penalty ½λ‖θ‖², whose gradient the optimizer adds.
- ``augment``: whether training images are padded, cropped and flipped.
- ``decay``: after so many epochs, a sequence, the rate is divided by ten.
- ``warmup_steps``, ``warmup_epochs``: how long the rate is 0.01, or rises from there.
- ``size``: images of ImageNet are so many pixels high and wide.
"""


def kind(network: str) -> str:
    """Return which methods a network can have: a key of ``METHODS``."""
    if network in FULLY_CONNECTED:
        return "fully connected"
    return "resnet" if network in RESIDUAL else network


@dataclass(frozen=True)
class Run:
    """One curve of a figure: a configuration that several seeds share.

    Parameters
    ----------
    label : str
        Its name in the figure, and in the name of its file.
    data, network, method, optimizer, inputs : str
        Names of ``DATA``, ``NETWORKS``, ``METHODS``, ``OPTIMIZERS`` and ``INPUTS``; any other is
        refused, and so is a setting that means nothing to the method or the network.
    rate : float
        Learning rate. In a panel with a :class:`Tuning` it is that of the paper, and the run is
        done twice: with it, and with the rate that was chosen.
    settings : dict
        What it has other than the defaults: see ``SETTINGS``.
    watch_every : int
        Steps between two looks at the conditioning of the first output unit; 0 for none.

    Examples
    --------
    >>> Run("BN", "mnist", "fc4", "BN", 60, 0.1, 20)
    Traceback (most recent call last):
    ValueError: network must be one of fc3, fc2, cnn5, resnet8, resnet14, resnet20, ...
    """

    label: str
    data: str
    network: str
    method: str
    batch: int
    rate: float
    epochs: int
    optimizer: str = "sgd"
    inputs: str = "raw"
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    watch_every: int = 0

    def __post_init__(self) -> None:
        methods = METHODS.get(kind(self.network), ())
        for what, name, known in (
            ("data", self.data, DATA),
            ("network", self.network, NETWORKS),
            ("optimizer", self.optimizer, OPTIMIZERS),
            ("inputs", self.inputs, INPUTS),
            (f"the method of a {kind(self.network)} network", self.method, methods),
        ):
            if name not in known:
                raise ValueError(f"{what} must be one of {', '.join(known)}; got {name!r}")
        accepted = SETTINGS[self.method] | _OF_NETWORK[self.network]
        accepted -= {"input"} if kind(self.network) == "resnet" else set()
        if unknown := sorted(set(self.settings) - accepted):
            raise ValueError(
                f"{self.method} on {self.network} has no setting {', '.join(unknown)}; "
                f"it has {', '.join(sorted(accepted)) or 'none'}"
            )
        if self.batch < 1 or self.epochs < 1 or not self.rate > 0:
            raise ValueError(
                "batch and epochs must be 1 or more and the rate positive; "
                f"got {self.batch}, {self.epochs} and {self.rate}"
            )
        if self.batch == 1 and self.method in ("BN", "Renorm"):
            raise ValueError(f"{self.method} needs 2 examples or more: one has no variance")

    @property
    def curve(self) -> str:
        """Its name without the rate."""
        return file_name(f"{self.data} {self.network} {self.batch} {self.label} {self.inputs}")

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        first = self.settings.get("first_rate")
        rates = self.rate if first is None else (self.rate, first)
        return file_name(f"{self.curve} {rates_name(rates)}")

    def config(self) -> dict[str, Any]:
        """Return the configuration as a record holds it."""
        return Record({}, asdict(self)).config

    def at(self, rates: float | Pair) -> Run:
        """Return the same run with another learning rate, or with a pair of them."""
        if not isinstance(rates, tuple):
            return replace(self, rate=rates)
        rate, first = rates
        return replace(self, rate=rate, settings={**self.settings, "first_rate": first})


def rates_name(rates: float | Pair) -> str:
    """Return how files name a learning rate, or a pair of them."""
    each = rates if isinstance(rates, tuple) else (rates,)
    return " first ".join(f"{rate:g}" for rate in each)


def file_name(words: str) -> str:
    """Return words as part of the name of a file."""
    return re.sub(r"[^a-z0-9.]+", "-", words.lower().replace("+", " and ")).strip("-")


@dataclass(frozen=True)
class Tuning:
    """How the learning rate of every run of a panel is chosen, on validation examples alone.

    Where the best of the ``rates`` lies at an end, the next ones beyond it are tried until it does
    not. With ``pairs`` the first layer has a rate of its own, and all of the rates are tried; the
    search without any begins with the rate of the run: see
    :func:`optdl.experiments.tuning.next_pairs`.
    """

    rates: Sequence[Any]  # numbers, or pairs of them
    epochs: int  # passes through the training examples for each rate
    seeds: int = 3  # 0, 1, ... for each rate that is tried; the chosen one has all seeds
    examples: int | None = None  # so many training examples only, the first ones; else all
    paper: int = 3  # seeds 0, 1, ... with the paper's rate, where it was not chosen
    pairs: bool = False


@dataclass(frozen=True)
class Panel:
    """One part of a figure: runs, with the rates of the paper, that are drawn over each other.

    ``tuning`` says how other rates are chosen; without it there are none.
    """

    title: str
    runs: Sequence[Run]
    tuning: Tuning | None = None


# --- What several figures share ---

DENSE_METHODS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "vanilla": ("vanilla", {}),
    "BN": ("BN", {}),
    "BN+input": ("BN", {"input": True}),
    "LN": ("LN", {}),
    "Renorm": ("Renorm", {}),
    "Renorm, clipped": ("Renorm", {"s_max": 3.0, "d_max": 5.0}),
    "BNP": ("BNP", {}),
    "BNP, not the first layer": ("BNP", {"first": False}),
}
"""Labels to methods and settings. "BN+input" is the paper's equation (2) from ℓ = 1 on."""


def dense_panels(
    title: str, data: str, batch: int, epochs: int, paper: Mapping[str, float], tuning: Tuning
) -> list[Panel]:
    """Return two panels, raw and standardized inputs, with every method that takes the batch size.

    Source: P-19, F-10

    Where the paper has no rate, that of BN or of vanilla serves, with which the method shares most.
    """
    usual = paper.get("BN", paper["vanilla"])
    rates = dict.fromkeys(METHODS["fully connected"], usual) | dict(paper)
    return [
        Panel(
            f"{title}, {inputs} inputs",
            [
                Run(label, data, "fc3", method, batch, rates[method], epochs, "sgd", inputs, own)
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
    four_settings: Mapping[str, Any],
) -> Panel:
    """Return a panel of the network of five layers on CIFAR-10, with standardized inputs.

    "Adam" is the network without any method, "4 Things" has Adam, too, and a weight decay of
    0.0001. ``paper`` has the rates, ``four_settings`` groups or ghost minibatches of 4 Things.
    """
    methods = {
        "Adam": ("vanilla", "adam", {}),
        "4 Things": ("Four", "adam", {**four_settings, "weight_decay": 1e-4}),
    }
    runs = []
    for label, rate in paper.items():
        method, optimizer, own = methods.get(label, (label, "sgd", {}))
        last = epochs, optimizer, "standardized", own
        runs.append(Run(label, "cifar10", "cnn5", method, batch, rate, *last))
    return Panel(title, runs, tuning)
