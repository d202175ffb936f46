"""What people see of a command while it runs, in a terminal and in a pipe."""

import io
import time

import pytest
from rich.console import Console

from tools.progress import Stages


class Clock:
    """A clock that stands still until it is set."""

    seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    return clock


def _pipe() -> Console:
    return Console(file=io.StringIO(), width=100, highlight=False, soft_wrap=True)


def _lines(screen: Console) -> list[str]:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_pipe_gets_lines_of_stages_every_few_seconds(clock: Clock) -> None:
    screen = _pipe()
    with Stages(screen) as stages:
        site, grading = stages.add("Site"), stages.add("Grade")
        for seconds, done in ((0, 1), (2, 2), (6, 3)):
            clock.seconds = 1000 + seconds
            site(done, 16, "bnp_cnn")
        clock.seconds = 1723
        grading(120, 594, "erm · [red]ada")
    assert _lines(screen) == [
        " 0:00  Site 1/16 · bnp_cnn",
        " 0:06  Site 3/16 · bnp_cnn",
        "12:03  Grade 120/594 · erm · [red]ada",
    ]


def test_end_of_a_stage_is_printed_once(clock: Clock) -> None:
    screen = _pipe()
    with Stages(screen) as stages:
        release = stages.add("Release")
        for done in (1, 2, 3, 3):
            release(done, 3, "" if done == 3 else "erm")
    assert _lines(screen) == [" 0:00  Release 1/3 · erm", " 0:00  Release 3/3"]
    assert "".join(_lines(screen)).isprintable()


def test_a_long_line_is_cut_at_the_width() -> None:
    screen = _pipe()
    Stages(screen).add("Site")(5, 16, "x" * 200)
    [line] = _lines(screen)
    assert len(line) == 100
    assert line.endswith("x…")


@pytest.mark.parametrize("width", [80, 100])
def test_bars_stay_on_a_line_each(width: int) -> None:
    screen = Console(file=io.StringIO(), width=width, force_terminal=True)
    stages = Stages(screen)
    for name in ("Release", "Site", "Class", "Grade"):
        stages.add(name)(120, 594, "conditioning · [red]" + "x" * 80)
    assert stages._bars is not None
    page = Console(file=io.StringIO(), width=width)
    page.print(stages._bars.get_renderable())
    final = _lines(page)
    assert [line.split()[1] for line in final] == ["Release", "Site", "Class", "Grade"]
    assert all(len(line) <= width and "120/594" in line for line in final)
    assert all(line.rstrip().endswith("…") for line in final)
