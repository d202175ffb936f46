"""Drivers of the lab on a GPU: data on the device, mixed precision, checkpoints, honest timing.

No GPU is needed. What one would show is shown otherwise: in float16 numbers overflow on a CPU too;
reading a number raises an error on the device ``meta``, whose tensors have shapes and no numbers;
and a simulated device with a clock of its own works while the program goes on.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any, cast
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "Draws",
    "Part",
    "Session",
    "Steps",
    "augment",
    "iterate",
    "measure_speed",
    "resume",
    "split",
    "train",
]


def _recorded(name: str, devices: list[Any]) -> Any:
    """Return a patch under which a function of torch notes its ``device``, and works on the CPU."""
    function = getattr(torch, name.removeprefix("torch."))

    def on_cpu(*arguments: Any, device: Any = None, **more: Any) -> Any:
        devices.append(device if device is None else str(device))
        return function(*arguments, **more)

    return mock.patch(name, on_cpu)


# --- Augmentation and minibatches -------------------------------------------------------------


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count the operations of torch that run meanwhile."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        self.count += 1
        return operation(*arguments, **(options or {}))


def augment(function: Any, x: np.ndarray, seed: int, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return two minibatches of one generator, whether dtype and x stay, and how it is done.

    It is looked at for bytes alone where indices lie, and whether the operations are as many for
    ten times as many images.

    Parameters
    ----------
    function : callable
        The student's function; ``function(images, generator, **options)`` returns images.
    x : (m, c, height, width) array
        The images, as numbers of any type.
    seed : int
        Seed of the generator.
    options : dict
        Further arguments: ``padding``, ``flip``.

    Returns
    -------
    first, second : arrays of the shape of x
        Two calls with one generator, in float64.
    same_dtype, unchanged : bool
        Whether the images returned have the type of x, and x stays as it was.
    on_device, at_once : bool
        Whether indices are made on the device of x, and whether the number of operations does
        not grow with the number of images; True unless x is of bytes.
    """
    torch.manual_seed(seed + 1)
    images, generator = torch.tensor(x), torch.Generator().manual_seed(seed)
    first, second = (function(images, generator, **options) for _ in range(2))
    kept = first.dtype == images.dtype, np.array_equal(images.numpy(), x)
    done = _how(function, images, generator, options) if x.dtype == np.uint8 else (True, True)
    return first.double().numpy().copy(), second.double().numpy().copy(), *kept, *done


def _how(
    function: Any, images: Tensor, generator: torch.Generator, options: dict[str, Any]
) -> tuple[bool, bool]:
    """Return whether every index lies where images do, and whether all images are done at once."""
    devices: list[Any] = []
    counts = []
    with _recorded("torch.arange", devices):
        for some in (images, images.repeat(10, 1, 1, 1)):
            with _Counter() as counter:
                function(some, generator, **options)
            counts.append(counter.count)
    return None not in devices, counts[1] < 2 * counts[0]


def iterate(
    kind: Any, x: np.ndarray, y: np.ndarray, size: int, seed: int, device: str
) -> tuple[Any, ...]:
    """Return how many minibatches there are, two epochs, and whether all is on the device.

    On ``meta`` there are no numbers, and so no epochs.

    Parameters
    ----------
    kind : type
        The student's class; ``kind(x, y, size, generator, device)`` makes an iterable.
    x, y : (m, c, height, width) and (m,) arrays
        Images and labels.
    size : int
        Examples in a minibatch.
    seed : int
        Seed of the generator, from which one number is drawn beforehand.
    device : str
        ``cpu`` or ``meta``.

    Returns
    -------
    count : int
        How many minibatches an epoch has, by ``len``.
    *epochs : two times three arrays
        For each epoch the sizes of its minibatches, its images and its labels; empty on ``meta``.
    on_device, drawn_there : bool
        Whether the examples lie on the device, and the order is drawn there.
    """
    torch.manual_seed(seed + 1)
    generator = torch.Generator().manual_seed(seed)
    torch.rand(1, generator=generator)  # it has been used before
    batches = kind(torch.tensor(x), torch.tensor(y), size, generator, device)
    if device == "meta":
        return len(batches), *_epoch([]), *_epoch([]), *_on_meta(batches)
    return len(batches), *_epoch(batches), *_epoch(batches), True, True


