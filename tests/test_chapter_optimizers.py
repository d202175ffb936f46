"""What chapter 4 says about its figures, tables and exercises, where no cell of it prints it."""

import json
import math
import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

from optdl import optimizers, plotting, problems
from optdl.data import load
from optdl.experiments import sensitivity
from optdl.networks import fully_connected
from optdl.optimizers import (
    SGD,
    AdaDelta,
    AdaGrad,
    Adam,
    AdamW,
    DeltaBarDelta,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    RMSPropNesterov,
    run,
)

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "book" / "optimizers.md").read_text(encoding="utf-8")
PLAIN = " ".join(TEXT.split())


def says(*sentences: str) -> None:
    """Require that the page still says what a test is about to verify."""
    for sentence in sentences:
        assert sentence in PLAIN, f"the page no longer says {sentence!r}: change this test too"


def path(opt: Any, gradients: list[float] | None = None, start: float = 0.0) -> np.ndarray:
    """Return the iterates for listed gradients, or three on the parabola."""
    if gradients is None:
        return run(opt, lambda theta: theta, np.array([start]), 3).ravel()
    remaining = iter(gradients)
    return run(
        opt, lambda theta: np.array([next(remaining)]), np.array([start]), len(gradients)
    ).ravel()


# --- SGD and schedules ------------------------------------------------------------------------


def test_the_floors_and_the_geometric_sum_are_those_of_the_text():
    says("its floor is 133 times lower", "a finite number, 50 in the cell", "= 0.25$.")
    floors = [lr / (2 - lr) for lr in (0.5, 0.005)]
    assert [optimizers.noise_floor(lr, 1.0, 1.0) for lr in (0.5, 0.005)] == pytest.approx(floors)
    assert round(floors[0] / floors[1]) == 133
    assert sum(optimizers.ExponentialDecay(0.5, 0.99)(k) for k in range(5000)) == pytest.approx(50)
    assert optimizers.noise_floor(0.1, 2.0, 3.0) == pytest.approx(0.25)


def test_the_mean_size_of_a_minibatch_gradient_is_that_of_the_answer():
    says(r"\approx 0.32$ and its mean absolute value $0.32\sqrt{2/\pi} \approx 0.25$")
    draws = np.random.default_rng(0).normal(size=(100_000, 10)).mean(axis=1)
    assert draws.std() == pytest.approx(0.32, abs=0.005)
    assert np.abs(draws).mean() == pytest.approx(0.25, abs=0.005)


# --- Momentum ---------------------------------------------------------------------------------


def test_momentum_is_a_ball_with_friction():
    m, c, h = 2.0, 0.7, 0.3
    x, v = [1.5], 0.0
    for _ in range(20):  # m (v' − v)/h² = −∇J − c v'/h, solved for v' by a linear solver
        v = float(np.linalg.solve([[m / h**2 + c / h]], [m / h**2 * v - math.sin(x[-1])])[0])
        x.append(x[-1] + v)
    opt = Momentum(h**2 / (m + c * h), m / (m + c * h))
    np.testing.assert_allclose(run(opt, np.sin, np.array([1.5]), 20).ravel(), x, rtol=1e-12)


def test_less_friction_is_a_larger_alpha():
    says("the larger γ is, the less friction there is")
    alphas = [1 / (1 + c) for c in (0.0, 0.5, 1.0)]
    assert alphas[0] == 1
    assert all(a > b for a, b in pairwise(alphas))


def test_the_weights_of_the_velocity_add_up_to_one_over_one_minus_alpha():
    v = [optimizers.velocity(t, 1.0, 0.9, -1.0) for t in (1, 2, 3, 2000)]
    assert v == pytest.approx([1, 1.9, 2.71, 10])
    assert optimizers.velocity(100, 0.01, 0.99, -1.0) == pytest.approx(1 - 1 / math.e, abs=0.01)


