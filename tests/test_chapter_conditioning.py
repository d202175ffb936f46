"""What the chapter on conditioning says in words, where no cell of it prints the number."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from optdl import conditioning, problems, quadratic
from optdl.data import load

PAGE = (Path(__file__).resolve().parents[1] / "book" / "conditioning.md").read_text("utf-8")
TEXT = re.sub(r"\s+", " ", PAGE)


def says(*parts: str) -> None:
    """Make sure that the chapter still says what a test is about."""
    for part in parts:
        assert part in TEXT, f"the chapter no longer says: {part}"


def test_a_condition_number_of_a_thousand_costs_3454_steps():
    says("3454")
    assert round(500 * math.log(1000)) == 3454
    assert conditioning.iterations_needed(1000.0, 1e-3) == 3454


def test_the_worked_example_with_small_integers():
    says("g^THg = 1\\cdot 7 + 2\\cdot 11 = 29", "10/29 \\approx 0.345", "5/29 \\approx 0.172")
    network, w = conditioning.two_weights(), np.array([2.0, 1.0])
    g, H = network.gradient(w), network.hessian(w)
    assert g.tolist() == [1, 2]
    assert H.tolist() == [[1, 3], [3, 4]]
    assert (g @ g, (H @ g).tolist(), g @ H @ g) == (5, [7, 11], 29)
    assert conditioning.uphill_step(g, H) == pytest.approx(10 / 29)
    says("\\frac{432}{841} \\approx 0.514", "J \\approx 0.118", "from 0.5 to 0.118")
    after = w - 10 / 29 * g
    assert after.prod() == pytest.approx(432 / 841)
    assert network.value(after) == pytest.approx(0.118, abs=5e-4)


def test_the_real_loss_goes_uphill_earlier_than_its_model():
    says("The real loss goes uphill earlier than predicted")
    digits = load("digits")
    chosen = np.isin(digits.y_train, [3, 8])
    x = np.column_stack([digits.x_train[chosen], np.ones(chosen.sum())]).astype(float)
    y = np.where(digits.y_train[chosen] == 3, 1.0, -1.0)
    loss = quadratic.logistic_regression(x, y, penalty=0.01)
    w = 0.3 * np.random.default_rng(0).normal(size=65)
    g, H = loss.gradient(w), loss.hessian(w)
    limit = conditioning.uphill_step(g, H)
    assert loss.value(w - 0.87 * limit * g) > loss.value(w) > loss.value(w - 0.8 * limit * g)
    for rate in np.linspace(0.2, 1.2, 6) * limit:
        assert loss.value(w - rate * g) - loss.value(w) > conditioning.step_gain(g, H, rate)


def test_small_hessians_of_the_answers():
    says("has the eigenvalues $6$ and $-2$", "has $3$ and $1$")
    np.testing.assert_allclose(np.linalg.eigvalsh([[2, 4], [4, 2]]), [-2, 6])
    np.testing.assert_allclose(np.linalg.eigvalsh([[2, 1], [1, 2]]), [1, 3])
    network = conditioning.two_weights()
    at = network.hessian(np.array([2.0, 0.5]))
    assert conditioning.condition_number(at) == pytest.approx(1)
    np.testing.assert_allclose(at @ [2, -0.5], 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.eigvalsh(network.hessian(np.zeros(2))), [-1, 1])


def test_the_network_of_the_products_has_2410_parameters():
    says("a network with 2410 parameters")
    layers = nn.Linear(64, 32), nn.Linear(32, 10)
    assert sum(part.numel() for layer in layers for part in layer.parameters()) == 2410


@pytest.fixture(scope="module")
def tracked():
    """Return the runs of the chapter: one with a stable rate, one at the edge."""
    split = load("digits").split(validation=300, seed=0)
    x, y = torch.tensor(split.train.x[:300]).double(), torch.tensor(split.train.y[:300])
    runs = []
    for lr, steps, every in ((0.05, 1000, 50), (0.15, 1500, 30), (0.25, 800, 40)):
        torch.manual_seed(0)
        layers = nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10)
        net = nn.Sequential(*layers).double()
        error = conditioning.squared_error
        runs.append(conditioning.track_descent(net, x, y, error, lr, steps, every))
    return runs


def test_with_a_stable_rate_the_gradient_shrinks_and_the_curvature_along_it_too(tracked):
    says("falls by a factor of about 100", "several million", "10.7 to 13.8", "0.03 % or better")
    stable, *_ = tracked
    first, last = stable.gradient_norms[[0, -1]]
    assert first / last == pytest.approx(100, rel=0.1)
    assert 2e6 < stable.curvatures[0] / stable.curvatures[-1] < 9e6
    assert stable.sharpness[[0, -1]].round(1).tolist() == [10.7, 13.8]
    np.testing.assert_allclose(stable.predictions, stable.changes, rtol=3e-4)
    assert np.all(np.diff(stable.losses) < 0)


def test_at_the_edge_the_gradient_does_not_shrink_and_the_loss_falls(tracked):
    says("about ten times its lowest value", "more than 100,000", "passes $2/\\eta = 13.3$")
    _, edge, _ = tracked
    late = edge.steps >= 1100
    assert edge.gradient_norms[late].mean() / edge.gradient_norms.min() == pytest.approx(10, abs=4)
    assert edge.curvatures[late].mean() / edge.curvatures.min() > 1e5
    assert edge.sharpness.max() > 14.5
    assert np.abs(edge.sharpness[late] / (2 / 0.15) - 1).max() < 0.05
    assert edge.losses[-1] < 0.7 * edge.losses[600]
    assert 0.02 < np.mean(np.diff(edge.losses)[-400:] > 0) < 0.3


def test_with_the_largest_rate_the_curvature_comes_from_above_and_stays_7_percent_above(tracked):
    says("on average 7 % above the threshold")
    *_, edge = tracked
    late = edge.steps >= edge.steps[-1] - 400
    assert edge.sharpness[0] > 8
    assert edge.sharpness[late].mean() / 8 == pytest.approx(1.07, abs=0.005)


def test_an_oscillation_moves_two_weights_toward_balance():
    says("a^2 - b^2 \\ \\leftarrow\\", "(1 - \\eta^2z^2)")
    network, w, lr = conditioning.two_weights(), np.array([2.0, 0.7]), 0.3
    r = w.prod() - 1
    after = w - lr * network.gradient(w)
    expected = (w[0] ** 2 - w[1] ** 2) * (1 - lr**2 * r**2)
    assert after[0] ** 2 - after[1] ** 2 == pytest.approx(expected)


def test_which_minima_a_rate_of_four_tenths_can_reach():
    says("9 + \\tfrac19 > 5 = 2/\\eta")
    network = conditioning.two_weights()
    for minimum, attracts in (([3.0, 1 / 3], False), ([1.0, 1.0], True)):
        point = np.array(minimum) + np.array([1e-4, 0])
        for _ in range(60):
            point = point - 0.4 * network.gradient(point)
        assert (np.linalg.norm(point - minimum) < 2e-4) == attracts


def test_equivalent_settings_are_counted():
    says("$6\\cdot8 = 48$ settings", "\\approx 1.1\\cdot10^{45}", "$(3!)^2 = 36$")
    assert math.factorial(3) * 2**3 == 48
    assert conditioning.equivalent_minima(3, 2) == 36
    assert math.factorial(32) * 2**32 == pytest.approx(1.1e45, rel=0.05)
    assert math.factorial(32) == pytest.approx(2.6e35, rel=0.02)


def test_the_times_near_a_saddle():
    says("10 steps", "needs 97 steps", "194", "= 7.3$ here")
    assert conditioning.escape_steps(1e-3, 1.0, 1.0, 1.0) == 10
    steps = [conditioning.escape_steps(d, 1.0, 0.1, 1.0) for d in (1e-4, 1e-8)]
    assert steps == [97, 194]
    assert math.log(2) / math.log(1.1) == pytest.approx(7.3, abs=0.05)


def test_a_start_beside_the_stable_manifold_leaves_and_one_on_it_does_not():
    network, points = conditioning.two_weights(), np.array([[1.5, -1.5], [1.5, -1.5 + 1e-4]])
    closest = np.full(2, np.inf)
    for _ in range(300):
        points = points - 0.1 * network.gradients(points)
        closest = np.minimum(closest, np.linalg.norm(points, axis=1))
    np.testing.assert_allclose(points, [[0, 0], [1, 1]], atol=1e-3)
    assert closest[1] < 0.05  # it came near the saddle first


def test_the_plateau_of_a_sigmoid_unit_takes_22063_steps():
    says("22,063", "e^{10}\\approx 22{,}000")
    w, count = -10.0, 0
    while w < 0:
        s = 1 / (1 + math.exp(-w))
        w, count = w + s * (1 - s) ** 2, count + 1
    assert count == 22063
    assert math.exp(10) == pytest.approx(22000, rel=0.01)


def test_clipping_thirty_and_forty():
    says("the result $(3, 4)$", "By value: $(5, 5)$")
    g = [np.array([30.0, 40.0])]
    assert conditioning.clip_by_norm(g, 5.0)[0].tolist() == [3, 4]
    assert conditioning.clip_by_value(g, 5.0)[0].tolist() == [5, 5]


def test_the_limits_of_biased_gradients():
    says("(-1, -0.15)", "almost seven times as large", "which is zero at $w = \\frac19$")
    limit = conditioning.limit_point(np.diag([0.3, 2.0]), np.zeros(2), np.array([0.3, 0.3]))
    np.testing.assert_allclose(limit, [-1, -0.15])
    assert limit[0] / limit[1] == pytest.approx(6.7, abs=0.05)
    examples = np.array([0.0] * 9 + [10.0])
    assert conditioning.clipped_limit(examples, 1.0) == pytest.approx(1 / 9)


def test_1300_correlated_iterates_are_worth_about_80():
    """The variance of a squared AR(1) process with factor ρ: the autocorrelations are ρ^{2k}."""
    says("the factor $1-\\eta\\lambda = 0.94$", "1300 of them", "about 80 independent ones")
    factor = 1 - 0.2 * 0.3
    assert 1300 * (1 - factor**2) / (1 + factor**2) == pytest.approx(80, abs=1)


def test_momentum_moves_the_threshold():
    """Heavy ball on one curvature: the eigenvalues of its matrix leave the unit disc there."""
    says("threshold is $2(1+\\alpha)/\\eta$")
    lr, alpha = 0.1, 0.9
    for share, stable in ((0.99, True), (1.01, False)):
        curvature = share * 2 * (1 + alpha) / lr
        matrix = np.array([[1 + alpha - lr * curvature, -alpha], [1.0, 0.0]])
        assert (np.abs(np.linalg.eigvals(matrix)).max() < 1) == stable


def test_the_share_of_minima_falls_faster_than_a_half_for_each_dimension():
    says("falls faster than $2^{-n}$")
    rng = np.random.default_rng(0)
    for n in (2, 3, 4):
        assert conditioning.minima_share(n, 50_000, rng) < 0.5**n


def test_the_mean_loss_of_critical_points_rises_with_their_index():
    says("The mean loss rises with the number of negative eigenvalues")
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    teacher = np.column_stack([1.5 * rng.normal(size=(3, 3)), [1.0, -1.0, 1.0]])
    small = conditioning.tanh_regression(x, np.tanh(x @ teacher[:, :3].T) @ teacher[:, 3], 3)
    rng, starts = np.random.default_rng(3), []
    for p in rng.normal(size=(60, 12)):
        for step in range(201):
            if step in (0, 5, 20, 60, 200):
                starts.append(p + 0.1 * rng.normal(size=12))
            p = p - 0.3 * small.gradient(p)
    found = conditioning.critical_points(small, np.array(starts))
    inside = np.abs(found.points).max(axis=1) < 20
    means = [found.losses[inside & (found.indices == index)].mean() for index in range(4)]
    assert np.all(np.diff(means) > 0)
    assert 0.1 < np.corrcoef(found.indices[inside], found.losses[inside])[0, 1] < 0.6


def test_the_wells_are_reached_as_the_answer_says():
    wells = problems.mixture()
    deepest = wells.minimum
    grid = np.linspace(-3, 3, 21)
    ends = np.array([[p, q] for q in grid for p in grid])
    for _ in range(400):
        ends -= 0.3 * wells.gradients(ends)
    share = np.mean(np.linalg.norm(ends - deepest, axis=1) < 0.01)
    assert 0.2 < share < 0.5  # not every start ends in the deepest well
