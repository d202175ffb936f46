"""Hold what is known about a wrong answer: its cases, the expected values and the values got."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from optdl.checks.compare import disagreement
from optdl.checks.exercise import Case, Exercise, Function

NEAR = 1e-8
"""Values that are computed in another way agree this far, relative to their size."""


class Pair(NamedTuple):
    """The expected numbers of one case and the numbers got, of the same shape or not."""

    case: Case
    right: np.ndarray
    got: np.ndarray


@dataclass(frozen=True)
class Part:
    """One part of the answer in all cases; an answer without parts is a part without a name."""

    name: str
    pairs: tuple[Pair, ...]
    scope: str = ""

    @property
    def same_shape(self) -> bool:
        """Return whether all values got have the expected shape."""
        return all(pair.right.shape == pair.got.shape for pair in self.pairs)

    @property
    def differs(self) -> bool:
        """Return whether a value got is further from the right one than rounding explains."""
        return not all(near(pair.right, pair.got) for pair in self.pairs)

    def obeys(self, change: Callable[[Pair], Any]) -> bool:
        """Return whether a change of the expected values gives the values got in every case."""
        with np.errstate(all="ignore"):
            return all(near(change(pair), pair.got) for pair in self.pairs)

    def maps(self, change: Callable[[np.ndarray], Any]) -> bool:
        """Return whether a change of the expected numbers alone gives the numbers got."""
        return self.obeys(lambda pair: change(pair.right))

    def where_wrong(self) -> Iterator["Part"]:
        """Yield this part, then its wrong cases alone, then its wrong entries alone."""
        yield self
        wrong = tuple(pair for pair in self.pairs if not near(pair.right, pair.got))
        if _kinds(wrong) >= 2 and len(wrong) < len(self.pairs):
            yield replace(self, pairs=wrong, scope="in the cases that differ, ")
        entries = tuple(_wrong_entries(pair) for pair in wrong if self.same_shape)
        number = sum(pair.right.size for pair in entries)
        if 3 <= number < sum(pair.right.size for pair in wrong):
            yield replace(self, pairs=entries, scope="in the entries that differ, ")


def _kinds(pairs: Sequence[Pair]) -> int:
    """Return how many cases there are that differ in a size or in a whole number."""
    return len({tuple(kind(value) for value in pair.case.values()) for pair in pairs})


def kind(value: Any) -> Any:
    """Return a whole number, or the shape of an array; within a list, of each item."""
    if isinstance(value, list | tuple):
        return tuple(map(kind, value))
    return value.shape if isinstance(value, np.ndarray) else value if type(value) is int else None


def near(right: Any, got: Any) -> bool:
    """Return whether two arrays have one shape and agree up to rounding."""
    if right is None:
        return False
    right, got = np.asarray(right), np.asarray(got)
    if right.shape != got.shape or {right.dtype.kind, got.dtype.kind} - set("biuf"):
        return False
    return not differing(right, got).any()


def differing(right: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Return which entries of two arrays of one shape differ by more than rounding."""
    right, got = right.astype(float), got.astype(float)
    with np.errstate(all="ignore"):
        alike = np.abs(got - right) <= 1e-11 + NEAR * np.abs(right)
    # two infinities have no difference, and nan is not even like itself
    finite = np.isfinite(right)
    alike = np.where(finite, alike, (right == got) | (np.isnan(right) & np.isnan(got)))
    return np.asarray(~alike)


def _wrong_entries(pair: Pair) -> Pair:
    wrong = differing(pair.right, pair.got)
    return Pair(pair.case, pair.right[wrong], pair.got[wrong])


@dataclass(frozen=True)
class Evidence:
    """The cases of a wrong answer that raised no error, and a way to try other arguments."""

    exercise: Exercise
    function: Function
    cases: Sequence[Case]
    expected: Sequence[Any]
    got: Sequence[Any]

    def agree(self, expected: Any, got: Any) -> bool:
        """Return whether two values agree within the tolerance of the exercise."""
        return disagreement(expected, got, self.exercise.rtol, self.exercise.atol) is None

    def tried(self, function: Function, cases: Sequence[Case]) -> list[Any]:
        """Return what a function gives with other arguments, or None when it raises an error."""
        given = self.exercise.outcomes(function, cases)
        return [None if one.kind == "raised" else one.value for one in given]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the arguments that every case has."""
        every = set.intersection(*(set(case) for case in self.cases)) if self.cases else set()
        return tuple(name for name in self.cases[0] if name in every) if every else ()

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Return the names that the student's code knows; others are those of a driver."""
        known = signature(self.exercise.reference).parameters
        return tuple(name for name in self.names if name in known)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the answer that are numbers; none when its structure is wrong."""
        if not self.cases:
            return ()
        try:
            columns = [
                [leaves(self.exercise.parts, right), leaves(self.exercise.parts, got)]
                for right, got in zip(self.expected, self.got, strict=True)
            ]
            return tuple(_parts(self.cases, columns))
        except (ValueError, TypeError):
            return ()

    @cached_property
    def wrong(self) -> tuple[Part, ...]:
        """Return the parts that differ in any case."""
        return tuple(part for part in self.parts if not self.is_right(part))

    def is_right(self, part: Part) -> bool:
        """Return whether a part agrees in every case."""
        return all(self.agree(pair.right, pair.got) for pair in part.pairs)


def _parts(cases: Sequence[Case], columns: list[list[dict[str, Any]]]) -> Iterator[Part]:
    for name in columns[0][0]:
        pairs = [
            Pair(case, *numbers(right[name], got[name]))
            for case, (right, got) in zip(cases, columns, strict=True)
        ]
        yield Part(name, tuple(pairs))


def leaves(names: Any, value: Any) -> dict[str, Any]:
    """Return the parts of a value by name.

    Examples
    --------
    >>> leaves(("y", ("mean", "var")), (1.0, (2.0, 3.0)))
    {'y': 1.0, 'mean': 2.0, 'var': 3.0}
    """
    if isinstance(names, str):
        return {names: value}
    if len(names) != len(value):
        raise ValueError(f"expected {len(names)} parts, got {len(value)}")
    found: dict[str, Any] = {}
    for name, item in zip(names, value, strict=True):
        found |= leaves(name, item)
    return found


def numbers(right: Any, got: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected value and the value got as arrays of real numbers."""
    if isinstance(right, tuple | list) and any(isinstance(item, np.ndarray) for item in right):
        if [np.shape(item) for item in right] != [np.shape(item) for item in got]:
            raise ValueError("the arrays have other shapes")
        right, got = (np.concatenate([np.ravel(item) for item in some]) for some in (right, got))
    pair = np.asarray(right), np.asarray(got)
    if any(array.dtype.kind not in "biuf" for array in pair):
        raise TypeError("these are no real numbers")
    return pair


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    '`a`, `b` and `c`'
    """
    *before, last = [f"`{name}`" for name in names] or [""]
    return f"{', '.join(before)} and {last}" if before else last
