"""What is handed in is read within limits, and every notebook is read, whoever wrote it."""

import contextlib
import json
import os
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import nbformat
import pytest

from gradebox.nbgrader import rebuild
from gradebox.nbgrader.gradebook import Sources
from gradebox.run import intake
from gradebox.run.intake import Refused

NBGRADER = {"grade_id": "sum", "solution": True, "grade": False, "locked": False}
PICTURE = {"a.png": {"image/png": "iVBO"}}


def cell(**fields: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": [], "source": ""}
    return {"cell_type": "code", "id": "a", **empty, **fields}


def content(*cells: Any, **fields: Any) -> bytes:
    nb = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}
    return json.dumps(nb | fields).encode()


def nested(levels: int) -> Any:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def all_cells(**fields: Any) -> Callable[[Any], None]:
    return lambda nb: [part.update(deepcopy(fields)) for part in nb["cells"]] and None


def metadata(**fields: Any) -> Callable[[Any], None]:
    return lambda nb: [part["metadata"].update(fields) for part in (nb, *nb["cells"])] and None


def of_minor(minor: Any, *removed: str) -> Callable[[Any], None]:
    """Write an earlier version of the format, without some parts of cells."""

    def change(nb: Any) -> None:
        nb["nbformat_minor"] = minor
        for part, name in ((part, name) for part in nb["cells"] for name in ("id", *removed)):
            part.pop(name, None)

    return change


def of_version_3(nb: Any) -> None:
    old = nbformat.convert(nbformat.from_dict(nb), 3)
    nb.clear()
    nb.update(old)


WRITTEN = {
    "JupyterLab 1, without ids": of_minor(2),
    "Colab, without outputs or counts": of_minor(0, "outputs", "execution_count"),
    "a version that there is not yet": lambda nb: nb.update(nbformat_minor=9),
    "no version of the cells": of_minor(None),
    "nbformat 3": of_version_3,
    "lists of lines": lambda nb: (
        [part.update(source=part["source"].splitlines(True)) for part in nb["cells"]] and None
    ),
    "a count below zero": all_cells(execution_count=-5),
    "a count in words": all_cells(execution_count="3"),
    "outputs that are null": all_cells(outputs=None),
    "outputs of no kind": all_cells(outputs=[{"output_type": "odd"}, {"text": 7}, 3]),
    "parts of another kind of cell": all_cells(level=2, collapsed=True, prompt_number=3),
    "Deepnote, with parts of its own": all_cells(outputs_reference="s3:x", content_dependencies={}),
    "VS Code": metadata(vscode={"languageId": "python"}, orig_nbformat=4, language_info={}),
    "a kernel without a name": metadata(
        kernelspec={"language": "python"}, authors="me", title=None
    ),
    "Kaggle": metadata(_uuid="x", trusted=True, execution={"iopub.status.busy": None}),
    "looks of odd types": metadata(collapsed=None, scrolled="true", name="", format=1, jupyter=[]),
    "tags of odd types": metadata(tags="a, b"),
    "metadata two hundred deep": metadata(x=nested(200)),
    "metadata of nbgrader nine hundred deep": metadata(nbgrader=NBGRADER | {"y": nested(900)}),
    "a mark of the byte order": lambda nb: b"\xef\xbb\xbf" + json.dumps(nb).encode(),
    "line ends of Windows": lambda nb: json.dumps(nb, indent=1).replace("\n", "\r\n").encode(),
    "half a character": all_cells(attachments={"\ud800": {}, "b": 3}),
}


@pytest.mark.parametrize("change", WRITTEN.values(), ids=WRITTEN)
def test_faults_in_unused_fields_are_ignored(change):
    output = {"output_type": "stream", "name": "stdout", "text": "x"}
    code = cell(source="x = 1\ny = 2", metadata={"nbgrader": NBGRADER}, outputs=[output])
    words = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": "Why?"}
    nb = json.loads(content(code, words))
    found = intake.parse("toy", change(nb) or json.dumps(nb).encode())
    nbformat.validate(found)
    assert [part.cell_type for part in found.cells] == ["code", "markdown"]
    assert [part.source for part in found.cells] == ["x = 1\ny = 2", "Why?"]
    assert found.cells[0].metadata["nbgrader"] == NBGRADER
    assert found.cells[0].outputs == []


