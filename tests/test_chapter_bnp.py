"""What chapter 8 says in words and in tables about its examples, figures and recorded runs."""

import json
import math
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from optdl import bnp, training
from optdl.conditioning import condition_number
from optdl.data import load
from optdl.experiments import Experiment, tuning
from optdl.experiments.tables import accuracy
from optdl.networks import fully_connected

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
TEXT = (ROOT / "book" / "bnp.md").read_text(encoding="utf-8")
PLAIN = " ".join(TEXT.split())


def says(*sentences: str) -> None:
    """Require that the page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in PLAIN, f"the page no longer says {sentence!r}: change this test too"


# --- By hand ----------------------------------------------------------------------------------


def test_the_hessian_of_two_examples_and_its_condition_number():
    says(r"\begin{bmatrix}1&1\\1&2\end{bmatrix}$", r"\frac{3+\sqrt5}{3-\sqrt5} = 6.85$")
    H = np.array([[0.0], [2.0]])
    hessian = bnp.layer_hessian(H, np.ones(2))
    assert hessian.tolist() == [[1, 1], [1, 2]]
    root = math.sqrt(5)
    assert condition_number(hessian) == pytest.approx((3 + root) / (3 - root))
    assert condition_number(bnp.extended_activations(H)) ** 2 == pytest.approx(6.854, abs=1e-3)


EXAMPLE, DELTA = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[-1.0], [3.0]])


def test_the_two_matrices_by_hand():
    U, D = bnp.preconditioner(EXAMPLE.mean(0), EXAMPLE.std(0))
    assert U.tolist() == [[1, -2, -2], [0, 1, 0], [0, 0, 1]]
    assert D.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0.5]]
    assert (U @ D).tolist() == [[1, -2, -1], [0, 1, 0], [0, 0, 0.5]]
    assert bnp.normalized_activations(EXAMPLE).tolist() == [[1, -1, -1], [1, 1, 1]]


@pytest.mark.row("P-14")
def test_the_worked_example_of_a_step():
    says(r"by $-\eta\,(2+8) = -10\eta$ and $-\eta\,(2+24+48) = -74\eta$", "G_b = 2 - (4\\cdot2")
    plain_w, plain_b = DELTA.T @ EXAMPLE, DELTA.sum(0)
    assert (plain_w.tolist(), plain_b.tolist()) == ([[8, 12]], [2])
    assert (-(plain_b + EXAMPLE @ plain_w.T)).ravel().tolist() == [-10, -74]
    mean, var = bnp.batch_statistics(EXAMPLE)
    weight, bias = bnp.precondition_dense(plain_w, plain_b, mean, var, 2, 0.0, 0.0)
    assert (weight.tolist(), bias.tolist()) == ([[4, 2]], [-10])
    assert (-(bias + EXAMPLE @ weight.T)).ravel().tolist() == [6, -10]


def test_centering_and_scaling_by_hand():
    four = np.array([[1.0, 10.0], [1, -10], [-1, 10], [-1, -10]])
    assert bnp.condition_numbers(four) == pytest.approx((10, 10, 1))
    assert bnp.condition_numbers(np.array([[1.0], [3.0]]))[1:] == pytest.approx((1, 1))
    hessians = bnp.hessian_condition_numbers(four, np.ones(4), eps1=0.0, eps2=0.0)
    assert hessians[0] / hessians[1] == pytest.approx(100)


def test_one_example_by_hand():
    mean, var = bnp.update_statistics(np.array([[6.0]]), np.array([2.0]), np.array([3.0]), 0.5)
    assert (mean.item(), var.item()) == (4, 3.5)
    assert condition_number(np.array([[1.0, 2.0, 3.0]])) == pytest.approx(1)


def test_the_layer_behind_batch_norm_by_hand():
    says(r"$\hat W = 8/4 = 2$ and $\hat b = 1 - 2\cdot2 = -3$", r"$1 - 2\cdot3 = -5$")
    for mean, expected in ((2.0, -3), (3.0, -5)):
        arguments = (np.array([[8.0]]), np.ones(1), np.array([mean]), np.array([4.0]))
        weight, bias = bnp.absorb_normalization(*arguments)
        assert (weight.item(), bias.item()) == (2, expected)


@pytest.mark.row("F-11")
def test_the_sign_of_the_wrong_gradient_raises_the_loss():
    P, g = np.array([[1.0, -4.0], [0.0, 1.0]]), np.array([1.0, 3.0])
    split, other = -P @ np.sign(P.T @ g), -np.sign(P @ P.T @ g)
    assert (split.tolist(), other.tolist()) == ([-5, 1], [-1, 1])
    assert [step @ [1, 4] for step in (split, other)] == [-1, 3]


@pytest.mark.row("F-11")
def test_what_the_penalty_of_weight_decay_is_made_of():
    says("up to the factor $q$ the components of $z$ are $b + w^T\\mu$ and $\\tilde\\sigma_jw_j$")
    mean, std = np.array([4.0, -1.0]), np.array([0.5, 3.0])
    U, D = bnp.preconditioner(mean, std)
    for b, w in ((1.0, np.array([3.0, 2.0])), (-10.0, np.array([3.0, 2.0]))):
        z = np.linalg.solve(U @ D, np.append(b, w))
        assert z == pytest.approx([b + w @ mean, *(std * w)])
    assert z[0] == 0, "a bias that makes up for the mean is not penalized"


def test_the_shares_and_sizes_of_the_answers():
    says("$0.99^{20} = 82$ %", "51.2 and 1.67", "299 steps until less than 5 %", "= 10.05$")
    assert round(100 * 0.99**20) == 82
    assert [round(bnp.scale_dense(n, 60), 2) for n in (3072, 100)] == [51.2, 1.67]
    assert 0.99**299 < 0.05 < 0.99**298
    assert round(math.sqrt(1.01 / 0.01), 2) == 10.05


@pytest.mark.row("P-16")
def test_the_steps_of_the_table_add_up():
    rows = re.findall(r"^\| (\d,.+?|\*\*BNP.+?) \| \$(.+?)\$ \|$", TEXT, re.MULTILINE)
    n, o, N = 7, 3, 11

    def value(terms: str) -> int:
        products = [re.fullmatch(r"(\d*)([noN]+)", term.strip()) for term in terms.split("+")]
        sizes = {"n": n, "o": o, "N": N}
        return sum(
            int(p[1] or 1) * math.prod(sizes[letter] for letter in p[2]) for p in products if p
        )

    *steps, total = (value(terms) for _, terms in rows)
    assert len(steps) == 6
    assert sum(steps) == total == bnp.bnp_flops(n, o, N)
    says("need 63 thousand and 20 thousand operations", "360 thousand operations there")
    assert [bnp.bnp_flops(100, 100, 6), bnp.bn_flops(100, 6)] == [63400, 19600]


# --- Layers of the digits ---------------------------------------------------------------------


def layer_inputs(model: torch.nn.Sequential, x: np.ndarray) -> list[np.ndarray]:
    found, h = [], torch.from_numpy(x)
    with torch.no_grad():
        for part in model:
            if isinstance(part, torch.nn.Linear):
                found.append(h.double().numpy())
            h = part(h)
    return found


@pytest.fixture(scope="module")
def split() -> Any:
    return load("digits").split(validation=238, seed=0)


@pytest.fixture(scope="module")
def inputs(split: Any) -> list[np.ndarray]:
    return layer_inputs(fully_connected((64, 100, 100, 100, 10)), split.train.x)


def test_the_mean_is_the_steep_direction_of_each_layer(inputs):
    says(
        "cosine above 0.999, and it is 16 to 48 times",
        "its eigenvalue, between 3.6 and 11.5, to 1.",
    )
    ratios, largest = [], []
    for H in inputs:
        extended = np.column_stack([np.ones(len(H)), H])
        values, vectors = np.linalg.eigh(extended.T @ extended / len(H))
        mean = extended.mean(0)
        assert abs(vectors[:, -1] @ mean) / np.linalg.norm(mean) > 0.999
        assert np.linalg.eigvalsh(np.cov(H, rowvar=False, ddof=0))[-1] < 1
        ratios.append(values[-1] / values[-2])
        largest.append(values[-1])
    assert (math.floor(min(ratios)), math.floor(max(ratios))) == (16, 48)
    assert (round(min(largest), 1), round(max(largest), 1)) == (3.6, 11.5)


def test_what_centering_and_scaling_gain_in_the_layers(inputs):
    says("a factor of 1.9 to 3.4 here, scaling by a further factor of 33 to 258")
    live = [H[:, H.std(0) > 0] for H in inputs]
    plain, centered, scaled = np.array([bnp.condition_numbers(H) for H in live]).T
    first, second = plain / centered, centered / scaled
    assert [round(x, 1) for x in (first.min(), first.max())] == [1.9, 3.4]
    assert [round(x) for x in (second.min(), second.max())] == [33, 258]
    says("the condition number of the inputs is 13 to 32")
    assert [round(x) for x in (scaled.min(), scaled.max())] == [13, 32]
    says("the theorem would allow 8 and 10.")
    assert [round(math.sqrt(H.shape[1] + 1)) for H in live[:2]] == [8, 10]


@pytest.mark.row("P-12")
def test_for_two_features_no_diagonal_matrix_beats_the_deviations(rng):
    """Property A: e is orthogonal to all centered columns."""
    for _ in range(20):
        H = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 2)) + rng.normal(size=2)
        U, D = bnp.preconditioner(H.mean(0), H.std(0))
        centered = bnp.extended_activations(H) @ U
        best = np.linalg.cond(centered @ D)
        others = np.exp(rng.normal(size=(200, 3)))
        assert min(np.linalg.cond(centered @ D * scale) for scale in others) >= best * (1 - 1e-9)


@pytest.mark.row("P-12")
def test_with_three_features_another_diagonal_matrix_can_be_better():
    rng = np.random.default_rng(3)
    H = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 3))
    G = bnp.normalized_activations(H)
    others = np.exp(0.3 * rng.normal(size=(2000, 4)))
    assert min(np.linalg.cond(G * scale) for scale in others) < 0.99 * np.linalg.cond(G)


@pytest.mark.row("P-12")
def test_scaling_without_centering_has_no_bound():
    says(
        "with the values 9.9 and 10.1, $\\kappa(\\hat H)$ is 1010 and $\\kappa(\\hat HD)$ is 10,002"
    )
    H = np.array([[9.9], [10.1]])
    rows, D = np.column_stack([np.ones(2), H]), np.diag([1, 1 / 0.1])
    assert round(np.linalg.cond(rows)) == 1010
    assert round(np.linalg.cond(rows @ D)) == 10_002
    assert bnp.condition_numbers(H)[2] == pytest.approx(1)
    assert np.linalg.cond(rows @ D) > math.sqrt(2) * np.linalg.cond(rows)


@pytest.mark.row("P-13")
def test_the_longest_row_and_the_heavy_tails_of_the_erratum():
    says("longest row is 13.4, not 4", "about 3, 5.5 and 11")
    rng = np.random.default_rng(0)
    longest = (rng.normal(size=(20000, 60, 4)) ** 2).sum(-1).max(-1).mean()
    assert longest == pytest.approx(13.4, abs=0.1)
    for n, expected, draws in ((16, 3, 1000), (64, 5.5, 500), (256, 10.7, 100)):
        norms = []
        for _ in range(draws):
            rows, columns = np.nonzero(rng.random((n, n)) < 1 / n**2)
            entries = np.zeros((n, n))
            entries[rows, columns] = n * rng.choice([-1, 1], len(rows))
            large = np.linalg.norm(entries[rows][:, columns], 2) if len(rows) else 0.0
            norms.append(max(large, math.sqrt(n)))
        assert np.mean(norms) / math.sqrt(n) == pytest.approx(expected, rel=0.1)


# --- Condition numbers during training: P-18 --------------------------------------------------


class LastModel(training.Hook):
    """Keep the gains of P after each epoch, and the network."""

    def __init__(self, x: np.ndarray) -> None:
        self.x, self.found = x, []

    def after_epoch(self, state: Any) -> None:
        self.model = state.model
        self.found.append(gain(state.model, self.x))


def gain(model: torch.nn.Sequential, x: np.ndarray, least: float = 0) -> tuple[float, float]:
    """Return the gain of P and κ(D), from their definitions."""
    H = layer_inputs(model, x)[-1]
    H = H[:, H.std(0) > least * H.std(0).max()]
    with torch.no_grad():
        p = model(torch.from_numpy(x)).softmax(1)[:, 0].double().numpy()
    std = np.sqrt(H.var(0) + 0.01 * H.var(0).max() + 1e-4)
    kappas = []
    for columns in (H, (H - H.mean(0)) / std):
        rows = np.column_stack([np.ones(len(H)), columns])
        values = np.linalg.svd(rows.T * (p * (1 - p)) @ rows, compute_uv=False)
        kappas.append(values[0] / values[values > 1e-12 * values[0]][-1])
    sizes = np.append(1 / std, 1)
    return kappas[0] / kappas[1], sizes.max() / sizes.min()


@pytest.mark.row("P-18")
def test_the_gain_is_the_square_where_a_nearly_constant_unit_decides(split):
    model, watch = fully_connected((64, 100, 100, 10)), LastModel(split.train.x)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    hooks = [bnp.BNP(model, rho=0.9), watch]
    training.train(model, split.train, sgd, epochs=12, batch_size=60, hooks=hooks)
    says("near $\\kappa(D)^2$, within 20 % from the third epoch on")
    ratios = np.array([g / d**2 for g, d in watch.found])[2:]
    assert ratios.min() > 0.8
    assert ratios.max() < 1.2
    few = np.array([gain(model, split.train.x[:m]) for m in (30, 60, 100, 130)])
    many = np.array([gain(model, split.train.x[:m]) for m in (150, 300, 600, 1200)])
    says(
        "and the gain is 6 and 8.",
        "is still only 11 and 18, where $\\kappa(D)^2$ is 111 and 109. It jumps to 99 at 150",
    )
    assert few[:, 0] == pytest.approx([6, 8, 11, 18], abs=0.6)
    assert few[2:, 1] ** 2 == pytest.approx([111, 109], abs=1)
    assert many[0, 0] == pytest.approx(99, abs=1)
    assert (many[:, 0] > 0.9 * many[:, 1] ** 2).all()

    says("the gain over all 1200 digits is 36.", "of which there are four")
    assert gain(model, split.train.x, 0.02)[0] == pytest.approx(36, abs=0.6)
    H = layer_inputs(model, split.train.x)[-1]
    deviations = H.std(0)
    assert ((deviations > 0) & (deviations <= 0.02 * deviations.max())).sum() == 4

    says(
        "$\\hat H$ has fewer rows than its 96 columns", "for the first 130 digits is on for one of"
    )
    for m in (30, 60, 100, 130):
        rows = H[:m, H[:m].std(0) > 0]
        assert rows.shape[1] + 1 == 96
        assert np.linalg.matrix_rank(np.column_stack([np.ones(m), rows])) == min(m, 96)
    says("Its deviation is less than 0.1 %", "belongs to the weight of this unit alone")
    H, before = H[:150], H[:130]
    with torch.no_grad():
        p = model(torch.from_numpy(split.train.x[:150])).softmax(1)[:, 0].double().numpy()
    live = H.std(0) > 0
    [new] = np.flatnonzero(before.std(0)[live] == 0)
    assert (H[:, live][:, new].std() / H.std(0).max()) < 0.001
    assert (H[130:, live][:, new] > 0).sum() == 1
    rows = np.column_stack([np.ones(150), H[:, live]])
    _, vectors = np.linalg.eigh(rows.T * (p * (1 - p)) @ rows)
    assert abs(vectors[new + 1, 0]) > 0.99


@cache
def records(figure: str, name: str) -> list[dict[str, Any]]:
    """Return the seeds of a run, read without the package."""
    files = sorted((RESULTS / figure).glob(f"{name}-[0-9].json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


@pytest.mark.row("P-16")
@pytest.mark.parametrize("size", [16, 256, 512])
def test_the_seconds_of_an_epoch(size: int):
    bn, bnp_ = (
        np.array(
            [
                seed["curves"]["epoch_seconds"]
                for seed in records("fig9", f"cifar10-fc2-{size}-{name}-raw-0.01")
            ]
        )
        for name in ("bn", "bnp")
    )
    assert bn.shape == bnp_.shape == (5, 4)
    ratios = np.median(bnp_ / bn, axis=1)
    here = f"| {bn.mean():.2f} | {bnp_.mean():.2f} | {np.median(ratios):.2f} "
    says(f"{here}({ratios.min():.2f}–{ratios.max():.2f}) |")


@pytest.mark.row("P-16")
def test_the_times_of_single_steps():
    kept = json.loads((ROOT / "benchmarks" / "bench_bnp.json").read_text(encoding="utf-8"))
    ms = {
        int(size): {kind: np.median(times) for kind, times in kinds.items()}
        for size, kinds in kept["seconds of a step"].items()
    }
    plain = [f"{ms[size]['BNP'] / ms[size]['vanilla']:.1f}" for size in (1, 6, 16, 60, 256)]
    bn = [f"{ms[size]['BNP'] / ms[size]['BN']:.1f}" for size in (6, 60)]
    says(
        f"takes {', '.join(plain[:4])} and {plain[4]} times as long as a plain one, and with 6 and "
        f"60 examples {bn[0]} and {bn[1]} times as long as one of BN.",
        f"takes {bn[0]} times as long as one of BN, as the end of this section says",
    )


@pytest.mark.row("P-13")
def test_what_mnist_shows_is_said():
    fig3 = runpy.run_path(str(RESULTS.parent / "fig3.py"))
    experiment = Experiment(str(RESULTS.parent / "fig3.py"), fig3["PANELS"], [])
    found, accuracies, losses = experiment.records(), [], []
    for panel in experiment.panels[:2]:
        assert panel.runs[0].data == "mnist"
        seeds = {run.label: found[experiment.chosen(panel, run).name] for run in panel.runs}
        assert [len(each) for each in seeds.values()] == [5] * 8
        ends = [
            100 * (1 - np.mean([seed.curves["test_error"][-1] for seed in each]))
            for each in seeds.values()
        ]
        accuracies += ends
        loss = {
            label: np.mean([seed.curves["minibatch_loss"][4] for seed in each])
            for label, each in seeds.items()
        }
        rest = [value for label, value in loss.items() if label != "BNP"]
        losses.append((loss["BNP"], min(rest)))
    low, high = min(accuracies), max(accuracies)
    says(f"all eight methods end between {low:.1f} % and {high:.1f} % on the test images")
    assert {f"{first:.3f}" for first, _ in losses} == {"0.019"}, losses
    nexts = " and ".join(f"{second:.3f}" for _, second in losses)
    says(f"on both: 0.019, where the next method has {nexts}.")


@pytest.mark.row("P-18")
def test_what_figure_8_shows_is_said():
    seeds = records("fig8", "cifar10-fc2-60-bnp-raw-0.1")
    assert len(seeds) == 5
    assert {rank for seed in seeds for rank in seed["curves"]["rank"]} == {60}

    def curve(name: str) -> np.ndarray:
        return np.array([seed["curves"][name] for seed in seeds])

    hessian, kappa = curve("hessian"), curve("running D 0.01")
    gains = hessian / curve("running P 0.01")
    assert gains.min() > 1
    medians = [np.median(gains), np.median(gains / kappa), np.median(gains / kappa**2)]
    says(
        f"by a factor of {medians[0]:.1f}, the median of all measurements and seeds",
        f"quotient of gain and $\\kappa(D)$ is {medians[1]:.2f}, that of gain and",
        f"$\\kappa(D)^2$ is {medians[2]:.2f}.",
    )
    without = [np.median(curve(f"{kind} D 0")) for kind in ("running", "minibatch")]
    says(f"whose median is {without[0]:.0f} here, or {without[1]:.0f} with")
    same = np.median(hessian / curve("running P 0"))
    steps = np.array(seeds[0]["curves"]["watched_step"])
    early, late = (
        np.median(gains[:, part]) for part in ((steps >= 750) & (steps <= 3000), steps > 13500)
    )
    says(
        f"The gain is {np.median(gains[:, 0]):.1f} at the first step",
        f"median is {early:.1f} over steps 750 to 3000, and {late:.1f} over the last 1500.",
    )
    says("ten times as large and the gain the same")
    assert same == pytest.approx(medians[0], rel=0.1)
    assert without[0] / np.median(kappa) == pytest.approx(10, rel=0.1)


@pytest.mark.row("P-18")
def test_the_training_curves_of_figure_8_are_described_as_recorded():
    runs = "cifar10-fc2-60-bnp-raw-0.1", "cifar10-fc2-60-vanilla-raw-0.01"

    def mean(run: str, curve: str) -> Any:
        seeds = [seed["curves"][curve] for seed in records("fig8", run)]
        assert len(seeds) == 5
        return np.mean(seeds, axis=0)

    (own, other), (loss, losses) = (
        [mean(run, curve) for run in runs] for curve in ("test_error", "minibatch_loss")
    )
    own, other = 100 - 100 * own, 100 - 100 * other
    says(
        f"its test accuracy is {own[0]:.1f} % and that of the vanilla network {other[0]:.1f} %, "
        f"after 20 epochs {own[-1]:.1f} and {other[-1]:.1f} %, with a training loss of "
        f"{loss[-1]:.2f} and {losses[-1]:.2f}."
    )
    assert own.argmax() + 1 == 10


# --- The recorded runs on digits --------------------------------------------------------------


def test_the_digits_are_described_as_recorded():
    def means(size: int) -> dict[str, np.ndarray]:
        file = RESULTS / "recorded" / f"bnp-minibatch-{size}.json"
        curves = json.loads(file.read_text(encoding="utf-8"))["curves"]
        names = {name.partition(", seed")[0] for name in curves}
        return {
            name: 100
            - 100 * np.mean([curves[f"{name}, seed {s}: validation_error"] for s in range(3)], 0)
            for name in names
        }

    sixty, one = means(60), means(1)
    first = {name: f"{values[0]:.0f}" for name, values in sixty.items()}
    says(
        f"After one epoch BN is at {first['BN']} %, BNP at {first['BNP']} % with $\\rho = 0.99$ "
        f"and at {first['BNP, ρ = 0.9']} % with 0.9, the vanilla network at {first['vanilla']} %.",
        "the means lie between 95.9 and 97.5 %, with BN's the highest",
    )
    last = {name: values[-1] for name, values in sixty.items()}
    assert [round(end, 1) for end in (min(last.values()), max(last.values()))] == [95.9, 97.5]
    assert max(last, key=lambda name: last[name]) == "BN"
    assert min(last, key=lambda name: last[name]) == "BNP"
    says(
        f"with {one['BNP'][-1]:.1f} %, ahead of {one['LN'][-1]:.1f} % for LN and "
        f"{one['vanilla'][-1]:.1f} % for the vanilla network"
    )
    assert (one["BNP"] > one["LN"]).all()
    assert (one["BNP"] > one["vanilla"]).all()


# --- CIFAR-10: P-19 and F-10 ------------------------------------------------------------------

TABLES = {
    "Raw pixels, minibatches of 60": ("fig3", "cifar10", 0),
    "Standardized pixels, minibatches of 60": ("fig3", "cifar10", 1),
    "Raw pixels, minibatches of 6": ("fig4", "fc3-6-", 0),
    "Standardized pixels, minibatches of 6": ("fig4", "fc3-6-", 1),
    "Raw pixels, minibatches of 1": ("fig4", "fc3-1-", 0),
    "Standardized pixels, minibatches of 1": ("fig4", "fc3-1-", 1),
}
SHOWN = [title for title in TABLES if f"}} {title}: test" in TEXT]


@cache
def figure(name: str, only: str) -> Experiment:
    file = ROOT / "experiments" / f"{name}.py"
    return Experiment(str(file), runpy.run_path(str(file))["PANELS"], [f"--only={only}"])


@pytest.mark.row("P-19", "F-10")
def test_standardized_pixels_in_minibatches_of_6_are_described_as_measured():
    raw = {"vanilla": 0.003, "bn": 0.03, "bn-and-input": 0.03, "ln": 0.01, "bnp": 0.1, FIRST: 0.01}
    raw |= {"renorm": 0.003, "renorm-clipped": 0.003}
    std = raw | {"ln": 0.03, "bnp": 0.3, "renorm": 0.03, "renorm-clipped": 0.03}
    before = {name: means(f"{name}-raw-{r}", figure="fig4", size=6)[-1] for name, r in raw.items()}
    after = {
        name: means(f"{name}-standardized-{r}", figure="fig4", size=6)[-1]
        for name, r in std.items()
    }
    says(
        f"BNP is at {after['bnp']:.1f} % (49.4–51.2)",
        f"the vanilla network at {after['vanilla']:.1f} %",
        f"Renormalization at {after['renorm']:.1f} %",
        f"layer normalization at {after['ln']:.1f} %",
    )
    gains = {name: after[name] - before[name] for name in after}
    assert max(gains, key=gains.get) == "bn"
    assert {name for name, gain in gains.items() if gain < 0.1} == {"bnp", "bn-and-input"}
    assert min(after, key=after.get) == "bn"
    says(f"with 6 it has {after['bn']:.1f} %")
    assert max(before["bnp"], *after.values()) == before["bnp"]


@pytest.mark.row("P-19", "F-10")
def test_minibatches_of_1_are_described_as_measured():
    raw = {"vanilla": 0.001, "ln": 0.0003, "bnp": 0.1, FIRST: 0.003}
    std = {"vanilla": 0.001, "ln": 0.003, "bnp": 0.3}
    before = {n: means(f"{n}-raw-{r}", figure="fig4", size=1)[-1] for n, r in raw.items()}
    after = {n: means(f"{n}-standardized-{r}", figure="fig4", size=1)[-1] for n, r in std.items()}
    leads = [before["bnp"] - before[name] for name in ("vanilla", "ln")]
    says(
        f"by {leads[0]:.1f} and {leads[1]:.1f} points",
        f"without it BNP is at {before[FIRST]:.1f} %",
    )
    assert before[FIRST] < before["vanilla"]
    assert max(after.values()) - min(after.values()) <= 0.8
    says(f"stays {before['bnp'] - after['vanilla']:.1f} points ahead of the vanilla network on")
    shown = [f"{after[n]:.1f} % for {who}" for n, who in (("bnp", "BNP"), ("ln", "LN"))]
    says(*shown, f"{after['vanilla']:.1f} % for the vanilla network")


@pytest.mark.row("P-19", "F-10")
@pytest.mark.parametrize("title", SHOWN)
def test_the_tables_are_those_of_the_results(title):
    name, only, number = TABLES[title]
    experiment = figure(name, only)
    panel = [panel for panel in experiment.panels if panel.runs][number]
    table = TEXT.split(f"}} {title}: test")[1].split("```")[0]
    lines = re.findall(r"^\| (.+) \|$", table, re.MULTILINE)[1:]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines if "---" not in line]
    assert [row[0] for row in rows] == [run.label for run in panel.runs]
    found = experiment.records()
    for row, run in zip(rows, panel.runs, strict=True):
        chosen = experiment.chosen(panel, run)
        assert chosen is not None
        seeds = records(name, chosen.name)
        assert len(seeds) == 5
        whole = [seed for seed in seeds if not seed["stop"].startswith("diverged")]
        last = [100 - 100 * seed["curves"]["test_error"][-1] for seed in whole]
        text = f"{np.mean(last):.1f} ({min(last):.1f}–{max(last):.1f})"
        if len(whole) < 5:
            text += f", {5 - len(whole)} of 5 diverged"
        anew = [100 - 100 * s["curves"].get("recomputed_error", [np.nan])[-1] for s in whole]
        again = "" if np.isnan(anew).any() else f"{np.mean(anew):.1f}"
        loss = f"{np.mean([seed['curves']['minibatch_loss'][-1] for seed in whole]):.2f}"
        paper = accuracy(found[run.name], "test_error")
        assert row[1:] == [f"{chosen.rate:g}", text, again, loss, f"{run.rate:g}", paper]


def means(name: str, curve: str = "test_error", figure: str = "fig3", size: int = 60) -> Any:
    """Return a curve of CIFAR-10 by epoch, mean of the seeds; errors as accuracies in percent."""
    seeds = [r["curves"][curve] for r in records(figure, f"cifar10-fc3-{size}-{name}")]
    values = np.mean(seeds, axis=0)
    return 100 - 100 * values if curve.endswith("error") else values


FIRST = "bnp-not-the-first-layer"
CHOSEN = {
    "raw": {
        "vanilla": "vanilla-raw-0.03",
        "BN": "bn-raw-0.01",
        "BN+input": "bn-and-input-raw-0.3",
        "LN": "ln-raw-0.03",
        "BNP": "bnp-raw-0.1",
        "first": f"{FIRST}-raw-0.03",
    },
    "standardized": {
        "vanilla": "vanilla-standardized-0.03",
        "BN": "bn-standardized-0.1",
        "BN+input": "bn-and-input-standardized-0.1",
        "LN": "ln-standardized-0.3",
        "BNP": "bnp-standardized-0.3",
        "first": f"{FIRST}-standardized-0.1",
    },
}
RAW, STANDARDIZED = CHOSEN["raw"], CHOSEN["standardized"]
PAPER = {"vanilla": "vanilla-raw-0.01", "BN": "bn-raw-0.5", "LN": "ln-raw-0.5", "BNP": RAW["BNP"]}


@pytest.mark.row("P-19")
def test_the_comparison_with_the_paper_is_that_of_the_files():
    own = {name: means(run) for name, run in RAW.items()}
    says(
        f"after the first epoch it is at {own['BNP'][0]:.1f} %, BN at {own['BN'][0]:.1f} %, "
        "the others below 35 %",
        f"after its peak of {own['BNP'].max():.1f} % it ends at {own['BNP'][-1]:.1f} %",
        f"if its statistics are computed anew, {means(RAW['BN'], 'recomputed_error')[-1]:.1f} %",
        f"normalized, too, {own['BN+input'][-1]:.1f} %",
        f"it ends {own['BNP'][-1] - own['BN'][-1]:.1f} points below BNP",
        f"by {own['BNP'][-1] - own['vanilla'][-1]:.1f} and "
        f"{own['BNP'][-1] - own['LN'][-1]:.1f} points",
    )
    assert max(own["vanilla"][0], own["LN"][0]) < 35
    rivals = [means(RAW[name], "minibatch_loss") for name in ("vanilla", "BN", "LN")]
    assert all((means(RAW["BNP"], "minibatch_loss") < rival).all() for rival in rivals)
    assert own["BNP"].argmax() + 1 == 8
    assert means(RAW["BNP"], "test_loss").argmin() + 1 == 5
    assert means(RAW["BN"], "test_loss").argmin() + 1 == 19
    lead = means(PAPER["BNP"])[-1] - means(PAPER["LN"])[-1]
    says(f"By {lead:.1f} points at the rates of the paper")


@pytest.mark.row("P-19")
def test_the_comparison_with_six_examples_is_that_of_the_files():
    anew = means("bn-raw-0.03", "recomputed_error", "fig4", 6)[-1]
    says(f"help BN little ({anew:.1f} %)", "diverged for two of three seeds")
    stops = [record["stop"] for record in records("fig4", "cifar10-fc3-6-renorm-raw-0.05")]
    assert sum(stop.startswith("diverged") for stop in stops) == 2
    for name in ("renorm-clipped-raw-0.003", "renorm-clipped-raw-0.05"):
        found = records("fig4", f"cifar10-fc3-6-{name}")
        assert not any(record["stop"].startswith("diverged") for record in found)


@pytest.mark.row("F-10")
def test_where_the_gain_comes_from_is_what_the_files_say():
    first = {name: f"{means(run)[0]:.1f}" for name, run in PAPER.items()}
    last = {name: f"{means(run)[-1]:.1f}" for name, run in PAPER.items()}
    says(
        f"it is at {first['BNP']} %, the vanilla network at {first['vanilla']} %, BN at "
        f"{first['BN']} % and LN at {first['LN']} %",
        f"after 20 epochs {last['BNP']} % stand against {last['vanilla']}, {last['BN']} and "
        f"{last['LN']} %",
        f"LN on raw pixels rises from {last['LN']} to {means(RAW['LN'])[-1]:.1f} %, BN from "
        f"{last['BN']} to {means(RAW['BN'])[-1]:.1f} %, the vanilla network from "
        f"{last['vanilla']} to {means(RAW['vanilla'])[-1]:.1f} %",
    )
    best = [max(means(run[name])[-1] for name in ("vanilla", "BN", "LN")) for run in (PAPER, RAW)]
    leads = [means(RAW["BNP"])[-1] - each for each in best]
    says(f"shrinks from {leads[0]:.1f} to {leads[1]:.1f} points")


@pytest.mark.row("F-10")
def test_standardized_pixels_and_the_first_layer_are_described_as_measured():
    loss = {
        kind: {name: means(run, "minibatch_loss")[-1] for name, run in own.items()}
        for kind, own in CHOSEN.items()
    }
    test = {kind: {name: means(run) for name, run in own.items()} for kind, own in CHOSEN.items()}
    raw, std = test["raw"], test["standardized"]
    low, high = loss["raw"], loss["standardized"]
    says(
        f"After the first epoch it is at {std['vanilla'][0]:.1f} % instead of "
        f"{raw['vanilla'][0]:.1f} % (BNP on raw pixels: {raw['BNP'][0]:.1f} %)",
        f"training loss is {high['vanilla']:.2f} instead of {low['vanilla']:.2f} "
        f"(BNP: {low['BNP']:.2f})",
        f"smallest training loss of the six, {high['BNP']:.2f}",
        f"{std['BN'][-1] - std['BNP'][-1]:.1f} points more than BNP",
        f"the loss after 20 epochs is {low['first']:.2f}, near the {low['vanilla']:.2f}",
        f"by {low['vanilla'] - low['first']:.2f} on raw pixels (before rounding) and by "
        f"{high['vanilla'] - high['first']:.2f} on standardized ones",
        f"After the first epoch it is at {raw['first'][0]:.1f} %, BNP at {raw['BNP'][0]:.1f} %",
        f"No, at neither point: {std['BNP'][0]:.1f} against {std['vanilla'][0]:.1f} %",
    )
    assert min(high, key=lambda name: high[name]) == "BNP"
    by_loss = sorted(high, key=lambda name: high[name])
    by_test = sorted(std, key=lambda name: std[name][-1])
    assert by_loss[:2] == by_test[1::-1]
    assert by_loss[2:4] == by_test[3:1:-1]
    assert by_loss[4:] == by_test[4:]
    for kind, name in (
        ("raw", "first"),
        ("raw", "BNP"),
        ("raw", "BN+input"),
        ("standardized", "BNP"),
        ("standardized", "vanilla"),
        ("standardized", "BN"),
    ):
        seeds = records("fig3", f"cifar10-fc3-60-{CHOSEN[kind][name]}")
        ends = [100 - 100 * seed["curves"]["test_error"][-1] for seed in seeds]
        says(f"{np.mean(ends):.1f} % ({min(ends):.1f}–{max(ends):.1f})")
    assert [name for name, values in raw.items() if values[-1] > 52] == ["BN+input"]
    assert means(RAW["BNP"], "test_loss").argmin() + 1 == 20 - 15
    assert means(RAW["first"], "test_loss").argmin() + 1 == 20
    six = [
        means(f"{name}-raw-{rate}", figure="fig4", size=6)[-1]
        for name, rate in (("bnp", 0.1), (FIRST, 0.01), ("vanilla", 0.003))
    ]
    other = means("vanilla-standardized-0.003", figure="fig4", size=6)[-1]
    says(
        f"{six[0]:.1f} % against {six[2]:.1f} % for the vanilla network, and against {other:.1f} %",
        "more than half of it comes from the inputs",
    )
    assert other - six[2] > (six[0] - six[2]) / 2
    bnp = means("bnp-standardized-0.3", figure="fig4", size=6)[-1]
    says(f"it is gone: {bnp:.1f} % against {other:.1f} %")
    later = [
        means(f"{name}-standardized-{rate}")[-1] for name, rate in (("vanilla", 0.01), ("bn", 0.5))
    ]
    says(f"vanilla network {later[0]:.1f} % and BN {later[1]:.1f} %, both 0.6 to 0.7 points more")
    assert later[0] - std["vanilla"][-1] == pytest.approx(0.6, abs=0.05)
    assert later[1] - std["BN"][-1] == pytest.approx(0.7, abs=0.05)
    says(
        f"{std['vanilla'][-1]:.1f} % instead of {raw['vanilla'][-1]:.1f} %, where BNP on raw "
        f"pixels has {raw['BNP'][-1]:.1f} %",
    )
    pairs = (("fig3", 60, 0.3), ("fig4", 6, 0.3), ("fig4", 1, 0.3))
    lost = [
        means("bnp-raw-0.1", figure=f, size=n)[-1]
        - means(f"bnp-standardized-{rate}", figure=f, size=n)[-1]
        for f, n, rate in pairs
    ]
    says(
        f"{lost[0]:.1f} points here (before rounding), and {lost[1]:.1f} and {lost[2]:.1f} points "
        "with minibatches of 6 and 1"
    )
    gaps = []
    for n, kinds in ((6, (("raw", 0.003, 0.01), ("standardized", 0.003, 0.01))),
                     (1, (("raw", 0.001, 0.003), ("standardized", 0.001, 0.001)))):  # fmt: skip
        for kind, plain, hidden in kinds:
            runs = (f"vanilla-{kind}-{plain}", f"{FIRST}-{kind}-{hidden}")
            losses = [means(run, "minibatch_loss", "fig4", n)[-1] for run in runs]
            assert losses[1] > losses[0]
            gaps.append(np.subtract(*[means(run, figure="fig4", size=n)[-1] for run in runs]))
    says(f"its test accuracy is lower, by {gaps[1]:.1f} and {gaps[3]:.1f} points.")
    all_losses = high | {
        "Renorm": means("renorm-standardized-0.3", "minibatch_loss")[-1],
        "Renorm, clipped": means("renorm-clipped-standardized-0.3", "minibatch_loss")[-1],
    }
    assert sorted(all_losses, key=all_losses.__getitem__)[0] == "BNP"
    assert {*sorted(all_losses, key=all_losses.__getitem__)[1:3]} == {"Renorm", "Renorm, clipped"}
    all_tests = {name: values[-1] for name, values in std.items()} | {
        "Renorm": means("renorm-standardized-0.3")[-1],
        "Renorm, clipped": means("renorm-clipped-standardized-0.3")[-1],
    }
    best = sorted(all_tests, key=all_tests.__getitem__)[::-1]
    assert best[:4] == ["BN+input", "BN", "Renorm", "Renorm, clipped"]
    says(f"{six[0]:.1f} % with it, {six[1]:.1f} % without, and {six[2]:.1f} % for the vanilla")


@pytest.mark.row("F-10")
def test_the_sensitivity_to_the_rate_is_that_of_the_search():
    says("from 0.03 to 0.3, on raw")

    def scores(name: str, figure: str = "fig3", size: int = 60) -> dict[float, float]:
        file = RESULTS / figure / "tuning" / f"cifar10-fc3-{size}-{name}.json"
        record = json.loads(file.read_text(encoding="utf-8"))
        found: dict[float, list[float]] = {}
        for label, errors in record["curves"].items():
            right = 0.1 if label in record["config"]["diverged"] else max(0.1, 1 - errors[-1])
            found.setdefault(float(label.split(",")[0]), []).append(right)
        return {rate: 100 * float(np.mean(values)) for rate, values in found.items()}

    def loss_of(name: str) -> float:
        """Return the largest loss of accuracy at a rate of the whole range."""
        found = {rate: value for rate, value in scores(name).items() if 0.003 <= rate <= 1}
        assert len(found) == 6
        return max(found.values()) - min(found.values())

    names = ("vanilla", "bn", "bn-and-input", "ln", "bnp", FIRST)
    raw, std = ({n: loss_of(f"{n}-{kind}") for n in names} for kind in ("raw", "standardized"))
    least = sorted((raw["bn"], raw["bn-and-input"]))
    says(f"a factor of 300, they stay within {least[0]:.1f} and {least[1]:.1f} points of their")
    assert sorted(raw.values())[:2] == least
    least = sorted((std["bn"], std["bn-and-input"]))
    says(f"LN ({std['ln']:.1f} points) is as insensitive as they are ({least[0]:.1f} and ")
    says(f"({least[0]:.1f} and {least[1]:.1f}).")
    assert sorted(std.values())[:3] == [std["ln"], *least]
    found = scores("bnp-raw")
    assert [r for r in found if max(found.values()) - found[r] < 1] == [0.03, 0.1, 0.3]
    found = scores("bnp-raw", "fig4", 6)
    assert [r for r in sorted(found) if max(found.values()) - found[r] < 2] == [0.03, 0.1, 0.3]
    assert tuning.best_rate(found) == 0.1


# --- Any optimizer ----------------------------------------------------------------------------


@pytest.mark.row("F-11")
@pytest.mark.filterwarnings("ignore:bnp.step.. before Adam")
def test_adam_in_three_forms_is_described_as_it_ends(split):
    def loss(lr: float, seed: int, **form: bool) -> float:
        model = fully_connected((64, 100, 100, 100, 10), seed=seed)
        adam = torch.optim.Adam(model.parameters(), lr=lr)
        hooks = [bnp.BNP(model, rho=0.9, **form)] if form else []
        record = training.train(
            model, split.train, adam, epochs=3, batch_size=60, hooks=hooks, seed=seed
        )
        return record.curves["minibatch_loss"][-1]

    says(
        "split form has a loss of 0.17, Adam alone 0.59, and `step` before Adam gains nothing, 0.65"
    )
    forms: list[dict[str, bool]] = [{"split": True}, {}, {"split": False}]
    ends = [np.mean([loss(0.001, seed, **form) for seed in range(3)]) for form in forms]
    assert ends == pytest.approx([0.17, 0.59, 0.65], abs=0.006)


BEYOND = {
    "momentum": ("vanilla-momentum-raw-0.003", "vanilla-momentum-standardized-0.003"),
    "momentum, after `step()`": ("bnp-momentum-raw-0.01", "bnp-momentum-standardized-0.03"),
    "momentum, in `split()`": (
        *("bnp-split-momentum-raw-0.01", "bnp-split-momentum-standardized-0.03"),
    ),
    "Adam": ("vanilla-adam-raw-0.0003", "vanilla-adam-standardized-0.0003"),
    "Adam, after `step()`": ("bnp-adam-raw-0.0001", "bnp-adam-standardized-3e-05"),
    "Adam, in `split()`": ("bnp-split-adam-raw-0.001", "bnp-split-adam-standardized-0.003"),
}
"""The runs of the table of optimizers; a name ends with the rate that was chosen."""


def at_the_end(name: str) -> list[float]:
    """Return the test accuracy of each seed of a run beyond the paper, in percent."""
    seeds = records("beyond", name)
    assert len(seeds) == 5
    return [100 - 100 * one["curves"]["test_error"][-1] for one in seeds]


def told(found: list[float]) -> str:
    return f"{np.mean(found):.1f} ({min(found):.1f}–{max(found):.1f})"


@pytest.mark.row("F-11")
def test_momentum_and_adam_with_bnp_are_described_as_measured():
    table = TEXT.split("Momentum and Adam with BNP: test accuracy in percent")[1].split("```")[0]
    found = {}
    for line in re.findall(r"^\| (.+) \|$", table, re.MULTILINE)[1:]:
        label, *cells = (cell.strip() for cell in line.split("|"))
        runs = [f"cifar10-fc3-60-{name}" for name in BEYOND[label]]
        rates = [name.split("raw-")[-1].split("standardized-")[-1] for name in runs]
        ends = [at_the_end(name) for name in runs]
        assert cells == [rates[0], told(ends[0]), rates[1], told(ends[1])]
        found[label] = [np.mean(end) for end in ends]
    assert list(found) == list(BEYOND)
    means = np.array([*found.values()])
    assert np.abs(means[1] - means[2]).max() < 0.45
    assert means[5, 0] - means[3, 0] == pytest.approx(3.9, abs=0.05)
    assert 0.6 <= means[5, 1] - means[3, 1] <= 0.75
    assert all(means[k, 1] < means[3 * (k // 3), 1] for k in (1, 2, 4))
    standardized = [at_the_end(f"cifar10-fc3-60-{BEYOND[name][1]}") for name in ("Adam", label)]
    assert max(standardized[0]) > min(standardized[1])


@pytest.mark.row("F-11")
def test_the_rates_of_adam_after_a_step_are_described_as_searched():
    file = RESULTS / "beyond" / "tuning" / "cifar10-fc3-60-bnp-adam-raw.json"
    curves = json.loads(file.read_text(encoding="utf-8"))["curves"]
    ends: dict[str, list[float]] = {}
    for name, errors in curves.items():
        ends.setdefault(name.split(",")[0], []).append(100 - 100 * errors[-1])
    assert len(ends) >= 5
    best = max(np.mean(seeds) for seeds in ends.values())
    says(f"the best one gives {best:.1f} % on validation data after three epochs")


@pytest.mark.row("P-13")
def test_corrected_averages_are_described_as_measured():
    sentences = []
    for data, rate in (("digits", "0.3"), ("mnist", "0.5"), ("cifar10", "0.1")):
        plain, corrected = (
            told(at_the_end(f"{data}-fc3-60-{name}-raw-{rate}")).replace(" (", " % (")
            for name in ("bnp", "bnp-corrected")
        )
        sentences.append(f"{corrected} in place of {plain}")
    says(*sentences)


# --- Relatives --------------------------------------------------------------------------------


@pytest.mark.row("F-09")
def test_the_input_factor_is_the_hessian_of_least_squares(rng):
    """For ½‖a − y‖² the Fisher matrix of a layer is I ⊗ A: K-FAC is exact, with B = I."""
    H, W = 2 + torch.from_numpy(rng.normal(size=(9, 3))), torch.from_numpy(rng.normal(size=(2, 4)))

    def loss(flat: torch.Tensor) -> torch.Tensor:
        rows = flat.reshape(2, 4)
        return (rows[:, 0] + H @ rows[:, 1:].T).square().sum() / 2 / len(H)

    hessian = torch.autograd.functional.hessian(loss, W.flatten()).numpy()
    expected = np.kron(np.eye(2), bnp.input_factor(H.numpy()))
    np.testing.assert_allclose(hessian, expected, atol=1e-12)


@pytest.mark.row("F-09")
def test_bnp_multiplies_by_the_inverse_of_the_factor_with_a_diagonal_covariance(rng):
    H, G = 3 + rng.normal(size=(20, 4)) * [1, 2, 3, 4], rng.normal(size=(5, 5))
    weight, bias = bnp.precondition_dense(
        G[:, 1:], G[:, 0], H.mean(0), H.var(0), 20, eps1=0.0, eps2=0.0
    )
    expected = np.linalg.solve(bnp.input_factor(H, diagonal=True), G.T).T
    np.testing.assert_allclose(np.column_stack([bias, weight]), expected, rtol=1e-9)
    full = np.linalg.solve(bnp.input_factor(H), G.T).T
    assert np.abs(full - expected).max() > 0.01  # correlations are what BNP leaves out
    extended = np.column_stack([np.ones(20), H])
    np.testing.assert_allclose(bnp.input_factor(H), extended.T @ extended / 20, rtol=1e-12)


@pytest.mark.row("P-29")
def test_the_operations_of_the_relatives_are_those_of_their_products():
    """torch counts the multiplications and additions of the matrices that each method forms."""
    n, o, N = 12, 5, 7
    H, delta, G = torch.randn(N, n), torch.randn(N, o), torch.randn(o, n)
    left, right = torch.randn(o, o), torch.randn(n, n)
    products = {
        "FOOF": lambda: (H.T @ H, G @ right),
        "K-FAC": lambda: (H.T @ H, delta.T @ delta, left @ G @ right),
        "Shampoo": lambda: (G.T @ G, G @ G.T, left @ G @ right),
    }
    found = bnp.preconditioning_flops(n, o, N)
    for name, multiply in products.items():
        with FlopCounterMode(display=False) as counter:
            multiply()
        assert found[name] == counter.get_total_flops()
    assert found["BNP"] == 4 * n * N + 6 * n * o + 2 * o + 8 * n
    says("= 6.4$ million, more than the layer's own 3.6 million", "85 thousand together")
    large = bnp.preconditioning_flops(100, 100, 60)
    assert (large["K-FAC"], large["BNP"]) == (6_400_000, 85_000)
    assert 6 * 100 * 100 * 60 == 3_600_000


def test_the_curvature_of_softmax_is_that_of_the_first_section():
    """The curvature of softmax and cross entropy is p(1 − p), as the first section says."""
    scores = torch.tensor([0.3, -1.0, 2.0], dtype=torch.float64)

    def loss(first: torch.Tensor) -> torch.Tensor:
        moved = torch.cat([first[None], scores[1:]])
        return functional.cross_entropy(moved[None], torch.tensor([2]))

    p = scores.softmax(0)[0]
    second = torch.autograd.functional.hessian(loss, scores[0])
    assert second.item() == pytest.approx((p * (1 - p)).item())
