"""The figures on running statistics and on a minibatch of two compute what optdl computes."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mulberry import normals, uniforms
from test_explore import OpenFigure, ask, set_state

from optdl import batchnorm as bn

pytestmark = pytest.mark.xdist_group("site")

ROOT = Path(__file__).resolve().parents[2]
NAME = "running-mean"
STEPS, LARGEST = 200, 256
ONE, ZERO = np.ones(1), np.zeros(1)
ONES, ZEROS = np.ones(STEPS), np.zeros(STEPS)


def minibatches(seed: int, m: int, moves: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of the population and the minibatches as the figure draws them."""
    z = normals(uniforms(seed, 2 * STEPS * LARGEST)).reshape(STEPS, LARGEST)[:, :m]
    truth = 2 + moves * 0.02 * np.arange(STEPS)
    return truth, truth[:, None] + z


def reference(seed: int, m: int, rho: float, moves: bool) -> dict[str, np.ndarray]:
    """Return what the figure shows, computed by optdl."""
    truth, batches = minibatches(seed, m, moves)
    means = batches.mean(axis=1, keepdims=True)
    shown = {"truth": truth, "means": means, "running": bn.moving_average(means, rho, ZERO)}
    example = truth + 1.5
    with_example = np.column_stack([example, batches[:, 1:]])
    # one feature for each step
    shown["training"] = bn.batchnorm_forward(with_example.T, ONES, ZEROS)[0][0]
    if m > 1:
        running = bn.moving_average(batches.var(axis=1, ddof=1, keepdims=True), rho, ONE)
        statistics = shown["running"].ravel(), running.ravel()
        shown["inference"] = bn.batchnorm_inference(example[None], ONES, ZEROS, *statistics)
    return {name: values.ravel() for name, values in shown.items()}


def simulated(page: Any, seed: int, m: int, rho: float, moves: bool) -> tuple[Any, Any]:
    """Return what the figure computes, and its summary."""
    settings = f"{{size: {m}, rho: {rho}, moves: {str(moves).lower()}}}"
    shown = f"fig.simulate(fig.draw({seed}), {settings})"
    return ask(page, NAME, shown), ask(page, NAME, f"fig.summarize({shown}, {settings})")


def rms(values: np.ndarray) -> float:
    """Return the root mean square."""
    return float(np.sqrt(np.mean(values**2)))


@pytest.mark.parametrize("m", [1, 2, 8, 256])
def test_the_curves_are_those_of_optdl(open_figure: OpenFigure, m: int) -> None:
    page = open_figure(NAME)
    for rho, moves in itertools.product((0.0, 0.9, 0.99), (False, True)):
        shown, numbers = simulated(page, 7, m, rho, moves)
        expected = reference(7, m, rho, moves)
        for name, values in expected.items():
            np.testing.assert_allclose(shown[name], values, rtol=1e-6, atol=1e-9, err_msg=name)
        assert (shown["inference"] is None) == (m == 1)
        assert numbers["jitter"] == pytest.approx(rms(expected["means"] - expected["truth"]))
        behind = expected["truth"][-1] - expected["running"][-1]
        assert numbers["behind"] == pytest.approx(behind, abs=1e-9)
        if m > 1:
            apart = expected["training"] - expected["inference"]
            assert numbers["gap"] == pytest.approx(rms(apart[100:]))


