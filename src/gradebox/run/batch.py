"""Grade the submissions of an assignment: execute them in parallel, write the scores in turn.

Threads take submissions in and have them executed in forks of a fork server; what that gives is
kept in the :class:`~gradebox.run.store.Store`. The thread that called writes the scores, with one
transaction for each submission, which also records what the scores were made from. So a run that
is killed at any instant goes on where it stopped.
"""

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbgrader.api import MissingEntry

from gradebox import files, moments
from gradebox.events import Event, distinct, printable
from gradebox.nbgrader.cells import Unready as Unready
from gradebox.nbgrader.course import Course, autograding
from gradebox.nbgrader.gradebook import Book, Mark, Sources
from gradebox.nbgrader.plan import Plan, TestRun, planned
from gradebox.nbgrader.rebuild import remember, unreleased
from gradebox.nbgrader.source_notebook import released_by
from gradebox.run import faults, intake
from gradebox.run.executor import Executor
from gradebox.run.intake import Submission
from gradebox.run.store import Result, Store
from gradebox.workers import pool

TIME = "timestamp.txt"
SWITCH = 0.0002  # seconds after which a thread that computes gives way to another


class Outcome(NamedTuple):
    """What became of one submission."""

    student: str
    state: str  # ``graded``, ``unchanged`` or ``failed``
    events: tuple[Event, ...] = ()  # what happened, what a teacher must look at first
    why: str = ""  # why it failed


class _Executed(NamedTuple):
    student: str
    key: str
    mark: str
    result: Result


