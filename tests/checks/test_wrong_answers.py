"""Mutants of the model solutions: none passes the checks, and most are told what is wrong.

What is mutated is the reference as the notebook in ``solutions`` has it: it stands by itself, as a
student's answer does. Of each exercise a few are drawn by a fixed seed that are wrong in some case,
each in its own way; one may raise an error in every case.
"""

import ast
import builtins
import contextlib
import copy
import io
import re
import signal
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from jaxtyping import config

from optdl.checks import CheckFailed, Exercise, check, diagnoses, exercises, runner
from optdl.checks.exercise import Function
from optdl.observation import Observation, silence
from tools.classroom import answers, sample_class
from tools.layout import ROOT, Course

MAX_MUTANTS = 6
SECONDS = 2.0
"""Processor time that a mutant may take for all its cases."""

EXCHANGED = "Add Sub|Mult Div|Lt LtE|Gt GtE|Eq NotEq|Is IsNot|And Or"
SWAPS = {"FloorDiv": "Div", "Pow": "Mult", "RShift": "LShift", "BitAnd": "BitOr"}
NAMES: dict[str, str] = {}
for table, text in ((SWAPS, EXCHANGED), (NAMES, "sum mean|min max|minimum maximum")):
    for left, right in map(str.split, text.split("|")):
        table |= {left: right, right: left}


class Mutant(NamedTuple):
    """A mutation of a model solution; the label tells what was changed into what."""

    exercise: Exercise
    label: str
    source: str

    @property
    def function(self) -> Function:
        """The mutant as a function, with built-in names and ``np``."""
        namespace: dict[str, Any] = {"__builtins__": builtins, "np": np}
        exec(compile(self.source, f"<mutant {self.label}>", "exec"), namespace)
        function: Function = namespace[self.exercise.name]
        return function


class TooLong(BaseException):
    """A mutant has used more processor time than it may; nothing else catches it."""


@contextlib.contextmanager
def student(seconds: float) -> Iterator[None]:
    """Run as in a student's notebook: annotations are not checked, nor may it take long."""

    def stop(*_: object) -> None:
        raise TooLong

    disabled, before = config.jaxtyping_disable, signal.signal(signal.SIGVTALRM, stop)
    config.update("jaxtyping_disable", True)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        with silence(io.StringIO()):
            yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        config.update("jaxtyping_disable", disabled)


def mutants(exercise: Exercise, solution: Any) -> list[Mutant]:
    """Return some mutants that are wrong, each in its own way."""
    possible = candidates(exercise, solution)
    chosen: dict[Mutant, list[Observation]] = {}
    rng = np.random.default_rng([20, zlib.crc32(exercise.key.encode())])
    for number in rng.permutation(len(possible)):
        mutant = possible[number]
        with contextlib.suppress(TooLong), student(SECONDS):
            given = tried(mutant, 0)
            if is_wrong(mutant) and not any(alike(exercise, given, one) for one in chosen.values()):
                chosen[mutant] = given
        if len(chosen) == MAX_MUTANTS:
            break
    return [*chosen]


def tried(mutant: Mutant, seed: int) -> list[Observation]:
    return mutant.exercise.outcomes(mutant.function, runner._drawn(mutant.exercise, seed)[0])


def is_wrong(mutant: Mutant) -> bool:
    drawn = ((*runner._drawn(mutant.exercise, seed)[:2], tried(mutant, seed)) for seed in range(20))
    cases = (case for each in drawn for case in zip(*each, strict=True))
    return any(runner._reason(mutant.exercise, *case) for case in cases)


def alike(exercise: Exercise, left: list[Observation], right: list[Observation]) -> bool:
    """Return whether two mutants have the same outcome in every case, or raise in every case."""
    if all(one.is_error for one in left + right):
        return True
    pairs = zip(left, right, strict=True)
    return all(a.changed == b.changed and runner._same(exercise, a, b) for a, b in pairs)


def candidates(exercise: Exercise, solution: Any) -> list[Mutant]:
    """Return all mutations of the model solution of an exercise, in the order of its text."""
    result: dict[str, Mutant] = {}
    for node in (node for part in solution.body for node in ast.walk(part)):
        for new in mutations(node):
            # the node is exchanged while the tree is copied
            tree = copy.deepcopy(solution, {id(node): new})
            source = ast.unparse(ast.fix_missing_locations(tree))
            label = " → ".join(ast.unparse(each).partition("\n")[0] for each in (node, new))
            result.setdefault(source, Mutant(exercise, label, source))
    result.pop(ast.unparse(solution), None)
    return [*result.values()]


