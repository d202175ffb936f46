"""Work comes from a learning platform in its zips: whose it is, which file, and when it came."""

import re
import shutil
import zipfile
from datetime import UTC, datetime

import pytest
from toy_course import WORKSHEET, answered, pack, play, use, zipped

import gradebox.moments
from tools.classroom import collect, feedback, layouts, students
from tools.classroom.students import class_members
from tools.layout import Course
from tools.terminal import ToolError


@pytest.fixture
def course(handed_out, tmp_path):
    return Course(shutil.copytree(handed_out.root, tmp_path / "course"))


def work(course, number=2):
    return answered(course.released("toy"), f"{number} * x", "3 * x")


def lies_there(course):
    return {
        who: sorted(path.name for path in (course.submitted / who / "toy").iterdir())
        for who in course.submitters("toy")
    }


ADA, BEN, UNKNOWN = (
    f"{sender}_assignsubmission_file_/"
    for sender in ("Lovelace Ada_500", "Ben ONevis_501", "Dora Alsaid_509")
)
MOODLE = """
$ collect toy first.zip
 whose.ipynb the name of the file tells no student
 Dora Alsaid 509 nearest: dora (Dora Al-Sayed)
 dora (Dora Al-Sayed) handed in no file
Time unknown: ada (Ada Lovelace), ben (Ben O'Nevis), cleo (
No work from: emil (Emil Ohm)
"""
# the worksheet tells the times, the teacher who somebody is; work that was there is kept, and the
# same work with another time is not replaced; an older zip does not replace work that came later;
# the zips of make submit say by their names whose they are
AGAIN = """
$ collect toy second.zip --sheet 05.csv --who "Nobody=ada, 509=Dora Al-Sayed"
1 new, 1 replaced
$ collect toy second.zip --sheet 06.csv --who 509=dora
toy: 1 time now known, 1 as before.
$ collect toy older.zip --sheet 04.csv
1 later work kept
$! collect toy second.zip --sheet 04.csv --who "Nobody=Dora Somebody"
there is no one student 'Dora Somebody'
$ collect toy second.zip --sheet 04.csv --who 509=dora
Handed in toy: 2 as before.
"""


def test_moodle_zip_is_collected_with_times_and_feedback(course):
    zips = {
        "first": {
            ADA + "homework.ipynb": work(course),
            ADA + "timestamp.txt": b"1999-01-01 00:00:00 UTC",
            BEN + "hand in.zip": zipped("a/toy.ipynb", work(course, 3)),
            "Cléo van der Berg_502_assignsubmission_file_toy (1).ipynb": work(course, 4),
            "Dora Al-Sayed_503_assignsubmission_onlinetext/onlinetext.html": b"<p>",
            UNKNOWN + "toy.ipynb": work(course, 5),
            f"__MACOSX/{BEN}._toy.ipynb": b"",
            "whose.ipynb": work(course),
        },
        "second": {BEN + "toy.ipynb": work(course, 6), UNKNOWN + "toy.ipynb": work(course, 5)},
        "older": {BEN + "toy.ipynb": work(course, 7)},
        "packed": dict.fromkeys(
            ("ada-toy.zip", "older/DORA-toy.zip"), zipped("toy/toy.ipynb", work(course, 9))
        ),
    }
    for name, contents in zips.items():
        pack(course.root / f"{name}.zip", contents)
    for minute in ("04", "05", "06"):
        sheet = WORKSHEET.replace("12:05 AM", f"12:{minute} AM")
        (course.root / f"{minute}.csv").write_text(sheet, "utf-8-sig")
    play(course, MOODLE)
    # what a student calls a time is none
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben", "cleo")}
    play(course, AGAIN)
    told = gradebox.moments.read(course.submitted / "ben" / "toy" / "timestamp.txt")
    assert told.replace(tzinfo=UTC) == datetime(2027, 3, 3, 0, 6).astimezone()
    assert (course.submitted / "ben" / "toy" / "toy.ipynb").read_bytes() == work(course, 6)
    [kept] = course.build.glob("class/replaced/*/ben/toy/toy.ipynb")
    assert kept.read_bytes() == work(course, 3)
    play(course, "$ collect toy packed.zip\n2 replaced\n")

    # pages go back in folders whose names Moodle breaks up: name, number, plugin, its kind
    folders = {who: course.feedback / who / "toy" for who in ("ben", "cleo")}
    for who, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "toy.html").write_text(who)
    assert feedback.pack(course, "toy", "Moodle", folders) == ["ben", "cleo"]
    with zipfile.ZipFile(course.feedback / "toy-moodle.zip") as archive:
        pages = {name.split("_", 4)[1]: archive.read(name).decode() for name in archive.namelist()}
        assert all(re.search("_assignsubmission_file_/", name) for name in archive.namelist())
    assert pages == {"501": "ben", "502": "cleo"}


