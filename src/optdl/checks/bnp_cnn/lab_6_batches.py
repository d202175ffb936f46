"""The student yields shuffled minibatches of examples that lie on a device."""

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from optdl.checks.exercise import Exercise
from optdl.labs.drivers import bnp_cnn as drivers


class Batches:
    """Minibatches of examples that lie on a device, in a new order in each epoch. Source: LAB-6."""

    def __init__(self, x, y, size, generator, device="cpu"):
        self.x, self.y = x.to(device), y.to(device)
        self.size, self.generator = size, generator

    def __len__(self):
        return -(-len(self.y) // self.size)

    def __iter__(self):
        order = torch.randperm(len(self.y), generator=self.generator, device=self.y.device)
        for rows in order.split(self.size):
            yield self.x[rows], self.y[rows]


exercise = Exercise("LAB-6:batches", Batches, use=drivers.batches)


@exercise.cases
def _(rng):
    for rest, device in [(1, "cpu"), (0, "cpu"), (-1, "cpu"), (1, "meta")]:
        size = int(rng.integers(3, 6))
        m = int(rng.integers(2, 6)) * size + rest
        x = rng.normal(size=(m, *rng.integers(1, 4, size=3))).round(2)
        yield x, rng.permutation(m), size, int(rng.integers(1000)), device


@exercise.fact("a DataLoader with the orders of `torch.randperm` gives the same minibatches")
def _(kind, rng):
    class Loader:
        def __init__(self, x, y, size, generator, device):
            self.data, self.size, self.generator = TensorDataset(x, y), size, generator

        def __len__(self):
            return len(DataLoader(self.data, self.size))

        def __iter__(self):
            order = torch.randperm(len(self.data), generator=self.generator).tolist()
            yield from DataLoader(self.data, self.size, sampler=order)

    case = rng.normal(size=(11, 2)), np.arange(11), 4, int(rng.integers(1000)), "cpu"
    return exercise.agrees(kind, Loader, case, slice(1, 3), rtol=0, atol=0)


exercise.help(r"""
1. Which work is done once for all epochs, and which at the beginning of each loop over `batches`?
2. A method `__iter__` that contains `yield` starts from its first line in each new loop, so this is
   where the order is drawn. Pieces of the permutation are the rows of the minibatches.
3. Draw the permutation on the device, cut it with its method `split`, and yield `x` and `y` indexed
   with each piece. The length is the number of examples divided by the size, rounded up.
all your epochs have the same order; draw one in each `__iter__`, with a generator that goes on
    order = → self.order = order = self.order if hasattr(self, "order") else
you draw the order once, in `__init__`; draw one in each `__iter__`
    .generator = size, generator → .order = size, torch.randperm(len(y), generator=generator)
    torch.randperm(len(self.y), generator=self.generator, device=self.y.device) → self.order
you leave out examples where the size does not divide their number; the last minibatch is smaller
    -(-len(self.y) // self.size) → len(self.y) // self.size
    in order.split(self.size): → in order.split(self.size)[: len(self)]:
`len(batches)` rounds down; the last minibatch, which is smaller, counts, too
    -(-len(self.y) // self.size) → len(self.y) // self.size
your labels stay in the order in which they lie, and the images do not; take both by the same rows
    for rows in order.split(self.size):
    → for rows, y in zip(order.split(self.size), self.y.split(self.size)):
    self.y[rows] → y
images and labels have orders of their own, so labels are wrong; take both by the same rows
    self.y[rows] → self.y[rows[torch.randperm(len(rows), generator=self.generator)]]
you draw rows with replacement; an epoch has each example once: use `torch.randperm`
    torch.randperm(len(self.y), → torch.randint(len(self.y), (len(self.y),),
your examples come in the order in which they lie; draw a new one for each epoch
    torch.randperm(len(self.y), generator=self.generator, device=self.y.device)
    → torch.arange(len(self.y))
you draw from torch's global generator; draw from the one that you are given
    generator=self.generator, →
you make a new generator with the given one's seed, which starts over; draw from the given one
    self.size, self.generator = size, generator
    → self.size, self.generator = size, torch.Generator().manual_seed(generator.initial_seed())
your object is used up after one epoch; begin a new epoch in each call of `__iter__`
    order = → if hasattr(self, "order"):\n            return\n        self.order = order =
you give all labels with each minibatch; take them by the same rows as the images
    self.y[rows] → self.y
you reorder the examples themselves, and each epoch those of the last; leave x and y as they are
    for rows in order.split( → self.x, self.y = self.x[order], self.y[order]\n
            for rows in torch.arange(len(order), device=order.device).split(
you permute the minibatches; permute the examples
    len(self.y), generator → len(self), generator
    in order.split(self.size) → in [torch.arange(len(self.y)).split(self.size)[k] for k in order]
you count one minibatch too many where `size` divides the number of examples; round up
    -(-len(self.y) // self.size) → len(self.y) // self.size + 1
""")
