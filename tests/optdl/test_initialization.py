"""Initial values against torch, closed forms and theorems."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from oracles import torch_path
from scipy import integrate, stats

from optdl import initialization as init
from optdl.data import Examples
from optdl.training import train

TORCH = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "linear": lambda z: z}
each = pytest.mark.parametrize("name", TORCH)


def gradients(name, weights, x, upstream):
    """The gradient with respect to each layer's input, and to the output, by autograd."""
    hidden = [torch.tensor(x, requires_grad=True)]
    for W in weights:
        hidden.append(TORCH[name](hidden[-1] @ torch.from_numpy(W).T))
        hidden[-1].retain_grad()
    hidden[-1].backward(torch.from_numpy(upstream))
    return [h.grad.numpy() for h in hidden]


@pytest.mark.row("L2-10", "L2-11")
@each
def test_slopes_and_gradients_match_autograd_within_bound(name, rng):
    z = torch.tensor(rng.normal(size=200) * 3, requires_grad=True)
    value, activation = TORCH[name](z), init.ACTIVATIONS[name]
    value.sum().backward()
    assert_allclose(activation(z.detach().numpy()), value.detach(), rtol=1e-12)
    assert_allclose(activation.slope(z.detach().numpy()), z.grad, rtol=1e-10, atol=1e-14)
    steepest = activation.slope(np.linspace(-8, 8, 100_001)).max()
    assert activation.steepest == pytest.approx(steepest, abs=1e-12)
    for scale in (1.0, 3.0):
        weights = [scale * rng.normal(size=(o, n)) for n, o in pairwise((5, 8, 6, 7, 3))]
        x, upstream = rng.normal(size=5), rng.normal(size=3)
        norms = init.gradient_norms(weights, x, upstream, name)
        expected = map(np.linalg.norm, gradients(name, weights, x, upstream))
        assert_allclose(norms, [*expected], rtol=1e-12, atol=1e-14)
        assert np.all(norms <= init.gradient_norm_bound(weights, upstream, name) * (1 + 1e-12))
    # orthogonal weights at z = 0, where the slope is the steepest of all but the ReLU's, attain it
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    if name != "relu":
        norms = init.gradient_norms([Q], np.zeros(4), np.ones(4), name)
        assert_allclose(norms, init.gradient_norm_bound([Q], np.ones(4), name), rtol=1e-12)
    x, upstream = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
    moments = [np.mean(g**2) for g in gradients(name, weights, x, upstream)]
    measured = init.measured_backward_moments(x, upstream, weights, name)
    assert_allclose(measured, moments, rtol=1e-12)
    hidden = [torch.from_numpy(x)]
    for W in weights:
        hidden.append(TORCH[name](hidden[-1] @ torch.from_numpy(W).T))
    measured = init.measured_second_moments(x, weights, name)
    assert_allclose(measured, [h.square().mean() for h in hidden], rtol=1e-12)


@pytest.mark.row("L2-12", "F-06")
def test_saturation_is_the_share_beyond_a_known_point():
    """The slope of tanh falls below s at ±arctanh √(1 − s): for normal z a known share."""
    z = np.random.default_rng(0).normal(size=200_000) * 3
    expected = 2 * stats.norm.sf(np.arctanh(np.sqrt(1 - 0.05)) / 3)
    measured = init.saturated_share(z, init.ACTIVATIONS["tanh"])
    assert measured == pytest.approx(expected, abs=4 * np.sqrt(expected / 200_000))
    assert init.saturated_share(z, init.ACTIVATIONS["relu"]) == np.mean(z <= 0)
    assert init.saturated_share(z, init.ACTIVATIONS["linear"]) == 0


