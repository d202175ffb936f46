"""Look at a figure that a student draws, without drawing it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from unittest.mock import MagicMock

import numpy as np

__all__ = ["Axes", "drawn", "labelled"]


class Axes:
    """Stands in for the axes of matplotlib, and remembers what is drawn.

    It has the methods that a plot of curves needs, with matplotlib's own names. Nothing else that
    the axes of matplotlib have is asked for: it may be used, and has no effect. Axes of matplotlib
    itself would take ten times as long.
    """

    def __init__(self) -> None:
        self.curves: dict[str, list[list[float]]] = {}
        self.labels = {"x": "", "y": ""}
        self.scales = {"x": "linear", "y": "linear"}
        self.has_legend = False

    def plot(self, x: Any, *rest: Any, label: str = "", **style: Any) -> list[Any]:
        """Remember a line."""
        y = rest[0] if rest and not isinstance(rest[0], str) else None
        line = (x, y) if y is not None else (range(len(list(x))), x)
        self.curves[str(label)] = [np.asarray(list(axis), float).tolist() for axis in line]
        return [_anything()]

    def scatter(self, x: Any, y: Any, label: str = "", **style: Any) -> None:
        """Remember points as a line."""
        self.plot(x, y, label=label)

    def semilogx(self, x: Any, *rest: Any, label: str = "", **style: Any) -> list[Any]:
        """Remember a line over a logarithmic axis."""
        self.set_xscale("log")
        return self.plot(x, *rest, label=label, **style)

    def semilogy(self, x: Any, *rest: Any, label: str = "", **style: Any) -> list[Any]:
        """Remember a line along a logarithmic axis."""
        self.set_yscale("log")
        return self.plot(x, *rest, label=label, **style)

    def loglog(self, x: Any, *rest: Any, label: str = "", **style: Any) -> list[Any]:
        """Remember a line with two logarithmic axes."""
        self.set_xscale("log")
        return self.semilogy(x, *rest, label=label, **style)

    def set_xlabel(self, text: str, **style: Any) -> None:
        """Remember the label of the x axis."""
        self.labels["x"] = str(text)

    def set_ylabel(self, text: str, **style: Any) -> None:
        """Remember the label of the y axis."""
        self.labels["y"] = str(text)

    def set_xscale(self, scale: str, **style: Any) -> None:
        """Remember the scale of the x axis."""
        self.scales["x"] = str(scale)

    def set_yscale(self, scale: str, **style: Any) -> None:
        """Remember the scale of the y axis."""
        self.scales["y"] = str(scale)

    def set(self, **properties: Any) -> None:
        """Set labels and scales by their names, as matplotlib does."""
        for name, value in properties.items():
            getattr(self, f"set_{name}")(value)

    def legend(self, *handles: Any, **style: Any) -> Any:
        """Remember that there is a legend."""
        self.has_legend = True
        return _anything()

    def get_legend_handles_labels(self) -> tuple[list[Any], list[str]]:
        """Return the lines and their labels, from which a legend may be made."""
        return [_anything()] * len(self.curves), list(self.curves)

    def __getattr__(self, name: str) -> Any:
        """Return what does nothing, under each name that the axes of matplotlib have."""
        if name.startswith("_"):  # Python asks for some of these, as for ``__deepcopy__``
            raise AttributeError(f"'Axes' object has no attribute {name!r}")
        if name not in _HARMLESS:
            getattr(_axes(), name)
        return _anything()


_HARMLESS = ("axhline", "axvline", "grid", "set_title", "set_xlim", "set_ylim", "text")
"""What plots of curves often use; matplotlib is imported for other names only."""


@cache
def _anything() -> MagicMock:
    """Return an object of which all may be asked, such as the color of a line."""
    return MagicMock()


@cache
def _axes() -> Any:
    """Return axes of matplotlib, whose import takes half a second."""
    from matplotlib.figure import Figure

    return Figure().subplots()


def drawn(plot: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what ``plot(ax, *arguments)`` draws, whatever the axes are called.

    Returns
    -------
    dict
        ``lines`` by label, each with its x and its y; ``x scale`` and ``y scale``; whether both
        axes have labels, and whether there is a legend.
    """
    figure = labelled(plot, *arguments)
    del figure["the label of the y axis"]
    return figure


def labelled(plot: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what :func:`drawn` returns, and the label of the y axis, where the task gives it."""
    ax = Axes()
    plot(ax, *arguments)
    labels = {name: label.strip() for name, label in ax.labels.items()}
    return {
        "lines": {label: tuple(map(np.array, line)) for label, line in sorted(ax.curves.items())},
        "x scale": ax.scales["x"],
        "y scale": ax.scales["y"],
        "labels at both axes": all(labels.values()),
        "a legend": ax.has_legend,
        "the label of the y axis": labels["y"],
    }
