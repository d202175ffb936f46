"""What an exercise is: the right answer, random cases, facts, and the mistakes that are usual.

Each exercise is a block in a file of its own, which reads from top to bottom::

    @answer_to("L1-01", empirical_risk)
    def exercise(loss, model, theta, x, y):
        return np.sum(loss(model(x, theta), y)) / len(y)

    @exercise.cases
    def _(rng): ...

    @exercise.fact("a second copy of the data changes nothing")
    def _(risk, rng): ...

    exercise.help(r'''
    1. What is averaged, and over what?
    2. …
    you divide by m − 1; the empirical risk divides by m
        / len(y) → / (len(y) - 1)
    ''')
"""

import ast
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from optdl.checks.compare import disagreement
from optdl.observation import Observation, observe, outcomes, received

Function = Callable[..., Any]
Case = dict[str, Any]
"""One call: argument names to values, in the order of the signature."""


class Condition(NamedTuple):
    """What a student's code holds, or lacks, where a hint about it is true: ``Exercise.help``."""

    holds: bool
    pattern: str
    effect: str

    def agrees(self, source: str) -> bool:
        """Return whether code, as ``optdl.observation.source_of`` returns it, is as it says."""
        return bool(source) and self.holds == bool(re.search(self.pattern, source))


class Misconception:
    """A mistake that students make: what they are told, and the function that it leads to.

    The function is the mistaken one, or the right one if there are ``edits``: what stands once in
    its text, and what the mistaken one has there. It uses only its arguments, builtins and what
    notebooks import, so that its source can stand in a notebook by itself.
    """

    def __init__(
        self,
        hint: str,
        function: Function,
        edits: Sequence[tuple[str, str]] = (),
        conditions: Sequence[Condition] = (),
    ) -> None:
        self.hint, self.conditions = hint, conditions
        self._function, self._edits = function, edits

    def told(self, source: str) -> str:
        """Return the hint, or its effect where the code in ``source`` is not what it names."""
        failing = (one.effect for one in self.conditions if not one.agrees(source))
        return next(failing, self.hint)

    @cached_property
    def function(self) -> Function:
        """The mistaken function; that of an edit is made when it is first asked for."""
        if not self._edits:
            return self._function
        source = self._source()
        names = {**vars(sys.modules[self._function.__module__])}
        file = f"<mistaken {self._function.__name__} {id(self)}>"
        # as for a cell of a notebook, so that the source can be read from the function
        linecache.cache[file] = len(source), None, source.splitlines(True), file
        exec(compile(source, file, "exec"), names)
        function: Function = names[_DEFINED.findall(source)[-1]]
        return function

    def _source(self) -> str:
        source = textwrap.dedent(inspect.getsource(self._function))
        for old, new in self._edits:
            if (count := source.count(old)) != 1:
                file = inspect.getsourcefile(self._function)
                raise ValueError(f"{file}: {old!r} stands {count} times, not once, in:\n{source}")
            source = source.replace(old, new)
        return _DECORATOR.sub("", source)

    def text(self, name: str) -> str:
        """Return the mistaken function as it could stand in a notebook, under a name."""
        tree = _Bare().visit(ast.parse(self._source()))
        tree.body[-1].name = name
        return ast.unparse(tree)


_DEFINED = re.compile(r"^(?:def|class) (\w+)", re.M)
_DECORATOR = re.compile(r"\A@answer_to.*?(?=^def)", re.M | re.S)


_HINT = re.compile(r"^\d\. (.*\n(?:   \S.*\n)*)", re.M)
_MISTAKE = re.compile(r"((?:^\S.*\n)+)((?:^ +\S.*\n)+)", re.M)
_CONDITION = re.compile(
    r"^ +(with|without) (`.+?`(?: or `.+?`)*)(?:, else (.+(?:\n {5,}\S.*)*))?$\n?", re.M
)
_NOT_IN_NAME = r"(?!(?<=\w)\w)"


