"""A course as nbgrader's configuration tells it, and nbgrader's steps, made once and used often."""

import contextlib
import fnmatch
import glob
import json
import logging
import os
import re
import shutil
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from traitlets import List, Unicode
from traitlets.config import Config, LoggingConfigurable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader.apps.autogradeapp import AutogradeApp
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.nbgraderformat import MetadataValidator
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        DeduplicateIds,
        Execute,
        OverwriteCells,
        SaveAutoGrades,
    )
    from nbgrader.utils import find_all_files

from gradebox.execute import WarmExecute
from gradebox.rebuild import Rebuild, Recognize
from gradebox.scores import SaveScores
from gradebox.store import digest

VERSION = 7
"""Raised when the same submission may get another score, or another page, than before."""

OF_NO_MATTER = (
    *("CourseDirectory", "Exchange", "NbGrader", "JupyterApp", "Application", "Gradebox"),
    *("ExchangeFactory", "GenerateFeedback", "FeedbackPage", "HTMLExporter"),
)
"""Sections of the configuration that change no score."""


class Gradebox(LoggingConfigurable):
    """What a course may tell gradebox in ``nbgrader_config.py``."""

    folder = Unicode(
        ".gradebox", help="Where results of executions are kept, below the course's folder."
    ).tag(config=True)
    depends = List(
        Unicode(),
        help="Files and folders, such as a package of the course, whose change asks to grade anew.",
    ).tag(config=True)


class Notes(logging.Handler):
    """Gathers what nbgrader warns of, apart for each thread."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._mine = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Gather one warning."""
        if hasattr(self._mine, "told"):
            self._mine.told.append(record.getMessage())

    @contextlib.contextmanager
    def gather(self) -> Iterator[list[str]]:
        """Gather what this thread is warned of."""
        told: list[str] = []
        self._mine.told = told
        try:
            yield told
        finally:
            del self._mine.told


