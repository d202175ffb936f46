"""Where the parts of the course lie, as ``nbgrader_config.py`` tells it."""

import difflib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from traitlets.config.loader import Config, PyFileConfigLoader

from tools.terminal import ToolError

ROOT = Path(__file__).resolve().parent.parent
LAB = "lab"  # the name of an assignment's second notebook, where it has one
RECORD = "record.json"  # what a run leaves beside its notebook, for grading
RESULTS = (RECORD, "*.pt")
"""The names of files that runs leave: a record, and the checkpoints from which runs resume."""


def _folder(owner: str, name: str, content: str) -> Path:
    """Return a property of a course: the path of one of the folders that nbgrader names."""

    def path(course: "Course") -> Path:
        return course.root / str(course.config[owner][name])

    return property(path, doc=f"Return the folder of {content}.")  # type: ignore[return-value]


@dataclass(frozen=True)
class Course:
    """The folders of one course, whose root holds ``nbgrader_config.py``."""

    root: Path = ROOT

    @cached_property
    def config(self) -> Config:
        """Return nbgrader's configuration of this course."""
        file = self.root / "nbgrader_config.py"
        if not file.exists():
            problem = f"there is no {file.name} in {self.root}"
            raise ToolError(problem, "run the command in the course's folder")
        loaded: Config = PyFileConfigLoader(file.name, path=str(self.root)).load_config()
        return loaded

    @property
    def build(self) -> Path:
        """Return the folder of all that is made and not committed."""
        return self.root / "build"

    solutions = _folder("CourseDirectory", "source_directory", "the instructor's notebooks")
    exercises = _folder("CourseDirectory", "release_directory", "the released notebooks")
    submitted = _folder("CourseDirectory", "submitted_directory", "the collected submissions")
    autograded = _folder("CourseDirectory", "autograded_directory", "what was executed and graded")
    feedback = _folder("CourseDirectory", "feedback_directory", "the pages that go to students")
    exchange = _folder("Exchange", "root", "what passes between instructor and students")
    work = _folder("Exchange", "assignment_dir", "the notebooks on which students work")

    def notebooks(self, topic: str) -> list[str]:
        """Return the names of an assignment's notebooks: the topic's own, then the others."""
        names = {path.stem for path in (self._assignments / topic).glob("*.ipynb")}
        return sorted(names, key=lambda name: (name != topic, name))

    def source(self, topic: str, name: str | None = None) -> Path:
        """Return an instructor's notebook: the topic's own, or the one named."""
        return self.solutions / topic / f"{name or topic}.ipynb"

    def released(self, topic: str, name: str | None = None) -> Path:
        """Return a students' notebook: the topic's own, or the one named."""
        return self.exercises / topic / f"{name or topic}.ipynb"

    def executed(self, student: str, topic: str) -> dict[str, Path]:
        """Return the notebooks of a submission that were executed and graded, by name."""
        folder = self.autograded / student / topic
        paths = {name: folder / f"{name}.ipynb" for name in self.notebooks(topic)}
        return {name: path for name, path in paths.items() if path.is_file()}

    def submitters(self, topic: str) -> list[str]:
        """Return who handed in an assignment, sorted."""
        folders = self.submitted.glob(f"*/{topic}")
        return sorted(path.parent.name for path in folders if path.is_dir())

    def topics(self) -> list[str]:
        """Return the topics that have an assignment, in the order of the book."""
        paths = self._assignments.glob("*/*.ipynb")
        names = {path.parent.name for path in paths if path.stem == path.parent.name}
        # of book/erm/risk, the topic is erm
        book = [page.split("/")[1] for page in contents(self.root) if "/" in page]
        return sorted(names, key=lambda topic: ((*book, topic).index(topic), topic))

    @property
    def _assignments(self) -> Path:
        """Return the folder that tells which assignments there are."""
        return self.solutions if self.has_solutions else self.exercises

    @property
    def has_solutions(self) -> bool:
        """Return whether this is an instructor's copy of the course, and not a student's."""
        return self.solutions.is_dir()

    def need_solutions(self) -> None:
        """Raise in a student's copy of the course, which has nothing to release or to grade."""
        if not self.has_solutions:
            problem = f"there is no {self.solutions.name}/ here: this is a student's copy"
            remedy = "`make lab` opens the assignments; get the whole repository to grade"
            raise ToolError(problem, remedy)

    def choose(self, names: list[str], needed_by: str = "") -> list[str]:
        """Return the topics named; or all when none is, unless a command needs one."""
        available = self.topics()
        if not available:
            remedy = "write one as solutions/TOPIC/TOPIC.ipynb, or get the whole repository"
            problem = f"there is no assignment in {self.solutions} or {self.exercises}"
            raise ToolError(problem, remedy)
        for name in names:
            if name not in available:
                near = difflib.get_close_matches(name, available, n=1)
                remedy = f"did you mean {near[0]!r}? " if near else ""
                remedy += f"the assignments are {', '.join(available)}"
                raise ToolError(f"there is no assignment {name!r}", remedy)
        if needed_by and not names:
            question = f"which assignment? There are {', '.join(available)}"
            raise ToolError(question, f"{needed_by} A={available[0]}")
        return names or available

    def prepare(self) -> None:
        """Make the folders that nbgrader expects to exist."""
        for folder in (self.build, self.submitted, self.autograded, self.feedback, self.work):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.exchange.exists():  # one that a class shares has its owner and its rights
            self.exchange.mkdir(parents=True)
            # nbgrader's own rule: whoever may submit must be able to write here.
            self.exchange.chmod(0o777)


HERE = Course()  # the copy of the course to which this file belongs, on which the commands work


def is_result(path: Path) -> bool:
    """Return whether a file was left by a run, and belongs to who ran it."""
    return any(path.match(pattern) for pattern in RESULTS)


def configuration(root: Path) -> dict[str, Any]:
    """Return what ``_config.yml`` says: the title of the course, and Sphinx's settings."""
    return dict(yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8")))


def file_name(root: Path) -> str:
    """Return the title of the course as the name of a file."""
    return re.sub(r"\W+", "-", configuration(root)["title"].casefold()).strip("-")


def contents(root: Path) -> list[str]:
    """Return the pages that ``_toc.yml`` names, without their suffixes, in order."""
    file = root / "_toc.yml"
    return files_below(yaml.safe_load(file.read_text(encoding="utf-8"))) if file.exists() else []


def files_below(node: Any) -> list[str]:
    """Return the pages below a node of the table of contents, in order."""
    if isinstance(node, dict):
        pages = [str(node[key]) for key in ("root", "file") if key in node]
        return pages + files_below([*node.values()])
    return [page for item in node for page in files_below(item)] if isinstance(node, list) else []
