"""Say for each row of the course where it is taught, implemented, tested and asked.

The page Coverage of the book draws the table; ``tests/book/test_coverage.py`` fails on a hole in a
chapter that is in ``_toc.yml``. Nothing is imported or run: labels are read from the chapters,
``Source:`` lines from docstrings, markers from tests, ``check`` calls from notebooks.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml  # type: ignore[import-untyped]

from tools.layout import contents
from tools.terminal import ToolError

LABEL = re.compile(r"\(([A-Z]\w*-\d+)\)=")
LABELS = re.compile(
    rf"^((?:{LABEL.pattern}[ \t]*(?:\n\s*|\Z))+)(?:#{{1,6}}[ \t]+(?P<heading>.*?)[ \t]*$)?", re.M
)
"""Labels, and the heading that they stand before."""
FENCE = re.compile(r"^\s*(`{3,}|~{3,}|:{3,}).*?^\s*\1[`~:]*[ \t]*$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"(?:^\s*|\(|\. )Source:\s*([^()\n]*?)\)?\.?\s*$", re.MULTILINE)
"""``(Source: L1-07).`` or ``Source: L1-07.`` at the end of a sentence, or a line of its own."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FILES = {
    "section": ("book/{topic}", "put ({row})= before the heading of its section"),
    "code": ("src/optdl/{module}.py", "add the line Source: {row} to a docstring"),
    "test": ("tests/{test}.py", 'mark a test with @pytest.mark.row("{row}")'),
    "exercise": ("solutions/{topic}/{notebook}.ipynb", 'call check("{row}", …) in a graded cell'),
}
"""The file in which a hole is filled, and how."""
KINDS = (*FILES,)
UNPROVEN = {"pytest.mark.skip", "pytest.mark.xfail"}


class Evidence(NamedTuple):
    """One place where a row such as ``L1-07`` is used, by its heading or its qualified name.

    ``file`` is relative to the root; ``line`` is 0 for a cell of a notebook.
    """

    id: str
    kind: str
    name: str
    file: str
    line: int = 0


@dataclass
class Row:
    """One item of the course, with all places found for it."""

    ids: list[str]
    title: str
    exercise: bool
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the ids as they are shown."""
        return ", ".join(self.ids)

    @property
    def missing(self) -> list[str]:
        """Return the kinds of place that the row needs and lacks."""
        return [kind for kind in KINDS[: 3 + self.exercise] if not self.of(kind)]

    def of(self, kind: str) -> list[Evidence]:
        """Return the places of one kind, each name once."""
        return list({item.name: item for item in self.evidence if item.kind == kind}.values())


@dataclass
class Chapter:
    """A topic with its rows."""

    topic: str
    title: str
    rows: list[Row]
    exists: bool


def read_rows(root: Path) -> list[Chapter]:
    """Return the chapters of ``book/rows.yml``, in the order of the book, with no places yet."""
    chapters, order = [], [page.split("/")[1] for page in contents(root) if "/" in page]
    for item in yaml.safe_load((root / "book" / "rows.yml").read_text("utf-8"))["chapters"]:
        rows = [
            Row(re.split(r",\s*", row["id"]), row["title"], bool(row.get("exercise")))
            for row in item["rows"]
        ]
        chapters.append(Chapter(item["topic"], item["title"], rows, item["topic"] in order))
    names = [row_id for chapter in chapters for row in chapter.rows for row_id in row.ids]
    counts = Counter([*names, *(chapter.topic for chapter in chapters)])
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise ToolError(f"book/rows.yml lists {', '.join(twice)} twice", "remove one of them")
    # chapters that are not in the contents follow, in the order of rows.yml
    return sorted(chapters, key=lambda chapter: [*order, chapter.topic].index(chapter.topic))


def _files(root: Path, folder: str, pattern: str, word: str) -> Iterator[tuple[str, str]]:
    """Yield the names of files with a word, relative to the root, and their texts."""
    for path in sorted((root / folder).rglob(pattern)):
        if word in (text := path.read_text(encoding="utf-8")):  # to parse all would take seconds
            yield path.relative_to(root).as_posix(), text


def sections(root: Path) -> Iterator[Evidence]:
    """Yield each label ``(L1-07)=`` of the book, named by the heading that follows."""
    for file, original in _files(root, "book", "*.md", ")="):
        text = FENCE.sub(lambda fence: "fence" + "\n" * fence[0].count("\n"), original)
        for labels in LABELS.finditer(text):
            for label in LABEL.finditer(text, labels.start(), labels.end(1)):
                line = text.count("\n", 0, label.start()) + 1
                yield Evidence(label[1], "section", labels["heading"] or "", file, line)


def _definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield the functions and classes below a node with their qualified names."""
    for item in ast.iter_child_nodes(node):
        if isinstance(item, Definition):
            yield prefix + item.name, item
            if isinstance(item, ast.ClassDef):
                yield from _definitions(item, f"{prefix}{item.name}.")


