"""A class list becomes students of the gradebook, whatever program wrote it."""

from pathlib import Path

import pytest
from test_course import make_course

from tools import roster
from tools.backend import Backend
from tools.layout import Course
from tools.terminal import ToolError

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.xdist_group("nbgrader"),
]

PLAIN = "id,first_name,last_name,email\nada,Ada,Lovelace,ada@example.org\nben,Ben,,\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.replace(",", ";").replace("\n", "\r\n").encode(),
        PLAIN.replace(
            "id,first_name,last_name,email", "Username,Given name,Surname,E-mail"
        ).encode(),
        PLAIN.replace(",", "\t").encode() + b"\n\t\t\t\n",
    ],
    ids=["plain", "a spreadsheet's", "a learning platform's", "tabs and empty lines"],
)
def test_a_list_is_read_whoever_wrote_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "class.csv"
    file.write_bytes(content)
    ada, ben = roster.read(file)
    assert ada == {
        "id": "ada", "first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.org",
    }  # fmt: skip
    assert (ben["id"], ben["last_name"]) == ("ben", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column of ids; its columns are none"),
        ("name,email\nAda,a@b\n", "has no column of ids; its columns are name, email"),
        ("id\nada\nada\n", "line 3 .* 'ada' is there twice"),
        ("id\nada+1\n", "line 2 .* 'ada\\+1' cannot be an id"),
        ("id,email\n../ada,x\n", "line 2 .* cannot be an id"),
        ("id,email\n,x\n", "line 2 .* '' cannot be an id"),
    ],
)
def test_a_wrong_list_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "class.csv"
    file.write_text(text)
    with pytest.raises(ToolError, match=said):
        roster.read(file)


def test_another_encoding_is_told(tmp_path: Path) -> None:
    file = tmp_path / "class.csv"
    file.write_bytes("id,last_name\nada,Müller\n".encode("latin-1"))
    with pytest.raises(ToolError, match="cannot be read"):
        roster.read(file)


def test_students_are_entered_changed_and_never_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course: Course = make_course(tmp_path)
    file = tmp_path / "class.csv"
    file.write_text(PLAIN)
    roster.command(roster.parser().parse_args([str(file)]), course)
    file.write_text("id,last_name\nben,Nevis\ncleo,\n")
    capsys.readouterr()
    roster.command(roster.parser().parse_args([str(file)]), course)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert [row[-2:] for row in rows[1:]] == [
        ["1", "cleo"], ["1", "ben"], ["before", "0"], ["1", "ada"],
    ]  # fmt: skip
    with Backend(course).gradebook() as book:
        names = {one.id: (one.first_name, one.last_name) for one in book.students}
    assert names == {"ada": ("Ada", "Lovelace"), "ben": ("Ben", "Nevis"), "cleo": (None, None)}
