"""Checks of the lab on a GPU: data on the device, mixed precision, checkpoints, honest timing.

No GPU is needed. What one would show is shown otherwise: in float16 numbers overflow on a CPU too;
reading a number raises an error on the device ``meta``, whose tensors have shapes and no numbers;
and a simulated device with a clock of its own works while the program goes on.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from optdl.bnp import BNP
from optdl.checks.exercise import Case, Exercise, Property
from optdl.checks.labs.mistakes import mistake
from optdl.checks.labs.records import RecordCheck
from optdl.labs.bnp_cnn import (
    LAB,
    LEVEL,
    METHODS,
    SMALL,
    accuracy,
    epochs_until,
    examples,
    mean_losses,
    network,
    precision,
)
from optdl.labs.drivers.figures import drawn

__all__ = ["EXERCISES", "RECORD"]

_wrong = partial(
    mistake,
    given={"BNP": BNP, "network": network, "precision": precision, "os": os, "time": time},
)


# --- Augmentation -----------------------------------------------------------------------------


def augment(x: Tensor, generator: torch.Generator, padding: int = 4, flip: bool = True) -> Tensor:
    """Pad images with zeros, cut out parts of the old size, and mirror half of them.

    Each image has a shift and a mirror of its own. Nothing leaves the device of x.

    Source: LAB-6.
    """
    n, _, height, width = x.shape
    how = {"generator": generator, "device": x.device}
    top = torch.randint(0, 2 * padding + 1, (n, 1), **how)  # type: ignore[call-overload]
    left = torch.randint(0, 2 * padding + 1, (n, 1), **how)  # type: ignore[call-overload]
    rows = top + torch.arange(height, device=x.device)
    columns = left + torch.arange(width, device=x.device)
    if flip:
        mirrored = torch.randint(0, 2, (n, 1), **how)  # type: ignore[call-overload]
        columns = torch.where(mirrored == 1, columns.flip(1), columns)
    padded = nn.functional.pad(x, (padding, padding, padding, padding))
    images = torch.arange(n, device=x.device)[:, None, None]
    return padded[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _augmented(function: Any, x: np.ndarray, seed: int, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return two minibatches of one generator, their type, what became of x, and where indices lie.

    Each index is looked at for the second minibatch of bytes; in a process of its own it takes a
    message.
    """
    torch.manual_seed(seed + 1)
    images, generator = torch.tensor(x), torch.Generator().manual_seed(seed)
    first = function(images, generator, **options)
    devices: list[Any] = []
    with _recorded("torch.arange", devices) if x.dtype == np.uint8 else contextlib.nullcontext():
        second = function(images, generator, **options)
    same = "as it was" if np.array_equal(images.numpy(), x) else "changed"
    kind = str(first.dtype).removeprefix("torch.")
    place = "on the CPU, wherever x is" if None in devices else "where x is"
    return first.float().numpy().copy(), second.float().numpy().copy(), kind, same, place


def _recorded(name: str, devices: list[Any]) -> Any:
    """Return a patch under which a function of torch notes its ``device``, and works on the CPU."""
    function = getattr(torch, name.removeprefix("torch."))

    def on_cpu(*arguments: Any, device: Any = None, **more: Any) -> Any:
        devices.append(device if device is None else str(device))
        return function(*arguments, **more)

    return mock.patch(name, on_cpu)


def _images(rng: np.random.Generator) -> Iterator[Case]:
    for shape, options in [
        ((3, 1, 3, 2), {"padding": 1, "flip": False}),
        ((4, 2, 3, 4), {"padding": 1, "flip": True}),
        ((9, 3, 5, 4), {"padding": 2}),
        ((8, 1, 6, 6), {}),
    ]:
        yield {
            "x": rng.integers(1, 100, size=shape).astype(np.float32),
            "seed": int(rng.integers(1000)),
            "options": options,
        }
    yield {
        "x": rng.integers(1, 255, size=(5, 3, 4, 4)).astype(np.uint8),
        "seed": int(rng.integers(1000)),
        "options": {"padding": 1},
    }


def _pixels_are_those_of_the_image(function: Any, rng: np.random.Generator) -> bool:
    """Return whether without padding each image is itself, or itself mirrored, and both occur."""
    x = torch.tensor(rng.normal(size=(64, 2, 5, 3)))
    result = function(x, torch.Generator().manual_seed(int(rng.integers(1000))), padding=0)
    pairs = list(zip(result, x, strict=True))
    kept = [torch.equal(got, image) for got, image in pairs]
    mirrored = [torch.equal(got, image.flip(2)) for got, image in pairs]
    whole = all(one or other for one, other in zip(kept, mirrored, strict=True))
    return whole and any(kept) and any(mirrored)


_PARTS = "padded[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)"