def test_the_predictions_hold(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    for m in (1, 4, 64, 256):
        jitters, behind = [], []
        for seed in range(1, 6):
            _, numbers = simulated(page, seed, m, 0.9, moves=True)
            jitters.append(numbers["jitter"])
            behind.append(numbers["behind"])
            assert numbers["predicted"] == pytest.approx(1 / np.sqrt(m))
            # the running mean of 2, 2.02, 2.04, … after many steps
            assert numbers["lag"] == pytest.approx(
                0.02 * sum(k * 0.1 * 0.9**k for k in range(1000))
            )
            assert numbers["memory"] == pytest.approx(10)
        assert np.mean(jitters) == pytest.approx(1 / np.sqrt(m), rel=0.05)
        # the running mean has the standard deviation √(0.1 / 1.9) times that of a minibatch
        deviation = np.sqrt(0.1 / 1.9 / m / 5)
        assert np.mean(behind) == pytest.approx(0.18, abs=4 * deviation)


def test_the_normalized_example_never_exceeds_the_bound(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    for m in (1, 2, 4, 8):
        shown, _ = simulated(page, 3, m, 0.9, moves=False)
        assert np.abs(shown["training"]).max() <= np.sqrt(m - 1)
    pair = simulated(page, 3, 2, 0.9, moves=False)[0]["training"]
    assert np.median(np.abs(pair)) == pytest.approx(1, abs=1e-4)


def said(page: Any, **state: Any) -> str:
    """Return the sentence in a state."""
    set_state(page, NAME, **state)
    return str(ask(page, NAME, "fig.sentence()"))


def test_the_sentence_says_the_numbers(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    words = said(page, doublings=4, rho=0.95)
    numbers = ask(page, NAME, "fig.numbers()")
    for start, value in (
        ("deviate by", numbers["jitter"]),
        ("√m =", 0.25),
        ("at inference by", numbers["gap"]),
    ):
        assert float(re.search(rf"{start} ([\d.]+)", words)[1]) == pytest.approx(value, abs=0.005)
    assert "about 1/(1 − ρ) = 20 steps" in words
    assert "the mean of the population is 2" in words
    assert "predicted: 1.98 behind" in said(page, moves=True, rho=0.99)
    assert "x̂ is −1 or 1, up to ε" in said(page, doublings=1)
    assert "raises an error" in said(page, doublings=0)


def test_what_the_chapter_says_about_the_gap(open_figure: OpenFigure) -> None:
    """Test that the gap falls about as 1/√m, and that a longer memory does not close it."""
    page = open_figure(NAME)
    gaps = {
        (m, rho): np.mean([simulated(page, s, m, rho, moves=False)[1]["gap"] for s in range(1, 6)])
        for m in (8, 32, 128)
        for rho in (0.9, 0.97)
    }
    first = [simulated(page, 1, m, 0.9, moves=False)[1]["gap"] for m in (8, 32, 128)]
    text = re.sub(r"\s+", " ", (ROOT / "book/batchnorm/averages.md").read_text("utf-8"))
    told = "from 8 to 32 examples, from {:.2f} to {:.2f} in the first draw, and by half from 32 to"
    assert f"{told.format(*first)} 128, to {first[2]:.2f}." in text
    assert first[1] == pytest.approx(first[0] * 2 / 3, rel=0.05)
    assert first[2] == pytest.approx(first[1] / 2, rel=0.05)
    assert gaps[8, 0.9] / 2 < gaps[32, 0.9] < gaps[8, 0.9] * 3 / 4
    assert gaps[128, 0.9] == pytest.approx(gaps[32, 0.9] / 2, rel=0.2)
    for m in (8, 32, 128):
        assert gaps[m, 0.97] == pytest.approx(gaps[m, 0.9], rel=0.25)
    for m, mean in ((2, 0.87), (4, 1.19), (8, 1.36)):  # the example pulls the mean toward itself
        shown, _ = simulated(page, 1, m, 0.9, moves=False)
        assert np.mean(shown["training"]) == pytest.approx(mean, abs=0.005)


def test_it_is_used_from_the_keyboard(open_figure: OpenFigure) -> None:
    page = open_figure(NAME)
    size = page.get_by_role("slider", name="Minibatch size m")
    assert size.get_attribute("aria-valuetext") == "8"
    size.press("ArrowRight")
    assert size.get_attribute("aria-valuetext") == "16"
    assert ask(page, NAME, "fig.shown().m") == 16
    page.get_by_role("slider", name="Weight ρ of the old average").press("ArrowLeft")
    assert ask(page, NAME, "fig.state.rho") == pytest.approx(0.89)
    before = ask(page, NAME, "fig.shown().means[0]")
    page.get_by_role("button", name="Draw anew").press("Enter")
    assert ask(page, NAME, "fig.shown().means[0]") != before
    page.get_by_role("checkbox", name="The mean of the population moves").press("Space")
    assert ask(page, NAME, "fig.state.moves") is True
    assert "behind the mean" in ask(page, NAME, "fig.sentence()")


# --- a minibatch of two and one of sixty-four ---

TWO = "batch-of-two"


def others(seed: int) -> np.ndarray:
    """Return the other examples of forty minibatches as the figure draws them."""
    return 3 + 2 * normals(uniforms(seed, 2 * 40 * 63)).reshape(40, 63)


@pytest.mark.parametrize(("seed", "x"), [(1, 3.6), (2, 5.0), (3, -4.0)])
def test_the_lines_of_both_minibatches_are_those_of_optdl(
    open_figure: OpenFigure, seed: int, x: float
) -> None:
    page = open_figure(TWO)
    there = bn.batchnorm_inference(np.array([[x]]), ONE, ZERO, 3 * ONE, 4 * ONE)[0, 0]
    for shown in ask(page, TWO, f"fig.simulate({x}, fig.draw({seed}))"):
        rest = others(seed)[:, : shown["m"] - 1]
        batches = np.column_stack([np.full(40, x), rest]).T  # a feature for each minibatch
        outputs, _ = bn.batchnorm_forward(batches, np.ones(40), np.zeros(40))
        np.testing.assert_allclose(shown["outputs"], outputs[0], rtol=1e-6, atol=1e-9)
        means, deviations = np.transpose([(s["mean"], s["deviation"]) for s in shown["statistics"]])
        np.testing.assert_allclose((batches - means) / deviations, outputs, atol=1e-6)
        assert shown["gap"] == pytest.approx(rms(outputs[0] - there))


def test_a_minibatch_of_two_agrees_with_inference_at_one_standard_deviation_alone(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(TWO)
    for seed in range(1, 7):
        other = others(seed)[0, 0]
        inputs = np.arange(-5, 11.01, 0.25).tolist()
        solved = {x for x in inputs if "✓" in said_of_two(page, x)}
        assert solved == {x for x, possible in ((1.0, other > 1), (5.0, other < 5)) if possible}
        page.get_by_role("button", name="Draw other examples").press("Enter")


def said_of_two(page: Any, x: float) -> str:
    """Return the sentence with the example at an input."""
    set_state(page, TWO, x=x)
    return str(ask(page, TWO, "fig.sentence()"))


def test_the_sentence_says_the_outputs_of_both_modes(open_figure: OpenFigure) -> None:
    page = open_figure(TWO)
    said_of_64 = bn.batchnorm_forward(np.r_[7.0, others(1)[0]][:, None], ONE, ZERO)[0][0, 0]
    words = said_of_two(page, 7.0)
    assert (
        "The output is 2.00 at inference. In training it is 1.00 in the minibatch of two" in words
    )
    assert f"and {said_of_64:.2f} among 64" in words
    gaps = re.search(r"by ([\d.]+) and by ([\d.]+) \(root", words)
    assert float(gaps[1]) > 5 * float(gaps[2])
