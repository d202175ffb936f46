"""Tell at the end of a notebook which of its exercises agree, and how to hand it in."""

import json
import re
import sys
from pathlib import Path

import optdl
from optdl.checks.catalog import blocks
from optdl.checks.exercise import Exercise

HAND_IN = Path(optdl.__file__).parent.parent.parent / "handin.json"
"""In the folder that students get: how their class hands in."""
_found: dict[str, str] = {}
"""What the last check of each exercise found, by its key."""


def note(key: str, message: str) -> None:
    """Remember what a check found: the first line's sign, and words up to a comma or full stop."""
    sign, _, said = message.partition("\n")[0].partition(" ")
    _, _, state = said.partition(": ")
    _found.pop(key, None)  # the latest comes last
    _found[key] = f"{sign} {re.split('[.,]', state)[0]}"


def summary() -> None:
    """Print for each exercise of the notebook what its last check found.

    The exercises are those of the topics that have been checked since the kernel started. Those
    that were checked come first, as they were checked last: after Run All, as in the notebook.
    """
    if not _found:
        print("Nothing is checked yet. Choose Run → Run All Cells, then look here.")
        return
    names = {exercise.key: exercise.name for exercise in _listed()}
    # what is checked and no exercise is a lab's record
    lines = [_told(key, names.get(key, key.partition(":")[2])) for key in {**_found, **names}]
    agree = sum(line.startswith("✓") for line in lines)
    title = f"{agree} of {len(lines)} exercises agree with the cases that you can see."
    print(title, *lines, sep="\n")
    if HAND_IN.is_file():
        print(f"\nHow to hand in: {json.loads(HAND_IN.read_text(encoding='utf-8'))['text']}")


def _listed() -> list[Exercise]:
    """Return the exercises of the topics that have been checked."""
    checked = {
        (name.split(".")[2], name.split(".")[3].startswith("lab_"))
        for name, module in sys.modules.items()
        if name.startswith("optdl.checks.")
        and getattr(getattr(module, "exercise", None), "key", None) in _found
    }
    return [
        exercise for topic, lab in sorted(checked) for exercise in blocks(topic, lab=lab).values()
    ]


def _told(key: str, title: str) -> str:
    sign, _, state = _found.get(key, "· not checked").partition(" ")
    return f"{sign} {title}" if sign == "✓" else f"{sign} {title}: {state}"
