"""Read all that a gradebook says of a class, so that two gradebooks can be compared."""

from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.pool import NullPool

QUERIES = {
    "submissions": "SELECT student_id, assignment.name, timestamp, extension FROM "
    "submitted_assignment JOIN assignment ON assignment.id = submitted_assignment.assignment_id",
    "notebooks": "SELECT student_id, notebook.name, submitted_notebook.flagged, "
    "late_submission_penalty FROM submitted_notebook "
    "JOIN notebook ON notebook.id = submitted_notebook.notebook_id "
    "JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id",
}
for _kind, _columns in {
    "grade": "auto_score, manual_score, extra_credit, needs_manual_grade",
    "comment": "auto_comment, manual_comment",
}.items():
    QUERIES[f"{_kind}s"] = (
        f"SELECT student_id, notebook.name, base_cell.name, {_columns} FROM {_kind} "
        f"JOIN base_cell ON base_cell.id = {_kind}.cell_id "
        f"JOIN submitted_notebook ON submitted_notebook.id = {_kind}.notebook_id "
        "JOIN notebook ON notebook.id = submitted_notebook.notebook_id "
        "JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id"
    )

Rows = dict[str, list[tuple[Any, ...]]]


def rows(url: str) -> Rows:
    """Return what nbgrader's tables say of each student, and how many rows each table has.

    Identifiers are left out, for they are drawn at random; the numbers of rows tell whether there
    is one that no student has.
    """
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as book:
        found = {
            name: sorted(map(_plain, book.execute(text(query)))) for name, query in QUERIES.items()
        }
        tables = sorted(
            name for name in inspect(engine).get_table_names() if "gradebox" not in name
        )
        counted = {name: book.execute(text(f'SELECT count(*) FROM "{name}"')) for name in tables}
        found["numbers of rows"] = [(name, one.scalar_one()) for name, one in counted.items()]
    return found


def _plain(row: Any) -> tuple[str, ...]:
    """Return a row so that it can be sorted, and is the same from every kind of database."""
    return tuple(
        repr(float(one)) if isinstance(one, int | float) else str(one).removesuffix(".000000")
        for one in row
    )


def url(course: Path) -> str:
    """Return the address of the gradebook of a course in a folder."""
    return f"sqlite:///{course / 'gradebook.db'}"
