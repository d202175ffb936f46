"""An IPython extension that notes which data of the repository a page reads.

It is loaded into the kernel of each page. The variable ``PAGE_READS`` names the file that takes the
notes, one path on each line; ``PAGE_ROOT`` names the folder whose files count.
"""

import os
import sys
from typing import Any

EVENTS = {"open", "os.listdir", "os.scandir"}


def load_ipython_extension(shell: Any) -> None:
    """Begin to take notes; the audit hook stays until the kernel ends."""
    root = os.path.join(os.path.realpath(os.environ["PAGE_ROOT"]), "")  # noqa: PTH118
    notes = open(os.environ["PAGE_READS"], "a", encoding="utf-8", buffering=1)  # noqa: SIM115, PTH123
    seen = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in EVENTS or not isinstance(arguments[0], str | os.PathLike):
            return
        path = os.path.realpath(arguments[0])
        if path.startswith(root) and path not in seen:
            seen.add(path)
            notes.write(path + "\n")

    sys.addaudithook(note)
