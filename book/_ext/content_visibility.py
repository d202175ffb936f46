"""Reserve about the room of each section, which is laid out only when the reader comes near it.

The browser takes the numbers for the length of the page, and so for its scrolling bar. They are
sums over what a section shows, with heights read off the finished pages; four fifths of all
sections come within 17 % of theirs in a wide window, and within 21 % on a phone.
"""

from __future__ import annotations

import math
import re
from typing import Any

from bs4 import Tag

WINDOWS = ("wide", "narrow")
"""A window of 1280 pixels, and a phone of 390."""

LETTERS = (86, 44)
"""In a line of text."""
COLUMN = (688, 358)
"""Pixels from margin to margin."""
LINE = 27.2
CODE_LINE = 22
HEIGHTS = {
    "h2": (90, 90),
    "h3": (60, 60),
    "h4": (60, 60),
    "summary": (60, 60),
    "tr": (47, 110),
    "math": (100, 100),
    "admonition": (30, 30),
    "exercise": (590, 720),
    "explore-stage": (855, 1573),
}
"""Pixels, with margins, of a part of this name or class, without the text in it."""
WHOLE = {"exercise", "explore-stage", "only-dark"}
"""Classes of parts that are counted as one, or not at all."""
PARTS = ["p", "li", "pre", "div", "img", "tr", "summary", "h2", "h3", "h4"]


def reserve_sections(article: Tag) -> None:
    """Write on each section of a page how high it will be, in both windows."""
    for section in article.select("section section"):
        heights = [0.0, 0.0]
        for part in section.find_all(PARTS):
            if not _hidden(part, section):
                for window in (0, 1):
                    heights[window] += _height(part, window)
        section["style"] = "; ".join(
            f"--{window}: {height:.0f}px" for window, height in zip(WINDOWS, heights, strict=True)
        )


def _hidden(part: Tag, section: Tag) -> bool:
    """Return whether a part is folded away, or counted with the part that it is in."""
    for above in part.parents:
        if above is section:
            return False
        folded = above.name == "details" and not above.has_attr("open") and part.name != "summary"
        row = above.name == "table" and part.name != "tr"
        if folded or row or above.name == "summary" or WHOLE.intersection(above.get("class", ())):
            return True
    return False


def _height(part: Tag, window: int) -> float:
    """Return about how many pixels high a part is, with its margin."""
    if part.name == "p" or (part.name == "li" and part.find("p") is None):
        lines = max(1, math.ceil(_letters(part.get_text()) / LETTERS[window]))
        return LINE * lines + (19 if part.name == "p" and part.find_parent("li") is None else 5)
    if part.name == "pre":
        return CODE_LINE * (1 + part.get_text().rstrip().count("\n")) + 40
    if part.name == "img":
        width, height = (_number(part.get(side), 400) for side in ("width", "height"))
        return min(1.0, COLUMN[window] / width) * height + 40
    names = [part.name, *part.get("class", ())]
    return next((float(HEIGHTS[name][window]) for name in names if name in HEIGHTS), 0.0)


def _letters(text: str) -> int:
    """Return how many letters a text shows; a command of a formula is one."""
    plain = re.sub(r"\\[A-Za-z]+|\\.", "x", " ".join(text.split()))
    return len(re.sub(r"[{}_^]", "", plain))


def _number(value: Any, default: float) -> float:
    match = re.match(r"[\d.]+", str(value or ""))
    return float(match[0]) if match else default
