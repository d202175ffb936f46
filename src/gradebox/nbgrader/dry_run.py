"""Find out before the first student how each test of an assignment runs, on the own answers.

A test runs *isolated*, in a process that gets nothing of the student's but values, where that gives
the instructor's own answers their full points. Any other runs *in-process*, among the student's
objects, as in nbgrader; there a student who tries can forge its score. One test never decides for
another, unless it needs what the other defines.

An isolated test sees copies. Where it asks about something else, such as whether an argument is
left as it was, a wrong answer could pass. So what passes isolated is asked again in-process, where
that gives the own answers their points as well.

One execution of the own answers runs each test both ways. Another one, as planned because of it,
gives what the report says.
"""

import json
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.preprocessors import ClearSolutions

from gradebox.files import digest, read_json, write
from gradebox.nbgrader.borrowed import Borrowed, borrowed, names_of
from gradebox.nbgrader.cells import is_test, name_of, points_of, require_python
from gradebox.nbgrader.given import words
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import IN_PROCESS, ISOLATED, WAYS, NotebookPlan, TestRun, of_plain
from gradebox.nbgrader.source_notebook import instructions, released_by, written_tests
from gradebox.workers.syntax import PYTHONS

AUTOMATIC = "AUTOTEST"
"""What a test says in which nbgrader writes automatic tests."""


