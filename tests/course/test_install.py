"""What people see of the installation, and of a command while it runs."""

import io
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from tools import install, progress
from tools.progress import Stages


def test_uv_gets_the_settings_of_pip():
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
def test_pip_installs_where_uv_cannot(tmp_path, lacking, expected, success):
    program, log = tmp_path / "python", tmp_path / "log"
    fails = f'echo "$@" | grep -Eq -- "{lacking}" && exit 1\n' if lacking else ""
    program.write_text(f'#!/bin/sh\necho "$@" >>{log}\n{fails}exit 0\n')
    program.chmod(0o755)
    assert install.install(str(program), ["a"], ["b"]) == success
    calls = re.findall(r"-m (uv|pip) .*install.* ([ab])$", log.read_text(), re.MULTILINE)
    assert [" ".join(call) for call in calls] == expected


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("file", ["Makefile", "tools/classroom/handout_files/Makefile"])
def test_moved_folder_gets_its_environment_anew(tmp_path, file):
    folder = tmp_path.resolve() / "Übung 1"
    (folder / ".venv").mkdir(parents=True)
    for name in (file, "requirements.txt", "pyproject.toml"):
        shutil.copy(install.ROOT / name, folder)
    for address, is_made in ((f"{folder}\n", False), ("/elsewhere\n", True), ("", False)):
        (folder / ".venv" / "ready").write_text(address, "utf-8")
        done = subprocess.run(["make", "-n", "lab"], cwd=folder, capture_output=True, text=True)
        assert ("rm -rf .venv\n" in done.stdout, done.returncode) == (is_made, 0)


def test_installing_needs_no_package(tmp_path):
    copy = shutil.copy(install.__file__, tmp_path)  # which would install there, if anywhere
    command = [sys.executable, "-S", copy]  # -S: without the installed packages
    told = [subprocess.run([*command, word], capture_output=True) for word in ("--help", "--dve")]
    assert [(done.returncode, b"--dev" in done.stdout) for done in told] == [(0, True), (2, False)]


# --- a command while it runs, in a terminal and in a pipe


def test_pipe_gets_lines_of_stages_every_few_seconds(monkeypatch):
    clock = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    screen = Console(file=io.StringIO(), width=40, highlight=False, soft_wrap=True)
    with Stages(screen) as stages:
        site, grading = stages.add("Site"), stages.add("Grade")
        for seconds, done in ((0, 1), (2, 2), (6, 3), (7, 16), (7, 16)):
            clock.seconds = 1000 + seconds
            site(done, 16, "" if done == 16 else "bnp_cnn")
        clock.seconds = 1723
        grading(120, 594, "erm · [red]ada" + "x" * 200)
    assert screen.file.getvalue().splitlines() == [
        " 0:00  Site 1/16 · bnp_cnn",
        " 0:06  Site 3/16 · bnp_cnn",
        " 0:07  Site 16/16",  # the end of a stage, once
        "12:03  Grade 120/594 · erm · [red]adaxx…",
    ]
