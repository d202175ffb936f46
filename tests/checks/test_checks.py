"""The checks themselves: right answers pass, each usual mistake fails and is named."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hang import HANG

from gradebox.values.codec import NotAValue, Reader, Writer
from optdl.checks import (
    CheckFailed,
    Exercise,
    Misconception,
    Property,
    catalog,
    check,
    exercises,
    runner,
    summary,
)
from optdl.checks.compare import agrees, disagreement
from optdl.checks.report import Stopped, show
from tools.layout import ROOT, Course

COURSE = exercises()


def spread(values: np.ndarray, count: int) -> float:
    """Return the standard deviation over the root of count: a toy exercise."""
    return float(values.std() / np.sqrt(count))


def divides_by_count(values, count):
    return values.std() / count


TOY = Exercise(
    key="L1-07",
    reference=spread,
    cases=lambda rng: [{"values": rng.normal(size=k), "count": k} for k in (9, 2, 5)],
    misconceptions=(Misconception("your spread divides by n; it is σ / √n", divides_by_count),),
    properties=(Property("constants have no spread", lambda f, rng: f(np.ones(3), 3) == 0),),
)


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes an exercise the one of its row."""
    return lambda one: monkeypatch.setattr(catalog, "of_row", lambda key: {one.key: one})


@pytest.fixture
def toy(known):
    known(TOY)


def message(function, **options) -> str:
    with pytest.raises(CheckFailed) as caught:
        check("L1-07", function, **options)
    return str(caught.value)


# --- an answer in another process