def _condition(kind: str, codes: str, effect: str) -> Condition:
    pattern = "|".join(
        _NOT_IN_NAME + ".*?".join(map(re.escape, code.split("…"))) + _NOT_IN_NAME
        for code in codes.replace('"', "'").strip("`").split("` or `")
    )
    return Condition(kind == "with", pattern, " ".join(effect.split()))


def _edit(line: str) -> tuple[str, str]:
    old, arrow, new = (part.strip().replace("\\n", "\n") for part in line.partition(" →"))
    if not arrow:
        raise ValueError(f"an edit of the answer is `old → new`, got {line.strip()!r}")
    return old, new


class _Bare(ast.NodeTransformer):
    """Leave out what a student's code has not: annotations and docstrings."""

    def visit(self, node: Any) -> Any:
        node = self.generic_visit(node)
        if isinstance(node, ast.AnnAssign):
            return node.value and ast.copy_location(ast.Assign([node.target], node.value), node)
        defines = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if defines and ast.get_docstring(node) is not None and len(node.body) > 1:
            node.body = node.body[1:]
        for name in {"annotation", "returns"} & {*node._fields}:
            setattr(node, name, None)
        return node


class Property(NamedTuple):
    """A fact that the right answer obeys, whatever way it is computed, in words and as a test.

    ``holds(function, rng)`` is true when the function obeys it. Where work is graded, copies of
    the arguments reach the function: a generator does not go on in the caller.
    """

    claim: str
    holds: Callable[[Function, np.random.Generator], bool]
    is_visible: bool = False
    """Whether it is checked before the work is graded, too, as a demand of the task."""


Cases = Callable[[np.random.Generator], Iterable[Case | tuple[Any, ...]]]
"""What draws calls: their arguments in the order of the signature, or by name."""


