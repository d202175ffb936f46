"""Begin a new exercise: ``python -m tools.new exercise erm L1-07:gain``.

It writes the block of the exercise into the checks and four cells into the instructor's notebook,
and says what to fill in.
"""

import re
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from tools import notebooks
from tools.fingerprints import write_if_changed
from tools.layout import LAB, ROOT, Course
from tools.terminal import ToolError, argument, command, console

BLOCK = Path(__file__).with_name("new_exercise.txt").read_text("utf-8")
"""The block of an exercise in the checks; it is Python once it is filled in."""
TASK = "## {number} · {title}\n\nWhat is to be written, and why."
NUMBER = re.compile(r"^## (\d+)(?= · )")
ANSWER = '''def {name}(x):
    """Return what is asked for.

    x       : (n,) array
    returns   a number
    """
    ### BEGIN SOLUTION
    ### END SOLUTION'''
HIDDEN = """# More cases and general facts are checked here when your work is graded.
### BEGIN HIDDEN TESTS
check("{key}", {name}, seed=7, properties=True)
check("{key}", {name}, seed=123)
### END HIDDEN TESTS"""


def exercise(course: Course, topic: str, key: str, name: str) -> list[str]:
    """Write the block and the cells of an exercise, and return what is left to do.

    The key is its row of the sources, such as ``L1-07``, or ``L1-07:gain`` where the row has
    others; the name is the function that students write.
    """
    is_lab = key.startswith("LAB")
    source = course.source(topic, LAB if is_lab else None)
    if not source.exists():
        raise ToolError(f"there is no notebook {source}", "name a topic of the course")
    row = re.split("[:,]", key)[0].lower().replace("-", "_")
    block = course.root / "src" / "optdl" / "checks" / topic / f"{row}_{name.lower()}.py"
    if block.exists():
        raise ToolError(f"{block} is there already", "choose another name with --function")
    notebook = notebooks.read(source)
    prefix = f"{topic}-lab" if is_lab else topic
    tests = [n for n, cell in enumerate(notebook.cells) if cell.id.endswith("-hidden")]
    position = max(tests, default=len(notebook.cells) - 1) + 1
    number = 1 + sum(bool(NUMBER.match(cell.source)) for cell in notebook.cells[:position])
    cells = _cells(f"{prefix}-{name.replace('_', '-').lower()}", key, name, number)
    if {cell.id for cell in cells} & {cell.id for cell in notebook.cells}:
        raise ToolError(f"{source} has such cells already", "choose another name with --function")
    for cell in notebook.cells[position:]:
        cell.source = NUMBER.sub(lambda found: f"## {int(found[1]) + 1}", cell.source)
    notebook.cells[position:position] = cells
    text = BLOCK.format(topic=topic, key=key, name=name, title=name.replace("_", " ").capitalize())
    write_if_changed(block, text.encode())
    write_if_changed(source, notebooks.to_bytes(notebook))
    package = course.root / "src" / "optdl" / topic
    module = package if package.is_dir() else package.with_suffix(".py")
    return [
        f"write {name} in {module.relative_to(course.root)} and list it in __all__, with the row "
        f"in its docstring: Source: {key.partition(':')[0]}",
        f"fill in {block.relative_to(course.root)}: cases, facts, hints, and the usual mistakes",
        f"fill in the cells {cells[1].id} of {source.relative_to(course.root)}: title, task, "
        f"answer; correct how many exercises its first cell and book/{topic}/index.md count",
        f"put the directive {{exercise}} {cells[1].id} into a lesson, right after its formula",
        f'.venv/bin/pytest tests/checks -k "{key}"',
        f"make release A={topic}",
        "python -m tools.site.syllabus, which writes its hours and points into book/syllabus.md",
        f'.venv/bin/pytest tests/checks/test_assignments.py -k "{topic}", and '
        ".venv/bin/pytest tests/book/test_coverage.py -k hole",
    ]


def _cells(cell_id: str, key: str, name: str, number: int) -> list[NotebookNode]:
    """Return the task, the answer, and the two tests of an exercise."""
    text = TASK.format(number=number, title=name.replace("_", " ").capitalize())
    cells = [new_markdown_cell(text, id=f"{cell_id}-task")]  # type: ignore[no-untyped-call]
    for suffix, source, points in (
        ("", ANSWER.format(name=name), {}),
        ("-visible", f'check("{key}", {name})', {"points": 1}),
        ("-hidden", HIDDEN.format(key=key, name=name), {"points": 2}),
    ):
        is_test = bool(points)
        marks = {"grade_id": cell_id + suffix, "schema_version": 3, "task": False, **points}
        marks |= {"grade": is_test, "locked": is_test, "solution": not is_test}
        cell = new_code_cell(source, id=cell_id + suffix, metadata={"nbgrader": marks})  # type: ignore[no-untyped-call]
        cells.append(cell)
    return [notebooks.node(cell) for cell in cells]


@command(
    argument("kind", choices=["exercise"], help="what is begun"),
    argument("topic", metavar="TOPIC"),
    argument("key", metavar="KEY", help="the row of the sources, such as L1-07:gain"),
    argument("--function", metavar="NAME", help="what students write, if not named so"),
)
def main(kind: str, topic: str, key: str, function: str | None) -> None:
    """Write what is asked for, and say what to do next."""
    name = function or key.partition(":")[2].replace("-", "_")
    if not name.isidentifier():
        raise ToolError(f"{key} names no function", "name it: --function NAME")
    for number, step in enumerate(exercise(Course(ROOT), topic, key, name), 1):
        console.print(f"{number}. {step}", markup=False)