@pytest.mark.row("L1-33")
def test_hidden_layer_training_matches_torch(rng):
    W, v, x, y = (rng.normal(size=size) for size in ((4, 3), 4, (6, 3), 6))
    parts = [torch.tensor(part, requires_grad=True) for part in (W, v)]
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)

    def loss():
        return ((torch.tanh(inputs @ parts[0].T) @ parts[1] - labels) ** 2).mean() / 2

    path = torch_path(torch.optim.SGD(parts, lr=0.3), parts[0], loss, 25)
    assert_allclose(init.train_hidden_layer(W, v, x, y, 0.3, 25), path, rtol=1e-10)
    # equal units stay equal while they move
    equal = init.train_hidden_layer(np.full((4, 3), 0.4), np.full(4, 0.4), x, y, 0.3, 25)
    assert np.ptp(equal, axis=1).max() < 1e-12 < np.abs(equal[-1] - equal[0]).min()


DRAWS = {
    init.glorot_normal: torch.nn.init.xavier_normal_,
    init.glorot_uniform: torch.nn.init.xavier_uniform_,
    init.he_normal: lambda W: torch.nn.init.kaiming_normal_(W, nonlinearity="relu"),
    init.lecun_normal: lambda W: torch.nn.init.kaiming_normal_(W, nonlinearity="linear"),
}


@pytest.mark.row("L2-11")
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_distribution_of_weights_matches_torch(draw, rng):
    ours = draw(400, 150, rng)
    theirs = torch.empty(150, 400, dtype=torch.float64)
    torch.manual_seed(0)
    DRAWS[draw](theirs)
    assert ours.shape == tuple(theirs.shape)
    assert ours.var() / theirs.var().item() == pytest.approx(1, abs=0.03)
    assert abs(ours.mean()) < 5 * ours.std() / np.sqrt(ours.size)
    assert stats.ks_2samp(ours.ravel(), theirs.numpy().ravel()).pvalue > 1e-3


@pytest.mark.row("L2-11")
@each
@pytest.mark.parametrize("q", [0.3, 4.0, 900.0])
def test_moments_of_one_layer_match_quadrature(name, q):
    activation = init.ACTIVATIONS[name]

    def expectation(function):
        integrand = lambda t: function(np.array([np.sqrt(q) * t]))[0] ** 2 * stats.norm.pdf(t)  # noqa: E731
        return integrate.quad(integrand, -10, 10, points=[0.0], limit=200)[0]

    forward = init.second_moments(1.0, [10], [q / 10], name)
    assert forward[1] == pytest.approx(expectation(activation), rel=1e-8)
    backward = init.backward_second_moments(1.0, [10, 10], [0.1], name, first=q)
    assert backward[0] == pytest.approx(expectation(activation.slope), rel=1e-8)


@pytest.mark.row("L2-11")
def test_moments_of_unequal_layers_match_hand_calculation():
    """Linear layers: n_l Var(W_l); ReLU: half of it."""
    widths, variances = [30, 50, 20], [0.03, 0.05]
    linear = init.backward_second_moments(2.0, widths, variances, "linear")
    assert_allclose(linear, [2 * 20 * 0.05 * 50 * 0.03, 2 * 20 * 0.05, 2.0])
    forward = init.second_moments(2.0, widths, [*variances, 0.2], "relu")
    halves = np.cumprod([2.0, 30 * 0.03 / 2, 50 * 0.05 / 2, 20 * 0.2 / 2])
    assert_allclose(forward, halves, rtol=1e-10)


@pytest.mark.row("L2-11")
@pytest.mark.parametrize(
    ("name", "draw", "gain"), [("relu", init.he_normal, 2.0), ("tanh", init.lecun_normal, 1.0)]
)
def test_moments_through_fifty_layers_match_prediction(name, draw, gain):
    rng, width, depth = np.random.default_rng(5), 400, 50
    weights, variances = [draw(width, width, rng) for _ in range(depth)], [gain / width] * depth
    x, upstream = rng.normal(size=(200, width)), rng.normal(size=(200, width))
    forward = init.measured_second_moments(x, weights, name)
    backward = init.measured_backward_moments(x, upstream, weights, name)
    widths = [width] * (depth + 1)
    # each layer's random weights miss the prediction by a few √(5/n); that adds up as a walk
    allowed = 4 * np.sqrt(5 / width * np.arange(depth + 1)) + 0.05
    predicted = init.second_moments(1.0, widths[1:], variances, name)
    assert np.all(np.abs(np.log(forward / predicted)) < allowed)
    predicted = init.backward_second_moments(1.0, widths, variances, name)
    assert np.all(np.abs(np.log(backward / predicted)) < allowed[::-1])


