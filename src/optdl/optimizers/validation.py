"""The range of each constant, by the name that it has in all methods and schedules."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["Constants", "require"]

CONDITIONS = {
    "lie in [0, 1)": lambda value: 0 <= value < 1,
    "be 0 or more and finite": lambda value: 0 <= value < math.inf,
    "be 1 or more": lambda value: value >= 1,
}
FRACTION, NONNEGATIVE, COUNT = CONDITIONS
RATE = NONNEGATIVE, "a negative rate goes uphill, since the method subtracts the gradient"
AVERAGE = FRACTION, "the newest gradient would not count"

RANGES = {
    **dict.fromkeys(("lr", "first", "last", "schedule", "increase"), RATE),
    **dict.fromkeys(("rho", "beta1", "beta2"), AVERAGE),
    **dict.fromkeys(("tau", "steps", "repeats"), (COUNT, "")),
    "alpha": (FRACTION, "a velocity that is kept whole never dies down"),
    "decrease": (FRACTION, "the rate would be gone after one flip"),
    "factor": (FRACTION, "the rate would not fall; use a plain number"),
    "delta": (NONNEGATIVE, "it guards a division"),
    "decay": (NONNEGATIVE, "θ would grow by itself"),
    "damping": (NONNEGATIVE, "it would lower the curvature"),
    "power": (NONNEGATIVE, "the rate would grow"),
    "stable": (NONNEGATIVE, ""),
}


def require(name: str, value: Any, shown: str = "") -> None:
    """Refuse a constant outside of its range, with the reason."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a number or a schedule, got the text {value!r}")
    condition, why = RANGES[name]
    if not CONDITIONS[condition](value):
        reason = f", got {value}: {why}" if why else f"; got {value}"
        raise ValueError(f"{shown or name} must {condition}{reason}")


class Constants:
    """A method or a schedule, which refuses constants outside of their ranges."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            # a callable is a schedule, asked in each step; None, the last rate of LinearDecay
            if name in RANGES and not callable(value) and value is not None:
                require(name, value)
