"""Keep the working folders of the two processes of a notebook in step.

In one process a test reads the file that a student's function has written, and a function the file
that a test has written. Apart, each process has folders of its own. So each end looks at them
before it sends a message, and what has changed goes along: names and contents.

The end of the tests takes nothing from a student's process that Python, pytest, matplotlib or a
shell could run or unpickle. A file that is refused or too large is named, so that a test which
misses it can be told from one that found a mistake.
"""

import base64
import hashlib
import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter, time_ns  # a test may replace those of the module
from types import SimpleNamespace
from typing import Any, NamedTuple

from gradebox.codec.encoding import BadValue

LARGEST = 2 * 2**20
"""No larger file is sent, in bytes."""

MOST_BYTES = 4 * 2**20
"""So many bytes of new files are kept in step, and as many of files that were there before."""

MOST_FILES = 300
"""So many new files and folders are kept in step, and as many that were there before."""

MOST_LOOKED_AT = 5000
"""So many files and folders are looked at; the rest is left out."""

LONGEST_NAME = 200
"""So many characters the name of a file may have, with its folders."""

RECENT = 50_000_000
"""For so many nanoseconds after a change the time of a file says nothing of the next one."""

ALLOWANCE, SHARE = 0.25, 0.03
"""So many seconds an end may look in any case, and such a share of the time that has passed."""

_RUNNABLE = frozenset(
    (
        *("py", "pyc", "pyo", "pyw", "pyx", "pyz", "pth", "egg", "whl", "ipynb", "ipy"),
        *("dist-info", "egg-info", "egg-link", "so", "pyd", "dll", "dylib", "o", "a"),
        *("exe", "com", "app"),
        *("pkl", "pickle", "joblib", "pt", "ckpt", "dill", "keras", "shelve", "yaml", "yml"),
        *("sh", "bash", "zsh", "bat", "cmd", "ps1", "c", "h", "cc", "cpp", "cxx", "hpp", "java"),
        *("jar", "class", "js", "mjs", "r", "rb", "pl", "lua", "jl", "go", "rs", "f90", "mk"),
    )
)
"""The suffixes of what can be run, compiled or unpickled."""

_SETTINGS = re.compile(
    r"conftest.*|sitecustomize.*|usercustomize.*|__.*|matplotlibrc.*|setup\.cfg|tox\.ini"
    r"|py.*\.(?:ini|toml|cfg)|.*makefile.*|cmakelists.*|.*\.mplstyle"
)
"""The names of what Python and its tools look for in the present folder."""

_PART = re.compile(r"[^\x00-\x1f\x7f-\x9f/\\:\ud800-\udfff]+")

_os = SimpleNamespace(
    **{name: getattr(os, name) for name in ("stat", "lstat", "fstat", "scandir", "open")},
    **{name: getattr(os, name) for name in ("mkdir", "rmdir", "unlink")},
    file=open,
)
"""What is used here, as it is at the beginning: a test may replace it in its own process too."""

Key = tuple[int, str]
"""The number of a folder that is kept in step, and a name in it."""


def is_sendable(name: str) -> bool:
    """Return whether a file or folder of this name may be kept in step at all.

    A name is relative, leads to nowhere else, and no part of it is hidden.
    """
    parts = name.split("/")
    return len(name) <= LONGEST_NAME and all(
        _PART.fullmatch(part) and not part.startswith((".", "__pycache__")) for part in parts
    )


def is_data(name: str) -> bool:
    """Return whether nothing runs or unpickles a file of this name by itself."""
    return not any(
        _SETTINGS.fullmatch(part) or not _RUNNABLE.isdisjoint(part.split(".")[1:])
        for part in name.lower().split("/")
    )


class _Entry(NamedTuple):
    """A file or folder that is there."""

    digest: bytes
    """Of its content; empty for a folder."""
    mark: tuple[int, ...]


_LEFT_OUT = b"-"
"""Instead of the digest of a file that is not sent."""


