"""What readers take with them works: notebooks, the PDF, references, launch buttons."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from pybtex.database import parse_file
from test_book import Toy, cell

from tools import book, chapters, pages, pdf
from tools.terminal import ToolError

ROOT = Path(__file__).resolve().parents[2]
FOUND = {page.name: page for page in pages.find(ROOT)}
REPOSITORY = "https://github.com/ada/course"

pytestmark = pytest.mark.xdist_group("reading")


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    """Make a small book, and have the tool build it."""
    made = Toy(tmp_path / "toy")
    monkeypatch.setattr(book, "ROOT", made.root)
    monkeypatch.setattr(book, "_hand_out_python", lambda site: None)
    return made


# --- the chapters as notebooks ---


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Convert all chapters; return the notebooks by the names of their pages."""
    folder = tmp_path_factory.mktemp("notebooks")
    chapters.write(list(FOUND.values()), folder, ROOT)
    return {
        name: nbformat.read(folder / chapters.name(page), as_version=4)
        for name, page in FOUND.items()
    }


@pytest.mark.parametrize("name", FOUND)
def test_a_notebook_has_all_code_and_nothing_that_only_the_site_understands(
    written: dict[str, Any], name: str
) -> None:
    notebook = written[name]
    nbformat.validate(notebook)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert code == [cell.source for cell in FOUND[name].cells]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    plain = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    left = re.findall(r"\{[a-z:]+\}`|^\([\w-]+\)=|^:{3}|^`{3}\{.*|^\$\$ \(.*", plain, re.MULTILINE)
    assert left == []
    assert len(re.findall(r"^\$\$", plain, re.MULTILINE)) % 2 == 0


@pytest.mark.parametrize("name", FOUND)
def test_a_notebook_says_how_to_install_and_shows_its_imports(
    written: dict[str, Any], name: str
) -> None:
    first, *others = written[name].cells
    assert "pip install" in first.source
    code = [cell for cell in others if cell.cell_type == "code"]
    assert re.search(r"^(?:import|from) ", code[0].source, re.MULTILINE)
    assert not any(
        set(cell.metadata.get("tags", [])) & {"remove-cell", "remove-input"} for cell in code
    )


def test_no_page_hides_code_that_a_reader_needs() -> None:
    for page in FOUND.values():
        tags = [tag for one in page.cells for tag in one.metadata.get("tags", [])]
        assert not {"remove-cell", "remove-input"} & set(tags), page.name


def test_a_downloaded_notebook_runs(written: dict[str, Any], tmp_path: Path) -> None:
    """The cheapest page, in a folder of its own and with nothing but the package."""
    file = tmp_path / "chapter-conventions.ipynb"
    nbformat.write(written["conventions"], file)
    run = [
        sys.executable,
        "-m",
        "nbconvert",
        "--execute",
        "--to",
        "notebook",
        "--inplace",
        file.name,
    ]
    done = subprocess.run(
        run,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    shown = nbformat.read(file, as_version=4)
    outputs = [one for cell in shown.cells for one in cell.get("outputs", [])]
    kinds = {kind for one in outputs for kind in one.get("data", {})}
    assert kinds & {"image/png", "image/svg+xml"}, "the figure is drawn"


def test_a_directive_without_a_form_is_named(toy: Toy) -> None:
    toy.write(index=cell("1") + "\n```{epigraph}\nWords.\n```\n")
    with pytest.raises(chapters.NotPortable, match="'epigraph'"):
        chapters.notebook(toy.found["index"], chapters.Book(toy.root))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a-label)=\n## Title", "## Title"),
        ("See {ref}`there <a-label>`.", "See there."),
        ("A {term}`risk` and {term}`risks <risk>`.", "A risk and risks."),
        ("$$\na \\\\ b\n$$", "$$\n\\begin{split}\na \\\\ b\n\\end{split}\n$$"),
        ("```{note}\nWords\nof it.\n```\n\nMore.", "> **Note.**\n>\n> Words\n> of it.\n\nMore."),
        ("```{note}\n$$\na\n$$ (eq-a)\n```", "> **Note.**\n>\n> $$\n> a\n> \\tag{1}\n> $$"),
        (
            "```{admonition} Your turn: what is {term}`risk`?\n:class: tip\nSay it.\n```",
            "> **Your turn: what is risk?**\n>\n> Say it.",
        ),
        (
            "```{literalinclude} ../src/optdl/toy.py\n:pyobject: A.f\n```\n\nMore.",
            "```python\ndef f(self):\n    return {2}\n```\n\nMore.",
        ),
        ("```{literalinclude} ../src/optdl/__init__.py\n```", "```python\n\n```"),
        ("```python\n(x)=\n```", "```python\n(x)=\n```"),
        ("{footcite:p}`kingma2015`", "(Kingma and Ba, 2015)"),
        ("{footcite:t}`lange2022`", "Lange et al. (2022)"),
        ("It is {number}`half:.2f`, or {number}`h + 1`.", "It is 0.50, or h + 1."),
        (
            "```{cards}\nWhat is it?\n: A number.\n```",
            "**To remember**\n\n- **What is it?** A number.",
        ),
    ],
)
def test_text_of_the_site_becomes_plain_markdown(toy: Toy, text: str, expected: str) -> None:
    toy.write(index="Words.\n\n$$\na\n$$ (eq-a)\n")
    toy.code("toy", "class A:\n    @cache\n    def f(self):\n        return {2}\n\n    g = 1\n")
    context = chapters.Context(chapters.Book(toy.root), "book/index", {"half:.2f": "0.50"})
    assert chapters.markdown(text, context) == expected


