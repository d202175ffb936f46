"""Submissions that are broken, mostly by accident."""

import json
import shutil
from collections.abc import Callable
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell

from hostile.case import FULL, SLOW_IN_TEST, Build, Case, answers, extra_cell, points
from hostile.course import Work

ALL = ("setup", "squares", "means", "running", "digit", "nearest", "words")
HUGE = 50 * 2**20 + 1


def _text(work: Work) -> str:
    """Return the notebook with right answers, as it would be handed in."""
    work.honest()
    return nbformat.v4.writes(work.nb)


def encoded(change: Callable[[str], bytes | str]) -> Build:
    """Build right answers, and hand in another writing of the notebook."""

    def build(work: Work) -> None:
        work.raw(change(_text(work)))

    return build


def changed(change: Callable[[Any], None]) -> Build:
    """Build right answers, and change the JSON of the notebook."""

    def build(work: Work) -> None:
        content = json.loads(_text(work))
        change(content)
        work.raw(json.dumps(content))

    return build


def _old(version: int) -> Callable[[Any], None]:
    """Write nbgrader's metadata as earlier versions did."""

    def change(nb: Any) -> None:
        for cell in nb["cells"]:
            metadata = cell["metadata"]["nbgrader"]
            metadata["schema_version"] = version
            if version < 3:
                metadata.pop("task")
            if version < 2:
                metadata.pop("cell_type", None)
                if not metadata["grade"]:
                    metadata["points"] = 0

    return change


def _third(text: str) -> str:
    nb = nbformat.convert(nbformat.reads(text, as_version=4), 3)
    return json.dumps(nb)


def _format(major: int, minor: int) -> Callable[[Any], None]:
    def change(nb: Any) -> None:
        nb["nbformat"], nb["nbformat_minor"] = major, minor
        for cell in nb["cells"]:
            if (major, minor) < (4, 5):
                del cell["id"]

    return change


def _lines(nb: Any) -> None:
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


def _null(nb: Any) -> None:
    nb["cells"].insert(1, None)


def _surrogate(nb: Any) -> None:
    nb["cells"][1]["source"] = ["# \ud800\n", *nb["cells"][1]["source"]]


def _deep_metadata(nb: Any) -> None:
    inner = nb["metadata"]
    for _ in range(200):
        inner["x"] = {}
        inner = inner["x"]


def _strange_kernel(nb: Any) -> None:
    nb["metadata"]["kernelspec"] = {"name": "ir; touch x", "display_name": "R", "language": "R"}
    nb["metadata"]["language_info"] = {"name": "R"}


