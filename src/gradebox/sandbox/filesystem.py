"""The files that a sealed process sees, put together from those of the machine."""

import os
import shutil
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from glob import glob
from pathlib import Path

from gradebox.sandbox import linux

HOME = "/student"  # temporary: it vanishes with the process
MAX_FILES = 5000  # and folders that may be handed in beside the notebooks: each takes time to copy
_BLOCK = 4096  # bytes of the smallest file on a disk
_SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"),
    *("/etc/fonts", "/etc/localtime", "/sys/devices/system/cpu"),
)

# What Python needs of a prefix. The rest may be anyone's: nbgrader's exchange is below share, and
# a course may have its virtual environment in its own folder.
_PARTS = (
    *("bin", "sbin", "lib", "lib32", "lib64", "libx32"),
    "libexec",  # parts of compilers and other programs
    "include",  # torch.compile compiles against Python's headers
    "pyvenv.cfg",  # where a virtual environment's Python finds the standard library
    "share/fontconfig",  # links in /etc/fonts lead here
    "share/matplotlib",  # Debian keeps matplotlib's data apart from its modules
    "share/tcltk",  # Debian's Tcl cannot start without its scripts
    *("share/fonts", "share/locale", "share/terminfo", "share/zoneinfo"),
    *("fonts", "etc/fonts", "targets"),  # of conda: libraries of CUDA are links into targets
)
COURSE = ("nbgrader_config.py", "gradebook.db", "submitted", "autograded")


class TooMuch(OSError):
    """More was handed in than a sealed process is given; the text alone says all."""


def readable_paths(folder: str | Path, more: Iterable[str | Path] = ()) -> list[str]:
    """Return the folders and files that a sealed process may read: Python's, the system's, more.

    Of ``sys.path`` a folder is left out that holds more than modules: what was handed in, a course,
    a home, the working folder or a prefix of Python. Only the caller can allow it.
    """
    inside = os.path.realpath(folder)
    found = [path for path in python_paths() if not _holds(_real(path), inside)]
    found += (real for path in more for real in _with_target(os.path.abspath(path)))
    return list(dict.fromkeys(found))


@cache
def python_paths() -> tuple[str, ...]:
    """Return what each sealed process may read; it is looked for once, for later forks too."""
    prefixes = ["/usr", "/usr/local", sys.prefix, sys.base_prefix]
    prefixes += [sys.exec_prefix, sys.base_exec_prefix]
    wanted = [*_SYSTEM, *glob("/usr/local/cuda*")]  # some builds of PyTorch link to it in any case
    wanted += [os.path.join(prefix, part) for prefix in prefixes for part in _PARTS]
    private = [os.getcwd(), os.path.expanduser("~"), "/home", "/root", *prefixes]
    targets = [os.path.realpath(path) for path in private]
    for path in map(os.path.abspath, filter(None, sys.path)):
        real = os.path.realpath(path)
        more = os.path.dirname(real) == "/home" or any(_holds(real, target) for target in targets)
        if not more and not any(os.path.exists(os.path.join(path, name)) for name in COURSE):
            wanted.append(path)
    return tuple(dict.fromkeys(found for path in wanted for found in _with_target(path)))


_real = cache(os.path.realpath)  # of what Python needs, which stays where it is


def _with_target(path: str) -> list[str]:
    """Return a path and what it leads to; nothing if that is missing, or all of the machine."""
    target = _real(path)
    return [] if target == "/" or not os.path.exists(target) else [path, target]


def _holds(outer: str, inner: str) -> bool:
    """Return whether a folder is another one or holds it; both without links."""
    return outer == inner or inner.startswith(f"{outer.rstrip('/')}/")


def _outermost(paths: Iterable[str]) -> list[str]:
    """Leave out what lies in a folder that is there anyway."""
    outermost: list[str] = []
    for path in sorted(paths, key=len):
        if not any(_holds(outer, path) for outer in outermost):
            outermost.append(path)
    return outermost


