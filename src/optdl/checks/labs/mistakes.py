"""Write a misconception as the lines in which it differs from the reference."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
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
    given: Mapping[str, Any] = MappingProxyType({}),
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
    given : mapping
        What else the reference uses by its name: earlier answers of the same notebook, and what
        the notebook imports.

    Raises
    ------
    ValueError
        If a text does not stand exactly once in the reference.
    """
    source = _source_of(reference)
    for old, new in changes:
        if source.count(old) != 1:
            raise ValueError(f"{old!r} stands {source.count(old)} times in {reference.__name__}")
        source = source.replace(old, new)
    code = ast.unparse(_Bare().visit(ast.parse(source)))
    names: dict[str, Any] = {**NAMES, **given}
    exec(compile(code, f"<mistaken {reference.__name__}>", "exec"), names)
    function = names[reference.__name__]
    function.source = code
    return Misconception(hint, function)


@cache
def _source_of(reference: Callable[..., Any]) -> str:
    """Return the text of a function or a class; to find that of a class takes 20 milliseconds."""
    return textwrap.dedent(inspect.getsource(reference))


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

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def _without_docstring(self, node: Any) -> ast.AST:
        if ast.get_docstring(node) is not None and len(node.body) > 1:
            node.body = node.body[1:]
        self.generic_visit(node)
        return ast.fix_missing_locations(node)
