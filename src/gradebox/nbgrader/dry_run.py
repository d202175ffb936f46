"""Find out before the first student how each test of an assignment runs, on the own answers.

A test runs *isolated*, in a process that gets nothing of the student's but values, where that gives
the instructor's own answers their full points. Any other runs *in-process*, among the student's
objects, as in nbgrader; there a student who tries can forge its score. One test never decides for
another, unless it needs what the other defines.

An isolated test sees copies. Where it asks about something else, such as whether an argument is
left as it was, a wrong answer could pass. So what passes isolated is asked again in-process, where
that gives the own answers their points as well; the lower score counts, which nobody can forge.

An answer may use a name that an earlier test defines, such as data to try. Where the own answers
lose points otherwise, the text of that test that students have runs among their cells, too.
"""

import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbgrader.preprocessors import ClearSolutions

from gradebox.files import digest, read_json, write
from gradebox.nbgrader.cells import is_test, require_python
from gradebox.nbgrader.source_notebook import (
    bound_names,
    instructions,
    used_names,
    written_tests,
)

if TYPE_CHECKING:
    from gradebox.nbgrader.execute import Run, WarmExecute

ISOLATED, IN_PROCESS = WAYS = ("isolated", "in-process")

AUTOMATIC = "AUTOTEST"
"""What a test says in which nbgrader writes automatic tests."""


@dataclass(frozen=True)
class NotebookPlan:
    """How the tests of a notebook run.

    Parameters
    ----------
    in_process : list of str
        The tests that run in the student's process.
    usual : list of str
        What these tests use and the own answers change themselves, such as a backend of plots.
    forks : list of str
        Those among the tests that need the objects as they were where the test stands, because
        later cells change them.
    again : list of str
        The isolated tests that are asked again in the student's process.
    released : list of str
        The tests whose text, as students have it, also runs among the student's cells.
    """

    in_process: list[str] = field(default_factory=list)
    usual: list[str] = field(default_factory=list)
    forks: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)


Plan = Mapping[str, NotebookPlan]
"""How the tests of an assignment run, by notebook."""


@dataclass(frozen=True)
class TestRun:
    """How one test runs, and what it gives.

    Parameters
    ----------
    notebook, cell : str
        The test.
    points : float
        What it is worth.
    way : str
        ``isolated`` or ``in-process``.
    answers, blank : float
        What the instructor's own answers get, and a notebook without answers.
    why : str
        Why it does not run isolated: what it raised there. Where it fails both ways, why it fails
        in-process.
    usual : list of str
        What the own answers change themselves of what it uses in-process.
    in_fork : bool
        Whether it runs in a fork of the student's process that was made where the test stands.
    again : bool
        Whether it runs isolated, and then in-process.
    released : bool
        Whether its text, as students have it, also runs among the student's cells, because later
        cells need the names that it defines.
    """

    notebook: str
    cell: str
    points: float
    way: str
    answers: float
    blank: float
    why: str = ""
    usual: tuple[str, ...] = ()
    in_fork: bool = False
    again: bool = False
    released: bool = False

    @property
    def fails(self) -> bool:
        """Return whether the instructor's own answers do not get all of its points."""
        return self.answers < self.points

    @property
    def is_free(self) -> bool:
        """Return whether a blank notebook gets points."""
        return self.blank > 0


def dry_run(
    execute: "WarmExecute",
    source: Path,
    assignment: str,
    jobs: int = 1,
    paths: Iterable[Path] | None = None,
) -> list[TestRun]:
    """Run the tests of an assignment on its own answers, and without answers.

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
    paths : iterable of Path, optional
        The notebooks; all of that folder by default.
    """
    runs: list[TestRun] = []
    with ThreadPoolExecutor(jobs) as processors:
        for path in sorted(source.glob("*.ipynb")) if paths is None else paths:
            context = {"assignment": assignment, "notebook": path.stem}
            runs += _Notebook(execute, path, context, processors).runs()
    return runs


def kept(file: Path, key: str, find_out: Any) -> list[TestRun]:
    """Return the runs that a file has under a key; else find out, and keep them there."""
    record = read_json(file)
    if record.get("key") != key:
        record = {"key": key, "tests": [asdict(run) for run in find_out()]}
        write(file, json.dumps(record))
    return of_plain(record["tests"])


