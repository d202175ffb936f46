"""Seal the forked process that runs a student's notebook.

With *namespaces* it has users, processes, mounts, a network and a host name of its own: it sees
programs, read-only, and temporary folders with a quota. With *landlock*, where those are refused as
in many containers, the same files may be read and one folder written to, and a filter refuses
sockets, signals to others and all calls that reach beyond the process.
"""

import errno
import mimetypes
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import psutil

from gradebox.sandbox import filesystem, linux

if sys.platform != "win32":
    import resource  # here, so that no fork has to load it

MIB, GIB = 2**20, 2**30

# the variables of the environment that cells see, besides those that the grader gives them
PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "MPLBACKEND")
THREADS = (  # keep numerical libraries from starting threads
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)

_USER = 1000
_LOOK = 0.25  # seconds between two looks at the memory that a notebook uses
# what a process was before it got namespaces of its own
_before = SimpleNamespace(root=False, ids=(0, 0), refused="this is no fork of seal")


class Level(StrEnum):
    """How a notebook is sealed, from the strongest on."""

    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    NONE = "none"


class NotSealed(Exception):
    """A notebook was not run, because it could not be sealed."""


@dataclass(frozen=True)
class Limits:
    """What one notebook may use."""

    # bytes beyond what the imports use: of address space for each process and, with namespaces, of
    # memory for all its processes together
    memory: int = 4 * GIB
    cpu: int = 600  # seconds of computing for each process; limits on own time are the grader's
    processes: int = 64  # processes and threads at one time, besides the notebook's own
    files: int = 256  # open files of each process
    file_size: int = 512 * MIB  # bytes of any one file
    disk: int = 512 * MIB  # of all that it may write to and has; without namespaces, of any file
    output: int = 1 * MIB  # bytes of the outputs of a cell: of its text, and of all else


def fork(level: Level) -> int:
    """Fork as ``os.fork`` does a process that can be sealed with a level.

    Namespaces must be there from the start. Where the kernel refuses them, ``seal`` says so.
    """
    filesystem.python_paths()  # each sealed process needs them; its fork then has them
    if not mimetypes.inited:  # it reads files that Landlock shows and does not let one open
        mimetypes.init()
    if level is not Level.NAMESPACES:
        return os.fork()
    # root's child becomes a user that owns nothing; in a user namespace it would be root to the
    # files of the machine
    _before.root = _may_change_user(linux.CAP_SYS_ADMIN)
    _before.ids = os.geteuid(), os.getegid()
    try:
        return linux.fork_into(linux.OWN_WORLD | (0 if _before.root else linux.NEW_USER))
    except OSError as error:
        _before.refused = str(error)
        return os.fork()


def seal(
    limits: Limits,
    folder: str | Path,
    readable: Iterable[str | Path] = (),
    *,
    level: Level = Level.NAMESPACES,
    environment: Mapping[str, str] | None = None,
    keep: Iterable[int] = (),
    scratch: str | Path | None = None,
    hidden: Iterable[str | Path] = (),
) -> list[str]:
    """Seal this process for good, a child of :func:`fork` with its own session.

    With namespaces it returns in a child of the process that called it, which stays behind and ends
    with the child. The process must not run anything if this raises an ``OSError``: the kernel
    refuses. It returns what the level lacks.

    The process gets a copy of the ``folder`` that was handed in, without notebooks, which hold the
    tests. It may read Python, programs and what is ``readable``, but nothing ``hidden``, and write
    to its own folders; without namespaces those are in an empty ``scratch``, which the caller
    removes.
    """
    # mounts, users and Landlock are checked when a file is opened: an open one passes them all
    _close_all_but(keep)
    paths = filesystem.readable_paths(folder, readable)
    secret = [full(path) for path in hidden for full in (os.path.abspath, os.path.realpath)]
    own = {name: os.environ[name] for name in (*PASSED, *THREADS) if name in os.environ}
    given = work = str(Path(folder).absolute())
    if level is Level.NAMESPACES:
        lacks = _in_namespaces(limits, given, paths, secret)
        own |= {"HOME": filesystem.HOME}
    elif scratch is None:
        raise ValueError(f"expected an empty folder as scratch for the level {level}, got none")
    else:
        scratch = os.path.realpath(scratch)
        work = f"{scratch}/work"
        own |= {"HOME": f"{scratch}/home", "TMPDIR": f"{scratch}/tmp"}
        if level is Level.LANDLOCK:
            lacks = _in_landlock(limits, given, paths, scratch, secret)
        else:
            _own_folders(scratch, given, (os.geteuid(), os.getegid()), limits.disk)
            _limit(limits, None)
            lacks = ["nothing is barred"]
    # /proc/self/environ goes on showing what the fork server was started with, so that is clean too
    os.environ.clear()
    os.environ.update({**own, **(environment or {})})
    os.chdir(work)
    # it may have been chosen before the fork, from the grader's environment
    tempfile.tempdir = None
    return lacks


