"""Slips that happen in any exercise, as changes of the right answer's source."""

import ast
from collections.abc import Callable

from tools.classroom import answers


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


def raises(source: str) -> str:
    """Fail with an error of one's own."""
    return answers.with_body(source, 'raise ValueError("I do not know how to begin")')
