"""Only objects that the instructor's answers have, too, decide about a value of a test's."""

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from test_gradebox_cli import api, write
from test_gradebox_proxy import Lend, lend, server
from test_gradebox_trial import course, made, points, trials

from gradebox import cli
from gradebox.process.verdict import Checker, Verdict

__all__ = ["course", "lend", "server"]  # fixtures

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox"),
]

NEAR = """
class Near:
    def __sub__(self, other): return 0.0
    def __rsub__(self, other): return 0.0
    def __isub__(self, other): return 0.0
    def __contains__(self, item): return True
    def equals(self, other): return True
    def __getattr__(self, name): return Near.equals.__get__(self)
    def size(self): return 3
    def __call__(self, other): return 0.0
    def __getitem__(self, key): return 0.0

class Numbers(list):
    def __contains__(self, item): return True
    def count(self, item): return 1
    def __add__(self, other): return [1, 2, 3]

near, numbers = Near(), Numbers([7])
"""

DECIDED = {
    "abs(near - 5.0) < 1e-9": "__sub__",
    "abs(5.0 - near) < 1e-9": "__sub__",
    "5.0 in near": "__contains__",
    "near.equals(5.0)": "equals",
    "near.close(other=5.0)": "close",
    "5.0 in numbers": "__contains__",
    "numbers.count(5.0) == 1": "count",
    "numbers + [5.0] == [1, 2, 3]": "__add__",
    "__import__('operator').isub(near, 5.0) == 0": "__sub__",
    "max(abs(a - b) for a, b in zip([near], [5.0])) < 1e-9": "__sub__",
}


@pytest.mark.skipif("not hasattr(__import__('os'), 'fork')", reason="two processes need fork")
@pytest.mark.parametrize(("claim", "name"), DECIDED.items())
def test_an_object_decides_only_where_the_instructors_does(
    lend: Lend, claim: str, name: str
) -> None:
    checker = Checker(lend(NEAR))

    def run(mixed: Collection[str] | None) -> Verdict:
        return checker.run(f"assert {claim}", 1.0, mixed)

    tried = run(None)
    assert (tried.score, tried.mixed) == (1.0, [name])
    assert run([name, "__mul__"]).score == 1
    refused = run(["__mul__"])
    assert (refused.score, refused.mixed) == (0.0, [name])
    assert f"whose {name!r} would decide" in refused.error
    assert "expected plain data" in refused.doubt


@pytest.mark.parametrize(
    "source",
    [
        "assert near.size() == 3",  # it is given nothing
        "assert near(5.0) == 0.0",  # called like a function
        "assert near['a'] == 0.0 and numbers[0] == 7",
        "assert float((near - near) + 1.0) == 1.0",  # two objects of the student's
    ],
)
def test_what_an_object_holds_may_be_asked(lend: Lend, source: str) -> None:
    verdict = Checker(lend(NEAR)).run(source, 1.0, [])
    assert (verdict.score, verdict.mixed) == (1.0, [])


def test_a_refusal_that_a_test_catches_still_costs_its_points(lend: Lend) -> None:
    source = "try:\n    gap = near - 5.0\nexcept Exception:\n    gap = 0.0\nassert gap == 0.0"
    verdict = Checker(lend(NEAR)).run(source, 1.0, [])
    assert verdict.score == 0
    assert verdict.doubt


LENGTH = """class Length:
    def __init__(self, value):
        self.value = value
    def __add__(self, other):
        return Length(self.value + other)
    def scaled(self, factor):
        return Length(self.value * factor)

def square(x):
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION
"""
TESTS = {
    "class": "assert (Length(2) + 1).value == 3 and Length(2).scaled(3).value == 6",
    "number": "assert abs(square(3) - 9) < 1e-9",
}
SLY = "class Sly:\n    def __sub__(self, other):\n        return 0.0\n\n"


def test_a_trial_learns_what_the_instructors_answers_need(course: Path) -> None:
    write(course / "source/toy/toy.ipynb", made(TESTS, LENGTH))
    assert {name: one.mixed for name, one in trials(course).items()} == {
        "class": ["__add__", "scaled"],
        "number": [],
    }


def test_a_sly_answer_gets_nothing_and_is_flagged(course: Path) -> None:
    write(course / "source/toy/toy.ipynb", made(TESTS, LENGTH))
    assert api(course).generate_assignment("toy")["success"]
    for student, answer in {
        "right": LENGTH,
        "sly": SLY + LENGTH.replace("return x * x", "return Sly()"),
    }.items():
        write(course / f"submitted/{student}/toy/toy.ipynb", made(TESTS, answer))
    assert cli.main(["grade", "toy"]) == 0
    assert points(course) == {
        "right": {"class": 2.0, "number": 2.0},
        "sly": {"class": 2.0, "number": 0.0},
    }
    flags = json.loads((course / ".gradebox/toy.json").read_text())["sly"]["flags"]
    assert any("cell number gives 2 points in one process, and 0 apart" in one for one in flags)
