"""Graded notebooks hold nothing that runs in a browser, and all that does no harm."""

import base64
import copy
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup
from hostile import browser
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.filters import markdown2html
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from notebooks import answer, cell
from traitlets.config import Config

from gradebox.feedback.formulas import mathml, rendered
from gradebox.feedback.messages import tell_students, titles
from gradebox.feedback.page import FeedbackPage
from gradebox.nbgrader.absent import absent
from gradebox.nbgrader.harmless import LONGEST, harmless_html, harmless_markdown, make_harmless

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]

PNG = base64.b64encode(b"\x89PNG and so on").decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>run()</script><circle r="3"/></svg>'
RUNS = '<script>run()</script><img src="x" onerror="run()">'


def tags(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the tags that a browser would act upon."""
    page = BeautifulSoup(text, "html.parser", multi_valued_attributes=None)
    return [(tag.name, tag.attrs) for tag in page.find_all(True)]


def acts(text: str) -> list[Any]:
    """Return those that run something, or could."""
    bad = {"script", "style", "iframe", "object", "embed", "form", "svg", "math", "base", "meta"}
    bad |= {"link", "input", "button", "textarea"}
    return [
        (tag, attrs)
        for tag, attrs in tags(text)
        if tag in bad
        or any(name.startswith("on") or name in ("srcdoc", "formaction") for name in attrs)
        or any("script:" in (value or "").lower() for value in attrs.values())
    ]


KEPT = {
    "a table of pandas": '<div>\n<table border="1" class="dataframe">\n<thead>\n'
    '<tr style="text-align: right;">\n<th></th>\n<th>a</th></tr></thead>'
    '<tbody><tr><td colspan="2">1 &lt; 2</td></tr></tbody></table>\n<p>1 rows</p></div>',
    "simple tags": "<b>bold</b><br><i>x</i><sub>2</sub><hr/>",
    "a picture": f'<img alt="one" src="data:image/png;base64,{PNG}" width="30">',
    "a link": '<a href="https://example.org/a?b=c#d">x</a><a href="#here">y</a>',
    "colours": '<span style="color: #ff0000; font-weight: bold">x</span>',
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_does_no_harm_stays_as_it_is(text: str) -> None:
    assert harmless_html(text) == text


HARM = {
    "a script": "<script>run()</script>",
    "a script in capitals": "<SCRIPT src=x></SCRIPT>",
    "a script without an end": "<b>x</b><script>run()",
    "a handler": '<img src=x onerror="run()">',
    "a handler without a space": '<img src="data:image/png;base64,"onerror="run()">',
    "a handler after a slash": "<b/onclick=run()>x</b>",
    "a drawing": "<svg onload=run()>",
    "a link to a script": '<a href="javascript:run()">x</a>',
    "a frame": "<iframe srcdoc='&lt;script&gt;run()'></iframe>",
    "a form": "<form><button formaction=javascript:run()>x</button></form>",
    "a style of its own": '<div style="background: url(javascript:run())">x</div>',
    "a place over the page": '<div style="position:fixed;top:0">Score: 11</div>',
    "a tag in a tag": "<<script>script>run()<</script>/script>",
    "a comment": "<!--><script>run()</script>-->",
    "a quote": '<b title="a" "><script>run()</script>">x</b>',
    "a null": "<scr\0ipt>run()</script>",
    "a text field": "<textarea><img src='</textarea><img src=x onerror=run()>'>",
    "a formula": "<math><style><img src=x onerror=run()></style></math>",
}


@pytest.mark.parametrize("text", HARM.values(), ids=HARM)
def test_what_runs_is_only_text(text: str) -> None:
    assert not acts(harmless_html(text))
    assert not acts(markdown2html(harmless_markdown(text)))


@pytest.mark.parametrize("text", ["</div></div><h1>Score</h1>", "<table><tr>", "<b><i></b></i>"])
def test_tags_that_move_what_follows_are_shown(text: str) -> None:
    assert "<" not in harmless_html(text)


def test_long_html_costs_no_time() -> None:
    for text in ("<", "<b ", "<!--", "<style", "<style>", '<td class="row1 ', "<b>", "&#"):
        many = text * (LONGEST // len(text))
        assert len(harmless_html(many)) < 8 * LONGEST
        assert len(harmless_markdown(many)) < 8 * LONGEST


PIECES = """< > </ <!-- --> " ' = / script img svg style onerror onload=run() src=x href=
javascript: b table class &lt; ` ``` $ $$ [x]( ) \\ &#106;ava &Tab; mermaid ~~~ :"""
pieces = st.sampled_from((*PIECES.split(), " ", "\n", "\t"))


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=30).map("".join))
def test_no_text_becomes_a_tag_that_runs(text: str) -> None:
    assert not acts(harmless_html(text))
    assert not acts(markdown2html(harmless_markdown(text)))


