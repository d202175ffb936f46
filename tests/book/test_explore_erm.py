"""The figures on capacity and on the number of errors compute what optdl.erm computes."""

import re
from typing import Any

import numpy as np
import pytest
from mulberry import normals, uniforms
from test_explore import OpenFigure, ask, set_state

from optdl import erm
from optdl.problems import TwoGaussians

pytestmark = pytest.mark.xdist_group("site")

POPULATION = erm.NoisyCurve(lambda x: np.sin(np.pi * x), noise=0.3)
DEGREES = range(12)


def sample(m: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sample that the figure draws: for each example x, and then its noise."""
    drawn = uniforms(seed, 3 * m).reshape(m, 3)
    x = 2 * drawn[:, 0] - 1
    return x, np.sin(np.pi * x) + 0.3 * normals(drawn[:, 1:].ravel())


def risks(page: Any, call: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the empirical risks and the risks that the figure computes."""
    pairs = ask(page, "capacity", f"fig.{call}.map(r => [r.empirical, r.risk])")
    empirical, risk = np.array(pairs).T
    return empirical, risk


def test_the_generator_is_mulberry32(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    for seed in (0, 1, 59, 2**31 + 7, 2**32 - 1):
        first = "(() => { const u = Explore.random(%d); return Array.from({length: 99}, u); })()"
        assert ask(page, "capacity", first % seed) == uniforms(seed, 99).tolist()
        state = (seed + 0x6D2B79F5) % 2**32  # the first number once more, in whole numbers
        t = (state ^ state >> 15) * (state | 1) % 2**32
        t ^= (t + (t ^ t >> 7) * (t | 61)) % 2**32
        assert uniforms(seed, 1)[0] == (t ^ t >> 14) / 2**32


def test_normal_numbers_are_normal(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    draw = "(() => { const u = Explore.random(3); return Array.from({length: 4000}, u.normal); })()"
    drawn = np.array(ask(page, "capacity", draw))
    np.testing.assert_allclose(drawn, normals(uniforms(3, 8000)), atol=1e-12)
    assert abs(drawn.mean()) < 4 / np.sqrt(4000)
    assert abs(drawn.var() - 1) < 4 * np.sqrt(2 / 4000)


def test_one_sample_has_the_risks_of_optdl(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    for m, seed in [(12, 1), (13, 59), (40, 3), (100, 1)]:
        x, y = sample(m, seed)
        drawn = ask(page, "capacity", f"fig.sample({m}, {seed})")
        np.testing.assert_allclose([drawn["x"], drawn["y"]], [x, y], atol=1e-12)
        expected = erm.capacity_sweep(POPULATION, x, y, DEGREES)
        shown = risks(page, f"risks(fig.sample({m}, {seed}))")
        np.testing.assert_allclose(shown, expected, rtol=1e-6, atol=1e-12)


def test_the_lines_are_medians_of_samples(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    sweeps = [erm.capacity_sweep(POPULATION, *sample(20, k), DEGREES) for k in range(1, 7)]
    for samples in (5, 6):
        expected = np.median(sweeps[:samples], axis=0)
        np.testing.assert_allclose(risks(page, f"medians(20, {samples})"), expected, rtol=1e-6)


def test_more_examples_close_the_gap_from_both_sides(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    few, many = risks(page, "medians(25)"), risks(page, "medians(100)")
    rich = slice(3, 12)
    assert np.all(many[0][rich] > few[0][rich])
    assert np.all(many[1][rich] < few[1][rich])
    assert np.all(many[0][rich] < 0.09)
    assert np.all(many[1][rich] > 0.09)
    # a line or a parabola is too poor for the sine: there the gap closes far above the Bayes risk
    assert np.all(many[0][:3] > 0.15)
    assert abs(many[1][1] - many[0][1]) < 0.03


def test_the_sentence_tells_the_numbers_of_the_chosen_degree(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    for m, degree in ((12, 3), (30, 8), (100, 1)):
        set_state(page, "capacity", m=m, degree=degree)
        J, risk = erm.capacity_sweep(POPULATION, *sample(m, 1), DEGREES)
        said = ask(page, "capacity", "fig.sentence()")
        told = [float(number) for number in re.findall(r"risk (\d\.\d{3})", said)]
        assert told == pytest.approx([J[degree], risk[degree]], abs=5e-4)
        assert f"degree {risk.argmin()} has the lowest risk" in said
        assert ("below the Bayes risk" in said) == (J[degree] < 0.09)
    set_state(page, "capacity", m=12, degree=11)
    assert "passes through every example" in ask(page, "capacity", "fig.sentence()")


def test_it_is_used_from_the_keyboard(open_figure: OpenFigure) -> None:
    page = open_figure("capacity")
    page.get_by_label("Examples m").press("End")
    assert ask(page, "capacity", "[fig.state.m, fig.sample(100, 1).x.length]") == [100, 100]
    handle = page.get_by_role("slider", name="Degree", exact=True)
    handle.press("ArrowRight")
    assert ask(page, "capacity", "fig.state.degree") == 4
    assert handle.get_attribute("aria-valuetext").startswith("degree 4, risk 0.")
    for _ in range(20):
        handle.press("ArrowRight")
    assert ask(page, "capacity", "fig.state.degree") == 11
    before = risks(page, "now()")
    page.get_by_role("button", name="New sample").press("Enter")
    assert ask(page, "capacity", "fig.seed()") == 2
    assert not np.allclose(risks(page, "now()"), before)


# --- the needle ---


def test_the_needle_has_the_points_and_the_risks_of_the_lesson(open_figure: OpenFigure) -> None:
    page = open_figure("needle")
    x, y = TwoGaussians(np.array([1.0, 0.5]), prior=0.4).sample(40, np.random.default_rng(2))

    def w(phi: float) -> np.ndarray:
        return 2 * np.array([np.cos(np.radians(phi)), np.sin(np.radians(phi))])

    def risk(phi: float) -> float:
        return float(np.mean(np.log2(1 + np.exp(-y * (x @ w(phi))))))

    for phi in (-137.5, -20.0, 34.5, 61.0, 179.5):
        assert ask(page, "needle", f"fig.errors({phi})") == np.sum(y * (x @ w(phi)) <= 0)
        assert ask(page, "needle", f"fig.logistic({phi})") == pytest.approx(risk(phi), abs=1e-4)
        slope = np.degrees(risk(phi + 0.01) - risk(phi - 0.01)) / 0.02
        assert ask(page, "needle", f"fig.slope({phi})") == pytest.approx(slope, abs=1e-3)
    middle, width = ask(page, "needle", "fig.needle()")
    assert (middle, width) == (pytest.approx(45.08, abs=0.01), pytest.approx(0.0196, abs=0.001))


def test_steps_on_the_logistic_risk_end_where_it_is_smallest(open_figure: OpenFigure) -> None:
    page = open_figure("needle")
    for _ in range(20):
        page.get_by_role("button", name="One step down").click()
    assert ask(page, "needle", "fig.state.phi") == pytest.approx(34.5, abs=0.5)
    assert "4 errors of 40" in ask(page, "needle", "fig.sentence()")
    page.get_by_role("button", name="Go to the needle").click()
    assert "3 errors of 40" in ask(page, "needle", "fig.sentence()")
