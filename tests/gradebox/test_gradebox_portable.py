"""gradebox with its sandbox of WebAssembly needs nothing that Windows lacks.

A process takes away from Python what Windows does not have and calls itself Windows; then gradebox
is imported, and grades. What other packages do on Windows is theirs, and paths remain those of this
system.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hang import HANG
from notebooks import needs_wasm
from small_course import grade, hand_in, pages, points

from gradebox import files

pytestmark = pytest.mark.xdist_group("gradebox_course")

LACKING = """
import mmap, os, select, selectors, shutil, signal, socket, subprocess, sys, types
# what others need of a system they have got before
import IPython, filelock, math_core, matplotlib_inline, nbconvert, nbgrader.apps, numpy
import platformdirs, psutil
import rich.progress, sqlalchemy, wasmtime
# Python's own modules have other ways on Windows
subprocess._PopenSelector, shutil._USE_CP_SENDFILE = selectors.SelectSelector, False
subprocess.signal, subprocess.os = (types.SimpleNamespace(**vars(m)) for m in (signal, os))
for module, names in {
    os: "fork setsid killpg getpgid sysconf getuid geteuid getegid chown fchown sendfile "
        "sched_getaffinity setresuid setgroups O_NOFOLLOW O_NONBLOCK WNOHANG mkfifo fchmod",
    mmap: "MAP_PRIVATE",
    select: "poll",
    signal: "SIGKILL SIGCHLD SIGALRM pthread_sigmask sigtimedwait",
    socket: "send_fds recv_fds AF_UNIX CMSG_SPACE SO_PASSCRED SCM_CREDENTIALS",
}.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
filelock.FileLock = filelock.SoftFileLock  # that of Windows needs Windows
assert not any(name.startswith("gradebox") for name in sys.modules)
sys.platform = "win32"
"""

IMPORT_AND_GRADE = """
import importlib, pkgutil, gradebox.cli, gradebox_wasm
count = 0
for package in (gradebox, gradebox_wasm):
    for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not name.endswith(("__main__", "_wasm.fetching", "_wasm.guest")):  # those run inside
            importlib.import_module(name)
            count += 1
assert count > 50
sys.exit(gradebox.cli.main(["grade", "toy", "--no-resume"]))
"""


@needs_wasm
@pytest.mark.slow
def test_modules_import_and_grade_without_unix_calls(course):
    hand_in(course, "right")
    hand_in(course, "wrong", "1 / 0")
    (course / "source/toy/sub").mkdir()
    (course / "source/toy/sub/more.txt").write_text("more")
    assert grade() == 0
    expected = points(course), pages(course)
    shutil.rmtree(course / "autograded")
    (course / ".gradebox/lock").unlink()
    done = subprocess.run(
        [sys.executable, "-c", LACKING + IMPORT_AND_GRADE],
        env=os.environ | {"PYTHONPATH": str(Path(str(files.__file__)).parents[1])},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (points(course), pages(course)) == expected


def test_readonly_files_are_removed_on_windows(tmp_path, monkeypatch):
    file = tmp_path / "folder/a.txt"
    file.parent.mkdir()
    file.write_text("")
    file.chmod(0o400)
    kept = tmp_path / "kept.txt"
    kept.hardlink_to(file)
    monkeypatch.setattr(files, "os", SimpleNamespace(name="nt", walk=os.walk))
    files.remove(file.parent)
    assert not file.parent.exists()
    assert kept.stat().st_mode & 0o200
