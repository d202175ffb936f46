"""The experiments run, in seconds on small data, and keep what they measured, whatever happens."""

import copy
import itertools
import re
import runpy
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from bnp_loops import assert_same, gradients, preconditioned
from hang import HANG
from torch import nn

from optdl.batchnorm import PopulationStatisticsHook
from optdl.bnp import running_statistics
from optdl.data import Examples
from optdl.experiments import Experiment, Panel, Run, Tuning, models, report, tuning
from optdl.experiments import experiment as performing
from optdl.experiments.examples import generated_images, parts
from optdl.experiments.hooks import PartOfP
from optdl.experiments.models import build, preconditioner
from optdl.experiments.runs import FULLY_CONNECTED, INPUTS, METHODS, NETWORKS, kind
from optdl.records import Record
from optdl.training import State

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
# They have another form, and tests of their own.
FILES = sorted({path.name for path in FOLDER.glob("*.py")} - {"recorded.py", "gpu.py"})
PANELS = {name: runpy.run_path(str(FOLDER / name))["PANELS"] for name in FILES}
# One for each kind of network, with images from files, with what is watched.
QUICK = {"fig5.py", "fig7.py", "fig8.py", "fig9.py"}
PROGRAMS = [pytest.param(x, marks=[] if x in QUICK else pytest.mark.slow) for x in FILES]


def program(name, *arguments):
    """Return the experiment of a file, with its committed results."""
    return Experiment(str(FOLDER / name), PANELS[name], arguments)


@pytest.mark.row("P-18", "P-19", "P-20", "P-26", "P-27", "P-28")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_and_draw(name, tmp_path, monkeypatch, capsys):
    arguments = [f"--results={tmp_path}", "--smoke", "--seeds=1"]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(FOLDER / name), run_name="__main__")
    figure = program(name, *arguments)
    for panel in figure.panels:
        for run in panel.runs:
            [variant] = figure.variants(panel, run)
            record = Record.load(figure.file(variant, 0))
            assert record.stop == f"all {run.epochs} epochs"
            assert record.config["batch"] <= 32
    for ending in ("svg", "png"):
        sizes = [file.stat().st_size for file in figure.figures.glob(f"{figure.name}*.{ending}")]
        assert min(sizes, default=0) > 5000


@pytest.mark.slow
@pytest.mark.row("P-20", "P-27", "LAB-6")
def test_gpu_program_runs_small_on_cpu(tmp_path):
    command = [sys.executable, FOLDER / "gpu.py", "--tiny", "--minutes=60", "--results", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert "failed" not in (tmp_path / "gpu.log").read_text("utf-8")
    assert "3 skipped" in done.stdout  # the tests that need CUDA
    # three methods in three ways at two sizes, three residual networks in two ways
    assert len(list((tmp_path / "fig9").glob("*.json"))) == 18 + 6
    assert (tmp_path / "lab.json").exists()
    fig6 = program("fig6.py", "--smoke", "--only=cifar10-resnet110", f"--results={tmp_path}")
    found = {name: records[0] for name, records in fig6.records().items()}
    assert len(found) == 4
    for record in found.values():
        assert len(record.curves["test_error"]) == 2
        assert record.config["settings"]["decay"] == [1, 1.5]  # 80 and 120 of 160, here of 2
        assert record.config["precision"] == "float32"
        assert record.config["examples"] == {"train": 54, "validation": 6, "test": 30}
    assert len(list(fig6.checkpoints.glob("fig6-*.pt"))) == 8  # with those of the first epochs


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--only=bnp-gn", "selects no run; there are\n  digits-fc2-60-bnp-raw-0.1"),
        ("--seeds=0", "argument --seeds: expected 1 or more, got 0"),
        ("--data=cifar", "invalid choice: 'cifar'"),
        (f"--results={__file__}", "results cannot be written"),
        ("--examples=50", "has minibatches of 60, and there are 45 training examples"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, capsys, argument, message):
    with pytest.raises(SystemExit) as refusal:
        experiment(tmp_path, argument).perform()
    assert message in f"{capsys.readouterr().err}{refusal.value}"


def experiment(folder: Path, *arguments: str, tuning: Tuning | None = None, **change) -> Experiment:
    """Return an experiment of one small run."""
    one = Run("BNP", "digits", "fc2", "BNP", 60, 0.1, 4)
    panel = Panel("digits", [replace(one, **change)], tuning)
    small = ["--seeds=2", "--examples=300", f"--results={folder}"]
    return Experiment(str(folder / "toy.py"), [panel], [*small, *arguments])


def test_only_more_epochs_or_changed_settings_rerun(tmp_path, capsys):
    experiment(tmp_path).perform()
    [file, _] = files = sorted((tmp_path / "toy").glob("*.json"))
    before = file.read_bytes()
    experiment(tmp_path, "--epochs", "3").perform()
    assert file.read_bytes() == before
    experiment(tmp_path, "--epochs", "5").perform()
    assert [len(Record.load(f).curves["minibatch_loss"]) for f in files] == [5, 5]
    assert not list(tmp_path.rglob("*.pt"))  # a checkpoint goes when its run is done
    [records] = experiment(tmp_path, settings={"first": False}).perform().values()
    assert {record.config["settings"]["first"] for record in records} == {False}


def test_interrupted_run_resumes_bit_identically(tmp_path, monkeypatch, capsys):
    parts, whole = (
        partial(experiment, tmp_path / name, "--seeds=1", batch=16) for name in ("cut", "whole")
    )
    save, saves = torch.save, itertools.count(1)

    def interrupted(*arguments):
        save(*arguments)
        if next(saves) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(SystemExit, match="130"):
        parts().perform()
    assert "the same command goes on" in capsys.readouterr().out
    assert list(tmp_path.rglob("toy-*.pt"))
    assert not list(tmp_path.rglob("*.json"))
    [[record]], [[expected]] = (one().perform().values() for one in (parts, whole))
    assert record.curves == expected.curves
    assert len(record.curves["minibatch_loss"]) == 4


@torch.no_grad()
@pytest.mark.row("F-12")
def test_recomputed_loss_and_error_match_full_batch(rng):
    """In training mode a network has the statistics of its minibatch: here of all examples."""
    x, y = rng.normal(2.0, 3.0, size=(30, 4)), rng.integers(0, 3, size=30)
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3), nn.BatchNorm1d(3)).double()
    twin = copy.deepcopy(model)
    state = State(model, torch.optim.SGD(model.parameters()), curves={})
    PopulationStatisticsHook(Examples(x, y), Examples(x[:7], y[:7])).after_epoch(state)
    scores, labels = twin(torch.from_numpy(x))[:7], torch.from_numpy(y[:7])
    loss = nn.functional.cross_entropy(scores, labels).item()
    assert state.curves["recomputed_loss"] == pytest.approx([loss], rel=1e-12)
    assert state.curves["recomputed_error"] == [(scores.argmax(1) != labels).double().mean()]


