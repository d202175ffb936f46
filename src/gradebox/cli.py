"""The command ``gradebox``: grade an assignment of the nbgrader course in this folder."""

import argparse
import contextlib
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console
from rich.markup import escape

from gradebox.nbgrader.cells import Unready
from gradebox.sandbox.probe import KERNEL, installed
from gradebox.workers import pool

if TYPE_CHECKING:
    from gradebox.nbgrader.course import Course

CONFIG = "nbgrader_config.py"
TRYING = "Running the tests on your own answers"


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, got {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    both = argparse.ArgumentParser(add_help=False)
    both.add_argument("assignment", metavar="ASSIGNMENT", help="its name in nbgrader")
    both.add_argument("--timeout", type=_positive, metavar="S", help="seconds that a cell may have")
    sandbox = (
        "what seals the cells: the Linux 'kernel', another sandbox that is installed, or, only "
        "with GRADEBOX_ALLOW_UNSEALED=yes in the environment, 'none'"
    )
    both.add_argument("--sandbox", metavar="NAME", help=sandbox)
    command_line = argparse.ArgumentParser(prog="gradebox", description=__doc__)
    commands = command_line.add_subparsers(required=True, metavar="COMMAND")
    tries = "run an assignment's tests on your own answers"
    check = commands.add_parser("check", parents=[both], help=tries)
    check.set_defaults(command=check_tests, scheduler=None)
    one = commands.add_parser("grade", parents=[both], help="grade an assignment")
    one.set_defaults(command=grade)
    add = one.add_argument
    add("-j", "--jobs", type=_positive, metavar="N", help="submissions at once (one a processor)")
    add("--student", action="append", metavar="NAME", help="only these; * and ? match")
    resume = "leave alone what has been graded already and did not change"
    add("--resume", action=argparse.BooleanOptionalAction, default=True, help=resume)
    scheduler = "execute on a Dask cluster, such as tcp://10.0.0.1:8786; its workers have gradebox"
    add("--scheduler", metavar="ADDRESS", help=scheduler)
    return command_line


def _course(arguments: argparse.Namespace) -> "Course":
    """Return the course in the present folder, once the imports of both sides have begun."""
    root = Path.cwd()
    if not (root / CONFIG).is_file():
        raise Unready(f"there is no {CONFIG} in {root}; go to the folder of a course")
    if arguments.scheduler is None:
        wanted, config = pool.configured(root, arguments.assignment) or (None, {})
        sandbox = arguments.sandbox or config.get("WarmExecute", {}).get("sandbox", "auto")
        if sandbox in ("auto", *KERNEL) and sys.platform.startswith("linux"):
            pool.start(wanted)
        elif wanted is not None:
            for each in installed(sandbox, config).values():
                each.start(wanted)
    gc.disable()  # what is imported stays: a sixth of the start would go into looking it through
    from gradebox.nbgrader.course import Course

    gc.freeze()
    gc.enable()
    return Course(root, arguments.assignment, arguments.timeout, sandbox=arguments.sandbox)


def check_tests(arguments: argparse.Namespace) -> int:
    """Say of each test how it runs and what it gives; return 1 if your own answers lose points."""
    course, console = _course(arguments), Console(highlight=False)
    from gradebox.run import batch, report

    if not any(course.source.glob("*.ipynb")):
        raise Unready(f"expected your own notebooks in {course.source}, got none")
    with batch.grading(), console.status(TRYING):
        tests = batch.Executor(course).dry_run(pool.cores())
    report.show_tests(console, tests)
    return int(any(test.fails for test in tests))


def grade(arguments: argparse.Namespace) -> int:
    """Grade; return 1 if a submission failed."""
    course, console = _course(arguments), Console(highlight=False)
    from gradebox import cluster
    from gradebox.run import batch, report

    students = course.students(arguments.student or ("*",))
    if not students:
        who = f"nobody {'of these ' if arguments.student else ''}has handed in"
        where = f"expected notebooks in {course.folder('submitted', 'STUDENT')}"
        raise Unready(f"{who} {arguments.assignment!r}; {where}")
    with batch.grading(), contextlib.ExitStack() as stack:
        run = batch.Batch(course, arguments.jobs or pool.cores(), arguments.resume)
        if arguments.scheduler is not None:
            stack.enter_context(cluster.taken_over(run, arguments.scheduler, arguments.jobs))
        with console.status(TRYING):
            tests = run.tests
        report.warn(console, tests, arguments.assignment)
        told = report.recorded(course, run.grade(students))
        title = f"[bold]Grade {escape(arguments.assignment)}"
        outcomes = [*progress.track(told, title, len(students), console=console)]
    report.show(console, outcomes)
    console.print(f"Report: {report.path_of(course)}", soft_wrap=True)
    return int(any(outcome.state == "failed" for outcome in outcomes))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # Windows writes files in a code page
        sys.stdout.reconfigure(errors="replace")
    try:
        return int(options.command(options))
    except Exception as error:
        from gradebox.run import faults

        said = faults.sentence(error)
        if not said:
            raise
        print(f"gradebox: {said}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. The same command goes on where it stopped.", file=sys.stderr, flush=True)
        # threads wait for cells that run; nothing is lost when they end with this process
        os._exit(130)
