"""How submissions are built that are more than texts in cells, by the names of their cases."""

import copy
import json
import os
import shutil
from collections.abc import Callable
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from hostile.course import POINTS, SECONDS, WRONG, Work
from hostile.texts import runnable

Build = Callable[[Work], None]
Change = Callable[[Any], Any]

TESTS = tuple(POINTS)
HUGE = 50 * 2**20 + 1
LATE = "2026-01-03 00:00:00 UTC"


# --- The work is right; something of it is changed then ---


def changed(change: Callable[[Work], Any]) -> Build:
    """Build right answers, and change the work."""

    def build(work: Work) -> None:
        work.honest()
        change(work)

    return build


def wrong(change: Callable[[Work], Any]) -> Build:
    """Build wrong answers, and change the work."""

    def build(work: Work) -> None:
        work.honest()
        work.answer(**WRONG)
        change(work)

    return build


def encoded(change: Callable[[str], bytes | str]) -> Build:
    """Build right answers, and hand in another writing of the notebook."""

    def build(work: Work) -> None:
        work.honest()
        work.raw(change(nbformat.v4.writes(work.nb)))

    return build


def in_json(change: Change) -> Build:
    """Build right answers, and change the JSON of the notebook."""

    def edit(text: str) -> str:
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return encoded(edit)


def _tests(work: Work) -> list[Any]:
    return [work.cell(name) for name in TESTS]


def each(source: str | None = None, **metadata: Any) -> Callable[[Work], None]:
    """Change the text and what nbgrader knows of all tests."""

    def change(work: Work) -> None:
        for cell in _tests(work):
            cell.source = cell.source if source is None else source
            cell.metadata.nbgrader.update(metadata)

    return change


def delete(*names: str) -> Callable[[Work], None]:
    """Delete cells."""

    def change(work: Work) -> None:
        work.nb.cells = [cell for cell in work.nb.cells if cell not in map(work.cell, names)]

    return change


def move(position: int, *names: str) -> Callable[[Work], None]:
    """Move cells, together."""

    def change(work: Work) -> None:
        moved = [work.cell(name) for name in names]
        rest = [cell for cell in work.nb.cells if cell not in moved]
        work.nb.cells = [*rest[:position], *moved, *rest[position:]]

    return change


def swap(name: str, other: str) -> Callable[[Work], None]:
    """Let two cells take each other's name."""

    def change(work: Work) -> None:
        first, second = work.cell(name).metadata.nbgrader, work.cell(other).metadata.nbgrader
        first.grade_id, second.grade_id = second.grade_id, first.grade_id

    return change


def kind(constructor: Any, *names: str) -> Callable[[Work], None]:
    """Make cells into others, of the same text."""

    def change(work: Work) -> None:
        for name in names:
            old = work.cell(name)
            new = constructor(old.source)
            new.id, new.metadata = old.id, old.metadata
            work.nb.cells[work.index(name)] = new

    return change


def known_as(value: Any) -> Callable[[Work], None]:
    """Replace what nbgrader knows of an answer."""
    return lambda work: work.cell("squares").metadata.update(nbgrader=value)


def rename(name: str) -> Callable[[Work], None]:
    """Rename an answer."""
    return lambda work: work.cell("squares").metadata.nbgrader.update(grade_id=name)


def _tag(work: Work) -> None:
    for cell in _tests(work):
        cell.metadata["tags"] = ["skip-execution", "remove-cell"]


def _copy_tests(work: Work) -> None:
    for name in TESTS:
        again = copy.deepcopy(work.cell(name))
        again.id, again.source = f"again-{name}", "4"
        work.nb.cells.append(again)


def _copy_answer(work: Work) -> None:
    again = copy.deepcopy(work.cell("squares"))
    again.id = "again"
    work.cell("squares").source = WRONG["squares"]
    work.nb.cells.insert(work.index("test-squares"), again)


def _rename_tests(work: Work) -> None:
    for number, cell in enumerate(_tests(work)):
        cell.metadata.nbgrader.grade_id = f"mine-{number}"
        cell.source = "4"


def _adds_graded(work: Work) -> None:
    cell = new_code_cell("100", id="bonus")
    nbgrader = {**work.cell("share").metadata.nbgrader, "grade_id": "bonus", "points": 100}
    cell.metadata["nbgrader"] = nbgrader
    work.nb.cells.append(cell)


def _same_ids(work: Work) -> None:
    for cell in work.nb.cells:
        cell.id = "same"


