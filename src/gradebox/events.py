"""Describe what happened to a submission as data; only this module turns it into sentences.

An event is an object that nbgrader's log takes as a message: printed, it is its sentence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_CHARACTERS = 300  # so many characters of an event are shown
# what a teacher must look at: the sentence of each kind
LOOK = {
    "tampering": "{what} was changed before the test ran",
    "reaches": "{what} can deceive a test in the student's process: look at the answer",
    "not-a-value": "{why}; {score}: look at the answer",
    "fails-in-process": "the test passes isolated and fails in the student's process ({why}); "
    "its points stay: look at the answer",
    "passes-in-process": "the test fails isolated ({why}) and passes in the student's process: "
    "look at the answer",
    "doubt": "the test uses {what}, which a cell that failed may have left half made",
    "not-sealed": "not sealed: this notebook can do whatever you can",
    "changed": "the {what} of cell {cell} {verb} changed; it was put back",
    "renamed": "the {what} `{name}` was not found; was it renamed to `{guess}`?",
    "slow": "{what} took too long",
    "ended": "{what} ended Python",
    "memory": "the cell needed more memory than it may use",
    "missing-notebook": "{notebook}.ipynb was not handed in",
    "no-time": "timestamp.txt holds no time, so nobody knows whether the work was late",
    "unknown-notebook": "{notebook}.ipynb is none of the assignment's notebooks",
}
# what is only information
NOTE = {
    "late": "handed in {duration} late",
    "late-penalty": "{points:g} points taken off for being late",
    "added": "{number} cells were added",
    "foreign": "cell {cell} is none of the assignment's",
    "twice": "cell {cell} is there twice; the last one counts",
    "older": "handed in for an older release",
    "order": "the cells were in another order; they were put back",
    "missing": "cell {cell} was missing; it was put back",
    "borrowed": "uses `{name}`, which only the test {test} defines",
    "syntax": "the cell has a syntax error",
    "large-output": "the outputs are left out: they were too large",
    "message": "{text}",
}


@dataclass(frozen=True)
class Event:
    """Something that happened to a submission."""

    kind: str  # one of :data:`LOOK` or :data:`NOTE`
    notebook: str = ""
    cell: str = ""  # where; empty where it is nowhere in particular
    # numbers and names, for the sentence and for programs
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_to_look_at(self) -> bool:
        """Return whether a teacher must look at it."""
        return self.kind in LOOK

    def __str__(self) -> str:
        fields = {"notebook": self.notebook, "cell": self.cell, **self.fields}
        if self.kind == "added" and fields["number"] == 1:
            return "1 cell was added"
        form = (LOOK | NOTE)[self.kind]
        sentence = form.format(**fields)
        if self.cell and "{cell}" not in form:
            sentence = f"{self.cell}: {sentence}"
        return printable(" ".join(sentence.split()))[:MAX_CHARACTERS]

    @property
    def plain(self) -> dict[str, Any]:
        """Return the event as plain data, for JSON."""
        place = {"notebook": self.notebook, "cell": self.cell}
        return {"kind": self.kind} | {n: v for n, v in place.items() if v} | dict(self.fields)

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "Event":
        """Return the event of which :attr:`plain` is the description."""
        fields = dict(plain)
        kind, notebook, cell = (fields.pop(name, "") for name in ("kind", "notebook", "cell"))
        return cls(kind, notebook, cell, fields)


def distinct(events: Iterable[Event]) -> list[Event]:
    """Return the events without repetitions, those to look at first."""
    once = {repr(event.plain): event for event in events}
    penalties = [event for event in once.values() if event.kind == "late-penalty"]
    if len(penalties) > 1:  # nbgrader takes points off notebook by notebook
        points = sum(event.fields["points"] for event in penalties)
        once = {text: event for text, event in once.items() if event not in penalties}
        once["late-penalty"] = Event("late-penalty", fields={"points": points})
    return sorted(once.values(), key=lambda event: not event.is_to_look_at)


def printable(text: str) -> str:
    """Return a text without control characters: students choose names of cells and files."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