def test_the_valley_is_described_as_it_is():
    says(
        "momentum by a factor of about 280, Nesterov momentum by a factor of 7",
        "α = 0.9 belongs to κ ≈ 1400",
        "an amplitude up to 1.7",
        "to −0.78 there and the careless Nesterov momentum to −0.30",
    )
    valley, start = problems.valley(0.05), np.ones(2)
    lr, alpha, _ = optimizers.optimal_momentum(0.05, 1.0)
    opts = [SGD(2 / 1.05), Momentum(0.3, 0.9), Nesterov(0.3, 0.9), Momentum(lr, alpha)]
    paths = [run(opt, valley, start, 60) for opt in opts]
    losses = [valley.value(one[-1]) for one in paths]
    assert losses[1] / losses[0] == pytest.approx(280, rel=0.02)
    assert losses[2] / losses[0] == pytest.approx(7, rel=0.03)
    assert [one[:, 0].min() for one in paths[1:3]] == pytest.approx([-0.78, -0.30], abs=0.005)
    assert 1.7 < np.abs(paths[3][:, 0]).max() < 1.75
    root = math.sqrt(0.9)
    assert ((1 + root) / (1 - root)) ** 2 == pytest.approx(1442, abs=1)


def test_nesterov_with_the_standard_constants_is_described_as_it_is():
    says(
        "Nesterov momentum needs 508 steps where 437 are predicted",
        "with its standard values, α = 0.63, $3\\cdot10^{-13}$",
        r"among them α = 0.40, momentum reaches $10^{-20}$",
        "315 are counted; gradient descent takes 6908",
    )
    assert round(math.sqrt(1000) * math.log(1e6)) == 437
    bowl = problems.quadratic(np.diag([1.0, 1000.0]))
    standard = Nesterov(1e-3, (math.sqrt(1000) - 1) / (math.sqrt(1000) + 1))
    best = Momentum(*optimizers.optimal_momentum(1.0, 1000.0)[:2])
    opts = (standard, best, SGD(2 / 1001))
    steps = [optimizers.steps_to_reduce(opt, bowl, 1e-6) for opt in opts]
    assert steps == [508, 315, 6908]
    root = math.sqrt(20)
    alpha = (root - 1) / (root + 1)
    assert alpha == pytest.approx(0.63, abs=0.005)
    assert alpha**2 == pytest.approx(0.40, abs=0.005)
    valley, start = problems.valley(0.05), np.ones(2)
    ends = [
        valley.value(run(opt, valley, start, 60)[-1])
        for opt in (Nesterov(1.0, alpha), Momentum((2 / (math.sqrt(0.05) + 1)) ** 2, alpha**2))
    ]
    assert ends == pytest.approx([3e-13, 1e-20], rel=0.2)


def test_momentum_first_increases_the_distance():
    says("first *increases* the distance by a factor of 8", "reduced it to $2\\cdot10^{-6}$")
    lr, alpha, _ = optimizers.optimal_momentum(1.0, 1000.0)
    bowl = problems.quadratic(np.diag([1.0, 1000.0]))
    distance = np.linalg.norm(run(Momentum(lr, alpha), bowl, np.ones(2), 300), axis=1)
    assert distance.max() / distance[0] == pytest.approx(8, abs=0.5)
    assert distance[-1] / distance[0] == pytest.approx(2e-6, rel=0.25)
    descent = np.linalg.norm(run(SGD(2 / 1001), bowl, np.ones(2), 300), axis=1)
    assert 0.5 < descent[-1] / descent[0] < 1


def test_the_bumpy_curve_is_described_as_it_is():
    says("in the nearest dip, at 4.03", "rolls through that one too and ends at −2.01")
    slope = lambda theta: 0.1 * theta + 0.9 * np.sin(3 * theta)  # noqa: E731
    ends = [run(Momentum(0.1, a), slope, np.array([5.0]), 200)[-1][0] for a in (0, 0.9, 0.95)]
    assert ends == pytest.approx([4.03, 0, -2.01], abs=0.005)


