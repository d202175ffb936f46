"""How annotations are checked while the tests run: as PEP 484 says, an int is a float too."""

import functools
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import config

MOST = 4000
"""So many checks are made in each test.

A check takes longer than most functions. After so many, a test does the same in a loop.
"""

_made = 0


def begin() -> None:
    """Check annotations, from the first call on: a test begins."""
    global _made
    _made = 0
    config.update("jaxtyping_disable", False)


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that checks its arguments, and ends all checks after the last of a test."""
    checked = beartype(conf=BeartypeConf(is_pep484_tower=True))(function)

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        global _made
        _made += 1
        if _made > MOST:
            config.update("jaxtyping_disable", True)
        return checked(*args, **kwargs)

    return counted
