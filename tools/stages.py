"""Show how far the stages of a command are: bars in a terminal, plain lines elsewhere."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from tools.terminal import console

Tell = Callable[[int, int, str], None]
"""Called with the number done, the number of all, and what is done now."""

CHANGE_SECONDS = 5.0
"""A plain line follows another after so many seconds at the earliest, if something changed."""

SILENCE_SECONDS = 30.0
"""A plain line follows another after so many seconds in any case, to show that work goes on."""


@dataclass
class Stage:
    """How far one stage of a command is.

    Parameters
    ----------
    name : str
        What people call the stage.
    done, total : int
        How many of its parts are done, and how many there are; no total before it begins.
    now : str
        What is done now; empty at the end.
    """

    name: str
    done: int = 0
    total: int = 0
    now: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.done}/{self.total}" + (f" · {self.now}" if self.now else "")

    @property
    def begun(self) -> bool:
        """Return whether anything was reported of this stage."""
        return bool(self.total)

    @property
    def ended(self) -> bool:
        """Return whether all parts of this stage are done."""
        return self.begun and self.done >= self.total


class Stages:
    """Show the stages of a command while it runs; a context manager.

    A terminal shows a bar for each stage. A pipe, a file or the log of a continuous integration
    gets a plain line every few seconds, without control characters.

    Parameters
    ----------
    screen : Console, optional
        Where to show them.
    """

    def __init__(self, screen: Console = console) -> None:
        self._bars = _bars(screen) if screen.is_interactive else None
        self._lines = Lines(screen)

    def add(self, name: str) -> Tell:
        """Add a stage; return the function that reports its progress."""
        if self._bars is None:
            return self._lines.add(name)
        bars, task = self._bars, self._bars.add_task(name, total=None, now="waits")

        def tell(done: int, total: int, now: str) -> None:
            bars.update(task, completed=done, total=total, now=now)

        return tell

    def __enter__(self) -> "Stages":
        (self._bars or self._lines).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        (self._bars or self._lines).stop()


class Lines:
    """Print the stages of a command as plain lines, from a thread of its own.

    Parameters
    ----------
    screen : Console
        Where to print.
    """

    def __init__(self, screen: Console) -> None:
        self._screen = screen
        self._stages: list[Stage] = []
        self._begin = self._printed_at = time.monotonic()
        self._printed: list[str] = []
        self._shown_ended: set[str] = set()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._print_regularly, daemon=True)

    def add(self, name: str) -> Tell:
        """Add a stage; return the function that reports its progress."""
        stage = Stage(name)
        self._stages.append(stage)

        def tell(done: int, total: int, now: str) -> None:
            stage.done, stage.total, stage.now = done, total, now

        return tell

    def start(self) -> None:
        """Begin to print."""
        self._thread.start()

    def stop(self) -> None:
        """Print the last state, and no more."""
        self._stopped.set()
        self._thread.join()
        self.print_changes(time.monotonic())

    def _print_regularly(self) -> None:
        while not self._stopped.wait(CHANGE_SECONDS):
            now = time.monotonic()
            self.print_changes(now)
            if now - self._printed_at >= SILENCE_SECONDS:
                self._print(now)

    def print_changes(self, now: float) -> None:
        """Print a line if a stage has changed since the last line."""
        if list(map(str, self._stages)) != self._printed:
            self._print(now)

    def _print(self, now: float) -> None:
        """Print the stages that have begun; the end of a stage is shown once."""
        self._printed, self._printed_at = list(map(str, self._stages)), now
        shown = [one for one in self._stages if one.begun and one.name not in self._shown_ended]
        if not shown:
            return
        seconds = round(now - self._begin)
        line = f"{seconds // 60:>2}:{seconds % 60:02}  {'    '.join(map(str, shown))}"
        self._screen.print(Text(line), no_wrap=True, overflow="ellipsis", soft_wrap=False)
        self._shown_ended |= {stage.name for stage in shown if stage.ended}


def _bars(screen: Console) -> Progress:
    """Return bars that fill the width; what is done now is cut where there is no more room."""
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    return Progress(
        SpinnerColumn(),
        TextColumn("[bold]{task.description:<8}"),
        BarColumn(bar_width=16),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}", markup=False, table_column=rest),
        console=screen,
        expand=True,
    )
