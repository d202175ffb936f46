"""The student writes dropout as a module that draws its masks from a generator of its own."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import dropout as drivers


class Dropout(nn.Module):
    """In training entries are dropped: y = x [u ≥ p] / (1 − p), u uniform (Source: LAB-4)."""

    def __init__(self, p, seed):
        super().__init__()
        self.p = p
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, x):
        """Return x with entries dropped, or x itself in evaluation mode."""
        if not self.training:
            return x
        kept = torch.rand(x.shape, generator=self.generator) >= self.p
        return x * kept / (1 - self.p)


exercise = Exercise("LAB-4:dropout", Dropout, use=drivers.dropout)


@exercise.cases
def _(rng):
    for modes, dtype in [
        (("train",), "float64"),
        (("train", "eval", "train"), "float32"),
        (("eval", "train", "train"), "float64"),
        (("train", "train"), "float16"),
    ]:
        shape = (*rng.integers(1, 4, size=int(rng.integers(3))), *rng.integers(3, 7, size=2))
        seed = int(rng.integers(1000))
        u = torch.rand([*map(int, shape)], generator=torch.Generator().manual_seed(seed)).flatten()
        # an entry whose u equals p is kept; halves and quarters of small numbers are not rounded
        p = float(u.sort().values[len(u) // 2])
        if dtype != "float64":
            p = float(rng.choice([0.5, 0.75]))
        yield rng.integers(1, 16, size=shape) / 4, p, seed, modes, dtype


@exercise.fact("an entry is kept where u ≥ p, for the draws u of a generator with this seed")
def _(kind, rng):
    x, p, seed = rng.normal(size=(20, 30)), float(rng.uniform(0.2, 0.8)), int(rng.integers(1000))
    y, *_ = exercise.observe(kind, x, p, seed, ("train", "eval"), "float64")[0]
    draws = torch.rand(20, 30, generator=torch.Generator().manual_seed(seed)).numpy()
    return np.array_equal(y != 0, draws >= p)


exercise.help(r"""
1. What is made once, together with the layer, and what is drawn anew in each pass in training?
2. Make and seed the generator in `__init__`; each call of `forward` in training draws from it.
   Comparing the draws $u$ with $p$ gives a mask of truth values, by which `x` can be multiplied.
3. In evaluation mode, return `x` at once. Otherwise draw $u$ in the shape of `x`, compare it with
   $p$, multiply `x` by the mask of the entries that are kept, and divide by $1-p$.
you drop an entry whose u equals p; it is dropped only where u < p
    >= self.p → > self.p
you drop entries in evaluation mode, too; return `x` where `self.training` is false
    self.training → self.train
you drop entries in evaluation mode and not in training; `self.training` is true in training
    not self.training → self.training
you divide by p, the probability of dropping; divide by 1 − p
    / (1 - self.p) → / self.p
you take p for the probability of keeping; as in nn.Dropout, it is the probability of dropping
    >= → < ; / (1 - self.p) → / self.p
you keep an entry where u < 1 − p, as `torch.bernoulli` does; here it is kept where u ≥ p
    >= self.p → < 1 - self.p
all examples of the minibatch share one mask; draw a number for each entry of x
    x.shape → x.shape[1:]
your layer draws from the global generator; give `torch.rand` its own, `generator=self.generator`
    , generator=self.generator →
`torch.rand_like` draws from the global generator; use `torch.rand` with `generator=self.generator`
    with `rand_like`, else your draws come from PyTorch's global generator, and in the dtype of x
    torch.rand(x.shape, generator=self.generator) → torch.rand_like(x)
`torch.manual_seed` seeds the global generator; make and seed one of the layer's own
    with `torch.manual_seed`, else all your layers go on from the seed of the last one
    self.generator = torch.Generator() → torch ; , generator=self.generator →
your mask is the same in each call; make the generator once, in `__init__`, and draw in `forward`
    self.generator = torch.Generator().manual_seed(seed) → self.seed = seed
    self.generator) → torch.Generator().manual_seed(self.seed))
you draw a mask in evaluation mode, too, which advances the generator for nothing; return x first
    return x\n        k
    → torch.rand(x.shape, generator=self.generator)\n            return x\n        k
you draw in the dtype of x, which gives other numbers; draw with `torch.rand`, without `dtype=`
    x.shape, → x.shape, dtype=x.dtype,
no gradient passes your layer; use x itself in `forward`, without `detach()`, `.data` or `no_grad`
    return x * → return x.detach() *
your generator begins with a seed of its own; give it yours with `manual_seed(seed)`
    .manual_seed(seed) →
your scaled mask is in float32: it rounds the output, or changes its dtype; use the dtype of x
    x * kept / (1 - self.p) → kept.float() / (1 - self.p) * x
""")
