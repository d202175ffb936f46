"""What a cell that failed may have left half made, and which tests rest on it.

A loop that ends with an answer's error has counted no mistakes, and a later test finds none. So a
test that uses what a failed cell was still to change is looked at. Nothing of that was run: the
text of the cell says what it binds and changes, and the code of the instructor's own functions and
classes whether they keep anything.
"""

import ast
import dis
import gc
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

MAX_OBJECTS = 20_000  # so many are looked through behind a name
_ATOMS = (NoneType, bool, int, float, complex, str, bytes, range, CodeType)
_CONTAINERS = (list, dict, set, deque, bytearray, np.ndarray)
_MUTATORS = {name for kind in (list, set, deque) for name in dir(kind)}
_MUTATORS -= {*dir(tuple), *dir(frozenset), "copy"}
_MUTATORS |= {"popitem", "setdefault", "update"}
_FILLING = (  # functions of Python's and NumPy's that change an argument
    *("setattr", "delattr", "heappush", "heappop", "heapify", "insort", "insort_left", "shuffle"),
    *("insort_right", "copyto", "put", "place", "putmask", "fill_diagonal", "at"),
)
_STORES = ("STORE_SUBSCR", "STORE_ATTR", "STORE_GLOBAL", "DELETE_SUBSCR", "DELETE_ATTR")


