"""What a step costs in seconds, and how costs grow."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Sequence

import numpy as np

from optdl.optimizers.validation import require

__all__ = ["measured_seconds", "scaling_exponent"]

Numbers = Sequence[int] | Sequence[float] | np.ndarray


def scaling_exponent(sizes: Numbers, costs: Numbers) -> float:
    """Return the exponent p of costs ≈ C · sizeᵖ: their slope in log–log axes (Source: L2-08).

    Raises ValueError where there are fewer than two different sizes, or a number is not positive.

    >>> round(scaling_exponent([10, 20, 40], [5.0, 40.0, 320.0]), 12)
    3.0
    """
    if len(sizes) != len(costs) or len({*sizes}) < 2 or min(*sizes, *costs) <= 0:
        raise ValueError(
            "a line in log–log axes needs two different sizes or more, all positive; "
            f"got sizes {sizes} and costs {costs}"
        )
    return float(np.polyfit(np.log(sizes), np.log(costs), deg=1)[0])


def measured_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several measured times of a call, in seconds (Source: L2-08).

    Raises ValueError where ``repeats`` is less than 1.

    >>> 0 < measured_seconds(lambda: sum(range(1000))) < 1
    True
    """
    require("repeats", repeats)
    return min(timeit.repeat(function, number=1, repeat=repeats))
