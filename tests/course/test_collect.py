"""Work comes from a learning platform in its zips, and goes back in its files."""

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

from tools import class_state, collect, extend, feedback, grade, gradebook, grades, release, roster
from tools.backend import Backend
from tools.class_state import HandIn
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
    assert use(collect, course, "toy", str(file)) == 1
    output = capsys.readouterr().out
    assert re.search(r"^ Dora Alsaid +dora \(Dora Al-Sayed\)", output, re.M)
    assert re.search(r"^ dora +no notebook of toy among: no file", output, re.M)
    assert "Time unknown: ada, ben, cleo" in output
    # what a student calls a time is none
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben", "cleo")}

    # the worksheet tells the times, the teacher who somebody is; work that was there is kept
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(WORKSHEET.replace("{}", "10.00"), encoding="utf-8-sig")
    second = folder.format("Ben ONevis", 501) + "toy.ipynb"
    third = folder.format("Dora Alsaid", 504) + "toy.ipynb"
    pack(file, {second: work(course, 6), third: work(course, 5)})
    arguments = (str(file), "--sheet", str(sheet), "--who", "Dora Alsaid=dora")
    assert use(collect, course, "toy", *arguments) == 0
    moment = datetime(2027, 3, 3, 0, 5).astimezone().timestamp()
    told = (course.submitted / "ben" / "toy" / "timestamp.txt").read_text()
    assert datetime.fromisoformat(told.strip().replace(" UTC", "+00:00")).timestamp() == moment
    assert lies_there(course)["dora"] == ["toy.ipynb"]
    [kept] = course.build.glob("class/replaced/*/ben/toy/toy.ipynb")
    assert kept.read_bytes() == work(course, 3)

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
    file = pack(tmp_path / "mails.zip", {"ada-toy.zip": parcel, "older/ben-toy.zip": parcel})
    assert use(collect, course, "toy", str(file)) == 0
    assert lies_there(course) == {who: ["toy.ipynb"] for who in ("ada", "ben")}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Tuesday, 2 March 2027, 11:59 PM", (2027, 3, 2, 23, 59)),
        ("Tuesday, March 2, 2027, 12:05 AM", (2027, 3, 2, 0, 5)),
        ("Dienstag, 2. März 2027, 23:59", (2027, 3, 2, 23, 59)),
        ("mardi 2 juillet 2027, 23:59", (2027, 7, 2, 23, 59)),
        ("martes, 2 de junio de 2027, 08:00", (2027, 6, 2, 8, 0)),
        ("2027-03-02 23:59", (2027, 3, 2, 23, 59)),
        ("-", None),
        ("31 February 2027, 10:00", None),
    ],
)
def test_times_of_a_worksheet(text: str, moment: tuple[int, ...] | None) -> None:
    parsed = collect.parse_time(text)
    local = parsed and datetime.fromisoformat(f"{parsed}+00:00").astimezone().timetuple()[:5]
    assert local == moment


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
        },
    )
    assert use(collect, course, "toy", str(file)) == 1
    output = capsys.readouterr().out
    assert "Late, as the platform says, and the time unknown: ben" in output
    assert re.search(
        r"^ dora +no notebook of toy among: alsayeddora_73_804_broken\.zip,", output, re.M
    )
    assert re.search(r"^ anon_Xy12_9_toy\.ipynb +", output, re.M)

    # cleo's time comes from the teacher, and so does more time; zed is not on the list
    use(collect, course, "toy", "--time", "cleo=2027-03-01 18:00")
    (course.submitted / "zed" / "toy").mkdir(parents=True)
    (course.submitted / "zed" / "toy" / "toy.ipynb").write_bytes(work(course))
    assert use(grade, course, "toy") == 0
    output = capsys.readouterr().out
    for line in (
        r"ada .* time unknown",
        r"ben .* late, time unknown",
        r"cleo .* 6 h",
        r"dora +–/6",
    ):
        assert re.search(f"^ ?{line}", output, re.M), line
    assert re.search(r"^ ?zed .* not on the class list", output, re.M)
    assert "Not on the class list: zed (nearest: nobody)" in output
    assert "The same toy.ipynb, byte for byte: ada, cleo, zed" in output
    with pytest.raises(ToolError, match="2027-03-01 10:00 is not after the deadline"):
        use(extend, course, "toy", "cleo", "2027-03-01 10:00")
    use(extend, course, "toy", "cleo", "2027-03-01 20:00")
    use(extend, course, "toy", "dora", "2027-03-09 12:00")  # who has handed in nothing yet
    capsys.readouterr()
    assert use(grade, course, "toy") == 0
    assert "Graded 1, unchanged 3" in capsys.readouterr().out
    with Backend(course).gradebook() as book:
        assert book.find_submission("toy", "cleo").total_seconds_late == 0

    # other work takes the place of cleo's: its time is not that of the first
    pack(file, {"vanderbergcléo_72_805_toy.ipynb": work(course, 7)})
    use(collect, course, "toy", str(file))
    assert "Time unknown: cleo" in capsys.readouterr().out
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

    # and into Moodle's worksheet, where there are more points
    sheet = tmp_path / "sheet.csv"
    sheet.write_bytes(WORKSHEET.replace("{}", "100,00").replace(",100,00,", ',"100,00",').encode())
    with pytest.raises(ToolError, match="Grade has 100 points there, toy has 10 here"):
        use(grades, course, "toy", "--into", str(sheet))
    use(grades, course, "toy", "--into", str(sheet), "--scale", "--to", str(tmp_path / "to.csv"))
    made = (tmp_path / "to.csv").read_bytes().decode()
    assert [line["Grade"] for line in csv.DictReader(io.StringIO(made))] == ["60", "30", "60", ""]
    assert made.count("two spaces") == made.count(",  two spaces ") == 4

    # without a file of the platform's, the columns are those of the class list
    use(grades, course)
    lines = (course.build / "grades.csv").read_text("utf-8").splitlines()
    assert lines[0] == "Student,ID,SIS User ID,SIS Login ID,Section,toy"
    assert lines[1] == "    Points Possible,,,,,10"
    assert lines[2] == '"Lovelace, Ada",70,,ada,ML,6'
    assert lines[5] == '"Al-Sayed, Dora",73,,dora,ML,'
    assert len(lines) == 6
    capsys.readouterr()
    use(gradebook, course)
    assert re.search(r"^dora +0 +6 +0", capsys.readouterr().out, re.M)

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
    assert "Written answers still to be read: ada\n" in output
    assert "Handed in, and not graded: dora\n" in output
    with zipfile.ZipFile(course.feedback / "toy-canvas.zip") as archive:
        assert sorted(archive.namelist()) == [
            "countess_70_801_toy.html",
            "onevisben_LATE_71_802_toy.html",
            "vanderbergcléo_72_805_toy.html",
        ]
        page = archive.read("countess_70_801_toy.html")
    assert page == (course.feedback / "ada" / "toy" / "toy.html").read_bytes()


def test_pages_for_moodle(course: Course) -> None:
    folders = {}
    with class_state.changed(course) as known:
        for who, number in (("ada", 500), ("ben", 501)):
            prefix = f"{' '.join(NAMES[who])}_{number}_assignsubmission_file_"
            hand_in = {"platform": "Moodle", "names": {"toy": prefix}, "late": False}
            known.collected.setdefault("toy", {})[who] = hand_in
            folders[who] = course.feedback / who / "toy"
            folders[who].mkdir(parents=True)
            (folders[who] / "toy.html").write_text(who)
    feedback.pack(course, "toy", folders)
    with zipfile.ZipFile(course.feedback / "toy-moodle.zip") as archive:
        pages = {name: archive.read(name).decode() for name in archive.namelist()}
    # Moodle breaks the name of each folder up by underscores: name, number, plugin, its kind
    parts = {tuple(name.split("/")[0].split("_", 4)[1:4]): who for name, who in pages.items()}
    assert parts == {
        ("500", "assignsubmission", "file"): "ada",
        ("501", "assignsubmission", "file"): "ben",
    }
