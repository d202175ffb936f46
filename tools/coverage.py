"""Say for each row of the course where it is taught, implemented, tested and asked.

Run as ``python -m tools.coverage``; it fails on a hole in a chapter that exists. The page
Coverage of the book draws the same table. Nothing is imported or run: labels are read from the
chapters, ``Source:`` lines from docstrings, markers from tests, ``check`` calls from notebooks.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml  # type: ignore[import-untyped]
from rich.markup import escape
from rich.table import Table

from tools.terminal import ToolError, console, run

ROOT = Path(__file__).resolve().parent.parent
LABEL = re.compile(r"\(([A-Z]\w*-\d+)\)=\s*$")
HEADING = re.compile(r"#{1,6}\s+(.*?)\s*$")
FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})")
LAB = "LAB-"
"""How the rows of labs begin."""
SOURCE = re.compile(r"^\s*Source:\s*(.*?)\.?\s*$", re.MULTILINE)

Kind = Literal["section", "code", "test", "exercise"]
KINDS: tuple[Kind, ...] = ("section", "code", "test", "exercise")
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Evidence:
    """One place where a row is used.

    Parameters
    ----------
    id : str
        The row, such as ``L1-07``.
    kind : str
        Section, code, test or exercise.
    name : str
        The heading, or the qualified name.
    file : str
        Where it stands, relative to the root.
    line : int
        The line in it; 0 for a cell of a notebook.
    """

    id: str
    kind: Kind
    name: str
    file: str
    line: int = 0


@dataclass(frozen=True)
class Problem:
    """Something to fix: a hole in a chapter that exists, or an id that fits nowhere."""

    row: str
    kind: str
    file: str
    message: str


@dataclass
class Row:
    """One item of the course, with all places found for it."""

    ids: tuple[str, ...]
    title: str
    exercise: bool
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the ids as they are shown."""
        return ", ".join(self.ids)

    @property
    def needs(self) -> tuple[Kind, ...]:
        """Return the kinds of place that make the row complete."""
        return KINDS if self.exercise else KINDS[:3]

    @property
    def missing(self) -> tuple[Kind, ...]:
        """Return the kinds of place that are needed and not there."""
        return tuple(kind for kind in self.needs if not self.of(kind))

    def of(self, kind: Kind) -> list[Evidence]:
        """Return the places of one kind, each name once."""
        return list({item.name: item for item in self.evidence if item.kind == kind}.values())


@dataclass
class Chapter:
    """A topic with its rows."""

    topic: str
    title: str
    rows: list[Row]
    exists: bool = False

    @property
    def complete(self) -> int:
        """Return the number of rows that lack nothing."""
        return sum(not row.missing for row in self.rows)


@dataclass
class Coverage:
    """The whole table, and what is wrong with it."""

    chapters: list[Chapter]
    problems: list[Problem]

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        chapters = [
            asdict(chapter)
            | {"rows": [asdict(row) | {"missing": row.missing} for row in chapter.rows]}
            for chapter in self.chapters
        ]
        return {"chapters": chapters, "problems": [asdict(item) for item in self.problems]}


# --- The rows ---------------------------------------------------------------------------------


def read_rows(root: Path) -> list[Chapter]:
    """Return the chapters of ``book/rows.yml``, in the order of the book, with no places yet."""
    file = root / "book" / "rows.yml"
    if not file.exists():
        raise ToolError(f"there is no {file}", "run the command in the repository's folder")
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    chapters = [_read_chapter(item) for item in content["chapters"]]
    _require_unique([row_id for chapter in chapters for row in chapter.rows for row_id in row.ids])
    _require_unique([chapter.topic for chapter in chapters])
    order = {topic: position for position, topic in enumerate(_toc_topics(root))}
    # Chapters that are not in the contents yet follow, in the order of rows.yml.
    return sorted(chapters, key=lambda chapter: order.get(chapter.topic, len(order)))


def _read_chapter(item: dict[str, Any]) -> Chapter:
    rows = [
        Row(tuple(re.split(r",\s*", row["id"])), str(row["title"]), bool(row.get("exercise")))
        for row in item["rows"]
    ]
    return Chapter(item["topic"], item["title"], rows)


