"""Grade the submissions of one assignment: executed side by side, written one after another.

Threads take submissions in and have them executed in forks of a warm process; what that gives is
kept in the :class:`~gradebox.store.Store`. The thread that called writes the scores, with one
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
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import MissingEntry

from gradebox import intake, store
from gradebox.bridge import trial
from gradebox.bridge.cells import NotPython
from gradebox.bridge.course import Course, autograding
from gradebox.bridge.gradebook import Book, Mark, Sources
from gradebox.bridge.trial import Plan, Trial
from gradebox.flags import plainly, printable
from gradebox.intake import Refused, Submission
from gradebox.process import pool
from gradebox.store import Store
from gradebox.workshop import Result, Workshop

SWITCH = 0.0002
"""Seconds after which a thread that computes gives way to another."""


class Unready(Exception):
    """The course is not ready to be graded; the text says what to do."""


@dataclass(frozen=True)
class Outcome:
    """What became of one submission.

    Parameters
    ----------
    student : str
        The student.
    state : str
        ``graded``, ``unchanged`` or ``failed``.
    flags : tuple of str
        What an instructor should look at.
    why : str
        Why it failed.
    """

    student: str
    state: str
    flags: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class _Executed:
    student: str
    key: str
    mark: str
    folder: Path


class Batch:
    """One run over the submissions of an assignment.

    Parameters
    ----------
    course : Course
        The course and its assignment.
    jobs : int
        How many submissions are executed at once.
    resume : bool
        Leave alone what has been graded already, from the same work, sources and limits.

    Raises
    ------
    Unready
        If the gradebook does not know the assignment, or it is not written in Python.
    """

    def __init__(self, course: Course, jobs: int = 1, resume: bool = True) -> None:
        self.course, self.jobs, self.resume = course, jobs, resume
        try:
            self.sources = Sources(course.url, course.course_id, course.assignment)
        except MissingEntry as error:
            raise Unready(
                f"the gradebook knows no assignment {course.assignment!r}; "
                f"try: nbgrader generate_assignment {course.assignment}"
            ) from error
        try:
            self.sources.require_python()
        except NotPython as error:
            raise Unready(str(error)) from error
        self._store = Store(course.store, course.assignment)
        workshop = Workshop(course, self.sources)
        self.execute: Callable[[Submission, Plan], Result] = workshop.execute
        """Executes a submission; another may be put here, which has that done elsewhere."""
        self.try_out: Callable[[], list[Trial]] = partial(workshop.try_out, jobs)
        """Tries the tests; another may be put here as well."""
        self._trials: list[Trial] | None = None
        self._writer = workshop.chain()
        self._basis = course.basis(self._writer, self.sources.digest)
        self._masters = course.source_files(self._writer)

    def prepare(self) -> list[Trial]:
        """Try the tests on the instructor's own answers, once for each version of them.

        Raises
        ------
        Unready
            If a test can be graded neither apart from the student's code nor beside it.
        """
        if self._trials is None:
            file = self.course.store / "trials" / f"{self.course.assignment}.json"
            record = store.read_json(file)
            if record.get("key") != self._basis:
                record = {"key": self._basis, "trials": trial.to_plain(self.try_out())}
                store.write(file, json.dumps(record))
            self._trials = trial.of_plain(record["trials"])
            self._plan = trial.planned(self._trials)
            plan_fields = {name: vars(notebook_plan) for name, notebook_plan in self._plan.items()}
            self._basis = store.digest([self._basis, json.dumps(plan_fields)])
        if lost := [f"{test.notebook}/{test.cell}" for test in self._trials if test.is_lost]:
            raise Unready(
                f"gradebox cannot grade {', '.join(lost)}: your own answers get other points than "
                f"in one process; try: gradebox check {self.course.assignment}"
            )
        return self._trials

    def grade(self, students: list[str]) -> Iterator[Outcome]:
        """Grade these students; yield what became of each, as it happens."""
        self.prepare()
        with (
            self._store.locked(),
            autograding(),
            ThreadPoolExecutor(self.jobs) as pool,
        ):
            book = Book(self.course.url, self.course.course_id)
            try:
                marks = book.marks(self.course.assignment)
                yield from self._grade(students, marks, pool, book)
            finally:
                book.close()
                pool.shutdown(wait=False, cancel_futures=True)

    def _grade(
        self,
        students: list[str],
        marks: dict[str, Mark],
        pool: ThreadPoolExecutor,
        book: Book,
    ) -> Iterator[Outcome]:
        waiting = iter(students)
        running: set[Future[_Executed | Outcome]] = set()
        while True:
            # a few ahead, not the whole class: memory does not grow with it
            for student in islice(waiting, 2 * self.jobs - len(running)):
                running.add(pool.submit(self._safely, student, marks.get(student, Mark())))
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                result = future.result()
                yield result if isinstance(result, Outcome) else self._finish(book, result)

    def _safely(self, student: str, marked: Mark) -> _Executed | Outcome:
        """Execute a submission; whatever it brings about, the others are graded."""
        try:
            return self._execute(student, marked)
        except Exception as error:
            return _failed(student, error, bool(marked.key))

    def _execute(self, student: str, marked: Mark) -> _Executed | Outcome:
        folder = self.course.submitted(student)
        other_files = self.course.files_in(folder) if folder.is_dir() else {}
        submission = intake.take(student, folder, self.sources.names, other_files)
        key = store.digest([self._basis, submission.digest])
        mark = store.digest([key, str(self.sources.duedate), marked.extension])
        if self.resume and mark == marked.key and self._complete(submission):
            return Outcome(student, "unchanged", marked.flags)
        stored = self._store.find(student, key) if self.resume else None
        return _Executed(student, key, mark, stored or self._make(submission, key))

    def _complete(self, submission: Submission) -> bool:
        folder = self.course.autograded(submission.student)
        return all((folder / f"{name}.ipynb").is_file() for name in submission.notebooks)

    def _make(self, submission: Submission, key: str) -> Path:
        """Have the notebooks of a submission executed, and keep what they gave."""
        result = self.execute(submission, self._plan)
        with self._store.workplace() as folder:
            store.write_files(result.files, folder / store.FILES)
            store.copy_files(self._masters, folder / store.FILES)
            return self._store.keep(submission.student, key, folder, result.notebooks)

    def _finish(self, book: Book, executed: _Executed) -> Outcome:
        """Write the scores of a submission and the notebook that shows them."""
        try:
            with self.course.notes.gather() as warnings, self._store.workplace() as folder:
                result = store.read(executed.folder)
                with book.transaction():
                    submission = self._enter(book, executed, result["notebooks"])
                    self._write(book, executed, result["notebooks"], folder / store.FILES)
                    flags = result["flags"] + plainly(warnings)
                    book.mark(submission, executed.mark, flags)
                self._store.drop_others(executed.student, executed.key)
            return Outcome(executed.student, "graded", tuple(flags))
        except Exception as error:
            return _failed(executed.student, error, False)

    def _enter(self, book: Book, executed: _Executed, notebooks: dict[str, Any]) -> Any:
        """Enter the submission into the gradebook; a notebook that is missing has no points."""
        student, assignment = executed.student, self.course.assignment
        if not self._writer.converter.create_student:
            book.find_student(student)
        book.update_or_create_student(student)
        stamp = self._timestamp(executed.folder)
        fields = {"timestamp": stamp} if stamp else {}
        submission = book.update_or_create_submission(assignment, student, **fields)
        for name in sorted(set(self.sources.names) - set(notebooks)):
            self.course.warn(f"{name}.ipynb was not handed in")
            for grade in book.find_submission_notebook(name, assignment, student).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
        return submission

    def _timestamp(self, folder: Path) -> Any:
        try:
            return self._writer.directory.get_existing_timestamp(str(folder / store.FILES))
        except Exception as error:  # nbgrader fails to say that it cannot read it
            raise Refused(
                "timestamp.txt holds no time; expected 2026-01-31 12:00:00 UTC"
            ) from error

    def _write(
        self, book: Book, executed: _Executed, notebooks: dict[str, Any], folder: Path
    ) -> None:
        """Score the executed notebooks, and put them where nbgrader looks for them."""
        chain, assignment = self._writer, self.course.assignment
        shutil.copytree(executed.folder / store.FILES, folder)
        for name, (nb, verdicts) in notebooks.items():
            resources = chain.resources(executed.student, assignment, name, folder, book)
            resources["gradebox"] = verdicts
            nb = _node(nb)
            for step in chain.after:
                if chain.has_strangers:
                    book.settle()
                nb, resources = step(nb, resources)
            nbformat.validate(nb, relax_add_props=True)
            path = folder / f"{name}.ipynb"
            path.unlink(missing_ok=True)
            text = _text(nb, getattr(chain.exporter, "nbformat_version", 4))
            path.write_text(text, encoding="utf-8", errors="replace")  # half characters
            store.sync([path])
        chain.hook("post", executed.student, assignment, sorted(notebooks))
        final = self.course.autograded(executed.student)
        final.parent.mkdir(parents=True, exist_ok=True)
        store.remove(final)
        shutil.move(folder, final)
        chain.converter.set_permissions(assignment, executed.student)


def _failed(student: str, error: Exception, has_scores: bool) -> Outcome:
    why = printable(" ".join(str(error).split()))[:300]
    if not isinstance(error, Refused):
        why = f"{type(error).__name__}: {why}"
    if has_scores:
        why += " (the gradebook keeps the scores of the work handed in before)"
    return Outcome(student, "failed", why=why)


def _node(plain: dict[str, Any]) -> Any:
    return nbformat.from_dict(plain)  # type: ignore[no-untyped-call]


def _text(nb: Any, version: int = 4) -> str:
    """Return the text of a notebook's file, with a line for each cell.

    nbformat's own writer copies all and splits each text, which takes as long as all the scores.
    """
    if version != nb.nbformat:
        nb = nbformat.convert(nb, version)  # type: ignore[no-untyped-call]
        text: str = nbformat.versions[version].writes(nb)
        return text.rstrip("\n") + "\n"
    dumps = partial(json.dumps, ensure_ascii=False, sort_keys=True)
    cells = ",\n".join(map(dumps, nb.cells))
    fields = dumps({name: value for name, value in nb.items() if name != "cells"})
    return f'{{"cells": [\n{cells}\n],\n{fields[1:]}\n'


@contextlib.contextmanager
def grading() -> Iterator[None]:
    """Let this process grade: threads give way at once, and warm processes end with it."""
    interval = sys.getswitchinterval()
    # a thread that waits for a cell must not wait again for the one that computes
    sys.setswitchinterval(SWITCH)
    try:
        yield
    finally:
        pool.close()
        sys.setswitchinterval(interval)


def report(course: Course, outcomes: list[Outcome]) -> Path:
    """Write what became of the submissions as JSON, beside what it says of others; return where."""
    entries = reported(course) | {
        outcome.student: {"state": outcome.state, "flags": outcome.flags, "why": outcome.why}
        for outcome in outcomes
    }
    store.write(_report(course), json.dumps(entries, indent=1, sort_keys=True))
    return _report(course)


def reported(course: Course) -> dict[str, Any]:
    """Return what became of each submission when it was last graded."""
    return store.read_json(_report(course))


def _report(course: Course) -> Path:
    return course.store / f"{course.assignment}.json"


def cores() -> int:
    """Return how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
