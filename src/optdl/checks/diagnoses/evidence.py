"""Hold what is known about a wrong answer: its cases, the expected values and the values got."""

import io
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import signature
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from optdl.checks.compare import agrees, close, holds_arrays
from optdl.checks.exercise import Case, Exercise, Function
from optdl.observation import Observation, outcome

NEAR = 1e-8
"""Values that are computed in another way agree this far, relative to their size."""

TRIED = "in the cases tried, "
"""How a sentence begins that need not be true of other cases."""
WHERE = TRIED + "where it differs, "
IN_ENTRIES = TRIED + "in the entries that differ, "
"""How a sentence begins that is about wrong cases, or entries, alone; these stand in no rows."""

_KEPT: dict[tuple[Exercise, tuple[int, ...], str], Any] = {}
"""Right answers to changed calls: the cases are the same for everyone, and so are the changes."""
MAX_KEPT = 20_000


class Tried(NamedTuple):
    """A case, what the reference gives in it, what the answer gives, and how it was drawn."""

    case: Case
    right: Observation
    got: Observation
    drawn: tuple[int, ...]


class Pair(NamedTuple):
    """The expected numbers of one case and the numbers got, of the same shape or not."""

    right: np.ndarray
    got: np.ndarray
    one: Tried


@dataclass(frozen=True)
class Part:
    """One part of the answer in all cases; an answer without parts is a part without a name."""

    name: str
    pairs: Sequence[Pair]
    scope: str = ""

    @cached_property
    def same_shape(self) -> bool:
        """Return whether all values got have the expected shape."""
        return [p.right.shape for p in self.pairs] == [p.got.shape for p in self.pairs]

    @cached_property
    def hardest(self) -> list[Pair]:
        """Return all cases, those first that are wrong as they stand: they decide soonest."""
        return [*self.wrong_pairs, *compress(self.pairs, [not wrong for wrong in self._wrong])]

    @cached_property
    def wrong_pairs(self) -> list[Pair]:
        """Return the cases whose values are further from the right ones than by rounding."""
        return [*compress(self.pairs, self._wrong)]

    @cached_property
    def _wrong(self) -> list[bool]:
        return [not near(*pair[:2]) for pair in self.pairs]

    @cached_property
    def differing(self) -> list[np.ndarray]:
        """Return which entries of each wrong case differ, where all shapes are those expected."""
        return [differing(*pair[:2]) for pair in self.wrong_pairs]

    @cached_property
    def informative(self) -> bool:
        """Return whether there are two numbers other than 0, so that chance explains nothing."""
        finite = self.rights[np.isfinite(self.rights.astype(float))]
        return len(np.unique(finite[finite != 0])) >= 2

    @cached_property
    def rights(self) -> np.ndarray:
        """Return all right numbers in a row."""
        return np.concatenate([np.ravel(pair.right) for pair in self.pairs])

    @cached_property
    def ratios(self) -> list[float]:
        """Return for each case the number that multiplies every entry, or nothing."""
        return self._each(ratio)

    @cached_property
    def differences(self) -> list[float]:
        """Return for each case the number that is added to every entry, or nothing."""
        return self._each(_difference)

    def _each(self, measure: Callable[[np.ndarray, np.ndarray], float | None]) -> list[float]:
        """Return a number for each case, or nothing where one has none or there are too few.

        Between 0.3 and 0.8 there is a factor of 8/3, and it explains nothing.
        """
        various = np.unique(np.abs(self.rights[self.rights != 0].astype(float)).round(9))
        found: list[float] = []
        for pair in self.pairs if self.same_shape and len(various) >= 2 <= len(self.pairs) else ():
            right, got = np.ravel(pair.right).astype(float), np.ravel(pair.got).astype(float)
            number = measure(right, got) if np.isfinite([right, got]).all() else None
            if number is None:
                return []
            found.append(number)
        return found

    @cached_property
    def symbols(self) -> dict[str, np.ndarray]:
        """Return what the arguments of every case have, such as a size, by name."""
        known = [_symbols(pair.one.case) for pair in self.pairs]
        common = set.intersection(*map(set, known))
        return {name: np.array([one[name] for one in known]) for name in known[0] if name in common}

    @cached_property
    def constant(self) -> float | None:
        """Return the one number that all values got consist of, where those expected are others."""
        gots = [pair.got for pair in self.pairs]
        if not self.informative or not all(map(np.size, gots)):
            return None
        number = gots[0].flat[0]
        alike = all(near(np.full(got.shape, number), got) for got in gots)
        fixed = alike and all(near(self.pairs[0].right, pair.right) for pair in self.pairs)
        return number if alike and not fixed and not np.isnan(number) else None

    @property
    def has_places(self) -> bool:
        """Return whether the entries stand where they do in the answer, in rows."""
        return self.scope != IN_ENTRIES

    def obeys(self, change: Callable[[np.ndarray], Any]) -> bool:
        """Return whether a change of the expected values gives the values got in every case."""
        with np.errstate(all="ignore"):
            return all(near(change(right), got) for right, got, _ in self.hardest)

    @cached_property
    def narrowed(self) -> list["Part"]:
        """Return this part, then its wrong cases alone, then its wrong entries alone."""
        found, wrong = [self], self.wrong_pairs
        # cases that differ in a size or in a whole number
        if len(wrong) < len(self.pairs) and len({_kind(pair.one.case) for pair in wrong}) >= 2:
            found.append(replace(self, pairs=wrong, scope=WHERE))
        differ = self.differing if self.same_shape else []
        if 3 <= sum(map(np.count_nonzero, differ)) < sum(at.size for at in differ):
            some = zip(wrong, differ, strict=True)
            entries = [Pair(right[at], got[at], one) for (right, got, one), at in some]
            found.append(replace(self, pairs=entries, scope=IN_ENTRIES))
        return found


