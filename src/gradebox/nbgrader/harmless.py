r"""Remove from a graded notebook what would run in the browser of whoever looks at it.

Feedback pages and formgrader show HTML as it is. So what is left of it here, in outputs, Markdown
and metadata, can be no more than text, tables and pictures; the rest is shown as the text it was.
Nothing is parsed, because browsers parse otherwise: a ``<`` stays only where a tag of a short list
begins, whole and with attributes of a short list; any other one is escaped. MathJax, which nbgrader
loads with its ``Safe`` extension, still sees formulas, and code stays code.

It is the last of nbgrader's steps, see :mod:`gradebox.configuration`.
"""

import base64
import binascii
import html
import re
from collections.abc import Callable, Collection
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor

LONGEST = 300_000
"""So many characters of HTML an output may have; longer ones are shown as their text."""

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
_DATA = r"data:image/(?:png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=\s]*"
_ATTRIBUTE = "|".join(
    (
        rf'style="{_STYLE}"',
        r'(?:border|colspan|rowspan|width|height|start)="\d{1,5}(?:px|%)?"',
        r'(?:halign|valign|align|scope)="[a-z]{1,9}"',
        r'class="(?:(?:dataframe|data|blank|index_name|(?:row|col)_heading|(?:level|row|col)\d+)\s*)*"',
        r'(?:alt|title)="[^"<>]*"',
        r'href="(?:https?://[^"<>\s]*|#[\w.-]*)"',
        rf'src="{_DATA}"',
    )
)
_TAG = re.compile(rf"<(/?)({_PLAIN}|{_BLOCKS})((?:\s+(?:{_ATTRIBUTE}))*)\s*/?>", re.ASCII)
_BARE = re.compile(rf"</?(?:{_PLAIN})\s*/?>", re.ASCII)
# what no page would show anyway: a table of pandas comes with a <style>
_UNSEEN = re.compile(r"<(?:style|script|!--)", re.IGNORECASE)
_UNSEEN_ENDS = {
    "t": re.compile("</style>", re.IGNORECASE),
    "c": re.compile("</script>", re.IGNORECASE),
    "-": re.compile("-->"),
}
_BEGINS = re.compile(r"<(?=[A-Za-z/!?])")
_SCHEME = re.compile(r"(java|vb)script:", re.IGNORECASE)
# what is not part of a link's scheme, wherever it stands
_IGNORED = re.compile(r"[\\\x00-\x1f\x7f\u200b-\u200f\ufeff]")
_WORD = re.compile(r"[\w .+#()-]{0,80}")
_ATTACHED = re.compile(r"attachment:([^\s)\"'<>]*)")
_FENCES = re.compile(r"~{3,}")
# a language that is an entity for a blank, as in ```&Tab;, makes nbconvert's Markdown give up
_LANGUAGE_WITH_ENTITY = re.compile(r"(?:`{3}|~{3})[^\n]*&")

_PICTURES = ("image/png", "image/jpeg", "image/gif")


def harmless_html(text: str) -> str:
    """Return HTML of which only text, tables and pictures are left.

    A tag that does not close, or closes what was not opened, could move what comes after it: then
    all tags are shown as text.
    """
    text = _visible(text)
    opened: list[str] = []
    balanced = True
    pieces, end = [], 0
    for tag in _TAG.finditer(text):
        pieces += [_escaped(text[end : tag.start()]), tag[0]]
        end = tag.end()
        closes, name = bool(tag[1]), tag[2]
        if name in _VOID:
            continue
        if not closes:
            opened.append(name)
        elif not opened or opened.pop() != name:
            balanced = False
    pieces.append(_escaped(text[end:]))
    return "".join(pieces) if balanced and not opened else _escaped(text)


def _visible(text: str) -> str:
    """Leave out styles, scripts and comments, in time that grows no faster than the text."""
    pieces, end = [], 0
    without_end: set[str] = set()
    for opening in _UNSEEN.finditer(text):
        kind = opening[0][2].lower()
        if opening.start() < end or kind in without_end:
            continue
        closing = _UNSEEN_ENDS[kind].search(text, opening.end())
        if closing is None:
            without_end.add(kind)
        else:
            pieces.append(text[end : opening.start()])
            end = closing.end()
    return "".join([*pieces, text[end:]])


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def harmless_markdown(text: str) -> str:
    """Return Markdown without HTML but simple tags, and without links to scripts.

    A space after ``<`` makes text of a tag in every dialect, in formulas and in code.
    """
    text = _BEGINS.sub(lambda match: "<" if _BARE.match(text, match.start()) else "< ", text)
    if _runs(text):
        text = _SCHEME.sub(lambda match: f"{match[0][:-1]} :", text)
    return _as_code(text) if _runs(text) or _LANGUAGE_WITH_ENTITY.search(text) else text


def _runs(text: str) -> bool:
    """Return whether a link to a script may be in a text, in whatever disguise."""
    return bool(_SCHEME.search(_IGNORED.sub("", html.unescape(html.unescape(text)))))


