"""What the optimizers refuse, with the reason."""

from __future__ import annotations

import math

__all__ = [
    "require_count",
    "require_decay",
    "require_rate",
    "require_share",
    "require_small",
    "require_steps_taken",
]


def require_rate(name: str, value: float) -> None:
    """Refuse a learning rate that is negative or not finite."""
    if not 0 <= value < math.inf:
        raise ValueError(
            f"{name} must be 0 or more and finite, got {value}: "
            "a negative rate goes uphill, since the method subtracts the gradient"
        )


def require_share(name: str, value: float, why: str) -> None:
    """Refuse a share outside [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value}: {why}")


def require_small(name: str, value: float) -> None:
    """Refuse a guard against division by zero that is negative or not finite."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more, got {value}: it guards a division")


def require_count(name: str, value: int) -> None:
    """Refuse a number of things below 1."""
    if value < 1:
        raise ValueError(f"{name} must be 1 or more; got {value}")


def require_steps_taken(t: int) -> None:
    """Refuse the state before the first step."""
    if t < 1:
        raise ValueError(
            "expected a state after 1 step or more, got t = 0: no gradient was seen yet"
        )


def require_decay(name: str, value: float) -> None:
    """Refuse a weight decay that is negative or not finite."""
    if not 0 <= value < math.inf:
        raise ValueError(
            f"{name} must be 0 or more and finite, got {value}: θ would grow by itself"
        )
