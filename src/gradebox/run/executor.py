"""Execute submissions of an assignment and return plain data; no score is written here."""

import json
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from gradebox.events import Event, distinct
from gradebox.files import copy_files, read_files, write_files
from gradebox.nbgrader.absent import absent
from gradebox.nbgrader.chain import Chain
from gradebox.nbgrader.course import Course, autograding
from gradebox.nbgrader.dry_run import dry_run, kept
from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.plan import Plan, TestRun
from gradebox.nbgrader.releases import judged
from gradebox.nbgrader.source_notebook import instructions
from gradebox.run import intake
from gradebox.run.intake import Submission
from gradebox.run.store import Store


@dataclass(frozen=True)
class Result:
    """What the execution of a submission gave, as plain data.

    Parameters
    ----------
    notebooks : str
        The executed notebooks with their scores, and what happened, as JSON.
    files : dict
        The bytes of the files beside the notebooks, by their place, without the instructor's.
    """

    notebooks: str
    files: dict[str, bytes]


class Executor:
    """Executes submissions of an assignment, on this machine and for any thread.

    Parameters
    ----------
    course : Course
        The course and its assignment.
    sources : Sources, optional
        What the gradebook knows of the assignment; not needed for a dry run.
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

    def dry_run(self, jobs: int = 1, names: Collection[str] | None = None) -> list[TestRun]:
        """Find out how the tests of all notebooks run, or of those named, once for each version."""
        chain, course = self.chain(), self.course
        execute = chain.execute
        if not isinstance(execute, WarmExecute):
            return []

        def find_out(path: Path) -> list[TestRun]:
            with autograding():
                return dry_run(execute, course.source, course.assignment, jobs, [path])

        folder, basis = course.store / "dry-run" / course.assignment, course.basis(chain, "")
        return [
            run
            for path in sorted(course.source.glob("*.ipynb"))
            if names is None or path.stem in names
            for run in kept(folder / f"{path.stem}.json", basis, partial(find_out, path))
        ]

    def execute(self, submission: Submission, plan: Plan) -> Result:
        """Execute the notebooks of a submission, as a dry run has planned it."""
        assert self._sources is not None
        chain = self.chain()
        chain.execute.plan = plan
        with self._store.workplace() as folder, self.course.notes.gather() as events:
            write_files(submission.files, folder)
            masters = self.course.source_files(chain)
            copy_files(masters, folder)
            student = submission.student
            chain.hook("pre", student, self.course.assignment, sorted(submission.notebooks))
            executed = {}
            for name, content in sorted(submission.notebooks.items()):
                before = len(events)
                executed[name] = self._run(chain, student, name, content, folder)
                found = [replace(e, notebook=name) for e in events[before:]]
                nb = intake.parse(name, content)
                events[before:] = judged(found, self._sources.releases.get(name, []), nb)
                given = instructions(self.course.source / f"{name}.ipynb").defined
                nb, _ = executed[name]  # what a test did not find, the student may call otherwise
                renamed = {
                    n.name: n for n in absent(nb, given).values() if n.guess and not n.failed
                }
                events += [
                    Event("renamed", name, "", {"what": n.kind, "name": n.name, "guess": n.guess})
                    for n in renamed.values()
                ]
            files, large = read_files(folder, intake.LARGEST, masters)
            events += [Event("unknown-notebook", Path(name).stem) for name in submission.unknown]
            events += [Event("large-file", fields={"file": name}) for name in large]
            plain = [event.plain for event in distinct(events)]
            return Result(json.dumps({"events": plain, "notebooks": executed}), files)

    def _run(self, chain: Chain, student: str, name: str, content: bytes, folder: Path) -> Any:
        nb = intake.parse(name, content)
        resources = chain.resources(student, self.course.assignment, name, folder, self._sources)
        for step in [*chain.sanitize, *chain.before]:
            nb, resources = step(nb, resources)
        nb = intake.normal(nb)  # cells that were put back have no id yet
        nb, resources = chain.execute(nb, resources)
        return nb, resources.get("gradebox", {})