DRAWN = ("vanilla", "BN", "BN+input", "BNP", "BNP, not the first layer")


@pytest.mark.row("P-26", "F-10")
@pytest.mark.parametrize(
    ("name", "number", "seeds", "methods"), [("fig5.py", 0, 3, None), ("fig3.py", 3, 5, DRAWN)]
)
def test_panels_and_searches_share_a_style(name, number, seeds, methods):
    figure = program(name, f"--seeds={seeds}")
    panel, rates = figure.panels[number], plt.figure().subplots()
    report.draw_rates(figure, [panel], [rates], 10, methods)
    report.draw_panel(figure, panel, None if methods else plt.subplots(1, 2)[1], methods)
    fig, runs = plt.gcf(), [run for run in panel.runs if run.label in (methods or run.label)]
    for ax, curve in zip(fig.axes, ("minibatch_loss", "test_error"), strict=True):
        for line, tried, run in zip(ax.lines, rates.lines, runs, strict=True):
            records = figure.ended(figure.chosen(panel, run))
            values = np.mean([record.curves[curve] for record in records], axis=0)
            np.testing.assert_allclose(line.get_ydata(), abs(values - (curve == "test_error")))
            found = tuning.scores(Record.load(figure.tuning_file(run)), 10)
            assert dict(zip(*tried.get_data(), strict=True)) == pytest.approx(found)
            assert line.get_label() == tried.get_label() == run.label
            assert line.get_color() == tried.get_color()
            assert line.get_linestyle() == tried.get_linestyle()
        assert ax.get_legend() is None
    fig.canvas.draw()
    assert all(re.fullmatch(r"\d+%", tick.get_text()) for tick in fig.axes[1].get_yticklabels())
    [legend] = fig.legends
    assert [text.get_text() for text in legend.texts] == [run.label for run in runs]
    assert rates.get_title() == panel.title.partition(", ")[2]
    if methods:  # one above the other
        assert [ax.get_xlabel() for ax in fig.axes] == ["", "epoch"]
    plt.close("all")


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "diverged: the loss is nan at step"),
        (FileNotFoundError("cifar is missing\nGet the file"), "data missing: cifar is missing"),
        (MemoryError("too large"), "out of memory: too large"),
        (torch.OutOfMemoryError("CUDA out of memory."), "out of memory: CUDA out of memory."),
        (RuntimeError("you tried to allocate memory"), "out of memory: you tried"),
    ],
)
def test_failures_are_reported_recorded_and_retried(tmp_path, monkeypatch, capsys, error, outcome):
    if error:
        monkeypatch.setattr(performing, "train", Mock(side_effect=error))
    one = experiment(tmp_path, **({} if error else {"method": "vanilla", "rate": 1e30}))
    assert one.perform() == {}  # it has no curves
    file = one.file(one.panels[0].runs[0], 0)
    stop, before = Record.load(file).stop, file.stat().st_mtime_ns
    assert stop.startswith(outcome)
    shown = capsys.readouterr().err
    assert outcome.partition(":")[0] in shown
    assert str(error or "Try a smaller learning rate") in shown
    assert report.draw_curves(one) == []
    searched = experiment(tmp_path, tuning=Tuning((0.01, 0.1), epochs=1, seeds=1))
    if error:
        assert searched.perform() == {}
        assert not list(tmp_path.rglob("tuning/*"))  # it has no score
    monkeypatch.undo()
    one.perform()
    assert Record.load(file).stop == ("all 4 epochs" if error else stop)
    assert (file.stat().st_mtime_ns == before) == (error is None)


