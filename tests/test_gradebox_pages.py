"""Graded notebooks hold nothing that runs in a browser, and all that does no harm."""

import base64
from html.parser import HTMLParser
from typing import Any

import nbformat
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.filters import markdown2html
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from gradebox.pages import LONGEST, harmless_html, harmless_markdown, make_harmless

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

PNG = base64.b64encode(b"\x89PNG and so on").decode()
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>run()</script><circle r="3"/></svg>'
RUNS = '<script>run()</script><img src="x" onerror="run()">'


class Tags(HTMLParser):
    """Gathers what a browser would act upon."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def acts(text: str) -> list[Any]:
    """Return the tags that run something, or could."""
    bad = {"script", "style", "iframe", "object", "embed", "form", "svg", "math", "base", "meta"}
    bad |= {"link", "input", "button", "textarea"}
    return [
        (tag, attrs)
        for tag, attrs in Tags(text).found
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


@pytest.mark.parametrize("name", ["a script", "a handler", "a drawing", "a link to a script"])
def test_this_would_be_seen(name: str) -> None:
    assert acts(HARM[name])


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
    links = [attrs.get("href") or attrs.get("src") or "" for _, attrs in Tags(page).found]
    schemes = [link.split(":")[0].strip().lower() for link in links if ":" in link]
    assert not {"javascript", "vbscript"} & {*schemes}


def cleaned(*outputs: Any, **metadata: Any) -> Any:
    cell = new_code_cell("x", outputs=list(outputs), metadata=metadata)
    nb = new_notebook(cells=[cell])
    make_harmless(nb)
    nbformat.validate(nb)
    return nb.cells[0]


def display(data: dict[str, Any], **metadata: Any) -> Any:
    return new_output("display_data", data, metadata=metadata)


def test_pictures_and_text_stay() -> None:
    data = {"image/png": PNG + "\n", "text/plain": RUNS}
    [output] = cleaned(display(data, **{"image/png": {"width": 30, "height": "x"}})).outputs
    assert output.data == data
    assert output.metadata == {"image/png": {"width": 30}}


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/gif"])
def test_what_is_no_picture_goes(kind: str) -> None:
    [output] = cleaned(display({kind: f'"><{RUNS}'})).outputs
    assert output.data == {"text/plain": f"[left out: {kind}]"}


def test_scripts_go() -> None:
    kinds = ["application/javascript", "text/vnd.mermaid", "application/vnd.plotly.v1+json"]
    [output] = cleaned(display(dict.fromkeys(kinds, RUNS))).outputs
    assert list(output.data) == ["text/plain"]
    [output] = cleaned(display({"text/html": RUNS}, **{"text/html": {"isolated": True}})).outputs
    assert not acts(output.data["text/html"])
    assert output.metadata == {}


def test_a_drawing_becomes_a_picture() -> None:
    [output] = cleaned(display({"image/svg+xml": SVG, "text/plain": "x"})).outputs
    assert not acts(output.data["text/html"])
    coded = output.data["text/html"].split("base64,")[1].split('"')[0]
    assert base64.b64decode(coded).decode() == SVG
    assert harmless_html(output.data["text/html"]) == output.data["text/html"]
    [output] = cleaned(display({"image/svg+xml": SVG, "image/png": PNG})).outputs
    assert list(output.data) == ["image/png"]


def test_html_that_is_too_long_is_shown_as_text() -> None:
    [output] = cleaned(display({"text/html": "<b>" * LONGEST, "text/plain": "a table"})).outputs
    assert output.data == {"text/plain": "a table"}


def test_metadata_hold_no_page() -> None:
    breaks = f'"><{RUNS}'
    cell = new_code_cell("x", metadata={"tags": ["a"], "alt": breaks, "deletable": False})
    nb = new_notebook(cells=[cell], metadata={"title": breaks, "widgets": {"a": breaks}})
    nb.metadata["language_info"] = {"name": "python", "pygments_lexer": breaks}
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    nb.metadata["kernelspec"] = kernel
    make_harmless(nb)
    assert nb.metadata == {"kernelspec": kernel}
    assert cell.metadata == {"deletable": False}


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
