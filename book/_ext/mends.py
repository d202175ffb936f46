"""Mend the pages of the theme while they are built: light, accessible, and whole without a network.

Each page passes through `mend` after its template is rendered and before it is written. What the
theme does well stays as it is; each function below removes one defect of it.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from bs4 import BeautifulSoup, NavigableString
from sphinx.application import Sphinx
from sphinx.jinja2glue import BuiltinTemplateLoader

sys.path.insert(0, str(Path(__file__).resolve().parent))

import reading

BUNDLE = "site.css"
"""The style sheets that all pages share, in one file: one request before the first paint."""

MATHJAX = (
    "startup.js",
    "core.js",
    "input/tex.js",
    "input/tex/extensions",
    "output/chtml.js",
    "output/chtml/fonts",
    "a11y/assistive-mml.js",
)
"""The parts of MathJax that the course needs; its menu and speech engine are most of its weight."""

DESCRIPTION_LENGTH = 155

# Widths in em of the letters and signs of TeX's fonts, to a few hundredths.
_WIDTHS = {
    sign: width
    for width, signs in {
        0.28: r"l [ ] | , . : ; ! ' \cdot \lvert \rvert \{ \}",
        0.36: r"i t \epsilon",
        0.39: r"( ) j \ell",
        0.44: r"b c e q r z \delta \lceil \rceil",
        0.47: r"g o s v y \theta \imath",
        0.51: r"0 1 2 3 4 5 6 7 8 9 / a d k p I \eta \rho \tau \| \lVert \rVert",
        0.56: r"f h u x \beta \gamma \kappa \lambda \sigma \partial",
        0.61: r"n S J \alpha \mu \nu \phi \vartheta",
        0.67: r"L \varphi \omega \psi",
        0.72: r"w T Z",
        0.76: r"A B C E F G O P Q R U V Y \cup \cap",
        0.85: r"m D H K N X \Delta \nabla \Sigma",
        1.05: r"M W \sum \infty",
        1.17: r"\dots \ldots \cdots",
        0.0: r"\left \right \big \bigl \bigr \Big \Bigl \Bigr \mathbf \mathrm \mathbb "
        r"\mathcal \boldsymbol \operatorname \text \hat \tilde \bar \! { }",
        0.17: r"\,",
        1.0: r"\quad",
    }.items()
    for sign in signs.split()
}
_RELATIONS, _BINARY, _FUNCTIONS = (
    set(signs.split())
    for signs in (
        r"= < > \approx \le \leq \ge \geq \ne \in \sim \propto \to \mapsto \mid",
        r"+ - \pm \times \odot \cdot",
        r"\max \min \log \ln \exp \arg \sin \cos \tanh",
    )
)

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


class MendedTemplates(BuiltinTemplateLoader):
    """Sphinx's templates, with every page mended as it is rendered."""

    # The same on every page. Pages may be written by several processes; Sphinx renders the first
    # and the last of them in the process that writes the bundle.
    styles: tuple[str, ...] = ()

    def init(self, builder: Any, *args: Any, **options: Any) -> None:
        """Keep the builder, which knows where each picture comes from."""
        super().init(builder, *args, **options)
        self.builder = builder

    def render(self, template: str, context: dict[str, Any]) -> str:
        """Render a page and mend it."""
        page = super().render(template, context)
        if "<html" not in page:
            return page
        soup = BeautifulSoup(page, "html.parser")
        self.styles = mend(soup, context) or self.styles
        self.reserve_pictures(soup)
        if name := context.get("pagename"):
            app, root = self.builder.app, context.get("content_root", "")
            reading.offer_notebook(soup, app, name, root)
            if name in app.env.all_docs:
                reading.keep_words(soup, Path(app.outdir), name)
            elif name == "search":
                reading.show_words(soup)
        return str(soup)

    def reserve_pictures(self, soup: BeautifulSoup) -> None:
        """Tell the proportions of each drawing, so that its arrival moves nothing."""
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


def mend(soup: BeautifulSoup, context: dict[str, Any]) -> tuple[str, ...]:
    """Mend one page in place and return the style sheets that its bundle holds."""
    write_out_scripted_markup(soup)
    styles = bundle_styles(soup)
    defer_scripts(soup)
    preload_mathjax(soup)
    set_theme_early(soup)
    draw_icons(soup)
    name_controls(soup)
    place_in_landmarks(soup)
    mend_roles(soup)
    keep_one_title(soup)
    label_logo(soup)
    unlink_captions(soup)
    reserve_formulas(soup)
    keep_punctuation(soup)
    fold_admonitions(soup)
    describe(soup, context)
    return styles


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


