"""What the processes of a notebook say to each other: whole messages, or none."""

import json
import socket
import struct
import sys
import threading
from collections import namedtuple
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hostile.texts import lines, sections

from gradebox.values import channel
from gradebox.values.channel import Channel, Gone, TooLong
from gradebox.workers import protocol
from gradebox.workers.protocol import Shown, receive
from gradebox.workers.stubs import Answers, StudentGone


def cases(kind: str) -> tuple[str, list[Any]]:
    """Return messages of a kind, each with its name."""
    rows = lines(sections("tables/messages.txt")[kind])
    return "sent", [pytest.param(json.loads(text), id=name) for name, text in rows.items()]


Ends = tuple[Channel, Channel]
Asked = tuple[Answers, Any, Channel]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


def raw(line: bytes, *parts: bytes, length: int | None = None, rest: int | None = None) -> bytes:
    """Return the bytes of a message, with lengths of its line and its parts that may be lies."""
    sizes = len(line) if length is None else length, len(b"".join(parts)) if rest is None else rest
    return struct.pack("!IQ", *sizes) + line + b"".join(parts)


def test_message_sent_in_pieces_arrives_unchanged(ends):
    ours, theirs = ends
    ours.send({"a": [1, "ä", None]}, [b"", b"xyz"])
    assert theirs.receive(5) == ({"a": [1, "ä", None]}, [b"", b"xyz"])
    for number, byte in enumerate(raw(b'["text",[4]]', b"part")):
        with pytest.raises(TimeoutError):
            theirs.receive(0.001 * (number % 2))
        assert theirs.has_more == (number > 0)
        ours.end.send(bytes([byte]))
    assert theirs.receive(5) == ("text", [b"part"])


HALF = [b"", b"\0\0", raw(b'[{"a": 1},[]]')[:-3]]
FORGED = {
    "no JSON": raw(b"no json"),
    "no UTF-8": raw(b'["\xff",[]]'),
    "nothing": raw(b""),
    "no pair": raw(b"[3]"),
    "no sizes": raw(b"[3,4]"),
    "nested": raw(b"[" * 20_000 + b"]" * 20_000),
    "a long line": raw(b"", length=channel.HEADER + 1),
    "many parts": raw(b"[3,[0,0,0,0]]"),
    "large parts": raw(b"3", rest=channel.BYTES + 1),
    "another size": raw(b"[3,[2]]", b"1"),
    "a size of text": raw(b'[3,["1"]]', b"1"),
    "a negative size": raw(b"[3,[2,-1]]", b"1"),
}


@pytest.mark.parametrize("content", [*FORGED.values(), *HALF], ids=[*FORGED, *HALF])
def test_malformed_message_ends_the_connection(ends, content, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "PARTS", 3)
    ours.end.sendall(content)
    if content in HALF:  # else it stays open: what is announced is not waited for
        ours.end.shutdown(socket.SHUT_WR)
    with pytest.raises(Gone):
        theirs.receive(0.5)
    with pytest.raises(Gone):  # nor by who has all of it
        channel.unpacked(content)


def test_oversized_message_is_not_sent(ends, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "HEADER", 1000)
    monkeypatch.setattr(channel, "BYTES", 1000)
    monkeypatch.setattr(channel, "PARTS", 10)
    for line, parts in ("x" * 1000, []), ("x", [bytes(600)] * 2), ("x", [b""] * 11):
        with pytest.raises(TooLong):
            ours.send(line, parts)
    ours.send("next")
    assert theirs.receive(5) == ("next", [])


def test_unread_or_closed_connection_is_given_up(ends, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "STALLED", 0.05)
    with pytest.raises(Gone, match="does not read"):
        ours.send("x", [bytes(2**24)])
    ours.end.close()
    # an end that a cell has closed in its own process is gone, too
    actions = [partial(end.receive, 5) for end in (theirs, ours)]
    actions += [partial(end.send, "x", [bytes(2**20)]) for end in (theirs, ours)]
    for action in actions:
        with pytest.raises(Gone):
            action()


