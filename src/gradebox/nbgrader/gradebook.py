"""Read an assignment from nbgrader's gradebook, and enter scores into one that a run has open.

nbgrader's own steps open it anew for each notebook, and commit after each answer: half of the time
that grading takes without kernels.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sql
from nbformat import from_dict
from nbgrader.api import BaseCell, Grade, Gradebook, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties, SaveAutoGrades
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task

from gradebox.events import Event
from gradebox.files import digest
from gradebox.nbgrader.cells import KINDS, name_of, of

NO_ANSWER = "No response."  # nbgrader's comment on an answer that is still as it was released
SCHEMA = 3  # the version of nbgrader's metadata that cells are given

# what the scores of a submission were made from; it stands beside nbgrader's own tables
_FINGERPRINTS = sql.Table(
    "gradebox_fingerprints",
    sql.MetaData(),
    sql.Column("submission_id", sql.String(32), primary_key=True),
    *(sql.Column(name, sql.String(64), nullable=False) for name in ("key", "scores")),
    sql.Column("events", sql.Text, nullable=False),
    sql.Column("at", sql.DateTime, server_default=sql.func.now()),
)


class Mark(NamedTuple):
    """What the gradebook says of a submission with scores."""

    key: str = ""  # the checksum of what the scores were made from; empty if nbgrader made them
    extension: str = "None"  # how much longer the student may take
    events: tuple[Event, ...] = ()  # what happened when it was graded


@dataclass
class Sources:
    """The cells of one assignment as the gradebook has them, as plain data; for any thread."""

    notebooks: dict[str, Any]  # the ``kernelspec`` and the ``cells`` of each, by name
    duedate: Any = None
    # the releases of each notebook that gradebox has seen
    releases: dict[str, list[Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, url: str, assignment: str, **course: str) -> "Sources":
        """Read an assignment; raise ``MissingEntry`` if the gradebook does not know it."""
        with Gradebook(url, **course) as book:
            entry, notebooks = book.find_assignment(assignment), {}
            for each in sorted(entry.notebooks, key=attrgetter("name")):
                kernelspec = json.loads(each.kernelspec or "null")
                notebooks[each.name] = {"kernelspec": kernelspec, "cells": _cells(each)}
            return cls(notebooks, entry.duedate)

    def cells(self, notebook: str) -> dict[str, Any]:
        """Return new cells of a notebook by their names, in the order of the gradebook."""
        return dict(from_dict(self.notebooks[notebook]["cells"]))  # type: ignore[no-untyped-call]


def _cells(notebook: Any) -> dict[str, Any]:
    named = {kind: {c.name: c for c in getattr(notebook, f"{kind}_cells")} for kind in KINDS}
    points = {name: cell.max_score for name, cell in (named["task"] | named["grade"]).items()}
    cells = {}
    for cell in notebook.source_cells:
        metadata: dict[str, Any] = {kind: cell.name in named[kind] for kind in KINDS}
        metadata |= {"grade_id": cell.name, "schema_version": SCHEMA, "checksum": cell.checksum}
        metadata |= {"locked": bool(cell.locked), "cell_type": str(cell.cell_type)}
        metadata |= {"points": points[cell.name]} if cell.name in points else {}
        fields = {"cell_type": str(cell.cell_type), "source": str(cell.source)}
        cells[cell.name] = fields | {"metadata": {"nbgrader": metadata}}
    return cells


class Book(Gradebook):  # type: ignore[misc]
    """The gradebook of the one who writes: one transaction for each submission."""

    db: Any

    def __init__(self, url: str, course_id: str = "") -> None:
        super().__init__(url, course_id)
        self.db.remove()
        # commits wait for the end of the submission: changes are written together
        self.db.commit = lambda: None
        _FINGERPRINTS.create(self.engine, checkfirst=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that happens inside at once, or nothing of it."""
        try:
            yield
            self.settle()
        finally:
            self.db.remove()

    def settle(self) -> None:
        """Write what was changed, so that others see it who open the gradebook."""
        self.db().commit()

    def add_submission(self, assignment: str, student: str, **more: Any) -> Any:
        """Add a submission, and ask nothing of the database while it is half made."""
        with self.db.no_autoflush:
            return super().add_submission(assignment, student, **more)

    def mark(self, submission: Any, key: str, events: Sequence[Event]) -> None:
        """Write what the scores of a submission are made from, within its transaction."""
        self.db.flush()
        is_its = _FINGERPRINTS.c.submission_id == submission.id
        self.db.execute(sql.delete(_FINGERPRINTS).where(is_its))
        plain = json.dumps([event.plain for event in events])
        scores = self._scores([submission.id]).get(submission.id, "")
        row = {"submission_id": submission.id, "key": key, "scores": scores, "events": plain}
        self.db.execute(sql.insert(_FINGERPRINTS).values(row))

    def marks(self, assignment: str) -> dict[str, Mark]:
        """Return what is known of each student with scores."""
        with self.transaction():
            rows = {row.submission_id: row for row in self.db.execute(sql.select(_FINGERPRINTS))}
            submissions = self.assignment_submissions(assignment)
            scores = self._scores([submission.id for submission in submissions])
            marks = {}
            for each in submissions:
                mark, row = Mark(extension=str(each.extension)), rows.get(each.id)
                # nothing is known if others have changed the scores since
                if row and row.scores == scores.get(each.id, ""):
                    events = tuple(map(Event.of, json.loads(row.events)))
                    mark = mark._replace(key=row.key, events=events)
                marks[each.student_id] = mark
            return marks

    def _scores(self, submissions: list[str]) -> dict[str, str]:
        """Return a checksum of the scores that tests gave, by the id of the submission."""
        grades = (
            self.db.query(SubmittedNotebook.assignment_id, Grade.cell_id, Grade.auto_score)
            .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
            .filter(SubmittedNotebook.assignment_id.in_(submissions))
            .order_by(Grade.cell_id)
        )
        lines: dict[str, list[str]] = {}
        for submission, cell, score in grades:
            lines.setdefault(submission, []).append(f"{cell} {score}")
        return {submission: digest(of_cells) for submission, of_cells in lines.items()}


