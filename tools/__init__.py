"""The commands of the course; each is one module, run as ``python -m tools.NAME``."""

import importlib.util
import sys

# The first thing that any command runs, so that a bare Python shows what to do and no traceback.
_missing = [name for name in ("rich", "nbgrader") if importlib.util.find_spec(name) is None]
if _missing:
    sys.exit(
        f"{' and '.join(_missing)} cannot be found by {sys.executable}.\n"
        "To fix: run `make course`, which makes .venv with all packages; or, inside your own "
        "environment, `pip install -r requirements.txt`."
    )
