"""nbgrader's way to execute a notebook, in forks of a fork server instead of a new kernel.

A test cell runs in one of two ways: see :mod:`gradebox.nbgrader.dry_run`. Locked cells that give no
points, such as imports and helpers, run in the student's process and in that of the tests.
"""

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import Execute
from traitlets import Enum, Integer, List, Unicode

from gradebox.events import Event
from gradebox.nbgrader.cells import is_test, name_of, setting
from gradebox.nbgrader.dry_run import remembered
from gradebox.nbgrader.notebook_run import Run
from gradebox.nbgrader.plan import ISOLATED, WAYS, NotebookPlan, Plan, PlannedTest, planned
from gradebox.nbgrader.source_notebook import source_folder, source_of
from gradebox.sandbox.probe import choose
from gradebox.sandbox.seal import Level, Limits, NotSealed
from gradebox.workers import pool
from gradebox.workers.client import running
from gradebox.workers.protocol import Begin

PLACE = "'{assignment}' in it stands for the assignment."


class WarmExecute(Execute):  # type: ignore[misc]
    """Execute each notebook in a process of its own, forked from one that has imported already."""

    imports = setting(
        List(Unicode()),
        "Modules to import once, before the first notebook, besides those that the instructor's "
        f"cells import; one that does not exist is left out. {PLACE}",
    )
    banned = setting(
        List(Unicode()), f"Modules that notebooks cannot import, such as the answers. {PLACE}"
    )
    stubbed = setting(
        List(Unicode()),
        f"Modules of which notebooks get a stub that does nothing: those with the tests. {PLACE}",
    )
    prepare = setting(
        Unicode(),
        "Python that is run once before the first test, in the process from which those of the "
        f"tests are forked: it computes what is the same for all students. {PLACE}",
    )
    way = setting(
        Enum(["auto", *WAYS], default_value="auto"),
        "How test cells run: 'isolated' from the student's code, in a process that gets nothing of "
        "it but values; 'in-process', as in nbgrader, where a student can forge scores; or 'auto', "
        "cell by cell: isolated where that gives your own answers their full points. The metadata "
        'of a cell come first: "gradebox": {"way": "isolated"}.',
    )
    plan: Plan | None = None  # how the tests run; None while nothing has been found out
    sandbox = setting(
        Unicode("auto"),
        "How notebooks are sealed: by the Linux 'kernel', in the strongest way that it offers or "
        "in one of its ways, 'namespaces' or 'landlock'; by the sandbox of another distribution "
        "that is installed, by its name; by 'none'; or 'auto' for the first of these that is to be "
        "had. 'python -m gradebox.sandbox.probe' prints what the kernel offers. Only where the "
        "environment says GRADEBOX_ALLOW_UNSEALED=yes may nothing seal them.",
    )
    readable = setting(
        List(Unicode()),
        "Folders and files that notebooks may read besides Python, the system's programs and their "
        "own folder: data of the course. Never the solutions or other submissions.",
    )
    environment = setting(List(Unicode()), "Further environment variables that notebooks may see.")
    max_seconds = setting(
        Integer(600), "Seconds of own time of all cells together; then the notebook ends."
    )
    max_memory = setting(
        Integer(Limits.memory), "Bytes of memory that a notebook may use beyond its imports."
    )
    max_cpu = setting(Integer(Limits.cpu), "Seconds that each process may compute.")
    max_processes = setting(Integer(Limits.processes), "Processes and threads at one time.")
    max_files = setting(Integer(Limits.files), "Files that each process may have open.")
    max_file_size = setting(Integer(Limits.file_size), "Bytes of any file that is written.")
    max_disk = setting(Integer(Limits.disk), "Bytes of all files, with those handed in.")
    max_output = setting(Integer(Limits.output), "Bytes of text, and of other outputs, of a cell.")

    def preprocess(self, nb: NotebookNode, resources: Any, km: Any = None) -> tuple[Any, Any]:
        """Execute all code cells, and leave the scores of tests in ``resources["gradebox"]``."""
        folder = Path(resources.get("metadata", {}).get("path") or ".").resolve()
        context = resources.get("nbgrader", {})
        name, assignment = context.get("notebook", ""), context.get("assignment", "")
        if self.plan is None:
            self.plan = planned(remembered(self, source_folder(self, assignment), assignment))
        run = self.run(nb, folder, context, self.plan.get(name, {}))
        resources["gradebox"] = {"scores": run.scores}
        for event in run.events:
            self.log.warning(event)
        return nb, resources

    def run(
        self, nb: NotebookNode, folder: Path, context: dict[str, Any], plan: NotebookPlan
    ) -> Run:
        """Execute all code cells of a notebook, in a folder of its own, with tests as planned."""
        name, assignment = context.get("notebook", ""), context.get("assignment", "")
        source = source_folder(self, assignment)
        imports = [*self.imports, *pool.imported(source)]
        modules = pool.modules(assignment, imports, self.banned, self.stubbed, self.prepare)
        own = [*self.imports, *pool.imported(source, name)]
        try:
            sandbox = choose(self.sandbox, modules, own, self.config)
        except NotSealed as error:
            raise NotSealed(f"{name}: {error}") from error
        if sandbox is Level.NONE:
            self.log.warning(Event("not-sealed"))
        named = ("NBGRADER_EXECUTION", *self.environment)
        environment = {name: os.environ[name] for name in named if name in os.environ}
        if "student" in context:  # a dry run has none
            environment["GRADEBOX_STUDENT"] = str(context["student"])
        level = sandbox if isinstance(sandbox, Level) else Level.NONE
        limits = {each.name: getattr(self, f"max_{each.name}") for each in fields(Limits)}
        excluded = self.config.get("Autograde", {}).get("exclude_overwriting", {})
        excluded = excluded.get(assignment, [])
        files = (file for file in source.rglob("*") if file.suffix not in (".ipynb", ".pyc"))
        own = sorted({str(file.relative_to(source)) for file in files}.difference(excluded))
        begin = Begin(str(folder), environment, level, limits, [*self.readable], given=own)
        of_tests, tests = None, map(name_of, filter(is_test, nb.cells))
        if any(plan.get(test, PlannedTest()).way == ISOLATED for test in tests):
            place, barred = str(source if source.is_dir() else folder), [*modules[1], *modules[2]]
            of_tests = replace(begin, folder=place, of_tests=True, barred=barred, excluded=excluded)
        instructions = source_of(self, context)
        given = [each for each in instructions.given if self.skip_cells_with_tag not in each.tags]
        options: Any = {"seconds": self.timeout, "budget": self.max_seconds, "given": given}
        if isinstance(sandbox, Level):
            processes: Any = running(pool.server(modules), begin, of_tests, **options)
        else:
            processes = sandbox.running(modules, begin, of_tests, **options)
        with processes as notebook:
            run = Run(self, notebook, name, plan, instructions)
            run.execute(nb)
        return run
