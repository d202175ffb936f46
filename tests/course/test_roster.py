"""A class list becomes students of the gradebook, whatever program wrote it."""

from unittest.mock import Mock

import pytest
from toy_course import CANVAS, NAMES, WORKSHEET, hand_in, play, use

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
WORKSHEET_DE = (
    "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung,Bestwertung\n"
    'Teilnehmer/in501,Ada Lovelace,ada@example.org,Keine Abgabe,,"10,00"\n'
    'Teilnehmer/in502,Ben Nevis,ben@example.org,Keine Abgabe,,"10,00"\n'
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
LOGINS, NUMBERS = " ".join(NAMES), "S70 S71 S72 S73 S74"
ADDRESSES = "ada@example.org ben@example.org"
EACH_ADDRESS = " ".join(f"{who}@example.org" for who in NAMES)


@pytest.mark.parametrize(
    ("content", "options", "column", "ids", "number"),
    [
        (PLAIN.encode(), {}, "id", "ada ben", ""),
        (BOM + MOODLE.encode(), {}, "ID number", "2027001 2027002", ""),
        (MOODLE_DE.encode("utf-16"), {}, "E-Mail-Adresse", ADDRESSES, ""),
        (WORKSHEET.encode(), {}, "Email address", EACH_ADDRESS, ""),
        (WORKSHEET_DE.encode(), {}, "E-Mail-Adresse", ADDRESSES, ""),
        (BOM + CANVAS.encode(), {}, "SIS Login ID", LOGINS, "70"),
        (CANVAS_NAMES.encode(), {}, "SIS User ID", "S1 S2", "77"),
        (CANVAS_ROSTER.encode(), {}, "login_id", "ada ben", "77"),
        (EXCEL.encode("utf-16"), {}, "Matrikelnummer", "2027001 2027002", ""),
        (PLAIN.replace(",", "\t").encode() + b"\n\t\t\t\n", {}, "id", "ada ben", ""),
        # the ids stay in the column that is known
        (CANVAS.encode(), {"known_ids": {"S70"}}, "SIS User ID", NUMBERS, "70"),
        (CANVAS.encode(), {"column": "sis user id"}, "SIS User ID", NUMBERS, "70"),
        # a student with a number of the institution is none of Canvas's own
        (
            CANVAS.replace('t",99,,', 't",99,S3,').encode(),
            {},
            "SIS Login ID",
            f"{LOGINS} f00",
            "70",
        ),
    ],
)
def test_class_lists_of_known_formats_are_read(tmp_path, content, options, column, ids, number):
    (tmp_path / "class.csv").write_bytes(content)
    found = roster.read(tmp_path / "class.csv", **options)
    assert found.layout.header[found.columns["id"]] == column
    assert [student.id for student in found.students] == ids.split()
    assert (found.students[0].name, found.students[0].number) == ("Ada Lovelace", number)


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
def test_invalid_class_list_is_refused(tmp_path, text, message):
    (tmp_path / "class.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ToolError, match=message):
        roster.read(tmp_path / "class.csv")


ANA = {who: Person(who, "Ana", "Reis") for who in ("a1", "a2")}
ADA = Person("ada", "Ada", "Lovelace", "ada@example.org", "70")
MEMBERS = {"ada": ADA, "ben": Person("ben", "Ben", "Nevis")} | ANA


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((text, "ada") for text in ("ADA", "ada@example.ORG", " 70 ", "lovelace ada", str(ADA))),
        ("Ada Lovelac", "no one student 'Ada Lovelac'.*give the id; nearest: ada .Ada Lovelace"),
        ("Ana Reis", "give the id; several have this name: a1 .Ana Reis., a2 .Ana Reis"),
    ],
)
def test_student_is_found_or_nearest_are_named(text, told):
    if told in MEMBERS:
        assert find(text, MEMBERS).id == told
    else:
        with pytest.raises(ToolError, match=f"(?s){told}"):
            find(text, MEMBERS)


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
    matched, unclear = match(dict(enumerate(claims)), MEMBERS)
    for number, expected in enumerate(told):
        assert (matched[number].id if number in matched else unclear[number]).startswith(expected)


def _students(course):
    with Backend(course).gradebook() as book:
        return {entry.id: (entry.first_name, entry.last_name) for entry in book.students}


LISTS = {
    "one": "id\nada\n",
    "plain": PLAIN,
    "canvas": CANVAS,
    "later": "id,last_name,email\nben,Bell,\ncleo,,\n",
    "by-email": "id,email\nzoe,zoe@example.org\n4711,ADA@example.org",
    "by-name": "id,name\n4711,Ada Lovelace",
}
BEFORE = """
$! roster ~/one.csv
one.csv: 1 student, commas, UTF-8
Nothing was entered.
$! roster ~/plain.csv --id id
 id id ada, ben
 new 2 ada (Ada Lovelace), ben (Ben Nevis)
!No students
To enter it: python -m tools.classroom.roster '~/plain.csv' --id id --yes
$! roster canvas.csv --id ID
ID in … is a number that the platform gives
"""
ENTERED = """
$ roster plain.csv --yes
Entered.
$ roster later.csv --yes
 new 1 cleo
 changed 1 ben (Bell)
 as before 0
 not in the list 1 ada (Ada Lovelace)
"""
# who would be there twice is refused, and so is all else in the file; cleo has handed in, so her
# work stays, off the list
AFTER = """
$! roster by-email.csv --yes
 one not in the list 1 4711… as ada
people of the gradebook under other ids
$! roster by-name.csv --yes
people of the gradebook under other ids
$ roster --remove "Ada Lovelace" cleo
Removed: ada (Ada Lovelace)
Off the list, with work and marks kept: cleo
"""


def test_class_list_is_entered_and_updated(small, monkeypatch):
    for name, text in LISTS.items():
        (small.root / f"{name}.csv").write_text(text)
    for home in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(home, str(small.root))
    # zsh leaves the tilde of LIST=~/class.csv as it is; nobody can be asked, so nothing is entered
    play(small, BEFORE)
    # the disk fails at ben, and so ada is not entered either
    made = [backend.Student(id="ada"), OSError("disk full")]
    with monkeypatch.context() as patch:
        patch.setattr(backend, "Student", Mock(side_effect=made))
        with pytest.raises(OSError, match="disk full"):
            use(roster, small, str(small.root / "plain.csv"), "--yes")
    assert (_students(small), students.state(small).students) == ({}, [])

    play(small, ENTERED)
    entered = {"ada": ("Ada", "Lovelace"), "ben": ("Ben", "Bell"), "cleo": (None, None)}
    assert _students(small) == entered
    assert students.state(small).students == [*entered]
    hand_in(small, "cleo")
    play(small, AFTER)
    assert _students(small) == {who: entered[who] for who in ("ben", "cleo")}
    assert students.state(small).students == ["ben"]
