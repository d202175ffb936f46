"""Mutations of the model solutions, with the operators that are usual in mutation tools.

What is mutated is the reference as the notebook in ``solutions`` has it: it stands by itself, as a
student's answer does. The functions of ``optdl`` often call helpers, whose annotations are checked
while tests run, so that a mutant would behave differently there.

For each exercise there are up to ``MAX_MUTANTS``, drawn by a fixed seed, operator by operator.
Mutants that agree with the reference in all cases are left out, and so are those that behave like
another one of the same exercise. One in each exercise may raise an error in every case.
"""

import ast
import builtins
import contextlib
import copy
import io
import json
import signal
import threading
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import config

from optdl.checks import exercises, runner
from optdl.checks.exercise import Function
from optdl.observation import Observation, silence
from tools.layout import ROOT, Course

TOPICS = Course(ROOT).topics()
SEED = 20
SEEDS = range(20)
"""The seeds of the cases that a mutant must fail on at least once to count as wrong."""
MAX_MUTANTS = 6
SECONDS = 2.0
"""Processor time that a mutant may take for all its cases."""

ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
}
COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
NAMES = {
    "sum": "mean",
    "mean": "sum",
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
}


class Mutant(NamedTuple):
    """A mutation of a model solution; the label tells it from others of the same exercise."""

    key: str
    operator: str
    label: str
    source: str

    @property
    def function(self) -> Function:
        """The mutant as a function, with built-in names and ``np``."""
        namespace: dict[str, Any] = {"__builtins__": builtins, "np": np}
        exec(compile(self.source, f"<mutant {self.label}>", "exec"), namespace)
        function: Function = namespace[exercises()[self.key].name]
        return function


class TooLong(BaseException):
    """A mutant has used more processor time than it may; nothing else catches it."""


def mutants(key: str) -> list[Mutant]:
    """Return up to ``MAX_MUTANTS`` mutants that are wrong, each in its own way."""
    rng = np.random.default_rng([SEED, zlib.crc32(key.encode())])
    possible = candidates(key)
    queue = [possible[i] for i in rng.permutation(len(possible))]
    chosen: dict[Mutant, list[Observation]] = {}
    while queue and len(chosen) < MAX_MUTANTS:
        used = Counter(mutant.operator for mutant in chosen)
        mutant = min(queue, key=lambda mutant: used[mutant.operator])
        queue.remove(mutant)
        with contextlib.suppress(TooLong), limited(SECONDS), quiet():
            given = _outcomes(mutant, 0)
            if _is_wrong(mutant) and not any(_alike(key, given, one) for one in chosen.values()):
                chosen[mutant] = given
    return [*chosen]


def _outcomes(mutant: Mutant, seed: int) -> list[Observation]:
    exercise = exercises()[mutant.key]
    return exercise.outcomes(mutant.function, runner._drawn(exercise, seed)[0])


def _is_wrong(mutant: Mutant) -> bool:
    exercise = exercises()[mutant.key]
    for seed in SEEDS:
        cases, rights, _ = runner._drawn(exercise, seed)
        given = zip(cases, rights, _outcomes(mutant, seed), strict=True)
        if any(runner._reason(exercise, *one) for one in given):
            return True
    return False


