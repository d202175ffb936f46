"""nbgrader's way to execute a notebook, in a fork of a warm process instead of a new kernel.

In ``nbgrader_config.py``::

    c.Autograde.autograde_preprocessors = [
        "gradebox.execute.WarmExecute",
        "nbgrader.preprocessors.IgnorePattern",
        "nbconvert.preprocessors.ClearMetadataPreprocessor",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    c.WarmExecute.imports = ["numpy", "torch"]
"""

import os
import threading
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import output_from_msg
from nbgrader.preprocessors import Execute
from traitlets import Bool, Enum, Integer, List, Unicode, default

from gradebox.seal import Level, Limits, choose
from gradebox.warm import Died, Zygote

_ZYGOTES: dict[tuple[str, ...], Zygote] = {}
_STARTING = threading.Lock()


class WarmExecute(Execute):  # type: ignore[misc]
    """Execute each notebook in a process of its own, forked from one that has imported already.

    The limits are nbgrader's: ``timeout`` for each cell, ``interrupt_on_timeout``. Where nbgrader
    gives up a whole notebook because its kernel died, the cells before keep their marks here.
    """

    imports = List(
        Unicode(), help="Modules to import once, before the first notebook is executed."
    ).tag(config=True)

    sealed = Enum(
        ["auto", *map(str, Level)],
        default_value="auto",
        help="How notebooks are sealed: 'namespaces', 'landlock', 'none', or 'auto' for the "
        "strongest that the machine offers; 'python -m gradebox.seal' prints it.",
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
        """Execute all code cells and keep what they show."""
        folder = Path(resources.get("metadata", {}).get("path") or ".").resolve()
        environment = {
            k: v for k, v in os.environ.items() if k.startswith("NBGRADER") or k in self.environment
        }
        level = choose(self.sealed, self.allow_unsealed)
        zygote = _zygote(tuple(self.imports))
        why = ""
        with zygote.notebook(
            folder, environment, level=level, limits=self._limits(), readable=self.readable
        ) as process:
            if process.sealed.level is Level.NONE:
                self.log.warning("not sealed: this notebook can do whatever you can")
            else:
                self.log.debug("sealed by %s", process.sealed)
            for cell in nb.cells:
                if cell.cell_type != "code" or not cell.source.strip():
                    continue
                cell.outputs, cell.execution_count = [], None
                if not why:
                    try:
                        shown, late = process.run(cell.source, self.timeout)
                        _keep(cell, shown)
                        if late:
                            cell.outputs.append(_error(**self.error_on_timeout))
                        continue
                    except Died as death:
                        why = f"not executed, because an earlier cell killed Python: {death}"
                        cell.outputs.append(_error("DeadKernelError", str(death)))
                        continue
                cell.outputs.append(_error("DeadKernelError", why))
        return nb, resources

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


def _zygote(imports: tuple[str, ...]) -> Zygote:
    """Return the warm process of these imports, made when it is first asked for."""
    with _STARTING:  # threads share it
        found = _ZYGOTES.get(imports)
        if found is None or not found.alive:
            found = _ZYGOTES[imports] = Zygote(imports)
        return found


def _keep(cell: NotebookNode, shown: dict[str, Any]) -> None:
    """Write what a cell showed into it."""
    cell.execution_count = shown.get("execution_count")
    for output in shown.get("outputs", []):
        output = dict(output)
        output.pop("display_id", None)
        kind = output.pop("output_type")
        message = {"header": {"msg_type": kind}, "content": output}
        cell.outputs.append(output_from_msg(message))  # type: ignore[no-untyped-call]


def _error(ename: str, evalue: str, traceback: list[str] | None = None) -> NotebookNode:
    told = traceback or [f"\x1b[0;31m{ename}\x1b[0m: {evalue}"]
    return from_dict(  # type: ignore[no-untyped-call]
        {"output_type": "error", "ename": ename, "evalue": evalue, "traceback": told}
    )
