"""What every command shares: the console, errors with what fixes them, a look at the disk."""

import argparse
import contextlib
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

PIPE_WIDTH = 100
"""Columns of a table that goes to a pipe or a file, unless COLUMNS says otherwise."""

console = Console(
    highlight=False,
    soft_wrap=not sys.stdout.isatty(),
    width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH,
)

FREE_MEGABYTES = 200

LOGS = Path(__file__).resolve().parent.parent / "build" / "logs"
"""Where the tracebacks of unexpected errors are written."""


class ToolError(Exception):
    """A command cannot go on.

    Parameters
    ----------
    problem : str
        What is wrong.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\nTo fix: {remedy}")
        self.problem = problem
        self.remedy = remedy


def run(
    command: Callable[[argparse.Namespace], int | None],
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None = None,
) -> int:
    """Parse the arguments and run a command; return its exit status, with errors told shortly.

    An interrupted command can be run again: what was finished is kept. What nobody expected leaves
    its traceback in a file, so that the last line says what to do; `make` adds one of its own.
    """
    namespace = parser.parse_args(arguments)
    try:
        return command(namespace) or 0
    except ToolError as error:
        console.print(f"[bold red]Problem:[/] {escape(error.problem)}")
        console.print(f"[bold]To fix:[/] {escape(error.remedy)}")
        return 1
    except KeyboardInterrupt:
        console.print("\nStopped. Run the same command again: it goes on where it stopped.")
        return 130
    except Exception as error:
        log = LOGS / f"{parser.prog.split('.')[-1]}.log"
        # a full disk may be the very error: then the traceback is lost, and its last line is not
        with contextlib.suppress(OSError):
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        last = traceback.format_exception_only(error)[-1].strip()
        console.print(f"[bold red]Problem:[/] {escape(last)}")
        console.print(f"[bold]To fix:[/] the traceback in {escape(str(log))} shows where it was")
        return 1


def need_disk(folder: Path, megabytes: int = FREE_MEGABYTES) -> None:
    """Raise unless the disk that holds ``folder`` has this much free space."""
    free = shutil.disk_usage(folder).free // 2**20
    if free < megabytes:
        raise ToolError(
            f"only {free} MB are free on the disk of {folder}, {megabytes} MB are needed",
            "free some space (`make clean` removes all that was built), then run it again",
        )
