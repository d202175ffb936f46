"""Correct the article of each page, and tell the page's template what it shows around it.

The frame of a page is in ``book/_templates``. An article is what Sphinx and its extensions write;
each function below removes one defect of that.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bs4 import BeautifulSoup, NavigableString, Tag
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).resolve().parent))

import api
import content_visibility
import lessons
import reading
import styles

DESCRIPTION_LENGTH = 155

SIGNATURE_PARTS = {"sig-prename", "sig-name", "property", "default_value"}
"""What the style sheet knows in a signature."""


def prepare(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the template of a page what it asks for, with a correct article."""
    context |= reading.notebook_buttons(app, page)
    context["contents"] = partial(lessons.contents, app.env)
    context["lessons"] = lessons.lessons_of(app.env)
    context["shared_styles"] = styles.shared(app.builder)
    context["title_of"] = partial(lessons.title_of, app)
    if "body" in context:
        article = BeautifulSoup(context["body"], "html.parser")
        context["description"] = description(article)
        name_parts(article)
        correct_roles(article)
        unlink_captions(article)
        keep_punctuation(article)
        fold_admonitions(article)
        lighten_signatures(article)
        reserve_pictures(article, app)
        content_visibility.reserve_sections(article)
        api.link_code(article, app, page)
        reading.keep_words(article, Path(app.outdir), page)
        context["body"] = str(article)


def reserve_pictures(article: Tag, app: Sphinx) -> None:
    """Tell the proportions of each drawing, so that it moves nothing when it arrives late."""
    sources = {name: source for source, name in app.builder.images.items()}
    for picture in article.select("img:not([width], [height])"):
        source = sources.get(unquote(picture["src"].rsplit("/", 1)[-1]), "")
        if source.endswith(".svg"):
            head = (Path(app.srcdir) / source).read_text("utf-8")[:4000]
            box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', head)
            if box:
                # Figures are measured in points of 1/72 inch, pages in pixels of 1/96 inch.
                scale = 4 / 3 if re.search(r'width="[\d.]+pt"', head) else 1
                picture["width"], picture["height"] = (
                    str(round(scale * float(side))) for side in box.groups()
                )
    # Pictures further down are fetched when the reader comes near them.
    for picture in article.select("img[width][height]")[1:]:
        picture["loading"] = "lazy"


def tags(part: Tag, name: str | bool, *classes: str) -> list[Any]:
    """Return the elements of this name, or of any, that have these classes.

    A page asks for some ten kinds of them; a selector takes ten times as long.
    """
    return [tag for tag in part.find_all(name) if set(classes) <= set(tag.get("class", ()))]


def name_parts(article: Tag) -> None:
    """Give each part the name that it shows."""
    if cell := article.find("div", class_="tag_setup"):
        for title in tags(cell, "p", "admonition-title"):
            title.string = "Imports of this page"
    for summary in tags(article, "summary"):
        summary.attrs.pop("aria-label", None)
    for marker in tags(article, "svg", "sd-octicon"):
        marker["aria-hidden"] = "true"


def fold_admonitions(article: Tag) -> None:
    """Fold each note of the class ``dropdown`` under its title, without a script."""
    for note in tags(article, "div", "admonition", "dropdown"):
        title = tags(note, "p", "admonition-title")[0]
        note.name, title.name = "details", "summary"


def correct_roles(article: Tag) -> None:
    """Remove roles and headers that promise a structure the page does not have."""
    for part in tags(article, True):
        role = part.get("role", "")
        wrong = role in ("list", "listitem") or role.startswith("doc-biblio")
        if wrong and part.name not in ("ul", "ol", "li"):
            del part["role"]
    for part in tags(article, "th"):
        if not part.get_text(strip=True) and part.find("img") is None:
            part.name = "td"  # the corner of a table heads nothing


def unlink_captions(article: Tag) -> None:
    """Drop the sign of a caption's own link, which now and then stood alone on a last line."""
    for caption in tags(article, "figcaption"):
        for link in tags(caption, "a", "headerlink"):
            link.decompose()


def keep_punctuation(article: Tag) -> None:
    """Let no line begin with the comma or the period that follows a formula."""
    for formula in tags(article, "span", "math"):
        after = formula.next_sibling
        sign = re.match(r"[,.;:!?)\]’”]+", after) if isinstance(after, NavigableString) else None
        if sign:
            after.replace_with(after[sign.end() :])
            together = formula.wrap(Tag(name="span", attrs={"style": "white-space: nowrap"}))
            together.append(sign[0])


def lighten_signatures(article: Tag) -> None:
    """Mark in a signature only its name, its types and its lines, which are no list.

    Sphinx makes an element of each bracket: two thirds of a page of signatures.
    """
    for signature in tags(article, "dt", "sig"):
        for part in signature.find_all(["span", "dl", "dd"]):
            if part.name == "dd":
                part.name, part["class"] = "span", "sig-line"
            elif part.name == "dl" or not SIGNATURE_PARTS.intersection(part.get("class", ())):
                part.unwrap()
        for line in signature.find_all("em", class_="sig-param"):
            line.unwrap()
        signature.smooth()


def description(article: Tag) -> str:
    """Return the first words of an article, without formulas; nothing if they say little."""
    text = ""
    for paragraph in article.select("section p"):
        if paragraph.select(".math") or paragraph.find_parent(class_="admonition"):
            continue
        text = f"{text} {' '.join(paragraph.get_text().split())}".strip()
        if len(text) >= 60:
            break
    if len(text) > DESCRIPTION_LENGTH:
        text = text[:DESCRIPTION_LENGTH].rsplit(" ", 1)[0].rstrip(" ,;:.") + " …"
    return text if len(text) >= 20 else ""


def read_side_by_side(app: Sphinx, env: Any, names: list[str]) -> None:
    """Let several processes read pages: the numbering of chapters begins when all are read."""
    numbering = app.extensions.get("sphinx_multitoc_numbering")
    if numbering is not None:  # it does not say itself whether that is safe
        numbering.parallel_read_safe = True


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # The tool passes on a value of an extension that is not loaded here.
    app.add_config_value("comments_config", {}, "", types=[dict])
    app.connect("env-before-read-docs", read_side_by_side)
    app.connect("html-page-context", prepare)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
