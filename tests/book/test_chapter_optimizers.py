"""What chapter 4 says where no cell of it prints the number."""

import math
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from chapters import text

from optdl import optimizers, problems, quadratic
from optdl.data import load
from optdl.networks import fully_connected
from optdl.optimizers import (
    SGD,
    AdaGrad,
    Adam,
    CosineDecay,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    RMSPropNesterov,
    run,
)
from optdl.records import Record

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "experiments" / "results" / "recorded"


def says(page: str, *sentences: str) -> None:
    """Require that a lesson still says what a test is about to verify."""
    found = text("optimizers", page)
    for sentence in sentences:
        assert sentence in found, f"{page} no longer says {sentence!r}: change this test too"


def cell(page: str, start: str) -> str:
    """Return the code of the cell of a lesson that begins with these characters."""
    raw = (ROOT / "book" / "optimizers" / f"{page}.md").read_text("utf-8")
    cells = re.findall(r"^```{code-cell} ipython3\n(.*?)^```", raw, re.MULTILINE | re.DOTALL)
    [code] = [body for body in cells if re.sub(r"\A(:.*\n)+", "", body).startswith(start)]
    return re.sub(r"\A(:.*\n)+", "", code)


def path(opt: Any, gradients: list[float] | None = None, start: float = 0.0) -> np.ndarray:
    """Return the iterates for listed gradients, or three on the parabola."""
    if gradients is None:
        return run(opt, lambda theta: theta, np.array([start]), 3).ravel()
    remaining = iter(gradients)
    slope = lambda theta: np.array([next(remaining)])  # noqa: E731
    return run(opt, slope, np.array([start]), len(gradients)).ravel()


# --- noise and momentum -----------------------------------------------------------------------


def test_the_mean_size_of_a_minibatch_gradient_is_that_of_the_answer() -> None:
    says("noise", r"$1/\sqrt{10}\approx0.32$, and $0.32\sqrt{2/\pi}\approx0.25$")
    draws = np.random.default_rng(0).normal(size=(100_000, 10)).mean(axis=1)
    assert draws.std() == pytest.approx(0.32, abs=0.005)
    assert np.abs(draws).mean() == pytest.approx(0.25, abs=0.005)


def test_momentum_passes_the_minimum_and_reaches_two_thirds_of_its_speed() -> None:
    says("momentum", r"$v = -2-0 = -2$, $\theta = -2$", "reaches 63 % of it after about")
    assert path(Momentum(0.5, 0.5), start=8.0) == pytest.approx([8, 4, 0, -2])
    assert optimizers.velocity(100, 0.01, 0.99, -1.0) == pytest.approx(0.63, abs=0.01)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("lr", [0.02, 0.3])
def test_the_noise_floor_of_momentum_is_the_stationary_variance(alpha: float, lr: float) -> None:
    """The covariance Σ of (θ, v) that a step leaves unchanged: Σ = MΣMᵀ + η²·ones."""
    says("momentum", r"\frac{\eta\,\sigma^2\,(1+\alpha)}{\lambda\,(1-\alpha)\,")
    says("momentum", "If you keep η itself and switch on α = 0.9, the floor rises tenfold.")
    curvature = 1.5
    x = lr * curvature
    M, noise = np.array([[1 - x, alpha], [-x, alpha]]), lr**2 * np.ones((2, 2))
    fixed = np.linalg.solve(np.eye(4) - np.kron(M, M), noise.ravel())
    floor = lr * (1 + alpha) / (curvature * (1 - alpha) * (2 * (1 + alpha) - x))
    assert floor == pytest.approx(fixed[0])
    if (alpha, lr) == (0.9, 0.02):
        assert floor / optimizers.noise_floor(lr, curvature, 1.0) == pytest.approx(10, rel=0.02)


def test_nesterov_is_momentum_with_less_alpha_in_steep_directions() -> None:
    says("momentum", r"This is momentum with $\alpha(1-\eta\lambda)$ in place of α")
    lr, alpha, curvature = 0.3, 0.8, 2.0
    a = alpha * (1 - lr * curvature)
    matrix = np.array([[1 - lr * curvature, a], [-lr * curvature, a]])
    expected = [(np.linalg.matrix_power(matrix, k) @ [1.0, 0.0])[0] for k in range(9)]
    found = run(Nesterov(lr, alpha), lambda theta: curvature * theta, np.array([1.0]), 8).ravel()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_answers_on_the_best_momentum_are_right() -> None:
    says("root-kappa", r"$\zeta^* = 1/2$ against $8/10$", r"so $\kappa\approx1440$")
    assert optimizers.optimal_momentum(1.0, 9.0) == pytest.approx((0.25, 0.25, 0.5))
    assert quadratic.convergence_rate(0.2, np.array([1.0, 9.0])) == pytest.approx(0.8)
    root = math.sqrt(0.9)
    assert ((1 + root) / (1 - root)) ** 2 == pytest.approx(1440, rel=0.005)