class Stub:
    """Stand for an answer in another process: copies of values cross, and functions of modules."""

    answers = {}  # noqa: RUF012 - kept here, no attribute of a stub leads to the answer

    def __init__(self, answer):
        self.__name__ = answer.__name__
        Stub.answers[id(self)] = answer, self

    def __call__(self, *arguments):
        return self.__observe__(lambda answer, *values: answer(*values), *arguments)

    def __observe__(self, driver, *values):
        answer, _ = Stub.answers[id(self)]
        try:
            return copied(driver(answer, *copied(values, to_answer=True)))
        except Exception as error:
            kinds = (kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            raised = next(kinds)(str(error))
        raise raised


def copied(value, to_answer=False):
    """Return a value as it arrives in another process."""
    functions = []

    def write(function, writer):
        if not to_answer:
            raise NotAValue(repr(function))
        name = getattr(function, "__name__", "")
        is_named = getattr(sys.modules[function.__module__], name, None) is function
        back = lambda *arguments: copied(function(*copied(arguments)))  # noqa: E731
        functions.append(function if is_named else back)
        return ["function", len(functions) - 1]

    writer = Writer(write)
    tree = writer.write(value)
    return Reader(writer.parts, lambda handle, _: functions[handle[1]]).read(tree)


def outcome(key, function, **options):
    """Return what a check says."""
    try:
        check(key, function, **options)
    except CheckFailed as failed:
        return str(failed)
    return "✓"


ARRAYS = [
    tuple,
    lambda parts: [part.tolist() for part in parts],
    lambda parts: [range(len(part)) for part in parts],
    lambda parts: [np.ma.array(part) for part in parts],
    lambda parts: np.array([*parts, None], dtype=object)[:-1],
]


@pytest.mark.parametrize("kind", ARRAYS)
@pytest.mark.parametrize("way", [lambda answer: answer, Stub], ids=["here", "elsewhere"])
def test_arrays_of_any_kind_pass(known, kind, way):
    count = lambda n: [np.arange(n), np.arange(2 * n)]  # noqa: E731
    known(Exercise("L1-07", count, lambda rng: [{"n": 1}, {"n": 4}], ()))
    check("L1-07", way(lambda n: kind(count(n))))


# --- imports


def lines_of(code, **options):
    """Return what a program prints."""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, **options
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


# A notebook starts at once: its first cell imports the checks. Most of SciPy takes longer to import
# than the interpreter, NumPy and the checks together, and PyTorch ten times as long.
HEAVY = ("scipy", "torch", "matplotlib", "sklearn", "pandas", "pooch", "tqdm", "PIL", "IPython")


def test_check_imports_only_its_topic_and_nothing_heavy():
    code = (
        "import sys\n"
        "from optdl.checks import check, exercises\n"
        "from optdl.erm import standard_error\n"
        "check('L1-07', standard_error)\n"
        "print('optdl.checks.bnp' in sys.modules)\n"
        "known = exercises()\n"
        f"print([name for name in {HEAVY} if name in sys.modules])\n"
        "for key, exercise in known.items():\n"
        "    check(key, exercise.reference, properties=True)\n"
        "print([name for name in ('torch', 'sklearn') if name in sys.modules])\n"
    )
    _, others, heavy, *passed, loaded = lines_of(code)
    assert (others, heavy, loaded, len(passed)) == ("False", "[]", "[]", len(COURSE))


# --- the framework, on a toy exercise


@pytest.fixture
def interrupted():
    """Return what interrupts the program, as Kernel → Interrupt Kernel does."""
    # where a shell ignores it, as for &
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.raise_signal
    signal.signal(signal.SIGINT, before)


def test_interrupted_check_names_the_students_line(toy, interrupted):
    def endless(values, count):
        while True:
            interrupted(signal.SIGINT)

    with pytest.raises(Stopped) as stopped:
        check("L1-07", endless)
    [line] = stopped.value._render_traceback_()
    assert re.fullmatch(r"■ spread: stopped, in line \d+: `interrupted\(signal.SIGINT\)`\.", line)


def test_interruption_waits_for_an_import(monkeypatch, interrupted):
    monkeypatch.setattr(runner, "find", lambda key: interrupted(signal.SIGINT) or found.append(key))
    found = []
    with pytest.raises(KeyboardInterrupt):
        check("L1-07", spread)
    assert found == ["L1-07"], "a module whose import was interrupted is broken until a restart"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (divides_by_count, "Likely cause: your spread divides by n; it is σ / √n."),
        (divides_by_count, "count = 2"),  # of 9, 2 and 5
        (lambda v, n: None, "expected a value, got None"),
        (lambda v, n: (yield v), "your function is a generator: it has `yield`"),
        (lambda v, n: (one for one in v), "you return a generator, `( … for … )`"),
        (lambda v, n: sys.exit(), "your function calls `exit()`"),
        (lambda v, n: print(v.std()), "prints its answer and returns None"),
        (lambda v, n: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda v, n: v, "expected a single number, got shape (2,)"),
        (lambda v, n: (v, abs), "expected a single number, got a tuple"),
        (lambda v, n: "0.1", "expected a number, got a str"),
        (lambda v, n: abs, "expected a number, got a builtin_function_or_method"),
        (lambda v, n: {n: abs}, "expected a number, got a dict"),
        (lambda v, n: np.array([v, None], dtype=object), "got an array of dtype object"),
        (lambda v, n: 1j + spread(v, n), "expected real numbers"),
        (lambda v, n: np.longdouble(n), "the values differ"),
        (lambda v, n: (own := []).append(own) or own, "returned holds itself"),
    ],
)
def test_general_mistakes_are_explained_in_both_processes(toy, function, expected):
    here, elsewhere = (
        re.sub("0x[0-9a-f]+", "", message(way)) for way in (function, Stub(function))
    )
    assert expected in here == elsewhere


def test_mistake_must_raise_the_same_error(known):
    leaf, other = (Mock(side_effect=RuntimeError(text)) for text in ("a leaf Variable", "any"))
    known(Exercise("L1-07", spread, TOY.draw, (Misconception("you change a leaf", leaf),)))
    assert "Likely cause: you change a leaf." in message(leaf)
    assert "Likely cause" not in message(other)
    # shapes are named in the order of the factors
    assert "Likely cause" in message(Mock(side_effect=RuntimeError("Variable a leaf")))


