"""Make the parts of a command so that the failure of a part costs only that part."""

import contextlib
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.text import Text

from tools.stamps import write_atomically
from tools.terminal import ToolError

Made = TypeVar("Made")


@dataclass(frozen=True)
class Failure:
    """A part of a command that could not be made.

    Parameters
    ----------
    part : str
        What people call the part.
    problem : str
        What is wrong.
    mend : str
        What to do about it; empty where the problem says it already.
    """

    part: str
    problem: str
    mend: str


class Attempts:
    """Make parts, and note those that fail.

    Parameters
    ----------
    root : Path
        The folder from which paths are shown.
    logs : Path
        Where the tracebacks of unexpected errors are written.
    """

    def __init__(self, root: Path, logs: Path) -> None:
        self._root, self._logs = root, logs
        self.failures: list[Failure] = []

    def make(self, part: str, action: Callable[[], Made]) -> Made | None:
        """Return what the action returns, or None when it fails; an interruption goes on."""
        try:
            return action()
        except ToolError as error:
            self.failures.append(Failure(part, error.problem, error.mend))
        except (Exception, SystemExit) as error:
            self.failures.append(self._unexpected(part, error))
        return None

    def _unexpected(self, part: str, error: BaseException) -> Failure:
        log = self._logs / f"{re.sub(r'[^0-9A-Za-z]+', '-', part)}.log"
        # a full disk may be the very error: then the traceback is lost, and its last line is not
        with contextlib.suppress(OSError):
            write_atomically(log, "".join(traceback.format_exception(error)).encode())
        last = traceback.format_exception_only(error)[-1].strip()
        where = log.relative_to(self._root)
        return Failure(part, last, f"the traceback in {where} shows where; then run this again")

    def show(self, screen: Console) -> None:
        """Print what failed, and how to mend it."""
        for failure in self.failures:
            screen.print(Text.assemble(("Failed: ", "bold red"), (failure.part, "bold")))
            for line in failure.problem.splitlines():
                screen.print(Text(f"  {line}"))
            if failure.mend:
                screen.print(Text.assemble(("  Mend: ", "bold"), failure.mend))