class Exercise:
    """A function for the student to write, with all that is needed to judge it.

    Parameters
    ----------
    key : str
        The row of the sources, such as ``L1-07``; ``L1-03:hinge`` where a row has several
        exercises, ``L1-24, L1-25`` where an exercise asks for several rows. Its file is called
        after the first row and the function: ``l1_07_standard_error.py``.
    reference : callable
        The function of :mod:`optdl` that the student rewrites, under the same name.
    parts : str or tuple
        The names of what a tuple holds, in the words of the task and nested as the tuple
        is: ``("y", ("normalized", "factor"))``, or as a text, ``"y; normalized | factor"``.
        Empty where the answer is one thing.
    rtol, atol : float
        Numbers agree when ``|got - expected| <= atol + rtol |expected|``.
    use : callable, optional
        ``use(answer, *arguments)`` gives what is compared, where the answer is a class, or a
        function whose work shows elsewhere than in what it returns. It runs beside the answer:
        a function of a module that students may import. When not given, the answer is called.
    """

    def __init__(
        self,
        key: str,
        reference: Function,
        cases: Cases | None = None,
        misconceptions: Iterable[Misconception] = (),
        properties: Iterable[Property] = (),
        parts: Any = "",
        rtol: float = 1e-9,
        atol: float = 1e-12,
        use: Callable[..., Any] | None = None,
    ) -> None:
        parts = parts or getattr(use, "parts", "")
        if isinstance(parts, str) and "; " in parts:
            some = [tuple(each.split(" | ")) for each in parts.split("; ")]
            parts = tuple([each if len(each) > 1 else each[0] for each in some])
        self.key, self.reference, self.parts = key, reference, parts
        self.rtol, self.atol, self.use = rtol, atol, use
        self.misconceptions, self.properties = [*misconceptions], [*properties]
        self._draw, self._answer = cases, reference
        self.hints: list[str] = []
        self.block = ""  # the module, which the catalog knows

    @property
    def name(self) -> str:
        """Return the name under which the student defines the function."""
        return str(self.reference.__name__)

    def cases(self, draw: Cases) -> Cases:
        """Take ``draw(rng)``, which gives the calls to compare, small and large ones."""
        self._draw = draw
        return draw

    def draw(self, rng: np.random.Generator) -> list[Case]:
        """Return random cases."""
        assert self._draw is not None, f"{self.key} has no cases"
        is_lab = self.key.startswith("LAB")
        called = self.use if self.use and is_lab else self.reference
        names = [*inspect.signature(called).parameters][is_lab:]  # without the answer
        cases = []
        for case in self._draw(rng):
            if isinstance(case, tuple):
                assert len(case) <= len(names), f"{self.key}: {case} is more than {names}"
                case = dict(zip(names, case, strict=False))
            cases.append(case)
        return cases

    def fact(self, claim: str, is_visible: bool = False) -> Callable[[Function], Function]:
        """Take a function as a fact that is checked when the work is graded: see ``Property``."""

        def add(holds: Function) -> Function:
            self.properties.append(Property(claim, holds, is_visible))
            return holds

        return add

    def help(self, text: str) -> None:
        r"""Add two or three hints, numbered, and usual mistakes, which hold edits of the answer.

        The hints lead from a question to nearly the line, and none is the answer. They are told
        one after the other, as Markdown, with formulas between dollars.

        A mistake is what is told about it, in one line or more: what the student did, then what is
        right. Indented below it are edits of the right answer's text, ``old → new`` in one line or
        with ``→ new`` in the next one, and several in a line, with `` ; `` between them. The old
        text stands there once; the new one may be empty, and ``\n`` is the end of a line, behind
        which the text may go on in the next one.

        What is told about the code is true where the code holds, or lacks, what it names. That may
        stand below it, in backticks, with the *effect* of the mistake, which is told elsewhere::

            you do not clip; limit the norm of all gradients to `max_norm`
                clip_grad_norm_( → (
                without `clip…` or `minimum`, else your steps are those of unlimited gradients

        `with` and `without` ask for names and signs in the student's code, and in the functions of
        the notebook that it calls; `…` is anything in a line. Several such lines all have to hold.
        Without an effect, nothing is told of this mistake.
        """
        self.hints += (" ".join(hint.split()) for hint in _HINT.findall(text))
        mistakes = _HINT.sub("", text)
        if rest := _MISTAKE.sub("", mistakes).strip():
            raise ValueError(f"expected a mistake and its edits below it, got {rest!r}")
        for hint, below in _MISTAKE.findall(mistakes):
            conditions = [_condition(*found) for found in _CONDITION.findall(below)]
            edits = _CONDITION.sub("", below).replace("\\n\n    ", "\\n")
            lines = re.split(r" ; |\n", re.sub(r"\n\s*→", " →", edits).rstrip("\n"))
            made = " ".join(hint.split()), self._answer, [*map(_edit, lines)], conditions
            self.misconceptions.append(Misconception(*made))

    def observe(self, answer: Any, *values: Any) -> Any:
        """Return what the driver of the exercise gives for an answer."""
        assert self.use is not None
        return observe(self.use, answer, *values)

    def agrees(
        self,
        answer: Any,
        oracle: Any,
        case: Iterable[Any],
        parts: slice = slice(None),
        rtol: float = 1e-9,
        atol: float = 1e-12,
    ) -> bool:
        """Return whether an answer does the same as an oracle, for which nothing is closed."""
        assert self.use is not None
        case = [*case]
        expected = self.use(oracle, *case, is_open=True)[parts]
        return disagreement(expected, self.observe(answer, *case)[parts], rtol, atol) is None

    def outcomes(self, answer: Function, cases: Sequence[Case]) -> list[Observation]:
        """Return what came of each case, in one question to an answer that lives elsewhere."""
        if not cases:
            return []
        return [*map(received, observe(outcomes, answer, self.use, list(cases)))]


def answer_to(
    key: str, reference: Function | str, **options: Any
) -> Callable[[Function], Exercise]:
    """Make an exercise of its right answer, whose text mistakes edit in place of the reference's.

    It is what a student would write: short, with nothing but arguments, builtins and ``np``. Where
    the library has no such function, it is the reference itself, under the name that stands there.
    """

    def exercise(answer: Function) -> Exercise:
        answer.__name__ = reference if isinstance(reference, str) else reference.__name__
        made = Exercise(key, answer if isinstance(reference, str) else reference, **options)
        made._answer = answer
        return made

    return exercise
