"""Every row of a chapter that exists is taught, implemented, tested and asked; holes are found."""

import dataclasses
import importlib
import importlib.util
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools import coverage
from tools.terminal import ToolError

ROOT = Path(__file__).resolve().parents[2]

ROWS = """
chapters:
  - topic: bowls
    title: Bowls
    rows:
      - id: L1-01
        title: A bowl
        exercise: true
      - id: L1-02, P-01
        title: Two names of one thing
  - topic: valleys
    title: Valleys
    rows:
      - id: L2-01
        title: A valley
"""
CHAPTER = """
# Bowls

(L1-01)=
(P-01)=
## What $f$ is

```{note}
(L2-99)=
```
"""
MODULE = '''
class Bowl:
    """A bowl.

    Source: L1-01
    """

    def value(self):
        """Return it.

        Source: L1-02, L1-01.
        """

def plain():
    """Return nothing. The Source: L2-99 of a sentence is not a line of its own."""
'''
TESTS = """
import pytest

@pytest.mark.row("L1-01", "P-01")
def test_bowl():
    pass
"""


def write(root: Path, **files: str) -> Path:
    """Write a small course; names hold ``__`` for ``/`` and end in their type."""
    base = {
        "book/rows.yml": ROWS,
        "book/bowls/index.md": CHAPTER,
        "src/optdl/bowls.py": MODULE,
        "tests/optdl/test_bowls.py": TESTS,
        "solutions/bowls/bowls.ipynb": notebook('check("L1-01:depth", depth)'),
        "_toc.yml": "chapters:\n  - file: book/bowls/index\n",
    }
    for name, text in (base | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def notebook(source: str, grade: bool = True) -> str:
    """Return a notebook with one cell."""
    marks = {"nbgrader": {"grade": grade}}
    cell = {"id": "check", "cell_type": "code", "metadata": marks, "source": [source]}
    return json.dumps({"cells": [cell]})


def problems(root: Path) -> list[tuple[str, str, str]]:
    return [(item.row, item.kind, item.file) for item in coverage.gather(root).problems]


def test_no_chapter_that_exists_has_a_hole() -> None:
    found = coverage.gather(ROOT).problems
    assert not found, "\n".join(item.message for item in found)


def test_a_complete_chapter_has_no_problem_and_a_missing_one_is_to_come(tmp_path: Path) -> None:
    table = coverage.gather(write(tmp_path))
    bowls, valleys = table.chapters
    assert table.problems == []
    assert (bowls.exists, bowls.complete, valleys.exists, valleys.complete) == (True, 2, False, 0)


def test_places_carry_heading_and_qualified_names(tmp_path: Path) -> None:
    first, second = coverage.gather(write(tmp_path)).chapters[0].rows
    names = {kind: [place.name for place in first.of(kind)] for kind in coverage.KINDS}
    assert names == {
        "section": ["What $f$ is"],
        "code": ["bowls.Bowl", "bowls.Bowl.value"],
        "test": ["test_bowls::test_bowl"],
        "exercise": ["depth"],
    }
    # Either id of a row that has two is enough.
    assert [place.name for place in second.of("code")] == ["bowls.Bowl.value"]


@pytest.mark.parametrize(
    ("file", "old", "hole"),
    [
        ("book/bowls/index.md", "(L1-01)=\n", ("L1-01", "section", "book/bowls")),
        ("book/bowls/index.md", "(P-01)=\n", ("L1-02, P-01", "section", "book/bowls")),
        ("src/optdl/bowls.py", "L1-02, ", ("L1-02, P-01", "code", "src/optdl/bowls.py")),
        (
            "tests/optdl/test_bowls.py",
            ', "P-01"',
            ("L1-02, P-01", "test", "tests/optdl/test_bowls.py"),
        ),
        (
            "solutions/bowls/bowls.ipynb",
            "L1-01:depth",
            ("L1-01", "exercise", "solutions/bowls/bowls.ipynb"),
        ),
    ],
)
def test_each_kind_of_hole_is_named_with_the_file_to_edit(
    tmp_path: Path, file: str, old: str, hole: tuple[str, str, str]
) -> None:
    path = write(tmp_path) / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, "P-01:depth" if "ipynb" in file else ""))
    assert problems(tmp_path) == [hole]


def test_holes_of_a_lab_are_filled_in_its_own_files(tmp_path: Path) -> None:
    rows = ROWS.replace("id: L1-01", "id: LAB-1")
    write(tmp_path, **{"book/rows.yml": rows})
    holes = [hole for hole in problems(tmp_path) if hole[0] == "LAB-1"]
    assert holes == [
        ("LAB-1", "section", "book/bowls"),
        ("LAB-1", "code", "src/optdl/checks/bowls/lab_1_*.py"),
        ("LAB-1", "test", "tests/checks/test_lab_bowls.py"),
        ("LAB-1", "exercise", "solutions/bowls/lab.ipynb"),
    ]


