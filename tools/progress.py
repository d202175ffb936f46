"""Show how far the stages of a command are: bars in a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

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

OnProgress = Callable[[int, int, str], None]
"""Called with the number done, the number of all, and what is done now (empty at the end)."""

LINE_SECONDS = 5.0
"""Where there is no terminal, a stage prints a line after so many seconds at the earliest."""


class Stages:
    """Show the stages of a command while it runs; a context manager.

    A terminal shows a bar for each stage. A pipe, a file or the log of a continuous integration
    gets a plain line every few seconds, and one at the end of each stage: rich would show nothing
    there before the end of all.

    Parameters
    ----------
    screen : Console, optional
        Where to show them.
    """

    def __init__(self, screen: Console = console) -> None:
        self._screen, self._begin = screen, time.monotonic()
        self._bars = _bars(screen) if screen.is_interactive else None

    def add(self, name: str) -> OnProgress:
        """Add a stage; return the function that reports its progress."""
        return self._add_lines(name) if self._bars is None else _add_bar(self._bars, name)

    def _add_lines(self, name: str) -> OnProgress:
        next_line, printed = 0.0, ""

        def on_progress(done: int, total: int, now: str) -> None:
            nonlocal next_line, printed
            seconds = time.monotonic() - self._begin
            text = f"{name} {done}/{total}" + (f" · {now}" if now else "")
            if text == printed or (done < total and seconds < next_line):
                return
            next_line, printed = seconds + LINE_SECONDS, text
            line = Text(f"{int(seconds) // 60:>2}:{int(seconds) % 60:02}  {text}")
            self._screen.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)

        return on_progress

    def __enter__(self) -> Self:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bars:
            self._bars.stop()


def _add_bar(bars: Progress, name: str) -> OnProgress:
    task = bars.add_task(name, total=None, now="waits")

    def on_progress(done: int, total: int, now: str) -> None:
        bars.update(task, completed=done, total=total, now=now)

    return on_progress


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