GROUPS = {
    "Group 1-Ada Lovelace_500": "ada",
    "Team-Ben O'Nevis_501": "ben",
    "Participant_502": "cleo",
    "Participant_508": "",
    "Participant_509": "",
}
NUMBERS = """
$! collect toy all.zip
$! collect toy all.zip --sheet blind.csv
numbers and no names, for the marking is blind
$ collect toy all.zip --sheet sheet.csv
 Participant 508
 Participant 509
"""


def test_participant_numbers_are_resolved_by_the_worksheet(course):
    (course.root / "sheet.csv").write_text(WORKSHEET, "utf-8")
    (course.root / "blind.csv").write_text(re.sub("(?<=[0-9r]),.*?,.*?,", ",", WORKSHEET))
    contents = {f"{name}_assignsubmission_file_/toy.ipynb": work(course) for name in GROUPS}
    pack(course.root / "all.zip", contents)
    play(course, NUMBERS)
    assert lies_there(course).keys() == {*filter(None, GROUPS.values())}


# --- which file is which

TOY, TOY_1, COPY = "toy.ipynb", "toy (1).ipynb", "toy-Copy1.ipynb"
BLANK, ADAS, NAMELESS = b"blank", b"Ada's", b"nameless"
FIRST, LAST = "a_70_11_toy.ipynb", "a_70_12_toy (1).ipynb"  # attachments of Canvas's
IN_ZIP = ("a_70_11_all.zip/toy.ipynb", "a_70_11_all.zip/toy2.ipynb")


@pytest.mark.parametrize(
    ("files", "chosen", "note"),
    [
        ({TOY_1: ADAS}, TOY_1, ""),
        ({"toy.ipynb.txt": ADAS, "notes.txt": b"-"}, "toy.ipynb.txt", ""),
        ({"toy.ipynb.json": ADAS}, "toy.ipynb.json", ""),
        ({"work.json": ADAS}, "work.json", ""),
        ({"a.ipynb": ADAS, TOY: ADAS}, "a.ipynb", ""),
        ({TOY: BLANK, TOY_1: ADAS}, "", "toy.ipynb, toy (1)"),
        ({FIRST: BLANK, LAST: ADAS}, LAST, f"{LAST} came last and is taken, not {FIRST}"),
        ({FIRST: ADAS, LAST: BLANK}, "", f"several files are {TOY}, keep one of: {FIRST}, {LAST}"),
        (dict(zip(IN_ZIP, (BLANK, ADAS), strict=True)), "", f"several files are {TOY}, keep one"),
        ({TOY: b""}, "", "no notebook of toy among: toy.ipynb (empty)"),
        ({TOY: b'{"cells": ['}, TOY, ""),
        ({"homework.ipynb": NAMELESS}, "homework.ipynb", ""),
        ({"x.ipynb": NAMELESS, TOY: BLANK}, "", "keep one of:"),
        ({COPY: b'{"cells": []}', TOY: ADAS}, TOY, f"{COPY} has no cells of toy and is left"),
        ({TOY: b"other"}, "", "no notebook of toy among: toy.ipynb"),
    ],
)
def test_right_notebook_of_a_hand_in_is_chosen(handed_out, tmp_path, files, chosen, note):
    notebooks = {
        BLANK: handed_out.released("toy").read_bytes(),
        ADAS: work(handed_out),
        b"other": work(handed_out).replace(b"toy-", b"other-"),
        NAMELESS: work(handed_out).replace(b'"nbgrader": ', b'"dropped": '),
    }
    prefix = "" if "_70_" in min(files) else "ada/"
    files = {prefix + name: notebooks.get(content, content) for name, content in files.items()}
    file = pack(tmp_path / "all.zip", files)
    [parcel] = collect.sort(file, class_members(handed_out))[0].values()
    taken, why = collect.choose(handed_out, "toy", parcel)
    assert taken == ({TOY: prefix + chosen} if chosen else {})
    assert note in why.replace("ada/", "") if note else why == ""


