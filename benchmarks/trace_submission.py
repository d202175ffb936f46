"""Count the files that one submission goes through: ``python -m benchmarks.trace_submission``.

The grader's own process is traced, with the dry run kept from before: which files of gradebox are
entered, how many calls there are, and how often the next call is in another file than the last.
"""

import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import gradebox
from benchmarks.bench_gradebox import write_course

PACKAGE = str(Path(gradebox.__file__).parent) + os.sep


class Trace:
    """Counts calls of gradebox's functions, in all threads."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.changes = 0
        self._last: dict[int, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Count an event."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(PACKAGE) or "<module>" in frame.f_code.co_name:
            return
        thread = threading.get_ident()
        self.calls[file.removeprefix(PACKAGE)] += 1
        self.changes += self._last.get(thread, file) != file
        self._last[thread] = file


def main() -> None:
    """Grade one submission once unseen, and once traced."""
    with tempfile.TemporaryDirectory() as folder:
        course = Path(folder, "course")
        assignment = write_course(course, "erm", 1)
        os.chdir(course)
        from gradebox.cli import main as command

        command(["grade", assignment])  # with the dry run, which is kept
        trace = Trace()
        threading.setprofile(trace)
        sys.setprofile(trace)
        command(["grade", assignment, "--no-resume"])
        sys.setprofile(None)
        os.chdir(folder)
    modules = [path for path in Path(PACKAGE).rglob("*.py") if path.read_text().strip()]
    print(f"{len(trace.calls)} of {len(modules)} files, {sum(trace.calls.values())} calls,")
    print(f"{trace.changes} changes of file")
    for file, count in trace.calls.most_common():
        print(f"{count:6d} {file}")


if __name__ == "__main__":
    main()