def _as_code(text: str) -> str:
    """Return a text as a block of code, which it may be already."""
    longest = max([3, *map(len, _FENCES.findall(text))])
    fence = "~" * longest
    inside = text.removeprefix(f"{fence}\n").removesuffix(f"\n{fence}")
    if len(inside) == len(text) - 2 * longest - 2 and fence not in inside:
        return text
    return f"{fence}~\n{text}\n{fence}~"


def _harmless_output(output: Any) -> None:
    """Leave of an output what is text, a table, a formula or a picture."""
    if output.output_type not in ("display_data", "execute_result"):
        return
    data, metadata = output.data, output.get("metadata", {})
    bundle = {kind: text for kind, text in data.items() if _is_kept(kind, text)}
    for kind, clean in _CLEANED.items():
        text = _text(data.get(kind))
        if len(text) <= LONGEST and (cleaned := clean(text)):
            bundle[kind] = cleaned
    if "image/svg+xml" in data and not {*_PICTURES, "text/html"} & {*bundle}:
        bundle["text/html"] = _picture(_text(data["image/svg+xml"]))
    if not bundle:
        bundle["text/plain"] = f"[left out: {', '.join(sorted(data))[:200]}]"
    output.data = type(data)(bundle)
    output.metadata = type(data)(
        {kind: _sizes(metadata[kind]) for kind in _PICTURES if kind in bundle and kind in metadata}
    )


def _is_kept(kind: str, content: Any) -> bool:
    return kind == "text/plain" or _is_picture(kind, content)


def _is_picture(kind: str, content: Any) -> bool:
    try:
        data = "".join(_text(content).split())
        return kind in _PICTURES and bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False


def _text(content: Any) -> str:
    """Return what a notebook keeps as one text or as a list of lines."""
    return "".join(map(str, content)) if isinstance(content, list) else str(content or "")


def _picture(svg: str) -> str:
    """Return a drawing as a picture, in which browsers run no script and load nothing."""
    coded = base64.b64encode(svg.encode("utf-8", "replace")).decode()
    return f'<img alt="a drawing" src="data:image/svg+xml;base64,{coded}">'


_CLEANED: dict[str, Callable[[str], str]] = {
    "text/html": harmless_html,
    "text/markdown": harmless_markdown,
    "text/latex": harmless_markdown,
}


def _sizes(metadata: Any) -> dict[str, int]:
    metadata = metadata if isinstance(metadata, dict) else {}
    return {name: metadata[name] for name in ("width", "height") if type(metadata.get(name)) is int}


def _harmless_cell(cell: Any) -> None:
    nbgrader_metadata = cell.metadata.get("nbgrader")
    metadata = {"nbgrader": nbgrader_metadata} if nbgrader_metadata else {}
    metadata |= {
        name: cell.metadata[name]
        for name in ("deletable", "editable")
        if type(cell.metadata.get(name)) is bool
    }
    cell.metadata = type(cell.metadata)(metadata)
    for output in cell.get("outputs", []):
        _harmless_output(output)
    if cell.cell_type == "code":
        return
    _harmless_attachments(cell)
    if not (nbgrader_metadata or {}).get("locked"):
        cell.source = _without_missing(harmless_markdown(cell.source), cell.get("attachments", {}))


def _harmless_attachments(cell: Any) -> None:
    """Leave a cell the pictures among its attachments."""
    attachments = {}
    for name, bundle in cell.pop("attachments", {}).items():
        pictures = {kind: content for kind, content in bundle.items() if _is_picture(kind, content)}
        if pictures:
            attachments[name] = pictures
    if attachments:
        cell.attachments = type(cell.metadata)(attachments)


def _without_missing(text: str, names: Collection[str]) -> str:
    """Return Markdown that shows no attachment that is not there: nbconvert would give up."""
    count = len(_ATTACHED.findall(html.unescape(_IGNORED.sub("", text))))
    if count != len(_ATTACHED.findall(text)):
        return _as_code(text)
    return _ATTACHED.sub(lambda match: match[0] if match[1] in names else f"no-{match[0]}", text)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(_WORD.fullmatch(value))


def make_harmless(nb: Any) -> None:
    """Leave in a notebook nothing that runs where it is looked at."""
    metadata = {}
    for name in ("kernelspec", "language_info"):
        section = nb.metadata.get(name)
        metadata[name] = (
            section if isinstance(section, dict) and all(map(_is_word, section.values())) else {}
        )
    nb.metadata = type(nb.metadata)(
        {name: section for name, section in metadata.items() if section}
    )
    for cell in nb.cells:
        _harmless_cell(cell)


class Harmless(NbGraderPreprocessor):  # type: ignore[misc]
    """nbgrader's step that takes out of a notebook what would run in a browser."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Change the notebook in place."""
        make_harmless(nb)
        return nb, resources
