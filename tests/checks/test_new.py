"""A new exercise begins with all parts of a block, and with tasks that stay numbered."""

import shutil
from pathlib import Path

import pytest

from tools import new, notebooks
from tools.layout import ROOT, Course
from tools.terminal import ToolError


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """Return a course with the assignment on risk, which ends with a written question."""
    for path in ("nbgrader_config.py", "solutions/erm/erm.ipynb", "src/optdl/erm/noise.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return Course(tmp_path)


def titles(course: Course) -> list[str]:
    """Return the titles of the tasks."""
    cells = notebooks.read(course.source("erm")).cells
    return [cell.source.splitlines()[0] for cell in cells if new.NUMBER.match(cell.source)]


def test_new_task_is_numbered_and_made_once(course: Course) -> None:
    """The written question stays the last."""
    before = titles(course)
    new.exercise(course, "erm", "L1-07:newly-made", "newly_made")
    last = f"## {len(before) + 1} · In your own words"
    assert titles(course) == [*before[:-1], f"## {len(before)} · Newly made", last]
    begun = course.source("erm").read_bytes()
    with pytest.raises(ToolError, match="is there already"):
        new.exercise(course, "erm", "L1-07:newly-made", "newly_made")
    assert course.source("erm").read_bytes() == begun


def test_new_block_is_complete_and_steps_name_files(course: Course) -> None:
    steps = new.exercise(course, "erm", "L1-07:newly-made", "newly_made")
    block = (course.root / "src/optdl/checks/erm/l1_07_newly_made.py").read_text("utf-8")
    compile(block, "l1_07_newly_made.py", "exec")
    parts = ("@exercise.cases", "@exercise.fact", "exercise.help(")
    assert [block.count(part) for part in parts] == [1, 1, 1]
    named = {word.strip(",:;") for step in steps for word in step.split() if "/" in word}
    assert all((ROOT / path).exists() or (course.root / path).exists() for path in named)
    assert {"src/optdl/erm", "book/erm/index.md", "book/syllabus.md"} <= named
