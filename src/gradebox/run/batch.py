"""Grade the submissions of an assignment: execute them in parallel, write the scores in turn.

Threads execute submissions. The thread that called writes the scores, in one transaction for each
submission, with what they were made from. So a run that is killed at any instant goes on where it
stopped.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from filelock import FileLock, Timeout
from nbgrader.api import MissingEntry

from gradebox import files, moments
from gradebox.events import Event, distinct, printable
from gradebox.nbgrader.cells import Unready as Unready
from gradebox.nbgrader.cells import require_python
from gradebox.nbgrader.course import Course, autograding
from gradebox.nbgrader.dry_run import dry_run, kept
from gradebox.nbgrader.execute import WarmExecute
from gradebox.nbgrader.gradebook import Book, Mark, Sources
from gradebox.nbgrader.plan import Plan, TestRun, planned
from gradebox.nbgrader.rebuild import remember, unreleased
from gradebox.nbgrader.source_notebook import released_by
from gradebox.run import faults, intake
from gradebox.run.intake import Submission
from gradebox.workers import pool

SWITCH = 0.0002  # seconds after which a thread that computes gives way to another


class Busy(Unready):
    """Another run grades with the same folder."""


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs away from what gradebox keeps of a course, until this process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / "lock").acquire(blocking=False)
    except Timeout as error:
        raise Busy(f"another run grades with {folder}; wait for its end") from error
    with lock:
        files.remove(folder / "work")  # what a killed run was making
        yield


@contextlib.contextmanager
def _workplace(course: Course) -> Iterator[Path]:
    """Make a folder that is gone at the end."""
    work = course.store / "work"
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        yield Path(folder)


class Result(NamedTuple):
    """What the execution of a submission gave."""

    notebooks: dict[str, tuple[Any, Any]]  # each that was executed, and its scores
    events: list[Event]


class Executor:
    """Executes submissions, for any thread; a dry run needs nothing of what the gradebook knows."""

    def __init__(self, course: Course, sources: Any = None) -> None:
        self.course, self.sources = course, sources
        excluded = course.chain.converter.exclude_overwriting.get(course.assignment, [])
        files = course.files_in(course.source).items()
        # those of the instructor's that take the places of a student's
        self._masters = {name: path for name, path in files if name not in excluded}

    def dry_run(self, jobs: int = 1, names: Collection[str] | None = None) -> list[TestRun]:
        """Find out how the tests of all notebooks run, or of those named, once for each version."""
        course, chain = self.course, self.course.chain
        if not isinstance(chain.execute, WarmExecute):
            return []
        folder, basis = course.store / "dry-run" / course.assignment, course.basis("")
        runs: list[TestRun] = []
        with autograding():
            for path in sorted(course.source.glob("*.ipynb")):
                if names is None or path.stem in names:
                    find_out = partial(dry_run, chain.execute, path, course.assignment, jobs)
                    runs += kept(folder / f"{path.stem}.json", basis, find_out)
        return runs

    def execute(self, submission: Submission, plan: Plan) -> Result:
        """Execute the notebooks of a submission, as a dry run has planned it."""
        chain, student = self.course.chain, submission.student
        chain.execute.plan = plan
        with _workplace(self.course) as folder, self.course.notes.gather() as events:
            files.write_files({**submission.files, **self._masters}, folder)
            chain.hook("pre", student, sorted(submission.notebooks))
            executed = {}
            for name, content in sorted(submission.notebooks.items()):
                before, nb = len(events), intake.parse(name, content)
                resources = chain.resources(student, name, folder, self.sources)
                for step in [*chain.sanitize, *chain.before]:
                    nb, resources = step(nb, resources)
                # cells that were put back have no id yet
                nb, resources = chain.execute(intake.normal(nb), resources)
                executed[name] = nb, resources.get("gradebox", {})
                events[before:] = [replace(event, notebook=name) for event in events[before:]]
            events += [Event("unknown-notebook", Path(name).stem) for name in submission.unknown]
            return Result(executed, events)


class Outcome(NamedTuple):
    """What became of one submission."""

    student: str
    state: str  # ``graded``, ``unchanged`` or ``failed``
    events: tuple[Event, ...] = ()  # what happened, what a teacher must look at first
    why: str = ""  # why it failed


_Executed = tuple[Submission, str, Result]  # with the checksum of what the scores are made from


class Batch(Executor):
    """One run over the submissions of an assignment; to ``resume`` leaves alone what is graded."""

    def __init__(self, course: Course, jobs: int = 1, resume: bool = True) -> None:
        try:
            sources = Sources.read(course.url, course.assignment, course_id=course.course_id)
        except MissingEntry as error:
            why = f"the gradebook knows no assignment {course.assignment!r}; try"
            raise Unready(f"{why}: nbgrader generate_assignment {course.assignment}") from error
        for name, notebook in sources.notebooks.items():
            require_python(notebook["kernelspec"], name)
        if cells := unreleased(course, sources):
            why = f"cell {', '.join(cells[:5])} differs from the released one; run"
            raise Unready(f"{why}: nbgrader generate_assignment {course.assignment}")
        super().__init__(course, sources)
        self.jobs, self.resume = jobs, resume
        seen = course.store / "releases" / f"{course.assignment}.json"
        sources.releases |= remember(seen, sources, released_by(course.chain.exporter))
        self._basis = course.basis(json.dumps(sources.notebooks, sort_keys=True))

    @cached_property
    def tests(self) -> list[TestRun]:
        """How the tests of the notebooks that anybody handed in run, on own answers."""
        names, students = set[str](), self.course.students()
        folders = [self.course.folder("submitted", student) for student in students]
        for name in self.sources.notebooks:
            paths = (folder / f"{name}.ipynb" for folder in folders)
            # os.path: a folder that is closed holds nothing
            names |= {name} if any(map(os.path.exists, paths)) else set()
        return self.dry_run(self.jobs, names)

    def grade(self, students: list[str]) -> Iterator[Outcome]:
        """Grade these students; yield what became of each, as it happens."""
        self._plan, course = planned(self.tests), self.course
        with alone(course.store), autograding(), Book(course.url, course.course_id) as book:
            threads = ThreadPoolExecutor(self.jobs)
            try:
                marks, waiting = book.marks(course.assignment), iter(students)
                running: set[Future[_Executed | Outcome]] = set()
                # a few ahead, not the whole class: memory does not grow with it
                while running := running | {
                    threads.submit(self._execute, student, marks.get(student, Mark()))
                    for student in islice(waiting, 2 * self.jobs - len(running))
                }:
                    # Windows notices Ctrl-C between two waits only
                    finished, running = wait(running, 1, FIRST_COMPLETED)
                    for result in (future.result() for future in finished):
                        yield result if isinstance(result, Outcome) else self._finish(book, result)
            finally:
                # after an error threads still wait for cells, which end with the fork servers
                threads.shutdown(wait=False, cancel_futures=True)

    def _execute(self, student: str, marked: Mark) -> _Executed | Outcome:
        steps = "submitted", "autograded"
        folder, graded = (self.course.folder(step, student) for step in steps)
        try:
            submission = intake.take(student, folder, self.sources.notebooks, self.course.files_in)
            plan = {name: self._plan.get(name, {}) for name in submission.notebooks}
            how, times = json.dumps(plan, default=vars), (self.sources.duedate, marked.extension)
            mark = files.digest([self._basis, how, submission.digest, *map(str, times)])
            pages = [graded / f"{name}.ipynb" for name in submission.notebooks]
            if self.resume and mark == marked.key and all(map(files.read_json, pages)):
                return Outcome(student, "unchanged", marked.events)
            return submission, mark, self.execute(submission, self._plan)
        except Exception as error:  # whatever it brings about, the others are graded
            return _failed(student, error, bool(marked.key))

    def _finish(self, book: Book, executed: _Executed) -> Outcome:
        """Write the scores of a submission and the notebook that shows them."""
        handed_in, mark, result = executed
        student, assignment = handed_in.student, self.course.assignment
        try:
            with self.course.notes.gather() as events, _workplace(self.course) as scratch:
                folder = scratch / "files"  # the scratch folder itself is closed for others
                files.write_files({**handed_in.files, **self._masters}, folder)
                # nbgrader would refuse the work, or guess, where it holds anything else than a time
                time = folder / "timestamp.txt"
                fields = {"timestamp": moments.read(time)} if time.exists() else {}
                missing = sorted(self.sources.notebooks.keys() - result.notebooks.keys())
                with book.transaction():
                    if not self.course.chain.converter.create_student:
                        book.find_student(student)
                    book.update_or_create_student(student)
                    submission = book.update_or_create_submission(assignment, student, **fields)
                    for name in missing:  # it has no points
                        entry = book.find_submission_notebook(name, assignment, student)
                        for grade in entry.grades:
                            grade.auto_score, grade.needs_manual_grade = 0, False
                    # before the mark: a run killed in between finds none, and writes all again
                    self._write(book, submission, result.notebooks, folder)
                    found = [*result.events, *events]
                    found += [Event("missing-notebook", name) for name in missing]
                    found += [Event("no-time")] if fields and not submission.timestamp else []
                    book.mark(submission, mark, found := distinct(found))
            return Outcome(student, "graded", tuple(found))
        except Exception as error:
            return _failed(student, error, False)

    def _write(self, book: Book, submission: Any, notebooks: Any, folder: Path) -> None:
        chain, student = self.course.chain, submission.student.id
        entries = {entry.name: entry for entry in submission.notebooks}
        for name, (nb, verdicts) in notebooks.items():
            resources = chain.resources(student, name, folder, book)
            resources |= {"gradebox": verdicts, "submitted": entries[name]}
            for step in chain.after:
                # a step that opens the gradebook by itself would not see what is pending here
                if chain.has_strangers:
                    book.settle()
                nb, resources = step(nb, resources)
            nbformat.validate(nb, relax_add_props=True)
            # on the disk before the gradebook says that it was graded: power may fail in between;
            # nbformat's own writer takes as long as all the scores
            files.write(folder / f"{name}.ipynb", json.dumps(nb, ensure_ascii=False))
        chain.hook("post", student, sorted(notebooks))
        final = self.course.folder("autograded", student)
        final.parent.mkdir(parents=True, exist_ok=True)
        files.remove(final)
        shutil.move(folder, final)
        chain.converter.set_permissions(self.course.assignment, student)


def _failed(student: str, error: Exception, has_scores: bool) -> Outcome:
    """Return what a student is told; an error that all would meet ends the run."""
    if faults.concerns_all(error):
        raise error
    why = faults.sentence(error) or f"{type(error).__name__}: {error}"
    kept = " (the gradebook keeps the scores of the work handed in before)" if has_scores else ""
    return Outcome(student, "failed", why=printable(" ".join(why.split()))[:300] + kept)


@contextlib.contextmanager
def grading() -> Iterator[None]:
    """Let this process grade: threads give way at once, and fork servers end with it."""
    interval = sys.getswitchinterval()
    # a thread that waits for a cell must not wait again for the one that computes
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        pool.close()
        sys.setswitchinterval(interval)
