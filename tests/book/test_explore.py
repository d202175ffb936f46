"""Every figure to explore is used by keys alone, says what is seen, and knows its solved task."""

import re
from typing import Any

import numpy as np
import pytest

from tools.layout import ROOT
from tools.site import static_figures

pytestmark = pytest.mark.xdist_group("figures")

NAMES = static_figures.names()
PAGES = {
    path.relative_to(ROOT): re.findall(
        r"(?m)^```\{explore\} ([\w-]+)\n(?:(?::alt:.*\n)?:task: (\S+)\n)?", path.read_text("utf-8")
    )
    for path in (ROOT / "book").rglob("*.md")
}

FOCUSED = """(name) => {
  const control = document.activeElement;
  const stage = document.querySelector(`[data-explore="${name}"]`);
  if (control === stage || !stage.contains(control)) return null;
  const group = control.name ? stage.querySelectorAll(`[name="${control.name}"]`) : [control];
  const visited = control.dataset.visited;
  group.forEach((one) => { one.dataset.visited = "yes"; });
  const fig = Explore.figures[name], picture = stage.querySelector(".ex-panels").innerHTML;
  const view = JSON.stringify(fig.state) + picture;
  if (view !== window.view) [window.view, window.views] = [view, (window.views ?? 0) + 1];
  return {
    visited,
    kind: control.getAttribute("role") || control.type,
    label: (control.labels?.[0] ?? control).textContent.trim() || control.ariaLabel,
    place: control.getAttribute("transform") + control.ariaValueText,
    seen: window.views,
    sentence: fig.sentence(),
  };
}"""
UNVISITED = """[...document.querySelectorAll(".explore-stage :is(input, button, [role])")]
  .filter((e) => e.checkVisibility() && e.tabIndex >= 0 && !e.dataset.visited)
  .map((e) => e.outerHTML)"""
SAID = """Object.entries(Explore.figures).every(([name, fig]) => fig.sentence() ===
  document.querySelector(`[data-explore="${name}"] .ex-say[aria-live=polite]`).textContent)"""
KEYS = {"range": ["Home", "End"], "slider": ["Home", "Shift+ArrowLeft", "Home"],
        "radio": ["ArrowRight"], "checkbox": ["Space"], "button": ["Enter"]}  # fmt: skip
"""The last key of a control changes what is seen; Home brings a point back."""


def test_keys_reach_and_use_every_control(figures):
    page, failures = figures.page, []
    for name in NAMES:
        figures.fresh(name).evaluate("stage => { stage.tabIndex = -1; stage.focus(); }")
        sentences = set()
        page.keyboard.press("Tab")
        while (control := page.evaluate(FOCUSED, name)) and not control["visited"]:
            views = [control]
            for key in KEYS[control["kind"]]:
                page.keyboard.press(key)
                views.append(page.evaluate(FOCUSED, name))
            sentences |= {view["sentence"] for view in views}
            if views[-1]["seen"] == views[-2]["seen"] or not control["label"]:
                failures.append(f"{name}: {control['kind']} {control['label']}")
            if control["kind"] == "slider":
                home, moved, back = (view["place"] for view in views[1:])
                if home == moved or home != back:
                    failures.append(f"{name}: {control['label']} at {home}, {moved}, {back}")
            page.keyboard.press("Tab")
        if len(sentences) < 2:
            failures.append(f"{name}: no control changes the sentence {sentences}")
        failures += page.evaluate(UNVISITED)
    assert failures == []
    page.wait_for_function(SAID)


def test_plots_and_points_have_names(figures):
    values = "(all, key) => all.map(e => e[key])"
    labels = figures.page.eval_on_selector_all("svg.ex-plot, [role=slider]", values, "ariaLabel")
    assert len(labels) > 2 * len(NAMES)
    assert all(len(label or "") >= 4 for label in labels)
    ids = figures.page.eval_on_selector_all("[id]", values, "id")
    assert len(ids) == len(set(ids))


