"""How students hand in, as the instructor chose it when the handout was packed."""

import json

from tools.layout import Course

FILE = "handin.json"
"""In the folder of a handout; the last cell of a notebook prints its text."""
UPLOAD = "upload"


def chosen(course: Course) -> dict[str, str]:
    """Return ``how`` students hand in, the ``text`` that tells them, and what their ``id`` is.

    It is empty where the course is no handout.
    """
    file = course.root / FILE
    if not file.is_file():
        return {}
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return found


def to_bytes(how: str, text: str, called: str) -> bytes:
    """Return the file that says how students hand in."""
    return (json.dumps({"how": how, "text": text, "id": called}, indent=1) + "\n").encode()
