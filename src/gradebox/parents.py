"""The warm processes of this run: one for each set of modules, made when it is first asked for."""

import contextlib
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from traitlets.config.loader import PyFileConfigLoader

from gradebox.warm import Zygote

Modules = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""What a warm process imports, and of that what is banned and what is hollow."""

_made: dict[Modules, Zygote] = {}
_making = threading.Lock()


def modules(
    assignment: str,
    imports: Iterable[str],
    banned: Iterable[str] = (),
    hollow: Iterable[str] = (),
    *,
    apart: bool = True,
) -> Modules:
    """Return the modules of an assignment; without a process for the tests none is barred."""
    barred = (banned, hollow) if apart else ((), ())
    first, second, third = (
        tuple(one.replace("{assignment}", assignment) for one in names)
        for names in (imports, *barred)
    )
    return first, second, third


def parent(wanted: Modules) -> Zygote:
    """Return the warm process with these modules."""
    with _making:  # threads share it
        found = _made.get(wanted)
        if found is not None and not found.alive:
            found.close()
        if found is None or not found.alive:
            found = _made[wanted] = Zygote(*wanted)
        return found


def start(folder: Path, assignment: str) -> None:
    """Start, beside all else, the process that the configuration in a folder will ask for.

    That is known before nbgrader is imported, which takes as long. Whatever is wrong with the
    configuration is left for nbgrader to tell.
    """
    with contextlib.suppress(Exception):
        section = _section(folder)
        if section.get("imports"):
            kinds = ("imports", "banned", "hollow")
            names = [list(map(str, section.get(kind, ()))) for kind in kinds]
            wanted = modules(assignment, *names, apart=bool(section.get("apart", True)))
            threading.Thread(target=_start, args=(wanted,), daemon=True).start()


def _section(folder: Path) -> Any:
    config: Any = PyFileConfigLoader("nbgrader_config.py", str(folder)).load_config()
    return config.get("WarmExecute", {})


def _start(wanted: Modules) -> None:
    # this run may be at its end already; and what cannot start is told by who asks for it
    with contextlib.suppress(Exception):
        parent(wanted).start_parent_of_tests()


def close() -> None:
    """End the warm processes."""
    with _making:
        while _made:
            _made.popitem()[1].close()
