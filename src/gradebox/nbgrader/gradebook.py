"""Read an assignment from nbgrader's gradebook, and hold the gradebook open during a run.

nbgrader's steps each open the gradebook anew, ask it cell by cell and commit after each answer:
half of the time that grading takes without kernels. Those of this package are handed one that is
open already, see :func:`opened`.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import sqlalchemy as sql
from nbgrader.api import (
    BaseCell,
    Grade,
    Gradebook,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from gradebox.events import Event
from gradebox.files import digest
from gradebox.nbgrader.cells import require_python

_FINGERPRINTS = sql.Table(
    "gradebox_fingerprints",
    sql.MetaData(),
    sql.Column("submission_id", sql.String(32), primary_key=True),
    *(sql.Column(name, sql.String(64), nullable=False) for name in ("key", "scores")),
    sql.Column("events", sql.Text, nullable=False),
    sql.Column("at", sql.DateTime, server_default=sql.func.now()),
)
"""What the scores of a submission were made from; it stands beside nbgrader's own tables."""


class Mark(NamedTuple):
    """What the gradebook says of a submission with scores."""

    key: str = ""  # the checksum of what the scores were made from; empty if nbgrader made them
    extension: str = "None"  # how much longer the student may take
    events: tuple[Event, ...] = ()  # what happened when it was graded


def opened(resources: Any) -> contextlib.AbstractContextManager[Any]:
    """Give a step of nbgrader's the gradebook: the one that the run has open, or one for the step.

    A run puts its own under ``"gradebook"`` into what nbgrader passes to its steps.
    """
    book = resources.get("gradebook")
    return contextlib.nullcontext(book) if book else Gradebook(resources["nbgrader"]["db_url"])


_KINDS = ("source_cells", "grade_cells", "task_cells", "solution_cells")


def _columns(entry: Any) -> dict[str, Any]:
    """Return what the gradebook has of an entry, by the names of the columns."""
    return {
        column.key: getattr(entry, column.key) for column in sql.inspect(entry).mapper.column_attrs
    }


class Sources:
    """The cells of one assignment as the gradebook has them; for any thread.

    They are made of plain data: those of :meth:`read`, or what :attr:`plain` has given elsewhere.
    """

    def __init__(self, plain: dict[str, Any], duedate: Any = None) -> None:
        self._plain, self.duedate = plain, duedate
        self.assignment = str(plain["assignment"])
        self.releases: dict[str, list[Any]] = plain.get("releases", {})
        """The releases of each notebook that a store has seen."""
        self._notebooks: dict[str, Any] = {}
        for fields in sorted(plain["notebooks"], key=itemgetter("name")):
            cells = {kind: [SimpleNamespace(**cell) for cell in fields[kind]] for kind in _KINDS}
            self._notebooks[fields["name"]] = SimpleNamespace(**fields | cells)
        self.names = [*self._notebooks]  # the names of the notebooks

    @classmethod
    def read(cls, url: str, course_id: str, assignment: str) -> "Sources":
        """Read an assignment; raise ``MissingEntry`` if the gradebook does not know it."""
        with Gradebook(url, course_id) as book:
            entry = book.find_assignment(assignment)
            notebooks = [
                _columns(notebook)
                | {kind: [*map(_columns, getattr(notebook, kind))] for kind in _KINDS}
                for notebook in entry.notebooks
            ]
            return cls({"assignment": assignment, "notebooks": notebooks}, entry.duedate)

    @property
    def plain(self) -> dict[str, Any]:
        """Return all that executions need to know as plain data."""
        return self._plain | {"releases": self.releases}

    def require_python(self) -> None:
        """Raise ``NotPython`` unless all notebooks run Python."""
        for name, notebook in self._notebooks.items():
            kernelspec = json.loads(notebook.kernelspec or "{}")
            require_python(SimpleNamespace(metadata={"kernelspec": kernelspec or {}}), name)

    @property
    def digest(self) -> str:
        """Return the checksum of all that grading takes from here."""
        parts = attrgetter("name", "cell_type", "locked", "source", "checksum")
        notebooks = [
            [
                *(name, notebook.kernelspec),
                sorted(map(parts, notebook.source_cells)),
                sorted((c.name, c.max_score) for c in notebook.grade_cells + notebook.task_cells),
            ]
            for name, notebook in self._notebooks.items()
        ]
        return digest([json.dumps(notebooks)])

    def find_notebook(self, name: str, assignment: str) -> Any:
        """Return a notebook."""
        if assignment != self.assignment or name not in self._notebooks:
            raise MissingEntry(f"No such entry: {assignment}/{name}")
        return self._notebooks[name]


