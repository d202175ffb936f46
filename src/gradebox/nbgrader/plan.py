"""How the tests of an assignment run, as plain data."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

ISOLATED, IN_PROCESS = WAYS = ("isolated", "in-process")


@dataclass(frozen=True)
class NotebookPlan:
    """How the tests of a notebook run.

    Parameters
    ----------
    in_process : list of str
        The tests that give their points in the student's process, after its last cell.
    again : list of str
        The isolated tests that are asked again there.
    forks : list of str
        Those in the student's process that need the objects as they were where the test stands,
        because later cells change them.
    usual : list of str
        What these tests use and the own answers change themselves, such as a backend of plots.
    pythons : mapping
        The names of Python's own that are the student's in an isolated test, by its name.
    lent : list of str
        The names that tests define and the own answers use.
    """

    in_process: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    forks: list[str] = field(default_factory=list)
    usual: list[str] = field(default_factory=list)
    pythons: dict[str, Collection[str]] = field(default_factory=dict)
    lent: list[str] = field(default_factory=list)


Plan = Mapping[str, NotebookPlan]
"""How the tests of an assignment run, by notebook."""


@dataclass(frozen=True)
class TestRun:
    """How one test runs, and what it gives.

    Parameters
    ----------
    notebook, cell : str
        The test.
    points : float
        What it is worth.
    way : str
        ``isolated`` or ``in-process``.
    answers, blank : float
        What the instructor's own answers get, and a notebook without answers.
    why : str
        Why it does not run isolated: what it raised there. Where it fails both ways, why it fails
        in-process.
    again : bool
        Whether it runs isolated, and then in-process.
    in_fork : bool
        Whether it runs in a fork of the student's process that was made where the test stands.
    usual : tuple of str
        What the own answers change themselves of what it uses in-process.
    asks : tuple of str
        The student's names that it uses.
    pythons : tuple of str
        Those among them that Python has as well.
    lends : tuple of str
        The names that it defines and the own answers use: what students have of it runs among
        their cells, too.
    """

    notebook: str
    cell: str
    points: float
    way: str
    answers: float
    blank: float
    why: str = ""
    again: bool = False
    in_fork: bool = False
    usual: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    lends: tuple[str, ...] = ()

    @property
    def fails(self) -> bool:
        """Return whether the instructor's own answers do not get all of its points."""
        return self.answers < self.points

    @property
    def is_free(self) -> bool:
        """Return whether a blank notebook gets points."""
        return self.blank > 0


def of_plain(tests: Iterable[dict[str, Any]]) -> list[TestRun]:
    """Return runs that were written as JSON."""
    tuples = ("usual", "asks", "pythons", "lends")
    return [TestRun(**fields | {name: tuple(fields[name]) for name in tuples}) for fields in tests]


def planned(runs: Iterable[TestRun]) -> Plan:
    """Return how tests run because of a dry run."""
    plan: dict[str, NotebookPlan] = {}
    for run in runs:
        notebook = plan.setdefault(run.notebook, NotebookPlan())
        notebook.lent.extend(run.lends)
        if run.again:
            notebook.again.append(run.cell)
        if run.pythons:
            notebook.pythons[run.cell] = run.pythons
        if run.way == IN_PROCESS:
            notebook.in_process.append(run.cell)
            if run.in_fork:
                notebook.forks.append(run.cell)
            notebook.usual.extend(name for name in run.usual if name not in notebook.usual)
    return plan
