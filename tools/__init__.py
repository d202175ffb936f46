"""The commands of the course; each is one module, run as ``python -m tools.NAME``."""

import importlib.util
import sys
from typing import Any


def _told(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Tell an interruption shortly, also one that comes while modules are imported, for seconds."""
    if issubclass(kind, KeyboardInterrupt):
        print("\nStopped. Run the same command again: it goes on where it stopped.")
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _told

# The first thing that any command runs, so that a bare Python shows what to do and no traceback.
_needed = ("rich", "nbgrader", "gradebox", "optdl")
_missing = [name for name in _needed if importlib.util.find_spec(name) is None]
if _missing:
    sys.exit(
        f"{' and '.join(_missing)} cannot be found by {sys.executable}.\n"
        "To fix: run `make course`, which makes .venv with all packages, or without make "
        "`python3 -P tools/install.py`; if this folder was moved, remove its .venv first."
    )
