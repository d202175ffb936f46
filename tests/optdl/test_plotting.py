"""What is drawn is what was given; the style reads on white and on dark."""

import io
import itertools
import re
import sys
import types

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal

from optdl import plotting
from optdl.plotting import plot_contours, plot_curves, plot_power_laws, use_style

WHITE, DARK, NIGHT = "#ffffff", "#121212", "#14181e"
# Machado, Oliveira, Fernandes (2009), severity 1, in linear RGB
SIMULATIONS = {
    "full color": "1 0; 0 1; 0 0",
    "protanopia": "0.152286 1.052583; 0.114503 0.786281; -0.003882 -0.048116",
    "deuteranopia": "0.367322 0.860646; 0.280085 0.672501; -0.011820 0.042940",
    "tritanopia": "1.255528 -0.076749; -0.078411 0.930809; 0.004733 0.691367",
}


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context():
        use_style()
        yield


@pytest.fixture
def ax():
    return Figure().subplots()


def linear(color):
    v = np.array(to_rgb(color))
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Return the contrast ratio of WCAG 2."""
    dark, light = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb):
    """Return CIE L*a*b* of a linear RGB color."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    t = (np.array(to_xyz) @ np.clip(rgb, 0, 1)) / [0.9505, 1.0, 1.089]
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_lines_and_text_stand_out_on_all_pages():
    for page, least in ((WHITE, 4.5), (DARK, 4.1), (NIGHT, 3.9)):
        assert min(contrast(color, page) for color in plotting.COLORS) >= 3
        # no gray has 4.5 on both: the product of the two contrasts is 18.7
        assert contrast(plotting.TEXT, page) >= least


@pytest.mark.parametrize("vision", SIMULATIONS)
def test_colors_differ_for_every_vision(vision):
    rows = np.array([row.split() for row in SIMULATIONS[vision].split(";")], float)
    matrix = np.column_stack([rows, 1 - rows.sum(1)])  # gray stays gray
    seen = [lab(matrix @ linear(color)) for color in plotting.COLORS]
    nearest = min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))
    assert nearest > 10  # a difference of 2.3 is just noticeable


@pytest.mark.parametrize("kernel", [True, False])
def test_notebooks_show_svg_and_terminals_are_left_alone(monkeypatch, kernel):
    import matplotlib_inline.backend_inline as inline

    calls = []
    shell = types.SimpleNamespace(**({"kernel": None} if kernel else {}))
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(inline, "set_matplotlib_formats", lambda *a, **k: calls.append((a, k)))
    use_style()
    assert calls == ([(("svg",), {"metadata": {"Date": None}})] if kernel else [])


@pytest.mark.row("L1-04", "L1-05")
def test_curves_are_drawn_as_given(ax):
    curves = {"train_error": [0.5, 0.25], "validation_error": [0.6, 0.5]}
    bands = {"train_error": ([0.4, 0.2], [0.6, 0.3])}
    plot_curves(curves, ax, bands=bands, mark=(2, "best epoch"), ylabel="0–1 loss")
    for line, values in zip(ax.lines, curves.values(), strict=False):
        assert_array_equal(line.get_xydata(), np.column_stack([[1, 2], values]))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["train error", "validation error", "best epoch"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "0–1 loss")
    corners = ax.collections[0].get_paths()[0].vertices
    assert {(1.0, 0.4), (2.0, 0.2), (1.0, 0.6), (2.0, 0.3)} <= set(map(tuple, corners))
    assert ax.lines[2].get_xdata() == [2, 2]


@pytest.mark.row("L1-12")
def test_contours_and_trajectories_are_drawn_as_given(ax):
    x, y = np.linspace(-2, 2, 21), np.linspace(-1, 1, 11)
    surface = x**2 + 4 * y[:, None] ** 2
    paths = {"short": np.array([[1.0, 1.0], [0.0, 0.5]]), "far": np.array([[9.0, 9.0]])}
    plot_contours(x, y, surface, ax, trajectories=paths, minimum=np.zeros(2), levels=[1.0, 2.0])
    assert_array_equal(ax.lines[0].get_xydata(), paths["short"])
    assert_array_equal(ax.lines[1].get_xydata(), paths["short"][:1])
    assert_array_equal(ax.lines[2].get_xydata(), paths["far"])
    assert_array_equal(ax.lines[4].get_xydata(), [[0, 0]])
    assert ax.get_xlim() == (-2, 2)
    assert ax.get_ylim() == (-1, 1)
    (contours,) = ax.collections
    assert_array_equal(contours.levels, [1.0, 2.0])
    ellipse = contours.get_paths()[0].vertices
    assert_allclose(ellipse[:, 0] ** 2 + 4 * ellipse[:, 1] ** 2, 1, atol=0.05)
    assert ax.lines[0].get_marker() != ax.lines[2].get_marker()
    colors = [line.get_color() for line in ax.lines[:4]]
    assert colors == [plotting.COLORS[k] for k in (0, 0, 1, 1)]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["short", "far", "minimum"]


def test_lines_differ_without_color(ax):
    lines = ax.plot(np.eye(2, 6))
    assert len({str(line._unscaled_dash_pattern) for line in lines}) == 6


@pytest.mark.row("L1-07")
def test_power_laws_are_drawn_as_given(ax):
    n = np.array([1.0, 10.0, 100.0])
    curves = {"a": 1 / n, "b": 3 / n}
    plot_power_laws(n, curves, ax, laws={"b": 2 / n}, xlabel="n", ylabel="error")
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    for line, values in zip(ax.lines, (1 / n, 3 / n, 2 / n), strict=True):
        assert_array_equal(line.get_xydata(), np.column_stack([n, values]))
    marks, lines = ax.lines[1:]
    assert (marks.get_linestyle(), lines.get_linestyle()) == ("None", "-")
    assert marks.get_color() == lines.get_color() != ax.lines[0].get_color()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "error")


def test_frame_tells_where_axes_stand_in_picture():
    axes = Figure(figsize=(5, 4)).subplots(2)
    ax = axes[1]
    ax.set(xscale="log", xlim=(1, 100), ylim=(-1, 3), xlabel="steps", ylabel="loss")
    with io.BytesIO() as file:
        ax.figure.savefig(file, format="svg", bbox_inches="tight")
        svg = file.getvalue().decode()
    width, height = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', svg).groups())
    box = re.findall(r'id="axes_\d">\s*<g id="patch_\d+">\s*<path d="M (\S+) (\S+) \nL (\S+)', svg)
    left, lower, right = map(float, box[1])
    low, high, bottom, top, *places = map(float, plotting.frame(ax, 1, 10, 100).split())
    assert (low, high) == (-1, 3)
    middle = (left + right) / 2
    assert_allclose(places, 100 * np.array([left, middle, right]) / width, atol=0.3)
    assert bottom == pytest.approx(100 * (1 - lower / height), abs=0.3)
    assert bottom < top < 60  # the lower of two
