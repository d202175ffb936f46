"""The page on gradebox says what gradebox does: kinds of events, limits, and its example."""

import os
import re
from io import StringIO
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook
from nbgrader.preprocessors import Execute
from notebooks import answer, cell, step
from rich.console import Console

from gradebox.events import LOOK, NOTE
from gradebox.nbgrader.dry_run import dry_run
from gradebox.nbgrader.execute import WarmExecute
from gradebox.run import report

PAGE = (Path(__file__).resolve().parents[2] / "book" / "gradebox.md").read_text("utf-8")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

pytestmark = pytest.mark.xdist_group("gradebox")


def section(title: str) -> str:
    """Return the text below a heading of the page."""
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_kind_of_event_is_on_the_page():
    table, notes = section("What must you look at?").split("The kinds of notes are ")
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`([\w-]+)`", "".join(rows))) == sorted(LOOK)
    assert sorted(re.findall(r"`([\w-]+)`", notes)) == sorted(NOTE)


def test_every_limit_is_on_the_page():
    defaults = {"c.Execute.timeout": Execute.class_traits()["timeout"].default()} | {
        f"c.WarmExecute.{name}": trait.default()
        for name, trait in WarmExecute.class_traits().items()
        if name.startswith("max_")
    }
    rows = re.findall(r"^\| `(c\.\S+)` \| (\d+) ?(\w*)", section("What are the limits?"), re.M)
    assert {name: int(size) * UNITS.get(unit, 1) for name, size, unit in rows} == defaults


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox needs fork")
def test_the_example_of_a_driver_runs_as_shown(tmp_path):
    text = section("How do you test a class?")
    driver, observed, attribute = re.findall(r"```python\n(.*?)```", text, re.S)
    [shown] = re.findall(r"```console\n.*?\n(.*?)```", text, re.S)
    account = (
        "class Account:\n    ### BEGIN SOLUTION\n    balance = 0\n    def deposit(self, amount):\n"
        "        self.balance += amount\n    ### END SOLUTION"
    )
    cells = [answer(account), cell("attribute", attribute, 1), cell("driver", observed, 2)]
    source = tmp_path / "source" / "ps2"
    source.mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), source / "ps2.ipynb")  # type: ignore[no-untyped-call]
    (source / "drivers.py").write_text(driver)
    printed = StringIO()
    report.show_tests(Console(file=printed, width=84), dry_run(step(tmp_path), source, "ps2"))
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    assert lines == shown.splitlines()
