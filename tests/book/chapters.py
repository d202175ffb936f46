"""The pages of a chapter, as tests read them."""

import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[2] / "book"


def text(topic: str, page: str = "*") -> str:
    """Return the words of one page of a chapter, or of all of them, with single spaces."""
    pages = sorted((BOOK / topic).glob(f"{page}.md"))
    assert pages, f"book/{topic} has no page {page}.md"
    return re.sub(r"\s+", " ", " ".join(path.read_text("utf-8") for path in pages))
