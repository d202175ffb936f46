r"""Remove from a graded notebook what would run or load something where it is looked at.

Feedback pages and formgrader show HTML as it is. So what is left of it here can be no more than
text, tables and pictures that are part of the notebook; the rest is shown as text. Nothing is
parsed, because browsers parse otherwise, and because the time of a parser (bleach's, in nbconvert's
``SanitizeHTML``) grows with the square of what a student nests. A ``<`` stays only where a tag of a
short list begins, whole and with attributes of a short list; any other one is escaped.
"""

import base64
import contextlib
import html
import re
from collections.abc import Callable, Collection
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_locked

MAX_CHARACTERS = 300_000  # so many may an output of HTML have; longer ones are shown as their text
_PLAIN = "b|strong|i|em|u|s|del|ins|sub|sup|small|mark|kbd|code|br|hr"
_BLOCKS = (
    "p|div|span|pre|blockquote|ul|ol|li|dl|dt|dd|h[1-6]|table|caption|colgroup|col|thead|tbody|"
    "tfoot|tr|th|td|a|img|figure|figcaption|details|summary"
)
_VOID = ("br", "hr", "col", "img")
_STYLE = (
    r"(?:\s*(?:text-align|vertical-align|color|background-color|font-weight|font-style|width|"
    r"min-width|max-width|white-space|border|padding)\s*:\s*[\w#.%, -]+;?)*\s*"
)
_DATA = r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*"
_ATTRIBUTE = (
    rf'style="{_STYLE}"|src="{_DATA}"|(?:alt|title)="[^"<>]*"|(?:halign|valign|align|scope)='
    r'"[a-z]{1,9}"|(?:border|colspan|rowspan|width|height|start)="\d{1,5}(?:px|%)?"|'
    r'class="(?:(?:dataframe|data|blank|index_name|(?:row|col)_heading|(?:level|row|col)\d+)\s*)*"|'
    r'href="(?:https?://[^"<>\s]*|#[\w.-]*)"'
)
# or else what could begin or end another tag
_TAG = re.compile(rf"<(/?)({_PLAIN}|{_BLOCKS})(?:\s+(?:{_ATTRIBUTE}))*\s*/?>|[<>]", re.ASCII)
_BARE = re.compile(rf"</?(?:{_PLAIN})\s*/?>", re.ASCII)
# what no page would show anyway: a table of pandas comes with a <style>
_UNSEEN = (("<style", "</style>"), ("<script", "</script>"), ("<!--", "-->"))
_BEGINS = re.compile(r"<(?=[A-Za-z/!?])")
_SCHEME = re.compile(r"(java|vb)script:", re.IGNORECASE)
# what is not part of a link's scheme, wherever it stands
_IGNORED = re.compile(r"[\\\x00-\x1f\x7f\u200b-\u200f\ufeff]")
# the beginning of a picture, and all of one that every dialect reads alike
_PICTURE = re.compile(
    rf"!\[(?:(?P<empty>\s*\])|[^][\\`<>$!&|\n]*\]\((?:attachment:(?P<name>[\w.-]+)|{_DATA})\))?",
    re.ASCII,
)
_FENCES = re.compile(r"~{3,}")
# a language that is an entity for a blank, as in ```&Tab;, makes nbconvert's Markdown give up
_LANGUAGE_WITH_ENTITY = re.compile(r"(?:`{3}|~{3})[^\n]*&")
_WORD = re.compile(r"[\w .+#()-]{0,80}")
_PICTURES = ("image/png", "image/jpeg", "image/gif")


