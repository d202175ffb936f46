"""What the recorded runs of the labs show, against the theory, and what their data and loops do."""

import importlib
import math

import numpy as np
import pytest
import torch
from torch import nn

from optdl.labs import LabRecord, batchnorm, bnp, bnp_cnn, digits, dropout, initialization, seed_of
from optdl.labs.optimizers import final_losses
from optdl.labs.records import FILE, RecordError
from tools.classroom import lab_records
from tools.layout import ROOT

pytestmark = [
    pytest.mark.row("LAB-2", "LAB-3", "LAB-4", "LAB-5", "LAB-6"),
    pytest.mark.xdist_group("labs"),
]


def record_of(topic):
    return LabRecord.load(ROOT / "solutions" / topic / FILE)


def judged(topic):
    return importlib.import_module(f"optdl.checks.{topic}.lab_record").RECORD


def parts_of(topic):
    return lab_records.answers_of(ROOT / "solutions" / topic / "lab.ipynb")


# --- All labs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", [path.parent.name for path in ROOT.glob("solutions/*/lab.ipynb")])
def test_record_matches_the_source_notebook(topic):
    lab, asked = importlib.import_module(f"optdl.labs.{topic}").LAB, judged(topic)
    parts, record = parts_of(topic), record_of(topic)
    threads = torch.get_num_threads()
    steps = 20 if topic == "bnp" else 6  # 20: its first mean over the training examples
    assert [run.setting for run in record.runs] == lab.settings
    for run in record.runs[:: max(1, len(lab.settings) // 6)]:
        curves, model = lab.experiment(parts, run.setting, seed_of(record.user), steps)
        for name in curves.keys() - {"accuracy", "spread"}:  # those are of whole runs
            expected = run.curves[name][: len(curves[name])]
            np.testing.assert_allclose(curves[name], expected, rtol=1e-3, atol=1e-6)
        assert 0 < asked.evaluate(model.state_dict()) < 1
    assert torch.get_num_threads() == threads
    read = {name: find(record) for name, (_, find) in asked.readings.items()}
    assert parts["reading"]() == pytest.approx(read, rel=0.01)
    assert (parts["predictions"](), parts["user"]()) == (record.predictions, record.user)
    assert (ROOT / "solutions" / topic / FILE).stat().st_size < 300_000


# --- LAB-1, optimizers ------------------------------------------------------------------------


def test_best_rates_of_first_lab_are_inside_grid():
    for found in final_losses(record_of("optimizers")).values():
        assert min(found) < min(found, key=found.__getitem__) < max(found)


# --- LAB-2, initialization --------------------------------------------------------------------


def test_small_gain_matches_torchs_default_variance():
    torch.manual_seed(0)
    default = nn.Linear(400, 400).weight.var().item()
    assert default == pytest.approx(initialization.GAINS["small"] ** 2 / 400, rel=0.02)


def test_record_of_initialization_answers_the_question():
    record, depth = record_of("initialization"), initialization.DEPTH
    read = {name: find(record) for name, (_, find) in judged("initialization").readings.items()}
    deviations = initialization.deviations(record)
    for start in ("small", "Glorot", "He"):
        factor = (deviations[start][-1] / deviations[start][0]) ** (1 / (depth - 1))
        assert factor == pytest.approx(initialization.GAINS[start] / 2**0.5, rel=0.1)
    decay = math.log(initialization.GAINS["small"] / 2**0.5)
    predicted = 1 + math.ceil(math.log(1e-3 / deviations["small"][0]) / decay)
    assert abs(read["vanished"] - predicted) <= 1
    _, dead, _ = initialization.damage(initialization.network(), seed_of(record.user))
    assert read["dead"] == dead == 1 + deviations["damaged"].index(0)
    assert not any(deviations["damaged"][dead:])
    # only the networks of He and the mended one learn
    curves = initialization.curves_by_start(record)
    accuracies = {start: found["accuracy"][0] for start, found in curves.items()}
    assert min(accuracies["He"], accuracies["mended"]) > 0.8
    assert max(accuracies["small"], accuracies["damaged"]) < 0.2
    assert max(curves["small"]["ratio"] + curves["damaged"]["ratio"]) < 1e-7
    assert all(1e-4 < ratio < 1e-1 for ratio in curves["mended"]["ratio"] + curves["He"]["ratio"])


# --- LAB-3, batch normalization ---------------------------------------------------------------


def test_testing_does_not_affect_training():
    parts, setting = parts_of("batchnorm"), {"size": 64, "normalized": True}
    tested, _ = batchnorm.experiment(parts, setting, 1, None)
    untested, _ = batchnorm.experiment(parts, setting, 1, batchnorm.EXAMPLES // 64)
    # 80 steps in either case; the second call tests nowhere
    assert tested["loss"] == untested["loss"]
    assert (len(tested["accuracy"]), untested["accuracy"]) == (10, [])


@pytest.mark.parametrize("steps", [3, None])
def test_normalization_unknown_to_recalibrate_stops_the_run(steps):
    parts, setting = parts_of("batchnorm"), {"size": 64, "normalized": True}
    parts["recalibrate"] = lambda model, batches: None  # as one that looks for PyTorch's classes
    with pytest.raises(RecordError, match="does not compute the statistics of your BatchNorm anew"):
        batchnorm.experiment(parts, setting, 1, steps)


def test_record_of_normalization_answers_the_question():
    record = record_of("batchnorm")
    curves = {size: batchnorm.accuracies(record, size) for size in batchnorm.SIZES}
    first = [{name: found[0] for name, found in curves[size].items()} for size in batchnorm.SIZES]
    gains = [one["computed anew"] - one["running averages"] for one in first]
    assert gains[0] > 0.2 > gains[1] > gains[2]
    last = {name: values[-1] for name, values in curves[2].items()}
    assert last["computed anew"] < last["no normalization"] - 0.1
    assert abs(last["computed anew"] - last["running averages"]) < 0.05
    losses = {name: values[-1] for name, values in batchnorm.mean_losses(record, 2).items()}
    assert losses["batch normalization"] > 1.5 > 0.2 > losses["no normalization"]


# --- LAB-4, dropout ---------------------------------------------------------------------------


def test_inactive_dropout_stops_the_run():
    def without_dropout(model, x, passes):
        found = torch.stack([model.eval()(x) for _ in range(passes)]).softmax(dim=2)
        return found.mean(dim=0), found.std(dim=0)

    parts = parts_of("dropout") | {"monte_carlo": without_dropout}
    dropout.experiment(parts, {"p": 0.0}, 1, 1)
    with pytest.raises(RecordError, match="`monte_carlo` does not switch on your Dropout"):
        dropout.experiment(parts, {"p": 0.2}, 1, 1)


def test_record_of_dropout_answers_the_question():
    record = record_of("dropout")
    losses = dropout.curves(record)
    plain, best = losses["p = 0"], {name: min(one["validation"]) for name, one in losses.items()}
    # without dropout the network overfits,
    assert plain["validation"].index(best["p = 0"]) < 40
    assert plain["validation"][-1] > 1.1 * best["p = 0"]
    assert plain["training"][-1] < 0.05
    # early stopping ends ten epochs after the best one, and dropout has a better one
    stopped = losses["p = 0, early stopping"]["validation"]
    assert best["p = 0, early stopping"] == best["p = 0"]
    assert len(stopped) == stopped.index(min(stopped)) + 1 + 10
    assert max(best["p = 0.2"], best["p = 0.5"]) < 0.9 * best["p = 0"]
    # passes disagree more where they are wrong
    right, wrong = record.find({"p": 0.5}).curves["spread"]
    assert right < wrong


# --- LAB-5, BNP -------------------------------------------------------------------------------


def test_recorded_weights_determine_their_inputs():
    """On other inputs than those of its training a network does worse."""
    parts, seed = parts_of("bnp"), seed_of(record_of("bnp").user)
    for setting in (bnp.LAB.settings[9], bnp.LAB.settings[26], bnp.LAB.settings[21]):
        _, model = bnp.experiment(parts, setting, seed, 60)
        reached = digits.accuracy(model, *bnp.examples(setting["inputs"])[2:])
        assert judged("bnp").evaluate(model.state_dict()) == pytest.approx(reached)
        [other] = {*bnp.INPUTS} - {setting["inputs"]}
        assert digits.accuracy(model, *bnp.examples(other)[2:]) < reached


def test_record_of_bnp_answers_the_question():
    record = record_of("bnp")
    raw, standardized = (
        {name: bnp.last_loss(one) for name, one in bnp.best_curves(record, inputs).items()}
        for inputs in bnp.INPUTS
    )
    assert tuple(raw) == tuple(standardized) == bnp.METHODS
    assert raw["SGD"] / raw["BNP"] > 3  # a large gain on raw pixels,
    assert raw["BNP hidden"] > 2 * raw["BNP"]  # most of it from the first layer,
    assert standardized["SGD"] < 1.5 * raw["BNP"]  # which standardizing replaces
    assert 1.2 < standardized["SGD"] / standardized["BNP"] < 2.5
    assert standardized["BNP hidden"] == pytest.approx(standardized["BNP"], rel=0.2)
    assert standardized["BN"] == pytest.approx(raw["BN"], rel=0.2)
    rates = [bnp.best_rates(record, inputs) for inputs in bnp.INPUTS]
    assert all(one["BNP"] > one["SGD"] for one in rates)
    # a run that diverged is left out, however small its last losses are
    best = record.find({"inputs": "raw", "method": "BNP hidden", "lr": rates[0]["BNP hidden"]})
    best.curves["training loss"] = [0.001, 0.001]
    assert bnp.best_rates(record, "raw")["BNP hidden"] != best.setting["lr"]


# --- LAB-6, BNP for convolutions --------------------------------------------------------------


def test_record_of_convolutions_answers_the_question():
    record, asked = record_of("bnp_cnn"), judged("bnp_cnn")
    first = {method: find(record) for method, (_, find) in asked.readings.items()}
    assert all(first.values()), "each method gets below the level"
    assert min(first, key=first.__getitem__) == "BN"
    assert max(run.curves["accuracy"][-1] for run in record.runs) > asked.level + 0.03


def test_interrupted_run_has_the_same_losses(monkeypatch):
    few = [part[:64] for part in bnp_cnn.digits()]
    monkeypatch.setattr(bnp_cnn, "digits", lambda: few)
    whole, resumed = bnp_cnn.interrupted(parts_of("bnp_cnn"))
    assert whole == resumed
    assert len(whole) == 2 * 2