@pytest.mark.parametrize(
    "text",
    [
        "**bold**, `code`, $a < b$ and a < b",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "$$\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}$$",
        "H<sub>2</sub>O<br>and <b>more</b>",
        "[a link](https://example.org) and a script of mine",
        "> a quote\n\n```python\nif a <b: pass\n```".replace("<b", "< b"),
    ],
)
def test_markdown_stays_as_it_is(text: str) -> None:
    assert harmless_markdown(text) == text


@pytest.mark.parametrize("text", ["```&Tab;", "~~~ &NewLine; \nx = 1\n~~~", "- ```&#32;\n  x"])
def test_no_text_stops_the_page_from_being_made(text: str) -> None:
    with pytest.raises(IndexError):
        markdown2html(text)
    assert "&amp;" in markdown2html(harmless_markdown(text))
    assert harmless_markdown(harmless_markdown(text)) == harmless_markdown(text)


LINKS = [
    "[x](javascript:run())",
    "[x]( JaVaScRiPt:run())",
    "[x](<javascript:run()>)",
    "[x](&#106;avascript:run())",
    "[x](java&Tab;script:run())",
    "[x](javascript&colon;run())",
    "[x](javascript\\:run())",
    "[x](&amp;#106;avascript:run())",
    "![x](javascript:run())",
    "[x][y]\n\n[y]: javascript:run()",
    "<javascript:run()>",
    "~~~\n[x](v&#98;script:run())\n~~~~\n~~~~~\n",
]


@pytest.mark.parametrize("text", LINKS)
def test_links_run_nothing(text: str) -> None:
    page = markdown2html(harmless_markdown(text))
    links = [attrs.get("href") or attrs.get("src") or "" for _, attrs in tags(page)]
    schemes = [link.split(":")[0].strip().lower() for link in links if ":" in link]
    assert not {"javascript", "vbscript"} & {*schemes}


def cleaned(*outputs: Any) -> Any:
    nb = new_notebook(cells=[new_code_cell("x", outputs=list(outputs))])
    make_harmless(nb)
    nbformat.validate(nb)
    return nb.cells[0]


def display(data: dict[str, Any], **metadata: Any) -> Any:
    return new_output("display_data", data, metadata=metadata)


PICTURES = ["image/png", "image/jpeg", "image/gif"]
BREAKS = '"><' + RUNS
SCRIPTS = ["application/javascript", "application/vnd.plotly.v1+json", "text/vnd.mermaid"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"image/png": PNG, "text/plain": RUNS}, {"image/png": PNG, "text/plain": RUNS}),
        *(({kind: BREAKS}, {"text/plain": f"[left out: {kind}]"}) for kind in PICTURES),
        (dict.fromkeys(SCRIPTS, RUNS), {"text/plain": f"[left out: {', '.join(SCRIPTS)}]"}),
        ({"image/svg+xml": SVG, "image/png": PNG}, {"image/png": PNG}),
        ({"text/html": "<b>" * LONGEST, "text/plain": "a table"}, {"text/plain": "a table"}),
    ],
)
def test_pictures_and_text_stay_and_the_rest_goes(data: Any, expected: Any) -> None:
    [output] = cleaned(display(data)).outputs
    assert output.data == expected


def test_metadata_of_outputs_are_sizes() -> None:
    size = {"image/png": {"width": 30, "height": "x"}, "text/html": {"isolated": True}}
    [output] = cleaned(display({"image/png": PNG, "text/html": RUNS}, **size)).outputs
    assert output.metadata == {"image/png": {"width": 30}}
    assert not acts(output.data["text/html"])


def test_a_drawing_becomes_a_picture() -> None:
    [output] = cleaned(display({"image/svg+xml": SVG, "text/plain": "x"})).outputs
    assert not acts(output.data["text/html"])
    coded = output.data["text/html"].split("base64,")[1].split('"')[0]
    assert base64.b64decode(coded).decode() == SVG
    assert harmless_html(output.data["text/html"]) == output.data["text/html"]


