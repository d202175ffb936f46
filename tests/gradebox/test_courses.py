"""nbgrader's own example course gets the points that ``nbgrader autograde`` gives.

It is taken from the installed package, with and without automatic tests, and graded by ``gradebox
grade`` as it comes, with its dry run.
"""

import contextlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbgrader
import pytest
from courses import CONFIG, Assignment, hand_in
from hostile.texts import split
from nbgrader.apps.quickstartapp import QuickStartApp

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("courses")]

PACKAGED = Path(nbgrader.__file__).parent / "docs/source/user_guide/submitted"
"""What two students hand in to nbgrader's example course."""


def answers() -> dict[str, dict[str, str]]:
    """Return answers to the example course, by student and cell."""
    text = Path(__file__).with_name("courses").joinpath("example.txt").read_text(encoding="utf-8")
    return {name: dict(split(cells, "---")) for name, cells in split(text, "===")}


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
