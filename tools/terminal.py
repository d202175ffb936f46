"""What every command shares: the console, and errors with what fixes them."""

import argparse
import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

PIPE_WIDTH = 100  # columns of a table that goes to a pipe or a file, unless COLUMNS says otherwise

console = Console(
    highlight=False,
    soft_wrap=not sys.stdout.isatty(),
    width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH,
)

LOGS = Path(__file__).resolve().parent.parent / "build" / "logs"
"""Where the tracebacks of unexpected errors are written."""


class ToolError(Exception):
    """A command cannot go on: what is wrong, what to do about it, and all that was said."""

    def __init__(self, problem: str, remedy: str, log: str = "") -> None:
        super().__init__(f"{problem}\nTo fix: {remedy}")
        self.problem, self.remedy, self.log = problem, remedy, log


def argument(*names: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return an argument of a command, as argparse's ``add_argument`` takes it."""
    return names, settings


class Command:
    """A function that the command line runs; its parameters have the names of the arguments."""

    def __init__(self, function: Callable[..., int | None], *arguments: Any) -> None:
        module = function.__globals__  # which is called __main__ when it is run with -m
        self.function = function
        self.parser = argparse.ArgumentParser(
            prog=f"python -m {module['__spec__'].name}",
            description=module["__doc__"],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for names, settings in arguments:
            self.parser.add_argument(*names, **settings)

    def __call__(self, *words: str, **more: Any) -> int:
        """Run the command in Python, where errors are raised; return its exit status."""
        return self.function(**vars(self.parser.parse_args(words)), **more) or 0

    def run(self, words: Sequence[str] | None = None) -> int:
        """Run the command line; return its exit status, with errors told shortly.

        What nobody expected leaves its traceback in a file, so that the last line says what to do;
        `make` adds one. A sign that the output cannot hold becomes a question mark.
        """
        with contextlib.suppress(AttributeError):  # a stream of the caller's may hold them all
            sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        try:
            return self(*(sys.argv[1:] if words is None else words))
        except Exception as error:
            told = explained(error, LOGS / f"{self.parser.prog.split('.')[-1]}.log")
            console.print(f"[bold red]Problem:[/] {escape(told.problem)}")
            console.print(f"[bold]To fix:[/] {escape(told.remedy)}")
            return 1


def command(*arguments: Any) -> Callable[[Callable[..., int | None]], Command]:
    """Make a function the command of its module, whose docstring is the help.

    A command is the last definition of a module: if that was started with ``-m``, it runs at once.
    """

    def made(function: Callable[..., int | None]) -> Command:
        result = Command(function, *arguments)
        if function.__globals__["__name__"] == "__main__":
            sys.exit(result.run())
        return result

    return made


def explained(error: BaseException, log: Path) -> ToolError:
    """Return what is to be told of an error; what nobody expected leaves its traceback in a log."""
    if isinstance(error, ToolError):
        return error
    # a full disk may be the very error: then the traceback is lost, and its last line is not
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    remedy = f"the traceback in {log} shows where it was"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES):
        remedy = "make room there, or allow to write; then run the same command again"
    return ToolError(traceback.format_exception_only(error)[-1].strip(), remedy)


def tell(title: str, items: Iterable[object]) -> None:
    """Print a title with what belongs to it, if anything does."""
    if text := ", ".join(map(str, items)):
        console.print(Text(f"{title}: {text}"))


def cut(line: str) -> None:
    """Print a line, which ends with dots where there is no more room."""
    console.print(Text(line), no_wrap=True, overflow="ellipsis", soft_wrap=False)
