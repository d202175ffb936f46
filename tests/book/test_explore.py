"""The figures to explore compute what optdl computes, and can be used without a mouse."""

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup

from optdl import problems
from optdl.optimizers import (
    SGD,
    AdaDelta,
    AdaGrad,
    Adam,
    Momentum,
    Nesterov,
    Newton,
    RMSProp,
    RMSPropNesterov,
    change_of_variable,
    run,
)
from tools import chapters, pdf, static_figures

pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parents[2]
OpenFigure = Callable[..., Any]


def ask(page: Any, name: str, expression: str) -> Any:
    """Return what a figure answers: an expression in `fig`."""
    return page.evaluate(f"() => {{ const fig = Explore.figures['{name}']; return {expression}; }}")


def set_state(page: Any, name: str, **state: Any) -> None:
    """Set values of a figure, exactly."""
    page.evaluate(f"values => Explore.figures['{name}'].set(values)", state)


# --- all figures ---

FIGURES = static_figures.names()
SHARED_KILOBYTES = 34
PAGE_KILOBYTES = 60


def figures_of_pages() -> dict[str, list[str]]:
    """Return the names of the figures on each page that has some."""
    found = {}
    for path in sorted((ROOT / "book").rglob("*.md")):
        names = re.findall(r"^```\{explore\} ([\w-]+)$", path.read_text("utf-8"), re.MULTILINE)
        if names:
            found[path.relative_to(ROOT / "book").as_posix()] = names
    return found


def test_each_figure_stands_on_a_page_and_on_a_second_one_with_another_task() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "book").rglob("*.md"))
    placed = re.findall(r"^```\{explore\} ([\w-]+)\n(?:(?::task: ([\w-]+))\n)?", text, re.MULTILINE)
    assert sorted({name for name, _ in placed}) == FIGURES
    assert len(placed) == len(set(placed))


