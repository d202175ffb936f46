"""The figure on dropout as an ensemble computes what optdl computes."""

import itertools
import re
from typing import Any

import numpy as np
import pytest
from chapters import text
from mulberry import normals, uniforms
from scipy.special import softmax
from test_explore import OpenFigure, ask, set_state

from optdl import dropout

pytestmark = pytest.mark.xdist_group("site")

NAME = "subnetworks"
UNITS, SCORES, SUBNETWORKS = 6, 3, 64
OUTPUTS = {
    "softmax": lambda s: softmax(s, axis=-1),
    "relu": lambda s: np.maximum(s, 0).sum(axis=-1, keepdims=True),
    "linear": lambda s: s.sum(axis=-1, keepdims=True),
}


def network(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and the weights as the figure draws them."""
    z = normals(uniforms(seed, 2 * UNITS * (1 + SCORES)))
    x, W = np.split(z, [UNITS])
    return np.floor(10 * (0.5 + np.abs(x)) + 0.5) / 10, np.floor(10 * W + 0.5).reshape(3, 6) / 10


def ensemble(page: Any, seed: int, kind: str, p: float) -> dict[str, Any]:
    """Return what the figure computes."""
    return dict(ask(page, NAME, f"fig.ensemble(fig.draw({seed}), '{kind}', {p})"))


def test_all_masks_are_those_of_optdl_with_their_probabilities(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    masks = ask(page, NAME, "Array.from({length: 64}, (_, k) => fig.mask(k))")
    np.testing.assert_array_equal(masks, dropout.subnetwork_masks(UNITS))
    chances = ask(page, NAME, "Array.from({length: 64}, (_, k) => fig.chance(k, 0.2))")
    kept = np.sum(masks, axis=1)
    np.testing.assert_allclose(chances, 0.8**kept * 0.2 ** (UNITS - kept), rtol=1e-9)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_the_means_and_the_scaled_pass_are_those_of_optdl(
    open_figure: OpenFigure, kind: str
) -> None:
    page = open_figure(NAME)
    masks = dropout.subnetwork_masks(UNITS)
    for seed, p in itertools.product((1, 2, 3), (0.05, 0.5, 0.8)):
        (x, W), shown = network(seed), ensemble(page, seed, kind, p)
        outputs = OUTPUTS[kind]((masks * x) @ W.T)
        chances = np.prod(np.where(masks == 1, 1 - p, p), axis=1)
        np.testing.assert_allclose(shown["all"], outputs, atol=1e-9)
        np.testing.assert_allclose(shown["arithmetic"], chances @ outputs, atol=1e-9)
        if kind == "softmax":
            b = np.zeros(SCORES)
            scaled = dropout.weight_scaling(W, b, x, 1 - p)
            geometric = dropout.geometric_ensemble(W, b, x, 1 - p)
            np.testing.assert_allclose(shown["geometric"], geometric, atol=1e-9)
            np.testing.assert_allclose(shown["geometric"], scaled, atol=1e-9)
        else:
            scaled = OUTPUTS[kind]((1 - p) * (W @ x))
            assert not shown["geometric"]
        np.testing.assert_allclose(shown["scaled"], scaled, atol=1e-9)


def test_one_pass_is_exact_for_the_sum_and_never_above_the_mean_for_relus(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(NAME)
    for seed in range(1, 9):
        linear, relu = (ensemble(page, seed, kind, 0.5) for kind in ("linear", "relu"))
        assert linear["scaled"] == pytest.approx(linear["arithmetic"], abs=1e-9)
        assert relu["scaled"][0] <= relu["arithmetic"][0] + 1e-9


def test_drawn_masks_drop_a_unit_where_its_number_is_below_p(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    set_state(page, NAME, p=0.3, kind="relu")
    page.get_by_role("button", name="Draw 100").click()
    page.get_by_role("button", name="Draw a mask").click()
    masks = (dropout.dropout_mask(uniforms(1000, 101 * UNITS).reshape(101, UNITS), 0.3) > 0) * 1
    numbers = masks @ 2 ** np.arange(UNITS)[::-1]
    assert ask(page, NAME, "fig.state.k") == numbers[-1]
    counts = np.bincount(numbers, minlength=SUBNETWORKS)
    assert ask(page, NAME, "fig.state.counts") == counts.tolist()
    x, W = network(1)
    mean = OUTPUTS["relu"]((masks * x) @ W.T).mean()
    assert ask(page, NAME, "fig.now().sofar") == pytest.approx([mean])
    assert f"Mean of the 101 drawn: {mean:.3f}." in ask(page, NAME, "fig.sentence()")
    page.get_by_role("slider", name="Probability p of dropping").press("ArrowRight")
    assert ask(page, NAME, "fig.state.drawn") == 0  # drawn with another p
    page.get_by_role("button", name="Draw a mask").click()
    page.get_by_role("button", name="Forget the draws").click()
    assert "drawn" not in ask(page, NAME, "fig.sentence()")


def test_a_unit_is_dropped_with_the_mouse_a_finger_and_the_keyboard(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(NAME, has_touch=True)
    unit = page.get_by_role("checkbox", name="Unit 2")
    assert unit.get_attribute("aria-checked") == "true"
    unit.click()
    assert ask(page, NAME, "fig.mask(fig.state.k)") == [1, 0, 1, 1, 1, 1]
    assert unit.get_attribute("aria-checked") == "false"
    assert ask(page, NAME, "fig.sentence()").startswith("Unit 2 is dropped.")
    page.get_by_role("checkbox", name="Unit 6").tap()
    unit.press("Space")
    assert ask(page, NAME, "fig.mask(fig.state.k)") == [1, 1, 1, 1, 1, 0]
    unit.press("Enter")
    assert ask(page, NAME, "fig.sentence()").startswith("Units 2 and 6 are dropped.")
    x, W = network(1)
    scores = W @ (x * [1, 0, 1, 1, 1, 0])
    assert ask(page, NAME, "fig.now().output") == pytest.approx(softmax(scores).tolist())
    assert ask(page, NAME, "fig.state.drawn") == 0  # a mask made by hand is not counted


def test_the_sentence_says_how_near_one_pass_comes(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    gaps = {}
    for kind in OUTPUTS:
        set_state(page, NAME, kind=kind)
        shown = ensemble(page, 1, kind, 0.5)
        gaps[kind] = np.abs(np.subtract(shown["scaled"], shown["arithmetic"])).max()
        words = ask(page, NAME, "fig.sentence()")
        assert f"{shown['scaled'][-1]:.3f}" in words
        assert ("exactly" in words) == (kind != "relu")
        if kind != "linear":
            number = re.search(r"(?:up to|by) (0\.\d{3})", words)
            assert float(number[1]) == pytest.approx(gaps[kind], abs=5e-4)
    assert gaps["linear"] < 1e-12
    before = ask(page, NAME, "fig.network().W")
    page.get_by_role("button", name="New weights").press("Enter")
    assert ask(page, NAME, "fig.network().W") == network(2)[1].tolist() != before


def test_what_the_chapter_says_about_the_first_weights(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    said = text("dropout", "effects")
    assert "up to 0.097 away at $p = \\frac12$" in said
    assert "within 0.05 only at $p \\le 0.1$ and $p \\ge 0.9$" in said
    assert "one pass gives 1.785, while the mean is 2.688" in said
    gaps = {}
    for p in [step / 20 for step in range(1, 20)]:
        shown = ensemble(page, 1, "softmax", p)
        gaps[p] = np.abs(np.subtract(shown["scaled"], shown["arithmetic"])).max()
    assert round(gaps[0.5], 3) == 0.097
    assert [p for p, gap in gaps.items() if gap <= 0.05] == [0.05, 0.1, 0.9, 0.95]
    relu = ensemble(page, 1, "relu", 0.5)
    assert [round(relu[key][0], 3) for key in ("scaled", "arithmetic")] == [1.785, 2.688]
