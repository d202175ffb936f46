"""Try the tests of an assignment on the instructor's own answers, before a student's are graded.

A test that runs apart from the student's code may lose points that it gives in one process: what it
asks for cannot travel, or is another thing when it arrives. A right answer would get none. So the
instructor's notebook is run first, with its answers and blank, once all in one process, as nbgrader
runs it, and once apart. A test that gives other points apart runs beside the student's code.
"""

import json
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbgrader.preprocessors import ClearSolutions

from gradebox.bridge.cells import COLORS, errors, is_test, require_python
from gradebox.bridge.source_notebook import instructions, written_tests
from gradebox.store import digest, write

if TYPE_CHECKING:
    from gradebox.bridge.execute import Run, WarmExecute

AUTOMATIC = "AUTOTEST"
"""What a test says in which nbgrader writes automatic tests."""

ROUNDS = 4
"""So often the tests that differ are moved beside, with those that need them, before all are."""


@dataclass(frozen=True)
class Points:
    """What a test gave to the instructor's notebook.

    Parameters
    ----------
    answers : float
        With its answers.
    blank : float
        Without them.
    """

    answers: float
    blank: float


@dataclass(frozen=True)
class Trial:
    """How one test did.

    Parameters
    ----------
    notebook, cell : str
        The test.
    worth : float
        Its points.
    together : Points
        What it gave in one process with the answers.
    apart : Points
        What it gave in a process of its own, or beside if its metadata ask for that.
    graded : Points
        What it gave as students are graded.
    moved : bool
        Whether it runs beside the student's code because it, or one that it needs, gives other
        points apart.
    why : str
        What it raised apart, with the answers; empty if nothing.
    mixed : list of str
        The operators and methods of objects that the answers have, and that it gives values of its
        own: see :mod:`gradebox.line.mixed_operations`.
    """

    notebook: str
    cell: str
    worth: float
    together: Points
    apart: Points
    graded: Points
    moved: bool
    why: str
    mixed: list[str]

    @property
    def fails(self) -> bool:
        """Return whether the instructor's own answers do not get all of its points."""
        return self.together.answers < self.worth

    @property
    def is_free(self) -> bool:
        """Return whether a blank notebook gets points."""
        return self.together.blank > 0

    @property
    def is_lost(self) -> bool:
        """Return whether it cannot be graded as it would be in one process."""
        return self.graded != self.together


def try_out(execute: "WarmExecute", source: Path, assignment: str, jobs: int = 1) -> list[Trial]:
    """Try the tests of an assignment.

    Parameters
    ----------
    execute : WarmExecute
        Runs notebooks.
    source : Path
        The folder of the instructor's version.
    assignment : str
        The name of the assignment.
    jobs : int, optional
        So many notebooks run at once.
    """
    trials = []
    with ThreadPoolExecutor(jobs) as pool:
        for path in sorted(source.glob("*.ipynb")):
            context = {"assignment": assignment, "notebook": path.stem}
            trials += list(_Notebook(execute, path, context, pool).trials())
    return trials


_REMEMBERED: dict[str, list[Trial]] = {}
_TRYING = threading.Lock()


def remembered(execute: "WarmExecute", source: Path, assignment: str) -> list[Trial]:
    """Try the tests of an assignment once in this process, for each version of them."""
    stamps = [
        f"{path} {path.stat().st_mtime_ns}" for path in sorted(source.rglob("*")) if path.is_file()
    ]
    traits = execute.traits(config=True)
    settings = [f"{name} {getattr(execute, name)}" for name in sorted(traits) if name != "parent"]
    key = digest([assignment, *stamps, *settings])
    with _TRYING:  # threads share it
        if key not in _REMEMBERED:
            _REMEMBERED[key] = try_out(execute, source, assignment)
        return _REMEMBERED[key]


@dataclass(frozen=True)
class NotebookPlan:
    """How the tests of a notebook run, as a trial has found.

    Parameters
    ----------
    beside : list of str
        Those that run beside the student's code.
    mixed : dict of list of str
        The operators and methods of objects that may be given values of a test, by its name.
    """

    beside: list[str] = field(default_factory=list)
    mixed: dict[str, list[str]] = field(default_factory=dict)


Plan = Mapping[str, NotebookPlan]
"""How the tests of an assignment run, by notebook."""


def planned(trials: Iterable[Trial]) -> Plan:
    """Return how tests run because of a trial."""
    plan: dict[str, NotebookPlan] = {}
    for trial in trials:
        notebook = plan.setdefault(trial.notebook, NotebookPlan())
        notebook.mixed[trial.cell] = trial.mixed
        if trial.moved:
            notebook.beside.append(trial.cell)
    return plan


def moved(trials: Iterable[Trial]) -> dict[str, list[str]]:
    """Return the tests that run beside the student's code because of a trial, by notebook."""
    plan = planned(trials)
    return {name: plan[name].beside for name in plan if plan[name].beside}


