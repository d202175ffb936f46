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
from gradebox.nbgrader.cells import is_test, name_of
from gradebox.nbgrader.dry_run import remembered
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import WAYS, NotebookPlan, Plan, planned
from gradebox.nbgrader.source_notebook import source_folder, source_of
from gradebox.sandbox.choice import choose
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.workers import pool
from gradebox.workers.client import beginning
from gradebox.workers.notebook import running
from gradebox.workers.protocol import Given


def _limit(default: int, about: str) -> Any:
    return Integer(default, help=about).tag(config=True)


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
        "it stands for the assignment."
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

    max_seconds = _limit(
        600, "Seconds of own time that all cells of a notebook may take together; then it ends."
    )
    max_memory = _limit(
        Limits.memory, "Bytes of memory that a notebook may use beyond its imports."
    )
    max_cpu = _limit(Limits.cpu, "Seconds that each process of a notebook may compute.")
    max_processes = _limit(
        Limits.processes, "Processes and threads that a notebook may have at one time."
    )
    max_files = _limit(Limits.files, "Files that each process of a notebook may have open.")
    max_file_size = _limit(Limits.file_size, "Bytes of any file that a notebook writes.")
    max_disk = _limit(Limits.disk, "Bytes of all files of a notebook, with those handed in.")
    max_output = _limit(Limits.output, "Bytes of text, and of other outputs, that a cell may show.")

    def preprocess(self, nb: NotebookNode, resources: Any, km: Any = None) -> tuple[Any, Any]:
        """Execute all code cells and keep what they show, and what the tests gave.

        ``resources["gradebox"]`` then has ``scores``, by the names of the cells.
        """
        folder = Path(resources.get("metadata", {}).get("path") or ".").resolve()
        context = resources.get("nbgrader", {})
        name, assignment = context.get("notebook", ""), context.get("assignment", "")
        if self.plan is None:
            self.plan = planned(remembered(self, source_folder(self, assignment), assignment))
        run = self.run(nb, folder, context, self.plan.get(name, NotebookPlan()))
        resources["gradebox"] = {"scores": run.scores}
        for event in run.events:
            self.log.warning(event)
        return nb, resources

    def run(
        self, nb: NotebookNode, folder: Path, context: dict[str, Any], plan: NotebookPlan
    ) -> Run:
        """Execute all code cells of a notebook, in a folder of its own, with tests as planned.

        The context names its ``assignment`` and ``notebook``, and the ``student`` of a submission.
        """
        source = source_of(self, context)
        tests = {name_of(cell) for cell in filter(is_test, nb.cells)}

        def is_skipped(cell: NotebookNode) -> bool:
            # a test is executed whatever its tags are; the tags of the instructor's other cells are
            # those of the source notebook: a student can add a tag to them, or remove it
            named = source.cells.get(name_of(cell)) if name_of(cell) else cell
            tags = named.metadata.get("tags") if named else None
            return not is_test(cell) and self.skip_cells_with_tag in (tags or ())

        given = [part for part in source.given if self.skip_cells_with_tag not in part.tags]
        is_isolated = not tests <= {*plan.in_process}
        with self._running(folder, context, given, is_isolated) as notebook:
            run = Run(self, notebook, context.get("notebook", ""), plan, source)
            run.execute(nb, is_skipped)
        return run

    def _running(
        self, folder: Path, context: dict[str, Any], given: list[Given], is_isolated: bool
    ) -> Any:
        """Return the processes of a notebook, with one for tests if any is isolated."""
        name, assignment = context.get("notebook", ""), context.get("assignment", "")
        source = source_folder(self, assignment)
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
        limits = Limits(**{each.name: getattr(self, f"max_{each.name}") for each in fields(Limits)})
        begin = beginning(folder, environment, level, limits, self.readable)
        of_tests = None
        if is_isolated:
            excluded = self.config.get("Autograde", {}).get("exclude_overwriting", {})
            files = source if source.is_dir() else folder
            told: Any = {"of_tests": True, "barred": [*modules[1], *modules[2]]}
            told["excluded"] = excluded.get(assignment, [])
            of_tests = beginning(files, {}, level, limits, self.readable, **told)
        options: Any = {"seconds": self.timeout, "budget": self.max_seconds, "given": given}
        if not isinstance(sandbox, Level):
            return sandbox.running(modules, begin, of_tests, **options)
        server = pool.server(modules)
        template = None
        if of_tests is not None:
            template = pool.template(server, (id(server), repr(of_tests)), of_tests)
        return running(server, template, begin, **options)
