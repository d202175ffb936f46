"""Pages show typeset formulas, and what the book corrects in the pages that Sphinx writes."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace

from tools.layout import ROOT

sys.path.append(str(ROOT / "book" / "_ext"))

import formulas

PAGE = r"""---
file_format: mystnb
kernelspec: {name: python3, display_name: Python, language: python}
---
# A title

If $a < \frac{1}{b}$, then

$$\left\{\sum_{i=1}^n x_i \text{ f} n\right\}$$
```{admonition} Answer
:class: dropdown
Two.
```
|  | value |
| --- | --- |
| a | 1 |

![One.](a.svg) ![Two.](b.svg)
```{py:function} optdl.erm.loss(x: int, *, names: str = "all") -> float
Words.
```
```{code-cell}
:tags: [setup, hide-input]
from optdl.erm import loss
loss(x.loss, loss=2)
```
"""
FACTS = {
    "details.dropdown > summary": ["Answer"],
    "details.hide > summary:not([aria-label]) > p.collapsed": ["Imports of this page"],
    ".together": ["a<1b,"],  # no line begins with the comma
    "td.head, td.stub": [""],  # the empty corner of a table heads nothing
    "th": ["value"],
    "dt .sig-line": ["x: int, ", "*, ", "names: str = 'all', "],
    "dt .sig-name": ["loss"],
    "dt :is(dl, em, .pre, .n, .p)": [],
    ".cell_input a[href='#optdl.erm.loss']": ["loss"],  # at its first mention alone
    "img[width='96'][height='48']:not([loading])": [""],  # 72 points are 96 pixels
    "img[width='72'][height='36'][loading=lazy]": [""],
    "math > mfrac > *": ["1", "b"],
    "math[display=block]": ["{∑i=1nxi\xa0fn}"],
    ".math mjx-math:not([aria-hidden=true])": [],
}
"""What selectors find on the page."""
SVG = '<svg xmlns="http://www.w3.org/2000/svg" {} viewBox="0 0 72 36"/>'
FILES = {
    "conf.py": """
extensions = "myst_nb sphinx.ext.autodoc elements article formulas reading api".split()
myst_enable_extensions, nb_execution_mode = ["dollarmath"], "off"
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}  # its default outlives a build
python_maximum_signature_line_length, html_math_renderer = 20, "formulas"
html_static_path = ["css"]
""",
    "css/styles/bootstrap.css": ".a {}",
    "css/styles/pydata-sphinx-theme.css": ".b {}",
    "index.md": PAGE,
    "a.svg": SVG.format('width="72pt"'),
    "b.svg": SVG.format(""),
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    with docutils_namespace():
        Sphinx(folder, folder, folder / "html", folder, "html").build()
    return folder / "html"


def test_rendered_page_has_corrected_markup(out: Path) -> None:
    page = BeautifulSoup((out / "index.html").read_text("utf-8"), "html.parser")
    assert {key: [tag.get_text() for tag in page.select(key)] for key in FACTS} == FACTS
    assert ".a {}\n.b {}" in (out / "_static" / "site.css").read_text("utf-8")


def test_the_search_reads_formulas(out: Path) -> None:
    words = (out.parent / "words" / "index.json").read_text("utf-8")
    assert "If a < 1/b, then {∑_i=1ⁿxᵢ fn}" in words


def test_the_style_sheet_has_each_letter(out: Path) -> None:
    css = (out / "_static" / "math" / "math.css").read_text("utf-8")
    letters = set(re.findall(r"mjx-c[0-9A-F]+", (out / "index.html").read_text("utf-8")))
    assert [name for name in letters if f".{name}" not in css] == []
    assert ".mjx-c1D6FC" not in css  # there is no alpha on the page


def test_a_wrong_formula_is_named_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [r"\frac{1}{", r"\unknowncommand", r"x^a^b"]
    env = SimpleNamespace(metadata={"page": {"formulas": [f"inline {tex}" for tex in wrong]}})
    monkeypatch.setattr(formulas, "shown", {})
    book = SimpleNamespace(env=env, outdir=tmp_path, srcdir=tmp_path)
    for _ in range(2):  # it is not kept
        with pytest.raises(ExtensionError, match=r"page\.md: ERROR: ") as raised:
            formulas.typeset(book, None)
        assert [tex for tex in wrong if tex not in str(raised.value)] == []
