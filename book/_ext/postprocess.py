"""Correct the pages of the theme as they are built: light, accessible, whole without a network.

Each page passes through `postprocess` after its template is rendered, before it is written. What
the theme does well stays as it is; each function below removes one defect of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from bs4 import BeautifulSoup, NavigableString
from sphinx.application import Sphinx
from sphinx.jinja2glue import BuiltinTemplateLoader

sys.path.insert(0, str(Path(__file__).resolve().parent))

import api
import content_visibility
import lessons
import reading
import slides
import styles

DESCRIPTION_LENGTH = 155

NEEDLESS_SCRIPTS = ("fontawesome", "/bootstrap.js", "/sphinx-book-theme.js")
"""What the pages need of them is in `course.js`, in a hundredth of their size."""

NOT_PRINTED = (
    "bd-header-announcement",
    "bd-header",
    "bd-header-article",
    "bd-sidebar-primary",
    "bd-sidebar-secondary",
    "bd-footer-article",
    "bd-footer-content",
    "bd-footer",
)

MEASURED = '"pre, .nboutput > .output_area, .cell_output > .output, .jp-RenderedHTMLCommon"'
"""The blocks that the theme's script measures on every page."""

SIGNATURE_PARTS = {"sig-prename", "sig-name", "property", "default_value"}
"""What the style sheet knows in a signature."""

# The icons of the page, drawn here on a grid of 24; the theme's icon font weighs 600 kB.
ICONS = {
    "fa-bars": '<path d="M4 6h16M4 12h16M4 18h16"/>',
    "fa-list": '<path d="M9 6h11M9 12h11M9 18h11M4 6h.01M4 12h.01M4 18h.01"/>',
    "fa-magnifying-glass": '<circle cx="10.5" cy="10.5" r="6.5"/><path d="m15.5 15.5 5 5"/>',
    "fa-sun": '<circle cx="12" cy="12" r="4"/><path d="M12 2v2.5M12 19.5V22M2 12h2.5M19.5 12H22'
    'M4.9 4.9l1.8 1.8M17.3 17.3l1.8 1.8M4.9 19.1l1.8-1.8M17.3 6.7l1.8-1.8"/>',
    "fa-moon": '<path d="M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z"/>',
    "fa-circle-half-stroke": '<circle cx="12" cy="12" r="8.5"/>'
    '<path d="M12 3.5a8.5 8.5 0 0 1 0 17Z" fill="currentColor"/>',
    "fa-arrow-up": '<path d="M12 20V4M5 11l7-7 7 7"/>',
    "fa-angle-left": '<path d="m15 4-8 8 8 8"/>',
    "fa-angle-right": '<path d="m9 4 8 8-8 8"/>',
    "fa-chevron-right": '<path d="m9 5 7 7-7 7"/>',
    "fa-chevron-down": '<path d="m5 9 7 7 7-7"/>',
}

# The theme is known before the first paint, so that a dark page never flashes white.
THEME_SCRIPT = """
(function () {
  var root = document.documentElement, mode = "auto";
  try { mode = localStorage.getItem("mode") || "auto"; } catch (error) { /* storage is blocked */ }
  var night = matchMedia("(prefers-color-scheme: dark)").matches;
  var dark = mode === "dark" || (mode === "auto" && night);
  root.dataset.mode = mode;
  root.dataset.theme = dark ? "dark" : "light";
})();
"""


