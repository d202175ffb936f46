"""What an exercise is: the right answer, random cases, facts, and the mistakes that are usual.

Each exercise is a block in a file of its own, which reads from top to bottom::

    exercise = Exercise("L1-01", empirical_risk)

    @exercise.answer
    def _(loss, model, theta, x, y):
        return np.sum(loss(model(x, theta), y)) / len(y)

    @exercise.cases
    def _(rng): ...

    @exercise.fact("a second copy of the data changes nothing")
    def _(risk, rng): ...

    exercise.mistakes(r'''
    you divide by m − 1; the empirical risk divides by m
        / len(y) → / (len(y) - 1)
    ''')
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from optdl.observation import Observation, observe, outcomes, received

Function = Callable[..., Any]
Case = dict[str, Any]
"""One call: argument names to values, in the order of the signature."""


class Misconception:
    """A mistake that students make, as the function it leads to.

    Parameters
    ----------
    hint : str
        What the student sees: the mistake, then what is right.
    function : callable
        The mistaken function, or the right one if there are edits. It uses only its arguments,
        builtins and what notebooks import, so that its source can stand in a notebook by itself.
    edits : sequence of pairs of str, optional
        What stands once in the text of the right answer, and what the mistaken one has there.
    """

    def __init__(
        self, hint: str, function: Function, edits: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.hint, self._function, self._edits = hint, function, edits

    @cached_property
    def function(self) -> Function:
        """The mistaken function; that of an edit is made when it is first asked for.

        Raises
        ------
        ValueError
            If a text that is edited does not stand exactly once in the right answer.
        """
        if not self._edits:
            return self._function
        source = self._source()
        names = {**vars(sys.modules[self._function.__module__])}
        exec(compile(source, f"<mistaken {self._function.__name__}>", "exec"), names)
        function: Function = names[_DEFINED.findall(source)[-1]]
        return function

    def _source(self) -> str:
        source = textwrap.dedent(inspect.getsource(self._function))
        for old, new in self._edits:
            if source.count(old) != 1:
                raise ValueError(f"{old!r} stands {source.count(old)} times in:\n{source}")
            source = source.replace(old, new)
        return _DECORATOR.sub("", source)

    def text(self, name: str) -> str:
        """Return the mistaken function as it could stand in a notebook, under a name."""
        tree = _Bare().visit(ast.parse(self._source()))
        tree.body[-1].name = name
        return ast.unparse(tree)


_DEFINED = re.compile(r"^(?:def|class) (\w+)", re.M)
_DECORATOR = re.compile(r"\A@exercise\..*?(?=^(?:def|class|@))", re.M | re.S)
"""The decorator by which a function belongs to a block."""


_MISTAKE = re.compile(r"((?:^\S.*\n)+)((?:^ +\S.*\n)+)", re.M)


def _edit(line: str) -> tuple[str, str]:
    old, arrow, new = (part.strip().replace("\\n", "\n") for part in line.partition(" →"))
    if not arrow:
        raise ValueError(f"an edit of the answer is `old → new`, got {line.strip()!r}")
    return old, new


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


class Property:
    """A fact that the right answer obeys, whatever way it is computed.

    Parameters
    ----------
    claim : str
        The fact in words.
    holds : callable
        ``holds(function, rng)`` is true when the function obeys it. Where work is graded, copies of
        the arguments reach the function: a generator does not go on in the caller, and an array
        stays as it is. Many calls are best made by one ``optdl.observation.observe``.
    """

    def __init__(self, claim: str, holds: Callable[[Function, np.random.Generator], bool]) -> None:
        self.claim, self.holds = claim, holds


Cases = Callable[[np.random.Generator], Iterable[Case]]


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
        is: ``("y", ("normalized", "factor"))``. Empty where the answer is one thing.
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
        self.key, self.reference, self.parts = key, reference, parts
        self.rtol, self.atol, self.use = rtol, atol, use
        self.misconceptions, self.properties = [*misconceptions], [*properties]
        self._draw, self._answer = cases, reference
        self.hinted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the name under which the student defines the function."""
        return str(self.reference.__name__)

    @property
    def row(self) -> str:
        """Return the rows of the sources, without the suffix that tells exercises apart."""
        return self.key.split(":")[0]

    def answer(self, function: Function) -> Function:
        """Take a function as the right answer whose text mistakes edit, in place of the reference.

        It is what a student would write: short, with nothing but arguments, builtins and ``np``.
        """
        function.__name__ = self.name
        self._answer = function
        return function

    def hints(self, *texts: str) -> None:
        """Take two or three hints, from a question to nearly the line; none is the answer.

        They are told one after the other. Text is in Markdown, with formulas between dollars.
        """
        self.hinted = texts

    def cases(self, draw: Cases) -> Cases:
        """Take ``draw(rng)``, which gives the calls to compare, small and large ones."""
        self._draw = draw
        return draw

    def draw(self, rng: np.random.Generator) -> list[Case]:
        """Return random cases."""
        assert self._draw is not None, f"{self.key} has no cases"
        return [*self._draw(rng)]

    def fact(self, claim: str) -> Callable[[Function], Function]:
        """Take a function as a fact that is checked when the work is graded: see ``Property``."""

        def add(holds: Function) -> Function:
            self.properties.append(Property(claim, holds))
            return holds

        return add

    def mistakes(self, text: str) -> None:
        r"""Add usual mistakes: each a hint, and indented below it edits of the right answer's text.

        Parameters
        ----------
        text : str
            The hint says what the student did, then what is right; it may go on in a further line.
            An edit is ``old → new``, in one line or with ``→ new`` in the next one; the old text
            stands once in the right answer, nothing stands for a new one that is empty, and ``\n``
            for the end of a line, behind which the text may go on in the next one.
        """
        for hint, edits in _MISTAKE.findall(text):
            lines = re.sub(r"\n\s*→", " →", edits.replace("\\n\n    ", "\\n")).splitlines()
            self._add(" ".join(hint.split()), self._answer, [_edit(line) for line in lines])

    def mistake(self, hint: str) -> Callable[[Function], Function]:
        """Add a usual mistake that no edit can say: a function, with the hint above it."""

        def add(function: Function) -> Function:
            self._add(hint, function)
            return function

        return add

    def _add(self, hint: str, function: Function, edits: Sequence[tuple[str, str]] = ()) -> None:
        function.__name__ = self.name
        self.misconceptions.append(Misconception(hint, function, edits))

    def outcomes(self, answer: Function, cases: Sequence[Case]) -> list[Observation]:
        """Return what came of each case, in one question to an answer that lives elsewhere."""
        if not cases:
            return []
        return [received(given) for given in observe(outcomes, answer, self.use, list(cases))]
