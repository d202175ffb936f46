"""What belongs to the repository."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def project_files() -> list[Path]:
    """Return the files that are part of the repository or will be: all but what git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a git repository, so it cannot be told what belongs to it")
    return [path for line in listed.splitlines() if (path := ROOT / line).is_file()]
