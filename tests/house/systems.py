"""Test modules that a system cannot run, and why; they are skipped there with this reason."""

import os
from pathlib import Path

import pytest

NO_FORK = "the grader's processes are forked, which this system cannot do"
NEED_FORK = {
    "test_gradebox_cli",
    "test_gradebox_cluster",
    "test_gradebox_dry_run",
    "test_gradebox_forging",
    "test_gradebox_ordinary",
    "test_gradebox_own_time",
    "test_gradebox_postgresql",
    "test_gradebox_protocol",
    "test_gradebox_seal",
    "test_gradebox_workers",
    "test_hostile",
}


def unavailable(path: Path) -> str:
    """Return why this system cannot run a test module, or nothing where it can."""
    return NO_FORK if path.stem in NEED_FORK and not hasattr(os, "fork") else ""


class Unavailable(pytest.File):
    """A test module that is skipped without being imported: its imports would already fail."""

    def collect(self) -> list[pytest.Item]:
        """Skip the module, with the reason."""
        raise pytest.skip.Exception(unavailable(self.path), allow_module_level=True)
