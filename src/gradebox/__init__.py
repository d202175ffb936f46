"""Grade the notebooks of any nbgrader course in a fraction of nbgrader's time.

The names for ``nbgrader_config.py`` are here, whatever module defines them: see
:mod:`gradebox.configuration`. ``README.md`` says how a submission is graded.
"""

import importlib
from typing import Any

from gradebox.configuration import PUBLIC, configure, configure_feedback

__all__ = ["configure", "configure_feedback", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'gradebox' has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)
