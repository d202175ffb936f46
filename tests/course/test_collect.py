"""Work comes from a learning platform in its zips, and goes back in its files."""

import contextlib
import csv
import io
import re
import shutil
import zipfile
from datetime import UTC, datetime

import pytest
from toy_course import answered, hand_in, make_course, rows, use

import gradebox.moments
from tools.classroom import (
    collect,
    feedback,
    grade,
    grades,
    layouts,
    release,
    results,
    roster,
    students,
)
from tools.classroom.backend import Backend
from tools.classroom.students import class_members
from tools.layout import Course
from tools.terminal import ToolError

NAMES = {
    "ada": ("Ada", "Lovelace"),
    "ben": ("Ben", "O'Nevis"),
    "cleo": ("Cléo", "van der Berg"),
    "dora": ("Dora", "Al-Sayed"),
}
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (4711),Final Score\r\n"
    "    Points Possible,,,,,10.00,(read only)\r\n"
    + "".join(
        f'"{last}, {first}",{number},,{who},ML,,\r\n'
        for number, (who, (first, last)) in enumerate(NAMES.items(), 70)
    )
)
"""A gradebook as Canvas exports it: ada is number 70."""
TIMES = ("Tuesday, 2 March 2027, 11:59 PM", "Wednesday, 3 March 2027, 12:05 AM", "-", "-")
WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    + "".join(
        f"Participant {number},{first} {last},{who}@example.org,Submitted - ,,10.00,Yes,"
        f'"{when}","Friday, 5 March 2027, 9:00 AM",  two spaces \r\n'
        for number, (who, (first, last)), when in zip(
            range(500, 504), NAMES.items(), TIMES, strict=True
        )
    )
)


def pack(file, contents):
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file


def zipped(name, content):
    return pack(io.BytesIO(), {name: content}).getvalue()


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """Return a course with a class list and an assignment that is handed out."""
    made = make_course(tmp_path_factory.mktemp("class"), "toy", "two")
    (made.root / "canvas.csv").write_bytes(CANVAS.encode())
    use(roster, made, str(made.root / "canvas.csv"), "--yes")
    release.write(made, "toy")
    return made


@pytest.fixture
def course(handed_out, tmp_path):
    return Course(shutil.copytree(handed_out.root, tmp_path / "course"))


def take(course, contents, *options, sheet="", status=0):
    """Take in a zip and a worksheet; return what is printed."""
    file, worksheet = pack(course.root / "all.zip", contents), course.root / "worksheet.csv"
    worksheet.write_text(sheet, encoding="utf-8-sig")
    times = ["--sheet", str(worksheet)] if sheet else []
    with contextlib.redirect_stdout(io.StringIO()) as output:
        assert use(collect, course, "toy", str(file), *times, *options) == status
    return output.getvalue()


def work(course, number=2):
    return answered(course.released("toy"), f"{number} * x", "3 * x")


def lies_there(course):
    return {
        who: sorted(path.name for path in (course.submitted / who / "toy").iterdir())
        for who in course.submitters("toy")
    }


