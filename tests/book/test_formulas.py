"""Formulas are typeset, and style sheets shortened, while the site is built."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tinycss2
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import content_visibility  # noqa: E402
import formulas  # noqa: E402
import styles  # noqa: E402
from bs4 import BeautifulSoup  # noqa: E402

PAGE = """<html><head><title>x</title></head><body><p>If
<span class="math notranslate nohighlight">\\(a &lt; \\frac{1}{b}\\)</span> then</p>
<div class="math notranslate nohighlight" id="e"><span class="eqno">(1)<a href="#e">#</a></span>
\\[\\sum_{i=1}^n x_i \\text{ for all } n\\]</div></body></html>"""


def site(folder: Path, page: str, name: str = "book/page.html") -> Any:
    """Return what Sphinx hands to an extension when it has written one page."""
    target = folder / "html" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, "utf-8")
    builder = SimpleNamespace(format="html")
    return SimpleNamespace(builder=builder, outdir=str(folder / "html"), srcdir=str(folder))


def test_a_page_has_its_formulas_for_the_eye_and_for_a_screen_reader(tmp_path: Path) -> None:
    app = site(tmp_path, PAGE)
    formulas.typeset(app, None)
    text = (tmp_path / "html" / "book" / "page.html").read_text("utf-8")
    page = BeautifulSoup(text, "html.parser")
    inline, display = page.select("math")
    assert [tag.name for tag in inline.find_all(True)] == ["mi", "mo", "mfrac", "mn", "mi"]
    assert inline.get_text() == "a<1b"
    assert display["display"] == "block"
    assert display.get_text().startswith("∑i=1nxi")
    assert page.select_one(".eqno a")["href"] == "#e"
    assert all(eye["aria-hidden"] == "true" for eye in page.select("mjx-math"))
    assert page.select_one("link")["href"] == "../_static/math/math.css"
    style = tmp_path / "html" / "_static" / "math" / "math.css"
    css = style.read_text("utf-8")
    for character in set(re.findall(r"mjx-c[0-9A-F]+", text)):
        assert f".{character}" in css
    assert ".mjx-c1D6FC" not in css, "there is no alpha on the page"
    for font in re.findall(r'url\("([^"]+)"\)', css):
        assert (style.parent / font).is_file()


@pytest.mark.parametrize("tex", [r"a", r"\{a\}", r"\left\{\frac{a}{b}\right\}"])
def test_the_style_sheet_is_whole_and_has_each_letter(tmp_path: Path, tex: str) -> None:
    page = f'<html><head></head><span class="math">\\({tex}\\)</span></html>'
    formulas.typeset(site(tmp_path, page), None)
    css = (tmp_path / "html" / "_static" / "math" / "math.css").read_text("utf-8")
    rules = tinycss2.parse_stylesheet(css, skip_whitespace=True, skip_comments=True)
    assert [rule for rule in rules if rule.type == "error"] == []
    letters = [
        tinycss2.serialize(rule.content)
        for rule in rules
        if rule.type == "qualified-rule"
        and tinycss2.serialize(rule.prelude).strip() == "mjx-c.mjx-c1D44E.TEX-I::before"
    ]
    assert len(letters) == 1
    assert 'content: "a"' in letters[0]


def test_what_is_typeset_is_kept_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = site(tmp_path, PAGE)
    formulas.typeset(app, None)
    path = tmp_path / "html" / "book" / "page.html"
    first = path.read_text("utf-8")

    def fail(*arguments: Any) -> None:
        raise AssertionError("MathJax was asked again")

    monkeypatch.setattr(formulas, "_run", fail)
    formulas.typeset(app, None)
    assert path.read_text("utf-8") == first
    formulas.typeset(site(tmp_path, PAGE), None)
    assert path.read_text("utf-8") == first


@pytest.mark.parametrize("tex", [r"\frac{1}{", r"\unknowncommand", r"x^a^b"])
def test_a_formula_that_is_wrong_is_named_with_its_page(tmp_path: Path, tex: str) -> None:
    page = f'<html><head></head><span class="math">\\({tex}\\)</span></html>'
    app = site(tmp_path, page, "book/wrong.html")
    with pytest.raises(ExtensionError, match=r"book/wrong\.html: ") as caught:
        formulas.typeset(app, None)
    assert tex in str(caught.value)
    with pytest.raises(ExtensionError):  # what is wrong is not kept
        formulas.typeset(site(tmp_path, page, "book/wrong.html"), None)


def test_a_page_without_formulas_stays_as_it_is(tmp_path: Path) -> None:
    app = site(tmp_path, "<html><head></head><p>no formula</p></html>")
    formulas.typeset(app, None)
    path = tmp_path / "html" / "book" / "page.html"
    assert path.read_text("utf-8") == "<html><head></head><p>no formula</p></html>"


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        ("a{color:red}", "a{color:red}"),
        (".here{color:red}", ".here{color:red}"),
        (".gone{color:red}", ""),
        ("#gone a{color:red}", ""),
        (".here,.gone{color:red}", ".here{color:red}"),
        (".here.gone{color:red}", ""),
        (".here:not(.gone,.lost),p{color:red}", ".here:not(.gone,.lost),p{color:red}"),
        ('[class*="x.gone"]{color:red}', '[class*="x.gone"]{color:red}'),
        ("@media print{.gone{color:red}.here{color:red}}", "@media print{.here{color:red}}"),
        ("@media print{.gone{color:red}}", ""),
        ("/*! MIT */.gone{color:red}", "/*! MIT */"),
        ("/* why */.here{color:red}", ".here{color:red}"),
        (
            "@font-face{font-family:x;src:url(x.woff)}",
            "@font-face{font-family:x;src:url(x.woff)}",
        ),
    ],
)
def test_a_style_sheet_keeps_the_rules_that_something_may_match(css: str, kept: str) -> None:
    assert styles.used(css, {"here"}) == kept


def test_classes_that_a_script_may_set_are_known(tmp_path: Path) -> None:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.js").write_text('e.classList.add("is-open")', "utf-8")
    (tmp_path / "a.html").write_text('<p class="one two" id="three">four</p>', "utf-8")
    known = styles.words(tmp_path)
    assert {"one", "two", "three", "is-open"} <= known
    assert "four" not in known


def test_the_room_of_a_section_is_a_sum_over_what_it_shows() -> None:
    line = "x" * 60
    soup = BeautifulSoup(
        "<article><section><section>"
        f"<h2>t</h2><p>{line}</p><pre>1\n2\n3</pre>"
        f"<details><summary>s</summary><p>{line}</p></details>"
        '<img width="1376" height="200"/></section></section></article>',
        "html.parser",
    )
    content_visibility.reserve_sections(soup)
    # heading 90, one line of text 27.2 + 19, three of code 66 + 40, a folded note 60, the picture
    # at half its size 100 + 40; on a phone two lines of text, and the picture at 358 of 1376 pixels
    wide = 90 + 27.2 + 19 + 66 + 40 + 60 + 100 + 40
    narrow = wide + 27.2 - 100 + 200 * 358 / 1376
    section = soup.select_one("section section")
    assert section["style"] == f"--wide: {wide:.0f}px; --narrow: {narrow:.0f}px"
