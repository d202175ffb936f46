"""Texts of the suite, by the headings of their files."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def runnable(text: str) -> str:
    """Return a text with its scripts written out: each leaves its name on the page."""
    return re.sub(r"RUN\(([\w-]+)\)", r"document.documentElement.classList.add('ran-\1')", text)


def split(text: str, mark: str) -> list[tuple[str, str]]:
    """Return the headings of a text, which begin with a mark, each with what it heads."""
    _, *parts = re.split(rf"^{mark} (.+)\n", text, flags=re.MULTILINE)
    ends = (part.rstrip("\n") for part in parts[1::2])
    return [*zip(parts[::2], ends, strict=True)]


def sections(name: str) -> dict[str, str]:
    """Return the texts of a file by their headings."""
    return dict(split(runnable((HERE / name).read_text(encoding="utf-8")), "==="))


def lines(text: str) -> dict[str, str]:
    """Return what the lines of a text say by the names before their first colon."""
    return dict(line.split(": ", 1) for line in text.splitlines())


def rows(name: str) -> dict[str, str]:
    """Return the texts of a file by their names: those of one line stand behind them."""
    found = sections(name)
    return lines(found.pop("lines")) | found


def cells(text: str) -> list[str]:
    """Return cells that have a line each, in which ``\\n`` begins a new one of theirs."""
    return [line.replace("\\n", "\n") for line in text.splitlines()]
