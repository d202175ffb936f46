"""Run a student's function on random cases, and name the mistake when there is one."""

import contextlib
import copy
import io
import re
import signal
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from optdl.checks import diagnoses
from optdl.checks.catalog import blocks, find
from optdl.checks.compare import disagreement
from optdl.checks.diagnoses.evidence import Evidence
from optdl.checks.diagnoses.notebook import stale
from optdl.checks.diagnoses.structure import structure
from optdl.checks.exercise import Case, Exercise, Function
from optdl.checks.report import (
    LIKELY_CAUSE,
    CheckFailed,
    Stopped,
    failing_case,
    show,
    show_both,
    with_printed,
)
from optdl.checks.summary import note
from optdl.observation import Observation, line_of, silence


def check(key: str, function: Function, *, seed: int = 0, properties: bool = False) -> None:
    """Compare a student's function with the reference, and say what is wrong.

    Parameters
    ----------
    key : str
        The exercise, such as ``L1-07``.
    function : callable
        The student's function, with the signature of the exercise.
    seed : int
        Chooses the random cases.
    properties : bool
        Also check facts that the right answer must obey.

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
        agrees = _check(exercise, function, seed, properties)
    except CheckFailed as failed:
        note(key, str(failed))
        raise
    except KeyboardInterrupt as interruption:
        where = line_of(interruption, function)
        stopped = f"■ {key} {exercise.name}: stopped{', in line ' + where if where else ''}."
        note(key, stopped)
        raise Stopped(stopped) from None
    note(key, agrees)
    print(agrees)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let an interruption wait: a module whose import was interrupted is broken until a restart."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)
    if waiting:
        raise KeyboardInterrupt


def _check(exercise: Exercise, function: Any, seed: int, properties: bool) -> str:
    """Return what is said of a right answer; raise what is said of a wrong one."""
    key = exercise.key
    if not callable(function):
        raise CheckFailed(f"✗ {key} {exercise.name}: expected a function, got {show(function)}.")
    drawn = _drawn(exercise, seed)
    printed = _check_cases(exercise, function, drawn, seed)
    if properties:
        _check_properties(exercise, function, copy.deepcopy(drawn.rng))
    facts = ", and the general facts hold" if properties else ""
    agrees = f"✓ {key} {exercise.name}: {len(drawn.cases)} cases agree{facts}"
    return with_printed(agrees, printed, "the first case")


class _Drawn(NamedTuple):
    """Random cases, what the reference gives in them, and the generator behind them."""

    cases: list[Case]
    expected: list[Observation]
    rng: np.random.Generator


@lru_cache(maxsize=256)
def _drawn(exercise: Exercise, *seed: int) -> _Drawn:
    """Draw cases; they are the same for everyone, and kept, so nobody may change them."""
    rng = _rng(exercise, *seed)
    cases = exercise.draw(rng)
    return _Drawn(cases, exercise.outcomes(exercise.reference, cases), rng)


def prepare(topic: str, seeds: Sequence[int] = (0, 7, 123)) -> None:
    """Compute what checks of a topic's answers need for every student alike, as graders may ask.

    Parameters
    ----------
    topic : str
        The topic; what of its checks is imported is prepared.
    seeds : sequence of int
        Those that the notebooks' checks use.
    """
    # without torch, none of the notebooks that are graded is a lab
    labs = blocks(topic, lab=True) if "torch" in sys.modules else {}
    for exercise in (blocks(topic) | labs).values():
        find(exercise.key)  # or each notebook would look for the exercise's file
        for seed in seeds:
            _drawn(exercise, seed)


def _rng(exercise: Exercise, *seed: int) -> np.random.Generator:
    return np.random.default_rng([seed[0], zlib.crc32(exercise.key.encode()), *seed[1:]])


def _check_cases(exercise: Exercise, function: Function, drawn: _Drawn, seed: int) -> str:
    """Return what the function printed in the first case; raise if any case is wrong."""
    title = f"{exercise.key} {exercise.name}"
    cases, expected, _ = drawn
    outcomes = exercise.outcomes(function, cases)
    old = stale(function)
    if any(_error(outcome) == "NotImplementedError" for outcome in outcomes):
        text = f"✗ {title}: not written yet. Replace `raise NotImplementedError()`."
        text = f"{text}\n{LIKELY_CAUSE}{old}." if old else text
        raise CheckFailed(with_printed(text, outcomes[0].printed, "the first case"))
    failing = {
        number: reason
        for number, (right, got) in enumerate(zip(expected, outcomes, strict=True))
        if (reason := _reason(exercise, right, got))
    }
    if not failing:
        return outcomes[0].printed if outcomes else ""
    number = min(failing, key=lambda number: (_size(cases[number]), number))
    reasons = [failing[number]]
    others = [one for one in failing if _is_not_compared(outcomes[one])]
    if others and number not in others:
        reasons += [f"in another case {failing[others[0]]}"]
    tried = _Tried(cases, expected, outcomes)
    # what is said about all cases has to be true of more cases than these
    tried = tried.and_also(_tried(exercise, function, seed, 1))
    cause = old or _named(exercise, tried)
    if not cause and not others:
        for further in (2, 3):
            tried = tried.and_also(_tried(exercise, function, seed, further))
        told, cause = _diagnosed(exercise, function, tried)
        reasons += told
    outcome, right = outcomes[number], expected[number].value
    values = show_both(right, outcome.value, exercise.parts)
    if _error(outcome):
        values = show(right, exercise.parts), "an error"
    text = failing_case(title, cases[number], values, reasons, cause)
    raise CheckFailed(with_printed(text, outcome.printed, "this case"))


class _Tried(NamedTuple):
    """Cases, what the reference gives in them, and what the answer gives."""

    cases: list[Case]
    rights: list[Observation]
    gots: list[Observation]

    def and_also(self, other: "_Tried") -> "_Tried":
        """Return these cases and others."""
        return _Tried(self.cases + other.cases, self.rights + other.rights, self.gots + other.gots)


def _tried(exercise: Exercise, function: Function, *seed: int) -> _Tried:
    cases, rights, _ = _drawn(exercise, *seed)
    return _Tried(cases, rights, exercise.outcomes(function, cases))


def _error(outcome: Observation) -> str:
    """Return the class of what a call raised, or an empty string."""
    return str(outcome.value[0]) if outcome.kind == "raised" else ""


def _is_not_compared(outcome: Observation) -> bool:
    """Return whether something else than a wrong value is the matter with a call."""
    return bool(outcome.kind == "raised" or outcome.changed)


def _diagnosed(exercise: Exercise, function: Function, tried: _Tried) -> tuple[list[str], str]:
    """Return where the answers are wrong, and what explains them if something does."""
    cases, rights, gots = tried
    kept = [i for i, got in enumerate(gots) if not (_is_not_compared(got) or _error(rights[i]))]
    evidence = Evidence(
        exercise,
        function,
        [cases[i] for i in kept],
        [rights[i].value for i in kept],
        [gots[i].value for i in kept],
    )
    if cause := diagnoses.cause(evidence):
        return diagnoses.parts(evidence), cause
    return [*diagnoses.facts(evidence), *diagnoses.last(evidence)], ""


def _reason(exercise: Exercise, expected: Observation, outcome: Observation) -> str | None:
    if outcome.kind == "raised":
        error, message = outcome.value
        return _raised(error, message, outcome.line)
    if outcome.value is None and expected.value is not None and outcome.printed:
        return "your function prints its answer and returns None; `return` it instead"
    if outcome.changed:
        return f"your function changes its argument `{outcome.changed}` in place; work on a copy"
    right, got = expected.value, outcome.value
    reason = disagreement(right, got, exercise.rtol, exercise.atol, exercise.parts)
    return reason and (structure(exercise.parts, got) or reason)


def _raised(error: str, message: str, line: str) -> str:
    """Return in words what was raised, and in which line of the student's code, where known."""
    text = f"your function raised {error}: {message}"
    return f"{text}\n  in line {line}" if line else text


