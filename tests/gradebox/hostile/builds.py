"""Submissions that are built by the Python in their texts, where cells do not say it all.

It finds the ``work``, its ``tests``, and the modules and names below. A build that is ``right`` or
``wrong`` begins with such answers, one that is ``blank`` with none; ``json`` changes what the right
notebook ``nb`` is in JSON, and ``text`` the file as a ``text``.
"""

import copy
import json
import os
import shutil
from collections.abc import Callable

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell, writes

from hostile.course import POINTS, SECONDS, WRONG, Work

Build = Callable[[Work], None]
KINDS = ("right", "wrong", "blank", "json", "text")
NAMES = {
    **{module.__name__: module for module in (copy, json, nbformat, os, shutil)},
    **{make.__name__: make for make in (new_code_cell, new_markdown_cell, new_raw_cell)},
    "SECONDS": SECONDS,
    "WRONG": WRONG,
}


def built(kind: str, source: str) -> Build:
    """Return what builds a submission by Python."""

    def build(work: Work) -> None:
        if kind != "blank":
            work.honest()
        if kind == "wrong":
            work.answer(**WRONG)
        text = writes(work.nb)
        names = NAMES | {"work": work, "tests": [*map(work.cell, POINTS)], "text": text}
        names["nb"] = json.loads(text)
        exec(source, names)
        if kind in ("json", "text"):
            work.raw(names["text"] if kind == "text" else json.dumps(names["nb"]))

    return build
