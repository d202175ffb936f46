"""The chapters as notebooks that run in JupyterLab, without what only the site understands.

Run as ``python -m tools.chapters``: it writes them into the folder ``notebooks``, from which Colab
and Binder open them. The site offers the same files for download.
"""

import argparse
import ast
import json
import posixpath
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
import yaml  # type: ignore[import-untyped]
from nbformat import NotebookNode
from pybtex.database import Entry, parse_file
from pybtex.richtext import Text

from tools.fingerprints import write_if_changed
from tools.layout import contents, files_below
from tools.pages import Page, Store, find
from tools.terminal import console, run

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "notebooks"
"""Where the notebooks lie in the repository once Colab and Binder are switched on."""
FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w-]+)\})?[ \t]*(?P<title>[^\n]*)\n(?P<body>.*?)"
    r"^(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LABEL = re.compile(r"^\(([\w-]+)\)=[ \t]*\n", re.MULTILINE)
FORMULA = re.compile(r"^\$\$\n(.*?)^\$\$(?: \(([\w-]+)\))?[ \t]*$", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r"\{([a-z]+(?::[a-z]+)?)\}`([^`]+)`", re.DOTALL)


class NotPortable(ValueError):
    """A page uses something for which a notebook has no form."""


@dataclass
class Book:
    """What pages refer to in one another.

    Parameters
    ----------
    root : Path
        The folder of the repository.
    """

    root: Path
    titles: dict[str, str] = field(default_factory=dict)
    """The heading after each label, and the title of each page."""
    equations: dict[str, str] = field(default_factory=dict)
    """The number of each equation that has a label."""

    def __post_init__(self) -> None:
        """Read all pages."""
        placed: dict[int, int] = {}
        for name, chapter in _chapters(self.root).items():
            path = self.root / f"{name}.md"
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            if title := re.search(r"^# (.+)$", text, re.MULTILINE):
                self.titles[name] = title[1]
            for labels, heading in re.findall(r"^((?:\([\w-]+\)=\n)+)#+ (.+)$", text, re.MULTILINE):
                for label in re.findall(r"\(([\w-]+)\)=", labels):
                    self.titles[label] = heading
            for label, title in re.findall(r"^ {4}name: ([\w-]+)()$", text, re.MULTILINE):
                self.titles[label] = title or "the figure"
            start = placed.get(chapter, 0) if chapter else 0
            labels = [label for _, label in FORMULA.findall(text) if label]
            for number, label in enumerate(labels, start + 1):
                self.equations[label] = f"{chapter}.{number}" if chapter else str(number)
            placed[chapter] = start + len(labels)

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Return the bibliography."""
        file = self.root / "book" / "references.bib"
        return dict(parse_file(str(file)).entries.items()) if file.exists() else {}

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Return what _config.yml says about Sphinx."""
        config = yaml.safe_load((self.root / "_config.yml").read_text(encoding="utf-8"))
        settings: dict[str, Any] = config["sphinx"]["config"]
        return settings


