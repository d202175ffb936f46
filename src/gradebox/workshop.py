"""Execute submissions of an assignment; what that gives is plain data, and no score is written."""

import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradebox import intake, store
from gradebox.bridge import trial
from gradebox.bridge.chain import Chain
from gradebox.bridge.course import Course, autograding
from gradebox.bridge.execute import WarmExecute
from gradebox.bridge.gradebook import Sources
from gradebox.bridge.trial import Plan, Trial
from gradebox.flags import plainly, troubles
from gradebox.intake import Submission
from gradebox.store import Store


@dataclass(frozen=True)
class Result:
    """What the execution of a submission gave, as plain data.

    Parameters
    ----------
    notebooks : str
        The executed notebooks with their verdicts, and what an instructor should look at, as JSON.
    files : dict
        The bytes of the files beside the notebooks, by their place, without the instructor's.
    """

    notebooks: str
    files: dict[str, bytes]


class Workshop:
    """Executes submissions of an assignment, on this machine and for any thread.

    Parameters
    ----------
    course : Course
        The course and its assignment.
    sources : Sources, optional
        What the gradebook knows of the assignment; not needed to try its tests.
    """

    def __init__(self, course: Course, sources: Sources | None = None) -> None:
        self.course, self._sources = course, sources
        self._store = Store(course.store, course.assignment)
        self._chains = threading.local()

    def chain(self) -> Chain:
        """Return nbgrader's steps, for the use of this thread."""
        if not hasattr(self._chains, "mine"):
            self._chains.mine = self.course.chain()
        chain: Chain = self._chains.mine
        return chain

    def try_out(self, jobs: int = 1) -> list[Trial]:
        """Try the tests on the instructor's own answers; so many notebooks run at once."""
        execute, course = self.chain().execute, self.course
        if not isinstance(execute, WarmExecute) or not (execute.apart and execute.trial):
            return []
        with autograding():
            return trial.try_out(execute, course.source, course.assignment, jobs)

    def execute(self, submission: Submission, plan: Plan) -> Result:
        """Execute the notebooks of a submission, as a trial has planned it."""
        assert self._sources is not None
        chain = self.chain()
        chain.execute.plan = plan
        with self._store.workplace() as folder, self.course.notes.gather() as warnings:
            store.write_files(submission.files, folder)
            masters = self.course.source_files(chain)
            store.copy_files(masters, folder)
            student = submission.student
            chain.hook("pre", student, self.course.assignment, sorted(submission.notebooks))
            executed = {
                name: self._run(chain, student, name, content, folder)
                for name, content in sorted(submission.notebooks.items())
            }
            files, large = store.read_files(folder, intake.LARGEST, masters)
            unknown = [
                f"{name} is none of the assignment's notebooks" for name in submission.unknown
            ]
            flags = plainly(unknown + warnings)
            flags += [flag for nb, _ in executed.values() for flag in troubles(nb)]
            flags += [f"{name}, which the notebook made, is too large to be kept" for name in large]
            return Result(json.dumps({"flags": flags, "notebooks": executed}), files)

    def _run(self, chain: Chain, student: str, name: str, content: bytes, folder: Path) -> Any:
        assert self._sources is not None
        nb = intake.parse(name, content)
        resources = chain.resources(student, self.course.assignment, name, folder, self._sources)
        for step in [*chain.sanitize, *chain.before]:
            nb, resources = step(nb, resources)
        nb = intake.normal(nb)  # cells that were put back have no id yet
        nb, resources = chain.execute(nb, resources)
        return nb, resources.get("gradebox", {})