class PostprocessedTemplates(BuiltinTemplateLoader):
    """Sphinx's templates, with every page corrected as it is rendered."""

    # The same on every page. Pages may be written by several processes; Sphinx renders the first
    # and the last of them in the process that writes the bundle.
    styles: tuple[str, ...] = ()

    def init(self, builder: Any, *args: Any, **options: Any) -> None:
        """Keep the builder, which knows where each picture comes from."""
        super().init(builder, *args, **options)
        self.builder = builder

    def render(self, template: str, context: dict[str, Any]) -> str:
        """Render a page and correct it."""
        page = super().render(template, context)
        if "<html" not in page:
            return page
        soup = BeautifulSoup(page, "html.parser")
        self.styles = postprocess(soup, context) or self.styles
        self.reserve_pictures(soup)
        content_visibility.reserve_sections(soup)
        reading.hear_early_keys(soup)
        if name := context.get("pagename"):
            app, root = self.builder.app, context.get("content_root", "")
            reading.offer_notebook(soup, app, name, root)
            slides.offer_slides(soup, root)
            lessons.mark_contents(soup, app, name)
            api.link_code(soup, app, name)
            if name in app.env.all_docs:
                reading.keep_words(soup, Path(app.outdir), name)
            elif name == "search":
                reading.show_words(soup)
        return str(soup)

    def reserve_pictures(self, soup: BeautifulSoup) -> None:
        """Tell the proportions of each drawing, so that it moves nothing when it arrives late."""
        sources = {name: source for source, name in self.builder.images.items()}
        for picture in soup.select("article img:not([width], [height])"):
            source = sources.get(unquote(picture["src"].rsplit("/", 1)[-1]), "")
            if source.endswith(".svg"):
                head = (Path(self.builder.srcdir) / source).read_text("utf-8")[:4000]
                box = re.search(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"', head)
                if box:
                    # Figures are measured in points of 1/72 inch, pages in pixels of 1/96 inch.
                    scale = 4 / 3 if re.search(r'width="[\d.]+pt"', head) else 1
                    picture["width"], picture["height"] = (
                        str(round(scale * float(side))) for side in box.groups()
                    )
        # Pictures further down are fetched when the reader comes near them.
        for picture in soup.select("article img[width][height]")[1:]:
            picture["loading"] = "lazy"


def postprocess(soup: BeautifulSoup, context: dict[str, Any]) -> tuple[str, ...]:
    """Correct one page in place and return the style sheets that its bundle holds."""
    write_out_scripted_markup(soup)
    names = styles.bundle(soup)
    defer_scripts(soup)
    forget_bootstrap(soup)
    set_theme_early(soup)
    draw_icons(soup)
    name_controls(soup)
    place_in_landmarks(soup)
    mark_not_printed(soup)
    correct_roles(soup)
    keep_one_title(soup)
    label_logo(soup)
    unlink_captions(soup)
    keep_punctuation(soup)
    fold_admonitions(soup)
    lighten_signatures(soup)
    describe(soup, context)
    return names


def tags(part: Any, name: str | bool, *classes: str) -> list[Any]:
    """Return the elements of this name, or of any, that have these classes.

    A page asks for some thirty kinds of them; a selector takes ten times as long.
    """
    return [tag for tag in part.find_all(name) if set(classes) <= set(tag.get("class", ()))]


def write_out_scripted_markup(soup: BeautifulSoup) -> None:
    """Put in place what the theme writes with `document.write`."""
    for script in soup.find_all("script"):
        written = re.fullmatch(r"\s*document\.write\(`(.*)`\);?\s*", script.string or "", re.DOTALL)
        if written:
            script.replace_with(BeautifulSoup(written[1], "html.parser"))


def defer_scripts(soup: BeautifulSoup) -> None:
    """Let no script hold up the page; deferred ones still run in their order."""
    for script in soup.find_all("script"):
        source = script.get("src", "")
        text = script.string or ""
        if any(name in source for name in NEEDLESS_SCRIPTS) or "OPTIONS.pagename" in text:
            script.decompose()
        elif source:
            script["defer"] = "defer"
            script.attrs.pop("async", None)


def forget_bootstrap(soup: BeautifulSoup) -> None:
    """Drop the attributes by which a page asks for Bootstrap's script."""
    for part in soup.find_all(attrs={"data-bs-spy": True}):
        for name in [name for name in part.attrs if name.startswith("data-bs-")]:
            del part[name]


def set_theme_early(soup: BeautifulSoup) -> None:
    """Choose light or dark before anything is painted, whatever the reader's storage allows."""
    script = soup.find("script", attrs={"data-cfasync": "false"})
    if script is not None:
        del script["data-cfasync"]
        script.string = THEME_SCRIPT


def draw_icons(soup: BeautifulSoup) -> None:
    """Draw each icon as a small picture that assistive technology skips."""
    for icon in tags(soup, True):
        name = next((c for c in icon.get("class", ()) if c in ICONS), None)
        if name is None:
            continue
        drawing = BeautifulSoup(
            '<svg class="icon" viewBox="0 0 24 24" width="24" height="24" aria-hidden="true">'
            f"{ICONS[name]}</svg>",
            "html.parser",
        )
        frame = soup.new_tag("span", attrs={"class": "icon-frame", "aria-hidden": "true"})
        if "theme-switch" in icon["class"]:
            frame["class"] = "icon-frame theme-switch"
            frame["data-mode"] = icon["data-mode"]
        frame.append(drawing)
        icon.replace_with(frame)


def name_controls(soup: BeautifulSoup) -> None:
    """Give each control the name that it shows, or one if it shows none."""
    for button in tags(soup, "button"):
        title = button.attrs.pop("title", None)
        for attribute in ("data-bs-toggle", "data-bs-placement"):
            button.attrs.pop(attribute, None)
        if "search-button-field" in button["class"]:
            button.attrs.pop("aria-label", None)
        elif "theme-switch-button" in button["class"]:
            button["aria-label"] = "Color theme: light, dark or automatic"
        elif title and not button.get("aria-label") and not button.get_text(strip=True):
            button["aria-label"] = {
                "Toggle primary sidebar": "Contents of the course",
                "Toggle secondary sidebar": "Contents of this page",
            }.get(title, title)
    if cell := soup.find("div", class_="tag_setup"):
        for title in tags(cell, "p", "admonition-title"):
            title.string = "Imports of this page"
    for summary in tags(soup, "summary"):
        if summary.get_text(strip=True):
            summary.attrs.pop("aria-label", None)
        else:
            link = summary.find_previous("a")
            summary["aria-label"] = f"Toggle {link.get_text(strip=True) if link else 'contents'}"
    for checkbox in tags(soup, "input", "sidebar-toggle"):
        checkbox["aria-hidden"] = "true"
        checkbox["tabindex"] = "-1"
    fields = [field for field in tags(soup, "input") if field.get("id") == "search-input"]
    for field in fields if len(fields) > 1 else []:
        # The page of the search has a field of its own besides the dialog's.
        if field.find_parent(class_="search-button__wrapper"):
            del field["id"]
    for area in tags(soup, True, "prev-next-area"):
        for link in tags(area, "a"):
            link.attrs.pop("title", None)
    for marker in tags(soup, "svg", "sd-octicon"):
        marker["aria-hidden"] = "true"


def fold_admonitions(soup: BeautifulSoup) -> None:
    """Fold each note of the class ``dropdown`` under its title, without a script."""
    for note in tags(soup, "div", "admonition", "dropdown"):
        title = tags(note, "p", "admonition-title")[0]
        note.name, title.name = "details", "summary"


def place_in_landmarks(soup: BeautifulSoup) -> None:
    """Leave nothing outside a landmark."""
    for name, label in (("bd-sidebar-primary", "Course"), ("bd-sidebar-secondary", "Page")):
        for part in tags(soup, True, name):
            part["role"] = "complementary"
            part["aria-label"] = label
    for nav in tags(soup, "nav", "page-toc"):
        nav["aria-label"] = "On this page"
    up, main = soup.find(id="pst-back-to-top"), soup.find("main")
    if up is not None and main is not None:
        main.append(up.extract())
    # The empty header stays: the theme's script measures it.
    for footer in tags(soup, "footer"):
        kinds = {"bd-footer", "bd-footer-content"}
        if kinds & set(footer.get("class", ())) and not footer.get_text(strip=True):
            footer.decompose()
    for dialog in tags(soup, True, "search-button__wrapper"):
        dialog["role"] = "search"


def mark_not_printed(soup: BeautifulSoup) -> None:
    """Name what is left out on paper, which the theme's script would do."""
    for part in tags(soup, True):
        if set(NOT_PRINTED).intersection(part.get("class", ())):
            part["class"] = [*part["class"], "noprint"]


def correct_roles(soup: BeautifulSoup) -> None:
    """Remove roles and headers that promise a structure the page does not have."""
    for part in tags(soup, True):
        role = part.get("role", "")
        wrong = role in ("list", "listitem") or role.startswith("doc-biblio")
        if wrong and part.name not in ("ul", "ol", "li"):
            del part["role"]
    for part in tags(soup, "th"):
        if not part.get_text(strip=True) and part.find("img") is None:
            part.name = "td"  # the corner of a table heads nothing


def keep_one_title(soup: BeautifulSoup) -> None:
    """Drop the second copy of title and contents, made for printers, and the second viewport."""
    if copy := soup.find(id="jb-print-docs-body"):
        copy.decompose()
    for viewport in [meta for meta in tags(soup, "meta") if meta.get("name") == "viewport"][1:]:
        viewport.decompose()


def label_logo(soup: BeautifulSoup) -> None:
    """Show one picture for both themes; the name of the course beside it says what it is."""
    for brand in tags(soup, "a", "navbar-brand"):
        first, *rest = brand.find_all("img")
        for other in rest:
            other.decompose()
        first.attrs.update({"class": "logo__image", "alt": "", "width": "44", "height": "44"})


def unlink_captions(soup: BeautifulSoup) -> None:
    """Drop the sign of a caption's own link, which now and then stood alone on a last line."""
    for caption in tags(soup, "figcaption"):
        for link in tags(caption, "a", "headerlink"):
            link.decompose()


def keep_punctuation(soup: BeautifulSoup) -> None:
    """Let no line begin with the comma or the period that follows a formula."""
    for formula in tags(soup.find("article") or soup, "span", "math"):
        after = formula.next_sibling
        sign = re.match(r"[,.;:!?)\]’”]+", after) if isinstance(after, NavigableString) else None
        if sign:
            after.replace_with(after[sign.end() :])
            together = formula.wrap(soup.new_tag("span", style="white-space: nowrap"))
            together.append(sign[0])


def lighten_signatures(soup: BeautifulSoup) -> None:
    """Mark in a signature only its name, its types and its lines, which are no list.

    Sphinx makes an element of each bracket: two thirds of a page of signatures.
    """
    for signature in tags(soup, "dt", "sig"):
        for part in signature.find_all(["span", "dl", "dd"]):
            if part.name == "dd":
                part.name, part["class"] = "span", "sig-line"
            elif part.name == "dl" or not SIGNATURE_PARTS.intersection(part.get("class", ())):
                part.unwrap()
        for line in signature.find_all("em", class_="sig-param"):
            line.unwrap()
        signature.smooth()


def describe(soup: BeautifulSoup, context: dict[str, Any]) -> None:
    """Describe the page in a sentence: its own description, or its first words without formulas."""
    if soup.find("meta", attrs={"name": "description"}) or soup.head is None:
        return
    text = ""
    for paragraph in soup.select("article.bd-article section p"):
        copy = BeautifulSoup(str(paragraph), "html.parser")
        if copy.select(".math") or paragraph.find_parent(class_="admonition"):
            continue
        text = f"{text} {' '.join(copy.get_text().split())}".strip()
        if len(text) >= 60:
            break
    title = context.get("title", "")
    plain_title = BeautifulSoup(title, "html.parser").get_text() or "Search"
    if len(text) < 20:
        text = f"{plain_title}: a page of the course Learning as Optimization."
    if len(text) > DESCRIPTION_LENGTH:
        text = text[:DESCRIPTION_LENGTH].rsplit(" ", 1)[0].rstrip(" ,;:.") + " …"
    soup.head.append(soup.new_tag("meta", attrs={"name": "description", "content": text}))


def write_front_door(app: Sphinx, error: Exception | None) -> None:
    """Make the page at the root, which leads to the first page, a whole page itself."""
    if error is not None or app.builder.format != "html":
        return
    title = app.config.html_title
    first = f"{app.config.root_doc}.html"
    # Within the page: a request for it would be broken off when the reader is led on.
    icon = quote((Path(app.srcdir) / app.config.html_favicon).read_text("utf-8"))
    (Path(app.outdir) / "index.html").write_text(
        f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="refresh" content="0; url={first}"/>
<meta name="description" content="{title}: a course on how neural networks are trained."/>
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml,{icon}"/>
</head>
<body>
<main>
<h1>{title}</h1>
<p><a href="{first}">Begin here.</a></p>
</main>
</body>
</html>
""",
        "utf-8",
    )


def calm_theme(app: Sphinx, error: Exception | None) -> None:
    """Let the theme's script measure no block: `course.js` does it when the page is laid out.

    The theme measures each block before the page is shown, which lays the page out once more for
    each of them.
    """
    if error is not None or app.builder.format != "html":
        return
    script = Path(app.outdir) / "_static" / "scripts" / "pydata-sphinx-theme.js"
    text = script.read_text("utf-8")
    if MEASURED in text:
        script.write_text(text.replace(MEASURED, '".no-block"'), "utf-8")
    elif '".no-block"' not in text:
        raise RuntimeError(f"expected {MEASURED} in {script.name}; this theme has another script")


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
    # Before the bare redirect, which is only written where no page is.
    app.connect("build-finished", write_front_door, priority=400)
    app.connect("build-finished", calm_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
