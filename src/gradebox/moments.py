"""Read when a submission came: strictly, so that no moment is guessed."""

import re
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?([^\s\d]\S*)?")


def parse(text: str) -> datetime | None:
    """Return the moment, in UTC, that a text names as year, month, day and time, or None.

    A zone may follow as ``UTC``, as an offset, or by a name that was in use at that moment.
    """
    if not (parts := MOMENT.fullmatch(text.strip())):
        return None
    moment, zone = parts[1], parts[2] or "UTC"
    try:
        if re.fullmatch(r"UTC|GMT|Z|[+-]\d\d:?\d\d", zone):
            aware = datetime.fromisoformat(moment + re.sub("UTC|GMT", "Z", zone))
        else:
            aware = datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(zone))
            if "/" not in zone and aware.tzname() != zone:  # CET in July
                return None
        return aware.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, KeyError, OSError):  # the last two for unknown zones
        return None


def read(file: Path) -> datetime | None:
    """Return the moment that a file names, as nbgrader or an editor wrote it, or None."""
    try:
        content = file.read_bytes()
        is_utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return parse(content.decode("utf-16" if is_utf16 else "utf-8-sig"))
    except (OSError, UnicodeError):
        return None
