"""Pages show typeset formulas, what the book corrects after Sphinx, and what the API has."""

import re
import sys

import pytest
from bs4 import BeautifulSoup

from tools.layout import ROOT

sys.path.append(str(ROOT / "book" / "_ext"))

from api import shortened, source, summary

pytestmark = pytest.mark.xdist_group("toy")

FACTS = {
    "details.dropdown > summary": ["Answer"],
    "details.hide > summary:not([aria-label]) > p.collapsed": ["Imports of this page"],
    ".together": ["a<1b,"],  # no line begins with the comma
    "td.head, td.stub": [""],  # the empty corner of a table heads nothing
    "th": ["size"],
    "dt .sig-line": ["sigma: float, ", "*, ", "names: str = 'all of the names', "],
    "dt .sig-name": ["Adam", "mask_rows", "standard_error"],
    ".function > dt :is(dl, em, .pre, .n, .p)": [],
    # at its first mention alone
    ".cell_input a[href='api.html#optdl.erm.standard_error']": ["standard_error"],
    "img[width='96'][height='48']:not([loading])": [""],  # 72 points are 96 pixels
    "img[width='72'][height='36'][loading=lazy]": [""],
    "math > mfrac > *": ["1", "b"],
    "math[display=block]:has(munderover)": ["{∑i=1nxi\xa0fn}"],
    ".math mjx-math:not([aria-hidden=true])": [],
}
"""What selectors find in the articles of two pages."""


def test_rendered_page_has_corrected_markup(toy_site):
    texts = [(toy_site / "book" / f"{name}.html").read_text("utf-8") for name in ("sheets", "api")]
    articles = [BeautifulSoup(text, "html.parser").article for text in texts]
    found = {
        selector: [tag.get_text() for article in articles for tag in article.select(selector)]
        for selector in FACTS
    }
    assert found == FACTS


def test_the_search_reads_formulas(toy_site):
    words = (toy_site / "_static" / "searchtexts.js").read_text("utf-8")
    assert "If a < 1/b, then {∑_i=1ⁿxᵢ fn}" in words


def test_the_style_sheet_has_each_letter(toy_site):
    css = (toy_site / "_static" / "math" / "math.css").read_text("utf-8")
    pages = "".join(page.read_text("utf-8") for page in toy_site.glob("book/**/*.html"))
    letters = set(re.findall(r"mjx-c[0-9A-F]+", pages))
    assert [name for name in letters if f".{name}" not in css] == []
    assert ".mjx-c1D6FC" not in css  # there is no alpha on any page


@pytest.mark.parametrize(
    ("shown", "of", "expected"),
    [
        (shortened, "(x: ~jaxtyping.Float[ndarray, 'm d'])", '(x: Float["m d"])'),
        (shortened, "~jaxtyping.Float[Tensor, ' m'] | None", 'Float[Tensor, "m"] | None'),
        (shortened, "~collections.abc.Callable[[...], ~numpy.ndarray]", "Callable[..., ndarray]"),
        (shortened, "~optdl.erm.Loss, ~typing.Literal['a']", "~optdl.erm.Loss, Literal['a']"),
        (shortened, "(f: A = <function f>, c: B = <class 'x.C'>)", "(f: A = f, c: B = C)"),
        (shortened, "(f: A = <optdl.x.Y object>, n: int = 1)", "(f: A = ..., n: int = 1)"),
        # a constant that a package imports only when it is asked for; the name of a module, too
        (summary, "optdl.batchnorm.NORMALIZATIONS", "What ``optdl.networks`` takes as "),
        (summary, "optdl.checks.summary", "Print for each exercise of the notebook what "),
        (source, "optdl.optimizers.Adam", "src/optdl/optimizers/adam.py#L"),
    ],
)
def test_signatures_summaries_and_sources_are_shown(shown, of, expected):
    text = shown(of)
    assert (text == expected) if shown is shortened else text.startswith(expected)