class _Notebook:
    """The instructor's version of a notebook, with its answers and blank."""

    def __init__(
        self, execute: "WarmExecute", path: Path, context: dict[str, str], pool: Executor
    ) -> None:
        self._execute, self._path, self._context, self._pool = execute, path, context, pool
        answered = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        require_python(answered, path.stem)
        self.tests = [cell for cell in filter(is_test, answered.cells) if _worth(cell) > 0]
        if any(AUTOMATIC in cell.source for cell in self.tests):
            written = written_tests(execute, context["assignment"], context["notebook"])
            for cell in self.tests:
                cell.source = written.get(_name(cell), cell.source)
        self._versions = answered, _blank(answered, execute)
        self._mixed: dict[str, set[str]] = {}

    def trials(self) -> Iterator[Trial]:
        """Yield how each test does."""
        if not self.tests:
            return
        marked = instructions(self._path).beside
        beside = set(marked)
        # apart twice, even if nothing differs: a test that draws lots may have been lucky
        (together, _), (apart, why), (graded, _) = self._points(None, beside, beside)
        results = [apart, graded]
        for attempt in range(ROUNDS):
            if attempt:
                [(graded, _)] = self._points(beside)
                results = [graded]
            differ = {
                name for name in together for result in results if result[name] != together[name]
            }
            if not differ or beside >= set(together):
                break
            # one that differs beside needs another, which is not among them
            alone = differ - beside and attempt < ROUNDS - 2
            beside |= differ if alone else set(together)
        for cell in self.tests:
            name = _name(cell)
            yield Trial(
                self._path.stem,
                name,
                _worth(cell),
                together[name],
                apart[name],
                graded[name],
                name in beside - marked,
                why[name],
                sorted(self._mixed.get(name, ())),
            )

    def _points(
        self, *besides: Collection[str] | None
    ) -> Iterator[tuple[dict[str, Points], dict[str, str]]]:
        """Yield for each way to run them what the tests give, and what they raise with answers."""
        ways = [(version, beside) for beside in besides for version in self._versions]
        runs = iter([*self._pool.map(self._run, *zip(*ways, strict=True))])
        for (answered, answers), (_, blank) in zip(runs, runs, strict=True):
            errors = {_name(cell): _error(cell) for cell in filter(is_test, answered.cells)}
            yield (
                {
                    name: Points(answers.scores[name], blank.scores[name])
                    for name in map(_name, self.tests)
                },
                errors,
            )

    def _run(self, version: Any, beside: Collection[str] | None) -> tuple[Any, "Run"]:
        """Run a version of the notebook in a folder of its own; return it as it is then."""
        nb = deepcopy(version)
        with tempfile.TemporaryDirectory(prefix="gradebox-trial-") as folder:
            shutil.copytree(
                self._path.parent,
                folder,
                dirs_exist_ok=True,
                ignore=shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints"),
            )
            run = self._execute.run(nb, Path(folder), self._context, beside)
        for name, mixed in run.mixed.items():
            self._mixed.setdefault(name, set()).update(mixed)
        return nb, run


def _name(cell: Any) -> str:
    return str(cell.metadata.nbgrader.grade_id)


def _worth(cell: Any) -> float:
    return float(cell.metadata.nbgrader.get("points", 0))


def _blank(nb: Any, step: Any) -> Any:
    """Return a notebook as students get it, with its hidden tests."""
    blank = deepcopy(nb)
    clear = ClearSolutions(parent=step.parent)
    resources: dict[str, Any] = {"language": "python"}
    for number, cell in enumerate(blank.cells):
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "code":
            clear.preprocess_cell(cell, resources, number)
    return blank


def _error(cell: Any) -> str:
    """Return in a line what a cell raised."""
    for error in errors(cell):
        message = COLORS.sub("", f"{error.ename}: {error.evalue}").removesuffix(": ")
        return " ".join(message.split())[:300]
    return ""


def to_plain(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Return trials as plain data."""
    return [asdict(trial) for trial in trials]


def of_plain(plain: Iterable[dict[str, Any]]) -> list[Trial]:
    """Return the trials of which :func:`to_plain` told."""
    pairs = "together", "apart", "graded"
    return [Trial(**fields | {name: Points(**fields[name]) for name in pairs}) for fields in plain]


def mark_beside(source: Path, moved: Mapping[str, Collection[str]]) -> list[Path]:
    """Mark tests in the instructor's notebooks as to be run beside; return the notebooks."""
    marked = []
    for name, cells in sorted(moved.items()):
        path = source / f"{name}.ipynb"
        nb = json.loads(path.read_text(encoding="utf-8"))
        for cell in nb["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") in cells:
                cell["metadata"].setdefault("gradebox", {})["beside"] = True
        write(path, json.dumps(nb, ensure_ascii=False, indent=1) + "\n")
        marked.append(path)
    return marked
