"""Make the record of each lab's own solution: ``python -m tools.classroom.lab_records optimizers``.

It lies beside the source notebook, belongs to the sample student whom the notebook names, and is
never released. The sample class and the tests use it.
"""

import importlib
from typing import Any

from gradebox.nbgrader.cells import of
from optdl.labs import perform
from tools import notebooks
from tools.classroom import answers
from tools.layout import HERE, LAB, RECORD, Course
from tools.terminal import ToolError, argument, command, console


def answers_of(source: Any) -> dict[str, Any]:
    """Return what the answer cells of a notebook define."""
    names: dict[str, Any] = {"__name__": "answers"}
    cells = notebooks.read(source).cells
    imports = [cell for cell in cells if cell.get("id", "").endswith("-imports")]
    given = [cell for cell in cells if cell.cell_type == "code" and of(cell).get("solution")]
    for cell in [*imports, *given]:
        exec(answers.right(cell.source), names)
    return names


@command(argument("topics", nargs="+", metavar="TOPIC", help="a topic that has a lab"))
def main(topics: list[str], course: Course = HERE) -> None:
    """Make the records of the labs that are named."""
    for topic in topics:
        source, path = course.source(topic, LAB), course.solutions / topic / RECORD
        if not source.exists():
            raise ToolError(f"{topic} has no lab", "name a topic with a lab.ipynb in solutions/")
        names = answers_of(source)
        lab = importlib.import_module(f"optdl.labs.{topic}").LAB
        path.unlink(missing_ok=True)
        told = {name: names[name]() for name in ("user", "predictions")}
        record = perform(lab, names, path=path, **told)
        console.print(f"{path.relative_to(course.root)}: {len(record.runs)} runs")
