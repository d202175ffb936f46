"""What the processes of a notebook say to each other: whole messages, or none."""

import json
import socket
import struct
import sys
from collections import namedtuple
from collections.abc import Iterator
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
    """Return the two ends of a line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours), Channel(theirs)


def raw(line: bytes, *parts: bytes, length: int | None = None, rest: int | None = None) -> bytes:
    """Return the bytes of a message, with lengths of its line and its parts that may be lies."""
    sizes = len(line) if length is None else length, len(b"".join(parts)) if rest is None else rest
    return struct.pack("!IQ", *sizes) + line + b"".join(parts)


# --- channel ----------------------------------------------------------------------------------


def test_a_message_and_its_parts_arrive_as_they_were(ends: Ends) -> None:
    ours, theirs = ends
    ours.send({"a": [1, "ä", None]}, [b"", b"xyz"])
    ours.send(3)
    assert theirs.receive(5) == ({"a": [1, "ä", None]}, [b"", b"xyz"])
    assert theirs.receive(5) == (3, [])


def test_what_comes_in_pieces_is_put_together(ends: Ends) -> None:
    ours, theirs = ends
    for number, byte in enumerate(raw(b'["text",[4]]', b"part")):
        with pytest.raises(TimeoutError):
            theirs.receive(0.001 * (number % 2))
        assert theirs.has_more == (number > 0)
        ours.end.send(bytes([byte]))
    assert theirs.receive(5) == ("text", [b"part"])


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


@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_what_is_no_message_ends_the_connection(
    ends: Ends, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = ends
    monkeypatch.setattr(channel, "PARTS", 3)
    ours.end.sendall(content)  # and it stays open: what is announced is not waited for
    with pytest.raises(Gone):
        theirs.receive(0.5)
    with pytest.raises(Gone):  # nor by who has all of it
        channel.unpacked(content)


@pytest.mark.parametrize("content", [b"", b"\0\0", raw(b'[{"a": 1},[]]')[:-3]])
def test_half_a_message_is_none(ends: Ends, content: bytes) -> None:
    ours, theirs = ends
    ours.end.sendall(content)
    ours.end.shutdown(socket.SHUT_WR)
    with pytest.raises(Gone):
        theirs.receive(5)


def test_too_much_is_not_sent(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = ends
    monkeypatch.setattr(channel, "HEADER", 1000)
    monkeypatch.setattr(channel, "BYTES", 1000)
    monkeypatch.setattr(channel, "PARTS", 10)
    for line, parts in ("x" * 1000, []), ("x", [bytes(600)] * 2), ("x", [b""] * 11):
        with pytest.raises(TooLong):
            ours.send(line, parts)
    ours.send("next")
    assert theirs.receive(5) == ("next", [])


def test_an_end_that_does_not_read_is_given_up(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "STALLED", 0.05)
    with pytest.raises(Gone, match="does not read"):
        ends[0].send("x", [bytes(2**24)])


def test_an_end_that_is_closed_is_gone(ends: Ends) -> None:
    ours, theirs = ends
    theirs.end.close()
    for action in (lambda: ours.receive(5), lambda: [ours.send("x", [bytes(2**20)])] * 3):
        with pytest.raises(Gone):
            action()


# --- the grader's messages --------------------------------------------------------------------


@pytest.mark.parametrize(*cases("cells"))
def test_what_is_none_of_those_expected_ends_the_connection(ends: Ends, sent: Any) -> None:
    ours, theirs = ends
    ours.send(sent)
    with pytest.raises(Gone, match="expected Shown, got"):
        receive(theirs, 5, Shown)


@pytest.mark.parametrize("score", ["1", True, None])
def test_a_score_is_a_number(ends: Ends, score: Any) -> None:
    ours, theirs = ends
    ours.send(protocol.plain(protocol.Tested(0.5, [])))
    assert receive(theirs, 5, protocol.Tested).score == 0.5
    ours.send(protocol.plain(protocol.Tested(score, [])))
    with pytest.raises(Gone):
        receive(theirs, 5, protocol.Tested)


# --- the student's answers --------------------------------------------------------------------


@pytest.mark.parametrize(*cases("answers"))
def test_a_forged_answer_is_as_if_the_process_had_ended(ends: Ends, sent: Any) -> None:
    ours, theirs = ends
    answers = Answers(ours)
    theirs.send(sent)
    with pytest.raises(StudentGone):
        answers.look("square")
    assert answers.gone == "the student's process sent what is no message"
    assert answers.refused  # so a test that catches it gets no points
    with pytest.raises(StudentGone):
        answers.look("square")


def test_a_class_that_the_student_names_compares_as_pythons_own_do(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = ends
    answers, pair = Answers(ours, ["barred"]), namedtuple("pair", "a b")
    equal = type("equal", (pair,), {"__eq__": lambda *values: True, "__hash__": None})
    module = SimpleNamespace(pair=pair, equal=equal, number=3)
    monkeypatch.setitem(sys.modules, "installed", module)
    monkeypatch.setitem(sys.modules, "barred", module)
    answers.names = {"own": equal}
    for place, kind in {
        ("installed", "pair"): pair,
        ("__main__", "own"): equal,
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
def test_a_callback_has_the_test_called_with_values_only(asked: Asked, number: int) -> None:
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


def test_an_exception_in_the_middle_of_an_answer_ends_the_questions(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_an_exception_is_one_of_pythons_that_a_test_can_expect(asked: Asked, sent: Any) -> None:
    answers, fail, theirs = asked
    theirs.send({"raised": sent})
    with pytest.raises(Exception) as caught:  # noqa: PT011
        fail()
    assert type(caught.value) in (RuntimeError, ValueError)
    assert not answers.gone