AUGMENT = Exercise(
    key="LAB-6:augment",
    reference=augment,
    use=_augmented,
    cases=_images,
    parts=("the first minibatch", "the second", "the dtype", "x afterwards", "the indices lie"),
    misconceptions=(
        _wrong(
            "all your images have the same shift; draw one for each image, (n, 1) numbers",
            augment,
            (
                "top = torch.randint(0, 2 * padding + 1, (n, 1)",
                "top = torch.randint(0, 2 * padding + 1, (1, 1)",
            ),
            (
                "left = torch.randint(0, 2 * padding + 1, (n, 1)",
                "left = torch.randint(0, 2 * padding + 1, (1, 1)",
            ),
        ),
        _wrong(
            "you mirror all images of a minibatch or none; draw for each image by itself",
            augment,
            ("torch.randint(0, 2, (n, 1)", "torch.randint(0, 2, (1, 1)"),
        ),
        _wrong(
            "you turn images upside down; a mirror exchanges left and right, so it reverses "
            "the columns",
            augment,
            (
                "columns = torch.where(mirrored == 1, columns.flip(1), columns)",
                "rows = torch.where(mirrored == 1, rows.flip(1), rows)",
            ),
        ),
        _wrong(
            "you mirror every image; half of them stay as they are",
            augment,
            ("torch.where(mirrored == 1, columns.flip(1), columns)", "columns.flip(1)"),
        ),
        _wrong(
            "what leaves your image on one side comes in on the other; the border is zeros",
            augment,
            ("(padding, padding, padding, padding))", '(padding,) * 4, mode="circular")'),
            ("n, _, height, width = x.shape", "n, _, height, width = x.shape; t = x.dtype"),
            ("nn.functional.pad(x,", "nn.functional.pad(x.float(),"),
            (".permute(0, 3, 1, 2)", ".permute(0, 3, 1, 2).to(t)"),
        ),
        _wrong(
            "your border repeats the outermost pixels; the border is zeros",
            augment,
            ("(padding, padding, padding, padding))", '(padding,) * 4, mode="replicate")'),
            ("n, _, height, width = x.shape", "n, _, height, width = x.shape; t = x.dtype"),
            ("nn.functional.pad(x,", "nn.functional.pad(x.float(),"),
            (".permute(0, 3, 1, 2)", ".permute(0, 3, 1, 2).to(t)"),
        ),
        _wrong(
            "you draw from torch's global generator, so a run cannot be repeated by its seed; "
            "draw from the one that you are given",
            augment,
            ('{"generator": generator, "device": x.device}', '{"device": x.device}'),
        ),
        _wrong(
            "each minibatch gets the same draws, because your generator starts anew; use the "
            "one that you are given, which goes on",
            augment,
            (
                '{"generator": generator, "device": x.device}',
                '{"generator": torch.Generator().manual_seed(generator.initial_seed()), '
                '"device": x.device}',
            ),
        ),
        _wrong(
            "you change the images that you are given, which are those of the whole data set; "
            "make new ones",
            augment,
            (_PARTS, f"x.copy_({_PARTS})"),
        ),
        _wrong(
            "the dtype of your images differs from that of x, which may be uint8 or float16; "
            "keep it",
            augment,
            (".permute(0, 3, 1, 2)", ".permute(0, 3, 1, 2).float()"),
        ),
        _wrong(
            "the largest shift never occurs: there are 2 · padding + 1 places, and randint "
            "leaves out its upper end",
            augment,
            ("top = torch.randint(0, 2 * padding + 1", "top = torch.randint(0, 2 * padding"),
            ("left = torch.randint(0, 2 * padding + 1", "left = torch.randint(0, 2 * padding"),
        ),
        _wrong(
            "rows and columns have the same shift; draw each for itself",
            augment,
            ("    left = torch.randint(0, 2 * padding + 1, (n, 1), **how)", "    left = top"),
        ),
        _wrong(
            "you draw the column before the row; the first row of the part is drawn first",
            augment,
            ("    top = torch", "    first = torch"),
            ("    left = torch", "    top = torch"),
            ("    first = torch", "    left = torch"),
        ),
        _wrong(
            "you mirror where the draw is 0; 1 stands for mirrored",
            augment,
            ("mirrored == 1", "mirrored == 0"),
        ),
        _wrong(
            "you mirror before you cut; mirror the part that was cut out",
            augment,
            ("columns.flip(1), columns)", "width + 2 * padding - 1 - columns, columns)"),
        ),
        _wrong(
            "an index of yours lies on the CPU, wherever x is; give `torch.arange` the device, "
            "too: `device=x.device`",
            augment,
            ("torch.arange(height, device=x.device)", "torch.arange(height)"),
            ("torch.arange(width, device=x.device)", "torch.arange(width)"),
            ("torch.arange(n, device=x.device)", "torch.arange(n)"),
        ),
    ),
    properties=(
        Property(
            "without padding each image is itself or mirrored, and both occur among 64",
            _pixels_are_those_of_the_image,
        ),
    ),
)


# --- Minibatches ------------------------------------------------------------------------------