def test_fields_used_by_grading_and_pages_are_kept():
    words = {"cell_type": "markdown", "metadata": None, "source": None, "attachments": PICTURE}
    tags = {"tags": ["train", 3, "a,b", "train"], "editable": False, "x": 1}
    kept = intake.parse("toy", content(words, cell(metadata=tags), cell(cell_type="sql"))).cells
    assert [part.cell_type for part in kept] == ["markdown", "code", "raw"]
    assert (kept[0].source, kept[0].metadata, kept[0].attachments) == ("", {}, PICTURE)
    assert kept[1].metadata == {"tags": ["train"], "editable": False}


@pytest.mark.parametrize("wrong", ["a cell", "x" * 65, "", "ä", "a\n", 5.5, None, ["a"]])
def test_invalid_and_repeated_ids_are_replaced(wrong):
    cells = [cell(id=name) for name in ("cell-1", wrong, wrong, *["x" * 64] * 60)]
    ids = [found.id for found in intake.parse("toy", content(*cells)).cells]
    assert ids[:4] == ["cell-1", "cell-1-1", "cell-2", "x" * 64]
    assert (len(set(ids)), max(map(len, ids))) == (63, 64)


BROKEN = {
    "truncated": content(cell())[:-5],
    "HTML": b"<!DOCTYPE html>",
    "UTF-16": content().decode().encode("utf-16"),
    "nothing at all": b"",
    "a list": b"[1]",
    "null": b"null",
    "a cell that is null": content(None),
    "cells in lists": content([cell()]),
    "cells as an object": content(cells={"a": 1}),
    "nested text": b"[" * 10**5,
    "a long number": b'{"nbformat": ' + b"1" * 5000 + b"}",
    "many cells": content(*[cell()] * (intake.MAX_CELLS + 1)),
    "many values": b'{"cells": [' + b"[]," * intake.MAX_VALUES + b"[]]}",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_notebook_is_refused(text):
    with pytest.raises(Refused, match=r"toy\.ipynb") as caught:
        intake.parse("toy", text)
    assert "Error" not in str(caught.value)


def test_notebook_with_too_many_values_is_not_parsed(monkeypatch):
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(Refused):
        intake.parse("toy", BROKEN["many values"])


def deep(name: str, levels: int) -> Callable[[Path], None]:
    """Make folders in folders, beyond any path."""

    def fill(folder: Path) -> None:
        here = os.open(folder, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir(name, dir_fd=here)
            above, here = here, os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(above)
        os.close(here)

    return fill


def large(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.bin").touch()
        os.truncate(folder / f"{number}.bin", intake.MAX_FILE_BYTES)


TOO_MUCH = {
    "files": (lambda path: [(path / f"{i}").touch() for i in range(1_000)], "500 files"),
    "folders": (deep("x", 640), "50 folders"),
    "long names": (deep("x" * 250, 20), "cannot be read"),
    "bytes": (large, "200 MB"),
}


@pytest.mark.parametrize(("fill", "why"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_oversized_folder_is_refused_before_it_is_listed(tmp_path, monkeypatch, fill, why):
    monkeypatch.setattr(intake, "MAX_FILES", 500)
    (tmp_path / "toy.ipynb").write_bytes(content())
    assert intake.take("ada", tmp_path, ["toy"], lambda _: {}).notebooks.keys() == {"toy"}
    fill(tmp_path)
    seen, scandir = [], os.scandir

    @contextlib.contextmanager
    def counted(path):
        with scandir(path) as entries:
            yield (seen.append(entry) or entry for entry in entries)

    monkeypatch.setattr(os, "scandir", counted)
    with pytest.raises(Refused, match=why):
        intake.take("ada", tmp_path, ["toy"], lambda path: pytest.fail(f"{path} was listed"))
    assert len(seen) <= intake.MAX_FILES + 1


def notebook_in(folder: Path) -> Path:
    (folder / "toy.ipynb").write_bytes(content())
    return folder


pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
ODD = {
    "a link": lambda folder: (folder / "toy.ipynb").symlink_to(__file__),
    "a link beside it": lambda folder: (notebook_in(folder) / "zero").symlink_to("/dev/zero"),
    "a link to itself": lambda folder: (notebook_in(folder) / "loop").symlink_to("."),
    "a pipe": lambda folder: os.mkfifo(folder / "toy.ipynb"),
    "a pipe beside it": lambda folder: os.mkfifo(notebook_in(folder) / "pipe"),
    "a folder": lambda folder: (folder / "toy.ipynb").mkdir(),
    "another name": lambda folder: (folder / "Toy (1).ipynb").write_bytes(content()),
    "nothing": lambda folder: None,
    "a file for the folder": lambda folder: (folder.rmdir(), folder.write_text("x")),
    "a link for the folder": lambda folder: (folder.rmdir(), folder.symlink_to(__file__)),
    "too large": lambda folder: os.truncate(
        notebook_in(folder) / "toy.ipynb", intake.MAX_FILE_BYTES + 1
    ),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_missing_linked_or_special_files_are_refused(tmp_path, make):
    folder = tmp_path / "toy"
    folder.mkdir()
    make(folder)
    with pytest.raises(Refused):
        intake.take("ada", folder, ["toy"], lambda here: {p.name: p for p in here.iterdir()})


def rebuilt(monkeypatch: pytest.MonkeyPatch, nb: Any, *originals: tuple[str, str]) -> list[str]:
    """Rebuild a notebook of cells, tests where a name begins with t; return what is said of it."""
    cells = {}
    for name, source in originals:
        is_test = name[0] == "t"
        own = {"grade": is_test, "solution": not is_test, "task": False, "locked": is_test}
        own |= {"grade_id": name, **({"points": 1} if is_test else {})}
        cells[name] = {"cell_type": "code", "source": source, "metadata": {"nbgrader": own}}
    book = Sources({"toy": {"kernelspec": None, "cells": cells}})
    context = {"assignment": "toy", "notebook": "toy"}
    said: list[str] = []
    step = rebuild.Rebuild()
    monkeypatch.setattr(step.log, "warning", lambda event: said.append(event.kind))
    step.preprocess(nb, {"nbgrader": context, "gradebook": book})
    return said


@pytest.mark.parametrize("kind", ["grade", "solution", "task"])
def test_another_kind_of_a_test_is_told(monkeypatch, kind):
    own = {"grade_id": "test", "grade": True, "solution": False, "task": False, "points": 1}
    for given, said in (own, []), (own | {kind: not own[kind]}, ["changed"]):
        nb = intake.parse("toy", content(cell(source="assert x", metadata={"nbgrader": given})))
        assert rebuilt(monkeypatch, nb, ("test", "assert x")) == said
        assert {key: nb.cells[0].metadata["nbgrader"][key] for key in own} == own


@pytest.mark.parametrize(("given", "theirs"), [("\n", "\r\n"), ("\r\n", "\n"), ("\r\n",) * 2])
def test_line_ends_of_windows_change_nothing(monkeypatch, given, theirs):
    locked = {"grade_id": "test", "grade": True, "points": 1, "locked": True}
    texts = {"sum": "x = 1{0}y = 2", "test": "assert x{0}assert y"}
    names = zip(texts.values(), (NBGRADER, locked), strict=True)
    cells = [cell(source=text.format(theirs), metadata={"nbgrader": of}) for text, of in names]
    nb = intake.parse("toy", content(*cells))
    released = {name: text.format(given) for name, text in texts.items()}
    assert rebuilt(monkeypatch, nb, *released.items()) == []
    # to the byte: by its checksum nbgrader knows an answer that was left blank
    assert [part.source for part in nb.cells] == [*released.values()]


def test_equal_cells_without_metadata_are_matched_in_order(monkeypatch):
    hidden = "# tests\n### BEGIN HIDDEN TESTS\nassert {}\n### END HIDDEN TESTS"
    released, handed_in, expected = [], [], []
    for name in "abc":
        released += [(name, "pass"), (f"t-{name}", hidden.format(name))]
        handed_in += [cell(source=f"{name} = 1"), cell(source="# tests\n")]
        expected += [f"{name} = 1", hidden.format(name)]
    nb = intake.parse("toy", content(*handed_in))
    assert "order" not in rebuilt(monkeypatch, nb, *released)
    assert [part.source for part in nb.cells if part.source in expected] == expected
