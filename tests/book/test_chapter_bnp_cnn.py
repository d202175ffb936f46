"""Claims of the lessons on BNP for convolutions that no printed number carries."""

import inspect
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from chapters import text
from torch.nn import functional

from optdl import bnp, bnp_cnn, networks
from optdl.data import load
from optdl.experiments import Experiment, spread
from optdl.records import Record

ROOT = Path(__file__).resolve().parents[2]
NINE = np.arange(1.0, 10).reshape(1, 1, 3, 3)


def says(page: str, *sentences: str) -> None:
    """Require that a page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in text("bnp_cnn", page), f"{page} no longer says {sentence!r}"


# --- By hand ----------------------------------------------------------------------------------


@pytest.mark.row("P-21")
def test_the_convolution_by_hand():
    says("matrix", "(5, 7, 11, 13)^T", "1&2&4&5\\\\2&3&5&6\\\\4&5&7&8\\\\5&6&8&9")
    says("matrix", "meets all 16 pixels", "12 pixels and 4 zeros", "9 pixels and 7 zeros")
    matrix = functional.unfold(torch.from_numpy(NINE), 2)[0].T.numpy()
    assert matrix.tolist() == [[1, 2, 4, 5], [2, 3, 5, 6], [4, 5, 7, 8], [5, 6, 8, 9]]
    assert (matrix @ [1, 0, 2, -1] + 1).tolist() == [5, 7, 11, 13]
    met = functional.unfold(torch.ones(1, 1, 4, 4), 3, padding=1)[0].sum(dim=1)
    assert met[[4, 1, 0]].tolist() == [16, 12, 9]


@pytest.mark.row("P-22")
def test_the_two_hessians_by_hand():
    says("matrix", "m = \\frac14\\hat{\\mathcal H}^Te = (1, 3, 4, 6, 7)", "$1+2+4+5 = 12$")
    says("matrix", "Here it is 2")
    image = torch.from_numpy(NINE)

    def outputs(w):
        return functional.conv2d(image, w[1:].reshape(1, 1, 2, 2), w[:1]).flatten()

    zero = torch.zeros(5, dtype=torch.float64)
    hessian = torch.autograd.functional.hessian
    of_mean = hessian(lambda w: outputs(w).mean().square() / 2, zero).numpy()
    np.testing.assert_allclose(of_mean, np.outer(m := [1, 3, 4, 6, 7], m))
    of_sum = hessian(lambda w: outputs(w).square().sum() / 2, zero).numpy()
    assert of_sum[0, :2].tolist() == [4, 12]
    assert np.linalg.matrix_rank(of_sum) == 2


@pytest.mark.row("P-23")
def test_the_nine_columns_by_hand():
    says("statistics", "\\frac{12}9 = \\frac43", "\\frac59$: five of nine", "5-\\frac43")
    says("statistics", "$\\nu = 0.0615$ and $\\nu = 0.4375$")
    says("resnet", "\\bigl(\\frac67\\bigr)^2 = 0.27")
    column = bnp_cnn.convolution_matrix(NINE, 3)[:, 0]
    assert column.reshape(3, 3).tolist() == [[0, 0, 0], [0, 1, 2], [0, 4, 5]]
    assert column.mean() == pytest.approx(4 / 3)
    assert NINE.mean() == 5
    assert [round(1 - (1 - 1 / r) ** 2, 4) for r in (3, 32, 4)] == [0.5556, 0.0615, 0.4375]
    assert round(1 - (6 / 7) ** 2, 2) == 0.27
    assert bnp_cnn.statistics_bound(NINE, 3) == pytest.approx(5)


@pytest.mark.row("P-24")
def test_one_step_by_hand():
    says(
        "step",
        "\\frac14\\cdot\\frac{6-2\\cdot2}4 = \\frac18$",
        "\\frac24-2\\cdot\\frac18 = \\frac14",
    )
    weight, bias = bnp.precondition_conv(
        np.full((1, 1, 1, 1), 6.0), np.array([2.0]), np.array([2.0]), np.array([4.0]),
        1, 4, 4, eps1=0.0, eps2=0.0,
    )  # fmt: skip
    assert (weight.item(), bias.item()) == (1 / 8, 1 / 4)


@pytest.mark.row("P-24")
def test_the_scales_of_the_answers():
    says("step", "So $q^2$ is 13, 144 and 288")
    says("resnet", "\\max\\{147/256,\\ 112\\} = 112", "\\max\\{4608/256,\\ 7\\} = 18")
    assert networks.cnn5()[:4](torch.zeros(1, 3, 32, 32)).shape[1:] == (64, 13, 13)
    assert [bnp.scale_conv(32, (3, 3), n, 169) for n in (128, 2, 1)] == [13, 144, 288]
    first, last = bnp.scale_conv(3, (7, 7), 256, 112**2), bnp.scale_conv(512, (3, 3), 256, 49)
    assert (first, last) == (112, 18)


# --- The root of rs ---------------------------------------------------------------------------


@pytest.mark.row("P-24")
def test_the_norm_is_at_least_rs_and_that_of_a_mean_between_one_and_its_bound(rng):
    digits = load("digits").x_train[:8].reshape(-1, 1, 8, 8).astype(float)
    large = digits.repeat(2, 2).repeat(2, 3)
    for r, h in [(8, digits), (16, large), (5, rng.normal(size=(3, 2, 5, 5)))]:
        columns = 9 * h.shape[1]
        mean, var = bnp_cnn.channel_statistics(h)
        P = np.linalg.multi_dot(
            bnp_cnn.preconditioner_conv(mean, np.sqrt(bnp.smoothed_variance(var)), 3)
        )
        product = bnp.extended_activations(bnp_cnn.convolution_matrix(h, 3)) @ P
        np.testing.assert_allclose(product[:, 0], 1, atol=1e-12)
        for S, low, high in (
            (np.eye(r * r), r * r, np.inf),
            (np.full((r * r, r * r), r**-4.0), 1, 1 + columns),
        ):
            hessian = bnp_cnn.conv_layer_hessian(h, 3, np.stack([S] * len(h)))
            largest = bnp_cnn.preconditioned_norm(h, 3, hessian)
            assert largest == pytest.approx(np.linalg.norm(P.T @ hessian @ P, 2))
            assert low <= largest <= high
            if high == np.inf:
                assert largest == pytest.approx(np.linalg.norm(product, 2) ** 2 / len(h))


@pytest.mark.row("P-24")
def test_the_curvatures_behind_relu_are_those_of_autograd(rng):
    outputs, dense = rng.normal(size=(3, 6)), rng.normal(size=(4, 6))
    for n, block in enumerate(bnp_cnn.relu_curvatures(outputs, dense)):
        expected = torch.autograd.functional.hessian(
            lambda a: functional.cross_entropy(
                (a.relu() @ torch.from_numpy(dense).T)[None], torch.tensor([2])
            ),
            torch.from_numpy(outputs[n]),
        )
        np.testing.assert_allclose(block, expected.numpy(), atol=1e-12)


def test_a_hessian_of_another_layer_is_refused():
    with pytest.raises(ValueError, match=r"expected a Hessian of shape \(10, 10\).*got \(9, 9\)"):
        inspect.unwrap(bnp_cnn.preconditioned_norm)(np.ones((1, 1, 3, 3)), 3, np.eye(9))


# --- K-FAC ------------------------------------------------------------------------------------


def test_bnp_is_the_input_factor_of_kfac_cut_to_its_diagonal(rng):
    h = rng.normal(size=(4, 2, 5, 6)) + 3
    H = bnp_cnn.convolution_matrix(h, 3)
    whole = np.column_stack([np.ones(len(H)), H])
    omega = whole.T @ whole / 4
    mean, C = H.mean(axis=0), np.cov(H.T, bias=True)
    U = np.eye(19)
    U[0, 1:] = -mean
    inner = np.zeros((19, 19))
    inner[0, 0], inner[1:, 1:] = 1, np.linalg.inv(C)
    np.testing.assert_allclose(np.linalg.inv(omega / 30), U @ inner @ U.T, rtol=1e-7)
    inner[1:, 1:] = np.diag(1 / np.diag(C))
    exact = bnp.preconditioner(*(mean, np.sqrt(H.var(axis=0))))
    P = exact[0] @ exact[1]
    np.testing.assert_allclose(P @ P.T, U @ inner @ U.T, rtol=1e-10, atol=1e-12)


def test_the_small_example_of_kfac():
    says("appendix-kfac", "\\begin{bmatrix}1&2\\\\2&5\\end{bmatrix}")
    says("appendix-kfac", "\\begin{bmatrix}5&-2\\\\-2&1\\end{bmatrix}")
    omega = np.array([[1.0, 2], [2, 5]])
    P = np.array([[1.0, -2], [0, 1]])
    np.testing.assert_allclose(np.linalg.inv(omega), P @ P.T)


# --- The network of five layers ---------------------------------------------------------------


def experiment(figure: str, seeds: int) -> Experiment:
    file = ROOT / "experiments" / f"{figure}.py"
    return Experiment(str(file), runpy.run_path(str(file))["PANELS"], [f"--seeds={seeds}"])


SIZES = {128: ("fig5", 0, 10), 2: ("fig5", 1, 4), 1: ("fig4", -1, 3)}


@pytest.fixture(scope="module")
def chosen() -> dict[int, dict[str, list[Record]]]:
    """Return the records at the chosen rates: minibatch, label, seeds."""
    return {size: runs(size)[0] for size in SIZES}


def runs(size: int) -> tuple[dict[str, list[Record]], dict[str, float], dict[str, list[Record]]]:
    """Return the records at the chosen rates, these rates, and the records at the paper's rates."""
    figure, number, _ = SIZES[size]
    figure = experiment(figure, 3)
    panel, found = figure.panels[number], figure.records()
    best = {run.label: figure.chosen(panel, run) for run in panel.runs}
    return (
        {label: found[run.name] for label, run in best.items()},
        {label: run.rate for label, run in best.items()},
        {run.label: found[run.name] for run in panel.runs},
    )


