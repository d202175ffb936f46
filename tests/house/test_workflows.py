"""The workflows ask for as little as they need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
IDS = [path.name for path in WORKFLOWS]


def parsed(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the steps of all jobs; a job that calls a workflow has none of its own."""
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=IDS)
def test_workflow_is_read_only(path: Path) -> None:
    workflow = parsed(path)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    text = path.read_text("utf-8")
    assert "pull_request_target" not in text
    assert "secrets." not in text


@pytest.mark.parametrize("path", WORKFLOWS, ids=IDS)
def test_actions_are_pinned_and_jobs_end(path: Path) -> None:
    workflow = parsed(path)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", name) for name in used), used
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # its jobs have limits of their own
            assert (ROOT / job["uses"]).resolve() in WORKFLOWS, name
        else:
            assert job["timeout-minutes"] <= 120, name


# A release on GitHub is a write to the repository's contents. The job that makes it checks nothing
# out, so no code of the repository or of a package ever has this permission.
MAY_WRITE = {"publish": {"pages", "id-token"}, "release": {"contents"}}


def test_only_publishing_jobs_write() -> None:
    for path in WORKFLOWS:
        for name, job in parsed(path)["jobs"].items():
            writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
            assert writes == MAY_WRITE.get(name, set()), name
            used = [step.get("uses", "") for step in job.get("steps", [])]
            checked_out = any(use.startswith("actions/checkout@") for use in used)
            assert not (writes and checked_out), name