def test_moodle_zip_is_collected_with_times_and_feedback(course):
    ada, ben, dora = (
        f"{sender}_assignsubmission_file/"
        for sender in ("Lovelace Ada_500", "Ben ONevis_501", "Dora Alsaid_504")
    )
    output = take(
        course,
        {
            ada + "homework.ipynb": work(course),
            ada + "timestamp.txt": b"1999-01-01 00:00:00 UTC",
            ben + "hand in.zip": zipped("a/toy.ipynb", work(course, 3)),
            "Cléo van der Berg_502_assignsubmission_file_toy (1).ipynb": work(course, 4),
            "Dora Al-Sayed_503_assignsubmission_onlinetext/onlinetext.html": b"<p>",
            dora + "toy.ipynb": work(course, 5),
            f"__MACOSX/{ben}._toy.ipynb": b"",
            "whose.ipynb": work(course),
        },
    )
    assert re.search(r"^ whose\.ipynb +the name of the file tells no student", output, re.M)
    assert re.search(r"^ Dora Alsaid 504 +nearest: dora \(Dora Al-Sayed\)", output, re.M)
    assert re.search(r"^ dora \(Dora Al-Sayed\) +handed in no file", output, re.M)
    assert "Time unknown: ada (Ada Lovelace), ben (Ben O'Nevis), cleo (" in output
    assert "No work from" not in output  # dora's lies in the zip
    # what a student calls a time is none
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben", "cleo")}

    # the worksheet tells the times, the teacher who somebody is; work that was there is kept
    second = {ben + "toy.ipynb": work(course, 6), dora + "toy.ipynb": work(course, 5)}
    who = ("--who", "Nobody=ada, 504=Dora Al-Sayed")
    take(course, second, *who, sheet=WORKSHEET)
    told = gradebox.moments.read(course.submitted / "ben" / "toy" / "timestamp.txt")
    assert told.replace(tzinfo=UTC) == datetime(2027, 3, 3, 0, 5).astimezone()
    assert lies_there(course)["dora"] == ["toy.ipynb"]
    [kept] = course.build.glob("class/replaced/*/ben/toy/toy.ipynb")
    assert kept.read_bytes() == work(course, 3)

    # the same work with another time is not replaced
    later, older = (WORKSHEET.replace("12:05 AM", time) for time in ("12:06 AM", "12:04 AM"))
    assert "toy: 1 time now known, 1 as before." in take(course, second, *who, sheet=later)
    assert len([*course.build.glob("class/replaced/*")]) == 1

    # pages go back in folders whose names Moodle breaks up: name, number, plugin, its kind
    folders = {who: course.feedback / who / "toy" for who in ("ada", "ben")}
    for who_, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "toy.html").write_text(who_)
    assert feedback.pack(course, "toy", "Moodle", folders) == ["ada", "ben"]
    with zipfile.ZipFile(course.feedback / "toy-moodle.zip") as archive:
        pages = {name.split("_", 4)[1]: archive.read(name).decode() for name in archive.namelist()}
        assert all(re.search("_assignsubmission_file_/", name) for name in archive.namelist())
    assert pages == {"500": "ada", "501": "ben"}

    # an older zip does not replace work that came later
    assert "1 later work kept" in take(course, {ben + "toy.ipynb": work(course, 7)}, sheet=older)
    assert "Handed in toy: 1 as before." in take(course, {ben + "toy.ipynb": work(course, 6)})
    assert (course.submitted / "ben" / "toy" / "toy.ipynb").read_bytes() == work(course, 6)

    # the zips of make submit say by their names whose they are
    parcel = zipped("toy/toy.ipynb", work(course, 9))
    assert "2 replaced" in take(course, {"ada-toy.zip": parcel, "older/DORA-toy.zip": parcel})


GROUPS = {
    "Group 1-Ada Lovelace_500": "ada",
    "Team-Ben O'Nevis_501": "ben",
    "Participant_502": "cleo",
    "Participant_504": "",
    "Participant_505": "",
}


def test_participant_numbers_are_resolved_by_the_worksheet(course):
    teams = {f"{name}_assignsubmission_file_/toy.ipynb": work(course) for name in GROUPS}
    take(course, teams, status=1)
    assert lies_there(course) == {}
    blind = re.sub("(?<=[0-9r]),.*?,.*?,", ",", WORKSHEET)
    with pytest.raises(ToolError, match="numbers and no names, for the marking is blind"):
        take(course, teams, sheet=blind)
    output = take(course, teams, sheet=WORKSHEET)
    assert lies_there(course).keys() == {*filter(None, GROUPS.values())}
    assert all(re.search(f"^ Participant {number} ", output, re.M) for number in (504, 505))


