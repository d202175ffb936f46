"""Execute submissions on other machines; everything is sent as plain data.

A worker has gradebox and what the notebooks import, and nothing of the course. From what
:func:`packed` returns it makes a folder with the instructor's version, the configuration and what
the gradebook knows of the assignment, once for all submissions.
"""

import atexit
import contextlib
import json
import os
import platform
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Any

from traitlets.config import Config

from gradebox.files import digest, remove, write_files
from gradebox.nbgrader.course import VERSION, Course, packages
from gradebox.nbgrader.dry_run import NotebookPlan, Plan, TestRun, of_plain
from gradebox.nbgrader.gradebook import Sources
from gradebox.run import batch
from gradebox.run.executor import Executor, Result
from gradebox.run.intake import Submission

NOWHERE = "sqlite://"
"""The address of the gradebook for a worker, which never opens it."""

_EXECUTORS: dict[str, Executor] = {}
_MAKING = threading.Lock()


class Unlike(Exception):
    """A worker has other versions of packages than the machine that keeps the scores."""


def packed(
    course: Course, sources: Sources | None, shared: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return all that the execution of any submission takes, as texts and bytes.

    Parameters
    ----------
    course : Course
        The course and its assignment.
    sources : Sources, optional
        What the gradebook knows of the assignment; not needed for a dry run.
    shared : dict, optional
        The versions that a worker must have; else those of all packages, see :func:`versions`.

    Raises
    ------
    gradebox.run.batch.Unready
        If something in the configuration is no plain data.
    """
    settings = {
        "assignment": course.assignment,
        "timeout": course.timeout,
        "config": _sendable(course.config),
        "ignore": list(course.directory.ignore),
        "sources": sources and sources.plain,
        "versions": shared or versions(),
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


RULES = "the rules of gradebox"
"""What :func:`versions` calls the version of what makes scores."""


def versions() -> dict[str, str]:
    """Return what scores depend on, by name: Python, gradebox, and the packages."""
    return packages() | {"Python": platform.python_version(), RULES: str(VERSION)}


def dry_run(order: dict[str, Any], jobs: int = 1) -> list[dict[str, Any]]:
    """Find out on a worker how the tests run; see :mod:`gradebox.nbgrader.dry_run`.

    Parameters
    ----------
    order : dict
        What :func:`packed` returned.
    jobs : int
        How many notebooks are executed at once.

    Raises
    ------
    Unlike
        If this machine would give other scores.
    """
    return [asdict(run) for run in _executor_for(order).dry_run(jobs)]


def execute(
    order: dict[str, Any], submission: dict[str, Any], plan: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Execute one submission on a worker.

    Parameters
    ----------
    order : dict
        What :func:`packed` returned.
    submission : dict
        The fields of a :class:`~gradebox.run.intake.Submission`.
    plan : dict
        The fields of a :class:`~gradebox.nbgrader.dry_run.NotebookPlan` for each notebook.

    Returns
    -------
    dict
        The fields of a :class:`~gradebox.run.executor.Result`.

    Raises
    ------
    Unlike
        If this machine would give other scores.
    """
    planned = {name: NotebookPlan(**fields) for name, fields in plan.items()}
    return vars(_executor_for(order).execute(Submission(**submission), planned))


def _executor_for(order: dict[str, Any]) -> Executor:
    with _MAKING:
        if order["key"] not in _EXECUTORS:
            _EXECUTORS[order["key"]] = _build_executor(
                json.loads(order["settings"]), order["files"]
            )
    return _EXECUTORS[order["key"]]


def _build_executor(settings: dict[str, Any], files: dict[str, bytes]) -> Executor:
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
    sources = settings["sources"]
    return Executor(course, sources and Sources.of(sources, NOWHERE))


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


START = 300
"""Seconds of wall time to wait for the scheduler, and for the first worker.

Other machines tell nothing of their own time. Nothing has begun that could be lost, and a wrong
address is reported after these minutes.
"""


@dataclass(frozen=True)
class Cluster:
    """A scheduler and the workers that it has.

    Parameters
    ----------
    client : Client
        The connection.
    slots : int
        How many submissions the workers execute at once.
    """

    client: Any
    slots: int

    def take_over(self, run: batch.Batch, order: dict[str, Any]) -> None:
        """Let workers execute the submissions of a run, and find out how its tests run.

        Parameters
        ----------
        run : Batch
            The run; it waits for the results.
        order : dict
            What :func:`packed` returned; each worker gets it once.
        """
        scattered_order = self.client.scatter(order, broadcast=True, hash=False)
        executor = self.client.get_executor(pure=False)

        def executed(submission: Submission, plan: Plan) -> Result:
            fields = {name: vars(notebook_plan) for name, notebook_plan in plan.items()}
            sent = scattered_order, vars(submission), fields
            return Result(**executor.submit(execute, *sent).result())

        def tried() -> list[TestRun]:
            return of_plain(executor.submit(dry_run, scattered_order).result())

        run.execute, run.dry_run = executed, tried


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a scheduler.

    Raises
    ------
    gradebox.run.batch.Unready
        If it does not answer, or has no workers.
    """
    from distributed import Client  # an extra; the workers' functions do without

    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=START, set_as_default=False))
            client.wait_for_workers(1, timeout=START)
        except (OSError, TimeoutError, ValueError) as error:
            raise batch.Unready(
                f"no cluster answers at {address}, or it has no workers ({error}); start "
                "`dask scheduler` and on each machine `dask worker ADDRESS`"
            ) from error
        yield Cluster(client, sum(client.nthreads().values()))
