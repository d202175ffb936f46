"""The system calls of Linux that seal a process, which Python does not offer.

Importing this module is harmless on other systems, where every call raises ``OSError``.
"""

import ctypes
import errno
import os
import platform
import re
import signal
import stat
import struct
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import psutil

NEW_MOUNTS, NEW_UTS, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NET = 0x10000000, 0x20000000, 0x40000000
NEW_TIME, NEW_CGROUP = 0x00000080, 0x02000000
OWN_WORLD = NEW_MOUNTS | NEW_PIDS | NEW_NET | NEW_IPC | NEW_UTS
ANY_NAMESPACE = OWN_WORLD | NEW_USER | NEW_TIME | NEW_CGROUP

READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, PRIVATE = 32, 4096, 16384, 1 << 18

# commands of fcntl that let the kernel send signals about a file to any process, and requests of
# ioctl that let it do so about a socket, and that type into a terminal
SET_OWNER, SET_OWNER_EX = 8, 15
INTRUSIVE = (0x8901, 0x8902, 0x5412)

# the families of sockets that namespaces cover; of others, some reach the machine around them
UNIX, INET, INET6 = 1, 2, 10
FAMILIES = (UNIX, INET, INET6)

CAP_CHOWN, CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 0, 5, 6, 7, 21
_NO_NEW_PRIVILEGES = 38
_CAPABILITIES_3 = 0x20080522  # the version of the header of capset

# The numbers of the calls on x86_64 and aarch64, -1 where there is none; from 424 on they are the
# same everywhere.
_CALLS = """
    add_key 248 217, bpf 321 280, chmod 90 -1, chown 92 -1, clone 56 220, clone3 435 435,
    fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, fchown 93 55, fchownat 260 54, fcntl 72 25,
    fremovexattr 199 16, fsetxattr 190 7, futimesat 261 -1, io_uring_setup 425 425, ioctl 16 29,
    ioprio_set 251 30, kcmp 312 272, keyctl 250 219, kill 62 129, landlock_add_rule 445 445,
    landlock_create_ruleset 444 444, landlock_restrict_self 446 446, lchown 94 -1,
    lremovexattr 198 15, lsetxattr 189 6, memfd_create 319 279, memfd_secret 447 447,
    migrate_pages 256 238, mount_setattr 442 442, move_pages 279 239, mq_open 240 180,
    msgget 68 186, name_to_handle_at 303 264, open_by_handle_at 304 265, perf_event_open 298 241,
    pidfd_getfd 438 438, pidfd_open 434 434, pidfd_send_signal 424 424, pivot_root 155 41,
    prlimit64 302 261, process_madvise 440 440, process_mrelease 448 448, process_vm_readv 310 270,
    process_vm_writev 311 271, ptrace 101 117, removexattr 197 14, removexattrat 466 466,
    request_key 249 218, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240,
    sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118,
    sched_setscheduler 144 119, semget 64 190, setpgid 109 154, setpriority 141 140, setsid 112 157,
    setxattr 188 5, setxattrat 463 463, shmget 29 194, socket 41 198, socketpair 53 199,
    syslog 103 116, tgkill 234 131, tkill 200 130, truncate 76 45, unshare 272 97,
    userfaultfd 323 282, utime 132 -1, utimensat 280 88, utimes 235 -1
"""
_NUMBERS = {n: (int(x), int(y)) for n, x, y in re.findall(r"(\w+) (\S+) ([-\d]+)", _CALLS)}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@cache
def _libc() -> Any:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, f"expected Linux, got {sys.platform}")
    return ctypes.CDLL(None, use_errno=True)


def machine() -> tuple[int, int]:
    """Return the column of this machine's call numbers, and its name in filters."""
    if (name := platform.machine()) not in _MACHINES:
        supported = " or ".join(_MACHINES)
        raise OSError(errno.ENOSYS, f"expected a machine of type {supported}, got {name}")
    return _MACHINES[name]


def _number(name: str) -> int:
    return _NUMBERS[name][machine()[0]]


