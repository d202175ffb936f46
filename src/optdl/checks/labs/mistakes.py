"""Write a misconception as the lines in which it differs from the reference."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from optdl.checks.exercise import Misconception

__all__ = ["mistake"]

NAMES = {"np": np, "torch": torch, "nn": nn}
"""What the code of a lab's answer may use beside its arguments, as in the notebook."""


def mistake(
    hint: str,
    reference: Callable[..., Any],
    *changes: tuple[str, str],
    names: Mapping[str, Any] | None = None,
) -> Misconception:
    """Return the reference with some of its text changed, as a misconception.

    Parameters
    ----------
    hint : str
        What the student sees.
    reference : callable
        A function or class that uses its arguments, builtins, ``np``, ``torch`` and ``nn`` alone.
    *changes : pair of str
        What stands once in the reference, and what the mistaken code has there.
    names : mapping, optional
        What the notebook imports beside ``np``, ``torch`` and ``nn``.

    Raises
    ------
    ValueError
        If a text does not stand exactly once in the reference.
    """
    source = textwrap.dedent(inspect.getsource(reference))
    for old, new in changes:
        if source.count(old) != 1:
            raise ValueError(f"{old!r} stands {source.count(old)} times in {reference.__name__}")
        source = source.replace(old, new)
    code = ast.unparse(_Bare().visit(ast.parse(source)))
    space: dict[str, Any] = {**NAMES, **(names or {})}
    exec(compile(code, f"<mistaken {reference.__name__}>", "exec"), space)
    function = space[reference.__name__]
    function.source = code
    return Misconception(hint, function)


class _Bare(ast.NodeTransformer):
    """Leave out what a student's code has not: annotations and docstrings."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self._without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return self._without_docstring(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            node.body = node.body[1:]
        self.generic_visit(node)
        return ast.fix_missing_locations(node)
