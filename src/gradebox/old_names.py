"""Modules under the names that they had before: they work for one more release, and warn.

A configuration that says ``gradebox.execute.WarmExecute`` goes on to grade, and its owner is told
what to write.
"""

import importlib
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULES = {
    "gradebox.execute": "gradebox.bridge.execute",
    "gradebox.rebuild": "gradebox.bridge.rebuild",
    "gradebox.scores": "gradebox.bridge.scores",
    "gradebox.pages": "gradebox.bridge.harmless",
    "gradebox.formulas": "gradebox.feedback.formulas",
    "gradebox.submit": "gradebox.exchange.submit",
    "gradebox.seal": "gradebox.sandbox.probe",
}
"""Where those that configurations and commands name are now."""

_SOURCE = """
from gradebox.old_names import warn
warn({old!r}, {new!r})
from {new} import *
if __name__ == "__main__":
    import sys
    sys.exit(main(sys.argv[1:]))
"""


def warn(old: str, new: str) -> None:
    """Warn that a module is named as it was before."""
    warnings.warn(
        f"{old} is now {new}, and its old name will go with the next release; in "
        "nbgrader_config.py write gradebox.NAME, such as gradebox.WarmExecute",
        FutureWarning,
        stacklevel=3,
    )


class OldNames(MetaPathFinder, InspectLoader):
    """Finds the modules of :data:`MODULES`, after all other finders found nothing."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a module that had this name."""
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def get_source(self, fullname: str) -> str:
        """Return the text of a module that has the names of the new one."""
        return _SOURCE.format(old=fullname, new=MODULES[fullname])


def moved(old: str, name: str, new: str) -> Any:
    """Return what a room's own name had when it was a module; for its ``__getattr__``.

    Raises
    ------
    AttributeError
        If the module never had it.
    """
    if name.startswith("__") or not hasattr(module := importlib.import_module(new), name):
        raise AttributeError(f"module {old!r} has no attribute {name!r}")
    warn(old, new)
    return getattr(module, name)
