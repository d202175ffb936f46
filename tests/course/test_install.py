"""The installation shows how far it is, asks uv where it is there, and says what to do."""

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


# As pip 23 and pip 25 print them.
LINES = [
    *(f"Collecting p{n}==1.0 (from -r requirements.txt (line 3))" for n in range(1, 60)),
    "  Downloading p59-1.0-py3-none-any.whl (10 kB)",
    "Processing /wheels/small-1.0-py3-none-any.whl",
    "Installing collected packages: a, b, c",
]


def test_without_a_terminal_a_line_comes_for_25_packages() -> None:
    screen = Screen()
    install.report(LINES, screen)
    assert screen.getvalue().splitlines() == [
        "  package 25: p25==1.0",
        "  package 50: p50==1.0",
        "  putting 3 packages in place: a minute or two",
    ]


def test_in_a_terminal_a_single_line_changes() -> None:
    screen = Screen(terminal=True)
    install.report([*LINES, "Collecting " + "very-long-name" * 99], screen)
    shown = re.split(r"\r\x1b\[K", screen.getvalue())
    assert shown[0] == shown[-1] == ""
    assert "\n" not in screen.getvalue()
    assert max(map(len, shown)) < 80
    assert shown[60] == "  package 60: small-1.0-py3-none-any.whl"


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("tool", ["uv", "pip"])
@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")
def test_uv_installs_where_it_is_there_and_pip_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, status: int
) -> None:
    program = tmp_path / ("uv" if tool == "uv" else "python")
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/asked\nexit {status}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    python = tmp_path / "python"
    assert install.install(python, ["-r", "file"], Screen()) == (status == 0)
    expected = {
        "uv": f"pip install --python {python} -r file",
        "pip": "-m pip install --progress-bar off -r file",
    }
    assert (tmp_path / "asked").read_text().strip() == expected[tool]


def test_a_full_disk_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "FREE_GIGABYTES", 10**9)
    with pytest.raises(install.InstallError, match="Free some space"):
        install.create(tmp_path, Screen())
    assert not list(tmp_path.iterdir())


def test_the_tool_needs_no_package() -> None:
    source = Path(install.__file__).read_text("utf-8")
    imported = re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)
    assert set(imported) <= set(sys.stdlib_module_names)
