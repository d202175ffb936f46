"""nbgrader's own example course gets the points that ``nbgrader autograde`` gives.

It is taken from the installed package, with and without automatic tests, and graded by ``gradebox
grade`` as it comes, with its dry run.
"""

import contextlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbgrader
import pytest
from courses import CONFIG, Assignment, hand_in
from nbgrader.apps.quickstartapp import QuickStartApp
from small_course import marks

pytestmark = marks("courses", pytest.mark.slow)

PACKAGED = Path(nbgrader.__file__).parent / "docs/source/user_guide/submitted"
"""What two students hand in to nbgrader's example course."""


def answers() -> dict[str, dict[str, str]]:
    """Return answers to the example course, by student and cell."""
    text = Path(__file__).with_name("courses").joinpath("example.txt").read_text(encoding="utf-8")
    parts = re.split(r"^(===|---) (.*)\n", text, flags=re.M)[1:]
    found: dict[str, dict[str, str]] = {}
    for kind, name, lines in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if kind == "===":
            found[name] = cells = {}
        else:
            cells[name] = lines.strip()
    return found


@pytest.mark.parametrize("options", [[], ["--autotest"]], ids=["example", "autotest"])
def test_nbgraders_example_gets_what_nbgrader_gives(tmp_path: Path, options: list[str]) -> None:
    root = tmp_path / "example"
    with contextlib.chdir(tmp_path):
        program = QuickStartApp()
        program.initialize([root.name, *options])
        program.start()
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(CONFIG)
    example = Assignment(root, "ps1")
    for path in example.release().glob("*.ipynb"):
        for student, filled in answers().items():
            hand_in(root / f"submitted/{student}/ps1/{path.name}", path, filled)
    if not options:
        shutil.copytree(PACKAGED, root / "submitted", dirs_exist_ok=True)
    stock = example.copy(tmp_path / "stock")
    before = contents(root)
    with ThreadPoolExecutor(1) as thread:
        autograded = thread.submit(stock.autograde)
        assert example.grade() == 0
        assert example.points() == autograded.result()
    assert {student for student, *_ in example.points()} >= answers().keys()
    report = example.report()
    assert report["otherwise"]["events"] == report["blank"]["events"] == []
    assert before.items() <= contents(root).items()


def contents(root: Path) -> dict[Path, bytes]:
    """Return the files of a course other than its gradebook."""
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "gradebook.db")
    return {path: path.read_bytes() for path in files}
