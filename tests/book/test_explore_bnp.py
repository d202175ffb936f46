"""The figures of BNP compute the condition numbers and the steps that optdl computes."""

import re
from typing import Any

import numpy as np
import pytest
from test_explore import OpenFigure, ask, set_state
from test_explore_conditioning import drag

from optdl import bnp, conditioning, problems
from optdl.optimizers import SGD, run

pytestmark = pytest.mark.xdist_group("site")

CLOUD = "bnp-cloud"
CLOUDS = {
    "the start": {},
    "far away": {"mean": [-2.7, 5.1], "s1": 0.1, "s2": 1.75, "r": -0.95},
    "centered": {"mean": [0, 0], "s1": 2, "s2": 0.35, "r": 0.3},
    "scaled": {"mean": [0, 0], "s1": 1, "s2": 1, "r": 0.8},
    "small": {"mean": [0, 0], "s1": 0.1, "s2": 0.1, "r": 0},
    "white": {"mean": [0, 0], "s1": 1, "s2": 1, "r": 0},
}


def shown(page: Any) -> tuple[np.ndarray, list[dict[str, Any]]]:
    """Return the points of the cloud and what the figure says about the three systems."""
    return np.array(ask(page, CLOUD, "fig.points()")), ask(page, CLOUD, "fig.systems()")


def preconditioners(H: np.ndarray) -> list[np.ndarray]:
    """Return P of the three coordinate systems."""
    mean, var = bnp.batch_statistics(H)
    U, D = bnp.preconditioner(mean, np.sqrt(var))
    return [np.eye(3), U, U @ D]