def test_each_page_that_offers_a_notebook_has_cells() -> None:
    texts = {path: path.read_text("utf-8") for path in (ROOT / "book").rglob("*.md")}
    assert [
        name
        for name, text in texts.items()
        if "\nkernelspec:" in text and "{code-cell}" not in text
    ] == []


# --- references ---

UNPUBLISHED = {
    "mondal-optimization": "slides of a lecture, without a stable address",
    "piastra-learning": "slides of a lecture, without a stable address",
}


def test_each_reference_can_be_followed() -> None:
    entries = parse_file(str(ROOT / "book" / "references.bib")).entries
    without = {key for key, one in entries.items() if not {"doi", "url"} & set(one.fields)}
    assert without == set(UNPUBLISHED)
    for key, entry in entries.items():
        if "doi" in entry.fields:
            assert re.fullmatch(r"10\.\d{4,9}/\S+", entry.fields["doi"]), key
        if "url" in entry.fields:
            assert re.fullmatch(r"https://[\w.-]+/?\S*", entry.fields["url"]), key


# --- Colab and Binder ---


def switch_on(toy: Toy, repository: str) -> None:
    config = toy.root / "_config.yml"
    text = config.read_text("utf-8")
    assert 'launch_repository: ""' in text
    config.write_text(text.replace('launch_repository: ""', f'launch_repository: "{repository}"'))


def tools_of(site: Path) -> dict[str, str]:
    """Return the buttons of the first page."""
    page = BeautifulSoup((site / "book" / "index.html").read_text("utf-8"), "html.parser")
    return {link.get_text()[1:]: link["href"] for link in page.select("a.chapter-tool")}


@pytest.mark.slow
def test_launch_buttons_are_off_until_the_instructor_switches_them_on(toy: Toy) -> None:
    toy.write(index=cell("1 + 1"))
    site = book.build(out=toy.root)
    assert tools_of(site) == {"Notebook": "../_notebooks/chapter-index.ipynb"}
    offered = site / "_notebooks" / "chapter-index.ipynb"
    script = offered.with_name(f"{offered.name}.js").read_text("utf-8")
    name, text = json.loads(f"[{re.fullmatch(r'saveNotebook[(](.*)[)];', script.strip())[1]}]")  # type: ignore[index]
    assert (name, text) == (offered.name, offered.read_text("utf-8"))
    assert "mybinder" not in (site / "book" / "index.html").read_text("utf-8")
    # on, but without the notebooks that the buttons open
    switch_on(toy, REPOSITORY)
    with pytest.raises(book.BookError, match=r"notebooks/chapter-index\.ipynb"):
        book.build(out=toy.root)
    chapters.write(list(toy.found.values()), toy.root / chapters.FOLDER, toy.root)
    site = book.build(out=toy.root)
    path = "notebooks/chapter-index.ipynb"
    assert tools_of(site) == {
        "Notebook": "../_notebooks/chapter-index.ipynb",
        "Colab": f"https://colab.research.google.com/github/ada/course/blob/main/{path}",
        "Binder": f"https://mybinder.org/v2/gh/ada/course/main?urlpath=lab/tree/{path}",
    }
    opened = nbformat.read(toy.root / path, as_version=4)
    assert f"git clone --quiet --depth 1 {REPOSITORY} " in opened.cells[1].source


