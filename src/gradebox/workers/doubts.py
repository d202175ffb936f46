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
from itertools import chain
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType, NoneType
from typing import Any

import numpy as np

MAX_OBJECTS = 20_000  # so many are looked through behind a name
_ATOMS = (NoneType, bool, int, float, complex, str, bytes, range, CodeType)
_CONTAINERS = (list, dict, set, deque, bytearray, np.ndarray, CellType)
_SOMETIMES = (ast.If, ast.While, ast.Try, ast.Match)
_MUTATORS = {name for kind in (list, set, deque) for name in dir(kind)}
_MUTATORS -= {*dir(tuple), *dir(frozenset), "copy"}
_MUTATORS |= {"popitem", "setdefault", "update", "put", "put_nowait", "write", "writerow"}
_FILLING = (  # functions of Python's and NumPy's that change an argument
    *("setattr", "delattr", "heappush", "heappop", "heapify", "insort", "insort_left", "shuffle"),
    *("insort_right", "copyto", "put", "place", "putmask", "fill_diagonal", "at", "setitem"),
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
        self._bound |= _stored(statements) & {name for name, _ in found}
        for name, reached in found:
            first = next(iter(reached.values()), None)
            is_changed = name in changed or isinstance(first, Iterator)
            functions = [each for each in reached.values() if _changes_something(each)]
            if is_changed or functions:
                self._objects |= {n: v for n, v in reached.items() if self._can_keep(v)}
            if is_changed and (not isinstance(first, ModuleType) or self._is_own(first)):
                self._objects[id(first)] = first
            for each in functions:  # that count in a plain number
                found_in = dis.get_instructions(each) if isinstance(each, FunctionType) else ()
                if counts := {i.argval for i in found_in if i.opname == "STORE_GLOBAL"}:
                    module = sys.modules.get(each.__module__)
                    is_here = each.__globals__ is self._names
                    self._bound |= counts if is_here else set()
                    self._objects |= {} if is_here else {id(module): module}

    def passed(self, statements: list[ast.stmt], first: Iterable[str]) -> list[str]:
        """Return the names through which a cell that passed uses what may be half made.

        What it binds ``first`` is made anew; but what it makes of half of something is half, too.
        """
        if not self._bound and not self._objects:
            return []
        always = [each for each in statements if not isinstance(each, _SOMETIMES)]
        anew = {*first} & _stored(always)
        found = [(name, some) for name, some in self._mentioned(statements) if name not in anew]
        used = {n for n, some in found if n in self._bound or self._objects.keys() & some}
        self._bound = self._bound | _stored(statements) if used else self._bound - anew
        return sorted(used)

    def _changed(self, statements: list[ast.stmt]) -> set[str]:
        """Return the names of what statements change in place, or by another name for it."""
        changed, others = set[str](), list[tuple[Any, Any]]()
        for node in _walk(statements):
            match node:
                case ast.Attribute(attr=name) if name in _MUTATORS:  # also where it is not called
                    changed.add(base_of(node))
                case ast.Attribute(ctx=context) | ast.Subscript(ctx=context):
                    changed |= {base_of(node)} if not isinstance(context, ast.Load) else set()
                case ast.AugAssign(ast.Name(name)) | ast.keyword("out", ast.Name(name)):
                    changed.add(name)
                case ast.Call(function, arguments):
                    changed.update(map(base_of, arguments if self._fills(function) else ()))
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
        mentioned = []
        for name, part in sorted(each for each in found if each[0] in known):
            value = dict.get(self._names, name)
            if isinstance(value, ModuleType) and part:
                mentioned.append((name, {id(value): value} | self._reached(vars(value).get(part))))
            elif not isinstance(value, ModuleType) and not part:
                mentioned.append((name, self._reached(value)))
        return mentioned

    def _reached(self, value: Any) -> dict[int, Any]:
        """Return the objects behind a value, by their ids, and first itself."""
        found, waiting = dict[int, Any](), deque([value])
        while waiting and len(found) < MAX_OBJECTS:
            each = waiting.popleft()
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
        return name == "__main__" or _lies_in(name, self._folder)

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
        return isinstance(value, _CONTAINERS) or hasattr(value, "__dict__")


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


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    names = (node for node in _walk(nodes) if isinstance(node, ast.Name))
    return {node.id for node in names if not isinstance(node.ctx, ast.Load)}


def _loaded(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _changes_something(value: Any) -> bool:
    if isinstance(value, BuiltinFunctionType):  # such as a list's own append
        return value.__name__ in _MUTATORS and isinstance(value.__self__, _CONTAINERS)
    is_one = isinstance(value, FunctionType) and value.__name__ != "__init__"
    return is_one and _stores(value.__code__)


@cache  # it is asked of thousands of classes
def _lies_in(module: str, folder: Path) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None) or "/"
    return Path(file).is_relative_to(folder)


@cache
def _names_in(code: CodeType) -> frozenset[str]:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return frozenset(code.co_names).union(*map(_names_in, inner))


@cache
def _stores(code: CodeType) -> bool:
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    free = {("STORE_DEREF", name) for name in code.co_freevars}
    found = {(each.opname, each.argval) for each in dis.get_instructions(code)}
    stores = bool(free & found) or any(operation in _STORES for operation, _ in found)
    return stores or not _MUTATORS.isdisjoint(code.co_names) or any(map(_stores, inner))
