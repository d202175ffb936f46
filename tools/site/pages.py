"""The pages of the book that hold code, what their outputs depend on, and the outputs kept of each.

An execution is kept in a file whose name is the page's and a checksum of what the page ran: its
code cells, the numbers that its text prints, and the pinned packages. The file also lists what the
page read, data and modules of ``optdl``, with checksums. The other words between the cells play no
part.
"""

import json
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from myst_nb.core import read as myst
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode

from tools.fingerprints import digest, write_if_changed
from tools.layout import configuration, contents
from tools.terminal import ToolError

FORMAT = "3"
"""Raise it when executions must be made anew although nothing that they are made from changed."""
KEPT = 3
"""So many executions of each page are kept: those of other branches, for example."""
NUMBER = re.compile(r"\{number\}`([^`]+)`")
"""A number that a page prints in its text: an expression, and after a colon its format."""


@dataclass(frozen=True)
class Cell:
    """A code cell of a page."""

    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 1
    """The line of the page on which the cell begins."""
    place: int = 0
    """Its place among all cells, those of text included."""
    numbers: list[str] = field(default_factory=list)
    """What is to be printed in its caption and in the text after it."""

    @property
    def tags(self) -> Sequence[str]:
        """Return what the page says of the cell."""
        return self.metadata.get("tags", ())

    @property
    def caption(self) -> str:
        """Return what stands below the figure of the cell."""
        return str(self.metadata.get("mystnb", {}).get("figure", {}).get("caption", ""))


@dataclass(frozen=True)
class Page:
    """A page of the book that holds code: its code cells, and all cells as a notebook."""

    root: Path
    path: Path
    cells: list[Cell]
    notebook: NotebookNode
    setting: str = ""
    """Of a variation of the page: the knob and its value."""

    @property
    def name(self) -> str:
        """Return the name: of a lesson its chapter's and its own, of a chapter's first page one."""
        *folders, stem = self.path.relative_to(self.root / "book").with_suffix("").parts
        name = "-".join([*folders, stem] if stem != "index" or not folders else folders)
        return name + re.sub(r"[^\w.@-]", "", self.setting and f"@{self.setting}")

    @property
    def doc(self) -> str:
        """Return the name by which Sphinx knows the page."""
        return self.path.relative_to(self.root).with_suffix("").as_posix()

    @cached_property
    def key(self) -> str:
        """Return the checksum of what the page runs."""
        environment = [FORMAT, sys.platform, platform.python_version()]
        sources = [[cell.source, cell.metadata] for cell in self.cells]
        asked = json.dumps([sources, [cell.numbers for cell in self.cells]])
        return digest([*environment, asked, self.root / "requirements.txt"])[:20]

    def place(self, number: int) -> str:
        """Return the file of the page, and the line on which a code cell begins."""
        return f"{self.doc}.md:{self.cells[number].line}"


def find(root: Path) -> list[Page]:
    """Return the pages of the book that hold code, in the order of the contents."""
    extensions = configuration(root)["sphinx"]["config"]["myst_enable_extensions"]
    syntax = MdParserConfig(enable_extensions=set(extensions))
    pages = []
    for path in (root / f"{name}.md" for name in contents(root)):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if not myst.is_myst_markdown_notebook(text):
            continue
        try:
            notebook = myst.read_myst_markdown_notebook(
                text, syntax, path=path, add_source_map=True
            )
        except myst.MystMetadataParsingError as error:  # which has the line
            raise ToolError(f"{path}: {error}", "correct its options") from None
        if not any(cell.cell_type == "code" for cell in notebook.cells):
            continue
        cells: list[Cell] = []
        lines = notebook.metadata.source_map
        for place, (cell, line) in enumerate(zip(notebook.cells, lines, strict=True)):
            if cell.cell_type == "code":
                cells.append(Cell(cell.source, cell.metadata, line + 1, place))
            text = cells[-1].caption if cell.cell_type == "code" else cell.source
            asked = [" ".join(number.split()) for number in NUMBER.findall(text)]
            if asked and not cells:
                problem = f"{path} prints {asked[0]} before its first code cell"
                raise ToolError(problem, "move it behind the cell that computes it")
            if asked:
                cells[-1].numbers.extend(dict.fromkeys(asked))
        pages.append(Page(root, path, cells, notebook))
    return pages


@dataclass(frozen=True)
class Execution:
    """What the code cells of a page showed."""

    outputs: list[list[dict[str, Any]]]
    """The outputs of each code cell."""
    data: dict[str, str] = field(default_factory=dict)
    """The checksum of each file, and of each folder's listing, that the page read."""
    seconds: list[float] = field(default_factory=list)
    """The processor time of each cell."""
    numbers: dict[str, str] = field(default_factory=dict)
    """Each number that the text prints, by the expression that it is computed from."""


def checksum(path: Path) -> str:
    """Return the checksum of a file's content, or of the names in a folder."""
    if path.is_dir():
        return digest(sorted(child.name for child in path.iterdir()))
    return digest([path])


class Store:
    """The executions that were kept in ``build/pages``, below the folder of the repository."""

    def __init__(self, root: Path) -> None:
        self.root, self.folder = root, root / "build" / "pages"

    def log(self, page: Page) -> Path:
        """Return the file for the log of a page that failed."""
        return self.folder / f"{page.name}.log"

    def load(self, page: Page) -> Execution | None:
        """Return the kept execution of a page; None if there is none or what it read changed."""
        try:
            file = self.folder / f"{page.name}.{page.key}.json"
            execution = Execution(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        fresh = all(checksum(self.root / name) == value for name, value in execution.data.items())
        return execution if fresh and len(execution.outputs) == len(page.cells) else None

    def save(self, page: Page, execution: Execution) -> None:
        """Keep an execution, and of older ones the newest."""
        content = json.dumps(execution.__dict__, ensure_ascii=False)
        write_if_changed(self.folder / f"{page.name}.{page.key}.json", content.encode())
        self.log(page).unlink(missing_ok=True)
        kept = self.folder.glob(f"{page.name}.*.json")
        for file in sorted(kept, key=lambda file: file.stat().st_mtime)[:-KEPT]:
            file.unlink(missing_ok=True)