def gives(values, count):
    return values.std(), {"count": count}


# in a file of its own
names = {"__name__": __name__}
exec("def unpacked(f, *some):\n    left, right = f(*some)\n    return left, right['count']", names)
unpacked = names["unpacked"]
PAIR = "`gives` should return a tuple of a number and a dict with the key 'count', and returned "


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("return values", PAIR + "an array of shape (2,)."),
        ("print(values)", PAIR + "None: does every path of it `return` something?"),
        ("yield values", PAIR + "a generator"),
        ("return 1.5, {count: 2}", PAIR + "a tuple of a number and a dict with the key 2"),
        ("return values[count]", "your function raised IndexError: index 2 is out of bounds"),
        ("raise SystemExit", "your function calls `exit()`"),
        ("return sqrt(count)", "is not defined; write `np.sqrt`"),
        ("return gradient(count)", "'gradient' is not defined.\n"),
        ("return math.exp(count)", "is not defined; write `np.` for `math.`"),
        ("return count ^ 0.5", "'int' and 'float'; a power is written `**` in Python"),
        ("return values ^ 0.5", "; a power is written `**` in Python"),
        ("raise NotImplementedError(count)", "your function raised NotImplementedError: 2"),
    ],
)
def test_driver_failure_reports_what_the_function_did(known, code, why):
    known(Exercise("L1-07", gives, TOY.draw, use=unpacked))
    names = {}
    exec(compile(f"def gives(values, count):\n    {code}", "<cell>", "exec"), names)
    for way in (names["gives"], Stub(names["gives"])):
        assert why in outcome("L1-07", way)
    assert "the check could not use your gives: TypeError: exec" in outcome("L1-07", exec)


def limited(values, count):
    return np.minimum(values, count)


def unlimited(values, count):
    return values  # np.minimum(values, count)


def limited_to_one(values, count):
    return helped(values) + 0.0


def helped(values):
    """Use no minimum."""
    return np.minimum(values, 1e9)


@pytest.mark.parametrize(
    ("lines", "answer", "cause"),
    [
        ("without `np.minimum` or `clip…`, else a\n      limit", unlimited, "you do not limit."),
        ("without `np.minimum` or `clip…`, else a\n      limit", limited_to_one, "a limit."),
        ("with `values`\n    with `return values`", unlimited, "you do not limit."),
        ("with `value`, else the effect", unlimited, "the effect."),
        ("with `np.min…um(`, else the effect", limited_to_one, "you do not limit."),
        ("with `np.minimum`", unlimited, "your answer is the argument `values` itself."),
        ("without `np.minimum`, else the effect", eval("lambda v, n: v"), "the effect."),
    ],
)
def test_hint_about_code_needs_the_code(known, lines, answer, cause):
    exercise = Exercise("L1-07", limited, lambda rng: [{"values": np.arange(9.0), "count": 3}])
    exercise.help(f"you do not limit\n    np.minimum(values, count) → values\n    {lines}\n")
    known(exercise)
    for way in (answer, Stub(answer)):
        assert f"Likely cause: {cause}" in outcome("L1-07", way)


def test_printed_output_follows_the_verdict(toy, capsys):
    def talking(values, count):
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
        sys.stderr.write("careful")
        print("count is", count)
        return spread(values, count) if right else 7.0

    right = True
    check("L1-07", talking, properties=True)
    output = capsys.readouterr()
    assert output.err == "", "nbgrader gives no points to a cell that writes to stderr"
    assert output.out == (
        "✓ spread: 3 cases agree, and the general facts hold\n\n"
        "Your function printed, in the first case:\ncount is 9\n"
    )
    right = False
    assert message(talking).endswith("\n\nYour function printed, in this case:\ncount is 2")
    text = message(lambda v, n: print("x" * 5000) or 7.0)
    assert text.endswith("x" * 2000 + "\n… 3,001 more characters are not shown.")
    assert "x" * 2001 not in text


