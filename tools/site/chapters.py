"""The chapters as notebooks that run in JupyterLab, without what only the site understands.

The site offers them for download, and Colab and Binder open them from the folder ``notebooks``.
"""

import json
import posixpath
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pybtex.backends.markdown import Backend as Markdown
from pybtex.backends.plaintext import Backend as PlainText
from pybtex.database import Entry, parse_file
from pybtex.style.formatting.plain import Style
from sphinx.pycode import ModuleAnalyzer

from tools import notebooks
from tools.fingerprints import write_if_changed
from tools.layout import configuration, contents, files_below
from tools.site.pages import Page, Store
from tools.terminal import ToolError

FOLDER = "notebooks"
"""Where the notebooks lie in the repository once Colab and Binder are switched on."""
FENCE = re.compile(
    r"^(?P<mark>`{3,}|~{3,}|:{3,})(?:\{(?P<name>[\w-]+)\})?[ \t]*(?P<title>[^\n]*)\n"
    r"(?P<options>(?::[\w-]+:[^\n]*\n)*)\s*?(?P<body>.*?)^(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
LABEL = re.compile(r"^\(([\w-]+)\)=[ \t]*\n", re.MULTILINE)
FORMULA = re.compile(r"^\$\$\n(.*?)^\$\$(?: \(([\w-]+)\))?[ \t]*$", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r"\{([a-z]+(?::[a-z]+)?)\}`([^`]+)`", re.DOTALL)
FORMS = {
    "stacking-table": "**{title}**\n\n{body}",
    "exercise": "*An exercise, `{title}`, which stands in the notebook `{topic}.ipynb`.*",
    "explore": "*A figure to explore, which the page of the site has.* {body}",
    "raw": "*The page of the site has an interactive figure here.*",
    "guess": "",
    "lesson": "*{minutes} minutes.*",
    "lessons": "*The page of the site lists the lessons here.*",
    "cards": "**To remember**\n\n{body}",
    "footbibliography": "{body}",
}
"""What stands in a notebook for a directive."""
FIRST = Path(__file__).with_name("chapters_first.md").read_text("utf-8").strip()
COLAB = Path(__file__).with_name("chapters_colab.txt").read_text("utf-8").strip()
"""The first cells of a notebook."""


class Book:
    """What pages refer to in one another: titles by labels and pages, and equations' numbers."""

    def __init__(self, root: Path) -> None:
        """Read all pages below the folder of the repository."""
        self.root, self.titles, self.equations = root, dict[str, str](), dict[str, str]()
        self.style = Style()  # it searches all installed packages when it is made
        toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
        numbered = (part["chapters"] for part in toc.get("parts", []) if part.get("numbered"))
        chapters = [files_below(chapter) for part in numbered for chapter in part]
        chapter_of = {name: n for n, names in enumerate(chapters, 1) for name in names}
        counts = Counter[int | str]()  # of a page without a number by itself
        for name in contents(root):
            path = root / f"{name}.md"
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            if title := re.search(r"^# (.+)$", text, re.MULTILINE):
                self.titles[name] = title[1]
            for labels, heading in re.findall(r"^((?:\([\w-]+\)=\n)+)#+ (.+)$", text, re.MULTILINE):
                self.titles |= dict.fromkeys(LABEL.findall(labels), heading)
            figures = re.findall(r"^ {4}name: ([\w-]+)$", text, re.MULTILINE)
            self.titles |= dict.fromkeys(figures, "the figure")
            chapter = chapter_of.get(name, "")
            for label in filter(None, (label for _, label in FORMULA.findall(text))):
                counts[chapter or name] += 1
                self.equations[label] = f"{chapter}.{counts[chapter or name]}".lstrip(".")
        self.entries = dict(parse_file(str(root / "book" / "references.bib")).entries.items())
        config = configuration(root)
        self.course = config["title"]
        # the address from which Colab and Binder open the notebooks, if there is one
        self.repository = str(config["sphinx"]["config"].get("launch_repository", ""))


@dataclass
class Context:
    """What the text of one page refers to: the book, its own name, and the numbers it prints."""

    book: Book
    doc: str
    numbers: Mapping[str, str] = field(default_factory=dict)
    cited: list[str] = field(default_factory=list)

    def page(self, target: str) -> str:
        """Return the page, or the file, that a path in this page means."""
        if target.startswith("/"):
            return target[1:]
        return posixpath.normpath(posixpath.join(posixpath.dirname(self.doc), target))

    def markdown(self, text: str) -> str:
        """Return Markdown that JupyterLab shows as the site shows this text; note what it cites."""
        parts, end = [], 0
        for fence in FENCE.finditer(text):
            parts += [self._plain(text[end : fence.start()]), self._fenced(fence)]
            end = fence.end()
        return "".join([*parts, self._plain(text[end:])]).strip()

    def _plain(self, text: str) -> str:
        """Return text that has no block of code and no directive."""
        try:
            return ROLE.sub(self._role, FORMULA.sub(self._formula, LABEL.sub("", text)))
        except KeyError as error:
            problem = f"{self.doc}.md refers to {error}, which is in no page of _toc.yml"
            raise ToolError(problem, "correct the reference, or take it out") from None

    def _fenced(self, match: re.Match[str]) -> str:
        """Return a block of code as it is, and what stands for a directive."""
        kind, title, body = match["name"], match["title"].strip(), match["body"].strip()
        if kind is None:
            return match[0]
        options = dict(re.findall(r"^:([\w-]+):[ \t]*(.*)", match["options"], re.MULTILINE))
        if kind == "literalinclude" and "pyobject" in options:
            code = ModuleAnalyzer.for_file(str(self.book.root / self.page(title)), "included")
            _, first, last = code.find_tags()[options["pyobject"]]
            lines = textwrap.dedent("\n".join(code.code.splitlines()[first - 1 : last]))
            return f"```python\n{lines.rstrip()}\n```"
        if kind in {"note", "warning", "tip", "admonition"}:
            name = title if kind == "admonition" else kind.title()
            name = name if name.endswith((".", "?", "!", ":")) else f"{name}."
            text = f"**{self.markdown(name)}**\n\n{self.markdown(body)}"
            return textwrap.indent(text, "> ", lambda line: True).replace("> \n", ">\n")
        if kind not in FORMS:
            raise self._not_portable("directive", kind)
        if kind == "cards":
            body = re.sub(r"^(\S.*)\n: +", r"- **\1** ", body, flags=re.MULTILINE)
        elif kind == "footbibliography":
            entries = [self.book.entries[key] for key in dict.fromkeys(self.cited)]
            found = self.book.style.format_entries(entries)
            body = "\n".join(f"- {entry.text.render(Markdown())}" for entry in found)
        return FORMS[kind].format(
            title=self.markdown(title),
            body="" if kind == "raw" else self.markdown(body),
            topic=title.partition("-")[0],
            minutes=options.get("minutes"),
        )

    def _formula(self, match: re.Match[str]) -> str:
        body, label = match[1].strip(), match[2]
        if re.search(r"\\\\|&", body) and not body.startswith(r"\begin{"):
            body = f"\\begin{{split}}\n{body}\n\\end{{split}}"
        tag = f"\n\\tag{{{self.book.equations[label]}}}" if label else ""
        return f"$$\n{body}{tag}\n$$"

    def _role(self, match: re.Match[str]) -> str:
        kind, content, book = match[1], " ".join(match[2].split()), self.book
        named = re.fullmatch(r"(.+?) <(.+)>", content)
        text, target = (named[1], named[2]) if named else ("", content)
        match kind:
            case "number":
                return self.numbers.get(content, content)
            case "ref" | "doc":
                return text or f"*{book.titles[target if kind == 'ref' else self.page(target)]}*"
            case "term":
                return text or target
            case "download":
                return f"[{text or target}]({target})"
            case "eq":
                return f"({book.equations[target]})"
            case "footcite" | "footcite:p" | "footcite:t":
                keys = [key.strip() for key in target.split(",")]
                self.cited += keys
                return ", ".join(_citation(book.entries[key], kind.endswith(":t")) for key in keys)
        raise self._not_portable("role", kind)

    def _not_portable(self, what: str, name: str) -> ToolError:
        problem = f"{self.doc}.md has the {what} {name!r}, for which notebooks have no form"
        return ToolError(problem, "write it otherwise, or add a form to tools/site/chapters.py")


def _citation(entry: Entry, textual: bool) -> str:
    """Return a citation: (Robbins and Monro, 1951), or textual, Robbins and Monro (1951)."""
    authors = entry.persons.get("author", [])
    parts = ((*each.rich_prelast_names, *each.rich_last_names) for each in authors)
    people = [" ".join(part.render(PlainText()) for part in name) for name in parts]
    names = f"{people[0]} et al." if len(people) > 2 else " and ".join(people)
    year = entry.fields.get("year")  # slides may have none
    if not year:
        return names if textual else f"({names})"
    return f"{names} ({year})" if textual else f"({names}, {year})"


def notebook(page: Page, book: Book, numbers: Mapping[str, str] | None = None) -> NotebookNode:
    """Return a page as a notebook that runs; ``numbers`` are those that its text prints."""
    context = Context(book, page.doc, numbers or {})
    title = book.titles.get(page.doc, page.name)
    first = FIRST.format(title=title, course=book.course, folder=FOLDER)
    cells = [new_markdown_cell(first)]  # type: ignore[no-untyped-call]
    if book.repository:
        source = COLAB.format(repository=book.repository, folder=FOLDER)
        cells.append(new_code_cell(source))  # type: ignore[no-untyped-call]
    for cell in page.notebook.cells:
        text = cell.source
        if cell.cell_type == "code":
            tags = sorted({*cell.metadata.get("tags", [])} - {"setup", "hide-input"})
            metadata = {"tags": tags} if tags else {}
            cells.append(new_code_cell(text, metadata=metadata))  # type: ignore[no-untyped-call]
            caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
            text = caption and f"*Figure.* {caption}"
        if text := context.markdown(text):
            cells.append(new_markdown_cell(text))  # type: ignore[no-untyped-call]
    for number, cell in enumerate(cells):
        cell.id = f"{page.name.replace('_', '-')}-{number}"
    return notebooks.node(new_notebook(cells=cells, metadata=notebooks.METADATA))  # type: ignore[no-untyped-call]


def write(pages: Sequence[Page], folder: Path, root: Path) -> None:
    """Write the notebook of each page."""
    book, store, paths = Book(root), Store(root), []
    for page in pages:
        stored = store.load(page)
        result = notebook(page, book, stored.numbers if stored else {})
        # the assignment has the topic's name alone
        paths.append(folder / f"chapter-{page.name}.ipynb")
        write_if_changed(paths[-1], notebooks.to_bytes(result))
    for left in {*folder.glob("chapter-*.ipynb")}.difference(paths):
        left.unlink()  # its page is no longer in the contents


def write_scripts(site: Path) -> None:
    """Write each notebook as a script too: a page that is opened from the disk loads only such."""
    for path in site.rglob("*.ipynb"):
        arguments = json.dumps([path.name, path.read_text(encoding="utf-8")])[1:-1]
        script = path.with_name(f"{path.name}.js")
        script.write_text(f"saveNotebook({arguments});\n", encoding="utf-8")
