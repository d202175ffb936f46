"""Initial values against torch, closed forms and theorems."""

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from optdl import initialization as init

SIZES = (5, 8, 6, 7, 3)
NAMES = ("sigmoid", "tanh", "relu", "linear")
TORCH = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu, "linear": lambda z: z}


def layers(rng, sizes=SIZES, scale=1.0):
    return [scale * rng.normal(size=(o, n)) for n, o in pairwise(sizes)]


# --- Activations and gradients ---------------------------------------------------------------


@pytest.mark.row("L2-10")
@pytest.mark.parametrize("name", NAMES)
def test_values_and_slopes_match_torch(name, rng):
    z = torch.tensor(rng.normal(size=200) * 3, requires_grad=True)
    value = TORCH[name](z)
    value.sum().backward()
    activation = init.ACTIVATIONS[name]
    np.testing.assert_allclose(activation(z.detach().numpy()), value.detach(), rtol=1e-12)
    np.testing.assert_allclose(activation.slope(z.detach().numpy()), z.grad, rtol=1e-10, atol=1e-14)


@pytest.mark.row("L2-10")
@pytest.mark.parametrize(
    ("name", "steepest"), [("sigmoid", 0.25), ("tanh", 1), ("relu", 1), ("linear", 1)]
)
def test_steepest_slope_is_as_stated(name, steepest):
    slopes = init.ACTIVATIONS[name].slope(np.linspace(-8, 8, 100_001))
    assert init.ACTIVATIONS[name].steepest == steepest
    assert slopes.max() == pytest.approx(steepest, abs=1e-12)


@pytest.mark.row("L2-10")
@pytest.mark.parametrize("name", NAMES)
def test_gradient_norms_match_autograd(name, rng):
    weights, x, upstream = layers(rng), rng.normal(size=5), rng.normal(size=3)
    hidden = [torch.tensor(x, requires_grad=True)]
    for W in weights:
        hidden.append(TORCH[name](torch.from_numpy(W) @ hidden[-1]))
        hidden[-1].retain_grad()
    hidden[-1].backward(torch.from_numpy(upstream))
    expected = [h.grad.norm().item() for h in hidden]
    np.testing.assert_allclose(
        init.gradient_norms(weights, x, upstream, name), expected, rtol=1e-12
    )


@pytest.mark.row("L2-10")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(5))
def test_gradient_norms_respect_product_bound(name, seed):
    rng = np.random.default_rng(seed)
    weights, x, upstream = layers(rng, scale=3.0), rng.normal(size=5), rng.normal(size=3)
    norms = init.gradient_norms(weights, x, upstream, name)
    assert np.all(norms <= init.gradient_norm_bound(weights, upstream, name) * (1 + 1e-12))


@pytest.mark.row("L2-10")
def test_orthogonal_weights_at_zero_attain_the_bound(rng):
    """At z = 0 the sigmoid's slope is ¼, and a zero input keeps one layer there."""
    Q, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    upstream = rng.normal(size=4)
    norms = init.gradient_norms([Q], np.zeros(4), upstream, "sigmoid")
    np.testing.assert_allclose(
        norms, init.gradient_norm_bound([Q], upstream, "sigmoid"), rtol=1e-12
    )


def test_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="expected an activation among sigmoid, tanh, relu"):
        init.gradient_norms([np.eye(1)], np.ones(1), np.ones(1), "swish")


@pytest.mark.row("L2-12")
def test_saturation_is_the_share_beyond_a_known_point():
    """The slope of tanh falls below s at ±arctanh √(1 − s): for normal z a known share."""
    z = np.random.default_rng(0).normal(size=200_000) * 3
    edge = np.arctanh(np.sqrt(1 - 0.05)) / 3
    expected = 2 * stats.norm.sf(edge)
    measured = init.saturated_share(z, init.ACTIVATIONS["tanh"])
    assert measured == pytest.approx(expected, abs=4 * np.sqrt(expected / 200_000))
    assert init.saturated_share(z, init.ACTIVATIONS["relu"]) == np.mean(z <= 0)
    assert init.saturated_share(z, init.ACTIVATIONS["linear"]) == 0


# --- Symmetry --------------------------------------------------------------------------------


def torch_path(W, v, x, y, lr, steps):
    W, v = (torch.tensor(part, requires_grad=True) for part in (W, v))
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    optimizer = torch.optim.SGD([W, v], lr=lr)
    path = [W.detach().numpy().copy()]
    for _ in range(steps):
        optimizer.zero_grad()
        (((torch.tanh(x @ W.T) @ v - y) ** 2).mean() / 2).backward()
        optimizer.step()
        path.append(W.detach().numpy().copy())
    return np.array(path)


