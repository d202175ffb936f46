"""The experiments run, in seconds on the digits, and keep what they measured."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from optdl.records import Record

FOLDER = Path(__file__).resolve().parent.parent / "experiments"


def run(name: str, monkeypatch: pytest.MonkeyPatch, results: Path, *arguments: str) -> None:
    """Run an experiment as the command line does, with its results elsewhere."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    main = runpy.run_path(str(FOLDER / name))["main"]
    monkeypatch.setitem(main.__globals__, "RESULTS", results)
    main()


@pytest.mark.row("P-19")
def test_small_minibatches(tmp_path, monkeypatch, capsys):
    command = ("--data", "digits", "--batch", "60", "1", "--epochs", "1")
    run("fully_connected.py", monkeypatch, tmp_path, *command)
    said = capsys.readouterr().out
    assert "refuses: one example has no variance" in said
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5  # three methods at 60, two at 1
    for file in files:
        record = Record.load(file)
        accuracy = 100 * (1 - record.curves["validation_error"][-1])
        assert f"{accuracy:5.1f}" in said
        assert accuracy > 15  # ten classes: it has learned something
    times = [file.stat().st_mtime_ns for file in files]
    run("fully_connected.py", monkeypatch, tmp_path, *command)
    assert [file.stat().st_mtime_ns for file in files] == times  # nothing is run twice


@pytest.mark.row("P-18")
def test_condition_numbers_while_bnp_trains(tmp_path, monkeypatch, capsys):
    run("fig8.py", monkeypatch, tmp_path, "--data", "digits", "--epochs", "1", "--every", "5")
    rows = np.array(json.loads((tmp_path / "digits.json").read_text()))
    assert rows[:, 0].tolist() == [1, 6, 11, 16, 21]  # 1437 images: 24 minibatches of 60
    assert (rows[:, 2] < rows[:, 1]).all()  # P lowers the condition number
    assert "κ falls by a factor of" in capsys.readouterr().out


def test_committed_results_are_those_of_the_rates_in_the_code():
    rates = runpy.run_path(str(FOLDER / "fully_connected.py"))["RATES"]
    files = sorted((FOLDER / "results" / "fully_connected").glob("*.json"))
    assert files
    for file in files:
        config = Record.load(file).config
        assert config["lr"] == rates[config["data"]][config["batch"]][config["method"]], file.name
