"""Say what a cell is to nbgrader, and read its errors."""

import re
from typing import Any

KINDS = ("grade", "solution", "task")  # what a cell can be, in nbgrader's metadata
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
COLORS = re.compile(r"\x1b\[[0-9;]*m")  # what colors the text of an error in a terminal


class Unready(Exception):
    """The course is not ready to be graded; the text says what to do."""


def require_python(kernelspec: Any, name: str) -> None:
    """Raise unless the kernel that a notebook names runs Python, as far as it tells."""
    language = (kernelspec or {}).get("language") or "python"
    if language.lower() != "python":
        why = f"expected a notebook in Python, got {name}.ipynb in {language}: gradebox runs Python"
        raise Unready(f"{why} alone; grade this assignment with nbgrader's own steps")


def setting(trait: Any, about: str) -> Any:
    """Return a trait that a configuration may set."""
    trait.help = about
    return trait.tag(config=True)


def settings(step: Any) -> list[str]:
    """Return the settings of one of nbgrader's steps as texts that are the same in every run."""
    return [f"{name} {getattr(step, name)}" for name in sorted(step.traits(config=True))]


def of(cell: Any) -> Any:
    """Return nbgrader's metadata of a cell, which a student may have replaced by anything."""
    metadata = cell.metadata.get("nbgrader")
    return metadata if isinstance(metadata, dict) else {}


def is_test(cell: Any) -> bool:
    """Return whether a cell is a test."""
    own = of(cell)
    is_graded = bool(own.get("grade")) and "grade_id" in own
    return is_graded and not own.get("solution") and cell.cell_type == "code"


def name_of(cell: Any) -> str:
    """Return what a cell is called in nbgrader; nothing if it is called nothing."""
    name = of(cell).get("grade_id")
    return name if isinstance(name, str) else ""


def headings(nb: Any) -> dict[str, str]:
    """Return the heading above each cell of nbgrader's, or else its name, by its name."""
    names, heading = dict[str, str](), ""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and not of(cell).get("solution"):
            heading = [heading, *HEADING.findall(cell.source)][-1]
        if name := name_of(cell):
            names[name] = re.sub(r"[*`$\\]", "", heading) or name
    return names


def points_of(cell: Any) -> float:
    """Return what a test is worth."""
    return float(cell.metadata.nbgrader.get("points", 0))


def errors(cell: Any) -> list[Any]:
    """Return the errors among the outputs of a cell."""
    return [output for output in cell.get("outputs", []) if output.output_type == "error"]


def error_text(cell: Any) -> str:
    """Return the tracebacks of a cell without colors."""
    return COLORS.sub("", "\n".join(line for error in errors(cell) for line in error.traceback))


def is_output(output: dict[str, Any]) -> bool:
    """Return whether an output is built as the format of notebooks says; a student can send any."""
    match output:
        case {"output_type": "stream", "name": str(), "text": str()}:
            return True
        case {"output_type": "error", "ename": str(), "evalue": str(), "traceback": list(lines)}:
            return _are_texts(lines)
        case {"output_type": "display_data", "data": data, "metadata": dict()}:
            return is_bundle(data)
        case {"output_type": "execute_result", "data": data, "metadata": dict(), **more}:
            return is_bundle(data) and isinstance(more.get("execution_count", ""), int | None)
    return False


def is_bundle(data: Any) -> bool:
    """Return whether something is what one output or attachment shows, by its types."""
    return isinstance(data, dict) and all(
        _are_texts(value if isinstance(value, list) else [value])
        for name, value in data.items()
        if not name.endswith("json")
    )


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
