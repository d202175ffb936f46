"""The figures on saddles, uphill steps and inexact gradients compute what optdl computes."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, brentq
from test_explore import OpenFigure, ask, set_state

from optdl import conditioning
from optdl.optimizers import SGD, run

pytestmark = pytest.mark.xdist_group("site")


def drag(page: Any, name: str, by: tuple[float, float]) -> None:
    """Drag a point with the mouse."""
    box = page.get_by_role("slider", name=name, exact=True).locator(".ex-grip").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + by[0], y + by[1], steps=3)
    page.mouse.up()


# --- a start near a saddle ---


def saddle_start(along: float, distance: float) -> np.ndarray:
    """Return the point at this distance from the line a = −b."""
    return np.array([distance + along, distance - along]) / np.sqrt(2)


@pytest.mark.parametrize("lr", [0.05, 0.3, 0.5])
def test_the_path_is_gradient_descent_until_it_has_left(open_figure: OpenFigure, lr: float) -> None:
    page = open_figure("saddle")
    for d, side in itertools.product([0.5, 0.037, 1e-5, 1e-9], [1, -1]):
        set_state(page, "saddle", along=-0.8, d=d, lr=lr, side=side)
        path = np.array(ask(page, "saddle", "fig.path()"))
        start = saddle_start(-0.8, side * d)
        expected = run(SGD(lr), conditioning.two_weights(), start, len(path) - 1)
        np.testing.assert_allclose(path, expected, rtol=1e-5, atol=1e-12)
        from_line = np.abs(path.sum(axis=1)) / np.sqrt(2)
        assert np.all(from_line[:-1] < 1)
        assert from_line[-1] >= 1
        law = conditioning.escape_steps(d, 1.0, lr, 1.0)
        assert ask(page, "saddle", f"fig.escape({d}, {lr})") == law
        steps, said = len(path) - 1, ask(page, "saddle", "fig.sentence()")
        assert f"need {steps} step" in said
        assert ("as the formula predicts" if steps == law else f"formula predicts {law}.") in said
        assert abs(steps - law) <= 3 / lr  # far from the saddle the growth is another one


def test_a_start_on_the_line_never_leaves(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    page.get_by_role("button", name="Start exactly on the line").press("Enter")
    path = np.array(ask(page, "saddle", "fig.path()"))
    np.testing.assert_array_equal(path[:, 0], -path[:, 1])
    assert np.all(np.diff(np.abs(path[:, 0])) < 0)
    assert "measure zero" in ask(page, "saddle", "fig.sentence()")
    page.get_by_role("slider", name="Distance d from the line a = −b").press("ArrowLeft")
    assert ask(page, "saddle", "fig.state.side") == 1


def test_the_start_moves_by_keyboard_and_by_mouse(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    start = page.get_by_role("slider", name="Start", exact=True)
    seen = []
    for key in ("ArrowUp", "ArrowDown", "ArrowDown", "ArrowDown"):
        start.press(key)
        seen.append(ask(page, "saddle", "fig.state.side * fig.state.d"))
    np.testing.assert_allclose(seen, np.array([0.05, 0, -0.05, -0.1]) / np.sqrt(2), atol=1e-9)
    drag(page, "Start", (20, -120))
    assert ask(page, "saddle", "fig.state.side") == 1
    assert ask(page, "saddle", "fig.state.d") > 0.2


# --- along one step ---


def bowl(p: np.ndarray, c: float) -> float:
    """Return J of the figure."""
    x, y = p
    return float((x**2 + 5 * y**2) / 2 + c * ((x**4 + y**4) / 4 - x**2))


def slope_and_curvature(p: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and Hessian of J, by finite differences."""
    step = 1e-4
    at = lambda q: np.array(  # noqa: E731
        [(bowl(q + e, c) - bowl(q - e, c)) / (2 * step) for e in step * np.eye(2)]
    )
    hessian = np.array([(at(p + e) - at(p - e)) / (2 * step) for e in step * np.eye(2)])
    return at(p), hessian


