"""The workflows ask for as little as they need."""

import re
from pathlib import Path

import pytest
import yaml

from tools.layout import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
# A release on GitHub is a write to the repository's contents. The job that makes it checks nothing
# out, so no code of the repository or of a package ever has this permission.
MAY_WRITE = {"publish": {"pages", "id-token"}, "release": {"contents"}}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_read_only_pinned_and_limited(path: Path) -> None:
    text = path.read_text("utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    assert not re.search(r"pull_request_target|secrets\.", text)
    for name, job in workflow["jobs"].items():
        if "uses" in job:  # its jobs have limits of their own
            assert (ROOT / job["uses"]).resolve() in WORKFLOWS, name
        else:
            assert job["timeout-minutes"] <= 120, name
        steps = [step for step in job.get("steps", []) if "uses" in step]
        assert all(re.fullmatch(r"actions/[\w/-]+@v\d+", step["uses"]) for step in steps), name
        checkouts = [step["with"] for step in steps if step["uses"].startswith("actions/checkout@")]
        assert all(options["persist-credentials"] is False for options in checkouts), name
        writes = {key for key, value in job.get("permissions", {}).items() if value == "write"}
        assert writes == MAY_WRITE.get(name, set()), name
        assert not (writes and checkouts), name