class Course:
    """A course, and one of its assignments.

    Parameters
    ----------
    root : Path
        The folder with ``nbgrader_config.py``.
    assignment : str
        The assignment.
    timeout : int, optional
        Seconds that a cell may run; the configuration's value when not given.
    config : Config, optional
        The configuration; when not given, it is read from the folder.
    """

    notes = Notes()

    def __init__(
        self,
        root: Path,
        assignment: str,
        timeout: int | None = None,
        config: Config | None = None,
    ) -> None:
        if config is None:
            with contextlib.chdir(root):
                self._app = AutogradeApp()
                self._app.initialize([])
        else:
            self._app = AutogradeApp(config=config)
            self._app.coursedir = CourseDirectory(parent=self._app, root=str(root))
        for log in (self._app.log, logging.getLogger("traitlets")):
            log.handlers, log.propagate = [self.notes], False
        self.assignment, self.timeout = assignment, timeout
        self.directory: CourseDirectory = self._app.coursedir
        self.root = Path(self.directory.root)
        self.gradebox = Gradebox(parent=self._app)

    @property
    def url(self) -> str:
        """Return the address of the gradebook."""
        return str(self.directory.db_url)

    @property
    def course_id(self) -> str:
        """Return the name of the course."""
        return str(self.directory.course_id)

    @property
    def store(self) -> Path:
        """Return where results are kept."""
        return self.root / self.gradebox.folder

    @property
    def config(self) -> dict[str, Any]:
        """Return the sections of the configuration that scores depend on."""
        return {k: v for k, v in self._app.config.items() if k not in OF_NO_MATTER}

    def submitted(self, student: str) -> Path:
        """Return the folder that a student handed in."""
        return self._path(self.directory.submitted_directory, student)

    def autograded(self, student: str) -> Path:
        """Return the folder of the graded submission of a student."""
        return self._path(self.directory.autograded_directory, student)

    @property
    def source(self) -> Path:
        """Return the folder of the instructor's version."""
        return self._path(self.directory.source_directory, ".")

    def _path(self, step: str, student: str) -> Path:
        return Path(os.path.normpath(self.directory.format_path(step, student, self.assignment)))

    def students(self, wanted: Iterable[str] = ()) -> list[str]:
        """Return who handed in something, sorted; only those wanted, where any are named."""
        step, name = self.directory.submitted_directory, self.assignment
        pattern = self.directory.format_path(step, "(?P<student>.*)", re.escape(name), escape=True)
        wild = self.directory.directory_structure.format(
            nbgrader_step=step, student_id="*", assignment_id=glob.escape(name)
        )
        # not Path.glob: the structure may be absolute
        folders = glob.glob(os.path.join(glob.escape(str(self.root)), wild))  # noqa: PTH118, PTH207
        found = (re.fullmatch(pattern, folder) for folder in folders)
        names = {match["student"] for match in found if match}
        names -= set(self.directory.student_id_exclude.split(","))
        patterns = list(wanted) or ["*"]
        return sorted(
            name for name in names if any(fnmatch.fnmatchcase(name, one) for one in patterns)
        )

    def warn(self, text: str) -> None:
        """Note something for the instructor, as nbgrader's own warnings are noted."""
        self._app.log.warning(text)

    def chain(self) -> "Chain":
        """Return nbgrader's steps, for the use of one thread."""
        return Chain(self._app, self.root, self.timeout)

    def source_files(self, chain: "Chain") -> dict[str, Path]:
        """Return the files that stand beside the instructor's notebooks, by their place."""
        excluded = set(chain.converter.exclude_overwriting.get(self.assignment, []))
        found = self.files_in(self.source)
        return {name: path for name, path in found.items() if name not in excluded}

    def files_in(self, folder: Path) -> dict[str, Path]:
        """Return the files in a folder that nbgrader copies, by their place in it."""
        paths = find_all_files(str(folder), [*self.directory.ignore, "*.ipynb"])
        return {os.path.relpath(path, folder): Path(path) for path in sorted(paths)}

    def basis(self, chain: "Chain", sources: str) -> str:
        """Return the checksum of all that the scores of a class are made from, beside its work."""
        files = [path for one in self.gradebox.depends for path in _files(self.root / one)]
        # all of the instructor's files: the trial has them, even if a submission does not get them
        files += [*sorted(self.source.glob("*.ipynb")), *self.files_in(self.source).values()]
        parts = [
            str(VERSION),
            sys.version,
            self.assignment,
            sources,
            json.dumps(self.config, sort_keys=True, default=_name),
            json.dumps([_name(type(step)) for step in [*chain.before, *chain.after]]),
            json.dumps([_name(type(chain.execute)), chain.limits], default=str),
            json.dumps(packages(), sort_keys=True),
        ]
        return digest([*parts, *(content for path in files for content in _told(path))])


def packages() -> dict[str, str]:
    """Return the versions of the installed packages, by name.

    The names of the folders tell them; to read the metadata of hundreds takes a while.
    """
    folders = (path.glob("*.dist-info") for path in map(Path, reversed(sys.path)) if path.is_dir())
    names = [path.stem for found in folders for path in found]
    return {name: version for name, _, version in (one.partition("-") for one in names)}


def _told(path: Path) -> list[str | bytes]:
    return [path.name, path.read_bytes()]


def _files(place: Path) -> list[Path]:
    found = [place] if place.is_file() else sorted(place.rglob("*"))
    return [path for path in found if path.is_file() and "__pycache__" not in path.parts]


def _name(value: Any) -> str:
    """Return a text for a value of the configuration that is the same in every run."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


class _Validator(MetadataValidator):  # type: ignore[misc]
    """nbgrader's look at the metadata of a cell, once for all cells that have the same."""

    def __init__(self) -> None:
        super().__init__()
        self._valid: set[str] = set()

    def validate_cell(self, cell: Any) -> None:
        """Raise unless the metadata are as they should be."""
        about = cell.metadata.get("nbgrader")
        if about is None:
            return
        name = json.dumps([cell.cell_type, about], sort_keys=True, default=repr)
        if name not in self._valid:
            super().validate_cell(cell)
            if about.get("cell_type") == cell.cell_type and len(self._valid) < 10_000:
                self._valid.add(name)