def test_the_answers_on_momentum_are_right():
    assert path(Momentum(0.5, 0.5), start=8.0) == pytest.approx([8, 4, 0, -2])
    best = optimizers.optimal_momentum(1.0, 9.0)
    assert best == pytest.approx((0.25, 0.25, 0.5))
    # α = 0.81 is complex between 0.01 and 3.61
    for x, regime in ((0.0099, "real"), (0.0101, "complex"), (3.609, "complex"), (3.611, "real")):
        assert optimizers.momentum_regime(x, 0.81, 1.0) == regime
    assert abs(optimizers.momentum_eigenvalues(1.0, 0.81, 1.0)[0]) == pytest.approx(0.9)


def test_no_pair_beats_the_best_momentum():
    rates = [
        optimizers.momentum_rate(lr, alpha, np.array([1.0, 30.0]))
        for lr in np.geomspace(1e-3, 0.2, 60)
        for alpha in np.linspace(0, 0.99, 60)
    ]
    assert min(rates) >= optimizers.optimal_momentum(1.0, 30.0).rate - 1e-12


def test_nesterov_is_momentum_with_less_alpha_in_steep_directions():
    lr, alpha, curvature = 0.3, 0.8, 2.0
    a = alpha * (1 - lr * curvature)
    matrix = np.array([[1 - lr * curvature, a], [-lr * curvature, a]])
    expected = [(np.linalg.matrix_power(matrix, k) @ [1.0, 0.0])[0] for k in range(9)]
    opt = Nesterov(lr, alpha)
    found = run(opt, lambda theta: curvature * theta, np.array([1.0]), 8).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-12)


# --- A rate for each parameter ----------------------------------------------------------------


def test_the_answers_on_adaptive_rates_are_right():
    rule = DeltaBarDelta(0.5, increase=0.25, decrease=0.5, rho=0.0)
    assert path(rule, start=8.0) == pytest.approx([8, 4, 1, 0])
    steps = -np.diff(path(AdaGrad(1.0, delta=0.0), [3.0, 4.0, 12.0]))
    assert steps == pytest.approx([1, 0.8, 12 / 13])
    steps = -np.diff(path(RMSProp(1.0, 0.75, delta=0.0), [3.0, 3.0]))
    assert steps == pytest.approx([2, 3 / math.sqrt(63 / 16)])
    assert -path(RMSProp(1.0, 0.99, delta=0.0), [5.0])[1] == pytest.approx(10)
    assert path(AdaDelta(1.0, 0.75, delta=1.0), [2.0])[1] == pytest.approx(-math.sqrt(2))
    steps = -np.diff(path(Adam(1.0, 0.5, 0.75, delta=0.0), [2.0, 2.0]))
    assert steps == pytest.approx([1, 1])


def test_delta_bar_delta_is_described_as_it_is():
    says("grows from 0.1 to 2.1", "both fall to nearly zero")
    bowl = problems.quadratic(np.diag([0.02, 1.0]))
    rates = {}
    for printed in (False, True):
        rule = DeltaBarDelta(0.1, increase=0.02, as_printed=printed)
        theta, state = np.full(2, 4.0), rule.init(np.zeros(2))
        for _ in range(100):
            theta, state = rule.step(theta, state, bowl.gradient)
        rates[printed] = state.rates
    assert rates[False][0] == pytest.approx(2.1, abs=0.05)
    assert max(rates[True]) < 1e-20