def _chapters(root: Path) -> dict[str, int]:
    """Return the number of the chapter of each page, 0 where it has none, in order."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    numbered = [part for part in toc.get("parts", []) if part.get("numbered")]
    chapters = [chapter for part in numbered for chapter in part["chapters"]]
    numbers = dict.fromkeys(contents(root), 0)
    for number, chapter in enumerate(chapters, 1):
        numbers |= dict.fromkeys(files_below(chapter), number)
    return numbers


@dataclass
class Context:
    """What the text of one page refers to.

    Parameters
    ----------
    book : Book
        All pages.
    doc : str
        The page, as Sphinx names it.
    numbers : dict
        The numbers that its text prints.
    """

    book: Book
    doc: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)
    """The keys of the references so far."""

    def page(self, target: str) -> str:
        """Return the page that a path in this one means."""
        if target.startswith("/"):
            return target[1:]
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.doc), target))


def name(page: Page) -> str:
    """Return the file name of a page's notebook; the assignment has the topic's name alone."""
    return f"chapter-{page.name}.ipynb"


def notebook(page: Page, book: Book, numbers: Mapping[str, str] | None = None) -> NotebookNode:
    """Return a page as a notebook that runs; ``numbers`` are those that its text prints.

    Raises
    ------
    NotPortable
        When the page has a role or a directive that this tool does not know.
    """
    context = Context(book, page.doc, numbers or {})
    cells: list[NotebookNode] = [_first(page, book)]
    repository = str(book.settings.get("launch_repository", ""))
    if repository:
        cells.append(_colab(repository))
    for cell in page.notebook.cells:
        if cell.cell_type == "code":
            cells += _code(cell, context)
        elif text := markdown(cell.source, context):
            cells.append(_cell("markdown", text))
    for number, cell in enumerate(cells):
        cell["id"] = f"{page.name.replace('_', '-')}-{number}"
    result: NotebookNode = nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call]
    result.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    result.metadata["language_info"] = {"name": "python"}
    return result


def _cell(kind: str, text: str, **metadata: Any) -> NotebookNode:
    constructor = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}[
        kind
    ]
    cell: NotebookNode = constructor(text, metadata=metadata)  # type: ignore[no-untyped-call]
    return cell


def _first(page: Page, book: Book) -> NotebookNode:
    """Return the cell that says what a reader needs."""
    title = book.titles.get(page.doc, page.name)
    return _cell(
        "markdown",
        f"*“{title}”, a page of the course Learning as Optimization, as a notebook.*\n\n"
        "**Before you run it.** The cells import `optdl`, the package of the course. Get the "
        "folder of the course from your instructor or with git, open a terminal in it, and type\n\n"
        "```bash\n"
        'python3 -m pip install ".[chapters]"\n'
        "```\n\n"
        "in the Python of your JupyterLab; or type `make lab`, which makes an environment that has "
        f"everything. Save this notebook in the folder `{FOLDER}` or `book` of the course: some "
        "cells read recorded runs from `../experiments`, which they find from there.",
    )


def _colab(repository: str) -> NotebookNode:
    """Return the cell that fetches the course where nothing of it is installed."""
    return _cell(
        "code",
        "# On Colab this fetches the course and installs its package; elsewhere it does nothing.\n"
        "import sys\n\n"
        'if "google.colab" in sys.modules:\n'
        f"    !git clone --quiet --depth 1 {repository} /content/course\n"
        '    %pip install --quiet "/content/course[chapters]"\n'
        f"    %cd /content/course/{FOLDER}",
    )


def _code(cell: NotebookNode, context: Context) -> list[NotebookNode]:
    """Return a code cell, and the caption of its figure."""
    tags = [tag for tag in cell.metadata.get("tags", []) if tag not in {"setup", "hide-input"}]
    cells = [_cell("code", cell.source, **({"tags": tags} if tags else {}))]
    caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption")
    if caption:
        cells.append(_cell("markdown", f"*Figure.* {markdown(caption, context)}"))
    return cells


# --- Text -----------------------------------------------------------------------------------------


def markdown(text: str, context: Context) -> str:
    """Return Markdown that JupyterLab shows as the site shows this text.

    Parameters
    ----------
    text : str
        Text of a page.
    context : Context
        What it may refer to; the keys of its references are added there.
    """
    result: list[str] = []

    def fenced(match: re.Match[str]) -> str:
        if match["name"] and match["name"] != "literalinclude":
            return _directive(match, context)
        result.append(_included(match, context) if match["name"] else match[0])
        return f"\x00{len(result) - 1}\x00"

    text = FENCE.sub(fenced, text)
    text = LABEL.sub("", text)
    text = FORMULA.sub(lambda match: _formula(match, context.book), text)
    text = ROLE.sub(lambda match: _role(match[1], match[2], context), text)
    text = re.sub(r"\x00(\d+)\x00", lambda match: result[int(match[1])], text)
    return text.strip()


def _directive(match: re.Match[str], context: Context) -> str:
    """Return a directive as plain Markdown."""
    options = re.match(r"(?::[\w-]+:[^\n]*\n)*\s*", match["body"])
    body = match["body"][options.end() :] if options else match["body"]
    kind, title = match["name"], match["title"].strip()
    if kind in {"note", "warning", "tip", "admonition"}:
        name = re.sub(r"\.?$", ".", title) if kind == "admonition" else f"{kind.title()}."
        name = name[:-1] if re.search(r"[?!:]\.$", name) else name
        text = f"**{markdown(name, context)}**\n\n{markdown(body, context)}"
        return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
    if kind == "stacking-table":
        return f"**{title}**\n\n{body.strip()}"
    if kind == "exercise":
        topic = title.partition("-")[0]
        return f"*An exercise, `{title}`, which stands in the notebook `{topic}.ipynb`.*"
    if kind == "try":
        invitation = "**Try it.** Copy the code into a cell, and change a number."
        return f"{invitation}\n\n```python\n{body.strip()}\n```"
    if kind == "explore":
        return f"*A figure to explore, which the page of the site has.* {body.strip()}"
    if kind == "raw":
        return "*The page of the site has an interactive figure here.*"
    if kind == "footbibliography":
        entries = (context.book.entries[key] for key in dict.fromkeys(context.cited))
        return "\n".join(f"- {_reference(entry)}" for entry in entries)
    if kind == "lesson":
        minutes = re.search(r"^:minutes: *(\d+)", match["body"], re.MULTILINE)
        return f"*{minutes[1]} minutes.*" if minutes else ""
    if kind == "lessons":
        return "*The page of the site lists the lessons here.*"
    if kind == "cards":
        return f"**To remember**\n\n{_cards(markdown(body, context))}"
    raise NotPortable(f"tools/chapters.py has no form for the directive {kind!r} in a notebook")


def _cards(body: str) -> str:
    """Return a definition list as a list of questions with their answers."""
    return re.sub(r"^(\S.*)\n: +", r"- **\1** ", body, flags=re.MULTILINE)


def _included(match: re.Match[str], context: Context) -> str:
    """Return the part of a source file that ``literalinclude`` shows, as a block of code.

    Its path is relative to the page; the option ``pyobject`` names a function, class or method.
    """
    file = context.book.root / context.page(match["title"].strip())
    source = file.read_text(encoding="utf-8")
    option = re.search(r"^:pyobject:[ \t]*([\w.]+)", match["body"], re.MULTILINE)
    if option is not None:
        source = _definition(source, option[1].split("."))
    return f"```python\n{textwrap.dedent(source).rstrip()}\n```"


def _definition(source: str, names: Sequence[str]) -> str:
    """Return the lines of a function, class or method, without its decorators."""
    nodes: Sequence[ast.stmt] = ast.parse(source).body
    for name in names:
        [node] = [node for node in nodes if getattr(node, "name", None) == name]
        nodes = getattr(node, "body", [])
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)


def _formula(match: re.Match[str], book: Book) -> str:
    """Return a displayed formula, with its number."""
    body, label = match[1].strip(), match[2]
    if re.search(r"\\\\|&", body) and not body.startswith(r"\begin{"):
        body = f"\\begin{{split}}\n{body}\n\\end{{split}}"
    tag = f"\n\\tag{{{book.equations[label]}}}" if label else ""
    return f"$$\n{body}{tag}\n$$"


def _role(kind: str, content: str, context: Context) -> str:
    """Return a role as plain Markdown."""
    content, book = " ".join(content.split()), context.book
    if kind == "number":
        return context.numbers.get(content, content)
    named = re.fullmatch(r"(.+?) <(.+)>", content)
    text, target = (named[1], named[2]) if named else ("", content)
    if kind in {"ref", "doc"}:
        return text or f"*{book.titles[target if kind == 'ref' else context.page(target)]}*"
    if kind == "term":
        return text or target
    if kind == "download":
        return f"[{text or target}]({target})"
    if kind == "eq":
        return f"({book.equations[target]})"
    if kind.startswith("footcite"):
        keys = [key.strip() for key in target.split(",")]
        context.cited += keys
        return ", ".join(_short(book.entries[key], kind.endswith(":t")) for key in keys)
    raise NotPortable(f"tools/chapters.py has no form for the role {kind!r} in a notebook")


def _short(entry: Entry, textual: bool) -> str:
    """Return a citation, such as (Robbins and Monro, 1951)."""
    people = [_last(person) for person in entry.persons.get("author", [])]
    names = f"{people[0]} et al." if len(people) > 2 else " and ".join(people)
    year = entry.fields.get("year", "")
    if textual:
        return f"{names} ({year})" if year else names
    return f"({names}, {year})" if year else f"({names})"


def _last(person: Any) -> str:
    return _plain(" ".join([*person.prelast_names, *person.last_names]))


def _plain(text: str) -> str:
    """Return a field of the bibliography without TeX."""
    return str(Text.from_latex(text.replace("--", "–")))


def _reference(entry: Entry) -> str:
    """Return an entry of the bibliography as a line."""
    fields = entry.fields
    names = [
        _plain(" ".join([*person.first_names, *person.middle_names])) + " " + _last(person)
        for person in entry.persons.get("author", [])
    ]
    published = next(
        (
            fields[key]
            for key in ("journal", "booktitle", "howpublished", "publisher")
            if key in fields
        ),
        "",
    )
    parts = [
        ", ".join(name.strip() for name in names),
        f"*{_plain(fields['title'])}*",
        _plain(published),
    ]
    address = f"https://doi.org/{fields['doi']}" if "doi" in fields else fields.get("url", "")
    parts += [fields.get("year", ""), f"<{address}>" if address else ""]
    return ". ".join(part for part in parts if part)


# --- Files ----------------------------------------------------------------------------------------


def texts(pages: Sequence[Page], root: Path) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page's notebook."""
    book, store = Book(root), Store(root)
    for page in pages:
        stored = store.load(page)
        result = notebook(page, book, stored.numbers if stored else {})
        yield name(page), f"{nbformat.writes(result, version=4).rstrip()}\n"  # type: ignore[no-untyped-call]


