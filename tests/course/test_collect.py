"""Work comes from a learning platform in its zips, and goes back in its files."""

import contextlib
import csv
import io
import re
import shutil
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from toy_course import MARKS, answered, make_course, use

import gradebox.moments
from tools.classroom import (
    class_state,
    collect,
    extend,
    feedback,
    grade,
    grades,
    moments,
    release,
    results,
    roster,
)
from tools.classroom.backend import Backend
from tools.classroom.class_state import HandIn
from tools.classroom.student_matching import class_members
from tools.layout import Course
from tools.terminal import ToolError

pytestmark = MARKS

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
WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    + "".join(
        f"Participant {number},{first} {last},{who}@example.org,Submitted - ,,{{}},Yes,"
        f'"{when}","Friday, 5 March 2027, 9:00 AM",  two spaces \r\n'
        for number, (who, (first, last)), when in zip(
            range(500, 504),
            NAMES.items(),
            ["Tuesday, 2 March 2027, 11:59 PM", "Wednesday, 3 March 2027, 12:05 AM", "-", "-"],
            strict=True,
        )
    )
)


def pack(file: Path, contents: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Return a course with a class list and an assignment that is handed out."""
    root = tmp_path_factory.mktemp("class")
    (root / "canvas.csv").write_bytes(CANVAS.encode())
    made = make_course(root)
    use(roster, made, str(root / "canvas.csv"), "--yes")
    release.write(made, "toy")
    return made


@pytest.fixture
def course(handed_out: Course, tmp_path: Path) -> Course:
    """Return a copy of the course."""
    shutil.copytree(handed_out.root, tmp_path / "course")
    return Course(tmp_path / "course")


def work(course: Course, number: int = 2) -> bytes:
    return answered(course.released("toy"), f"{number} * x", "3 * x")


def lies_there(course: Course) -> dict[str, list[str]]:
    return {
        who: sorted(path.name for path in (course.submitted / who / "toy").iterdir())
        for who in course.submitters("toy")
    }


def test_a_zip_of_moodle(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = "{}_{}_assignsubmission_file/"
    file = pack(
        tmp_path / "moodle.zip",
        {
            folder.format("Lovelace Ada", 500) + "homework.ipynb": work(course),
            folder.format("Lovelace Ada", 500) + "timestamp.txt": b"1999-01-01 00:00:00 UTC",
            folder.format("Ben ONevis", 501) + "hand in.zip": zipped(
                "a/toy.ipynb", work(course, 3)
            ),
            "Cléo van der Berg_502_assignsubmission_file_toy (1).ipynb": work(course, 4),
            "Dora Al-Sayed_503_assignsubmission_onlinetext/onlinetext.html": b"<p>",
            folder.format("Dora Alsaid", 504) + "toy.ipynb": work(course, 5),
            "__MACOSX/" + folder.format("Ben ONevis", 501) + "._toy.ipynb": b"",
        },
    )
    assert use(collect, course, "toy", str(file)) == 0
    output = capsys.readouterr().out
    assert re.search(r"^ Dora Alsaid 504 +nearest: dora \(Dora Al-Sayed\)", output, re.M)
    assert re.search(r"^ dora \(Dora Al-Sayed\) +no notebook of toy among: no file", output, re.M)
    assert "Time unknown: ada (Ada Lovelace), ben (Ben O'Nevis), cleo (" in output
    assert "Nothing handed in by" not in output  # dora's lies in the zip
    # what a student calls a time is none
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben", "cleo")}

    # the worksheet tells the times, the teacher who somebody is; work that was there is kept
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(WORKSHEET.replace("{}", "10.00"), encoding="utf-8-sig")
    second = folder.format("Ben ONevis", 501) + "toy.ipynb"
    third = folder.format("Dora Alsaid", 504) + "toy.ipynb"
    pack(file, {second: work(course, 6), third: work(course, 5)})
    arguments = (str(file), "--sheet", str(sheet), "--who", "Nobody=ada, 504=Dora Al-Sayed")
    assert use(collect, course, "toy", *arguments) == 0
    moment = datetime(2027, 3, 3, 0, 5).astimezone().timestamp()
    told = (course.submitted / "ben" / "toy" / "timestamp.txt").read_text()
    assert datetime.fromisoformat(told.strip().replace(" UTC", "+00:00")).timestamp() == moment
    assert lies_there(course)["dora"] == ["toy.ipynb"]
    [kept] = course.build.glob("class/replaced/*/ben/toy/toy.ipynb")
    assert kept.read_bytes() == work(course, 3)

    # the same work with another time is not replaced
    sheet.write_text(WORKSHEET.replace("12:05 AM", "12:06 AM").replace("{}", "10.00"), "utf-8")
    capsys.readouterr()
    assert use(collect, course, "toy", *arguments) == 0
    assert "Handed in toy: 1 time now known, 1 as before." in capsys.readouterr().out
    assert len([*course.build.glob("class/replaced/*")]) == 1

    # pages go back in folders whose names Moodle breaks up: name, number, plugin, its kind
    for who in ("ada", "ben"):
        (course.feedback / who / "toy").mkdir(parents=True)
        (course.feedback / who / "toy" / "toy.html").write_text(who)
    feedback.pack(course, "toy", {who: course.feedback / who / "toy" for who in ("ada", "ben")})
    with zipfile.ZipFile(course.feedback / "toy-moodle.zip") as archive:
        pages = {name.split("_", 4)[1]: archive.read(name).decode() for name in archive.namelist()}
        assert all(re.search("_assignsubmission_file_/", name) for name in archive.namelist())
    assert pages == {"500": "ada", "501": "ben"}

    # an older zip does not replace work that came later
    older = WORKSHEET.replace("12:05 AM", "12:04 AM").replace("{}", "10.00")
    sheet.write_text(older, encoding="utf-8")
    capsys.readouterr()
    pack(file, {second: work(course, 7)})
    use(collect, course, "toy", str(file), "--sheet", str(sheet))
    assert "1 later work kept" in capsys.readouterr().out
    pack(file, {second: work(course, 6)})
    use(collect, course, "toy", str(file))
    assert "Handed in toy: 1 as before." in capsys.readouterr().out
    assert (course.submitted / "ben" / "toy" / "toy.ipynb").read_bytes() == work(course, 6)


def test_zips_of_make_submit_that_came_by_mail(course: Course, tmp_path: Path) -> None:
    parcel = zipped("toy/toy.ipynb", work(course))
    file = pack(tmp_path / "mails.zip", {"ada-toy.zip": parcel, "older/BEN-toy.zip": parcel})
    assert use(collect, course, "toy", str(file)) == 0
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben")}


GROUPS = {
    "Group 1-Ada Lovelace_500_assignsubmission_file_/": "ada",
    "Team-Ben O'Nevis_501_assignsubmission_file_/": "ben",
    "Participant_502_assignsubmission_file_/": "cleo",
    "Participant_504_assignsubmission_file_/": "",
    "Participant_505_assignsubmission_file_/": "",
}


def test_numbers_of_the_worksheet_tell_who_is_who(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pack(tmp_path / "teams.zip", {name + "toy.ipynb": work(course) for name in GROUPS})
    assert use(collect, course, "toy", str(file)) == 1
    assert lies_there(course) == {}
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(re.sub("(?<=[0-9r]),.*?,.*?,", ",", WORKSHEET.replace("{}", "10.00")))
    with pytest.raises(ToolError, match="numbers and no names, for the marking is blind"):
        use(collect, course, "toy", str(file), "--sheet", str(sheet))
    sheet.write_text(WORKSHEET.replace("{}", "10.00"))
    capsys.readouterr()
    assert use(collect, course, "toy", str(file), "--sheet", str(sheet)) == 0
    assert lies_there(course).keys() == {*filter(None, GROUPS.values())}
    output = capsys.readouterr().out
    assert all(re.search(f"^ Participant {number} ", output, re.M) for number in (504, 505))


BLANK, ADAS = b"blank", b"Ada's"
CHOICES = {
    "a number": ({"toy (1).ipynb": ADAS}, "toy (1).ipynb", ""),
    "as text": ({"toy.ipynb.txt": ADAS, "notes.txt": b"-"}, "toy.ipynb.txt", ""),
    "as JSON": ({"toy.ipynb.json": ADAS}, "toy.ipynb.json", ""),
    "JSON": ({"work.json": ADAS}, "work.json", ""),
    "the same twice": ({"a.ipynb": ADAS, "toy.ipynb": ADAS}, "a.ipynb", ""),
    "two of one folder": ({"toy.ipynb": BLANK, "toy (1).ipynb": ADAS}, "", "toy.ipynb, toy (1)"),
    "two attachments": (
        {"a_70_11_toy.ipynb": BLANK, "a_70_12_toy (1).ipynb": ADAS},
        "a_70_12_toy (1).ipynb",
        "a_70_12_toy (1).ipynb came last and is taken, not a_70_11_toy.ipynb",
    ),
    "a blank attachment comes last": (
        {"a_70_11_toy (1).ipynb": ADAS, "a_70_12_toy.ipynb": BLANK},
        "",
        "several files are toy.ipynb, keep one of: a_70_11_toy (1).ipynb, a_70_12_toy.ipynb",
    ),
    "two in one attachment": (
        {"a_70_11_all.zip/toy.ipynb": BLANK, "a_70_11_all.zip/toy2.ipynb": ADAS},
        "",
        "several files are toy.ipynb, keep one of:",
    ),
    "broken": ({"toy.ipynb": b'{"cells": ['}, "toy.ipynb", ""),
    "without nbgrader's names": ({"homework.ipynb": b"nameless"}, "homework.ipynb", ""),
    "nameless and blank": ({"x.ipynb": b"nameless", "toy.ipynb": BLANK}, "", "keep one of:"),
    "an unknown copy": (
        {"toy-Copy1.ipynb": b'{"cells": []}', "toy.ipynb": ADAS},
        "toy.ipynb",
        "toy-Copy1.ipynb has no cells of toy and is left",
    ),
    "of another assignment": ({"toy.ipynb": b"other"}, "", "no notebook of toy among: toy.ipynb"),
}


@pytest.mark.parametrize("case", CHOICES)
def test_which_file_is_taken(course: Course, tmp_path: Path, case: str) -> None:
    names, chosen, note = CHOICES[case]
    notebooks = {
        BLANK: course.released("toy").read_bytes(),
        ADAS: work(course),
        b"other": work(course).replace(b"toy-", b"other-"),
        b"nameless": work(course).replace(b'"nbgrader": ', b'"dropped": '),
    }
    files = {name: notebooks.get(content, content) for name, content in names.items()}
    prefix = "" if "attachment" in case else "ada/"
    file = pack(tmp_path / "all.zip", {f"{prefix}{name}": files[name] for name in files})
    [parcel] = collect.sort(file, class_members(course))[0].values()
    taken, why = collect.choose(course, "toy", parcel)
    assert taken == ({"toy.ipynb": prefix + chosen} if chosen else {})
    assert note in why.replace("ada/", "") if note else why == ""


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("A=1", {"A": "1"}),
        ("A=1, B C=2;", {"A": "1", "B C": "2"}),
        ("Al, Dora=d, Z=z", {"Al, Dora": "d", "Z": "z"}),
        ("A", None),
        ("A=1 B=2", None),
    ],
)
def test_pairs(text: str, given: dict[str, str] | None) -> None:
    with contextlib.nullcontext() if given else pytest.raises(ToolError, match="is no pair"):
        assert collect.pairs([text]) == given


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Tuesday, 2 March 2027, 11:59 PM", (2027, 3, 2, 23, 59)),
        ("Tuesday, March 2, 2027, 12:05 AM", (2027, 3, 2, 0, 5)),
        ("Dienstag, 2. März 2027, 23:59", (2027, 3, 2, 23, 59)),
        ("mardi 2 juillet 2027, 23:59", (2027, 7, 2, 23, 59)),
        ("martes, 2 de junio de 2027, 08:00", (2027, 6, 2, 8, 0)),
        ("2027-03-02 23:59", (2027, 3, 2, 23, 59)),
        ("maanantai, 2. marraskuuta 2026, 23.59", (2026, 11, 2, 23, 59)),
        ("terça-feira, 2 de março de 2027, 23:59", (2027, 3, 2, 23, 59)),
        ("-", None),
        ("31 February 2027, 10:00", None),
        ("Tuesday, 2 March 2027, 11:59 p.m.", None),
        ("2 March 2027, 下午 11:59", None),
        ("2 Marvember 2027, 11:59", None),
        ("2 listopad 2027, 11:59", None),  # October in Croatian, November in Czech
        ("2/3/2027, 11:59", None),
    ],
)
def test_times_of_a_worksheet(text: str, moment: tuple[int, ...] | None) -> None:
    parsed = moments.in_words(text)
    local = parsed and datetime.fromisoformat(f"{parsed}+00:00").astimezone().timetuple()[:5]
    assert local == moment


@pytest.mark.parametrize(
    ("content", "hour"),
    [
        (b"2027-03-02 12:00:00.5 UTC", 12),  # nbgrader's
        ("\ufeff2027-03-02 12:00:00 UTC\r\n".encode(), 12),
        ("2027-03-02 12:00:00 UTC".encode("utf-16"), 12),  # PowerShell's
        (b"2027-03-02T12:00:00+01:00", 11),
        (b"2027-03-02 12:00 CET", 11),
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
def test_a_time_beside_the_work(tmp_path: Path, content: bytes, hour: int | None) -> None:
    (tmp_path / "timestamp.txt").write_bytes(content)
    moment = gradebox.moments.read(tmp_path / "timestamp.txt")
    assert (moment and moment.hour) == hour


def test_one_error_and_nothing_is_entered(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "{}_{}_{}_toy.ipynb"
    first = {name.format("lovelaceada", 70, 1): work(course)}
    file = pack(tmp_path / "canvas.zip", first)
    use(collect, course, "toy", str(file))
    before, there = lies_there(course), work(course)

    second = {name.format("lovelaceada", 70, 2): work(course, 4)}
    pack(file, second)
    file.write_bytes(file.read_bytes()[:-60])
    with pytest.raises(ToolError, match=r"cannot be read as a zip: .*; nothing was entered"):
        use(collect, course, "toy", str(file))

    # the disk fails when half of the folders have been moved
    pack(file, second | {name.format("onevisben", 71, 3): work(course, 5)})
    moved = collect._move

    def breaks(source: Path, target: Path, done: list[tuple[Path, Path]]) -> None:
        if source.parts[-2:] == ("arriving", "ada"):  # when ben's is there and ada's old work gone
            raise OSError("disk full")
        moved(source, target, done)

    monkeypatch.setattr(collect, "_move", breaks)
    with pytest.raises(OSError, match="disk full"):
        use(collect, course, "toy", str(file))
    assert lies_there(course) == before
    assert (course.submitted / "ada" / "toy" / "toy.ipynb").read_bytes() == there
    assert class_state.read(course).hand_in("toy", "ada") == HandIn(
        "Canvas", {"toy": "lovelaceada_70_1_"}
    )


def test_a_zip_of_canvas_up_to_grades(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release.record(course, "toy", datetime(2027, 3, 1, 12))
    file = pack(
        tmp_path / "canvas.zip",
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
    assert use(collect, course, "toy", str(file)) == 0
    output = capsys.readouterr().out
    assert "Late, as the platform says: ben" in output
    assert "no notebook of toy among: alsayeddora_73_804_broken.zip," in output
    assert re.search(r"^ anon Xy12 +", output, re.M)
    assert re.search(r"^ studenttest 79 +Canvas's test student", output, re.M)

    # cleo's time comes from the teacher, and so does more time; zed is not on the list
    use(collect, course, "toy", "--time", "Cléo van der Berg=2027-03-01 18:00")
    (course.submitted / "zed" / "toy").mkdir(parents=True)
    (course.submitted / "zed" / "toy" / "toy.ipynb").write_bytes(work(course))
    (course.submitted / "zed" / "toy (1).ipynb").write_bytes(work(course))
    assert use(grade, course, "toy") == 0
    output = capsys.readouterr().out
    rows = {row.student: row for row in results.rows(course, ["toy"], everybody=True)}
    assert {who: row.time for who, row in rows.items() if row.time} == {
        "ada": "time unknown", "ben": "late, as Canvas says", "zed": "time unknown"
    }  # fmt: skip
    assert rows["cleo"].hours_late == 6
    assert [who for who, row in rows.items() if not row.graded] == ["dora"]
    assert [who for who, row in rows.items() if not row.is_listed] == ["zed"]
    assert "Not on the class list: zed (nearest: nobody)" in output
    assert "outside of zed/toy/: build/submitted/zed/toy (1).ipynb" in output
    assert re.search("The same toy.ipynb, byte for byte: ada.*, cleo.*, zed", output)
    assert re.search(r"^ ?toy +4 of 5 +\S+ +2 \(2 unknown\)", output, re.M)
    with pytest.raises(ToolError, match="2027-03-01 10:00 is not after the deadline"):
        use(extend, course, "toy", "cleo", "2027-03-01 10:00")
    use(extend, course, "toy", "Cléo van der Berg", "2027-03-01 17:59")
    use(extend, course, "toy", "dora", "2027-03-09 12:00")  # who has handed in nothing yet
    capsys.readouterr()
    assert use(grade, course, "toy") == 0
    assert "Graded 1, unchanged 3" in capsys.readouterr().out
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").total_seconds_late == 60
    late = {row.student: row.hours_late for row in results.rows(course, ["toy"])}
    assert late["cleo"] == 0.1

    # other work takes the place of cleo's: its time is not that of the first
    pack(file, {"vanderbergcléo_72_805_toy.ipynb": work(course, 7)})
    use(collect, course, "toy", str(file))
    assert "Time unknown: cleo (Cléo van der Berg)" in capsys.readouterr().out
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").timestamp is None

    # points, into Canvas's own file; everyone is in it, and all else in it is as it was
    source = tmp_path / "canvas.csv"
    export = CANVAS.replace(",dora,ML,,", ",dora,ML,4,")
    source.write_bytes(export.encode())
    (ungraded := course.solutions / "two").mkdir()
    shutil.copy(course.source("toy"), ungraded / "two.ipynb")
    with pytest.raises(ToolError, match="nothing of two has been graded"):
        use(grades, course, "two", "--into", str(source))
    shutil.rmtree(ungraded)
    with pytest.raises(ToolError, match=r"its titles are Homework 1 \(4711\)"):
        use(grades, course, "toy", "--into", str(source))
    use(grades, course, "toy", "--into", str(source), "--column", "Homework 1 (4711)")
    filled = export
    for who, points in {",ada,ML,": "6", ",ben,ML,": "3", ",cleo,ML,": "6"}.items():
        filled = filled.replace(who, who + points)
    assert (course.build / "grades-canvas.csv").read_bytes().decode() == filled
    assert "Not on the class list, and left out: zed" in capsys.readouterr().out

    # what is no number stays, nobody's row is filled, and two titles that fit are asked about
    excused = export.replace(",ada,ML,", ",ada,ML,EX").replace(",ben,ML,", ",ben,ML,N/A")
    excused += '"Berg, Cléo van der",99,,cberg,ML,,\r\n"Student, Test",98,,f00,ML,,\r\n'
    source.write_bytes(excused.encode())
    use(grades, course, "toy", "--into", str(source), "--column", "Homework 1 (4711)")
    filled = excused.replace(",cleo,ML,", ",cleo,ML,6")
    assert (course.build / "grades-canvas.csv").read_bytes().decode() == filled
    output = capsys.readouterr().out
    assert "Left as they were: ada (Ada Lovelace): EX, ben (Ben O'Nevis): N/A\n" in output
    assert re.search(
        r"^Left blank.*: line 7, Cléo van der Berg: has the name of cleo", output, re.M
    )
    source.write_text(export.replace("Final Score", "Toy again (4713)").replace("Home", "Toy "))
    with pytest.raises(ToolError, match=r"titles Toy work 1 \(4711\) and Toy again \(4713\)"):
        use(grades, course, "toy", "--into", str(source))

    # and into Moodle's worksheet, where there are more points, or a scale
    sheet = tmp_path / "sheet.csv"
    scale = WORKSHEET.replace(",{},", ',"Poor, Fair, Good",')
    finnish = ("Identifier", "Tunniste"), (",Grade,", ",Arvosana,"), ("(submission)", "")
    for english, word in (("", ""), *finnish):
        scale = scale.replace(english, word) if english else scale
        sheet.write_text(scale)
        column = ["--column", "Arvosana"] if "Arvosana" in scale else []
        with pytest.raises(ToolError, match=r"takes no points: .* of a scale, Poor, Fair, Good"):
            use(grades, course, "toy", "--into", str(sheet), *column)
    sheet.write_bytes(WORKSHEET.replace("{}", '"99,00"').encode())
    with pytest.raises(ToolError, match="Grade has 99 points there, toy has 10 here"):
        use(grades, course, "toy", "--into", str(sheet))
    use(grades, course, "toy", "--into", str(sheet), "--scale", "--to", str(tmp_path / "to.csv"))
    made = (tmp_path / "to.csv").read_bytes().decode()
    filled_in = [line["Grade"] for line in csv.DictReader(io.StringIO(made))]
    assert filled_in == ["59,4", "29,7", "59,4", ""]
    assert made.count("two spaces") == made.count(",  two spaces ") == 4

    # without a file of the platform's, the columns are those of the class list
    use(grades, course)
    lines = (course.build / "grades.csv").read_text("utf-8").splitlines()
    assert lines[0] == "Student,ID,SIS User ID,SIS Login ID,Section,toy"
    assert lines[1] == "    Points Possible,,,,,10"
    assert lines[2] == '"Lovelace, Ada",70,,ada,ML,6'
    assert lines[5] == '"Al-Sayed, Dora",73,,dora,ML,'
    assert len(lines) == 6

    # pages, under the names that Canvas knows again
    use(feedback, course, "toy")
    output = capsys.readouterr().out
    assert re.search(r"^ zed +build/feedback/zed/toy", output, re.M)
    assert "Released" not in output  # none came through the exchange
    (course.submitted / "dora" / "toy").mkdir(parents=True)
    with Backend(course).gradebook() as book:
        book.find_grade("toy-why", "toy", "toy", "ada").needs_manual_grade = True
        book.db.commit()
    use(feedback, course, "toy")
    output = capsys.readouterr().out
    assert re.search("^Written answers still to be read: ada[^,]*$", output, re.M)
    assert re.search("^Handed in, and not graded: dora[^,]*$", output, re.M)
    with zipfile.ZipFile(course.feedback / "toy-canvas.zip") as archive:
        assert sorted(archive.namelist()) == [
            "countess_70_801_toy.html",
            "onevisben_LATE_71_802_toy.html",
            "vanderbergcléo_72_805_toy.html",
        ]
        page = archive.read("countess_70_801_toy.html")
    assert page == (course.feedback / "ada" / "toy" / "toy.html").read_bytes()
