"""What several exercises on this topic have in common."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case


def weight_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield numbers of inputs and outputs, with a generator."""
    few, many = rng.integers([2, 5], [5, 9]).tolist()
    for fan_in, fan_out in ((1, 3), (few, many), (many, few), (many + 1, 1)):
        yield {"fan_in": fan_in, "fan_out": fan_out, "rng": np.random.default_rng(rng.integers(99))}