@pytest.mark.row("L2-13")
def test_lecture_inputs_are_ill_conditioned_as_predicted(rng):
    """x₁ ∈ [1000, 2000], x₂ ∈ [0.1, 0.2], even and independent: E x² = μ² + w²/12."""
    x = np.column_stack([rng.uniform(1000, 2000, 200_000), rng.uniform(0.1, 0.2, 200_000)])
    mean = np.array([1, 1500, 0.15])
    population = np.outer(mean, mean) + np.diag([0, 1e6 / 12, 0.01 / 12])
    measured = np.linalg.cond(init.least_squares_hessian(x))
    assert measured == pytest.approx(np.linalg.cond(population), rel=0.02)
    normalized, _ = init.normalize_inputs(x, x, 0.0)
    assert np.linalg.cond(init.least_squares_hessian(normalized)) < 1.02
    constant = np.full((5, 1), 7.0)
    assert not init.InputNormalizer.fit(constant)(constant).any()


@pytest.mark.row("F-06")
def test_layer_outputs_match_calls_by_hand(rng):
    inner = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    model = torch.nn.Sequential(inner, torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 2)).double()
    x = torch.from_numpy(rng.normal(size=(5, 4)))
    outputs, z = init.layer_outputs(model, x), inner[0](x).detach().numpy()
    assert list(outputs) == ["0.0", "0.1", "1", "2"]
    assert_array_equal(outputs["0.0"], z)
    assert_allclose(outputs["0.1"], np.tanh(z), rtol=1e-12)  # not overwritten in place
    assert_allclose(outputs["1"], np.maximum(np.tanh(z), 0), rtol=1e-12)
    assert_array_equal(outputs["2"], model(x).detach())
    with pytest.raises(RuntimeError):
        init.layer_outputs(model, x[:, :3])
    assert all(not part._forward_hooks for part in model.modules())


@pytest.mark.row("F-06")
@pytest.mark.parametrize("dead", [0, 3, 8])
def test_dead_units_are_counted_and_learn_nothing(dead, rng):
    """A bias of −1000 keeps a unit of the ReLU at zero."""
    x, model = torch.from_numpy(rng.normal(size=(50, 4))), torch.nn.Linear(4, 8).double()
    with torch.no_grad():
        model.weight *= 0.1
        model.bias[:] = 1000.0
        model.bias[:dead] = -1000.0
    outputs = model(x).relu()
    assert init.dead_share(outputs.detach().numpy()) == dead / 8
    outputs.sum().backward()
    assert (model.weight.grad.norm(dim=1) == 0).sum().item() == dead


@pytest.mark.row("F-06")
def test_histograms_have_the_shares_of_the_distribution(rng):
    outputs = {"even": rng.uniform(-1, 1, 200_000), "far": np.array([-5.0, 9.0, 9.0, 0.1])}
    even, far = init.output_histograms(outputs, np.linspace(-1, 1, 9))
    assert_allclose(even, 1 / 8, atol=0.004)
    assert (far[0], far[-1]) == (0.25, 0.5)


@pytest.mark.row("F-06")
def test_hook_records_update_to_weight_ratio(rng):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x, expected = rng.normal(size=(6, 3)).astype(np.float32), {}

    def from_gradients(state):
        for name, p in state.model.named_parameters():
            ratio = 0.1 * (p.grad.norm() / p.norm()).item()
            expected.setdefault(f"update_ratio {name}", []).append(pytest.approx(ratio, rel=1e-4))

    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    hooks = [init.UpdateRatioHook(), SimpleNamespace(after_backward=from_gradients)]
    record = train(model, Examples(x, np.arange(6) % 2), sgd, epochs=2, batch_size=6, hooks=hooks)
    ratios = {name: values for name, values in record.curves.items() if "ratio" in name}
    assert len(ratios) == 2  # of the weights, not of the biases
    assert ratios == {name: expected[name] for name in ratios}