def code(root: Path) -> Iterator[Evidence]:
    """Yield each function, class and method of the package whose docstring names its source.

    The checks do not count, as they compare with the mathematics and implement none. Those of the
    labs do: they hold what the labs ask for, in PyTorch.
    """
    for file, text in _files(root, "src/optdl", "*.py", "Source:"):
        module = file.removeprefix("src/optdl/").removesuffix(".py").replace("/", ".")
        if module.startswith("checks.") and ".lab_" not in module:
            continue
        for name, item in _definitions(ast.parse(text, file)):
            for rows in SOURCE.findall(ast.get_docstring(item) or ""):
                for row_id in re.split(r"\s*,\s*", rows):
                    yield Evidence(row_id, "code", f"{module}.{name}", file, item.lineno)


def tests(root: Path) -> Iterator[Evidence]:
    """Yield each test or test module that is marked with ``pytest.mark.row``."""
    for file, text in _files(root, "tests", "test_*.py", "mark.row"):
        stem = Path(file).stem
        for item in ast.parse(text, file).body:
            marks: list[ast.expr] = getattr(item, "decorator_list", [])
            name = f"{stem}::{getattr(item, 'name', '')}"
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "pytestmark":
                name, marks = stem, [item.value]
            # a test that never passes proves nothing
            if {ast.unparse(getattr(mark, "func", mark)) for mark in marks} & UNPROVEN:
                continue
            # those of parameters are among them
            for call in (part for mark in marks for part in ast.walk(mark)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.row":
                    for argument in call.args:
                        if not isinstance(argument, ast.Constant):
                            problem = f"{file}:{call.lineno}: {ast.unparse(call)} is not a string"
                            remedy = 'write the rows out, as in pytest.mark.row("L1-07")'
                            raise ToolError(problem, remedy)
                        yield Evidence(str(argument.value), "test", name, file, item.lineno)


def exercises(root: Path) -> Iterator[Evidence]:
    """Yield what the graded cells of instructors' notebooks check, a row of a call at a time."""
    for file, text in _files(root, "solutions", "*.ipynb", "check("):
        for cell in json.loads(text)["cells"]:
            graded = cell.get("metadata", {}).get("nbgrader", {}).get("grade")
            if cell["cell_type"] != "code" or not graded:
                continue
            # a string, or a list of lines
            for call in ast.walk(ast.parse("".join(cell["source"]), f"{file}: a graded cell")):
                match call:
                    case ast.Call(ast.Name("check"), [ast.Constant(str(key)), *others]):
                        name = ast.unparse(others[0]) if others else key
                        for row_id in re.split(r",\s*", key.split(":")[0]):
                            yield Evidence(row_id, "exercise", name, file)


def gather(root: Path) -> tuple[list[Chapter], list[str]]:
    """Return all rows by chapters, and what is wrong: a hole, or an id that fits nowhere."""
    chapters, problems = read_rows(root), list[str]()
    rows = {row_id: (c.topic, row) for c in chapters for row in c.rows for row_id in row.ids}
    for item in (*sections(root), *code(root), *tests(root), *exercises(root)):
        topic, row = rows.get(item.id, ("", None))
        if row is None:
            fault = "is no row; the rows stand in book/rows.yml"
        elif item.kind == "section" and not item.file.startswith(f"book/{topic}/"):
            fault = f"belongs to a page of book/{topic}"
        elif item.kind == "section" and not item.name:
            fault = "must stand right before a heading"
        elif item.kind == "section" and item.id in {place.id for place in row.of("section")}:
            fault = "is a label already"
        else:
            row.evidence.append(item)
            continue
        where = f"{item.file}:{item.line}" if item.line else item.file
        problems.append(f"{where}: {item.id} {fault}")
    for topic, row in ((c.topic, row) for c in chapters if c.exists for row in c.rows):
        row_id, *_ = row.ids
        code_of_lab = f"checks/{topic}/{row_id.lower().replace('-', '_')}_*"
        names = {"module": topic, "test": f"optdl/test_{topic}", "notebook": topic}
        if row_id.startswith("LAB-"):
            names = {"module": code_of_lab, "test": "checks/test_lab_records", "notebook": "lab"}
        for kind in row.missing:
            file, remedy = (text.format(topic=topic, row=row_id, **names) for text in FILES[kind])
            problems.append(f"{file}: {row_id} has no {kind}; {remedy}")
    return chapters, problems