def _symbols(case: Case) -> dict[str, np.float64]:
    """Return the scalar arguments of a call, and the sizes and norms of the others, by name."""
    found = {}
    for name, value in flat(case).items():
        if isinstance(value, int | float | np.number) and not isinstance(value, bool):
            found[f"`{name}`"] = np.float64(value)
    for name, value in case.items():
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            found[f"`len({name})`"] = np.float64(len(value))
        if isinstance(value, np.ndarray):
            for axis in range(1, value.ndim):
                found[f"`{name}.shape[{axis}]`"] = np.float64(value.shape[axis])
            found[f"`{name}.size`"] = np.float64(value.size)
            if value.ndim == 1 and value.dtype.kind == "f":
                found[f"‖`{name}`‖"] = np.float64(np.linalg.norm(value))
    return found


def flat(case: Case) -> Case:
    """Return the arguments of a call, and those within a dict of options, by name."""
    options = (value for value in case.values() if isinstance(value, dict))
    return {**case, **{name: item for some in options for name, item in some.items()}}


def _kind(value: Any) -> Any:
    """Return a whole number, or the shape of an array; within a list or dict, of each item."""
    if isinstance(value, list | tuple | dict):
        return tuple(map(_kind, value.values() if isinstance(value, dict) else value))
    return value.shape if isinstance(value, np.ndarray) else value if type(value) is int else None


def near(right: Any, got: Any) -> bool:
    """Return whether two arrays have one shape and agree up to rounding."""
    right, got = np.asarray(right), np.asarray(got)
    comparable = right.shape == got.shape and {right.dtype.kind, got.dtype.kind} <= {*"biuf"}
    return comparable and not differing(right, got).any()


def differing(right: np.ndarray, got: np.ndarray) -> np.ndarray:
    """Return which entries of two arrays of one shape differ by more than rounding."""
    return np.asarray(~close(got, right, NEAR, 1e-11))


def ratio(right: np.ndarray, got: np.ndarray) -> float | None:
    """Return the number that multiplies every entry of a vector, or nothing."""
    if not right.any() or not got.any():
        return None
    with np.errstate(all="ignore"):
        number = float(right @ got / (right @ right))
    return number if near(number * right, got) else None


def _difference(right: np.ndarray, got: np.ndarray) -> float | None:
    difference = float(np.mean(got - right)) if right.size else np.nan
    return difference if near(right + difference, got) and right.size else None