def test_a_wrong_repository_is_named(toy: Toy) -> None:
    toy.write(index="Words.")
    switch_on(toy, "github.com/ada")
    with pytest.raises(book.BookError, match="launch_repository: expected an address such as"):
        book.build(out=toy.root)


# --- the PDF ---

LONG = " ".join(["Words that fill the page until the next one begins."] * 60)
FIRST = (
    f"(here)=\n## A section\n\nSee {{ref}}`the other page <there>`.\n\n{LONG}\n\n{LONG}\n\n"
    "## Another section\n\n$$\n"
    + " + ".join(f"x_{{{n}}}" for n in range(90))
    + "\n$$\n\n"
    + cell("x = '" + "long " * 60 + "'")
)
SECOND = f"(there)=\n## A far section\n\nBack to {{ref}}`here`.\n\n{LONG}\n"


def test_the_book_is_printed(toy: Toy, tmp_path: Path) -> None:
    """The oracle for the contents is the text of the pages that they name."""
    if pdf.find_chromium() is None:
        pytest.skip("no Chromium or Chrome on this machine: nothing can print the pages")
    pypdf = pytest.importorskip("pypdf")
    toy.write(index=FIRST, second=SECOND.replace("## A far", "# Second title\n\n## A far"))
    second = toy.root / "book" / "second.md"
    second.write_text(second.read_text("utf-8").replace("# A title\n", "", 1), "utf-8")
    out = tmp_path / "book.pdf"
    with ThreadPoolExecutor(1) as apart:  # another test may have left a loop of events here
        count = apart.submit(pdf.write_pdf, book.build(out=toy.root), toy.root, out).result()
    reader = pypdf.PdfReader(out)
    texts = [" ".join(page.extract_text().split()) for page in reader.pages]
    assert len(texts) == count
    assert count >= 5
    # the title page, then the contents
    assert texts[0] == "Learning as Optimization"
    assert texts[1].startswith("2 Contents A title ")
    titles = ["A title", "A section", "Another section", "Second title", "A far section"]
    listed = dict(re.findall(rf"({'|'.join(titles)}) (\d+)", texts[1]))
    assert list(listed) == titles
    for title, number in listed.items():
        assert title in texts[int(number) - 1], (title, number)
        assert title not in " ".join(texts[2 : int(number) - 1]), title
    assert int(listed["Second title"]) > int(listed["Another section"])
    # each page but the first has its number, which Chromium writes before the text
    assert [text.split()[0] for text in texts[1:]] == [str(n) for n in range(2, count + 1)]
    # the outline leads where the contents do
    flat = [
        item for part in reader.outline for item in (part if isinstance(part, list) else [part])
    ]
    places = {item.title: reader.get_destination_page_number(item) + 1 for item in flat}
    assert places == {title: int(number) for title, number in listed.items()}
    # a link leads from one chapter to the other
    known = reader.named_destinations
    linked = {
        reader.get_destination_page_number(known[note["/Dest"]]) + 1
        for note in (one.get_object() for one in reader.pages[2].get("/Annots", []))
        if note.get("/Dest") in known
    }
    assert int(listed["A far section"]) in linked
    # nothing is written outside the page, formulas and code that are too long included
    for page in reader.pages:
        width, height = float(page.mediabox.width), float(page.mediabox.height)
        spots: list[tuple[float, float, str]] = []

        def see(text: str, cm: Any, tm: Any, *rest: Any, spots: list[Any] = spots) -> None:
            if text.strip():
                x = cm[0] * tm[4] + cm[2] * tm[5] + cm[4]
                y = cm[1] * tm[4] + cm[3] * tm[5] + cm[5]
                spots.append((x, y, text))

        page.extract_text(visitor_text=see)
        assert [spot for spot in spots if not (0 < spot[0] < width and 0 < spot[1] < height)] == []
    assert "x89" in "".join(texts).replace(" ", "")
    assert "".join(texts).replace(" ", "").count("long") >= 60


def test_without_chromium_the_tool_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CHROMIUM", str(tmp_path / "none"))
    with pytest.raises(ToolError, match="no Chromium or Chrome") as raised:
        pdf.write_pdf(tmp_path, tmp_path, tmp_path / "book.pdf")
    assert "CHROMIUM" in raised.value.remedy


@pytest.mark.parametrize("tool", [pdf, chapters])
def test_the_tools_explain_themselves(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        tool.main(["--help"])
    assert ended.value.code == 0
    assert "--out" in capsys.readouterr().out