@pytest.mark.parametrize("name", CLOUDS)
def test_the_cloud_has_its_statistics_and_the_condition_numbers_of_optdl(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(CLOUD)
    set_state(page, CLOUD, **CLOUDS[name])
    H, systems = shown(page)
    state = ask(page, CLOUD, "fig.state")
    np.testing.assert_allclose(H.mean(axis=0), state["mean"], atol=1e-9)
    np.testing.assert_allclose(H.std(axis=0), [state["s1"], state["s2"]], rtol=1e-9)
    assert np.corrcoef(H.T)[0, 1] == pytest.approx(state["r"], abs=1e-9)
    kappas = np.array(bnp.condition_numbers(H))
    np.testing.assert_allclose([one["kappa2"] for one in systems], kappas**2, rtol=1e-6)
    whole = bnp.layer_hessian(H, np.ones(len(H)))
    for P, system in zip(preconditioners(H), systems, strict=True):
        hessian = P.T @ whole @ P
        np.testing.assert_allclose(system["hessian"], hessian, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(system["values"], np.linalg.eigvalsh(hessian), rtol=1e-6)


@pytest.mark.parametrize("name", CLOUDS)
def test_the_paths_are_those_of_gradient_descent_from_one_start(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(CLOUD)
    set_state(page, CLOUD, steps=60, **CLOUDS[name])
    H, systems = shown(page)
    starts = np.array(ask(page, CLOUD, "fig.starts()"))
    assert starts[0, 0] == 0  # the bias starts right
    for P, system, start in zip(preconditioners(H), systems, starts, strict=True):
        np.testing.assert_allclose(P @ start, starts[0], atol=1e-9)
        hessian = P.T @ bnp.layer_hessian(H, np.ones(len(H))) @ P
        low, *_, high = np.linalg.eigvalsh(hessian)
        assert system["lr"] == pytest.approx(2 / (low + high), rel=1e-6)
        path = run(SGD(system["lr"]), problems.quadratic(hessian), start, 60)
        np.testing.assert_allclose(system["path"], path, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", CLOUDS)
def test_no_start_needs_more_steps_and_one_needs_as_many(
    open_figure: OpenFigure, name: str
) -> None:
    page = open_figure(CLOUD)
    set_state(page, CLOUD, **CLOUDS[name])
    _, systems = shown(page)
    for system in systems:
        values, vectors = np.linalg.eigh(np.array(system["hessian"]))
        iteration = np.eye(3) - system["lr"] * np.array(system["hessian"])
        before = np.linalg.norm(np.linalg.matrix_power(iteration, system["count"] - 1), 2)
        after = np.linalg.norm(np.linalg.matrix_power(iteration, system["count"]), 2)
        assert after <= 0.01 * (1 + 1e-9)
        assert before > 0.01
        worst = np.linalg.matrix_power(iteration, system["count"] - 1) @ vectors[:, 0]
        assert np.linalg.norm(worst) == pytest.approx(before, rel=1e-6) or values[0] == values[2]


def test_the_sentence_tells_the_numbers_and_which_step_gains(open_figure: OpenFigure) -> None:
    page = open_figure(CLOUD)
    gains = {
        "the start": "Centering gains a factor of 40.8, and scaling gains a factor of 7.35.",
        "scaled": "Centering gains nothing, and scaling gains nothing.",
        "small": "scaling gains a factor of 100 (after U, the bias is the steepest direction).",
        "white": "Without correlation nothing is left to gain.",
    }
    for name, words in gains.items():
        set_state(page, CLOUD, **CLOUDS[name])
        said = ask(page, CLOUD, "fig.sentence()")
        assert words in said
        kappas = np.array(bnp.condition_numbers(shown(page)[0]))
        told = [float(number) for number in re.findall(r"\)² = ([\d.]+)[,:]", said)]
        np.testing.assert_allclose(told, kappas**2, rtol=5e-3)
    set_state(page, CLOUD, mean=[0, 0], s1=2, s2=2, r=0)
    assert "(after U, the bias is the flattest direction)" in ask(page, CLOUD, "fig.sentence()")
    set_state(page, CLOUD, r=-0.6)
    assert "(1 + 0.60) / (1 − 0.60) = 4.00" in ask(page, CLOUD, "fig.sentence()")


def test_the_first_path_jumps_along_the_mean_and_hardly_advances(open_figure: OpenFigure) -> None:
    system = shown(open_figure(CLOUD))[1][0]
    path = np.array(system["path"])
    assert len(path) == 21
    jumps, mean = np.diff(path, axis=0)[:, 1:], np.array([3.0, 2.0])
    cosines = jumps @ mean / np.linalg.norm(jumps, axis=1) / np.linalg.norm(mean)
    assert np.all(np.abs(cosines) > 0.99)
    assert np.all(cosines[1:] * cosines[:-1] < 0)
    distance = np.linalg.norm(path, axis=1)
    assert distance[-1] > 0.95 * distance[0]


def test_the_mean_changes_the_first_number_alone_and_deviations_not_the_third(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(CLOUD)
    before = bnp.condition_numbers(shown(page)[0])
    set_state(page, CLOUD, mean=[-1, 4])
    moved = bnp.condition_numbers(shown(page)[0])
    np.testing.assert_allclose(moved[1:], before[1:], rtol=1e-9)
    assert moved[0] != pytest.approx(before[0], rel=0.01)
    set_state(page, CLOUD, s1=0.4, s2=1.9)
    assert bnp.condition_numbers(shown(page)[0])[2] == pytest.approx(before[2])


def test_the_cloud_moves_by_keyboard_mouse_and_button(open_figure: OpenFigure) -> None:
    page = open_figure(CLOUD)
    state = lambda: ask(page, CLOUD, "[...fig.state.mean, fig.state.s1, fig.state.s2, fig.state.r]")  # noqa: E731
    page.get_by_role("slider", name="Mean of the cloud").press("ArrowLeft")
    assert state() == [2.9, 2, 1.2, 0.3, 0.5]
    edge = page.get_by_role("slider", name="Right edge of the cloud")
    edge.press("ArrowRight")
    assert state() == [2.9, 2, 1.25, 0.3, 0.5]
    edge.press("ArrowDown")
    assert state()[:4] == [2.9, 2, 1.25, 0.3]
    assert state()[4] < 0.45
    page.get_by_role("slider", name="Upper edge of the cloud").press("ArrowUp")
    assert state()[3] > 0.3
    drag(page, "Mean of the cloud", (-60, 0))
    assert state()[0] < 1.5
    drag(page, "Right edge of the cloud: standard deviation of h₁, and correlation", (40, -200))
    assert state()[2] > 1.5
    assert state()[4] == 0.95
    page.get_by_role("slider", name="Correlation r").press("Home")
    assert state()[4] == -0.95
    page.get_by_role("button", name="Center the cloud").press("Enter")
    assert state()[:2] == [0, 0]
    page.get_by_role("button", name="Center and scale it").press("Enter")
    kappas = bnp.condition_numbers(shown(page)[0])
    np.testing.assert_allclose(kappas, kappas[2], rtol=1e-6)
    page.get_by_role("button", name="Back to the beginning").press("Enter")
    assert state() == [3, 2, 1.2, 0.3, 0.5]


# --- two layers that share one learning rate ---

LAYERS = {
    "plain": (0, 0),
    "inputs centered": (1, 0),
    "BN": (0, 2),
    "BNP": (2, 2),
}
"""Which of I, U and UD each layer has, by method."""


@pytest.mark.parametrize(("inputs", "hidden"), [(3.0, 0.8), (0.0, 0.8), (1.5, 3.0), (6.0, 0.0)])
def test_the_gain_is_that_of_the_spectra_of_both_layers(
    open_figure: OpenFigure, inputs: float, hidden: float
) -> None:
    page = open_figure("gain")
    set_state(page, "gain", inputs=inputs, hidden=hidden)
    spectra = []
    for mean, std in ((inputs, 1.0), (hidden, 0.6)):
        H = np.array(ask(page, "gain", f"fig.points({mean}, {std})"))
        np.testing.assert_allclose(H.mean(axis=0), mean, atol=1e-9)
        np.testing.assert_allclose(H.std(axis=0), std, rtol=1e-9)
        assert np.corrcoef(H.T)[0, 1] == pytest.approx(0.5)
        whole = bnp.layer_hessian(H, np.ones(len(H)))
        spectra.append([np.linalg.eigvalsh(P.T @ whole @ P) for P in preconditioners(H)])
    found = ask(page, "gain", "fig.methods()")
    assert [one["name"] for one in found] == list(LAYERS)
    said = ask(page, "gain", "fig.sentence()")
    for one, kinds in zip(found, LAYERS.values(), strict=True):
        values = [np.sort(spectra[layer][kind]) for layer, kind in enumerate(kinds)]
        np.testing.assert_allclose(np.sort(one["values"]), values, rtol=1e-9)
        kappa = np.max(values) / np.min(values)
        assert one["kappa"] == pytest.approx(kappa)
        assert one["count"] == conditioning.iterations_needed(kappa, 0.01)
        assert f" {one['count']} " in said
    assert ("BN and BNP agree" in said) == (inputs == 0)


def test_centered_inputs_leave_bn_and_bnp_alike_whatever_the_hidden_mean(
    open_figure: OpenFigure,
) -> None:
    page = open_figure("gain")
    page.get_by_role("button", name="Center the inputs").press("Enter")
    for hidden in (0.0, 2.0, 6.0):
        set_state(page, "gain", hidden=hidden)
        counts = {one["name"]: one["count"] for one in ask(page, "gain", "fig.methods()")}
        assert counts["BN"] == counts["BNP"] == 7
        assert counts["plain"] == counts["inputs centered"] > 7


def test_the_means_of_both_layers_are_dragged_along_the_diagonal(open_figure: OpenFigure) -> None:
    page = open_figure("gain")
    drag(page, "Mean of the hidden activations", (60, 40))
    state = ask(page, "gain", "[fig.state.inputs, fig.state.hidden]")
    assert state[0] == 3
    assert 2.5 < state[1] < 4.5
    page.get_by_role("slider", name="Mean of the inputs", exact=True).press("ArrowLeft")
    assert ask(page, "gain", "fig.state.inputs") == 2.9