def test_the_diagonal_of_adagrad_and_rmsprop_is_that_of_the_answer():
    says("about (1695, 317) for AdaGrad and (97, 0.5) for RMSProp", "stays at 0.428")
    bowl, start = problems.quadratic(np.diag([1.0, 100.0])), np.array([100.0, 1.0])
    found = []
    for opt in (AdaGrad(0.1), RMSProp(0.01)):
        theta, state = start, opt.init(start)
        for _ in range(300):
            theta, state = opt.step(theta, state, bowl.gradient)
        found.append(opt.diagonal(state))
    np.testing.assert_allclose(found[0], [1695, 317], atol=0.5)
    np.testing.assert_allclose(found[1], [97, 0.5], atol=0.05)
    theta, r = 1.0, 0.0
    for _ in range(1000):
        r += theta**2
        theta -= 0.5 * theta / math.sqrt(r)
    assert 0.5 / math.sqrt(r) == pytest.approx(0.428, abs=5e-4)


def test_the_rotated_valley_is_described_as_it_is():
    says(
        r"with $3\cdot10^{-4}$ and $8\cdot10^{-46}$ at every angle",
        r"AdaGrad goes from $7\cdot10^{-145}$ to $9\cdot10^{-3}$ and Adam from "
        r"$4\cdot10^{-13}$ to $6\cdot10^{-2}$",
        "RMSProp changes by a factor of at most 2.4",
    )
    steep, best = problems.quadratic(np.diag([1.0, 100.0])), optimizers.optimal_momentum(1.0, 100.0)
    opts = (SGD(2 / 101), Momentum(*best[:2]), AdaGrad(0.5), RMSProp(0.01), Adam(0.05))
    ends = [
        [turned.value(run(opt, turned, turned.start, 300)[-1])
         for turned in (problems.rotated(steep, angle) for angle in (0, 5, 15, 30, 45))]
        for opt in opts
    ]  # fmt: skip
    np.testing.assert_allclose(ends[0], 3e-4, rtol=0.1)
    np.testing.assert_allclose(ends[1], 8e-46, rtol=0.2)
    assert (ends[2][0], ends[2][-1]) == pytest.approx((7e-145, 9e-3), rel=0.1)
    assert (ends[4][0], ends[4][-1]) == pytest.approx((4e-13, 6e-2), rel=0.1)
    assert 2.2 < max(ends[3]) / min(ends[3]) < 2.4


def test_adagrad_freezes_under_gradients_that_shrink_geometrically():
    q, first = 0.8, 3.0
    opt, theta = AdaGrad(0.5, delta=0.0), np.zeros(1)
    state = opt.init(theta)
    for t in range(200):
        g = np.array([first * q**t])
        theta, state = opt.step(theta, state, lambda theta, g=g: g)
    assert opt.effective_lr(state)[0] == pytest.approx(0.5 * math.sqrt(1 - q**2) / first)


def test_rmsprop_ends_at_half_its_rate_from_the_minimum():
    says("at a distance of about η/2")
    for lr in (0.01, 0.1):
        end = run(RMSProp(lr), lambda theta: theta, np.array([1.0]), 2000)[-2:]
        np.testing.assert_allclose(np.abs(end), lr / 2, rtol=0.05)


def test_adam_with_its_default_memory_doubles_its_rate_after_261_steps():
    says("doubles after 261.", "has risen by 44 % after 100 steps")
    opt, theta, rates = Adam(0.1), np.ones(1), []
    state = opt.init(theta)
    for t in range(400):
        g = np.array([1.0 if t < 100 else 0.1])
        theta, state = opt.step(theta, state, lambda theta, g=g: g)
        rates.append(opt.effective_lr(state)[0])
    relative = np.array(rates) / rates[99]
    assert relative[199] == pytest.approx(1.44, abs=0.005)
    assert int(np.argmax(relative >= 2)) - 99 == 261


def test_the_expected_square_of_a_minibatch_is_that_of_the_answer():
    says("so $1+4/2 = 3$.")
    gradients = np.array([3.0, -1.0, 3.0, -1.0])
    pairs = [(a + b) / 2 for a in gradients for b in gradients]
    assert np.mean(np.square(pairs)) == pytest.approx(3)
    assert optimizers.fisher_diagonal(gradients[:, None])[0] == pytest.approx(5)
    without = [
        (gradients[i] + gradients[j]) / 2 for i in range(4) for j in range(4) if i != j
    ]  # s²/n · (m − n)/(m − 1)
    assert np.mean(np.square(without)) == pytest.approx(1 + 4 / 2 * 2 / 3)
    found = optimizers.adaptive_diagonal(gradients[:, None], 2)[0]
    assert found == pytest.approx(math.sqrt(1 + 4 / 2 * 2 / 3))