# --- adaptive methods -------------------------------------------------------------------------


def test_the_answers_on_adaptive_rates_are_right() -> None:
    says("adaptive", r"$4/\sqrt{9+16} = 0.8$", r"12/13\approx0.92", "3.2 η for ρ = 0.9")
    steps = -np.diff(path(AdaGrad(1.0, delta=0.0), [3.0, 4.0, 12.0]))
    assert steps == pytest.approx([1, 0.8, 12 / 13])
    assert -path(RMSProp(1.0, 0.9, delta=0.0), [5.0])[1] == pytest.approx(3.2, abs=0.05)
    says("adaptive", r"\approx31.6\,\eta$", "ten times too short", r"\approx3.2\,\eta$")
    g, beta1, beta2 = 5.0, 0.9, 0.999
    m, root = (1 - beta1) * g, math.sqrt(1 - beta2) * g
    assert [g / root, m / g, m / root] == pytest.approx([31.6, 0.1, 3.2], abs=0.05)


@pytest.mark.parametrize("opt", [AdaGrad(0.1, delta=0.0), RMSProp(0.02, delta=0.0), Adam(0.05)])
def test_from_equal_distances_the_divisor_stays_proportional_to_the_curvature(opt: Any) -> None:
    says("divisors", "$G$ is proportional to $H$, and it remains so")
    bowl, theta = problems.quadratic(np.diag([1.0, 100.0])), np.ones(2)
    state = opt.init(theta)
    for _ in range(60):
        theta, state = opt.step(theta, state, bowl.gradient)
        assert np.sqrt(state.r[1] / state.r[0]) == pytest.approx(100, rel=1e-4)
        assert theta[0] == pytest.approx(theta[1], rel=1e-4, abs=1e-6)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_the_order_of_the_divisors_hardly_depends_on_the_cut_and_their_power_does() -> None:
    says("divisors", "(The power depends on the cut below which a curvature counts as zero, the")
    part = load("digits").split(validation=300, seed=0).train
    x, y = torch.from_numpy(part.x[:300]), torch.from_numpy(part.y[:300])
    network = fully_connected((64, 8, 10), seed=1)  # another network than that of the page
    sgd = torch.optim.SGD(network.parameters(), lr=0.5)
    for _ in range(100):
        sgd.zero_grad()
        torch.nn.functional.cross_entropy(network(x), y).backward()
        sgd.step()
    G, curvature, fisher = map(np.asarray, optimizers.network_diagonals(network, x, y, batch=32))
    orders, powers = [], []
    for cut in (1e-10, 1e-6, 1e-4):
        alive = (curvature > cut) & (fisher > 1e-12)
        ranks = [v[alive].argsort().argsort() for v in (G, curvature)]
        orders.append(np.corrcoef(*ranks)[0, 1])
        powers.append(optimizers.scaling_exponent(curvature[alive], G[alive]))
    assert min(orders) > 0.94
    assert max(powers) - min(powers) > 0.02
    assert all(0.5 < power < 0.65 for power in powers)  # "more like the root of the curvature"


# --- a network today --------------------------------------------------------------------------


def curves(name: str, curve: str = "train_loss") -> np.ndarray:
    """Return recorded curves of a method, one row for each seed."""
    found = Record.load(RECORDED / "optimizers-curves.json").curves
    return np.array([found[f"{name}, seed {seed}: {curve}"] for seed in range(5, 10)])


METHODS = [
    "SGD",
    "Momentum",
    "Nesterov",
    "AdaGrad",
    "AdaDelta",
    "RMSProp",
    "Adam",
    "AdamW",
    "Lion",
    "Muon",
]