@pytest.mark.row("L1-33")
def test_hidden_layer_training_matches_torch(rng):
    case = (rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=(6, 3)))
    y = rng.normal(size=6)
    np.testing.assert_allclose(
        init.train_hidden_layer(*case, y, 0.3, 25), torch_path(*case, y, 0.3, 25), rtol=1e-10
    )


@pytest.mark.row("L1-33")
def test_equal_units_stay_equal_unlike_different_ones(rng):
    x, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    constant = init.train_hidden_layer(np.full((5, 3), 0.4), np.full(5, 0.4), x, y, 0.2, 100)
    assert np.ptp(constant, axis=1).max() < 1e-12
    assert not np.allclose(constant[-1], constant[0])
    nudged = np.full((5, 3), 0.4) + 1e-3 * rng.normal(size=(5, 3))
    path = init.train_hidden_layer(nudged, np.full(5, 0.4), x, y, 0.2, 400)
    assert np.ptp(path[-1], axis=0).max() > 3 * np.ptp(path[0], axis=0).max()


# --- Initial weights -------------------------------------------------------------------------

DRAWS = {
    init.glorot_normal: torch.nn.init.xavier_normal_,
    init.glorot_uniform: torch.nn.init.xavier_uniform_,
    init.he_normal: lambda W: torch.nn.init.kaiming_normal_(W, nonlinearity="relu"),
    init.lecun_normal: lambda W: torch.nn.init.kaiming_normal_(W, nonlinearity="linear"),
}


@pytest.mark.row("L2-11")
@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_moments_and_range_match_torch(draw, rng):
    ours = draw(400, 150, rng)
    theirs = torch.empty(150, 400, dtype=torch.float64)
    torch.manual_seed(0)
    DRAWS[draw](theirs)
    assert ours.shape == tuple(theirs.shape)
    assert ours.var() / theirs.var().item() == pytest.approx(1, abs=0.03)
    assert abs(ours.mean()) < 5 * ours.std() / np.sqrt(ours.size)
    two_sample = stats.ks_2samp(ours.ravel(), theirs.numpy().ravel())
    assert two_sample.pvalue > 1e-3


@pytest.mark.row("L2-11")
def test_uniform_draw_fills_its_interval(rng):
    W = init.glorot_uniform(100, 200, rng)
    bound = np.sqrt(6 / 300)
    assert np.abs(W).max() <= bound
    assert np.abs(W).max() > 0.999 * bound


@pytest.mark.row("L2-11")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gain", [0.5, 1.0, 2.0])
def test_predicted_moments_match_quadrature(name, gain):
    """One layer: the expectation by adaptive integration."""
    activation = init.ACTIVATIONS[name]

    def integrand(t):
        return float(activation(np.array([np.sqrt(gain) * t]))[0] ** 2) * stats.norm.pdf(t)

    expected, _ = integrate.quad(integrand, -10, 10, points=[0.0], limit=200)
    predicted = init.second_moments(1.0, [10], [gain / 10], name)
    assert predicted[1] == pytest.approx(expected, rel=2e-4)


@pytest.mark.row("L2-11")
def test_relu_prediction_matches_general_one():
    fans, variances = [30, 50, 20], [0.03, 0.05, 0.2]
    general = init.second_moments(2.0, fans, variances, "relu")
    np.testing.assert_allclose(init.relu_second_moments(2.0, fans, variances), general, rtol=1e-10)


@pytest.mark.row("L2-11")
@pytest.mark.parametrize(("name", "draw"), [("relu", init.he_normal), ("tanh", init.lecun_normal)])
def test_moments_through_fifty_layers_match_prediction(name, draw):
    rng = np.random.default_rng(5)
    width, depth = 400, 50
    weights = [draw(width, width, rng) for _ in range(depth)]
    measured = init.measured_second_moments(rng.normal(size=(200, width)), weights, name)
    variance = weights[0].var()
    gain = 2.0 if name == "relu" else 1.0
    assert variance * width == pytest.approx(gain, rel=0.03)
    predicted = init.second_moments(1.0, [width] * depth, [gain / width] * depth, name)
    # each layer's random weights miss the prediction by a few √(5/n); that adds up as a walk
    allowed = 4 * np.sqrt(5 / width * np.arange(depth + 1)) + 0.05
    assert np.all(np.abs(np.log(measured / predicted)) < allowed)


