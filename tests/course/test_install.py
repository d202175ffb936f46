"""The installation prefers uv, passes pip's settings on, falls back to pip, and names a remedy."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import install


def test_uv_gets_the_settings_of_pip() -> None:
    listed = (
        ":env:.index-url='https://a.example/simple'\n"
        "global.cert='/etc/ssl/ca.crt'\n"
        "global.extra-index-url='file:///one\\nfile:///two'\n"
        "global.index-url='https://b.example/simple'\n"
    )
    assert install.settings(listed) == {
        "UV_DEFAULT_INDEX": "https://a.example/simple",  # the environment goes before a file
        "UV_INDEX": "file:///one file:///two",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program on Windows")
@pytest.mark.parametrize(
    ("lacking", "expected", "success"),
    [
        ("", ["uv a", "uv b"], True),
        ("-m uv", ["uv a", "pip a", "pip b"], True),
        ("uv$", ["pip a", "pip b"], True),
        (" [ab]$", ["uv a", "pip a"], False),
    ],
)
def test_pip_installs_where_uv_cannot(
    tmp_path: Path, lacking: str, expected: list[str], success: bool
) -> None:
    program, log = tmp_path / "python", tmp_path / "log"
    fails = f'echo "$@" | grep -Eq -- "{lacking}" && exit 1\n' if lacking else ""
    program.write_text(f'#!/bin/sh\necho "$@" >>{log}\n{fails}exit 0\n')
    program.chmod(0o755)
    assert install.install(str(program), ["a"], ["b"]) == success
    calls = re.findall(r"-m (uv|pip) .*install.* ([ab])$", log.read_text(), re.MULTILINE)
    assert [" ".join(call) for call in calls] == expected


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("file", ["Makefile", "tools/classroom/handout_files/Makefile"])
def test_moved_folder_gets_its_environment_anew(tmp_path: Path, file: str) -> None:
    folder = tmp_path.resolve() / "Übung 1"
    (folder / ".venv").mkdir(parents=True)
    for name in (file, "requirements.txt", "pyproject.toml"):
        shutil.copy(install.ROOT / name, folder)
    for address, is_made in ((f"{folder}\n", False), ("/elsewhere\n", True), ("", False)):
        (folder / ".venv" / "ready").write_text(address, "utf-8")
        done = subprocess.run(["make", "-n", "lab"], cwd=folder, capture_output=True, text=True)
        assert ("rm -rf .venv\n" in done.stdout, done.returncode) == (is_made, 0)


def test_installing_needs_no_package(tmp_path: Path) -> None:
    copy = shutil.copy(install.__file__, tmp_path)  # which would install there, if anywhere
    command = [sys.executable, "-S", copy]  # -S: without the installed packages
    told = [subprocess.run([*command, word], capture_output=True) for word in ("--help", "--dve")]
    assert [(done.returncode, b"--dev" in done.stdout) for done in told] == [(0, True), (2, False)]
