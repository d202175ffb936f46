"""Mark the lines of gradebox that a process runs; Python imports this when it starts.

The processes that grade are forked, sealed and killed: they can write no file, and have no end at
which to write one. So the marks are bytes of one file that all processes have mapped into memory,
one for each line of each module.
"""

import mmap
import os
import sys
import threading
from collections import Counter
from pathlib import Path

FOLDER = os.environ.get("PYTHON_LINE_COVERAGE")
"""The folder with ``modules``, a path and a number of lines in each row, and ``marks``."""


MOST = 200
"""So many calls of a function are followed in a process: marks are slow, and some are called
millions of times."""


def _offsets(folder: Path) -> dict[str, int]:
    """Return where the marks of each module begin."""
    offsets, total = {}, 0
    for row in (folder / "modules").read_text(encoding="utf-8").splitlines():
        path, lines = row.split("\t")
        offsets[path] = total
        total += int(lines) + 1
    return offsets


def _install(folder: Path) -> None:
    offsets = _offsets(folder)
    with (folder / "marks").open("r+b") as file:
        marks = mmap.mmap(file.fileno(), 0)
    calls = Counter()

    def call(frame, event, argument):
        code = frame.f_code
        start = offsets.get(code.co_filename)
        if start is None:
            return None
        calls[code] += 1
        if calls[code] > MOST:
            return None

        def mark(frame, event, argument):
            marks[start + frame.f_lineno] = 1
            return mark

        marks[start + code.co_firstlineno] = 1
        return mark

    threading.settrace(call)
    sys.settrace(call)


if FOLDER:
    _install(Path(FOLDER))
