r"""Show Markdown so that the page loads nothing: formulas are MathML, other pictures are links.

A formula of a student is typeset too, so it may be anything. What the converter cannot read, or
what would end it, is shown as it was written.
"""

import html
from typing import Any

from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from gradebox.feedback.mathml import mathml


class _Renderer(IPythonRenderer):
    """nbconvert's renderer of Markdown, which collects formulas and shows them once typeset."""

    def __init__(self, typeset: dict[tuple[str, bool], str], attachments: Any) -> None:
        super().__init__(escape=False, attachments=attachments, exclude_anchor_links=True)
        self.typeset = typeset

    def latex_environment(self, name: str, body: str) -> str:
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")

    def inline_math(self, body: str) -> str:
        return self.block_math(body, False)

    def block_math(self, body: str, block: bool = True) -> str:
        dollars = "$$" if block else "$"
        written = f"<code>{html.escape(f'{dollars}{body}{dollars}', quote=False)}</code>"
        return self.typeset.setdefault((body, block), "") or written

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # a picture that the notebook holds, and where any other one is
        held = url.removeprefix("attachment:") in self.attachments or url.startswith("data:image/")
        return str(super().image(text, url, title) if held else self.link(text or url, url, title))


def rendered(text: str, attachments: Any = None) -> str:
    r"""Return Markdown as HTML with its formulas typeset.

    >>> rendered("$x$ ![a point](https://example.org/x.png)")
    '<p><math><mi>x</mi></math> <a href="https://example.org/x.png">a point</a></p>\n'
    """
    typeset: dict[tuple[str, bool], str] = {}
    markdown = MarkdownWithMath(renderer=_Renderer(typeset, attachments or {}))
    page = markdown.render(text)
    if not typeset:
        return page
    typeset |= dict(zip(typeset, mathml(tuple(typeset)), strict=False))
    return markdown.render(text)


@pass_context
def markdown2html(context: Any, source: str) -> str:
    """Return Markdown as HTML; a filter of nbconvert's templates."""
    return rendered(source, (context.get("cell") or {}).get("attachments"))