def test_message_read_little_by_little_is_given_up(ends, monkeypatch):
    ours, theirs = ends
    monkeypatch.setattr(channel, "STALLED", 0.2)
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.02):
            theirs.end.recv(2**16)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with pytest.raises(Gone, match="does not read"):
            ours.send("x", [bytes(2**25)])
    finally:
        over.set()
        reader.join()


@pytest.mark.parametrize(*cases("cells"))
def test_unexpected_message_ends_the_connection(ends, sent):
    ours, theirs = ends
    ours.send(sent)
    with pytest.raises(Gone, match="expected Shown or Tested, got"):
        receive(theirs, 5, Shown, protocol.Tested)


@pytest.mark.parametrize(*cases("answers"))
def test_forged_answer_counts_as_ended_process(ends, sent):
    ours, theirs = ends
    answers = Answers(ours)
    theirs.send(sent)
    with pytest.raises(StudentGone):
        answers.look("square")
    assert answers.gone == "the student's process sent what is no message"
    assert answers.refused  # so a test that catches it gets no points
    with pytest.raises(StudentGone):
        answers.look("square")


def test_unsafe_named_tuple_class_becomes_plain_tuple(ends, monkeypatch):
    ours, theirs = ends
    answers, pair = Answers(ours, ["barred"]), namedtuple("pair", "a b")
    equal = type("equal", (pair,), {"__eq__": lambda *values: True, "__hash__": None})
    module = SimpleNamespace(pair=pair, equal=equal, number=3)
    monkeypatch.setitem(sys.modules, "installed", module)
    monkeypatch.setitem(sys.modules, "barred", module)
    answers.names = {"own": pair, "equal": equal}
    for place, kind in {
        ("installed", "pair"): pair,
        ("__main__", "own"): pair,
        ("__main__", "equal"): tuple,
        ("installed", "equal"): tuple,
        ("installed", "number"): tuple,
        ("barred", "pair"): tuple,
        ("__main__", "other"): tuple,
    }.items():
        theirs.send({"value": ["named", *place, ["tuple", 1, 2]]})
        assert type(answers.look("x")) is kind


@pytest.fixture
def asked(ends: Ends) -> Asked:
    """Return a student's answers, a function among them, and the student's end."""
    ours, theirs = ends
    answers = Answers(ours)
    theirs.send({"value": ["handle", 4]})
    return answers, answers.look("twice"), theirs


@pytest.mark.parametrize("number", [1, -1, False])
def test_only_functions_passed_can_be_called_back(asked, number):
    _, twice, theirs = asked
    theirs.send({"callback": [0, ["list", 5], ["dict"]]})
    theirs.send({"callback": [number, ["list", 5], ["dict"]]})
    theirs.send({"value": 0})
    with pytest.raises(StudentGone):  # there is one function, 0, so the second is no message
        twice(lambda x: x + 1)
    question, _ = theirs.receive(5)
    assert question == {"look": "twice"}
    question, _ = theirs.receive(5)
    assert (question["call"], question["args"]) == (["theirs", 4], ["list", ["callback", 0]])
    assert theirs.receive(5)[0] == {"value": 6}


def test_exception_inside_callback_ends_further_questions(asked, monkeypatch):
    _, twice, theirs = asked
    theirs.send({"callback": [0, ["list"], ["dict"]]})

    def spoil() -> int:
        monkeypatch.setattr("builtins.max", None)  # as a test may, whose names are gradebox's too
        theirs.send({"value": 5})
        return 1

    try:
        with pytest.raises(TypeError):
            twice(spoil)
    finally:
        monkeypatch.undo()
    with pytest.raises(StudentGone, match="was left in the middle of an answer"):
        twice(3)  # 5 is the answer to the question before


@pytest.mark.parametrize(*cases("exceptions"))
def test_sent_exception_becomes_a_builtin_exception(asked, sent):
    answers, fail, theirs = asked
    theirs.send({"raised": sent})
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fail()
    assert type(caught.value) in (RuntimeError, ValueError)
    assert not answers.gone
