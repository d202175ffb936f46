"""``gradebox grade`` writes what nbgrader writes, loses nothing and stops for nobody."""

import ast
import contextlib
import errno
import functools
import importlib.metadata
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest
from courses import (
    Assignment,
    a_class,
    five,
    grade,
    hand_in,
    is_due,
    killed,
    pages,
    points,
    reported,
    stumbling,
    wait_for_ends,
)
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from notebooks import name_of

from benchmarks.gradebooks import rows, url
from gradebox import cli, files
from gradebox.nbgrader.course import Course, packages
from gradebox.run import batch
from gradebox.run.batch import Executor
from gradebox.workers.syntax import python_of

pytestmark = pytest.mark.xdist_group("gradebox_course")


TOLD: dict[str, set[tuple[str, str]]] = {
    "right": set(),
    "blank": set(),
    "edits": {("changed", "test"), ("missing", "part")},
    "copies": {("twice", "test"), ("added", "")},
    "adds": {("foreign", "mine"), ("added", "")},
    "late": {("late", ""), ("late-penalty", "")},
    "dies": {("ended", "test")},
    "slow": {("slow", "test")},
    "object": {("not-a-value", "test"), ("not-a-value", "part")},
    "ends": {("ended", ""), ("added", ""), ("order", "")},
    "renames": {("renamed", "")},
    "syntax": {("syntax", "answer")},
}
"""Who hands in both notebooks is told no more."""


def test_results_match_nbgrader_and_events_are_reported(course, tmp_path, capsys):
    a_class(course)
    stock = tmp_path / "stock"
    shutil.copytree(course, stock)
    Assignment(stock, "toy").autograde()
    assert grade("--timeout", "1") == 0
    given = points(course)
    assert len(given) == 2 * 4
    assert rows(url(course)) == rows(url(stock))
    ours, theirs = pages(course), pages(stock)
    # a sealed notebook writes to a copy of its folder: what it makes is gone with it
    theirs = {name: page for name, page in theirs.items() if not name.endswith("made.txt")}
    assert ours.keys() == theirs.keys()
    for name in theirs:
        assert ours[name] == theirs[name], name
    parts = [given[student, cell] for student in ("late", "edits") for cell in ("test", "part")]
    assert parts == ["3.0", "0.5", "0.0", "0.25"]
    penalties = {row[1]: row[3] for row in rows(url(course))["notebooks"] if row[0] == "late"}
    assert penalties == {"toy": "3.5", "two": "5.0"}
    stumbling(course)
    hand_in(course, "blank", None)  # its answer raises an error
    hand_in(course, "right", both=True)
    hand_in(course, "dies", "import os; os._exit(1)")
    folder = hand_in(course, "ends")
    nb = nbformat.read(folder / "toy.ipynb", as_version=4)
    nb.cells += [nb.cells.pop(1), new_code_cell("import os; os._exit(1)")]
    nb.cells.insert(4, new_markdown_cell("Because.", attachments={"a.png": {"image/png": "iVBO"}}))
    nbformat.write(nb, folder / "toy.ipynb")
    hand_in(course, "slow", "return 2 * x if x == 1 else __import__('time').sleep(9999)")
    hand_in(course, "object", "return object()")
    hand_in(course, "renames", None, answer="def doubled(x): return 2 * x")
    hand_in(course, "syntax", "return return")
    assert grade("--timeout", "1") == 0
    told = {
        student: {(event["kind"], event.get("cell", "")) for event in entry["events"]}
        for student, entry in reported(course).items()
    }
    missing = {("missing-notebook", "")}
    both = "right", "late"
    assert told == {name: TOLD[name] | (set() if name in both else missing) for name in TOLD}
    assert {points(course)[student, "test"] for student in ("copies", "adds", "ends")} == {"3.0"}
    assert (points(course)["ends", "words"], points(course)["copies", "words"]) == ("None", "0.0")
    assert "Graded 10, unchanged 2, to look at 10, failed 0." in capsys.readouterr().out


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return whose work is executed; that of two is not."""
    errors = {"odd": ValueError("odd"), "closed": PermissionError(errno.EACCES, "closed")}
    execute, found = Executor.execute, []

    def executed(self: Any, submission: Any, plan: Any) -> Any:
        found.append(submission.student)
        if submission.student in errors:
            raise errors[submission.student]
        return execute(self, submission, plan)

    monkeypatch.setattr(Executor, "execute", executed)
    return found


def test_ungradable_submission_affects_only_its_student(course, executed):
    for student in ("a-right", "json", "time", "odd", "closed", "z-right"):
        folder = hand_in(course, student)
        if student == "json":
            (folder / "toy.ipynb").write_text('{"cells": [')
        elif student == "time":
            (folder / "timestamp.txt").write_text("yesterday, honestly")
    assert grade() == 1
    states = {student: entry["state"] for student, entry in reported(course).items()}
    failed = dict.fromkeys(("closed", "json", "odd"), "failed")
    right = {"a-right", "time", "z-right"}  # a time that cannot be read is unknown
    assert states == failed | dict.fromkeys(right, "graded")
    assert {student for student, _ in points(course)} == right
    assert {path.name for path in (course / "autograded").iterdir()} == right


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return all that was said of a fault: one sentence."""
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