def test_the_model_of_a_step_is_that_of_optdl(open_figure: OpenFigure) -> None:
    page = open_figure("uphill")
    points = [[1.5, 0.4], [-0.3, 1.1], [0.0, -0.7], [2.0, 0.0]]
    for p, c in itertools.product(points, [0.0, 0.3, 1.0]):
        at = np.array(p)
        g, H = slope_and_curvature(at, c)
        model = ask(page, "uphill", f"fig.model({p}, {c})")
        assert model["bound"] == pytest.approx(conditioning.uphill_step(g, H), rel=1e-6)
        assert model["best"] == pytest.approx(model["bound"] / 2)
        for lr in (0.0, 0.13, 0.8, 2.0):
            three = "[fig.linear, fig.quadratic, fig.actual]"
            values = ask(page, "uphill", f"{three}.map(f => f({p}, {c}, {lr}))")
            J, gain = bowl(at, c), conditioning.step_gain(g, H, lr)
            expected = [J - lr * g @ g, J + gain, bowl(at - lr * g, c)]
            np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6)


def test_j_goes_uphill_where_it_is_back_at_its_value(open_figure: OpenFigure) -> None:
    page = open_figure("uphill")
    for p, c in (([1.5, 0.4], 0.0), ([1.5, 0.4], 0.3), ([-2, 1.3], 1.0), ([0.05, 0], 0.1)):
        at = np.array(p, dtype=float)
        g = approx_fprime(at, lambda q, c=c: bowl(q, c), 1e-7)
        crossing = brentq(lambda lr: bowl(at - lr * g, c) - bowl(at, c), 0.01, 4)  # noqa: B023
        rate = ask(page, "uphill", f"fig.uphill({p}, {c})")
        assert rate == pytest.approx(crossing, rel=1e-4)
        if c == 0:
            assert rate == pytest.approx(ask(page, "uphill", f"fig.model({p}, 0).bound"))


def test_the_bound_lies_between_the_extreme_eigenvalues(open_figure: OpenFigure) -> None:
    page = open_figure("uphill")
    assert ask(page, "uphill", "fig.model([1, 0], 0).bound") == pytest.approx(2 / 1)
    assert ask(page, "uphill", "fig.model([0, 1], 0).bound") == pytest.approx(2 / 5)
    around = "Array.from({length: 100}, (_, k) => fig.model([Math.cos(k), Math.sin(k)], 0).bound)"
    bounds = np.array(ask(page, "uphill", around))
    assert np.all((bounds >= 0.4 - 1e-12) & (bounds <= 2 + 1e-12))


def test_the_sentence_says_whether_j_falls_or_rises(open_figure: OpenFigure) -> None:
    page = open_figure("uphill")
    set_state(page, "uphill", c=0)
    bound = ask(page, "uphill", "fig.model(fig.point(), 0).bound")
    for lr, word in ((0.9 * bound, "falls"), (bound, "comes back"), (1.1 * bound, "rises")):
        set_state(page, "uphill", lr=lr)
        said = ask(page, "uphill", "fig.sentence()")
        assert f"J {word}" in said
        before, after = (float(n) for n in re.findall(r"(\d\.\d{3}) (?:before|after)", said))
        np.testing.assert_allclose([before, after], [1.525, bowl_after(lr)], atol=5e-4)
    set_state(page, "uphill", x=0, y=0)
    assert "gradient is zero" in ask(page, "uphill", "fig.sentence()")


