"""Find exercises: each is a block in the folder of its topic, called after its row and function."""

import difflib
import importlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import optdl.checks
from optdl.checks.exercise import Exercise

_BLOCK = re.compile(r"[a-z]+\d?_\d+_")
"""Begins the name of a block's file: ``l1_07_standard_error.py``, ``lab_1_sgd.py``."""


def _names(pattern: str) -> list[str]:
    """Return the modules of the blocks whose places below this folder match a pattern."""
    files = (file for folder in optdl.checks.__path__ for file in Path(folder).glob(pattern))
    return sorted(
        f"optdl.checks.{file.parent.name}.{file.stem}" for file in files if _BLOCK.match(file.name)
    )


def _imported(names: Iterable[str]) -> dict[str, Exercise]:
    found: dict[str, Exercise] = {}
    for name in names:
        exercise: Exercise = importlib.import_module(name).exercise
        if exercise.key in found:
            raise ValueError(f"two exercises have the key {exercise.key}; keys must differ")
        found[exercise.key] = exercise
    return found


def blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Exercise]:
    """Return exercises by their keys.

    Parameters
    ----------
    topic : str
        The topic; all of them when not given.
    lab : bool
        Those of the labs, in PyTorch, in place of those in NumPy.
    """
    return _imported(
        name for name in _names(f"{topic}/*.py") if name.split(".")[3].startswith("lab_") == lab
    )


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise in NumPy by its key, topic by topic."""
    return blocks()


@cache
def lab_exercises() -> dict[str, Exercise]:
    """Return every exercise of the labs by its key; this imports torch."""
    return blocks(lab=True)


@cache
def _of_row(key: str) -> dict[str, Exercise]:
    """Return the exercises of a key's first row, after which their files are called.

    A notebook needs one topic, and waits for no other to be imported.
    """
    row = re.split("[:,]", key)[0].lower().replace("-", "_")
    return _imported(_names(f"*/{row}_*.py"))


def find(key: str) -> Exercise:
    """Return an exercise by its key.

    Raises
    ------
    KeyError
        If there is none, with the key that may be meant.
    """
    if exercise := _of_row(key).get(key):
        return exercise
    known = lab_exercises() if key.startswith("LAB") else exercises()
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"the exercises are {', '.join(known)}"
        raise KeyError(f"there is no exercise {key!r}; {advice}")
    return known[key]