def _alike(key: str, left: list[Observation], right: list[Observation]) -> bool:
    """Return whether two mutants have the same outcome in every case, or raise in every case."""
    if all(one.is_error for one in left + right):
        return True
    pairs = zip(left, right, strict=True)
    return all(a.changed == b.changed and runner._same(exercises()[key], a, b) for a, b in pairs)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what is printed and warnings, and check no annotations, as in a student's notebook."""
    disabled = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        with silence(io.StringIO()):
            yield
    finally:
        config.update("jaxtyping_disable", disabled)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TooLong after so much processor time, where the system has a timer for it."""
    main = threading.current_thread() is threading.main_thread()
    if not hasattr(signal, "setitimer") or not main:
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _too_long(*_: object) -> None:
    raise TooLong


# --- The model solutions ----------------------------------------------------------------------


@cache
def solutions() -> dict[str, ast.FunctionDef]:
    """Return the model solution of each exercise by its name, without its docstring."""
    result = {}
    for topic in TOPICS:
        text = (ROOT / "solutions" / topic / f"{topic}.ipynb").read_text(encoding="utf-8")
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and "### BEGIN SOLUTION" in source:
                [function] = ast.parse(source).body
                assert isinstance(function, ast.FunctionDef)
                result[function.name] = _without_docstring(function)
    return result


def _without_docstring(function: ast.FunctionDef) -> ast.FunctionDef:
    if ast.get_docstring(function) is not None:
        del function.body[0]
    return function


# --- Mutations --------------------------------------------------------------------------------


@cache
def candidates(key: str) -> tuple[Mutant, ...]:
    """Return all mutations of the model solution of an exercise, in the order of its text."""
    solution = solutions()[exercises()[key].name]
    result: dict[str, Mutant] = {}
    seen: Counter[str] = Counter()
    for node, operator, new in _mutations(solution):
        # the node is exchanged while the tree is copied
        tree = copy.deepcopy(solution, {id(node): new})
        source = ast.unparse(ast.fix_missing_locations(tree))
        label = f"{operator}: {_shown(node)} → {_shown(new)}"
        seen[label] += 1
        number = f" ({seen[label]})" if seen[label] > 1 else ""
        result.setdefault(source, Mutant(key, operator, label + number, source))
    result.pop(ast.unparse(solution), None)
    return tuple(result.values())


def _shown(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _mutations(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """Yield each node of the body with an operator and what it makes of the node."""
    elsewhere = _changed_elsewhere(function)
    bound = {argument.arg for argument in function.args.args}
    for statement in function.body:
        for node in ast.walk(statement):
            if id(node) not in elsewhere:
                yield from ((node, operator, new) for operator, new in _of_expression(node))
                yield from ((node, operator, new) for operator, new in _of_statement(node, bound))


def _changed_elsewhere(function: ast.FunctionDef) -> set[int]:
    """Return the numbers that other operators than that for numbers change: axes and indices."""
    numbers = set()
    for node in ast.walk(function):
        if isinstance(node, ast.keyword) and node.arg == "axis":
            numbers.add(id(node.value))
        elif isinstance(node, ast.Subscript):
            numbers |= {id(part) for part in ast.walk(node.slice) if _is_index(node.slice)}
    return numbers


def _is_index(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant | ast.UnaryOp) and isinstance(ast.literal_eval(node), int)


def _of_expression(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.BinOp(left, operator, right) if new := ARITHMETIC.get(type(operator)):
            yield "arithmetic", ast.BinOp(left, new(), right)
        case ast.Compare(left, [operator], right) if other := COMPARISON.get(type(operator)):
            yield "comparison", ast.Compare(left, [other()], right)
        case ast.BoolOp(operator, values):
            yield (
                "and/or",
                ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values),
            )
        case ast.UnaryOp(ast.USub(), operand):
            yield "sign", operand
        case ast.UnaryOp(ast.Not(), operand):
            yield "not", operand
        case ast.Constant(bool() as value):
            yield "boolean", ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield "number", ast.Constant(value + 1)
        case ast.Attribute(value, "T"):
            yield "transpose", value
        case ast.Subscript(value, index, ast.Load()) if _is_index(index):
            for step in (1, -1):
                moved = ast.Constant(ast.literal_eval(index) + step)
                yield "index", ast.Subscript(value, moved, ast.Load())
        case ast.Subscript(value, ast.Name() as index, ast.Load()):
            for operator in (ast.Add(), ast.Sub()):
                shifted = ast.BinOp(index, operator, ast.Constant(1))
                yield "index", ast.Subscript(value, shifted, ast.Load())
        case ast.Call():
            yield from _of_call(node)


def _of_call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    function, arguments, keywords = node.func, node.args, node.keywords
    if isinstance(function, ast.Name) and function.id == "range":
        stop = min(1, len(arguments) - 1)
        shorter = ast.BinOp(arguments[stop], ast.Sub(), ast.Constant(1))
        yield "range", ast.Call(function, [*arguments[:stop], shorter, *arguments[stop + 1 :]], [])
        return
    if isinstance(function, ast.Name) and function.id in NAMES:
        yield "aggregate", ast.Call(_aggregate(NAMES[function.id]), arguments, keywords)
    if isinstance(function, ast.Attribute) and function.attr in NAMES:
        other = ast.Attribute(function.value, NAMES[function.attr], ast.Load())
        yield "aggregate", ast.Call(other, arguments, keywords)
    for i in range(len(arguments) - 1):
        left, right = arguments[i : i + 2]
        if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
            swapped = [*arguments[:i], right, left, *arguments[i + 2 :]]
            yield "arguments", ast.Call(function, swapped, keywords)
    for i, keyword in enumerate(keywords):
        yield "keyword", ast.Call(function, arguments, keywords[:i] + keywords[i + 1 :])
        match keyword:
            case ast.keyword("axis", ast.Constant(0 | 1 as axis)):
                turned = [*keywords[:i], ast.keyword("axis", ast.Constant(1 - axis))]
                yield "axis", ast.Call(function, arguments, turned + keywords[i + 1 :])


def _aggregate(name: str) -> ast.expr:
    """Return the built-in function, or NumPy's where there is no built-in one."""
    if hasattr(builtins, name):
        return ast.Name(name, ast.Load())
    return ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load())


def _of_statement(node: ast.AST, bound: set[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield changes of a statement; ``bound`` gathers the names that have a value by now."""
    match node:
        case ast.AugAssign(target, operator, value):
            yield "removed", ast.Pass()
            if new := ARITHMETIC.get(type(operator)):
                yield "arithmetic", ast.AugAssign(target, new(), value)
        case ast.Expr(ast.Call()):
            yield "removed", ast.Pass()
        case ast.Assign([ast.Name(name)]):
            if name in bound:
                yield "removed", ast.Pass()
            bound.add(name)
        case ast.Assign([ast.Tuple(targets)]):
            names = {ast.unparse(target) for target in targets}
            if names <= bound:
                yield "removed", ast.Pass()
            bound |= names
        case ast.Return(ast.Tuple(values)):
            for i in range(len(values) - 1):
                swapped = [*values[:i], values[i + 1], values[i], *values[i + 2 :]]
                yield "returned", ast.Return(ast.Tuple(swapped, ast.Load()))
