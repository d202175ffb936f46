"""Look at a figure that a student draws: real axes of matplotlib, on which nothing is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["drawn", "labelled"]

UNNAMED = "a line without a label"


def drawn(plot: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what ``plot(ax, *arguments)`` draws, whatever the axes are called.

    Parameters
    ----------
    plot : callable
        The student's function; it draws on the axes that it is given, and may use pyplot as well.
    *arguments : values
        What is to be drawn.

    Returns
    -------
    dict
        ``lines``: the name of each line in the legend, or its label, to its x and its y. Points of
        ``scatter``, ``errorbar`` and ``stem`` are a line, too; lines without a name count only if
        no line has one. Then the scales, and whether there are labels, and a legend of all lines.
    """
    figure = labelled(plot, *arguments)
    del figure["the label of the y axis"]
    return figure


def labelled(plot: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """Return what :func:`drawn` returns, and the label of the y axis, where the task gives it.

    Parameters
    ----------
    plot, *arguments
        As in :func:`drawn`.

    Returns
    -------
    dict
        That of :func:`drawn`, with ``the label of the y axis``.
    """
    import matplotlib.pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    before = plt.get_fignums()
    figure = Figure()
    # pyplot knows the figure from ``plt.sca(ax)`` on, as it would know the student's own
    FigureCanvasAgg.new_manager(figure, -1)
    ax = figure.subplots()
    given = _listen_to_legend(ax)
    try:
        plot(ax, *arguments)
    finally:
        for number in {*plt.get_fignums()} - {*before}:
            plt.close(number)
    return _seen(ax, given)


def _listen_to_legend(ax: Axes) -> dict[Any, str]:
    """Return a dict that ``ax.legend`` fills: each artist that a legend is given, to its name."""
    names: dict[Any, str] = {}
    legend = ax.legend

    def listening(*given: Any, handles: Any = None, labels: Any = None, **style: Any) -> Any:
        if len(given) == 2:
            handles, labels = given
        elif given:
            (labels,) = given
        if handles is None and labels is not None:
            handles = [artist for artist in _curves(ax) if artist.get_label() != "_nolegend_"]
        handles = handles and [*handles]
        labels = labels and [*labels]
        texts = labels or [artist.get_label() for artist in handles or []]
        names.clear()
        names.update(zip(handles or [], map(str, texts), strict=False))
        options = {"handles": handles, "labels": labels}
        return legend(**{name: value for name, value in options.items() if value}, **style)

    ax.legend = listening  # type: ignore[method-assign]
    return names


def _curves(ax: Axes) -> Iterator[Any]:
    """Yield lines and points in data coordinates, as ``axhline`` is not, and what joins them."""
    yield from (line for line in ax.lines if line.get_transform() == ax.transData)
    yield from (points for points in ax.collections if hasattr(points, "get_sizes"))
    yield from (some for some in ax.containers if hasattr(some[0], "get_xydata"))


def _points(artist: Any) -> np.ndarray:
    if hasattr(artist, "get_offsets"):
        return np.ma.filled(artist.get_offsets(), np.nan)
    line = artist[0] if isinstance(artist, tuple) else artist
    return np.ma.filled(np.ma.stack(line.get_data(orig=False), axis=1).astype(float), np.nan)


def _seen(ax: Axes, given: dict[Any, str]) -> dict[str, Any]:
    names = {artist: given.get(artist, str(artist.get_label())) for artist in _curves(ax)}
    lines = {name: artist for artist, name in names.items() if name and name[0] != "_"}
    if not lines and names:
        lines = {UNNAMED: next(iter(names))}
    labels = [label.strip() for label in (ax.get_xlabel(), ax.get_ylabel())]
    legends = [legend for legend in (ax.get_legend(), *ax.figure.legends) if legend is not None]
    entries = {text.get_text() for legend in legends for text in legend.get_texts()}
    return {
        "lines": {name: tuple(_points(lines[name]).T) for name in sorted(lines)},
        "the scale of the x axis": ax.get_xscale(),
        "the scale of the y axis": ax.get_yscale(),
        "labels at both axes": all(labels),
        "a legend of all lines": bool(entries) and entries >= {*lines} - {UNNAMED},
        "the label of the y axis": labels[1],
    }