class _Held(Session):
    """A session in which commits wait for the end of the submission."""

    def commit(self) -> None:
        """Keep the transaction open: changes are written together, before anything is read."""


class Book(Gradebook):  # type: ignore[misc]
    """The gradebook of the one who writes: one transaction for each submission."""

    db: Any

    def __init__(self, url: str, course_id: str = "") -> None:
        super().__init__(url, course_id)
        self.db.remove()
        self.db = scoped_session(sessionmaker(class_=_Held, bind=self.engine, future=True))
        self._submissions: dict[tuple[str, str], SubmittedAssignment] = {}
        self._entries: dict[str, dict[tuple[str, str], Any]] = {}
        self._names: dict[str, str] = {}  # what cells are called, by their ids
        _FINGERPRINTS.create(self.engine, checkfirst=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all that happens inside at once, or nothing of it."""
        try:
            yield
            self.settle()
        finally:
            self._submissions, self._entries = {}, {}
            self.db.remove()

    def settle(self) -> None:
        """Write what was changed, so that others see it who open the gradebook."""
        Session.commit(self.db())

    def add_submission(self, assignment: str, student: str, **more: Any) -> SubmittedAssignment:
        """Add a submission, and ask nothing of the database while it is half made."""
        with self.db.no_autoflush:
            submission = super().add_submission(assignment, student, **more)
        self._submissions[assignment, student] = submission
        return submission

    def find_submission(self, assignment: str, student: str) -> SubmittedAssignment:
        """Return a submission, which a transaction asks for once."""
        key = assignment, student
        if key not in self._submissions:
            self._submissions[key] = super().find_submission(assignment, student)
        return self._submissions[key]

    def find_submission_notebook(
        self, notebook: str, assignment: str, student: str
    ) -> SubmittedNotebook:
        """Return a notebook of a submission, without a question if the submission is known."""
        for entry in self.find_submission(assignment, student).notebooks:
            if entry.name == notebook:
                return entry
        raise MissingEntry(f"No such entry: {assignment}/{student}/{notebook}")

    def find_grade(self, grade_cell: str, notebook: str, assignment: str, student: str) -> Any:
        """Return a grade; those of a notebook are read together."""
        return self._entry("grades", grade_cell, notebook, assignment, student)

    def find_comment(self, solution_cell: str, notebook: str, assignment: str, student: str) -> Any:
        """Return a comment; those of a notebook are read together."""
        return self._entry("comments", solution_cell, notebook, assignment, student)

    def _entry(self, kind: str, cell: str, notebook: str, assignment: str, student: str) -> Any:
        name = f"{assignment}/{student}/{notebook}"
        if name not in self._entries:
            submitted: Any = self.find_submission_notebook(notebook, assignment, student)
            entries = [(k, each) for k in ("grades", "comments") for each in getattr(submitted, k)]
            if not {each.cell_id for _, each in entries} <= self._names.keys():
                with self.db.no_autoflush:
                    cells = self.db.query(BaseCell.id, BaseCell.name)
                    found = cells.filter(BaseCell.notebook_id == submitted.notebook.id)
                    self._names |= dict(map(tuple, found))
            self._entries[name] = {(k, self._names[each.cell_id]): each for k, each in entries}
        if (kind, cell) not in self._entries[name]:
            raise MissingEntry(f"No such entry: {name}/{cell} among the {kind}")
        return self._entries[name][kind, cell]

    def mark(self, submission: SubmittedAssignment, key: str, events: Sequence[Event]) -> None:
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
        rows = {row.submission_id: row for row in self.db.execute(sql.select(_FINGERPRINTS))}
        try:
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
        finally:
            self.db.remove()

    def _scores(self, submissions: list[str]) -> dict[str, str]:
        """Return a checksum of the scores that tests gave, by the id of the submission."""
        grades = (
            self.db.query(SubmittedAssignment.id, Grade.cell_id, Grade.auto_score)
            .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
            .filter(SubmittedAssignment.id.in_(submissions))
            .order_by(Grade.cell_id)
        )
        lines: dict[str, list[str]] = {}
        for submission, cell, score in grades:
            lines.setdefault(submission, []).append(f"{cell} {score}")
        return {submission: digest(of_cells) for submission, of_cells in lines.items()}