def test_name_pairs_are_parsed_or_refused():
    assert collect.pairs(["A=1", "B=1, B C=2;"]) == {"A": "1", "B": "1", "B C": "2"}
    assert collect.pairs(["Al, Dora=d, Z=z"]) == {"Al, Dora": "d", "Z": "z"}
    for text in ("A", "A=1 B=2"):
        with pytest.raises(ToolError, match="is no pair"):
            collect.pairs([text])


# --- when it came

UNKNOWN_MOMENTS = (
    *("-", "31 February 2027, 10:00", "Tuesday, 2 March 2027, 11:59 p.m.", "2/3/2027, 11:59"),
    *("2 March 2027, 下午 11:59", "2 Marvember 2027, 11:59", b"2027-03-02 12:00 pm", b"\xff", b""),
    "2 listopad 2027, 11:59",  # October in Croatian, November in Czech
    b"2027-07-02 12:00 CET",  # when it was CEST
    b"2027-03-02 12:00:00 UTC\n2027-03-03 12:00:00 UTC\n",
    *(b"1772366400", b"02.03.2027 12:00", b"yesterday, honestly"),
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Tuesday, 2 March 2027, 11:59 PM", "2027-03-02 23:59"),
        ("Tuesday, March 2, 2027, 12:05 AM", "2027-03-02 00:05"),
        ("Dienstag, 2. März 2027, 23:59", "2027-03-02 23:59"),
        ("mardi 2 juillet 2027, 23:59", "2027-07-02 23:59"),
        ("martes, 2 de junio de 2027, 08:00", "2027-06-02 08:00"),
        ("2027-03-02 23:59", "2027-03-02 23:59"),
        ("maanantai, 2. marraskuuta 2026, 23.59", "2026-11-02 23:59"),
        ("terça-feira, 2 de março de 2027, 23:59", "2027-03-02 23:59"),
        (b"2027-03-02 12:00:00.5 UTC", "2027-03-02 12:00"),  # nbgrader's
        ("\ufeff2027-03-02 12:00:00 UTC\r\n".encode(), "2027-03-02 12:00"),
        ("2027-03-02 12:00:00 UTC".encode("utf-16"), "2027-03-02 12:00"),  # PowerShell's
        (b"2027-03-02T12:00:00+01:00", "2027-03-02 11:00"),
        (b"2027-03-02 12:00 CET", "2027-03-02 11:00"),
        *((text, None) for text in UNKNOWN_MOMENTS),
    ],
)
def test_moment_of_worksheet_or_file_is_known(tmp_path, text, moment):
    if isinstance(text, bytes):  # in a file, in UTC
        (tmp_path / "timestamp.txt").write_bytes(text)
        parsed = gradebox.moments.read(tmp_path / "timestamp.txt")
    elif parsed := layouts.moment(text):  # in the worksheet, in the time of this machine
        parsed = parsed.replace(tzinfo=UTC).astimezone()
    assert (parsed and f"{parsed:%Y-%m-%d %H:%M}") == moment


# --- what fails


def test_collection_that_fails_enters_nothing(course, monkeypatch):
    file = pack(course.root / "all.zip", {"lovelaceada_70_1_toy.ipynb": work(course)})
    play(course, "$ collect toy all.zip\n1 new\n")
    before = lies_there(course)
    file.write_bytes(file.read_bytes()[:-60])
    play(course, "$! collect toy all.zip\ncannot be read as a zip: …; nothing was entered\n")

    # the disk fails when half of the folders have been moved
    moved = collect._move

    def breaks(source, target, moved_back):
        if source.name == "ada":  # when ben's is there and ada's old work gone
            raise OSError("disk full")
        moved(source, target, moved_back)

    monkeypatch.setattr(collect, "_move", breaks)
    second = {"lovelaceada_70_2_toy.ipynb": 4, "onevisben_71_3_toy.ipynb": 5}
    pack(file, {name: work(course, number) for name, number in second.items()})
    with pytest.raises(OSError, match="disk full"):
        use(collect, course, "toy", str(file))
    assert lies_there(course) == before
    assert (course.submitted / "ada" / "toy" / TOY).read_bytes() == work(course)
    known = {"platform": "Canvas", "names": {"toy": "lovelaceada_70_1_"}, "late": False}
    assert students.state(course).collected["toy"]["ada"] == known | {"attachment": 1}