def ends(records: list[Record], curve: str = "test_error") -> np.ndarray:
    """Return the last accuracies of the seeds in percent."""
    return 100 - 100 * np.array([record.curves[curve][-1] for record in records])


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    return one.min() <= other.max() and other.min() <= one.max()


@pytest.mark.row("P-26")
def test_the_protocol_is_that_of_the_runs(chosen):
    says("cnn", "for ten, four and three epochs with minibatches of 128, 2 and 1", "three seeds")
    for size, (_, _, epochs) in SIZES.items():
        for records in chosen[size].values():
            assert [len(record.curves["test_error"]) for record in records] == [epochs] * 3
    says("cnn", "ghost batches of 32 images where a minibatch has 128, groups of eight channels")
    kept = {size: chosen[size]["4 Things"][0].config["settings"] for size in SIZES}
    assert kept[128]["ghost_size"] == 32
    assert kept[2]["groups"] == kept[1]["groups"] == 8


@pytest.mark.row("P-26")
def test_the_order_with_minibatches_of_128(chosen):
    large = chosen[128]
    first = {name: spread(records, "test_error")[0][0] for name, records in large.items()}
    assert first["4 Things"] < first["BN"] < first["BNP"], "the paper's order after one epoch"
    says(
        "cnn", "At the end the ranges of BNP and BN overlap.", "In every seed, though, BN has more"
    )
    assert overlap(ends(large["BNP"]), ends(large["BN"]))
    assert all(ends(large["BN"], "recomputed_error") > ends(large["BNP"]))
    loss = {name: spread(records, "minibatch_loss")[0][-1] for name, records in large.items()}
    assert sorted(loss, key=loss.__getitem__)[:3] == ["BNP", "BN", "4 Things"]
    assert max(large, key=lambda name: ends(large[name]).mean()) == "4 Things"
    says("cnn", "BNP and BN overfit mildly")
    for name in ("BNP", "BN"):
        test = spread(large[name], "test_loss")[0]
        assert 1.02 < test[-1] / test.min() < 1.1