def bundle_styles(soup: BeautifulSoup) -> tuple[str, ...]:
    """Replace the style sheets that every page shares by their bundle."""
    shared = []
    bundled = None
    for link in soup.head.find_all("link", rel="stylesheet"):
        href = link["href"].split("?")[0]
        if "fontawesome" in href:
            link.decompose()
        elif "/coverage" not in href and "_static/" in href:
            shared.append(href.split("_static/", 1)[1])
            if bundled is None:
                bundled = link
                link["href"] = f"{href.split('_static/')[0]}_static/{BUNDLE}"
            else:
                link.decompose()
    for link in soup.head.find_all("link", rel="preload"):
        link.decompose()
    return tuple(shared)


def defer_scripts(soup: BeautifulSoup) -> None:
    """Let no script hold up the page; deferred ones still run in their order."""
    for script in soup.find_all("script"):
        source = script.get("src", "")
        if "fontawesome" in source or "DOCUMENTATION_OPTIONS.pagename" in (script.string or ""):
            script.decompose()
        elif source:
            script["defer"] = "defer"
            script.attrs.pop("async", None)


def preload_mathjax(soup: BeautifulSoup) -> None:
    """Fetch the parts of MathJax together, and none on a page that has no formula."""
    start = soup.find("script", src=re.compile(r"mathjax/startup\.js"))
    if start is None:
        return
    if soup.select_one("article .math") is None:
        start.decompose()
        for script in soup.find_all("script", string=re.compile(r"window\.MathJax")):
            script.decompose()
        return
    for part in MATHJAX:
        if part.endswith(".js") and part != "startup.js":
            href = start["src"].split("?")[0].replace("startup.js", part)
            link = soup.new_tag("link", rel="preload", href=href)
            link["as"] = "script"
            start.insert_before(link)


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


def mend_roles(soup: BeautifulSoup) -> None:
    """Remove roles that promise a structure the page does not have."""
    for part in tags(soup, True):
        role = part.get("role", "")
        wrong = role in ("list", "listitem") or role.startswith("doc-biblio")
        if wrong and part.name not in ("ul", "ol", "li"):
            del part["role"]


def keep_one_title(soup: BeautifulSoup) -> None:
    """Drop the second copy of title and contents, made for printers, and the second viewport."""
    if copy := soup.find(id="jb-print-docs-body"):
        copy.decompose()
    for viewport in [meta for meta in tags(soup, "meta") if meta.get("name") == "viewport"][1:]:
        viewport.decompose()


def label_logo(soup: BeautifulSoup) -> None:
    """Show one picture for both themes; the name of the course beside it says what it is."""
    for brand in tags(soup, "a", "navbar-brand"):
        first, *others = brand.find_all("img")
        for other in others:
            other.decompose()
        first.attrs.update({"class": "logo__image", "alt": "", "width": "44", "height": "44"})


def unlink_captions(soup: BeautifulSoup) -> None:
    """Drop the sign of a caption's own link, which now and then stood alone on a last line."""
    for caption in tags(soup, "figcaption"):
        for link in tags(caption, "a", "headerlink"):
            link.decompose()


def reserve_formulas(soup: BeautifulSoup) -> None:
    """Keep about the room that each formula will take, so that typesetting moves nothing."""
    for formula in tags(soup, "span", "math") + tags(soup, "div", "math"):
        tex = "".join(formula.find_all(string=True, recursive=False))
        if formula.name == "span":
            formula["style"] = f"--room: {_width(tex):.2f}em"
        else:
            formula["style"] = f"--room: {_height(tex):.1f}em"


def keep_punctuation(soup: BeautifulSoup) -> None:
    """Let no line begin with the comma or the period that follows a formula."""
    for formula in tags(soup.find("article") or soup, "span", "math"):
        after = formula.next_sibling
        sign = re.match(r"[,.;:!?)\]’”]+", after) if isinstance(after, NavigableString) else None
        if sign:
            after.replace_with(after[sign.end() :])
            together = formula.wrap(soup.new_tag("span", style="white-space: nowrap"))
            together.append(sign[0])


def _width(tex: str) -> float:
    """Return about how many em wide a formula is within a line, once typeset."""
    return _row(re.findall(r"\\(?:[A-Za-z]+|.)|\S", re.sub(r"\\[()]", "", tex)))