def test_faults_of_the_program_are_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(performing, "train", Mock(side_effect=RuntimeError("shapes")))
    with pytest.raises(RuntimeError, match="shapes"):
        experiment(tmp_path).perform()


@pytest.mark.row("P-18")
@pytest.mark.parametrize("method", ["BNP", "vanilla"])
def test_watching_condition_numbers_leaves_training_alone(method, tmp_path):
    found = []
    for every in (2, 0):
        change = {"method": method, "watch_every": every}
        one = experiment(tmp_path / f"{every}", "--epochs=1", "--seeds=1", **change)
        found += [records[0].curves for records in one.perform().values()]
    watched, plain = found
    assert all(watched[name] == plain[name] for name in plain)
    assert watched["watched_step"] == [1, 3, 5]  # 270 images: 5 minibatches of 60
    for where in ("", "examples "):
        assert np.all(np.less(watched[f"{where}own P 0.01"], watched[f"{where}hessian"]))
        assert min(watched[f"{where}own D 0.01"]) > 1
    # at the first step the averages still stand at 0.99 of 1: D is nearly the identity
    assert watched["running D 0"][0] == pytest.approx(1, abs=0.02)
    assert max(watched["rank"]) <= 60 < max(watched["examples rank"])


# --- What a run may say -----------------------------------------------------------------------


def built(network, method, shape=(3, 32, 32), **settings):
    """Return a network and its BNP, if it has one."""
    run = Run("", "cifar10", network, method, 2, 0.1, 1, settings=settings)
    model = build(run, shape, 10, seed=0)
    return model, preconditioner(run, model, check_finite=True)


@pytest.mark.parametrize("network", NETWORKS)
def test_methods_build_the_layers_they_name(network):
    names = {"Renorm": {"BatchRenorm"}, "Four": {"FourThingsNorm"}}
    names["GN"] = names["BNP+GN"] = {"GroupNorm"}
    names["BN"] = {"BatchNorm2d" if network.startswith("resnet") else "BatchNorm"}
    names["LN"] = {"LayerNorm"} | ({"GroupNorm"} if network == "cnn5" else set())
    for method in METHODS[kind(network)]:
        model, bnps = built(network, method)
        norms = [module for module in model.modules() if hasattr(module, "eps")]
        assert {type(module).__name__ for module in norms} == names.get(method, set()), method
        assert len(bnps) == method.startswith("BNP")
        if kind(network) == "fully connected":
            assert [module.eps for module in norms] in ([], [1e-3] * len(FULLY_CONNECTED[network]))


def test_input_normalization_and_first_layer_are_optional():
    for method, own in (("BN", {}), ("Renorm", {"s_max": 3.0})):
        model, _ = built("fc2", method, (1, 8, 8), input=True, **own)
        norms = [module for module in model if hasattr(module, "features")]
        assert [norm.features for norm in norms] == [64, 100, 100]
        assert model[1] is norms[0]
        constants = {(norm.rho, norm.eps, getattr(norm, "s_max", None)) for norm in norms}
        assert constants == {(0.99, 1e-3, own.get("s_max"))}
    model, _ = built("cnn5", "BN", input=True)
    assert model[0].features == 3
    assert isinstance(built("fc2", "BNP", (1, 8, 8), part="rate")[1][0], PartOfP)
    for splits in (False, True):
        _, [bnp] = built("cnn5", "BNP", first=False, split=splits)
        assert repr(bnp).startswith("BNP(layers=['3'")
        assert bnp._splits == splits


