"""Call nbgrader from Python: quietly, for one course, with failures told in one sentence."""

import copy
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.orm import joinedload, selectinload, undefer
from traitlets.config import Config

import gradebox
from tools.fingerprints import write_if_changed
from tools.layout import Course
from tools.terminal import ToolError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader.api import (
        Assignment,
        Comment,
        Grade,
        Gradebook,
        MissingEntry,
        Student,
        SubmittedAssignment,
        SubmittedNotebook,
    )
    from nbgrader.apps.api import NbGraderAPI


SHARE = str(Path(gradebox.__file__).parent / "share")
"""Where gradebox keeps templates of nbconvert."""


def environment() -> dict[str, str]:
    """Return the environment in which nbgrader and its kernels run."""
    programs = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    shared = os.environ.get("JUPYTER_PATH", "")
    return {
        # nbgrader calls alembic by name, and .venv need not be activated.
        "PATH": path if path.startswith(programs) else programs + os.pathsep + path,
        # A kernel of the same name elsewhere on the machine is not ours.
        "JUPYTER_PREFER_ENV_PATH": "1",
        # The formgrader's pages load no MathJax: their formulas are typeset already.
        "JUPYTER_PATH": shared if SHARE in shared else SHARE + os.pathsep * bool(shared) + shared,
        # Small arrays gain nothing from threads.
        "OMP_NUM_THREADS": "1",
    }


@cache
def _empty_gradebook(course_id: str) -> bytes:
    """Return a gradebook without entries; nbgrader takes seconds to make one."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Gradebook(f"sqlite:///{folder}/gradebook.db", course_id).close()
        return Path(folder, "gradebook.db").read_bytes()


class Failed(ToolError):
    """An nbgrader action did not succeed; ``log`` holds all that it said."""

    def __init__(self, action: str, log: str) -> None:
        super().__init__(f"{action}: {_reason(log)}", "see the reason above, then run it again")
        self.action, self.reason, self.log = action, _reason(log), log

    def __reduce__(self) -> tuple[type["Failed"], tuple[str, str]]:
        """Come back whole from another process."""
        return type(self), (self.action, self.log)


class Backend:
    """nbgrader for one course.

    Parameters
    ----------
    course : Course
        The course.
    timeout : int, optional
        Seconds that a cell may run; the configuration's value when not given.
    changes : Config, optional
        Further changes of the configuration.
    """

    def __init__(
        self, course: Course, timeout: int | None = None, changes: Config | None = None
    ) -> None:
        course.prepare()
        config = copy.deepcopy(course.config)
        if timeout is not None:
            config.Execute.timeout = timeout
        config.merge(changes or Config())
        os.environ.update(environment())
        directory: Any = config.CourseDirectory
        url = str(directory.db_url)
        if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
            empty = _empty_gradebook(str(directory.course_id))
            write_if_changed(Path(url.removeprefix("sqlite:///")), empty)
        self.course = course
        self.api = NbGraderAPI(config=config)

    def _do(
        self, action: str, call: Callable[..., dict[str, Any]], *names: str, **more: Any
    ) -> str:
        """Run one action of nbgrader and return its log."""
        here = Path.cwd()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = call(*names, **more)
            finally:
                os.chdir(here)
        log = str(result.get("log", ""))
        if not result["success"]:
            error = str(result.get("error", ""))
            if error.rstrip().endswith("KeyboardInterrupt"):
                raise KeyboardInterrupt
            raise Failed(action, f"{error}\n{log}")
        return log

    def generate(self, topic: str) -> str:
        """Make the students' notebook and record its cells in the gradebook."""
        return self._do(f"{topic} cannot be released", self.api.generate_assignment, topic)

    def publish(self, topic: str) -> str:
        """Put the released notebook where students fetch it."""
        return self._do(f"{topic} cannot be published", self.api.release_assignment, topic)

    def collect(self, topic: str) -> str:
        """Take what students submitted to the exchange."""
        return self._do(f"{topic} cannot be collected", self.api.collect, topic)

    def autograde(self, topic: str, student: str) -> str:
        """Execute and score one submission."""
        return self._do(f"{student}'s {topic} fails", self.api.autograde, topic, student)

    def make_feedback(self, topic: str, student: str) -> str:
        """Write the page that tells a student what each cell earned."""
        return self._do(
            f"no feedback on {student}'s {topic}", self.api.generate_feedback, topic, student
        )

    def release_feedback(self, topic: str) -> dict[str, Path]:
        """Put pages where students fetch them; return the folders of those that cannot be."""
        self._do(f"the pages of {topic} cannot be released", self.api.release_feedback, topic)
        from gradebox.exchange import left_out

        directory = self.api.coursedir
        directory.assignment_id, directory.student_id = topic, "*"
        return left_out(directory)

    @contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open the gradebook, and close it again."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Gradebook(self.api.coursedir.db_url, self.api.course_id) as book:
                yield book


SCORES = (
    *("code_score", "max_code_score", "written_score", "max_written_score"),
    *("task_score", "max_task_score"),
)


def submissions(book: Any, topics: Sequence[str]) -> list[Any]:
    """Return the graded submissions of the assignments, with all their scores and comments.

    A handful of queries reads them all; nbgrader's objects would ask for each score by itself.
    """
    notebook = selectinload(SubmittedAssignment.notebooks)
    query = (
        book.db.query(SubmittedAssignment)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name.in_(topics))
        .options(
            joinedload(SubmittedAssignment.student),
            joinedload(SubmittedAssignment.assignment),
            notebook.joinedload(SubmittedNotebook.notebook),
            notebook.selectinload(SubmittedNotebook.grades).joinedload(Grade.cell),
            notebook.selectinload(SubmittedNotebook.comments).joinedload(Comment.cell),
            *(undefer(getattr(SubmittedAssignment, name)) for name in SCORES),
        )
    )
    return [submission for submission in query.all() if submission.notebooks]


def _reason(log: str) -> str:
    """Return the line of a log that says why: an exception, if it is not nbgrader's own."""
    lines = [line.strip() for line in log.splitlines()]
    named = [
        line
        for line in lines
        if line.split(":")[0].rsplit(".")[-1].endswith(("Error", "Exception", "Missing"))
        and ": " in line
        and "NbGraderException" not in line
        and not line.startswith("[")
    ]
    errors = [line.split("] ", 1)[-1] for line in lines if line.startswith("[ERROR]")]
    return (named or errors or [line for line in lines if line] or ["it gave no reason"])[0][:300]


__all__ = ["Backend", "Failed", "MissingEntry", "Student", "submissions"]
