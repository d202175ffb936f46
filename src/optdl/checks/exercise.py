"""What an exercise is: a reference, random cases, and the mistakes that are usual."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdl.observation import Observation, observe, outcomes, received

Function = Callable[..., Any]
Case = dict[str, Any]
"""One call: argument names to values, in the order of the signature."""


@dataclass(frozen=True)
class Misconception:
    """A mistake that students make, as the function it leads to.

    Parameters
    ----------
    hint : str
        What the student sees: the mistake, then what is right.
    function : callable
        The mistaken function. It uses only its arguments, builtins and ``np``, so that
        its source can stand in a notebook by itself.
    """

    hint: str
    function: Function


@dataclass(frozen=True)
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

    claim: str
    holds: Callable[[Function, np.random.Generator], bool]


@dataclass(frozen=True)
class Exercise:
    """A function for the student to write, with all that is needed to judge it.

    Parameters
    ----------
    key : str
        The row of the sources, such as ``L1-07``; ``L1-03:hinge`` where a row has several
        exercises, ``L1-24, L1-25`` where an exercise asks for several rows.
    reference : callable
        The function of :mod:`optdl` that the student rewrites, under the same name.
    cases : callable
        ``cases(rng)`` gives the calls to compare, small and large ones.
    misconceptions : tuple of Misconception
        At least three usual mistakes.
    properties : tuple of Property
        Facts that are checked when the work is graded.
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

    key: str
    reference: Function
    cases: Callable[[np.random.Generator], Iterable[Case]]
    misconceptions: tuple[Misconception, ...]
    properties: tuple[Property, ...] = ()
    parts: Any = ""
    rtol: float = 1e-9
    atol: float = 1e-12
    use: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """Return the name under which the student defines the function."""
        return str(self.reference.__name__)

    @property
    def row(self) -> str:
        """Return the rows of the sources, without the suffix that tells exercises apart."""
        return self.key.split(":")[0]

    def outcomes(self, answer: Function, cases: Sequence[Case]) -> list[Observation]:
        """Return what came of each case, in one question to an answer that lives elsewhere."""
        if not cases:
            return []
        return [received(given) for given in observe(outcomes, answer, self.use, list(cases))]
