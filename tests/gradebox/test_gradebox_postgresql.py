"""A gradebook on a PostgreSQL server says what one in a file of SQLite says."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from courses import Assignment
from hang import HANG
from small_course import DIES, five, grade, hand_in, is_due, reported
from toy_course import make_course

from benchmarks.gradebooks import rows, url
from tools import grade as grade_tool
from tools import gradebook, results
from tools import release as release_tool
from tools.terminal import ToolError

PROGRAMS = {name: shutil.which(name) for name in ("initdb", "postgres")}
NOBODY = 65534

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox_course"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="gradebox grade needs fork"),
    pytest.mark.skipif(not all(PROGRAMS.values()), reason="no PostgreSQL server is installed"),
    pytest.mark.skipif(
        find_spec("psycopg") is None, reason="no psycopg: install the extra [postgresql]"
    ),
]


def unprivileged() -> dict[str, object]:
    """Return as whom the server runs: it refuses to be root."""
    if os.geteuid():
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server that listens to a socket in its own folder only; return its address."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        data = Path(name, "data")
        if not os.geteuid():
            os.chown(name, NOBODY, NOBODY)
        making = [PROGRAMS["initdb"], "-D", data, "-U", "teacher", "-A", "trust", "--no-sync"]
        made = subprocess.run(
            making, cwd=name, capture_output=True, text=True, timeout=HANG, **unprivileged()
        )
        assert made.returncode == 0, made.stderr
        running = subprocess.Popen(
            [PROGRAMS["postgres"], "-D", data, "-k", name, "-c", "listen_addresses="],
            cwd=name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **unprivileged(),
        )
        try:
            yield f"postgresql+psycopg://teacher@/{{}}?host={name}"
        finally:
            running.terminate()
            running.wait(HANG)


def database(server: str, name: str) -> str:
    """Make a database, as soon as the server answers, and return its address."""
    import psycopg

    host = server.partition("host=")[2]
    until = time.monotonic() + HANG
    while True:
        try:
            with psycopg.connect(
                host=host, user="teacher", dbname="postgres", autocommit=True
            ) as door:
                door.execute(f'CREATE DATABASE "{name}"')
            return server.format(name)
        except psycopg.OperationalError:
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)


def test_scores_are_those_of_sqlite(
    server: str, course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    five(course)
    hand_in(course, "edits", "return 0", test="print('all is well')")
    (hand_in(course, "late") / "timestamp.txt").write_text("2026-01-02 01:00:00 UTC")
    (hand_in(course, "json") / "toy.ipynb").write_text("{")
    other = tmp_path / "other"
    shutil.copytree(course, other)
    assert grade() == 1
    expected = reported(course)
    address = moved(other, database(server, "class"))
    monkeypatch.chdir(other)
    assert grade() == 1
    assert rows(address) == rows(url(course))
    assert len(rows(address)["grades"]) == 7 * 4
    assert reported(other) == expected
    assert not (other / "gradebook.db").exists()
    assert grade() == 1
    states = [entry["state"] for entry in reported(other).values()]
    assert sorted(states) == ["failed", *["unchanged"] * 7]


def test_a_killed_run_leaves_whole_submissions(server: str, course: Path) -> None:
    five(course)
    address = moved(course, database(server, "killed"))
    command = [sys.executable, "-c", DIES, "sqlalchemy.orm.Session", "commit", "5"]
    died = subprocess.run(command, cwd=course, capture_output=True, timeout=HANG, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    found = rows(address)
    assert 0 < len(found["submissions"]) < 5
    assert len(found["grades"]) == 4 * len(found["submissions"])
    assert grade() == 0
    after = rows(address)
    assert len(after["submissions"]) == 5
    assert set(found["grades"]) <= set(after["grades"])
    assert len({row[:3] for row in after["grades"]}) == len(after["grades"]) == 20


def test_the_commands_of_the_course_work_with_a_server(server: str, tmp_path: Path) -> None:
    made = make_course(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {database(server, 'tools')!r}\n")
    with pytest.raises(ToolError, match="nothing has been graded"):
        gradebook.command(gradebook.parser().parse_args([]), made)
    release_tool.write(made, "toy")
    release_tool.record(made, "toy")
    for student, place in {"right": made.source("toy"), "blank": made.released("toy")}.items():
        folder = made.submitted / student / "toy"
        folder.mkdir(parents=True)
        shutil.copy(place, folder)
    assert len(grade_tool.grade(made, "toy").graded) == 2
    found = {row.student: row.auto for row in results.rows(made, ["toy"])}
    assert found == {"right": 6, "blank": 0}
    assert not list(tmp_path.rglob("gradebook.db"))


def moved(root: Path, address: str) -> str:
    """Have a course keep its gradebook on the server, and record the assignment there."""
    (root / "gradebook.db").unlink()
    with (root / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {address!r}\n")
    Assignment(root, "toy").release()
    is_due(address, "2026-01-02")
    return address