@pytest.mark.parametrize(
    ("expected", "got", "reason"),
    [
        ("saddle", "minimum", "expected 'saddle', got 'minimum'"),
        ("saddle", 1.0, "the values differ"),
        (True, False, "expected True, got False"),
        ({"a": 1.0}, [1.0], "expected a dict, got a list"),
        ({"a": 1.0}, {"b": 1.0}, "keys that are missing: ['a']; that are not expected: ['b']"),
        ({"a": 1.0}, {"a": 2.0}, "at key 'a': the values differ"),
        ({"a": 1, "b": "x"}, {"a": 2, "b": "y"}, "at key 'a': expected 1, got 2; at key 'b': exp"),
        ({"a": (1.0, 2.0)}, {"a": (1.0, 3.0)}, "the second of 2 parts at key 'a': the values"),
        ((1.0, 2.0), 1.0, "expected 2 values, got a float"),
        ((1.0, 2.0), (1.0,), "expected 2 values, got 1"),
        ([np.ones(1), np.ones(2)], [np.ones(1), np.zeros(2)], "the second of 2 parts: 2 of 2"),
        ([np.ones(2)], [np.zeros(2)], "2 of 2 values differ"),
        ([np.ones(2)], np.ones(2), "expected a list of one array, got one array of shape (2,)"),
        ([np.ones(1)], map(abs, [1]), "expected one value, got a map"),
        ((0, (1, 2)), (0, (1, 3)), "the second of 2 parts in the second of 2 parts: exp"),
        (np.ones(2), [[1.0], [1.0, 2.0]], "expected an array of shape (2,), got a list"),
    ],
)
def test_values_of_every_kind_are_compared(expected, got, reason):
    assert disagreement(expected, got, rtol=1e-9, atol=1e-12).startswith(reason)


class Right(float):
    """What says of itself that it is whatever is asked for."""

    def __array_function__(self, *_):
        return np.array(True)


def test_a_number_does_not_compare_itself():
    assert agrees(1.0, 1.0 + 1e-13, rtol=1e-9, atol=1e-12)
    assert not agrees(1.0, Right(3.0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((1.0, 2.5), "(1, 2.5)"),
        ([np.eye(2)], "value 1: [[1. 0.]\n          [0. 1.]]\n         (shape (2, 2))"),
        (np.array([0.01, 99.5]), "[ 0.01 99.5 ]  (shape (2,))"),
        (np.array([1e-5, 0.5]), "[1.e-05 5.e-01]  (shape (2,))"),
        (np.zeros((2, 1, 1)), "[[[0.]]\n [[0.]]]\n(shape (2, 1, 1))"),
    ],
)
def test_values_are_shown_in_aligned_columns(value, shown):
    assert show(value) == shown
    assert "..." not in show(np.ones((6, 9)))
    assert "..." in show(np.ones((60, 90)))


def test_error_message_names_the_students_line(toy):
    def careless(values, count):
        return values[count + 1]

    assert ": `return values[count + 1]`." in message(careless)
    text = message(eval("lambda values, count: values[count + 1]"))  # its file cannot be read
    assert "raised IndexError" in text
    assert "in line" not in text


def test_stale_function_is_the_likely_cause(toy, monkeypatch):
    blank = Mock(side_effect=NotImplementedError)
    assert message(blank) == "✗ spread: not written yet. Replace `raise NotImplementedError()`."
    monkeypatch.setattr(runner, "stale", lambda function: "the cell has a syntax error")
    assert "\nLikely cause: the cell has a syntax error." in message(blank)
    assert "\nLikely cause: the cell has a syntax error." in message(divides_by_count)


def test_mistake_must_explain_cases_beyond_those_shown(toy):
    calls = []

    def now_and_then(v, n):
        calls.append(n)
        return divides_by_count(v, n) if len(calls) <= 3 else spread(v, n) + v[0]

    assert TOY.misconceptions[0].hint not in message(now_and_then)