def test_most_of_what_the_penalized_parameter_loses_is_lost_in_the_first_steps():
    says("more than half of what it loses is due to the first steps of Adam")
    signs = [(-1.0) ** t * 100 for t in range(1000)]
    remaining = iter(signs)
    gradient = optimizers.with_l2_penalty(lambda theta: np.array([next(remaining)]), 0.1)
    penalized = run(Adam(0.01), gradient, np.ones(1), 1000)[-1][0]
    alone = path(Adam(0.01), signs, start=1.0)[-1]
    assert penalized == pytest.approx(0.97, abs=0.005)
    assert (1 - alone) / (1 - penalized) > 0.5


def test_the_cosine_is_read_off_rightly():
    says("0.075, 0.05, 0.025")
    plan = optimizers.CosineDecay(0.1, tau=300)
    assert [plan(k) for k in (100, 150, 200)] == pytest.approx([0.075, 0.05, 0.025])


# --- Newton and preconditioning ---------------------------------------------------------------


def test_the_worked_example_and_the_answers_on_newton_are_right():
    says(
        "fill 2.6 petabytes in single precision", "The step leads to $(8,4)-\\frac12(8,4) = (4,2)$"
    )
    assert pytest.approx(2.6e15, rel=0.01) == 4 * 25.6e6**2
    cubic = Newton(hessian=lambda theta: np.diag(3 * theta**2))
    assert run(cubic, lambda theta: theta**3, np.array([3.0]), 2).ravel() == pytest.approx(
        [3, 2, 4 / 3]
    )
    H, g = np.diag([4.0, -2.0]), np.array([4.0, 2.0])
    for mu, step, slope in ((0.0, [-1, 1], -2), (4.0, [-0.5, -1], -4)):
        opt = Newton(hessian=lambda theta: H, damping=mu)
        d = run(opt, lambda theta: g, np.zeros(2), 1)[-1]
        assert d == pytest.approx(step)
        assert d @ g == pytest.approx(slope)
    assert -np.linalg.solve(H, [1.0, 2.0]) @ [1.0, 2.0] > 0


def test_damping_gives_descent_for_every_gradient_exactly_beyond_the_smallest_eigenvalue():
    H = np.diag([3.0, -1.0])
    angles = np.linspace(0, np.pi, 721)
    gradients = np.column_stack([np.cos(angles), np.sin(angles)])
    for mu, descends in ((0.0, False), (0.5, False), (0.99, False), (1.01, True), (9.0, True)):
        steps = -np.linalg.solve(H + mu * np.eye(2), gradients.T).T
        assert bool((np.sum(steps * gradients, axis=1) < 0).all()) is descends


def test_a_preconditioned_step_is_never_uphill():
    rng = np.random.default_rng(0)
    for _ in range(20):
        P, g = rng.normal(size=(3, 3)), rng.normal(size=3)
        step = optimizers.preconditioned_descent(lambda theta, g=g: g, P, np.zeros(3), 0.1, 1)[-1]
        assert step @ g == pytest.approx(-0.1 * np.sum((P.T @ g) ** 2))


# --- The table by hand, the race and the network ----------------------------------------------