def of_plain(tests: Iterable[dict[str, Any]]) -> list[TestRun]:
    """Return runs that were written as JSON."""
    return [TestRun(**fields | {"usual": tuple(fields["usual"])}) for fields in tests]


_REMEMBERED: dict[str, list[TestRun]] = {}
_TRYING = threading.Lock()


def remembered(execute: "WarmExecute", source: Path, assignment: str) -> list[TestRun]:
    """Run the tests of an assignment once in this process, for each version of them."""
    stamps = [
        f"{path} {path.stat().st_mtime_ns}" for path in sorted(source.rglob("*")) if path.is_file()
    ]
    traits = execute.traits(config=True)
    settings = [f"{name} {getattr(execute, name)}" for name in sorted(traits) if name != "parent"]
    key = digest([assignment, *stamps, *settings])
    with _TRYING:  # threads share it
        if key not in _REMEMBERED:
            _REMEMBERED[key] = dry_run(execute, source, assignment)
        return _REMEMBERED[key]


def planned(runs: Iterable[TestRun]) -> Plan:
    """Return how tests run because of a dry run."""
    plan: dict[str, NotebookPlan] = {}
    for run in runs:
        notebook = plan.setdefault(run.notebook, NotebookPlan())
        if run.again:
            notebook.again.append(run.cell)
        if run.released:
            notebook.released.append(run.cell)
        if run.way == IN_PROCESS:
            notebook.in_process.append(run.cell)
            if run.in_fork:
                notebook.forks.append(run.cell)
            notebook.usual.extend(name for name in run.usual if name not in notebook.usual)
    return plan