def test_metadata_hold_no_page() -> None:
    breaks = f'"><{RUNS}'
    code = new_code_cell("x", metadata={"tags": ["a"], "alt": breaks, "deletable": False})
    nb = new_notebook(cells=[code], metadata={"title": breaks, "widgets": {"a": breaks}})
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": breaks}
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nb.metadata["kernelspec"] = kernel
    make_harmless(nb)
    assert nb.metadata == {"kernelspec": kernel}
    assert code.metadata == {"deletable": False}


def test_answers_are_cleaned_and_the_instructors_text_is_not() -> None:
    about = {"locked": True, "grade_id": "text"}
    cells = [
        new_markdown_cell(RUNS),
        new_raw_cell(RUNS),
        new_markdown_cell(RUNS, metadata={"nbgrader": about}),
    ]
    nb = new_notebook(cells=cells)
    make_harmless(nb)
    assert not acts(nb.cells[0].source + nb.cells[1].source)
    assert nb.cells[2].source == RUNS
    assert nb.cells[2].metadata.nbgrader == about


def test_only_pictures_are_attached() -> None:
    attachments = {
        "a.png": {"image/png": PNG},
        "b.png": {"text/html": RUNS},
        "c.png": {"image/png": f'"><{RUNS}'},
    }
    text = "![a](attachment:a.png) ![b](attachment:b.png) ![d](attachment:d.png)"
    nb = new_notebook(cells=[new_markdown_cell(text, attachments=attachments)])
    make_harmless(nb)
    assert nb.cells[0].attachments == {"a.png": {"image/png": PNG}}
    assert nb.cells[0].source.count("(attachment:") == 1
    nbformat.validate(nb)


def test_it_is_done_once_and_for_all(rng: np.random.Generator) -> None:
    texts = [*HARM.values(), *LINKS, *KEPT.values()]
    nb = new_notebook(cells=[new_markdown_cell(text) for text in rng.permutation(texts).tolist()])
    nb.cells.append(new_code_cell("x", outputs=[display({"text/html": t}) for t in texts]))
    make_harmless(nb)
    once = nbformat.writes(nb)
    make_harmless(nb)
    assert nbformat.writes(nb) == once


# --- formulas


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"x < \pi", "x<π"),
        (r"\tfrac12\,\lambda_i", "12λi"),
        (r"\mathbb{R}^n", "ℝn"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a=bc=d"),
        (r"\text{<b>}", "<b>"),
        (r"\textbf{while } x", "whilex"),
    ],
)
def test_a_formula_is_mathml(formula: str, text: str) -> None:
    page = BeautifulSoup(mathml(formula), "html.parser")
    assert [tag.name for tag in page.find_all(recursive=False)] == ["math"]
    assert "".join(page.text.split()) == text


ASSIGNMENTS = sorted((ROOT / "solutions").glob("*/*.ipynb"))


@pytest.mark.parametrize("path", ASSIGNMENTS, ids=lambda path: path.stem)
def test_every_formula_of_the_course_is_typeset(path: Path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    text = "\n\n".join(node.source for node in cells if node.cell_type == "markdown")
    page = BeautifulSoup(rendered(text), "html.parser")
    assert len(page.find_all("math")) > (0 if path.stem == "lab" else 5)
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
    "over the page": r"\hspace{-90em}\hspace{4000em}x",
    "a macro without an end": r"\newcommand{\a}{\a\a}\a",
    "too deep": r"\sqrt{" * 800 + "x" + "}" * 800,
    "years of work": "(" * 60,
    "no formula": r"\frac{",
    "half a character": "x\ud800",
    "two lines": "x\ny",
    "very long": "x " * 100_000,
}


@pytest.mark.parametrize("formula", HOSTILE_FORMULAS.values(), ids=HOSTILE_FORMULAS)
def test_no_formula_harms_the_page_or_its_making(formula: str) -> None:
    for block in (True, False):
        page = mathml(formula, block)
        found = tags(page)
        assert found[0][0] in ("math", "code")
        assert not [attrs for _, attrs in found if {"href", "onclick", "class", "id"} & {*attrs}]
        assert not [one for one in acts(page) if one[0] != "math"]
        widths = [float(attrs["width"].strip("em")) for _, attrs in found if attrs.get("width")]
        assert all(-10 < width < 100 for width in widths)
    assert mathml("x") == "<math><mi>x</mi></math>"


