"""The lab on a GPU: a CNN and a residual network with BN, GN, BNP, and BNP with GN.

The same code trains in two sizes: :data:`SMALL`, digits on a CPU in less than a minute, and
:data:`FULL`, CIFAR-10 on a GPU. Both call what the student wrote.

Source: LAB-6.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from optdl.data import load
from optdl.labs.digits import Data, accuracy, standardized
from optdl.labs.lab import Lab, Parts, last_accuracy, on_threads, perform
from optdl.labs.records import LabRecord
from optdl.networks import CHANNEL_NORMALIZATIONS, cnn5, resnet_cifar

__all__ = [
    "FULL",
    "FULL_FILE",
    "LAB",
    "LEVEL",
    "METHODS",
    "SMALL",
    "Size",
    "cifar10",
    "digits",
    "epochs_until",
    "examples",
    "experiment",
    "full_report",
    "images_per_second",
    "interrupted",
    "mean_losses",
    "measure",
    "network",
    "perform_full",
    "precision",
    "table",
    "train",
]

METHODS = ("BN", "GN", "BNP", "BNP+GN")
"""What is compared."""

LEVEL = 0.3
"""The loss whose first epoch is read off the figure."""

FULL_FILE = "record-full.json"
"""The record of the full size, beside the notebook."""


@dataclass(frozen=True)
class Size:
    """How large the runs are: data, networks, and how they are trained.

    ``data`` is ``digits`` or ``cifar10``; ``kinds`` are names of :func:`network`; ``rates`` are the
    learning rates by method, divided by ten after each of ``drops`` epochs. Images get ``padding``
    rows and columns of zeros around them before a part is cut out. ``dtype`` is that of the forward
    pass, float32 where it is None.
    """

    data: str
    kinds: tuple[str, ...]
    rates: Mapping[str, float]
    batch: int
    epochs: int
    drops: tuple[int, ...] = ()
    padding: int = 4
    flip: bool = True
    device: str = "cpu"
    dtype: torch.dtype | None = None
    weight_decay: float = 0.0

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Return the setting of each run."""
        return [{"network": kind, "method": method} for kind in self.kinds for method in METHODS]

    def rate(self, method: str, epoch: int) -> float:
        """Return the learning rate of a method in an epoch, counted from 0.

        Where the rate drops later, the first epoch is a warm-up at a tenth of it.
        """
        drops = sum(epoch >= drop for drop in self.drops) + (bool(self.drops) and epoch == 0)
        return self.rates[method] / 10**drops


# the rates that gave ResNet-8 the smallest loss after six epochs, of 0.01, 0.03, 0.1, 0.3 and 1,
# in the mean of two seeds
SMALL = Size(
    "digits",
    ("small CNN", "ResNet-8"),
    {"BN": 0.03, "GN": 0.03, "BNP": 0.1, "BNP+GN": 0.1},
    batch=32,
    epochs=10,
    padding=1,
    flip=False,
)
"""The runs of the lab itself, which take minutes on a processor."""

# those of the paper, but for one rate and one weight decay for all
FULL = Size(
    "cifar10",
    ("CNN", "ResNet-110"),
    {"BN": 0.1, "GN": 0.1, "BNP": 0.1, "BNP+GN": 0.1},
    batch=128,
    epochs=160,
    drops=(80, 120),
    device="cuda",
    dtype=torch.float16,
    weight_decay=1e-4,
)
"""The runs of the full size, for a GPU."""


# --- Data and networks ------------------------------------------------------------------------


@cache
def digits() -> Data:
    """Return the digits as images of 3 × 8 × 8, the three colors alike: training, validation."""
    x, y, x_validation, y_validation = standardized()
    images = [features.reshape(-1, 1, 8, 8).repeat(1, 3, 1, 1) for features in (x, x_validation)]
    return images[0], y, images[1], y_validation


@cache
def cifar10() -> Data:
    """Return CIFAR-10 from the folder ``OPTDL_DATA``, each color standardized: training, test."""
    data = load("cifar10")
    x, x_test = (
        torch.tensor(pixels).reshape(-1, 3, 32, 32) for pixels in (data.x_train, data.x_test)
    )
    mean, std = x.mean((0, 2, 3), keepdim=True), x.std((0, 2, 3), keepdim=True)
    y, y_test = torch.tensor(data.y_train), torch.tensor(data.y_test)
    return (x - mean) / std, y, (x_test - mean) / std, y_test