def _close_all_but(keep: Iterable[int]) -> None:
    kept = sorted(keep)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in {0, 1, 2}.difference(kept):
        os.dup2(null, stream)
    borders = [2, *(number for number in kept if number > 2), os.sysconf("SC_OPEN_MAX")]
    for below, above in pairwise(borders):
        os.closerange(below + 1, above)


def _limit(limits: Limits, mapped: int | None, others: int = 0) -> None:
    sizes = {"CORE": 0, "NOFILE": limits.files, "FSIZE": limits.file_size, "CPU": limits.cpu}
    if mapped is not None:  # by the imports of a course: gigabytes that they never use
        sizes |= {"AS": mapped + limits.memory, "NPROC": limits.processes + others}
    for name, most in sizes.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        # to raise a hard limit takes CAP_SYS_RESOURCE; without it the call would fail
        if (hard := resource.getrlimit(kind)[1]) != resource.RLIM_INFINITY:
            most = min(most, hard)
        # the hard limit as well, or a cell could raise the soft one again
        resource.setrlimit(kind, (most, most))


def _may_change_user(*more: int) -> bool:
    needed = (linux.CAP_CHOWN, linux.CAP_KILL, linux.CAP_SETGID, linux.CAP_SETUID, *more)
    held = linux.capabilities()
    return os.geteuid() == 0 and all(held >> capability & 1 for capability in needed)


def _stranger() -> int | None:
    """Return a user that owns nothing: one for this process alone, or nobody; None without any."""
    # /proc is still that of the machine, where each process has a number of its own
    users = 0x70000000 + int(Path("/proc/self").readlink().name) % 0x400000, 65534
    lines = Path("/proc/self/uid_map").read_text().splitlines()  # a container may know few users
    ranges = [(int(start), int(many)) for start, _, many in (line.split() for line in lines)]
    return next((user for user in users if any(a <= user < a + n for a, n in ranges)), None)


def _own_folders(scratch: str, folder: str, owner: tuple[int, int], disk: int) -> None:
    """Make the folders that the process may write to, one with a copy of what was handed in."""
    os.chown(scratch, *owner)
    for name in ("work", "home", "tmp"):
        Path(scratch, name).mkdir(0o700)
        os.chown(f"{scratch}/{name}", *owner)
    filesystem.copy(folder, f"{scratch}/work", owner, disk)


def _in_namespaces(limits: Limits, folder: str, paths: list[str], hidden: list[str]) -> list[str]:
    if os.getpid() != 1:
        raise OSError(errno.EPERM, f"no namespaces: {_before.refused}")
    user = _stranger() if _before.root else None
    if user is None:
        # a process without rights may write gid_map only after it has given up setgroups
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{_USER} {_before.ids[0]} 1")
        Path("/proc/self/gid_map").write_text(f"{_USER} {_before.ids[1]} 1")
    owner = _USER if user is None else user
    socket.sethostname("student")
    linux.drop_bounds()  # this takes CAP_SETPCAP, which become gives up
    filesystem.enter(folder, paths, limits.disk, (owner, owner), hidden)
    linux.become(user)
    # this process enforces the limits as the user of the cells, who must not reach its memory
    linux.inspectable(False)
    base = psutil.Process().memory_info().vms
    # sigtimedwait takes blocked signals only; from before the fork on, so that none is lost
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    second = os.fork()
    if second:
        _keep_house(second, limits.memory)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    # else root would own its /proc/self, and process 1 would count shared memory in full
    linux.inspectable(True)
    _limit(limits, base, others=2)
    try:
        linux.install([*_beyond(), *linux.refuse_unless("socket", 0, linux.FAMILIES)])
    except OSError as error:
        return [f"no filter of system calls ({error.strerror})"]
    return []


def _keep_house(child: int, memory: float) -> NoReturn:
    """Be the first process of the namespace: when it ends, the kernel kills all the others.

    It buries the orphans, and ends when the child does, or when all together use too much memory.
    """

    def pass_on(number: int, frame: object) -> None:
        with suppress(OSError):
            os.kill(child, number)

    signal.signal(signal.SIGINT, pass_on)
    _close_all_but(())
    most = _used(child) + memory
    while True:
        signal.sigtimedwait([signal.SIGCHLD], _LOOK)
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                os._exit(code if code >= 0 else 128 - code)
        others = {*psutil.pids()} - {1}
        # a process by itself has its limit on address space
        if len(others) > 1 and sum(map(_used, others)) > most:
            os._exit(128 + signal.SIGKILL)


