"""Run a student's function on random cases, and name the mistake when there is one."""

import contextlib
import copy
import inspect
import io
import math
import re
import signal
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from optdl.checks import diagnoses
from optdl.checks.catalog import blocks, find
from optdl.checks.compare import agrees, disagreement, structure
from optdl.checks.diagnoses.evidence import Evidence, Tried, leaves, listed
from optdl.checks.diagnoses.notebook import is_notebook, shell, stale, taken
from optdl.checks.exercise import Case, Exercise, Function, Misconception
from optdl.checks.report import (
    LIKELY_CAUSE,
    WHY,
    CheckFailed,
    Stopped,
    failing_case,
    show,
    show_both,
    with_printed,
)
from optdl.checks.summary import note
from optdl.observation import Observation, line_of, observe, returned, silence, source_of

LARGE = 100_000
"""No value that is expected has so many numbers: what is larger is not diagnosed."""

SECONDS = 10.0
"""After so long a check says that it still runs."""


def check(key: str, function: Function, *, seed: int = 0, properties: bool = False) -> None:
    """Compare a student's function with the reference, and say what is wrong.

    The exercise has a key such as ``L1-07``; the seed chooses its random cases. With ``properties``
    the facts that the right answer must obey are checked, too.

    Raises
    ------
    CheckFailed
        With the smallest failing case, what was expected and got, and the known mistake
        that explains all answers, if there is one.
    KeyError
        When there is no such exercise.
    Stopped
        When the check is interrupted.
    """
    with _undisturbed():
        exercise = find(key)
    try:
        # elsewhere than in a notebook the course checks its own functions
        if is_notebook() and (name := taken(exercise, function)):
            raise CheckFailed(
                f"✗ {exercise.name}: not your own yet.\n{WHY}your answer uses `{name}`, "
                "which holds answers and cannot be imported when your work is graded. Use NumPy "
                "and the functions that you have written."
            )
        with _watched(exercise.name):
            agrees = _check(exercise, function, seed, properties)
    except CheckFailed as failed:
        note(key, str(failed))
        raise
    except KeyboardInterrupt as interruption:
        where = line_of(interruption, function)
        stopped = f"■ {exercise.name}: stopped{', in line ' + where if where else ''}."
        note(key, stopped)
        raise Stopped(stopped) from None
    note(key, agrees)
    print(agrees)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let an interruption wait: a module whose import was interrupted is broken until a restart."""
    waiting: list[int] = []
    with contextlib.ExitStack() as after:
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
            after.callback(signal.signal, signal.SIGINT, before or signal.default_int_handler)
        yield
    if waiting:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _watched(title: str) -> Iterator[None]:
    """Say in a notebook, while a check takes long, how it is stopped."""
    text = (
        f"… {title} still runs after {SECONDS:g} seconds: is there an endless loop? ■ above the "
        "notebook (or Kernel → Interrupt Kernel) stops it."
    )
    in_main = threading.current_thread() is threading.main_thread()
    timer = threading.Timer(SECONDS, partial(print, text, file=sys.stdout, flush=True))
    timer.daemon = True
    if hasattr(shell(), "kernel") and in_main and sys.platform != "emscripten":
        timer.start()  # elsewhere nobody reads along, or there are no threads
    try:
        yield
    finally:
        timer.cancel()


def _check(exercise: Exercise, function: Any, seed: int, properties: bool) -> str:
    """Return what is said of a right answer; raise what is said of a wrong one."""
    title = exercise.name
    if not callable(function):
        raise CheckFailed(f"✗ {title}: expected a function, got {show(function)}.")
    tried = _tried(exercise, function, seed)
    _check_cases(exercise, function, tried, seed)
    _check_facts(exercise, function, copy.deepcopy(_drawn(exercise, seed)[2]), properties)
    facts = ", and the general facts hold" if properties else ""
    agrees = f"✓ {title}: {len(tried)} cases agree{facts}"
    return with_printed(agrees, tried[0].got.printed if tried else "", "the first case")


@lru_cache(maxsize=256)
def _drawn(
    exercise: Exercise, *seed: int
) -> tuple[list[Case], list[Observation], np.random.Generator]:
    """Draw cases, the same for everyone and kept, so nobody may change them, nor the generator."""
    rng = np.random.default_rng([seed[0], zlib.crc32(exercise.key.encode()), *seed[1:]])
    cases = exercise.draw(rng)
    return cases, exercise.outcomes(exercise.reference, cases), rng


def _tried(exercise: Exercise, function: Function, *seed: int) -> list[Tried]:
    cases, rights, _ = _drawn(exercise, *seed)
    # strict: an answer that lives elsewhere could give back fewer outcomes than there are cases
    given = zip(cases, rights, exercise.outcomes(function, cases), strict=True)
    return [Tried(*one, (number, *seed)) for number, one in enumerate(given)]


@lru_cache(maxsize=2048)
def _mistaken(
    exercise: Exercise, misconception: Misconception, number: int, *seed: int
) -> Observation:
    """Return what a mistake gives in a case; computed once, as the cases are the same for all."""
    case = _drawn(exercise, *seed)[0][number]
    return exercise.outcomes(misconception.function, [case])[0]


def prepare(topic: str, seeds: Sequence[int] = (0, 7, 123)) -> None:
    """Compute what checks of a topic's answers need for every student alike, as graders may ask.

    The seeds are those that the notebooks' checks use.
    """
    # without torch, none of the notebooks that are graded is a lab
    labs = blocks(topic, lab=True) if "torch" in sys.modules else {}
    for exercise in (blocks(topic) | labs).values():
        find(exercise.key)  # or each notebook would look for the exercise's file
        for seed in seeds:
            _drawn(exercise, seed)


def _check_cases(exercise: Exercise, function: Function, tried: list[Tried], seed: int) -> None:
    """Raise what is said of the smallest case that is wrong, if any is."""
    title = exercise.name
    old = stale(function)
    # with a text it is another: a module of PyTorch that lacks `forward` raises it
    raised = (one.got.value for one in tried if one.got.kind == "raised")
    if any([*value] == ["NotImplementedError", ""] for value in raised):
        text = f"✗ {title}: not written yet. Replace `raise NotImplementedError()`."
        text = f"{text}\n{LIKELY_CAUSE}{old}." if old else text
        raise CheckFailed(with_printed(text, tried[0].got.printed, "the first case"))
    failing = [(one, reason) for one in tried if (reason := _reason(exercise, *one[:3]))]
    if not failing:
        return
    (case, right, got, _), reason = min(failing, key=lambda found: _ease(exercise, found[0]))
    reasons = [reason]
    others = [why for one, why in failing if _is_not_compared(one.got)]
    if others and not _is_not_compared(got):
        reasons += [f"in another case {others[0]}"]
    # what is said about all cases has to be true of more cases than these; a lab's take seconds
    enough = 2 if exercise.use else 4
    for further in range(1, enough):
        tried = tried + _tried(exercise, function, seed, further)
    cause = old or _named(exercise, function, tried)
    strange = [one.got.is_error for one, _ in failing if _is_not_compared(one.got)]
    if not cause and all(strange) and not got.is_error:
        for further in range(enough, 4):
            tried = tried + _tried(exercise, function, seed, further)
        told, cause = _diagnosed(exercise, function, tried)
        if strange and (told or cause):
            told, cause = [f"where it raises none, {'; '.join(filter(None, [*told, cause]))}"], ""
        reasons += told
    values: Sequence[str] = [] if exercise.use else [show(right.value, exercise.parts), "an error"]
    if not got.is_error:
        values = show_both(*_differing(exercise, right.value, got.value, exercise.parts))
    text = failing_case(title, case, values, reasons, cause)
    raise CheckFailed(with_printed(text, got.printed, "this case"))


def _ease(exercise: Exercise, one: Tried) -> tuple[bool, int]:
    """Return by what cases are put in order: wrong values first, then the size of the case."""
    agrees = not one.got.is_error and _agree(exercise, one.right.value, one.got.value)
    return agrees, _size([*one.case.values()])


def _differing(exercise: Exercise, right: Any, got: Any, names: Any) -> tuple[Any, Any, Any]:
    """Return the parts of two values that differ, with their names; all where one lacks parts."""
    if isinstance(right, dict) and isinstance(got, dict) and right.keys() == got.keys():
        keys = [key for key in right if not _agree(exercise, right[key], got[key])]
        return {key: right[key] for key in keys}, {key: got[key] for key in keys}, names
    some = []
    if isinstance(names, tuple) and isinstance(got, tuple | list) and len(got) == len(names):
        three = zip(right, got, names, strict=True)
        some = [_differing(exercise, *one) for one in three if not _agree(exercise, *one[:2])]
    return tuple(zip(*some, strict=True)) if some else (right, got, names)  # type: ignore


def _agree(exercise: Exercise, right: Any, got: Any) -> bool:
    return agrees(right, got, exercise.rtol, exercise.atol)


def _is_not_compared(outcome: Observation) -> bool:
    """Return whether something else than a wrong value is the matter with a call."""
    large = isinstance(outcome.value, np.ndarray) and outcome.value.size > LARGE
    return bool(outcome.is_error or outcome.changed or outcome.kind == "other" or large)


def _diagnosed(exercise: Exercise, function: Function, tried: list[Tried]) -> tuple[list[str], str]:
    """Return where the answers are wrong, and what explains them if something does."""
    kept = [one for one in tried if not _is_not_compared(one.got) and one.right.kind != "raised"]
    if not exercise.use:  # else the arguments are those of a driver
        parameters = inspect.signature(exercise.reference).parameters.values()
        defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        whole = [one._replace(case=one.case | (defaults | one.case)) for one in kept]
        gots = exercise.outcomes(function, [one.case for one in whole])
        # an answer may have other defaults, or draw numbers of its own
        if all(_same(exercise, one.got, got) for one, got in zip(whole, gots, strict=True)):
            kept = whole
    with silence(io.StringIO()):
        return diagnoses.explained(Evidence(exercise, function, kept))


def _reason(
    exercise: Exercise, case: Case, expected: Observation, outcome: Observation
) -> str | None:
    if outcome.kind == "raised":
        error, message = outcome.value
        return _raised(error, message, outcome.line)
    if outcome.kind == "unusable":
        return _unusable(exercise, case, *outcome.value)
    if type(outcome.value).__name__ == "generator" != type(expected.value).__name__:
        if "<genexpr>" in repr(outcome.value):
            return "you return a generator, `( … for … )`; return a list, `[ … for … ]`"
        return "your function is a generator: it has `yield`; collect the values and `return` them"
    if outcome.value is None and expected.value is not None and outcome.printed:
        return "your function prints its answer and returns None; `return` it instead"
    if outcome.changed:
        return f"your function changes its argument `{outcome.changed}` in place; work on a copy"
    right, got = expected.value, outcome.value
    reason = disagreement(right, got, exercise.rtol, exercise.atol, exercise.parts)
    if exercise.use:  # the parts are those of the driver
        return reason
    if not reason:
        return _lacking_integers(right, got) or None
    return structure(exercise.parts, got, right) or reason


def _lacking_integers(right: Any, got: Any) -> str:
    """Return which integers are expected where floats of the same value were got, if there are."""
    if isinstance(right, tuple):
        return next(filter(None, map(_lacking_integers, right, got)), "")
    if isinstance(right, np.ndarray):
        is_float = right.dtype.kind == "i" and np.asarray(got).dtype.kind == "f"
        return "expected an array of int, got one of float" if is_float else ""
    is_float = type(right) is int and isinstance(got, float)
    return "expected an integer, got a float; `int` makes one of a whole number" if is_float else ""


def _unusable(
    exercise: Exercise, case: Case, error: str, message: str, given: list[tuple[str, str]]
) -> str:
    """Return in words what the check cannot use: the first thing that is of another kind."""
    assert exercise.use is not None
    expected = returned(exercise.reference, exercise.use, case)
    for name, value in given:
        kinds = [kind for own, kind in expected if own == name]
        if kinds and value not in kinds:
            question = ": does every path of it `return` something?" if value == "None" else ""
            return f"`{name}` should return {kinds[0]}, and returned {value}{question}"
    return f"the check could not use your {exercise.name}: {error}: {message}"


def _raised(error: str, message: str, line: str) -> str:
    """Return in words what was raised, and in which line of the student's code, where known."""
    text = f"your function raised {error}: {message}"
    if error == "SystemExit":
        text = "your function calls `exit()`, which ends all of the program; use `return`"
    unknown = re.match("name '(\\w+)' is not defined", message)
    if unknown and hasattr(math, unknown[1]) and hasattr(np, unknown[1]):
        text += f"; write `np.{unknown[1]}`"
    if unknown and unknown[1] == "math":
        text += "; write `np.` for `math.`"
    if " ^: " in message or "'bitwise_xor'" in message:
        text += "; a power is written `**` in Python"
    return f"{text}\n  in line {line}" if line else text