def dry_run(
    execute: Any,
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


_REMEMBERED: dict[str, list[TestRun]] = {}
_TRYING = threading.Lock()


def remembered(execute: Any, source: Path, assignment: str) -> list[TestRun]:
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


class _Notebook:
    """The instructor's version of a notebook, with its answers and blank."""

    def __init__(
        self, execute: Any, path: Path, context: dict[str, str], processors: Executor
    ) -> None:
        self._execute, self._path, self._context = execute, path, context
        self._processors = processors
        answered = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        require_python(answered, path.stem)
        cells = [*filter(is_test, answered.cells)]
        self._tests = {name_of(cell): points_of(cell) for cell in cells}
        if any(AUTOMATIC in cell.source for cell in cells):
            written = written_tests(execute, context["assignment"], context["notebook"])
            for cell in cells:
                cell.source = written.get(name_of(cell), cell.source)
        self._sources = {name_of(cell): cell.source for cell in cells}
        self._answered, self._blank = answered, _blank(answered, execute)
        self._source = instructions(path)
        ways = dict.fromkeys(self._tests, execute.way)
        ways |= {name: way for name, way in self._source.ways.items() if way in WAYS}
        self._insisted = {name: way for name, way in ways.items() if way in WAYS}
        self._given = [name for name, way in self._insisted.items() if way == IN_PROCESS]

    def runs(self) -> list[TestRun]:
        """Return how each test runs."""
        if not self._tests:
            return []
        both, blank = self._both_ways()
        plan = self._plan(both, blank)
        last, blank_last = both, blank
        if plan.in_process != self._given or plan.forks or plan.pythons:
            of_blank = self._start(self._blank, plan)
            last, blank_last = self._start(self._answered, plan).result(), of_blank.result()
        lent = self._borrowed(plan.forks)
        found = []
        for name in self._tests:
            test = self._test(name, plan, both, last)
            without = blank_last.scores
            if (test.way == IN_PROCESS) != (name in plan.in_process):
                without = blank.isolated if test.way == ISOLATED else blank.in_process
            lends = tuple(each.name for each in lent if each.test == name)
            found.append(replace(test, blank=without.get(name, 0.0), lends=lends))
        return found

    def _both_ways(self) -> tuple[Run, Run]:
        """Run each test isolated and then in-process, with the answers and without.

        A test that ends a process takes the later ones with it: all run again without it isolated.
        """
        in_process = self._given
        while True:
            free = [n for n in self._tests if n not in self._insisted and n not in in_process]
            plan = NotebookPlan(in_process, free)
            blank = self._start(self._blank, plan)
            run = self._start(self._answered, plan).result()
            if not (costly := run.costly.intersection(free)):
                return run, blank.result()
            in_process = [*in_process, *costly]

    def _plan(self, both: Run, blank: Run) -> NotebookPlan:
        """Return how each test runs because of what it gave both ways."""
        passes = {n for n, points in self._tests.items() if both.isolated.get(n, 0.0) >= points}
        among = {n for n, points in self._tests.items() if both.in_process.get(n, 0.0) >= points}
        # where Python's own would pass without an answer, the test asks for the student's
        pythons = {
            name: names
            for name, names in self._source.pythons.items()
            if name not in passes or blank.isolated.get(name, 0.0) > 0
        }
        stays = {*self._insisted, *pythons}
        in_process = self._sharing(
            {*self._given, *(self._tests.keys() - passes - stays)}, among - stays
        )
        free = self._tests.keys() - self._insisted.keys() - in_process
        # later cells change what these ask about, or use what they define
        forks = in_process - among
        forks |= {each.test for each in self._borrowed(forks)} & in_process
        return NotebookPlan(
            self._in_order(in_process),
            self._in_order(free & among),
            self._in_order(forks),
            pythons={name: names for name, names in pythons.items() if name not in in_process},
        )

    def _sharing(self, in_process: set[str], free: set[str]) -> set[str]:
        """Add the tests that need a name which only one of these defines before them."""
        code = [cell for cell in self._answered.cells if cell.cell_type == "code"]
        own = {name for cell in code if not is_test(cell) for name in names_of(cell.source)[0]}
        makers: dict[str, str] = {}
        for test, source in self._sources.items():
            bound, used = names_of(source)
            if test in free and {makers.get(name) for name in used - own} & in_process:
                in_process = in_process | {test}
            makers |= dict.fromkeys(bound, test)
        return in_process

    def _borrowed(self, forks: Collection[str]) -> list[Borrowed]:
        return borrowed(self._answered.cells, released_by(self._execute.parent), forks)

    def _in_order(self, names: Collection[str]) -> list[str]:
        return [name for name in self._tests if name in names]

    def _test(self, name: str, plan: NotebookPlan, both: Run, last: Run) -> TestRun:
        """Return how a test runs, because of what it gave both ways, and as planned."""
        points = self._tests[name]
        isolated = last.isolated.get(name, both.isolated.get(name, 0.0))
        among, is_planned = both.in_process.get(name, 0.0), name in plan.in_process
        in_fork = name in plan.forks and last.in_process.get(name, 0.0) >= among
        if in_fork or (is_planned and name not in plan.forks):
            among = last.in_process.get(name, 0.0)
        # where neither way gives the points, isolated is the way that cannot be forged
        stays = among <= isolated < points if is_planned else not isolated < points <= among
        way = self._insisted.get(name, ISOLATED if stays else IN_PROCESS)
        answers = isolated if way == ISOLATED else among
        if way == IN_PROCESS and name not in self._insisted:
            why = both.reasons.get(name, "names that an earlier test in-process defines")
        else:
            why = last.reasons.get(name, "") if answers < points else ""
        words_of_test = words(self._sources[name])
        pythons = tuple(plan.pythons.get(name, ())) if way == ISOLATED else ()
        asked = {each for part in self._source.given for each in part.answers} & words_of_test
        is_again = name in plan.again and last.in_process.get(name, 0.0) >= points
        return TestRun(
            self._path.stem,
            name,
            points,
            way,
            answers,
            0.0,
            why,
            again=is_again and way == ISOLATED,
            in_fork=in_fork and way == IN_PROCESS,
            usual=tuple(dict.fromkeys(last.changed)) if way == IN_PROCESS else (),
            asks=tuple(sorted(asked - PYTHONS | {*pythons})),
            pythons=pythons,
        )

    def _start(self, version: Any, plan: NotebookPlan) -> "Future[Run]":
        """Run a version of the notebook beside others, in a folder of its own."""
        return self._processors.submit(self._run, version, plan)

    def _run(self, version: Any, plan: NotebookPlan) -> Run:
        nb = deepcopy(version)
        with tempfile.TemporaryDirectory(prefix="gradebox-dry-run-") as private:
            folder = Path(private, "work")  # the copy gets the mode of the original
            ignored = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
            shutil.copytree(self._path.parent, folder, ignore=ignored)
            return self._execute.run(nb, folder, self._context, plan)


def _blank(nb: Any, step: Any) -> Any:
    """Return a notebook as students get it, with its hidden tests."""
    blank = deepcopy(nb)
    clear = ClearSolutions(parent=step.parent)
    resources: dict[str, Any] = {"language": "python"}
    for number, cell in enumerate(blank.cells):
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "code":
            clear.preprocess_cell(cell, resources, number)
    return blank
