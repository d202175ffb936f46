"""The student writes a file from which a training goes on as if it had not ended."""

import os

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp_cnn as drivers


class Checkpoint:
    """A file from which training goes on. Source: LAB-6."""

    def __init__(self, path):
        self.path = str(path)

    def save(self, epoch, generators, **parts):
        """Write the file, whole or not at all."""
        content = {
            "epoch": epoch,
            "generators": [one.get_state() for one in generators],
            "parts": {name: part.state_dict() for name, part in parts.items()},
        }
        torch.save(content, self.path + ".part")
        os.replace(self.path + ".part", self.path)  # noqa: PTH105

    def load(self, generators, **parts):
        """Put everything where the file left it, and return the finished epochs; 0 without one."""
        if not os.path.exists(self.path):  # noqa: PTH110
            return 0
        content = torch.load(self.path, map_location="cpu", weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(content["parts"][name])
        for generator, state in zip(generators, content["generators"], strict=True):
            generator.set_state(state)
        return content["epoch"]


exercise = Exercise("LAB-6:checkpoint", Checkpoint, use=drivers.checkpoint)


@exercise.cases
def _(rng):
    ends = [f"a second save, in which the program ends at {place}" for place in drivers.ENDS[:3]]
    for event in ("no file", "loaded by another program", *ends, "the file is damaged"):
        x = rng.normal(size=rng.integers(2, 6, size=2)).round(2)
        yield x, int(rng.integers(1, 5)), int(rng.integers(1000)), event


@exercise.fact("losses before `save` and after `load` are those of an uninterrupted training")
def _(kind, rng):
    x, seed = rng.normal(size=(5, 3)), int(rng.integers(1000))
    torch.default_generator.manual_seed(seed)
    theta = np.concatenate([p.detach().numpy().ravel() for p in nn.Linear(3, 1).parameters()])
    first, second = (torch.Generator().manual_seed(seed + k) for k in (1, 2))
    velocity, losses = 0, []
    for epoch in range(4 + 3):
        rows = x[torch.randperm(5, generator=first)] + torch.randn(5, 1, generator=second).numpy()
        rows = np.hstack([rows, np.ones((5, 1))])
        errors = rows @ theta - np.arange(5)
        losses.append(np.mean(errors**2))
        velocity = 0.9 * velocity + 2 / 5 * errors @ rows
        theta = theta - 0.1 * 0.5 ** (epoch // 2) * velocity
    return np.allclose(losses, exercise.observe(kind, x, 4, seed, "")[1])


exercise.help(r"""
1. Which methods return and put back the state of a network, an optimizer and a generator?
2. Networks and optimizers have `state_dict` and `load_state_dict`; generators have `get_state` and
   `set_state`. One dict can hold the epoch, the parts by name, and a list for the generators.
3. To save, write this dict with `torch.save` under another name in the same folder, and replace the
   old file with it. To load, return 0 without a file; otherwise restore parts and generators.
your file has the state of the network alone; save each of `parts`: the optimizer has the momentum
    in parts.items()} → in parts.items() if name == "model"}
    part.load_state_dict(content["parts"][name])
    → name in content["parts"] and part.load_state_dict(content["parts"][name])
your file has the states of certain parts only; save each of `parts`, whatever its name or class
    in parts.items()} → in parts.items() if name in ("model", "optimizer")}
    part.load_state_dict(content["parts"][name])
    → name in content["parts"] and part.load_state_dict(content["parts"][name])
you do not put the generators back, so after an interruption other numbers are drawn
    generator.set_state(state) → pass
you keep the state of PyTorch's global generator; keep those of `generators`
    one.get_state() → torch.get_rng_state()
you set the generators to their seeds, so they draw once more the same; keep their states
    get_state() → initial_seed() ; set_state( → manual_seed(
you put back the first generator alone; there may be more
    zip(generators, content["generators"], strict=True) → zip(generators[:1], content["generators"])
you write into the file itself; write beside it, and put the whole in its place with `os.replace`
    content, self.path + ".part" → content, self.path
    os.replace(self.path + ".part", self.path) → pass
you remove the old file before the new one has its place; `os.replace` does both in one step
    os.replace(self.path + ".part", self.path)
    → os.path.exists(self.path) and os.remove(self.path)\n
            os.replace(self.path + ".part", self.path)
you unpickle what you find, and a file could run any code; load with `weights_only=True`
    without `weights_only=True`
    weights_only=True → weights_only=False
your states belong to the parts by their position; hand each part the state of its own name
    for name, part in parts.items():\n            part.load_state_dict(content["parts"][name])
    → for part, state in zip(parts.values(), content["parts"].values()):\n
                part.load_state_dict(state)
you return the number of the next epoch; return how many are finished, as `save` was given it
    return content["epoch"] → return content["epoch"] + 1
your file holds more than tensors, numbers and text; save what `state_dict()` and `get_state()` give
    part.state_dict() for → part for
you leave `parts` as they are; hand each its state with `load_state_dict`
    part.load_state_dict(content["parts"][name]) → pass
you remove the old file before the new one is whole; `os.replace` puts it there in one step
    content = { → os.path.exists(self.path) and os.remove(self.path)\n        content = {
""")