class Files:
    """The folders of this process that are kept in step with those of the other one.

    Parameters
    ----------
    roots : sequence of path
        The folders, in the same order in both processes: the working folder first.
    guarded : bool
        Whether this is the end of the tests, which believes nothing that comes in.
    """

    def __init__(self, roots: Sequence[str | Path], *, guarded: bool = False) -> None:
        self._roots, self._guarded = [str(root) for root in roots], guarded
        self.has_received = False
        """Whether anything has come from the other process."""
        self._missing: set[str] = set()
        self._missing_before: set[str] | None = None
        self._left_out: list[str] = []
        self._shared: dict[Key, bytes] = {}  # what both have: digests, empty for a folder
        self._exchanged: set[Key] = set()  # what the tests have made in the first level
        self._received: dict[Key, int] = {}
        self._contents: dict[Key, bytes] = {}
        self._marks: dict[str, tuple[int, ...]] = {}
        self._entries: dict[Key, _Entry] = {}
        self._before: dict[Key, tuple[int, ...]] = {}
        self._scan(0)
        self.begin()
        self._before = {key: entry.mark for key, entry in self._entries.items()}
        self._entries, self._is_stale = {}, True

    # out

    def begin(self) -> None:
        """Have the allowance of time again, so that the next message tells all in any case."""
        self._began, self._spent, self._skipped = perf_counter(), 0.0, False

    def changes(self) -> dict[str, Any] | None:
        """Return what has changed since the last message, as plain data."""
        now = perf_counter()
        if self._spent > ALLOWANCE + SHARE * (now - self._began):
            self._skipped = True
            return None
        try:
            return self._changes() if self._may_have_changed() else None
        finally:
            self._spent += perf_counter() - now

    def _changes(self) -> dict[str, Any] | None:
        self._scan(MOST_BYTES)
        present = {
            key: entry.digest for key, entry in self._entries.items() if entry.digest != _LEFT_OUT
        }
        changes = []
        gone = [
            key
            for key, digest in self._shared.items()
            if bool(present.get(key)) is not bool(digest)
        ]
        for key in sorted({*gone, *(self._shared.keys() - present)}, key=_depth, reverse=True):
            self._received.pop(key, None)
            del self._shared[key]
            if self._may_send(key):
                changes.append([*key, "gone", ""])
        for key in sorted(present, key=lambda key: (_depth(key), key)):
            if self._shared.get(key) == present[key]:
                continue
            kind, content = ("file", self._contents[key]) if present[key] else ("folder", b"")
            changes.append([*key, kind, base64.b64encode(content).decode()])
            self._exchanged.add(key)
            self._shared[key] = present[key]
        self._contents.clear()
        left_out = [
            name if not number else f"{self._roots[number]}/{name}"
            for number, name in sorted(self._entries.keys() - present.keys())
        ][:MOST_FILES]
        if not changes and left_out == self._left_out:
            return None
        self._left_out = left_out
        return {"changes": changes, "missing": left_out}

    def _may_send(self, key: Key) -> bool:
        return is_sendable(key[1]) and (
            self._guarded or (is_data(key[1]) and self._is_relevant(key))
        )

    def _is_relevant(self, key: Key) -> bool:
        """Return whether a test may look for a file: not for what libraries keep in a cache.

        Of a folder for temporary files those are, which a test has made or ``tempfile`` has named.
        """
        top = key[1].partition("/")[0]
        return not key[0] or top.startswith("tmp") or (key[0], top) in self._exchanged

    def _may_have_changed(self) -> bool:
        """Return whether to look closely: something has another time, or too recent a time."""
        if self._is_stale:
            return True
        try:
            for path, mark in self._marks.items():
                if _mark(_os.stat(path, follow_symlinks=False)) != mark:
                    return True
        except OSError:
            return True
        return False

    def _scan(self, most: int) -> None:
        """Look at all files and folders, and read what may have changed, but not more than this."""
        old, self._entries, self._marks = self._entries, {}, {}
        self._settled = time_ns() - RECENT
        self._is_stale, self._looked = False, 0
        # for what is new, and for what was there before
        self._room = [[MOST_FILES, most], [MOST_FILES, most]]
        for number, root in enumerate(self._roots):
            with suppress(OSError):
                self._device = _os.stat(root).st_dev
                self._scan_folder(number, root, "", old)

    def _scan_folder(self, number: int, path: str, inside: str, old: dict[Key, _Entry]) -> None:
        with suppress(OSError):
            self._note(path, _os.stat(path, follow_symlinks=False))
            with _os.scandir(path) as iterator:
                entries = sorted(
                    itertools.islice(iterator, MOST_LOOKED_AT), key=lambda entry: entry.name
                )
            for entry in entries:
                self._looked += 1
                if self._looked > MOST_LOOKED_AT:
                    return
                if is_sendable(name := inside + entry.name):
                    with suppress(OSError):  # it is gone already, or may not be read
                        self._scan_entry((number, name), entry, old)

    def _scan_entry(self, key: Key, entry: os.DirEntry[str], old: dict[Key, _Entry]) -> None:
        if entry.path in self._roots:
            return
        info = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode):
            return
        if info.st_dev != self._device:  # something of the machine's that may be read there
            return
        mark = self._note(entry.path, info)
        is_file = stat.S_ISREG(info.st_mode)
        size = info.st_size if is_file else 0
        # a folder has another time as soon as something in it is new
        was_there = self._before.get(key) == mark if is_file else key in self._before
        if was_there and self._guarded:
            return
        room = self._room[was_there]
        if not self._may_send(key) or size > min(LARGEST, room[1]) or room[0] < 1:
            self._entries[key] = _Entry(_LEFT_OUT, mark)
            return
        room[:] = room[0] - 1, room[1] - size
        if not is_file:
            self._entries[key] = _Entry(b"", mark)
            self._scan_folder(key[0], entry.path, key[1] + "/", old)
            return
        before = old.get(key)
        if before is not None and before.mark == mark and mark[0] < self._settled:
            self._entries[key] = before
            if self._shared.get(key) == before.digest:
                return
        with _os.file(entry.path, "rb") as file:
            content = file.read()
        self._entries[key] = _Entry(hashlib.blake2b(content).digest(), mark)
        if self._shared.get(key) != self._entries[key].digest:
            self._contents[key] = content

    def _note(self, path: str, info: os.stat_result) -> tuple[int, ...]:
        mark = self._marks[path] = _mark(info)
        if mark[0] >= self._settled:
            self._is_stale = True
        return mark

    def forget(self) -> None:
        """Take the files as they are now as known to both processes."""
        self._scan(MOST_BYTES)
        self._contents.clear()
        self._shared = {
            key: entry.digest for key, entry in self._entries.items() if entry.digest != _LEFT_OUT
        }

    def resend(self, message: dict[str, Any]) -> None:
        """Take changes as not sent, because the message was too long."""
        for number, name, _, _ in message["changes"]:
            self._shared.pop((number, name), None)
        self._is_stale = True

    # in

    def take(self, message: Any) -> None:
        """Make the changes of the other process here.

        Raises
        ------
        BadValue
            At the end of the tests, for what no honest process sends.
        """
        if type(message) is not dict or type(message.get("changes")) is not list:
            raise BadValue("expected changes of files")
        changes, missing = message["changes"], message.get("missing")
        if type(missing) is not list or len(missing) > MOST_FILES:
            raise BadValue("expected a list of at most so many names")
        if not all(type(name) is str and len(name) <= 2 * LONGEST_NAME for name in missing):
            raise BadValue("expected the names of files")
        if len(changes) > 6 * MOST_FILES:
            raise BadValue("expected changes of fewer files")
        self._missing = set(missing)
        for change in changes:
            key, kind, content = self._checked(change)
            self._make(key, kind, content)
            self._exchanged.add(key)
        if self._missing_before is None:
            self._missing_before = set(self._missing)
        if changes:
            self._is_stale = self.has_received = True

    def _checked(self, change: Any) -> tuple[Key, str, bytes]:
        """Return what to do with which file."""
        if type(change) is not list or [type(field) for field in change] != [int, str, str, str]:
            raise BadValue("expected the change of a file")
        number, name, kind, text = change
        if kind not in _CHANGES:
            raise BadValue("expected a known change of a file")
        if not 0 <= number < len(self._roots) or not is_sendable(name):
            raise BadValue("expected a file in a folder that is kept in step")
        if self._guarded and not (is_data(name) and self._is_relevant((number, name))):
            raise BadValue("expected a file of data")
        if len(text) > 2 * LARGEST:
            raise BadValue("expected a smaller file")
        try:
            content = base64.b64decode(text, validate=True)
        except ValueError:
            raise BadValue("expected the content of a file") from None
        if self._guarded:
            self._received[number, name] = len(content)
            if kind == "gone":
                del self._received[number, name]
            many, size = len(self._received), sum(self._received.values())
            if many > 2 * MOST_FILES or size > 2 * MOST_BYTES or len(content) > LARGEST:
                raise BadValue("expected fewer files, or smaller ones")
        return (number, name), kind, content

    def _make(self, key: Key, kind: str, content: bytes) -> None:
        path = self._roots[key[0]]
        *parents, last = key[1].split("/")
        try:
            for name in parents:
                path = f"{path}/{name}"
                if not stat.S_ISDIR(_os.lstat(path).st_mode):
                    raise NotADirectoryError(path)
            make = _remove_whole if kind == "gone" and not self._guarded else _CHANGES[kind]
            make(f"{path}/{last}", content)
        except OSError:  # something else is there, or no room
            if kind != "gone":
                self._missing.add(key[1])
                return
        if kind == "gone":
            self._shared.pop(key, None)
        else:
            self._shared[key] = hashlib.blake2b(content).digest() if kind == "file" else b""

    def doubt(self, source: str, error: str) -> str:
        """Return why a test that gives no points may have missed a file; empty if it has not.

        Parameters
        ----------
        source : str
            The test cell.
        error : str
            What it raised.
        """
        new = self._missing - (self._missing_before or set())
        written = sorted(name for name in new if not name.startswith("/"))
        for name in [*written, *_named(self._missing, source + error)]:
            return f"the file {name!r} could not be sent to the test"
        for name in _named(self._left_out, source + error):
            return f"the file {name!r} could not be sent to the student's code"
        if self._skipped and self._shared:
            return "after so many calls files were looked for less often"
        return ""