@pytest.mark.row("P-26")
def test_the_order_with_few_images(chosen):
    says("cnn", "**The four things do as well as BNP with 2 images.**", "the ranges overlap")
    assert overlap(ends(chosen[2]["4 Things"]), ends(chosen[2]["BNP"]))
    assert overlap(ends(chosen[1]["vanilla"]), ends(chosen[1]["BNP"]))
    assert ends(chosen[1]["4 Things"]).max() < ends(chosen[1]["vanilla"]).min()
    loss = {name: spread(chosen[1][name], "minibatch_loss")[0][-1] for name in chosen[1]}
    assert loss["4 Things"] < loss["vanilla"]
    says("cnn", "a rate that is best for one epoch is too large for four")
    right = 1 - spread(chosen[2]["vanilla"], "test_error")[0]
    assert right[2] > right[3]


@pytest.mark.row("P-26")
def test_the_rates_of_the_paper(chosen):
    says("cnn", "is a tenth of it, 0.001, and BNP's rate in the paper a tenth", "0.01.")
    _, rates, paper = runs(2)
    assert rates["vanilla"] == 0.01
    assert rates["BNP"] == 0.1
    assert {paper[name][0].config["rate"] for name in ("vanilla", "BNP")} == {0.001, 0.01}
    assert [len(paper[name]) for name in ("vanilla", "BNP")] == [1, 1]
    says("reference", "are 3 to 33 times those of vanilla, and 100 times that of Adam")
    every = {size: runs(size)[1] for size in SIZES}
    times = [round(every[size]["BNP"] / every[size]["vanilla"]) for size in SIZES]
    assert (min(times), max(times)) == (3, 33)
    assert round(every[128]["BNP"] / every[128]["Adam"]) == 100
    says("reference", "at this rate Adam does not learn")
    assert ends(runs(128)[2]["Adam"]) == pytest.approx(10)


