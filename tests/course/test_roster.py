"""A class list becomes students of the gradebook, whatever program wrote it."""

import json
import re
from unittest.mock import Mock

import pytest
from toy_course import hand_in, use

from tools.classroom import backend, roster, students
from tools.classroom.backend import Backend
from tools.classroom.students import Person, find, match
from tools.terminal import ToolError

PLAIN = "id,first_name,last_name,email\nada,Ada,Lovelace,ada@example.org\nben,Ben,Nevis,\n"
MOODLE = (
    '"First name","Last name","ID number","Email address",Groups\n'
    'Ada,Lovelace,2027001,ada@example.org,"A, B"\nBen,Nevis,2027002,ben@example.org,\n'
)
MOODLE_DE = (
    "Vorname;Nachname;ID-Nummer;E-Mail-Adresse\r\nAda;Lovelace;;ada@example.org\r\n"
    "Ben;Nevis;;ben@example.org\r\n"
)
WORKSHEET = (
    "Identifier,Full name,Username,Email address,Status,Grade,Maximum Grade\n"
    "Participant 501,Ada Lovelace,ada,ada@example.org,No submission,,10.00\n"
    "Participant 502,Ben Nevis,ben,ben@example.org,No submission,,10.00\n"
)
WORKSHEET_DE = (
    "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung\n"
    'Teilnehmer/in501,Ada Lovelace,ada@example.org,Keine Abgabe,,"10,00"\n'
    'Teilnehmer/in502,Ben Nevis,ben@example.org,Keine Abgabe,,"10,00"\n'
)
CANVAS = (
    'Student,ID,SIS User ID,SIS Login ID,Section,"Toy, first (4711)",Final Score\n'
    ",,,,,Manual Posting,\n    Points Possible,,,,,10.00,(read only)\n"
    '"Lovelace, Ada",77,S1,ada,ML,9,90\n"Nevis, Ben",78,S2,ben,ML,,\n'
    '"Student, Test",99,,f00,ML,,\n"Student,Test",98,,f01,ML,,\n'
)
CANVAS_NAMES = (
    "LastName,FirstName,ID,SIS User ID,Root Account,Section\n    Points Possible,,,,,\n"
    "Lovelace,Ada,77,S1,canvas.example,ML\nNevis,Ben,78,S2,canvas.example,ML\n"
    "Student,Test,99,,canvas.example,ML\n"
)
CANVAS_ROSTER = (
    "name,canvas_user_id,user_id,login_id,sections\nAda Lovelace,77,S1,ada,ML\n"
    "Ben Nevis,78,S2,ben,ML\n"
)
EXCEL = "sep=;\r\nMatrikelnummer;Name\r\n2027001;Lovelace, Ada\r\n2027002;Nevis, Ben\r\n;\r\n"
BOM = b"\xef\xbb\xbf"


@pytest.fixture
def file(tmp_path):
    """Return the place of a class list."""
    return tmp_path / "class.csv"


@pytest.mark.parametrize(
    ("content", "column", "ids", "number"),
    [
        (PLAIN.encode(), "id", ["ada", "ben"], ""),
        (BOM + MOODLE.encode(), "ID number", ["2027001", "2027002"], ""),
        (MOODLE_DE.encode("utf-16"), "E-Mail-Adresse", ["ada@example.org", "ben@example.org"], ""),
        (WORKSHEET.encode(), "Username", ["ada", "ben"], ""),
        (WORKSHEET_DE.encode(), "E-Mail-Adresse", ["ada@example.org", "ben@example.org"], ""),
        (BOM + CANVAS.encode(), "SIS Login ID", ["ada", "ben"], "77"),
        (CANVAS_NAMES.encode(), "SIS User ID", ["S1", "S2"], "77"),
        (CANVAS_ROSTER.encode(), "login_id", ["ada", "ben"], "77"),
        (EXCEL.encode("utf-16"), "Matrikelnummer", ["2027001", "2027002"], ""),
        (PLAIN.replace(",", "\t").encode() + b"\n\t\t\t\n", "id", ["ada", "ben"], ""),
    ],
)
def test_class_lists_of_known_formats_are_read(file, content, column, ids, number):
    file.write_bytes(content)
    found = roster.read(file)
    assert found.layout.header[found.columns["id"]] == column
    assert [student.id for student in found.students] == ids
    assert [student.name for student in found.students] == ["Ada Lovelace", "Ben Nevis"]
    assert found.students[0].number == number