def test_the_table_by_hand_is_what_the_methods_do():
    methods = {
        "SGD": SGD(0.5),
        "Momentum": Momentum(0.5, 0.5),
        "Nesterov momentum": Nesterov(0.5, 0.5),
        "AdaGrad": AdaGrad(1.0, delta=0.0),
        "RMSProp": RMSProp(1.0, 0.75, delta=0.0),
        "RMSProp with Nesterov momentum": RMSPropNesterov(1.0, 0.75, 0.5, delta=0.0),
        "Adam": Adam(1.0, 0.5, 0.75, delta=0.0),
        "Newton": Newton(hessian=lambda theta: np.eye(1), lr=0.5),
    }
    table = TEXT.split("## A worked example: one parabola by hand")[1].split("```")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    values = {row[0]: row[2].replace("−", "-").replace("¼", "0.25") for row in rows[1:]}
    assert set(values) == set(methods)
    for name, opt in methods.items():
        stated = [float(value) for value in values[name].split(", ")]
        assert path(opt, start=8.0)[1:] == pytest.approx(stated, abs=0.006), name


def race() -> dict[str, dict[str, Any]]:
    """Run the race as the page does, and return the end of each method on each surface."""
    [cell] = re.findall(r"^```{code-cell} ipython3\n:tags: \[hide-input\]\n(SURFACES.*?)^```",
                        TEXT, re.MULTILINE | re.DOTALL)  # fmt: skip
    names = {name: getattr(optimizers, name) for name in optimizers.__all__}
    names |= {"np": np, "plt": plt, "json": json, "problems": problems, "plotting": plotting}
    exec(cell, space := names | {"HTML": str})
    return {
        surface: {one["name"]: one for one in result["paths"]}
        for surface, result in space["results"].items()
    }


def test_the_race_is_described_as_it_is():
    says(
        "Nesterov momentum and AdaDelta leave first, at steps 42 and 40, and SGD at step 83",
        "On Beale's function Nesterov momentum has the lowest loss",
        "on Rosenbrock's RMSProp with Nesterov momentum",
    )
    found = race()
    steps = {name: one["steps"] for name, one in found["saddle"].items()}
    assert (steps["Nesterov"], steps["AdaDelta"], steps["SGD"]) == (42, 40, 83)
    assert sorted(steps, key=steps.get)[:2] == ["AdaDelta", "Nesterov"]
    assert steps["Adam"] == steps["RMSProp"] == steps["AdaGrad"] == 300
    best = {
        surface: min(ends, key=lambda name: ends[name]["losses"][-1])
        for surface, ends in found.items()
    }
    assert (best["Beale"], best["Rosenbrock"]) == ("Nesterov", "RMSProp, Nesterov")
    assert sum(one["losses"][-1] < 1e-6 for one in found["long valley"].values()) >= 3


def recorded() -> dict[str, dict[float, float]]:
    """Return the mean final loss of each method and rate of the recorded run."""
    file = ROOT / "experiments" / "results" / "recorded" / "optimizers-rates.json"
    losses: dict[str, dict[float, list[float]]] = {}
    for name, curve in json.loads(file.read_text(encoding="utf-8"))["curves"].items():
        if name.endswith(": train_loss"):
            method, lr, _ = name.removesuffix(": train_loss").split(", ")
            losses.setdefault(method, {}).setdefault(float(lr), []).append(curve[-1])
    return {m: {lr: float(np.mean(c)) for lr, c in own.items()} for m, own in losses.items()}