def _row(signs: list[str]) -> float:
    """Return the width of a row of signs; a fraction, a root and an index are rows of their own."""
    total, index, before = 0.0, 0.0, ""
    while signs:
        sign = signs.pop(0)
        if sign in ("^", "_"):
            # An upper and a lower index stand above each other.
            index = max(index, 0.71 * _row(_argument(signs)) + 0.05)
            continue
        total, index = total + index, 0.0
        if sign in (r"\frac", r"\tfrac", r"\dfrac"):
            parts = _row(_argument(signs)), _row(_argument(signs))
            total += 0.24 + (1.0 if sign == r"\dfrac" else 0.71) * max(parts)
        elif sign == r"\sqrt":
            total += 0.85 + _row(_argument(signs))
        elif sign in _FUNCTIONS:
            total += 0.49 * (len(sign) - 1) + (0.17 if signs[:1] not in ([], ["("]) else 0.0)
        elif sign in _RELATIONS:
            total += 0.78 + (0.56 if before else 0.28)
        elif sign in _BINARY:
            unary = before in _RELATIONS | _BINARY | {"", "(", ",", "{"}
            total += _WIDTHS.get(sign, 0.78) + (0.0 if unary else 0.44)
        else:
            total += _WIDTHS.get(sign, 0.56) + (0.17 if sign in ",;" and signs else 0.0)
        before = sign
    return total + index


def _argument(signs: list[str]) -> list[str]:
    """Take the next sign off the row, or the group that begins there."""
    taken, depth = [signs.pop(0)] if signs else [], 0
    if taken != ["{"]:
        return taken
    depth, taken = 1, []
    while signs and depth:
        taken.append(signs.pop(0))
        depth += {"{": 1, "}": -1}.get(taken[-1], 0)
    return taken


def _height(tex: str) -> float:
    """Return about how many letters high a displayed formula is, with its margins."""
    rows = 1 + len(re.findall(r"\\\\", tex))
    tall = re.search(r"\\[dt]?frac|\\sum|\\int|\\max|\\min|\\prod", tex) is not None
    return 2.2 + (1.9 if tall else 1.3) * rows


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


def write_bundle(app: Sphinx, error: Exception | None) -> None:
    """Join the shared style sheets, in the order in which the theme loads them."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    bundle = static / BUNDLE
    styles = getattr(app.builder.templates, "styles", ())
    parts = []
    for name in styles:
        text = (static / name).read_text("utf-8")
        text = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", text)
        if name.endswith("theme.css") and "@import" in text:
            text = ""  # it imports what is in the bundle already
        parts.append(f"/* from {name} */\n{text}\n")
    if parts:
        bundle.write_text("".join(parts), "utf-8")


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy the parts of MathJax from the package that holds it, and drop the icon fonts."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    shutil.rmtree(static / "vendor", ignore_errors=True)
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "expected the package sphinx-mathjax-offline, which holds MathJax; got none. "
            "Install the requirements of the course."
        )
    source = Path(spec.origin).parent / "static" / "mathjax"
    for part in MATHJAX:
        target = static / "mathjax" / part
        if target.exists():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, target)
        else:
            shutil.copyfile(source / part, target)


def use_local_mathjax(app: Sphinx, config: Any) -> None:
    """Load MathJax from the site itself, and only its parts that the course needs."""
    config.mathjax_path = "mathjax/startup.js"
    mathjax = dict(config.mathjax3_config or {})
    parts = [part.removesuffix(".js") for part in MATHJAX[1:] if part.endswith(".js")]
    mathjax["loader"] = {"load": parts}
    mathjax["chtml"] = {"matchFontHeight": False, "mtextInheritFont": True}
    config.mathjax3_config = mathjax


def read_side_by_side(app: Sphinx, env: Any, names: list[str]) -> None:
    """Let several processes read pages: the numbering of chapters begins when all are read."""
    numbering = app.extensions.get("sphinx_multitoc_numbering")
    if numbering is not None:  # it does not say itself whether that is safe
        numbering.parallel_read_safe = True


def executed(
    app: Sphinx, env: Any, added: set[str], changed: set[str], gone: set[str]
) -> list[str]:
    """Return the pages whose outputs have changed, although their text may not have."""
    return [page for page in app.config.executed_pages if page in env.found_docs]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the mends with Sphinx."""
    # The tool passes on a value of an extension that is not loaded here.
    app.add_config_value("comments_config", {}, "", types=[dict])
    app.connect("config-inited", use_local_mathjax, priority=900)
    app.add_config_value("executed_pages", [], "", types=[list])
    app.connect("env-get-outdated", executed)
    app.connect("env-before-read-docs", read_side_by_side)
    # Before the bare redirect, which is only written where no page is.
    app.connect("build-finished", write_front_door, priority=400)
    # After the theme has written its colors.
    app.connect("build-finished", write_bundle, priority=950)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
