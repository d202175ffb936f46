"""Every row of a chapter that exists is taught, implemented, tested and asked; holes are found."""

import importlib
import inspect
import json
import pydoc
import re
from pathlib import Path
from typing import Any

import pytest

from tools.layout import ROOT
from tools.site import coverage
from tools.terminal import ToolError

PAGE, CODE, TESTS = "book/bowls/index.md", "src/optdl/bowls.py", "tests/optdl/test_bowls.py"
TASKS, LAB_TASKS, ROWS = "solutions/bowls/bowls.ipynb", "solutions/bowls/lab.ipynb", "book/rows.yml"
LAB_CODE = "src/optdl/checks/bowls/lab_1_net.py"
MARK = '@pytest.mark.row("L1-01", "P-01")\ndef test_bowl(): pass\n'
COURSE = {
    ROWS: """chapters:
- {topic: bowls, title: Bowls, rows: [{id: L1-01, title: A bowl, exercise: true},
    {id: "L1-02, P-01", title: Two names of one thing}, {id: LAB-1, title: A lab, exercise: true}]}
- {topic: valleys, title: Valleys, rows: [{id: L2-01, title: A valley}]}
""",
    PAGE: "# Bowls\n\n(L1-01)=\n(P-01)=\n## What $f$ is\n\n```{note}\n(L2-99)=\n```\n\n"
    "(LAB-1)=\n## Lab\n",
    CODE: """class Bowl:
    'Source: L1-01'
    def value(self):
        'A value (Source: L1-02, L1-01).'
def plain():
    'Nothing. The Source: L2-99 of a sentence is not a line of its own.'
""",
    LAB_CODE: "def net():\n    'Source: LAB-1'\n",
    TESTS: f'import pytest\n{MARK}@pytest.mark.row("LAB-1")\ndef test_lab(): pass\n',
    TASKS: 'check("L1-01:depth", depth)',
    LAB_TASKS: 'check("LAB-1, P-01:net", Net, seed=7)',
    "book/valleys/index.md": "# Valleys\n",  # which the contents do not name
    "_toc.yml": "chapters:\n- file: book/bowls/index\n",
}  # fmt: skip


def write(root: Path, file: str = "", old: str = "", new: str = "", grade: bool = True) -> Path:
    """Write a small course, in which one text is replaced; a notebook has one cell."""
    for name, text in COURSE.items():
        assert name != file or old in text
        edited = text.replace(old, new) if name == file else text
        marks = {"metadata": {"nbgrader": {"grade": grade}}, "source": [edited]}
        cell = {"id": "check", "cell_type": "code"} | marks
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cells": [cell]}) if "ipynb" in name else edited)
    return root


# what is edited in the complete course → the problems: (first) name of the row, kind, file
ASKED, LAB = ("L1-01", "exercise", TASKS), ("LAB-1", "exercise", LAB_TASKS)
UNTESTED = [(row, "test", TESTS) for row in ("L1-01", "L1-02")]
EDITS = [
    (PAGE, "(L1-01)=\n", "", [("L1-01", "section", "book/bowls")]),
    (CODE, "L1-02, ", "", [("L1-02", "code", CODE)]),
    (LAB_CODE, "Source", "See", [("LAB-1", "code", LAB_CODE.replace("net", "*"))]),
    (TESTS, ', "P-01"', "", UNTESTED[1:]),
    (TESTS, '"LAB-1"', '"L1-01"', [("LAB-1", "test", "tests/checks/test_lab_records.py")]),
    (TASKS, "L1-01:depth", "P-01:depth", [ASKED]),
    (LAB_TASKS, "LAB-1, ", "", [LAB]),
    # what proves nothing
    (TESTS, MARK, f"@pytest.mark.skip\n{MARK}", UNTESTED),
    # what is no row, or stands in a wrong place
    (PAGE, "(L1-01)=", "(L1-01)=\n(L9-01)=", [("L9-01", "id", PAGE)]),
    (CODE, "L1-02, ", "L1-02, L9-01, ", [("L9-01", "id", CODE)]),
    (TESTS, '"P-01"', '"P-01", "L9-01"', [("L9-01", "id", TESTS)]),
    (TASKS, "depth)", 'depth)\ncheck("L9-01:x", depth)', [("L9-01", "id", TASKS)]),
    (PAGE, "## Lab", "## Lab\n\n(L2-01)=\n## A valley", [("L2-01", "id", PAGE)]),
    (PAGE, "## Lab", "A sentence.", [("LAB-1", "id", PAGE), ("LAB-1", "section", "book/bowls")]),
]  # fmt: skip
REFUSED = [
    (ROWS, "id: L2-01", "id: P-01", "P-01 twice"),
    (TESTS, '"L1-01"', "f'L1-{1}'", "not a string"),
]