FORMULA_PIECES = r"""\frac \sqrt { } ( ) [ ] \left \right \text{ ^ _ & \\ x 1 < > " ' $ \href
\color{red} \hspace{9em} \begin{array} \end{array} \mathbf \hat \\[ \tag \label{a} # % ~ \
<script> </math> onclick=run()"""
formula_pieces = st.sampled_from(FORMULA_PIECES.split())


@settings(max_examples=200, deadline=None)
@given(st.lists(formula_pieces, max_size=12).map(" ".join))
def test_no_formula_becomes_a_tag_that_runs(formula: str) -> None:
    page = mathml(formula)
    assert not [one for one in acts(page) if one[0] != "math"]


# --- what students are told


HIDDEN = (
    "assert near(2) == 4\n"
    "### BEGIN HIDDEN TESTS\nassert near(9, seed=731) == 81\n### END HIDDEN TESTS"
)


def a_notebook(given: str, *outputs: Any, test: str = HIDDEN, fails: Any = None) -> Any:
    """Return a graded notebook with an exercise, its answer, and a test with what it showed."""
    cells = [
        new_markdown_cell("## 2 · *Near* $x$"),
        answer(given),
        cell("test", test, 2),
    ]
    cells[1].outputs = [fails] if fails else []
    cells[2].outputs = [*outputs]
    return copy.deepcopy(new_notebook(cells=cells))  # outputs are shared by tests, and changed


def error(ename: str, evalue: str, *traceback: str) -> Any:
    return new_output("error", ename=ename, evalue=evalue, traceback=list(traceback))


def released(source: str) -> str:
    return source.split("### BEGIN")[0]


def told(nb: Any) -> str:
    tell_students(nb, released)
    return "\n".join(nb.cells[2].outputs[0].traceback)


NOT_DEFINED = error(
    "NameError",
    "name 'near' is not defined",
    "Traceback (most recent call last):",
    '  File "/opt/grader/gradebox/workers/tester.py", line 137, in run',
    '  File "<test cell 2>", line 1, in <module>',
    "    assert near(2) == 4",
    "NameError: name 'near' is not defined",
)


@pytest.mark.parametrize(
    ("given", "fails", "expected"),
    [
        ("def my_near(x): return x", None, "was not found. Did you rename it?"),
        ("def nearr(x): return x", None, "Your notebook has `nearr`."),
        ("x = 1", None, "Did you rename or delete it?"),
        ("def near(x) return", error("SyntaxError", "no"), "the cell that defines it ends with an"),
    ],
)
def test_a_missing_function_is_told_as_such(given: str, fails: Any, expected: str) -> None:
    nb = a_notebook(given, NOT_DEFINED, fails=fails)
    [missing] = absent(nb).values()
    assert (missing.name, missing.failed) == ("near", fails is not None)
    assert bool(missing.guess) == ("near" in given and fails is None)
    said = told(nb)
    assert "The function `near` " in said
    assert expected in said
    assert not {"Traceback", "File", "/opt"} & {*said.replace('"', " ").split()}


def test_a_name_error_of_an_answer_is_no_missing_function() -> None:
    nb = a_notebook("def near(x): return y", error("NameError", "name 'y' is not defined", "x"))
    assert absent(nb) == {}


VISIBLE = error(
    "AssertionError",
    "",
    "Traceback (most recent call last):",
    '  File "<test cell 2>", line 1, in <module>',
    "    assert near(2) == 4",
    "           ^^^^",
    "AssertionError",
)
UNSEEN = error(
    "AssertionError",
    "off by 3",
    "Traceback (most recent call last):",
    '  File "<test cell 2>", line 3, in <module>',
    "    assert near(9, seed=731) == 81",
    '  File "/usr/lib/python3/numpy/testing.py", line 31, in f',
    "AssertionError: off by 3",
)
OF_A_KERNEL = error(
    "ValueError",
    f"no {Path.home()}/course/submitted/ada/data.csv",
    "\x1b[31m-----\x1b[0m",
    "ValueError                                Traceback (most recent call last)",
    "Cell \x1b[32mIn[3]\x1b[39m, line 1\n\x1b[32m----> 1\x1b[39m assert near(2) == 4\n",
    "Cell In[2], line 2, in near(x)\n      1 def near(x):\n----> 2     return open(x)\n",
    "File /usr/lib/python3/io.py:310, in open(x)\n    309 # secret\n--> 310 raise\n",
    "ValueError: no data",
)


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (VISIBLE, ["✗ `assert near(2) == 4` fails.", "", "AssertionError"]),
        (UNSEEN, ["✗ A check fails that is not shown here.", "", "AssertionError: off by 3"]),
        (OF_A_KERNEL, ["✗ `assert near(2) == 4` fails.", "", "ValueError: no …/data.csv"]),
        (error("CheckFailed", "", "✗ not right", "  got = 2"), ["✗ not right", "  got = 2"]),
    ],
    ids=["visible", "hidden", "a kernel's", "a check's own"],
)
def test_a_failed_test_shows_no_frames_and_no_hidden_code(output: Any, lines: list[str]) -> None:
    nb = a_notebook("def near(x): return x", output)
    assert told(nb).splitlines() == lines


