"""Ways to answer an exercise, right and wrong, as the source of its answer cell."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any

Answer = Callable[[str], str]
"""Takes the right answer's source, gives another."""

Definition = ast.FunctionDef | ast.ClassDef
"""What an answer cell holds one of."""

MARKS = re.compile(r"^[^\n]*### (?:BEGIN|END) SOLUTION[^\n]*\n?", re.M)
SCHEME = re.compile(r"^[^\n]*### BEGIN MARK SCHEME.*?### END MARK SCHEME[^\n]*\n?", re.M | re.S)


def right(source: str) -> str:
    """Return an instructor's cell as a student would have written it."""
    return SCHEME.sub("", MARKS.sub("", source)).strip("\n")


def defined_name(source: str) -> str | None:
    """Return the name of the last function or class at the top level of a cell, if any."""
    names = [node.name for node in ast.parse(source).body if isinstance(node, Definition)]
    return names[-1] if names else None


class _Returns(ast.NodeTransformer):
    """Replace what a function does at its own ``return``, not at those of inner functions.

    Of a class, the functions are its methods.
    """

    def __init__(self, change: Callable[[ast.expr], ast.stmt]) -> None:
        self.change = change
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        if self.depth == 0:
            self.depth += 1
            self.generic_visit(node)
            self.depth -= 1
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return self.change(node.value) if node.value is not None else node


def _change_returns(source: str, change: Callable[[ast.expr], ast.stmt]) -> str:
    tree = _Returns(change).visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree))


def forgets_return(source: str) -> str:
    """Compute the answer, and keep it; what returns nothing stays right."""
    name = ast.Name("answer", ast.Store())
    return _change_returns(source, lambda value: ast.Assign([name], value))


def prints(source: str) -> str:
    """Print the answer in place of returning it."""
    name = ast.Name("print", ast.Load())
    return _change_returns(source, lambda value: ast.Expr(ast.Call(name, [value], [])))


def wrong_shape(source: str) -> str:
    """Return the answer with an axis too many."""

    def wrapped(value: ast.expr) -> ast.stmt:
        return ast.Return(ast.List([value], ast.Load()))

    return _change_returns(source, wrapped)


def _with_body(source: str, body: str) -> str:
    """Keep signature and docstring of the last definition, and put another body there.

    Of a class, each method gets that body.
    """
    tree = ast.parse(source)
    answer = next(node for node in reversed(tree.body) if isinstance(node, Definition))
    inside = answer.body if isinstance(answer, ast.ClassDef) else [answer]
    for function in inside:
        if isinstance(function, ast.FunctionDef):
            has_docstring = ast.get_docstring(function) is not None
            function.body = [*function.body[:has_docstring], *ast.parse(body).body]
    return ast.unparse(tree)


def raises(source: str) -> str:
    """Fail with an error of one's own."""
    return _with_body(source, 'raise ValueError("I do not know how to begin")')


def never_ends(source: str) -> str:
    """Wait for a condition that never comes."""
    return _with_body(source, "error = 1.0\nwhile error > 0:\n    error = abs(error)")


def syntax_error(source: str) -> str:
    """Forget the colon after the signature."""
    lines = source.splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith(("def ", "class ")))
    closing = next(n for n in range(last, len(lines)) if lines[n].rstrip().endswith(":"))
    lines[closing] = lines[closing].rstrip()[:-1]
    return "\n".join(lines)


def other_name(source: str) -> str:
    """Define the function or class under a name of one's own."""
    name = str(defined_name(source))
    return _renamed(source, name, f"my_{name}")


def as_source(answer: Callable[..., Any], name: str) -> str:
    """Return the source of a function or class, under another name, ready for a notebook.

    What was made from a text has that text as its attribute ``source``.
    """
    text = getattr(answer, "source", None)
    source = textwrap.dedent(text or inspect.getsource(inspect.unwrap(answer)))
    return _renamed(source, answer.__name__, name).rstrip("\n")


def _renamed(source: str, old: str, new: str) -> str:
    """Return a source in which the definition of a name, and only that, has another one."""
    return re.sub(rf"^(def|class) {old}\b", rf"\1 {new}", source, flags=re.M)
