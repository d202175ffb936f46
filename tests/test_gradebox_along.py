"""Warnings, records, files and replaced functions go along between a student's code and tests."""

import contextlib
import logging
import socket
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradebox.codec.encoding import BadValue
from gradebox.effects import logs, warning_records
from gradebox.line.lender import Lender
from gradebox.line.proxy import Student
from gradebox.line.wire import Line
from gradebox.process.client import ForkServer
from gradebox.process.pair import CheckerInputs, paired
from gradebox.process.verdict import Verdict
from gradebox.sandbox.probe import choose
from gradebox.sandbox.seal import Limits

pytestmark = pytest.mark.xdist_group("gradebox")


@pytest.fixture
def lend() -> Iterator[Callable[[str], Student]]:
    """Return a function that executes a student's cell and lends its names, in a thread."""
    with contextlib.ExitStack() as stack:

        def make(cell: str) -> Student:
            ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
            namespace: dict[str, Any] = {"__name__": "__main__"}
            exec(cell, namespace)
            lends = threading.Thread(target=Lender(Line(theirs), namespace).serve)
            lends.start()
            student = Student(Line(ours))
            stack.callback(lends.join)
            stack.callback(student.end)
            return student

        yield make


Lend = Callable[[str], Student]

# --- warnings ---------------------------------------------------------------------------------

WARNS = """
import warnings
class Own(FutureWarning): pass
class Hidden(Own): pass
def warn(text, kind=UserWarning, many=1):
    for number in range(many):
        warnings.warn(f"{text}{number}" if many > 1 else text, kind, stacklevel=2)
    return text
"""


def test_a_warning_is_recorded_once(lend: Lend) -> None:
    warn = lend(WARNS)["warn"]
    for _ in range(2):
        with pytest.warns(UserWarning, match="a") as caught:
            assert warn("a") == "a"
        assert [(str(one.message), one.category) for one in caught] == [("a", UserWarning)]
        assert caught[0].filename == "<the student's code>"


def test_filters_of_the_tests_decide(lend: Lend) -> None:
    warn = lend(WARNS)["warn"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "not this")
        warnings.filterwarnings("error", category=DeprecationWarning)
        warn("not this")
        warn("this")
        with pytest.raises(DeprecationWarning, match="old"):
            warn("old", DeprecationWarning)
    assert [str(one.message) for one in caught] == ["this"]