@pytest.mark.row("P-26")
def test_the_puzzle_of_the_first_page():
    kept = Record.load(ROOT / "experiments/results/recorded/bnp_cnn-minibatches.json").curves
    final = {
        name.partition(":")[0]: 100 * (1 - np.array(values))
        for name, values in kept.items()
        if name.endswith("validation_error")
    }
    methods = ("vanilla", "BN", "BN, groups", "BNP")
    fourth = {name: final[f"{name}, 32"][3] for name in methods}
    assert max(fourth, key=fourth.__getitem__) == "BN", "B rises fastest"
    assert min(methods, key=lambda name: final[f"{name}, 32"][-1]) == "vanilla"
    two = {name: final[f"{name}, 2"][-1] for name in methods}
    assert two.pop("BN") < 60 < 90 < min(two.values())
    assert max(two, key=two.__getitem__) == "BNP"
    assert final["BNP, 1"][-1] > final["vanilla, 1"][-1] > 75 > 60 > final["BN, groups, 1"][-1]
    says("index", "so it raises an error; with two images every feature becomes ±1")
    with pytest.raises(ValueError, match="more than 1 value"):
        networks.cnn5(1, 24, normalization="bn")(torch.zeros(1, 1, 24, 24))
    two_rows = functional.batch_norm(torch.tensor([[1.0], [4.0]]), None, None, training=True)
    assert two_rows.flatten().tolist() == pytest.approx([-1, 1], abs=1e-4)


# --- Residual networks ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def residual() -> dict[tuple[str, float], list[Record]]:
    fig6 = experiment("fig6", 2)
    panel, found = fig6.panels[0], fig6.records()
    searched = [fig6.chosen(panel, run) for run in panel.runs]
    says("resnet", "0.3 for BN and BNP, 0.1 for BNP+GN and 0.03 for GN")
    rates = {run.method: run.rate for run in searched}
    assert rates == {"BN": 0.3, "BNP": 0.3, "BNP+GN": 0.1, "GN": 0.03}
    return {(run.method, run.rate): found[run.name] for run in [*searched, *fig6.panels[-1].runs]}


@pytest.mark.row("P-27")
def test_what_happens_at_the_drop(residual):
    errors = {
        name: 100 * np.array([record.curves["test_error"] for record in records])
        for name, records in residual.items()
    }
    gain = {name: each[:, 7] - each[:, 8] for name, each in errors.items()}
    bn, gn, alone, both = ("BN", 0.3), ("GN", 0.1), ("BNP", 0.1), ("BNP+GN", 0.1)
    says("resnet", "BNP gains much less from the drop than BN.", "Networks with GN gain more than")
    assert max(gain[alone]) < min(gain[both])
    assert max(gain[both]) < min(gain[gn])
    assert 2 * gain[alone].mean() < gain[bn].mean()
    assert max(gain[alone]) < min(gain[bn])
    assert max(gain[gn]) < min(gain[bn])
    assert min(ends(residual[both])) > max(ends(residual[gn])), "BNP+GN is ahead of GN at 0.1"
    says("resnet", "below BNP with", "0.3, ends at", "and the ranges overlap")
    assert min(ends(residual[alone])) > max(ends(residual[both]))
    assert overlap(ends(residual[both]), ends(residual["GN", 0.3]))
    says("resnet", "more than BNP+GN, but it was lower before")
    large = "BNP", 0.3
    assert gain[large].mean() > gain[both].mean()
    assert errors[large][:, 7].min() > errors[alone][:, 7].max()
    validation = {n: ends(r, "validation_error").mean() for n, r in residual.items()}
    assert max(rate for method, rate in validation if method == "GN") == 0.3
    rates = {"GN": (0.03, 0.1, 0.3), "BNP": (0.3, 0.1), "BNP+GN": (0.3, 0.1)}
    for method, order in rates.items():
        assert sorted(order, key=lambda rate: validation[method, rate]) == list(order)


@pytest.mark.row("P-27")
def test_the_runs_lack_what_the_page_says(residual):
    says("resnet", "They have 14 layers and ten epochs", "and two seeds or one")
    assert {name for name, records in residual.items() if len(records) != 2} == {("BNP+GN", 0.3)}
    for records in residual.values():
        for record in records:
            assert record.config["settings"]["weight_decay"] == 1e-4
            assert "init_scale" not in record.config["settings"]
            assert len(record.curves["test_error"]) == 10