def _no_metadata(work: Work) -> None:
    for cell in work.nb.cells:
        cell.metadata.pop("nbgrader", None)


def _sleeps_on(work: Work) -> None:
    for _ in range(10):
        work.first(f"import time\ntime.sleep({SECONDS - 0.5})")


# --- Files ---


def link(name: str, target: str) -> Callable[[Work], None]:
    """Add a symbolic link."""
    return lambda work: (work.folder / name).symlink_to(target.replace("ROOT", str(work.root)))


def files(*names: str, text: str) -> Build:
    """Build two wrong answers, and files beside them."""

    def build(work: Work) -> None:
        work.answer(squares=WRONG["squares"], means=WRONG["means"])
        for name in names:
            (work.folder / name).write_text(text)

    return build


def time(text: str, source: str = "") -> Callable[[Work], None]:
    """Say when the work was handed in, and run a cell."""

    def change(work: Work) -> None:
        (work.folder / "timestamp.txt").write_text(text)
        work.first(source)

    return change


def large(name: str) -> Callable[[Work], None]:
    """Make a file too large, which takes no place."""

    def change(work: Work) -> None:
        work.save()
        work.nb = None
        with (work.folder / name).open("ab") as file:
            file.truncate(HUGE)

    return change


def renamed(name: str) -> Callable[[Work], None]:
    """Rename the notebook."""

    def change(work: Work) -> None:
        work.save()
        work.nb = None
        work.file.rename(work.folder / name)

    return change


def _empty(work: Work) -> None:
    work.nb = None
    work.file.unlink()


def _folder(work: Work) -> None:
    _empty(work)
    work.file.mkdir()


def _no_folder(work: Work) -> None:
    work.nb = None
    shutil.rmtree(work.folder)
    work.folder.write_text("my work")


def _extra_notebook(work: Work) -> None:
    work.save()
    shutil.copy(work.file, work.folder / "notes.ipynb")


def _odd_names(work: Work) -> None:
    for name in ("a b.txt", "-rf.txt", "\x1b[2J.txt", "ü.txt", "x" * 200 + ".txt"):
        (work.folder / name).write_text("x")


# --- JSON ---


def schema(version: int) -> Change:
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


def version(major: int, minor: int) -> Change:
    """Say that the notebook is of another version."""

    def change(nb: Any) -> None:
        nb["nbformat"], nb["nbformat_minor"] = major, minor
        for cell in nb["cells"]:
            if (major, minor) < (4, 5):
                del cell["id"]

    return change


def _third(text: str) -> str:
    return json.dumps(nbformat.convert(nbformat.reads(text, as_version=4), 3))


def _lines(nb: Any) -> None:
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)


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


# --- What breaks out of an attribute ---


def script(name: str) -> str:
    """Return what breaks out of an attribute, and leaves its name on the page."""
    return runnable(f'"><script>RUN({name})</script><img src="')


def _attachments(work: Work) -> None:
    work.answer(words="![x](attachment:x.png) ![y](attachment:y.png)")
    kinds = {"x.png": "text/html", "y.png": "image/png"}
    data = {name: {kind: script("attachments")} for name, kind in kinds.items()}
    work.cell("words")["attachments"] = nbformat.from_dict(data)


def _page_metadata(work: Work) -> None:
    breaks = script("metadata")
    work.nb.metadata["title"] = breaks
    work.nb.metadata["language_info"] = {"name": breaks, "pygments_lexer": breaks}
    state = {"state": {breaks: {}}, "version_major": 2, "version_minor": 0}
    work.nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    for cell in work.nb.cells:
        cell.metadata["tags"] = [breaks]
        cell.metadata["magics_language"] = breaks
        cell.metadata["alt"] = breaks


