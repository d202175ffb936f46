"""What several exercises of the lab have in common."""

from __future__ import annotations

NO_GRAD = (
    "you change a leaf that requires a gradient while autograd records: put `@torch.no_grad()` "
    "above the function"
)

NEW_PARAMETER = (
    "you put a new parameter in the layer's place, which an optimizer that was made before does "
    "not know; write into the weight that is there"
)

GLOBAL = (
    "you draw from torch's global random numbers; pass `generator=generator`, so the weights "
    "follow from its seed alone"
)

OUTERMOST = (
    "you look at the outermost modules only; `modules()` and `named_modules()` also give those "
    "within others"
)

UNBIASED = (
    "your standard deviation divides by the number of values minus 1; divide by the number, with "
    "`correction=0`"
)
