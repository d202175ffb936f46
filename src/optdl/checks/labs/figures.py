"""Look at a figure that a student draws, without drawing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Axes", "drawn"]


class Axes:
    """Stands in for the axes of matplotlib, and remembers what is drawn.

    It has the methods that a plot of curves needs, with matplotlib's own names.
    """

    def __init__(self) -> None:
        self.lines: dict[str, list[list[float]]] = {}
        self.words = {"x": "", "y": ""}
        self.scales = {"x": "linear", "y": "linear"}
        self.has_legend = False

    def plot(self, x: Any, *rest: Any, label: str = "", **style: Any) -> None:
        """Remember a line."""
        y = rest[0] if rest and not isinstance(rest[0], str) else None
        values = (x, y) if y is not None else (range(len(list(x))), x)
        self.lines[str(label)] = [np.asarray(list(one), float).tolist() for one in values]

    def scatter(self, x: Any, y: Any, label: str = "", **style: Any) -> None:
        """Remember points as a line."""
        self.plot(x, y, label=label)

    def semilogx(self, x: Any, *rest: Any, label: str = "", **style: Any) -> None:
        """Remember a line over a logarithmic axis."""
        self.set_xscale("log")
        self.plot(x, *rest, label=label)

    def semilogy(self, x: Any, *rest: Any, label: str = "", **style: Any) -> None:
        """Remember a line along a logarithmic axis."""
        self.set_yscale("log")
        self.plot(x, *rest, label=label)

    def loglog(self, x: Any, *rest: Any, label: str = "", **style: Any) -> None:
        """Remember a line with two logarithmic axes."""
        self.set_xscale("log")
        self.semilogy(x, *rest, label=label)

    def set_xlabel(self, text: str, **style: Any) -> None:
        """Remember the words at the x axis."""
        self.words["x"] = str(text)

    def set_ylabel(self, text: str, **style: Any) -> None:
        """Remember the words at the y axis."""
        self.words["y"] = str(text)

    def set_xscale(self, scale: str, **style: Any) -> None:
        """Remember the scale of the x axis."""
        self.scales["x"] = str(scale)

    def set_yscale(self, scale: str, **style: Any) -> None:
        """Remember the scale of the y axis."""
        self.scales["y"] = str(scale)

    def set(self, **properties: Any) -> None:
        """Set labels and scales by their names, as matplotlib does."""
        for name, value in properties.items():
            setter = getattr(self, f"set_{name}", None)
            if setter is not None:
                setter(value)

    def legend(self, *handles: Any, **style: Any) -> None:
        """Remember that there is a legend."""
        self.has_legend = True

    def set_title(self, text: str, **style: Any) -> None:
        """Take a title; none is asked for."""

    def set_xlim(self, *limits: Any, **named: Any) -> None:
        """Take limits; none are asked for."""

    def set_ylim(self, *limits: Any, **named: Any) -> None:
        """Take limits; none are asked for."""

    def grid(self, *which: Any, **style: Any) -> None:
        """Take a grid; none is asked for."""

    def axhline(self, *where: Any, **style: Any) -> None:
        """Take a line across; none is asked for."""

    def axvline(self, *where: Any, **style: Any) -> None:
        """Take a line from bottom to top; none is asked for."""

    def text(self, *where: Any, **style: Any) -> None:
        """Take a word; none is asked for."""


def drawn(plot: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what ``plot(ax, *arguments)`` draws.

    Returns
    -------
    dict
        ``lines`` by label, each with its x and its y; ``x scale`` and ``y scale``; whether both
        axes have words, and whether there is a legend.
    """
    ax = Axes()
    plot(ax, *arguments)
    return {
        "lines": {label: tuple(map(np.array, line)) for label, line in sorted(ax.lines.items())},
        "x scale": ax.scales["x"],
        "y scale": ax.scales["y"],
        "words at both axes": bool(ax.words["x"].strip() and ax.words["y"].strip()),
        "a legend": ax.has_legend,
    }
