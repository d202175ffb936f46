"""Checks of the lab on a GPU: data on the device, mixed precision, checkpoints, honest timing.

No GPU is needed: the drivers show otherwise what one would show.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

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
from optdl.labs.drivers import bnp_cnn as drivers
from optdl.labs.drivers.figures import drawn
from optdl.observation import observe

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
    x, seed = rng.normal(size=(64, 2, 5, 3)), int(rng.integers(1000))
    images = observe(drivers.augment, function, x, seed, {"padding": 0})[0]
    pairs = list(zip(images, x, strict=True))
    kept = [np.array_equal(image, original) for image, original in pairs]
    mirrored = [np.array_equal(image, original[..., ::-1]) for image, original in pairs]
    return bool(np.logical_or(kept, mirrored).all()) and any(kept) and any(mirrored)


_PARTS = "padded[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)"

AUGMENT = Exercise(
    key="LAB-6:augment",
    reference=augment,
    use=drivers.augment,
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
    y, seed = np.arange(11), int(rng.integers(1000))
    epochs = observe(drivers.iterate, kind, 10.0 * y, y, 4, seed, "cpu")[1:3]
    for epoch in epochs:
        pairs = [(float(a), int(b)) for xs, ys in epoch for a, b in zip(xs, ys, strict=True)]
        if sorted(pairs) != [(10.0 * label, label) for label in range(11)]:
            return False
    return True


_ORDER = "torch.randperm(len(self.y), generator=self.generator, device=self.y.device)"

BATCHES = Exercise(
    key="LAB-6:batches",
    reference=Batches,
    use=drivers.iterate,
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
    seed = int(rng.integers(1000))
    whole, half = (
        observe(drivers.train, kind, x, y, {"lr": 0.1, "dtype": dtype}, "none", seed)[0]
        for dtype in (None, "float16")
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
    use=drivers.train,
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


def _interruptions(rng: np.random.Generator) -> Iterator[Case]:
    yield {
        "x": rng.normal(size=(3, 2)).round(2),
        "epochs": 2,
        "seed": int(rng.integers(1000)),
    }


def _goes_on_bit_by_bit(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether a run in two parts gives the losses of a run in one part, to the last bit."""
    x, seed = rng.normal(size=(5, 3)), int(rng.integers(1000))
    losses: list[float] = observe(drivers.split, kind, x, (2, 4), seed)
    return losses == drivers.Session(x, seed).train(6)


_TO_FILE = (
    '        torch.save(content, self.path + ".part")\n'
    '        os.replace(self.path + ".part", self.path)'
)

CHECKPOINT = Exercise(
    key="LAB-6:checkpoint",
    reference=Checkpoint,
    use=drivers.resume,
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
    speeds = [
        observe(drivers.measure_speed, function, True, (seconds, work / 10), images, 2, 5)[0]
        for seconds in (work, 2 * work)
    ]
    expected = images / work, images / (2 * work)
    return bool(np.allclose(speeds, expected, rtol=0.05))


IMAGES_PER_SECOND = Exercise(
    key="LAB-6:speed",
    reference=images_per_second,
    use=drivers.measure_speed,
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
    lines = observe(drawn, function, losses)["lines"]
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