@pytest.mark.row("L2-11")
def test_lecun_relu_network_halves_at_every_layer(rng):
    weights = [init.lecun_normal(500, 500, rng) for _ in range(10)]
    measured = init.measured_second_moments(rng.normal(size=(300, 500)), weights, "relu")
    assert measured[-1] == pytest.approx(2.0**-10, rel=0.5)


# --- Gradients backward -----------------------------------------------------------------------


@pytest.mark.row("L2-11")
@pytest.mark.parametrize("name", NAMES)
def test_backward_moments_match_autograd(name, rng):
    weights, x = layers(rng), rng.normal(size=(6, 5))
    upstream = rng.normal(size=(6, 3))
    hidden = [torch.tensor(x, requires_grad=True)]
    for W in weights:
        hidden.append(TORCH[name](hidden[-1] @ torch.from_numpy(W).T))
        hidden[-1].retain_grad()
    hidden[-1].backward(torch.from_numpy(upstream))
    expected = [(h.grad**2).mean().item() for h in hidden]
    measured = init.measured_backward_moments(x, upstream, weights, name)
    np.testing.assert_allclose(measured, expected, rtol=1e-12)


@pytest.mark.row("L2-11")
def test_backward_moments_match_hand_calculation():
    """Linear layers: n_l Var(W_l); ReLU: half of it; the sigmoid's slope at zero input: 1/16."""
    widths, variances = [30, 50, 20], [0.03, 0.05]
    linear = init.backward_second_moments(2.0, widths, variances, "linear")
    np.testing.assert_allclose(linear, [2 * 20 * 0.05 * 50 * 0.03, 2 * 20 * 0.05, 2.0])
    relu = init.backward_second_moments(2.0, widths, variances, "relu")
    np.testing.assert_allclose(relu, linear * [0.25, 0.5, 1], rtol=1e-12)
    small = init.backward_second_moments(1.0, [10, 7], [0.1], "sigmoid", first=1e-12)
    assert small[0] == pytest.approx(7 * 0.1 / 16)


@pytest.mark.row("L2-11")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("q", [0.3, 1.0, 4.0])
def test_mean_squared_slope_matches_quadrature(name, q):
    activation = init.ACTIVATIONS[name]

    def integrand(t):
        return float(activation.slope(np.array([np.sqrt(q) * t]))[0] ** 2) * stats.norm.pdf(t)

    expected, _ = integrate.quad(integrand, -10, 10, points=[0.0], limit=200)
    predicted = init.backward_second_moments(1.0, [10, 10], [0.1], name, first=q)
    assert predicted[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.row("L2-11")
@pytest.mark.parametrize(("name", "draw"), [("relu", init.he_normal), ("tanh", init.lecun_normal)])
def test_gradients_through_fifty_layers_match_prediction(name, draw):
    rng = np.random.default_rng(5)
    width, depth, gain = 400, 50, 2.0 if name == "relu" else 1.0
    weights = [draw(width, width, rng) for _ in range(depth)]
    x, upstream = rng.normal(size=(200, width)), rng.normal(size=(200, width))
    measured = init.measured_backward_moments(x, upstream, weights, name)
    predicted = init.backward_second_moments(
        1.0, [width] * (depth + 1), [gain / width] * depth, name
    )
    # as in the forward direction, the layers' random deviations add up as a walk
    allowed = 4 * np.sqrt(5 / width * np.arange(depth, -1, -1)) + 0.05
    assert np.all(np.abs(np.log(measured / predicted)) < allowed)


@pytest.mark.row("L2-11")
def test_with_unequal_fans_no_variance_keeps_both_directions(rng):
    """100 inputs, 400 outputs: Glorot's 1/250 gives 0.4 forward and 1.6 backward."""
    weights = [init.glorot_normal(100, 400, rng)]
    x, upstream = rng.normal(size=(500, 100)), rng.normal(size=(500, 400))
    forward = init.measured_second_moments(x, weights, "linear")
    backward = init.measured_backward_moments(x, upstream, weights, "linear")
    assert forward[1] / forward[0] == pytest.approx(0.4, rel=0.03)
    assert backward[0] / backward[1] == pytest.approx(1.6, rel=0.03)


# --- Inputs ----------------------------------------------------------------------------------


@pytest.mark.row("L2-13")
def test_normalization_matches_scikit_learn(rng):
    from sklearn.preprocessing import StandardScaler

    train, other = 1000 + 500 * rng.random((40, 3)), rng.random((7, 3))
    scaler = StandardScaler().fit(train)
    ours = init.normalize_inputs(train, other, 0.0)
    np.testing.assert_allclose(ours[0], scaler.transform(train), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ours[1], scaler.transform(other), rtol=1e-10)


@pytest.mark.row("L2-13")
def test_constant_feature_becomes_zero():
    train = np.column_stack([np.full(5, 7.0), np.arange(5.0)])
    assert np.all(init.InputNormalizer.fit(train)(train)[:, 0] == 0)


@pytest.mark.row("L2-13")
def test_least_squares_hessian_matches_autograd(rng):
    x, y = rng.normal(size=(9, 3)), rng.normal(size=9)

    def loss(p):
        return ((p[0] + torch.from_numpy(x) @ p[1:] - torch.from_numpy(y)) ** 2).mean() / 2

    expected = torch.autograd.functional.hessian(loss, torch.zeros(4, dtype=torch.float64))
    np.testing.assert_allclose(init.least_squares_hessian(x), expected, rtol=1e-12)


@pytest.mark.row("L2-13")
@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.3, 0.95])
def test_normalized_pair_condition_number_matches_closed_form(correlation):
    base = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    mixed = np.column_stack(
        [base[:, 0], correlation * base[:, 0] + np.sqrt(1 - correlation**2) * base[:, 1]]
    )
    x = np.array([1500.0, 0.15]) + np.array([288.7, 0.0289]) * mixed
    normalized, _ = init.normalize_inputs(x, x, 0.0)
    expected = (1 + abs(correlation)) / (1 - abs(correlation))
    assert np.linalg.cond(init.least_squares_hessian(normalized)) == pytest.approx(expected)