class Doubts:
    """What failed cells may have left half made: names, and objects behind ``names``."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names, self._folder = names, Path.cwd()
        self._bound, self._objects = set[str](), dict[int, Any]()

    def add(self, statements: list[ast.stmt]) -> None:
        """Remember what statements that failed, or were not reached, were to change or bind."""
        changed, found = self._changed(statements), self._mentioned(statements)
        names = (node for node in _walk(statements) if isinstance(node, ast.Name))
        bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        self._bound |= bound & {name for name, _ in found}
        for name, reached in found:
            first = dict(islice(reached.items(), 1))
            is_changed = name in changed or any(isinstance(v, Iterator) for v in first.values())
            if is_changed or any(map(_changes_something, reached.values())):
                self._objects |= {n: v for n, v in reached.items() if self._can_keep(v)}
            self._objects |= first if is_changed else {}

    def settle(self, bound: Iterable[str]) -> None:
        """Forget names that a cell which did not fail has bound anew."""
        self._bound.difference_update(bound)

    def of(self, statements: list[ast.stmt]) -> list[str]:
        """Return the names in a test through which it uses what may be half made."""
        if not self._bound and not self._objects:
            return []
        found = self._mentioned(statements)
        return sorted({n for n, some in found if n in self._bound or self._objects.keys() & some})

    def _changed(self, statements: list[ast.stmt]) -> set[str]:
        """Return the names of what statements change in place, or by another name for it."""
        changed, others = set[str](), list[tuple[Any, Any]]()
        for node in _walk(statements):
            match node:
                case ast.Attribute(ctx=context) | ast.Subscript(ctx=context):
                    changed |= {base_of(node)} if not isinstance(context, ast.Load) else set()
                case ast.Call(function, arguments):
                    changed.update(map(base_of, arguments if self._fills(function) else ()))
                    if isinstance(function, ast.Attribute) and function.attr in _MUTATORS:
                        changed.add(base_of(function))
                case ast.Expr(ast.Call(ast.Attribute(value, name))):
                    # what it returns is thrown away, and it is no assertion
                    if "assert" not in name and not self._has_code(value):
                        changed.add(base_of(value))
                case ast.For(target, value) | ast.comprehension(target, value):
                    others.append((target, value))
                case ast.withitem(value, ast.AST() as target):
                    others.append((target, value))
                case ast.Assign(targets, value):
                    others += [(target, value) for target in targets]
        for _ in others:
            for target, value in others:
                if not changed.isdisjoint(_loaded(target)):
                    changed.update(_loaded(value))
        return changed

    def _has_code(self, node: ast.expr) -> bool:
        """Return whether code tells what methods do, of a module, or of a class of one's own."""
        value = dict.get(self._names, base_of(node))
        return isinstance(value, ModuleType | type) or self._is_own(type(value))

    def _fills(self, function: ast.expr) -> bool:
        """Return whether a call may change its arguments: ``heappush``, not ``print``."""
        value: Any = dict.get(self._names, base_of(function))
        last = function.attr if isinstance(function, ast.Attribute) else ""
        if last and isinstance(value, ModuleType):
            value = vars(value).get(last)
        if isinstance(value, FunctionType) and self._is_own(value):
            return any(map(_changes_something, self._reached(value).values()))
        return (last or getattr(value, "__name__", base_of(function))) in _FILLING

    def _mentioned(self, statements: list[ast.stmt]) -> list[tuple[str, dict[int, Any]]]:
        """Return the names in statements, with the objects behind them; of a module a part each."""
        code = compile(ast.Module(statements, []), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        known, found = _names_in(code), set[tuple[str, str]]()  # the names that are not local
        for node in _walk(statements):
            if isinstance(node, ast.Name):
                found.add((node.id, ""))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add((node.value.id, node.attr))
        names = sorted(each for each in found if each[0] in known)
        values = [(name, part, dict.get(self._names, name)) for name, part in names]
        return [
            (name, {id(value): value} | self._reached(vars(value).get(part)))
            if isinstance(value, ModuleType)
            else (name, self._reached(value))
            for name, part, value in values
            if isinstance(value, ModuleType) == bool(part)
        ]

    def _reached(self, value: Any) -> dict[int, Any]:
        """Return the objects behind a value, by their ids, and first itself."""
        found, waiting = dict[int, Any](), [value]
        while waiting and len(found) < MAX_OBJECTS:
            each = waiting.pop()
            is_whole = isinstance(each, type | ModuleType | FunctionType)
            if id(each) in found or isinstance(each, _ATOMS) or each is self._names:
                continue
            if is_whole and not self._is_own(each):
                continue
            found[id(each)] = each
            if not is_whole:
                waiting += gc.get_referents(each)
                waiting += [each.base] if isinstance(each, np.ndarray) else []
                continue
            waiting += [*vars(each).values(), *getattr(each, "__mro__", ())]
            if isinstance(each, FunctionType):  # not all names of its module: those that it uses
                waiting += (each.__globals__.get(name) for name in _names_in(each.__code__))
                waiting += [each.__closure__, each.__defaults__]
                module: Any = sys.modules.get(each.__module__)
                found |= {id(module): module} if self._is_own(module) else {}
        return found

    def _is_own(self, value: Any) -> bool:
        """Return whether a function, a class or a module is the instructor's own."""
        name = str(value.__name__ if isinstance(value, ModuleType) else value.__module__)
        file = getattr(sys.modules.get(name), "__file__", None) or "/"
        return name == "__main__" or Path(file).is_relative_to(self._folder)

    def _can_keep(self, value: Any) -> bool:
        """Return whether something can hold what a test has found."""
        if isinstance(value, FunctionType):
            return bool(vars(value))
        if isinstance(value, ModuleType):
            return False
        if isinstance(value, type):  # through its own name, or a method of the class
            parts = [getattr(part, "__func__", part) for part in vars(value).values()]
            codes = [part.__code__ for part in parts if isinstance(part, FunctionType)]
            return any(value.__name__ in _names_in(code) for code in codes)
        is_tensor = type(value).__name__ == "Tensor"
        return isinstance(value, _CONTAINERS) or is_tensor or self._is_own(type(value))


def base_of(node: ast.expr) -> str:
    """Return the name of which this is a part, or what a call of a part gave; else nothing."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Attribute(value) | ast.Subscript(value) | ast.Starred(value):
                node = value
            case ast.Call(ast.Attribute(value)):
                node = value
            case _:
                return ""
    return node.id


def _walk(nodes: Iterable[ast.AST]) -> Iterator[Any]:
    return chain.from_iterable(map(ast.walk, nodes))


def _loaded(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _changes_something(value: Any) -> bool:
    is_one = isinstance(value, FunctionType) and value.__name__ != "__init__"
    return is_one and _stores(value.__code__)


@cache
def _names_in(code: CodeType) -> frozenset[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inner))


@cache
def _stores(code: CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    stores = any(each.opname in _STORES for each in dis.get_instructions(code))
    return stores or not _MUTATORS.isdisjoint(code.co_names) or any(map(_stores, inner))