def library(name: str, *values: Any, about: str = "") -> int:
    """Call a function of the C library; an error is an ``OSError``."""
    # ctypes passes a plain int as 32 bits, where whole registers are read
    passed = (ctypes.c_long(value) if isinstance(value, int) else value for value in values)
    coded = (os.fsencode(value) if isinstance(value, str) else value for value in passed)
    if (result := int(getattr(_libc(), name)(*coded))) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name} {about}: {os.strerror(number)}")
    return result


def system(name: str, *values: Any) -> int:
    """Make a system call; an error is an ``OSError``."""
    return library("syscall", _number(name), *values, about=name)  # -1 is no call: ENOSYS


def _prctl(option: int, *values: int) -> None:
    # some options are refused unless the arguments that they do not use are 0
    library("prctl", option, *(*values, 0, 0, 0, 0)[:4], about=str(option))


def fork_into(namespaces: int) -> int:
    """Fork as ``os.fork`` does, where no other thread runs: the first process of new namespaces."""
    _libc()  # raises on other systems
    # x86_64 and aarch64 order the arguments after the flags differently: all of them are 0
    flags = (namespaces | signal.SIGCHLD, 0, 0, 0, 0)
    values = ctypes.c_long(_number("clone")), *map(ctypes.c_ulong, flags)
    # not through a library that lets other threads run meanwhile: the child has none
    call = ctypes.PyDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    # os.fork makes the same calls: without them the child waits for locks of threads it has not
    ctypes.pythonapi.PyOS_BeforeFork()
    pid, error = int(call(*values)), ctypes.get_errno()
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(error, f"clone: {os.strerror(error)}")
    return pid


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system."""
    library("mount", source, target, kind, flags, options or None, about=f"{source} on {target}")


def bind_read_only(source: str, target: str, devices: bool = False) -> None:
    """Show a folder or a file at another place, where it cannot be changed."""
    # the kernel ignores further flags of a bind mount; they take a second call
    mount(source, target, "none", BIND | RECURSIVE)
    flags = READ_ONLY | NO_SUID | (0 if devices else NO_DEVICES)
    wanted = struct.pack("QQQQ", flags, 0, 0, 0)
    try:
        # AT_FDCWD, AT_RECURSIVE
        system("mount_setattr", -100, target, 0x8000, wanted, len(wanted))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        points = {each.mountpoint for each in psutil.disk_partitions(all=True)}
        below = sorted(point for point in points if point.startswith(f"{target}/"))
        for point in (target, *below):  # Linux before 5.12
            # in a user namespace no flag may be taken away
            kept = os.statvfs(point).f_flag & (READ_ONLY | NO_SUID | NO_DEVICES | NO_EXEC)
            mount("none", point, "none", REMOUNT | BIND | flags | kept)


def capabilities() -> int:
    """Return the capabilities in force, as bits."""
    return int(re.findall(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())[0], 16)


def drop_bounds() -> None:
    """Give up for ever what programs that are started later could gain."""
    for number in range(int(Path("/proc/sys/kernel/cap_last_cap").read_text()) + 1):
        _prctl(24, number)  # PR_CAPBSET_DROP


def become(user: int | None) -> None:
    """Give up root, all capabilities and what programs with the set-user-id bit would give.

    Without a user the present one is kept. The process is killed from now on when its parent ends.
    """
    if user is not None:
        # in this order: once the user has changed, the groups can no longer be changed
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(47, 4)  # PR_CAP_AMBIENT, all of them
    library("capset", struct.pack("Ii", _CAPABILITIES_3, 0), bytes(24))
    _prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, which a change of user undoes


def inspectable(yes: bool) -> None:
    """Let other processes of the same user look into this one, or not."""
    _prctl(4, int(yes))  # PR_SET_DUMPABLE


_READ, _LIST = 0b1101, 0b1000  # execute, read a file, read a folder; the last of these
_ON_FILES = 0b111 | 1 << 14 | 1 << 15


def landlock_version() -> int:
    """Return the version of Landlock, 0 where there is none."""
    try:
        return system("landlock_create_ruleset", 0, 0, 1)
    except OSError:
        return 0


def landlock(readable: Iterable[str], writable: Iterable[str], listed: Iterable[str] = ()) -> None:
    """Leave this process no files but those under some folders; of others, the names.

    Linux 6.7 closes TCP, too, and 6.12 sockets without a file and signals to processes outside.
    """
    version = landlock_version()
    # what each version added for files: 13 rights at first, then links, truncation, devices
    rights = (1 << 13 + (version >= 2) + (version >= 3) + (version >= 5)) - 1
    wanted = [rights, 3 if version >= 4 else 0, 3 if version >= 6 else 0]
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = system("landlock_create_ruleset", struct.pack("QQQ", *wanted), size, 0)
    try:
        for folders, allowed in (readable, _READ), (writable, rights), (listed, _LIST):
            for folder in folders:
                try:
                    beneath = os.open(folder, os.O_PATH | os.O_CLOEXEC)
                except OSError:
                    continue  # what is not there needs no rule
                # the kernel refuses a rule for a file that has rights on folders
                those = -1 if stat.S_ISDIR(os.fstat(beneath).st_mode) else _ON_FILES
                rule = struct.pack("=Qi", allowed & rights & those, beneath)
                system("landlock_add_rule", rules, 1, rule, 0)
                os.close(beneath)
        # refused without CAP_SYS_ADMIN, unless become has set no_new_privs before
        system("landlock_restrict_self", rules, 0)
    finally:
        os.close(rules)


# A program for the kernel (seccomp): operations, jumps if true and if false, operands
Step = tuple[int, int, int, int]
Filter = list[Step]
_LOAD, _EQUAL, _AT_LEAST, ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
# a rule that looks at an argument leaves it in the accumulator, and so ends with this
_NAME: Step = (_LOAD, 0, 0, 0)
_NO: Step = (_RETURN, 0, 0, _FAIL | errno.EPERM)


def _argument(number: int) -> Step:
    # a filter loads 32 bits: the low half, on machines that are little-endian. The calls that are
    # looked at take an int, or have in it what matters
    return (_LOAD, 0, 0, 16 + 8 * number)


def _on(name: str, body: Filter) -> Filter:
    number = _number(name)
    return [] if number < 0 else [(_EQUAL, 0, len(body), number), *body]


def refuse(*names: str, error: int = errno.EPERM) -> Filter:
    """Refuse calls; without an error number they seem to be made."""
    return [step for name in names for step in _on(name, [(_RETURN, 0, 0, _FAIL | error)])]


def refuse_unless(name: str, argument: int, values: Sequence[int]) -> Filter:
    """Refuse a call unless an argument is one of some values."""
    tests = [(_EQUAL, len(values) - i, 0, v & 0xFFFFFFFF) for i, v in enumerate(values)]
    return _on(name, [_argument(argument), *tests, _NO, _NAME])


def refuse_if(name: str, argument: int, values: Sequence[int], test: int = _EQUAL) -> Filter:
    """Refuse a call if an argument is one of some values, or has any of their bits."""
    tests = [step for v in values for step in ((test, 0, 1, v & 0xFFFFFFFF), _NO)]
    return _on(name, [_argument(argument), *tests, _NAME])


def pretend_times() -> Filter:
    """Let changes of a file's times seem to be made.

    Where a file is named and no time is, the call is refused: ``Path.touch`` then makes the file.
    """
    refused = [_argument(2), (_EQUAL, 0, 3, 0), _argument(1), (_EQUAL, 1, 0, 0), _NO]
    pretended = refuse("utime", "utimes", "futimesat", error=0)
    return [*pretended, *_on("utimensat", [*refused, (_RETURN, 0, 0, _FAIL)])]


def install(rules: Filter) -> None:
    """Put a filter on this process and all that it starts; it cannot be taken off."""
    # calls in another machine's manner (32 bits) are refused as a whole
    steps: Filter = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, machine()[1]),
        _NO,
        _NAME,
        # x32 has the same calls once more, under numbers from here on that no rule names
        (_AT_LEAST, 0, 1, 0x40000000),
        _NO,
        *rules,
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code))
    held = ctypes.create_string_buffer(program)
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(22, 2, ctypes.addressof(held))  # PR_SET_SECCOMP, with a filter
