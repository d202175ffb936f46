"""The recorded runs of the book: their first steps again, and what its pages say of them."""

import re
import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from optdl import conditioning
from optdl.data import Examples
from optdl.experiments.recorded_runs import STEPS, FirstLosses, RecordedRun, main, perform
from optdl.records import Record, versions
from optdl.training import train

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
PROGRAM = runpy.run_path(str(ROOT / "experiments" / "recorded.py"))
RUNS = {run.name: run for run in PROGRAM["RUNS"]}
each = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())


@cache
def kept(name: str) -> Record:
    """Return the record that is committed."""
    return Record.load(PROGRAM["FOLDER"] / f"{name}.json")


def first_seed(run: RecordedRun) -> int:
    """Return the seed of the first training."""
    return next(iter(run.trainings.values()))["seed"]


def first_losses(run: RecordedRun, label: str) -> list[float]:
    """Repeat the first steps of a training, and return the losses before them."""
    first = FirstLosses(STEPS, halt=True)
    run.train(**run.settings, **run.trainings[label], hooks=[first])
    return first.losses


@each
def test_record_has_complete_curves_and_metadata(run):
    record = kept(run.name)
    assert record.config == run.config, f"run: python experiments/recorded.py {run.name}"
    lengths = {f"{label}: first_losses": STEPS for label in run.trainings}
    for label, own in run.trainings.items():
        epochs = {**run.settings, **own}["epochs"]
        lengths |= {f"{label}: {curve}": epochs for curve in run.curves}
    assert {name: len(curve) for name, curve in record.curves.items()} == lengths
    assert np.isfinite(np.concatenate(list(record.curves.values()))).all()
    assert record.versions.keys() == versions().keys()
    assert record.seed == first_seed(run)
    assert record.seconds > 1
    assert record.device == "cpu, 1 thread"


def comparable_steps(run: RecordedRun, label: str) -> int:
    """Return the number of first losses of a training that agree on other machines.

    Other vector units and libraries add in another order: in ten steps of single precision losses
    differed by up to 4e-4, relatively. Batch normalization of few images enlarges the differences
    up to 27 times in a step; the first two losses differed by less than 1e-4. At a rate of 3 the
    seventh loss behind batch normalization differed by 1e-2, the fifth by 3e-5.
    """
    return 2 if re.match(r"BN(, groups)?, \d", label) else 5 if "rate 3, " in label else STEPS


SIZES = {"lr", "times", "own", "factor", "p", "size", "rho", "batch_size", "epochs", "widths"}
"""Settings by whose value the trainings of a run differ in nothing else."""


@each
def test_recorded_first_steps_are_reproduced(run):
    record, kinds = kept(run.name), {}
    for label, own in run.trainings.items():
        if own["seed"] == first_seed(run):
            # the first, mostly of a small rate: large ones are more sensitive to rounding
            kinds.setdefault(str({name: own[name] for name in sorted(own.keys() - SIZES)}), label)
    for label in kinds.values():
        n = comparable_steps(run, label)
        curve = record.curves[f"{label}: first_losses"][:n]
        losses = first_losses(run, label)[:n]
        np.testing.assert_allclose(losses, curve, rtol=1e-3, err_msg=label)


def test_files_match_runs_and_are_small():
    files = sorted(PROGRAM["FOLDER"].iterdir())
    assert [file.name for file in files] == sorted(f"{name}.json" for name in RUNS)
    assert all(file.stat().st_size < 200_000 for file in files)


@each
def test_page_draws_record_and_states_its_time(run):
    pages = [path.read_text("utf-8") for path in (BOOK / run.topic).glob("*.md")]
    drawn, text = rf"""["/]{run.name}[".]""", "\n".join(pages)
    cells = "".join(re.findall(r"^```{code-cell}.*?^```", text, re.MULTILINE | re.DOTALL))
    where, took = f"book/{run.topic}/*.md", f"{kept(run.name).seconds:.0f}"
    assert re.search(drawn, cells), f"no cell of {where} reads {run.name}.json"
    command = f"`python experiments/recorded.py {run.name}`"
    made = rf"{re.escape(command)}\s+(?:made (?:it|this run) )?in\s+(\d+) s on one\s+processor core"
    remedy = f"write once in {where}: {command} in {took} s on one processor core"
    assert re.findall(made, text) == [took], remedy
    if len({own["seed"] for own in run.trainings.values()}) == 1:
        for page in pages:
            one = re.search(r"\b(one|single|this) (run|seed|start)\b", page)
            assert one or not re.search(drawn, page), f"{where} leans on one seed: say so"


