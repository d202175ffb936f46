"""What readers take with them works: notebooks, the PDF, launch buttons."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import REPOSITORY

from tools import vary
from tools.layout import ROOT, contents
from tools.site import chapters, pages, pdf

pytestmark = pytest.mark.xdist_group("toy")

ONLY_ON_THE_SITE = r"\{[a-z:]+\}`|^\([\w-]+\)=|^:{3}|^`{3}\{.*|^\$\$ \(.*"


def test_notebook_has_all_code_and_plain_markdown():
    context, wrong = chapters.Book(ROOT), []
    found = pages.find(ROOT)
    for page in found:
        notebook = chapters.notebook(page, context)
        nbformat.validate(notebook)
        first, *others = notebook.cells
        code = [cell for cell in others if cell.cell_type == "code"]
        text = "\n".join(cell.source for cell in others if cell.cell_type == "markdown")
        plain = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        tagged = [cell.metadata.get("tags", []) for cell in page.cells]
        tags = {tag for tags in tagged if vary.TAG not in tags for tag in tags}
        imports = [c.source for c in page.cells if "setup" in c.metadata.get("tags", [])]
        facts = {
            "says how to install": "the course Learning" in first.source.split("pip install")[0],
            "has all code": [cell.source for cell in code] == [cell.source for cell in page.cells],
            "begins with imports": all(
                re.search(r"(?m)^(import|from) ", source) for source in [code[0].source, *imports]
            ),
            "hides no code": not tags & {"remove-cell", "remove-input"},
            "is Markdown": not re.findall(ONLY_ON_THE_SITE, plain, re.MULTILINE),
            "has whole formulas": len(re.findall(r"^\$\$", plain, re.MULTILINE)) % 2 == 0,
        }
        wrong += [(page.name, fact) for fact, right in facts.items() if not right]
    assert len(found) > 50
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a-label)=\n## Title", "## Title"),
        ("See {ref}`there <a-label>`.", "See there."),
        ("A {term}`risk` and {term}`risks <risk>`.", "A risk and risks."),
        ("$$\na \\\\ b\n$$", "$$\n\\begin{split}\na \\\\ b\n\\end{split}\n$$"),
        ("```{note}\nWords\nof it.\n```\n\nMore.", "> **Note.**\n>\n> Words\n> of it.\n\nMore."),
        ("```{note}\n$$\na\n$$ (eq-sum)\n```", "> **Note.**\n>\n> $$\n> a\n> \\tag{1}\n> $$"),
        (
            "```{admonition} Your turn: what is {term}`risk`?\n:class: tip\nSay it.\n```",
            "> **Your turn: what is risk?**\n>\n> Say it.",
        ),
        (
            "```{literalinclude} ../toy.py\n:pyobject: A.f\n```\n\nMore.",
            "```python\n@cache\ndef f(self):\n    return {2}\n```\n\nMore.",
        ),
        (
            "```{explore} descent\n:alt: A path.\nWith $1/\\kappa$.\n```",
            "*A figure to explore, which the page of the site has.* With $1/\\kappa$.",
        ),
        ("```python\n(x)=\n```", "```python\n(x)=\n```"),
        ("{footcite:p}`kingma2015`", "(Kingma and Ba, 2015)"),
        ("{footcite:t}`lange2022`", "Lange et al. (2022)"),
        (
            "{footcite}`goh2017`\n\n```{footbibliography}\n```",
            "(Goh, 2017)\n\n- Gabriel Goh\\.\nWhy momentum really works\\.\n*Distill*, 2017\\.\n"
            "[doi:10\\.23915/distill\\.00006](https://doi.org/10.23915/distill.00006)\\.",
        ),
        ("It is {number}`half:.2f`, or {number}`h + 1`.", "It is 0.50, or h + 1."),
        (
            "```{cards}\nWhat is it?\n: A number.\n```",
            "**To remember**\n\n- **What is it?** A number.",
        ),
    ],
)
def test_text_of_the_site_becomes_markdown(toy, text, expected):
    (toy / "toy.py").write_text(
        "class A:\n    @cache\n    def f(self):\n        return {2}\n\n    g = 1\n"
    )
    context = chapters.Context(chapters.Book(toy), "book/index", {"half:.2f": "0.50"})
    assert context.markdown(text) == expected


def test_launch_buttons_open_notebooks_of_the_repository(toy, toy_site):
    text = (toy_site / "book" / "sheets.html").read_text("utf-8")
    buttons = BeautifulSoup(text, "html.parser").select("a.chapter-tool")
    path = "notebooks/chapter-sheets.ipynb"
    assert {button.get_text()[1:]: button["href"] for button in buttons} == {
        "Notebook": "../_notebooks/chapter-sheets.ipynb",
        "Colab": f"https://colab.research.google.com/github/ada/course/blob/main/{path}",
        "Binder": f"https://mybinder.org/v2/gh/ada/course/main?urlpath=lab/tree/{path}",
    }
    opened = nbformat.read(toy / path, as_version=4)
    assert f"git clone --quiet --depth 1 {REPOSITORY} " in opened.cells[1].source
    built = {file.name for file in (toy_site / "_notebooks").glob("*.ipynb")}
    assert {file.name for file in (toy / "notebooks").iterdir()} == built


def test_own_logo_and_icon_are_shown(toy, toy_site):
    assert f'src="{(toy / "book" / "own.png").as_uri()}"' in pdf.join(toy_site, toy)
    for page in ("404", "index"):
        assert 'href="data:image/png;base64,iVBOR' in (toy_site / f"{page}.html").read_text()
    index = (toy_site / "book" / "index.html").read_text()
    assert ('src="../_static/own.png"' in index, index.count("A &amp; B")) == (True, 1)


def flattened(outline: list[Any]) -> Iterator[Any]:
    """Yield the items of an outline, those below others after them."""
    for item in outline:
        yield from flattened(item) if isinstance(item, list) else [item]


def test_book_is_printed(toy, toy_site, tmp_path):
    """The oracle for the outline is the text of the pages that it names."""
    if pdf.find_chromium() is None:
        pytest.skip("no Chromium or Chrome on this machine: nothing can print the pages")
    pypdf = pytest.importorskip("pypdf")
    out = tmp_path / "book.pdf"
    with ThreadPoolExecutor(1) as apart:  # another test may have left a loop of events here
        apart.submit(pdf.write_pdf, toy_site, toy, out).result()
    reader = pypdf.PdfReader(out)
    texts = [" ".join(page.extract_text().split()) for page in reader.pages]
    assert texts[0] == reader.metadata.title == "A small book"
    searched = "book/api", "book/review"  # which are there to be searched and answered
    sources = [(toy / f"{n}.md").read_text("utf-8") for n in contents(toy) if n not in searched]
    text = "\n".join(sources).replace("$1-p$", "1−p")
    marks = {title: mark for mark, title in re.findall("^(##?) (?!Ref)(.+)", text, re.MULTILINE)}
    assert len(marks) > 15
    places = {
        " ".join(item.title.split()): reader.get_destination_page_number(item)
        for item in flattened(reader.outline)
    }
    assert [title for title in places if title in marks] == list(marks)
    for title, mark in marks.items():
        place, before = places[title], " ".join(texts[1 : places[title]])
        # a page of the book begins a sheet
        begin = f"{place + 1} {title}" if mark == "#" else ""
        assert texts[place].startswith(begin), title
        assert title in texts[place], title
        assert mark == "#" or title not in before, title
    # each page but the first has its number, which Chromium writes before the text
    assert [text.split()[0] for text in texts[1:]] == [str(n) for n in range(2, len(texts) + 1)]
    # a link leads from one page to another
    known = reader.named_destinations
    notes = [note.get_object().get("/Dest") for note in reader.pages[1].get("/Annots", [])]
    linked = {reader.get_destination_page_number(known[name]) for name in notes if name in known}
    assert linked == {places["Lesson one"]}
    # nothing is written outside the page, formulas and code that are too long included
    outside: list[str] = []

    def see(text: str, cm: Any, tm: Any, *rest: Any) -> None:
        x = cm[0] * tm[4] + cm[2] * tm[5] + cm[4]
        y = cm[1] * tm[4] + cm[3] * tm[5] + cm[5]
        if text.strip() and not (0 < x < width and 0 < y < height):
            outside.append(text)

    width, height = map(float, (reader.pages[0].mediabox.width, reader.pages[0].mediabox.height))
    for page in reader.pages:
        page.extract_text(visitor_text=see)
    assert outside == []
    letters = "".join(texts).replace(" ", "")
    assert "x89" in letters
    assert letters.count("long") >= 60
    # a figure to explore has its picture, which nothing moves, and its caption
    assert letters.count("35steps") == letters.count("Dragthestart.") == 1
    assert "Learningrate" not in letters
