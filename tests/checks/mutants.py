"""Mutations of the model solutions, with the operators that are usual in mutation tools.

What is mutated is the reference as the notebook in ``solutions`` has it: it stands by itself, as a
student's answer does. The functions of ``optdl`` often call helpers, whose annotations are checked
while tests run, so that a mutant would behave differently there.

For each exercise there are up to ``MAX_MUTANTS``, drawn by a fixed seed. Mutants that agree with
the reference in all cases are left out, and so are those that behave like another one of the same
exercise. One in each exercise may raise an error in every case.
"""

import ast
import builtins
import contextlib
import copy
import io
import signal
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import config

from optdl.checks import exercises, runner
from optdl.checks.exercise import Function
from optdl.observation import Observation, silence
from tools.classroom import answers, sample_class
from tools.layout import ROOT, Course

COURSE = Course(ROOT)
SEED = 20
SEEDS = range(20)
"""The seeds of the cases that a mutant must fail on at least once to count as wrong."""
MAX_MUTANTS = 6
SECONDS = 2.0
"""Processor time that a mutant may take for all its cases."""

SWAPS: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Pow: ast.Mult,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
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
    """A mutation of a model solution; the label tells what was changed into what."""

    key: str
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
    chosen: dict[Mutant, list[Observation]] = {}
    for number in rng.permutation(len(possible)):
        mutant = possible[number]
        with contextlib.suppress(TooLong), limited(SECONDS), quiet():
            given = _outcomes(mutant, 0)
            if _is_wrong(mutant) and not any(_alike(key, given, one) for one in chosen.values()):
                chosen[mutant] = given
        if len(chosen) == MAX_MUTANTS:
            break
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


@cache
def solutions() -> dict[str, ast.stmt]:
    """Return the model solution of each exercise by its name."""
    sheets = (sample_class.sheet(COURSE, topic, topic) for topic in COURSE.topics())
    sources = [source for sheet in sheets for source in sheet.right.values()]
    return {str(answers.defined_name(source)): ast.parse(source).body[-1] for source in sources}


@cache
def candidates(key: str) -> tuple[Mutant, ...]:
    """Return all mutations of the model solution of an exercise, in the order of its text."""
    solution = solutions()[exercises()[key].name]
    result: dict[str, Mutant] = {}
    for node in (node for part in solution.body for node in ast.walk(part)):  # type: ignore
        for new in _mutations(node):
            # the node is exchanged while the tree is copied
            tree = copy.deepcopy(solution, {id(node): new})
            source = ast.unparse(ast.fix_missing_locations(tree))
            label = " → ".join(ast.unparse(each).partition("\n")[0] for each in (node, new))
            result.setdefault(source, Mutant(key, label, source))
    result.pop(ast.unparse(solution), None)
    return tuple(result.values())


def _mutations(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what an expression or a statement is mistaken for."""
    match node:
        case ast.BinOp(left, operator, right) if new := SWAPS.get(type(operator)):
            yield ast.BinOp(left, new(), right)
        case ast.Compare(left, [operator], right) if new := SWAPS.get(type(operator)):
            yield ast.Compare(left, [new()], right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(SWAPS[type(operator)](), values)
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):  # an axis and an index, too
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Attribute(value, "T"):
            yield value
        case ast.Subscript(value, ast.Name() as index, ast.Load()):
            for operator in (ast.Add(), ast.Sub()):
                yield ast.Subscript(value, ast.BinOp(index, operator, ast.Constant(1)), ast.Load())
        case ast.Call(function, arguments, keywords):
            yield from _calls(function, arguments, keywords)
        case ast.AugAssign(target, operator, value) if new := SWAPS.get(type(operator)):
            yield ast.Pass()
            yield ast.AugAssign(target, new(), value)
        case ast.Expr(ast.Call()) | ast.Assign():
            yield ast.Pass()
        case ast.Return(ast.Tuple(values)):
            for some in _exchanged(values):
                yield ast.Return(ast.Tuple(some, ast.Load()))


def _calls(
    function: Any, arguments: list[ast.expr], keywords: list[ast.keyword]
) -> Iterator[ast.AST]:
    """Yield calls of another function, and with other arguments."""
    match function:
        case ast.Name(name) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), arguments, keywords)
        case ast.Attribute(value, name) if name in NAMES:
            yield ast.Call(ast.Attribute(value, NAMES[name], ast.Load()), arguments, keywords)
    if not any(isinstance(argument, ast.Starred) for argument in arguments):
        for some in _exchanged(arguments):
            yield ast.Call(function, some, keywords)
    for number in range(len(keywords)):
        yield ast.Call(function, arguments, keywords[:number] + keywords[number + 1 :])


def _exchanged(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """Yield the items with two neighbors exchanged."""
    for k in range(len(items) - 1):
        yield [*items[:k], items[k + 1], items[k], *items[k + 2 :]]