class Batches:
    """Minibatches of examples that lie on a device, in a new order in each epoch.

    Source: LAB-6.
    """

    def __init__(
        self, x: Tensor, y: Tensor, size: int, generator: torch.Generator, device: str = "cpu"
    ) -> None:
        self.x, self.y = x.to(device), y.to(device)
        self.size, self.generator = size, generator

    def __len__(self) -> int:
        return -(-len(self.y) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(len(self.y), generator=self.generator, device=self.y.device)
        for rows in order.split(self.size):  # type: ignore[no-untyped-call]
            yield self.x[rows], self.y[rows]


def _epochs(
    kind: Any, x: np.ndarray, y: np.ndarray, size: int, seed: int, device: str
) -> tuple[Any, ...]:
    """Return the number of minibatches, the examples and labels of two epochs, and their device.

    On ``meta`` there are no numbers to return.
    """
    torch.manual_seed(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    batches = kind(torch.tensor(x), torch.tensor(y), size, generator, device)
    if device == "meta":
        return len(batches), (), (), *_places(batches)
    epochs = [[(a.numpy().copy(), b.numpy().copy()) for a, b in batches] for _ in range(2)]
    return len(batches), *(tuple(epoch) for epoch in epochs), "cpu", "cpu"


def _places(batches: Any) -> tuple[str, str]:
    """Return where the examples of an epoch on ``meta`` lie, and where its order is drawn."""
    devices: list[Any] = []
    with _recorded("torch.randperm", devices):
        try:
            examples = {one.device.type for pair in batches for one in pair}
        except Exception as error:
            # a tensor without numbers cannot come from a process of its own
            if "meta" not in str(error):
                raise
            examples = {"meta"}
    order = "meta" if set(devices) <= {"meta"} else "cpu"
    return " and ".join(sorted(examples)), order


def _examples(rng: np.random.Generator) -> Iterator[Case]:
    for m, size, device in [(5, 2, "cpu"), (7, 7, "cpu"), (9, 3, "cpu"), (3, 3, "meta")]:
        yield {
            "x": rng.normal(size=(m, 1, 2, 1)).round(2),
            "y": rng.permutation(m),
            "size": size,
            "seed": int(rng.integers(1000)),
            "device": device,
        }


def _visits_each_example_once(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether each epoch has every example once, with its own label."""
    y = torch.arange(11)
    generator = torch.Generator().manual_seed(int(rng.integers(1000)))
    batches = kind(10 * y.double(), y, 4, generator)
    for _ in range(2):
        pairs = [(float(a), int(b)) for xs, ys in batches for a, b in zip(xs, ys, strict=True)]
        if sorted(pairs) != [(10.0 * label, label) for label in range(11)]:
            return False
    return True


_ORDER = "torch.randperm(len(self.y), generator=self.generator, device=self.y.device)"

BATCHES = Exercise(
    key="LAB-6:batches",
    reference=Batches,
    use=_epochs,
    cases=_examples,
    parts=(
        *("the number of minibatches", "the first epoch", "the second epoch"),
        *("the device of the examples", "the device of the order"),
    ),
    misconceptions=(
        _wrong(
            "all your epochs have the same order; draw one in `__iter__`, which begins an "
            "epoch, with a generator that goes on",
            Batches,
            (
                "self.size, self.generator = size, generator",
                "self.size = size\n"
                "        self.order = torch.randperm(len(y), generator=generator)",
            ),
            (_ORDER, "self.order"),
        ),
        _wrong(
            "you leave out the last examples, where the size does not divide their number; "
            "the last minibatch is smaller",
            Batches,
            ("-(-len(self.y) // self.size)", "len(self.y) // self.size"),
            (
                "in order.split(self.size):",
                "in order[: len(self) * self.size].split(self.size):",
            ),
        ),
        _wrong(
            "`len` does not count the last minibatch where it is smaller; round up",
            Batches,
            ("-(-len(self.y) // self.size)", "len(self.y) // self.size"),
        ),
        _wrong(
            "`len` is the number of examples; it is that of the minibatches of an epoch",
            Batches,
            ("-(-len(self.y) // self.size)", "len(self.y)"),
        ),
        _wrong(
            "images and labels have orders of their own, so that labels are wrong; take both "
            "by the same rows",
            Batches,
            (
                "            yield self.x[rows], self.y[rows]",
                "            others = torch.randperm(len(rows), generator=self.generator)\n"
                "            yield self.x[rows], self.y[rows[others]]",
            ),
        ),
        _wrong(
            "you draw rows with replacement; an epoch has each example once: use `torch.randperm`",
            Batches,
            ("torch.randperm(len(self.y),", "torch.randint(len(self.y), (len(self.y),),"),
        ),
        _wrong(
            "your examples come in the order in which they lie; draw a new one for each epoch",
            Batches,
            (_ORDER, "torch.arange(len(self.y))"),
        ),
        _wrong(
            "you draw from torch's global generator, so a run cannot be repeated by its seed; "
            "draw from the one that you are given",
            Batches,
            ("generator=self.generator, ", ""),
        ),
        _wrong(
            "your examples stay where they lie; bring all of them to `device`, in `__init__`",
            Batches,
            ("x.to(device), y.to(device)", "x, y"),
        ),
        _wrong(
            "you draw the order on the CPU, where the generator of a GPU is refused; give "
            "`torch.randperm` the device of the examples",
            Batches,
            (", device=self.y.device", ""),
        ),
    ),
    properties=(
        Property(
            "each epoch has every example once, with its own label", _visits_each_example_once
        ),
    ),
)


# --- An epoch in mixed precision --------------------------------------------------------------


class Trainer:
    """A network, its optimizer and its loss scale on a device.

    Source: LAB-6.
    """

    def __init__(
        self,
        model: Any,
        lr: float,
        device: str = "cpu",
        dtype: torch.dtype | None = None,
        bnp: bool = False,
        channels_last: bool = True,
        compiled: bool = False,
        max_norm: float = 5.0,
        weight_decay: float = 0.0,
    ) -> None:
        model = network(**model) if isinstance(model, dict) else model
        self.device, self.max_norm = torch.device(device), max_norm
        self.format = torch.channels_last if channels_last else torch.contiguous_format
        self.model: Any = model.to(self.device, memory_format=self.format)
        self.bnp = BNP(self.model, check_finite=False) if bnp else None
        self.forward = torch.compile(self.model) if compiled else self.model
        settings: Any = {"lr": lr, "momentum": 0.9, "weight_decay": weight_decay}
        on_gpu = self.device.type == "cuda"
        self.optimizer = torch.optim.SGD(self.model.parameters(), **settings, fused=on_gpu)
        in_half = dtype == torch.float16
        self.scaler = torch.amp.GradScaler(self.device.type, init_scale=1024.0, enabled=in_half)
        self.autocast = precision(self.device, dtype)

    def epoch(self, batches: Iterable[tuple[Tensor, Tensor]]) -> list[float]:
        """Train on each minibatch, and return the loss of each step."""
        self.model.train()
        losses = []
        for x, y in batches:
            x = x.to(self.device, memory_format=self.format, non_blocking=True)
            y = y.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            with self.autocast:
                loss = nn.functional.cross_entropy(self.forward(x), y)
            self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            if self.bnp is not None:
                self.bnp.step()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            losses.append(loss.detach())
        numbers: list[float] = torch.stack(losses).tolist()
        return numbers


def _model(norm: str, seed: int) -> nn.Sequential:
    """Return a small network of torch's own modules, as an evaluation leaves it."""
    torch.default_generator.manual_seed(seed)
    middle: list[nn.Module] = [nn.BatchNorm2d(2)] if norm == "bn" else []
    model = nn.Sequential(nn.Conv2d(1, 2, 3), *middle, nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    return model.eval()


def _trained(
    kind: Any, x: np.ndarray, y: np.ndarray, options: dict[str, Any], norm: str, seed: int
) -> tuple[Any, ...]:
    """Return losses, their type, weights and loss scale after an epoch.

    Where there is BN, ``forward`` is more than the model.
    """
    settings = {**options, "dtype": getattr(torch, options.get("dtype", ""), None)}
    single = settings["dtype"] is not None
    if options.get("device") == "meta":
        return _before_the_first_look(kind, x, y, settings), "", (), 0.0
    model = _model(norm, seed) if single else _model(norm, seed).double()
    trainer = kind(model, **settings)
    if norm == "bn":
        trainer.forward = nn.Sequential(model, nn.Softsign())
    losses = trainer.epoch(_minibatches(x.astype(np.float32) if single else x, y))
    kinds = {type(one).__name__ for one in losses} if isinstance(losses, list) else {"no list"}
    weights = [_plain(one) for one in trainer.model.state_dict().values()]
    numbers = _plain(losses) if "no list" not in kinds else losses
    return numbers, " and ".join(sorted(kinds)), tuple(weights), float(trainer.scaler.get_scale())


class Steps:
    """Stands in for BNP: counts its steps."""

    def __init__(self) -> None:
        self.number = 0

    def step(self) -> None:
        """Count."""
        self.number += 1


_LOOKS = ("Tensor.item()", "Cannot copy out", "to numpy", "Tensor.__format__")
"""What the errors say that reading a number from ``meta`` raises."""


def _before_the_first_look(
    kind: Any, x: np.ndarray, y: np.ndarray, settings: dict[str, Any]
) -> int:
    """Return how many steps BNP has taken before a number is read from the device.

    On ``meta`` no number can be read, and an epoch ends with an error, at its end at the latest.
    """
    trainer = kind({"kind": "small CNN", "method": "BNP", "seed": 0}, **settings)
    trainer.bnp = steps = Steps()
    try:
        trainer.epoch(_minibatches(x.astype(np.float32), y))
    except Exception as error:
        if not any(text in str(error) for text in _LOOKS):
            raise
    return steps.number


def _minibatches(x: np.ndarray, y: np.ndarray) -> list[tuple[Tensor, Tensor]]:
    return [(torch.tensor(one), torch.tensor(labels)) for one, labels in zip(x, y, strict=True)]


def _plain(values: Any) -> np.ndarray:
    """Return numbers as an array, with -1 for those that are not finite."""
    numbers = [float(one) for one in values] if isinstance(values, list) else values.detach()
    array = np.array(numbers, float)
    return np.where(np.isfinite(array), array, -1.0)


_OPTIONS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("bn", 3, {"lr": 0.5}),
    ("none", 3, {"lr": 0.5, "max_norm": 0.2, "bnp": True}),
    ("none", 4, {"lr": 0.1, "max_norm": 0.5, "dtype": "float16"}),
    ("none", 2, {"lr": 0.1, "device": "meta"}),
)


def _runs(rng: np.random.Generator) -> Iterator[Case]:
    for norm, steps, options in _OPTIONS:
        shape = (3, 8, 8) if "device" in options else (1, 4, 4)
        x = rng.normal(size=(steps, 4, *shape)).round(2)
        if "dtype" in options:
            x[1] = 1e5  # more than float16 can hold
        yield {
            "x": x,
            "y": rng.integers(0, 3, size=(steps, 4)),
            "options": options,
            "norm": norm,
            "seed": int(rng.integers(1000)),
        }


def _half_precision_stays_close(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether float16 with a loss scale follows float32, to the precision of float16."""
    x, y = rng.normal(size=(3, 4, 1, 4, 4)), rng.integers(0, 3, size=(3, 4))
    x, seed = x.astype(np.float32), int(rng.integers(1000))
    whole, half = (
        kind(_model("none", seed), lr=0.1, dtype=dtype).epoch(_minibatches(x, y))
        for dtype in (None, torch.float16)
    )
    return bool(np.allclose(half, whole, rtol=0.02, atol=0.01))


_TO_DEVICE = (
    "            x = x.to(self.device, memory_format=self.format, non_blocking=True)\n"
    "            y = y.to(self.device, non_blocking=True)\n"
)
_STEP = "            self.scaler.step(self.optimizer)\n"
_BNP_STEP = "            if self.bnp is not None:\n                self.bnp.step()\n"
_CLIP = "            nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)\n"
_FORWARD = (
    "            with self.autocast:\n"
    "                loss = nn.functional.cross_entropy(self.forward(x), y)\n"
)

TRAINER = Exercise(
    key="LAB-6:trainer",
    reference=Trainer,
    use=_trained,
    cases=_runs,
    rtol=3e-3,
    atol=1e-4,
    parts=("the losses", "their type", "the weights", "the loss scale"),
    misconceptions=(
        _wrong(
            "you read the loss in the loop, and each time the program waits for the device; "
            "keep `loss.detach()` there, and read all of them once, behind the loop",
            Trainer,
            ("losses.append(loss.detach())", "losses.append(loss.item())"),
            ("torch.stack(losses).tolist()", "losses"),
        ),
        _wrong(
            "your network stays in evaluation mode; call `self.model.train()` first",
            Trainer,
            ("        self.model.train()\n", ""),
        ),
        _wrong(
            "you never clear the gradients, and `backward` adds to them; call "
            "`self.optimizer.zero_grad()` in each step",
            Trainer,
            ("            self.optimizer.zero_grad()\n", ""),
        ),
        _wrong(
            "your forward pass calls `self.model`, which is never compiled; call `self.forward`",
            Trainer,
            ("cross_entropy(self.forward(x), y)", "cross_entropy(self.model(x), y)"),
        ),
        _wrong(
            "your minibatches stay where they are; bring x and y to `self.device`",
            Trainer,
            (_TO_DEVICE, ""),
        ),
        _wrong(
            "your forward pass runs in float32; put it and the loss into `with self.autocast:`",
            Trainer,
            (_FORWARD, "            loss = nn.functional.cross_entropy(self.forward(x), y)\n"),
        ),
        _wrong(
            "you run the backward pass from the loss itself; run it from "
            "`self.scaler.scale(loss)`, which keeps small gradients above the smallest number of "
            "float16",
            Trainer,
            ("self.scaler.scale(loss).backward()", "loss.backward()"),
        ),
        _wrong(
            "you clip gradients that are still multiplied by the loss scale; call "
            "`self.scaler.unscale_(self.optimizer)` before you clip",
            Trainer,
            ("            self.scaler.unscale_(self.optimizer)\n", ""),
        ),
        _wrong(
            "you do not clip; limit the norm of all gradients together to `self.max_norm`",
            Trainer,
            (_CLIP, ""),
        ),
        _wrong(
            "you clip each entry of the gradients; clip the norm of all of them together, with "
            "`clip_grad_norm_`",
            Trainer,
            ("clip_grad_norm_", "clip_grad_value_"),
        ),
        _wrong(
            "you limit each parameter's norm by itself; limit that of all together",
            Trainer,
            (
                _CLIP,
                "            for p in self.model.parameters():\n"
                "                nn.utils.clip_grad_norm_(p, self.max_norm)\n",
            ),
        ),
        _wrong(
            "you clip what BNP has made of the gradient; clip the gradient itself, before "
            "`self.bnp.step()`",
            Trainer,
            (_CLIP + _BNP_STEP, _BNP_STEP + _CLIP),
        ),
        _wrong(
            "BNP has no part in your steps: `self.bnp.step()` is missing, or comes after the "
            "optimizer's step; it belongs before it",
            Trainer,
            (_BNP_STEP, ""),
        ),
        _wrong(
            "you step where the gradients overflowed, and the weights are no numbers any more; "
            "`self.scaler.step(self.optimizer)` leaves such a step out",
            Trainer,
            (_STEP, "            self.optimizer.step()\n"),
        ),
        _wrong(
            "your loss scale never changes, since `self.scaler.update()` is missing at the end "
            "of the step",
            Trainer,
            ("            self.scaler.update()\n", ""),
        ),
        _wrong(
            "your loss is a sum over the minibatch; cross_entropy takes the mean unless you "
            "tell it otherwise",
            Trainer,
            (
                "cross_entropy(self.forward(x), y)",
                'cross_entropy(self.forward(x), y, reduction="sum")',
            ),
        ),
        _wrong(
            "you return the scaled losses; the scale is for `backward` alone",
            Trainer,
            ("losses.append(loss.detach())", "losses.append(self.scaler.scale(loss).detach())"),
        ),
        _wrong(
            "you return tensors; after the loop make numbers of them, all at once: "
            "`torch.stack(losses).tolist()`",
            Trainer,
            ("torch.stack(losses).tolist()", "losses"),
        ),
    ),
    properties=(
        Property(
            "with a loss scale, float16 gives the losses of float32 to two digits",
            _half_precision_stays_close,
        ),
    ),
)


# --- Checkpoints ------------------------------------------------------------------------------


class Checkpoint:
    """A file from which training goes on.

    Source: LAB-6.
    """

    def __init__(self, path: Any) -> None:
        self.path = str(path)

    def save(self, epoch: int, generators: list[Any], **parts: Any) -> None:
        """Write the file, whole or not at all."""
        content = {
            "epoch": epoch,
            "generators": [one.get_state() for one in generators],
            "parts": {name: part.state_dict() for name, part in parts.items()},
        }
        torch.save(content, self.path + ".part")
        os.replace(self.path + ".part", self.path)  # noqa: PTH105

    def load(self, generators: list[Any], **parts: Any) -> int:
        """Put everything where the file left it, and return the finished epochs; 0 without one."""
        if not os.path.exists(self.path):  # noqa: PTH110
            return 0
        content = torch.load(self.path, map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(content["parts"][name])
        for generator, state in zip(generators, content["generators"], strict=True):
            generator.set_state(state)
        epoch: int = content["epoch"]
        return epoch


class Part:
    """Something with a state, as a network or an optimizer is.

    Parameters
    ----------
    of : object
        Whose state it is: a network, an optimizer, or a dict that is the state itself.
    """

    def __init__(self, of: Any) -> None:
        self._of = of

    def state_dict(self) -> Any:
        """Return the state."""
        return self._of if isinstance(self._of, dict) else self._of.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Take a state over."""
        if not isinstance(self._of, dict):
            self._of.load_state_dict(state)


class Draws:
    """A generator of the checks, which a checkpoint may put back where it was.

    Parameters
    ----------
    seed : int
        Where it begins.
    """

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.device = self._generator.device

    def get_state(self) -> Tensor:
        """Return the state."""
        return self._generator.get_state()

    def set_state(self, state: Tensor) -> None:
        """Go on from a state."""
        self._generator.set_state(state)

    def initial_seed(self) -> int:
        """Return where it began."""
        return self._generator.initial_seed()

    def manual_seed(self, seed: int) -> None:
        """Begin anew."""
        self._generator.manual_seed(seed)

    def order(self, m: int) -> Tensor:
        """Return the numbers below m in an order at random."""
        return torch.randperm(m, generator=self._generator)

    def noise(self, m: int) -> Tensor:
        """Return m normal numbers."""
        return torch.randn(m, 1, generator=self._generator).double()


class _Session:
    """A training that begins in a process of its own: network, optimizer, generator."""

    def __init__(self, x: np.ndarray, seed: int) -> None:
        torch.default_generator.manual_seed(seed)
        self.x, self.model = torch.tensor(x), nn.Linear(x.shape[1], 1).double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.generators = [Draws(seed + 1), Draws(seed + 2)]

    @property
    def parts(self) -> dict[str, Part]:
        """Return what a checkpoint holds."""
        return {"model": Part(self.model), "optimizer": Part(self.optimizer)}

    def train(self, epochs: int) -> list[float]:
        """Fit random targets for some epochs, and return the losses."""
        losses = []
        for _ in range(epochs):
            first, second = self.generators
            order, noise = first.order(len(self.x)), second.noise(len(self.x))
            self.optimizer.zero_grad()
            targets = torch.arange(len(self.x))[:, None]
            loss = (self.model(self.x[order] + noise) - targets).square().mean()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses


def _resumed(kind: Any, x: np.ndarray, epochs: int, seed: int) -> tuple[Any, ...]:
    """Return what happens to a training that is interrupted, saved badly, and read badly."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.pt"
        first, second, third = (_Session(x, seed + 10 * k) for k in range(3))
        begun = kind(path).load(first.generators, **first.parts)
        first.train(epochs)
        try:
            kind(path).save(epochs, first.generators, **first.parts)
            done = kind(path).load(second.generators, **second.parts)
        except Exception as error:
            if "Pickling" not in type(error).__name__ and "pickling" not in type(error).__name__:
                raise
            return begun, "refused by pickle or by weights_only", np.zeros(3), "", ""
        losses = second.train(3)
        kept = _after_failure(kind, path, third)
        foreign = _foreign(kind, f"{folder}/other.pt")
    return begun, done, np.array(losses), *kept, foreign


def _after_failure(kind: Any, path: str, session: _Session) -> tuple[str, str]:
    """Return what a file holds when a second one did not take its place, and where that one lay.

    The second one is written to its end, and the program ends as it is about to take the place.
    """
    folder, places = os.path.dirname(path), []  # noqa: PTH120

    def crash(old: Any, new: Any, **_: Any) -> None:
        beside = os.path.abspath(str(old)).startswith(f"{folder}{os.sep}")  # noqa: PTH100
        places.append("beside the old one" if beside else "in another folder")
        raise OSError("the program has ended")

    ends = mock.patch("os.replace", crash), mock.patch("os.rename", crash)
    with ends[0], ends[1], contextlib.suppress(Exception):
        kind(path).save(99, session.generators, **session.parts)
    where = " and ".join(places) or "in its place"
    try:
        return f"epoch {kind(path).load(session.generators, **session.parts)}", where
    except Exception:
        return "damaged", where


def _foreign(kind: Any, path: str) -> str:
    """Return whether a file is read that holds other things than plain numbers and text."""
    odd = {"odd": Part({"array": np.zeros(2)})}
    try:
        kind(path).save(1, [], **odd)
        return "read" if kind(path).load([], **odd) else "taken for none"
    except Exception:
        return "refused"


def _interruptions(rng: np.random.Generator) -> Iterator[Case]:
    yield {
        "x": rng.normal(size=(3, 2)).round(2),
        "epochs": 2,
        "seed": int(rng.integers(1000)),
    }


def _goes_on_bit_by_bit(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether a run in two parts gives the losses of a run in one part, to the last bit."""
    x, seed = rng.normal(size=(5, 3)), int(rng.integers(1000))
    whole = _Session(x, seed).train(6)
    with tempfile.TemporaryDirectory() as folder:
        one, other = _Session(x, seed), _Session(x, seed + 1)
        losses = one.train(2)
        kind(f"{folder}/a.pt").save(2, one.generators, **one.parts)
        kind(f"{folder}/a.pt").load(other.generators, **other.parts)
        return losses + other.train(4) == whole


_TO_FILE = (
    '        torch.save(content, self.path + ".part")\n'
    '        os.replace(self.path + ".part", self.path)'
)

CHECKPOINT = Exercise(
    key="LAB-6:checkpoint",
    reference=Checkpoint,
    use=_resumed,
    cases=_interruptions,
    parts=(
        "epochs done without a file",
        "epochs done with one",
        "the losses of the next three epochs",
        "the file after a save that was interrupted",
        "the new file was written",
        "a file with objects of other kinds",
    ),
    misconceptions=(
        _wrong(
            "your file has the state of the network alone; the momentum is in the optimizer's",
            Checkpoint,
            (
                "{name: part.state_dict() for name, part in parts.items()}",
                '{name: part.state_dict() for name, part in parts.items() if name == "model"}',
            ),
            (
                "        for name, part in parts.items():\n            part.load_state_dict",
                "        for name, part in parts.items():\n"
                '            if name == "model": part.load_state_dict',
            ),
        ),
        _wrong(
            "you do not put the generators back, so that after an interruption other numbers "
            "are drawn",
            Checkpoint,
            (
                "            generator.set_state(state)",
                "            pass",
            ),
        ),
        _wrong(
            "you set the generators to their seeds, so that they draw once more what they have "
            "drawn; keep their states",
            Checkpoint,
            ("one.get_state() for", "one.initial_seed() for"),
            ("generator.set_state(state)", "generator.manual_seed(state)"),
        ),
        _wrong(
            "you put back the first generator alone; there may be more",
            Checkpoint,
            (
                'zip(generators, content["generators"], strict=True)',
                'zip(generators[:1], content["generators"])',
            ),
        ),
        _wrong(
            "you return the epoch that comes next; return how many are done",
            Checkpoint,
            ('epoch: int = content["epoch"]', 'epoch = content["epoch"] + 1'),
        ),
        _wrong(
            "your `load` fails before there is a file; return 0, for training begins",
            Checkpoint,
            (
                "        if not os.path.exists(self.path):  # noqa: PTH110\n            return 0\n",
                "",
            ),
        ),
        _wrong(
            "you write into the file itself, and an interruption then leaves no checkpoint at "
            "all; write beside it, and put the new file in its place with `os.replace`",
            Checkpoint,
            (_TO_FILE, "        torch.save(content, self.path)"),
        ),
        _wrong(
            "you remove the old file before the new one has its place; `os.replace` does both in "
            "one step",
            Checkpoint,
            (
                '        os.replace(self.path + ".part", self.path)',
                "        if os.path.exists(self.path):\n            os.remove(self.path)\n"
                '        os.rename(self.path + ".part", self.path)',
            ),
        ),
        _wrong(
            "you write the new file into another folder, which may be on another disk, from where "
            "it cannot take its place in one step; write it beside the old one",
            Checkpoint,
            (
                _TO_FILE,
                "        import tempfile\n"
                "        with tempfile.TemporaryDirectory() as elsewhere:\n"
                '            torch.save(content, elsewhere + "/new.pt")\n'
                '            os.replace(elsewhere + "/new.pt", self.path)',
            ),
        ),
        _wrong(
            "you unpickle what you find, and a file could run any code; load with "
            "`weights_only=True`",
            Checkpoint,
            ("weights_only=True", "weights_only=False"),
        ),
        _wrong(
            "your `load` hides every error and begins at 0; only a missing file means 0",
            Checkpoint,
            (
                '        content = torch.load(self.path, map_location="cpu", weights_only=True)\n',
                "        try:\n            content = torch.load(self.path, weights_only=True)\n"
                "        except Exception:\n            return 0\n",
            ),
        ),
        _wrong(
            "you pickle the objects themselves; save what their `state_dict()` returns",
            Checkpoint,
            (
                "{name: part.state_dict() for name, part in parts.items()}",
                "dict(parts)",
            ),
        ),
        _wrong(
            "you read the file and leave network and optimizer as they are; hand each its "
            "state with `load_state_dict`",
            Checkpoint,
            ('part.load_state_dict(content["parts"][name])', "pass"),
        ),
    ),
    properties=(
        Property(
            "a run in two parts has the losses of a run in one part, to the last bit",
            _goes_on_bit_by_bit,
        ),
    ),
)


# --- Images per second ------------------------------------------------------------------------


def images_per_second(
    step: Callable[[], object], images: int, warmup: int = 3, repeats: int = 10
) -> float:
    """Return how many images a step works on in each second, on whatever device.

    Source: LAB-6.
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


class _Device:
    """A device that works through its queue while the program goes on, and their clock."""

    def __init__(self, has_gpu: bool, work: float, enqueue: float) -> None:
        self.has_gpu, self.work, self.enqueue = has_gpu, work, enqueue
        self.time, self.ready, self.steps = 100.0, 100.0, 0

    def step(self) -> None:
        """Order the work of a step; the first ones are slow, as compilation and caches make them.

        A CPU has done the work when the call ends.
        """
        work = self.work * (5 if self.steps < 2 else 1)
        self.time += self.enqueue
        self.ready = max(self.ready, self.time) + work
        self.steps += 1
        if not self.has_gpu:
            self.time = self.ready

    def is_available(self) -> bool:
        """Return whether there is a GPU."""
        return self.has_gpu

    def synchronize(self, *_: Any) -> None:
        """Wait until the queue is empty."""
        if not self.has_gpu:
            raise AssertionError("Torch not compiled with CUDA enabled")
        self.time = max(self.time, self.ready)

    def clock(self) -> float:
        """Return the time."""
        return self.time


def _another_clock() -> float:
    raise AssertionError("read the clock with time.perf_counter()")


def _timed(
    function: Any,
    has_gpu: bool,
    seconds: tuple[float, float],
    images: int,
    warmup: int,
    repeats: int,
) -> tuple[float, int]:
    """Return images per second on a simulated device, and the steps that were taken."""
    device = _Device(has_gpu, *seconds)
    with (
        mock.patch("torch.cuda.is_available", device.is_available),
        mock.patch("torch.cuda.synchronize", device.synchronize),
        mock.patch("time.perf_counter", device.clock),
        mock.patch("time.time", _another_clock),
    ):
        speed = function(device.step, images, warmup, repeats)
    return float(speed), device.steps


def _devices(rng: np.random.Generator) -> Iterator[Case]:
    for has_gpu, warmup, repeats in [(False, 2, 1), (True, 2, 3), (True, 3, 5), (False, 4, 2)]:
        work = round(float(rng.uniform(0.1, 0.9)), 2)
        yield {
            "has_gpu": has_gpu,
            "seconds": (work, round(work / 4, 3)),
            "images": int(rng.integers(2, 100)),
            "warmup": warmup,
            "repeats": repeats,
        }


def _the_slower_of_two_devices_is_slower(function: Any, rng: np.random.Generator) -> bool:
    """Return whether the speed of a GPU is that of its work, whatever time the queue takes."""
    work, images = float(rng.uniform(0.1, 0.9)), int(rng.integers(2, 100))
    speeds = [_timed(function, True, (w, work / 10), images, 2, 5)[0] for w in (work, 2 * work)]
    expected = images / work, images / (2 * work)
    return bool(np.allclose(speeds, expected, rtol=0.05))


IMAGES_PER_SECOND = Exercise(
    key="LAB-6:speed",
    reference=images_per_second,
    use=_timed,
    cases=_devices,
    rtol=1e-6,
    parts=("images per second", "the number of steps"),
    misconceptions=(
        _wrong(
            "you read the clock while the GPU is still at work; wait for it with "
            "`torch.cuda.synchronize()` before each reading, the last one too",
            images_per_second,
            (
                "        if torch.cuda.is_available():\n            torch.cuda.synchronize()\n",
                "",
            ),
        ),
        _wrong(
            "you begin to measure while the GPU still works on the warm-up; wait for it before "
            "the first reading too",
            images_per_second,
            ("start = now()", "start = time.perf_counter()"),
        ),
        _wrong(
            "you wait for the GPU after each step, which a training does not; wait before the "
            "two readings of the clock only",
            images_per_second,
            (
                "    for _ in range(repeats):\n        step()\n",
                "    for _ in range(repeats):\n        step()\n        now()\n",
            ),
        ),
        _wrong(
            "you wait for a GPU where there is none; ask `torch.cuda.is_available()` first",
            images_per_second,
            ("if torch.cuda.is_available():", "if True:"),
        ),
        _wrong(
            "you measure without a warm-up; the first steps compile, allocate and fill caches",
            images_per_second,
            ("    for _ in range(warmup):\n        step()\n", ""),
        ),
        _wrong(
            "your time includes the warm-up; read the clock behind it",
            images_per_second,
            ("    start = now()\n", ""),
            (
                "    for _ in range(warmup):\n",
                "    start = now()\n    for _ in range(warmup):\n",
            ),
        ),
        _wrong(
            "you count steps; each of them works on `images` images",
            images_per_second,
            ("repeats * images /", "repeats /"),
        ),
        _wrong(
            "you count the images of one step, and the time of all of them",
            images_per_second,
            ("repeats * images /", "images /"),
        ),
        _wrong(
            "you return seconds for each image; divide the other way round",
            images_per_second,
            (
                "repeats * images / (now() - start)",
                "(now() - start) / (repeats * images)",
            ),
        ),
    ),
    properties=(
        Property(
            "a GPU with twice the work for each image has half the speed",
            _the_slower_of_two_devices_is_slower,
        ),
    ),
)


# --- The figure -------------------------------------------------------------------------------


def plot_epochs(ax: Any, losses: dict[str, list[float]]) -> None:
    """Draw the mean loss of each epoch, counted from 1: one labelled line for each method.

    Source: LAB-6.
    """
    for name, values in losses.items():
        ax.plot(range(1, len(values) + 1), values, marker="o", label=name)
    ax.set_yscale("log")
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean training loss")
    ax.legend()


def _curves(rng: np.random.Generator) -> Iterator[Case]:
    for names, count in [(METHODS[:1], 2), (METHODS[:2], 4), (METHODS, 6)]:
        lengths = count - np.arange(len(names)) % 2  # a run that diverged is shorter
        yield {
            "losses": {
                name: rng.uniform(0.01, 2, size=length).round(3).tolist()
                for name, length in zip(names, lengths, strict=True)
            }
        }


def _draws_every_epoch(function: Any, rng: np.random.Generator) -> bool:
    """Return whether each line has a point for each epoch, also where there is one epoch."""
    losses = {name: rng.uniform(0.1, 2, size=n).tolist() for n, name in enumerate(METHODS, 1)}
    lines = drawn(function, losses)["lines"]
    return sorted(lines) == sorted(losses) and all(
        np.allclose(lines[name][1], losses[name]) and lines[name][0][-1] == len(losses[name])
        for name in losses
    )


PLOT_EPOCHS = Exercise(
    key="LAB-6:plot",
    reference=plot_epochs,
    use=drawn,
    cases=_curves,
    misconceptions=(
        _wrong(
            "your losses lie on a linear axis, where the small ones cannot be told apart; use "
            '`ax.set_yscale("log")`',
            plot_epochs,
            ('    ax.set_yscale("log")\n', ""),
        ),
        _wrong(
            "your epochs begin at 0; the mean loss of the first epoch stands at 1",
            plot_epochs,
            ("range(1, len(values) + 1)", "range(len(values))"),
        ),
        _wrong(
            "an axis has no label; add it with `ax.set_xlabel` and `ax.set_ylabel`",
            plot_epochs,
            ('    ax.set_xlabel("epoch")\n', ""),
        ),
        _wrong(
            "there is no legend, so nobody knows which line is which; call `ax.legend()`",
            plot_epochs,
            ("    ax.legend()", "    pass"),
        ),
        _wrong(
            "your lines have no labels; give each `label=name`",
            plot_epochs,
            (", label=name", ""),
        ),
    ),
    properties=(Property("each line has a point for each epoch", _draws_every_epoch),),
)


# --- The exercises ----------------------------------------------------------------------------

EXERCISES: tuple[Exercise, ...] = (
    AUGMENT,
    BATCHES,
    TRAINER,
    CHECKPOINT,
    IMAGES_PER_SECOND,
    PLOT_EPOCHS,
)


# --- The record -------------------------------------------------------------------------------


def _is_method(value: Any) -> bool:
    return value in METHODS


def _evaluate(weights: Mapping[str, Tensor]) -> float:
    """Return the accuracy of weights on the validation digits, for the network that they fit."""
    _, _, x, y = examples(SMALL)
    for setting in LAB.settings:
        model = network(setting["network"], setting["method"], 0)
        shapes = {name: one.shape for name, one in model.state_dict().items()}
        if shapes == {name: one.shape for name, one in weights.items()}:
            model.load_state_dict(dict(weights))
            return accuracy(model, x, y)
    return 0.0


def _first_below(method: str) -> Callable[[Any], float]:
    return lambda record: epochs_until(mean_losses(record).get(method, []))


_ASKED = "one of " + ", ".join(METHODS)

RECORD = RecordCheck(
    key="LAB-6:record",
    lab=LAB,
    predictions={"first": (_ASKED, _is_method), "last": (_ASKED, _is_method)},
    evaluate=_evaluate,
    level=0.9,
    readings={
        method: (
            f"the first epoch in which the mean loss of ResNet-8 with {method} is below {LEVEL}, "
            "or 0 if there is none",
            _first_below(method),
        )
        for method in METHODS
    },
    again=LAB.settings[::6],  # both networks, with and without BNP
)
