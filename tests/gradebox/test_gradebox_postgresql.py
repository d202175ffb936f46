"""A gradebook on a PostgreSQL server says what one in a file of SQLite says."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
from courses import Assignment, five, grade, hand_in, is_due, killed, reported, wait_until
from hang import HANG
from toy_course import make_course

from benchmarks.gradebooks import rows, url
from tools.classroom import grade as grade_tool
from tools.classroom import gradebook, results
from tools.classroom import release as release_tool
from tools.layout import Course
from tools.terminal import ToolError

PROGRAMS = {name: shutil.which(name) for name in ("initdb", "postgres")}
NOBODY = 65534

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("gradebox_course"),
    pytest.mark.skipif(not all(PROGRAMS.values()), reason="no PostgreSQL server is installed"),
    pytest.mark.skipif(not find_spec("psycopg"), reason="the extra [postgresql] is not installed"),
]


IS_ROOT = not getattr(os, "geteuid", lambda: NOBODY)()
AS = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if IS_ROOT else {}
"""As whom the server runs: it refuses to be root."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server that listens to a socket in its own folder only; return its address."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        data = Path(name, "data")
        if IS_ROOT:
            os.chown(name, NOBODY, NOBODY)
        making = [PROGRAMS["initdb"], "-D", data, "-U", "teacher", "-A", "trust", "--no-sync"]
        subprocess.run(making, cwd=name, capture_output=True, check=True, timeout=HANG, **AS)
        serving = [PROGRAMS["postgres"], "-D", data, "-k", name, "-c", "listen_addresses="]
        null = subprocess.DEVNULL
        running = subprocess.Popen(serving, cwd=name, stdout=null, stderr=null, **AS)
        try:
            yield f"postgresql+psycopg://teacher@/{{}}?host={name}"
        finally:
            running.terminate()
            running.wait(HANG)


def database(server: str, name: str) -> str:
    """Make a database, as soon as the server answers, and return its address."""
    import psycopg

    to = {"host": server.partition("host=")[2], "user": "teacher", "dbname": "postgres"}

    def is_made() -> bool:
        with suppress(psycopg.OperationalError), psycopg.connect(**to, autocommit=True) as door:
            door.execute(f'CREATE DATABASE "{name}"')
            return True
        return False

    wait_until(is_made)
    return server.format(name)


def test_killed_postgresql_run_resumes_with_sqlites_scores(server, course, tmp_path, monkeypatch):
    five(course)
    hand_in(course, "edits", "return 0", test="print('all is well')")
    (hand_in(course, "late") / "timestamp.txt").write_text("2026-01-02 01:00:00 UTC")
    (hand_in(course, "json") / "toy.ipynb").write_text("{")
    other = tmp_path / "other"
    shutil.copytree(course, other)
    assert grade() == 1
    (other / "gradebook.db").unlink()
    address = database(server, "class")
    with (other / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {address!r}\n")
    Assignment(other, "toy").release()
    is_due(address, "2026-01-02")
    killed(other, "sqlalchemy.orm.Session", "commit", 5)
    left = rows(address)
    assert 0 < len(left["submissions"]) < 5
    assert len(left["grades"]) == 4 * len(left["submissions"])
    monkeypatch.chdir(other)
    assert grade() == 1
    assert rows(address) == rows(url(course))
    assert {*left["grades"]} <= {*rows(address)["grades"]}
    assert len(rows(address)["grades"]) == 7 * 4
    events = [[each["events"] for each in reported(root).values()] for root in (course, other)]
    assert events[0] == events[1]
    assert not (other / "gradebook.db").exists()
    assert grade() == 1
    states = [entry["state"] for entry in reported(other).values()]
    assert sorted(states) == ["failed", *["unchanged"] * 7]


def test_course_commands_work_with_a_server(server, tmp_path):
    make_course(tmp_path)
    with (tmp_path / "nbgrader_config.py").open("a") as file:
        file.write(f"c.CourseDirectory.db_url = {database(server, 'tools')!r}\n")
    made = Course(tmp_path)
    with pytest.raises(ToolError, match="nothing has been graded"):
        gradebook.main(course=made)
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
