"""All submissions of the suite, read from the texts in the folder ``cases``.

A line ``## title`` begins a group, ``=== name: what it tries`` a submission; lines ``field: value``
say what must become of it (:class:`Case`), those that begin with ``wasm`` where it is otherwise in
WebAssembly. Lines ``--- kind`` begin its cells:

- ``first`` is a cell before wrong answers, ``cell`` one before right answers, ``last`` one behind
  them;
- ``answer NAME`` is an answer among right ones;
- ``returning VALUE`` is a cell before answers that all return the same value.

A line ``=== @name`` begins a text that a line ``@name`` stands for. Other kinds have a submission
built by Python: :mod:`hostile.builds`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hostile.builds import KINDS, Build, built
from hostile.course import NOTHING, POINTS, WRONG, Work
from hostile.texts import HERE, runnable

FULL = POINTS
FOLDER = HERE / "cases"
FILES = ("forging", "prying", "edits", "machine", "pages", "faults")


@dataclass(frozen=True)
class Case:
    """A submission."""

    name: str  # its name, which is the student's
    tries: str  # what it tries, for the table
    build: Build  # builds it, from the released notebook on
    # the points that it must get; None where it must fail as a whole
    scores: Mapping[str, float] | None = field(default_factory=lambda: NOTHING)
    # what the instructor must be told, and nothing else: each is a part of one flag
    flags: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()  # what the instructor may be told besides, as chance has it
    why: str = ""  # a part of the reason why it fails
    outputs: Mapping[str, str] = field(default_factory=dict)  # by cell, a part of its output
    either: tuple[str, ...] = ()  # the cells whose points are up to chance: none or all
    late: bool = False  # whether it is late, and loses all points
    # what is otherwise in WebAssembly: most of what such a case asks for is not there
    in_wasm: Mapping[str, Any] = field(default_factory=dict)
    unrun: str = ""  # why stock nbgrader is not run on it; then `stock` says what its code does
    stock: str = ""

    def of(self, sandbox: str) -> "Case":
        """Return the case as it is in a sandbox."""
        return replace(self, **self.in_wasm) if sandbox == "wasm" else self


def _points(value: str) -> dict[str, float] | None:
    lost = value.removeprefix("all but").split()
    named = {"all": FULL, "none": NOTHING, "refused": None}
    return named[value] if value in named else {**FULL, **dict.fromkeys(lost, 0.0)}


def _fields(lines: str) -> dict[str, Any]:
    """Return the fields of a case, those for WebAssembly among them."""
    said: dict[str, Any] = {}
    for line in lines.splitlines():
        key, value = line.split(": ", 1)
        if key.startswith("wasm "):
            said.setdefault("in_wasm", []).append(f"{key.removeprefix('wasm ')}: {value}")
        elif key == "points":
            said["scores"] = _points(value)
        elif key in ("flag", "maybe", "either"):
            several = said.setdefault({"flag": "flags"}.get(key, key), [])
            several += value.split() if key == "either" else [value]
        elif key.startswith("output"):
            said.setdefault("outputs", {})[key.removeprefix("output ")] = value
        else:
            said[key] = value == "yes" if key == "late" else value
    if "in_wasm" in said:
        said["in_wasm"] = _fields("\n".join(said["in_wasm"]))
    none = {key: () if value == ["none"] else value for key, value in said.items()}
    return {key: tuple(value) if type(value) is list else value for key, value in none.items()}


def _built(cells: list[tuple[str, str]]) -> Build:
    """Return what writes cells into a notebook."""

    def build(work: Work) -> None:
        kinds = {kind.partition(" ")[0] for kind, _ in cells}
        if "first" in kinds:
            work.answer(**WRONG)
        elif "returning" not in kinds:
            work.honest()
        for kind, source in cells:
            name, _, rest = kind.partition(" ")
            if name == "answer":
                work.answer(**{rest: source})
            elif name == "last":
                work.last(source)
            else:
                if name == "returning":
                    work.answer(**_returning(rest))
                work.first(source)

    return build


def _returning(value: str) -> dict[str, str]:
    """Return answers that all return the same odd value."""
    return {
        "squares": f"def sum_of_squares(x):\n    return {value}",
        "means": f"def means(rows):\n    return {value}",
        "running": "class Running:\n    def add(self, x):\n        pass\n"
        f"    def mean(self):\n        return {value}\n"
        f"    @property\n    def count(self):\n        return {value}",
        "digit": f"def first_digit(n):\n    return {value}",
        "nearest": f"def nearest(numbers, distance):\n    return {value}",
    }


def _groups() -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    named: dict[str, str] = {}
    for file in FILES:
        text = runnable((FOLDER / f"{file}.txt").read_text(encoding="utf-8"))
        for part in re.split(r"^(?==== |## )", text, flags=re.M)[1:]:
            head, _, rest = part.partition("\n")
            if head.startswith("## "):
                group = groups[head.removeprefix("## ")] = []
                continue
            if head.startswith("=== @"):
                named[head.removeprefix("=== ")] = rest
                continue
            name, tries = head.removeprefix("=== ").split(": ", 1)
            fields, *pairs = re.split(r"^--- (.*)\n", rest, flags=re.M)
            cells = [
                (kind, re.sub(r"^@\w+\n", lambda m: named[m[0].strip()], lines, flags=re.M).strip())
                for kind, lines in zip(pairs[::2], pairs[1::2], strict=True)
            ]
            build = built(*cells[0]) if cells[0][0] in KINDS else _built(cells)
            group.append(Case(name, tries, build, **_fields(fields)))
    return groups


GROUPS = _groups()
CASES = [case for cases in GROUPS.values() for case in cases]