def test_ids_stay_in_the_known_column(file):
    file.write_text(CANVAS)
    for found in (roster.read(file, known_ids={"S1"}), roster.read(file, "sis user id")):
        assert [student.id for student in found.students] == ["S1", "S2"]
    with pytest.raises(ToolError, match=r"ID in .* is a number that the platform gives"):
        roster.read(file, "ID")


def test_student_with_an_institution_number_is_real(file):
    file.write_text(CANVAS.replace('Test",99,,', 'Test",99,S3,'))
    assert [student.id for student in roster.read(file).students] == ["ada", "ben", "f00"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column of ids; its columns are none"),
        ("name,section\nAda,1\n", "has no column of ids; its columns are name, section"),
        ("Student,ID,Section\nAda,77,A\n", "no column of ids.*ID is Canvas's internal number"),
        ("id\nada\nAda\n", "line 3 .* 'Ada' is there twice, first in line 2"),
        ("id\nada+1\n", "line 2 .* 'ada\\+1' cannot be an id"),
        ("id,email\n../ada,x\n", "line 2 .* cannot be an id"),
        ("id,name,email\n,Ada,x\n", "line 2 .*: Ada has no id\nTo fix: give one, or take another"),
        ("name,email\nAda,a@x\nSøren Ågård,\n", "line 3 .*: Søren Ågård has no email"),
        ("id,email\n", "has no students"),
        ("ID number,E-mail\nada@example.org,S1\n", "line 2 .* 'S1' is no e-mail address"),
        ("id,name\nada,Lovelace, Ada\n", "line 2 of .* has 3 cells for 2 columns"),
        ('id,name\nada,"Ada\n', "cannot be read: line 2: unexpected end of data"),
        ("PK\x03\x04...", "is a workbook or a zip, not CSV"),
        (b"id,name\nada,M\xfcller\n", "line 2 is not UTF-8"),
    ],
)
def test_invalid_class_list_is_refused(file, text, message):
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ToolError, match=message):
        roster.read(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("S1", "ada"),
        (" 77 ", "ada"),
        ("lovelace ada", "ada"),
        ("Ada Lovelac", "no student 'Ada Lovelac'\nTo fix: the nearest: ada (Ada Lovelace)"),
        ("Xq", "there is no student 'Xq'\nTo fix: the nearest: nobody"),
        ("Ana Reis", "are called 'Ana Reis': a1 (Ana Reis), a2 (Ana Reis)\nTo fix: give the id"),
    ],
)
def test_student_is_found_or_nearest_are_named(text, told):
    named = ("ada", "Ada", "Lovelace"), ("a1", "Ana", "Reis"), ("a2", "Ana", "Reis")
    people = {who: Person(who, *name) for who, *name in named}
    people["ada"] = Person("ada", "Ada", "Lovelace", number="77", ids=frozenset({"s1"}))
    if told in people:
        assert find(text, people).id == told
    else:
        with pytest.raises(ToolError, match=re.escape(told)):
            find(text, people)


