"""Find out before the first student how each test of an assignment runs, on the own answers.

A test runs *isolated*, in a process that gets nothing of the student's but values, where that gives
the instructor's own answers their full points. Any other runs *in-process*, among the student's
objects, where a student who tries can forge its score. What passes isolated is asked again
in-process, where that gives the own answers their points, too: an isolated test sees copies.

One execution of the own answers runs each test both ways. Another one, as planned because of it,
gives what the report says.
"""

import json
from collections.abc import Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.preprocessors import ClearSolutions

from gradebox.files import digest, read_json, write
from gradebox.nbgrader.cells import is_test, name_of, of, points_of, require_python, settings
from gradebox.nbgrader.names import Borrowed, borrowed, bound_outside_tests, names_of, words
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import IN_PROCESS, ISOLATED, WAYS, NotebookPlan, PlannedTest, TestRun
from gradebox.nbgrader.source_notebook import AUTOMATIC, instructions, released_by, written_tests
from gradebox.workers.syntax import PYTHONS, body_of


def dry_run(execute: Any, notebook: Path, assignment: str, jobs: int = 1) -> list[TestRun]:
    """Run the tests of a notebook on its own answers and without answers."""
    with ThreadPoolExecutor(jobs) as processors:
        return _Notebook(execute, notebook, assignment, processors).runs()


def kept(file: Path, key: str, find_out: Callable[[], list[TestRun]]) -> list[TestRun]:
    """Return the runs that a file has under a key; else find out, and keep them there."""
    record = read_json(file)
    if record.get("key") != key:
        record = {"key": key, "tests": [asdict(run) for run in find_out()]}
        write(file, json.dumps(record))
    return [TestRun(**fields) for fields in record["tests"]]


Runs = tuple[Run, Run]  # of a notebook with its answers, and without
_REMEMBERED: dict[str, list[TestRun]] = {}


def remembered(execute: Any, source: Path, assignment: str) -> list[TestRun]:
    """Run the tests of an assignment once in this process, for each version of them."""
    files = (path for path in sorted(source.rglob("*")) if path.is_file())
    stamps = [f"{path} {path.stat().st_mtime_ns}" for path in files]
    key = digest([assignment, *stamps, *settings(execute)])
    if key not in _REMEMBERED:
        notebooks = sorted(source.glob("*.ipynb"))
        _REMEMBERED[key] = [r for each in notebooks for r in dry_run(execute, each, assignment)]
    return _REMEMBERED[key]


