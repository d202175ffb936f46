"""How the tests of an assignment run, as plain data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields

ISOLATED, IN_PROCESS = WAYS = ("isolated", "in-process")


@dataclass(frozen=True)
class PlannedTest:
    """How one test runs."""

    way: str = ISOLATED
    again: bool = False  # whether it runs isolated, and then in-process
    # whether in a fork of the student's process, made where the test stands, because later cells
    # change the objects that it needs
    in_fork: bool = False
    # what the own answers themselves change of what it uses in-process, such as a backend of plots
    usual: Collection[str] = ()
    pythons: Collection[str] = ()  # the names of Python's own that are the student's in it
    is_number: bool = False  # whether it ends with a number, its score, with the own answers
    lends: Collection[str] = ()  # what it defines and own answers use: it runs among these, too


@dataclass(frozen=True, kw_only=True)
class TestRun(PlannedTest):
    """How one test runs, and what it gives."""

    notebook: str
    cell: str
    points: float  # what it is worth
    answers: float  # what the instructor's own answers get
    blank: float  # what a notebook without answers gets
    why: str = ""  # what it raised isolated; where it fails both ways, what it raised in-process
    asks: Collection[str] = ()  # the student's names that it uses

    @property
    def fails(self) -> bool:
        """Return whether the instructor's own answers do not get all of its points."""
        return self.answers < self.points


NotebookPlan = Mapping[str, PlannedTest]  # by the names of tests; what is not there runs isolated
Plan = Mapping[str, NotebookPlan]  # by notebook


def planned(runs: Iterable[TestRun]) -> Plan:
    """Return how tests run because of a dry run."""
    plan: dict[str, dict[str, PlannedTest]] = {}
    for run in runs:
        told = {each.name: getattr(run, each.name) for each in fields(PlannedTest)}
        plan.setdefault(run.notebook, {})[run.cell] = PlannedTest(**told)
    return plan