def test_pages_mention_only_existing_runs():
    said = {
        (file.parent.name, name)
        for file in BOOK.rglob("*.md")
        for name in re.findall(r"experiments/recorded\.py ([\w-]+)", file.read_text("utf-8"))
    }
    assert {name for _, name in said} <= {r.topic for r in RUNS.values()} | {*RUNS}
    assert all(name.split("-")[0] == topic for topic, name in said)


# --- The rates that are compared, and what pages say in words ---------------------------------


def by_rate(name, curve, measure):
    """Return the mean over the seeds of what is measured on a curve, by network and rate."""
    found = {}
    for label, own in RUNS[name].trainings.items():
        network = tuple(own[key] for key in own if key not in ("lr", "seed", "epochs"))
        value = measure(kept(name).curves[f"{label}: {curve}"])
        found.setdefault(network, {}).setdefault(own["lr"], []).append(value)
    return {n: {lr: np.mean(each) for lr, each in rates.items()} for n, rates in found.items()}


def mean_log_losses(name):
    return by_rate(name, "train_loss", lambda losses: np.log(losses).mean())


@pytest.mark.row("F-16")
@pytest.mark.parametrize(
    ("inputs", "name", "own"), [("raw", "rates", ()), ("normalized", "normalized", ("normalized",))]
)
def test_chosen_rates_minimize_validation_error_of_other_seeds(inputs, name, own):
    searched, drawn = RUNS[f"optimizers-{name}"], RUNS["optimizers-curves"]
    errors = by_rate(searched.name, "validation_error", lambda curve: curve[-1])
    for method, chosen in PROGRAM["CHOSEN"][inputs].items():
        [*rates] = grid = errors[method, *own]
        assert chosen == min(grid, key=grid.get), method
        assert min(rates) < chosen < max(rates), f"{method}: at an end of the grid"
        assert chosen in {own["lr"] for own in drawn.trainings.values() if own["method"] == method}
    seeds = [{own["seed"] for own in r.trainings.values()} for r in (searched, drawn)]
    assert not seeds[0] & seeds[1]


@pytest.mark.row("L2-12")
@pytest.mark.parametrize("name", ["rates", "factors", "deep"])
def test_best_rates_lie_inside_their_grids(name):
    for network, grid in mean_log_losses(f"initialization-{name}").items():
        # larger rates diverge for two networks: see the next test
        end = np.inf if name == "deep" and network in (("ReLU", 2), ("ReLU", 4)) else max(grid)
        assert min(grid) < min(grid, key=grid.get) < end, network


@pytest.mark.row("L2-12")
@pytest.mark.parametrize(("factor", "lr"), [(2, 0.002), (4, 1e-5)])
def test_deep_relu_networks_diverge_beyond_their_grids(factor, lr):
    assert lr > max(mean_log_losses("initialization-deep")["ReLU", factor])
    run, own = RUNS["initialization-deep"], {"activation": "ReLU", "factor": factor, "epochs": 1}
    for seed in range(3):
        record = run.train(**run.settings, **own, lr=lr, seed=seed, hooks=[])
        assert record.curves["train_loss"] == [np.log(10)]


METHODS = "method", "normalization", "activation"
"""What names the methods that a recorded run compares."""


@pytest.mark.row("F-07")
def test_methods_at_one_rate_have_a_recorded_search():
    tried, compared = {}, {}
    for run in RUNS.values():
        for own in run.trainings.values():
            method = next((own[key] for key in METHODS if key in own), None)
            rate = tuple(own.get(key) for key in ("lr", "times", "smallest"))
            tried.setdefault((run.topic, method), set()).add(rate)
            compared.setdefault(run.name, {}).setdefault(method, set()).add(rate)
    for name, rates in compared.items():
        if len(rates) > 1 and len(set.union(*rates.values())) == 1:
            assert all(len(tried[RUNS[name].topic, method]) > 2 for method in rates), name


