"""Print and write what happened to submissions, and how their tests run."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gradebox import files
from gradebox.events import Event
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.plan import IN_PROCESS, TestRun
from gradebox.run.batch import Outcome


def recorded(course: Course, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    """Yield what becomes of submissions, and write it into the report as it happens."""
    entries = read(course)  # written without an indent, which would take twenty times as long
    for outcome in outcomes:
        events = [event.plain for event in outcome.events]
        entries[outcome.student] = {"state": outcome.state, "events": events, "why": outcome.why}
        files.write(path_of(course), json.dumps(entries, sort_keys=True, separators=(",\n", ": ")))
        yield outcome


def read(course: Course) -> Any:
    """Return what became of each submission when it was last graded, by student."""
    return files.read_json(path_of(course))


def path_of(course: Course) -> Path:
    """Return where the report of an assignment lies."""
    return course.store / f"{course.assignment}.json"


def show(console: Console, outcomes: Sequence[Outcome]) -> None:
    """Print how many were graded and failed, and what happened to whom."""
    count = Counter(outcome.state for outcome in outcomes)
    graded = sorted((o for o in outcomes if o.state != "failed"), key=lambda o: o.student)
    look = sum(any(event.is_to_look_at for event in outcome.events) for outcome in graded)
    first = f"Graded {count['graded']}, unchanged {count['unchanged']}"
    console.print(f"{first}, to look at {look}, failed {count['failed']}.")
    told = Counter(str(event) for outcome in graded for event in outcome.events)
    # what happened to everyone has one row
    common = {sentence for sentence, number in told.items() if number == len(graded) > 1}
    rows = [("everyone", [e for e in graded[0].events if str(e) in common])] if common else []
    rows += [(o.student, [e for e in o.events if str(e) not in common]) for o in graded]
    cells = [(who, _told(events, True), _told(events, False)) for who, events in rows if events]
    _print(console, ("student", "look", "note"), cells)
    failed = sorted((o.student, o.why) for o in outcomes if o.state == "failed")
    _print(console, ("failed", "why"), failed)


def _told(events: Iterable[Event], look: bool) -> str:
    return "; ".join(dict.fromkeys(str(e) for e in events if e.is_to_look_at is look))


def _print(console: Console, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*titles, box=None)
    for row in rows:
        table.add_row(*map(escape, row))
    if rows:
        console.print(table)


def show_tests(console: Console, tests: Sequence[TestRun]) -> None:
    """Print how each test runs, and why those that can be forged do not run isolated."""
    numbers = [[f"{n:g}" for n in (test.points, test.answers, test.blank)] for test in tests]
    rows = [(_name(test), *row, test.way) for test, row in zip(tests, numbers, strict=True)]
    _print(console, ("test", "points", "your answers", "blank", "way"), rows)
    said = [f"{_name(test)}: {sentence}" for test in tests for sentence in _sentences(test)]
    isolated = [test for test in tests if test.way != IN_PROCESS]
    if once := [_name(test) for test in isolated if not test.again]:
        said.append(_listed("These see copies alone, and are not asked again in-process:", once))
    names = sorted({name for test in isolated for name in test.asks})
    uses = f"; of the student's they use copies of what these names mean: {_quoted(names)}"
    number = f"{len(isolated)} of {len(tests)} scores come from isolated tests"
    said.append(f"{number}{uses if names else ''}.")
    in_process = ", ".join(_name(test) for test in tests if test.way == IN_PROCESS)
    said += [f"{each}: {in_process}." for each in _forgeable(tests)]
    for sentence in said:
        console.print(escape(sentence), soft_wrap=True)


def _name(test: TestRun) -> str:
    return f"{test.notebook}/{test.cell}"


# what an instructor can do about a reason, by words in it; the first that fits
_REMEDIES = {
    "only values cross": "let a driver return values: gradebox.observe",
    "Stub": "test what it returns, or let a driver look at it: gradebox.observe",
    "NameError": "define that name in the test, or in a locked cell",
    "FileNotFoundError": "let a driver return what is in the file: gradebox.observe",
    "": "test what a call returns; an isolated test sees copies",
}


def _sentences(test: TestRun) -> Iterator[str]:
    if test.way == IN_PROCESS and test.why and not test.fails:
        # a name of the student's, which the test itself deletes or replaces
        why = "" if any(f"'{name}' is not" in test.why for name in test.asks) else test.why
        remedy = next(remedy for words, remedy in _REMEDIES.items() if words in why)
        yield f"in-process, because isolated it gave: {test.why}; {remedy}"
    elif test.way == IN_PROCESS:
        yield "its metadata or the configuration ask for in-process"
    if test.pythons:
        yield f"{_quoted(test.pythons)}, which Python has, too, is the student's in it"
    if test.lends:
        uses = f"because these use {_quoted(test.lends)} of it"
        yield f"what students see of it also runs among their cells, {uses}"
    if test.fails:
        got = f"{test.answers:g} of {test.points:g} points" + (f" ({test.why})" if test.why else "")
        yield f"your own answers get {got}; correct the test or the answer"
    if test.blank > 0:
        yield "a blank notebook gets points; let it fail without an answer"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _forgeable(tests: Sequence[TestRun]) -> Iterator[str]:
    if in_process := [test.points for test in tests if test.way == IN_PROCESS]:
        scores = f"{len(in_process)} of {len(tests)} scores ({sum(in_process):g} points)"
        where = "tests in the student's process, where a student who tries can forge them"
        yield f"{scores} come from {where}"


def warn(console: Console, tests: Sequence[TestRun], assignment: str) -> None:
    """Print what an instructor has to know before the first student is graded."""
    lines = [f"{said}. More: gradebox check {assignment}" for said in _forgeable(tests)]
    if fails := [_name(test) for test in tests if test.fails]:
        said = _listed("Your own answers do not get all points of", fails)
        lines.append(f"[yellow]{escape(said)}[/] Nobody can.")
    if free := [_name(test) for test in tests if test.blank > 0]:
        lines.append(f"[yellow]{escape(_listed('A blank notebook gets points of', free))}[/]")
    for line in lines:
        console.print(line, soft_wrap=True)


def _listed(said: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{said} {', '.join(names[:5])}{more}."
