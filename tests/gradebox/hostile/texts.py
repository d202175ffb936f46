"""Texts of the suite, by the headings of their files."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def runnable(text: str) -> str:
    """Return a text with its scripts written out: each leaves its name on the page."""
    return re.sub(r"RUN\(([\w-]+)\)", r"document.documentElement.classList.add('ran-\1')", text)


def sections(name: str) -> dict[str, str]:
    """Return the texts of a file by their headings."""
    text = runnable((HERE / name).read_text(encoding="utf-8"))
    _, *parts = re.split(r"^=== (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], (part.rstrip("\n") for part in parts[1::2]), strict=True))
