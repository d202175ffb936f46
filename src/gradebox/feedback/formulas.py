r"""Typeset formulas as MathML, which browsers show without loading anything.

nbgrader's pages load MathJax from another host; without a network their formulas are raw. A filter
replaces the one of nbconvert, for feedback pages and for the formgrader::

    c.HTMLExporter.filters = {"markdown2html": "gradebox.markdown2html"}

A formula of a student is typeset too, so it may be anything. What the converter cannot read, or
what would end it, is shown as it was written.
"""

import atexit
import html
import json
import re
import subprocess
import sys
import threading
from functools import lru_cache
from typing import Any

from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

LONGEST = 5000
"""So many characters a formula may have."""

PATIENCE = 60.0
"""Seconds after which an answer of the converter is not waited for where nothing else ends it."""

_TAGS = (
    "math|mi|mo|mn|mtext|mspace|mrow|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|munderover|"
    "mmultiscripts|mprescripts|mtable|mtr|mtd|mstyle|mpadded|mphantom|menclose|code|b|i"
)
_LENGTH = r"-?(?:\d{1,2}(?:\.\d{1,9})?|\.\d{1,9})(?:em|ex|px|pt|%)?"
_STYLES = (
    r"(?:(?:text-align|justify-items|color|border-\w+|padding-\w+|math-depth):"
    r" ?[#\w.]{1,20}(?: [#\w.]{1,20}){0,2};)*"
)
_ATTRIBUTES = (
    rf'style="{_STYLES}"|(?:width|height|depth|voffset|lspace|rspace|minsize|maxsize|linethickness)'
    rf'="{_LENGTH}"|(?:stretchy|accent|accentunder|display|displaystyle|form|scriptlevel|fence|'
    r"mathvariant|symmetric|largeop|movablelimits|separator|columnalign|intent|arg)"
    r'="[\w:-]{0,30}"'
)
_TAG = re.compile(rf"</?(?:{_TAGS})(?: (?:{_ATTRIBUTES}))*/?>")


def mathml(formula: str, block: bool = False) -> str:
    r"""Return a formula of TeX as HTML.

    Parameters
    ----------
    formula : str
        The formula, without dollars.
    block : bool
        Whether it has a line of its own.

    >>> mathml(r"x < \pi")
    '<math><mi>x</mi><mo>&lt;</mo><mi>π</mi></math>'
    >>> mathml(r"\href{javascript:run()}{x}")
    '<code>$\\href{javascript:run()}{x}$</code>'
    """
    typeset = _CONVERTER.convert(formula, block) if len(formula) <= LONGEST else ""
    if typeset and "<" not in _TAG.sub("", typeset):
        return typeset
    dollars = "$$" if block else "$"
    return f"<code>{html.escape(f'{dollars}{formula}{dollars}', quote=False)}</code>"


class _Converter:
    """The process that converts; it is started when first asked for, and again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        # the same formulas come with each student
        self.convert = lru_cache(maxsize=4096)(self._convert)

    def _convert(self, formula: str, block: bool) -> str:
        """Return a formula as MathML, or nothing."""
        with self._lock:
            process = self._process = self._process or self._start()
            end = threading.Timer(PATIENCE, process.kill)
            end.start()
            try:
                assert process.stdin
                assert process.stdout
                print(json.dumps([formula, block]), file=process.stdin, flush=True)
                return str(json.loads(process.stdout.readline()))
            except (OSError, ValueError):  # it has died of this formula
                self._close()
                return ""
            finally:
                end.cancel()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "gradebox.feedback.typesetter"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        process, self._process = self._process, None
        if process:
            process.kill()
            process.communicate()


_CONVERTER = _Converter()
atexit.register(_CONVERTER.close)


def latex_output(text: str) -> str:
    r"""Return what a cell showed as ``text/latex``: formulas in dollars or in an environment.

    >>> latex_output("$x$")
    '<math display="block"><mi>x</mi></math>'
    """
    text = text.strip()
    for dollars in ("$$", "$"):
        if len(text) > 2 * len(dollars) and text.startswith(dollars) and text.endswith(dollars):
            inner = text[len(dollars) : -len(dollars)]
            return mathml(inner, block=True) if "$" not in inner else rendered(text)
    return mathml(text, block=True) if text.startswith("\\begin") else rendered(text)


class _Renderer(IPythonRenderer):
    """nbconvert's renderer of Markdown, with formulas typeset."""

    def block_math(self, body: str) -> str:
        """Typeset a formula of its own line."""
        return mathml(body, block=True)

    def inline_math(self, body: str) -> str:
        """Typeset a formula in a text."""
        return mathml(body)

    def latex_environment(self, name: str, body: str) -> str:
        """Typeset an environment."""
        return mathml(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)


def rendered(text: str, attachments: Any = None) -> str:
    """Return Markdown as HTML with its formulas typeset."""
    renderer = _Renderer(escape=False, attachments=attachments or {}, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(text))


@pass_context
def markdown2html(context: Any, source: str) -> str:
    """Return Markdown as HTML; a filter of nbconvert's templates."""
    return rendered(source, (context.get("cell") or {}).get("attachments"))
