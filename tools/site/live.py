"""What a page needs to run in the browser: its cells, its knobs, and the files that it reads.

Cells that need PyTorch are left out, and those that use their names; a page of which half the cells
are left is live. The site has these cells in ``_static/python/pages``, and beside them in ``files``
the recorded results that pages read.
"""

import ast
import json
import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gradebox.files import write_files
from tools import vary
from tools.site.pages import Execution, Page

MISSING = {"torch", "sklearn", "PIL", "tqdm"}
"""Packages that the Python of the site lacks."""
DIGITS = "digits.csv.gz"
NOTES = {
    "timing": "Times are those of your machine.",
    "rounding": "Where rounding decides, a run may differ from the printed one.",
}
"""What a page says that has a cell with one of these tags."""


def named(source: str, at_import: bool = False) -> list[str]:
    """Return the modules, and what may be modules, that the statements of a source import.

    With ``at_import``, only those that are imported as soon as the source itself is.
    """
    tree, names = ast.parse(source), list[str]()
    for node in tree.body if at_import else ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return list(dict.fromkeys(names))


@cache
def _lacks(name: str, root: Path) -> bool:
    """Tell whether to import a module is to import a package that the site's Python lacks."""
    waiting, known = [name], set[Path]()
    while waiting:
        package, *_ = parts = waiting.pop().split(".")
        if package in MISSING:
            return True
        bases = [root.joinpath("src", *parts[: end + 1]) for end in range(len(parts))]
        files = {f for base in bases for f in (base.with_suffix(".py"), base / "__init__.py")}
        for file in files - known if package == "optdl" else ():
            if file.is_file():
                waiting += named(file.read_text("utf-8"), at_import=True)
        known |= files
    return False


def content(page: Page, executions: Iterable[Execution]) -> dict[str, Any]:
    """Return what the script ``live.js`` reads of a page, of whose runs these are known.

    It is nothing where more than half the cells cannot run in the browser.
    """
    cells: list[dict[str, Any]] = []
    lost: set[str] = set()
    for cell in page.cells:
        used, bound = vary.names(cell.source)
        out = any(_lacks(name, page.root) for name in named(cell.source)) or bool(used & lost)
        lost = lost | bound if out else lost - bound
        about = {"source": cell.source, "numbers": cell.numbers, "verdict": vary.TAG in cell.tags}
        cells.append({"id": f"code-{cell.place}", **about, "out": out})
    if sum(cell["out"] for cell in cells) > len(cells) / 2:
        return {}
    knobs = [
        {"cell": number, "name": knob[1], "values": sorted([knob[2], *values], key=_order)}
        for number, knob, values in vary.knobs(page)
        if values
    ]
    read = sorted({name for execution in executions for name in execution.data})
    files = [name for name in read if not name.startswith("src/") and (page.root / name).is_file()]
    places = {name: f"/page/{name}" for name in files}
    if "src/optdl/data.py" in read:
        places[DIGITS] = f"/course/sklearn/datasets/data/{DIGITS}"
    tags = {tag for cell in page.cells for tag in cell.tags}
    notes = [note for tag, note in NOTES.items() if tag in tags]
    return {"cells": cells, "knobs": knobs, "files": places, "notes": notes}


def _order(value: str) -> tuple[bool, Any]:
    number = ast.literal_eval(value)
    return (False, number) if isinstance(number, int | float) else (True, value)


def write(pages: Mapping[str, Mapping[str, Any]], root: Path, site: Path) -> None:
    """Write the live pages, by their names, into a site, with the files that they read."""
    import sklearn.datasets

    target = site / "_static" / "python"
    for folder in ("pages", "files"):
        shutil.rmtree(target / folder, ignore_errors=True)
    read = {f"files/{name}": root / name for page in pages.values() for name in page["files"]}
    if f"files/{DIGITS}" in read:
        read[f"files/{DIGITS}"] = Path(sklearn.datasets.__file__).parent / "data" / DIGITS
    texts = {f"pages/{k}.json": json.dumps(v, ensure_ascii=False) for k, v in pages.items()}
    write_files(read | {name: text.encode() for name, text in texts.items()}, target)
