"""What the commands share that write what can be computed into a page."""

from collections.abc import Callable
from pathlib import Path

from tools.fingerprints import write_if_changed
from tools.layout import ROOT
from tools.terminal import ToolError, argument

CHECK = argument("--check", action="store_true", help="write nothing, say what differs")


def write(page: Path, written: Callable[[str], str], check: bool) -> None:
    """Write a page, or only raise with what it should say."""
    before = page.read_text(encoding="utf-8")
    after = written(before)
    if not check:
        write_if_changed(page, after.encode())
    elif before != after:
        pairs = zip(before.splitlines(), after.splitlines(), strict=False)
        lines = "\n".join(new for old, new in pairs if old != new)
        raise ToolError(f"{page.relative_to(ROOT)} should say\n{lines}", "run it without --check")