BEN = Person(last_name="Ben Nevis")
ANOTHER_ADA = "has the name of ada (Ada Lovelace), and another address, id or number"


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ([BEN], ["ben"]),
        ([Person(last_name="Ben Nevis", number="71")], ["ben"]),  # of whom the list has no number
        ([BEN, BEN], ["not the only one that may be ben (Ben Nevis)"] * 2),
        ([Person(email="BEN"), BEN], ["ben", "has the name of ben (Ben Nevis), and another"]),
        ([Person(last_name="Nobody", number="70")], ["ada"]),
        ([Person(last_name="Ada Lovelace", number="71")], [ANOTHER_ADA]),
        ([Person(last_name="Lovelace, Ada", email="a@x.org")], [ANOTHER_ADA]),
        (
            [Person(ids=frozenset({"ben"})), Person(last_name="Ada Lovelace", ids=frozenset("x"))],
            ["ben", ANOTHER_ADA],
        ),
        ([Person(last_name="Reis Ana")], ["several have this name: a1 (Ana Reis), a2 (Ana Reis)"]),
        ([Person(last_name="Student Test")], ["Canvas's test student"]),
    ],
)
def test_nobody_is_matched_by_a_guess(claims, told):
    ada = Person("ada", "Ada", "Lovelace", "ada@example.org", "70")
    named = ("ben", "Ben", "Nevis"), ("a1", "Ana", "Reis"), ("a2", "Ana", "Reis")
    members = {"ada": ada} | {who: Person(who, *name) for who, *name in named}
    matched, unclear = match(dict(enumerate(claims)), members)
    for number, expected in enumerate(told):
        assert (matched[number].id if number in matched else unclear[number]).startswith(expected)


def _students(course):
    with Backend(course).gradebook() as book:
        return {entry.id: (entry.first_name, entry.last_name) for entry in book.students}


def test_class_list_is_entered_and_updated(file, small, printed, monkeypatch):
    course = small
    file.write_text(PLAIN)
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(file.parent))
    # zsh leaves the tilde of LIST=~/class.csv as it is; nobody can be asked, so nothing is entered
    file.write_text("id\nada\n")
    assert use(roster, course, "~/class.csv") == 1
    assert "/class.csv: 1 student, " in printed()
    file.write_text(PLAIN)
    assert use(roster, course, "~/class.csv", "--id", "id") == 1
    output = printed()
    assert re.search(r"^ id +id +ada, ben *$", output, re.M)
    assert re.search(r"^ new +2 +ada \(Ada Lovelace\), ben \(Ben Nevis\) *$", output, re.M)
    assert "No students" not in output  # each line is a student
    assert "To enter it: python -m tools.classroom.roster '~/class.csv' --id id --yes\n" in output
    # the disk fails at ben, and so ada is not entered either
    made = [backend.Student(id="ada"), OSError("disk full")]
    with monkeypatch.context() as patch:
        patch.setattr(backend, "Student", Mock(side_effect=made))
        with pytest.raises(OSError, match="disk full"):
            use(roster, course, str(file), "--yes")
    assert (_students(course), students.state(course).students) == ({}, [])

    assert use(roster, course, str(file), "--yes") == 0
    file.write_text("id,last_name,email\nben,Bell,\ncleo,,\n")
    printed()
    assert use(roster, course, str(file), "--yes") == 0
    rows = [line.strip() for line in printed().splitlines()[-5:-1]]
    assert [re.split("  +", row)[1:] for row in rows] == [
        ["1", "cleo"], ["1", "ben (Bell)"], ["0"], ["1", "ada (Ada Lovelace)"],
    ]  # fmt: skip
    entered = {"ada": ("Ada", "Lovelace"), "ben": ("Ben", "Bell"), "cleo": (None, None)}
    assert _students(course) == entered
    register = course.build / "class" / "register.json"
    before = {"undo": {}, "columns": ["id"], "students": {who: [who] for who in entered}}
    register.write_text(json.dumps(json.loads(register.read_text()) | before))
    assert students.state(course).students == [*entered]

    # who would be there twice is refused, and so is all else in the file
    for same in ("email\nzoe,zoe@example.org\n4711,ADA@example.org", "name\n4711,Ada Lovelace"):
        file.write_text(f"id,{same}\n")
        with pytest.raises(ToolError, match="people of the gradebook under other ids"):
            use(roster, course, str(file), "--yes")
        assert re.search(r"one not in the list +1 +4711.* as ada", printed())
    assert _students(course) == entered

    # cleo has handed in, so her work stays, off the list
    hand_in(course, "cleo")
    printed()
    assert use(roster, course, "--remove", "Ada Lovelace", "cleo") == 0
    kept = "Off the list, with work and marks kept: cleo\n"
    assert printed() == f"Removed: ada (Ada Lovelace)\n{kept}"
    assert _students(course).keys() == {"ben", "cleo"}
    assert students.state(course).students == ["ben"]