def test_a_lab_asks_for_a_row_of_its_own(tmp_path: Path) -> None:
    both = notebook('check("L1-01:depth", depth)'), notebook('check("P-01:slope", Slope)')
    names = ("solutions/bowls/bowls.ipynb", "solutions/bowls/lab.ipynb")
    write(tmp_path, **dict(zip(names, both, strict=True)))
    bowls = coverage.gather(tmp_path).chapters[0]
    assert [[place.name for place in row.of("exercise")] for row in bowls.rows] == [
        ["depth"],
        ["Slope"],
    ]


def test_one_exercise_may_ask_for_two_rows(tmp_path: Path) -> None:
    both = notebook('check("L1-01, P-01:depth", depth)')
    write(tmp_path, **{"solutions/bowls/bowls.ipynb": both})
    bowls = coverage.gather(tmp_path).chapters[0]
    assert [[place.name for place in row.of("exercise")] for row in bowls.rows] == [["depth"]] * 2


def test_checks_implement_nothing(tmp_path: Path) -> None:
    write(tmp_path, **{"src/optdl/bowls.py": "", "src/optdl/checks/bowls.py": MODULE})
    assert [kind for _, kind, _ in problems(tmp_path)] == ["code", "code"]


def test_a_cell_that_is_not_graded_asks_nothing(tmp_path: Path) -> None:
    ungraded = notebook('check("L1-01", depth)', grade=False)
    write(tmp_path, **{"solutions/bowls/bowls.ipynb": ungraded})
    assert problems(tmp_path) == [("L1-01", "exercise", "solutions/bowls/bowls.ipynb")]


@pytest.mark.parametrize("mark", ["skip", "xfail(reason='not yet')"])
def test_a_test_that_never_passes_proves_nothing(tmp_path: Path, mark: str) -> None:
    marked = TESTS.replace("@pytest.mark.row", f"@pytest.mark.{mark}\n@pytest.mark.row")
    write(tmp_path, **{"tests/optdl/test_bowls.py": marked})
    assert [kind for _, kind, _ in problems(tmp_path)] == ["test", "test"]


@pytest.mark.parametrize(
    "text",
    [
        'import pytest\npytestmark = [pytest.mark.slow, pytest.mark.row("L1-01", "L1-02")]\n',
        'import pytest\n@pytest.mark.row("L1-01", "L1-02")\nclass TestBowl:\n    pass\n',
        'import pytest\nclass TestBowl:\n    @pytest.mark.row("L1-01", "L1-02")\n'
        "    def test_it(self):\n        pass\n",
        'import pytest\n@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.row'
        '("L1-01", "L1-02"))])\ndef test_it(x):\n    pass\n',
    ],
    ids=["module", "class", "method", "parameter"],
)
def test_marks_count_wherever_pytest_takes_them(tmp_path: Path, text: str) -> None:
    assert problems(write(tmp_path, **{"tests/optdl/test_bowls.py": text})) == []


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("book/bowls/index.md", CHAPTER.replace("(L1-01)=", "(L1-01)=\n(L9-01)=")),
        ("src/optdl/bowls.py", MODULE.replace("L1-02, ", "L1-02, L9-01, ")),
        ("tests/optdl/test_bowls.py", TESTS.replace('"P-01"', '"P-01", "L9-01"')),
        (
            "solutions/bowls/bowls.ipynb",
            notebook('check("L1-01", depth)\ncheck("L9-01:x", depth, seed=7)'),
        ),
    ],
)
def test_an_id_that_is_no_row_is_an_error(tmp_path: Path, file: str, text: str) -> None:
    assert problems(write(tmp_path, **{file: text})) == [("L9-01", "id", file)]


def test_a_label_in_the_wrong_chapter_is_an_error(tmp_path: Path) -> None:
    wrong = CHAPTER + "\n(L2-01)=\n## A valley\n"
    [item] = coverage.gather(write(tmp_path, **{"book/bowls/index.md": wrong})).problems
    assert (item.row, item.kind) == ("L2-01", "id")
    assert "belongs to a page of book/valleys" in item.message


@pytest.mark.parametrize("after", ["\nA sentence.\n", "\n```{note}\nA box.\n```\n", ""])
def test_a_label_without_a_heading_is_an_error(tmp_path: Path, after: str) -> None:
    lone = CHAPTER.replace("(P-01)=\n", "") + "\n(P-01)=\n" + after
    written = write(tmp_path, **{"book/bowls/index.md": lone})
    assert ("P-01", "id", "book/bowls/index.md") in problems(written)


def test_a_label_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    twice = CHAPTER + "\n(L1-01)=\n## Again\n"
    assert problems(write(tmp_path, **{"book/bowls/index.md": twice})) == [
        ("L1-01", "id", "book/bowls/index.md")
    ]


def test_a_row_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    rows = ROWS.replace("id: L2-01", "id: P-01")
    with pytest.raises(ToolError, match="P-01 twice"):
        coverage.gather(write(tmp_path, **{"book/rows.yml": rows}))


def test_a_mark_that_is_computed_is_refused(tmp_path: Path) -> None:
    computed = TESTS.replace('"L1-01"', "f'L1-{1}'")
    with pytest.raises(ToolError, match="is not a string"):
        coverage.gather(write(tmp_path, **{"tests/optdl/test_bowls.py": computed}))


