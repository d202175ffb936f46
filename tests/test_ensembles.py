"""Networks side by side against the same networks alone, in torch's autograd."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from optdl.batchnorm import BatchNorm, BatchRenorm
from optdl.bnp import BNP, running_statistics
from optdl.data import Examples, load
from optdl.ensembles import METHODS, RULES, Ensemble, train_ensemble
from optdl.networks import fully_connected
from optdl.training import order_seed, train

torch.set_num_threads(1)

WIDTHS, SEEDS = (64, 20, 20, 10), (0, 3)
DIGITS = load("digits")
TRAIN = Examples(DIGITS.x_train[:200], DIGITS.y_train[:200])
VALIDATION = Examples(DIGITS.x_train[200:300], DIGITS.y_train[200:300])
TEST = Examples(DIGITS.x_test, DIGITS.y_test)
NORMALIZATIONS = {
    "BN": lambda width: BatchNorm(width, 0.99, 1e-3),
    "LN": lambda width: nn.LayerNorm(width, 1e-3),
    "Renorm": lambda width: BatchRenorm(width, 0.99, 1e-3),
}
AT_THE_INPUT = {"BN": {"input": True}, "Renorm": {"input": True}, "BNP": {"first": False}}
OPTIMIZERS = {
    "sgd": lambda parameters, lr: torch.optim.SGD(parameters, lr),
    "momentum": lambda parameters, lr: torch.optim.SGD(parameters, lr, momentum=0.9),
    "adam": lambda parameters, lr: torch.optim.Adam(parameters, lr),
}
RATES = {"sgd": (0.1, 0.02), "momentum": (0.02, 0.005), "adam": (3e-3, 1e-3)}


def alone(method, rule, batch, seed, rate, dtype=torch.float64, epochs=2, settings=None):
    """Train one member by itself, with the ordinary loop."""
    settings = settings or {}
    make = NORMALIZATIONS.get(method)
    model = fully_connected(WIDTHS, make, seed=seed).to(dtype)
    if settings.get("input"):
        model = nn.Sequential(nn.Flatten(), make(WIDTHS[0]), *model[1:]).to(dtype)
    skip = () if settings.get("first", True) else ("1",)
    return train(
        model,
        TRAIN,
        OPTIMIZERS[rule](model.parameters(), rate),
        validation=VALIDATION,
        test=TEST,
        epochs=epochs,
        batch_size=batch,
        hooks=[BNP(model, skip=skip)] if method == "BNP" else [],
        seed=order_seed(seed),
    )


def side_by_side(
    method, rule, batch, rates, dtype=torch.float64, epochs=2, settings=None, **options
):
    ensemble = Ensemble(
        WIDTHS,
        method,
        SEEDS,
        rates,
        rule=rule,
        dtype=dtype,
        outputs_last=batch < 20,
        settings=settings,
    )
    return train_ensemble(
        ensemble, TRAIN, VALIDATION, test=TEST, epochs=epochs, batch_size=batch, **options
    )


def test_every_rule_is_compared_with_torch():
    assert set(RULES) == set(OPTIMIZERS)


# 60 and 6 leave a ragged last minibatch of 20 and 2
@pytest.mark.filterwarnings("ignore:bnp.step.. before Adam")
@pytest.mark.row("P-19")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("method", "batch"),
    [
        *((method, batch) for method in METHODS for batch in (60, 6)),
        *((method, 1) for method in METHODS if method not in ("BN", "Renorm")),
    ],
)
def test_each_member_has_the_curves_it_has_alone(method, batch, rule):
    records = side_by_side(method, rule, batch, RATES[rule])
    for seed, rate, record in zip(SEEDS, RATES[rule], records, strict=True):
        expected = alone(method, rule, batch, seed, rate).curves
        assert expected["minibatch_loss"][1] < expected["minibatch_loss"][0]
        for name, values in record.curves.items():
            # statistics of six values amplify rounding
            np.testing.assert_allclose(values, expected[name], rtol=1e-8, err_msg=name)


@pytest.mark.row("P-19")
@pytest.mark.parametrize("method", AT_THE_INPUT)
def test_at_the_input_they_do_what_they_are_told(method):
    settings = AT_THE_INPUT[method]
    records = side_by_side(method, "sgd", 20, RATES["sgd"], settings=settings)
    plain = side_by_side(method, "sgd", 20, RATES["sgd"])
    for seed, rate, record, other in zip(SEEDS, RATES["sgd"], records, plain, strict=True):
        expected = alone(method, "sgd", 20, seed, rate, settings=settings).curves
        for name, values in record.curves.items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-8, err_msg=name)
        assert record.curves["minibatch_loss"] != other.curves["minibatch_loss"]


@pytest.mark.parametrize("rule", RULES)
def test_the_split_form_is_the_rule_in_z(rule):
    """One dense layer: θ = Pz with the P of each step as a matrix, and torch's own optimizer."""
    rate = RATES[rule][0]
    ensemble = Ensemble(
        (3, 2), "BNP", (0,), rate, rule=rule, settings={"split": True}, dtype=torch.float64
    )
    layer = ensemble.dense[0]
    start = torch.cat([layer.bias[0], layer.weight[0]]).numpy().copy()  # rows [b, W], columns units
    moved = torch.zeros(4, 2, dtype=torch.float64)
    optimizer = OPTIMIZERS[rule]([moved], rate)
    rng = np.random.default_rng(0)
    mean, var = np.zeros(3), np.ones(3)
    for _ in range(5):
        x, y = rng.normal(1.0, [1.0, 5.0, 0.2], size=(8, 3)), rng.integers(2, size=8)
        ensemble.step(torch.from_numpy(x)[None], torch.from_numpy(y)[None])
        mean = 0.99 * mean + 0.01 * x.mean(0)
        var = 0.99 * var + 0.01 * x.var(0)
        q2 = max(3 / 8, 1)
        deviation = np.sqrt(var + 1e-2 * var.max() + 1e-4)
        P = np.eye(4)
        P[0, 1:], P[1:, 1:] = -mean / deviation, np.diag(1 / deviation)
        P /= np.sqrt(q2)
        extended = np.column_stack([np.ones(8), x])
        scores = torch.from_numpy(extended @ start).softmax(1).numpy()
        gradient = extended.T @ (scores - np.eye(2)[y]) / 8
        before = moved.clone()
        moved.grad = torch.from_numpy(P.T @ gradient)
        optimizer.step()
        start = start + P @ (moved - before).numpy()
        np.testing.assert_allclose(
            torch.cat([layer.bias[0], layer.weight[0]]).numpy(), start, rtol=1e-11
        )


