"""Grade the notebooks of any nbgrader course in a fraction of nbgrader's time.

What ``nbgrader_config.py`` names stands here, whatever module it comes from: see
:mod:`gradebox.configuration`. How a submission is graded is told in ``README.md``.
"""

import importlib
from typing import Any

from gradebox.configuration import PUBLIC, configure, configure_feedback

__all__ = ["configure", "configure_feedback", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'gradebox' has no attribute {name!r}")
    return getattr(importlib.import_module(PUBLIC[name]), name)
