"""Files from which training goes on after an interruption."""

from __future__ import annotations

import hashlib
import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from optdl.files import atomic_write
from optdl.training.hooks import State

__all__ = ["Checkpoint", "checksum", "read", "write"]

_FORMAT = "optdl checkpoint 1"


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a checkpoint of tensors, numbers, strings, lists and dicts, whole or not at all."""
    with atomic_write(path) as scratch:
        torch.save(dict(content), scratch)
        try:  # what could never be read again is refused before it costs an epoch
            torch.load(scratch, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise TypeError(
                "the state of a hook or of the optimizer must be made of tensors, numbers, "
                "strings, lists and dicts, so that a checkpoint can be read without running what "
                "is in it"
            ) from error


def read(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint; its tensors are on the CPU.

    Raises ValueError where the file is damaged or no checkpoint. Nothing that is in it runs.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "run.pt", {"epoch": 2})
    ...     read(Path(folder) / "run.pt")
    {'epoch': 2}
    """
    whole = path.read_bytes()
    try:
        # torch does not compare the checksums that it writes
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            if archive.testzip() is not None:
                raise zipfile.BadZipFile("a checksum does not agree")
        # on the CPU, as set_state of a generator takes nothing else; load_state_dict moves the rest
        content = torch.load(io.BytesIO(whole), map_location="cpu", weights_only=True)
        if not isinstance(content, dict):
            raise TypeError(f"a checkpoint holds a dict; this file holds a {type(content)}")
    except Exception as error:  # of any kind: it depends on which byte is damaged
        raise ValueError(
            f"{path} is not a whole checkpoint; it is damaged, or was not written by "
            "training. Delete it to start anew, or give the name of another file."
        ) from error
    return content


def checksum(*parts: bytes | memoryview) -> str:
    """Return twelve hexadecimal digits that tell these bytes from others.

    Examples
    --------
    >>> checksum(b"a", b"b") == checksum(b"ab"), checksum(b"a") == checksum(b"b")
    (True, False)
    """
    total = hashlib.sha256()
    for part in parts:
        total.update(part)
    return total.hexdigest()[:12]


class Checkpoint:
    """A file with all that training needs to go on; that of a run with another identity is refused.

    ``generator`` is that of the minibatches. Hooks with a ``state_dict`` are saved.
    """

    def __init__(
        self,
        path: Path,
        identity: Mapping[str, str],
        generator: torch.Generator,
        hooks: Sequence[Any],
    ) -> None:
        self.path, self.identity, self.generator = path, dict(identity), generator
        self.hooks = [hook if hasattr(hook, "load_state_dict") else None for hook in hooks]

    def resume(self, state: State, epochs: int) -> float:
        """Put everything where the file left it, and return the seconds spent so far.

        Without a file the start is written: an interruption of the first epoch then loses no
        more than that, even if the same model is used again.
        """
        if not self.path.exists():
            self.save(state, 0.0)
            return 0.0
        content = read(self.path)
        if content.get("format") != _FORMAT:
            raise ValueError(
                f"{self.path} is not a checkpoint of format {_FORMAT!r}. Give the name of "
                "another file, or delete this one to start anew."
            )
        self._require_same_run(content["run"], content["epoch"], epochs)
        state.model.load_state_dict(content["model"])
        state.optimizer.load_state_dict(content["optimizer"])
        for hook, saved in zip(self.hooks, content["hooks"], strict=True):
            if hook is not None:
                hook.load_state_dict(saved)
        self.generator.set_state(content["generator"])
        torch.set_rng_state(content["global"])
        for generator, saved in zip(_own(state.model), content.get("own", ()), strict=False):
            generator.set_state(saved)
        # where there are other devices, their generators stay as they are
        if len(content["cuda"]) == torch.cuda.device_count() > 0:
            torch.cuda.set_rng_state_all(content["cuda"])
        state.curves.update(content["curves"])
        state.epoch, state.step, state.stop = content["epoch"], content["step"], content["stop"]
        return float(content["seconds"])

    def save(self, state: State, seconds: float) -> None:
        """Write the file, whole or not at all."""
        # to ask for their states would start CUDA in a run that uses the CPU alone
        on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        content = {
            "format": _FORMAT,
            "run": self.identity,
            "model": state.model.state_dict(),
            "optimizer": state.optimizer.state_dict(),
            "hooks": [None if hook is None else hook.state_dict() for hook in self.hooks],
            "generator": self.generator.get_state(),
            "global": torch.get_rng_state(),
            "own": [generator.get_state() for generator in _own(state.model)],
            "cuda": torch.cuda.get_rng_state_all() if on_gpu else [],
            "curves": state.curves,
            "epoch": state.epoch,
            "step": state.step,
            "stop": state.stop,
            "seconds": seconds,
        }
        write(self.path, content)

    def _require_same_run(self, saved: Mapping[str, str], done: int, epochs: int) -> None:
        if different := [name for name in self.identity if saved.get(name) != self.identity[name]]:
            listed = "; ".join(
                f"{name}: {saved.get(name)} there, {self.identity[name]} here" for name in different
            )
            raise ValueError(
                f"{self.path} is the checkpoint of another run. {listed}. Give each run a file "
                "of its own; delete this one if it is no longer needed."
            )
        if done > epochs:
            raise ValueError(
                f"epochs must be at least {done}, so many are done in {self.path}; got {epochs}. "
                "Training cannot go back: ask for more epochs, or give another file."
            )


def _own(model: torch.nn.Module) -> list[torch.Generator]:
    """Return the generators of the layers that draw from one of their own, such as dropout."""
    values = (value for module in model.modules() for value in vars(module).values())
    return [value for value in values if isinstance(value, torch.Generator)]
