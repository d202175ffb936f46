"""Say what a cell is to nbgrader, and read its errors."""

import contextlib
import re
from typing import Any

from nbformat.validator import ValidationError, get_validator

KINDS = ("grade", "solution", "task")  # what a cell can be, in nbgrader's metadata
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
COLORS = re.compile(r"\x1b\[[0-9;]*m")  # what colors the text of an error in a terminal


class Unready(Exception):
    """The course is not ready to be graded; the text says what to do."""


def require_python(kernelspec: Any, name: str) -> None:
    """Raise unless the kernel that a notebook names runs Python, as far as it tells."""
    language = (kernelspec or {}).get("language") or "python"
    if language.lower() != "python":
        why = f"expected a notebook in Python, got {name}.ipynb in {language}: gradebox runs Python"
        raise Unready(f"{why} alone; grade this assignment with nbgrader's own steps")


def setting(trait: Any, about: str) -> Any:
    """Return a trait that a configuration may set."""
    trait.help = about
    return trait.tag(config=True)


def settings(step: Any) -> list[str]:
    """Return the settings of one of nbgrader's steps as texts that are the same in every run."""
    return [f"{name} {getattr(step, name)}" for name in sorted(step.traits(config=True))]


def of(cell: Any) -> Any:
    """Return nbgrader's metadata of a cell, which a student may have replaced by anything."""
    metadata = cell.metadata.get("nbgrader")
    return metadata if isinstance(metadata, dict) else {}


def is_test(cell: Any) -> bool:
    """Return whether a cell is a test."""
    is_graded = bool(of(cell).get("grade")) and "grade_id" in of(cell)
    return is_graded and not of(cell).get("solution") and cell.cell_type == "code"


def name_of(cell: Any) -> str:
    """Return what a cell is called in nbgrader; nothing if it is called nothing."""
    name = of(cell).get("grade_id")
    return name if isinstance(name, str) else ""


def headings(nb: Any) -> dict[str, str]:
    """Return the heading above each cell of nbgrader's, or else its name, by its name."""
    names, heading = dict[str, str](), ""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and not of(cell).get("solution"):
            heading = [heading, *HEADING.findall(cell.source)][-1]
        if name := name_of(cell):
            names[name] = re.sub(r"[*`$\\]", "", heading) or name
    return names


def points_of(cell: Any) -> float:
    """Return what a test is worth."""
    return float(cell.metadata.nbgrader.get("points", 0))


def errors(cell: Any) -> list[Any]:
    """Return the errors among the outputs of a cell."""
    return [output for output in cell.get("outputs", []) if output.output_type == "error"]


def error_text(cell: Any) -> str:
    """Return the tracebacks of a cell without colors."""
    return COLORS.sub("", "\n".join(line for error in errors(cell) for line in error.traceback))


def is_output(output: Any) -> bool:
    """Return whether an output is built as the format of notebooks says; a student can send any."""
    return _is_valid(cell_type="code", outputs=[output], execution_count=None)


def is_bundle(data: Any) -> bool:
    """Return whether something is what one output or attachment shows, by its types."""
    return _is_valid(cell_type="markdown", attachments={"a": data})


def _is_valid(**fields: Any) -> bool:
    cell = {"id": "a", "metadata": {}, "source": ""} | fields
    nb = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [cell]}
    with contextlib.suppress(ValidationError):
        get_validator(4, 5).validate(nb)  # type: ignore[no-untyped-call]
        return True
    return False
