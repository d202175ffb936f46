"""One style for every figure, and the few plots that chapters share.

A plot takes data and axes, draws what it is given and returns the axes; it computes nothing.

Colors of lines have a contrast of at least 3 to the white page and to the dark one, and differ for
readers with protanopia, deuteranopia or tritanopia. Dashes tell lines apart without any color.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
import numpy as np
from cycler import cycler

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = [
    "COLORS",
    "DASHES",
    "MARKERS",
    "TEXT",
    "frame",
    "plot_contours",
    "plot_curves",
    "plot_power_laws",
    "use_style",
]

Values = Sequence[Any] | np.ndarray
"""Numbers along an axis, whole or real."""

COLORS = ("#4a6cff", "#c08820", "#28832a", "#dc282c", "#10a0a8", "#a54bb4")
"""The hues of lines, in order: blue, ochre, green, red, teal, purple."""

DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (7, 1.5, 1, 1.5)), (0, (3, 1)), (0, (9, 2)))
"""The dashes that go with the hues."""

MARKERS = ("o", "s", "^", "D", "v", "P")
"""The markers that go with the hues."""

TEXT = "#767676"
"""Text and axes. White asks for a gray no lighter than this, to reach a contrast of 4.5."""

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": TEXT,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": TEXT,
    "axes.labelsize": 12,
    "axes.linewidth": 1.0,
    "axes.prop_cycle": cycler(color=COLORS, linestyle=DASHES),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": TEXT,
    "axes.titlesize": 12,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "figure.figsize": (5.6, 3.4),
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 12,
    "grid.alpha": 0.25,
    "grid.color": TEXT,
    "grid.linewidth": 0.8,
    "image.cmap": "viridis",
    "legend.facecolor": "none",
    "legend.fontsize": 11,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    "legend.labelcolor": TEXT,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "mathtext.fontset": "dejavusans",
    "savefig.facecolor": "none",
    "savefig.transparent": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "optdl",
    "text.color": TEXT,
    "xtick.color": TEXT,
    "xtick.labelsize": 11,
    "ytick.color": TEXT,
    "ytick.labelsize": 11,
}


def use_style() -> None:
    """Draw all later figures in the style of the course, and as SVG inside a notebook.

    The same figure gives the same SVG, byte for byte, in every run.

    >>> import matplotlib.pyplot as plt
    >>> with plt.rc_context():
    ...     use_style()
    ...     plt.rcParams["axes.facecolor"]
    'none'
    """
    mpl.rcParams.update(cast(Any, _STYLE))
    # Only a running IPython kernel has inline figures; a script must not load IPython for this.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and hasattr(shell, "kernel"):
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # the date is the one thing in an SVG that differs from run to run
        set_matplotlib_formats("svg", metadata={"Date": None})  # type: ignore[no-untyped-call]


def frame(ax: Axes, *at: float) -> str:
    """Tell where a curve through the places ``at`` stands in the picture of a drawn figure.

    Returns the ends of the y axis, which is linear, and in percent of the picture their heights
    above its lower edge and the distances of the places from its left edge.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> _ = ax.set(xlim=(0, 10), ylim=(0, 2))
    >>> low, high, bottom, top, left, right = map(float, frame(ax, 0, 10).split())
    >>> low, high, 0 < bottom < top < 100, 0 < left < right < 100
    (0.0, 2.0, True, True)
    >>> plt.close(fig)
    """
    figure = ax.get_figure(root=True)
    assert figure is not None
    picture = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    ends = ax.get_ylim()
    points = [(at[0], ends[0]), (at[0], ends[1]), *((place, ends[0]) for place in at)]
    shown = ax.transData.transform(points) / figure.dpi
    x, y = (100 * (shown - picture.min) / picture.size).T
    return " ".join(f"{number:.5g}" for number in (*ends, *y[:2], *x[2:]))


def plot_curves(
    curves: Mapping[str, Values],
    ax: Axes,
    *,
    x: Values | None = None,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
    mark: tuple[float | int, str] | None = None,
    xlabel: str = "epoch",
    ylabel: str = "",
) -> Axes:
    """Draw curves against epochs or another common axis.

    Raises ValueError where a curve does not have as many numbers as x, or a band belongs to no
    curve.

    Parameters
    ----------
    curves : mapping
        Names to sequences of t numbers, such as ``record.curves``. A name becomes a label, its
        underscores spaces.
    x : sequence of t numbers, optional
        The common axis; the epochs 1 … t when not given.
    bands : mapping, optional
        Names of curves to pairs of lower and upper ends, t numbers each, shaded.
    mark : (float, str), optional
        A place on the axis to mark with a vertical line, and its label.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> ax = plot_curves({"train_error": [0.5, 0.2, 0.1]}, ax, ylabel="0–1 loss")
    >>> ax.lines[0].get_label(), ax.lines[0].get_xdata()
    ('train error', array([1, 2, 3]))
    >>> plt.close(fig)
    """
    bands = bands or {}
    _require_known(bands, curves, "band")
    for name, values in curves.items():
        along = np.arange(1, len(values) + 1) if x is None else np.asarray(x)
        _require_length(name, values, along)
        (line,) = ax.plot(along, values, label=name.replace("_", " "))
        if name in bands:
            low, high = bands[name]
            ax.fill_between(along, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    if mark is not None:
        ax.axvline(mark[0], color=TEXT, linestyle=":", linewidth=1.5, label=mark[1])
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend()
    return ax


def plot_contours(
    x: np.ndarray,
    y: np.ndarray,
    surface: np.ndarray,
    ax: Axes,
    *,
    trajectories: Mapping[str, np.ndarray] | None = None,
    minimum: np.ndarray | None = None,
    levels: int | Values = 12,
    labels: tuple[str, str] = ("$w_1$", "$w_2$"),
) -> Axes:
    """Draw the level curves of a surface, with trajectories on it.

    Parameters
    ----------
    surface : (rows, columns) array
        The value at (x[j], y[i]) in entry (i, j), as from :meth:`optdl.problems.Problem.surface`.
    trajectories : mapping, optional
        Names to (t, 2) arrays of points. The first point is drawn larger. They have no influence
        on the limits of the axes.
    minimum : (2,) array, optional
        A point to mark with a star.
    levels : int or sequence
        Number of level curves, or their heights.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> x, y = np.linspace(-1, 1, 5), np.linspace(-2, 2, 7)
    >>> fig, ax = plt.subplots()
    >>> path = np.array([[1.0, 1.0], [0.5, 0.1]])
    >>> ax = plot_contours(x, y, x**2 + y[:, None] ** 2, ax, trajectories={"descent": path})
    >>> ax.lines[0].get_xydata()
    array([[1. , 1. ],
           [0.5, 0.1]])
    >>> plt.close(fig)
    """
    if surface.shape != (len(y), len(x)):
        raise ValueError(
            f"the surface must have shape ({len(y)}, {len(x)}), one row for each y and one column "
            f"for each x; got {surface.shape}"
        )
    ax.contour(x, y, surface, levels, colors=TEXT, linewidths=0.9, linestyles="-", alpha=0.75)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel=labels[0], ylabel=labels[1])
    ax.grid(False)
    for (name, path), marker, color in zip(
        (trajectories or {}).items(), cycle(MARKERS), cycle(COLORS), strict=False
    ):
        if path.ndim != 2 or path.shape[1] != 2:
            raise ValueError(f"trajectory {name!r} must have shape (t, 2); got {path.shape}")
        line: dict[str, Any] = {"marker": marker, "color": color, "linestyle": "-"}
        ax.plot(path[:, 0], path[:, 1], markersize=4, label=name, **line)
        ax.plot(*path[0], markersize=9, **line)
    if minimum is not None:
        ax.plot(*minimum, "*", color=TEXT, markersize=13, label="minimum")
    if ax.get_legend_handles_labels()[0]:
        # above the axes, where it hides no contour
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return ax


def plot_power_laws(
    x: Values,
    measured: Mapping[str, Values],
    ax: Axes,
    *,
    laws: Mapping[str, Values] | None = None,
    xlabel: str = "",
    ylabel: str = "",
) -> Axes:
    """Draw measurements as marks and the laws they should follow as lines, in log–log axes.

    A law has the name of a measurement, and its color. Both map names to as many positive numbers
    as x has. Raises ValueError where they have another number, or a law belongs to no measurement.

    >>> import matplotlib.pyplot as plt
    >>> x = np.array([1.0, 10.0, 100.0])
    >>> fig, ax = plt.subplots()
    >>> ax = plot_power_laws(x, {"error": 2 / x}, ax, laws={"error": 2 / x})
    >>> ax.get_xscale(), len(ax.lines)
    ('log', 2)
    >>> plt.close(fig)
    """
    laws = laws or {}
    _require_known(laws, measured, "law")
    for (name, values), marker, color in zip(
        measured.items(), cycle(MARKERS), cycle(COLORS), strict=False
    ):
        _require_length(name, values, x)
        ax.loglog(x, values, linestyle="none", marker=marker, color=color, label=name)
        if name in laws:
            _require_length(name, laws[name], x)
            ax.loglog(x, laws[name], linestyle="-", linewidth=1.2, color=color)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend()
    return ax


def _require_length(name: str, values: Any, x: Any) -> None:
    if len(values) != len(x):
        raise ValueError(f"{name!r} must have {len(x)} values, as many as x; got {len(values)}")


def _require_known(extras: Mapping[str, Any], known: Mapping[str, Any], kind: str) -> None:
    if unknown := sorted(set(extras) - set(known)):
        raise ValueError(f"each {kind} needs a curve of its name: {sorted(known)}; got {unknown}")