def test_no_chapter_that_exists_has_a_hole() -> None:
    chapters, problems = coverage.gather(ROOT)
    assert not problems, "\n".join(problems)
    named = {name.split(".")[0] for name in names_in_code()}
    assert {chapter.topic for chapter in chapters if chapter.exists} <= named


def test_public_docstrings_name_their_source():
    lacking = []
    for chapter in coverage.read_rows(ROOT):
        module = importlib.import_module(f"optdl.{chapter.topic}")
        for value in (getattr(module, name) for name in module.__all__):
            is_code = inspect.isfunction(value) or inspect.isclass(value)
            if is_code and not coverage.SOURCE.search(inspect.cleandoc(value.__doc__ or "")):
                value = inspect.unwrap(value)
                place = f"{inspect.getsourcefile(value)}:{inspect.getsourcelines(value)[1]}"
                lacking.append(f"{place}: {value.__name__} names no row, as (Source: L1-07) does")
    assert not lacking, "\n".join(lacking)


def read(problem: str) -> tuple[str, str, str]:
    """Return the row of a problem, the kind of place that it lacks or "id", and the file."""
    file, row, kind = re.match(r"([^\s:]+)(?::\d+)?: (\S+) (?:has no (\w+); )?", problem).groups()
    return row, kind or "id", file


def test_each_hole_names_the_file_to_edit(tmp_path):
    wrong = []
    for number, (file, old, new, expected) in enumerate(EDITS):
        _, problems = coverage.gather(write(tmp_path / str(number), file, old, new))
        found = [read(problem) for problem in problems]
        wrong += [(file, new, found)] if found != expected else []
    assert wrong == []
    _, ungraded = coverage.gather(write(tmp_path / "ungraded", grade=False))
    assert [read(problem) for problem in ungraded] == [ASKED, LAB]
    for number, (file, old, new, message) in enumerate(REFUSED):
        with pytest.raises(ToolError, match=message):
            coverage.gather(write(tmp_path / f"refused-{number}", file, old, new))


def test_a_complete_course_has_places_and_no_problem(tmp_path: Path) -> None:
    (bowls, valleys), problems = coverage.gather(write(tmp_path))
    names = [{k: [x.name for x in row.of(k)] for k in coverage.KINDS} for row in bowls.rows]
    values = [[*row.values()] for row in names]
    assert values == [
        [["What $f$ is"], ["bowls.Bowl", "bowls.Bowl.value"], ["test_bowls::test_bowl"], ["depth"]],
        [["What $f$ is"], ["bowls.Bowl.value"], ["test_bowls::test_bowl"], ["Net"]],
        [["Lab"], ["checks.bowls.lab_1_net.net"], ["test_bowls::test_lab"], ["Net"]],
    ]
    assert not any(row.missing for row in bowls.rows)
    assert (problems, bowls.exists, valleys.exists) == ([], True, False)
    (tmp_path / "_toc.yml").write_text("chapters:\n- file: book/valleys\n- file: book/bowls\n")
    assert [chapter.topic for chapter in coverage.read_rows(tmp_path)] == ["valleys", "bowls"]


def names_in_code() -> list[str]:
    """Return all names in the third column of the tables of the page Notation."""
    lines = (ROOT / "book" / "notation.md").read_text(encoding="utf-8").splitlines()
    cells = [line.split("|")[3] for line in lines if line.startswith("| ")]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def exists(name: str) -> bool:
    path, _, parameter = name.rstrip(")").partition("(")
    owner, _, own = path.rpartition(".")
    if own in getattr(pydoc.locate(f"optdl.{owner}"), "__dataclass_fields__", {}):
        return True
    value: Any = pydoc.locate(f"optdl.{path}")
    return bool(value) and (not parameter or parameter in inspect.signature(value).parameters)


def test_names_of_the_notation_page_exist():
    assert [name for name in names_in_code() if not exists(name)] == []