@pytest.mark.row("L1-27")
def test_nesterov_and_momentum_overlap_on_raw_inputs_only():
    curves = kept("optimizers-curves").curves
    heavy, nesterov, *normalized = (
        np.array([curves[f"{name}, seed {seed}: train_loss"][-1] for seed in PROGRAM["OTHERS"]])
        for name in ("Momentum", "Nesterov", "normalized Momentum", "normalized Nesterov")
    )
    assert nesterov.min() < heavy.mean() < nesterov.max()
    assert heavy.min() < nesterov.mean() < heavy.max()
    assert np.all(normalized[0] < normalized[1])


def test_most_weights_beyond_30_are_still_growing():
    x, y, _ = conditioning.student_teacher(2)
    value = conditioning.tanh_regression(x, y, 3).value
    ends = conditioning.fit_from(x, y, np.random.default_rng([2, 3]).normal(size=(30, 12)))
    weights = np.abs(ends).max(axis=1)
    far = (weights > 30) & (np.array([value(end) for end in ends]) > 1e-10)
    later = np.abs(conditioning.fit_from(x, y, ends[far])).max(axis=1)
    assert far.sum() >= 5
    assert np.mean(later > 1.01 * weights[far]) > 0.6


# --- The runner -------------------------------------------------------------------------------

X, Y = np.eye(4, dtype=np.float32), np.arange(4) % 2


def train_toy(lr, seed, hooks, epochs=12):
    """Train a linear model by batch gradient descent: each epoch is one step."""
    torch.manual_seed(seed)
    model = torch.nn.Linear(4, 2)
    sgd = torch.optim.SGD(model.parameters(), lr=lr)
    return train(model, Examples(X, Y), sgd, epochs=epochs, batch_size=4, hooks=hooks)


def toy(lr: float = 0.5) -> RecordedRun:
    trainings = {f"seed {seed}": {"seed": seed} for seed in (3, 4)}
    return RecordedRun("toy-descent", train_toy, {"lr": lr}, trainings, ("train_loss",))


def test_record_holds_all_curves_and_first_losses():
    torch.manual_seed(3)
    start = torch.nn.Linear(4, 2)
    before = functional.cross_entropy(start(torch.from_numpy(X)), torch.from_numpy(Y)).item()
    record = perform(toy())
    curves = record.curves  # the training loss is measured after each step
    assert {*curves} == {f"seed {s}: {n}" for s in (3, 4) for n in ("train_loss", "first_losses")}
    expected = [before, *curves["seed 3: train_loss"][: STEPS - 1]]
    np.testing.assert_allclose(curves["seed 3: first_losses"], expected, rtol=1e-6)
    again = first_losses(toy(), "seed 4")
    np.testing.assert_allclose(again, curves["seed 4: first_losses"], rtol=1e-5)
    assert len(train_toy(0.5, 3, [FirstLosses(5, halt=True)]).curves["train_loss"]) == 5
    assert (record.seed, record.config["settings"]) == (3, {"lr": 0.5})


def test_finished_run_is_skipped_unless_requested_again(tmp_path, capsys):
    def run(toy: RecordedRun, *arguments: str) -> str:
        main([toy], tmp_path, arguments)
        return capsys.readouterr().out

    assert run(toy()) == "toy-descent: all 2 trainings, 0 s\n"
    assert run(toy(), "toy") == "toy-descent: finished already\n"
    assert "all 2 trainings" in run(toy(), "toy-descent", "--again")
    assert "all 2 trainings" in run(toy(lr=0.1))  # another configuration is another run
    assert Record.load(tmp_path / "toy-descent.json").config["settings"] == {"lr": 0.1}
    with pytest.raises(SystemExit, match="2"):
        main([toy()], tmp_path, ["bowl"])
    assert "unknown: bowl; known: toy, toy-descent" in capsys.readouterr().err
    other = RecordedRun("bowl-descent", train_toy, {"lr": 0.5}, {"": {"seed": 0}}, ())
    main([toy(), other], tmp_path / "chosen", ["bowl"])
    assert [file.name for file in (tmp_path / "chosen").iterdir()] == ["bowl-descent.json"]
