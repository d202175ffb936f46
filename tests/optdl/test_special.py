"""Special functions, against SciPy's."""

import numpy as np
import pytest
import scipy.special

from optdl import special

VALUES = np.array([-1e300, -40, -1, -0.0, 0, 1e-9, 0.5, 800, 1e300, -np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", ["expit", "ndtr", "softmax", "log_softmax"])
def test_functions_match_scipy(name: str, rng: np.random.Generator) -> None:
    axis = {"axis": -1} if "softmax" in name else {}  # of the others, each entry by itself
    values = [VALUES[:-3], VALUES[-1:]] if axis else [VALUES, np.empty((0, 3))]
    for z in (*values, rng.normal(size=(5, 3)) * 300, rng.normal(size=(2, 4, 3)) * 8):
        ours, theirs = getattr(special, name)(z), getattr(scipy.special, name)(z, **axis)
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-15 if axis else 1e-12, atol=0)