def test_the_order_of_the_chapters_is_that_of_the_contents(tmp_path: Path) -> None:
    toc = "chapters:\n  - file: book/valleys\n  - file: book/bowls\n"
    table = coverage.gather(write(tmp_path, **{"_toc.yml": toc}))
    assert [chapter.topic for chapter in table.chapters] == ["valleys", "bowls"]


def test_the_command_fails_on_a_hole_and_says_how_to_fix_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert coverage.main(["--root", str(tmp_path)]) == 0
    assert "2 of 2 rows complete" in capsys.readouterr().out
    (tmp_path / "tests/optdl/test_bowls.py").write_text("")
    assert coverage.main(["--root", str(tmp_path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert 'in tests/optdl/test_bowls.py mark a test with @pytest.mark.row("L1-01")' in said


def test_the_command_gives_plain_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main(["--json", "--root", str(write(tmp_path))]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["problems"] == []
    assert data["chapters"][0]["rows"][0]["evidence"][0]["name"] == "What $f$ is"


# --- The page Coverage ------------------------------------------------------------------------

PAGE = "# Coverage\n\n```{coverage-table}\n```\n"


@pytest.fixture
def draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], BeautifulSoup]:
    """Return a function that builds the site of the small course and gives its table."""
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    monkeypatch.setattr(importlib.import_module("coverage_table"), "ROOT", tmp_path)
    contents = "# Course\n\n```{toctree}\nbook/bowls/index\nbook/coverage\n```\n"
    write(tmp_path, **{"index.md": contents, "book/coverage.md": PAGE})
    settings = {
        "extensions": ["myst_parser", "coverage_table"],
        "myst_enable_extensions": ["dollarmath"],
        "exclude_patterns": ["out"],
    }

    def build() -> BeautifulSoup:
        out = tmp_path / "out"
        with docutils_namespace(), patch_docutils():
            app = Sphinx(tmp_path, None, out, out / "trees", "html", settings, None, None)
            app.build()
        return BeautifulSoup((out / "book" / "coverage.html").read_text(), "html.parser")

    return build


def cell(page: BeautifulSoup, row: str, column: str) -> Tag:
    """Return one cell of the table."""
    [header] = [item for item in page.select("tbody th") if item.text == row]
    found = header.parent.select_one(f'[data-label="{column}"]')
    assert found is not None
    return found


def test_the_page_links_each_row_to_its_section_and_says_what_is_to_come(
    draw: Callable[[], BeautifulSoup],
) -> None:
    page = draw()
    links = [link["href"] for link in cell(page, "L1-01", "Section").select("a")]
    assert links == ["bowls/index.html#l1-01"]
    names = [name.text for name in cell(page, "L1-01", "Code").select("code")]
    assert names == ["Bowl", "Bowl.value"]
    assert cell(page, "L1-02, P-01", "Exercise").text == "not asked"
    captions = [caption.text for caption in page.select("caption")]
    assert captions == ["Bowls: 2 of 2 rows complete", "Valleys: chapter to come, 1 row"]
    scopes = {item["scope"] for item in page.select("th")}
    assert scopes == {"col", "row"}


def test_the_page_is_drawn_anew_when_another_file_changes(
    tmp_path: Path, draw: Callable[[], BeautifulSoup]
) -> None:
    assert cell(draw(), "L1-01", "Tests").summary.text == "1 test"
    test_file = tmp_path / "tests" / "optdl" / "test_bowls.py"
    second = '\n@pytest.mark.row("L1-01")\ndef test_second():\n    pass\n'
    test_file.write_text(TESTS + second)
    assert cell(draw(), "L1-01", "Tests").summary.text == "2 tests"
    test_file.write_text("")
    assert cell(draw(), "L1-01", "Tests").text == "missing"


# --- The page Notation ------------------------------------------------------------------------


def names_in_code() -> list[str]:
    """Return all names in the third column of the tables of the page Notation."""
    lines = (ROOT / "book" / "notation.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[3] for line in lines if line.startswith("| ")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


@pytest.mark.parametrize("name", names_in_code())
def test_names_of_the_notation_page_exist_in_modules_that_exist(name: str) -> None:
    path, _, parameter = name.rstrip(")").partition("(")
    module, *parts = path.split(".")
    if importlib.util.find_spec(f"optdl.{module}") is None:
        topics = {chapter.topic: chapter.exists for chapter in coverage.read_rows(ROOT)}
        assert topics.get(module) is False, f"there is no module optdl.{module}"
        return
    owner = importlib.import_module(f"optdl.{module}")
    for part in parts:
        fields = dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ()
        if part in {field.name for field in fields}:
            return
        owner = getattr(owner, part)
    assert not parameter or parameter in inspect.signature(owner).parameters


def test_the_notation_page_names_code_of_every_chapter_that_exists() -> None:
    modules = {name.split(".")[0] for name in names_in_code()}
    existing = {chapter.topic for chapter in coverage.gather(ROOT).chapters if chapter.exists}
    assert existing <= modules