def around(readable: Iterable[str], hidden: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return what may be read instead, so that what is hidden may not, and what may be listed.

    Landlock can only add rights: a folder that holds something hidden gives way to the rest of it.
    """
    secret = {os.path.realpath(path) for path in hidden}
    allowed, listed, todo = [], [], _outermost(map(_real, readable))
    while todo:
        path = todo.pop()
        if any(_holds(hidden_path, path) for hidden_path in secret):
            continue
        if any(_holds(path, hidden_path) for hidden_path in secret):
            listed.append(path)
            inside = [os.path.join(path, name) for name in os.listdir(path)]
            todo += [path for path in inside if not os.path.islink(path)]  # it may lead anywhere
        else:
            allowed.append(path)
    return allowed, listed


def copy(source: str, target: str, owner: tuple[int, int], most: int) -> None:
    """Copy what a student handed in; links stay links, and nothing else but files is taken.

    Notebooks are not taken: nbgrader has put the tests into them.
    """
    many, size = 0, 0
    for folder, folders, files in os.walk(source):
        into = os.path.join(target, os.path.relpath(folder, source))
        for name in [*folders, *(name for name in files if not name.endswith(".ipynb"))]:
            old, new = os.path.join(folder, name), os.path.join(into, name)
            info = os.lstat(old)
            many += 1
            # files fill whole blocks: what fits here fits on the disk that the limit is for
            size += -(-info.st_size // _BLOCK) * _BLOCK if stat.S_ISREG(info.st_mode) else 0
            require_room(many, size, most)
            # a link is followed inside, so that it leads to nothing that the process may not read
            if stat.S_ISLNK(info.st_mode):
                os.symlink(os.readlink(old), new)
            elif stat.S_ISDIR(info.st_mode):
                os.mkdir(new)
            elif stat.S_ISREG(info.st_mode):
                # what was a file may be a link by now, to a file of the grader's
                with (
                    os.fdopen(os.open(old, os.O_RDONLY | os.O_NOFOLLOW), "rb") as reading,
                    Path(new).open("xb") as writing,
                ):
                    shutil.copyfileobj(reading, writing)
                    os.fchmod(writing.fileno(), 0o600 | info.st_mode & 0o111)
            else:
                continue
            os.chown(new, *owner, follow_symlinks=False)


def require_room(many: int, size: int, most: int) -> None:
    """Raise :class:`TooMuch` for more files or bytes than a notebook may bring along."""
    if many > MAX_FILES:
        why = f"expected at most {MAX_FILES} files beside the notebooks, got more"
        raise TooMuch(f"{why}; hand in only what the notebook needs")
    if size > most:
        why = f"the folder handed in holds more than {most} bytes, the limit on disk space"
        raise TooMuch(f"{why}; raise max_disk, or put large data among the readable folders")


def enter(
    folder: str, readable: list[str], quota: int, owner: tuple[int, int], hidden: Iterable[str]
) -> None:
    """Leave this process a root of its own: read-only, but for temporary folders with a quota.

    To be called with all capabilities over new mount and pid namespaces, as their first process.
    """
    home = os.path.realpath(folder)
    sources = {path: target for path in readable if (target := _real(path)) != home}
    # many systems share mounts: those below would appear outside too, and pivot_root refuses them
    linux.mount("none", "/", "none", linux.PRIVATE | linux.RECURSIVE)
    stage = "/tmp" if os.path.isdir("/tmp") else "/usr"
    linux.mount("tmpfs", stage, "tmpfs", linux.NO_SUID | linux.NO_DEVICES, "mode=755,size=4m")
    os.mkdir(f"{stage}/.old")
    linux.system("pivot_root", stage, f"{stage}/.old")
    os.chdir("/")
    os.umask(0o022)  # every user may go through the folders that lead to what is mounted
    os.mkdir("/proc")
    # first: in a user namespace a new /proc is refused unless a whole one is still in sight
    linux.mount("proc", "/proc", "proc", linux.NO_SUID | linux.NO_DEVICES | linux.NO_EXEC)
    place = "/.old/proc"  # goes with the old root, of which nothing is needed from here
    # the folders that it may write to share one quota; empty files take no blocks: without a limit
    # on them they could fill the memory of the kernel
    options = f"mode=755,size={quota},nr_inodes={MAX_FILES + quota // _BLOCK}"
    linux.mount("tmpfs", place, "tmpfs", linux.NO_SUID | linux.NO_DEVICES, options)
    own = {"/tmp": "tmp", "/dev/shm": "shm", HOME: "home", folder: "work"}
    writable = {path: f"{place}/{name}" for path, name in own.items()}
    for path in writable.values():
        os.mkdir(path, 0o700)
        os.chown(path, *owner)
    copy("/.old" + home, writable[folder], owner, quota)
    outermost = _outermost(sources)
    links = [path for path in outermost if os.path.islink("/.old" + path)]  # /bin to /usr/bin
    binds = {path: "/.old" + sources[path] for path in outermost if path not in links}
    for path in sorted({*binds, *writable}, key=lambda path: path.count("/")):  # outer ones first
        source = writable.get(path, binds.get(path, ""))
        _make_mount_point(path, os.path.isdir(source))
        if path in writable:
            linux.mount(source, path, "none", linux.BIND)
        else:
            linux.bind_read_only(source, path)
    for path in links:
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(sources[path], path)
    flags = linux.READ_ONLY | linux.NO_SUID | linux.NO_DEVICES
    for path in dict.fromkeys(hidden):
        if os.path.isdir(path):
            linux.mount("tmpfs", path, "tmpfs", flags, "mode=755,size=4k")
        elif os.path.exists(path):
            # on a mount without devices it could not be opened at all, instead of being empty
            linux.bind_read_only("/.old/dev/null", path, devices=True)
    for name in ("null", "zero", "full", "random", "urandom"):
        _make_mount_point(f"/dev/{name}", folder=False)
        linux.bind_read_only(f"/.old/dev/{name}", f"/dev/{name}", devices=True)
    for name, target in ("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"):
        os.symlink(f"/proc/self/fd{target}", f"/dev/{name}")
    os.makedirs("/etc", exist_ok=True)
    # programs ask for the user's name; the files are read-only where the course lets notebooks
    # read the machine's own, which has names
    with suppress(OSError):
        Path("/etc/passwd").write_text(f"student:x:{owner[0]}:{owner[1]}::{HOME}:/bin/sh\n")
        Path("/etc/group").write_text(f"student:x:{owner[1]}:\n")
    linux.library("umount2", "/.old", 2, about="/.old")  # MNT_DETACH: even while it is used
    os.rmdir("/.old")
    linux.mount("none", "/", "none", linux.REMOUNT | linux.BIND | flags)


def _make_mount_point(path: str, folder: bool) -> None:
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path):
        Path(path).touch()
