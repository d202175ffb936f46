"""Find exercises: each is a block in the folder of its topic, called after its row and function."""

import difflib
import importlib
import re
from functools import cache
from pathlib import Path

import optdl.checks
from optdl.checks.exercise import Exercise
from optdl.checks.report import Plain

_BLOCK = re.compile(r"[a-z]+\d?_\d+_")
"""Begins the name of a block's file: ``l1_07_standard_error.py``, ``lab_1_sgd.py``."""


class UnknownExercise(Plain, KeyError):
    """There is no exercise with a key; the message says which may be meant."""

    def __str__(self) -> str:
        """Return the message without the quotes that a key has."""
        return str(self.args[0])


def _imported(pattern: str, lab: bool | None = None) -> dict[str, Exercise]:
    """Return the exercises of the blocks whose places below this folder match a pattern."""
    found: dict[str, Exercise] = {}
    files = (file for folder in optdl.checks.__path__ for file in Path(folder).glob(pattern))
    for file in sorted(file for file in files if _BLOCK.match(file.name)):
        if lab not in (None, file.name.startswith("lab_")):
            continue
        name = f"optdl.checks.{file.parent.name}.{file.stem}"
        exercise: Exercise = importlib.import_module(name).exercise
        if exercise.key in found:
            other = found[exercise.key].block
            raise ValueError(f"{other} and {name} have the key {exercise.key}; keys must differ")
        found[exercise.key], exercise.block = exercise, name
    return found


def blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Exercise]:
    """Return the exercises of a topic, or of all, by their keys: in NumPy, or those of the labs."""
    return _imported(f"{topic}/*.py", lab)


@cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise in NumPy by its key, topic by topic."""
    return blocks()


@cache
def lab_exercises() -> dict[str, Exercise]:
    """Return every exercise of the labs by its key; this imports torch."""
    return blocks(lab=True)


@cache
def of_row(key: str) -> dict[str, Exercise]:
    """Return the exercises of a key's first row, after which their files are called.

    A notebook needs one topic, and waits for no other to be imported.
    """
    row = re.split("[:,]", key)[0].lower().replace("-", "_")
    return _imported(f"*/{row}_*.py")


def find(key: str) -> Exercise:
    """Return an exercise by its key.

    Raises
    ------
    UnknownExercise
        If there is none, with the key that may be meant.
    """
    if exercise := of_row(key).get(key):
        return exercise
    known = lab_exercises() if key.startswith("LAB") else exercises()
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1)
        advice = f"did you mean {near[0]!r}?" if near else "copy the key from the notebook"
        raise UnknownExercise(f"✗ there is no exercise {key!r}; {advice}")
    return known[key]
