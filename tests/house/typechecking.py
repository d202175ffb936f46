"""How annotations are checked while the tests run: as PEP 484 says, an int is a float too."""

import functools
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype
from jaxtyping import config

MAX_CHECKS = 200
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
    """Return a function that checks its arguments, and ends all checks after the last of a test.

    The checks are written at the first call: most functions are never called by a process.
    """
    checked: Callable[..., Any] | None = None

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        global _made
        _made += 1
        if _made > MAX_CHECKS:
            config.update("jaxtyping_disable", True)
            return function(*args, **kwargs)
        if checked is None:
            checked = beartype(conf=BeartypeConf(is_pep484_tower=True))(function)
        return checked(*args, **kwargs)

    return counted