def test_an_error_of_the_student_keeps_the_students_frames() -> None:
    nb = a_notebook("near", VISIBLE, fails=OF_A_KERNEL)
    tell_students(nb, released)
    said = "\n".join(nb.cells[1].outputs[0].traceback)
    assert "return open(x)" in said
    assert "ValueError: no data" in said
    assert "secret" not in said
    assert "/usr" not in said


def test_titles() -> None:
    nb = a_notebook("x", test='check("L1-26", near, seed=731)')
    assert titles(nb, r'check\("([^"]+)", (\w+)') == {"test": "L1-26 near"}
    assert titles(nb) == {"test": "2 · Near x"}
    nb.cells.pop(0)
    assert titles(nb) == {"test": "test"}


# --- the page


def a_page(nb: Any, **settings: Any) -> BeautifulSoup:
    """Return the page of a notebook whose scores are known."""
    for node in nb.cells:
        if node.metadata.get("nbgrader", {}).get("grade"):
            node.metadata.nbgrader.score = 0.0 if node.get("outputs") else 2.0
    config = Config({"FeedbackPage": settings, "HTMLExporter": {"template_name": "feedback"}})
    marks = {"notebook": "toy", "score": 0.0, "max_score": 2.0, "late_penalty": 0}
    text, _ = FeedbackPage(config=config).from_notebook_node(nb, {"nbgrader": marks})
    return BeautifulSoup(text, "html.parser")


def test_a_page_loads_nothing_and_names_its_exercises() -> None:
    page = a_page(a_notebook("def near(x): return x", UNSEEN))
    assert not page.find_all(["script", "link", "iframe"])
    assert not [tag for tag in page.find_all(src=True) if not tag["src"].startswith("data:")]
    assert page.h1.text == "toy: 0 of 2 points"
    [row] = page.select("#index tbody tr")
    assert [data.text for data in row.find_all("td")] == [
        "2 · Near x",
        "A check fails that is not shown here.",
        "0/2",
    ]
    assert page.find(id=row.a["href"].removeprefix("#")) is not None
    assert [tag.text for tag in page.h2.find_all("math")] == ["x"]


@pytest.mark.parametrize("shown", [False, True])
def test_hidden_tests_are_shown_only_where_it_is_asked_for(shown: bool) -> None:
    page = a_page(a_notebook("def near(x): return x", UNSEEN), show_hidden_tests=shown)
    assert ("731" in page.text) == shown
    assert ("BEGIN HIDDEN" in page.text) == shown
    assert ("Hidden checks run here" in page.text) != shown
    assert "near(2)" in page.text


def test_cells_of_an_exercise_share_a_line_of_the_index() -> None:
    nb = a_notebook("def near(x): return x", VISIBLE)
    nb.cells.append(cell("more", "near(1)", 3))
    rows = a_page(nb).select("#index tbody tr")
    assert [row.find_all("td")[2].text for row in rows] == ["2/5"]
    assert [row.a["href"] for row in rows] == ["#test"]


@pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium or Chrome on this machine")
def test_a_browser_without_a_network_shows_formulas(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    nb = a_notebook("def near(x): return x", VISIBLE)
    nb.cells.insert(1, new_markdown_cell("$$\\frac{1}{1+\\frac{1}{x}}$$"))
    path = tmp_path / "toy.html"
    path.write_text(str(a_page(nb)), encoding="utf-8")
    heights = "[...document.querySelectorAll('mfrac')].map(e => e.getBoundingClientRect().height)"
    asked, (outer, inner) = browser.look(path, heights)
    assert asked == []
    # a fraction in a fraction is higher: the browser has laid it out
    assert outer > inner > 5
