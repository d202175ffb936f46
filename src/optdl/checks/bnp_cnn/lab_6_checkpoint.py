"""The student writes a file from which a training goes on as if it had not ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import bnp_cnn as drivers
from optdl.observation import observe


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


exercise = Exercise(
    "LAB-6:checkpoint",
    Checkpoint,
    use=drivers.resume,
    parts=(
        "epochs done without a file",
        "epochs done with a file, or −1 if it is refused",
        "the losses of the next three epochs",
        "epochs in the file after a save that is interrupted, or −1 if it is damaged",
        "whether the new file is written beside the old one",
        "epochs in a file with other objects than numbers and text, or −1 if it is refused",
        "whether torch.load has a map_location",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    yield {"x": rng.normal(size=(3, 2)).round(2), "epochs": 2, "seed": int(rng.integers(1000))}


@exercise.fact("a run in two parts has the losses of a run in one part, to the last bit")
def _(kind: Any, rng: np.random.Generator) -> bool:
    x, seed = rng.normal(size=(5, 3)), int(rng.integers(1000))
    losses: list[float] = observe(drivers.split, kind, x, (2, 4), seed)
    return losses == drivers.Session(x, seed).train(6)


exercise.hints(
    "Which methods return the state of a network or an optimizer and the state of a generator, and "
    "which methods put them back?",
    "Networks and optimizers have `state_dict` and `load_state_dict`; generators have `get_state` "
    "and `set_state`. One dict can hold the epoch, the states of the parts by name, and a list of "
    "the generators' states.",
    "To save, write this dict with `torch.save` under another name in the same folder, and replace "
    "the old file with it. To load, return 0 without a file; otherwise read it, and restore parts "
    "by name and generators in order.",
)

exercise.mistakes(r"""
your file has the state of the network alone; the momentum is in the optimizer's
    "parts": {
    → "parts": {} if "model" not in parts else {"model": parts["model"].state_dict()} or {
    in parts.items():\n            part.load
    → in parts.items():\n            name == "model" and part.load
you do not put the generators back, so after an interruption other numbers are drawn
    generator.set_state(state) → pass
you set the generators to their seeds, so they draw once more what they have drawn; keep their
states
    get_state() → initial_seed()
    set_state( → manual_seed(
you put back the first generator alone; there may be more
    zip(generators, content["generators"], strict=True) → zip(generators[:1], content["generators"])
you return the epoch that comes next; return how many are done
    content["epoch"] → content["epoch"] + 1
your `load` fails before there is a file; return 0, for training begins
    if not os.path.exists(self.path): → if False:
you write into the file itself, and an interruption then leaves no checkpoint at all; write beside
it, and put the new file in its place with `os.replace`
    content, self.path + ".part" → content, self.path
    os.replace(self.path + ".part", self.path) → pass
you remove the old file before the new one has its place; `os.replace` does both in one step
    os.replace(self.path + ".part", self.path)
    → os.path.exists(self.path) and os.remove(self.path)\n
            os.replace(self.path + ".part", self.path)
you write the new file into another folder, which may be on another disk, from where it cannot take
its place in one step; write it beside the old one
    torch.save(content, self.path + ".part")
    → elsewhere = __import__("tempfile").mktemp()\n        torch.save(content, elsewhere)
    os.replace(self.path + ".part", → os.replace(elsewhere,
you unpickle what you find, and a file could run any code; load with `weights_only=True`
    weights_only=True → weights_only=False
your tensors come back on the device on which they were saved, which the next machine may not have;
load with `map_location="cpu"`
    map_location="cpu", →
your `load` hides every error and begins at 0; only a missing file means 0
    content = torch.load → try:\n            content = torch.load
    weights_only=True) → weights_only=True)\n        except Exception:\n            return 0
you pickle the objects themselves; save what their `state_dict()` returns
    part.state_dict() for → part for
you read the file and leave network and optimizer as they are; hand each its state with
`load_state_dict`
    part.load_state_dict(content["parts"][name]) → pass
""")


_REPLACE = 'os.replace(self.path + ".part", self.path)'
