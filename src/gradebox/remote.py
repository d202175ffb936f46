"""Execute submissions on other machines: all that this takes travels as plain data.

A worker has gradebox and what the notebooks import, and nothing of the course. From what
:func:`packed` returns it makes a folder with the instructor's version, the configuration and what
the gradebook knows of the assignment, once for all submissions.
"""

import atexit
import json
import os
import platform
import sys
import tempfile
import threading
from pathlib import Path, PurePath
from typing import Any

from traitlets.config import Config

from gradebox import batch
from gradebox.bridge import trial
from gradebox.bridge.course import VERSION, Course, packages
from gradebox.bridge.gradebook import Sources
from gradebox.intake import Submission
from gradebox.store import digest, remove, write_files
from gradebox.workshop import Workshop

NOWHERE = "sqlite://"
"""The address of the gradebook for a worker, which never opens it."""

_WORKSHOPS: dict[str, Workshop] = {}
_MAKING = threading.Lock()


class Unlike(Exception):
    """A worker has other versions of packages than the machine that keeps the scores."""


def packed(course: Course, sources: Sources) -> dict[str, Any]:
    """Return all that the execution of any submission takes, as texts and bytes.

    Raises
    ------
    gradebox.batch.Unready
        If something in the configuration is no plain data.
    """
    settings = {
        "assignment": course.assignment,
        "timeout": course.timeout,
        "config": _sendable(course.config),
        "ignore": list(course.directory.ignore),
        "sources": sources.plain,
        "versions": versions(),
    }
    files = {
        path.relative_to(course.source).as_posix(): path.read_bytes()
        for path in sorted(course.source.rglob("*"))
        if path.is_file()
    }
    serialized = json.dumps(settings, default=str)
    parts = [part for name, content in files.items() for part in (name, content)]
    return {"key": digest([serialized, *parts]), "settings": serialized, "files": files}


def _sendable(value: Any, name: str = "c") -> Any:
    """Return a value of the configuration as plain data."""
    if isinstance(value, dict):
        return {key: _sendable(element, f"{name}.{key}") for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_sendable(element, name) for element in value]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    raise batch.Unready(
        f"{name} cannot be sent to other machines: expected plain data, got a "
        f"{type(value).__name__}; give a function by its dotted name, and a list as a whole"
    )


def versions() -> dict[str, str]:
    """Return what scores depend on, by name: Python, gradebox, and the packages."""
    return packages() | {"Python": platform.python_version(), "the rules of gradebox": str(VERSION)}


def try_out(order: dict[str, Any]) -> list[dict[str, Any]]:
    """Try the tests on the instructor's own answers on a worker; see :mod:`gradebox.bridge.trial`.

    Parameters
    ----------
    order : dict
        What :func:`packed` returned.

    Raises
    ------
    Unlike
        If this machine would give other scores.
    """
    return trial.to_plain(_workshop_for(order).try_out())


def execute(
    order: dict[str, Any], submission: dict[str, Any], plan: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Execute one submission on a worker.

    Parameters
    ----------
    order : dict
        What :func:`packed` returned.
    submission : dict
        The fields of a :class:`~gradebox.intake.Submission`.
    plan : dict
        The fields of a :class:`~gradebox.bridge.trial.NotebookPlan` for each notebook.

    Returns
    -------
    dict
        The fields of a :class:`~gradebox.workshop.Result`.

    Raises
    ------
    Unlike
        If this machine would give other scores.
    """
    planned = {name: trial.NotebookPlan(**fields) for name, fields in plan.items()}
    return vars(_workshop_for(order).execute(Submission(**submission), planned))


def _workshop_for(order: dict[str, Any]) -> Workshop:
    with _MAKING:
        if order["key"] not in _WORKSHOPS:
            _WORKSHOPS[order["key"]] = _build_workshop(
                json.loads(order["settings"]), order["files"]
            )
    return _WORKSHOPS[order["key"]]


def _build_workshop(settings: dict[str, Any], files: dict[str, bytes]) -> Workshop:
    _compare(settings["versions"])
    os.environ["NBGRADER_EXECUTION"] = "autograde"
    sys.setswitchinterval(batch.SWITCH)
    root = Path(tempfile.mkdtemp(prefix="gradebox-"))
    atexit.register(remove, root)
    write_files(files, root / "source" / settings["assignment"])
    config = Config(settings["config"])
    config.CourseDirectory.source_directory = "source"
    config.CourseDirectory.ignore = settings["ignore"]
    config.CourseDirectory.db_url = NOWHERE
    course = Course(root, settings["assignment"], settings["timeout"], config)
    return Workshop(course, Sources.of(settings["sources"], NOWHERE))


def _compare(expected: dict[str, str]) -> None:
    """Raise unless the packages that both machines have are the same."""
    here = versions()
    differ = [
        f"{name} {here[name]} (expected {version})"
        for name, version in sorted(expected.items())
        if here.get(name, version) != version
    ]
    if differ:
        raise Unlike(
            f"the worker on {platform.node()} has {', '.join(differ)}; install the same versions"
        )
