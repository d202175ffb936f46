"""Shapes and dtypes of every call of optdl are checked while the tests run."""

import gc
import linecache
import os
import sys
from collections import Counter

# What is imported and collected stays: nothing of it is garbage, however often one looks.
if "PYTEST_XDIST_WORKER" in os.environ:
    gc.disable()

# Python 3.13 has the command line of a worker there: no test's text came from it.
linecache.cache.pop("<string>", None)

# Hundreds of processes that the tests start import the same modules: each is compiled once.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Before NumPy or torch is imported, here or in a process that a test starts. The tests run side by
# side, and threads that wait for each other on a busy machine wait long.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path  # noqa: E402

from jaxtyping import install_import_hook  # noqa: E402

# Before any test imports optdl: each annotation such as Float[np.ndarray, "m n"] becomes a check.
# Checks and labs have none of these, and call small functions a million times.
_PARTS = {p.stem for p in Path(__file__).parents[1].glob("src/optdl/*")} - {"checks", "labs"}
install_import_hook([f"optdl.{name}" for name in sorted(_PARTS)], "typechecking.check")

from collections.abc import Iterator  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import typechecking  # noqa: E402
from hypothesis import settings  # noqa: E402

# The same examples in every run; `pytest --hypothesis-profile=explore` tries new ones.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile("fixed")

# The notebooks of these tests are the course's own; what sealing keeps out has tests of its own.
os.environ.setdefault("GRADEBOX_ALLOW_UNSEALED", "yes")

# Under `make test`, a make that a test starts would take itself for a part of that one and say so.
for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
    os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def annotations_are_checked() -> None:
    """Check annotations at the first calls of each test."""
    typechecking.begin()


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator that is the same in every run."""
    return np.random.default_rng(20)


def pytest_collection_finish() -> None:
    """Keep what is there by now: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say where the seconds were, by folder; those of a fixture count where it was made."""
    seconds: Counter[str] = Counter()
    for report in (report for some in terminalreporter.stats.values() for report in some):
        if hasattr(report, "duration"):
            seconds["/".join(report.nodeid.split("/")[:2])] += report.duration
    listed = ", ".join(f"{folder} {total:.0f}" for folder, total in seconds.most_common())
    terminalreporter.write_line(f"seconds of all workers: {listed}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the site: its build is the longest, and the other workers go on meanwhile.

    What needs the built site comes when another worker has built it, before the many small tests,
    which leave no worker idle at the end. The Makefile tells xdist to keep this order; it would
    begin with the group of most tests.
    """
    ranks = {"test_site": 0, "test_inpage": 2, "test_keys": 2, "test_live": 2}
    small = ("tests/checks/", "tests/house/", "tests/optdl/", "src/")
    items.sort(key=lambda item: ranks.get(item.path.stem, 1 + 2 * item.nodeid.startswith(small)))
    # the other tests run no code of optdl whose lines are counted; counting doubles their time
    for item in items:
        if not item.nodeid.startswith(small):
            item.add_marker("no_cover")


NEED_FORK = """cli cluster dry_run forging ordinary own_time postgresql protocol seal workers"""
collect_ignore: list[str] = []
if not hasattr(os, "fork"):  # their imports would already fail
    collect_ignore += [f"gradebox/test_gradebox_{name}.py" for name in NEED_FORK.split()]
    collect_ignore += ["gradebox/test_hostile.py"]


def pytest_report_header() -> str:
    """Say which modules are left out, and why."""
    reason = "the grader's processes are forked, which this system cannot do"
    return f"left out, as {reason}: {', '.join(collect_ignore)}" if collect_ignore else ""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the whole book strictly, where ``make book`` does: in a clean clone all of it."""
    from filelock import FileLock

    from tools.site import book

    # The workers of a run wait for the one that builds; afterwards a page that is saved meanwhile
    # does not take the site from under the others.
    run = tmp_path_factory.getbasetemp()
    run = run.parent if "PYTEST_XDIST_WORKER" in os.environ else run
    with FileLock(run / "site.lock"):
        if not (run / "site.built").exists():
            book.build()
            (run / "site.built").touch()
        return book.ROOT / "_build" / "html"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium without any traffic of its own; there can be only one in a process."""
    from tools.site import pdf

    path = pdf.find_chromium()
    if path is None:
        pytest.skip("no Chromium or Chrome on this machine: the site is read, but not opened")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = pdf.launched(playwright, path)
        yield opened
        opened.close()