def test_the_recorded_rates_are_described_as_they_are():
    says(
        "within a factor of 3.9: RMSProp with Nesterov momentum has the lowest mean loss, 0.025, "
        "and SGD the highest, 0.097",
        "from 7 for RMSProp to 78 for Nesterov momentum",
        "The best learning rates reach from 0.003 to 10",
        "differ by a factor of at most 3.9",
        "Adam's best learning rate here is 0.03, thirty times its default. At 0.003 its loss is "
        "already 4.0 times",
    )
    found = recorded()
    best = {method: min(own, key=own.get) for method, own in found.items()}
    ends = {method: found[method][lr] for method, lr in best.items()}
    assert (min(ends, key=ends.get), max(ends, key=ends.get)) == ("RMSPropNesterov", "SGD")
    assert max(ends.values()) / min(ends.values()) == pytest.approx(3.9, abs=0.05)
    factors = {method: max(own.values()) / ends[method] for method, own in found.items()}
    assert (min(factors, key=factors.get), max(factors, key=factors.get)) == (
        "RMSProp",
        "Nesterov",
    )
    assert round(factors["RMSProp"]) == 7
    assert round(factors["Nesterov"]) == 78
    assert [round(ends[method], 3) for method in ("RMSPropNesterov", "SGD")] == [0.025, 0.097]
    assert all(min(found[m]) < lr < max(found[m]) for m, lr in best.items())
    assert (min(best.values()), max(best.values())) == (0.003, 10)
    assert found["Adam"][0.003] / ends["Adam"] == pytest.approx(4.0, abs=0.05)


def test_no_acceleration_by_nesterov_is_seen_on_the_digits():
    says("Nesterov momentum and momentum end within each other's range of seeds")
    file = ROOT / "experiments" / "results" / "recorded" / "optimizers-rates.json"
    curves = json.loads(file.read_text(encoding="utf-8"))["curves"]
    best = {method: min(own, key=own.get) for method, own in recorded().items()}
    ends = [
        [curves[f"{method}, {best[method]:g}, {seed}: train_loss"][-1] for seed in range(5)]
        for method in ("Momentum", "Nesterov")
    ]
    for one, other in (ends, ends[::-1]):
        assert min(other) < np.mean(one) < max(other)


def test_newton_ends_at_a_saddle_of_beale():
    says("it ends at a saddle point, (0, 1), with the loss 14.2")
    beale = problems.beale()
    end = run(Newton(hessian=beale.hessian), beale, np.array([1.0, 1.5]), 100)[-1]
    np.testing.assert_allclose(end, [0, 1], atol=1e-6)
    assert beale.value(end) == pytest.approx(14.2, abs=0.05)
    values = np.linalg.eigvalsh(beale.hessian(end))
    assert values[0] < 0 < values[1]


def test_the_networks_have_as_many_parameters_as_the_page_says():
    says("the Hessian of 2410 parameters has 5.8 million entries")
    count = lambda widths: sum(p.numel() for p in fully_connected(widths).parameters())  # noqa: E731
    assert count((64, 32, 10)) == 2410
    assert round(2410**2 / 1e6, 1) == 5.8


def test_each_method_shows_its_update():
    shown = set(re.findall(r"^:pyobject: (\w+)\.", TEXT, re.MULTILINE))
    methods = (SGD, Momentum, Nesterov, DeltaBarDelta, AdaGrad, RMSProp, RMSPropNesterov,
               AdaDelta, Adam, AdamW, Newton)  # fmt: skip
    assert shown == {method.__name__ for method in methods}


def test_the_validation_errors_are_described_as_they_are():
    says(
        "The lowest mean error, 5.5 %, is that of RMSProp with Nesterov momentum, and the highest, "
        "10.7 %, that of AdaGrad",
        "The ranges of most methods overlap",
    )
    data, found = load("digits").split(validation=300, seed=0), {}
    for method, own in recorded().items():
        opt = getattr(optimizers, method)(lr=min(own, key=own.get))
        errors = sensitivity.validation_errors(
            opt, data.train, data.validation, (32,), 10, seeds=range(5), epochs=4, batch=32
        )
        found[method] = 100 * np.array(errors)[:, -1]
    mean = {method: errors.mean() for method, errors in found.items()}
    lowest, highest = min(mean, key=mean.get), max(mean, key=mean.get)
    assert (lowest, highest) == ("RMSPropNesterov", "AdaGrad")
    assert (mean[lowest], mean[highest]) == pytest.approx((5.5, 10.7), abs=0.4)
    overlap = [
        a.min() <= b.max() and b.min() <= a.max() for a, b in combinations(found.values(), 2)
    ]
    assert np.mean(overlap) > 0.5