def examples(size: Size) -> Data:
    """Return the data of a size."""
    return cifar10() if size.data == "cifar10" else digits()


def network(kind: str, method: str, seed: int) -> nn.Module:
    """Return a network for images with three colors, with weights of a seed.

    The kinds are ``ResNet-8`` to ``ResNet-110``, ``CNN`` for 32 × 32 pixels, ``small CNN`` for
    8 × 8. The methods are ``BN``, ``GN`` (four channels in a group), ``BNP`` without a
    normalization, and ``BNP+GN``; BNP itself is applied from outside: ``BNP(network)``.

    Examples
    --------
    >>> network("small CNN", "GN", 0)(torch.zeros(2, 3, 8, 8)).shape
    torch.Size([2, 10])
    """
    norm = {"BN": "bn", "BNP": "none"}.get(method, "gn")
    if kind == "CNN":
        return cnn5(normalization=norm, seed=seed)
    if kind == "small CNN":
        return _small_cnn(norm, seed)
    scale = 0.1 if kind == "ResNet-110" and method.startswith("BNP") else 1.0
    depth = int(kind.removeprefix("ResNet-"))
    return resnet_cifar(depth, normalization=norm, init_scale=scale, seed=seed)


def _small_cnn(norm: str, seed: int) -> nn.Sequential:
    """Return three convolutions and two dense layers for 8 × 8 pixels, weights He normal."""
    normalization = CHANNEL_NORMALIZATIONS[norm] or nn.Identity
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 32)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), normalization(outputs), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    generator = torch.Generator().manual_seed(seed)
    for layer in model:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return model


def precision(device: torch.device, dtype: torch.dtype | None) -> Any:
    """Return the context of a forward pass: autocast to a type, or none where it is None."""
    return contextlib.nullcontext() if dtype is None else torch.autocast(device.type, dtype)


# --- The runs ---------------------------------------------------------------------------------


