"""What the two optimizers of the lab have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case
from optdl.labs.drivers import optimizers as drivers
from optdl.observation import observe

PARTS = (
    ("weights after step 1", "biases after step 1", "group 2 after step 1"),
    ("weights at the end", "biases at the end", "group 2 at the end"),
    "the parameter whose gradient is None",
    "whether the gradients stay as they are",
)
"""The names of what ``drivers.follow`` returns."""

EVENTS = {2: drivers.GROUPED, 3: drivers.RESUMED, 4: drivers.ZEROED}
"""What happens in a case, by its number."""


def paths(options: Sequence[dict[str, Any]]) -> Callable[[np.random.Generator], Iterator[Case]]:
    """Return a function that draws a path of an optimizer for each of these options."""

    def cases(rng: np.random.Generator) -> Iterator[Case]:
        for number, chosen in enumerate(options):
            shapes = [(2, 3), (4,), (2,), (1,)] if number % 2 else [(1, 2), (2,), (1,), (1,)]
            yield {
                "start": [rng.normal(size=shape).round(2) for shape in shapes],
                "options": chosen,
                "rates": [0.1] * 4 if number < 2 else [0.1, 0.1, 0.05, 0.02, 0.02],
                "event": EVENTS.get(number, ""),
            }

    return cases


def rests_where_there_is_no_slope(**options: Any) -> Callable[[Any, np.random.Generator], bool]:
    """Return whether parameters at the minimum of their loss stay there, for four steps."""

    def holds(kind: Any, rng: np.random.Generator) -> bool:
        start, rates = [np.ones(3)] * 4, [float(rng.uniform(0.01, 0.3))] * 4
        first, last, *_ = observe(drivers.follow, kind, start, options, rates, "")
        return disagreement((tuple(start[:3]),) * 2, (first, last), 0, 0) is None

    return holds


def agrees_with_torch(theirs: Any, **fixed: Any) -> Callable[[Any, np.random.Generator], bool]:
    """Return whether an optimizer takes the same ten steps as one of PyTorch's own, in float32."""

    def holds(kind: Any, rng: np.random.Generator) -> bool:
        start = rng.normal(size=6).astype(np.float32)
        ours = observe(drivers.descend_quartic, kind, start, 0.05, 10, {})
        expected = drivers.descend_quartic(theirs, start, 0.05, 10, fixed)
        return disagreement(expected, ours, 1e-5, 1e-6) is None

    return holds