class _Check(CheckCellMetadata):  # type: ignore[misc]
    """nbgrader's check of the metadata, that does not read its schemas again each time."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Raise unless all cells are as they should be."""
        if not hasattr(self, "validator"):
            self.validator = _Validator()
        self.validator.validate_nb(nb)
        return nb, resources


_OURS = {
    DeduplicateIds: Recognize,
    OverwriteCells: Rebuild,
    Execute: WarmExecute,
    CheckCellMetadata: _Check,
    SaveAutoGrades: SaveScores,
    "nbgrader.preprocessors.DeduplicateIds": Recognize,
    "nbgrader.preprocessors.OverwriteCells": Rebuild,
    "nbgrader.preprocessors.Execute": WarmExecute,
    "nbgrader.preprocessors.SaveAutoGrades": SaveScores,
    "nbgrader.preprocessors.CheckCellMetadata": _Check,
}


class Chain:
    """nbgrader's preprocessors as configured, in the order of its two conversions.

    Parameters
    ----------
    app : AutogradeApp
        nbgrader's application, which holds the configuration.
    root : Path
        The course's folder.
    timeout : int, optional
        Seconds that a cell may run.
    """

    def __init__(self, app: AutogradeApp, root: Path, timeout: int | None = None) -> None:
        self.directory = CourseDirectory(parent=app, root=str(root))
        self.converter = Autograde(coursedir=self.directory, parent=app)
        made = self.converter.exporter_class
        # both: an exporter takes no configuration from its parent
        self.exporter = made(parent=self.converter, config=self.converter.config)
        self.sanitize = self._make(self.converter.sanitize_preprocessors)
        steps = self._make(self.converter.autograde_preprocessors)
        places = [place for place, step in enumerate(steps) if isinstance(step, Execute)]
        if len(places) != 1:
            raise ValueError(
                "expected one step that executes in c.Autograde.autograde_preprocessors, "
                f"got {len(places)}: put nbgrader.preprocessors.Execute there"
            )
        place = places[0]
        self.before, self.execute, self.after = steps[:place], steps[place], steps[place + 1 :]
        if timeout is not None:
            self.execute.timeout = timeout

    def _make(self, steps: Iterable[Any]) -> list[Any]:
        """Return the preprocessors, kernels replaced by forks of a warm process."""
        self.exporter._preprocessors = []
        for step in steps:
            self.exporter.register_preprocessor(_OURS.get(step, step))
        return list(self.exporter._preprocessors)

    @property
    def limits(self) -> dict[str, Any]:
        """Return what cells are allowed, by name."""
        wanted = self.execute.traits(config=True)
        skipped = {"kernel_manager_class", "shutdown_kernel", "error_on_timeout"}
        return {name: str(getattr(self.execute, name)) for name in wanted if name not in skipped}

    def resources(self, student: str, assignment: str, notebook: str, folder: Path) -> Any:
        """Return what nbgrader tells its preprocessors."""
        about = {"student": student, "assignment": assignment, "notebook": notebook}
        return self.exporter._init_resources(
            {
                "unique_key": notebook,
                "output_files_dir": f"{notebook}_files",
                "nbgrader": about | {"db_url": self.directory.db_url},
                "metadata": {"name": notebook, "path": str(folder)},
            }
        )

    def run(self, steps: list[Any], nb: Any, resources: Any) -> tuple[Any, Any]:
        """Apply preprocessors."""
        for step in steps:
            nb, resources = step(nb, resources)
        return nb, resources

    def hook(self, name: str, student: str, assignment: str, notebooks: list[str]) -> None:
        """Call the function that the configuration gives for before or after a conversion."""
        self.directory.student_id, self.directory.assignment_id = student, assignment
        self.converter.notebooks = notebooks
        getattr(self.converter, f"run_{name}_convert_hook")()


def copy_files(files: dict[str, Path], folder: Path) -> None:
    """Copy files to their places in a folder."""
    for name, path in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copy(path, place)