# --- nbgrader's steps that enter scores


@contextlib.contextmanager
def entry_of(resources: Any) -> Iterator[tuple[Any, Any]]:
    """Give the gradebook and the entry of a notebook, which a run has put there, or find them."""
    context, book = resources["nbgrader"], resources.get("gradebook")
    place = (context[name] for name in ("notebook", "assignment", "student"))
    with contextlib.nullcontext(book) if book else Gradebook(context["db_url"]) as book:
        yield book, resources.get("submitted") or book.find_submission_notebook(*place)
        book.db.commit()


class LatePenalties(AssignLatePenalties):  # type: ignore[misc]
    """nbgrader's step that takes points off for being late."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Ask the course's plugin for the penalty, and enter it."""
        student, notebook = (resources["nbgrader"][name] for name in ("student", "notebook"))
        self.init_plugin()
        with entry_of(resources) as (book, entry):
            late = entry.assignment.total_seconds_late
            entry.late_submission_penalty = penalty = None
            if late > 0:
                book.db.flush()  # the database sums the score when it is first asked for, here
                fields = {"seconds": late, "duration": duration(late)}
                self.log.warning(Event("late", fields=fields))
                penalty = self.plugin_inst.late_submission_penalty(student, entry.score, late)
                if penalty is not None:
                    penalty = self._check_late_penalty(entry, penalty)
            entry.late_submission_penalty = penalty
            if penalty:  # one for each notebook, of those that have points to lose
                self.log.warning(Event("late-penalty", notebook, fields={"points": penalty}))
        return nb, resources


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> [duration(seconds) for seconds in (20, 150, 3600, 83440, 200_000)]
    ['1 minute', '3 minutes', '1 hour', '23.2 hours', '2.3 days']
    """
    number, unit = f"{max(1, -(-seconds // 60)):.0f}", "minute"
    if seconds >= 3540:
        size, unit = (3600, "hour") if seconds < 48 * 3600 else (86400, "day")
        number = f"{round(seconds / size, 1):g}"
    return f"{number} {unit}{'' if number == '1' else 's'}"


class SaveScores(SaveAutoGrades):  # type: ignore[misc]
    """nbgrader's step that enters the scores, for those that ``WarmExecute`` gives.

    Of cells of which it does not know the score, such as written answers, nbgrader finds it.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Enter the scores of a notebook, and the comments of answers that were left as given."""
        scores = resources.get("gradebox", {}).get("scores", {})
        with entry_of(resources) as (book, submitted):
            with book.db.no_autoflush:
                cells = book.db.query(BaseCell.id, BaseCell.name)
                names = dict(map(tuple, cells.filter_by(notebook_id=submitted.notebook.id)))
            grades = {names[entry.cell_id]: entry for entry in submitted.grades}
            comments = {names[entry.cell_id]: entry for entry in submitted.comments}
            for cell in nb.cells:
                name = name_of(cell)
                if is_grade(cell):
                    grade, score = grades[name], scores.get(name)
                    grade.auto_score = determine_grade(cell)[0] if score is None else score
                    unread = grade.auto_score is None or grade.manual_score is not None
                    grade.needs_manual_grade = unread
                if is_solution(cell) or is_task(cell):
                    given = not is_task(cell) and of(cell).get("checksum") == compute_checksum(cell)
                    comments[name].auto_comment = NO_ANSWER if given else None
        return nb, resources