def _named(exercise: Exercise, function: Function, tried: list[Tried]) -> str:
    """Return the hint of the known misconception that gives the same answers, if there is one."""
    for misconception in exercise.misconceptions:
        # one case after the other: most misconceptions differ in the first one
        if all(
            _same(exercise, _mistaken(exercise, misconception, *one.drawn), one.got)
            for one in tried
        ):
            source = observe(source_of, function) if misconception.conditions else ""
            if told := misconception.told(source):
                return told
    return "" if exercise.use else _named_parts(exercise, function, tried)


def _named_parts(exercise: Exercise, function: Function, tried: list[Tried]) -> str:
    """Return for each wrong part the hint of the mistake that gives this part, if all have one."""
    agree, said = partial(_agree, exercise), dict[str, list[str]]()
    rights = [_parts(exercise, one.right) for one in tried]
    gots = [_parts(exercise, one.got) for one in tried]
    for name in filter(None, rights[0]):
        values = [got.get(name, "no such part") for got in gots]
        if all(map(agree, [right.get(name) for right in rights], values)):
            continue
        for misconception in exercise.misconceptions:
            mistaken = (_mistaken(exercise, misconception, *one.drawn) for one in tried)
            given = (_parts(exercise, one).get(name, "nor here") for one in mistaken)
            is_same = all(map(agree, given, values))
            if hint := is_same and misconception.told(observe(source_of, function)):
                said.setdefault(hint, []).append(name)
                break
        else:
            return ""
    return "; ".join(f"in {listed(names)}, {hint}" for hint, names in said.items())