def test_error_in_another_case_is_reported(toy):
    def fragile(v, n):
        return 2.0 if n == 2 else v[n]

    text = message(fragile)
    assert "Why: the values differ. In another case your function raised IndexError" in text


def test_long_check_says_that_it_still_runs(toy, monkeypatch, capsys):
    def slow(values, count):
        time.sleep(0.1)
        return spread(values, count)

    monkeypatch.setattr(runner, "SECONDS", 0.01)
    check("L1-07", slow)
    assert "still runs" not in capsys.readouterr().out
    monkeypatch.setattr(runner, "shell", lambda: SimpleNamespace(kernel=True))
    check("L1-07", slow)
    assert "… spread still runs after 0.01 seconds" in capsys.readouterr().out
    monkeypatch.setattr(runner, "SECONDS", 99.0)
    check("L1-07", spread)
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)


def test_non_function_is_refused(toy):
    assert "expected a function, got 3" in message(3)


def test_long_lists_are_not_diagnosed(toy):
    calls = []
    text = message(lambda v, n: calls.append(n) or [0.5] * 200_000)
    assert "expected a single number, got shape (200000,)" in text
    assert len(calls) == 4 * 3, "three cases of four seeds, and no call to diagnose"


def test_property_catches_memorized_answers(toy):
    shown = [2, 5, 9]
    memorized = lambda v, n: spread(v, n) if len(v) in shown else 1.0  # noqa: E731
    check("L1-07", memorized)
    assert "constants have no spread" in message(memorized, properties=True)

    def fragile(v, n):
        return spread(v, n) if len(v) in shown else v[10]

    text = message(fragile, properties=True)
    assert "your function raised IndexError" in text
    assert "`return spread(v, n) if len(v) in shown else v[10]`" in text


def test_unknown_exercise_suggests_nearest_key():
    with pytest.raises(KeyError, match="did you mean 'L1-07'"):
        check("L1-007", spread)
    with pytest.raises(KeyError) as unknown:
        check("zzz", spread)
    line = "✗ there is no exercise 'zzz'; copy the key from the notebook"
    assert unknown.value._render_traceback_() == [line]


def test_duplicate_exercise_keys_are_refused(monkeypatch):
    monkeypatch.setattr(
        catalog.importlib, "import_module", lambda name: SimpleNamespace(exercise=TOY)
    )
    with pytest.raises(ValueError, match=r"(optdl\.checks\S+) and (?!\1)\S+ have the key L1-07"):
        catalog.blocks()


def test_calling_unwritten_code_shows_one_line(tmp_path):
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        "def run(*lines): shell.run_cell('\\n'.join(lines))\n"
        "run('import optdl.checks', 'def train(x):', '    raise NotImplementedError()')\n"
        "run('class SGD:', '    def step(self):', '        raise NotImplementedError()')\n"
        "for line in ('train(3)', 'SGD().step()'): run(line)\n"
        "run('raise NotImplementedError(\"of something else\")')\n"
    )
    train, step, *other = lines_of(code, env={**os.environ, "IPYTHONDIR": str(tmp_path)})
    assert train == "✗ `train` is not written yet. Replace `raise NotImplementedError()`."
    assert step.startswith("✗ `SGD.step` is not written yet.")
    assert other[-1] == "NotImplementedError: of something else"
    assert len(other) > 3


# --- the summary


