"""Show how far the stages of a command are: bars in a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence

from rich import progress as bars
from rich.console import Console
from rich.table import Column
from rich.text import Text

from tools.terminal import console

OnProgress = Callable[[int, int, str], None]
"""Called with the number done, the number of all, and what is done now (empty at the end)."""


def each(names: Sequence[str], on_progress: OnProgress) -> Iterator[str]:
    """Yield names one by one, and report the progress."""
    for number, name in enumerate(names):
        on_progress(number, len(names), name)
        yield name
    on_progress(len(names), len(names), "")


LINE_SECONDS = 5.0
"""Where there is no terminal, a stage prints a line after so many seconds at the earliest."""


class Stages(bars.Progress):
    """Show the stages of a command while it runs; a context manager.

    A terminal shows a bar for each stage. A pipe, a file or the log of a continuous integration
    gets a plain line every few seconds, and one at the end of each stage: rich would show nothing
    there before the end of all.
    """

    def __init__(self, screen: Console = console) -> None:
        # what is done now is cut where there is no more room
        rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
        super().__init__(
            *(bars.SpinnerColumn(), bars.TextColumn("[bold]{task.description:<8}")),
            *(bars.BarColumn(bar_width=16), bars.MofNCompleteColumn(), bars.TimeElapsedColumn()),
            *(bars.TextColumn("left"), bars.TimeRemainingColumn()),
            bars.TextColumn("{task.fields[now]}", markup=False, table_column=rest),
            console=screen,
            expand=True,
            disable=not screen.is_interactive,
        )
        self._begin = time.monotonic()

    def add(self, name: str) -> OnProgress:
        """Add a stage; return the function that reports its progress."""
        task = self.add_task(name, total=None, now="waits")
        next_line, printed = 0.0, ""

        def on_progress(done: int, total: int, now: str) -> None:
            nonlocal next_line, printed
            self.update(task, completed=done, total=total, now=now)
            seconds = time.monotonic() - self._begin
            text = f"{name} {done}/{total}" + (f" · {now}" if now else "")
            if not self.disable or text == printed or (done < total and seconds < next_line):
                return
            next_line, printed = seconds + LINE_SECONDS, text
            line = Text(f"{int(seconds) // 60:>2}:{int(seconds) % 60:02}  {text}")
            self.console.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)

        return on_progress