def _parts(exercise: Exercise, given: Observation) -> dict[str, Any]:
    try:
        return {} if given.is_error else leaves(exercise.parts, given.value)
    except (ValueError, TypeError):  # it is built in another way
        return {}


def _same(exercise: Exercise, mistaken: Observation, outcome: Observation) -> bool:
    if mistaken.is_error or outcome.is_error:
        # PyTorch raises a RuntimeError for nearly everything; two are alike if they say the same
        return mistaken.kind == outcome.kind and _said(mistaken) == _said(outcome)
    return _agree(exercise, mistaken.value, outcome.value)


def _said(outcome: Observation) -> tuple[str, list[str]]:
    """Return the class and the words of an error, without the path of a temporary file in it.

    They are in no order: `a * b` and `b * a` name their shapes the other way round.
    """
    error, text, *_ = outcome.value
    return error, sorted(re.sub(r"/\S*/", "", text).split())


def _check_facts(
    exercise: Exercise, function: Function, rng: np.random.Generator, hidden: bool
) -> None:
    title = exercise.name
    for fact in (each for each in exercise.properties if hidden or each.is_visible):
        try:
            with silence(io.StringIO()):
                holds = fact.holds(function, rng)
        except (Exception, SystemExit) as error:
            raised = _raised(type(error).__name__, str(error), line_of(error, function))
            raise CheckFailed(f"✗ {title}: while checking that {fact.claim}, {raised}") from None
        if not holds:
            raise CheckFailed(f"✗ {title}: it should hold that {fact.claim}, but it does not.")


def _size(value: Any) -> int:
    """Return how many numbers there are in a value."""
    if isinstance(value, tuple | list):
        return sum(map(_size, value))
    return int(np.size(value)) if isinstance(value, np.ndarray) else 1
