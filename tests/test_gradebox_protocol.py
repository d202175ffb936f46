"""What the grader and the processes of a notebook say to each other: whole messages, or none."""

import json
import socket
from collections.abc import Iterator

import pytest

from gradebox.line.peer import StudentGone, StudentTimeout
from gradebox.line.proxy import Late
from gradebox.line.wire import Gone, Line
from gradebox.process.client import Died, NotebookTimeout
from gradebox.process.protocol import Checked, Lent, RunTest, Shown, TimeUsed, receive, send
from gradebox.troubles import Trouble

SHOWN = {"message": "Shown", "outputs": [{"name": "stdout"}], "execution_count": 1, "ok": True}


@pytest.fixture
def ends() -> Iterator[tuple[Line, Line]]:
    """Return the two ends of a line."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Line(ours), Line(theirs)


def test_a_message_arrives_as_it_was(ends: tuple[Line, Line]) -> None:
    ours, theirs = ends
    test = RunTest("assert f(1) == 2", 3.5, ["f.__add__"])
    send(ours, test)
    assert receive(theirs, 5, RunTest) == test
    send(ours, Lent())
    assert receive(theirs, 5, Shown, Lent) == Lent()
    send(ours, TimeUsed(2))
    assert receive(theirs, 5, TimeUsed).seconds == 2


def test_a_message_is_one_line_of_json(ends: tuple[Line, Line]) -> None:
    ours, theirs = ends
    send(ours, Shown([{"name": "stdout"}], 1, True))
    assert json.loads(theirs.end.recv(1000)) == SHOWN


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"message": "Lent"},
        {"message": "Checked", "score": 1},
        {"message": ["Shown"]},
        {name: value for name, value in SHOWN.items() if name != "ok"},
        SHOWN | {"more": 1},
        SHOWN | {"ok": 1},
        SHOWN | {"execution_count": 1.5},
        SHOWN | {"outputs": {}},
        SHOWN | {"outputs": [SHOWN, "text"]},
    ],
)
def test_what_is_no_message_that_is_expected_ends_the_connection(
    ends: tuple[Line, Line], message: dict[str, object]
) -> None:
    ours, theirs = ends
    ours.send(message)
    with pytest.raises(Gone, match="expected Shown, got"):
        receive(theirs, 5, Shown)


def test_a_score_is_a_number(ends: tuple[Line, Line]) -> None:
    ours, theirs = ends
    for score, fits in ((1, True), (0.5, True), ("1", False), (True, False), (None, False)):
        message = vars(Checked(0, [], "", "", [], "")) | {"score": score, "message": "Checked"}
        ours.send(message)
        if fits:
            assert receive(theirs, 5, Checked).score == score
        else:
            with pytest.raises(Gone):
                receive(theirs, 5, Checked)


def test_troubles_are_named_as_the_errors_that_notebooks_show() -> None:
    errors = {kind.__name__ for kind in (StudentTimeout, StudentGone, Late)}
    assert errors < {trouble.error for trouble in Trouble}
    assert Died.trouble is Trouble.of("DeadKernelError")
    assert NotebookTimeout.trouble.is_slow
    assert not Died.trouble.is_slow
    assert Trouble.of("ValueError") is None
