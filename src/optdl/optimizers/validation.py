"""What the optimizers refuse, with the reason."""

from __future__ import annotations

import math

__all__ = [
    "DIVISION",
    "GROWTH",
    "require_count",
    "require_nonnegative",
    "require_rate",
    "require_share",
]

DIVISION = "it guards a division"
GROWTH = "θ would grow by itself"


def require_nonnegative(name: str, value: float, why: str) -> None:
    """Refuse a number that is negative or not finite."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more and finite, got {value}: {why}")


def require_rate(name: str, value: float | str) -> None:
    """Refuse a learning rate that is no number, negative or not finite."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a number or a schedule, got the text {value!r}")
    why = "a negative rate goes uphill, since the method subtracts the gradient"
    require_nonnegative(name, value, why)


def require_share(name: str, value: float, why: str) -> None:
    """Refuse a share outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}: {why}")


def require_count(name: str, value: int) -> None:
    """Refuse a number of things below 1."""
    if value < 1:
        raise ValueError(f"{name} must be 1 or more; got {value}")