class _Notebook:
    """The instructor's version of a notebook, with its answers and blank."""

    def __init__(self, execute: Any, path: Path, assignment: str, processors: Executor) -> None:
        self._execute, self._path, self._processors = execute, path, processors
        self._context = {"assignment": assignment, "notebook": path.stem}
        answered = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        require_python(answered.metadata.get("kernelspec"), path.stem)
        self._tests = {name_of(cell): cell for cell in filter(is_test, answered.cells)}
        self._points = {name: points_of(cell) for name, cell in self._tests.items()}
        if any(AUTOMATIC in cell.source for cell in self._tests.values()):
            written = written_tests(execute, assignment, path.stem)
            for name, cell in self._tests.items():
                cell.source = written.get(name, cell.source)
        self._answered, self._blank = answered, deepcopy(answered)
        clear = ClearSolutions(parent=execute.parent)  # a blank one keeps its hidden tests
        for number, cell in enumerate(self._blank.cells):
            if of(cell).get("solution") and cell.cell_type == "code":
                clear.preprocess_cell(cell, {"language": "python"}, number)
        self._source = instructions(path)
        wishes = {name: self._source.wish(name, "way") for name in self._tests}
        ways = {name: way if way in WAYS else execute.way for name, way in wishes.items()}
        self._insisted = {name: way for name, way in ways.items() if way in WAYS}
        self._given = [name for name, way in self._insisted.items() if way == IN_PROCESS]

    def runs(self) -> list[TestRun]:
        """Return how each test runs."""
        if not self._tests:
            return []
        last = both = self._both_ways()
        plan = self._plan(*both)
        if any(replace(how, again=False) != self._how(n, self._given) for n, how in plan.items()):
            last = self._run(plan)
        self._lent = self._borrowed([name for name, how in plan.items() if how.in_fork])
        return [self._test(name, plan, both, last) for name in self._tests]

    def _both_ways(self) -> Runs:
        """Run each test isolated and then in-process.

        A test that ends a process takes the later ones with it: all run again without it isolated.
        """
        in_process = self._given
        while True:
            free = [n for n in self._tests if n not in self._insisted and n not in in_process]
            both = self._run({n: self._how(n, in_process, again=n in free) for n in self._tests})
            if not (costly := both[0].costly.intersection(free)):
                return both
            in_process = [*in_process, *costly]

    def _how(self, name: str, in_process: Collection[str], **more: Any) -> PlannedTest:
        return PlannedTest(IN_PROCESS if name in in_process else ISOLATED, **more)

    def _plan(self, both: Run, blank: Run) -> NotebookPlan:
        """Return how each test runs because of what it gave both ways."""
        points = self._points
        passes = {name for name in points if both.isolated.get(name, 0.0) >= points[name]}
        among = {name for name in points if both.in_process.get(name, 0.0) >= points[name]}
        # where Python's own would pass without an answer, the test asks for the student's
        pythons = self._source.pythons
        asking = {n for n in pythons if n not in passes or blank.isolated.get(n, 0) > 0}
        stays = {*self._insisted, *asking}
        # of a docstring or a module __main__, for example, such a test sees nothing
        blind = {n for n in passes & among if blank.isolated.get(n, 0) > blank.in_process.get(n, 0)}
        passes -= blind
        both.reasons |= dict.fromkeys(blind, "its points to a blank notebook, too")
        needed = {*self._given, *(points.keys() - passes - stays)}
        in_process = self._sharing(needed, among - stays)
        free = points.keys() - self._insisted.keys() - in_process
        # later cells change what these ask about, or use what they define
        forks = in_process - among
        forks |= {each.test for each in self._borrowed(forks)} & in_process
        plan = {}
        for name in self._tests:
            more: Any = {"again": name in free & among, "in_fork": name in forks}
            more["pythons"] = pythons[name] if name in asking - in_process else ()
            plan[name] = self._how(name, in_process, **more)
        return plan

    def _sharing(self, in_process: set[str], free: set[str]) -> set[str]:
        """Add the tests that need a name which only one of these defines before them."""
        own = bound_outside_tests(self._answered.cells)
        makers: dict[str, str] = {}
        for test, cell in self._tests.items():
            bound, used, _ = names_of(cell.source)
            if test in free and {makers.get(name) for name in used - own} & in_process:
                in_process = in_process | {test}
            makers |= dict.fromkeys(bound, test)
        return in_process

    def _borrowed(self, forks: Collection[str]) -> list[Borrowed]:
        return borrowed(self._answered.cells, released_by(self._execute.parent), forks)

    def _test(self, name: str, plan: NotebookPlan, first: Runs, planned: Runs) -> TestRun:
        """Return how a test runs, because of what it gave both ways, and as planned."""
        points, (both, blank), (last, last_blank) = self._points[name], first, planned
        isolated = last.isolated.get(name, both.isolated.get(name, 0.0))
        among, now = (runs.in_process.get(name, 0.0) for runs in (both, last))
        how, is_planned = plan[name], plan[name].way == IN_PROCESS
        in_fork = how.in_fork and now >= among
        if in_fork or (is_planned and not how.in_fork):
            among = now
        # where neither way gives the points, isolated is the way that cannot be forged
        stays = among <= isolated < points if is_planned else not isolated < points <= among
        is_isolated = self._insisted.get(name, ISOLATED if stays else IN_PROCESS) == ISOLATED
        answers = isolated if is_isolated else among
        if is_isolated or name in self._insisted:
            why = last.reasons.get(name, "") if answers < points else ""
        else:
            why = both.reasons.get(name, "names that an earlier test in-process defines")
        without = blank.isolated if is_isolated else blank.in_process
        if is_isolated != is_planned:
            without = last_blank.scores
        pythons = tuple(how.pythons) if is_isolated else ()
        asked = {each for part in self._source.given for each in part.answers} & self._words(name)
        given: Any = {"notebook": self._path.stem, "cell": name, "points": points}
        given |= {"answers": answers, "blank": without.get(name, 0.0), "why": why}
        return TestRun(
            ISOLATED if is_isolated else IN_PROCESS,
            **given,
            again=how.again and now >= points and is_isolated,
            is_number=name in both.numbers and is_isolated,
            in_fork=in_fork and not is_isolated,
            usual=tuple(dict.fromkeys(last.changed)),
            asks=tuple(sorted(asked - PYTHONS | {*pythons})),
            pythons=pythons,
            lends=tuple(each.name for each in self._lent if each.test == name),
        )

    def _words(self, test: str) -> set[str]:
        """Return the words of a test, and of the other cells that define what it uses."""
        code = [cell for cell in self._answered.cells if cell.cell_type == "code"]
        texts = {cell.source for cell in code if is_test(cell) or of(cell).get("locked")}
        texts |= {part.source for part in self._source.given}
        found = words(self._tests[test].source)
        while used := {text for text in texts if names_of(body_of(text))[0] & found}:
            texts -= used
            found = found.union(*map(words, used))
        return found

    def _run(self, plan: NotebookPlan) -> Runs:
        """Run the notebook with its answers and, at the same time, without."""

        def run(version: Any) -> Run:
            nb, folder = deepcopy(version), self._path.parent
            return self._execute.run(nb, folder, self._context, plan)

        answered, blank = self._processors.map(run, (self._answered, self._blank))
        return answered, blank
