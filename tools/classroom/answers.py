"""Ways to answer an exercise, right and wrong, as the source of its answer cell."""

import ast
import re
from collections.abc import Callable
from pathlib import Path

from optdl.checks import catalog

Answer = Callable[[str], str]  # takes the right answer's source, gives another
Definition = ast.FunctionDef | ast.ClassDef  # what an answer cell holds one of
MARKS = re.compile(r"^[^\n]*### (?:BEGIN|END) SOLUTION[^\n]*\n?", re.M)
SCHEME = re.compile(r"^[^\n]*### BEGIN MARK SCHEME.*?### END MARK SCHEME[^\n]*\n?", re.M | re.S)


def right(source: str) -> str:
    """Return an instructor's cell as a student would have written it."""
    return SCHEME.sub("", MARKS.sub("", source)).strip("\n")


def defined_name(source: str) -> str | None:
    """Return the name of the last function or class at the top level of a cell, if any."""
    names = [node.name for node in ast.parse(source).body if isinstance(node, Definition)]
    return names[-1] if names else None


def with_body(source: str, body: str) -> str:
    """Put another body into the last function of a source."""
    tree = ast.parse(source)
    function = next(node for node in reversed(tree.body) if isinstance(node, ast.FunctionDef))
    docstring = function.body[: ast.get_docstring(function) is not None]
    function.body = [*docstring, *ast.parse(body).body]
    return ast.unparse(tree)


def never_ends(source: str) -> str:
    """Wait for a condition that never comes."""
    return with_body(source, "error = 1.0\nwhile error > 0:\n    error = abs(error)")


def syntax_error(source: str) -> str:
    """Forget the colon after the signature."""
    return re.sub(r"^(def [^:]+\)):$", r"\1", source, count=1, flags=re.M)


def under_another_name(source: str) -> str:
    """Define the function, and no class, under a name of one's own; assign it to the right one."""
    name = defined_name(source)
    renamed = re.sub(rf"^def {name}\b", f"def my_{name}", source, flags=re.M)
    return source if renamed == source else f"{renamed}\n\n\n{name} = my_{name}"


def hints(key: str) -> list[str]:
    """Return the hints of an exercise, from a question to nearly the line, in Markdown."""
    return catalog.find(key).hints


def files_with_hints(topic: str) -> list[Path]:
    """Return the files in which the hints of a topic are written."""
    return sorted((Path(catalog.__file__).parent / topic).glob("*.py"))
