"""How the tests of an assignment run, as plain data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

ISOLATED, IN_PROCESS = WAYS = ("isolated", "in-process")


@dataclass(frozen=True)
class NotebookPlan:
    """How the tests of a notebook run."""

    # those that give their points in the student's process, after its last cell
    in_process: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)  # the isolated tests that are asked again there
    # those in the student's process that need the objects as they were where the test stands,
    # because later cells change them
    forks: list[str] = field(default_factory=list)
    # what these tests use and the own answers change themselves, such as a backend of plots
    usual: list[str] = field(default_factory=list)
    # the names of Python's own that are the student's in an isolated test, by its name
    pythons: dict[str, Collection[str]] = field(default_factory=dict)
    # the names that tests define and the own answers use
    lent: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)  # isolated tests that end with a number


Plan = Mapping[str, NotebookPlan]  # how the tests of an assignment run, by notebook


@dataclass(frozen=True)
class TestRun:
    """How one test runs, and what it gives."""

    notebook: str
    cell: str
    points: float  # what it is worth
    way: str  # ``isolated`` or ``in-process``
    answers: float  # what the instructor's own answers get
    blank: float  # what a notebook without answers gets
    why: str = ""  # what it raised isolated; where it fails both ways, what it raised in-process
    again: bool = False  # whether it runs isolated, and then in-process
    in_fork: bool = False  # whether in a fork of the student's process, made where the test stands
    usual: Collection[str] = ()  # what the own answers themselves change of what it uses in-process
    asks: Collection[str] = ()  # the student's names that it uses
    pythons: Collection[str] = ()  # those among them that Python has as well
    is_number: bool = False  # whether it ends with a number, its score, with the own answers
    lends: Collection[str] = ()  # what it defines and own answers use: it runs among these, too

    @property
    def fails(self) -> bool:
        """Return whether the instructor's own answers do not get all of its points."""
        return self.answers < self.points

    @property
    def is_free(self) -> bool:
        """Return whether a blank notebook gets points."""
        return self.blank > 0


def planned(runs: Iterable[TestRun]) -> Plan:
    """Return how tests run because of a dry run."""
    plan: dict[str, NotebookPlan] = {}
    for run in runs:
        notebook = plan.setdefault(run.notebook, NotebookPlan())
        is_in_process = run.way == IN_PROCESS
        notebook.lent.extend(run.lends)
        notebook.again.extend([run.cell] * run.again)
        notebook.numbers.extend([run.cell] * run.is_number)
        notebook.in_process.extend([run.cell] * is_in_process)
        notebook.forks.extend([run.cell] * run.in_fork)
        notebook.pythons.update({run.cell: run.pythons} if run.pythons else {})
        if is_in_process or run.again:
            notebook.usual.extend(name for name in run.usual if name not in notebook.usual)
    return plan
