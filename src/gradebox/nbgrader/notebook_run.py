"""Execute one notebook cell by cell, each cell where it belongs."""

import json
import re
import unicodedata
from collections.abc import Collection
from copy import deepcopy
from typing import Any

import nbformat
from nbformat import NotebookNode

from gradebox.events import Event
from gradebox.nbgrader.cells import is_output, is_test, name_of, of, points_of
from gradebox.nbgrader.names import absent, borrowed, bound_outside_tests, names_of, words
from gradebox.nbgrader.plan import IN_PROCESS, ISOLATED, NotebookPlan, PlannedTest
from gradebox.nbgrader.source_notebook import Instructions, released_by
from gradebox.workers.client import Ended, Notebook
from gradebox.workers.protocol import RunTest, Tested, error_of, failed
from gradebox.workers.syntax import PYTHONS, REACHES

NO_POINTS = "the test gave no points"
# code that decides how an object compares and computes: it could say yes to any test
_OWN = re.compile(r"__(?!init|post_init|call|repr|str|len|iter|next|name|main|doc|slots)\w+__|Mock")
_BETWEEN = re.compile(r"""["']\s*[+,]?\s*["']""")  # the ends of two texts that become one
_GLOBAL = re.compile(r"(?m)(?:^|[;:]) *global ([\w, ]+)")
NOTEBOOK = 32  # all cells of a notebook together may show so many times what one of them may
Outputs = list[dict[str, Any]]
from_dict: Any = nbformat.from_dict  # which has no types


