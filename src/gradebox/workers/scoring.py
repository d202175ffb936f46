"""The rule for points, wherever a test has run."""

import math


def bounded(value: float, points: float) -> float:
    """Return a score from 0 to the points of a cell; what is no number gives 0."""
    return 0.0 if math.isnan(value) else min(max(value, 0.0), points)
