"""Read the moments that teachers and Moodle write, strictly: what is unclear is unknown."""

import re
from collections import defaultdict
from datetime import UTC, datetime
from functools import cache

from babel.dates import get_month_names

from gradebox import moments
from tools.terminal import ToolError

MOMENT = "%Y-%m-%d %H:%M"  # how a moment is written, in UTC
LANGUAGES = (
    *("en", "de", "fr", "es", "it", "nl", "pt", "ca", "fi", "sv", "da", "nb", "et", "lv", "lt"),
    *("pl", "cs", "sk", "sl", "hr", "hu", "ro", "tr", "el", "ru", "uk"),
)
"""Those whose names of months are known."""
DATES = (
    r"(?P<day>\d{1,2})\.? (de )?(?P<month>[^\W\d_]+)\.? (de )?(?P<year>\d{4})",
    r"(?P<month>[^\W\d_]+)\.? (?P<day>\d{1,2}), (?P<year>\d{4})",
    r"(?P<year>\d{4})-(?P<number>\d\d)-(?P<day>\d\d)",
)
WEEKDAY, TIME = r"([^\d,]+,? )?", r",? (?P<hour>\d{1,2})[:.](?P<minute>\d\d)( ?(?P<half>[ap]m))?"


def parse(text: str) -> datetime:
    """Return the moment, in UTC, that a text such as ``2027-03-08 23:59`` names."""
    if moment := moments.parse(text):
        return moment
    raise ToolError(f"{text!r} is no moment", "write it as 2027-03-08 23:59, in UTC")


def in_words(text: str) -> datetime | None:
    """Return the moment, in UTC, that Moodle writes in this machine's time zone, or None."""
    text = " ".join(text.split())
    matches = (re.fullmatch(WEEKDAY + date + TIME, text, re.IGNORECASE) for date in DATES)
    if not (match := next(filter(None, matches), None)):
        return None
    fields = match.groupdict()
    hour, half = int(fields["hour"]), (fields["half"] or "").lower()
    months = _months()[fields["month"].lower()] if "month" in fields else {int(fields["number"])}
    if len(months) != 1 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + 12 * (half == "pm")
    year, day, minute = (int(fields[name]) for name in ("year", "day", "minute"))
    try:
        local = datetime(year, min(months), day, hour, minute)
    except ValueError:
        return None
    return local.astimezone(UTC).replace(tzinfo=None)


@cache
def _months() -> defaultdict[str, set[int]]:
    """Return which months a name may mean: *listopad* is October in Croatian, November in Czech."""
    months = defaultdict(set)
    for language in LANGUAGES:
        for width in ("wide", "abbreviated"):
            for context in ("format", "stand-alone"):
                for number, name in get_month_names(width, context, language).items():
                    months[name.lower().rstrip(".")].add(number)
    return months