BUILDS: dict[str, Build] = {
    "skip-tags": wrong(_tag),
    "deletes-tests": wrong(delete(*TESTS)),
    "deletes-answer": changed(delete("squares")),
    "deletes-setup": changed(delete("setup")),
    "copies-tests": wrong(_copy_tests),
    "copies-answer": changed(_copy_answer),
    "tests-first": changed(move(1, *TESTS)),
    "tests-last": changed(move(99, *TESTS)),
    "answers-last": changed(move(99, *WRONG)),
    "renames-answer": changed(rename("my-own-name")),
    "renames-for-terminal": changed(rename("\x1b[2J\x1b]0;[red]no-name\x07")),
    "renames-tests": wrong(_rename_tests),
    "swaps-tests": changed(swap("test-means", "share")),
    "answer-as-test": changed(swap("squares", "test-squares")),
    "more-points": wrong(each(points=1000)),
    "no-points": changed(each(points=float("nan"))),
    "markdown-tests": wrong(kind(new_markdown_cell, *TESTS)),
    "raw-tests": wrong(kind(new_raw_cell, *TESTS)),
    "markdown-answer": changed(kind(new_markdown_cell, "squares")),
    "code-words": changed(kind(new_code_cell, "words")),
    "unlocks-tests": wrong(each("4", locked=False)),
    "rewrites-tests": wrong(each("print('all is well')")),
    "tests-as-answers": wrong(each(solution=True)),
    "ungraded-tests": wrong(each(grade=False)),
    "task-tests": wrong(each(task=True)),
    "false-checksums": wrong(each("print('all is well')", checksum="0" * 32)),
    "adds-graded": changed(_adds_graded),
    "same-ids": changed(_same_ids),
    "no-metadata": changed(_no_metadata),
    "metadata-list": changed(known_as([])),
    "metadata-text": changed(known_as("squares")),
    "metadata-empty": changed(known_as({})),
    "metadata-odd": changed(known_as({"grade_id": ["squares"], "grade": "yes", "points": "many"})),
    "ships-numpy": files(
        "numpy.py",
        text="def allclose(*a, **k): return True\ndef shape(x): return ()\narray = arange = list\n",
    ),
    "ships-others": files(
        *("sitecustomize.py", "gradebox.py", "ast.py", "numbers.py"),
        text="import builtins\nbuiltins.sum = lambda *a: 4\n",
    ),
    "link-secret": changed(link("data.txt", "ROOT/secret.txt")),
    "link-zero": changed(link("data.txt", "/dev/zero")),
    "link-loop": changed(link("again", ".")),
    "pipe": changed(lambda work: os.mkfifo(work.folder / "pipe")),
    "late-rewrites": changed(
        time(
            LATE,
            "from pathlib import Path\n"
            "for path in ['timestamp.txt', 'ROOT/submitted/late-rewrites/numbers/timestamp.txt']:\n"
            "    try: Path(path).write_text('2020-01-01 00:00:00 UTC')\n"
            "    except OSError as error: print(error)",
        )
    ),
    "late-clock": changed(
        time(
            LATE,
            "import time, datetime\ntime.time = lambda: 0.0\n"
            "import os\nos.utime('timestamp.txt', (0, 0))",
        )
    ),
    "no-time": changed(time("before the deadline, honestly")),
    "sleeps-on": changed(_sleeps_on),
    "attachments": changed(_attachments),
    "page-metadata": changed(_page_metadata),
    "cut-json": encoded(lambda text: text[: len(text) // 2]),
    "empty-file": encoded(lambda text: ""),
    "list": encoded(lambda text: "[1]"),
    "deep-json": encoded(lambda text: "[" * 100_000),
    "word-file": encoded(lambda text: b"PK\x03\x04" + bytes(range(256))),
    "latin-1": encoded(lambda text: text.replace("squares", "sq\u00fcares").encode("latin-1")),
    "utf-16": encoded(lambda text: text.encode("utf-16")),
    "utf-8-bom": encoded(lambda text: text.encode("utf-8-sig")),
    "line-ends": encoded(lambda text: text.replace("\n", "\r\n").encode()),
    "surrogate": in_json(_surrogate),
    "as-lines": in_json(_lines),
    "null-cell": in_json(lambda nb: nb["cells"].insert(1, None)),
    "no-cells": in_json(lambda nb: nb.update(cells=[])),
    "format-3": encoded(_third),
    "format-4.0": in_json(version(4, 0)),
    "format-5": in_json(version(5, 0)),
    "schema-1": in_json(schema(1)),
    "schema-2": in_json(schema(2)),
    "schema-99": in_json(schema(99)),
    "deep-metadata": in_json(_deep_metadata),
    "strange-kernel": in_json(_strange_kernel),
    "strange-outputs": in_json(_strange_outputs),
    "many-cells": in_json(_many),
    "renamed-file": changed(renamed("numbers (1).ipynb")),
    "upper-case": changed(renamed("Numbers.ipynb")),
    "empty-folder": _empty,
    "folder": _folder,
    "no-folder": _no_folder,
    "extra-notebook": changed(_extra_notebook),
    "large-notebook": large("numbers.ipynb"),
    "large-file": changed(large("data.bin")),
    "odd-names": changed(_odd_names),
    "unanswered": lambda work: None,
}
"""Every other case has its cells as texts, in the folder ``cases``."""