class Run:
    """The execution of one notebook by a step, in some processes.

    A test that runs isolated does so where it stands; one that runs in the student's process waits
    for the end of the last cell there. Some do both: then the isolated score counts, and another
    one in-process is an event.
    """

    def __init__(
        self, step: Any, notebook: Notebook, name: str, plan: NotebookPlan, source: Instructions
    ) -> None:
        # by the names of tests: what they gave isolated and in the student's process, what counts
        self.isolated, self.in_process, self.scores = (dict[str, float]() for _ in range(3))
        self.reasons: dict[str, str] = {}  # why a test gave no points where its score comes from
        self.events: list[Event] = []
        self.changed: list[str] = []  # what tests in the student's process use, and was changed
        self.numbers: set[str] = set()  # the isolated tests whose last value is a number
        self.costly: set[str] = set()  # those that took too long, or ended a process
        self._notebook, self._name, self._plan, self._source = notebook, name, plan, source
        self._forks = {test for test, how in plan.items() if how.in_fork}
        self._released, self._when_late = released_by(step.parent), step.error_on_timeout
        self._skipped = step.skip_cells_with_tag
        # a process in which a student's code runs may not obey
        self._max_output, self._room = step.max_output, NOTEBOOK * step.max_output
        self._waiting: list[NotebookNode] = []  # the tests that run in the student's process
        self._refused: dict[str, str] = {}  # what could not cross to an isolated test
        self._ended: Ended | None = None

    def execute(self, nb: NotebookNode) -> None:
        """Execute the code cells of the notebook and keep what they show."""
        cells = nb.cells
        found = borrowed(cells, self._released, self._forks)
        lent = {each.test for each in found}
        usual = {name for how in self._plan.values() for name in how.lends}
        code = [cell for cell in cells if cell.cell_type == "code"]
        # as Python reads it, to which other letters than these may mean `__eq__`, too
        own = unicodedata.normalize("NFKC", "\n".join(c.source for c in code if not is_test(c)))
        self._plays_along = bool(_OWN.search(own))
        given = [*(cell.source for cell in self._source.cells.values()), *self._source.plain]
        # a text that is written in pieces says what they say together
        self._reaches = {*REACHES.findall(own), *REACHES.findall(_BETWEEN.sub("", own))}
        self._reaches -= {*REACHES.findall("\n".join(given))}
        # what a cell says that it does is found above
        self._said = {*REACHES.findall(own), *words(own)}
        of_tests = {n for c in filter(is_test, code) for n in names_of(c.source)[0]}
        of_tests -= self._source.defined | {each.name for each in found}
        free = {n for c in code if not is_test(c) for n in names_of(c.source)[1]}
        free -= {n for c in self._source.cells.values() if not is_test(c) for n in words(c.source)}
        of_tests &= words(" ".join(_GLOBAL.findall(own))) | free - bound_outside_tests(cells)
        self._reaches |= {f"global {name}" for name in of_tests}
        for cell in cells:
            if cell.cell_type == "code" and cell.source.strip():
                cell.outputs, cell.execution_count = [], None
                if not self._is_skipped(cell):
                    self._execute(cell)
                if name_of(cell) in lent:
                    self._student(deepcopy(cell), self._released(cell.source))
        for each in found:
            if each.name not in usual and each.cell not in self._forks:
                self._tell("borrowed", each.cell, name=each.name, test=each.test)
        for cell in self._in_turn():
            self._test(cell)
        for lack in absent(nb, self._source.defined).values():
            if lack.guess and not lack.failed:
                self._tell("renamed", what=lack.kind, name=lack.name, guess=lack.guess)

    def _how(self, test: str) -> PlannedTest:
        return self._plan.get(test, PlannedTest())

    def _is_skipped(self, cell: NotebookNode) -> bool:
        # a test is executed whatever its tags are; the tags of the instructor's other cells are
        # those of the source notebook: a student can add a tag to them, or remove it
        named = self._source.cells.get(name_of(cell)) if name_of(cell) else cell
        tags = named.metadata.get("tags") if named else None
        return not is_test(cell) and self._skipped in (tags or ())

    def _execute(self, cell: NotebookNode) -> None:
        name = name_of(cell)
        if is_test(cell):
            how = self._how(name)
            # no test is in the student's process before the last cell of the student's has run, but
            # for what students were given of it
            if how.way == IN_PROCESS or how.again:
                self._notebook.remember(name, how.in_fork)
                self._waiting.append(cell)
            if how.way == ISOLATED:
                message = RunTest(name, cell.source, points_of(cell), [*how.pythons])
                self._score(cell, self._notebook.test(message, self._source.wish(name, "seconds")))
        elif of(cell).get("locked"):
            tested = self._notebook.test(RunTest(name, cell.source, 0.0))
            self._student(cell, self._released(cell.source), self._source.helpers.get(name, ()))
            if not tested.error and "ImportError" in {out.get("ename") for out in cell.outputs}:
                _keep(cell, tested.outputs)  # it needs what students do not get
        else:
            self._student(cell, cell.source)

    def _in_turn(self) -> list[NotebookNode]:
        """Return the tests in the student's process in the order in which they run there.

        Those that are only asked again, and define nothing for the others, come last: no later page
        shows what the student's process could keep of them.
        """
        first: list[NotebookNode] = []
        wanted: set[str] = set()
        for cell in reversed(self._waiting):
            bound, used, _ = names_of(cell.source)
            if self._how(name_of(cell)).way == IN_PROCESS or bound & wanted:
                first.insert(0, cell)
                wanted |= used
        # one that took too long, or ended a process, has no points that it could lose
        last = (cell for cell in self._waiting if name_of(cell) not in self.costly)
        return first + [cell for cell in last if cell not in first]

    def _test(self, cell: NotebookNode) -> None:
        name = name_of(cell)
        is_asked_again = self._how(name).again
        # names of Python's own, and imports, have their meaning in it whatever the student's are
        used = names_of(cell.source)[1]
        of_student = self._source.pythons.get(name, ())
        pythons = sorted(n for n in used & PYTHONS.difference(of_student) if not n.startswith("_"))
        imports = [each for each in self._source.imports if names_of(each)[0] & used]
        message = RunTest(name, cell.source, points_of(cell), pythons, imports=imports)
        seconds = self._source.wish(name, "seconds")
        try:
            result, late = self._notebook.test_in_process(message, seconds)
        except Ended as ended:
            if not is_asked_again:
                self._has_ended(cell, ended, "a test")
                self.in_process[name] = self.scores[name] = 0.0
            elif name in self._refused:
                self._not_a_value(name)
            return
        reaches = {*result.reaches} - self._said
        self.changed += [*result.changed, *sorted(reaches)]
        self.in_process[name] = result.score
        if is_asked_again:  # nothing that it shows is kept: its hidden lines could be read in it
            if name not in self._refused:
                if result.score < self.scores[name]:
                    self._tell("fails-in-process", name, why=late or result.error)
                elif result.score > self.scores[name]:
                    self._tell("passes-in-process", name, why=self.reasons.get(name, ""))
                return
            in_process = "the points are those of the test in the student's process"
            self._not_a_value(name, NO_POINTS if self._plays_along else in_process)
            if self._plays_along:
                return
            if result.score == points_of(cell):
                cell.outputs = []
        self.scores[name] = result.score
        usual = {part for how in self._plan.values() for part in how.usual}
        if changed := [part for part in result.changed if part not in usual]:
            self._tell("tampering", name, what=", ".join(changed[:5]))
        elif result.score and (found := self._reaches | reaches - usual):
            self._tell("reaches", name, what=", ".join(sorted(found)[:5]))
        if not is_asked_again:
            self.reasons |= {name: result.error} if result.error else {}
            self._keep(cell, result.outputs, late=late, what="a test cell")

    def _score(self, cell: NotebookNode, tested: Tested) -> None:
        name = name_of(cell)
        last = tested.outputs[-1] if tested.outputs else {}
        if re.fullmatch(r"[-\d.e]+", last.get("data", {}).get("text/plain", "")):
            self.numbers.add(name)
        elif self._how(name).is_number and not tested.error:  # a text would be worth all points
            tested = failed("expected a number as the value of this cell")
        self.isolated[name] = self.scores[name] = tested.score
        if tested.doubts:
            self._tell("doubt", name, what=", ".join(f"`{each}`" for each in tested.doubts[:5]))
        _keep(cell, tested.outputs)
        if tested.error:
            self.reasons[name] = (tested.refused or [tested.error])[0]
        if tested.gone or tested.lost or tested.late:
            self.costly.add(name)
        if has_ended := bool(tested.gone) and self._ended is None:
            self._ended = Ended(tested.gone)
        if tested.late or has_ended:
            self._tell("slow" if tested.late else "ended", name, what="a call by the test")
        elif tested.refused and not tested.gone:
            self._refused[name] = tested.refused[0]
            if not self._how(name).again:
                self._not_a_value(name)
        elif tested.error.startswith("Late") or tested.lost:
            self._tell(tested.lost or "slow", name, what="a test")

    def _not_a_value(self, name: str, score: str = NO_POINTS) -> None:
        self._tell("not-a-value", name, why=self._refused[name], score=score)

    def _student(self, cell: NotebookNode, source: str, helpers: Collection[str] = ()) -> None:
        try:
            shown, late = self._notebook.run(source, [*helpers])
        except Ended as ended:
            self._has_ended(cell, ended, "a cell")
            return
        self._keep(cell, shown.outputs, shown.execution_count, late, "a cell")
        names = {output.get("ename") for output in cell.outputs}
        if names & {"SyntaxError", "IndentationError", "TabError"}:
            self._tell("syntax", name_of(cell))
        if "MemoryError" in names:
            self._tell("memory", name_of(cell))

    def _keep(
        self, cell: Any, outputs: Outputs, count: int | None = None, late: str = "", what: str = ""
    ) -> None:
        """Write what a cell of the student's process showed into it, if that is not too much."""
        size = len(json.dumps(outputs))
        self._room -= size
        # escaped, a character takes up to six bytes; text and pictures each have the limit
        if size > 12 * self._max_output + 100_000 or self._room < 0:
            text = "[the outputs are left out: too much for a cell, or for all cells together]\n"
            outputs = [{"output_type": "stream", "name": "stderr", "text": text}]
            self._tell("large-output", name_of(cell))
        _keep(cell, [*filter(is_output, outputs)], count)
        if late:
            message = {"evalue": self._when_late["evalue"] or late}
            cell.outputs.append(from_dict(error_of(**self._when_late | message)))
            self._tell("slow", name_of(cell), what=what)

    def _has_ended(self, cell: NotebookNode, ended: Ended, what: str) -> None:
        name = "NotebookTimeoutError" if ended.kind == "slow-notebook" else "DeadKernelError"
        if self._ended is None and ended.kind == "slow-notebook":
            self._tell("slow", what="all cells together")
        elif self._ended is None:
            self._tell("ended", name_of(cell), what=what)
        before = "not executed, because an earlier cell killed Python: " if self._ended else ""
        self._ended = ended
        cell.outputs.append(from_dict(error_of(name, f"{before}{ended}")))

    def _tell(self, kind: str, cell: str = "", **fields: Any) -> None:
        self.events.append(Event(kind, self._name, cell, fields))


def _keep(cell: NotebookNode, outputs: Outputs, count: int | None = None) -> None:
    cell.execution_count = count
    plain = [{name: v for name, v in out.items() if name != "display_id"} for out in outputs]
    cell.outputs = [from_dict(output) for output in plain]
