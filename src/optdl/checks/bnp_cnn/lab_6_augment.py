"""The student shifts and mirrors a whole minibatch of images at random, on their device."""

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Exercise
from optdl.images import PadCropFlip
from optdl.labs.drivers import bnp_cnn as drivers


def augment(x, generator, padding=4, flip=True):
    """Pad images with zeros, cut out parts of the old size, and mirror half of them.

    Each image has a shift and a mirror of its own. Nothing leaves the device of x. Source: LAB-6.
    """
    n, _, height, width = x.shape
    how = {"generator": generator, "device": x.device}
    top = torch.randint(0, 2 * padding + 1, (n, 1), **how)
    left = torch.randint(0, 2 * padding + 1, (n, 1), **how)
    rows = top + torch.arange(height, device=x.device)
    columns = left + torch.arange(width, device=x.device)
    if flip:
        mirrored = torch.randint(0, 2, (n, 1), **how)
        columns = torch.where(mirrored == 1, columns.flip(1), columns)
    padded = nn.functional.pad(x, (padding, padding, padding, padding))
    images = torch.arange(n, device=x.device)[:, None, None]
    return padded[images, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


exercise = Exercise("LAB-6:augment", augment, use=drivers.augment)


@exercise.cases
def _(rng):
    for options, dtype in [
        ({"flip": False}, np.float32),
        ({"flip": True}, np.float32),
        ({}, np.uint8),
        (None, np.float32),
    ]:
        channels, height, width = rng.choice(range(1, 7), size=3, replace=False)
        shape = (rng.integers(4, 10), channels, height + 2, width + 2)
        x, seed = rng.integers(1, 100, size=shape).astype(dtype), int(rng.integers(1000))
        padding = int(rng.integers(1, 4))
        yield x, seed, {} if options is None else {"padding": padding, **options}


@exercise.fact("drawn in the task's order, shifts and mirrors are those that optdl.images makes")
def _(function, rng):
    x, seed = rng.normal(size=(6, 2, 5, 4)).round(), int(rng.integers(1000))
    generator = torch.Generator().manual_seed(seed)
    draws = torch.cat([torch.randint(0, n, (6, 1), generator=generator) for n in (5, 5, 2)], dim=1)
    got = exercise.observe(function, x, seed, {"padding": 2})[0]
    return np.array_equal(got, PadCropFlip(2)(torch.tensor(x), draws))


exercise.help(r"""
1. If a part starts at row $t$, which rows has it, and what shape have these rows for all images?
2. The sum of the $(n, 1)$ draws and an `arange` of the height broadcasts to the rows of all images
   at once; likewise for the columns. To mirror an image, reverse its column numbers.
3. Give the image numbers the shape $(n, 1, 1)$, the rows $(n, h, 1)$ and the columns $(n, 1, w)$.
   Index the padded tensor with them and a slice for the channels, which then move to axis 1.
all your images have the same shift; draw one for each image, (n, 1) numbers
    top = torch.randint(0, 2 * padding + 1, (n → top = torch.randint(0, 2 * padding + 1, (1
    left = torch.randint(0, 2 * padding + 1, (n → left = torch.randint(0, 2 * padding + 1, (1
you mirror all images of a minibatch or none; draw for each image by itself
    torch.randint(0, 2, (n → torch.randint(0, 2, (1
you turn images upside down; a mirror exchanges left and right, so it reverses the columns
    columns = torch.where(mirrored == 1, columns.flip(1), columns)
    → rows = torch.where(mirrored == 1, rows.flip(1), rows)
you mirror every image; mirror those whose draw is 1
    mirrored == 1, → mirrored >= 0,
you draw for the mirror even where `flip` is false, so later draws differ; draw only if it is true
    if flip:\n        mirrored → mirrored
    )\n        columns = torch.where(mirrored → )\n    columns = torch.where(flip * mirrored
what leaves your image on one side comes in on the other; the border is zeros
    nn.functional.pad(x, (padding, padding, padding, padding))
    → nn.functional.pad(x.double(), (padding,) * 4, mode="circular").to(x.dtype)
your border repeats the outermost pixels; the border is zeros
    nn.functional.pad(x, (padding, padding, padding, padding))
    → nn.functional.pad(x.double(), (padding,) * 4, mode="replicate").to(x.dtype)
you draw from torch's global generator; draw from the one that you are given
    "generator": generator, →
each minibatch has the same draws, as your generator starts anew; use the given one, which goes on
    : generator, → : torch.Generator().manual_seed(generator.initial_seed()),
you change the images that you are given, and `x` has to stay as it is; make new ones
    return padded → return x.copy_(padded ; .permute(0, 3, 1, 2) → .permute(0, 3, 1, 2))
the largest shift never occurs: randint leaves out its upper end, so this is 2 · padding + 1
    top = torch.randint(0, 2 * padding + 1 → top = torch.randint(0, 2 * padding
    left = torch.randint(0, 2 * padding + 1 → left = torch.randint(0, 2 * padding
rows and columns have the same shift; draw each for itself
    left = torch.randint(0, 2 * padding + 1, (n, 1), **how) → left = top
you draw the column before the row; the first row of the part is drawn first
    top = torch → first = torch ; left = torch → top = torch ; first = torch → left = torch
you mirror where the draw is 0; 1 stands for mirrored
    mirrored == 1 → mirrored == 0
you mirror before you cut; mirror the part that was cut out
    columns.flip(1) → width + 2 * padding - 1 - columns
your padding is always 4; it is the `padding` that you are given
    n, _, height, width = x.shape → padding, (n, _, height, width) = 4, x.shape
your shift goes the other way; the draw is the first row or column of the part
    rows = top → rows = 2 * padding - top ; columns = left → columns = 2 * padding - left
""")