def test_the_learning_curves_are_described_as_they_are() -> None:
    says("today", "so most neighbors cannot be ordered")
    says("today", "The order after one epoch differs from that after ten.")
    says("today", "SGD and AdaGrad end highest. Muon and Lion begin slowest, and Muon ends among")
    means = {name: curves(name).mean(axis=0) for name in METHODS}
    first = sorted(METHODS, key=lambda name: means[name][0])
    last = sorted(METHODS, key=lambda name: means[name][-1])
    assert first != last
    assert set(first[-2:]) == {"Muon", "Lion"}
    assert set(last[-2:]) == {"SGD", "AdaGrad"}
    assert set(last[:3]) == {"Muon", "Momentum", "Nesterov"}
    wrong = [curves(name, "validation_error")[:, -1] for name in METHODS]
    wrong.sort(key=np.mean)
    overlap = [a.min() <= b.max() and b.min() <= a.max() for a, b in combinations(wrong, 2)]
    assert np.mean(overlap) > 0.5
    says("today", "an error of 5 % has a standard deviation of 1.3 %")
    assert 100 * math.sqrt(0.05 * 0.95 / 300) == pytest.approx(1.3, abs=0.05)


def test_the_four_rates_are_recognized_by_what_the_page_says() -> None:
    says("today", "A stays at the dotted line. B falls slowly and steadily. C falls fast. D has")
    A, B, C, D = (curves(name) for name in ("SGD at 3", "SGD at 0.03", "SGD", "SGD at 1"))
    assert np.all(np.abs(A.mean(axis=0) - math.log(10)) < 0.1)
    assert np.all(np.diff(B, axis=1) < 0)
    assert np.diff(np.log(D.mean(axis=0))).max() > 2 * np.diff(np.log(C.mean(axis=0))).max()
    assert np.mean(D[:, :5].mean(axis=0) > C[:, :5].mean(axis=0)) > 0.5
    assert D[:, -1].mean() < C[:, -1].mean()


def test_no_acceleration_by_nesterov_is_seen_on_the_digits() -> None:
    says("momentum", "Nesterov momentum and momentum end within each other's range of seeds")
    ends = [curves(name)[:, -1] for name in ("Momentum", "Nesterov")]
    for one, other in (ends, ends[::-1]):
        assert other.min() < one.mean() < other.max()


def test_the_best_rates_lie_inside_their_grids() -> None:
    says("today", "until the best one is inside")
    kept = Record.load(RECORDED / "optimizers-rates.json").curves
    for name in METHODS:
        keys = [key.split(", ") for key in kept if key.startswith(f"{name}, ")]
        grid = sorted({key[1] for key in keys}, key=float)
        last = [np.mean([kept[f"{name}, {lr}, {s}: train_loss"][-1] for s in range(5)])
                for lr in grid]  # fmt: skip
        assert 0 < np.argmin(last) < len(grid) - 1, name


def test_a_longer_cosine_is_larger_at_every_step_after_the_first() -> None:
    says("today", "the longer run has a larger rate at every step after the first")
    short, long = CosineDecay(0.1, tau=100), CosineDecay(0.1, tau=200)
    assert short(0) == long(0)
    assert all(long(k) > short(k) for k in range(1, 101))


# --- Newton -----------------------------------------------------------------------------------


def test_the_worked_examples_of_newton_are_right() -> None:
    says("newton", r"the path is $(4,2)$, $(2,1)$, $(1,\frac12)$", "$(6, 0)$, $(4.5, 0)$")
    worked, start = problems.quadratic(np.diag([2.0, 8.0])), np.array([8.0, 4.0])
    newton = run(Newton(hessian=worked.hessian, lr=0.5), worked, start, 3)
    np.testing.assert_allclose(newton[1:], [[4, 2], [2, 1], [1, 0.5]])
    np.testing.assert_allclose(run(SGD(1 / 8), worked, start, 2)[1:], [[6, 0], [4.5, 0]])
    says("newton", "the distance shrinks by a factor of 2/3 in every step")
    quartic = Newton(hessian=lambda theta: np.diag(3 * theta**2))
    found = run(quartic, lambda theta: theta**3, np.array([3.0]), 2).ravel()
    assert found == pytest.approx([3, 2, 4 / 3])
    says("newton", "2.6 petabytes in single precision")
    assert pytest.approx(2.6e15, rel=0.01) == 4 * 25.6e6**2


def test_damping_gives_descent_for_every_gradient_exactly_beyond_the_smallest_eigenvalue() -> None:
    says("newton", r"if and only if $\mu>-\lambda_{min}$", r"for $\mu=0.9$ it is ten times as long")
    H = np.diag([3.0, -1.0])
    angles = np.linspace(0, np.pi, 721)
    gradients = np.column_stack([np.cos(angles), np.sin(angles)])
    for mu, descends in ((0.0, False), (0.5, False), (0.99, False), (1.01, True), (9.0, True)):
        steps = -np.linalg.solve(H + mu * np.eye(2), gradients.T).T
        assert bool((np.sum(steps * gradients, axis=1) < 0).all()) is descends
    assert pytest.approx(10) == (1 / (-1 + 0.9)) / (1 / -1)