class _Notebook:
    """The instructor's version of a notebook, with its answers and blank."""

    def __init__(
        self, execute: "WarmExecute", path: Path, context: dict[str, str], processors: Executor
    ) -> None:
        self._execute, self._path, self._context = execute, path, context
        self._processors = processors
        answered = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        require_python(answered, path.stem)
        self._tests = {_name(cell): _points(cell) for cell in filter(is_test, answered.cells)}
        if any(AUTOMATIC in cell.source for cell in filter(is_test, answered.cells)):
            written = written_tests(execute, context["assignment"], context["notebook"])
            for cell in filter(is_test, answered.cells):
                cell.source = written.get(_name(cell), cell.source)
        self._answered, self._blank = answered, _blank(answered, execute)
        self._released: list[str] = []
        """The tests whose text runs among the student's cells, too."""

    def runs(self) -> list[TestRun]:
        """Return how each test runs."""
        if not self._tests:
            return []
        default = self._execute.way
        insisted = {name: default for name in self._tests if default in WAYS}
        insisted |= {n: way for n, way in instructions(self._path).ways.items() if way in WAYS}
        found = self._runs(insisted)
        if failing := {run.cell for run in found if run.fails}:
            needed = self._needed_by(lambda cell: not is_test(cell) or _name(cell) in failing)
            self._released = [name for name in needed if insisted.get(name) != ISOLATED]
            if self._released and _is_better(others := self._runs(insisted), found):
                return others
        return found

    def _runs(self, insisted: Mapping[str, str]) -> list[TestRun]:
        """Return how each test runs, by itself or as is insisted."""
        given = {name for name, way in insisted.items() if way == IN_PROCESS}
        free = self._tests.keys() - insisted.keys()
        asked = set() if given else free
        of_blank = self._start(self._blank, given)
        # all are asked again at once: where all can be, or none, that is known now
        last = self._run(self._answered, given, again=asked, in_place=False)
        blank, doubtful = of_blank.result(), last.doubtful
        scores = last.scores  # of those that ran isolated, when they did
        reasons = {name: why for name, why in last.reasons.items() if name not in given}
        in_process = {*given}
        while losing := {
            name
            for name, points in self._tests.items()
            if last.scores[name] < points and name not in in_process and name not in insisted
        }:
            in_process |= self._to_move(losing, last)
            last = self._run(self._answered, in_process)
            isolated = self._tests.keys() - in_process
            scores |= {name: last.scores[name] for name in isolated}
            reasons |= {name: last.reasons.get(name, "") for name in isolated}
        failing = {n for n in in_process - given if last.scores[n] < self._tests[n]}
        needed = self._needed_by(lambda cell: is_test(cell) and _name(cell) in failing)
        if needed := needed - in_process - insisted.keys():
            # what an earlier test defines is there only where that runs
            other = self._run(self._answered, in_process | needed)
            gains = any(other.scores[name] > last.scores[name] for name in failing)
            if gains and all(other.scores[name] >= self._tests[name] for name in needed):
                in_process, last = in_process | needed, other
                reasons |= dict.fromkeys(needed, "names that a later test in-process lacks")
        forks = {name for name in in_process if last.scores[name] < self._tests[name]}
        if forks := forks | (in_process & {*self._released}):
            other = self._run(self._answered, in_process, forks)
            forks = {name for name in forks if other.scores[name] >= last.scores[name]}
            last.scores.update({name: other.scores[name] for name in forks})
        # where neither way gives the points, isolated is the way that cannot be forged, and
        # in-process the one whose reason is not that something does not cross
        neither = {
            name
            for name in in_process - given
            if last.scores[name] <= scores[name] < self._tests[name]
        }
        in_process -= neither
        reasons |= {name: last.reasons[name] for name in neither & last.reasons.keys()}
        again = {name for name in free - in_process if scores[name] >= self._tests[name]}
        if again and again != asked:
            other = self._run(self._answered, in_process, forks, again, in_place=False)
            doubtful = other.doubtful
        if again <= doubtful.keys():  # such as where all need a module that is stubbed
            again = set()
        elif again & doubtful.keys():
            other = self._run(self._answered, in_process, forks, again)
            again = {name for name in again if other.scores[name] >= self._tests[name]}
        if again or in_process != given:
            blank = self._run(self._blank, in_process, forks, again)
        return [
            TestRun(
                self._path.stem,
                name,
                points,
                IN_PROCESS if name in in_process else ISOLATED,
                (last.scores if name in in_process else scores)[name],
                blank.scores[name],
                reasons.get(name, ""),
                tuple(dict.fromkeys(last.changed)) if name in in_process else (),
                name in forks & in_process,
                name in again,
                name in self._released,
            )
            for name, points in self._tests.items()
        ]

    def _to_move(self, losing: Collection[str], run: "Run") -> set[str]:
        """Return the tests that lose points by themselves, not because an earlier one ended all."""
        ended = {event.cell for event in run.events if event.kind == "ended"}
        move: set[str] = set()
        for name in self._tests:
            if name in losing:
                move.add(name)
                if name in ended:
                    break
        return move

    def _needed_by(self, needs: Callable[[Any], bool]) -> set[str]:
        """Return the tests that define names which some cells use, or those tests in their turn."""
        needed: set[str] = set()
        used: set[str] = set()
        for cell in reversed([c for c in self._answered.cells if c.cell_type == "code"]):
            defined = bound_names(cell)
            is_needed = is_test(cell) and bool(defined & used)
            if is_needed:
                needed.add(_name(cell))
            if is_needed or needs(cell):
                used = (used - defined) | used_names(cell)
        return needed

    def _run(self, *arguments: Any, **more: Any) -> "Run":
        return self._start(*arguments, **more).result()

    def _start(
        self,
        version: Any,
        in_process: Collection[str],
        forks: Collection[str] = (),
        again: Collection[str] = (),
        in_place: bool = True,
    ) -> "Future[Run]":
        """Run a version of the notebook beside others, in a folder of its own."""
        plan = NotebookPlan([*in_process], forks=[*forks], again=[*again], released=self._released)
        return self._processors.submit(self._run_one, version, plan, in_place)

    def _run_one(self, version: Any, plan: NotebookPlan, in_place: bool) -> "Run":
        nb = deepcopy(version)
        with tempfile.TemporaryDirectory(prefix="gradebox-dry-run-") as private:
            folder = Path(private, "work")  # the copy gets the mode of the original
            ignored = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
            shutil.copytree(self._path.parent, folder, ignore=ignored)
            return self._execute.run(nb, folder, self._context, plan, in_place)


def _is_better(others: list[TestRun], found: list[TestRun]) -> bool:
    """Return whether tests gain points, and none is less safe that had all of its points."""
    pairs = [*zip(others, found, strict=True)]
    return any(other.answers > run.answers for other, run in pairs) and all(
        other.answers >= run.answers
        and (run.fails or (other.way in (run.way, ISOLATED) and other.again >= run.again))
        for other, run in pairs
    )


def _name(cell: Any) -> str:
    return str(cell.metadata.nbgrader.grade_id)


def _points(cell: Any) -> float:
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
