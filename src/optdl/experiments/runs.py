"""What a run is: plain data, refused where it names something that is not known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

__all__ = ["DATA", "INPUTS", "METHODS", "NETWORKS", "Panel", "Run", "Settings", "Tuning"]

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


@dataclass(frozen=True)
class Settings:
    """What a run has other than its defaults; None stands for the default.

    Parameters
    ----------
    input : bool
        Whether BN, or Renorm, stands at the network's input, too.
    first : bool
        Whether BNP preconditions the first layer.
    first_rate : float
        Learning rate of the weights and the bias of the first layer. The default is that of the
        run, which all other parameters have in any case.
    rho, eps, s_max, d_max : float
        Of BN and Renorm: see :class:`optdl.batchnorm.BatchRenorm`.
    eps1, eps2
        Of BNP: see :class:`optdl.bnp.BNP`.
    corrected : bool
        Whether the running averages of BNP begin with the first minibatch.
    part : str
        What of P BNP has: "center" for U, "scale" for D, "rate" for a number; else all.
    split : bool
        Whether the optimizer works in the coordinates z of θ = Pz, on which
        :meth:`optdl.bnp.BNP.split` has more.
    groups, ghost_size, example_share
        Of 4 Things: see :class:`optdl.batchnorm.FourThingsNorm`.
    group_size : int
        Channels in a group of GN.
    init_scale : float
        A factor of the initial weights of a residual network.
    weight_decay : float
        λ of the penalty ½λ‖θ‖², whose gradient the optimizer adds.
    augment : bool
        Whether training images are padded, cropped and flipped.
    decay : sequence of float
        After so many epochs the rate is divided by ten.
    warmup_steps, warmup_epochs : float
        How long the rate is 0.01, or rises from there.
    size : int
        Images of ImageNet are so many pixels high and wide.
    """

    input: bool | None = None
    first: bool | None = None
    first_rate: float | None = None
    rho: float | None = None
    eps: float | None = None
    s_max: float | None = None
    d_max: float | None = None
    eps1: float | None = None
    eps2: float | None = None
    corrected: bool | None = None
    part: str | None = None
    split: bool | None = None
    groups: int | None = None
    ghost_size: int | None = None
    example_share: float | None = None
    group_size: int | None = None
    init_scale: float | None = None
    weight_decay: float | None = None
    augment: bool | None = None
    decay: Sequence[float] | None = None
    warmup_steps: float | None = None
    warmup_epochs: float | None = None
    size: int | None = None

    def given(self) -> dict[str, Any]:
        """Return what is not left at its default, by name.

        Returns
        -------
        dict
            Names of fields to values, without those that are None.
        """
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)
            if getattr(self, item.name) is not None
        }


_TRAINING = {"weight_decay", "augment", "decay", "warmup_steps", "warmup_epochs"}
_OF_NETWORK: Mapping[str, set[str]] = {
    **{name: {"first_rate"} for name in FULLY_CONNECTED},
    "cnn5": _TRAINING,
    **{name: {*_TRAINING, "init_scale"} for name in RESIDUAL},
    "resnet18": {*_TRAINING, "init_scale", "size"},
}
_BN, _BNP = {"rho", "eps", "input"}, {"first", "rho", "eps1", "eps2", "part", "split"}
METHODS: Mapping[str, Mapping[str, set[str]]] = {
    "fully connected": {
        "vanilla": set(),
        "BN": _BN,
        "LN": {"eps"},
        "Renorm": {*_BN, "s_max", "d_max"},
        "BNP": {*_BNP, "corrected"},
    },
    "cnn5": {
        "vanilla": set(),
        "BN": _BN,
        "LN": set(),
        "Renorm": {*_BN, "s_max", "d_max"},
        "Four": {"groups", "ghost_size", "example_share"},
        "GN": {"group_size"},
        "BNP": _BNP,
    },
    "resnet": {
        "vanilla": set(),
        "BN": set(),
        "GN": {"group_size"},
        "BNP": _BNP,
        "BNP+GN": {*_BNP, "group_size"},
    },
}
"""Kinds of networks to the methods that they can have, and to what these can be told."""


def kind(network: str) -> str:
    """Return which methods a network can have: a key of ``METHODS``."""
    if network in FULLY_CONNECTED:
        return "fully connected"
    return "resnet" if network in RESIDUAL else network


def _require_known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}; got {name!r}")


@dataclass(frozen=True)
class Run:
    """One curve of a figure: a configuration that several seeds share.

    Parameters
    ----------
    label : str
        Its name in the figure, and in the name of its file.
    data, network, method : str
        What is trained, on what, and how: names of ``DATA``, ``NETWORKS`` and ``METHODS``.
    batch, epochs : int
        Examples in a minibatch, and passes through them.
    rate : float
        Learning rate. In a panel with a :class:`Tuning` it is that of the paper, and the run is
        done twice: with it, and with the rate that was chosen.
    optimizer : str
        "sgd", "momentum" or "adam".
    inputs : str
        One of ``INPUTS``.
    settings : Settings
        What the method, the network or the training should have other than its defaults.
    watch_every : int
        Steps between two looks at the conditioning of the first output unit; 0 for none.

    Raises
    ------
    ValueError
        If a name is not known, a setting means nothing to the method or the network, or a
        number is out of range; the message names what is known.

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
    settings: Settings = field(default_factory=Settings)
    watch_every: int = 0

    def __post_init__(self) -> None:
        _require_known("data", self.data, DATA)
        _require_known("network", self.network, NETWORKS)
        _require_known("optimizer", self.optimizer, OPTIMIZERS)
        _require_known("inputs", self.inputs, INPUTS)
        methods = METHODS[kind(self.network)]
        _require_known(f"the method of a {kind(self.network)} network", self.method, list(methods))
        if not isinstance(self.settings, Settings):
            raise TypeError(f"settings must be Settings(...); got {type(self.settings).__name__}")
        accepted = methods[self.method] | _OF_NETWORK[self.network]
        if unknown := sorted(set(self.settings.given()) - accepted):
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
        words = f"{self.data} {self.network} {self.batch} {self.label} {self.inputs}"
        return _file_name(words)

    @property
    def name(self) -> str:
        """The beginning of the names of its files."""
        first = self.settings.first_rate
        rates = self.rate if first is None else (self.rate, first)
        return _file_name(f"{self.curve} {rates_name(rates)}")

    def config(self) -> dict[str, Any]:
        """Return the configuration as a record holds it."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return values | {"settings": self.settings.given()}

    def at(self, rates: float | Pair) -> Run:
        """Return the same run with another learning rate, or with a pair of them."""
        if not isinstance(rates, tuple):
            return replace(self, rate=rates)
        rate, first = rates
        return replace(self, rate=rate, settings=replace(self.settings, first_rate=first))


def rates_name(rates: float | Pair) -> str:
    """Return how files name a learning rate, or a pair of them."""
    each = rates if isinstance(rates, tuple) else (rates,)
    return " first ".join(f"{rate:g}" for rate in each)


def _file_name(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower().replace("+", " and ")).strip("-")


@dataclass(frozen=True)
class Tuning:
    """How the learning rate of every run of a panel is chosen, on validation examples alone.

    Parameters
    ----------
    rates : sequence of float, or of pairs
        The rates of the first round. Where the best one lies at an end, the next rates beyond it
        are tried until it does not. With ``pairs``: a grid, all of which is tried; or none.
    epochs : int
        Passes through the training examples for each rate.
    seeds : int
        Runs for each rate that is tried: seeds 0, 1, ... The chosen one has all seeds.
    examples : int, optional
        So many training examples only, the first ones; all when not given.
    paper : int
        Runs with the paper's rate, where it was not chosen: seeds 0, 1, ...
    pairs : bool
        Whether the first layer has a rate of its own. Without ``rates``, the search for both
        begins with the rate of the run: see :func:`optdl.experiments.tuning.next_pairs`.
    """

    rates: Sequence[Any]
    epochs: int
    seeds: int = 3
    examples: int | None = None
    paper: int = 3
    pairs: bool = False


@dataclass(frozen=True)
class Panel:
    """One part of a figure: the runs that are drawn over each other.

    Parameters
    ----------
    title : str
        What stands above it.
    runs : sequence of Run
        With the rates of the paper.
    tuning : Tuning, optional
        How other rates are chosen; without it there are none.
    """

    title: str
    runs: Sequence[Run]
    tuning: Tuning | None = None