def _epoch(batches: Any) -> tuple[np.ndarray, ...]:
    """Return the sizes of minibatches, and all their images and labels."""
    pairs = list(batches)
    images, labels = (
        np.array([one.numpy() for part in parts for one in part])
        for parts in (zip(*pairs, strict=True) if pairs else ((), ()))
    )
    return np.array([len(part) for _, part in pairs]), images, labels


def _on_meta(batches: Any) -> tuple[bool, bool]:
    """Return whether the examples of an epoch lie on ``meta``, and its order is drawn there."""
    devices: list[Any] = []
    with _recorded("torch.randperm", devices):
        try:
            examples = {tensor.device.type for pair in batches for tensor in pair}
        except Exception as error:
            # on meta, and there alone, rows cannot be looked up by their numbers
            if "meta" not in str(error):
                raise
            examples = {"meta"}
    return examples == {"meta"}, {*devices} <= {"meta"}


# --- An epoch in mixed precision --------------------------------------------------------------


def _model(norm: str, seed: int) -> nn.Sequential:
    """Return a small network of torch's own modules, as an evaluation leaves it."""
    torch.default_generator.manual_seed(seed)
    middle: list[nn.Module] = [nn.BatchNorm2d(2)] if norm == "bn" else []
    model = nn.Sequential(nn.Conv2d(1, 2, 3), *middle, nn.ReLU(), nn.Flatten(), nn.Linear(8, 3))
    return model.eval()


def train(
    kind: Any, x: np.ndarray, y: np.ndarray, options: dict[str, Any], norm: str, seed: int
) -> tuple[Any, ...]:
    """Return what an epoch returns and leaves, and where autocast is on.

    The network is in float64, unless the options have a ``dtype``, be it None. Where there is BN,
    ``forward`` is more than the model. On ``meta`` the steps are counted alone.

    Parameters
    ----------
    kind : type
        The student's trainer; ``kind(model, **options)`` makes one.
    x, y : (t, m, c, height, width) and (t, m) arrays
        t minibatches of an epoch.
    options : dict
        Arguments of the trainer; ``dtype`` is the name of a type of torch, or None.
    norm : str
        ``bn`` for a network with batch normalization, ``none`` for one without.
    seed : int
        Draws the weights.

    Returns
    -------
    steps : int
        On ``meta`` how many steps were taken before a number was read; 0 elsewhere.
    is_list, are_floats : bool
        Whether the losses are a list, and each of them is of the type float.
    losses : array
        Those of the epoch; −1 stands for what is not finite.
    weights : tuple of arrays
        The state of the network afterwards; −1 stands for what is not finite.
    scale : float
        The scale of the ``GradScaler`` afterwards.
    wide_loss, backward_outside : bool
        Whether no loss was in float16, and whether autocast was off in the backward pass.
    placed : bool
        On ``meta`` whether images came in the memory format of the trainer; True elsewhere.
    """
    single = "dtype" in options
    settings = {**options, "dtype": getattr(torch, options.get("dtype") or "", None)}
    if options.get("device") == "meta":
        steps, placed = _steps_before_the_first_look(kind, x, y, settings)
        return steps, True, True, np.zeros(0), (), 0.0, True, True, placed
    model = _model(norm, seed) if single else _model(norm, seed).double()
    trainer = kind(model, **settings)
    if norm == "bn":
        trainer.forward = nn.Sequential(model, nn.Softsign())
    dtypes: set[torch.dtype] = set()
    backward: list[bool] = []
    scale = trainer.scaler.scale

    def noting(loss: Tensor) -> Tensor:
        dtypes.add(loss.dtype)
        return cast(Tensor, scale(loss))

    trainer.scaler.scale = noting

    def watching(_: Tensor) -> None:
        backward.append(torch.is_autocast_enabled("cpu"))

    next(model.parameters()).register_hook(watching)  # type: ignore[no-untyped-call]
    losses = trainer.epoch(_minibatches(x.astype(np.float32) if single else x, y))
    kinds = isinstance(losses, list), all(isinstance(loss, float) for loss in losses)
    weights = tuple(_finite(tensor) for tensor in trainer.model.state_dict().values())
    in_autocast = torch.float16 not in dtypes, not any(backward)
    return (
        0,
        *kinds,
        _finite(losses),
        weights,
        float(trainer.scaler.get_scale()),
        *in_autocast,
        True,
    )