def test_for_gradient_descent_the_split_form_changes_nothing():
    plain = side_by_side("BNP", "sgd", 20, 0.1)
    split = side_by_side("BNP", "sgd", 20, 0.1, settings={"split": True})
    for one, other in zip(plain, split, strict=True):
        np.testing.assert_allclose(one.curves["test_loss"], other.curves["test_loss"], rtol=1e-10)


@pytest.mark.row("F-12")
@pytest.mark.parametrize("method", ["BN", "Renorm"])
@torch.no_grad()
def test_statistics_computed_anew_are_those_of_all_examples_at_once(method):
    """One network of torch in training mode over the 150 examples holds them, layer by layer."""
    ensemble = Ensemble(WIDTHS, method, SEEDS, 0.1, settings={"input": True}, dtype=torch.float64)
    [*_, other] = train_ensemble(ensemble, TRAIN, TEST, epochs=2, batch_size=20, recompute=150)
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), *fully_connected(WIDTHS, "bn")[1:])
    model = model.to(torch.float64).eval()
    x = torch.from_numpy(TRAIN.x[:150]).double()
    for place, module in enumerate(model):
        if isinstance(module, nn.Linear):
            layer = ensemble.dense[(place - 2) // 3]
            module.weight.data, module.bias.data = layer.weight[1].mT, layer.bias[1, 0]
        if isinstance(module, nn.BatchNorm1d):
            norm = ensemble.norms[(place - 1) // 3]
            module.weight.data, module.bias.data = norm.gamma[1, 0], norm.beta[1, 0]
            module.eps = 1e-3
            module.running_mean, module.running_var = x.mean(0), x.var(0, correction=0)
        x = module(x)
    scores = model(torch.from_numpy(TEST.x).double())
    expected = nn.functional.cross_entropy(scores, torch.from_numpy(TEST.y)).item()
    assert other.curves["recomputed_loss"][-1] == pytest.approx(expected, rel=1e-8)
    assert other.curves["validation_loss"][-1] != pytest.approx(expected, rel=1e-3)


@pytest.mark.row("P-19")
@pytest.mark.parametrize("method", METHODS)
def test_in_single_precision_they_agree_to_rounding(method):
    records = side_by_side(method, "sgd", 60, RATES["sgd"], torch.float32)
    for seed, rate, record in zip(SEEDS, RATES["sgd"], records, strict=True):
        expected = alone(method, "sgd", 60, seed, rate, torch.float32).curves
        np.testing.assert_allclose(
            record.curves["minibatch_loss"], expected["minibatch_loss"], rtol=1e-4
        )


def test_members_do_not_meet():
    both = side_by_side("BNP", "sgd", 60, (0.1, 0.02))
    other = side_by_side("BNP", "sgd", 60, (0.1, 0.05))
    np.testing.assert_allclose(
        both[0].curves["minibatch_loss"], other[0].curves["minibatch_loss"], rtol=1e-12
    )
    assert both[1].curves != other[1].curves


@pytest.mark.parametrize("method", ["BN", "Renorm"])
def test_one_example_has_no_variance(method):
    with pytest.raises(ValueError, match=f"{method} needs 2 examples or more"):
        side_by_side(method, "sgd", 1, 0.1)


def test_clipped_renorm_without_room_is_batch_normalization():
    settings = {"s_max": 1.0, "d_max": 0.0}
    curves = []
    for method, own in (("Renorm", settings), ("BN", {})):
        ensemble = Ensemble(WIDTHS, method, SEEDS, 0.1, settings=own, dtype=torch.float64)
        [first, _] = train_ensemble(ensemble, TRAIN, TEST, epochs=1, batch_size=20)
        curves.append(first.curves["minibatch_loss"])
    np.testing.assert_allclose(*curves, rtol=1e-10)


def test_corrected_statistics_are_averages_that_start_at_zero_over_what_they_count(rng):
    ensemble = Ensemble(
        (3, 4, 2), "BNP", (0,), 0.1, settings={"rho": 0.9, "corrected": True}, dtype=torch.float64
    )
    batches = [rng.normal(2.0, 3.0, size=(8, 3)) for _ in range(5)]
    for x in batches:
        ensemble.step(torch.from_numpy(x)[None], torch.zeros(1, 8, dtype=torch.int64))
    means, variances = running_statistics(batches, rho=0.9)
    share = 1 - 0.9**5
    layer = ensemble.dense[0]
    np.testing.assert_allclose(layer.mean[0, 0], means[-1] / share, rtol=1e-12)
    # there the variance starts at 1: take its part away
    np.testing.assert_allclose(layer.var[0, 0], (variances[-1] - 0.9**5) / share, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, rule):
    whole = side_by_side("BNP", rule, 20, RATES[rule], epochs=4)
    file = tmp_path / "run.pt"

    class Stop(Exception):
        pass

    def interrupt(ensemble):
        interrupt.steps += 1
        if interrupt.steps == 25:  # in the third epoch
            raise Stop
        return [{}] * len(SEEDS)

    interrupt.steps = 0
    with pytest.raises(Stop):
        side_by_side("BNP", rule, 20, RATES[rule], epochs=4, checkpoint=file, watch=interrupt)
    assert torch.load(file, weights_only=True)["epoch"] == 2
    resumed = side_by_side("BNP", rule, 20, RATES[rule], epochs=4, checkpoint=file)
    for one, other in zip(resumed, whole, strict=True):
        assert {name: one.curves[name] for name in other.curves} == other.curves


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    side_by_side("BNP", "sgd", 20, 0.1, epochs=2, checkpoint=file)
    for method, rate, epochs in (("BN", 0.1, 2), ("BNP", 0.2, 2), ("BNP", 0.1, 1)):
        with pytest.raises(ValueError, match="checkpoint of another run"):
            side_by_side(method, "sgd", 20, rate, epochs=epochs, checkpoint=file)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    file = tmp_path / "run.pt"
    side_by_side("BNP", "sgd", 20, 0.1, epochs=2, checkpoint=file)
    content = bytearray(file.read_bytes())
    weight = torch.load(file, weights_only=True)["tensors"][0]
    content[content.index(bytes(weight.untyped_storage()))] ^= 1
    file.write_bytes(content)
    with pytest.raises(ValueError, match="it is damaged"):
        side_by_side("BNP", "sgd", 20, 0.1, epochs=3, checkpoint=file)
    assert file.read_bytes() == content


def test_a_member_that_diverges_says_when_and_leaves_the_others_alone():
    records = side_by_side("vanilla", "sgd", 20, (0.1, 1e30), torch.float32, epochs=3)
    assert records[0].stop == "all 3 epochs"
    assert len(records[0].curves["minibatch_loss"]) == 3
    assert records[1].stop.startswith("diverged at step ")
    # the first loss is finite: the parameters have not moved yet
    assert 2 <= int(records[1].stop.split()[-1]) <= 10
    assert len(records[1].curves["minibatch_loss"]) == 1
    assert not math.isfinite(records[1].curves["minibatch_loss"][0])


def test_when_all_diverge_training_ends():
    records = side_by_side("vanilla", "sgd", 20, 1e30, torch.float32, epochs=50)
    assert all(record.stop.startswith("diverged") for record in records)


def test_the_watch_sees_the_inputs_of_the_last_layer():
    seen = []

    def watch(ensemble):
        inputs, scores = ensemble.last
        seen.append((tuple(inputs.shape), tuple(scores.shape)))
        return [{"number": float(len(seen))}] * len(SEEDS)

    records = side_by_side("BNP", "sgd", 20, 0.1, epochs=2, watch=watch, watch_every=4)
    assert records[0].curves["watched_step"] == [1, 5, 9, 13, 17]
    assert records[1].curves["number"] == [1, 2, 3, 4, 5]
    assert set(seen) == {((2, 20, 20), (2, 20, 10))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "GN"}, "method must be one of"),
        ({"rule": "lbfgs"}, "rule one of"),
        ({"rates": (0.1,)}, "2 seeds and 1 rates"),
        ({"seeds": ()}, "0 seeds"),
    ],
)
def test_errors_say_what_was_expected(change, message):
    arguments = {"method": "BN", "seeds": SEEDS, "rates": 0.1} | change
    with pytest.raises(ValueError, match=message):
        Ensemble(WIDTHS, **arguments)


@pytest.mark.parametrize(("epochs", "batch"), [(0, 10), (1, 0), (1, 201)])
def test_sizes_are_checked(epochs, batch):
    with pytest.raises(ValueError, match="from 1 to 200"):
        side_by_side("BN", "sgd", batch, 0.1, epochs=epochs)