@pytest.mark.row("L2-13")
def test_lecture_inputs_are_ill_conditioned_as_predicted(rng):
    """x₁ ∈ [1000, 2000], x₂ ∈ [0.1, 0.2], even and independent: E x² = μ² + w²/12."""
    x = np.column_stack([rng.uniform(1000, 2000, 200_000), rng.uniform(0.1, 0.2, 200_000)])
    mean, square = np.array([1500, 0.15]), np.array([1500**2 + 1e6 / 12, 0.15**2 + 0.01 / 12])
    population = np.array(
        [[1, *mean], [mean[0], square[0], mean.prod()], [mean[1], mean.prod(), square[1]]]
    )
    measured = np.linalg.cond(init.least_squares_hessian(x))
    assert measured == pytest.approx(np.linalg.cond(population), rel=0.02)
    assert measured > 1e9
    normalized, _ = init.normalize_inputs(x, x, 0.0)
    assert np.linalg.cond(init.least_squares_hessian(normalized)) < 1.02


@pytest.mark.parametrize(
    "draw", [init.lecun_normal, init.glorot_normal, init.glorot_uniform, init.he_normal]
)
@pytest.mark.parametrize("fans", [(0, 3), (3, 0), (-1, 3)])
def test_layer_without_inputs_or_outputs_is_refused(draw, fans):
    with pytest.raises(ValueError, match=f"got fan_in={fans[0]}, fan_out={fans[1]}"):
        draw(*fans, np.random.default_rng(0))


# --- Diagnostics -----------------------------------------------------------------------------


def known_network(*modules):
    return torch.nn.Sequential(*modules).double()


@pytest.mark.row("F-06")
def test_layer_outputs_match_calls_by_hand(rng):
    inner = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
    model = known_network(inner, torch.nn.ReLU(inplace=True), torch.nn.Linear(3, 2))
    x = torch.from_numpy(rng.normal(size=(5, 4)))
    outputs = init.layer_outputs(model, x)
    z = inner[0](x).detach().numpy()
    assert list(outputs) == ["0.0", "0.1", "1", "2"]
    np.testing.assert_array_equal(outputs["0.0"], z)
    np.testing.assert_allclose(outputs["0.1"], np.tanh(z), rtol=1e-12)  # not overwritten in place
    np.testing.assert_allclose(outputs["1"], np.maximum(np.tanh(z), 0), rtol=1e-12)
    np.testing.assert_array_equal(outputs["2"], model(x).detach())


@pytest.mark.row("F-06")
def test_layer_outputs_leave_the_model_unchanged(rng):
    model = known_network(torch.nn.Linear(2, 2), torch.nn.ReLU())
    init.layer_outputs(model, torch.ones(1, 2, dtype=torch.float64))
    assert all(not part._forward_hooks for part in model.modules())
    with pytest.raises(RuntimeError):
        init.layer_outputs(model, torch.ones(1, 3, dtype=torch.float64))
    assert all(not part._forward_hooks for part in model.modules())


