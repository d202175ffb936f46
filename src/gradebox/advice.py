"""Tell an instructor how the tests of an assignment do, and what to do about it."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.prompt import Confirm
from rich.table import Table

from gradebox.bridge.trial import Trial

MENDS = (
    ("Unsendable", "a plain value instead: numbers, text, lists, dicts, arrays, tensors"),
    ("TooLong", "less at once"),
    ("RecursionError", "fewer calls that wait for each other"),
    ("NameError", "a name that the same cell defines"),
    ("AttributeError", "what a function returns, not what it is made of"),
    ("TypeError: a class of a test", "an object of that class, not a class that inherits from it"),
)
"""What would let a test run apart, by what it raises."""


def mend(trial: Trial) -> str:
    """Return what to do about a test, in a few words; nothing if all is well."""
    if trial.is_lost:
        return "cannot be graded: it needs what is hollow or banned"
    if trial.moved:
        kinds = (text for name, text in MENDS if trial.why.startswith(name))
        return f"mark it, or use {next(kinds, 'plain values that the test makes itself')}"
    if trial.fails:
        return "mend the test or the answer"
    return "let it fail without an answer" if trial.is_free else ""


def table(console: Console, trials: Sequence[Trial]) -> None:
    """Print how each test does, and what to do about those with which something is the matter."""
    shown = Table("test", "worth", "one process", "apart", "blank", "graded", box=None)
    for trial in trials:
        shown.add_row(
            f"{trial.notebook}/{trial.cell}",
            f"{trial.worth:g}",
            f"{trial.together.answers:g}",
            f"{trial.apart.answers:g}",
            f"{trial.together.blank:g}",
            "not at all" if trial.is_lost else "beside" if trial.moved else "as it is",
        )
    console.print(shown)
    console.print(
        "Points of your own answers in one process, apart from them, and of a blank notebook."
    )
    for trial in trials:
        if recommendation := mend(trial):
            why = f" It raised {trial.why}" if trial.why and trial.moved else ""
            console.print(
                escape(f"{trial.notebook}/{trial.cell}: {recommendation}.{why}"), soft_wrap=True
            )


def warn(console: Console, trials: Sequence[Trial], assignment: str) -> None:
    """Print what an instructor has to know before the first student is graded."""
    moved = [trial for trial in trials if trial.moved]
    if moved:
        console.print(
            f"[yellow]Beside the student's code run {_named(moved)}:[/] apart from it your own "
            "answers lose points. A student who tries can forge these scores. "
            f"More: gradebox check {assignment}",
            soft_wrap=True,
        )
    fails = [trial for trial in trials if trial.fails]
    if fails:
        console.print(
            f"[yellow]Your own answers do not get all points of {_named(fails)}.[/] Nobody can.",
            soft_wrap=True,
        )
    free = [trial for trial in trials if trial.is_free]
    if free:
        console.print(f"[yellow]A blank notebook gets points of {_named(free)}.[/]", soft_wrap=True)


def _named(trials: Sequence[Trial]) -> str:
    names = [escape(f"{trial.notebook}/{trial.cell}") for trial in trials]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def agreed(console: Console) -> bool:
    """Ask whether tests are to be marked, where somebody can answer."""
    if not (sys.stdin.isatty() and console.is_terminal):
        console.print("To mark these tests in your notebooks, add --write.")
        return False
    return Confirm.ask("Mark these tests in your notebooks?", console=console, default=False)