def train(
    size: Size,
    parts: Parts,
    setting: dict[str, Any],
    seed: int,
    steps: int | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[dict[str, list[float]], Any]:
    """Train one network with the student's classes; see :class:`optdl.labs.Lab`.

    The parts are ``Trainer``, ``Batches``, ``augment`` and, with a ``folder`` that exists,
    ``Checkpoint``: each epoch leaves one there, by which an interrupted run goes on. The seed is
    that of the weights and of the order of the examples; the next one is that of the crops. With
    ``steps``, only so many are trained, of the first epoch. The curves are ``loss``, one for each
    step, and without ``steps`` ``accuracy``, one for each epoch.
    """
    method, kind = setting["method"], setting["network"]
    x, y, x_validation, y_validation = examples(size)
    order, crops = (torch.Generator(size.device).manual_seed(seed + k) for k in (0, 1))
    trainer = parts["Trainer"](
        {"kind": kind, "method": method, "seed": seed},
        lr=size.rates[method],
        device=size.device,
        dtype=size.dtype,
        bnp=method.startswith("BNP"),
        weight_decay=size.weight_decay,
    )
    batches = parts["Batches"](x, y, size.batch, order, size.device)
    if steps is not None:
        return {"loss": trainer.epoch(_cropped(size, parts, batches, crops, steps))}, trainer.model
    curves: dict[str, list[float]] = {"loss": [], "accuracy": []}
    names = ("model", "optimizer", "scaler", "bnp")
    states = {name: part for name in names if (part := getattr(trainer, name)) is not None}
    # curves that a checkpoint can hold
    states["curves"] = SimpleNamespace(state_dict=lambda: curves, load_state_dict=curves.update)
    done = 0
    if folder is not None:
        checkpoint = parts["Checkpoint"](Path(folder) / f"{kind}-{method}.pt")
        done = checkpoint.load([order, crops], **states)
    for epoch in range(done, size.epochs):
        for group in trainer.optimizer.param_groups:
            group["lr"] = size.rate(method, epoch)
        curves["loss"] += trainer.epoch(_cropped(size, parts, batches, crops))
        curves["accuracy"].append(
            accuracy(trainer.model, x_validation, y_validation, device=size.device)
        )
        if folder is not None:
            checkpoint.save(epoch + 1, [order, crops], **states)
    return curves, trainer.model


def _cropped(
    size: Size, parts: Parts, batches: Iterable[Any], generator: Any, steps: int | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the minibatches of an epoch, their images padded, cropped and perhaps mirrored."""
    for x, y in islice(batches, steps):
        yield parts["augment"](x, generator, padding=size.padding, flip=size.flip), y


@on_threads(1)
def interrupted(parts: Parts) -> tuple[list[float], list[float]]:
    """Return the losses of two epochs in one piece, and with an interruption after the first."""
    size, setting = replace(SMALL, epochs=2), {"network": "ResNet-8", "method": "BNP+GN"}
    whole, _ = train(size, parts, setting, 0)
    with tempfile.TemporaryDirectory() as folder:
        train(replace(size, epochs=1), parts, setting, 0, folder=folder)
        resumed, _ = train(size, parts, setting, 0, folder=folder)
    return whole["loss"], resumed["loss"]


def experiment(
    parts: Parts, setting: dict[str, Any], seed: int, steps: int | None = None
) -> tuple[dict[str, list[float]], Any]:
    """Train one network of the small size; see :class:`optdl.labs.Lab`."""
    return train(SMALL, parts, setting, seed, steps)


_ASKED = "one of " + ", ".join(METHODS), METHODS.__contains__
LAB = Lab("LAB-6", SMALL.settings, experiment, predictions=dict.fromkeys(("first", "last"), _ASKED))
"""The runs of lab 6, at the small size."""


# --- The full size ----------------------------------------------------------------------------


def _full_run(
    size: Size,
    folder: str | os.PathLike[str],
    parts: Parts,
    setting: dict[str, Any],
    seed: int,
    steps: int | None = None,
) -> tuple[dict[str, list[float]], nn.Module]:
    """Train one network at full size; of the losses keep the mean of each epoch, and no weights.

    A record could not hold 56,000 losses of each run, nor 1.7 million weights.
    """
    curves, _ = train(size, parts, setting, seed, steps, folder)
    return {**curves, "loss": _means(curves["loss"], size.epochs)}, nn.Identity()


def perform_full(
    parts: Parts,
    *,
    user: str,
    predictions: dict[str, Any],
    path: str | os.PathLike[str] = FULL_FILE,
    folder: str | os.PathLike[str] = "checkpoints",
    size: Size = FULL,
) -> LabRecord:
    """Make the runs of the full size; after an interruption the same call goes on.

    Finished runs are in the record at ``path``, and the run under way is in ``folder``, which is
    made if it is missing, by its epochs; the rest is as for :func:`optdl.labs.perform`.

    Raises
    ------
    RecordError
        If the file is the record of another student or lab, or is damaged.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    lab = Lab("LAB-6, full size", size.settings, partial(_full_run, size, folder))
    record = perform(lab, parts, user=user, predictions=predictions, path=path)
    record.device = torch.cuda.get_device_name() if size.device == "cuda" else size.device
    record.save(path)
    return record


def full_report(path: str | os.PathLike[str] = FULL_FILE) -> str:
    """Return what the record of the full size holds, in words; none is asked for."""
    if not Path(path).exists():
        return f"there is no {Path(path).name}; you may skip the full size if you have no GPU"
    record = LabRecord.load(path)
    lines = [f"{record.lab}, by {record.user}, on {record.device}"]
    for run in record.runs:
        setting = ", ".join(str(value) for value in run.setting.values())
        lines.append(
            f"{setting}: test accuracy {last_accuracy(run.curves):.1%}, {run.seconds:.0f} s"
        )
    return "\n".join(lines)


# --- The curves -------------------------------------------------------------------------------


def _means(losses: list[float], epochs: int) -> list[float]:
    """Return the mean of each epoch; all have the same number of steps."""
    steps = max(1, len(losses) // epochs)
    parts = [losses[first : first + steps] for first in range(0, len(losses), steps)]
    return [sum(part) / len(part) for part in parts]


def mean_losses(record: LabRecord, kind: str = "ResNet-8") -> dict[str, list[float]]:
    """Return for each method the mean training loss of each epoch, of one kind of network.

    Diverged runs are left out.
    """
    return {
        run.setting["method"]: _means(run.curves["loss"], SMALL.epochs)
        for run in record.runs
        if run.setting["network"] == kind and run.stop == "done"
    }


def epochs_until(losses: list[float], level: float = LEVEL) -> int:
    """Return the first epoch whose mean loss is below a level, counted from 1; 0 if there is none.

    Examples
    --------
    >>> epochs_until([1.2, 0.4, 0.2]), epochs_until([1.2])
    (3, 0)
    """
    return next((epoch for epoch, loss in enumerate(losses, 1) if loss < level), 0)


# --- Images per second ------------------------------------------------------------------------


def _variants(device: str) -> dict[str, dict[str, Any]]:
    """Return what is measured on a device: one change after the other, then each by itself."""
    both = "channels_last, autocast"
    return {
        "float32": {"channels_last": False, "half": False},
        "channels_last": {"half": False},
        both: {},
        f"{both}, losses read in each step": {"waits": True},
        f"{both}, images on the CPU": {"images": "cpu"},
        f"{both}, augmented on {device}": {"images": device, "augmented": True},
        f"{both}, augmented on cpu": {"images": "cpu", "augmented": True},
        f"{both}, compiled": {"compiled": True},  # the last: it takes longest
    }


def images_per_second(step: Callable[[], Any], images: int, warmup: int, repeats: int) -> float:
    """Return on how many images a step works in each second, on a CPU or on a GPU.

    Each call of ``step`` works on so many images, on a GPU perhaps still when it returns. The first
    calls compile and allocate: so many of them, ``warmup``, are not measured.
    """

    def now() -> float:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return time.perf_counter()

    for _ in range(warmup):
        step()
    start = now()
    for _ in range(repeats):
        step()
    return repeats * images / (now() - start)


def measure(
    parts: Parts,
    size: Size = SMALL,
    steps: int = 10,
    told: Callable[[str, float], Any] = lambda name, speed: None,
) -> dict[str, float | None]:
    """Measure images per second of each variant of training, with the student's functions.

    The images are random: what they show does not change the speed. On a CPU one thread computes:
    where other programs run, two wait for each other. The parts are ``Trainer`` and ``augment``;
    the network is the last of the size; ``steps`` are the minibatches between two looks at the
    losses. ``told`` is called with each name and speed as it comes. The result has None where a
    variant was not measured: on a CPU nothing is compiled, and the images lie there anyway.
    """
    on_gpu = size.device == "cuda"
    speeds: dict[str, float | None] = {}
    with on_threads(torch.get_num_threads() if on_gpu else 1):
        for name, variant in _variants(size.device).items():
            speeds[name] = None
            if on_gpu or "augmented" in variant or not variant.keys() & {"compiled", "images"}:
                speeds[name] = speed = _speed(parts, size, steps, **variant)
                told(name, speed)
    return speeds


def _speed(
    parts: Parts,
    size: Size,
    steps: int,
    *,
    half: bool = True,
    waits: bool = False,
    images: str = "",
    augmented: bool = False,
    **options: bool,
) -> float:
    """Return images per second of one variant; its images lie on the device if not elsewhere.

    Losses are read after each step if it waits, else once for all; the options are the trainer's.
    """
    dtype = torch.float16 if size.device == "cuda" else torch.bfloat16
    trainer = parts["Trainer"](
        {"kind": size.kinds[-1], "method": "BN", "seed": 0},
        lr=0.01,
        device=size.device,
        dtype=dtype if half else None,
        **options,
    )
    device = images or size.device
    side = 32 if size.data == "cifar10" else 8
    draws = torch.Generator().manual_seed(0)
    x = torch.randn((size.batch, 3, side, side), generator=draws).to(device)
    y = torch.randint(10, (size.batch,), generator=draws).to(device)
    generator = torch.Generator(device).manual_seed(0)
    how = {"padding": size.padding, "flip": size.flip}

    def minibatch() -> tuple[Tensor, Tensor]:
        return (parts["augment"](x, generator, **how) if augmented else x), y

    def step() -> None:
        count = steps if waits else 1
        for _ in range(count):  # an epoch reads its losses at its end
            trainer.epoch(minibatch() for _ in range(steps // count))

    return images_per_second(step, steps * len(y), warmup=2, repeats=5)


def table(speeds: Mapping[str, float | None], size: Size) -> str:
    """Return the speeds of :func:`measure` as a table in Markdown, which names the device."""
    device = torch.cuda.get_device_name() if size.device == "cuda" else "one thread of the CPU"
    rows = [
        f"| {name} | {'not measured' if speed is None else f'{speed:,.0f}'} |"
        for name, speed in speeds.items()
    ]
    return "\n".join([f"| variant | images per second, {device} |", "|---|---|", *rows])