def swapped(operator: ast.AST) -> Any:
    """Return what an operator is mistaken for, if anything."""
    name = SWAPS.get(type(operator).__name__)
    return name and getattr(ast, name)()


def mutations(node: Any) -> Iterator[Any]:
    """Yield what an expression or a statement is mistaken for."""
    match node:
        case ast.BinOp(left, operator, right) if new := swapped(operator):
            yield ast.BinOp(left, new, right)
        case ast.Compare(left, [operator], right) if new := swapped(operator):
            yield ast.Compare(left, [new], right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(swapped(operator), values)
        case ast.UnaryOp(ast.USub() | ast.Not(), value) | ast.Attribute(value, "T"):
            yield value
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):  # an axis and an index, too
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Subscript(value, ast.Name() as index, ast.Load()):
            for operator in (ast.Add(), ast.Sub()):
                yield ast.Subscript(value, ast.BinOp(index, operator, ast.Constant(1)), ast.Load())
        case ast.Call(function, arguments, keywords):
            before, dot, name = ast.unparse(function).rpartition(".")
            if name in NAMES:
                renamed = ast.parse(before + dot + NAMES[name], mode="eval").body
                yield ast.Call(renamed, arguments, keywords)
            if not any(isinstance(argument, ast.Starred) for argument in arguments):
                yield from (ast.Call(function, some, keywords) for some in exchanged(arguments))
            for number in range(len(keywords)):
                yield ast.Call(function, arguments, keywords[:number] + keywords[number + 1 :])
        case ast.AugAssign(target, operator, value) if new := swapped(operator):
            yield from (ast.Pass(), ast.AugAssign(target, new, value))
        case ast.Expr(ast.Call()) | ast.Assign():
            yield ast.Pass()
        case ast.Return(ast.Tuple(values)):
            yield from (ast.Return(ast.Tuple(some, ast.Load())) for some in exchanged(values))


def exchanged(items: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """Yield the items with two neighbors exchanged."""
    for k in range(len(items) - 1):
        yield [*items[:k], items[k + 1], items[k], *items[k + 2 :]]


VALUES_DIFFER = re.compile(r"^Why: .*values? differ\b", re.M)
PART = r"(the [^:]* parts( in [^:]*)?: |at key '\w+': |`[^`]+`: )*"
ONLY_VALUES_DIFFER = re.compile(rf"^Why: {PART}(\d+ of \d+|the) values differ\.$", re.M)


def message_of(mutant: Mutant, seed: int = 0, hidden: bool = False) -> str:
    """Return what a check says, or an empty string when it passes."""
    try:
        with student(20 * SECONDS):
            check(mutant.exercise.key, mutant.function, seed=seed, properties=hidden)
    except CheckFailed as failure:
        return str(failure)
    return ""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no such timer on Windows")
def test_checks_explain_most_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than half are given a cause, and nearly all at least a place."""
    monkeypatch.setattr(diagnoses, "RAISING", True)
    course = Course(ROOT)
    sheets = [sample_class.sheet(course, topic, topic) for topic in course.topics()]
    sources = [source for sheet in sheets for source in sheet.right.values()]
    solutions = {answers.defined_name(source): ast.parse(source).body[-1] for source in sources}
    known = exercises().values()
    every = [mutant for one in known for mutant in mutants(one, solutions[one.name])]
    messages = [message_of(mutant) for mutant in every]
    late = [mutant for mutant, message in zip(every, messages, strict=True) if not message]
    missed = [m for m in late if not message_of(m, 7, True) and not message_of(m, 123)]
    assert not missed, "\n".join(f"{mutant.exercise.key} {mutant.label}" for mutant in missed)
    assert len(late) <= 2
    told = [message for message in messages if message]
    assert all(message.splitlines()[1].startswith("Why: ") for message in told)
    caused = ["Likely cause: " in text or not VALUES_DIFFER.search(text) for text in told]
    placed = [has_cause or not ONLY_VALUES_DIFFER.search(text)
              for has_cause, text in zip(caused, told, strict=True)]  # fmt: skip
    assert sum(caused) >= 0.55 * len(every)
    assert sum(placed) >= 0.97 * len(every)