class Batch:
    """One run over the submissions of an assignment, of which so many ``jobs`` run at once.

    To ``resume`` leaves alone what has been graded already, from the same work, sources and limits.

    Raises
    ------
    Unready
        If the gradebook does not know the assignment, or it is not written in Python.
    """

    def __init__(self, course: Course, jobs: int = 1, resume: bool = True) -> None:
        self.course, self.jobs, self.resume = course, jobs, resume
        try:
            self.sources = Sources.read(course.url, course.assignment, course_id=course.course_id)
        except MissingEntry as error:
            raise Unready(
                f"the gradebook knows no assignment {course.assignment!r}; "
                f"try: nbgrader generate_assignment {course.assignment}"
            ) from error
        self.sources.require_python()
        if cells := unreleased(course, self.sources):
            raise Unready(
                f"cell {', '.join(cells[:5])} differs from the released one; "
                f"run: nbgrader generate_assignment {course.assignment}"
            )
        self._store = Store(course.store, course.assignment)
        executor = Executor(course, self.sources)
        self.execute: Callable[[Submission, Plan], Result] = executor.execute
        """Executes a submission; another may be put here, which has that done elsewhere."""
        self.dry_run: Callable[[], list[TestRun]]
        self.dry_run = lambda: executor.dry_run(jobs, self._handed_in())
        """Finds out how the tests run; another may be put here as well."""
        self._tests: list[TestRun] | None = None
        self._writer = executor.chain()
        seen = course.store / "releases" / f"{course.assignment}.json"
        self.sources.releases |= remember(seen, self.sources, released_by(self._writer.exporter))
        self._basis = course.basis(self._writer, self.sources.digest)
        self._masters = course.source_files(self._writer)

    def prepare(self) -> list[TestRun]:
        """Find out how the tests run, on the instructor's own answers."""
        if self._tests is None:
            self._tests = self.dry_run()
            self._plan = planned(self._tests)
        return self._tests

    def _handed_in(self) -> set[str]:
        """Return the names of the notebooks that anybody handed in, without a look at the rest."""
        folders = [*map(self.course.submitted, self.course.students())]
        # os.path: a folder that is closed holds nothing
        return {
            name
            for name in self.sources.names
            if any(os.path.exists(folder / f"{name}.ipynb") for folder in folders)  # noqa: PTH110
        }

    def grade(self, students: list[str]) -> Iterator[Outcome]:
        """Grade these students; yield what became of each, as it happens."""
        self.prepare()
        with (
            self._store.locked(),
            autograding(),
            contextlib.closing(Book(self.course.url, self.course.course_id)) as book,
        ):
            threads = ThreadPoolExecutor(self.jobs)
            try:
                marks = book.marks(self.course.assignment)
                waiting = iter(students)
                running: set[Future[_Executed | Outcome]] = set()
                # a few ahead, not the whole class: memory does not grow with it
                while running := running | {
                    threads.submit(self._safely, student, marks.get(student, Mark()))
                    for student in islice(waiting, 2 * self.jobs - len(running))
                }:
                    # Windows notices Ctrl-C between two waits only
                    finished, running = wait(running, 1, FIRST_COMPLETED)
                    for result in (future.result() for future in finished):
                        yield result if isinstance(result, Outcome) else self._finish(book, result)
            finally:
                # after an error threads still wait for cells, which end with the fork servers
                threads.shutdown(wait=False, cancel_futures=True)

    def _safely(self, student: str, marked: Mark) -> _Executed | Outcome:
        """Execute a submission; whatever it brings about, the others are graded."""
        try:
            return self._execute(student, marked)
        except Exception as error:
            return _failed(student, error, bool(marked.key))

    def _execute(self, student: str, marked: Mark) -> _Executed | Outcome:
        folder = self.course.submitted(student)
        submission = intake.take(student, folder, self.sources.names, self.course.files_in)
        plans = {n: vars(plan) for n, plan in self._plan.items() if n in submission.notebooks}
        key = files.digest([self._basis, json.dumps(plans), submission.digest])
        mark = files.digest([key, str(self.sources.duedate), marked.extension])
        pages = [self.course.autograded(student) / f"{name}.ipynb" for name in submission.notebooks]
        if self.resume and mark == marked.key and all(page.is_file() for page in pages):
            return Outcome(student, "unchanged", marked.events)
        result = self._store.find(student, key) if self.resume else None
        if result is None:
            result = self.execute(submission, self._plan)
            self._store.keep(student, key, result)
        return _Executed(student, key, mark, result)

    def _finish(self, book: Book, executed: _Executed) -> Outcome:
        """Write the scores of a submission and the notebook that shows them."""
        student, key, mark, result = executed
        try:
            with self.course.notes.gather() as events, self._store.workplace() as scratch:
                folder = scratch / "files"  # the scratch folder itself is closed for others
                files.write_files({**result.files, **self._masters}, folder)
                time = folder / TIME
                # nbgrader would refuse the work, or guess, where it holds anything else than a time
                fields = {"timestamp": moments.read(time)} if time.exists() else {}
                told = json.loads(result.notebooks)
                missing = sorted({*self.sources.names} - told["notebooks"].keys())
                with book.transaction():
                    submission = self._enter(book, student, missing, fields)
                    # before the mark: a run killed in between finds none, and writes all again
                    self._write(book, student, told["notebooks"], folder)
                    found = [*map(Event.of, told["events"]), *events]
                    found += [Event("missing-notebook", name) for name in missing]
                    found += [Event("no-time")] if fields and not submission.timestamp else []
                    book.mark(submission, mark, found := distinct(found))
                self._store.drop_others(student, key)
            return Outcome(student, "graded", tuple(found))
        except Exception as error:
            return _failed(student, error, False)

    def _enter(self, book: Book, student: str, missing: list[str], fields: Any) -> Any:
        """Enter the submission into the gradebook; a notebook that is missing has no points."""
        if not self._writer.converter.create_student:
            book.find_student(student)
        book.update_or_create_student(student)
        assignment = self.course.assignment
        submission = book.update_or_create_submission(assignment, student, **fields)
        for name in missing:
            for grade in book.find_submission_notebook(name, assignment, student).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
        return submission

    def _write(self, book: Book, student: str, notebooks: Any, folder: Path) -> None:
        """Score the executed notebooks, and put them where nbgrader looks for them."""
        chain, assignment = self._writer, self.course.assignment
        for name, (nb, verdicts) in notebooks.items():
            resources = chain.resources(student, assignment, name, folder, book)
            resources["gradebox"] = verdicts
            nb = nbformat.from_dict(nb)  # type: ignore[no-untyped-call]
            for step in chain.after:
                # a step that opens the gradebook by itself would not see what is pending here
                if chain.has_strangers:
                    book.settle()
                nb, resources = step(nb, resources)
            nbformat.validate(nb, relax_add_props=True)
            # on the disk before the gradebook says that it was graded: power may fail in between
            files.write(folder / f"{name}.ipynb", _text(nb))
        chain.hook("post", student, assignment, sorted(notebooks))
        final = self.course.autograded(student)
        final.parent.mkdir(parents=True, exist_ok=True)
        files.remove(final)
        shutil.move(folder, final)
        chain.converter.set_permissions(assignment, student)


def _failed(student: str, error: Exception, has_scores: bool) -> Outcome:
    """Return what a student is told; an error that all would meet ends the run."""
    if faults.concerns_all(error):
        raise error
    why = faults.sentence(error) or f"{type(error).__name__}: {error}"
    why = printable(" ".join(why.split()))[:300]
    if has_scores:
        why += " (the gradebook keeps the scores of the work handed in before)"
    return Outcome(student, "failed", why=why)


def _text(nb: Any) -> str:
    """Return the text of a notebook's file, with a line for each cell.

    nbformat's own writer copies all and splits each text, which takes as long as all the scores.
    """
    dumps = partial(json.dumps, ensure_ascii=False, sort_keys=True)
    cells = ",\n".join(map(dumps, nb.cells))
    fields = dumps({name: value for name, value in nb.items() if name != "cells"})
    return f'{{"cells": [\n{cells}\n],\n{fields[1:]}\n'


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
