"""The layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from optdl.checks.exercise import Case, Exercise
from optdl.labs.drivers import dropout as drivers
from optdl.observation import observe


class Dropout(nn.Module):
    """Drop each entry with probability p in training: y = x [u ≥ p] / (1 − p), u uniform.

    Source: LAB-4.
    """

    def __init__(self, p: float, seed: int) -> None:
        super().__init__()
        self.p = p
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with entries dropped, or x itself in evaluation mode."""
        if not self.training:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.p
        return x * kept / (1 - self.p)


exercise = Exercise(
    "LAB-4:dropout",
    Dropout,
    use=drivers.drop,
    parts=("the outputs", "the gradients", "their dtype", "the parameters of your layer"),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shape, p, modes, dtype in [
        ((3, 4), 0.5, ("train",), "float64"),
        ((5, 6), 0.8, ("train", "eval", "train"), "float32"),
        ((2, 3, 4), 0.4, ("eval", "train", "train"), "float64"),
        ((4, 8), 0.5, ("train", "train"), "float16"),
    ]:
        yield {
            "x": rng.integers(1, 16, size=shape) / 4,
            "p": p,
            "seed": int(rng.integers(1000)),
            "modes": modes,
            "dtype": dtype,
        }


@exercise.fact("about p of the entries are dropped, the others scaled")
def _(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether about p of 40000 ones are dropped, and the others are 1/(1 - p)."""
    p, ones = float(rng.uniform(0.2, 0.8)), np.ones((200, 200))
    seed = int(rng.integers(1000))
    y = observe(drivers.drop, kind, ones, p, seed, ("train",), "float64")[0][0]
    kept = y[y != 0]
    share = 1 - len(kept) / y.size
    # six standard deviations of a share of 40000 draws
    return abs(share - p) < 0.015 and np.allclose(kept, 1 / (1 - p))


@exercise.fact("what is kept is as in torch.nn.Dropout, in both modes")
def _(kind: Any, rng: np.random.Generator) -> bool:
    """Return whether an entry that both layers keep is the same as in nn.Dropout."""
    x, seed = rng.normal(size=(20, 30)), int(rng.integers(1000))
    modes = ("train", "eval")
    trained, _, _, evaluated, _, _ = observe(drivers.drop, kind, x, 0.4, seed, modes, "float64")[0]
    torch.manual_seed(seed)
    expected = nn.Dropout(0.4)(torch.tensor(x)).numpy()
    both = (trained != 0) & (expected != 0)
    return np.allclose(trained[both], expected[both]) and np.array_equal(evaluated, x)


_DRAW = "torch.rand(x.shape, generator=self.generator) >= self.p"


exercise.mistake(
    "you drop entries in evaluation mode, too; ask `self.training` (`self.train` "
    "is a method, and always true)",
    ("if not self.training:", "if not self.train:"),
)

exercise.mistake(
    "you drop nothing in training, or only in evaluation mode; `self.training` is true in training",
    ("if not self.training:", "if self.training:"),
)

exercise.mistake(
    "you multiply by 1 − p in evaluation mode, although you divide by 1 − p in "
    "training; in evaluation mode x passes unchanged",
    ("            return x\n", "            return x * (1 - self.p)\n"),
)

exercise.mistake(
    "you scale in evaluation mode and not in training; divide by 1 − p in training",
    ("            return x\n", "            return x * (1 - self.p)\n"),
    (" / (1 - self.p)", ""),
)

exercise.mistake(
    "your kept entries lack the scale; divide by 1 − p in training", (" / (1 - self.p)", "")
)

exercise.mistake(
    "you divide by p, the probability of dropping; divide by 1 − p",
    (" / (1 - self.p)", " / self.p"),
)

exercise.mistake(
    "you take p for the probability of keeping; as in nn.Dropout, it is the "
    "probability of dropping",
    (_DRAW, _DRAW.replace(">=", "<")),
    (" / (1 - self.p)", " / self.p"),
)

exercise.mistake(
    "you keep where u < 1 − p, as `torch.bernoulli` does; that has the same "
    "probability, but here an entry is kept where u ≥ p",
    (_DRAW, _DRAW.replace(">= self.p", "< 1 - self.p")),
)

exercise.mistake(
    "all examples of the minibatch share one mask; draw a number for each entry of x",
    ("torch.rand(x.shape, ", "torch.rand(x.shape[1:], "),
)

exercise.mistake(
    "your layer draws from PyTorch's global generator, which every other part of "
    "the program shares; give `torch.rand` the layer's own, "
    "`generator=self.generator`",
    ("torch.rand(x.shape, generator=self.generator)", "torch.rand(x.shape)"),
)

exercise.mistake(
    "`torch.manual_seed` seeds the global generator, which all layers share; "
    "make a generator of the layer's own, `torch.Generator().manual_seed(seed)`",
    ("self.generator = torch.Generator().manual_seed(seed)", "torch.manual_seed(seed)"),
    ("torch.rand(x.shape, generator=self.generator)", "torch.rand(x.shape)"),
)

exercise.mistake(
    "you seed the generator in each call, so that the mask is the same each "
    "time; make the generator once, in `__init__`",
    (
        "self.generator = torch.Generator().manual_seed(seed)",
        "self.seed = seed",
    ),
    (
        "        kept = torch.rand(x.shape, generator=self.generator)",
        "        generator = torch.Generator().manual_seed(self.seed)\n"
        "        kept = torch.rand(x.shape, generator=generator)",
    ),
)

exercise.mistake(
    "you draw a mask in evaluation mode, too, which advances the generator for "
    "nothing; return x first",
    (
        "        if not self.training:",
        f"        kept = {_DRAW}\n        if not self.training:",
    ),
    (f"            return x\n        kept = {_DRAW}\n", "            return x\n"),
)

exercise.mistake(
    "your mask is float32 whatever x is, so that the output has another dtype or "
    "a rounded scale; the output has the dtype of x",
    (
        "x * kept / (1 - self.p)",
        "x * (kept.float() / torch.tensor(1 - self.p, dtype=torch.float32))",
    ),
)

exercise.mistake(
    "your mask is float64, and so is your output; the output has the dtype of x",
    ("x * kept / (1 - self.p)", "x * kept.double() / (1 - self.p)"),
)

exercise.mistake(
    "you draw in the dtype of x, which gives other numbers; draw "
    "`torch.rand(x.shape, generator=self.generator)`, and compare with p",
    ("torch.rand(x.shape, ", "torch.rand(x.shape, dtype=x.dtype, "),
)

exercise.mistake(
    "you change x in place, and the caller's tensor with it; return a new tensor",
    ("return x * kept / (1 - self.p)", "return x.mul_(kept).div_(1 - self.p)"),
)

exercise.mistake(
    "no gradient passes your layer; use x itself in `forward`, without "
    "`detach()`, `.data` or `no_grad`",
    ("return x * kept", "return x.detach() * kept"),
)

exercise.mistake(
    "you keep p as a parameter, which an optimizer would change; keep the number",
    ("self.p = p\n", "self.p = nn.Parameter(torch.tensor(float(p)))\n"),
)

exercise.mistake(
    "you call `torch.nn.functional.dropout`, which draws from the global "
    "generator; draw the mask with the layer's own",
    (
        "return x * kept / (1 - self.p)",
        "return torch.nn.functional.dropout(x, self.p, self.training)",
    ),
)
