"""What the chapter on BNP for convolutions says in words about its examples and its results."""

import inspect
import itertools
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from optdl import batchnorm, bnp, bnp_cnn, networks
from optdl.data import load
from optdl.experiments import Experiment, spread, table
from optdl.experiments.tables import accuracy
from optdl.records import Record

ROOT = Path(__file__).resolve().parent.parent
PLAIN = " ".join((ROOT / "book" / "bnp_cnn.md").read_text(encoding="utf-8").split())
NINE = np.arange(1.0, 10).reshape(1, 1, 3, 3)


def says(*sentences: str) -> None:
    """Require that the page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in PLAIN, f"the page no longer says {sentence!r}: change this test too"


def numbers(sentence: str) -> list[float]:
    """Return the numbers of a sentence; ``#`` stands for each of them."""
    pattern = re.escape(sentence).replace(r"\#", r"(\d+(?:\.\d+)?)")
    found = re.search(pattern, PLAIN)
    assert found, f"the page no longer says {sentence!r}: change this test too"
    return [float(number) for number in found.groups()]


# --- The worked example -----------------------------------------------------------------------


@pytest.mark.row("P-21")
def test_the_convolution_by_hand():
    says("(5, 7, 11, 13)^T", "3, 4, 6 and 7.", "1&2&4&5\\\\2&3&5&6\\\\4&5&7&8\\\\5&6&8&9")
    matrix = functional.unfold(torch.from_numpy(NINE), 2)[0].T.numpy()
    assert matrix.tolist() == [[1, 2, 4, 5], [2, 3, 5, 6], [4, 5, 7, 8], [5, 6, 8, 9]]
    assert (matrix @ [1, 0, 2, -1] + 1).tolist() == [5, 7, 11, 13]
    assert matrix.mean(axis=0).tolist() == [3, 4, 6, 7]


@pytest.mark.row("P-22")
def test_the_two_hessians_by_hand():
    says("m = \\frac14\\hat{\\mathcal H}^Te = (1, 3, 4, 6, 7)", "$1+2+4+5 = 12$", "Here it is 2")
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
    says(
        "\\frac{12}9 = \\frac43",
        "\\frac59$: five of nine",
        "\\frac59\\cdot9 = 5$, the error $5-\\frac43",
    )
    says("$\\nu = 0.0615$ and $\\nu = 0.4375$", "\\bigl(\\frac67\\bigr)^2 = 0.27")
    column = bnp_cnn.convolution_matrix(NINE, 3)[:, 0]
    assert column.reshape(3, 3).tolist() == [[0, 0, 0], [0, 1, 2], [0, 4, 5]]
    assert column.mean() == pytest.approx(4 / 3)
    assert NINE.mean() == 5
    assert [round(1 - (1 - 1 / r) ** 2, 4) for r in (3, 32, 4)] == [0.5556, 0.0615, 0.4375]
    assert round(1 - (6 / 7) ** 2, 2) == 0.27
    assert bnp_cnn.statistics_bound(NINE, 3) == pytest.approx(5)


@pytest.mark.row("P-23")
def test_how_the_bound_falls_with_the_size_of_the_map():
    [factor] = numbers("falls by a factor of # from maps of 4 × 4 to maps of 64 × 64")
    assert round((1 - (3 / 4) ** 2) / (1 - (63 / 64) ** 2)) == factor


@pytest.mark.row("P-24")
def test_one_step_by_hand():
    says("\\frac14\\cdot\\frac{6-2\\cdot2}4 = \\frac18$", "\\frac24-2\\cdot\\frac18 = \\frac14")
    weight, bias = bnp.precondition_conv(
        np.full((1, 1, 1, 1), 6.0), np.array([2.0]), np.array([2.0]), np.array([4.0]),
        1, 4, 4, eps1=0.0, eps2=0.0,
    )  # fmt: skip
    assert (weight.item(), bias.item()) == (1 / 8, 1 / 4)


