"""What people see of a command while it runs, in a terminal and in a pipe."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from tools import progress
from tools.progress import Stages


def test_pipe_gets_lines_of_stages_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    screen = Console(file=io.StringIO(), width=40, highlight=False, soft_wrap=True)
    with Stages(screen) as stages:
        site, grading = stages.add("Site"), stages.add("Grade")
        for seconds, done in ((0, 1), (2, 2), (6, 3), (7, 16), (7, 16)):
            clock.seconds = 1000 + seconds
            site(done, 16, "" if done == 16 else "bnp_cnn")
        clock.seconds = 1723
        grading(120, 594, "erm · [red]ada" + "x" * 200)
    lines = screen.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        " 0:00  Site 1/16 · bnp_cnn",
        " 0:06  Site 3/16 · bnp_cnn",
        " 0:07  Site 16/16",  # the end of a stage, once
        "12:03  Grade 120/594 · erm · [red]adaxx…",
    ]


@pytest.mark.parametrize("width", [80, 100])
def test_bars_stay_on_a_line_each(width: int) -> None:
    screen = Console(file=io.StringIO(), width=width, force_terminal=True)
    stages = Stages(screen)
    for name in ("Release", "Site", "Class", "Grade"):
        stages.add(name)(120, 594, "conditioning · [red]" + "x" * 80)
    assert not stages.disable
    page = Console(file=io.StringIO(), width=width)
    page.print(stages.get_renderable())
    final = page.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [line.split()[1] for line in final] == ["Release", "Site", "Class", "Grade"]
    assert all(len(line) <= width and "120/594" in line for line in final)
    assert all(line.rstrip().endswith("…") for line in final)
