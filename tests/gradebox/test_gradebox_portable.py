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

import gradebox
import gradebox_wasm
from gradebox import files

pytestmark = [
    pytest.mark.xdist_group("gradebox_course"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing has to be taken away here"),
]

LACKING = """
import mmap, os, select, selectors, shutil, signal, socket, subprocess, sys, types
# what others need of a system they have got before
import IPython, math_core, matplotlib_inline, nbconvert, nbgrader.apps, numpy, platformdirs, psutil
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
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=lambda *_: print("locked"))
assert not any(name.startswith("gradebox") for name in sys.modules)
sys.platform = "win32"
"""

IMPORT_AND_GRADE = """
import importlib
for name in {modules}:
    try:
        importlib.import_module(name)
    except Exception as error:
        print(f"cannot import {{name}}: {{type(error).__name__}}: {{error}}")
from gradebox import cli
sys.exit(cli.main(["grade", "toy", "--no-resume"]))
"""


def modules() -> list[str]:
    """Return the modules of gradebox and its sandbox, but those that run inside the latter."""
    folders = [Path(str(package.__file__)).parent for package in (gradebox, gradebox_wasm)]
    paths = [path for folder in folders for path in folder.rglob("*.py")]
    names = {".".join(path.relative_to(folders[0].parent).with_suffix("").parts) for path in paths}
    return sorted(n for n in names if not n.endswith(("__", "_wasm.fetching", "_wasm.guest")))


@needs_wasm
def test_each_module_is_imported_and_a_class_graded_where_much_is_missing(course: Path) -> None:
    hand_in(course, "right")
    hand_in(course, "wrong", "1 / 0")
    (course / "source/toy/sub").mkdir()
    (course / "source/toy/sub/more.txt").write_text("more")
    assert grade() == 0
    expected = points(course), pages(course)
    shutil.rmtree(course / "autograded")
    done = subprocess.run(
        [sys.executable, "-c", LACKING + IMPORT_AND_GRADE.format(modules=modules())],
        env=os.environ | {"PYTHONPATH": str(Path(str(gradebox.__file__)).parent.parent)},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot import" not in done.stdout
    assert "locked" in done.stdout
    assert (points(course), pages(course)) == expected


def test_a_folder_with_files_that_are_read_only_is_removed_on_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
