"""The figures on averaging and on the plane of momentum compute what optdl computes."""

import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from mulberry import normals, uniforms
from test_explore import OpenFigure, ask, set_state

from optdl import optimizers
from optdl.optimizers import SGD, Momentum, PowerDecay, run

pytestmark = pytest.mark.xdist_group("site")

STEPS, RUNS, START = 1000, 200, 5.0


# --- averaging ---


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    """Return the noise of the figure, a row for each run."""
    return normals(uniforms(1, 2 * RUNS * STEPS)).reshape(RUNS, STEPS)


def iterates(lr: Any, n: int, noise: np.ndarray) -> np.ndarray:
    """Return the iterates of all runs by optdl, a column for each."""
    rows = iter(noise.T / math.sqrt(n))
    return np.asarray(run(SGD(lr), lambda theta: theta + next(rows), np.full(RUNS, START), STEPS))


@pytest.mark.parametrize(("lr", "n"), [(0.006, 1), (0.5, 1), (1.9, 1), (0.5, 16)])
def test_the_errors_of_the_runs_are_those_of_optdl(
    open_figure: OpenFigure, noise: np.ndarray, lr: float, n: int
) -> None:
    page = open_figure("averaging")
    set_state(page, "averaging", lr=lr, n=n)
    shown = {name: np.array(v) for name, v in ask(page, "averaging", "fig.errors()").items()}
    path = iterates(lr, n, noise)
    np.testing.assert_allclose(ask(page, "averaging", "fig.path()"), path[:, 0], atol=1e-9)
    means = {k: path[k // 2 + 1 : k + 1].mean(axis=0) for k in (1, 2, 7, 100, STEPS)}
    for k, mean in means.items():
        assert shown["average"][k] == pytest.approx(np.mean(mean**2))
    falling = iterates(PowerDecay(lr, power=1.0, tau=20), n, noise)
    for name, paths in (("constant", path), ("falling", falling)):
        np.testing.assert_allclose(shown[name], np.mean(paths**2, axis=1), rtol=1e-9)


@pytest.mark.parametrize(("lr", "n"), [(0.05, 1), (0.5, 1), (1.5, 1), (0.5, 16)])
def test_the_floor_and_the_variance_of_the_average_are_those_of_the_closed_forms(
    open_figure: OpenFigure, lr: float, n: int
) -> None:
    page = open_figure("averaging")
    set_state(page, "averaging", lr=lr, n=n)
    shown = ask(page, "averaging", "fig.errors()")
    floor = optimizers.noise_floor(lr, 1.0, 1 / math.sqrt(n))
    assert ask(page, "averaging", "fig.floor()") == pytest.approx(floor)
    deviation = floor * math.sqrt(2 / RUNS)  # of a mean of squares of normal numbers
    assert shown["constant"][STEPS] == pytest.approx(floor, abs=4 * deviation)
    variance = optimizers.averaged_variance(lr, 1.0, 1 / math.sqrt(n), STEPS // 2)
    assert variance == pytest.approx(2 / (n * STEPS), rel=0.05)
    assert shown["average"][STEPS] == pytest.approx(variance, rel=4 * math.sqrt(2 / RUNS))
    said = ask(page, "averaging", "fig.sentence()")
    assert f"(floor {floor:.4f})" in said
    assert f"{shown['constant'][STEPS]:.4f} with the constant rate" in said
    assert f"{shown['average'][STEPS]:.4f} for the average" in said


def test_a_small_constant_rate_has_not_forgotten_the_start(open_figure: OpenFigure) -> None:
    page = open_figure("averaging")
    set_state(page, "averaging", lr=0.002)
    assert "the start is not forgotten yet" in ask(page, "averaging", "fig.sentence()")


def test_the_average_allows_far_more_rates_than_a_constant_rate(open_figure: OpenFigure) -> None:
    page = open_figure("averaging")
    good: dict[str, list[float]] = {"constant": [], "average": []}
    for lr in np.geomspace(0.002, 1.95, 41):
        set_state(page, "averaging", lr=lr)
        errors = ask(page, "averaging", "fig.errors()")
        for name, rates in good.items():
            if errors[name][STEPS] < 0.004:
                rates.append(lr)
    assert max(good["constant"]) / min(good["constant"]) < 2
    assert max(good["average"]) / min(good["average"]) > 100


# --- the plane of momentum ---


@pytest.mark.parametrize(("x", "alpha", "kappa"), [(3.06, 0.57, 50.0), (0.3, 0.8, 50), (1, 0, 9)])
def test_the_bowl_has_the_rate_of_its_slowest_direction(
    open_figure: OpenFigure, x: float, alpha: float, kappa: float
) -> None:
    page = open_figure("momentum-plane")
    set_state(page, "momentum-plane", x=x, alpha=alpha, kappa=kappa)
    spectrum = np.geomspace(1 / kappa, 1, 200)
    rate = max(np.abs(np.roots([1, -(1 + alpha - x * e), alpha])).max() for e in spectrum)
    assert ask(page, "momentum-plane", "fig.bowl()") == pytest.approx(rate, abs=1e-6)
    assert f"The bowl has the rate {rate:.3f}" in ask(page, "momentum-plane", "fig.sentence()")
    sides = run(Momentum(x, alpha), lambda w: w * [1 / kappa, 1], np.ones(2), 200)
    distance = np.linalg.norm(sides, axis=1) / math.sqrt(2)
    np.testing.assert_allclose(ask(page, "momentum-plane", "fig.run()"), distance, atol=1e-12)


@pytest.mark.parametrize(("x", "alpha"), [(0.3, 0.8), (0.05, 0.9), (1.0, 0.0), (3.0, 0.6)])
def test_with_noise_the_error_levels_off_where_the_covariance_does(
    open_figure: OpenFigure, x: float, alpha: float
) -> None:
    page = open_figure("momentum-plane")
    set_state(page, "momentum-plane", x=x, alpha=alpha, noise=True)
    M = optimizers.momentum_matrix(x, alpha, 1.0)
    push = x * 0.05 * np.ones((2, 1))
    level = math.sqrt(scipy.linalg.solve_discrete_lyapunov(M, push @ push.T)[0, 0])
    assert ask(page, "momentum-plane", "fig.floor()") == pytest.approx(level)
    measured = ask(page, "momentum-plane", "fig.measured()")
    assert measured == pytest.approx(level, rel=0.15)
    said = ask(page, "momentum-plane", "fig.sentence()")
    numbers = re.search(r"levels off at ([\d.]+) \(.*formula ([\d.]+)\)", said)
    assert [float(v) for v in numbers.groups()] == pytest.approx([measured, level], abs=6e-4)
    assert ("diverges" in said) == (x / (1 - alpha) >= 2)
    rows = iter(normals(uniforms(1, 20_000))[:60])
    noisy = run(Momentum(x, alpha), lambda w: w + 0.05 * next(rows), np.ones(1), 60).ravel()
    np.testing.assert_allclose(ask(page, "momentum-plane", "fig.path()"), noisy, atol=1e-9)
    set_state(page, "momentum-plane", noise=False)
    assert "noise" not in ask(page, "momentum-plane", "fig.sentence()")
