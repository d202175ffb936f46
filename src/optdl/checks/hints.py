"""Hints for whoever does not know how to begin or to go on, one after the other."""

import sys
from collections import Counter

from optdl.checks.catalog import find
from optdl.checks.diagnoses.notebook import shell

_TOLD: Counter[str] = Counter()
"""How many hints of each exercise were told."""


def hint(key: str) -> None:
    """Tell the next hint for an exercise: first a question, at last nearly the line.

    Raises
    ------
    KeyError
        When there is no such exercise.

    Examples
    --------
    >>> hint("L1-07")  # doctest: +ELLIPSIS
    Hint 1 of 3 for standard_error. ...
    """
    exercise = find(key)
    texts = exercise.hints
    _TOLD[key] += 1
    number = min(_TOLD[key], len(texts))
    more = f'`hint("{key}")` tells the next one.' if number < len(texts) else "There is no further."
    _show(f"Hint {number} of {len(texts)} for {exercise.name}. {texts[number - 1]} {more}")


def _show(text: str) -> None:
    """Show Markdown as a notebook does, and as it is written elsewhere."""
    if shell() is not None:
        shown = {"text/markdown": text, "text/plain": text}
        sys.modules["IPython"].display.display(shown, raw=True)
    else:
        print(text)
