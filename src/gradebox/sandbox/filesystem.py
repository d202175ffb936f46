"""The files that a sealed process sees, put together from those of the machine."""

import os
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from gradebox.sandbox import linux

HOME = "/student"
"""Where the temporary home is; it vanishes with the process."""

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/localtime",
    "/sys/devices/system/cpu",
)

_DEVICES = ("null", "zero", "full", "random", "urandom")


def readable_paths(folder: str | Path, more: Iterable[str | Path] = ()) -> list[str]:
    """Return the folders and files that a sealed process may read: Python's, the system's, more.

    A folder of ``sys.path`` around the one handed in is left out: it holds other submissions.
    """
    inside = os.path.realpath(folder) + "/"
    wanted = [*_SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    wanted += [p for p in sys.path if p and not inside.startswith(os.path.realpath(p) + "/")]
    wanted += [os.path.abspath(path) for path in more]
    existing: list[str] = []
    for path in wanted:
        for candidate in (path, os.path.realpath(path)):
            if os.path.exists(candidate) and candidate != "/" and candidate not in existing:
                existing.append(candidate)
    return existing


def around(readable: Iterable[str], hidden: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return what may be read instead, so that what is hidden may not, and what may be listed.

    Landlock can only add rights: a folder with something hidden in it is replaced by what else
    it holds.
    """
    secret = [os.path.realpath(path) for path in hidden]
    allowed, listed, todo = [], [], list(readable)
    while todo:
        path = todo.pop()
        real = os.path.realpath(path)
        if real in secret:
            continue
        if any(hidden_path.startswith(real + "/") for hidden_path in secret):
            listed.append(path)
            todo += [os.path.join(path, name) for name in os.listdir(path)]
        else:
            allowed.append(path)
    return allowed, listed


def copy(source: str, target: str, owner: tuple[int, int], most: int) -> None:
    """Copy what a student handed in; links stay links, and nothing else but files is taken.

    Notebooks are not taken: nbgrader has put the tests into them.

    Raises
    ------
    OSError
        If there is more than what the limit on disk space allows.
    """
    remaining = most
    for folder, folders, files in os.walk(source):
        into = os.path.join(target, os.path.relpath(folder, source))
        for name in [*folders, *(name for name in files if not name.endswith(".ipynb"))]:
            old, new = os.path.join(folder, name), os.path.join(into, name)
            info = os.lstat(old)
            remaining -= max(info.st_size, 1) if stat.S_ISREG(info.st_mode) else 1
            if remaining < 0:
                raise OSError(
                    f"the folder handed in holds more than {most} bytes, the limit on disk "
                    "space; raise max_disk, or put large data among the readable folders"
                )
            if stat.S_ISLNK(info.st_mode):
                os.symlink(os.readlink(old), new)
            elif stat.S_ISDIR(info.st_mode):
                os.mkdir(new)
            elif stat.S_ISREG(info.st_mode):
                shutil.copyfile(old, new, follow_symlinks=False)
                os.chmod(new, 0o600 | info.st_mode & 0o111)
            else:
                continue
            os.chown(new, *owner, follow_symlinks=False)


def enter(
    folder: str,
    readable: list[str],
    quota: int,
    owner: tuple[int, int],
    hidden: Iterable[str] = (),
    *,
    bare: bool = False,
) -> list[str]:
    """Leave this process a root of its own: read-only, but for temporary folders with a quota.

    To be called with all capabilities over new mount and pid namespaces, as their first process.

    Returns
    -------
    list of str
        What could not be had.
    """
    readable = [path for path in readable if not _is_same(path, folder)]
    sources = {path: os.path.realpath(path) for path in readable}
    home = os.path.realpath(folder)
    linux.mount("none", "/", "none", linux.PRIVATE | linux.RECURSIVE)
    stage = "/tmp" if os.path.isdir("/tmp") else "/usr"
    linux.mount("tmpfs", stage, "tmpfs", linux.NO_SUID | linux.NO_DEVICES, "mode=755,size=4m")
    os.mkdir(f"{stage}/.old")
    linux.pivot_root(stage, f"{stage}/.old")
    os.chdir("/")
    missing = _processes()
    own = _own(quota, owner)
    if not bare:
        copy("/.old" + home, own["work"], owner, quota)
    binds = {path: "/.old" + real for path, real in _outermost(sources).items()}
    writable = {"/tmp": own["tmp"], "/dev/shm": own["shm"], HOME: own["home"], folder: own["work"]}
    for path in sorted({*binds, *writable}, key=lambda target: len(PurePosixPath(target).parts)):
        source = writable.get(path, binds.get(path, ""))
        _make_mount_point(path, os.path.isdir(source))
        if path in writable:
            linux.mount(source, path, "none", linux.BIND)
        else:
            linux.bind_read_only(source, path)
    _links(readable, sources)
    for path in dict.fromkeys(hidden):
        _cover(path)
    _devices()
    _names(owner)
    for over in ("/.old", "/.own"):
        linux.unmount(over)
        os.rmdir(over)
    flags = linux.REMOUNT | linux.BIND | linux.READ_ONLY | linux.NO_SUID | linux.NO_DEVICES
    linux.mount("none", "/", "none", flags)
    return missing


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _outermost(sources: dict[str, str]) -> dict[str, str]:
    """Leave out what lies in a folder that is there anyway, and links, which are made as such."""
    outermost: dict[str, str] = {}
    for path in sorted(sources):
        inside = any(path.startswith(other + "/") for other in outermost)
        if not inside and not os.path.islink("/.old" + path):
            outermost[path] = sources[path]
    return outermost


def _links(readable: list[str], sources: dict[str, str]) -> None:
    """Make the links among the folders: /bin to /usr/bin, and such."""
    for path in readable:
        if os.path.islink("/.old" + path) and not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(sources[path], path)


def _make_mount_point(path: str, folder: bool) -> None:
    """Make an empty folder or file to mount something on."""
    if folder:
        os.makedirs(path, mode=0o755, exist_ok=True)
    elif not os.path.exists(path):
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _cover(path: str) -> None:
    """Show nothing where something is hidden."""
    if os.path.isdir(path):
        flags = linux.READ_ONLY | linux.NO_SUID | linux.NO_DEVICES
        linux.mount("tmpfs", path, "tmpfs", flags, "mode=755,size=4k")
    elif os.path.exists(path):
        linux.bind_read_only("/.old/dev/null", path, devices=True)


def _processes() -> list[str]:
    """Show the processes of this namespace in /proc."""
    os.mkdir("/proc")
    flags = linux.NO_SUID | linux.NO_DEVICES | linux.NO_EXEC
    try:
        linux.mount("proc", "/proc", "proc", flags)
    except OSError as error:  # a container that hides parts of its own /proc
        return [f"/proc is empty ({error.strerror})"]
    return []


def _own(quota: int, owner: tuple[int, int]) -> dict[str, str]:
    """Make the folders that the process may write to; they share one quota."""
    os.mkdir("/.own")
    options = f"mode=755,size={quota},nr_inodes={max(1000, quota // 4096)}"
    linux.mount("tmpfs", "/.own", "tmpfs", linux.NO_SUID | linux.NO_DEVICES, options)
    folders = {name: f"/.own/{name}" for name in ("tmp", "home", "work", "shm")}
    for path in folders.values():
        os.mkdir(path, 0o700)
        os.chown(path, *owner)
    return folders


def _devices() -> None:
    os.makedirs("/dev", exist_ok=True)
    for name in _DEVICES:
        _make_mount_point(f"/dev/{name}", folder=False)
        linux.bind_read_only(f"/.old/dev/{name}", f"/dev/{name}", devices=True)
    for name, target in ("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"):
        os.symlink(f"/proc/self/fd{target}", f"/dev/{name}")


def _names(owner: tuple[int, int]) -> None:
    """Give the user a name, for programs that ask."""
    os.makedirs("/etc", exist_ok=True)
    with suppress(FileExistsError):
        Path("/etc/passwd").write_text(f"student:x:{owner[0]}:{owner[1]}::{HOME}:/bin/sh\n")
        Path("/etc/group").write_text(f"student:x:{owner[1]}:\n")
