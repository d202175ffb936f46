"""The installation shows how far it is and what pip warns of, and no more."""

import io
import re
import sys
from pathlib import Path

import pytest

from tools import install


class Screen(io.StringIO):
    """What is printed, in a terminal or elsewhere."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


# As pip 23 and pip 25 print them.
HARMLESS = """\
WARNING: Location 'file:///opt/wheels/zipp/' is ignored: it is neither a file nor a directory.
WARNING: The directory '/x/pip' or its parent directory is not owned or is not writable by the \
current user. The cache has been disabled. Check the permissions and owner of that directory.
WARNING: Cache entry deserialization failed, entry ignored
DEPRECATION: odd is being installed using the legacy 'setup.py install' method.
"""

MATTERS = """\
WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'
WARNING: The candidate selected for download or install is a yanked version: 'odd'
ERROR: Could not find a version that satisfies the requirement odd==1.0 (from versions: none)
ERROR: No matching distribution found for odd==1.0
error: subprocess-exited-with-error
  × Building wheel for odd (pyproject.toml) did not run successfully.
  │ exit code: 1
  ╰─> [2 lines of output]
      odd.c:1: fatal error: no such file
"""


def test_harmless_warnings_are_not_shown_and_all_others_whole() -> None:
    screen = Screen()
    report = install.Report(screen, "waiting", Clock())
    for line in (HARMLESS + MATTERS).splitlines():
        report.take("stderr", line)
    assert screen.getvalue() == MATTERS


def test_without_a_terminal_a_line_comes_for_ten_packages() -> None:
    screen = Screen()
    report = install.Report(screen, "waiting", Clock())
    for number in range(1, 36):
        report.take("stdout", f"Collecting p{number}==1.0 (from -r requirements.txt (line 3))")
        report.take("stdout", f"  Downloading p{number}-1.0-py3-none-any.whl (10 kB)")
    report.take("stdout", "Installing collected packages: a, b, c")
    assert screen.getvalue().splitlines() == [
        "  package 10: p10==1.0 (0 s)",
        "  package 20: p20==1.0 (0 s)",
        "  package 30: p30==1.0 (0 s)",
        "  putting 3 packages in place (0 s)",
    ]


def test_without_a_terminal_a_line_comes_after_five_seconds_and_after_thirty_without_news() -> None:
    screen, clock = Screen(), Clock()
    report = install.Report(screen, "waiting", clock)
    for clock.now in (2, 4):
        report.take("stdout", "Processing /wheels/small-1.0-py3-none-any.whl")
    for clock.now in (6, 7):
        report.take("stdout", "  Downloading torch-2.0-cp311-manylinux.whl.metadata (526.1 MB)")
    for clock.now in range(10, 70, 5):
        report.wait()
    assert screen.getvalue().splitlines() == [
        f"  package 2: small-1.0-py3-none-any.whl, 526.1 MB ({seconds} s)" for seconds in (6, 40)
    ]


def test_while_pip_puts_packages_in_place_they_are_counted(tmp_path: Path) -> None:
    screen, clock = Screen(), Clock()
    report = install.Report(screen, "waiting", clock, tmp_path)
    report.take("stdout", "Installing collected packages: a, b, c")
    for clock.now, name in enumerate("ab", 1):
        clock.now *= install.PATIENCE
        (tmp_path / f"{name}-1.0.dist-info").mkdir()
        report.wait()
    assert screen.getvalue().splitlines() == [
        "  putting 3 packages in place (0 s)",
        "  1 of 3 packages are in place (30 s)",
        "  2 of 3 packages are in place (60 s)",
    ]


def test_in_a_terminal_a_single_line_changes_and_warnings_stay_above_it() -> None:
    screen = Screen(terminal=True)
    report = install.Report(screen, "waiting", Clock())
    report.take("stdout", "Collecting " + "very-long-name" * 99)
    report.take("stderr", "WARNING: something")
    report.wait()
    report.finish()
    [warned, last] = screen.getvalue().split("WARNING: something\n")
    assert "\n" not in warned + last
    shown = re.split(r"\r\x1b\[K", warned + last)
    assert shown[0] == shown[-1] == ""
    assert max(map(len, shown)) < 80
    assert shown[1].startswith("  package 1: very-long-name")


TALKS = (
    "import os, sys; print('Collecting a'); print('WARNING: b', file=sys.stderr); "
    "print('root:', os.environ['PIP_ROOT_USER_ACTION'], file=sys.stderr); sys.exit({})"
)


@pytest.mark.parametrize("status", [0, 1])
def test_a_program_is_followed_on_both_streams(status: int) -> None:
    screen = Screen()
    command = [sys.executable, "-c", TALKS.format(status)]
    assert install.pip(command, install.Report(screen, "waiting")) == (status == 0)
    assert screen.getvalue() == "WARNING: b\nroot: ignore\n"


def test_a_full_disk_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "FREE_GIGABYTES", 10**9)
    with pytest.raises(install.InstallError, match="Free some space"):
        install.make(tmp_path, Screen())
    assert not list(tmp_path.iterdir())


def test_the_tool_needs_no_package() -> None:
    source = Path(install.__file__).read_text("utf-8")
    imported = re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
    assert set(imported) <= set(sys.stdlib_module_names)