def _strange_outputs(nb: Any) -> None:
    nb["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["x" * 10**6]}]
    nb["cells"][1]["execution_count"] = 10**30


def _many(nb: Any) -> None:
    nb["cells"] += [dict(new_code_cell("", id=f"blank-{number}")) for number in range(2000)]


def _other_file(name: str) -> Build:
    def build(work: Work) -> None:
        work.honest()
        work.save()
        work.nb = None
        work.file.rename(work.folder / name)

    return build


def _empty(work: Work) -> None:
    work.nb = None
    work.file.unlink()


def _folder(work: Work) -> None:
    work.nb = None
    work.file.unlink()
    work.file.mkdir()


def _no_folder(work: Work) -> None:
    work.nb = None
    shutil.rmtree(work.folder)
    work.folder.write_text("my work")


def _extra_notebook(work: Work) -> None:
    work.honest()
    work.save()
    shutil.copy(work.file, work.folder / "notes.ipynb")


def _large(work: Work) -> None:
    work.nb = None
    with work.file.open("r+b") as file:
        file.truncate(HUGE)


def _large_extra_file(work: Work) -> None:
    work.honest()
    with (work.folder / "data.bin").open("wb") as file:
        file.truncate(HUGE)


def _odd_names(work: Work) -> None:
    work.honest()
    for name in ("a b.txt", "-rf.txt", "\x1b[2J.txt", "ü.txt", "x" * 200 + ".txt"):
        (work.folder / name).write_text("x")


FAULTS = [
    Case(
        "cut-json",
        "JSON cut off in the middle",
        encoded(lambda text: text[: len(text) // 2]),
        None,
        why="is no JSON",
    ),
    Case("empty-file", "an empty file", encoded(lambda text: ""), None, why="is no JSON"),
    Case(
        "list",
        "JSON that is no notebook: a list",
        encoded(lambda text: "[1]"),
        None,
        why="is no notebook",
    ),
    Case(
        "deep-json",
        "JSON a hundred thousand deep",
        encoded(lambda text: "[" * 100_000),
        None,
        why="is nested too deeply",
    ),
    Case(
        "word-file",
        "another kind of file under the notebook's name",
        encoded(lambda text: b"PK\x03\x04" + bytes(range(256))),
        None,
        why="is not UTF-8",
    ),
    Case(
        "latin-1",
        "text in Latin 1",
        encoded(lambda text: text.replace("squares", "sq\u00fcares").encode("latin-1")),
        None,
        why="is not UTF-8",
    ),
    Case(
        "utf-16",
        "text in UTF-16",
        encoded(lambda text: text.encode("utf-16")),
        None,
        why="is not UTF-8",
    ),
    Case(
        "utf-8-bom",
        "UTF-8 with a byte order mark, as Windows writes it",
        encoded(lambda text: text.encode("utf-8-sig")),
        FULL,
    ),
    Case(
        "line-ends",
        "line ends of Windows",
        encoded(lambda text: text.replace("\n", "\r\n").encode()),
        FULL,
    ),
    Case("surrogate", "half a character (a lone surrogate)", changed(_surrogate), FULL),
    Case("as-lines", "cells as lists of lines", changed(_lines), FULL),
    Case("null-cell", "a cell that is `null`", changed(_null), None, why="is no notebook"),
    Case(
        "no-cells",
        "no cells at all",
        changed(lambda nb: nb.update(cells=[])),
        flags=tuple(f"cell {name} was missing" for name in (*ALL, *points())),
    ),
    Case("format-3", "a notebook of version 3", encoded(_third), FULL),
    Case("format-4.0", "a notebook of version 4.0, without ids", changed(_format(4, 0)), FULL),
    Case(
        "format-5",
        "a notebook of version 5, which there is not yet",
        changed(_format(5, 0)),
        None,
        why="is no notebook",
    ),
    *(
        Case(
            f"schema-{version}",
            f"nbgrader's metadata of version {version}",
            changed(_old(version)),
            FULL,
        )
        for version in (1, 2, 99)
    ),
    Case(
        "deep-metadata",
        "metadata two hundred deep",
        changed(_deep_metadata),
        None,
        why="is nested too deeply",
    ),
    Case(
        "strange-kernel",
        "another language, and a kernel's name with a command in it",
        changed(_strange_kernel),
        FULL,
    ),
    Case(
        "strange-outputs",
        "old outputs of a megabyte, and a count of 10³⁰",
        changed(_strange_outputs),
        FULL,
    ),
    Case("many-cells", "two thousand blank cells", changed(_many), FULL),
    Case(
        "renamed-file",
        "the notebook under another name",
        _other_file("numbers (1).ipynb"),
        None,
        why="expected numbers.ipynb, got drivers.py, numbers (1).ipynb",
    ),
    Case(
        "upper-case",
        "the notebook under a name in capitals",
        _other_file("Numbers.ipynb"),
        None,
        why="expected numbers.ipynb, got Numbers.ipynb",
    ),
    Case("empty-folder", "no notebook in the folder", _empty, None, why="got drivers.py"),
    Case("folder", "a folder under the notebook's name", _folder, None, why="is a folder"),
    Case(
        "no-folder",
        "a file in place of the folder",
        _no_folder,
        None,
        why="expected a folder, got a plain file",
    ),
    Case(
        "extra-notebook",
        "another notebook besides",
        _extra_notebook,
        FULL,
        flags=("notes.ipynb is none of the assignment's notebooks",),
    ),
    Case(
        "large-notebook",
        "a notebook of more than 50 MB",
        _large,
        None,
        why="more than 50 MB",
        unrun="it would take gigabytes of memory",
        stock="it is read whole, whatever its size",
    ),
    Case(
        "large-file",
        "a file of more than 50 MB beside the notebook",
        _large_extra_file,
        None,
        why="more than 50 MB",
    ),
    Case(
        "odd-names",
        "files with spaces, dashes, control characters in their names",
        _odd_names,
        FULL,
    ),
    Case(
        "syntax-error",
        "an answer that is no Python",
        answers(squares="def sum_of_squares(x:"),
        points(test_squares=0.0),
        flags=("the cell has a syntax error",),
        outputs={"squares": "SyntaxError"},
    ),
    Case(
        "cell-magic",
        "an answer in another language, by a magic command",
        answers(squares="%%bash\necho 5"),
        points(test_squares=0.0),
    ),
    Case(
        "shell",
        "a command that removes everything",
        answers(squares="!rm -rf MARK /student/* ./*\ndef sum_of_squares(x): return 0"),
        points(test_squares=0.0, test_running=0.0),
        in_wasm={"scores": points(test_squares=0.0)},
        unrun="it removes files",
        stock="it runs with the instructor's rights",
    ),
    Case("unanswered", "nothing answered", lambda work: None),
    Case(
        "evil-str",
        "an exception whose `__str__` fails",
        answers(
            squares="class Odd(Exception):\n    def __str__(self): raise self\n"
            "    __repr__ = __str__\ndef sum_of_squares(x): raise Odd"
        ),
        points(test_squares=0.0),
    ),
    Case(
        "endless-str",
        "an exception whose `__str__` does not end",
        answers(
            squares="class Odd(Exception):\n    def __str__(self):\n        while True: pass\n"
            "def sum_of_squares(x): raise Odd"
        ),
        points(test_squares=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "evil-class",
        "an exception whose class and traceback lie",
        answers(
            squares="class Odd(Exception):\n    __name__ = 7\n"
            "    def _render_traceback_(self): return 'no list', 7, None\n"
            "Odd.__name__ = 'AssertionError'\nOdd.__module__ = None\n"
            "def sum_of_squares(x): raise Odd('\\x1b[31m' + '\\ud800')"
        ),
        points(test_squares=0.0),
    ),
    Case("syntax-in-extra", "a cell of the student's own that fails", extra_cell("1 / 0"), FULL),
]
