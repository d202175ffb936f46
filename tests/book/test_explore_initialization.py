"""The figure on the scale of the first weights computes what optdl and torch compute."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from mulberry import normals, uniforms
from scipy.integrate import quad
from test_explore import OpenFigure, ask, set_state

from optdl import initialization as init

pytestmark = pytest.mark.xdist_group("site")

WIDTH, DEPTH, EXAMPLES = 100, 50, 10
NAMES = ("tanh", "relu", "sigmoid", "linear")
TORCH = {
    "tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid, "linear": lambda z: z,
}  # fmt: skip


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, gradients at the output and weights as the figure draws them."""
    layer = EXAMPLES * WIDTH
    numbers = normals(uniforms(seed, 2 * (2 * layer + DEPTH * WIDTH**2)))
    inputs, upstream, weights = np.split(numbers, [layer, 2 * layer])
    shape = EXAMPLES, WIDTH
    return inputs.reshape(shape), upstream.reshape(shape), weights.reshape(DEPTH, WIDTH, WIDTH)


def measured(page: Any, seed: int, factor: float, name: str) -> dict[str, Any]:
    """Return what the figure measures."""
    keep = "(({activations, gradients}) => ({activations, gradients}))"
    call = f"fig.measure(fig.draw({seed}), {factor}, fig.ACTIVATIONS.{name})"
    return dict(ask(page, "signal", f"{keep}({call})"))


def by_torch(
    x: np.ndarray, upstream: np.ndarray, layers: list[np.ndarray], name: str
) -> list[float]:
    """Return the mean square of the gradient at each layer."""
    h = [torch.tensor(x, requires_grad=True)]
    for W in layers:
        h.append(TORCH[name](h[-1] @ torch.tensor(W).T))
    for activation in h[1:]:
        activation.retain_grad()
    h[-1].backward(torch.tensor(upstream))
    return [float((activation.grad**2).mean()) for activation in h]


@pytest.mark.parametrize("name", NAMES)
def test_both_mean_squares_are_those_of_optdl_and_torch(open_figure: OpenFigure, name: str) -> None:
    page = open_figure("signal")
    x, upstream, weights = drawn(7)
    for factor in (0.5, 1.0, 1.7, 3.0):
        layers = list(weights * factor / np.sqrt(WIDTH))
        shown = measured(page, 7, factor, name)
        forward = init.measured_second_moments(x, layers, name)
        backward = by_torch(x, upstream, layers, name)
        both = np.array([shown["activations"], shown["gradients"]], dtype=float)
        np.testing.assert_allclose(both, [forward, backward], rtol=1e-6)


def mean_square(f: Callable[[np.ndarray], np.ndarray], variance: float) -> float:
    """Return the expected square of f of a normal variable, by adaptive quadrature."""

    def integrand(t: float) -> float:
        return float(f(np.array([np.sqrt(variance) * t]))[0] ** 2) * np.exp(-t * t / 2)

    halves = (quad(integrand, *part, epsabs=0, epsrel=1e-10)[0] for part in ((-9, 0), (0, 9)))
    return float(sum(halves) / np.sqrt(2 * np.pi))