@pytest.mark.parametrize(
    ("part", "centered", "scaled"),
    [("center", True, False), ("scale", False, True), ("rate", False, False)],
)
def test_preconditioner_part_matches_matrix_part(part, centered, scaled, rng):
    model, _ = built("fc2", "vanilla", (1, 1, 3))
    bnp = PartOfP(model, part, rho=0.9, eps1=0.1, eps2=0.01)
    layer = next(module for module in model.double() if isinstance(module, nn.Linear))
    batches = [rng.normal(2.0, [1.0, 2.0, 3.0], size=(2, 3)) for _ in range(3)]
    means, variances = running_statistics(batches, rho=0.9)
    for x, mean, var in zip(batches, means, variances, strict=True):
        square = var if centered else var + mean**2
        square = square if scaled else np.full(3, square.mean())
        mean = mean if centered else np.zeros(3)
        model.zero_grad()
        model(torch.from_numpy(x)).square().sum().backward()
        statistics = {"mean": torch.from_numpy(mean), "var": torch.from_numpy(square)}
        right = preconditioned(layer, torch.from_numpy(x), **statistics, eps1=0.1, eps2=0.01)
        bnp.step()
        assert_same(gradients(layer), right)


# --- Examples and rates -----------------------------------------------------------------------


def test_parts_split_images_and_standardize_channels():
    data, flat = generated_images(), {"batch": 60, "images": False}
    raw, moved = (parts(data, inputs, **flat) for inputs in INPUTS)
    split = data.split(0.1)  # always the same
    by_channel = split.train.x.reshape(len(split.train), 3, -1)
    mean, std = by_channel.mean((0, 2))[:, None], by_channel.std((0, 2))[:, None]
    for name in ("train", "validation", "test"):
        x = getattr(split, name).x
        np.testing.assert_array_equal(getattr(raw, name).x, x)
        expected = (x.reshape(len(x), 3, -1) - mean) / std
        np.testing.assert_allclose(getattr(moved, name).x, expected.reshape(x.shape), atol=1e-4)
    np.testing.assert_array_equal(raw.test.x, data.x_test)
    assert len(parts(data, "raw", 107, images=True).train) == 107  # of 108: BN refuses a single one


@pytest.mark.parametrize("pairs", [False, True])
def test_best_rates_are_chosen_trained_and_kept(tmp_path, capsys, pairs):
    how = Tuning(() if pairs else (1e-3, 1e-2), epochs=1, seeds=2, paper=1 - pairs, pairs=pairs)
    change = {"method": "vanilla", "label": "vanilla", "rate": 0.02, "epochs": 2}
    one = experiment(tmp_path, "--examples=2000", tuning=how, **change)
    records, [panel] = one.perform(), one.panels
    [run], tried = panel.runs, Record.load(one.tuning_file(panel.runs[0]))
    found, chosen = tuning.scores(tried, 10), one.chosen(panel, run)
    best = (chosen.rate, chosen.settings["first_rate"]) if pairs else chosen.rate
    assert found[best] == max(found.values())
    if pairs:
        assert (0.02, 0.02) in found
        assert chosen.name == f"{run.curve}-{best[0]:g}-first-{best[1]:g}"
    else:  # inside the grid
        assert min(found) < best < max(found)
    lengths = {chosen.name: 2} | ({} if pairs else {run.name: how.paper})
    assert {name: len(kept) for name, kept in records.items()} == lengths
    for record in records[chosen.name]:
        assert {"test_error", "validation_error", "minibatch_loss"} <= set(record.curves)
    assert not any("test" in name for name in tried.curves)
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    one.perform()
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == times
    experiment(tmp_path, tuning=replace(how, epochs=2), **change).perform()
    again = Record.load(one.tuning_file(run)).curves  # rates of another schedule are not mixed
    assert {len(errors) for errors in again.values()} == {2}


def test_best_pair_of_rates_is_a_local_optimum():
    """The best rate of the first layer depends on that of the others."""

    def score(pair):
        rest, first = np.log10(pair) - (-1.0, -2.5)
        return 1 - rest**2 - first**2 - 0.8 * rest * first

    found = {}
    while pairs := tuning.next_pairs(found, 0.03):
        found[pairs[0]] = score(pairs[0])
    assert tuning.best_rate(found) == (0.1, 0.003)
    assert {(0.03, 0.003), (0.3, 0.003), (0.1, 0.001), (0.1, 0.01)} < found.keys()
    assert len(found) < 20


