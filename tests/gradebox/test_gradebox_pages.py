"""Graded notebooks hold nothing that runs or loads in a browser, and all that does no harm."""

import base64
import copy
import threading
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from hostile.browser import MARKS, THEIRS, visit, written
from hostile.listener import listening
from hostile.texts import rows, sections
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from notebooks import answer, cell
from traitlets.config import Config

from gradebox.feedback.formulas import rendered
from gradebox.feedback.page import FeedbackPage, tell_students
from gradebox.nbgrader.cells import headings
from gradebox.nbgrader.harmless import MAX_CHARACTERS, Harmless, harmless_html, harmless_markdown
from gradebox.nbgrader.names import absent

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]

PNG = base64.b64encode(b"\x89PNG and so on").decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>run()</script><circle r="3"/></svg>'
RUNS = '<script>run()</script><img src="x" onerror="run()">'
ATTACHED = {"a.png": {"image/png": PNG}}
PAYLOADS = rows("payloads.txt")
EXPORTER = HTMLExporter()


def tags(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the tags that a browser would act upon."""
    page = BeautifulSoup(text, "html.parser", multi_valued_attributes=None)
    return [(tag.name, tag.attrs) for tag in page.find_all(True)]


BAD_TAGS = """script style iframe object embed form svg base meta link input button textarea
video audio source track picture noscript body"""
BAD_ATTRIBUTES = "srcdoc formaction srcset poster background action ping data"


def acts(text: str) -> list[Any]:
    """Return those that run or load something, or could."""
    return [
        (tag, attrs)
        for tag, attrs in tags(text)
        if tag in BAD_TAGS.split()
        or any(name.startswith("on") or name in BAD_ATTRIBUTES.split() for name in attrs)
        or any("script:" in (value or "").lower() for value in attrs.values())
        or not attrs.get("src", "data:image/").startswith("data:image/")
        or "(" in attrs.get("style", "")
    ]


def harmless(*cells: Any) -> Any:
    """Return a notebook of cells after it was made harmless."""
    nb = copy.deepcopy(new_notebook(cells=[*cells]))  # outputs are shared by tests, and changed
    Harmless().preprocess(nb, {})
    nbformat.validate(nb)
    return nb


def display(data: dict[str, Any], **metadata: Any) -> Any:
    return new_output("display_data", data, metadata=metadata)


def everywhere(text: str) -> list[Any]:
    """Return the cells in which a student can have a text shown."""
    kinds = ["text/html", "text/markdown", "text/latex", "image/svg+xml", "text/plain"]
    locked = {"grade_id": "own", "solution": True, "locked": True, "grade": False}
    return [
        new_markdown_cell(text, attachments=ATTACHED),
        new_markdown_cell(text, metadata={"nbgrader": locked}),
        new_raw_cell(text),
        new_code_cell("x", outputs=[display({kind: text}) for kind in kinds]),
    ]


@pytest.fixture(scope="module")
def payloads() -> Iterator[tuple[str, list[str], list[list[Any]]]]:
    """Return where payloads are loaded from, who came there, and what was made of each of them."""
    with listening(f"pages-{threading.get_native_id()}") as (port, heard):
        address = f"127.0.0.1:{port}/payload"
        texts = [text.replace("URL", "http://ADDRESS") for text in PAYLOADS.values()]
        cells = [everywhere(t.replace("ADDRESS", f"{address}-{i}")) for i, t in enumerate(texts)]
        made = iter(harmless(*chain.from_iterable(cells)).cells)
        yield address, heard, [[*islice(made, len(each))] for each in cells]


@pytest.mark.parametrize("number", range(len(PAYLOADS)), ids=[*PAYLOADS])
def test_payload_in_any_place_neither_runs_nor_loads(payloads, number):
    for node in payloads[2][number]:
        if node.cell_type == "code":
            assert not acts("".join(output.data.get("text/html", "") for output in node.outputs))
            data = [output.data for output in node.outputs]
            texts = [one[kind] for one in data for kind in one if kind[5:] in ("markdown", "latex")]
        else:
            texts = [node.source]
        for source in texts:
            assert not acts(rendered(source, node.get("attachments")))
            assert not acts(EXPORTER.markdown2html({"cell": node}, source))


def test_harmless_html_and_markdown_stay_unchanged():
    for name, text in rows("harmless.txt").items():
        kept = harmless_html if name.startswith("html") else harmless_markdown
        assert kept(text.replace("PNG", PNG)) == text.replace("PNG", PNG), name


@pytest.mark.parametrize("text", ["</div></div><h1>Score</h1>", "<table><tr>", "<b><i></b></i>"])
def test_unbalanced_tags_are_shown_as_text(text):
    assert "<" not in harmless_html(text)


def test_long_html_gives_output_of_limited_length():
    for text in ("<", "<b ", "<!--", "<style", "<style>", '<td class="row1 ', "<b>", "&#", "!["):
        many = text * (20_000 // len(text))
        assert len(harmless_html(many)) < 8 * 20_000
        assert len(harmless_markdown(many)) < 8 * 20_000


PIECES = """< > </ <!-- --> " ' = / script img svg style onerror onload=run() src=x href=
javascript: b table class &lt; ` ``` $ $$ [x]( ) \\ &#106;ava &Tab; mermaid ~~~ : ! ![ ](x)
![a](attachment:a.png) ]: [a] | |-| data:image/png;base64,AA"""
pieces = st.sampled_from((*PIECES.split(), " ", "\n", "\t"))


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=30).map("".join))
def test_arbitrary_text_neither_runs_nor_loads(text):
    assert not acts(harmless_html(text))
    source = harmless_markdown(text, ATTACHED)
    assert not acts(EXPORTER.markdown2html({"cell": {"attachments": ATTACHED}}, source))


@pytest.mark.parametrize("text", ["```&Tab;", "~~~ &NewLine; \nx = 1\n~~~", "- ```&#32;\n  x"])
def test_no_text_stops_the_page_from_being_made(text):
    with pytest.raises(IndexError):
        markdown2html(text)
    assert "&amp;" in markdown2html(harmless_markdown(text))


PICTURES = ["image/png", "image/jpeg", "image/gif"]
BREAKS = '"><' + RUNS
SCRIPTS = ["application/javascript", "application/vnd.plotly.v1+json", "text/vnd.mermaid"]
DRAWING = base64.b64encode(SVG.encode()).decode()
DRAWN = f'<img alt="a drawing" src="data:image/svg+xml;base64,{DRAWING}">'


SHOWN = [
    ({"image/png": PNG, "text/plain": RUNS}, {"image/png": PNG, "text/plain": RUNS}),
    *(({kind: BREAKS}, {"text/plain": f"[left out: {kind}]"}) for kind in PICTURES),
    (dict.fromkeys(SCRIPTS, RUNS), {"text/plain": f"[left out: {', '.join(SCRIPTS)}]"}),
    ({"image/svg+xml": SVG, "image/png": PNG}, {"image/png": PNG}),
    ({"image/svg+xml": SVG}, {"text/html": DRAWN}),
    ({"text/html": "<b>" * MAX_CHARACTERS, "text/plain": "a table"}, {"text/plain": "a table"}),
]


@pytest.mark.parametrize(("data", "expected"), SHOWN)
def test_only_pictures_and_text_of_outputs_stay(data, expected):
    [node] = harmless(new_code_cell("x", outputs=[display(data)])).cells
    assert node.outputs[0].data == expected


def test_metadata_keep_only_sizes_and_kernel_names():
    size = {"image/png": {"width": 30, "height": "x"}, "text/html": {"isolated": True}}
    picture = display({"image/png": PNG, "text/html": RUNS}, **size)
    code = new_code_cell("x", metadata={"tags": ["a"], "alt": BREAKS}, outputs=[picture])
    nb = new_notebook(cells=[code], metadata={"title": BREAKS, "widgets": {"a": BREAKS}})
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": BREAKS}
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    for kernelspec, expected in ((kernel, {"kernelspec": kernel}), ({"name": BREAKS}, {})):
        nb.metadata["kernelspec"] = kernelspec
        Harmless().preprocess(nb, {})
        assert nb.metadata == expected
    assert code.metadata == {}
    assert code.outputs[0].metadata == {"image/png": {"width": 30}}


def test_the_instructors_text_is_left_alone():
    about = {"locked": True, "grade_id": "text", "solution": False, "grade": False}
    [node] = harmless(new_markdown_cell(RUNS, metadata={"nbgrader": about})).cells
    assert node.source == RUNS
    assert node.metadata.nbgrader == about


def test_only_pictures_are_attached():
    broken = {"b.png": {"text/html": RUNS}, "c.png": {"image/png": BREAKS}}
    text = "![a](attachment:a.png) ![b](attachment:b.png) ![d](attachment:d.png)"
    [node] = harmless(new_markdown_cell(text, attachments=ATTACHED | broken)).cells
    assert node.attachments == ATTACHED
    assert node.source.count("![") == 1
    page = rendered(node.source, node.attachments)
    [source] = [attrs["src"] for tag, attrs in tags(page) if tag == "img"]
    assert source == f"data:image/png;base64,{PNG}"


FORMULAS = {
    r"\tfrac12\,\lambda_i": "12λi",
    r"\mathbb{R}^n": "ℝn",
    r"\begin{aligned} a &= b \\ c &= d \end{aligned}": "a=bc=d",
    r"\begin{align} a &= b \end{align}": "a=b(1)",
    r"\text{<b>}": "<b>",
    r"\textbf{while } x": "whilex",
}


def test_a_formula_is_mathml():
    text = rendered("\n\n".join(f"$${formula}$$" for formula in FORMULAS))
    paragraphs = BeautifulSoup(text, "html.parser").find_all("p")
    for paragraph, formula in zip(paragraphs, FORMULAS, strict=True):
        assert [tag.name for tag in paragraph.find_all(recursive=False)] == ["math"], formula
        assert "".join(paragraph.text.split()) == FORMULAS[formula]


def test_every_formula_of_the_course_is_typeset():
    notebooks = [nbformat.read(path, 4) for path in (ROOT / "solutions").glob("*/*.ipynb")]
    cells = [node for nb in notebooks for node in nb.cells if node.cell_type == "markdown"]
    page = BeautifulSoup(rendered("\n\n".join(node.source for node in cells)), "html.parser")
    assert len(page.find_all("math")) > 400
    for tag in page.find_all("code"):
        assert not tag.text.startswith("$"), tag.text
    for tag in page.find_all(["math", "pre", "code"]):
        tag.decompose()
    assert "$" not in page.text


HOSTILE_FORMULAS = {
    "a link": r"\href{javascript:run()}{x}",
    "a style": r"\style{position:fixed}{x}",
    "a script": r"\text{</mtext></math><script>run()</script>}",
    "a colour with a quote": r"\color{red\" onclick=\"run()}x",
    "over the page": r"\hspace{4000em}x",
    "over what stands before": r"\hspace{-90em}x",
    "a macro without an end": r"\newcommand{\a}{\a\a}\a",
    "too deep": r"\sqrt{" * 800 + "x" + "}" * 800,
    "years of work": "(" * 60,
    "no formula": r"\frac{",
    "half a character": "x\ud800",
    "two lines": "x\ny",
    "very long": "x " * 100_000,
}


ALONE = "too deep", "years of work"  # what follows them may be left as it is
TOGETHER = [formula for name, formula in HOSTILE_FORMULAS.items() if name not in ALONE]


@pytest.mark.parametrize(
    "formulas", [TOGETHER, *([HOSTILE_FORMULAS[name]] for name in ALONE)], ids=["together", *ALONE]
)
def test_no_formula_harms_the_page_or_its_making(formulas):
    texts = [f"$x$ $${formula}$$ and ${formula}$\n\n" for formula in formulas]
    page = rendered("".join(texts) + "$z$")
    assert page.count("<p><math><mi>x</mi></math>") == len(formulas)
    assert "<mi>z</mi>" in page or formulas is not TOGETHER
    assert not acts(page)
    for _, attrs in tags(page):
        assert not {"href", "onclick", "class", "id"} & {*attrs}
        assert "em" not in attrs.get("width", "") + attrs.get("style", "")


HIDDEN = (
    "assert near(2) == 4\n"
    "### BEGIN HIDDEN TESTS\nassert near(9, seed=731) == 81\n### END HIDDEN TESTS"
)
NEAR = "def near(x): return x"


def a_notebook(given: str, *outputs: Any, fails: Any = None) -> Any:
    """Return a graded notebook with an exercise, its answer, and a test with what it showed."""
    cells = [new_markdown_cell("## 2 · *Near* $x$"), answer(given), cell("test", HIDDEN, 2)]
    cells[1].outputs = [fails] if fails else []
    cells[2].outputs = [*outputs]
    return copy.deepcopy(new_notebook(cells=cells))  # outputs are shared by tests, and changed


def error(summary: str, traceback: str = "") -> Any:
    ename, _, evalue = summary.partition(": ")
    return new_output("error", ename=ename, evalue=evalue, traceback=[traceback])


FAILURES = []
"""Errors of tests, each with what a student is told."""
for _summary, _text in sections("tracebacks.txt").items():
    _traceback, _told = _text.replace("ESC", "\x1b").split("\nSAYS ")
    FAILURES.append((error(_summary.replace("HOME", str(Path.home())), _traceback), _told))
(VISIBLE, _), (UNSEEN, _), (OF_A_KERNEL, _), _ = FAILURES


def told(nb: Any, number: int = 2) -> str:
    tell_students(nb, lambda source: source.split("### BEGIN")[0])
    return "\n".join(nb.cells[number].outputs[0].traceback)


NO = error("SyntaxError: no")
MISSING: dict[str, tuple[Any, str]] = {
    "def my_near(x): return x": (None, "was not found. Did you rename it?"),
    "def nearr(x): return x": (None, "Your notebook has `nearr`."),
    "x = 1": (None, "Did you rename or delete it?"),
    "def near(x) return": (NO, "the cell that defines it ends with an"),
}


@pytest.mark.parametrize("given", MISSING)
def test_missing_function_is_named_instead_of_nameerror(given):
    fails, expected = MISSING[given]
    another = a_notebook("def near(x): return y", error("NameError: name 'y' is not defined", "x"))
    assert absent(another) == {}
    nb = a_notebook(given, error("NameError: name 'near' is not defined", "File"), fails=fails)
    [missing] = absent(nb).values()
    assert (missing.name, missing.failed) == ("near", fails is not None)
    assert bool(missing.guess) == ("near" in given and fails is None)
    said = told(nb)
    assert "The function `near` " in said
    assert expected in said
    assert "File" not in said


@pytest.mark.parametrize(("output", "expected"), FAILURES, ids=["seen", "hidden", "cell", "own"])
def test_failed_test_shows_neither_frames_nor_hidden_code(output, expected):
    assert told(a_notebook(NEAR, output)) == expected


def test_student_error_shows_only_the_students_frames():
    said = told(a_notebook("near", VISIBLE, fails=OF_A_KERNEL), 1)
    assert "return open(x)" in said
    assert "ValueError: no data" in said
    assert "secret" not in said
    assert "/usr" not in said


def test_titles_come_from_heading_or_cell_name():
    nb = a_notebook("x")
    assert headings(nb) == dict.fromkeys(("answer", "test"), "2 · Near x")
    nb.cells.pop(0)
    assert headings(nb) == {"answer": "answer", "test": "test"}


def a_page(nb: Any, **settings: Any) -> BeautifulSoup:
    for node in nb.cells:
        if node.metadata.get("nbgrader", {}).get("grade"):
            node.metadata.nbgrader.score = 0.0 if node.get("outputs") else 2.0
    config = Config({"FeedbackPage": settings, "HTMLExporter": {"template_name": "feedback"}})
    text, _ = FeedbackPage(config=config).from_notebook_node(nb, {"nbgrader": MARKS})
    return BeautifulSoup(text, "html.parser")


def test_a_page_names_its_exercises_and_comments():
    nb = a_notebook(NEAR, UNSEEN)
    nb.cells[1].metadata.nbgrader.comment = "See $x$."
    page = a_page(nb)
    assert page.h1.text == "toy: 0 of 2 points"
    [row] = page.select("#index tbody tr")
    unseen = "A check fails that is not shown here."
    assert [data.text for data in row.find_all("td")] == ["2 · Near x", unseen, "0/2"]
    assert page.find(id=row.a["href"].removeprefix("#")) is not None
    assert [tag.text for tag in page.h2.find_all("math")] == ["x"]
    assert page.find(id=page.p.a["href"].removeprefix("#")).math.text == "x"


@pytest.mark.parametrize("shown", [False, True])
def test_hidden_tests_are_shown_only_if_configured(shown):
    quoting = f"{NEAR}  # without ### BEGIN HIDDEN TESTS"
    page = a_page(a_notebook(quoting, UNSEEN), show_hidden_tests=shown)
    assert ("731" in page.text) == shown
    assert page.text.count("BEGIN HIDDEN") == 1 + shown
    assert ("Hidden checks run here" in page.text) != shown
    assert "near(2)" in page.text


def test_cells_of_one_exercise_share_an_index_row():
    nb = a_notebook(NEAR, VISIBLE, fails=error("ValueError: no `x`", "print('`')"))
    nb.cells.append(cell("more", "near('`')", 3))
    nb.cells[-1].outputs = [error("E", "  File \"<test cell 3>\", line 1\n    near('`')\nE")]
    page = a_page(nb)
    rows = page.select("#index tbody tr")
    said = [tag.text for tag in page.select(".reason code, .output_error code")]
    assert said == [*["assert near(2) == 4"] * 2, "near('`')"]  # and nothing of the student's own
    assert [row.find_all("td")[2].text for row in rows] == ["0/5"]
    assert [row.a["href"] for row in rows] == ["#test"]


@pytest.fixture(scope="module", params=[(), pytest.param(THEIRS, marks=pytest.mark.slow)])
def visits(request: Any, browser: Any, payloads: Any, tmp_path_factory: Any) -> Any:
    """Return what pages with all payloads do in a browser, and one of ours, and who came."""
    folder, (address, heard, cells) = tmp_path_factory.mktemp("pages"), payloads
    # the texts of answers are once more what other texts are
    nb = copy.deepcopy(new_notebook(cells=[*chain.from_iterable((c[0], *c[2:]) for c in cells)]))
    paths = [*written(folder, nb, request.param), folder / "toy.html"]
    locked = f"<img src='http://{address}'>\n\n![x](http://{address})\n\n"
    nb = a_notebook(NEAR, VISIBLE)
    nb.cells.insert(1, new_markdown_cell(locked + "$$\\frac{1}{1+\\frac{1}{x}}$$"))
    paths[-1].write_text(str(a_page(nb)), encoding="utf-8")
    return visit(browser, paths, HEIGHTS), heard


HEIGHTS = "[...document.querySelectorAll('mfrac')].map(e => e.getBoundingClientRect().height)"


def test_no_payload_runs_or_loads_in_a_browser(visits):
    *pages, own = visits[0]
    assert not [visit.ran for visit in visits[0] if visit.ran]
    payloads = "payload", "beside", "hostname", "attachment"
    assert not [url for visit in pages for url in visit.asked if any(p in url for p in payloads)]
    # ours loads nothing of the instructor's either
    assert pages[-1].asked == own.asked == []
    assert visits[1] == []


def test_nested_fraction_is_lower_than_the_outer(visits):
    outer, inner = visits[0][-1].result  # as the browser has laid it out
    assert outer > inner > 5