def test_a_class_of_the_students_is_that_class(lend: Lend) -> None:
    student = lend(WARNS)
    with pytest.warns(student["Own"], match="a") as caught:
        student["warn"]("a", student["Hidden"])
    assert caught[0].category is student["Hidden"]
    with pytest.warns(FutureWarning):
        student["warn"]("b", student["Own"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", student["Own"])
        with pytest.raises(student["Own"]):
            student["warn"]("a", student["Hidden"])


def test_a_category_of_numpy_is_known(lend: Lend) -> None:
    cell = "import numpy, warnings\ndef f(): warnings.warn('a', numpy.exceptions.RankWarning)"
    with pytest.warns(np.exceptions.RankWarning):
        lend(cell)["f"]()


def test_a_warning_comes_before_the_error_that_follows_it(lend: Lend) -> None:
    cell = "import warnings\ndef f():\n    warnings.warn('a')\n    raise KeyError('b')"
    with pytest.warns(UserWarning, match="a"), pytest.raises(KeyError):
        lend(cell)["f"]()


def test_of_endless_warnings_the_first_come(lend: Lend) -> None:
    warn = lend(WARNS)["warn"]
    with pytest.warns(UserWarning, match="a") as caught:
        warn("a", many=warning_records.MOST + 10)
    assert len(caught) == warning_records.MOST
    with pytest.warns(UserWarning, match="x") as caught:
        warn("x" * (warning_records.LONGEST + 1))
    assert len(str(caught[0].message)) == warning_records.LONGEST


def test_what_no_test_asks_for_stays_with_the_student(
    lend: Lend, capsys: pytest.CaptureFixture[str]
) -> None:
    warn = lend(WARNS)["warn"]
    with pytest.warns(UserWarning, match="during"):
        warn("during")
    assert "during" not in capsys.readouterr().err


# --- what no honest process sends ---------------------------------------------------------------

BAD: list[dict[str, Any]] = [
    {"warned": None},
    {"warned": [["UserWarning", "a", 1]] * (warning_records.MOST + 1)},
    {"warned": [["UserWarning", "a"]]},
    {"warned": [["SystemExit", "a", 1]]},
    {"warned": [["KeyboardInterrupt", "a", 1]]},
    {"warned": [["ValueError", "a", 1]]},
    {"warned": [["os.system", "a", 1]]},
    {"warned": [["warnings.warn", "a", 1]]},
    {"warned": [[1, "a", 1]]},
    {"warned": [[[], "a", 1]]},
    {"warned": [[["yours", 1], "a", 1]]},
    {"warned": [[["builtin", "SystemExit"], "a", 1]]},
    {"warned": [[["error", 1, "E", []], "a", 1]]},
    {"warned": [[["handle", 1, "class", "type", "E", True], "a", 1]]},
    {"warned": [["UserWarning", 1, 1]]},
    {"warned": [["UserWarning", "a" * (warning_records.LONGEST + 1), 1]]},
    {"warned": [["UserWarning", "a", -1]]},
    {"warned": [["UserWarning", "a", 1.0]]},
    {"logged": {}},
    {"logged": [["listened", 10, "a"]] * (logs.MOST + 1)},
    {"logged": [["listened", 10]]},
    {"logged": [["listened", True, "a"]]},
    {"logged": [["listened", 1000, "a"]]},
    {"logged": [["x" * 201, 10, "a"]]},
    {"logged": [["listened", 10, "a" * (logs.LONGEST + 1)]]},
]


@pytest.mark.parametrize("message", BAD, ids=lambda message: repr(message)[:60])
def test_what_makes_no_sense_is_refused(message: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(BadValue):
        Student(Line(ours)).hear(message)


def test_no_logger_is_made_that_no_test_listens_to() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        student = Student(Line(ours))
        student.hear({"logged": [["nobody.listens", 50, "a"]]})
        student.along.issue()
    assert "nobody.listens" not in logging.Logger.manager.loggerDict


def test_files_are_ignored_where_none_are_kept_in_step() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Student(Line(ours)).hear({"files": {"changes": [[0, "x", "file", ""]], "missing": []}})
    assert not Path("x").exists()


# --- in two sealed processes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    warm = ForkServer(("numpy",))
    yield warm
    warm.close()


Examine = Callable[..., list[Verdict]]


@pytest.fixture
def examine(server: ForkServer, tmp_path: Path) -> Examine:
    """Return a function that runs tests of a student's cell, apart and sealed."""

    def run(cell: str, *tests: str, readable: Sequence[str] = ()) -> list[Verdict]:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        level, given = choose("auto", allow_unsealed=True), CheckerInputs(readable=readable)
        with paired(server, work, {}, given, seconds=20, level=level, limits=Limits()) as pair:
            assert pair.run(cell)[0].ok
            return [pair.check(test, 1) for test in tests]

    return run


def test_nothing_is_imported_from_the_working_folder(examine: Examine) -> None:
    cell = "open('colorsys.py', 'w').write('forged = True')\nopen('data.txt', 'w').close()"
    test = "import os, sys, colorsys\nassert os.listdir() == ['data.txt'], os.listdir()\n"
    test += "assert not {'', '.', os.getcwd()} & set(sys.path)\nassert colorsys.rgb_to_hsv"
    (verdict,) = examine(cell, test)
    assert verdict.score == 1, verdict.error


def test_no_pickle_of_a_students_is_run(examine: Examine) -> None:
    cell = """
import pickle, shelve
import numpy as np
class Forge:
    def __reduce__(self):
        return exec, ("open('forged', 'w').close()",)
pickle.dump(Forge(), open("honest.txt", "wb"))
pickle.dump({"a": [1, 2.5, "b", {3}, np.arange(3)]}, open("data.txt", "wb"))
np.save("objects.npy", np.array([Forge()], object))
"""
    read = "import pickle, os\nimport numpy as np\n"
    tests = (
        "pickle.load(open('honest.txt', 'rb'))",
        "np.load('objects.npy', allow_pickle=True)",
        "assert pickle.load(open('data.txt', 'rb'))['a'][4].sum() == 3;",
        "assert not os.path.exists('forged')",
    )
    verdicts = examine(cell, *(read + test for test in tests))
    assert [one.score for one in verdicts] == [0, 0, 1, 1], [one.error for one in verdicts]
    assert all("names builtins.exec" in one.doubt for one in verdicts[:2])


def test_files_of_the_instructor_are_not_sent(examine: Examine, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "answers.csv").write_text("SECRET")
    cell = """
import os
def seen():
    return [name for place in ("/tmp", ".") for _, _, names in os.walk(place) for name in names]
"""
    tests = (
        f"assert 'SECRET' in open({str(source / 'answers.csv')!r}).read()\nseen()",
        "print(seen())",
    )
    verdicts = examine(cell, *tests, readable=[str(source)])
    assert [one.score for one in verdicts] == [1, 1]
    assert "answers.csv" not in str(verdicts[1].outputs)


def test_a_file_that_does_not_come_is_a_doubt(examine: Examine) -> None:
    cell = "def save():\n    open('model.pkl', 'wb').close()"
    first, second = examine(cell, "assert 1 == 2", "save()\nopen('model.pkl')")
    assert (first.score, first.doubt) == (0, "")
    assert "'model.pkl' could not be sent" in second.doubt


def test_input_ends_at_once_where_nobody_answers(examine: Examine) -> None:
    cell = (
        "def ask():\n    try:\n        return input()\n    except EOFError:\n        return 'end'"
    )
    test = "import builtins\nown = builtins.input\nbuiltins.input = lambda: 'a'\nfirst = ask()\n"
    test += "builtins.input = own\nassert (first, ask()) == ('a', 'end')"
    assert [one.score for one in examine(cell, "assert ask() == 'end'", test)] == [1, 1]


def test_what_is_replaced_is_put_back_for_the_students_cells(examine: Examine) -> None:
    cell = "import time, math\ndef look():\n    return str(time.sleep), math.tau"
    test = "from unittest.mock import patch\n"
    test += "patches = [patch('time.sleep'), patch('math.tau', 6)]\n"
    test += "[one.start() for one in patches]\nfirst = look()\nassert first[1] == 6\n"
    test += "[one.stop() for one in patches]\nassert 'built-in' in look()[0], look()\n"
    test += "assert 'built-in' not in first[0] and look()[1] > 6.2"
    (verdict,) = examine(cell, test)
    assert verdict.score == 1, verdict.error


def test_what_the_line_uses_may_be_replaced(examine: Examine) -> None:
    cell = "import json, os\ndef dump(x):\n    return json.dumps(x), os.stat('.')"
    test = "from unittest.mock import patch\n"
    test += "with patch('json.dumps', return_value='a'), patch('os.stat', return_value=1):\n"
    test += (
        "    try:\n        got = dump([1])\n    except Exception as error:\n        got = error\n"
    )
    test += "assert got == ('a', 1), got"
    verdicts = examine(cell, test, "assert dump(1)[0] == '1'")
    assert [one.score for one in verdicts] == [1, 1], [one.error for one in verdicts]


def test_what_is_printed_is_told_once(examine: Examine) -> None:
    cell = "import warnings\ndef f():\n    print('hello')\n    warnings.warn('careful')"
    plain, watched = examine(
        cell, "f()", "import warnings\nwith warnings.catch_warnings(record=True) as w:\n    f();"
    )
    assert str(plain.outputs).count("hello") == str(watched.outputs).count("hello") == 1
    assert str(plain.outputs).count("UserWarning") == 1
    assert "UserWarning" not in str(watched.outputs)


def test_the_same_warning_is_shown_by_default_once(examine: Examine) -> None:
    test = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    warn("a")
    warn("a")
assert len(caught) == 1
"""
    assert [one.score for one in examine(WARNS, test)] == [1]


def test_records_are_handled_by_the_logger_of_that_name(examine: Examine) -> None:
    cell = """
import logging
def log(name, level, text, *more):
    logging.getLogger(name).log(level, text, *more)
"""
    test = """
import logging
import unittest
case = unittest.TestCase()
with case.assertLogs("a", "INFO") as logs:
    log("a", logging.INFO, "%d%%", 5)
    log("a.below", logging.WARNING, "below")
    log("a", logging.DEBUG, "too low")
    log("b", logging.ERROR, "another")
assert logs.output == ["INFO:a:5%", "WARNING:a.below:below"], logs.output
with case.assertLogs() as logs:
    log("b", logging.ERROR, "all")
assert logs.output == ["ERROR:b:all"], logs.output
with case.assertNoLogs("a", "WARNING"):
    log("a", logging.INFO, "harmless")
"""
    verdicts = examine(cell, test)
    assert [one.score for one in verdicts] == [1], verdicts[0].error