def _require_unique(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ToolError(f"book/rows.yml lists {', '.join(twice)} twice", "remove one of them")


def _toc_topics(root: Path) -> list[str]:
    file = root / "_toc.yml"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return re.findall(r"file:\s*book/(\w+)", text)


# --- What is there ----------------------------------------------------------------------------


def sections(root: Path) -> Iterator[Evidence]:
    """Yield each label ``(L1-07)=`` of the book, named by the heading that follows."""
    for path in sorted((root / "book").rglob("*.md")):
        waiting: list[tuple[str, int]] = []
        for number, line in _prose(path):
            if label := LABEL.match(line):
                waiting.append((label[1], number))
            elif line.strip():
                heading = HEADING.match(line)
                name = heading[1] if heading else ""
                for row_id, at in waiting:
                    yield Evidence(row_id, "section", name, _relative(path, root), at)
                waiting = []
        # A label at the end of a file stands before no heading.
        for row_id, at in waiting:
            yield Evidence(row_id, "section", "", _relative(path, root), at)


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a page that stand outside of fences."""
    fence = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = FENCE.match(line)
        if not fence and mark:
            fence = mark[1]
            yield number, "fence"
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        elif not fence:
            yield number, line


def code(root: Path) -> Iterator[Evidence]:
    """Yield each function, class and method of the package whose docstring names its source.

    The checks do not count, as they compare with the mathematics and implement none. Those of the
    labs do: they hold what the labs ask for, in PyTorch.
    """
    package = root / "src" / "optdl"
    for path in sorted(package.rglob("*.py")):
        module = ".".join(path.relative_to(package).with_suffix("").parts)
        if module.startswith("checks.") and ".lab_" not in module:
            continue
        for name, item in _definitions(_parse(path)):
            docstring = ast.get_docstring(item) or ""
            sources = SOURCE.findall(docstring)
            for row_id in (part for line in sources for part in re.split(r"\s*,\s*", line)):
                yield Evidence(
                    row_id, "code", f"{module}.{name}", _relative(path, root), item.lineno
                )


def _definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yield the functions and classes below a node with their qualified names."""
    for item in ast.iter_child_nodes(node):
        if isinstance(item, Definition):
            yield prefix + item.name, item
            if isinstance(item, ast.ClassDef):
                yield from _definitions(item, f"{prefix}{item.name}.")


def tests(root: Path) -> Iterator[Evidence]:
    """Yield each test, test class or test module that is marked with ``pytest.mark.row``."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = _parse(path)
        file = _relative(path, root)
        for mark in _module_marks(tree):
            yield from (Evidence(i, "test", path.stem, file, 1) for i in _mark_ids(mark, path))
        for name, item in _definitions(tree):
            if not item.name.startswith(("test", "Test")) or _is_skipped(item):
                continue
            marks = [mark for decorator in item.decorator_list for mark in _row_marks(decorator)]
            for row_id in (i for mark in marks for i in _mark_ids(mark, path)):
                yield Evidence(
                    row_id, "test", f"{path.stem}::{name.replace('.', '::')}", file, item.lineno
                )


def _module_marks(tree: ast.Module) -> Iterator[ast.Call]:
    for item in tree.body:
        if isinstance(item, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in item.targets
        ):
            yield from _row_marks(item.value)


def _row_marks(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of ``pytest.mark.row`` in an expression, those of parameters among them."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.row":
            yield call


def _mark_ids(mark: ast.Call, path: Path) -> Iterator[str]:
    for argument in mark.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            raise ToolError(
                f"{path}:{mark.lineno}: pytest.mark.row({ast.unparse(argument)}) is not a string",
                'write the rows out, as in pytest.mark.row("L1-07"): they are read, not run',
            )
        yield argument.value


def _is_skipped(item: Definition) -> bool:
    """Tell whether a test never passes: it then proves nothing."""
    names = {ast.unparse(getattr(mark, "func", mark)) for mark in item.decorator_list}
    return bool(names & {"pytest.mark.skip", "pytest.mark.xfail"})


def exercises(root: Path) -> Iterator[Evidence]:
    """Yield each function that a graded cell of an instructor's notebook checks."""
    for path in sorted((root / "solutions").glob("*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            grade = cell.get("metadata", {}).get("nbgrader", {})
            if cell["cell_type"] == "code" and grade.get("grade"):
                # a string, or a list of lines
                yield from _checked("".join(cell["source"]), _relative(path, root))


def _checked(text: str, file: str) -> Iterator[Evidence]:
    """Yield what a cell checks: ``check("L1-03:hinge", hinge_loss)``, or two rows at once."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ToolError(
            f"{file}: a graded cell is not Python: {error}", "correct that cell"
        ) from None
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "check" and call.args:
            key = call.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                name = ast.unparse(call.args[1]) if len(call.args) > 1 else key.value
                for row_id in re.split(r",\s*", key.value.split(":")[0]):
                    yield Evidence(row_id, "exercise", name, file)


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise ToolError(f"{path} is not Python: {error}", "correct that file") from None


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


# --- The table --------------------------------------------------------------------------------


def gather(root: Path = ROOT) -> Coverage:
    """Return the table of all rows, with every hole and every id that fits nowhere.

    Raises
    ------
    ToolError
        When a file cannot be read as what it should be.
    """
    chapters = read_rows(root)
    rows_by_id = {
        row_id: (chapter, row) for chapter in chapters for row in chapter.rows for row_id in row.ids
    }
    problems: list[Problem] = []
    for item in (*sections(root), *code(root), *tests(root), *exercises(root)):
        if fault := _fault(item, rows_by_id):
            problems.append(Problem(item.id, "id", item.file, fault))
        else:
            rows_by_id[item.id][1].evidence.append(item)
    for chapter in chapters:
        chapter.exists = (root / "book" / chapter.topic / "index.md").exists()
        problems += _twice(chapter) + (_holes(chapter) if chapter.exists else [])
    return Coverage(chapters, problems)


def _fault(item: Evidence, rows_by_id: dict[str, tuple[Chapter, Row]]) -> str:
    """Return what is wrong with one place, or nothing."""
    where = f"{item.file}:{item.line}" if item.line else item.file
    if item.id not in rows_by_id:
        return f"{where} uses {item.id!r}, which is no row; the rows stand in book/rows.yml"
    topic = rows_by_id[item.id][0].topic
    if item.kind == "section" and not item.file.startswith(f"book/{topic}/"):
        return f"{where} has the label of {item.id}, which belongs to a page of book/{topic}"
    if item.kind == "section" and not item.name:
        return f"{where}: the label of {item.id} must stand right before a heading"
    return ""


def _twice(chapter: Chapter) -> list[Problem]:
    """Return the labels that stand in a chapter more than once."""
    labels = [label for row in chapter.rows for label in row.evidence if label.kind == "section"]
    ids = [label.id for label in labels]
    return [
        Problem(label.id, "id", label.file, f"{label.file}:{label.line} repeats label {label.id}")
        for number, label in enumerate(labels)
        if label.id in ids[:number]
    ]


def _holes(chapter: Chapter) -> list[Problem]:
    return [
        Problem(row.name, kind, *_remedy(chapter.topic, row.ids[0], kind))
        for row in chapter.rows
        for kind in row.missing
    ]


def _remedy(topic: str, row_id: str, kind: Kind) -> tuple[str, str]:
    """Return the file in which a hole is filled, and how."""
    is_lab = row_id.startswith(LAB)
    module = f"checks/{topic}/{row_id.lower().replace('-', '_')}_*" if is_lab else topic
    test = "checks/test_lab_" if is_lab else "optdl/test_"
    file, remedy = {
        "section": (f"book/{topic}", f"put ({row_id})= before the heading of its section"),
        "code": (f"src/optdl/{module}.py", f"add the line Source: {row_id} to a docstring"),
        "test": (f"tests/{test}{topic}.py", f'mark a test with @pytest.mark.row("{row_id}")'),
        "exercise": (
            f"solutions/{topic}/{'lab' if is_lab else topic}.ipynb",
            f'call check("{row_id}", …) in a graded cell',
        ),
    }[kind]
    return file, f"{row_id} has no {kind}; in {file} {remedy}"


# --- The command ------------------------------------------------------------------------------


def show(coverage: Coverage) -> None:
    """Print the table and the problems."""
    for chapter in coverage.chapters:
        state = f"{chapter.complete} of {len(chapter.rows)} rows complete"
        title = f"{chapter.title}: {state if chapter.exists else 'chapter to come'}"
        if not chapter.exists:
            console.print(f"[dim]{escape(title)} ({len(chapter.rows)} rows)[/]")
            continue
        table = Table(title=escape(title), title_justify="left", expand=True)
        for column in ("row", *KINDS):
            table.add_column(column, ratio=1 if column in ("section", "code", "exercise") else None)
        for row in chapter.rows:
            table.add_row(row.name, *(_cell(row, kind) for kind in KINDS))
        console.print(table)
    for problem in coverage.problems:
        console.print(f"[bold red]✗[/] {escape(problem.message)}")
    if not coverage.problems:
        console.print("[green]✓[/] Every chapter that exists is complete.")


def _cell(row: Row, kind: Kind) -> str:
    """Return what fits into a terminal: two names, or the number of tests."""
    names = [escape(item.name) for item in row.of(kind)]
    if not names:
        return "[red]missing[/]" if kind in row.missing else "[dim]–[/]"
    if kind == "test":
        return f"{len(names)} {'test' if len(names) == 1 else 'tests'}"
    more = f" [dim]+{len(names) - 2}[/]" if len(names) > 2 else ""
    return "\n".join(names[:2]) + more


def _command(arguments: argparse.Namespace) -> int:
    coverage = gather(arguments.root)
    if arguments.json:
        json.dump(coverage.as_dict(), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        show(coverage)
    return 1 if coverage.problems else 0


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 1 on a hole in a chapter that exists."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.coverage",
        description="Say where each row of the course is taught, implemented, tested and asked.",
    )
    parser.add_argument("--json", action="store_true", help="print plain data")
    parser.add_argument("--root", type=Path, default=ROOT, help="another copy of the course")
    return run(_command, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
