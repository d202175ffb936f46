"""What would change a page's conclusions? ``python -m tools.vary conditioning/curvature``.

A *knob* is an assignment in a code cell with other values to try, as a comment: words, numbers, or
a range of whole numbers. A *verdict* is a cell with the tag ``verdict``, which asserts what the
text says beside it, each statement with its sentence::

    seed = 0           # vary: 1..4
    loss = "squared"   # vary: cross-entropy

    assert lost > 0.9, "nearly all of the predicted decrease is lost"

From the knob on, the cells are run once for each value, the other knobs as printed, without
figures, and kept as the outputs of the page are. The build stops where a verdict does not hold at a
value that is listed.
"""

import ast
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

from rich.table import Table

from gradebox.workers.syntax import python_of
from tools.layout import ROOT
from tools.progress import Stages
from tools.site.inpage.library.page_text import stated, statements
from tools.site.pages import Cell, Execution, Page, Store, find
from tools.terminal import ToolError, argument, command, console

KNOB = re.compile(r"^(\w+) = ([^#\n]*?) *# vary: (.+)$", re.MULTILINE)
"""A knob: its name, the value that is printed, the others."""
TAG = "verdict"


def values(printed: str, listed: str) -> list[str]:
    """Return what a knob lists, as Python code, without what is printed.

    >>> values("0", "0..3 10"), values("'squared'", "squared cross-entropy")
    (['1', '2', '3', '10'], ["'cross-entropy'"])
    """
    words: list[str] = []
    for word in listed.split():
        first, dots, last = word.partition("..")
        words += map(str, range(int(first), int(last) + 1)) if dots else [word]
    if isinstance(value := ast.literal_eval(printed), str):
        words = [repr(word) for word in words]
    others = {word: ast.literal_eval(word) for word in words}
    if any(isinstance(other, tuple) != isinstance(value, tuple) for other in others.values()):
        raise ValueError("a comma makes a tuple")
    return [word for word, other in others.items() if other != value]


def knobs(page: Page) -> Iterator[tuple[int, re.Match[str], list[str]]]:
    """Yield the knobs of a page, each with the number of its cell and its other values."""
    for number, cell in enumerate(page.cells):
        for knob in KNOB.finditer(cell.source):
            try:
                yield number, knob, values(knob[2], knob[3])
            except (ValueError, SyntaxError):
                remedy = "write a number, a text or a tuple, and others such: 0.1  # vary: 0.02 0.5"
                raise ToolError(f"{page.place(number)}, {knob[0]}: no knob", remedy) from None


@cache
def names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    r"""Return the names that a cell uses, and those that it binds.

    >>> used, bound = names("import numpy as np, os.path\ndef f(): x = 1; return x + y")
    >>> sorted(used), sorted(bound)
    (['y'], ['f', 'np', 'os'])
    """
    scopes = [symtable.symtable(python_of(source), "cell", "exec")]
    for scope in scopes:  # which grows
        scopes += scope.get_children()
    top = scopes[0].get_symbols()
    used = [name for name in top if name.is_referenced()]
    used += [name for scope in scopes[1:] for name in scope.get_symbols() if name.is_global()]
    bound = [name for name in top if name.is_assigned() or name.is_imported()]
    return frozenset(n.get_name() for n in used), frozenset(n.get_name() for n in bound)


def _varied(page: Page, setting: str, changed: int, source: str) -> Page | None:
    """Return the page as far as its last verdict, with one cell changed; None if none needs it.

    What comes before the changed cell is that of the page, which runs it for all. After it, cells
    with a figure are left out unless a later one needs what they bind.
    """
    last = max(number for number, cell in enumerate(page.cells) if TAG in cell.tags)
    kept: list[Cell] = []
    needed: set[str] = set()
    for number in range(last, -1, -1):
        cell = page.cells[number]
        text = source if number == changed else cell.source
        if TAG in cell.tags and number >= changed:
            text = ast.unparse(stated(text))
        used, bound = names(text)
        if number < changed or "mystnb" not in cell.metadata or bound & needed:
            needed |= used
            kept.insert(0, Cell(text, line=cell.line))
        elif number == changed:
            return None  # the knob of a figure is for the reader alone
    return replace(page, cells=kept, setting=setting) if changed <= last else None


def variants(page: Page) -> list[Page]:
    """Return the page once for each value that its knobs list; none if it has no verdict."""
    if not any(TAG in cell.tags for cell in page.cells):
        return []
    try:
        trees = [ast.parse(python_of(cell.source)) for cell in page.cells]
    except SyntaxError:
        return []  # the execution of the page names the cell
    for number, tree in enumerate(trees):
        said = [node.msg for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        if TAG in page.cells[number].tags and (not said or None in said):
            problem = f"{page.place(number)}: a verdict asserts statements, each with its sentence"
            raise ToolError(problem, 'write assert VALUE > 0, "the words of the page"')
    result = []
    for number, knob, others in knobs(page):
        for value in others:
            source = page.cells[number].source
            source = source[: knob.start(2)] + value + source[knob.end(2) :]
            if varied := _varied(page, f"{knob[1]} = {value}", number, source):
                result.append(varied)
    if not result:
        problem = f"{page.doc}.md has a verdict and no knob: nothing could have overturned it"
        raise ToolError(problem, "add `# vary:` with other values behind an assignment")
    return result


def verdicts(execution: Execution) -> dict[str, bool]:
    """Return whether each sentence of a page that was varied holds."""
    texts = ["".join(output.get("text", "") for output in cell) for cell in execution.outputs]
    return statements("\n".join(texts))


def overturned(executions: Iterable[tuple[Page, Execution]]) -> list[str]:
    """Return where a sentence does not hold, with its place, for pages that were varied."""
    found = []
    for page, execution in executions:
        lines = page.path.read_text("utf-8").splitlines()
        for sentence in (text for text, holds in verdicts(execution).items() if not holds):
            line = next((n for n, line in enumerate(lines, 1) if sentence in line), 1)
            place = f"{page.path.relative_to(page.root).as_posix()}:{line}"
            found.append(f"{place}: with {page.setting}, it is not so: {sentence}")
    return found


@command(argument("page", help="its path in book, such as conditioning/curvature"))
def main(page: str) -> int:
    """Print which statements of a page hold for which values; exit with 1 if one does not."""
    from tools.site import execution

    path = ROOT / "book" / f"{page.removeprefix('book/').removesuffix('.md')}.md"
    found = next((other for other in find(ROOT) if other.path == path), None)
    if not found or not (pages := variants(found)):
        raise ToolError(f"{path} has no code cell with the tag {TAG}", "see the head of --help")
    store = Store(ROOT)
    with Stages() as stages:
        missing = [page for page in (found, *pages) if store.load(page) is None]
        execution.execute(missing, store, stages.add("Variations"))
    rows = {page.setting: verdicts(kept) for page in pages if (kept := store.load(page))}
    sentences = list(dict.fromkeys(sentence for row in rows.values() for sentence in row))
    table = Table("with", *map(str, range(1, len(sentences) + 1)))
    for setting, row in rows.items():
        table.add_row(setting, *("holds" if row.get(s, True) else "NOT SO" for s in sentences))
    console.print(table)
    for number, sentence in enumerate(sentences, 1):
        console.print(f"{number}. {sentence}")
    return int(not all(all(row.values()) for row in rows.values()))
