"""Matplotlib's figures on a page: images as SVG, each with a text that says what it shows."""

import base64
import io

from matplotlib._pylab_helpers import Gcf
from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import FigureCanvasSVG as FigureCanvas

__all__ = ["FigureCanvas", "show", "take"]

MAX_CHARACTERS = 1_000_000
"""Characters of an SVG beyond which the page gets pixels instead."""

# names are copied before a cell runs: a copy of axes, alone or in a list, draws on the same figure
Artist.__deepcopy__ = lambda artist, memo: artist

shown = []


def show(*args, **kwargs):
    """Hand the open figures to the page; what is drawn afterwards begins a new figure."""
    try:
        for manager in Gcf.get_all_fig_managers():
            shown.append(image(manager.canvas.figure))
    finally:
        Gcf.destroy_all()


def take():
    """Return the figures that were shown or are open, and forget them."""
    try:
        show()
        return list(shown)
    finally:
        shown.clear()


def image(figure):
    """Return a figure as the address of an image, with its description."""
    content, kind = saved(figure, "svg", metadata={"Date": None}), "svg+xml"
    if len(content) > MAX_CHARACTERS:
        content, kind = saved(figure, "png", dpi=144), "png"
    data = base64.b64encode(content).decode("ascii")
    return {"source": f"data:image/{kind};base64,{data}", "description": description(figure)}


def saved(figure, kind, **options):
    """Return the bytes of an image file."""
    file = io.BytesIO()
    figure.savefig(file, format=kind, bbox_inches="tight", **options)
    return file.getvalue()


def description(figure):
    """Say in words what a figure's axes, titles and labels say.

    A figure without any words is only counted: a text of the page says what it shows.
    """
    parts = [described(axes) for axes in figure.axes if axes.get_visible()]
    title = figure.get_suptitle()
    words = "; ".join([*([title] if title else []), *(part for part in parts if part)])
    return f"Figure drawn by the cell: {words or 'without a title or labels'}."


def described(axes):
    """Return the title, the axes' labels and the legend of a part of a figure."""
    x, y = axes.get_xlabel(), axes.get_ylabel()
    axis = f"{y} against {x}" if x and y else x or y
    labels = ", ".join(axes.get_legend_handles_labels()[1])
    words = [axes.get_title(), axis, labels and f"legend: {labels}"]
    return ", ".join(word for word in words if word).replace("$", "")
