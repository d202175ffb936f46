"""What is handed in is read within limits, and what cannot be graded is told in plain words."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from gradebox.run import intake
from gradebox.run.intake import Refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder that was handed in, with one notebook."""
    made = tmp_path / "ada"
    made.mkdir()
    (made / "toy.ipynb").write_bytes(content())
    return made


def content(*cells: dict[str, Any], **fields: Any) -> bytes:
    """Return the bytes of a notebook."""
    nb = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)}
    return json.dumps(nb | fields).encode()


def cell(**fields: Any) -> dict[str, Any]:
    """Return a cell of code."""
    empty: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": [], "source": ""}
    return {"cell_type": "code", "id": "a", **empty, **fields}


def nested(levels: int) -> Any:
    """Return lists in lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def take(folder: Path) -> intake.Submission:
    return intake.take("ada", folder, ["toy"], {})


def test_many_files_are_refused_before_they_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "below").mkdir()
    for number in range(20):
        (folder / "below" / str(number)).touch()
    assert take(folder).notebooks.keys() == {"toy"}
    monkeypatch.setattr(intake, "MOST_FILES", 10)
    monkeypatch.setattr(intake, "_read", lambda path: pytest.fail(f"{path} was read"))
    seen: list[str] = []
    below = intake._below

    def counted(path: Path) -> Iterator[Any]:
        for entry in below(path):
            seen.append(entry.name)
            yield entry

    monkeypatch.setattr(intake, "_below", counted)
    told = "expected at most 10 files, got more; hand in only what the notebook needs"
    with pytest.raises(Refused, match=told):
        take(folder)
    assert len(seen) == 11


def test_large_files_are_refused_before_they_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        with (folder / f"{number}.bin").open("wb") as file:
            file.truncate(intake.LARGEST)
    monkeypatch.setattr(intake, "_read", lambda path: pytest.fail(f"{path} was read"))
    with pytest.raises(Refused, match="expected at most 200 MB in all files together, got more"):
        take(folder)


@pytest.mark.skipif(os.mkdir not in os.supports_dir_fd, reason="needs folders beyond any path")
def test_folders_in_folders_without_end_are_refused(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(250):
            os.mkdir("x" * 20, dir_fd=here)
            below = os.open("x" * 20, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)
    with pytest.raises(Refused, match="a folder that was handed in cannot be read"):
        take(folder)


def test_many_cells_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "MOST_CELLS", 2)
    assert len(intake.parse("toy", content(cell(), cell())).cells) == 2
    with pytest.raises(Refused, match=r"expected at most 2 cells in toy\.ipynb, got 3"):
        intake.parse("toy", content(cell(), cell(), cell()))


def test_many_values_are_refused_before_they_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "loads", lambda *text, **more: pytest.fail("it was parsed"))
    many = b'{"cells": [' + b"[]," * intake.MOST_VALUES + b"[]]}"
    with pytest.raises(Refused, match=r"toy\.ipynb holds more than 1000000 values; clear its outp"):
        intake.parse("toy", many)


def test_outputs_are_dropped_as_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": "mark"}
    require_shallow = intake._require_shallow

    def require_unmarked(plain: Any) -> None:
        assert "mark" not in str(plain)
        require_shallow(plain)

    monkeypatch.setattr(intake, "_require_shallow", require_unmarked)
    [found] = intake.parse("toy", content(cell(outputs=[output, output], source="1"))).cells
    assert (found.source, found.outputs) == ("1", [])


@pytest.mark.parametrize("wrong", ["a cell", "x" * 65, "", "ä", "a\n", 5.5, None, ["a"]])
def test_ids_that_extensions_write_are_replaced(wrong: Any) -> None:
    cells = [cell(id="cell-1"), cell(id=wrong), cell(id=wrong)]
    ids = [found.id for found in intake.parse("toy", content(*cells)).cells]
    assert ids == ["cell-1", "cell-1-1", "cell-2"]


def test_ids_that_are_there_twice_are_replaced() -> None:
    ids = [found.id for found in intake.parse("toy", content(*[cell(id="x" * 64)] * 60)).cells]
    assert ids[0] == "x" * 64
    assert len(set(ids)) == 60
    assert max(map(len, ids)) == 64
    taken = [cell(id="x"), cell(id="x-2"), cell(id="x")]
    assert [found.id for found in intake.parse("toy", content(*taken)).cells] == ["x", "x-2", "x-3"]


BROKEN = {
    "truncated": (content(cell())[:-5], "is no JSON; save it anew in Jupyter"),
    "HTML": (b"<!DOCTYPE html>", "is no JSON; save it anew in Jupyter"),
    "UTF-16": (content().decode().encode("utf-16"), "is not UTF-8 text"),
    "nothing at all": (b"", "is no JSON"),
    "a list": (b"[1]", "is no notebook: its JSON is not built as the format says"),
    "null": (b"null", "is no notebook: its JSON is not built as the format says"),
    "cells in lists": (content([cell()]), "is no notebook: its JSON is not built as"),  # type: ignore[arg-type]
    "cells as an object": (content(cells={}), "is no notebook: "),
    "nested text": (b"[" * 10**5, "is no notebook: it is nested too deeply"),
    "nested metadata": (
        content(metadata={"x": nested(200)}),
        "is no notebook: it is nested too deeply",
    ),
    "nested cells": (
        content(cell(metadata={"x": nested(900)})),
        "is no notebook: it is nested too deeply",
    ),
    "a long number": (b'{"nbformat": ' + b"1" * 5000 + b"}", "is no notebook: its JSON is not"),
    "another kind of cell": (content(cell(cell_type="x")), "is no notebook: "),
}


@pytest.mark.parametrize(("text", "told"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_notebook_is_refused_in_plain_words(text: bytes, told: str) -> None:
    with pytest.raises(Refused, match=rf"^toy\.ipynb {told}") as caught:
        intake.parse("toy", text)
    assert "Error" not in str(caught.value)


def test_a_mark_of_the_byte_order_is_no_fault() -> None:
    assert intake.parse("toy", b"\xef\xbb\xbf" + content(cell())).cells


def test_half_a_character_is_replaced() -> None:
    [found] = intake.parse("toy", content(cell(source="\ud800"))).cells
    assert found.source == "\ufffd"


def test_a_notebook_of_nbformat_itself_is_kept(folder: Path) -> None:
    made = new_notebook(cells=[new_code_cell("x = 1", id="mine")])  # type: ignore[no-untyped-call]
    assert intake.parse("toy", json.dumps(made).encode()) == made