def _named(exercise: Exercise, tried: _Tried) -> str:
    """Return the hint of the known misconception that gives the same answers, if there is one."""
    for misconception in exercise.misconceptions:
        # one case after the other: most misconceptions differ in the first one
        if all(
            _same(exercise, exercise.outcomes(misconception.function, [case])[0], outcome)
            for case, outcome in zip(tried.cases, tried.gots, strict=True)
        ):
            return misconception.hint
    return ""


def _same(exercise: Exercise, mistaken: Observation, outcome: Observation) -> bool:
    if "raised" in (mistaken.kind, outcome.kind):
        # PyTorch raises a RuntimeError for nearly everything; two are alike if they say the same
        return mistaken.kind == outcome.kind and _said(mistaken) == _said(outcome)
    return disagreement(mistaken.value, outcome.value, exercise.rtol, exercise.atol) is None


def _said(outcome: Observation) -> tuple[str, str]:
    """Return the class and the text of an error, without the path of a temporary file in it."""
    error, text = outcome.value
    return error, re.sub(r"/\S*/", "", text)


def _check_properties(exercise: Exercise, function: Function, rng: np.random.Generator) -> None:
    title = f"{exercise.key} {exercise.name}"
    for fact in exercise.properties:
        try:
            with silence(io.StringIO()):
                holds = fact.holds(function, rng)
        except Exception as error:
            raised = _raised(type(error).__name__, str(error), line_of(error, function))
            raise CheckFailed(f"✗ {title}: while checking that {fact.claim}, {raised}") from None
        if not holds:
            raise CheckFailed(f"✗ {title}: it should hold that {fact.claim}, but it does not.")


def _size(case: Case) -> int:
    return sum(_elements(value) for value in case.values())


def _elements(value: Any) -> int:
    if isinstance(value, tuple | list):
        return sum(_elements(item) for item in value)
    return int(np.size(value)) if isinstance(value, np.ndarray) else 1
