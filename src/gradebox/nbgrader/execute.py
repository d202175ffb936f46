"""nbgrader's way to execute a notebook, in forks of a fork server instead of a new kernel.

In ``nbgrader_config.py``, besides what :mod:`gradebox.configuration` says::

    c.WarmExecute.imports = ["numpy", "torch"]
    c.WarmExecute.banned = ["course.{assignment}"]

A test cell runs in one of two ways: see :mod:`gradebox.nbgrader.dry_run`. Locked cells that give no
points, such as imports and helpers, run in the student's process and in that of the tests.
"""

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from traitlets import Bool, Enum, Integer, List, Unicode, default

from gradebox.events import Event
from gradebox.nbgrader.cells import is_test
from gradebox.nbgrader.dry_run import remembered
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import WAYS, NotebookPlan, Plan, planned
from gradebox.nbgrader.source_notebook import Instructions, instructions, released_by, source_folder
from gradebox.sandbox.choice import choose
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.workers import pool
from gradebox.workers.client import beginning
from gradebox.workers.notebook import running
from gradebox.workers.protocol import TestSettings


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
        self, nb: NotebookNode, folder: Path, context: dict[str, Any], plan: NotebookPlan
    ) -> Run:
        """Execute all code cells of a notebook, in a folder of its own.

        Parameters
        ----------
        context : dict
            The names of its ``assignment`` and ``notebook``, and of the ``student`` if it is a
            submission.
        plan : NotebookPlan
            How its tests run.
        """
        tests = {cell.metadata.nbgrader.grade_id for cell in filter(is_test, nb.cells)}
        source = source_folder(self, context.get("assignment", ""))
        name = str(context.get("notebook", ""))
        given = instructions(source / f"{name}.ipynb")
        in_process = {*plan.in_process} & tests
        late, released = self.error_on_timeout, released_by(self.parent)
        with self._running(folder, context, source, given, tests, in_process) as notebook:
            run = Run(notebook, name, plan, given, released, late, self.max_output)
            run.execute(nb.cells, lambda cell: self._is_skipped(cell, given))
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
        of_tests = None
        if tests - in_process:
            settings = TestSettings(
                [*modules[1], *modules[2]],
                self.config.get("Autograde", {}).get("exclude_overwriting", {}).get(assignment, []),
            )
            files = source if source.is_dir() else folder
            of_tests = beginning(files, {}, level, limits, self.readable).with_tests(settings)
        parts = [part for part in given.given if self.skip_cells_with_tag not in part.tags]
        options: Any = {"seconds": self.timeout, "budget": self.max_seconds, "given": parts}
        if not isinstance(sandbox, Level):
            return sandbox.running(modules, begin, of_tests, **options)
        server = pool.server(modules)
        template = None
        if of_tests is not None:
            template = pool.template(server, (id(server), repr(of_tests)), of_tests)
        return running(server, template, begin, **options)

    def _limits(self) -> Limits:
        names = (each.name for each in fields(Limits))
        return Limits(**{name: getattr(self, f"max_{name}") for name in names})