def test_finger_and_click_move_a_point(figures):
    page, stage = figures.page, figures.fresh("quadratic-bowl")
    plot = stage.locator("svg.ex-plot").first
    grip = stage.get_by_role("slider", name="Start of gradient").locator(".ex-grip")
    page.set_viewport_size({"width": 1000, "height": 450})
    page.evaluate("scrollTo(0, 100)")
    box, frame = grip.bounding_box(), plot.bounding_box()
    starts = [figures.ask("quadratic-bowl", "fig.state.start")]
    finger = page.context.new_cdp_session(page)
    for kind, by in [("Start", 0), ("Move", 20), ("Move", 60), ("End", None)]:
        points = [] if by is None else [{"x": box["x"] + 7 - by, "y": box["y"] + 7 + by}]
        finger.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        page.evaluate("() => new Promise(requestAnimationFrame)")
    starts.append(figures.ask("quadratic-bowl", "fig.state.start"))
    page.mouse.click(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    starts.append(figures.ask("quadratic-bowl", "fig.state.start"))
    moved = np.linalg.norm(np.subtract(starts[1], starts[0]))
    assert moved == pytest.approx(60 * np.sqrt(2) * 2 * 1.66 / frame["width"], rel=0.1)
    assert page.evaluate("scrollY") == 100
    assert np.linalg.norm(starts[2]) < 0.05  # in the middle


def test_steps_play_unless_motion_is_unwanted(figures):
    assert not figures.fresh("quadratic-bowl").get_by_role("button", name="Play").is_visible()
    figures.page.emulate_media(reduced_motion="no-preference")
    figures.fresh("descent").locator("circle.ex-dot").nth(3).wait_for()  # it grows by itself
    hold = "() => { clock = setInterval; setInterval = (f) => { tick = f; return 9e9; }; }"
    figures.page.evaluate(hold)  # a busy machine must not come to the end before it is paused
    stage, words = figures.fresh("quadratic-bowl", step=38), []
    for _ in range(3):
        stage.get_by_role("slider", name="Steps τ").press("Space")
        words.append(stage.locator("button").nth(1).inner_text())
    figures.page.evaluate("() => { tick(); tick(); setInterval = clock; }")
    words.append(stage.locator("button").nth(1).inner_text())
    assert words == ["Pause", "Play", "Pause", "Play"]
    assert figures.ask("quadratic-bowl", "fig.state.step") == 40


def test_numbers_are_written_for_readers(figures):
    written = figures.page.evaluate("[-0.25, -1e-9, 0, 3e5].map(x => Explore.number(x, 2))")
    assert written == ["−0.25", "−1.0 · 10⁻⁹", "0.00", "3.0 · 10⁵"]


PRESSES: list[tuple[str, dict[str, Any], list[tuple[str, str]], str, Any]] = [
    ("quadratic-bowl", {"kappa": 9}, [("button Take the best", "Enter")], "fig.rate()", 0.8),
    ("quadratic-bowl", {}, [("button One step back", "Enter")], "fig.state.step", 39),
    ("momentum-plane", {}, [("button Take the best setting", "Enter")],
     "fig.rate() / fig.best().rate", 1),
    ("optimizer-race", {"surface": "saddle"}, [("slider Start of all methods", "ArrowUp")],
     "fig.state.start", [1, 0.04]),
    ("optimizer-race", {}, [("checkbox More methods", "Space"), ("checkbox 9 Newton", "Space")],
     "fig.state.Newton", True),
    ("saddle", {}, [("slider Start", "ArrowUp ArrowDown ArrowDown")],
     "fig.state.side * fig.state.d * Math.SQRT2", -0.05),
    ("saddle", {"side": 0}, [("slider Distance d from the line a = −b", "ArrowLeft")],
     "fig.state.side", 1),
    ("uphill", {}, [("button Take the best step", "Enter")],
     "fig.state.lr / fig.model(fig.point(), 0.8).best", 1),
    ("uphill", {"c": 0}, [("button Go on from there", "Enter")], "fig.point()", [1.05, -0.2]),
    ("centering", {}, [("button Center the inputs", "Enter")], "fig.mean()", [0, 0]),
    ("bnp-cloud", {}, [("slider Mean of the cloud", "ArrowLeft"),
                       ("slider Right edge of the cloud", "ArrowRight")],
     "[...fig.state.mean, fig.state.s1, fig.state.r]", [2.9, 2, 1.25, 0.5]),
    ("bnp-cloud", {}, [("button Center and scale it", "Enter")],
     "[...fig.state.mean, fig.state.s1, fig.state.s2]", [0, 0, 1, 1]),
    ("gain", {}, [("slider Mean of the inputs", "ArrowLeft")], "fig.state.inputs", 2.9),
    ("kernel-entry", {}, [("slider Entry of the kernel", "ArrowUp")],
     "[fig.state.i, fig.state.j]", [1, 2]),
    ("kernel-entry", {}, [("slider Column of the unrolled", "Shift+ArrowLeft")],
     "[fig.state.i, fig.state.j]", [1, 0]),
    ("kernel-entry", {}, [("slider Pixel to change", "ArrowDown ArrowLeft 7")],
     "fig.state.image[2][1]", 7),
    ("capacity", {}, [("slider Degree", "ArrowRight " * 20)], "fig.state.degree", 11),
    ("needle", {}, [("button One step down", "Enter " * 20)],
     "[fig.errors(fig.state.phi), Math.abs(fig.slope(fig.state.phi)) < 0.02]", [4, True]),
    ("needle", {}, [("button Go to the needle", "Enter")],
     "[Number(fig.state.phi.toFixed(1)), fig.errors(fig.state.phi)]", [45.1, 3]),
    ("signal", {}, [("button He", "Enter")], "fig.state.factor", np.sqrt(2)),
    ("running-mean", {}, [("slider Minibatch size m", "ArrowRight")], "fig.shown().m", 16),
    ("subnetworks", {}, [("checkbox Unit 2", "Space"), ("checkbox Unit 6", "Enter")],
     "fig.mask(fig.state.k)", [1, 0, 1, 1, 1, 0]),
    ("subnetworks", {}, [("button Draw 100", "Enter"), ("slider Probability", "ArrowRight")],
     "fig.state.drawn", 0),
]  # fmt: skip
"""Of a figure: a state, keys pressed on controls, and the value of an expression after them."""


def press(stage: Any, control: str, keys: str) -> None:
    role, label = control.split(" ", 1)
    found = stage.get_by_role(role, name=label)
    exact = stage.get_by_role(role, name=label, exact=True)
    for key in keys.split():
        (exact if exact.count() else found).press(key)


def test_pressed_controls_change_values_as_expected(figures):
    failures = []
    for name, state, controls, expression, expected in PRESSES:
        stage = figures.fresh(name, **state)
        for control, keys in controls:
            press(stage, control, keys)
        if (value := figures.ask(name, expression)) != pytest.approx(expected):
            failures.append(f"{name} after {controls}: {expression} is {value}, not {expected}")
    assert failures == []


LEFT, RIGHT, FAR = "ArrowLeft", "ArrowRight", "Shift+ArrowRight"
TASKS: list[tuple[str, str | None, dict[str, Any], str, str]] = [
    ("descent", None, {"lr": 2.0, "momentum": 0.48}, "Momentum", RIGHT),
    ("line-search", None, {"start": [0.1, 0.8]}, "Start of the line search", FAR),
    ("sharpness", None, {"lr": 0.2}, "Learning rate η", RIGHT),
    ("sharpness", "flattest", {"start": [1.06, 0.8]}, "Start of the run", LEFT),
    ("batch-size", None, {"n": 1000, "scale": 319}, "Minibatch size on the curve", FAR),
    ("batch-size", "error", {"n": 1150}, "Minibatch size on the curve", RIGHT),
    ("batch-size", "norm", {"n": 10, "scale": 38}, "Noise scale", RIGHT),
    ("centering", None, {"shift": 3.3, "angle": 0.9}, "Distance of the mean from 0", RIGHT),
    ("uphill", None, {"x": 0.6, "y": 0.0}, "Point θ", "Shift+ArrowLeft"),
    ("saddle", None, {"d": 2.65e-6}, "Distance d from the line a = −b", LEFT),
    ("inexact", None, {"lr": 0.65}, "Learning rate η", RIGHT),
    ("taylor", None, {"w": 0.95}, "Center ŵ", RIGHT),
    ("basins", None, {"start": [2.4, -0.9]}, "Start of gradient descent", "Shift+ArrowUp"),
    ("clipping", None, {"c": 3.95}, "Threshold c", LEFT),
    ("capacity", None, {"degree": 3}, "Capacity: degree", RIGHT),
    ("needle", None, {"phi": 29.0}, "Direction φ", RIGHT),
    ("signal", None, {"factor": 1.1}, "Weight scale √n · σ", RIGHT),
    ("quadratic-bowl", None, {"lr": 1.81}, "Learning rate η", RIGHT),
    ("quadratic-bowl", "limit", {"lr": 1.98}, "Learning rate η", RIGHT),
    ("quadratic-bowl", "digits", {"kappa": 19, "lr": 1.9}, "Condition number κ", RIGHT),
    ("schedule", None, {"lr": 0.6, "warmup": 2, "fall": "cosine"}, "Steps of warm-up", RIGHT),
    ("averaging", None, {"lr": 0.0082}, "Learning rate η", LEFT),
    ("running-mean", None, {"rho": 0.82, "moves": True}, "Weight ρ of the old average", RIGHT),
    ("running-mean", "memory", {"rho": 0.96, "doublings": 0}, "Weight ρ of the old average", RIGHT),
    ("batch-of-two", None, {"x": 0.95}, "Example in the minibatch of 2", RIGHT),
    ("momentum-plane", None, {"x": 3.06, "alpha": 0.6}, "Setting of momentum", "ArrowDown"),
    ("stopping", None, {"patience": 6}, "Patience, in epochs", RIGHT),
    ("eigendirections", None, {"w": [0.9, 0.28], "turn": 0}, "Weights w", "ArrowUp"),
    ("optimizer-race", None, {"angle": 40, "lr-Adam": 0.1}, "Rotation of the valley", RIGHT),
    ("subnetworks", None, {"p": 0.15}, "Probability p of dropping", LEFT),
    ("bnp-cloud", None, {"s1": 0.1, "s2": 0.1, "r": 0.05}, "Correlation r", LEFT),
    ("gain", None, {"inputs": 1.4}, "Mean of each input", RIGHT),
]  # fmt: skip
"""Of a figure and its task: a state beside a solution, the control and the key that lead there."""


def test_one_key_solves_each_task(figures):
    failures = []
    for name, task, state, control, key in TASKS:
        figures.fresh(name, task)
        solved = [figures.ask(name, "fig.solved()")]
        stage = figures.fresh(name, task, **state)
        solved.append(figures.ask(name, "fig.solved()"))
        stage.get_by_role("slider", name=control, exact=True).press(key)
        solved += [figures.ask(name, "fig.solved()"), stage.locator(".ex-reached").count() == 1]
        if solved != [False, False, True, True]:
            failures.append(f"{name}, task {task}: {solved}")
    assert failures == []
    placed = {(name, task or None) for figures in PAGES.values() for name, task in figures}
    known = {(name, task) for name, task, *_ in TASKS} | {("kernel-entry", None)}  # has questions
    assert placed <= known, "correct the option task on the page, or add the task to TASKS"


def test_each_figure_has_a_page():
    placed = [figure for figures in PAGES.values() for figure in figures]
    assert sorted({name for name, _ in placed}) == NAMES, "put each figure on a page by `explore`"
    assert len(placed) == len(set(placed)), "on a second page a figure has another task"