def test_summary_shows_last_result_per_exercise(monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["optdl.checks.summary"], "_found", {})
    summary()
    assert "Run All Cells" in capsys.readouterr().out
    right, wrong, blank, stopped, *rest = catalog.blocks("conditioning").values()
    for exercise, function in [
        (stopped, Mock(side_effect=KeyboardInterrupt)),
        (wrong, wrong.reference),
        (right, right.misconceptions[0].function),
        (right, right.reference),
        (wrong, wrong.misconceptions[0].function),
        (blank, Mock(side_effect=NotImplementedError)),
    ]:
        with contextlib.suppress(CheckFailed, KeyboardInterrupt):
            check(exercise.key, function)
    capsys.readouterr()
    summary()
    assert capsys.readouterr().out.splitlines() == [  # in the order of the last checks
        f"1 of {4 + len(rest)} exercises agree with the cases that you can see.",
        f"■ {stopped.name}: stopped",
        f"✓ {right.name}",
        f"✗ {wrong.name}: not right yet",
        f"✗ {blank.name}: not written yet",
        *(f"· {exercise.name}: not checked" for exercise in rest),
    ]


# --- answers that take the course's own, and the grader has none to take


TAKEN = {
    "P-24:scale": "from optdl.bnp import scale_conv",
    "P-24": "import optdl.bnp\nprecondition_conv = optdl.bnp.convolution.precondition_conv",
    "P-21:forward": "import optdl.bnp_cnn as course\nfrom functools import partial\n"
    "conv_forward = partial(course.conv_forward)",
    "P-21": "def convolution_matrix(*arguments):\n"
    "    from optdl import bnp_cnn\n    return bnp_cnn.convolution_matrix(*arguments)",
    "P-23:channels": "from optdl.checks.catalog import find\n"
    "channel_statistics = find('P-23:channels').reference",
    "P-23:bound": "import optdl.bnp_cnn\ndef helper(*arguments):\n"
    "    return optdl.bnp_cnn.statistics_bound(*arguments)\n"
    "def statistics_bound(*arguments):\n    return helper(*arguments)",
    "P-25": "def normalize_channels(*arguments):\n    import optdl.bnp_cnn as course\n"
    "    return [course.normalize_channels(*arguments) for _ in '1'][0]",
    "F-18": "from optdl.optimizers import Lion, run\n"
    "def lion(gradient, start, lr, beta1, beta2, decay, steps):\n"
    "    return run(Lion(lr, beta1, beta2, decay), gradient, start, steps)",
}
"""Answers that take the course's, each in another way, by the keys of their exercises."""


@pytest.fixture
def in_a_notebook(monkeypatch):
    monkeypatch.setattr(runner, "is_notebook", lambda: True)


@pytest.mark.usefixtures("in_a_notebook")
@pytest.mark.parametrize("key", TAKEN)
def test_check_refuses_answers_using_course_solutions(key):
    name = catalog.find(key).name
    notebook = {"__name__": "__main__", "np": np, "check": check}
    exec(TAKEN[key], notebook)
    with pytest.raises(CheckFailed, match=r"uses `optdl\.\w+[\w.]*`, which holds answers"):
        exec(f"check({key!r}, {name})", notebook)


@pytest.mark.usefixtures("in_a_notebook")
def test_check_accepts_own_code_with_course_names():
    # the notebook's own cells import these names, and an attribute may be called like one
    notebook = {"__name__": "__main__", "check": check}
    exec(
        "import numpy as np\nfrom optdl.optimizers import Lion, run\nfrom optdl import problems\n"
        "class Own:\n    run = staticmethod(lambda k, w: (k + 1) / w)\n"
        "def warmup_cosine(k, first, warmup, tau):\n"
        "    if k < warmup:\n        return first * Own.run(k, warmup)\n"
        "    s = min((k - warmup) / tau, 1)\n    return first * (1 + np.cos(np.pi * s)) / 2\n"
        "check('F-05:schedule', warmup_cosine)",
        notebook,
    )


def test_each_reference_is_closed_where_work_is_graded():
    settings = Course(ROOT).config.WarmExecute
    for exercise in COURSE.values():
        topic, module = exercise._draw.__module__.split(".")[2], exercise.reference.__module__
        closed = [*settings.stubbed, *(name.format(assignment=topic) for name in settings.banned)]
        assert any(f"{module}.".startswith(f"{name}.") for name in closed), exercise.key