@dataclass(frozen=True)
class Evidence:
    """The cases of a wrong answer that raised no error, and a way to try other arguments."""

    exercise: Exercise
    function: Function
    tried: Sequence[Tried]

    def agree(self, expected: Any, got: Any) -> bool:
        """Return whether two values agree within the tolerance of the exercise."""
        return agrees(expected, got, self.exercise.rtol, self.exercise.atol)

    def right(self, one: Tried, text: str, change: Callable[[Case], Case]) -> Any:
        """Return the right answer to a changed call, or None; the text says what is changed."""
        key = self.exercise, one.drawn, text
        if key not in _KEPT:
            if len(_KEPT) > MAX_KEPT:
                _KEPT.clear()
            reference, use = self.exercise.reference, self.exercise.use
            given = outcome(reference, use, io.StringIO(), change(one.case))
            _KEPT[key] = None if given.is_error else given.value
        return _KEPT[key]

    def again(self, one: Tried, change: Callable[[Case], Case]) -> Any:
        """Return what the answer gives in a changed call, or None when it raises an error."""
        [given] = self.exercise.outcomes(self.function, [change(one.case)])
        return None if given.is_error else given.value

    @cached_property
    def cases(self) -> list[Case]:
        """Return the cases."""
        return [one.case for one in self.tried]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names of the arguments that every case has, without the seed of a driver."""
        drivers = ("seed",) if self.exercise.use else ()
        common = set.intersection(*map(set, self.cases)).difference(drivers) if self.cases else ()
        return tuple([name for name in (self.cases[0] if common else ()) if name in common])

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Return the names that the student's code knows; others are those of a driver."""
        known = signature(self.exercise.reference).parameters
        return tuple([name for name in self.names if name in known])

    @cached_property
    def wrong_cases(self) -> list[bool]:
        """Return of each case whether the answer differs in it."""
        return [not self.agree(one.right.value, one.got.value) for one in self.tried]

    @property
    def parts(self) -> list[Part]:
        """Return the parts of the answer that are numbers, and no others in their place."""
        return self._read[0]

    @property
    def unlike(self) -> set[str]:
        """Return the parts that are wrong and cannot be compared, number by number."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[list[Part], set[str]]:
        pairs: defaultdict[str, list[Pair]] = defaultdict(list)
        unlike: set[str] = set()
        for one, right, got in self._leaves:
            for name, value in right.items():
                try:
                    pairs[name].append(Pair(*numbers(value, got[name]), one))
                except (ValueError, TypeError, KeyError):
                    # texts, and what else holds no numbers, may be left out where they are right
                    if not self.agree(value, got[name]):
                        unlike.add(name)
        known = {name: some for name, some in pairs.items() if some and name not in unlike}
        return [Part(name, some) for name, some in known.items()], unlike

    @cached_property
    def _leaves(self) -> list[tuple[Tried, dict[str, Any], dict[str, Any]]]:
        """Return the parts of the right answer and of this one; none where these lack some."""
        try:
            both = [(one, one.right.value, one.got.value) for one in self.tried]
            found = [(one, self.leaves(right), self.leaves(got)) for one, right, got in both]
        except (ValueError, TypeError):
            return []
        return found if all(right.keys() == got.keys() for _, right, got in found) else []

    @cached_property
    def wrong(self) -> list[Part]:
        """Return the parts that differ in any case."""
        return [
            part for part in self.parts if not all(self.agree(*pair[:2]) for pair in part.pairs)
        ]

    @cached_property
    def leaves(self) -> Callable[[Any], dict[str, Any]]:
        """Return what gives the parts of an answer by name."""
        return partial(leaves, self.exercise.parts)


def changed(name: str, change: Callable[[Any], Any], case: Case) -> Case:
    """Return a call with an argument that is changed."""
    return {**case, name: change(case[name])}


def put(name: str, value: Any, case: Case) -> Case:
    """Return a call with another value of an argument."""
    return {**case, name: value}


def leaves(names: Any, value: Any) -> dict[str, Any]:
    """Return the parts of a value by name; of a dict of dicts, the items by their inner keys.

    Examples
    --------
    >>> leaves(("y", ("mean", "var")), (1.0, (2.0, 3.0)))
    {'y': 1.0, 'mean': 2.0, 'var': 3.0}
    >>> leaves("", {"second": {"mean": 2.0}, "first": {"mean": 1.0}})
    {'mean': [1.0, 2.0]}
    """
    if isinstance(names, str):
        inner = [value[name] for name in sorted(value, key=str)] if isinstance(value, dict) else []
        if inner and all(isinstance(item, dict) for item in inner):
            return {key: [item[key] for item in inner] for key in inner[0]}
        return {names: value}
    if isinstance(value, dict | set) or len(names) != len(value):
        raise ValueError(f"expected {len(names)} parts, got {len(value)}")
    found: dict[str, Any] = {}
    for name, item in zip(names, value, strict=True):
        is_one = isinstance(name, str) and not isinstance(item, dict)
        found |= {name: item} if is_one else leaves(name, item)
    return found


def numbers(right: Any, got: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected value and the value got as arrays of real numbers."""
    is_dict = isinstance(right, dict)
    if is_dict or (isinstance(right, list | tuple) and holds_arrays(right)):
        got = {key: got[key] for key in right} if is_dict else got
        two = [arrays(some) for some in (right, got)]
        if len({str(sorted(array.shape for array in some)) for some in two}) > 1:
            raise ValueError("the arrays have other shapes")
        right, got = (np.concatenate([array.ravel() for array in some]) for some in two)
    pair = np.asarray(right), np.asarray(got)
    if pair[0].dtype.kind not in "biuf" or pair[1].dtype.kind not in "biuf":
        raise TypeError("these are no real numbers")
    return pair


def arrays(value: Any) -> list[np.ndarray]:
    """Return the arrays and numbers within lists, tuples and dicts."""
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return [array for item in items for array in arrays(item)]
    return [np.asarray(value)]


def is_numeric(value: Any) -> bool:
    """Return whether there is nothing but real numbers in a value."""
    return {array.dtype.kind for array in arrays(value)} <= {*"biuf"}


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    '`a`, `b` and `c`'
    """
    *before, last = [f"`{name}`" for name in names] or [""]
    return f"{', '.join(before)} and {last}" if before else last