def _used(pid: int) -> int:
    """Return the bytes of memory of a process, shared ones in parts if it lets us see them."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        with suppress(psutil.AccessDenied):
            return int(process.memory_full_info().pss)
        return int(process.memory_info().rss)
    return 0


def _in_landlock(
    limits: Limits, folder: str, readable: list[str], scratch: str, hidden: list[str]
) -> list[str]:
    if not (version := linux.landlock_version()):
        raise OSError(errno.ENOSYS, "Landlock: not in this kernel, or not switched on")
    linux.machine()  # without a filter this level would be none
    user = _stranger() if _may_change_user() else None
    readable, listed = filesystem.around(readable, hidden)
    # another user could not reach a Python that lies in root's home
    places = map(os.path.realpath, (*readable, *listed, scratch))
    folders = {folder for place in places for folder in Path(place).parents}
    if not all(folder.stat().st_mode & 0o001 for folder in folders):
        user = None
    owner = (os.geteuid(), os.getegid()) if user is None else (user, user)
    _own_folders(scratch, folder, owner, limits.disk)
    base = psutil.Process().memory_info().vms
    # without root there is nothing to give up, and the kernel refuses
    with suppress(OSError):
        linux.drop_bounds()
    linux.become(user)
    # a change of user has made /proc/self root's
    linux.inspectable(True)
    # threads of other notebooks and of the grader count too, unless the user is a stranger's
    others = 1
    if user is None:
        for tasks in Path("/proc").glob("[0-9]*/task"):
            with suppress(OSError):
                info = tasks.stat()
                # a folder has a link from itself, one from above, and one from each folder in it
                others += info.st_nlink - 2 if info.st_uid == os.geteuid() else 0
    _limit(replace(limits, file_size=min(limits.file_size, limits.disk)), base, others)
    # the rule is for the folder that the link leads to now: those of other processes stay closed
    shown = "/dev/random", "/dev/urandom", "/proc/self", "/proc/meminfo", "/proc/cpuinfo"
    linux.landlock([*readable, *shown], [scratch, "/dev/null", "/dev/zero", "/dev/full"], listed)
    lacks = [
        "names and sizes of other files can be asked for",
        "limits on disk and memory hold for each file and each process",
    ]
    if user is None and os.geteuid() == 0:
        lacks += ["no limit on processes, because the grader is root and its Python is private"]
    linux.install([*_beyond(), *_outward(version)])
    return lacks


def _beyond() -> linux.Filter:
    """Refuse what no notebook needs: other processes' memory, and the kernel's own parts.

    What takes a capability, such as a mount, the kernel refuses by itself. To lower one's priority
    does nothing: one would wait for a processor, which is no own time.
    """
    return [
        *linux.refuse("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "unshare"),
        *linux.refuse("kcmp", "process_madvise", "process_mrelease", "migrate_pages", "move_pages"),
        # io_uring would carry out calls that no filter sees
        *linux.refuse("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "syslog"),
        *linux.refuse("keyctl", "add_key", "request_key", "name_to_handle_at", "open_by_handle_at"),
        # memory that belongs to no process and no folder: nothing would count it
        *linux.refuse("memfd_create", "memfd_secret", "shmget", "msgget", "semget", "mq_open"),
        # clone3 hides its flags from the filter; libraries then use clone
        *linux.refuse("clone3", error=errno.ENOSYS),
        *linux.refuse_if("clone", 0, [linux.ANY_NAMESPACE], linux.ANY_BIT),
        *linux.refuse("setpriority", "sched_setattr", error=0),
        *linux.refuse("sched_setparam", "sched_setscheduler", error=0),
        # pairs of this family reach nobody outside, and asyncio cannot start without them
        *linux.refuse_unless("socketpair", 0, [linux.UNIX]),
    ]


def _outward(version: int) -> linux.Filter:
    """Refuse what reaches other processes of the same user, where no namespace hides them.

    What the notebook starts stays in its process group. Changes of modes, owners and times, which
    Landlock does not see, do nothing.
    """
    me = os.getpid()
    rules = [
        *linux.refuse("socket", "setsid", "setpgid", "pidfd_open", "pidfd_send_signal"),
        *linux.refuse("sched_setaffinity", "ioprio_set"),
        # 0 is the caller: a process could lower the limits of others of the same user
        *linux.refuse_unless("prlimit64", 0, [0]),
        *linux.refuse_if("fcntl", 1, [linux.SET_OWNER, linux.SET_OWNER_EX]),
        *linux.refuse_if("ioctl", 1, linux.INTRUSIVE),
        *linux.refuse("chmod", "fchmod", "fchmodat", "fchmodat2", error=0),
        *linux.refuse("chown", "fchown", "lchown", "fchownat", error=0),
        *linux.refuse("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
        *linux.refuse("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
        *linux.pretend_times(),
    ]
    # later versions of Landlock refuse by themselves what is listed from here on
    if version < 3:
        rules += linux.refuse("truncate")
    if version < 6:
        rules += linux.refuse("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
        rules += linux.refuse_unless("kill", 0, [0, me, -me])
        rules += linux.refuse_unless("tgkill", 0, [me])
    return rules
