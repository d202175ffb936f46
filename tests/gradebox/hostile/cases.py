"""All submissions of the suite, read from the texts in the folder ``cases``.

A line ``## title`` begins a group, ``=== name: what it tries`` a submission; lines ``field: value``
say what must become of it (:class:`Case`), those that begin with ``wasm`` where it is otherwise in
WebAssembly. Lines ``--- kind`` begin its cells:

- ``first`` is a cell before wrong answers, ``cell`` one before right answers, ``last`` one behind
  them;
- ``answer NAME`` is an answer among right ones;
- ``returning VALUE`` is a cell before answers that all return the same value.

A line ``=== @name`` begins a text that a line ``@name`` stands for. Other kinds are Python, which
finds the ``work``, its ``tests``, and :data:`NAMES`. It begins with answers that are ``right`` or
``wrong``, or with none, ``blank``; ``json`` changes what the right notebook ``nb`` is in JSON, and
``text`` the file as a ``text``.
"""

import copy
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell, writes

from hostile.course import NOTHING, POINTS, SECONDS, TESTS, WRONG, Work, returning
from hostile.texts import HERE, runnable

FOLDER = HERE / "cases"
FILES = ("forging", "prying", "edits", "machine", "pages", "faults")
NAMES = {
    **{module.__name__: module for module in (copy, json, nbformat, os, shutil)},
    **{make.__name__: make for make in (new_code_cell, new_markdown_cell, new_raw_cell)},
    "SECONDS": SECONDS,
    "WRONG": WRONG,
}


@dataclass(frozen=True)
class Case:
    """A submission."""

    name: str  # its name, which is the student's
    tries: str  # what it tries, for the table
    build: Callable[[Work], None]  # builds it, from the released notebook on
    # the points that it must get; None where it must fail as a whole
    scores: Mapping[str, float] | None = field(default_factory=lambda: NOTHING)
    # what the instructor must be told, and nothing else: each is a part of one flag
    flags: tuple[str, ...] = ()
    maybe: tuple[str, ...] = ()  # what the instructor may be told besides, as chance has it
    why: str = ""  # a part of the reason why it fails
    outputs: Mapping[str, str] = field(default_factory=dict)  # by cell, a part of its output
    late: str = ""  # "yes" if it is late, and loses all points
    # what is otherwise in WebAssembly: most of what such a case asks for is not there
    in_wasm: Mapping[str, Any] = field(default_factory=dict)
    unrun: str = ""  # why stock nbgrader is not run on it; then `stock` says what its code does
    stock: str = ""

    def of(self, sandbox: str) -> "Case":
        return replace(self, **self.in_wasm) if sandbox == "wasm" else self


def _points(value: str) -> dict[str, float] | None:
    lost = value.removeprefix("all but").split()
    named = {"all": POINTS, "none": NOTHING, "refused": None}
    return named[value] if value in named else {**POINTS, **dict.fromkeys(lost, 0.0)}


def _flags(value: str) -> list[str]:
    for word, names in {"TESTS": POINTS, "ANSWERS": TESTS}.items():
        if word in value:
            return [value.replace(word, name) for name in names]
    return [] if value == "none" else [value]


def _fields(lines: list[str]) -> dict[str, Any]:
    """Return the fields of a case, those for WebAssembly among them."""
    said: dict[str, Any] = {}
    for line in lines:
        key, value = line.split(": ", 1)
        if key == "points":
            said["scores"] = _points(value)
        elif key in ("flag", "maybe"):
            name = key.replace("flag", "flags")
            said[name] = (*said.get(name, ()), *_flags(value))
        elif key.startswith("output"):
            said.setdefault("outputs", {})[key.removeprefix("output ")] = value
        elif not key.startswith("wasm "):
            said[key] = value
    if in_wasm := [line.removeprefix("wasm ") for line in lines if line.startswith("wasm ")]:
        said["in_wasm"] = _fields(in_wasm)
    return said


def _build(cells: list[tuple[str, str]], work: Work) -> None:
    kinds = {kind.partition(" ")[0] for kind, _ in cells}
    if not kinds & {"first", "returning", "blank"}:
        work.honest()
    if kinds & {"first", "wrong"}:
        work.answer(**WRONG)
    for kind, source in cells:
        name, _, rest = kind.partition(" ")
        if name == "answer":
            work.answer(**{rest: source})
        elif name == "last":
            work.insert(len(work.nb.cells), source)
        elif name in ("first", "cell", "returning"):
            work.answer(**(returning(rest) if rest else {}))
            work.insert(1, source)
        else:
            text = writes(work.nb)
            names = NAMES | {"work": work, "tests": [*map(work.cell, POINTS)], "text": text}
            names["nb"] = json.loads(text)
            exec(source, names)
            if name in ("json", "text"):
                work.raw(names["text"] if name == "text" else json.dumps(names["nb"]))


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
            group.append(Case(name, tries, partial(_build, cells), **_fields(fields.splitlines())))
    return groups


GROUPS = _groups()
CASES = [case for cases in GROUPS.values() for case in cases]
