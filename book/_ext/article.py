"""What a page shows that Sphinx and its theme write otherwise.

Each correction is made in the tree before the page is written, or where its node is written.
"""

import base64
import mimetypes
import re
import shutil
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import api
import lessons
import reading
from docutils import nodes
from elements import element
from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput, visit_HideCellInput
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

import optdl

DESCRIPTION_LENGTH = 155
TOOLKIT = ("styles/bootstrap.css", "styles/pydata-sphinx-theme.css")
"""Style sheets that the theme's own template names."""


def correct(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Correct a tree that is complete."""
    if app.builder.format == "html":
        fold_admonitions(doctree)
        keep_punctuation(doctree)
        shorten_signatures(doctree)


def fold_admonitions(doctree: nodes.document) -> None:
    """Fold each note of the class ``dropdown`` under its title, without a script."""
    for note in list(doctree.findall(nodes.Admonition)):
        if "dropdown" in note["classes"]:
            title, *content = note.children
            summary = element("summary", *title.children, class_="admonition-title")
            note.replace_self(element("details", summary, *content, class_="admonition"))


def keep_punctuation(doctree: nodes.document) -> None:
    """Let no line begin with the comma or the period that follows a formula."""
    for formula in list(doctree.findall(nodes.math)):
        parent, place = formula.parent, formula.parent.index(formula)
        after = parent[place + 1] if place + 1 < len(parent) else None
        sign = re.match(r"[,.;:!?)\]’”]+", after) if isinstance(after, nodes.Text) else None
        if sign:
            together = nodes.inline("", "", formula, nodes.Text(sign[0]), classes=["together"])
            parent[place : place + 2] = [together, nodes.Text(after[sign.end() :])]


def shorten_signatures(doctree: nodes.document) -> None:
    """Mark in a signature its name, its types and its lines alone, not each bracket."""
    for signature in doctree.findall(addnodes.desc_signature):
        for part in list(signature.findall(addnodes.desc_sig_element)):
            part.parent.replace(part, part.children)
        for listed in list(signature.findall(addnodes.desc_parameterlist)):
            parts: list[nodes.Node] = [nodes.Text("(")]
            for number, parameter in enumerate(listed.children):
                if listed.get("multi_line_parameter_list"):
                    inside = (*parameter.children, nodes.Text(", "))
                    parts.append(nodes.inline("", "", *inside, classes=["sig-line"]))
                else:
                    parts += [nodes.Text(", " if number else ""), *parameter.children]
            listed.parent.replace(listed, [*parts, nodes.Text(")")])
        for result in list(signature.findall(addnodes.desc_returns)):
            result.parent.replace(result, [nodes.Text(" → "), *result.children])


def description(doctree: nodes.document) -> str:
    """Return the first words of a page, up to a formula; nothing if they say little."""
    top = next(doctree.findall(nodes.section), doctree)  # deeper paragraphs may be an answer's
    paragraphs = [part for part in top if isinstance(part, nodes.paragraph)]
    lead = takewhile(lambda part: not part.next_node(nodes.math), paragraphs)
    text = " ".join(" ".join(part.astext() for part in lead).split())
    if len(text) > DESCRIPTION_LENGTH:
        text = text[:DESCRIPTION_LENGTH].rsplit(" ", 1)[0].rstrip(" ,;:.") + " …"
    return text if len(text) >= 20 else ""


def visit_image(writer: Any, node: nodes.image) -> None:
    """Tell the proportions of a drawing, so that it moves nothing when it arrives late."""
    is_drawing = node["uri"] in writer.builder.images and node["uri"].endswith(".svg")
    source = Path(writer.builder.srcdir) / node["uri"]
    head = source.read_text("utf-8")[:4000] if is_drawing else ""
    box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', head)
    if box and hasattr(writer, "first_picture"):
        node["loading"] = "lazy"  # it is fetched when the reader comes near it
    type(writer).visit_image(writer, node)
    if box:
        writer.first_picture = getattr(writer, "first_picture", node)
        # figures are measured in points of 1/72 inch, pages in pixels of 1/96 inch
        scale = 4 / 3 if re.search(r'width="[\d.]+pt"', head) else 1
        width, height = (round(scale * float(side)) for side in box.groups())
        size = f'<img width="{width}" height="{height}"'
        writer.body[-1] = writer.body[-1].replace("<img", size, 1)


def visit_entry(writer: Any, node: nodes.entry) -> None:
    """Write the empty corner of a table as no header: it heads nothing."""
    type(writer).visit_entry(writer, node)
    if not node.astext().strip() and not node.next_node(nodes.image):
        writer.body[-1] = writer.body[-1].replace("<th", "<td", 1)
        writer.context[-1] = "</td>\n"


def visit_hidden(writer: Any, node: HideCodeCellNode) -> None:
    """Give folded code the name that it shows."""
    if "tag_setup" in node.parent["classes"]:
        node["prompt_show"] = node["prompt_hide"] = "Imports of this page"
    visit_HideCellInput(writer, node)
    writer.body[-4] = "<summary>\n"


def visit_signature(writer: Any, node: addnodes.desc_signature) -> None:
    """Write the words of a signature without an element for each."""
    type(writer).visit_desc_signature(writer, node)
    writer.protect_literal_text -= 1


def depart_signature(writer: Any, node: addnodes.desc_signature) -> None:
    """Close a signature."""
    writer.protect_literal_text += 1
    type(writer).depart_desc_signature(writer, node)


def prepare(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the template of a page what it asks for."""
    context |= reading.notebook_buttons(app, page)
    context |= {"trees": app.env.tocs, "toctree": addnodes.toctree, "author": app.config.author}
    context["includes"] = app.env.toctree_includes
    context |= {"lessons": lessons.lessons_of(app.env), "release": optdl.__version__}
    context["shared_styles"] = list(app.builder._orig_css_files)  # it has no other name
    context["title_of"] = partial(lessons.title_of, app)
    if page in app.config.html_additional_pages:  # whose own address is another one each time
        icon = Path(app.srcdir, app.config.html_favicon)
        data = base64.b64encode(icon.read_bytes()).decode()
        context["icon"] = f"data:{mimetypes.guess_type(icon)[0]};base64,{data}"
    if doctree is not None:
        context["description"] = description(doctree)
        reading.keep_words(app, page, doctree, context["body"])


def join_styles(app: Sphinx, error: Exception | None) -> None:
    """Join the style sheets in the theme's order into what one request loads; drop icon fonts."""
    if error is not None or not hasattr(app.builder, "_orig_css_files"):
        return  # nothing was written
    static = Path(app.outdir) / "_static"
    shutil.rmtree(static / "vendor", ignore_errors=True)
    sheets = sorted(app.builder._orig_css_files, key=lambda sheet: sheet.priority)
    names = [str(sheet.filename).removeprefix("_static/") for sheet in sheets]
    texts = [(static / name).read_text("utf-8") for name in dict.fromkeys((*TOOLKIT, *names))]
    joined = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", "\n".join(texts))
    (static / "site.css").write_text(joined, "utf-8")


def read_side_by_side(app: Sphinx, env: Any, names: list[str]) -> None:
    """Let several processes read pages: the numbering of chapters begins when all are read."""
    if numbering := app.extensions.get("sphinx_multitoc_numbering"):
        numbering.parallel_read_safe = True  # it does not say itself whether that is safe


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # The tool passes on a value of an extension that is not loaded here.
    app.add_config_value("comments_config", {}, "", types=[dict])
    StandaloneHTMLBuilder.search = False  # the site has an index of its own, with the words
    for node, *visits in (
        (nodes.image, visit_image, None),
        (nodes.entry, visit_entry, None),
        (nodes.literal_block, api.visit_literal_block, None),
        (HideCodeCellNode, visit_hidden, depart_HideCellInput),
        (addnodes.desc_signature, visit_signature, depart_signature),
    ):
        app.add_node(node, override=True, html=tuple(visits))
    app.connect("env-before-read-docs", read_side_by_side)
    # after the links in tables and signatures are made
    app.connect("doctree-resolved", correct, priority=900)
    app.connect("html-page-context", prepare)
    # after the theme has written its colors
    app.connect("build-finished", join_styles, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