def test_the_prediction_is_that_of_wide_layers(open_figure: OpenFigure) -> None:
    page = open_figure("signal")
    for name, factor in itertools.product(NAMES, [0.3, 1.0, 2.5]):
        shown = ask(page, "signal", f"fig.predict({factor}, fig.ACTIVATIONS.{name})")
        activation, forward, backward = init.ACTIVATIONS[name], [1.0], [1.0]
        for layer in range(4):
            variance = factor**2 * shown["activations"][layer]
            forward.append(mean_square(activation.value, variance))
            backward.append(backward[-1] * factor**2 * mean_square(activation.slope, variance))
        np.testing.assert_allclose(shown["activations"][:5], forward, rtol=1e-6)
        gradients = np.array(shown["gradients"], dtype=float)
        np.testing.assert_allclose(gradients[0] / gradients[:5], backward, rtol=1e-6)
        variances = [factor**2 / WIDTH] * DEPTH
        moments = init.second_moments(1.0, [WIDTH] * DEPTH, variances, name)
        np.testing.assert_allclose(np.array(shown["activations"], dtype=float), moments, rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_the_curves_cross_one_where_quadrature_does(open_figure: OpenFigure, name: str) -> None:
    page = open_figure("signal")
    crossings = ask(page, "signal", f"fig.sweep(fig.ACTIVATIONS.{name}).crossings")

    def ends(factor: float) -> tuple[float, float]:
        activation, forward, backward = init.ACTIVATIONS[name], 1.0, 1.0
        for _ in range(DEPTH):
            variance = factor**2 * forward
            forward = mean_square(activation.value, variance)
            backward *= factor**2 * mean_square(activation.slope, variance)
        return forward, backward

    for k, kind in enumerate(("forward", "backward")):
        if (crossing := crossings[kind]) is None:
            assert max(ends(factor)[k] for factor in (0.2, 1, 4, 16)) < 1
        else:
            assert ends(0.99 * crossing)[k] < 1 < ends(1.01 * crossing)[k]
    bounded = name in ("tanh", "sigmoid")
    assert (crossings["forward"] is None) == bounded
    assert crossings["backward"] is not None


FATES = {"vanishes": 1e-3, "shrinks": 0.1, "keeps its size": 10, "grows": 1e3, "explodes": np.inf}


def test_the_words_agree_with_the_numbers(open_figure: OpenFigure) -> None:
    page, words = open_figure("signal"), set()
    for name, factor in itertools.product(("relu", "tanh"), (1.0, 1.35, 2**0.5, 1.5, 2.0, 3.0)):
        set_state(page, "signal", activation=name, factor=factor)
        forward = ask(page, "signal", "fig.measured().activations[50]")
        backward = ask(page, "signal", "fig.measured().gradients[0]")
        said = ask(page, "signal", "fig.sentence()")
        for whose, value in (("signal", forward), ("gradient", backward)):
            word = next(word for word, limit in FATES.items() if value <= limit)
            assert f"the {whose} {word}:" in said, (name, factor, said)
            words.add(word)
        solved = name == "tanh" and 0.1 <= forward <= 10 and 0.1 <= backward <= 10
        assert said.startswith("✓") == solved
    assert words == FATES.keys()


def test_the_histograms_count_every_activation(open_figure: OpenFigure) -> None:
    page = open_figure("signal")
    layer = np.array(list(ask(page, "signal", "[...fig.measured().layers[50]]")))
    x, _, weights = drawn(1)
    h = x
    for W in weights / np.sqrt(WIDTH):
        h = np.tanh(h @ W.T)
    np.testing.assert_allclose(layer, h.ravel(), atol=1e-12)
    bins = ask(page, "signal", "fig.counts([-9, -0.01, 0.01, 0.04, 9])")
    assert [bins[0], bins[29], bins[30], bins[59]] == [1, 1, 2, 1]
    assert sum(bins) == 5


def test_it_is_used_from_the_keyboard(open_figure: OpenFigure) -> None:
    page = open_figure("signal")
    page.get_by_role("button", name="He: √2").press("Enter")
    assert ask(page, "signal", "fig.state.factor") == pytest.approx(2**0.5)
    page.get_by_label("Weight scale").press("ArrowRight")
    assert 1.42 < ask(page, "signal", "fig.state.factor") < 1.47
    page.get_by_label("tanh").focus()
    page.keyboard.press("ArrowRight")
    assert ask(page, "signal", "fig.state.activation") == "relu"
    assert ask(page, "signal", "fig.sentence()").startswith("ReLU, ")
    before = ask(page, "signal", "fig.measured().activations[50]")
    page.get_by_role("button", name="New weights").press("Enter")
    assert ask(page, "signal", "fig.measured().activations[50]") != before
