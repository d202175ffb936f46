"""What happened is data; its sentences are made in one module."""

import string
from typing import Any

import pytest

from gradebox.events import LOOK, MAX_CHARACTERS, NOTE, Event, distinct

FIELDS = ("what", "why", "verb", "name", "guess", "text", "duration", "file", "score", "test")
ALL: dict[str, Any] = dict.fromkeys(FIELDS, "x") | {"points": 1.5, "number": 2}


@pytest.mark.parametrize("kind", [*LOOK, *NOTE])
def test_each_kind_has_a_sentence(kind):
    names = {name for _, name, _, _ in string.Formatter().parse((LOOK | NOTE)[kind]) if name}
    fields = {name: ALL[name] for name in names - {"cell", "notebook"}}
    event = Event(kind, "toy", "test", fields)
    assert event.is_to_look_at == (kind in LOOK)
    assert "test" in str(event)
    assert Event.of(event.plain) == event


def test_event_sentence_is_one_printable_limited_line():
    assert str(Event("message", fields={"text": "Something\n odd"})) == "Something odd"
    hostile = Event("foreign", cell="\x1b[2J\u202e" + "x" * 999)
    assert str(hostile).isprintable()
    assert len(str(hostile)) == MAX_CHARACTERS
    assert str(Event("added", fields={"number": 1})) == "1 cell was added"


def test_events_to_look_at_come_first_without_duplicates():
    note, look = Event("order"), Event("slow", "toy", "test", {"what": "a cell"})
    assert distinct([note, look, note, Event.of(look.plain)]) == [look, note]
