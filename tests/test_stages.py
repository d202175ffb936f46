"""What people see of a command while it runs, in a terminal and in a pipe."""

import io
import time

import pytest
from rich.console import Console

from tools import stages
from tools.stages import Lines, Stages


def _pipe() -> Console:
    return Console(file=io.StringIO(), width=100, highlight=False, soft_wrap=True)


def _said(screen: Console) -> list[str]:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_a_pipe_gets_plain_lines_that_say_what_is_done() -> None:
    screen = _pipe()
    lines = Lines(screen)
    site, grading, _waits = (lines.add(name) for name in ("Site", "Grade", "Feedback"))
    begin = time.monotonic()
    site(5, 16, "bnp_cnn")
    grading(120, 594, "erm · [red]ada")
    lines.print_changes(begin + 723)
    assert _said(screen) == ["12:03  Site 5/16 · bnp_cnn    Grade 120/594 · erm · [red]ada"]


def test_a_long_line_is_cut_at_the_width() -> None:
    screen = _pipe()
    lines = Lines(screen)
    lines.add("Site")(5, 16, "x" * 200)
    lines.print_changes(time.monotonic())
    (line,) = _said(screen)
    assert len(line) == 100
    assert line.endswith("x…")


def test_a_line_is_printed_only_after_a_change_and_an_end_once() -> None:
    screen = _pipe()
    lines = Lines(screen)
    release, grading = lines.add("Release"), lines.add("Grade")
    begin = time.monotonic()
    lines.print_changes(begin)
    release(9, 9, "")
    for seconds in (5, 10, 15):
        lines.print_changes(begin + seconds)
    grading(1, 2, "erm")
    lines.print_changes(begin + 20)
    assert _said(screen) == [" 0:05  Release 9/9", " 0:20  Grade 1/2 · erm"]


def test_silence_is_broken_while_something_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "CHANGE_SECONDS", 0.001)
    monkeypatch.setattr(stages, "SILENCE_SECONDS", 0.002)
    screen = _pipe()
    with Stages(screen) as shown:
        shown.add("Site")(1, 16, "erm")
        while len(_said(screen)) < 3:
            time.sleep(0.001)
    assert {line.split("  ", 1)[1] for line in _said(screen)} == {"Site 1/16 · erm"}


def test_the_last_state_is_printed_however_short_the_run() -> None:
    screen = _pipe()
    with Stages(screen) as shown:
        shown.add("Site")(16, 16, "")
    assert _said(screen) == [" 0:00  Site 16/16"]
    assert "".join(_said(screen)).isprintable()


@pytest.mark.parametrize("width", [80, 100])
def test_bars_of_a_terminal_stay_on_a_line_each(width: int) -> None:
    screen = Console(file=io.StringIO(), width=width, force_terminal=True)
    shown = Stages(screen)
    for name in ("Release", "Site", "Class", "Grade"):
        shown.add(name)(120, 594, "conditioning · [red]" + "x" * 80)
    assert shown._bars is not None
    page = Console(file=io.StringIO(), width=width)
    page.print(shown._bars.get_renderable())
    final = _said(page)
    assert [line.split()[1] for line in final] == ["Release", "Site", "Class", "Grade"]
    assert all(len(line) <= width and "120/594" in line for line in final)
    assert all(line.rstrip().endswith("…") for line in final)