def harmless_html(text: str) -> str:
    """Return HTML of which only text, tables and pictures are left.

    A tag that does not close, or closes what was not opened, could move what comes after it: then
    all tags are shown as text.
    """
    for begin, end in _UNSEEN:  # in time that grows no faster than the text
        *pieces, rest = text.split(end)
        halves = [piece.partition(begin) for piece in pieces]
        text = "".join(shown + ("" if opening else end) for shown, opening, _ in halves) + rest
    opened: list[str] = []  # and what closes nothing, which no tag takes away again

    def kept(match: re.Match[str]) -> str:
        name = match[2]
        if name and name not in _VOID:
            if match[1] and opened[-1:] == [name]:
                opened.pop()
            else:
                opened.append(match[1] + name)
        return match[0] if name else _escaped(match[0])

    cleaned = _TAG.sub(kept, text)
    return _escaped(text) if opened else cleaned


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def harmless_markdown(text: str, attached: Collection[str] = ()) -> str:
    """Return Markdown without HTML but simple tags, links to scripts and pictures from elsewhere.

    A space after ``<`` makes text of a tag in every dialect, in formulas and in code; one after the
    ``!`` of a picture makes it a link, unless it is ``attached`` to the cell.
    """

    def picture_or_link(match: re.Match[str]) -> str:
        is_whole = len(match[0]) > len("![") and not match["empty"]
        if is_whole and (match["name"] is None or match["name"] in attached):
            return match[0]
        return "! [picture]" if match["empty"] else f"! {match[0][1:]}"

    text = _BEGINS.sub(lambda match: "<" if _BARE.match(text, match.start()) else "< ", text)
    text = _PICTURE.sub(picture_or_link, text)
    if _runs(text):
        text = _SCHEME.sub(lambda match: f"{match[0][:-1]} :", text)
    if not _runs(text) and not _LANGUAGE_WITH_ENTITY.search(text):
        return text
    fence = "~" * (1 + max([3, *map(len, _FENCES.findall(text))]))
    return f"{fence}\n{text}\n{fence}"


def _runs(text: str) -> bool:
    """Return whether a link to a script may be in a text, in whatever disguise."""
    return bool(_SCHEME.search(_IGNORED.sub("", html.unescape(html.unescape(text)))))


_CLEANED: dict[str, Callable[[str], str]] = {"text/html": harmless_html}
_CLEANED |= dict.fromkeys(("text/markdown", "text/latex"), harmless_markdown)


def _harmless_output(output: Any) -> None:
    """Leave what is text, a table, a formula or a picture."""
    if output.output_type not in ("display_data", "execute_result"):
        return
    data, metadata = output.data, output.get("metadata", {})
    bundle = _pictures(data) | {kind: data[kind] for kind in ("text/plain",) if kind in data}
    for kind, clean in _CLEANED.items():
        text = _text(data.get(kind))
        if len(text) <= MAX_CHARACTERS and (cleaned := clean(text)):
            bundle[kind] = cleaned
    if "image/svg+xml" in data and not {*_PICTURES, "text/html"} & {*bundle}:
        # in a picture browsers run no script and load nothing
        coded = base64.b64encode(_text(data["image/svg+xml"]).encode("utf-8", "replace")).decode()
        bundle["text/html"] = f'<img alt="a drawing" src="data:image/svg+xml;base64,{coded}">'
    if not bundle:
        bundle["text/plain"] = f"[left out: {', '.join(sorted(data))[:200]}]"
    sizes = {kind: _sizes(metadata.get(kind)) for kind in _PICTURES if kind in bundle}
    output.data, output.metadata = type(data)(bundle), type(data)(sizes)


def _pictures(bundle: Any) -> dict[str, Any]:
    found = {}
    for kind in _PICTURES:
        with contextlib.suppress(ValueError):
            if base64.b64decode("".join(_text(bundle.get(kind)).split()), validate=True):
                found[kind] = bundle[kind]
    return found


def _text(content: Any) -> str:
    """Return what a notebook keeps as one text or as a list of lines."""
    return "".join(map(str, content)) if isinstance(content, list) else str(content or "")


def _sizes(metadata: Any) -> dict[str, int]:
    metadata = metadata if isinstance(metadata, dict) else {}
    return {name: metadata[name] for name in ("width", "height") if type(metadata.get(name)) is int}


class Harmless(NbGraderPreprocessor):  # type: ignore[misc]
    """nbgrader's step that takes out of a notebook what would run or load in a browser."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Change the notebook in place."""
        kernel = nb.metadata.get("kernelspec")
        words = kernel.values() if isinstance(kernel, dict) else [None]
        are_words = all(isinstance(word, str) and _WORD.fullmatch(word) for word in words)
        nb.metadata = type(nb.metadata)({"kernelspec": kernel} if are_words else {})
        for cell in nb.cells:
            own, flags = cell.metadata.get("nbgrader"), ("deletable", "editable")
            kept = {n: v for n in flags if type(v := cell.metadata.get(n)) is bool}
            cell.metadata = type(cell.metadata)(kept | ({"nbgrader": own} if own else {}))
            for output in cell.get("outputs", []):
                _harmless_output(output)
            if cell.cell_type == "code":
                continue
            bundles = {n: _pictures(bundle) for n, bundle in cell.pop("attachments", {}).items()}
            if attached := {name: pictures for name, pictures in bundles.items() if pictures}:
                cell.attachments = type(cell.metadata)(attached)
            if not is_locked(cell):
                cell.source = harmless_markdown(cell.source, attached)
        return nb, resources
