"""Execute submissions of an assignment and return plain data; no score is written here."""

import json
import threading
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gradebox.events import Event, distinct
from gradebox.files import read_files, write_files
from gradebox.nbgrader.course import Chain, Course, autograding
from gradebox.nbgrader.dry_run import dry_run, kept
from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.gradebook import Sources
from gradebox.nbgrader.plan import Plan, TestRun
from gradebox.nbgrader.rebuild import judged, what_is
from gradebox.run import intake
from gradebox.run.intake import Submission
from gradebox.run.store import Result, Store


class Executor:
    """Executes submissions of an assignment, on this machine and for any thread.

    A dry run needs nothing of what the gradebook knows.
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
        if not isinstance(chain.execute, WarmExecute):
            return []
        folder, basis = course.store / "dry-run" / course.assignment, course.basis(chain, "")
        runs: list[TestRun] = []
        with autograding():
            for path in sorted(course.source.glob("*.ipynb")):
                if names is None or path.stem in names:
                    of_notebook = chain.execute, course.source, course.assignment, jobs, [path]
                    find_out = partial(dry_run, *of_notebook)
                    runs += kept(folder / f"{path.stem}.json", basis, find_out)
        return runs

    def execute(self, submission: Submission, plan: Plan) -> Result:
        """Execute the notebooks of a submission, as a dry run has planned it."""
        assert self._sources is not None
        chain = self.chain()
        chain.execute.plan = plan
        with self._store.workplace() as folder, self.course.notes.gather() as events:
            masters = self.course.source_files(chain)
            write_files({**submission.files, **masters}, folder)
            student = submission.student
            chain.hook("pre", student, self.course.assignment, sorted(submission.notebooks))
            executed = {}
            for name, content in sorted(submission.notebooks.items()):
                before, nb = len(events), intake.parse(name, content)
                handed_in = what_is(nb.cells)
                executed[name] = nb, _ = self._run(chain, student, name, nb, folder)
                found = [replace(event, notebook=name) for event in events[before:]]
                releases = self._sources.releases.get(name, [])
                events[before:] = [judged(event, releases, handed_in) for event in found]
            files, large = read_files(folder, intake.MAX_FILE_BYTES, masters)
            events += [Event("unknown-notebook", Path(name).stem) for name in submission.unknown]
            events += [Event("large-file", fields={"file": name}) for name in large]
            plain = [event.plain for event in distinct(events)]
            return Result(json.dumps({"events": plain, "notebooks": executed}), files)

    def _run(self, chain: Chain, student: str, name: str, nb: Any, folder: Path) -> Any:
        resources = chain.resources(student, self.course.assignment, name, folder, self._sources)
        for step in [*chain.sanitize, *chain.before]:
            nb, resources = step(nb, resources)
        nb = intake.normal(nb)  # cells that were put back have no id yet
        nb, resources = chain.execute(nb, resources)
        return nb, resources.get("gradebox", {})
