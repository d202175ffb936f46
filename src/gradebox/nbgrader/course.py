"""Read a course, its assignments and its steps from nbgrader's configuration."""

import contextlib
import fnmatch
import json
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator
from itertools import filterfalse
from pathlib import Path
from typing import Any

from traitlets import List, Unicode
from traitlets.config import Config, LoggingConfigurable

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader import preprocessors
    from nbgrader.apps.autogradeapp import AutogradeApp
    from nbgrader.converters import Autograde, GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import setenv

from gradebox.configuration import REPLACED
from gradebox.events import Event
from gradebox.files import digest, folders_in
from gradebox.nbgrader.cells import Unready, setting, settings
from gradebox.nbgrader.harmless import Harmless

VERSION = 15  # raised when the same submission may get another score, or another page, than before

OF_NO_MATTER = (  # sections of the configuration that change no score
    *("CourseDirectory", "Exchange", "NbGrader", "JupyterApp", "Application", "Gradebox"),
    *("ExchangeFactory", "GenerateFeedback", "FeedbackPage", "HTMLExporter"),
)


class Gradebox(LoggingConfigurable):
    """What a course may tell gradebox in ``nbgrader_config.py``."""

    folder = setting(Unicode(".gradebox"), "Where results are kept, in the course.")
    depends = setting(
        List(Unicode()), "Files and folders, such as a package, whose change asks to grade anew."
    )


class Notes(logging.Handler):
    """Gathers what happens to submissions, for each thread its own; and what nbgrader warns of."""

    _mine = threading.local()

    def emit(self, record: logging.LogRecord) -> None:
        """Gather one event."""
        if hasattr(self._mine, "events"):
            told = Event("message", fields={"text": record.getMessage()})
            self._mine.events.append(record.msg if isinstance(record.msg, Event) else told)

    @contextlib.contextmanager
    def gather(self) -> Iterator[list[Event]]:
        """Gather what happens in this thread."""
        self._mine.events = events = list[Event]()
        try:
            yield events
        finally:
            del self._mine.events


class Chain(threading.local):
    """nbgrader's steps as an application is configured, in their order; each thread has its own."""

    def __init__(self, app: AutogradeApp, assignment: str) -> None:
        self._assignment = assignment
        # its own: a hook is told the student there, and threads share the application
        self.directory = CourseDirectory(parent=app, root=app.coursedir.root)
        converter = self.converter = Autograde(coursedir=self.directory, parent=app)
        # both: an exporter takes no configuration from its parent
        self.exporter = converter.exporter_class(parent=converter, config=converter.config)
        self.sanitize = self._make(converter.sanitize_preprocessors)
        steps = self._make(converter.autograde_preprocessors)
        places = [n for n, step in enumerate(steps) if isinstance(step, preprocessors.Execute)]
        if len(places) != 1:
            expected = "one step that executes in c.Autograde.autograde_preprocessors"
            advice = "put nbgrader.preprocessors.Execute there"
            raise Unready(f"expected {expected}, got {len(places)}: {advice}")
        self.before, self.execute = steps[: places[0]], steps[places[0]]
        # once, and last: what no page may hold must not be there, whatever the configuration says
        after = [step for step in steps[places[0] + 1 :] if not isinstance(step, Harmless)]
        self.after = [*after, *self._make([Harmless])]
        # whether a course has added steps, which may open the gradebook themselves
        homes = {type(step).__module__.partition(".")[0] for step in self.after}
        self.has_strangers = not homes <= {"nbgrader", "nbconvert", "gradebox"}

    def _make(self, steps: Iterable[Any]) -> list[Any]:
        self.exporter._preprocessors = []
        replaced: dict[Any, str] = {}
        for name, ours in REPLACED.items():
            keys = f"nbgrader.preprocessors.{name}", getattr(preprocessors, name)
            replaced |= dict.fromkeys(keys, ours and f"gradebox.{ours}")
        for step in filter(None, dict.fromkeys(replaced.get(step, step) for step in steps)):
            self.exporter.register_preprocessor(step)
        return list(self.exporter._preprocessors)

    def resources(self, student: str, notebook: str, folder: Path, book: Any) -> Any:
        """Return what nbgrader passes to its preprocessors, with a gradebook that is open."""
        context = {"student": student, "assignment": self._assignment, "notebook": notebook}
        told: Any = {"unique_key": notebook, "output_files_dir": f"{notebook}_files"}
        told["nbgrader"] = context | {"db_url": self.directory.db_url}
        told |= {"metadata": {"name": notebook, "path": str(folder)}, "gradebook": book}
        return self.exporter._init_resources(told)

    def hook(self, name: str, student: str, notebooks: list[str]) -> None:
        """Call the function that the configuration gives for before or after a conversion."""
        self.directory.student_id, self.directory.assignment_id = student, self._assignment
        self.converter.notebooks = notebooks
        getattr(self.converter, f"run_{name}_convert_hook")()


