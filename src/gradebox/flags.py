"""Tell in plain words what an instructor should look at in a submission."""

from typing import Any

from gradebox.bridge.cells import errors
from gradebox.feedback.messages import absent
from gradebox.troubles import Trouble

LONGEST = 200
"""So many characters of a warning are shown."""


def plainly(warnings: list[str]) -> list[str]:
    """Return the warnings about a submission, each once, as a terminal can show them."""
    texts = (printable(" ".join(warning.split()))[:LONGEST] for warning in warnings)
    return list(dict.fromkeys(filter(None, texts)))


def printable(text: str) -> str:
    """Return a text that does nothing to a terminal: students choose names of cells and files."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )


def troubles(nb: Any) -> list[str]:
    """Return where the execution of a notebook went wrong beyond an error in a cell."""
    names = {error.ename for cell in nb.cells for error in errors(cell)}
    renamed = {
        name.name: f"the {name.description} was not found; was it renamed to `{name.guess}`?"
        for name in absent(nb).values()
        if name.guess and not name.failed
    }
    return [trouble.sentence for trouble in Trouble if trouble.error in names] + [*renamed.values()]