@pytest.mark.row("F-06")
@pytest.mark.parametrize("dead", [0, 3, 8])
def test_dead_units_are_counted(dead, rng):
    """A bias of −1000 keeps a unit at zero; one of +1000 keeps it active."""
    model = known_network(torch.nn.Linear(4, 8), torch.nn.ReLU())
    with torch.no_grad():
        model[0].bias[:] = 1000.0
        model[0].bias[:dead] = -1000.0
    x = torch.from_numpy(rng.normal(size=(50, 4)))
    assert init.dead_share(init.layer_outputs(model, x)["1"]) == dead / 8
    model(x).sum().backward()
    assert (model[0].weight.grad.norm(dim=1) == 0).sum().item() == dead  # they learn nothing


@pytest.mark.row("F-06")
def test_unit_active_once_is_not_dead():
    activations = np.zeros((100, 2))
    activations[57, 1] = 1e-9
    assert init.dead_share(activations) == 0.5


@pytest.mark.row("F-06")
def test_saturated_units_are_counted():
    """Weights 0, biases 0 and ±10: three of five units of tanh are saturated for all inputs."""
    model = known_network(torch.nn.Linear(3, 5), torch.nn.Tanh())
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias[:] = torch.tensor([0.0, 10.0, -10.0, 0.0, 10.0])
    z = init.layer_outputs(model, torch.ones(7, 3, dtype=torch.float64))["0"]
    assert init.saturated_share(z, init.ACTIVATIONS["tanh"]) == 3 / 5


@pytest.mark.row("F-06")
def test_histograms_have_the_shares_of_the_distribution(rng):
    edges = np.linspace(-1, 1, 9)
    outputs = {"uniform": rng.uniform(-1, 1, 200_000), "tanh": np.tanh(rng.normal(size=200_000))}
    shares = init.output_histograms(outputs, edges)
    inner = np.arctanh(edges[1:-1])
    expected = np.diff(np.concatenate([[0.0], stats.norm.cdf(inner), [1.0]]))
    np.testing.assert_allclose(shares[0], 1 / 8, atol=0.004)
    np.testing.assert_allclose(shares[1], expected, atol=0.004)
    outside = init.output_histograms({"far": np.array([-5.0, 9.0, 9.0, 0.1])}, edges)
    assert outside[0, 0] == 0.25
    assert outside[0, -1] == 0.5


@pytest.mark.row("F-06")
def test_update_ratio_matches_closed_form():
    """Linear model from w = (3, 4), mean squared error: g = 2(ŷ − y) x for one example."""
    before = np.array([3.0, 4.0])
    x, y, lr = np.array([1.0, 2.0]), 10.0, 0.05
    g = 2 * (before @ x - y) * x
    after = before - lr * g
    ratio = init.update_to_weight_ratio(before, after)
    assert ratio == pytest.approx(lr * 2 * np.sqrt(5) / 5)
    with pytest.raises(ValueError, match="leave out parameters that start at zero"):
        init.update_to_weight_ratio(np.zeros(2), after)


@pytest.mark.row("F-06")
def test_hook_records_update_to_weight_ratio():
    from optdl.data import Examples
    from optdl.training import train

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    y = np.arange(6) % 2
    expected, by_hand = [], copy.deepcopy(model)
    for _ in range(2):
        by_hand.zero_grad()
        scores = by_hand(torch.from_numpy(x))
        torch.nn.functional.cross_entropy(scores, torch.from_numpy(y)).backward()
        weights = {name: p for name, p in by_hand.named_parameters() if p.ndim == 2}
        expected.append({n: 0.1 * (p.grad.norm() / p.norm()).item() for n, p in weights.items()})
        with torch.no_grad():
            for p in by_hand.parameters():
                p -= 0.1 * p.grad
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    record = train(
        model, Examples(x, y), sgd, epochs=2, batch_size=6, hooks=[init.UpdateRatioHook()]
    )
    curves = {
        name.removeprefix("update_ratio "): curve
        for name, curve in record.curves.items()
        if name.startswith("update_ratio")
    }
    for epoch in range(2):
        ratios = {name: curve[epoch] for name, curve in curves.items()}
        assert ratios == pytest.approx(expected[epoch], rel=1e-4)
    assert all(len(curve) == 2 for curve in curves.values())
