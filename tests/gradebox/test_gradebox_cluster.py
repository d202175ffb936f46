"""A Dask cluster gives the scores that this machine gives."""

import json
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import psutil
import pytest
from courses import a_class, five, grade, hand_in, pages, reported, stumbling

from benchmarks.gradebooks import rows, url
from gradebox import cli, cluster
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.plan import IN_PROCESS, PlannedTest
from gradebox.run import batch
from gradebox.run.intake import Submission

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("gradebox_course")]
needs_dask = pytest.mark.skipif(
    find_spec("distributed") is None, reason="no Dask: install the extra [cluster]"
)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Start a scheduler and two workers, processes that listen on loopback only."""
    from distributed import LocalCluster

    folder = str(tmp_path_factory.mktemp("cluster"))
    options = {"n_workers": 2, "threads_per_worker": 1, "local_directory": folder}
    with LocalCluster(host="127.0.0.1", dashboard_address=None, **options) as cluster:
        yield cluster


@needs_dask
def test_cluster_results_match_local_despite_killed_worker(machines, course, tmp_path, monkeypatch):
    a_class(course)
    five(course)
    stumbling(course)
    (hand_in(course, "json") / "toy.ipynb").write_text("{")
    other = tmp_path / "other"
    shutil.copytree(course, other)
    assert grade() == 1
    monkeypatch.chdir(other)
    workers = [psutil.Process(each.pid) for each in machines.workers.values()]
    finish, done = batch.Batch._finish, []

    def servers(worker: psutil.Process) -> int:
        return sum("gradebox.workers.server" in child.cmdline() for child in worker.children())

    def finishing(self: Any, *values: Any) -> Any:
        done.append(1)
        if len(done) == 3:
            # one for all of a machine's submissions; a busy one may find that all are done
            assert max(map(servers, workers)) == 1
            workers[0].kill()
        return finish(self, *values)

    monkeypatch.setattr(batch.Batch, "_finish", finishing)
    assert cli.main(["grade", "toy", "--scheduler", machines.scheduler_address]) == 1
    assert len(done) > 3
    assert rows(url(other)) == rows(url(course))
    assert pages(other) == pages(course)
    assert reported(other) == reported(course)
    # and none of it is executed again here
    assert grade() == 1
    states = {entry["state"] for name, entry in reported(other).items() if name != "json"}
    assert states == {"unchanged"}


@needs_dask
def test_worker_needs_same_versions_but_no_course_folder(course, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")  # as the worker sets it, and not for good
    with (course / "nbgrader_config.py").open("a") as file:  # not only plain data
        file.write("c.Autograde.pre_convert_hook = lambda **_: None\n")
    notebook = (hand_in(course, "right") / "toy.ipynb").read_bytes()
    opened = Course(course, "toy")
    order = cluster.packed(opened, batch.Batch(opened).sources)
    with monkeypatch.context() as patch:
        patch.setattr("platform.python_version", lambda: "2.7")
        with pytest.raises(batch.Unready, match="same versions"):
            cluster.call(order, "dry_run")
    course.rename(course.with_name("elsewhere"))
    monkeypatch.chdir(course.parent)
    assert [test.way for test in cluster.call(order, "dry_run")] == ["isolated"] * 3
    files = {"own.txt": b"mine", "data.txt": b"not it"}
    submission = Submission("right", {"toy": notebook}, files, ())
    plan = {"toy": {"test": PlannedTest(IN_PROCESS)}}
    result = cluster.call(order, "execute", submission, plan)
    nb, told = result.notebooks["toy"]
    assert told["scores"]["test"] == 3.0
    assert "the data" in json.dumps(nb)


@pytest.mark.parametrize("name", [pytest.param("START", marks=needs_dask), "distributed"])
def test_unavailable_cluster_is_reported(course, monkeypatch, capsys, name):
    hand_in(course, "right")
    monkeypatch.setattr(cluster, "START", 0.2)
    said = "no cluster answers at tcp://127.0.0.1:9"
    if name == "distributed":
        monkeypatch.setitem(sys.modules, name, None)
        said = "the extra [cluster]"
    assert cli.main(["grade", "toy", "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert said in capsys.readouterr().err
