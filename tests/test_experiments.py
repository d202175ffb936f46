"""The experiments run, in seconds on small data, and keep what they measured, whatever happens."""

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hang import HANG

from optdl import experiments
from optdl.experiments import Experiment, Panel, Run, draw_curves, generated_images, spread
from optdl.records import Record

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "experiments"
# The recorded runs of the book have another form, and tests of their own.
FILES = sorted(path.name for path in FOLDER.glob("*.py") if path.name != "recorded.py")


def run(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path, *arguments: str) -> Path:
    """Run an experiment as the command line does, and return where its results are."""
    monkeypatch.setattr(sys, "argv", [name, "--results", str(folder), *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    return folder / Path(name).stem


@pytest.mark.row("P-18", "P-19", "P-20", "P-26", "P-27", "P-28")
@pytest.mark.parametrize("name", FILES)
def test_each_runs_and_draws(name, tmp_path, monkeypatch, capsys):
    results = run(name, monkeypatch, tmp_path, "--smoke", "--seeds", "1")
    panels = runpy.run_path(str(FOLDER / name))
    found = [Record.load(file) for file in results.glob("*.json")]
    # on the same small data, two panels may ask for the same run
    wanted = {
        (one.label, one.network, one.batch, one.rate) for p in panels["PANELS"] for one in p.runs
    }
    assert len(found) == len(wanted)
    for record in found:
        assert record.stop == f"all {record.config['epochs']} epochs", record.config
        assert record.versions["torch"] == torch.__version__
        assert {"label", "network", "batch", "rate", "data"} <= set(record.config)
    for ending in ("svg", "png"):
        assert (results / f"{results.name}.{ending}").stat().st_size > 5000
    times = {file: file.stat().st_mtime_ns for file in results.glob("*.json")}
    run(name, monkeypatch, tmp_path, "--smoke", "--seeds", "1")
    assert {file: file.stat().st_mtime_ns for file in times} == times  # nothing is run twice


def experiment(folder: Path, *arguments: str, **change) -> Experiment:
    """Return an experiment of one small run."""
    one = Run("BNP", "digits", "fc2", "BNP", 60, 0.1, 4)
    panel = Panel("digits", [experiments.replace(one, **change)])
    return Experiment(
        str(folder / "toy.py"), [panel], ["--seeds", "2", "--results", str(folder), *arguments]
    )


def test_more_epochs_are_run_anew_and_fewer_are_there(tmp_path, capsys):
    experiment(tmp_path).perform()
    [file, _] = files = sorted((tmp_path / "toy").glob("*.json"))
    before = file.read_bytes()
    experiment(tmp_path, "--epochs", "3").perform()
    assert file.read_bytes() == before
    experiment(tmp_path, "--epochs", "5").perform()
    assert [len(Record.load(f).curves["minibatch_loss"]) for f in files] == [5, 5]
    assert not list(tmp_path.rglob("*.pt"))  # a checkpoint goes when its run is done


def test_another_configuration_is_another_run(tmp_path):
    experiment(tmp_path).perform()
    records = experiment(tmp_path, settings={"rho": 0.5}).perform()
    [values] = records.values()
    assert {record.config["settings"]["rho"] for record in values} == {0.5}


INTERRUPTED = """
import sys
from optdl import ensembles, training
from optdl.experiments import Experiment, Panel, Run
run = Run("BNP", "digits", sys.argv[2], "BNP", 16, 0.1, 4)
if sys.argv[2] == "cnn5":
    run = Run("BNP", "generated", "cnn5", "BNP", 16, 0.01, 4)
experiment = Experiment(sys.argv[1] + "/toy.py", [Panel("", [run])],
                        ["--seeds", "1", "--results", sys.argv[1]])
experiment.perform()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.parametrize("network", ["fc2", "cnn5"])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path, network):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    kill = INTERRUPTED.replace(
        "experiment.perform()",
        "import os, signal, torch\n"
        "count = [0]\n"
        "def save(*arguments, plain=torch.save):\n"
        "    plain(*arguments)\n"
        "    count[0] += 1\n"
        f"    if count[0] == {4 if network == 'cnn5' else 3}:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "torch.save = save\n"
        "experiment.perform()",
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}

    def execute(code, folder):
        command = [sys.executable, "-c", code, str(folder), network]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=HANG
        )

    assert execute(kill, parts).returncode == -signal.SIGKILL
    assert list(parts.rglob("toy-*.pt"))
    assert not list(parts.rglob("*.json"))
    for folder in (whole, parts):
        done = execute(INTERRUPTED, folder)
        assert done.returncode == 0, done.stderr
    records = [Record.load(next(folder.rglob("*.json"))) for folder in (whole, parts)]
    assert records[0].curves == records[1].curves
    assert len(records[0].curves["minibatch_loss"]) == 4


def test_an_interruption_is_not_an_error(tmp_path, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "train_ensemble", interrupt)
    with pytest.raises(SystemExit) as stop:
        experiment(tmp_path).perform()
    assert stop.value.code == 130
    assert "the same command goes on" in capsys.readouterr().out


def test_a_run_that_diverges_is_recorded_and_not_repeated(tmp_path, capsys):
    one = experiment(tmp_path, method="vanilla", rate=1e30)
    one.perform()
    files = sorted((tmp_path / "toy").glob("*.json"))
    assert len(files) == 2
    stop = Record.load(files[0]).stop
    assert stop.startswith("diverged at step ")
    assert stop in capsys.readouterr().out
    draw_curves(one)  # what there is can be drawn
    times = [file.stat().st_mtime_ns for file in files]
    experiment(tmp_path, method="vanilla", rate=1e30).perform()
    assert [file.stat().st_mtime_ns for file in files] == times


def test_a_network_that_diverges_by_itself_is_recorded(tmp_path, capsys):
    one = experiment(tmp_path, network="cnn5", data="generated", method="vanilla", rate=1e30)
    assert one.perform() == {}  # it has no curves
    record = Record.load(one.file(one.panels[0].runs[0], 0))
    assert record.stop.startswith("diverged: the loss is nan at step")
    assert "try a smaller learning rate" in capsys.readouterr().err.lower()


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (FileNotFoundError("cifar is missing\nGet the file"), "data missing: cifar is missing"),
        (MemoryError("too large"), "out of memory: too large"),
        (torch.OutOfMemoryError("CUDA out of memory."), "out of memory: CUDA out of memory."),
        (RuntimeError("you tried to allocate memory"), "out of memory: you tried"),
    ],
)
def test_what_goes_wrong_is_said_recorded_and_tried_again(
    tmp_path, monkeypatch, capsys, error, outcome
):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(experiments, "train_ensemble", fail)
    one = experiment(tmp_path)
    assert one.perform() == {}
    assert outcome.split(":")[0] in capsys.readouterr().err
    file = one.file(one.panels[0].runs[0], 0)
    assert Record.load(file).stop.startswith(outcome)
    assert draw_curves(one) == []
    monkeypatch.undo()
    experiment(tmp_path).perform()
    assert Record.load(file).stop == "all 4 epochs"


def test_a_fault_of_the_program_is_not_an_outcome(tmp_path, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("shapes")

    monkeypatch.setattr(experiments, "train_ensemble", fail)
    with pytest.raises(RuntimeError, match="shapes"):
        experiment(tmp_path).perform()


def test_missing_data_says_what_to_put_where(tmp_path, capsys):
    one = experiment(
        tmp_path, "--imagenet", str(tmp_path / "none"), data="imagenet", network="resnet18",
        settings={"size": 32},
    )  # fmt: skip
    one.perform()
    assert f"there is no folder {tmp_path / 'none' / 'train'}" in capsys.readouterr().err


@pytest.mark.row("P-18")
def test_condition_numbers_while_bnp_trains(tmp_path):
    one = experiment(tmp_path, "--epochs", "1", watch_every=5)
    [records] = one.perform().values()
    curves = records[0].curves
    assert curves["watched_step"] == [1, 6, 11, 16, 21]  # 1438 images: 24 minibatches of 60
    before, after = np.array(curves["hessian"]), np.array(curves["preconditioned"])
    assert (after < before).all()
    assert (np.array(curves["D"]) > 1).all()


def test_spread_leaves_out_what_diverged_and_shows_it_if_there_is_nothing_else():
    fine = [Record({"loss": [2.0, 1.0]}), Record({"loss": [4.0, 2.0, 0.5]})]
    bad = Record({"loss": [9.0]}, stop="diverged at step 3")
    mean, low, high = spread([*fine, bad], "loss")
    assert (mean.tolist(), low.tolist(), high.tolist()) == ([3.0, 1.5], [2.0, 1.0], [4.0, 2.0])
    assert spread([bad], "loss")[0].tolist() == [9.0]


def test_a_method_has_its_color_in_all_figures():
    # vanilla 0, BN 1, LN 2, BNP 3, Renorm 4, Four 5; a second vanilla takes what is free
    assert experiments._styles(["vanilla", "vanilla", "BN", "BNP"]) == [0, 2, 1, 3]
    assert experiments._styles(["GN", "BNP", "BNP+GN", "BN"]) == [0, 3, 2, 1]


def test_generated_images_can_be_told_apart():
    data = generated_images()
    centers = np.array([data.x_train[data.y_train == label].mean(axis=0) for label in range(10)])
    distances = ((data.x_test[:, None] - centers) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == data.y_test).all()


# --- The results that are committed -----------------------------------------------------------

RESULTS = sorted(
    file for file in (FOLDER / "results").rglob("*.json") if file.parent.name != "recorded"
)


def test_committed_results_are_small_and_those_of_the_code():
    assert RESULTS
    assert sum(file.stat().st_size for file in RESULTS) < 2e6
    runs = {}
    for name in FILES:
        for panel in runpy.run_path(str(FOLDER / name))["PANELS"]:
            runs |= {(Path(name).stem, one.name): one for one in panel.runs}
    for file in RESULTS:
        record = Record.load(file)
        name, seed = file.stem.rsplit("-", 1)
        one = runs[file.parent.name, name]
        expected = Record({}, experiments.asdict(one)).config | {"epochs": None}
        assert record.config | {"epochs": None} == expected, file.name
        assert record.seed == int(seed)
        assert record.stop.startswith(("all ", "diverged"))
        assert "commit" in record.versions
