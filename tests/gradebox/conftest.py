"""Fork servers and a course, made once for all tests of gradebox that use them."""

import contextlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gradebox.sandbox import probe
from gradebox.sandbox.own_time import Deadline, read
from gradebox.sandbox.seal import Level
from gradebox.workers import pool

HERE = Path(__file__).parent
# but for those whose import some tests look for
LIGHT = {*sys.stdlib_module_names, "gradebox", "IPython", "numpy", "pytest"} - {"colorsys", "wave"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let nbgrader call what is deprecated, and a kernel leave sockets to the collector."""
    for item in items:
        if item.path.parent == HERE and item.get_closest_marker("xdist_group"):
            for kind in ("DeprecationWarning", "ResourceWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"), append=False)


@pytest.fixture(scope="session", autouse=True)
def fork_servers() -> Iterator[None]:
    """Have one fork server for the notebooks that import nothing but NumPy and parts of Python."""
    imported = pool.imported

    def shared(folder: Path, notebook: str = "*") -> tuple[str, ...]:
        names = imported(folder, notebook)
        packages = {re.split("[.:]", name)[0] for name in names}
        if packages <= LIGHT | {"matplotlib"}:
            return ("numpy", "matplotlib.pyplot")[: 1 + ("matplotlib" in packages)]
        return names

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "imported", shared)
        close = pool.close
        patch.setattr(pool, "close", lambda: None)  # each run ends its fork servers
        yield
    close()


class ExactDeadline(Deadline):
    """Looks at once: the time until a first look, which counts in full, may be long here."""

    def __init__(self, seconds: float, *pids: int) -> None:
        super().__init__(seconds, *pids)
        self._reading = read(pids)


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let limits be short, however busy the machine is."""
    # what was interrupted has to show where, which costs IPython a part of a second
    monkeypatch.setattr("gradebox.workers.client.GRACE", 1.0)
    monkeypatch.setattr("gradebox.workers.client.Deadline", ExactDeadline)


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a course with one released assignment, and its dry run."""
    from courses import cli, release

    root = tmp_path_factory.mktemp("released")
    release(root)
    with contextlib.chdir(root):
        cli.main(["check", "toy"])
    return root


@pytest.fixture
def course(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the course; it is the present folder."""
    root = tmp_path / "course"
    shutil.copytree(released, root)
    monkeypatch.chdir(root)
    return root


@pytest.fixture(params=[Level.NAMESPACES, Level.LANDLOCK], ids=str)
def level(request: pytest.FixtureRequest, levels: list[Level]) -> Level:
    """Return each level that this machine offers, in turn."""
    if request.param not in levels:
        pytest.skip(f"{request.param} is not to be had here: {probe.survey().tried}")
    return Level(request.param)


@pytest.fixture(scope="session")
def levels() -> list[Level]:
    """Return the levels that this machine offers; a barrier with a hole is no reason to skip."""
    tried = probe.survey().tried
    found = [each for each in (Level.NAMESPACES, Level.LANDLOCK) if each in tried]
    return [each for each in found if not tried[each].startswith("refused")]


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skip what belongs behind the strongest barrier where there is a weaker one only."""
    if probe.survey().level is not Level.NAMESPACES:
        pytest.skip("there are no namespaces here")
