"""Execute submissions on the workers of a Dask cluster; only this machine writes scores.

A worker has gradebox and what the notebooks import. It makes a folder of what :func:`packed` gives,
the instructor's version, the configuration and what the gradebook knows, once for all submissions.
"""

import atexit
import contextlib
import os
import pickle
import platform
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from traitlets.config import Config

from gradebox.files import remove, write_files
from gradebox.nbgrader.course import VERSION, Course, packages
from gradebox.nbgrader.gradebook import Sources
from gradebox.run import batch
from gradebox.run.batch import Executor

START = 300  # seconds of wall time to wait for the scheduler, and for the first worker
_MAKING = threading.Lock()


def packed(course: Course, sources: Sources) -> bytes:
    """Return all that the execution of any submission takes."""
    from distributed.protocol.pickle import dumps  # functions of a configuration, too

    files = [path for path in sorted(course.source.rglob("*")) if path.is_file()]
    texts = {path.relative_to(course.source).as_posix(): path.read_bytes() for path in files}
    settings = course.assignment, course.config, list(course.directory.ignore)
    return bytes(dumps((versions(), settings, sources, texts)))


def versions() -> dict[str, str]:
    """Return what scores depend on, by name: Python, gradebox's rules, and the packages."""
    return packages() | {"Python": platform.python_version(), "rules of gradebox": str(VERSION)}


def call(order: bytes, method: str, *values: Any) -> Any:
    """Call a method of an executor on a worker; ``order`` is what :func:`packed` returned."""
    with _MAKING:  # a worker may have several threads
        executor = _built(order)
    return getattr(executor, method)(*values)


@cache
def _built(order: bytes) -> Executor:
    # from this cluster's client, whose functions Dask calls anyway
    expected, (assignment, config, ignored), sources, texts = pickle.loads(order)
    here = versions()
    common = sorted(expected.keys() & here.keys())
    told = {name: f"{name} {here[name]} (expected {expected[name]})" for name in common}
    if differ := ", ".join(told[name] for name in common if here[name] != expected[name]):
        why = f"the worker on {platform.node()} has {differ}; install the same versions"
        raise batch.Unready(why)  # it would give other scores
    os.environ["NBGRADER_EXECUTION"] = "autograde"
    sys.setswitchinterval(batch.SWITCH)
    root = Path(tempfile.mkdtemp(prefix="gradebox-"))
    atexit.register(remove, root)
    write_files(texts, root / "source" / assignment)
    directory = {"source_directory": "source", "ignore": ignored}
    directory["db_url"] = "sqlite://"  # a worker never opens the gradebook
    config = Config(config | {"CourseDirectory": directory})
    return Executor(Course(root, assignment, config=config), sources)


@contextlib.contextmanager
def taken_over(run: batch.Batch, address: str, jobs: int | None) -> Iterator[None]:
    """Let the workers of a scheduler find out how the tests of a run go, and execute submissions.

    So many ``jobs`` are given to them at once; None is for what keeps all of them busy.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        why = f"--scheduler needs Dask, from the extra [cluster] ({error})"
        raise batch.Unready(why) from error
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=START, set_as_default=False))
            client.wait_for_workers(1, timeout=START)
        except (OSError, TimeoutError, ValueError) as error:
            why = f"no cluster answers at {address}, or it has no workers ({error}); start"
            advice = "`dask scheduler` and on each machine `dask worker ADDRESS`"
            raise batch.Unready(f"{why} {advice}") from error
        # twice as many as run, for each of them waits here most of the time
        run.jobs = jobs or 2 * sum(client.nthreads().values())
        client.amm.stop()  # it keeps one copy of what all need, which is lost with its worker
        order = client.scatter(packed(run.course, run.sources), broadcast=True, hash=False)
        submit = client.get_executor(pure=False).submit
        vars(run)["dry_run"] = lambda *of_all: submit(call, order, "dry_run").result()
        vars(run)["execute"] = lambda *of_one: submit(call, order, "execute", *of_one).result()
        yield
