"""Make nbgrader's preprocessors as configured, once for many notebooks."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbgrader import preprocessors
from nbgrader.apps.autogradeapp import AutogradeApp
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute
from traitlets.utils.importstring import import_item

from gradebox.configuration import REPLACED
from gradebox.nbgrader.cells import Unready
from gradebox.nbgrader.harmless import Harmless
from gradebox.nbgrader.steps import CheckMetadata, LatePenalties, RestoreKernelspec

_SAME = {
    "OverwriteKernelspec": RestoreKernelspec,
    "CheckCellMetadata": CheckMetadata,
    "AssignLatePenalties": LatePenalties,
}
"""nbgrader's steps that do the same here in less time."""


def _in_place() -> dict[Any, type]:
    """Return what takes the place of nbgrader's steps, which a configuration names or imports."""
    ours = _SAME | {theirs: import_item(f"gradebox.{name}") for theirs, name in REPLACED.items()}
    return {
        theirs: step
        for name, step in ours.items()
        for theirs in (f"nbgrader.preprocessors.{name}", getattr(preprocessors, name))
    }


class Chain:
    """nbgrader's preprocessors as configured, in the order of its two conversions.

    The application holds the configuration. A ``timeout`` takes the place of the one there.
    """

    def __init__(self, app: AutogradeApp, root: Path, timeout: int | None = None) -> None:
        self.directory = CourseDirectory(parent=app, root=str(root))
        self.converter = Autograde(coursedir=self.directory, parent=app)
        exporter_class = self.converter.exporter_class
        # both: an exporter takes no configuration from its parent
        self.exporter = exporter_class(parent=self.converter, config=self.converter.config)
        self.sanitize = self._make(self.converter.sanitize_preprocessors)
        steps = self._make(self.converter.autograde_preprocessors)
        positions = [position for position, step in enumerate(steps) if isinstance(step, Execute)]
        if len(positions) != 1:
            raise Unready(
                "expected one step that executes in c.Autograde.autograde_preprocessors, "
                f"got {len(positions)}: put nbgrader.preprocessors.Execute there"
            )
        position = positions[0]
        self.before, self.execute = steps[:position], steps[position]
        # once, and last: what no page may hold must not be there, whatever the configuration says
        after = [step for step in steps[position + 1 :] if not isinstance(step, Harmless)]
        self.after = [*after, *self._make([Harmless])]
        if timeout is not None:
            self.execute.timeout = timeout

    def _make(self, steps: Iterable[Any]) -> list[Any]:
        """Return the preprocessors; notebooks are executed by a fork server, not by kernels."""
        self.exporter._preprocessors = []
        ours = _in_place()
        for step in steps:
            self.exporter.register_preprocessor(ours.get(step, step))
        return list(self.exporter._preprocessors)

    @property
    def has_strangers(self) -> bool:
        """Return whether a course has added steps, which may open the gradebook themselves."""
        homes = {type(step).__module__.partition(".")[0] for step in self.after}
        return not homes <= {"nbgrader", "nbconvert", "gradebox"}

    @property
    def limits(self) -> dict[str, Any]:
        """Return what cells are allowed, by name."""
        traits = self.execute.traits(config=True)
        skipped = {"kernel_manager_class", "shutdown_kernel", "error_on_timeout"}
        return {name: str(getattr(self.execute, name)) for name in traits if name not in skipped}

    def resources(
        self, student: str, assignment: str, notebook: str, folder: Path, book: Any
    ) -> Any:
        """Return what nbgrader passes to its preprocessors, with a gradebook that is open."""
        context = {"student": student, "assignment": assignment, "notebook": notebook}
        resources = self.exporter._init_resources(
            {
                "unique_key": notebook,
                "output_files_dir": f"{notebook}_files",
                "nbgrader": context | {"db_url": self.directory.db_url},
                "metadata": {"name": notebook, "path": str(folder)},
            }
        )
        resources["gradebook"] = book
        return resources

    def hook(self, name: str, student: str, assignment: str, notebooks: list[str]) -> None:
        """Call the function that the configuration gives for before or after a conversion."""
        self.directory.student_id, self.directory.assignment_id = student, assignment
        self.converter.notebooks = notebooks
        getattr(self.converter, f"run_{name}_convert_hook")()