def test_where_the_curvature_along_the_gradient_is_negative_no_bound_is_shown(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("uphill")
    at, c = np.array([0.4, 0.0]), 0.9
    g, H = slope_and_curvature(at, c)
    assert g @ H @ g < 0
    model = ask(page, "uphill", f"fig.model({at.tolist()}, {c})")
    assert model["bound"] == conditioning.uphill_step(g, H) == np.inf
    set_state(page, "uphill", x=0.4, y=0.0, c=c)
    said = ask(page, "uphill", "fig.sentence()")
    assert "the model falls for every η" in said
    crossing = brentq(lambda lr: bowl(at - lr * g, c) - bowl(at, c), 0.1, 8)
    assert f"J itself goes uphill from η = {crossing:.3f}" in said
    assert page.locator("svg.ex-plot path.ex-dot").count() == 1  # the end of the step alone


def bowl_after(lr: float) -> float:
    """Return J after one step from (1.5, 0.4) without fourth powers."""
    p = np.array([1.5, 0.4])
    return bowl(p - lr * np.array([1.0, 5.0]) * p, 0)


def test_the_point_and_the_rate_move_by_keyboard_and_by_mouse(open_figure: OpenFigure) -> None:
    page = open_figure("uphill")
    page.get_by_role("slider", name="Point θ").press("ArrowRight")
    assert ask(page, "uphill", "fig.point()") == [1.55, 0.4]
    page.get_by_role("slider", name="Rate on the curve").press("ArrowRight")
    assert ask(page, "uphill", "fig.state.lr") == pytest.approx(0.31)
    page.get_by_role("button", name="Take the best step").press("Enter")
    model = ask(page, "uphill", "fig.model(fig.point(), fig.state.c)")
    assert ask(page, "uphill", "fig.state.lr") == pytest.approx(model["best"])
    at, c = np.array([1.55, 0.4]), 0.8
    g = np.array([1.55 + c * (1.55**3 - 2 * 1.55), 5 * 0.4 + c * 0.4**3])
    page.get_by_role("button", name="Go on from there").press("Enter")
    np.testing.assert_allclose(ask(page, "uphill", "fig.point()"), at - model["best"] * g)
    drag(page, "Point θ", (-60, 30))
    assert ask(page, "uphill", "fig.point()")[0] < 0.9
    before = ask(page, "uphill", "fig.state.lr")
    drag(page, "Rate on the curve", (60, 0))
    assert ask(page, "uphill", "fig.state.lr") > before + 0.2


# --- inexact gradients ---


@pytest.mark.parametrize(
    ("lr", "bias", "sigma"), [(0.2, [0.3, 0.3], 0.5), (0.85, [-0.7, 0.1], 1.0), (0.05, [0, 0], 0)]
)
def test_the_run_with_inexact_gradients_ends_where_the_page_predicts(
    open_figure: OpenFigure, lr: float, bias: list[float], sigma: float
) -> None:
    page, curvatures = open_figure("inexact"), np.array([0.3, 2.0])
    set_state(page, "inexact", lr=lr, bias=bias, sigma=sigma)
    errors = np.array(ask(page, "inexact", "fig.errors()"))
    uncertainty = 4 * sigma / np.sqrt(len(errors))
    np.testing.assert_allclose(errors.mean(axis=0), bias, atol=uncertainty)
    np.testing.assert_allclose(errors.std(axis=0), sigma, atol=uncertainty)
    draw = iter(errors)
    expected = run(SGD(lr), lambda w: curvatures * w + next(draw), np.array([-3.4, 1.6]), 400)
    np.testing.assert_allclose(ask(page, "inexact", "fig.path()"), expected, atol=1e-9)
    limit = conditioning.limit_point(np.diag(curvatures), np.zeros(2), np.array(bias))
    np.testing.assert_allclose(ask(page, "inexact", f"fig.limit({bias})"), limit)
    variance = conditioning.stationary_variance(curvatures, lr, sigma)
    np.testing.assert_allclose(ask(page, "inexact", f"fig.variance({lr}, {sigma})"), variance)
    parts = ask(page, "inexact", f"fig.parts({lr}, {bias}, {sigma})")
    np.testing.assert_allclose(parts, [curvatures @ limit**2 / 2, curvatures @ variance / 2])


def test_the_learning_rate_at_which_bias_and_noise_leave_the_same_loss_solves_the_task(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("inexact")
    curvatures, of_bias = np.array([0.3, 2.0]), 0.3**2 / 0.3 + 0.3**2 / 2

    def difference(lr: float) -> float:
        return float(curvatures @ conditioning.stationary_variance(curvatures, lr, 0.5)) - of_bias

    equal = brentq(difference, 0.1, 0.9)
    assert "✓" not in ask(page, "inexact", "fig.sentence()")
    set_state(page, "inexact", lr=equal - 0.03)
    assert "✓" not in ask(page, "inexact", "fig.sentence()")
    slider = page.get_by_role("slider", name="Learning rate η", exact=True)
    for _ in range(3):
        slider.press("ArrowRight")
    assert ask(page, "inexact", "fig.sentence()").startswith("✓ Task solved: ")


def test_the_bias_is_dragged_and_no_learning_rate_changes_its_part(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("inexact")
    page.get_by_role("slider", name="Bias: mean of the errors").press("ArrowRight")
    assert ask(page, "inexact", "fig.state.bias") == [0.35, 0.3]
    drag(page, "Bias: mean of the errors", (-60, 0))
    assert ask(page, "inexact", "fig.state.bias")[0] < 0
    bias = ask(page, "inexact", "fig.state.bias")
    parts = [ask(page, "inexact", f"fig.parts({lr}, {bias}, 0.5)") for lr in (0.1, 0.2, 0.4)]
    assert len({part for part, _ in parts}) == 1
    assert parts[0][1] < parts[1][1] < parts[2][1]