with contextlib.closing(sqlite3.connect(":memory:")) as _other:
    _other.execute("CREATE TABLE assignment (title)")
    FOREIGN = _other.serialize()
BOOK, CONFIG, SOURCE = "gradebook.db", "nbgrader_config.py", "source/toy/toy.ipynb"
FAULTS: dict[str, tuple[str, Callable[[bytes], bytes] | None, str]] = {
    "truncated": (BOOK, lambda old: old[:3000], "put back a copy"),
    "text": (BOOK, lambda old: b"x" * 999, "put back a copy"),
    "foreign": (BOOK, lambda old: FOREIGN, "nbgrader db upgrade"),
    "a folder": (BOOK, None, "c.CourseDirectory.db_url"),
    "no Python": (CONFIG, lambda old: old + b"\nc.Execute = (", f"correct {CONFIG}"),
    "no number": (CONFIG, lambda old: old + b"\nc.Execute.timeout = 'x'", f"correct {CONFIG}"),
    "no notebook": (SOURCE, lambda old: old + b"{", "save it anew"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_course_file_is_reported_in_one_sentence(course, capsys, fault):
    hand_in(course, "right")
    name, change, remedy = FAULTS[fault]
    content = (course / name).read_bytes()
    (course / name).unlink()
    if change is None:
        (course / name).mkdir()
    else:
        (course / name).write_bytes(change(content))
    assert grade() == 2
    assert remedy in sentence(capsys)


def test_locked_gradebook_is_reported_in_one_sentence(course, capsys, monkeypatch):
    hand_in(course, "right")
    with contextlib.closing(sqlite3.connect(course / BOOK, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        soon = functools.partial(sqlite3.dbapi2.connect, timeout=0.1)
        monkeypatch.setattr(sqlite3.dbapi2, "connect", soon)
        assert grade() == 2
    assert "close what else uses it" in sentence(capsys)


def test_disk_error_ends_the_run(course, capsys):
    for student in ("ada", "bob"):
        hand_in(course, student)
    write, kept = batch.Batch._write, []

    def kept_while_there_is_room(*values: Any) -> None:
        if kept:
            raise full
        kept.append(values[2].student.id)
        write(*values)

    for number in (errno.ENOSPC, errno.EROFS):
        (course / ".gradebox/toy.json").unlink(missing_ok=True)
        full = OSError(number, os.strerror(number), "result.json")
        kept.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch.Batch, "_write", kept_while_there_is_room)
            assert cli.main(["grade", "toy", "-j", "1", "--no-resume"]) == 2
        said = capsys.readouterr().err
        assert (said.count("\n"), "result.json" in said) == (1, True)
        # the report was written as it went, and nobody is said to have failed
        states = {student: entry["state"] for student, entry in reported(course).items()}
        assert states == {kept[0]: "graded"}
    assert grade() == 0


DEATHS = {
    "before the scores": ("gradebox.run.batch.Batch", "_finish", 2),
    "among the scores": ("gradebox.run.batch.Batch", "_write", 2),
    "before the commit": ("sqlalchemy.orm.Session", "commit", 5),
    "before the report": ("gradebox.run.report", "path_of", 2),
}
QUICK = "before the commit"


@pytest.fixture(scope="module")
def expected(released: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Return the scores and pages of a run that nothing stopped."""
    root = tmp_path_factory.mktemp("whole") / "course"
    shutil.copytree(released, root)
    five(root)
    with contextlib.chdir(root):
        assert grade() == 0
    return rows(url(root)), pages(root)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != QUICK)) for name in DEATHS]
)
def test_killed_run_resumes_where_it_stopped(course, expected, executed, name):
    five(course)
    wait_for_ends(killed(course, *DEATHS[name]))
    found = rows(url(course))
    assert len(found["grades"]) == 4 * len(found["submissions"])
    assert {*found["grades"]} <= {*expected[0]["grades"]}
    assert len(found["submissions"]) < 2 or reported(course), "written as the run goes"
    done = {row[0] for row in found["grades"]}
    assert grade() == 0
    assert sorted(executed) == sorted({f"s{number}" for number in range(5)} - done)
    assert (rows(url(course)), pages(course)) == expected
    assert not list((course / ".gradebox/work").glob("*"))


def test_unchanged_submissions_are_not_executed_again(course, capsys, executed):
    hand_in(course, "s1", "return x", both=True)
    hand_in(course, "s3", "1 / 0")
    folder = hand_in(course, "edits", test="pass")
    assert grade() == 0
    events = reported(course)["edits"]["events"]
    before = pages(course)
    capsys.readouterr()
    executed.clear()
    assert grade() == 0
    assert "Graded 0, unchanged 3, to look at 2, failed 0." in capsys.readouterr().out
    assert reported(course)["edits"] == {"state": "unchanged", "events": events, "why": ""}
    assert executed == []
    # a page that is gone is made again
    shutil.rmtree(course / "autograded/s1/toy")
    assert grade() == 0
    assert "Graded 1, unchanged 2" in capsys.readouterr().out
    assert pages(course) == before
    # so are the penalties of a due date that was changed
    is_due(url(course), "2025-01-02")
    assert grade() == 0
    assert "Graded 3, unchanged 0" in capsys.readouterr().out
    with Gradebook(url(course), "toy") as book:
        book.find_grade("words", "toy", "toy", "s1").manual_score = 1.5
        book.db.commit()
    assert grade("--no-resume", "--student", "s1", "--student", "s[34]") == 0
    assert "Graded 2, unchanged 0" in capsys.readouterr().out
    given = [row for row in rows(url(course))["grades"] if (row[0], row[2]) == ("s1", "words")]
    assert given[0][4] == "1.5", "a score given by hand is kept"
    shutil.rmtree(folder)
    hand_in(course, "edits", "return 0")
    assert grade() == 0
    assert "Graded 1, unchanged 2" in capsys.readouterr().out
    executed.clear()
    assert grade("--timeout", "9") == 0
    assert len(executed) == 3, "other limits are another execution"
    (folder / "toy.ipynb").write_text("broken")
    assert grade("--timeout", "9") == 1
    assert "the work handed in before" in reported(course)["edits"]["why"]


def edit(file: Path, name: str, old: str, new: str, **metadata: object) -> None:
    """Replace a text in a cell of a notebook, and change its metadata of nbgrader's."""
    nb = nbformat.read(file, as_version=4)
    for cell in nb.cells:
        if name_of(cell) == name:
            cell.source = cell.source.replace(old, new)
            cell.metadata.nbgrader |= metadata
    nbformat.write(nb, file)


EDITS: dict[str, tuple[str, str, str, dict[str, object]]] = {
    "a hidden line": ("test", "double(-3) == -6", "double(-4) == -8", {}),
    "a given line": ("answer", "def double(x)", "def double(x=0)", {}),
    "points": ("test", "", "", {"points": 4}),
    "a name": ("test", "", "", {"grade_id": "another"}),
}


def test_edited_source_must_be_released_before_grading(course, capsys):
    hand_in(course, "ada")
    source = course / "source/toy/toy.ipynb"
    before = source.read_bytes()
    for cell, old, new, metadata in EDITS.values():
        edit(source, cell, old, new, **metadata)
        assert grade() == 2
        said = capsys.readouterr().err
        assert f"toy/{metadata.get('grade_id', cell)}" in said
        assert "nbgrader generate_assignment toy" in said
        assert points(course) == {}
        source.write_bytes(before)
    # what no student gets needs no release
    edit(source, "answer", "return 2 * x", "return x + x")
    edit(source, "test", "\n", "\r\n")
    assert grade() == 0


def test_work_for_older_release_gets_a_note(course):
    for student in ("early", "cheat"):
        hand_in(course, student)
    assert grade() == 0
    edit(course / "source/toy/toy.ipynb", "test", "double(2) == 4", "double(3) == 6", points=4)
    Assignment(course, "toy").release()
    hand_in(course, "late")
    edit(course / "submitted/cheat/toy/toy.ipynb", "test", "double(2) == 4", "True", points=9)
    assert grade() == 0
    kinds = {
        student: sorted({event["kind"] for event in entry["events"]})
        for student, entry in reported(course).items()
    }
    assert kinds["early"] == [*kinds["late"], "older"]
    assert "changed" in kinds["cheat"]
    assert {points(course)[student, "test"] for student in ("early", "late")} == {"4.0"}


def test_dry_run_includes_only_notebooks_handed_in(course, capsys):
    shutil.rmtree(course / ".gradebox" / "dry-run")
    hand_in(course, "first")
    assert grade() == 0
    tried = course / ".gradebox" / "dry-run" / "toy"
    assert [path.name for path in tried.iterdir()] == ["toy.json"]
    hand_in(course, "second", both=True)
    assert grade() == 0
    assert {path.name for path in tried.iterdir()} == {"toy.json", "two.json"}
    # the first has the same score still
    assert "Graded 1, unchanged 1," in capsys.readouterr().out


def test_leftover_files_are_removed_safely(tmp_path):
    secret, left, kept = (tmp_path / name for name in ("secret", "left", "kept"))
    secret.mkdir(mode=0o500)
    (left / "below").mkdir(parents=True)
    kept.write_text("12")
    kept.chmod(0o400)  # Windows removes no such file
    (left / "below/small").hardlink_to(kept)
    (left / "large").write_text("123")
    (left / "link").symlink_to(__file__)
    (left / "folder").symlink_to(secret)
    os.mkfifo(left / "pipe")
    (left / "below").chmod(0)
    files.remove(left)
    modes = [path.stat().st_mode & 0o777 for path in (secret, kept)]
    assert (left.exists(), modes) == (False, [0o500, 0o700])


def test_invalid_grade_calls_fail_without_traceback(course, capsys):
    hand_in(course, "s1")
    (course / "submitted/s1/late").mkdir()
    for arguments in ("none", "toy --student x", "late"):
        assert cli.main(["grade", *arguments.split()]) == 2
    for jobs in ("0", "x", "1.5"):
        with pytest.raises(SystemExit):
            cli.main(["grade", "toy", "-j", jobs])
    with batch.alone(course / ".gradebox"):
        assert grade() == 2, "another run"
    with contextlib.chdir("/"):
        assert cli.main(["grade", "toy"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_changed_course_file_changes_the_grading_basis(course):
    (course / "package").mkdir()
    (course / "package/code.py").write_text("1")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write('c.Gradebox.depends = ["package"]\n')
        # the dry run has the file, though no submission gets it
        file.write('c.Autograde.exclude_overwriting = {"toy": ["data.txt"]}\n')
    opened = Course(course, "toy")

    def basis() -> str:
        return opened.basis("")

    found = {basis(), basis()}
    assert len(found) == 1
    for name in ("package/code.py", "source/toy/data.txt"):
        (course / name).write_text("other")
        found.add(basis())
    assert len(found) == 3


def test_package_versions_match_their_metadata():
    found = packages()
    for name in ("numpy", "nbgrader", "jupyter_client", "torch"):
        assert found[name] == importlib.metadata.version(name)
    assert len(found) > 100


def test_threads_take_turns_at_the_parser(monkeypatch):
    parsing, alone = ast.parse, threading.Lock()

    def slow(*args: Any) -> ast.Module:
        assert alone.acquire(blocking=False)
        time.sleep(0.02)
        tree = parsing(*args)
        alone.release()
        return tree

    monkeypatch.setattr(ast, "parse", slow)
    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(python_of, ["x = 3"] * 4)] == ["x = 3"] * 4
