"""Special functions, against SciPy's."""

import numpy as np
import pytest
import scipy.special

from optdl import special

VALUES = np.array([-1e300, -40, -1, -0.0, 0, 1e-9, 0.5, 800, 1e300, -np.inf, np.inf, np.nan])


@pytest.mark.parametrize("name", ["expit", "ndtr"])
def test_elementwise_functions_match_scipy(name: str, rng: np.random.Generator) -> None:
    for z in (VALUES, VALUES.reshape(1, -1), rng.normal(size=(3, 4, 2)) * 8, np.empty((0, 3))):
        ours, theirs = (getattr(module, name)(z) for module in (special, scipy.special))
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_axis_functions_match_scipy(name: str, rng: np.random.Generator) -> None:
    for z in (VALUES[:-3], VALUES[-1:], rng.normal(size=(5, 3)) * 300, rng.normal(size=(2, 4, 3))):
        ours, theirs = getattr(special, name)(z), getattr(scipy.special, name)(z, axis=-1)
        np.testing.assert_allclose(ours, theirs, rtol=1e-15, atol=0)