@pytest.mark.row("P-27")
def test_what_the_weights_of_the_paper_change(residual):
    fig6 = experiment("fig6", 1)
    kept = {run.label: fig6.records()[run.name] for run in fig6.panels[3].runs}
    assert {len(records) for records in kept.values()} == {1}
    errors = {name: 100 * np.array(one.curves["test_error"]) for name, [one] in kept.items()}
    bn, alone, both, gn, small = errors.values()
    assert [*errors] == ["BN, the paper's", "BNP, the paper's", "BNP+GN, the paper's",
                         "GN, weights of BNP+GN", "BN, weights of BNP+GN"]  # fmt: skip
    says("resnet", "BN at 0.1 is level with it (one run, below)")
    assert bn[7] == pytest.approx(np.mean([100 * r.curves["test_error"][7]
                                           for r in residual["BNP", 0.1]]), abs=0.5)  # fmt: skip
    says("resnet", "**With the paper's weights its result is seen, in one seed.**")
    says("resnet", "Just before the drop BN with the small weights leads")
    assert small[7] < both[7] < bn[7]
    assert all(small[7] < each[7] for each in (alone, gn))
    says("resnet", "far above BNP and less than a point below BN (one seed)")
    assert 0 < both[9] - bn[9] < 1
    assert alone[9] - both[9] > 7
    says("resnet", "lower than with the usual ones", "loses by them")
    assert gn[9] > 100 - min(ends(residual["GN", 0.1]))
    assert alone[9] > 100 - min(ends(residual["BNP", 0.1]))
    assert both[9] < 100 - max(ends(residual["BNP+GN", 0.1]))
    says("resnet", "BNP alone gains more, from a lower accuracy")
    assert alone[7] - alone[8] > both[7] - both[8]
    assert alone[7] > both[7]
    weights = fig6.panels[3].runs
    assert [run.settings.init_scale for run in weights] == [None, 0.1, 0.1, 0.1, 0.1]
    assert [run.settings.weight_decay for run in weights] == [1e-4, 1e-4, *[1.5e-4] * 3]


@pytest.mark.row("P-27")
def test_the_size_of_the_network_of_the_paper():
    says("reference", "54 blocks, 1.7 million parameters")
    for preactivation in (False, True):
        modules = list(networks.resnet_cifar(110, 10, "gn", preactivation).modules())
        assert sum(isinstance(module, networks.Residual) for module in modules) == 54
        weighted = (torch.nn.Conv2d, torch.nn.Linear)
        assert sum(isinstance(module, weighted) for module in modules) == 110
        count = sum(parameter.numel() for parameter in modules[0].parameters())
        assert round(count / 1e6, 1) == 1.7


@pytest.mark.row("P-27")
def test_a_preconditioned_step_only_lengthens_the_coordinates_of_a_normalized_layer(rng):
    """GN behind a convolution: ŵ = Pz, and z − ηPᵀg is longer by Pythagoras."""
    says("resnet", "$\\sqrt{9+16} = 5$ and $\\frac1{25}$")
    h = torch.from_numpy(rng.normal(size=(3, 2, 4, 4)))
    w = torch.from_numpy(rng.normal(size=(4, 19))).requires_grad_()
    target = torch.from_numpy(rng.normal(size=(3, 4, 4, 4)))

    def loss(w):
        a = functional.conv2d(h, w[:, 1:].reshape(4, 2, 3, 3), w[:, 0], padding=1)
        return (functional.group_norm(a, 1, eps=0.0) - target).square().sum()

    [g] = torch.autograd.grad(loss(w), w)
    mean, var = bnp_cnn.channel_statistics(h.numpy())
    P = np.linalg.multi_dot(bnp_cnn.preconditioner_conv(mean, np.sqrt(var), 3))
    z = np.linalg.solve(P, w.detach().numpy().T)
    step = P.T @ g.numpy().T
    assert abs((z * step).sum()) < 1e-10 * np.linalg.norm(z) * np.linalg.norm(step)
    longer = np.linalg.norm(z - 0.1 * step) ** 2
    assert longer == pytest.approx(np.linalg.norm(z) ** 2 + 0.01 * np.linalg.norm(step) ** 2)
    assert abs((w.detach().numpy().T * (P @ step)).sum()) > 1e-3 * np.linalg.norm(P @ step)
    assert loss(3 * w).item() == pytest.approx(loss(w).item())