class Steps:
    """Stands in for BNP: counts its steps."""

    def __init__(self) -> None:
        self.number = 0

    def step(self) -> None:
        """Count."""
        self.number += 1


_LOOKS = ("Tensor.item()", "Cannot copy out", "to numpy", "Tensor.__format__")
"""What the errors say that reading a number from ``meta`` raises."""


def _steps_before_the_first_look(
    kind: Any, x: np.ndarray, y: np.ndarray, settings: dict[str, Any]
) -> tuple[int, bool]:
    """Return how many steps BNP has taken before a number is read, and whether images lie right.

    On ``meta`` no number can be read, and an epoch ends with an error, at its end at the latest.
    """
    trainer = kind({"kind": "small CNN", "method": "BNP", "seed": 0}, **settings)
    trainer.bnp = steps = Steps()
    placed: list[bool] = []

    def watching(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        placed.append(inputs[0].is_contiguous(memory_format=trainer.format))

    trainer.model.register_forward_pre_hook(watching)
    try:
        trainer.epoch(_minibatches(x.astype(np.float32), y))
    except Exception as error:
        if not any(text in str(error) for text in _LOOKS):
            raise
    return steps.number, all(placed)


def _minibatches(x: np.ndarray, y: np.ndarray) -> list[tuple[Tensor, Tensor]]:
    return [(torch.tensor(rows), torch.tensor(labels)) for rows, labels in zip(x, y, strict=True)]


def _finite(values: Any) -> np.ndarray:
    """Return numbers as an array, with -1 for those that are not finite."""
    numbers = [float(value) for value in values] if isinstance(values, list) else values.detach()
    array = np.array(numbers, float)
    return np.where(np.isfinite(array), array, -1.0)


# --- Checkpoints ------------------------------------------------------------------------------


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


class Session:
    """A training that begins in a process of its own: network, optimizer, generators.

    Parameters
    ----------
    x : (m, n) array
        The examples.
    seed : int
        Draws the weights; the two generators begin from the next two seeds.
    """

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


def resume(kind: Any, x: np.ndarray, epochs: int, seed: int) -> tuple[Any, ...]:
    """Return what happens to a training that is interrupted, saved badly, and read badly.

    Where pickle or ``weights_only`` refuses the file, no epochs are done, and none is kept.

    Parameters
    ----------
    kind : type
        The student's checkpoint; ``kind(path)`` has ``save`` and ``load``.
    x : (m, n) array
        The examples.
    epochs : int
        How many there are before the interruption.
    seed : int
        Seed of the first :class:`Session`.

    Returns
    -------
    begun, done : int
        The epochs that ``load`` returns without a file, and with one; −1 if it is refused.
    losses : (3,) array
        Those of three more epochs in another session.
    kept : int
        The epochs in the file after a save that failed; −1 if it cannot be read.
    beside : bool
        Whether that save wrote beside the file and not into it.
    foreign : int
        −1 if a state with an array of NumPy is refused, as it should be.
    is_placed : bool
        Whether ``torch.load`` was told where to put tensors.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/run.pt"
        first, second, third = (Session(x, seed + 10 * k) for k in range(3))
        begun = kind(path).load(first.generators, **first.parts)
        first.train(epochs)
        places: list[Any] = []
        try:
            kind(path).save(epochs, first.generators, **first.parts)
            with _placed(places):
                done = kind(path).load(second.generators, **second.parts)
        except Exception as error:
            if "Pickling" not in type(error).__name__ and "pickling" not in type(error).__name__:
                raise
            return begun, -1, np.zeros(3), -1, False, -1, True
        losses = np.array(second.train(3))
        kept = _after_failure(kind, path, third)
        foreign = _foreign(kind, f"{folder}/other.pt")
    return begun, done, losses, *kept, foreign, None not in places


def _placed(places: list[Any]) -> Any:
    """Return a patch under which ``torch.load`` notes where it is told to put tensors."""
    function = torch.load

    def load(file: Any, map_location: Any = None, **more: Any) -> Any:
        places.append(map_location)
        return function(file, map_location, **more)

    return mock.patch("torch.load", load)


def _after_failure(kind: Any, path: str, session: Session) -> tuple[int, bool]:
    """Return the epochs in a file after a save that failed, and whether it wrote beside the file.

    The second file is written to its end, and the program ends as it is about to take the place.
    A file that cannot be read has -1 epochs.
    """
    folder, beside = os.path.dirname(path), []  # noqa: PTH120

    def crash(old: Any, new: Any, **_: Any) -> None:
        beside.append(os.path.abspath(str(old)).startswith(f"{folder}{os.sep}"))  # noqa: PTH100
        raise OSError("the program has ended")

    ends = mock.patch("os.replace", crash), mock.patch("os.rename", crash)
    with ends[0], ends[1], contextlib.suppress(Exception):
        kind(path).save(99, session.generators, **session.parts)
    try:
        return kind(path).load(session.generators, **session.parts), beside == [True]
    except Exception:
        return -1, beside == [True]


def _foreign(kind: Any, path: str) -> int:
    """Return the epochs that are read from a file with other things than numbers and text, or -1.

    -1 is an error, as it should be.
    """
    odd = {"odd": Part({"array": np.zeros(2)})}
    try:
        kind(path).save(1, [], **odd)
        epochs: int = kind(path).load([], **odd)
    except Exception:
        return -1
    return epochs


def split(kind: Any, x: np.ndarray, epochs: tuple[int, int], seed: int) -> list[float]:
    """Return the losses of a run in two parts, the second in a session that had another seed.

    Parameters
    ----------
    kind : type
        The student's checkpoint, as in :func:`resume`.
    x : (m, n) array
        The examples.
    epochs : tuple of two ints
        How many each part has.
    seed : int
        Seed of the first session.

    Returns
    -------
    losses : list of float
        One for each epoch: those of a run that never stopped, if the checkpoint is right.
    """
    first, second = Session(x, seed), Session(x, seed + 1)
    with tempfile.TemporaryDirectory() as folder:
        losses = first.train(epochs[0])
        kind(f"{folder}/a.pt").save(epochs[0], first.generators, **first.parts)
        kind(f"{folder}/a.pt").load(second.generators, **second.parts)
    return losses + second.train(epochs[1])


# --- Images per second ------------------------------------------------------------------------


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


def measure_speed(
    function: Any,
    has_gpu: bool,
    seconds: tuple[float, float],
    images: int,
    warmup: int,
    repeats: int,
) -> tuple[float, int]:
    """Return images per second on a simulated device, and the steps that were taken.

    Parameters
    ----------
    function : callable
        The student's function; ``function(step, images, warmup, repeats)`` returns a rate.
    has_gpu : bool
        Whether the device works while the program goes on.
    seconds : tuple of two floats
        What the work of a step takes, and what it takes to order it.
    images : int
        Images in a step.
    warmup, repeats : int
        Steps before the measurement, and measured steps.

    Returns
    -------
    speed : float
        Images per second, as the function has it.
    steps : int
        How many steps it has taken.

    Raises
    ------
    AssertionError
        If it waits for a GPU where there is none, or reads another clock than
        ``time.perf_counter``.
    """
    device = _Device(has_gpu, *seconds)
    with (
        mock.patch("torch.cuda.is_available", device.is_available),
        mock.patch("torch.cuda.synchronize", device.synchronize),
        mock.patch("time.perf_counter", device.clock),
        mock.patch("time.time", _another_clock),
    ):
        speed = function(device.step, images, warmup, repeats)
    return float(speed), device.steps
