"""What a step costs in seconds, and how costs grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from optdl.optimizers.validation import require_count

__all__ = ["measured_seconds", "scaling_exponent"]

Numbers = Sequence[int] | Sequence[float] | np.ndarray


def scaling_exponent(sizes: Numbers, costs: Numbers) -> float:
    """Return the exponent p of costs ≈ C · sizeᵖ: the slope of the line in log–log axes.

    Source: L2-08

    Raises
    ------
    ValueError
        If there are fewer than two points, or one is not positive.

    Examples
    --------
    >>> round(scaling_exponent([10, 20, 40], [5.0, 40.0, 320.0]), 12)
    3.0
    """
    if len(sizes) != len(costs) or len(sizes) < 2 or min(*sizes, *costs) <= 0:
        raise ValueError(
            "a line in log–log axes needs two points or more, all positive; "
            f"got sizes {sizes} and costs {costs}"
        )
    return float(np.polyfit(np.log(sizes), np.log(costs), deg=1)[0])


def measured_seconds(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several measured times of a call, in seconds (Source: L2-08).

    Examples
    --------
    >>> 0 < measured_seconds(lambda: sum(range(1000))) < 1
    True
    """
    require_count("repeats", repeats)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)
