"""The hints of the exercises, as the pages of the book show them."""

from pathlib import Path

import optdl.checks
from optdl.checks.catalog import find


def texts(key: str) -> tuple[str, ...]:
    """Return the hints of an exercise, from a question to nearly the line, in Markdown."""
    return find(key).hinted


def files(topic: str) -> list[Path]:
    """Return the files in which the hints of a topic are written."""
    return sorted((Path(optdl.checks.__file__).parent / topic).glob("*.py"))