def test_a_line_search_accepts_full_steps_near_the_minimum() -> None:
    says("newton", "Near the minimum it accepts η = 1, and the order remains 2.")
    x, y = quadratic.threes_and_eights()
    loss = quadratic.logistic_regression(x, y, penalty=0.01)
    names: dict[str, Any] = {"np": np, "logistic": loss, "run": run, "Newton": Newton}
    exec(cell("newton", "def downhill"), names)
    error = np.linalg.norm(names["halved"] - loss.minimum, axis=1)
    [last] = [k for k in range(12) if error[k] > 1e-5 > error[k + 1]]
    order = math.log(error[last] / error[last - 1]) / math.log(error[last - 1] / error[last - 2])
    assert order == pytest.approx(2, abs=0.3)
    full = Newton(hessian=loss.hessian)
    one = run(full, loss.gradient, names["halved"][last], 1)[-1]
    np.testing.assert_allclose(one, names["halved"][last + 1], atol=1e-12)


def test_a_preconditioned_step_is_never_uphill_and_momentum_can_be() -> None:
    says("newton", "Momentum and Adam step along a sum of *old* gradients and can.")
    rng = np.random.default_rng(0)
    for _ in range(20):
        P, g = rng.normal(size=(3, 3)), rng.normal(size=3)
        step = optimizers.preconditioned_descent(lambda theta, g=g: g, P, np.zeros(3), 0.1, 1)[-1]
        assert step @ g == pytest.approx(-0.1 * np.sum((P.T @ g) ** 2))
    valley = problems.valley(0.05)
    for opt in (Momentum(0.3, 0.9), Adam(0.05)):
        found = run(opt, valley, np.ones(2), 60)
        moves = zip(found, np.diff(found, axis=0), strict=False)
        assert any(step @ valley.gradient(theta) > 0 for theta, step in moves)


# --- the race ---------------------------------------------------------------------------------


def test_the_table_by_hand_is_what_the_methods_do() -> None:
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
    page = (ROOT / "book" / "optimizers" / "race.md").read_text("utf-8")
    table = page.split("| method | θ after 1, 2, 3 steps |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    values = {row[0]: row[1].replace("−", "-").replace("¼", "0.25") for row in rows}
    assert set(values) == set(methods)
    for name, opt in methods.items():
        stated = [float(value) for value in values[name].split(", ")]
        assert path(opt, start=8.0)[1:] == pytest.approx(stated, abs=0.006), name


def test_no_method_wins_on_every_surface() -> None:
    says("race", "Does one method have the lowest loss on all three surfaces?")
    names: dict[str, Any] = {name: getattr(optimizers, name) for name in optimizers.__all__}
    names |= {"np": np, "problems": problems}
    exec(cell("race", "SURFACES"), names)
    exec(cell("race", "print"), names)
    assert len(set(names["winners"].values())) > 1
    assert len(set(names["adam"])) > 1


def test_newton_is_described_as_it_is() -> None:
    says("race", "minimum of the valley in one step and that of Rosenbrock's function in six")
    for problem, steps, start in (
        (problems.valley(0.05), 1, (0.6, 1.0)),
        (problems.rosenbrock(), 6, (-1.2, 1.0)),
    ):
        ends = run(Newton(hessian=problem.hessian), problem, np.array(start), steps)
        far = np.linalg.norm(ends - problem.minimum, axis=1) > 1e-8
        assert far.tolist() == [True] * steps + [False]
    says("race", "it steps to the saddle point and stays there")
    saddle = problems.saddle()
    ends = run(Newton(hessian=saddle.hessian), saddle, np.array([1.0, 0.02]), 2)
    np.testing.assert_allclose(ends[1:], 0)
    says("race", "it ends at (", "a {ref}`saddle point <L1-32>`")
    beale = problems.beale()
    end = run(Newton(hessian=beale.hessian), beale, np.array([1.0, 1.5]), 100)[-1]
    values = np.linalg.eigvalsh(beale.hessian(end))
    assert values[0] < 0 < values[1]
    assert np.linalg.norm(beale.gradient(end)) < 1e-6


def test_each_method_shows_its_update() -> None:
    raw = " ".join(p.read_text("utf-8") for p in (ROOT / "book" / "optimizers").glob("*.md"))
    shown = set(re.findall(r":pyobject: (\w+)\.update", raw))
    assert shown >= {"Momentum", "AdaGrad", "RMSProp", "AdaDelta", "Adam"}
    assert not shown & {"Lion"}  # an exercise asks for it
