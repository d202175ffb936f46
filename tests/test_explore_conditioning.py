"""The figures on the saddle and on the uphill step compute what optdl computes."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, brentq
from test_explore import OpenFigure, ask, set_state

from optdl import conditioning, problems
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


def test_the_path_is_gradient_descent_until_it_has_left(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    for lr, d, side in itertools.product([0.05, 0.3, 1.0, 1.5], [1.0, 0.037, 1e-5, 1e-12], [1, -1]):
        set_state(page, "saddle", x=-0.8, d=d, lr=lr, side=side)
        path = np.array(ask(page, "saddle", "fig.path()"))
        expected = run(SGD(lr), problems.saddle(), np.array([-0.8, side * d]), len(path) - 1)
        np.testing.assert_allclose(path, expected, rtol=1e-6, atol=1e-15)
        assert np.all(np.abs(path[:-1, 1]) < 1)
        assert abs(path[-1, 1]) >= 1
        steps = max(0, int(np.ceil(np.log(1 / d) / np.log1p(lr) - 1e-9)))
        assert len(path) - 1 == steps
        said = ask(page, "saddle", "fig.sentence()")
        assert f"need {steps} steps until" in said
        assert f"rounded up, gives {steps}." in said


def test_a_start_ten_times_nearer_takes_a_constant_number_of_steps_more(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("saddle")
    for lr in (0.1, 0.7):
        more = np.log(10) / np.log1p(lr)
        times = ask(page, "saddle", f"[3, 4, 5].map(k => fig.escape(10 ** -k, {lr}))")
        np.testing.assert_allclose(np.diff(times), more, rtol=1e-9)
        set_state(page, "saddle", lr=lr)
        assert f"takes {more:.1f} steps more" in ask(page, "saddle", "fig.sentence()")


def test_the_norm_of_the_gradient_falls_and_then_grows(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    set_state(page, "saddle", x=1.2, d=1e-6, lr=0.4, side=1)
    path = np.array(ask(page, "saddle", "fig.path()"))
    norms = np.linalg.norm([problems.saddle().gradient(p) for p in path], axis=1)
    closed = ask(page, "saddle", "fig.path().map((p, t) => fig.norm([1.2, 1e-6], 0.4, t))")
    np.testing.assert_allclose(closed, norms, rtol=1e-6)
    assert f"after {norms.argmin()} steps" in ask(page, "saddle", "fig.sentence()")


def test_a_start_on_the_axis_never_leaves(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    page.get_by_label("exactly on it").check(force=True)
    path = np.array(ask(page, "saddle", "fig.path()"))
    assert np.all(path[:, 1] == 0)
    assert np.all(np.diff(np.abs(path[:, 0])) < 0)
    assert "measure zero" in ask(page, "saddle", "fig.sentence()")


def test_the_start_moves_by_keyboard_and_by_mouse(open_figure: OpenFigure) -> None:
    page = open_figure("saddle")
    start = page.get_by_role("slider", name="Start", exact=True)
    start.press("ArrowLeft")
    assert ask(page, "saddle", "[fig.state.x, fig.state.d]") == [0.95, 0.05]
    start.press("ArrowUp")
    assert ask(page, "saddle", "fig.state.d") == pytest.approx(0.074)
    for _ in range(3):
        start.press("ArrowDown")
    assert ask(page, "saddle", "fig.state.side") == 0
    assert "measure zero" in ask(page, "saddle", "fig.sentence()")
    start.press("ArrowDown")
    assert ask(page, "saddle", "fig.state.side") == -1
    drag(page, "Start", (-20, -120))
    assert ask(page, "saddle", "fig.state.side") == 1
    assert ask(page, "saddle", "fig.state.d") > 0.2
    drag(page, "Distance of the start, as 1/d", (80, 0))
    nearer = ask(page, "saddle", "fig.state.d")
    assert nearer < 0.01
    page.get_by_role("slider", name="Distance of the start, as 1/d").press("ArrowRight")
    assert ask(page, "saddle", "fig.state.d") < nearer


# --- along one step ---


def bowl(p: np.ndarray, c: float) -> float:
    """Return J of the figure."""
    x, y = p
    return float((x**2 + 5 * y**2) / 2 + c * (x**4 + y**4) / 4)


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
    for p, c in (([1.5, 0.4], 0.0), ([1.5, 0.4], 0.3), ([-2, 1.3], 1.0), ([0.05, 0], 0.5)):
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
    at, c = np.array([1.55, 0.4]), 0.3
    g = np.array([1.55 + c * 1.55**3, 5 * 0.4 + c * 0.4**3])
    page.get_by_role("button", name="Go on from there").press("Enter")
    np.testing.assert_allclose(ask(page, "uphill", "fig.point()"), at - model["best"] * g)
    drag(page, "Point θ", (-60, 30))
    assert ask(page, "uphill", "fig.point()")[0] < 0.9
    before = ask(page, "uphill", "fig.state.lr")
    drag(page, "Rate on the curve", (60, 0))
    assert ask(page, "uphill", "fig.state.lr") > before + 0.2
