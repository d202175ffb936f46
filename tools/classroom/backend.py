"""Call nbgrader from Python: quietly, for one course, with failures told in one sentence."""

import contextlib
import copy
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import joinedload, selectinload, undefer

import gradebox
from tools.fingerprints import write_if_changed
from tools.layout import Course
from tools.terminal import ToolError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from nbgrader import api, dbutil
    from nbgrader.api import Gradebook, MissingEntry, Student, SubmittedAssignment
    from nbgrader.apps.api import NbGraderAPI


REASONS = (
    r"^\s*+((?!\[|.*NbGraderException)[^:\n]*(?:Error|Exception|Missing): .*)$",
    r"^\s*\[ERROR\] (.*)$",
    r"^\s*(\S.*)$",
)
"""Lines of a log that say why nbgrader failed: first an exception that is not its own."""


def environment() -> dict[str, str]:
    """Return the environment in which nbgrader and its kernels run."""
    programs = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", "")
    shared = os.environ.get("JUPYTER_PATH", "")
    ours = str(Path(gradebox.__file__).parent / "share")  # templates of nbconvert
    return {
        # nbgrader calls alembic by name, and .venv need not be activated.
        "PATH": path if path.startswith(programs) else programs + os.pathsep + path,
        # A kernel of the same name elsewhere on the machine is not ours.
        "JUPYTER_PREFER_ENV_PATH": "1",
        # The formgrader's pages load no MathJax: their formulas are typeset already.
        "JUPYTER_PATH": shared if ours in shared else ours + os.pathsep * bool(shared) + shared,
        # Small arrays gain nothing from threads.
        "OMP_NUM_THREADS": "1",
    }


@cache
def _empty_gradebook(course_id: str) -> bytes:
    """Return a gradebook without entries.

    nbgrader would start a program to ask for its version, which takes a second.
    """
    from unittest.mock import patch

    from alembic.script import ScriptDirectory

    version = ScriptDirectory(dbutil.ALEMBIC_DIR).get_current_head()
    known = patch.object(api, "get_alembic_version", lambda: version)
    with TemporaryDirectory() as folder, warnings.catch_warnings(), known:
        warnings.simplefilter("ignore")
        Gradebook(f"sqlite:///{folder}/gradebook.db", course_id).close()
        return Path(folder, "gradebook.db").read_bytes()


class Backend:
    """nbgrader for one course; other places than those of its settings may be given."""

    def __init__(self, course: Course, **places: str) -> None:
        course.prepare()
        config = copy.deepcopy(course.config)
        os.environ.update(environment())
        directory: Any = config.CourseDirectory
        directory.update(places)
        scheme, sqlite, file = str(directory.db_url).partition("sqlite:///")
        if sqlite and not scheme and not Path(file).exists():
            write_if_changed(Path(file), _empty_gradebook(str(directory.course_id)))
        self.api = NbGraderAPI(config=config)

    def do(self, action: str, *names: str) -> None:
        """Run an action of nbgrader's on an assignment, or on a student's work."""
        with warnings.catch_warnings(), contextlib.chdir(Path.cwd()):  # nbgrader goes elsewhere
            warnings.simplefilter("ignore")
            result = getattr(self.api, action)(*names)
        if not result["success"]:
            error = str(result.get("error", ""))
            if error.rstrip().endswith("KeyboardInterrupt"):
                raise KeyboardInterrupt
            log = f"{error}\n{result.get('log', '')}"
            told = f"nbgrader cannot {action.replace('_', ' ')} for {', '.join(names)}"
            reasons = (re.search(pattern, log, re.MULTILINE) for pattern in REASONS)
            why = next((match[1].strip()[:300] for match in reasons if match), "it gave no reason")
            raise ToolError(f"{told}: {why}", "see the reason above, then run it again", log)

    @contextlib.contextmanager
    def gradebook(self) -> Iterator[Any]:
        """Open the gradebook, and close it again."""
        url = self.api.coursedir.db_url
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                with Gradebook(url, self.api.course_id) as book:
                    yield book
            except DatabaseError as error:
                remedy = "free the disk, or take this file from your copy of build/"
                raise ToolError(f"{url}: {error.orig}", remedy) from error


@cache
def _kept_backend(root: Path) -> Backend:
    return Backend(Course(root))


def write_page(root: Path, topic: str, student: str) -> tuple[str, str]:
    """Write a student's feedback; return who it is and why there is none.

    Other processes do so, which import this module and no more; the reason goes back as a text,
    since not every exception can cross processes.
    """
    try:
        _kept_backend(root).do("generate_feedback", topic, student)
    except ToolError as error:
        return student, error.problem
    except Exception as error:
        return student, f"{type(error).__name__}: {error}"
    return student, ""


def submissions(book: Any, topics: Sequence[str]) -> list[Any]:
    """Return the graded submissions of the assignments, with all their scores and comments.

    A handful of queries reads them all; nbgrader's objects would ask for each score by itself.
    """
    notebook = selectinload(SubmittedAssignment.notebooks)
    scores = (f"{most}{of}_score" for of in ("code", "written", "task") for most in ("", "max_"))
    query = (
        book.db.query(SubmittedAssignment)
        .join(api.Assignment, api.Assignment.id == SubmittedAssignment.assignment_id)
        .filter(api.Assignment.name.in_(topics))
        .options(
            joinedload(SubmittedAssignment.student),
            joinedload(SubmittedAssignment.assignment),
            notebook.joinedload(api.SubmittedNotebook.notebook),
            notebook.selectinload(api.SubmittedNotebook.grades).joinedload(api.Grade.cell),
            notebook.selectinload(api.SubmittedNotebook.comments).joinedload(api.Comment.cell),
            *(undefer(getattr(SubmittedAssignment, score)) for score in scores),
        )
    )
    return [submission for submission in query.all() if submission.notebooks]


__all__ = ["Backend", "MissingEntry", "Student", "submissions", "write_page"]