@pytest.mark.parametrize("page", figures_of_pages())
def test_the_figures_of_a_page_are_light(page: str) -> None:
    files = ["explore.css", "explore.js", *(f"{name}.js" for name in figures_of_pages()[page])]
    sizes = [(static_figures.FOLDER / name).stat().st_size / 1000 for name in files]
    assert sum(sizes) <= PAGE_KILOBYTES
    assert sum(sizes[:2]) <= SHARED_KILOBYTES


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_still_picture_that_stays_without_javascript(
    open_figure: OpenFigure, name: str
) -> None:
    assert "<svg xmlns" in (static_figures.FOLDER / f"{name}.svg").read_text("utf-8")
    page = open_figure(name, java_script_enabled=False)
    assert page.locator(".explore-stage").count() == 1
    assert page.locator(".ex-live").count() == 0


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fits_its_window_and_every_control_has_a_name(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(name)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    names = "all => all.map(e => (e.labels?.[0] || e).textContent.trim() || e.ariaLabel)"
    assert all(page.eval_on_selector_all("input, button, select", names))
    labels = "all => all.map(e => e.ariaLabel)"
    for label in page.eval_on_selector_all("svg.ex-plot, [role=slider]", labels):
        assert len(label) >= 4
    ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", FIGURES)
def test_each_point_moves_with_the_arrow_keys_and_comes_home(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(name)
    for handle in page.locator("[role=slider]").all():
        before = handle.get_attribute("transform")
        handle.focus()
        page.keyboard.press("Shift+ArrowLeft")
        moved = handle.get_attribute("transform")
        page.keyboard.press("Home")
        assert moved != before
        assert handle.get_attribute("transform") == before


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_what_is_seen_once_the_changes_pause(
    open_figure: OpenFigure, name: str
) -> None:
    """For readers who want no motion, nothing moves by itself."""
    page = open_figure(name, reduced_motion="reduce")
    assert not page.get_by_role("button", name="Play").count()
    sentence = page.locator(".ex-say")
    assert sentence.get_attribute("aria-live") == "polite"
    first = sentence.inner_text()
    assert re.search(r"[.!?]$", first)
    said = ask(page, name, "fig.sentence()")
    assert said == first
    for control in page.locator("input[type=range]").all():
        control.focus()
        page.keyboard.press("Home")
    page.wait_for_function(f"document.querySelector('.ex-say').textContent === "
                           f"Explore.figures['{name}'].sentence()")  # fmt: skip


def test_numbers_are_written_for_readers(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl")
    written = page.evaluate(
        "[[0.25, 2], [-0.25, 2], [-1e-9, 2], [0, 2], [3e5, 2], [-Infinity, 2]]"
        ".map(([x, digits]) => Explore.number(x, digits))"
    )
    assert written == ["0.25", "−0.25", "−1.0 · 10⁻⁹", "0.00", "3.0 · 10⁵", "−∞"]
    assert page.evaluate("Explore.ticksBetween(-0.1, 1)") == [0, 0.5, 1]
    twice = page.evaluate(
        "[7, 7].map((seed) => { const r = Explore.random(seed); return [r(), r()]; })"
    )
    assert twice[0] == twice[1]
    sample = np.array(page.evaluate(
        "(() => { const r = Explore.random(1); return Array.from({ length: 4000 }, r.normal); })()"
    ))  # fmt: skip
    assert abs(sample.mean()) < 0.05
    assert sample.std() == pytest.approx(1, abs=0.05)


# --- the bowl of the chapter on quadratic models ---


def test_the_path_on_the_bowl_is_that_of_gradient_descent(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl")
    for kappa, lr, start in [(10, 1.7, [1.2, 0.85]), (37.5, 0.333, [-0.4, 0.9]), (4, 2.1, [1, 1])]:
        set_state(page, "quadratic-bowl", kappa=kappa, lr=lr, start=start)
        bowl = problems.quadratic(np.diag([1 / kappa, 1.0]))
        expected = run(SGD(lr), bowl, np.array(start, dtype=float), 40)
        np.testing.assert_allclose(ask(page, "quadratic-bowl", "fig.path()"), expected, atol=1e-9)
        assert ("diverges" in ask(page, "quadratic-bowl", "fig.sentence()")) == (lr > 2)


def test_the_button_takes_the_best_learning_rate(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl")
    set_state(page, "quadratic-bowl", kappa=9)
    page.get_by_role("button", name="Take the best learning rate").press("Enter")
    assert ask(page, "quadratic-bowl", "fig.rate()") == pytest.approx(8 / 10)
    assert "best learning rate" in ask(page, "quadratic-bowl", "fig.sentence()")


def test_the_start_is_dragged_with_the_mouse_and_picked_with_a_click(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("quadratic-bowl")
    handle = page.get_by_role("slider", name="Start of gradient descent")
    box = handle.locator(".ex-grip").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    before = np.array(ask(page, "quadratic-bowl", "fig.state.start"))
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] + 40, steps=3)
    page.mouse.up()
    after = np.array(ask(page, "quadratic-bowl", "fig.state.start"))
    assert np.linalg.norm(after - before) > 0.2
    page.mouse.click(middle[0] - 120, middle[1] + 90)
    assert np.linalg.norm(np.array(ask(page, "quadratic-bowl", "fig.state.start")) - after) > 0.2


def test_the_start_is_dragged_with_a_finger(open_figure: OpenFigure) -> None:
    page = open_figure("quadratic-bowl", has_touch=True)
    box = page.get_by_role("slider", name="Start of gradient").locator(".ex-grip").bounding_box()
    before = np.array(ask(page, "quadratic-bowl", "fig.state.start"))
    finger = page.context.new_cdp_session(page)
    for kind, moved in [
        ("touchStart", 0),
        ("touchMove", 20),
        ("touchMove", 60),
        ("touchEnd", None),
    ]:
        points = [] if moved is None else [{"x": box["x"] + 7 - moved, "y": box["y"] + 7 + moved}]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.evaluate("() => new Promise(requestAnimationFrame)")
    length = np.linalg.norm(np.array(ask(page, "quadratic-bowl", "fig.state.start")) - before)
    unit = (1.66 * 2) / page.locator("svg.ex-plot").first.bounding_box()["width"]
    assert length == pytest.approx(60 * np.sqrt(2) * unit, rel=0.1)
    assert page.evaluate("scrollY") == 0


def test_the_steps_play_pause_and_go_one_by_one_from_the_keyboard(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("quadratic-bowl")
    page.get_by_role("button", name="One step back").press("Enter")
    assert ask(page, "quadratic-bowl", "fig.state.step") == 39
    page.get_by_role("button", name="One step on").press("Enter")
    assert ask(page, "quadratic-bowl", "fig.state.step") == 40
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("Explore.figures['quadratic-bowl'].state.step >= 2")
    with contextlib.suppress(Exception):  # it may have come to its end
        page.get_by_role("button", name="Pause").press("Enter", timeout=2000)
    assert page.get_by_role("button", name="Play").count() == 1


# --- the plane of momentum ---

PLANE = "momentum-plane"
SETTINGS = {
    "overdamped": (0.05, 0.5),
    "complex": (1.3, 0.85),
    "alternating": (2.72, 0.4),
    "divergent": (3.9, 0.6),
    "plain": (0.7, 0.0),
    "critical": (0.25, 0.25),  # (1 − √α)² = 1/4
    "limit": (3.0, 0.5),  # 2 (1 + α)
    "still": (0.0, 0.5),
}


@pytest.mark.parametrize("regime", SETTINGS)
def test_the_plane_shows_the_eigenvalues_and_the_iteration_of_momentum(
    open_figure: OpenFigure, regime: str
) -> None:
    x, alpha = SETTINGS[regime]
    page = open_figure(PLANE)
    set_state(page, PLANE, x=x, alpha=alpha)
    expected = np.linalg.eigvals(np.array([[1 + alpha - x, -alpha], [1.0, 0.0]]))
    shown = [complex(*one) for one in ask(page, PLANE, "fig.eigenvalues()")]
    np.testing.assert_allclose(np.sort_complex(shown), np.sort_complex(expected), atol=1e-7)
    path = run(Momentum(x, alpha), lambda theta: theta, np.ones(1), 60).ravel()
    np.testing.assert_allclose(ask(page, PLANE, "fig.path()"), path, rtol=1e-9, atol=1e-9)
    assert ask(page, PLANE, "fig.rate()") == pytest.approx(np.abs(expected).max(), abs=1e-7)
    assert ask(page, PLANE, "fig.regime()") == regime
    words = {"plain": "without momentum", "limit": "on the limit", "still": "nothing moves"}
    sentence = ask(page, PLANE, "fig.sentence()").lower()
    assert words.get(regime, regime) in sentence


@pytest.mark.parametrize("kappa", [4.0, 50.0, 1000.0])
def test_the_plane_compares_both_methods_at_their_best_settings(
    open_figure: OpenFigure, kappa: float
) -> None:
    page = open_figure(PLANE)
    set_state(page, PLANE, kappa=kappa)
    best = ask(page, PLANE, "fig.best()")
    rates = np.array([0.9, 1.0, 1.1])[:, None] * best["lr"]  # no neighbor is better
    moduli = [
        max(
            np.abs(np.roots([1, -(1 + alpha - lr * eigenvalue), alpha])).max()
            for eigenvalue in np.geomspace(1 / kappa, 1, 9)
        )
        for lr in rates.ravel()
        for alpha in (0.95 * best["alpha"], best["alpha"], min(1.05 * best["alpha"], 0.9999))
    ]
    assert moduli[4] == pytest.approx(best["rate"], abs=1e-6)
    assert min(moduli) > best["rate"] - 1e-6
    bowl, start = problems.quadratic(np.diag([1 / kappa, 1.0])), np.ones(2)
    for opt, shown in zip(
        [SGD(2 / (1 + 1 / kappa)), Momentum(best["lr"], best["alpha"])],
        ask(page, PLANE, "fig.errors()"),
        strict=True,
    ):
        error = np.linalg.norm(run(opt, bowl, start, 200), axis=1) / np.sqrt(2)
        np.testing.assert_allclose(shown, error, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(("x", "alpha"), [(3.7, 0.86), (3.1, 0.57), (3.98, 0.99), (0.3, 0.8)])
def test_the_error_of_momentum_stays_inside_its_axis_unless_it_diverges(
    open_figure: OpenFigure, x: float, alpha: float
) -> None:
    page = open_figure(PLANE)
    set_state(page, PLANE, x=x, alpha=alpha)
    path = run(Momentum(x, alpha), lambda theta: theta, np.ones(1), 60).ravel()
    extent = ask(page, PLANE, "fig.extent()")
    assert extent["left"] == len(path)
    assert np.abs(path).max() <= extent["top"] <= max(1.5, 2.6 * np.abs(path).max())
    plot = page.locator("svg.ex-plot").nth(2)
    assert plot.locator("circle.ex-dot").count() == len(path)
    assert "exceeds" not in plot.text_content()


def test_a_divergent_error_is_drawn_until_it_leaves_its_axis(open_figure: OpenFigure) -> None:
    page = open_figure(PLANE)
    set_state(page, PLANE, x=4.2, alpha=0.0)  # the eigenvalue −3.2
    extent = ask(page, PLANE, "fig.extent()")
    path = run(SGD(4.2), lambda theta: theta, np.ones(1), 60).ravel()
    assert extent["left"] == np.argmax(np.abs(path) > extent["top"]) == 3
    assert "exceeds ±20 at step 3" in page.locator("svg.ex-plot").nth(2).text_content()
    disc = page.locator("svg.ex-plot").nth(1)
    frame = disc.bounding_box()
    for mark in disc.locator("path.ex-dot").all():  # and both eigenvalues are in the picture
        box = mark.bounding_box()
        assert frame["x"] < box["x"] + box["width"] / 2 < frame["x"] + frame["width"]


def test_the_point_of_the_plane_is_named_as_it_moves(open_figure: OpenFigure) -> None:
    page = open_figure(PLANE)
    handle = page.get_by_role("slider", name="Setting of momentum")
    handle.focus()
    for key, x, alpha in [("ArrowRight", 0.32, 0.8), ("ArrowDown", 0.32, 0.79), ("Home", 0.3, 0.8)]:
        page.keyboard.press(key)
        assert ask(page, PLANE, "[fig.state.x, fig.state.alpha]") == [x, alpha]
        assert f"ηλ {x:.2f}, α {alpha:.2f}" in handle.get_attribute("aria-valuetext")
    page.get_by_role("button", name="Take the best setting").press("Enter")
    assert ask(page, PLANE, "fig.rate()") == pytest.approx(ask(page, PLANE, "fig.best().rate"))
    assert ask(page, PLANE, "fig.regime()") == "critical"


# --- the race ---

RACE = "optimizer-race"
SURFACES = {
    "valley": problems.valley(0.05),
    "saddle": problems.saddle(),
    "beale": problems.beale(),
    "rosenbrock": problems.rosenbrock(),
}
FAR = 50.0


def racers(problem: problems.Problem, rates: dict[str, float]) -> dict[str, Any]:
    """Return the methods of the race with these learning rates."""
    made = {
        "SGD": lambda lr: SGD(lr),
        "Momentum": lambda lr: Momentum(lr, alpha=0.9),
        "Nesterov": lambda lr: Nesterov(lr, alpha=0.9),
        "AdaGrad": lambda lr: AdaGrad(lr, delta=1e-7),
        "RMSProp": lambda lr: RMSProp(lr, delta=1e-6, rho=0.9),
        "RMSProp + Nesterov": lambda lr: RMSPropNesterov(lr, delta=1e-6, rho=0.9, alpha=0.9),
        "AdaDelta": lambda lr: AdaDelta(lr, rho=0.9, delta=1e-3),
        "Adam": lambda lr: Adam(lr, beta1=0.9, beta2=0.999, delta=1e-8),
        "Newton": lambda lr: Newton(hessian=problem.hessian, lr=lr),
    }
    return {name: made[name](lr) for name, lr in rates.items()}


def race_rates(page: Any) -> dict[str, float]:
    """Return the learning rates that the race now has."""
    names = ask(page, RACE, "fig.names()")
    return {name: ask(page, RACE, f"fig.state['lr-{name}']") for name in names}


def compare_paths(page: Any, problem: problems.Problem, start: np.ndarray) -> None:
    """Compare all paths of the race with those of optdl, to one part in a million.

    Near a minimum the adaptive methods magnify rounding errors from step to step. Whole paths are
    therefore compared up to step 50, and after that each step from the iterate before it.
    """
    close = {"rtol": 1e-6, "atol": 1e-6}
    left = lambda theta: bool(np.abs(theta).max() >= FAR)  # noqa: E731
    for name, opt in racers(problem, race_rates(page)).items():
        shown = np.array(ask(page, RACE, f"fig.path('{name}')"), float)
        whole = run(opt, problem, start, 50, stop=left)
        np.testing.assert_allclose(shown[:51], whole, **close, err_msg=name)
        assert len(shown) == 301 or left(shown[-1]), name
        assert not any(left(theta) for theta in shown[:-1]), name
        state = opt.init(start)
        for before, after in pairwise(shown):
            expected, state = opt.step(before, state, problem.gradient)
            np.testing.assert_allclose(after, expected, **close, err_msg=name)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("start", [None, (1.3, 0.8)])
def test_every_method_takes_the_path_of_its_reference(
    open_figure: OpenFigure, surface: str, start: tuple[float, float] | None
) -> None:
    page = open_figure(RACE)
    set_state(page, RACE, surface=surface)
    if start:
        set_state(page, RACE, start=start)
    compare_paths(page, SURFACES[surface], np.array(ask(page, RACE, "fig.state.start"), float))


@pytest.mark.parametrize("degrees", [30, 45, 90])
def test_the_rotated_valley_is_the_valley_in_other_coordinates(
    open_figure: OpenFigure, degrees: int
) -> None:
    page = open_figure(RACE)
    set_state(page, RACE, more=True, **dict.fromkeys(ask(page, RACE, "fig.names()"), True))
    straight = np.array(ask(page, RACE, "fig.losses()"))
    set_state(page, RACE, angle=degrees)
    turn = np.deg2rad(degrees)
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    compare_paths(page, change_of_variable(SURFACES["valley"], R.T), R @ np.array([0.6, 1.0]))
    names, rotated = ask(page, RACE, "fig.names()"), np.array(ask(page, RACE, "fig.losses()"))
    same = np.abs(rotated - straight) <= 1e-6 * straight + 1e-15
    diagonal = {"AdaGrad", "RMSProp", "RMSProp + Nesterov", "AdaDelta", "Adam"}
    unequal = set() if degrees == 90 else diagonal
    assert {name for name, equal in zip(names, same, strict=True) if not equal} == unequal
    said = ask(page, RACE, "fig.sentence()")
    assert "leaves the loss of SGD, Momentum, Nesterov and Newton as it was" in said
    assert ("At 90° the valley lies along the other axis" in said) == (degrees == 90)
    assert ("Methods with a rate for each coordinate change" in said) == (degrees != 90)
    if degrees == 90:  # the coordinates change places, and no rounding error comes in
        np.testing.assert_array_equal(rotated, straight)


def test_a_rate_that_is_too_large_is_said_to_diverge(open_figure: OpenFigure) -> None:
    page = open_figure(RACE)
    set_state(page, RACE, **{"lr-SGD": 2.5, "step": 300})
    steps = len(ask(page, RACE, "fig.path('SGD')")) - 1
    assert steps < 20  # the path ends where it leaves
    assert f"SGD (step {steps}) diverged" in ask(page, RACE, "fig.sentence()")
    assert ask(page, RACE, "fig.outcomes()")[0] == f"diverged, step {steps}"
    set_state(page, RACE, surface="saddle")
    set_state(page, RACE, step=300)
    outcomes = dict(zip(ask(page, RACE, "fig.names()"), ask(page, RACE, "fig.outcomes()"),
                        strict=True))  # fmt: skip
    assert outcomes["SGD"].startswith("escaped")
    assert outcomes["Newton"] == "at the saddle"
    set_state(page, RACE, more=True, Newton=True)
    assert "Newton is at the saddle point" in ask(page, RACE, "fig.sentence()")


def test_the_race_is_run_from_the_keyboard_alone(open_figure: OpenFigure) -> None:
    page = open_figure(RACE)
    page.get_by_role("radio", name="Long valley").focus()
    page.keyboard.press("ArrowRight")
    assert ask(page, RACE, "fig.state.surface") == "saddle"
    page.get_by_role("slider", name="Start of all methods").focus()
    page.keyboard.press("ArrowUp")
    assert ask(page, RACE, "fig.state.start[1]") == pytest.approx(0.04)
    page.get_by_role("slider", name="Learning rate of Adam").focus()
    page.keyboard.press("ArrowRight")
    assert ask(page, RACE, "fig.state['lr-Adam']") > 0.05
    newton = page.get_by_role("checkbox", name="9 Newton")
    assert not newton.is_visible()
    page.get_by_role("checkbox", name="More methods").press("Space")
    newton.press("Space")
    assert ask(page, RACE, "fig.state.Newton") is True
    before = ask(page, RACE, "fig.state.step")
    page.get_by_role("button", name="One step on").press("Enter")
    assert ask(page, RACE, "fig.state.step") == before + 1
    page.get_by_role("slider", name="Step", exact=True).focus()
    page.keyboard.press("Space")
    page.wait_for_function(f"Explore.figures['{RACE}'].state.step > {before + 1}")
    page.get_by_role("button", name="Back to the beginning").press("Enter")
    assert ask(page, RACE, "fig.state.start") == [1, 0.02]


def test_steps_still_go_one_by_one_without_motion(open_figure: OpenFigure) -> None:
    page = open_figure(RACE, reduced_motion="reduce")
    page.get_by_role("button", name="One step back").press("Enter")
    assert ask(page, RACE, "fig.state.step") == 59


# --- the directive, and what stands where there is no browser ---


def test_a_notebook_has_the_caption_of_a_figure() -> None:
    text = "```{explore} quadratic-bowl\n:alt: A path on a bowl.\nA bowl with $1/\\kappa$.\n```\n"
    context = chapters.Context(chapters.Book(ROOT), "book/quadratic/rate")
    written = chapters.markdown(text, context)
    assert written.endswith("A bowl with $1/\\kappa$.")
    assert "A path on a bowl" not in written


def test_paper_has_the_still_picture_and_the_caption() -> None:
    soup = BeautifulSoup(
        '<article><figure class="explore"><script src="x.js"></script><div class="explore-stage">'
        '<img src="x.svg" loading="lazy"></div><figcaption>Words.</figcaption></figure></article>',
        "html.parser",
    )
    pdf._localize(soup.article, "book/x", ["book/x"], ROOT / "book" / "x.html")
    assert soup.script is None
    assert soup.img["src"].startswith("file:")
    assert soup.figcaption.get_text() == "Words."


INCOMPLETE = {
    "no-alt": ("```{explore} quadratic-bowl\nWords.\n```", "needs the option :alt:"),
    "no-script": (
        "```{explore} no-such-figure\n:alt: A picture.\nWords.\n```",
        "no-such-figure.js: write",
    ),
    "no-caption": (
        "```{explore} quadratic-bowl\n:alt: A picture.\n```",
        "needs a caption of one paragraph",
    ),
}


def test_an_incomplete_figure_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})\n"
        "extensions = ['myst_parser', 'explore']\nroot_doc = 'no-alt'\n"
    )
    for name, (text, _) in INCOMPLETE.items():
        (tmp_path / f"{name}.md").write_text(f"# A title\n\n{text}\n")
    (tmp_path / "book").symlink_to(ROOT / "book")
    command = [sys.executable, "-m", "sphinx", "-b", "dummy", "-q", ".", "out"]
    command += [f"{name}.md" for name in INCOMPLETE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    for name, (_, wanted) in INCOMPLETE.items():
        assert re.search(rf"{name}\.md:\d+: .*{re.escape(wanted)}", done.stderr), done.stderr