def _depth(key: Key) -> int:
    return key[1].count("/")


def _named(names: Iterable[str], text: str) -> list[str]:
    words = {name: re.escape(Path(name).stem) for name in names}
    return [name for name, word in words.items() if re.search(rf"(?<!\w){word}(?!\w)", text)]


def _mark(info: os.stat_result) -> tuple[int, ...]:
    """Return what differs when a file has changed; nobody sets the first time at will."""
    return info.st_ctime_ns, info.st_mtime_ns, info.st_size, info.st_ino


def _write(path: str, content: bytes) -> None:
    # into the file that is there, which somebody may have open; a link is not followed, and a pipe
    # is not waited for
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    with _os.file(_os.open(path, flags, 0o600), "wb") as file:
        if not stat.S_ISREG(_os.fstat(file.fileno()).st_mode):
            raise FileExistsError(path)
        file.truncate()
        file.write(content)


_remove_tree = shutil.rmtree


def _make_folder(path: str, content: bytes) -> None:
    try:
        _os.mkdir(path, 0o700)
    except FileExistsError:
        if not stat.S_ISDIR(_os.lstat(path).st_mode):
            raise


def _remove(path: str, content: bytes) -> None:
    if stat.S_ISDIR(_os.lstat(path).st_mode):
        _os.rmdir(path)
    else:
        _os.unlink(path)


def _remove_whole(path: str, content: bytes) -> None:
    """Remove a folder with what is in it here alone: in one process that was in the tests' too."""
    if stat.S_ISDIR(_os.lstat(path).st_mode):
        _remove_tree(path)
    else:
        _os.unlink(path)


_CHANGES = {"gone": _remove, "folder": _make_folder, "file": _write}
