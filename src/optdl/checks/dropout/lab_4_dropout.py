"""The student writes dropout as a module that draws its masks from a generator of its own."""

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
    parts=(
        *("the masks", "the outputs in training", "the outputs in evaluation mode"),
        *("the gradients", "whether the outputs have the dtype of x", "whether x stays as it was"),
        "whether the layer has no parameters",
    ),
)


@exercise.cases
def _(rng: np.random.Generator) -> Iterator[Case]:
    for shape, p, modes, dtype in [
        ((3, 4), None, ("train",), "float64"),
        ((5, 6), 0.75, ("train", "eval", "train"), "float32"),
        ((2, 3, 4), 0.4, ("eval", "train", "train"), "float64"),
        ((4, 8), 0.5, ("train", "train"), "float16"),
    ]:
        seed = int(rng.integers(1000))
        u = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
        yield {
            "x": rng.integers(1, 16, size=shape) / 4,
            "p": p or float(u.median()),  # an entry whose u equals p is kept
            "seed": seed,
            "modes": modes,
            "dtype": dtype,
        }


@exercise.fact("about p of the entries are dropped, and the others are divided by 1 − p")
def _(kind: Any, rng: np.random.Generator) -> bool:
    p, ones = float(rng.uniform(0.2, 0.8)), np.ones((200, 200))
    seed = int(rng.integers(1000))
    kept, outputs, *_ = observe(drivers.drop, kind, ones, p, seed, ("train",), "float64")
    # six standard deviations of a share of 40000 draws
    return abs(1 - kept[0].mean() - p) < 0.015 and np.allclose(outputs[kept], 1 / (1 - p))


@exercise.fact("an entry that nn.Dropout keeps too has the same value in both")
def _(kind: Any, rng: np.random.Generator) -> bool:
    x, seed, modes = rng.normal(size=(20, 30)), int(rng.integers(1000)), ("train", "eval")
    _, trained, evaluated, *_ = observe(drivers.drop, kind, x, 0.4, seed, modes, "float64")
    expected = nn.Dropout(0.4)(torch.tensor(x)).numpy()
    both = (trained[0] != 0) & (expected != 0)
    return np.allclose(trained[0][both], expected[both]) and np.array_equal(evaluated[0], x)


exercise.hints(
    "What has to be made once, together with the layer, and what has to be drawn anew in each "
    "forward pass in training?",
    "Make and seed the generator in `__init__`; each call of `forward` in training draws further "
    "numbers from it. Comparing the draws $u$ with $p$ gives a mask of truth values, by which `x` "
    "can be multiplied.",
    "In evaluation mode, return `x` at once. Otherwise draw $u$ in the shape of `x`, compare it "
    "with $p$, multiply `x` by the mask of the entries that are kept, and divide by $1-p$.",
)

exercise.mistakes(r"""
you drop entries in evaluation mode, too; ask `self.training` (`self.train` is a method, and always
true)
    self.training → self.train
you drop nothing in training, or only in evaluation mode; `self.training` is true in training
    not self.training → self.training
you divide by p, the probability of dropping; divide by 1 − p
    / (1 - self.p) → / self.p
you take p for the probability of keeping; as in nn.Dropout, it is the probability of dropping
    >= → <
    / (1 - self.p) → / self.p
you keep an entry where u < 1 − p, as `torch.bernoulli` does; that has the same probability, but
here it is kept where u ≥ p
    >= self.p → < 1 - self.p
you drop an entry whose u equals p; it is dropped only where u < p
    >= self.p → > self.p
all examples of the minibatch share one mask; draw a number for each entry of x
    x.shape → x.shape[1:]
your layer draws from PyTorch's global generator, which every other part of the program shares; give
`torch.rand` the layer's own, `generator=self.generator`
    , generator=self.generator →
`torch.rand_like` draws from PyTorch's global generator, and in the dtype of x; draw
`torch.rand(x.shape, generator=self.generator)`
    torch.rand(x.shape, generator=self.generator) → torch.rand_like(x)
you draw with `torch.bernoulli` in the dtype of x, which gives other masks; draw u with
`torch.rand`, and keep an entry where u ≥ p
    torch.rand(x.shape, generator=self.generator) >= self.p
    → torch.bernoulli(torch.full_like(x, 1 - self.p), generator=self.generator)
`torch.manual_seed` seeds the global generator, which all layers share; make a generator of the
layer's own, `torch.Generator().manual_seed(seed)`
    self.generator = torch.Generator() → torch
    , generator=self.generator →
your mask is the same in each call; make the generator once, in `__init__`, and draw a new mask in
each call of `forward`
    self.generator = torch.Generator().manual_seed(seed) → self.seed = seed
    self.generator) → torch.Generator().manual_seed(self.seed))
you draw a mask in evaluation mode, too, which advances the generator for nothing; return x first
    return x\n        k
    → torch.rand(x.shape, generator=self.generator)\n            return x\n        k
your mask is float32 whatever x is, so the output has another dtype or a rounded scale; the output
has the dtype of x
    * kept / (1 - self.p) → * (kept.float() / (1 - self.p))
you draw in the dtype of x, which gives other numbers; draw `torch.rand(x.shape,
generator=self.generator)`, and compare with p
    x.shape, → x.shape, dtype=x.dtype,
you change x in place, and the caller's tensor with it; return a new tensor
    x * kept / (1 - self.p) → x.mul_(kept).div_(1 - self.p)
no gradient passes your layer; use x itself in `forward`, without `detach()`, `.data` or `no_grad`
    return x * → return x.detach() *
you keep p as a parameter, which an optimizer would change; keep the number
    self.p = p → self.p = nn.Parameter(torch.tensor(p))
you call `torch.nn.functional.dropout`, which draws from the global generator; draw the mask with
the layer's own
    x * kept / (1 - self.p) → torch.nn.functional.dropout(x, self.p)
you draw one number for each column, so all rows lose the same entries; draw one for each entry
    rand(x.shape, → rand(x.shape[-1:],
""")
