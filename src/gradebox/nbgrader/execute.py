"""nbgrader's way to execute a notebook, in forks of a fork server instead of a new kernel.

In ``nbgrader_config.py``, besides what :mod:`gradebox.configuration` says::

    c.WarmExecute.imports = ["numpy", "torch"]
    c.WarmExecute.banned = ["course.{assignment}"]

A test cell runs in one of two ways: see :mod:`gradebox.nbgrader.dry_run`. Locked cells that give no
points, such as imports and helpers, run in the student's process and in that of the tests.
"""

import json
import math
import os
from collections.abc import Collection
from copy import deepcopy
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbgrader.preprocessors import Execute
from traitlets import Bool, Enum, Integer, List, Unicode, default

from gradebox.events import Event
from gradebox.nbgrader.cells import is_output, is_test
from gradebox.nbgrader.dry_run import WAYS, NotebookPlan, Plan, planned, remembered
from gradebox.nbgrader.source_notebook import Instructions, instructions, released_by, source_folder
from gradebox.nbgrader.steps import shown_score
from gradebox.sandbox.choice import choose
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.workers import pool
from gradebox.workers.client import beginning
from gradebox.workers.notebook import Ended, Notebook, running
from gradebox.workers.protocol import Tested, TestSettings

NOTEBOOK = 32
"""All cells of a notebook together may show so many times what one of them may."""


