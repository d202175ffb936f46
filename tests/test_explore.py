"""The figures to explore compute what optdl computes, and can be used without a mouse."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optdl import problems
from optdl.optimizers import SGD, run
from tools import stills

pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parent.parent
OpenFigure = Callable[..., Any]


def ask(page: Any, name: str, expression: str) -> Any:
    """Return what a figure answers: an expression in `fig`."""
    return page.evaluate(f"() => {{ const fig = Explore.figures['{name}']; return {expression}; }}")


def set_state(page: Any, name: str, **state: Any) -> None:
    """Set values of a figure, exactly."""
    page.evaluate(f"values => Explore.figures['{name}'].set(values)", state)


# --- all figures ---

FIGURES = stills.names()
SHARED_KILOBYTES = 31
PAGE_KILOBYTES = 60


def figures_of_pages() -> dict[str, list[str]]:
    """Return the names of the figures on each page that has some."""
    found = {}
    for path in sorted((ROOT / "book").glob("*.md")):
        names = re.findall(r"^```\{explore\} ([\w-]+)$", path.read_text("utf-8"), re.MULTILINE)
        if names:
            found[path.stem] = names
    return found


def test_each_figure_stands_on_one_page() -> None:
    placed = [name for names in figures_of_pages().values() for name in names]
    assert sorted(placed) == FIGURES


@pytest.mark.parametrize("page", figures_of_pages())
def test_the_figures_of_a_page_are_light(page: str) -> None:
    files = ["explore.css", "explore.js", *(f"{name}.js" for name in figures_of_pages()[page])]
    sizes = [(stills.FOLDER / name).stat().st_size / 1000 for name in files]
    assert sum(sizes) <= PAGE_KILOBYTES
    assert sum(sizes[:2]) <= SHARED_KILOBYTES


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_still_picture_that_stays_without_javascript(
    open_figure: OpenFigure, name: str
) -> None:
    assert "<svg xmlns" in (stills.FOLDER / f"{name}.svg").read_text("utf-8")
    page = open_figure(name, java_script_enabled=False)
    assert page.locator(".explore-stage").count() == 1
    assert page.locator(".ex-live").count() == 0


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_figure_fits_its_window_and_every_control_has_a_name(
    open_figure: OpenFigure, name: str, width: int
) -> None:
    page = open_figure(name)
    page.set_viewport_size({"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    for node in page.locator("input, button, select").all():
        assert node.evaluate(
            "e => (e.labels?.[0] || e).textContent.trim() || e.getAttribute('aria-label')"
        )
    for node in page.locator("svg.ex-plot, [role=slider]").all():
        assert len(node.get_attribute("aria-label")) >= 4
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
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
    page = open_figure(name)
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


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_moves_by_itself_for_readers_who_want_no_motion(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(name, reduced_motion="reduce")
    assert not page.get_by_role("button", name="Play").count()


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
