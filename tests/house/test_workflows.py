"""The workflows are valid, ask for as little as they need, and call the project's own commands."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
IDS = [path.name for path in WORKFLOWS]
ACTIONLINT = shutil.which("actionlint", path=str(Path(sys.executable).parent))


def parsed(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of all jobs; a job that calls a workflow has none of its own."""
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run actionlint without the optional checkers that some machines have."""
    assert ACTIONLINT, "actionlint is missing beside Python: pip install -r requirements.txt"
    command = [ACTIONLINT, "-no-color", "-shellcheck=", "-pyflakes=", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_there_are_workflows_for_tests_site_and_release() -> None:
    assert set(IDS) == {"tests.yml", "all-tests.yml", "site.yml", "release.yml"}


def test_actionlint_finds_nothing() -> None:
    done = actionlint(*WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_finds_a_wrong_expression(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    wrong.write_text(text.replace("runner.os", "runner.oss"), "utf-8")
    done = actionlint(wrong)
    assert done.returncode == 1
    assert "runner" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=IDS)
def test_a_workflow_may_read_only_and_keeps_no_credentials(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    assert "secrets." not in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=IDS)
def test_each_action_is_pinned_and_each_job_ends(path: Path) -> None:
    workflow = parsed(path)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", name) for name in used), used
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # its jobs have limits of their own
            assert (ROOT / job["uses"]).resolve() in WORKFLOWS, name
        else:
            assert job["timeout-minutes"] <= 120, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=IDS)
def test_a_command_of_a_workflow_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for step in steps(parsed(path)):
        for line in step.get("run", "").splitlines():
            program, *arguments = shlex.split(line)
            if program == "make":
                assert set(arguments) <= targets, line
            for argument in arguments:
                if argument.endswith(".py"):
                    assert (ROOT / argument).is_file(), line


# A release on GitHub is a write to the repository's contents. The job that makes it checks nothing
# out, so no code of the repository or of a package ever has this permission.
MAY_WRITE = {"publish": {"pages", "id-token"}, "release": {"contents"}}


def test_only_the_jobs_that_publish_may_write() -> None:
    for path in WORKFLOWS:
        for name, job in parsed(path)["jobs"].items():
            writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
            assert writes == MAY_WRITE.get(name, set()), name
            used = [step.get("uses", "") for step in job.get("steps", [])]
            checked_out = any(use.startswith("actions/checkout@") for use in used)
            assert not (writes and checked_out), name
