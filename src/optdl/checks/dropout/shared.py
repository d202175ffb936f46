"""Cases of the exercises on a layer as an ensemble of subnetworks."""

from collections.abc import Iterator

import numpy as np

from optdl.checks.exercise import Case


def layer_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Yield layers of softmax units with the probability that an input is kept."""
    for c, n, keep in ((2, 3, 0.7), (3, 2, 0.4), (4, 5, 0.8)):
        yield {
            "W": rng.normal(size=(c, n), scale=2).round(2),
            "b": rng.normal(size=c).round(2),
            "x": rng.uniform(1, 2, size=n).round(2),
            "keep": keep,
        }