BLANK, ADAS = b"blank", b"Ada's"
FIRST, LAST = "a_70_11_toy.ipynb", "a_70_12_toy (1).ipynb"
CHOICES = {
    "a number": ({"toy (1).ipynb": ADAS}, "toy (1).ipynb", ""),
    "as text": ({"toy.ipynb.txt": ADAS, "notes.txt": b"-"}, "toy.ipynb.txt", ""),
    "as JSON": ({"toy.ipynb.json": ADAS}, "toy.ipynb.json", ""),
    "JSON": ({"work.json": ADAS}, "work.json", ""),
    "the same twice": ({"a.ipynb": ADAS, "toy.ipynb": ADAS}, "a.ipynb", ""),
    "two of one folder": ({"toy.ipynb": BLANK, "toy (1).ipynb": ADAS}, "", "toy.ipynb, toy (1)"),
    "attachments": (
        {FIRST: BLANK, LAST: ADAS},
        LAST,
        f"{LAST} came last and is taken, not {FIRST}",
    ),
    "a blank attachment comes last": (
        {FIRST: ADAS, LAST: BLANK},
        *("", f"several files are toy.ipynb, keep one of: {FIRST}, {LAST}"),
    ),
    "two in one attachment": (
        {"a_70_11_all.zip/toy.ipynb": BLANK, "a_70_11_all.zip/toy2.ipynb": ADAS},
        *("", "several files are toy.ipynb, keep one of:"),
    ),
    "empty": ({"toy.ipynb": b""}, "", "no notebook of toy among: toy.ipynb (empty)"),
    "broken": ({"toy.ipynb": b'{"cells": ['}, "toy.ipynb", ""),
    "without nbgrader's names": ({"homework.ipynb": b"nameless"}, "homework.ipynb", ""),
    "nameless and blank": ({"x.ipynb": b"nameless", "toy.ipynb": BLANK}, "", "keep one of:"),
    "an unknown copy": (
        {"toy-Copy1.ipynb": b'{"cells": []}', "toy.ipynb": ADAS},
        *("toy.ipynb", "toy-Copy1.ipynb has no cells of toy and is left"),
    ),
    "of another assignment": ({"toy.ipynb": b"other"}, "", "no notebook of toy among: toy.ipynb"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_right_notebook_of_a_hand_in_is_chosen(handed_out, tmp_path, case):
    names, chosen, note = CHOICES[case]
    notebooks = {
        BLANK: handed_out.released("toy").read_bytes(),
        ADAS: work(handed_out),
        b"other": work(handed_out).replace(b"toy-", b"other-"),
        b"nameless": work(handed_out).replace(b'"nbgrader": ', b'"dropped": '),
    }
    prefix = "" if "attachment" in case else "ada/"
    files = {prefix + name: notebooks.get(content, content) for name, content in names.items()}
    file = pack(tmp_path / "all.zip", files)
    [parcel] = collect.sort(file, class_members(handed_out))[0].values()
    taken, why = collect.choose(handed_out, "toy", parcel)
    assert taken == ({"toy.ipynb": prefix + chosen} if chosen else {})
    assert note in why.replace("ada/", "") if note else why == ""


def test_name_pairs_are_parsed_or_refused():
    assert collect.pairs(["A=1", "B=1, B C=2;"]) == {"A": "1", "B": "1", "B C": "2"}
    assert collect.pairs(["Al, Dora=d, Z=z"]) == {"Al, Dora": "d", "Z": "z"}
    for text in ("A", "A=1 B=2"):
        with pytest.raises(ToolError, match="is no pair"):
            collect.pairs([text])


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
        ("-", None),
        ("31 February 2027, 10:00", None),
        ("Tuesday, 2 March 2027, 11:59 p.m.", None),
        ("2 March 2027, 下午 11:59", None),
        ("2 Marvember 2027, 11:59", None),
        ("2 listopad 2027, 11:59", None),  # October in Croatian, November in Czech
        ("2/3/2027, 11:59", None),
        (b"2027-03-02 12:00:00.5 UTC", "2027-03-02 12:00"),  # nbgrader's
        ("\ufeff2027-03-02 12:00:00 UTC\r\n".encode(), "2027-03-02 12:00"),
        ("2027-03-02 12:00:00 UTC".encode("utf-16"), "2027-03-02 12:00"),  # PowerShell's
        (b"2027-03-02T12:00:00+01:00", "2027-03-02 11:00"),
        (b"2027-03-02 12:00 CET", "2027-03-02 11:00"),
        (b"2027-07-02 12:00 CET", None),  # when it was CEST
        (b"2027-03-02 12:00:00 UTC\n2027-03-03 12:00:00 UTC\n", None),
        (b"1772366400", None),
        (b"02.03.2027 12:00", None),
        (b"2027-03-02 12:00 pm", None),
        (b"yesterday, honestly", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_moment_of_worksheet_or_file_is_known(tmp_path, text, moment):
    if isinstance(text, bytes):  # in a file, in UTC
        (tmp_path / "timestamp.txt").write_bytes(text)
        parsed = gradebox.moments.read(tmp_path / "timestamp.txt")
    elif parsed := layouts.moment(text):  # in the worksheet, in the time of this machine
        parsed = parsed.replace(tzinfo=UTC).astimezone()
    assert (parsed and f"{parsed:%Y-%m-%d %H:%M}") == moment


def test_collection_that_fails_enters_nothing(course, monkeypatch):
    take(course, {"lovelaceada_70_1_toy.ipynb": work(course)})
    before, there = lies_there(course), work(course)
    second = {"lovelaceada_70_2_toy.ipynb": work(course, 4)}
    file = pack(course.root / "half.zip", second)
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ToolError, match=r"cannot be read as a zip: .*; nothing was entered"):
        use(collect, course, "toy", str(file))

    # the disk fails when half of the folders have been moved
    moved = collect._move

    def breaks(source, target, moved_back):
        if source.name == "ada":  # when ben's is there and ada's old work gone
            raise OSError("disk full")
        moved(source, target, moved_back)

    monkeypatch.setattr(collect, "_move", breaks)
    with pytest.raises(OSError, match="disk full"):
        take(course, second | {"onevisben_71_3_toy.ipynb": work(course, 5)})
    assert lies_there(course) == before
    assert (course.submitted / "ada" / "toy" / "toy.ipynb").read_bytes() == there
    known = {"platform": "Canvas", "names": {"toy": "lovelaceada_70_1_"}, "late": False}
    assert students.state(course).collected["toy"]["ada"] == known | {"attachment": 1}


def late(course):
    """Return how late work came, in hours or in words."""
    return {who: row.time or row.hours_late for who, row in rows(course).items()}


@pytest.fixture(scope="module")
def canvas(handed_out, tmp_path_factory):
    """Return the course with what came in a zip of Canvas's, graded, and what grading printed."""
    course = Course(shutil.copytree(handed_out.root, tmp_path_factory.mktemp("canvas") / "course"))
    release.record(course, "toy", datetime(2027, 3, 1, 12))
    output = take(
        course,
        {
            "countess_70_801_toy.ipynb": work(course),
            "onevisben_LATE_71_802_toy-1.ipynb": work(course, 5),
            "vanderbergcléo_72_803_hand_in_2.zip": zipped("toy.ipynb", work(course)),
            "alsayeddora_73_804_broken.zip": b"PK no zip",
            "alsayeddora_73_text.html": b"<p>done</p>",
            "anon_Xy12_9_toy.ipynb": work(course),
            "studenttest_79_806_toy.ipynb": work(course),
        },
    )
    assert "Late, as the platform says: ben" in output
    assert "no notebook of toy among: alsayeddora_73_804_broken.zip," in output
    assert re.search(r"^ anon Xy12 +Canvas hides the names", output, re.M)
    assert re.search(r"^ studenttest 79 +Canvas's test student", output, re.M)
    hand_in(course, "cleo", timestamp="2027-03-01 18:00")
    folder = hand_in(course, "zed", toy=work(course))  # who is not on the list
    (folder.parent / "toy (1).ipynb").write_bytes(work(course))
    with contextlib.redirect_stdout(io.StringIO()) as told:
        assert use(grade, course, "toy") == 0
    return course, told.getvalue()


def test_late_and_unknown_work_is_named_and_extended(canvas, tmp_path, printed):
    course, output = Course(shutil.copytree(canvas[0].root, tmp_path / "course")), canvas[1]
    everyone = results.rows(course, ["toy"], everybody=True)
    unknown = dict.fromkeys(("ada", "zed"), "time unknown")
    assert late(course) == unknown | {"ben": "late, as Canvas says", "cleo": 6}
    assert [row.student for row in everyone if not row.graded] == ["dora"]
    assert [row.student for row in everyone if not row.is_listed] == ["zed"]
    assert "Not on the class list: zed (nearest: nobody)" in output
    assert "outside of zed/toy/: build/submitted/zed/toy (1).ipynb" in output
    assert re.search("The same toy.ipynb, byte for byte: ada.*, cleo.*, zed", output)
    assert re.search(r"^ ?toy +4 of 5 +\S+ +2 \(2 unknown\)", output, re.M)

    # more time, also for who has handed in nothing yet
    def extend(student, until):
        use(release, course, "toy", "--student", student, "--due", until)

    with pytest.raises(ToolError, match="2027-03-01 10:00 is not after the deadline"):
        extend("cleo", "2027-03-01 10:00")
    extend("Cléo van der Berg", "2027-03-01 17:59")
    extend("dora", "2027-03-09 12:00")
    extend("ben", "2027-03-09 12:00")
    extend("71", "none")
    assert use(grade, course, "toy") == 0
    assert "Graded 1, unchanged 3" in printed()
    assert late(course)["cleo"] == 0.1
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").total_seconds_late == 60

    # other work takes the place of cleo's: its time is not that of the first
    output = take(course, {"vanderbergcléo_72_805_toy.ipynb": work(course, 7)})
    assert "Time unknown: cleo (Cléo van der Berg)" in output
    assert "Replaced: cleo (Cléo van der Berg)\n" in output
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").timestamp is None
    # the numbers of Canvas's files tell which zip is older
    assert "1 later work kept" in take(course, {"vanderbergcléo_72_804_toy.ipynb": work(course, 8)})


def test_grades_and_pages_go_back_to_the_platform(canvas, printed):
    course = canvas[0]

    def filled(name, content, *options):
        """Return a platform's file with grades in it."""
        (course.root / name).write_bytes(content.encode())
        use(grades, course, "toy", "--into", str(course.root / name), *options)
        return (course.build / f"grades-{name}").read_bytes().decode()

    # points, into Canvas's own file; everyone is in it, and all else in it is as it was
    export = CANVAS.replace(",dora,ML,,", ",dora,ML,4,")
    column = ("--column", "Homework 1 (4711)")
    with pytest.raises(ToolError, match=r"its titles are Homework 1 \(4711\)"):
        filled("canvas.csv", export)
    expected = export
    for who, points in {"ada": "6", "ben": "3", "cleo": "6"}.items():
        expected = expected.replace(f",{who},ML,", f",{who},ML,{points}")
    assert filled("canvas.csv", export, *column) == expected
    assert "Not on the class list, and left out: zed" in printed()

    # what is no number stays, nobody's row is filled, and two titles that fit are asked about
    excused = export.replace(",ada,ML,", ",ada,ML,EX").replace(",ben,ML,", ",ben,ML,N/A")
    excused += '"Berg, Cléo van der",99,,cberg,ML,,\r\n"Student, Test",98,,f00,ML,,\r\n'
    expected = excused.replace(",cleo,ML,", ",cleo,ML,6")
    assert filled("canvas.csv", excused, *column) == expected
    output = printed()
    assert "Left as they were: ada (Ada Lovelace): EX, ben (Ben O'Nevis): N/A\n" in output
    line = r"^Left blank.*: line 7, Cléo van der Berg 99: has the name of cleo"
    assert re.search(line, output, re.M)
    both = export.replace("Homework 1", "Toy").replace("Final Score", "Two (4712)")
    (course.root / "both.csv").write_text(both)
    use(grades, course, "--into", str(course.root / "both.csv"))
    assert "Filled: toy: Toy (4711)\n" in printed()  # and nothing of two has been graded
    two = export.replace("Final Score", "Toy again (4713)").replace("Home", "Toy ")
    with pytest.raises(ToolError, match=r"titles Toy work 1 \(4711\) and Toy again \(4713\)"):
        filled("canvas.csv", two)

    # and into Moodle's worksheet, where there are more points, or a scale
    scale = WORKSHEET.replace(",10.00,", ',"Poor, Fair, Good",')
    for english, word in (
        *(("", ""), ("Identifier", "Tunniste"), (",Grade,", ",Arvosana,"), ("(submission)", "")),
    ):
        scale = scale.replace(english, word) if english else scale
        arvosana = ("--column", "Arvosana") if "Arvosana" in scale else ()
        with pytest.raises(ToolError, match=r"takes no points: .* of a scale, Poor, Fair, Good"):
            filled("sheet.csv", scale, *arvosana)
    more = WORKSHEET.replace(",10.00,", ',"99,00",')
    with pytest.raises(ToolError, match="Grade has 99 points there, toy has 10 here"):
        filled("sheet.csv", more)
    made = filled("sheet.csv", more, "--scale")
    with pytest.raises(ToolError, match="--column 'Homework 1 \\(4711\\)' --scale"):
        filled("canvas.csv", export.replace("10.00", "99.00"), *column)
    given = [line["Grade"] for line in csv.DictReader(io.StringIO(made))]
    assert given == ["59,4", "29,7", "59,4", ""]
    assert made.count("two spaces") == made.count(",  two spaces ") == 4

    # without a file of the platform's, everyone on the list has a line
    use(grades, course)
    lines = (course.build / "grades.csv").read_text("utf-8-sig").splitlines()
    assert lines[0] == "id,first_name,last_name,email,lms_user_id,toy"
    assert sorted(lines[1:]) == [
        "ada,Ada,Lovelace,,70,6",
        "ben,Ben,O'Nevis,,71,3",
        "cleo,Cléo,van der Berg,,72,6",
        "dora,Dora,Al-Sayed,,73,",
    ]

    # pages, under the names that Canvas knows again
    printed()
    use(feedback, course, "toy")
    output = printed()
    assert re.search(r"^ zed +build/feedback/zed/toy", output, re.M)
    assert "released:" not in output  # none came through the exchange
    hand_in(course, "dora")
    with Backend(course).gradebook() as book:
        book.find_grade("toy-why", "toy", "toy", "ada").needs_manual_grade = True
        book.db.commit()
    use(feedback, course, "toy")
    output = printed()
    assert re.search("^Written answers still to be read: ada[^,]*$", output, re.M)
    assert re.search("^Handed in, and not graded: dora[^,]*$", output, re.M)
    with zipfile.ZipFile(course.feedback / "toy-canvas.zip") as archive:
        assert sorted(archive.namelist()) == [
            "countess_70_801_toy.html",
            "onevisben_LATE_71_802_toy.html",
            "vanderbergcléo_72_803_toy.html",
        ]
        page = archive.read("countess_70_801_toy.html")
    assert page == (course.feedback / "ada" / "toy" / "toy.html").read_bytes()
