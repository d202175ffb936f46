"""What the commands share that write what can be computed into a page."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.fingerprints import write_if_changed
from tools.layout import ROOT
from tools.terminal import ToolError, run


def main(
    name: str, page: Path, written: Callable[[str], str], arguments: Sequence[str] | None
) -> int:
    """Write a page, or with ``--check`` say what it should say and fail."""

    def command(namespace: argparse.Namespace) -> None:
        before = page.read_text(encoding="utf-8")
        after = written(before)
        if not namespace.check:
            write_if_changed(page, after.encode())
        elif before != after:
            pairs = zip(before.splitlines(), after.splitlines(), strict=False)
            lines = "\n".join(new for old, new in pairs if old != new)
            raise ToolError(f"{page.relative_to(ROOT)} should say\n{lines}", f"python -m {name}")

    parser = argparse.ArgumentParser(prog=f"python -m {name}")
    parser.add_argument("--check", action="store_true", help="write nothing, say what differs")
    return run(command, parser, arguments)