@pytest.mark.row("P-24")
def test_the_scales_of_the_answers():
    says(
        "So $q^2$ is 13, 144 and 288",
        "\\max\\{147/256,\\ 112\\} = 112",
        "\\max\\{4608/256,\\ 7\\} = 18",
    )
    says("$\\sqrt{900}/\\sqrt{16} = 7.5$")
    second = networks.cnn5()[:4](torch.zeros(1, 3, 32, 32))
    assert second.shape[1:] == (64, 13, 13)
    assert [max(288 / n, 13) for n in (128, 2, 1)] == [13, 144, 288]
    assert (max(147 / 256, 112), max(4608 / 256, 7)) == (112, 18)
    sizes = [networks.cnn5()[:stop](torch.zeros(1, 3, 32, 32)).shape[2] for stop in (1, 7)]
    assert sizes == [30, 4]


# --- The root of rs ---------------------------------------------------------------------------


def enlarged(r: int, count: int = 8) -> np.ndarray:
    digits = load("digits").x_train[:count].reshape(-1, 1, 8, 8).astype(float)
    return digits.repeat(r // 8, 2).repeat(r // 8, 3)


@pytest.mark.row("P-24")
def test_the_norm_is_at_least_rs_and_that_of_a_mean_between_one_and_its_bound(rng):
    for r, h in [(8, enlarged(8)), (16, enlarged(16)), (5, rng.normal(size=(3, 2, 5, 5)))]:
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


@pytest.mark.row("P-24")
def test_how_the_largest_eigenvalues_grow():
    [adds_up] = numbers("of the loss that adds up grows by a factor of #:")
    factor, first, last = numbers("That of the cross entropy grows by a factor of #, from # to #,")
    norms = []
    for r in (8, 24):
        h, values = enlarged(r), []
        for seed in range(10):
            rng = np.random.default_rng(seed)
            kernel = rng.normal(size=(1, 1, 3, 3)) * (2 / 9) ** 0.5
            padded = torch.from_numpy(h), torch.from_numpy(kernel)
            outputs = functional.conv2d(*padded, padding=1).flatten(1).numpy()
            dense = rng.normal(size=(10, r * r)) * (2 / r**2) ** 0.5
            S = bnp_cnn.relu_curvatures(outputs, dense)
            hessian = bnp_cnn.conv_layer_hessian(h, 3, S)
            values.append(bnp_cnn.preconditioned_norm(h, 3, hessian))
        S = np.broadcast_to(np.eye(r * r), (8, r * r, r * r))
        whole = bnp_cnn.preconditioned_norm(h, 3, bnp_cnn.conv_layer_hessian(h, 3, S))
        norms.append((np.mean(values), whole))
    assert (round(norms[0][0], 1), round(norms[1][0], 1)) == (first, last)
    assert round(norms[1][0] / norms[0][0], 1) == factor
    assert round(norms[1][1] / norms[0][1]) == adds_up


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
    says("\\begin{bmatrix}1&2\\\\2&5\\end{bmatrix}", "\\begin{bmatrix}5&-2\\\\-2&1\\end{bmatrix}")
    omega = np.array([[1.0, 2], [2, 5]])
    P = np.array([[1.0, -2], [0, 1]])
    np.testing.assert_allclose(np.linalg.inv(omega), P @ P.T)


def maps_of(images: np.ndarray) -> np.ndarray:
    """Return the first four channels that vary, before the second convolution."""
    first = networks.cnn5(1, 24)[:3].double()
    maps = first(torch.from_numpy(images)).detach().numpy()
    return maps[:, maps.std(axis=(0, 2, 3)) > 0.02][:, :4]


def condition(maps: np.ndarray) -> tuple[float, float]:
    """Return κ of [e, H], without P and with it."""
    H = np.column_stack([np.ones(bnp_cnn.rows(maps)), bnp_cnn.convolution_matrix(maps, 3)])
    mean, var = maps.mean(axis=(0, 2, 3)), maps.var(axis=(0, 2, 3))
    P = np.linalg.multi_dot(bnp_cnn.preconditioner_conv(mean, np.sqrt(var), 3))
    return float(np.linalg.cond(H)), float(np.linalg.cond(H @ P))


@pytest.mark.row("P-25")
def test_what_the_preconditioner_does_to_one_image_and_to_many():
    digits = load("digits")
    x = digits.x_test.reshape(-1, 1, 8, 8).repeat(3, 2).repeat(3, 3).astype(float)
    before, after = numbers("lowers the condition number of $\\hat{\\mathcal H}$ from # to #.")
    assert tuple(map(round, condition(maps_of(x[:32])))) == (before, after)
    least, most, middle = numbers(
        "for all 30 images, by factors between # and # with the median #."
    )
    pairs = [condition(maps_of(image[None])) for image in x[:30]]
    gains = np.array([one / other for one, other in pairs])
    assert (gains.min().round(1), gains.max().round(), np.median(gains).round(1)) == (
        least,
        most,
        middle,
    )


# --- What was measured ------------------------------------------------------------------------


def experiment(figure: str, seeds: int) -> Experiment:
    file = ROOT / "experiments" / f"{figure}.py"
    return Experiment(str(file), runpy.run_path(str(file))["PANELS"], [f"--seeds={seeds}"])


@pytest.fixture(scope="module")
def large() -> dict[str, list[Record]]:
    """Return the records of minibatches of 128 with the chosen rates, by label."""
    fig5 = experiment("fig5", 3)
    panel, found = fig5.panels[0], fig5.records()
    chosen = {run.label: fig5.chosen(panel, run) for run in panel.runs}
    assert all(chosen.values())
    return {label: found[run.name] for label, run in chosen.items() if run}


def last(records: list[Record], curve: str = "test_error") -> list[float]:
    """Return mean, least and largest test accuracy after the last epoch, as the page prints it."""
    return [float(n) for n in re.findall(r"[\d.]+", accuracy(records, curve))]


@pytest.mark.row("P-26")
def test_the_accuracies_with_minibatches_of_128(large):
    assert [len(records) for records in large.values()] == [3] * 5
    assert {len(r.curves["test_error"]) for records in large.values() for r in records} == {10}
    assert numbers("The four things reach # % (#–#)") == last(large["4 Things"])
    assert numbers("BNP # % (#–#) and BN # % (#–#).") == last(large["BNP"]) + last(large["BN"])
    plain, adam, lead = numbers(
        "Vanilla has # % with gradient descent and # % with Adam: the lead of BNP is # points"
    )
    assert [plain, adam] == [last(large["vanilla"])[0], last(large["Adam"])[0]]
    means = {name: 100 * (1 - spread(large[name], "test_error")[0]) for name in large}
    assert round(means["BNP"][-1] - means["vanilla"][-1], 1) == pytest.approx(lead)
    first = {name: round(values[0], 1) for name, values in means.items()}
    assert numbers(
        "the four things have # % test accuracy, BN # % and BNP # %, all ahead of vanilla with "
        "gradient descent (# %). Vanilla with Adam has # %"
    ) == [first[name] for name in ("4 Things", "BN", "BNP", "vanilla", "Adam")]
    assert numbers(
        "the four things reach # % after ten epochs, BNP # %, BN # %, and the network without "
        "normalization # % to # %"
    ) == [last(large[name])[0] for name in ("4 Things", "BNP", "BN", "vanilla", "Adam")]
    assert last(large["BNP"])[1] < last(large["BN"])[2], "the ranges overlap"
    anew = last(large["BN"], "recomputed_error")
    assert numbers("anew BN has # % (#–#), in each seed more than BNP.") == anew
    for one, other in zip(large["BN"], large["BNP"], strict=True):
        assert one.curves["recomputed_error"][-1] < other.curves["test_error"][-1]


@pytest.mark.row("P-26")
def test_the_accuracies_with_minibatches_of_2(large):
    fig5 = experiment("fig5", 3)
    panel, found = fig5.panels[1], fig5.records()
    chosen = {run.label: fig5.chosen(panel, run) for run in panel.runs}
    small = {label: found[run.name] for label, run in chosen.items() if run}
    paper = {run.label: found[run.name] for run in panel.runs}
    assert [len(records) for records in small.values()] == [3] * 5
    assert {len(r.curves["test_error"]) for records in small.values() for r in records} == {4}
    groups = [record.config["settings"] for record in small["4 Things"]]
    assert groups == [{"groups": 8, "weight_decay": 0.0001}] * 3
    bn, bnp = last(small["BN"]), last(small["BNP"])
    assert numbers("BN reaches # % (#–#) and BNP # % (#–#).") == [*bn, *bnp]
    fourth = [100 * (1 - spread(large[name], "test_error")[0][3]) for name in ("BN", "BNP")]
    assert numbers("With minibatches of 128 they had # % and # % after as many epochs.") == [
        value.round(1) for value in fourth
    ]
    assert numbers("Batch Renormalization, at # % (#–#), recovers") == last(small["Renorm"])
    anew = [last(small[name], "recomputed_error") for name in ("BN", "Renorm")]
    assert numbers("anew BN has # % (#–#) and Batch Renormalization # % (#–#).") == [
        *anew[0],
        *anew[1],
    ]
    assert numbers("The lag of the averages costs BN # points of the # by which it") == [
        round(anew[0][0] - bn[0], 1),
        round(bnp[0] - bn[0], 1),
    ]
    assert numbers("have no part, is # after four epochs, and BNP's is #.") == [
        spread(small[name], "minibatch_loss")[0][-1].round(2) for name in ("BN", "BNP")
    ]
    chapter = " ".join((ROOT / "book/batchnorm.md").read_text("utf-8").split())
    gain = round(last(large["BN"], "recomputed_error")[0] - last(large["BN"])[0], 1)
    assert f"it is {gain} points for minibatches of 128 and 0.5 points for minibatches" in chapter
    assert numbers("do as well as BNP:** # % (#–#).") == last(small["4 Things"])
    assert numbers("far above BN,** at # % (#–#).") == last(small["vanilla"])
    means = 100 * (1 - spread(small["vanilla"], "test_error")[0])
    assert numbers("its test accuracy falls from # % after epoch 3") == [round(means[2], 1)]
    assert means[3] < means[2]
    assert len(paper["vanilla"]) == 1
    assert numbers("one seed reaches # %")[0] == last(paper["vanilla"])[0]
    lead = last(small["BNP"])[0] - last(paper["vanilla"])[0]
    assert numbers("The lead of BNP over it is then # points")[0] == pytest.approx(lead)


@pytest.mark.row("P-26")
def test_the_accuracies_with_minibatches_of_1():
    fig4 = experiment("fig4", 3)
    panel, found = fig4.panels[-1], fig4.records()
    chosen = {run.label: fig4.chosen(panel, run) for run in panel.runs}
    small = {label: found[run.name] for label, run in chosen.items() if run}
    assert [len(records) for records in small.values()] == [3] * 3
    assert {len(r.curves["test_error"]) for records in small.values() for r in records} == {3}
    bnp, vanilla = last(small["BNP"]), last(small["vanilla"])
    assert numbers("BNP reaches # % (#–#), and the network") == bnp
    assert numbers("the network without normalization # % (#–#). The ranges overlap.") == vanilla
    assert bnp[1] < vanilla[2]
    [paper] = [found[run.name] for run in panel.runs if run.label == "vanilla"]
    assert len(paper) == 1
    assert numbers("one seed of vanilla reaches # %")[0] == last(paper)[0]
    things = numbers(
        "fall behind,** at # % (#–#), although their training loss of # is below that of "
        "vanilla, #."
    )
    assert things[:3] == last(small["4 Things"])
    losses = [spread(small[n], "minibatch_loss")[0][-1].round(2) for n in ("4 Things", "vanilla")]
    assert things[3:] == losses


@pytest.mark.row("P-26")
def test_how_long_the_runs_took_and_which_of_the_four_things_they_have(large):
    minutes = [record.seconds / 60 for records in large.values() for record in records]
    shortest, longest = numbers("ten epochs took between # and # minutes on one processor core")
    assert (round(min(minutes)), round(max(minutes))) == (shortest, longest)
    settings = large["4 Things"][0].config["settings"]
    assert numbers("ghost batches of # images, a weight decay of #,") == [
        settings["ghost_size"],
        settings["weight_decay"],
    ]
    says("a share of 0.1 of each image's own statistics")
    assert "example_share" not in settings, "0.1 is the default"


@pytest.mark.row("P-26")
def test_the_losses_with_minibatches_of_128(large):
    training = {n: spread(r, "minibatch_loss")[0][-1].round(2) for n, r in large.items()}
    assert numbers("BNP ends at #, BN at # and the four things at #.") == [
        training[name] for name in ("BNP", "BN", "4 Things")
    ]
    assert min(training, key=training.__getitem__) == "BNP"
    tests = [spread(large[name], "test_loss")[0] for name in ("BNP", "BN")]
    one, two, least, last_ = numbers(
        "are lowest after epochs # and # (# for both) and rise to #: both overfit mildly."
    )
    assert [test.argmin() + 1 for test in tests] == [one, two]
    assert {test.min().round(2) for test in tests} == {least}
    assert {test[-1].round(2) for test in tests} == {last_}
    [things] = numbers("which add noise and weight decay, is still #.")
    assert spread(large["4 Things"], "test_loss")[0][-1].round(2) == things


@pytest.mark.row("P-26")
def test_the_rates_that_were_chosen():
    fig5 = experiment("fig5", 3)
    rows = [line.split("|") for line in table(fig5, fig5.panels[0]).splitlines()[4:]]
    rates = {row[1].strip(): (row[2].strip(), row[6].strip()) for row in rows}
    says("At the rate 0.1 Adam stays at 10 %", "Adam learned best at 0.003")
    says("BNP's best rate here (0.3) is three times that of vanilla (0.1), and a hundred times")
    says("minibatches of 2 it is ten times that of vanilla, and with single images 33 times.")
    for figure, panel, ratio in (("fig5", 1, 10), ("fig4", -1, 33)):
        other = experiment(figure, 3)
        best = {
            run.label: other.chosen(other.panels[panel], run).rate
            for run in other.panels[panel].runs
        }
        assert round(best["BNP"] / best["vanilla"]) == ratio
    assert rates["Adam"] == ("0.003", "10.0 (10.0–10.0)")
    assert (rates["BNP"][0], rates["vanilla"][0]) == ("0.3", "0.1")


@pytest.mark.row("P-26")
def test_the_single_runs_on_digits():
    kept = Record.load(ROOT / "experiments/results/recorded/bnp_cnn-minibatches.json").curves
    final = {
        name.partition(":")[0]: 100 * (1 - np.array(values))
        for name, values in kept.items()
        if name.endswith("validation_error")
    }
    low, high, vanilla = numbers("end between # % and # %, vanilla at # %.")
    three = [final[f"{name}, 32"][-1] for name in ("BN", "BN, groups", "BNP")]
    assert (round(min(three)), round(max(three))) == (low, high)
    assert round(final["vanilla, 32"][-1]) == vanilla
    assert numbers("With two images BN ends at # % and BNP at # %.") == [
        round(final[f"{name}, 2"][-1]) for name in ("BN", "BNP")
    ]
    assert numbers("With one image BNP ends at # %, vanilla at # % and BN in groups at # %.") == [
        round(final[f"{name}, 1"][-1]) for name in ("BNP", "vanilla", "BN, groups")
    ]
    assert numbers("After three epochs BNP has # %, vanilla # % and BN # %.") == [
        round(final[f"{name}, 32"][2]) for name in ("BNP", "vanilla", "BN")
    ]


@pytest.mark.row("P-04")
def test_the_normalizations_that_share_other_values():
    kept = Record.load(ROOT / "experiments/results/recorded/bnp_cnn-shared.json").curves

    def ends(name: str, size: int) -> np.ndarray:
        labels = [f"{name}, {size}, seed {seed}: validation_error" for seed in range(3)]
        return np.array([100 - 100 * kept[label][-1] for label in labels])

    many = ("BN", "ghost BN", "four things", "GN")
    assert numbers(
        "With 32 images BN has # %, ghost batches # % and the four things # %, and their ranges "
        "overlap; GN has # %."
    ) == [ends(name, 32).mean().round(1) for name in many]
    assert max(ends(name, 32).min() for name in many[:3]) < min(
        ends(name, 32).max() for name in many[:3]
    )
    few = ("four things", "GN", "BN")
    assert numbers("the four things have # %, GN # % and BN # %, and no two ranges") == [
        ends(name, 2).mean().round(1) for name in few
    ]
    assert all(ends(a, 2).min() > ends(b, 2).max() for a, b in itertools.pairwise(few))


@pytest.mark.row("P-04")
def test_how_many_values_share_a_mean():
    """A value that changes moves all values that share its mean."""
    shapes = []

    class Watch(torch.nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()

        def forward(self, x):
            shapes.append(tuple(x.shape))
            return x

    networks.cnn5(1, 24, normalization=Watch)(torch.zeros(32, 1, 24, 24))
    assert (shapes[0], shapes[-1]) == ((32, 32, 11, 11), (32, 64))
    says("Ghost: $8\\cdot121 = 968$", "GN: $4\\cdot121 = 484$", "= 3872$. Ghost", "$8\\cdot4 = 32$")
    x = torch.randn(32, 32, 11, 11, generator=torch.Generator().manual_seed(0)).double()
    for layer, values in (
        (batchnorm.BatchNorm(32), 3872),
        (batchnorm.GhostBatchNorm(32, ghost_size=8), 968),
        (torch.nn.GroupNorm(8, 32), 484),
        (batchnorm.FourThingsNorm(32, groups=8, ghost_size=8), 3872),
    ):
        moved = x.clone()
        moved[0, 0, 0, 0] += 5
        changed = (layer.double()(moved) - layer(x)).abs() > 1e-12
        assert int(changed.sum()) == values


# --- Residual networks ------------------------------------------------------------------------


@pytest.mark.row("P-27")
def test_the_jump_of_batch_normalization_when_the_rate_drops():
    fig6 = experiment("fig6", 2)
    chosen = fig6.chosen(fig6.panels[0], fig6.panels[0].runs[0])
    assert chosen
    records = fig6.records()[chosen.name]
    assert [record.seed for record in records] == [0, 1]
    errors = 100 * np.array([record.curves["test_error"] for record in records])
    right = 100 - errors.mean(axis=0)
    loss = spread(records, "minibatch_loss")[0]
    assert numbers(
        "is # % after epoch 8 and # % after epoch 9 (the two seeds gain # and # points), and the "
        "training loss falls from # to #."
    ) == [
        *right[7:9].round(1),
        *((each[7] - each[8]).round(1) for each in errors),
        *loss[7:9].round(2),
    ]
    [fall] = numbers("the accuracy of a seed falls by up to # points")
    assert np.diff(errors[:, :8]).max().round() == fall
    assert numbers("It rises by # points in one epoch.") == [(right[8] - right[7]).round(1)]
    assert numbers("In the four epochs before it rose by # points") == [
        (right[7] - right[3]).round(1)
    ]
    assert (np.diff(right[3:8]) < 0).sum() == 2


@pytest.mark.row("P-27")
def test_the_four_methods_of_the_small_residual_network():
    fig6 = experiment("fig6", 2)
    panel, found = fig6.panels[0], fig6.records()
    ends, jumps = {}, {}
    for run in panel.runs:
        records = found[fig6.chosen(panel, run).name]
        assert [len(record.curves["test_error"]) for record in records] == [10, 10]
        ends[run.label] = last(records)
        right = 100 * (1 - spread(records, "test_error")[0])
        jumps[run.label] = round(right[8] - right[7], 1)
    assert list(ends) == ["BN", "GN", "BNP", "BNP+GN"]
    assert numbers("rises by # points with GN, by # with BNP, and by # with BNP + GN") == [
        jumps[name] for name in ("GN", "BNP", "BNP+GN")
    ]
    assert numbers(
        "ahead at the end**, with # % (#–#) against # % (#–#) for BNP and # % (#–#) for BNP + GN"
    ) == [*ends["BN"], *ends["BNP"], *ends["BNP+GN"]]
    *gn, behind = numbers("GN is last**, with # % (#–#), # points behind BNP + GN")
    assert gn == ends["GN"]
    assert behind == pytest.approx(ends["BNP+GN"][0] - ends["GN"][0])
    assert ends["BNP"][1] < ends["BNP+GN"][2], "the ranges of BNP and BNP + GN overlap"
    assert jumps["BNP+GN"] < jumps["BNP"], "it does not gain more from the drop"
    ahead = [ends["BN"][0] - ends[name][0] for name in ("BNP", "BNP+GN")]
    rates = {run.label: fig6.chosen(panel, run).rate for run in panel.runs}
    says("0.3 for BN and BNP, 0.1 for BNP + GN, and 0.03 for GN.")
    assert rates == {"BN": 0.3, "BNP": 0.3, "BNP+GN": 0.1, "GN": 0.03}
    file = ROOT / "experiments/results/fig6/tuning/cifar10-resnet14-128-gn-standardized.json"
    curves = Record.load(file).curves
    tried = np.array(
        [
            [100 - 100 * curves[f"{rate}, seed {seed}"][-1] for seed in (0, 1)]
            for rate in ("0.01", "0.03", "0.1", "0.3")
        ]
    )
    found = numbers(
        "at 0.01, 0.03, 0.1 and 0.3: between # % and # %, with the two seeds # to # points"
    )
    means, apart = tried.mean(axis=1), np.ptp(tried, axis=1)
    assert found[0] < means.min() < means.max() < found[1]
    assert found[2:] == [int(apart.min()), round(apart.max())]
    records = fig6.records()
    other = {run.label: records[run.name] for run in fig6.panels[-1].runs}
    best = last(other["GN, rate 0.3"])
    assert numbers("At 0.3 GN has # % (#–#) on the test images") == best
    assert ends["BNP+GN"][1] < best[1] <= best[2] < ends["BNP+GN"][2], "the ranges overlap"
    validation = {
        rate: last(of, "validation_error")[0]
        for rate, of in (
            (0.03, records[fig6.chosen(panel, panel.runs[1]).name]),
            (0.1, other["GN, rate 0.1"]),
            (0.3, other["GN, rate 0.3"]),
        )
    }
    assert max(validation, key=validation.__getitem__) == 0.3
    paper = last(other["BNP, rate 0.1"])
    *there, over, more = numbers(
        "**BNP at the paper's rate**, 0.1, has # % (#–#), the highest of these values but for BN, "
        "# points more than BNP + GN and # more than GN at its best rate."
    )
    assert there == paper
    assert over == pytest.approx(paper[0] - ends["BNP+GN"][0])
    assert more == pytest.approx(paper[0] - best[0])
    assert paper[1] > max(ends["BNP+GN"][2], best[2])
    assert last(other["BNP+GN, rate 0.3"])[0] == 10
    ahead += [ends["BN"][0] - paper[0]]
    low, high = numbers("with ResNet-14 it was # to # points ahead")
    assert low - 0.5 < min(ahead) <= max(ahead) < high + 0.5
    [least] = numbers("at one rate only, remains ahead of all, by # points or more")
    assert min([*ahead, ends["BN"][0] - best[0]]) == pytest.approx(least)


@pytest.mark.row("P-27")
def test_a_preconditioned_step_only_lengthens_the_coordinates_of_a_normalized_layer(rng):
    """GN behind a convolution: ŵ = Pz, and z − ηPᵀg is longer by Pythagoras."""
    says("$\\sqrt{9+16} = 5$ and $\\frac1{25}$")
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
