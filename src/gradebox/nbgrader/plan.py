"""How the tests of an assignment run, as plain data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

ISOLATED, IN_PROCESS = WAYS = ("isolated", "in-process")


@dataclass(frozen=True)
class NotebookPlan:
    """How the tests of a notebook run."""

    in_process: list[str] = field(default_factory=list)
    """The tests that give their points in the student's process, after its last cell."""
    again: list[str] = field(default_factory=list)  # the isolated tests that are asked again there
    forks: list[str] = field(default_factory=list)
    """Those in the student's process that need the objects as they were where the test stands,
    because later cells change them.
    """
    usual: list[str] = field(default_factory=list)
    """What these tests use and the own answers change themselves, such as a backend of plots."""
    pythons: dict[str, Collection[str]] = field(default_factory=dict)
    """The names of Python's own that are the student's in an isolated test, by its name."""
    lent: list[str] = field(default_factory=list)
    """The names that tests define and the own answers use."""
    numbers: list[str] = field(default_factory=list)  # isolated tests that end with a number


Plan = Mapping[str, NotebookPlan]  # how the tests of an assignment run, by notebook


@dataclass(frozen=True)
class TestRun:
    """How one test runs, and what it gives."""

    notebook: str
    cell: str
    points: float  # what it is worth
    way: str  # ``isolated`` or ``in-process``
    answers: float
    blank: float  # what the instructor's own answers get, and a notebook without answers
    why: str = ""
    """Why it does not run isolated: what it raised there. Where it fails both ways, why it fails
    in-process.
    """
    again: bool = False  # whether it runs isolated, and then in-process
    in_fork: bool = False
    """Whether it runs in a fork of the student's process that was made where the test stands."""
    usual: tuple[str, ...] = ()  # what the own answers change themselves of what it uses in-process
    asks: tuple[str, ...] = ()  # the student's names that it uses
    pythons: tuple[str, ...] = ()  # those among them that Python has as well
    is_number: bool = False  # whether it ends with a number, its score, with the own answers
    lends: tuple[str, ...] = ()
    """The names that it defines and the own answers use: what students have of it runs among
    their cells, too.
    """

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
        notebook.lent.extend(run.lends)
        if run.again:
            notebook.again.append(run.cell)
        if run.is_number:
            notebook.numbers.append(run.cell)
        if run.pythons:
            notebook.pythons[run.cell] = run.pythons
        if run.way == IN_PROCESS:
            notebook.in_process.append(run.cell)
            if run.in_fork:
                notebook.forks.append(run.cell)
        if run.way == IN_PROCESS or run.again:
            notebook.usual.extend(name for name in run.usual if name not in notebook.usual)
    return plan
