"""The figures with a task compute what optdl computes, and say when the task is solved."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mulberry import normals, uniforms
from test_explore import OpenFigure, ask, set_state

from optdl import conditioning, erm, problems, quadratic
from optdl.optimizers import SGD, CosineDecay, Momentum, Warmup, run
from optdl.records import Record

pytestmark = pytest.mark.xdist_group("site")

RECORDED = Path(__file__).resolve().parents[2] / "experiments/results/recorded"

TASKS: dict[str, tuple[dict[str, Any], str, str]] = {
    "descent": ({"lr": 2.0, "momentum": 0.48}, "Momentum", "ArrowRight"),
    "line-search": (
        {"start": [0.1, 0.8], "b": 0.2},
        "Start of the line search",
        "Shift+ArrowRight",
    ),
    "sharpness": ({"lr": 0.2}, "Learning rate η", "ArrowRight"),
    "batch-size": ({"n": 1000, "scale": 319}, "Minibatch size on the curve", "Shift+ArrowRight"),
    "centering": ({"shift": 3.3, "angle": 0.9}, "Distance of the mean from 0", "ArrowRight"),
    "uphill": ({"x": 0.6, "y": 0.0}, "Point θ", "Shift+ArrowLeft"),
    "saddle": ({"d": 2.65e-6}, "Distance d from the line a = −b", "ArrowLeft"),
    "taylor": ({"w": 0.95}, "Center ŵ", "ArrowRight"),
    "basins": ({"start": [2.4, -0.9]}, "Start of gradient descent", "Shift+ArrowUp"),
    "clipping": ({"c": 3.95}, "Threshold c", "ArrowLeft"),
    "capacity": ({"degree": 3}, "Capacity: degree", "ArrowRight"),
    "needle": ({"phi": 29.0}, "Direction φ", "ArrowRight"),
    "signal": ({"factor": 1.1}, "Weight scale √n · σ", "ArrowRight"),
    "quadratic-bowl": ({"lr": 1.81}, "Learning rate η", "ArrowRight"),
    "schedule": ({"lr": 0.6, "warmup": 2, "fall": "cosine"}, "Steps of warm-up", "ArrowRight"),
    "averaging": ({"lr": 0.0082}, "Learning rate η", "ArrowLeft"),
    "running-mean": ({"rho": 0.82, "moves": True}, "Weight ρ of the old average", "ArrowRight"),
    "batch-of-two": ({"x": 0.95}, "Example in the minibatch of 2", "ArrowRight"),
    "momentum-plane": ({"x": 3.06, "alpha": 0.6}, "Setting of momentum", "ArrowDown"),
    "stopping": ({"patience": 6}, "Patience, in epochs", "ArrowRight"),
    "eigendirections": ({"w": [0.9, 0.28], "turn": 0}, "Weights w", "ArrowUp"),
    "optimizer-race": ({"angle": 40, "lr-Adam": 0.1}, "Rotation of the valley", "ArrowRight"),
    "subnetworks": ({"p": 0.15}, "Probability p of dropping", "ArrowLeft"),
    "bnp-cloud": ({"s1": 0.1, "s2": 0.1, "r": 0.05}, "Correlation r", "ArrowLeft"),
    "gain": ({"inputs": 1.4}, "Mean of each input", "ArrowRight"),
}
"""Of each figure: a state next to a solution, and the control and the key that lead there."""


@pytest.mark.parametrize("name", TASKS)
def test_the_sentence_says_when_the_task_is_solved_by_keyboard(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(name)
    assert "✓" not in ask(page, name, "fig.sentence()")
    state, control, key = TASKS[name]
    set_state(page, name, **state)
    assert "✓" not in ask(page, name, "fig.sentence()")
    assert page.locator(".ex-reached").count() == 0
    page.get_by_role("slider", name=control, exact=True).press(key)
    assert ask(page, name, "fig.sentence()").startswith("✓ Task")
    assert page.locator(".ex-reached").count() == 1


def test_the_bowl_has_a_second_task(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'limit'")
    reached = {}
    for lr in (quadratic.optimal_step(np.array([0.1, 1.0])), 1.98, 1.99, 2.0):
        set_state(page, "quadratic-bowl", lr=lr)
        reached[lr] = "✓" in ask(page, "quadratic-bowl", "fig.sentence()")
    assert [lr for lr, solved in reached.items() if solved] == [1.99]


def test_the_minibatches_have_a_second_task(open_figure: OpenFigure) -> None:
    page = open_figure("batch-size")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'error'")
    reached = {}
    for n in (1180, 1200, 1220, 1600):  # with a noise scale of 300: half as long from 1200 on
        set_state(page, "batch-size", n=n, scale=300)
        reached[n] = "✓" in ask(page, "batch-size", "fig.sentence()")
    assert [n for n, solved in reached.items() if solved] == [1200, 1220]


def test_the_running_mean_has_a_task_of_single_examples(open_figure: OpenFigure) -> None:
    page = open_figure("running-mean")
    set_state(page, "running-mean", doublings=0, rho=0.97)
    assert "✓" not in ask(page, "running-mean", "fig.sentence()")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'memory'")
    reached = []
    for doublings in (0, 1, 3):
        for rho in np.round(np.arange(0.8, 1, 0.01), 2):
            set_state(page, "running-mean", doublings=doublings, rho=rho)
            worth = 2**doublings * (1 + rho) / (1 - rho)  # one over its variance
            said = ask(page, "running-mean", "fig.sentence()")
            assert f"the mean of {worth:.0f} examples" in said
            if said.startswith("✓ Task solved"):
                reached.append((doublings, rho))
    assert reached == [(0, 0.97)]


def test_the_bowl_has_a_third_task(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'digits'")
    reached = {}
    for kappa in (10, 19, 20, 21, 50):
        best = quadratic.optimal_step(np.array([1 / kappa, 1.0]))
        for lr in (best, best - 0.05):
            set_state(page, "quadratic-bowl", kappa=kappa, lr=lr)
            reached[kappa, lr == best] = "✓" in ask(page, "quadratic-bowl", "fig.sentence()")
    assert [state for state, solved in reached.items() if solved] == [(20, True)]
    assert conditioning.iterations_needed(20, 0.1) == 2 * conditioning.iterations_needed(10, 0.1)


def test_the_minibatches_have_a_third_task(open_figure: OpenFigure) -> None:
    page = open_figure("batch-size")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'norm'")
    reached = {}
    for scale in (30, 39.8, 50):  # with n = 10 it is a fifth for a noise scale of 40
        set_state(page, "batch-size", n=10, scale=scale)
        gradients = np.array(ask(page, "batch-size", f"fig.minibatches(10, {scale})"))
        fraction = 1 / np.mean(np.sum(gradients**2, axis=1))
        reached[scale] = (
            "✓" in ask(page, "batch-size", "fig.sentence()"),
            abs(fraction - 0.2) < 0.02,
        )
    assert reached == {30: (False, False), 39.8: (True, True), 50: (False, False)}


def test_the_curve_of_minima_has_a_second_task(open_figure: OpenFigure) -> None:
    page = open_figure("sharpness")
    page.evaluate("document.querySelector('.explore-stage').dataset.task = 'flattest'")
    reached = {}
    for start in ([2.1, 0.02], [1.6, 0.9], [0.8, 0.6], [0.6, 0.6]):
        set_state(page, "sharpness", start=start)
        a, b = ask(page, "sharpness", "fig.path().at(-1)")
        solved = "✓" in ask(page, "sharpness", "fig.sentence()")
        reached[tuple(start)] = solved, 2 * (a * a + b * b) < 4.1
    assert [solved for solved, _ in reached.values()] == [False, False, True, True]
    assert all(solved == flat for solved, flat in reached.values())


# --- early stopping ---


def test_early_stopping_is_that_of_optdl_on_the_recorded_run(open_figure: OpenFigure) -> None:
    page = open_figure("stopping")
    kept = Record.load(RECORDED / "erm-without-halt.json").curves
    shown = ask(page, "stopping", "fig.curves")
    validation = kept["seed 0: validation_error"]
    np.testing.assert_allclose(np.array(shown["VALIDATION"]) / 500, validation)
    np.testing.assert_allclose(np.array(shown["TRAINING"]) / 500, kept["seed 0: train_error"])
    np.testing.assert_allclose(shown["NORM"], kept["seed 0: batch_gradient_norm"], atol=0.0051)
    for patience in range(1, 101):
        best, halt = erm.early_stopping(validation, patience)
        assert ask(page, "stopping", f"fig.stop({patience})") == {"best": best, "halt": halt}
    set_state(page, "stopping", patience=3)
    best, halt = erm.early_stopping(validation, 3)
    said = ask(page, "stopping", "fig.sentence()")
    assert f"after epoch {halt} and returns to epoch {best}" in said
    assert f"{100 * validation[best]:.1f} %" in said
    assert f"all 300 epochs is {100 * min(validation):.1f} %" in said


# --- the two terms of a loss ---


@pytest.mark.parametrize(("w", "steep", "turn"), [((1.1, 0.9), 9, -25), ((-0.4, 1.2), 3, 70)])
def test_the_terms_are_those_of_the_eigenbasis(
    open_figure: OpenFigure, w: tuple[float, float], steep: int, turn: int
) -> None:
    page = open_figure("eigendirections")
    set_state(page, "eigendirections", w=w, steep=steep, turn=turn)
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    R = np.array([[c, -s], [s, c]])
    H = R @ np.diag([1.0, steep]) @ R.T
    eigenvalues, vectors = quadratic.eigenbasis(H)
    alpha = vectors.T @ w
    shown = ask(page, "eigendirections", "fig.split()")
    parts = [shown["flat"], shown["steep"]]
    assert [abs(part["alpha"]) for part in parts] == pytest.approx(np.abs(alpha))
    assert [part["term"] for part in parts] == pytest.approx(eigenvalues * alpha**2 / 2)
    assert shown["loss"] == pytest.approx(problems.quadratic(H).value(np.array(w)))


# --- the long valley of the front page ---


@pytest.mark.parametrize(
    ("start", "lr", "alpha"),
    [((-2.6, 0.75), 1.8, 0.0), ((-1.0, 0.4), 2.2, 0.6), ((0.5, -0.9), 3.0, 0.3)],
)
def test_the_valley_shows_the_path_of_momentum(
    open_figure: OpenFigure, start: tuple[float, float], lr: float, alpha: float
) -> None:
    page = open_figure("descent")
    set_state(page, "descent", start=start, lr=lr, momentum=alpha)
    shown = np.array(ask(page, "descent", "fig.path()"))
    valley = problems.quadratic(np.diag([0.05, 1.0]))
    path = run(Momentum(lr, alpha), valley, np.array(start), len(shown) - 1)
    np.testing.assert_allclose(shown, path, rtol=1e-9, atol=1e-9)
    outside = np.flatnonzero(np.linalg.norm(path, axis=1) > 0.1)
    said = ask(page, "descent", "fig.sentence()")
    if lr > 2 * (1 + alpha):
        assert "diverges" in said
    else:
        assert f"in {outside[-1] + 1} steps" in said


def test_no_learning_rate_alone_solves_the_task_of_the_valley(open_figure: OpenFigure) -> None:
    page = open_figure("descent")
    valley, start = problems.quadratic(np.diag([0.05, 1.0])), np.array([-2.0, 0.0])
    for lr in np.arange(0.05, 2.0, 0.05):
        path = run(SGD(lr), valley, start, 12)
        set_state(page, "descent", start=start.tolist(), lr=lr)
        assert np.linalg.norm(path[-1]) > 0.1
        assert "✓" not in ask(page, "descent", "fig.sentence()")


# --- exact line search ---


@pytest.mark.parametrize("start", [(0.5, 0.8), (-0.3, -0.2), (0.16, 0.8)])
@pytest.mark.parametrize("b", [0.05, 0.2, 0.9])
def test_the_line_search_is_that_of_optdl_and_turns_by_right_angles(
    open_figure: OpenFigure, start: tuple[float, float], b: float
) -> None:
    page = open_figure("line-search")
    set_state(page, "line-search", start=start, b=b)
    H = np.diag([1.0, b])
    path = quadratic.exact_line_search(H, np.array(start), 12)
    np.testing.assert_allclose(ask(page, "line-search", "fig.path()"), path, atol=1e-12)
    angle = ask(page, "line-search", f"fig.angle(fig.path()[0], fig.path()[1], {b})")
    assert angle == pytest.approx(90)
    loss = [p @ H @ p for p in path]
    fraction = ask(page, "line-search", "fig.fraction()")
    assert fraction == pytest.approx(loss[1] / loss[0])
    worst = ((1 - b) / (1 + b)) ** 2
    assert fraction <= worst + 1e-12
    said = ask(page, "line-search", "fig.sentence()")
    assert f"each step leaves {worst:.3f}" in said
    assert said.startswith("✓") == (fraction > 0.99 * worst and b < 0.5)


def test_the_dark_level_curve_is_that_of_the_end_of_the_first_step(open_figure: OpenFigure) -> None:
    page = open_figure("line-search")
    drawn = page.locator("svg.ex-plot").first.locator(".ex-level").last.get_attribute("d")
    u, v = np.array([p.split(",") for p in re.findall(r"[\d.]+,[\d.]+", drawn)], float).T
    x, y = -0.75 + 1.5 * (u - 44) / 286, 1 - 1.4 * (v - 24) / 267  # from pixels to data
    end = ask(page, "line-search", "fig.path()[1]")
    level = end[0] ** 2 + 0.2 * end[1] ** 2
    assert len(x) > 100
    np.testing.assert_allclose(x**2 + 0.2 * y**2, level, rtol=0.03)


@pytest.mark.parametrize("state", [{"b": 1.0}, {"start": [0.5, 0.0]}, {"start": [0.0, 0.5]}])
def test_one_step_of_a_line_search_finishes_where_the_gradient_points_to_the_minimum(
    open_figure: OpenFigure, state: dict[str, Any]
) -> None:
    page = open_figure("line-search")
    set_state(page, "line-search", **state)
    assert "one step finishes" in ask(page, "line-search", "fig.sentence()")


# --- the largest eigenvalue against 2/η ---


@pytest.mark.parametrize("lr", [0.1, 0.21, 0.3])
def test_the_run_and_its_largest_eigenvalues_are_those_of_autograd(
    open_figure: OpenFigure, lr: float
) -> None:
    def loss(p: torch.Tensor) -> torch.Tensor:
        return (1 - (p[0] * p[1] * p[0] * p[1])) ** 2 / 4

    page = open_figure("sharpness")
    set_state(page, "sharpness", lr=lr)
    path = np.array(ask(page, "sharpness", "fig.path()"))
    steps = torch.tensor(path)
    for before, after in pairwise(steps):
        gradient = torch.autograd.functional.jacobian(loss, before)
        np.testing.assert_allclose(after, before - lr * gradient, rtol=1e-9)
    hessians = torch.stack([torch.autograd.functional.hessian(loss, p) for p in steps])
    largest = torch.linalg.eigvalsh(hessians)[:, -1].numpy()
    np.testing.assert_allclose(ask(page, "sharpness", "fig.path().map(fig.sharpness)"), largest)
    stayed = "stayed below the threshold" in ask(page, "sharpness", "fig.sentence()")
    assert stayed == bool((largest < 2 / lr).all())


def test_a_run_settles_only_where_the_largest_eigenvalue_is_below_the_threshold(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("sharpness")
    for lr in (0.2, 0.25, 0.3, 0.35):
        set_state(page, "sharpness", lr=lr)
        a, b = ask(page, "sharpness", "fig.path().at(-1)")
        assert a * b == pytest.approx(1, abs=1e-3)
        assert 2 * (a * a + b * b) < 2 / lr


# --- the batch size ---


@pytest.mark.parametrize(("n", "scale"), [(1, 10), (32, 300), (1000, 300), (10_000, 1000)])
def test_the_progress_of_a_minibatch_step_is_measured_and_predicted(
    open_figure: OpenFigure, n: int, scale: int
) -> None:
    page = open_figure("batch-size")
    set_state(page, "batch-size", n=n, scale=scale)
    gradients = np.array(ask(page, "batch-size", f"fig.minibatches({n}, {scale})"))
    noise = erm.standard_error(np.sqrt(scale), n)  # ‖g‖ = 1, hence σ² is the noise scale
    error = np.sqrt(np.mean(np.sum((gradients - [1, 0]) ** 2, axis=1)))
    assert error == pytest.approx(noise, rel=0.06)
    rates = np.geomspace(1e-4, 2, 20_001)  # the decrease of a step on a loss of curvature 1
    decrease = rates * gradients[:, 0].mean() - rates**2 / 2 * np.mean(np.sum(gradients**2, axis=1))
    measured = ask(page, "batch-size", f"fig.measured({n}, {scale})")
    assert measured == pytest.approx(decrease.max() / 0.5, rel=1e-3)
    predicted = ask(page, "batch-size", f"fig.progress({n}, {scale})")
    assert predicted == pytest.approx(1 / (1 + noise**2))
    assert measured == pytest.approx(predicted, abs=0.05)
    said = ask(page, "batch-size", "fig.sentence()")
    assert f"{100 * predicted:.1f} % of the progress" in said
    assert f"noise is {noise:.2f} times" in said


# --- the mean of the inputs ---


@pytest.mark.parametrize(("shift", "angle"), [(0.0, 0.0), (2.0, 0.9), (0.8, 2.094), (4.0, -1.0)])
def test_the_hessian_is_the_second_moment_matrix_of_the_shifted_inputs(
    open_figure: OpenFigure, shift: float, angle: float
) -> None:
    page = open_figure("centering")
    set_state(page, "centering", shift=shift, angle=angle)
    x = np.array(ask(page, "centering", "fig.inputs(fig.mean())"))
    mean, covariance = quadratic.mean_and_covariance(x)
    np.testing.assert_allclose(mean, [shift * np.cos(angle), shift * np.sin(angle)], atol=1e-12)
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), [0.36, 1.0])
    H = quadratic.second_moment(x)
    p, q, r = ask(page, "centering", "fig.moments(fig.mean())")
    np.testing.assert_allclose([[p, r], [r, q]], H)
    kappa = conditioning.condition_number(H)
    assert ask(page, "centering", "fig.kappa(fig.mean())") == pytest.approx(kappa)
    path = np.array(ask(page, "centering", "fig.path()"))
    lr = quadratic.optimal_step(np.linalg.eigvalsh(H))
    expected = run(SGD(lr), problems.quadratic(H), path[0], len(path) - 1)
    np.testing.assert_allclose(path, expected, atol=1e-9)
    said = ask(page, "centering", "fig.sentence()")
    digit = np.ceil(1 / np.log10((kappa + 1) / (kappa - 1)))
    assert f"κ = {kappa:.1f}" in said
    assert f"at most {digit:.0f} step" in said
    assert ("less than the 2.8" in said) == (kappa < 2.7)


def test_a_button_centers_the_inputs(open_figure: OpenFigure) -> None:
    page = open_figure("centering")
    page.get_by_role("button", name="Center the inputs").press("Enter")
    assert ask(page, "centering", "fig.mean()") == [0, 0]
    assert "are centered" in ask(page, "centering", "fig.sentence()")


# --- the quadratic model in one dimension ---


@pytest.mark.parametrize(("w", "lr"), [(0.4, 1.0), (1.0, 0.7), (1.7, 2.0), (-2.5, 0.3)])
def test_tangent_and_model_of_a_step_are_those_of_taylor(
    open_figure: OpenFigure, w: float, lr: float
) -> None:
    page = open_figure("taylor")
    set_state(page, "taylor", w=w, lr=lr)
    at = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    loss = 1 - torch.exp(-(at**2) / 2)
    (slope,) = torch.autograd.grad(loss, at, create_graph=True)
    (bend,) = torch.autograd.grad(slope, at)
    g, H = np.array([slope.item()]), np.array([[bend.item()]])
    names = "[fig.loss, fig.slope, fig.curvature].map(f => f(fig.state.w))"
    expected = [loss.item(), g[0], H[0, 0]]
    np.testing.assert_allclose(ask(page, "taylor", names), expected, atol=1e-12)
    gain = conditioning.step_gain(g, H, lr)
    assert ask(page, "taylor", f"fig.model({w}, {lr})") == pytest.approx(loss.item() + gain)
    end = w - lr * g[0]
    falls = lr * g[0] ** 2, -gain, loss.item() - (1 - np.exp(-(end**2) / 2))
    said = ask(page, "taylor", "fig.sentence()")
    for fall in falls:
        assert f"by {fall:.3f}" in said
    kind = "zero" if abs(H[0, 0]) < 1e-9 else "positive" if H[0, 0] > 0 else "negative"
    assert f"curvature is {kind}" in said


# --- three wells ---


def test_each_start_ends_in_the_basin_that_optdl_finds(open_figure: OpenFigure) -> None:
    page, surface = open_figure("basins"), problems.mixture()
    minima = np.array(ask(page, "basins", "fig.minima()"))
    np.testing.assert_allclose([surface.gradient(p) for p in minima], np.zeros((3, 2)), atol=1e-9)
    starts = np.random.default_rng(0).uniform([-3.4, -2.7], [2.8, 2.1], (60, 2))
    for lr in (0.1, 0.6, 0.8):
        expected = conditioning.basins(surface, minima, starts, lr, 400)
        shown = ask(page, "basins", f"{starts.tolist()}.map(p => fig.basin(p, {lr}))")
        np.testing.assert_array_equal(np.where(np.array(shown) < 0, np.nan, shown), expected)
    limits = [2 / np.linalg.eigvalsh(surface.hessian(p))[-1] for p in minima]
    shown = ask(page, "basins", "fig.minima().map(p => fig.limit(p))")
    np.testing.assert_allclose(shown, limits, rtol=1e-6)


def test_a_start_is_colored_by_its_minimum_and_may_not_settle(open_figure: OpenFigure) -> None:
    page = open_figure("basins")
    page.get_by_role("checkbox", name="Color each start").press("Space")
    assert page.locator("svg.ex-plot image").count() == 3
    set_state(page, "basins", lr=0.75)
    path = np.array(ask(page, "basins", "fig.path()"))
    expected = run(SGD(0.75), problems.mixture(), path[0], 30)
    np.testing.assert_allclose(path[:31], expected, rtol=1e-6)
    assert "above 2/λmax = 0.70" in ask(page, "basins", "fig.sentence()")


# --- a cliff ---


@pytest.mark.parametrize("limit", [0.1, 0.5, 3.0, np.inf])
def test_the_path_at_the_cliff_is_clipped_by_norm(open_figure: OpenFigure, limit: float) -> None:
    page, cliff, lr = open_figure("clipping"), conditioning.recurrent_cliff(), 0.3
    run_name = "free" if np.isinf(limit) else "clipped"
    if np.isfinite(limit):
        set_state(page, "clipping", c=limit)
    shown = ask(page, "clipping", f"fig.{run_name}()")
    path = np.array(shown["path"])
    gradients = np.array([cliff.gradient(p) for p in path])
    np.testing.assert_allclose(shown["norms"], np.linalg.norm(gradients, axis=1), rtol=1e-6)
    for before, after in pairwise(path):
        g = conditioning.clip_by_norm(cliff.gradient(before), limit)
        np.testing.assert_allclose(after, before - lr * g, rtol=1e-6, atol=1e-9)
    longest = np.linalg.norm(np.diff(path, axis=0), axis=1).max()
    assert shown["longest"] == pytest.approx(longest)
    assert longest <= lr * limit + 1e-12
    assert f"longest step is {longest:.2f}" in ask(page, "clipping", "fig.sentence()")
    outside = (path < [3.9, -3.4]).any(axis=1) | (path > [6.3, -1.2]).any(axis=1)
    assert shown["left"] == (outside.argmax() if outside.any() else -1)
    assert outside.any() == (limit > ask(page, "clipping", "fig.largest()"))


# --- the schedule of a learning rate ---


@pytest.mark.parametrize("fall", ["constant", "cosine"])
@pytest.mark.parametrize(("lr", "warmup"), [(0.2, 0), (0.6, 20), (1.0, 100)])
def test_the_schedule_is_followed_by_sgd(
    open_figure: OpenFigure, lr: float, warmup: int, fall: str
) -> None:
    page = open_figure("schedule")
    set_state(page, "schedule", lr=lr, warmup=warmup, fall=fall)
    after = CosineDecay(lr, tau=300 - warmup) if fall == "cosine" else lr
    plan = Warmup(after, steps=max(warmup, 1))
    if warmup == 0 and fall == "cosine":
        plan = after
    assert ask(page, "schedule", "fig.rates()") == pytest.approx([plan(k) for k in range(300)])
    noise = 0.3 * normals(uniforms(1, 2 * 2 * 40 * 300)).reshape(40, 300, 2)
    losses = []
    for number in range(40):
        draw = iter(noise[number])

        def gradient(p: np.ndarray, draw: Iterator[np.ndarray] = draw) -> np.ndarray:
            return np.array([p[0] + 0.3 * p[0] ** 3, 0.03 * p[1]]) + next(draw)

        path = run(SGD(plan), gradient, np.array([4.0, 3.0]), 300)
        losses.append(path[:, 0] ** 2 / 2 + 0.075 * path[:, 0] ** 4 + 0.015 * path[:, 1] ** 2)
        if number < 2:
            shown = ask(page, "schedule", f"fig.path({number})")
            np.testing.assert_allclose(shown, path, rtol=1e-6, atol=1e-9)
    shown = ask(page, "schedule", "fig.train().mean")
    np.testing.assert_allclose(shown, np.mean(losses, axis=0), rtol=1e-6)


def test_a_schedule_that_starts_too_large_diverges(open_figure: OpenFigure) -> None:
    page = open_figure("schedule")
    for lr, diverges in ((0.3, False), (0.36, True)):
        set_state(page, "schedule", lr=lr, warmup=0)
        assert ("diverges at step" in ask(page, "schedule", "fig.sentence()")) == diverges


def test_the_race_has_a_second_task(open_figure: OpenFigure) -> None:
    page = open_figure("optimizer-race")
    set_state(page, "optimizer-race", surface="rosenbrock")
    set_state(page, "optimizer-race", **{"lr-Momentum": 0.002})
    assert "✓" not in ask(page, "optimizer-race", "fig.sentence()")
    set_state(page, "optimizer-race", **{"lr-Momentum": 0.003})
    assert ask(page, "optimizer-race", "fig.sentence()").startswith("✓ Task 2 solved.")