@pytest.mark.row("F-10")
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_first_layer_moves_at_its_own_rate(optimizer):
    run = Run("", "digits", "fc2", "LN", 60, 0.1, 1, optimizer, settings={"first_rate": 0.02})
    model = build(run, (1, 8, 8), 10, seed=0)
    moving = models.optimizer(run, model)
    models.schedule(run, moving, 1).after_step(State(model, moving, curves={}, step=1))
    later, first = moving.param_groups
    assert (later["lr"], first["lr"]) == (0.1, 0.02)
    assert [id(p) for p in first["params"]] == [id(p) for p in model[1].parameters()]
    assert len(later["params"]) == len([*model.parameters()]) - 2


@pytest.mark.row("F-10")
def test_pairs_start_at_rates_of_figures_3_4():
    schedules = runpy.run_path(str(FOLDER / "first_layer.py"))["SCHEDULES"]
    for panel in PANELS["first_layer.py"]:
        for run in panel.runs if panel.tuning and not panel.tuning.rates else []:
            folder = FOLDER / "results" / schedules[run.batch][0]
            record = Record.load(folder / "tuning" / f"{run.curve}.json")
            assert tuning.best_rate(tuning.scores(record, 10)) == run.rate
            assert record.config["epochs"] == panel.tuning.epochs
            assert Record.load(folder / f"{run.name}-4.json").config == run.config()


def test_diverged_seed_counts_as_a_guess():
    curves = {"0.1, seed 0": [0.5, 0.4], "0.1, seed 1": [0.2, 0.2], "1, seed 0": [0.95]}
    record = Record(curves, {"diverged": ["0.1, seed 1"]})
    assert tuning.scores(record, 10) == {0.1: pytest.approx((0.6 + 0.1) / 2), 1.0: 0.1}


def test_spread_excludes_diverged_runs_unless_all_diverged():
    fine, bad = Record({"loss": [2.0]}), Record({"loss": [9.0]}, stop="diverged at step 3")
    assert [report.spread(r, "loss")[0].tolist() for r in ([fine, bad], [bad])] == [[2.0], [9.0]]


def test_method_colors_agree_across_figures():
    # vanilla 0, BN 1, LN 2, BNP 3, Renorm 4, Four 5; a second run of a method has other dashes
    assert report._styles(["vanilla", "vanilla", "BN", "BNP"]) == [(0, 0), (0, 2), (1, 1), (3, 3)]
    # a method without a color of its own takes one that nobody has
    assert report._styles(["GN", "BNP", "BNP+GN", "BN"]) == [(0, 0), (3, 3), (2, 2), (1, 1)]


# --- The results that are committed -----------------------------------------------------------

RESULTS = sorted(f for f in (FOLDER / "results").rglob("*.json") if "recorded" not in f.parts)


@pytest.mark.parametrize("seed", [0, 4])
def test_committed_results_on_digits_are_reproduced(tmp_path, seed):
    kept = program("beyond.py", "--only=digits")
    again = program("beyond.py", "--only=digits", "--epochs=2", f"--results={tmp_path}")
    # the corrected averages make the first steps so long that they enlarge rounding
    [[run, _]] = [panel.runs for panel in again.panels if panel.runs]
    curves = Record.load(kept.file(run, seed)).curves
    record = again._attempt(run, seed)
    for name in ("minibatch_loss", "validation_loss", "test_loss"):
        np.testing.assert_allclose(record.curves[name], curves[name][:2], rtol=1e-3)


def test_committed_results_are_small_and_match_the_code():
    assert sum(file.stat().st_size for file in RESULTS) < 3e6
    configs = {}
    for figure in map(program, FILES):
        searched = [run.curve for panel in figure.panels if panel.tuning for run in panel.runs]
        assert len(set(searched)) == len(searched), figure.name
        for panel, run in ((each, run) for each in figure.panels for run in each.runs):
            assert run.network in FULLY_CONNECTED or run.inputs == "standardized", "the protocol"
            file = figure.tuning_file(run)
            if panel.tuning and file.exists():  # of this configuration, and complete
                assert figure.chosen(panel, run), file
                configs[file] = None
            for variant in {run, *figure.variants(panel, run)}:
                for seed in figure.seeds:
                    configs[figure.file(variant, seed)] = variant.config()
    for file in RESULTS:
        record, expected = Record.load(file), configs[file]
        assert "commit" in record.versions
        if expected is not None:
            found = {name: record.config[name] for name in expected}
            assert found | {"epochs": None} == expected | {"epochs": None}, file.name
            assert record.seed == int(file.stem.rpartition("-")[2])
            assert record.stop.startswith(("all ", "diverged"))