def write(pages: Sequence[Page], folder: Path, root: Path) -> list[Path]:
    """Write the notebook of each page; return the files."""
    paths = []
    for file, text in texts(pages, root):
        write_if_changed(folder / file, text.encode())
        paths.append(folder / file)
    return paths


def write_scripts(site: Path) -> None:
    """Write each notebook of the site as a script too.

    A page that is opened from the disk may load a script beside it, and nothing else.
    """
    for path in site.rglob("*.ipynb"):
        arguments = json.dumps([path.name, path.read_text(encoding="utf-8")])[1:-1]
        script = path.with_name(f"{path.name}.js")
        script.write_text(f"saveNotebook({arguments});\n", encoding="utf-8")


def stale(pages: Sequence[Page], root: Path) -> list[str]:
    """Return the notebooks in the repository that are not what the pages say."""
    files = ((root / FOLDER / file, text) for file, text in texts(pages, root))
    return [
        f"{FOLDER}/{file.name}"
        for file, text in files
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    ]


def command(arguments: argparse.Namespace) -> int:
    """Write the notebooks."""
    paths = write(find(ROOT), arguments.out, ROOT)
    console.print(f"{len(paths)} notebooks are in {arguments.out}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.chapters", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / FOLDER, help="the folder (default: notebooks)"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
