"""The fork servers of this run: one for each set of modules, made when it is first asked for."""

import ast
import contextlib
import importlib.util
import json
import os
import re
import threading
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from traitlets.config.loader import PyFileConfigLoader

from gradebox.sandbox.probe import survey
from gradebox.workers.client import ForkServer
from gradebox.workers.syntax import parse

# what a fork server imports, of that what is banned and what is stubbed, and what it prepares
Modules = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]
Names = Iterable[str]

_servers: dict[Modules, ForkServer] = {}
_starting = threading.Lock()


def modules(
    assignment: str, imports: Names, banned: Names = (), stubbed: Names = (), prepare: str = ""
) -> Modules:
    """Return the modules of an assignment."""

    def named(names: Names) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name.replace("{assignment}", assignment) for name in names))

    return named(imports), named(banned), named(stubbed), "".join(named([prepare]))


def imported(folder: Path, notebook: str = "*") -> tuple[str, ...]:
    """Return the installed modules that the notebooks in a folder, or one, import at top level."""
    paths = sorted(folder.glob(f"{notebook}.ipynb"))
    return _imported(folder, tuple((path, path.stat().st_mtime_ns) for path in paths))


@lru_cache(maxsize=64)
def _imported(folder: Path, stamps: tuple[tuple[Path, int], ...]) -> tuple[str, ...]:
    # what is taken from a module follows it as `module:name`, since a module may import more when
    # it is asked for a name; not by nbformat, whose own import takes long
    imports: list[str] = []
    for path, _ in stamps:
        for cell in json.loads(path.read_text(encoding="utf-8")).get("cells", ()):
            text = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
            with contextlib.suppress(SyntaxError, ValueError):  # a cell with a magic command
                for node in parse(text).body:
                    if isinstance(node, ast.Import):
                        imports += [alias.name for alias in node.names]
                    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                        names = [alias.name for alias in node.names if alias.name != "*"]
                        imports += [node.module, *(f"{node.module}:{name}" for name in names)]
    # not what lies beside the notebooks: each student may hand in another
    beside = {path.name.removesuffix(".py") for path in folder.glob("*")}
    tops = {name: re.split("[.:]", name)[0] for name in imports}
    there = {top for top in {*tops.values()} - beside if importlib.util.find_spec(top)}
    return tuple(name for name, top in tops.items() if top in there)


def server(modules: Modules) -> ForkServer:
    """Return the fork server with these modules; one that does not start is a RuntimeError."""
    with _starting:  # threads share it
        if modules in _servers and not _servers[modules].alive:
            _servers.pop(modules).close()
        if modules not in _servers:
            _servers[modules] = ForkServer(*modules)
        running = _servers[modules]
    running.wait_until_ready()  # another one may start meanwhile
    return running


def configured(folder: Path, assignment: str) -> tuple[Modules, Any] | None:
    """Return the modules that the configuration in a folder will ask for, and the configuration.

    That is known before nbgrader is imported, which takes as long as they do. None where something
    is wrong with the configuration, which is left for nbgrader to tell.
    """
    with contextlib.suppress(Exception):
        config: Any = PyFileConfigLoader("nbgrader_config.py", str(folder)).load_config()
        section, course = config.get("WarmExecute", {}), config.get("CourseDirectory", {})
        kinds = ("imports", "banned", "stubbed")
        imports, banned, stubbed = (list(map(str, section.get(kind, ()))) for kind in kinds)
        default = str(Path("{nbgrader_step}", "{student_id}", "{assignment_id}"))
        path = course.get("directory_structure", default).format(
            nbgrader_step=course.get("source_directory", "source"),
            student_id=".",
            assignment_id=assignment,
        )
        imports += imported(Path(os.path.normpath(Path(course.get("root", folder), path))))
        return modules(assignment, imports, banned, stubbed, section.get("prepare", "")), config
    return None


def start(wanted: Modules | None) -> None:
    """Find out what the sandbox will be, and start a fork server, beside all else."""

    def make() -> None:
        # this run may be at its end already; and what cannot start is told by who asks for it
        with contextlib.suppress(Exception):
            if wanted is not None:
                server(wanted)

    for each in (survey, make):
        threading.Thread(target=each, daemon=True).start()


def cores() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def close() -> None:
    """End the fork servers."""
    with _starting:
        while _servers:
            _servers.popitem()[1].close()