class Course:
    """A course in a folder, and one of its assignments.

    A ``timeout`` or a ``sandbox`` takes the place of the configuration's value. A ``config`` that
    is not given is read from the folder.
    """

    notes = Notes(logging.WARNING)

    def __init__(
        self,
        root: Path,
        assignment: str,
        timeout: int | None = None,
        config: Config | None = None,
        sandbox: str | None = None,
    ) -> None:
        if config is None:
            self._app = AutogradeApp(raise_config_file_errors=True)
            try:
                with contextlib.chdir(root):
                    self._app.initialize([])
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise Unready(f"correct nbgrader_config.py: {why}") from error
        else:
            self._app = AutogradeApp(config=config)
            self._app.coursedir = CourseDirectory(parent=self._app, root=str(root))
        if sandbox is not None:
            self._app.config.WarmExecute.sandbox = sandbox
        if timeout is not None:
            self._app.config.Execute.timeout = self._app.config.WarmExecute.timeout = timeout
        for log in (self._app.log, logging.getLogger("traitlets")):
            log.handlers, log.propagate = [self.notes], False
        self.assignment = assignment
        self.directory: CourseDirectory = self._app.coursedir
        self.url, self.course_id = str(self.directory.db_url), str(self.directory.course_id)
        self.root = Path(self.directory.root)
        self.source = self.folder("source", ".")  # the instructor's version
        self.gradebox = Gradebox(parent=self._app)
        self.store = self.root / self.gradebox.folder  # where results are kept
        # the sections of the configuration that scores depend on
        self.config = {k: v for k, v in self._app.config.items() if k not in OF_NO_MATTER}
        self.chain = Chain(self._app, assignment)  # nbgrader's steps

    def folder(self, step: str, student: str) -> Path:
        """Return a student's folder in one of nbgrader's steps: ``submitted`` or ``autograded``."""
        name = getattr(self.directory, f"{step}_directory")
        return Path(os.path.normpath(self.directory.format_path(name, student, self.assignment)))

    def students(self, wildcards: Collection[str] = ("*",)) -> list[str]:
        """Return who handed in something, sorted, of those whose names match."""
        found = folders_in(self.directory, self.directory.submitted_directory, self.assignment)
        names = found.keys() - self.directory.student_id_exclude.split(",")
        return sorted(n for n in names if any(fnmatch.fnmatchcase(n, each) for each in wildcards))

    def release_steps(self) -> list[Any]:
        """Return nbgrader's steps that make a release, up to that which enters it."""
        converter = GenerateAssignment(coursedir=self.directory, parent=self._app)
        exporter = converter.exporter_class(parent=converter, config=converter.config)
        exporter._preprocessors = []
        for step in converter.preprocessors:
            name = str(getattr(step, "__name__", step)).rpartition(".")[2]
            if name == "SaveCells":
                break
            if name not in ("InstantiateTests", "ComputeChecksums", "CheckCellMetadata"):
                exporter.register_preprocessor(step)
        return list(exporter._preprocessors)

    def files_in(self, folder: Path) -> dict[str, Path]:
        """Return the files in a folder that nbgrader copies, by their place in it."""
        patterns, paths = [*self.directory.ignore, "*.ipynb"], list[Path]()
        is_ignored = re.compile("|".join(map(fnmatch.translate, patterns))).match
        for here, folders, names in os.walk(folder):
            folders[:] = filterfalse(is_ignored, folders)
            paths += (Path(here, name) for name in filterfalse(is_ignored, names))
        # with the slashes of every other place where files are named, and of other machines
        return {path.relative_to(folder).as_posix(): path for path in sorted(paths)}

    def basis(self, sources: str) -> str:
        """Return the checksum of all that the scores of a class are made from, beside its work."""
        chain = self.chain
        depends = [self.root / name for name in self.gradebox.depends]
        paths = [path for each in depends for path in (each, *sorted(each.rglob("*")))]
        files = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
        # all of the instructor's files: a dry run has those that no submission gets, too
        files += [*sorted(self.source.glob("*.ipynb")), *self.files_in(self.source).values()]
        config = json.dumps(self.config, sort_keys=True, default=_name)
        steps = [_name(type(step)) for step in [*chain.before, chain.execute, *chain.after]]
        parts = [str(VERSION), sys.version, self.assignment, sources, config, *steps]
        parts += [*settings(chain.execute), json.dumps(packages(), sort_keys=True)]
        contents = (part for path in files for part in (path.name, path.read_bytes()))
        return digest([*parts, *contents])


def autograding() -> contextlib.AbstractContextManager[None]:
    """Let notebooks see in their environment that they are graded, as with nbgrader."""
    return setenv(NBGRADER_EXECUTION="autograde")


def packages() -> dict[str, str]:
    """Return the versions of the installed packages, by name, as the names of folders tell them."""
    folders = (path.glob("*.dist-info") for path in map(Path, reversed(sys.path)) if path.is_dir())
    names = [path.stem for paths in folders for path in paths]
    return {name: version for name, _, version in (stem.partition("-") for stem in names)}


def _name(value: Any) -> str:
    """Return a text for a value of the configuration that is the same in every run."""
    definition = value if hasattr(value, "__qualname__") else type(value)
    return f"{definition.__module__}.{definition.__qualname__}"
