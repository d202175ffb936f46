"""Names that a test binds for the student's code, and those that it keeps to itself."""

import sys
from typing import Any
from unittest.mock import patch

import pytest
from test_gradebox_proxy import Lend, lend, server

from gradebox.codec.encoding import BadValue
from gradebox.line.shared_names import SharedNames
from gradebox.process.main_module import MainModule
from gradebox.process.verdict import Checker

__all__ = ["lend", "server"]  # fixtures

pytestmark = pytest.mark.xdist_group("gradebox")

ANSWER = """
rate, rows = 2, [1]
def fetch(): return "the real one"
def used(): return rate, rows, fetch()
def peek(*names): return [name for name in names if name in globals()]
def find(name): return repr(globals().get(name))
"""


def checker(lend: Lend, *shared: str) -> Checker:
    """Return a checker with a student, who shares some names with the tests."""
    return Checker(lend(ANSWER), shared=shared, seconds=20)


def test_a_name_that_the_assignment_defines_is_the_students(lend: Lend) -> None:
    run = checker(lend, "rate", "rows", "fetch").run
    test = """
assert used() == (2, [1], "the real one")
rate = 5
rows = [7]
def fetch(): return expected
expected = "ours"
assert used() == (5, [7], "ours")
rows.append(8)
assert used()[1] == [7, 8]
"""
    assert run(test, 1).error == ""
    assert run("assert used() == (5, [7, 8], 'ours')", 1).error == ""


def test_all_other_names_stay_with_the_tests(lend: Lend) -> None:
    run = checker(lend, "rate").run
    test = """
expected, rows = 42, "hidden"
helper = lambda: expected
assert peek("expected", "helper", "test") == []
assert "hidden" not in find("rows")
assert used()[1] == [1]
"""
    assert run(test, 1).error == ""
    assert run("assert peek('expected', 'helper') == []", 1).error == ""


def test_what_a_locked_cell_defines_is_in_both_processes(lend: Lend) -> None:
    check = checker(lend, "rate")
    assert check.run("rate = 3").error == ""  # the student's process runs it, too
    assert check.run("assert find('rate') == '2'", 1).error == ""


def test_a_later_cell_of_the_students_binds_a_name_anew(lend: Lend) -> None:
    check = Checker(lend(ANSWER + "def cell(): globals().update(rate=7)"), shared=["rate"])
    assert check.run("rate = 5\nassert used()[0] == 5", 1).error == ""
    check.student["cell"]()  # as a cell between two tests would
    assert check.run("assert rate == 7 and used()[0] == 7", 1).error == ""


@pytest.fixture
def main(lend: Lend) -> Any:
    """Return a checker whose names are those of ``__main__``, as in the process of the tests."""
    check = checker(lend)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = MainModule(check.names, check.student.shared)
    yield check
    sys.modules["__main__"] = before


def test_patch_of_main_reaches_the_student_while_it_lasts(main: Checker) -> None:
    used, peek = main.student["used"], main.student["peek"]
    with patch("__main__.fetch", return_value="patched") as asked:
        assert used()[2] == "patched"
        with patch("__main__.fetch", return_value="twice"):
            assert used()[2] == "twice"
        assert used()[2] == "patched"
    asked.assert_called_with()
    assert used()[2] == "the real one"
    with patch("__main__.max", create=True):
        assert peek("max") == ["max"]
    assert peek("max") == []
    with patch("__main__.rate", 9):
        assert used()[0] == 9
    assert used()[0] == 2
    with pytest.raises(AttributeError, match="nothing"), patch("__main__.nothing", 3):
        pass
    module: Any = sys.modules["__main__"]
    with pytest.raises(AttributeError):
        del module.nothing


@pytest.mark.parametrize("told", [None, "rate", {"rate": 1}, 3])
def test_what_is_said_to_be_bound_anew_is_a_list(told: Any) -> None:
    with pytest.raises(BadValue):
        SharedNames({}, ["rate"]).forget(told)


def test_only_names_that_are_shared_are_forgotten() -> None:
    names = {"rate": 3, "expected": 4}
    shared = SharedNames(names, ["rate"])
    shared.forget(["rate", "expected", 3])
    assert names == {"expected": 4}
