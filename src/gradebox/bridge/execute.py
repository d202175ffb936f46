"""nbgrader's way to execute a notebook, in a fork of a warm process instead of a new kernel.

In ``nbgrader_config.py``, besides what :mod:`gradebox.configuration` says::

    c.WarmExecute.imports = ["numpy", "torch"]
    c.WarmExecute.banned = ["course.{assignment}"]

The student's cells run in one process and the test cells in another, which alone has the tests.
Locked cells that give no points, such as imports and helpers, run in both.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Any

from nbformat import NotebookNode, from_dict
from nbgrader.preprocessors import Execute
from traitlets import Bool, Enum, Integer, List, Unicode, default

from gradebox.bridge.scores import shown_score
from gradebox.bridge.source_notebook import Instructions, Released, instructions, source_folder
from gradebox.bridge.trial import NotebookPlan, Plan, planned, remembered
from gradebox.process import pool
from gradebox.process.client import Died
from gradebox.process.pair import CheckerInputs, Pair, paired
from gradebox.process.verdict import Verdict
from gradebox.sandbox.probe import choose
from gradebox.sandbox.seal import Level, Limits


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

    hollow = List(
        Unicode(),
        help="Modules of which notebooks get a stand-in that does nothing: those with the tests. "
        "'{assignment}' in a name stands for the assignment.",
    ).tag(config=True)

    apart = Bool(
        True,
        help="Run test cells in a process of their own. Without it a student's code can forge "
        "every score; a single test cell that cannot do without the student's process is better "
        'marked in its metadata: "gradebox": {"beside": true}.',
    ).tag(config=True)

    trial = Bool(
        True,
        help="Try the tests on the instructor's own answers first, and run those beside the "
        "student's code that give other points apart from it.",
    ).tag(config=True)

    second_opinion = Bool(
        True,
        help="Where a test gives no points and this may be because it ran apart, run the notebook "
        "again in one process, and say where that gives more points.",
    ).tag(config=True)

    plan: Plan | None = None
    """How the tests of the assignment run, as a trial has found; None while there was none."""

    sealed = Enum(
        ["auto", *map(str, Level)],
        default_value="auto",
        help="How notebooks are sealed: 'namespaces', 'landlock', 'none', or 'auto' for the "
        "strongest that the machine offers; 'python -m gradebox.sandbox.probe' prints it.",
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

        ``resources["gradebox"]`` then has ``scores``, by the names of the cells, and
        ``forgeable``, the cells that ran beside the student's code.
        """
        folder = Path(resources.get("metadata", {}).get("path") or ".").resolve()
        context = resources.get("nbgrader", {})
        plan = self._planned(context)
        beside = self._instructions(context).beside | {*plan.beside} if self.apart else None
        with tempfile.TemporaryDirectory(prefix="gradebox-") as copy:
            if self.apart and self.second_opinion:
                shutil.copytree(folder, copy, dirs_exist_ok=True, symlinks=True)
            run = self.run(nb, folder, context, beside, plan.mixed)
            if run.doubts and self.second_opinion:
                self._ask_again(nb, Path(copy), context, run)
        resources["gradebox"] = {"scores": run.scores, "forgeable": run.forgeable}
        for name in run.forgeable if self.apart else ():
            self.log.warning("cell %s ran beside the student's code: its score can be forged", name)
        return nb, resources

    def run(
        self,
        nb: NotebookNode,
        folder: Path,
        context: dict[str, Any],
        beside: Collection[str] | None,
        mixed: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> "Run":
        """Execute all code cells of a notebook, in a folder of its own.

        Parameters
        ----------
        context : dict
            The names of its ``assignment`` and ``notebook``, and of the ``student`` if it is a
            submission.
        beside : collection of str or None
            The test cells that run beside the student's code. None runs all in one process, in
            which nothing is banned or hollow.
        mixed : mapping
            The operators and methods of objects that may be given values of a test, by the names of
            the cells; all where a cell is not among them.
        """
        with self._paired(folder, context, beside is not None) as pair:
            run = Run(pair, Released(self.parent), beside, mixed)
            for cell in nb.cells:
                if cell.cell_type == "code" and cell.source.strip():
                    cell.outputs, cell.execution_count = [], None
                    if not self._is_skipped(cell, context):
                        run.execute(cell, self.error_on_timeout)
        return run

    def _is_skipped(self, cell: NotebookNode, context: dict[str, Any]) -> bool:
        """Return whether a cell has the tag of cells that are not executed.

        A test is executed whatever its tags are. The tags of the instructor's other cells are those
        of the source notebook: a student can add a tag to them, or remove it.
        """
        metadata = cell.metadata.get("nbgrader", {})
        if metadata.get("grade") and not metadata.get("solution"):
            return False
        own = "grade_id" not in metadata
        tags = (
            cell.metadata
            if own
            else {"tags": self._instructions(context).tags.get(metadata["grade_id"])}
        )
        return self.skip_cells_with_tag in (tags.get("tags") or ())

    def _ask_again(
        self, nb: NotebookNode, folder: Path, context: dict[str, Any], run: "Run"
    ) -> None:
        """Say which tests give more points in one process; there a student could have forged them.

        Nothing but the points is kept.
        """
        other = self.run(deepcopy(nb), folder, context, None)
        for name, doubt in run.doubts.items():
            if other.scores[name] > run.scores[name]:
                self.log.warning(
                    "cell %s gives %g points in one process, and %g apart from the student's code "
                    "(%s): look at it",
                    *(name, other.scores[name], run.scores[name], doubt),
                )

    def _instructions(self, context: dict[str, Any]) -> Instructions:
        source = source_folder(self, context.get("assignment", ""))
        return instructions(source / f"{context.get('notebook', '')}.ipynb")

    def _planned(self, context: dict[str, Any]) -> NotebookPlan:
        """Return how the tests of a notebook run."""
        if self.plan is None:
            name = str(context.get("assignment", ""))
            asks = self.apart and self.trial
            trials = remembered(self, source_folder(self, name), name) if asks else []
            self.plan = planned(trials)
        return self.plan.get(str(context.get("notebook", "")), NotebookPlan())

    def _paired(self, folder: Path, context: dict[str, Any], apart: bool) -> Any:
        source_instructions = self._instructions(context)
        source = source_folder(self, context.get("assignment", ""))
        level = choose(self.sealed, self.allow_unsealed)
        if level is Level.NONE:
            self.log.warning("not sealed: this notebook can do whatever you can")
        environment = {k: v for k, v in os.environ.items() if k.startswith("NBGRADER")}
        environment |= {name: os.environ[name] for name in self.environment if name in os.environ}
        if "student" in context:  # a trial has none
            environment["GRADEBOX_STUDENT"] = str(context["student"])
        name = str(context.get("assignment", ""))
        imports = [*self.imports, *pool.imported(source)]
        modules = pool.modules(name, imports, self.banned, self.hollow, apart=apart)
        readable = [str(source)] if source.is_dir() else []
        inputs = CheckerInputs(
            source_instructions.imports,
            source_instructions.modules,
            source_instructions.answers,
            source_instructions.shared,
            readable,
        )
        return paired(
            pool.server(modules),
            folder,
            environment,
            inputs,
            seconds=self.timeout,
            budget=self.max_seconds,
            level=level,
            limits=self._limits(),
            readable=self.readable,
        )

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
    pair : Pair
        Its processes.
    released : callable
        Gives the text of a cell as students get it.
    beside : collection of str or None
        The test cells that run beside the student's code; None for all.
    allowed : mapping
        The operators and methods of objects that may be given values of a test, by cell.
    """

    def __init__(
        self,
        pair: Pair,
        released: Released,
        beside: Collection[str] | None,
        allowed: Mapping[str, Collection[str]],
    ) -> None:
        self.scores: dict[str, float] = {}
        self.mixed: dict[str, list[str]] = {}
        """The operators and methods of objects that were given values of a test, by cell."""
        self.forgeable: list[str] = []
        self.doubts: dict[str, str] = {}
        self._pair, self._released, self._beside = pair, released, beside
        self._allowed = allowed
        self._dead: tuple[str, str] | None = None

    def execute(self, cell: NotebookNode, when_late: dict[str, Any]) -> None:
        """Execute one cell where it belongs."""
        metadata = cell.metadata.get("nbgrader", {})
        name = metadata.get("grade_id", "")
        tests = bool(metadata.get("grade")) and not metadata.get("solution")
        if tests and self._beside is not None and name not in self._beside:
            worth, allowed = float(metadata["points"]), self._allowed.get(name)
            verdict = self._pair.check(cell.source, worth, allowed)
            self.scores[name], self.mixed[name] = verdict.score, verdict.mixed
            if verdict.doubt:
                self.doubts[name] = verdict.doubt
            _keep(cell, _as_scored(verdict))
        elif tests:
            self._student(cell, cell.source, when_late)
            self.forgeable.append(name)
            self.scores[name] = shown_score(cell.outputs, float(metadata["points"]))
        elif metadata.get("locked") and self._beside is not None:
            verdict = self._pair.check(cell.source)
            self._student(cell, self._released(cell.source), when_late)
            if not verdict.error and any(
                output.get("ename") == "ImportError" for output in cell.outputs
            ):
                _keep(cell, verdict.outputs)  # it needs what students do not get
        else:
            self._student(cell, cell.source, when_late)

    def _student(self, cell: NotebookNode, source: str, when_late: dict[str, Any]) -> None:
        """Execute a cell in the student's process."""
        if self._dead:
            cell.outputs.append(_error(*self._dead))
            return
        try:
            shown, late = self._pair.run(source)
            _keep(cell, shown.outputs, shown.execution_count)
            if late:
                message = {"evalue": when_late["evalue"] or late}
                cell.outputs.append(_error(**when_late | message))
        except Died as death:
            cell.outputs.append(_error(death.trouble.error, str(death)))
            self._dead = (
                death.trouble.error,
                f"not executed, because an earlier cell killed Python: {death}",
            )


def _as_scored(verdict: Verdict) -> list[dict[str, Any]]:
    """Return the outputs of a test cell so that nbgrader, too, reads its score from them."""
    return [
        output | {"name": "stdout"} if output["output_type"] == "stream" else output
        for output in verdict.outputs
    ]


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