class WarmExecute(Execute):  # type: ignore[misc]
    """Execute each notebook in a process of its own, forked from one that has imported already.

    The limits are nbgrader's: ``timeout`` for each cell, ``interrupt_on_timeout``. So is
    ``skip_cells_with_tag``, the tag of cells that are not executed. Limits are in own time, see
    :mod:`gradebox.sandbox.own_time`: a slow and busy machine ends nothing that an idle one would
    not. Where nbgrader gives up a whole notebook because its kernel died, the cells before keep
    their marks here.
    """

    imports = List(
        Unicode(),
        help="Modules to import once, before the first notebook is executed, besides those that "
        "the instructor's cells import. '{assignment}' in a name stands for the assignment; a "
        "module that does not exist is left out.",
    ).tag(config=True)

    banned = List(
        Unicode(),
        help="Modules that notebooks cannot import: the reference implementation of what is "
        "graded. '{assignment}' in a name stands for the assignment.",
    ).tag(config=True)

    stubbed = List(
        Unicode(),
        help="Modules of which notebooks get a stub that does nothing: those with the tests. "
        "'{assignment}' in a name stands for the assignment.",
    ).tag(config=True)

    prepare = Unicode(
        help="Python that is run once before the first test, in the process from which those of "
        "the tests are forked: it computes what is the same for all students. '{assignment}' in "
        "it stands for the assignment.",
    ).tag(config=True)

    way = Enum(
        ["auto", *WAYS],
        default_value="auto",
        help="How test cells run: 'isolated' from the student's code, in a process that gets "
        "nothing of it but values; 'in-process', as in nbgrader, where a student can forge scores; "
        "or 'auto', cell by cell: isolated where that gives your own answers their full points. "
        'The metadata of a cell come first: "gradebox": {"way": "isolated"}.',
    ).tag(config=True)

    plan: Plan | None = None
    """How the tests of the assignment run; None while nothing has been found out."""

    sandbox = Unicode(
        "auto",
        help="How notebooks are sealed: by the Linux 'kernel', in the strongest way that it offers "
        "or in one of its ways, 'namespaces' or 'landlock'; by the sandbox of another distribution "
        "that is installed, by its name; by 'none'; or 'auto' for the first of these that is to "
        "be had. 'python -m gradebox.sandbox.probe' prints what the kernel offers.",
    ).tag(config=True)

    allow_unsealed = Bool(
        help="Run notebooks even where nothing seals them: only if you trust all of them. "
        "Without a setting: whether the environment says GRADEBOX_ALLOW_UNSEALED=yes."
    ).tag(config=True)

    @default("allow_unsealed")
    def _allow_unsealed(self) -> bool:
        return os.environ.get("GRADEBOX_ALLOW_UNSEALED") == "yes"

    readable = List(
        Unicode(),
        help="Folders and files that notebooks may read besides Python, the system's programs and "
        "their own folder: data of the course. Never the solutions or other submissions.",
    ).tag(config=True)

    environment = List(
        Unicode(), help="Names of further environment variables that notebooks may see."
    ).tag(config=True)

    max_seconds = Integer(
        600,
        help="Seconds of own time that all cells of a notebook may take together; then it ends.",
    ).tag(config=True)
    max_memory = Integer(
        Limits.memory, help="Bytes of memory that a notebook may use beyond its imports."
    ).tag(config=True)
    max_cpu = Integer(Limits.cpu, help="Seconds that each process of a notebook may compute.").tag(
        config=True
    )
    max_processes = Integer(
        Limits.processes, help="Processes and threads that a notebook may have at one time."
    ).tag(config=True)
    max_files = Integer(
        Limits.files, help="Files that each process of a notebook may have open."
    ).tag(config=True)
    max_file_size = Integer(Limits.file_size, help="Bytes of any file that a notebook writes.").tag(
        config=True
    )
    max_disk = Integer(
        Limits.disk, help="Bytes of all files of a notebook, with those handed in."
    ).tag(config=True)
    max_output = Integer(
        Limits.output, help="Bytes of text, and of other outputs, that a cell may show."
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: dict[str, Any], km: Any = None
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Execute all code cells and keep what they show, and what the tests gave.

        ``resources["gradebox"]`` then has ``scores``, by the names of the cells.
        """
        folder = Path(resources.get("metadata", {}).get("path") or ".").resolve()
        context = resources.get("nbgrader", {})
        run = self.run(nb, folder, context, self._planned(context))
        resources["gradebox"] = {"scores": run.scores}
        for event in run.events:
            self.log.warning(event)
        return nb, resources

    def run(
        self,
        nb: NotebookNode,
        folder: Path,
        context: dict[str, Any],
        plan: NotebookPlan,
        in_place: bool = True,
    ) -> "Run":
        """Execute all code cells of a notebook, in a folder of its own.

        Parameters
        ----------
        context : dict
            The names of its ``assignment`` and ``notebook``, and of the ``student`` if it is a
            submission.
        plan : NotebookPlan
            How its tests run.
        in_place : bool
            Whether a test that fails when it is asked again is asked once more where it stands.
        """
        run = self._run(nb, folder, context, plan)
        if run.doubtful and in_place:
            # unless later cells have spoilt what it asks about, it fails where it stands, too
            copy = deepcopy(nb)
            kept = {*run.doubtful, *plan.released}
            copy.cells = [c for c in copy.cells if not is_test(c) or _name_of(c) in kept]
            while not is_test(copy.cells[-1]):  # cells after the last such test may end the process
                copy.cells.pop()
            at_once = NotebookPlan([*kept], forks=[*kept], released=plan.released)
            run.lower(nb, self._run(copy, folder, context, at_once), copy)
        return run

    def _run(
        self, nb: NotebookNode, folder: Path, context: dict[str, Any], plan: NotebookPlan
    ) -> "Run":
        tests = {cell.metadata.nbgrader.grade_id for cell in filter(is_test, nb.cells)}
        source = source_folder(self, context.get("assignment", ""))
        given = instructions(source / f"{context.get('notebook', '')}.ipynb")
        in_process = {*plan.in_process} & tests
        with self._running(folder, context, source, given, tests, in_process) as notebook:
            name = str(context.get("notebook", ""))
            run = Run(notebook, name, self.parent, plan, given, self.max_output)
            for cell in nb.cells:
                if cell.cell_type == "code" and cell.source.strip():
                    cell.outputs, cell.execution_count = [], None
                    if not self._is_skipped(cell, given):
                        run.execute(cell, self.error_on_timeout)
            run.finish(self.error_on_timeout)
        return run

    def _is_skipped(self, cell: NotebookNode, given: Instructions) -> bool:
        """Return whether a cell has the tag of cells that are not executed.

        A test is executed whatever its tags are. The tags of the instructor's other cells are those
        of the source notebook: a student can add a tag to them, or remove it.
        """
        if is_test(cell):
            return False
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        tags = cell.metadata.get("tags") if name is None else given.tags.get(name)
        return self.skip_cells_with_tag in (tags or ())

    def _planned(self, context: dict[str, Any]) -> NotebookPlan:
        """Return how the tests of a notebook run."""
        if self.plan is None:
            name = str(context.get("assignment", ""))
            self.plan = planned(remembered(self, source_folder(self, name), name))
        return self.plan.get(str(context.get("notebook", "")), NotebookPlan())

    def _running(
        self,
        folder: Path,
        context: dict[str, Any],
        source: Path,
        given: Instructions,
        tests: set[str],
        in_process: set[str],
    ) -> Any:
        name = str(context.get("notebook", ""))
        assignment, limits = str(context.get("assignment", "")), self._limits()
        imports = [*self.imports, *pool.imported(source)]
        modules = pool.modules(assignment, imports, self.banned, self.stubbed, self.prepare)
        try:
            imports = [*self.imports, *pool.imported(source, name)]
            sandbox = choose(self.sandbox, self.allow_unsealed, modules, imports, self.config)
        except NotSealed as error:
            raise NotSealed(f"{name}: {error}") from error
        if sandbox is Level.NONE:
            self.log.warning(Event("not-sealed"))
        named = ("NBGRADER_EXECUTION", *self.environment)
        environment = {name: os.environ[name] for name in named if name in os.environ}
        if "student" in context:  # a dry run has none
            environment["GRADEBOX_STUDENT"] = str(context["student"])
        level = sandbox if isinstance(sandbox, Level) else Level.NONE
        begin = beginning(folder, environment, level, limits, self.readable)
        if in_process:
            begin = begin.watching(given.watched)
        of_tests = None
        if tests - in_process:
            settings = TestSettings(
                [*given.answers],
                [*given.imports],
                [*given.modules],
                [*modules[1], *modules[2]],
                self.config.get("Autograde", {}).get("exclude_overwriting", {}).get(assignment, []),
            )
            files = source if source.is_dir() else folder
            of_tests = beginning(files, {}, level, limits, self.readable).with_tests(settings)
        seconds = {"seconds": self.timeout, "budget": self.max_seconds}
        if not isinstance(sandbox, Level):
            return sandbox.running(modules, begin, of_tests, **seconds)
        server = pool.server(modules)
        template = None
        if of_tests is not None:
            template = pool.template(server, (id(server), repr(of_tests)), of_tests)
        return running(server, template, begin, **seconds)

    def _limits(self) -> Limits:
        return Limits(
            memory=self.max_memory,
            cpu=self.max_cpu,
            processes=self.max_processes,
            files=self.max_files,
            file_size=self.max_file_size,
            disk=self.max_disk,
            output=self.max_output,
        )


class Run:
    """The execution of one notebook, cell by cell.

    Parameters
    ----------
    notebook : Notebook
        Its processes.
    name : str
        What it is called.
    parent : Configurable
        Holds nbgrader's configuration.
    plan : NotebookPlan
        How its tests run.
    source : Instructions
        What the instructor's version says.
    max_output : int
        The bytes that a cell may show; a process in which a student's code runs may not obey.
    """

    def __init__(
        self,
        notebook: Notebook,
        name: str,
        parent: Any,
        plan: NotebookPlan,
        source: Instructions,
        max_output: int = Limits.output,
    ) -> None:
        self.scores: dict[str, float] = {}
        self.events: list[Event] = []
        self.reasons: dict[str, str] = {}
        """Why a test gave no points, by its name."""
        self.changed: list[str] = []
        """What tests in the student's process use, and was changed."""
        self._notebook, self._name, self._released = notebook, name, released_by(parent)
        self._in_process, self._usual = {*plan.in_process}, {*plan.usual}
        self._forks, self._again = {*plan.forks}, {*plan.again}
        self._shared = {*plan.released}
        self.doubtful: dict[str, float] = {}
        """The tests that gave points isolated, and so many in the student's process."""
        self._source = source
        self._max_output, self._room = max_output, NOTEBOOK * max_output
        self._waiting: list[NotebookNode] = []
        self._ended: Ended | None = None

    def execute(self, cell: NotebookNode, when_late: dict[str, Any]) -> None:
        """Execute one cell where it belongs."""
        metadata = cell.metadata.get("nbgrader", {})
        name = metadata.get("grade_id", "")
        if is_test(cell):
            # no test is in the student's process before the last cell of the student's has run,
            # but for what students were given of it
            if name in self._in_process | self._again:
                self._notebook.remember(name, name in self._forks)
                self._waiting.append(cell)
            if name in self._shared:
                self._student(deepcopy(cell), self._released(cell.source), when_late)
            if name not in self._in_process:
                points = float(metadata.get("points", 0))
                tested = self._notebook.test(cell.source, points, self._source.seconds.get(name))
                self._score(cell, tested)
        elif metadata.get("locked"):
            tested = self._notebook.test(cell.source, 0.0)
            helpers = self._source.helpers.get(name, ()) if self._in_process else ()
            self._student(cell, self._released(cell.source), when_late, helpers)
            if not tested.error and any(
                output.get("ename") == "ImportError" for output in cell.outputs
            ):
                _keep(cell, tested.outputs)  # it needs what students do not get
        else:
            self._student(cell, cell.source, when_late)

    def finish(self, when_late: dict[str, Any]) -> None:
        """Execute the tests that run in the student's process."""
        for cell in self._waiting:
            name = cell.metadata.nbgrader.grade_id
            points = float(cell.metadata.nbgrader.get("points", 0))
            is_asked_again = name in self._again
            try:
                seconds = self._source.seconds.get(name)
                result, late = self._notebook.test_in_process(name, cell.source, seconds)
            except Ended as ended:
                if is_asked_again:
                    self._doubt(name, 0.0)
                    continue
                self._has_ended(cell, ended, "a test")
                self.scores[name] = 0.0
                continue
            self.changed += result.changed
            outputs = [*map(from_dict, filter(is_output, result.outputs))]
            # before anything is left out: it may be the error
            score = 0.0 if late else shown_score(outputs, points)
            if is_asked_again:
                self._doubt(name, score)
                continue
            self.scores[name] = score
            for error in (output for output in outputs if output.output_type == "error"):
                self.reasons[name] = f"{error.ename}: {error.evalue}".removesuffix(": ")
            self._keep(cell, result.outputs, result.execution_count)
            if changed := [part for part in result.changed if part not in self._usual]:
                self._tell("tampering", name, what=", ".join(changed[:5]))
            if late:
                self._is_late(cell, late, when_late, "a test cell")

    def _doubt(self, name: str, score: float) -> None:
        if score < self.scores[name]:
            self.doubtful[name] = score

    def lower(self, nb: NotebookNode, other: "Run", copy: NotebookNode) -> None:
        """Take over the scores that doubtful tests have in another run, and what they showed.

        Parameters
        ----------
        nb, copy : NotebookNode
            The notebooks of this run and of the other.
        other : Run
            Asked the doubtful tests in the student's process, where they stand.
        """
        shown = {_name_of(cell): cell for cell in filter(is_test, copy.cells)}
        for cell in filter(is_test, nb.cells):
            name = _name_of(cell)
            score = max(self.doubtful.get(name, math.inf), other.scores.get(name, 0.0))
            if score < self.scores[name]:
                self.scores[name], cell.outputs = score, shown[name].outputs
                self.reasons[name] = "it passes isolated, and fails in the student's process"
                self.events += [event for event in other.events if event.cell == name]

    def _score(self, cell: NotebookNode, tested: Tested) -> None:
        name = cell.metadata.nbgrader.grade_id
        self.scores[name] = tested.score
        _keep(cell, tested.outputs)
        if tested.error:
            self.reasons[name] = (tested.refused or [tested.error])[0]
        if has_ended := bool(tested.gone) and self._ended is None:
            self._ended = Ended(tested.gone)
        if tested.late:
            self._tell("slow", name, what="a call by the test")
        elif has_ended:
            self._tell("ended", name, what="a call by the test")
        elif tested.refused and not tested.gone:
            self._tell("not-a-value", name, why=tested.refused[0])
        elif tested.error.startswith("Late"):
            self._tell("slow", name, what="a test cell")
        elif tested.lost:
            self._tell(tested.lost, name, what="a test")

    def _student(
        self,
        cell: NotebookNode,
        source: str,
        when_late: dict[str, Any],
        helpers: Collection[str] = (),
    ) -> None:
        """Execute a cell in the student's process."""
        try:
            shown, late = self._notebook.run(source, [*helpers])
        except Ended as ended:
            self._has_ended(cell, ended, "a cell")
            return
        self._keep(cell, shown.outputs, shown.execution_count)
        if late:
            self._is_late(cell, late, when_late, "a cell")
        names = {output.get("ename") for output in cell.outputs}
        if names & {"SyntaxError", "IndentationError", "TabError"}:
            self._tell("syntax", _name_of(cell))
        if "MemoryError" in names:
            self._tell("memory", _name_of(cell))

    def _keep(
        self, cell: NotebookNode, outputs: list[dict[str, Any]], count: int | None = None
    ) -> None:
        """Write what a cell of the student's process showed into it, if that is not too much."""
        size = len(json.dumps(outputs))
        self._room -= size
        # escaped, a character takes up to six bytes; text and pictures each have the limit
        if size > 12 * self._max_output + 100_000 or self._room < 0:
            text = "[the outputs are left out: too much for a cell, or for all cells together]\n"
            outputs = [{"output_type": "stream", "name": "stderr", "text": text}]
            self._tell("large-output", _name_of(cell))
        _keep(cell, [*filter(is_output, outputs)], count)

    def _is_late(self, cell: NotebookNode, late: str, when_late: dict[str, Any], what: str) -> None:
        message = {"evalue": when_late["evalue"] or late}
        cell.outputs.append(_error(**when_late | message))
        self._tell("slow", _name_of(cell), what=what)

    def _has_ended(self, cell: NotebookNode, ended: Ended, what: str) -> None:
        name = "NotebookTimeoutError" if ended.kind == "slow-notebook" else "DeadKernelError"
        if self._ended is None and ended.kind == "slow-notebook":
            self._tell("slow", what="all cells together")
        elif self._ended is None:
            self._tell("ended", _name_of(cell), what=what)
        before = "not executed, because an earlier cell killed Python: " if self._ended else ""
        self._ended = ended
        cell.outputs.append(_error(name, f"{before}{ended}"))

    def _tell(self, kind: str, cell: str = "", **fields: Any) -> None:
        self.events.append(Event(kind, self._name, cell, fields))


def _name_of(cell: NotebookNode) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _keep(
    cell: NotebookNode, outputs: list[dict[str, Any]], execution_count: int | None = None
) -> None:
    """Write what a cell showed into it."""
    cell.outputs = []
    cell.execution_count = execution_count
    for output in outputs:
        output = dict(output)
        output.pop("display_id", None)
        cell.outputs.append(from_dict(output))  # type: ignore[no-untyped-call]


def _error(ename: str, evalue: str, traceback: list[str] | None = None) -> NotebookNode:
    lines = traceback or [f"\x1b[0;31m{ename}\x1b[0m: {evalue}"]
    return from_dict(  # type: ignore[no-untyped-call]
        {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": lines}
    )
