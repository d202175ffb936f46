"""The tests check annotations: at every call first, and not for ever in a loop."""

import numpy as np
import pytest
import typechecking
from jaxtyping import TypeCheckError, config

from optdl.quadratic import optimal_step


def wrong() -> float:
    """Call a function of optdl with a matrix where it expects a vector."""
    return optimal_step(np.ones((2, 2)))


def test_a_wrong_shape_is_found() -> None:
    with pytest.raises(TypeCheckError):
        wrong()


def test_checks_end_after_many_calls_and_begin_anew_with_the_next_test() -> None:
    for _ in range(typechecking.MOST):
        optimal_step(np.ones(2))
    assert config.jaxtyping_disable
    typechecking.begin()
    test_a_wrong_shape_is_found()
