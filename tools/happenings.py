"""Say in a short phrase what happened to a student's notebooks."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tools.layout import Course
from tools.results import Row

MISSING = "missing notebooks"
KINDS = (
    (re.compile(r"timeout: |took too long"), "endless or slow"),
    (re.compile(r"syntax error: "), "syntax errors"),
    (re.compile(r"kernel died: |ended Python"), "ended Python"),
    (re.compile(r"cell deleted: |cell \S+ was missing"), "deleted cells"),
    (re.compile(r"the (?:function|name) \S+ was not found"), "renamed functions"),
    (re.compile(r"notebook missing: |\S+\.ipynb was not handed in"), MISSING),
    (re.compile(r"locked cell \S+ was changed"), "changed tests"),
)
"""What grading says of a cell, and the phrase that counts such cells."""

LATE = re.compile(r"handed in .* late")


def flags(course: Course, topics: Iterable[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what the grader last said of each submission, by student and assignment."""
    found = {}
    for topic in topics:
        report = course.root / str(course.config.Gradebox.folder) / f"{topic}.json"
        outcomes = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else {}
        for student, outcome in outcomes.items():
            found[student, topic] = tuple(
                outcome["flags"] or ([outcome["why"]] if outcome["why"] else [])
            )
    return found


def phrase(notes: Sequence[str], said: Sequence[str] = ()) -> str:
    """Return the kinds of what happened, with their numbers, the most frequent first.

    Parameters
    ----------
    notes : sequence of str
        What the executed notebooks show.
    said : sequence of str
        What the grader said; the part of it that the notebooks show too is not counted twice.

    >>> phrase(["syntax error: erm-risk", "syntax error: erm-loss"])
    'syntax errors: 2'
    """
    counted = Counter(map(_kind, notes)) | Counter(
        _kind(one) for one in said if not LATE.match(one)
    )
    return ", ".join(_counted(kind, number) for kind, number in counted.most_common())


def is_merely_missing(phrase: str) -> bool:
    """Return whether a phrase says of notebooks that they are missing, and nothing else.

    >>> is_merely_missing("missing notebooks: 6")
    True
    """
    return bool(re.fullmatch(rf"{MISSING}: \d+", phrase))


def _kind(note: str) -> str:
    for pattern, kind in KINDS:
        if pattern.search(note):
            return kind
    return re.sub(r"\bcell \S+", "a cell", note)


def _counted(kind: str, number: int) -> str:
    known = any(kind == phrase for _, phrase in KINDS)
    return f"{kind}: {number}" if known or number > 1 else kind


def by_student(
    rows: Iterable[Row], said: Mapping[tuple[str, str], Sequence[str]]
) -> dict[str, str]:
    """Return one phrase for each student to whom anything happened.

    Parameters
    ----------
    rows : iterable of Row
        The results of the students.
    said : mapping
        What the grader said, by student and assignment.
    """
    both: dict[str, tuple[list[str], list[str]]] = {}
    for row in rows:
        shown, told = both.setdefault(row.student, ([], []))
        shown += row.notes.split("; ") if row.notes else []
        told += said.get((row.student, row.assignment), ())
    phrases = {student: phrase(*texts) for student, texts in both.items()}
    return {student: text for student, text in phrases.items() if text}
