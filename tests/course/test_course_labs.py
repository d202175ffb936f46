"""The commands of the course, where an assignment has a lab beside its own notebook."""

import ast
import csv
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_course import TIMEOUT, _about, blocks, make_course

from gradebox.events import Event
from gradebox.nbgrader.cells import error_text
from optdl.checks import catalog
from optdl.checks.exercise import Exercise, Misconception
from tools import (
    answers,
    archive,
    course,
    exercises,
    feedback,
    grade,
    gradebook,
    handout,
    lab,
    notebooks,
    release,
    results,
    sample_class,
)
from tools.backend import Backend
from tools.fingerprints import files
from tools.inpage import parts
from tools.layout import RECORD, ROOT, Course, is_result
from tools.terminal import ToolError

# nbgrader and Jupyter import each other's deprecated names; the course can do nothing about it.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.xdist_group("nbgrader"),
]


# --- a toy lab

USER = f'''def user():
    """Return your user name."""
    ### BEGIN SOLUTION
    return "{sample_class.SOLVER}"
    ### END SOLUTION'''

LINE = '''class Line:
    """A line through the origin."""

    def __init__(self, slope):
        """Keep the slope."""
        ### BEGIN SOLUTION
        self.slope = slope
        ### END SOLUTION

    def __call__(self, x):
        """Return the value at x."""
        ### BEGIN SOLUTION
        return self.slope * x + 0 * x
        ### END SOLUTION'''

TEST = r"assert Line(3)(2) == 6, '\nLikely cause: you add; a slope multiplies.'"

RUN = """import json
with open("record.json") as file:
    text = file.read(2 * 2**20 + 1)
assert len(text) <= 2 * 2**20, "the record has more than 2 MiB"
record = json.loads(text)
assert record["user"] == user(), "the record is of another student"
losses = [run["curves"]["loss"] for run in record["runs"]]
assert losses == [[1.0, 0.5, 0.25], [1.0, 2.0]], "the losses are not those of the runs" """

RIGHT = {
    "user": sample_class.SOLVER,
    "runs": [{"curves": {"loss": [1.0, 0.5, 0.25]}}, {"curves": {"loss": [1.0, 2.0]}}],
}


def toy_lab() -> Any:
    """Return a lab with a class to write, for three points, and a run to hand in, for one."""
    graded = {"grade": True, "locked": True}
    hidden = f"# More when graded.\n### BEGIN HIDDEN TESTS\n{TEST}\n### END HIDDEN TESTS"
    cells = [
        new_markdown_cell("## user", id="toy-lab-user-task"),
        new_code_cell(USER, id="toy-lab-user", metadata=_about("toy-lab-user", solution=True)),
        new_markdown_cell("## line", id="toy-lab-line-task"),
        new_code_cell(LINE, id="toy-lab-line", metadata=_about("toy-lab-line", solution=True)),
        *(
            new_code_cell(test, id=name, metadata=_about(name, points=points, **graded))
            for name, test, points in (
                ("toy-lab-line-visible", TEST, 1),
                ("toy-lab-line-hidden", hidden, 2),
            )
        ),
        new_markdown_cell("## run", id="toy-lab-run-task"),
        new_code_cell(
            "trained = True",
            id="toy-lab-train",
            metadata=_about("toy-lab-train", locked=True) | {"tags": ["train"]},
        ),
        new_code_cell(RUN, id="toy-lab-run", metadata=_about("toy-lab-run", points=1, **graded)),
    ]
    notebook = new_notebook(cells=cells, metadata=release.METADATA)
    notebook.nbformat_minor = 5
    return notebook


class Sum:
    """Add the slope."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: float) -> float:
        return self.slope + x


class Line:
    """Stand in for the reference, of which only the name is used."""


def _blocks(topic: str = "*", *, lab: bool = False) -> dict[str, Exercise]:
    """Stand in for the checks of a topic and of its lab."""
    mistake = Misconception("you add; a slope multiplies.", Sum)
    return {"LAB-0": Exercise("LAB-0", Line, misconceptions=[mistake])} if lab else blocks()


def add_lab(made: Course) -> Course:
    """Put a lab, and the record of its run, beside the notebook of a toy course."""
    made.source("toy", "lab").write_bytes(notebooks.to_bytes(toy_lab()))
    made.record("toy").write_text(json.dumps(RIGHT))
    return made


@pytest.fixture
def small(tmp_path: Path) -> Course:
    """Return a toy course with a lab in which nothing has been done."""
    (tmp_path / "course").mkdir()
    return add_lab(make_course(tmp_path / "course"))


# --- names and folders


def test_an_assignment_has_its_own_notebook_first(small: Course) -> None:
    assert small.topics() == ["toy"]
    assert small.notebooks("toy") == ["toy", "lab"]
    assert small.source("toy", "lab") == small.root / "solutions" / "toy" / "lab.ipynb"
    release.write(small, "toy")
    shutil.rmtree(small.solutions)
    assert small.notebooks("toy") == ["toy", "lab"]


@pytest.mark.parametrize(
    ("name", "expected"), [("record.json", True), ("step-7.pt", True), ("points.json", False)]
)
def test_what_a_run_left_is_no_data(name: str, expected: bool) -> None:
    assert is_result(Path("solutions", "toy", name)) is expected


# --- release


def test_release_makes_both_notebooks_and_no_record(small: Course) -> None:
    for name in ("points.csv", "step-7.pt"):
        (small.solutions / "toy" / name).write_text("1,2\n")
    assert release.write(small, "toy")
    assert not release.write(small, "toy")
    made = {path.name for path in (small.exercises / "toy").iterdir()}
    assert made == {"toy.ipynb", "lab.ipynb", "points.csv"}
    released = small.released("toy", "lab").read_bytes()
    assert release.render(small, "toy")["lab"] == released
    text = released.decode()
    assert text.count("raise NotImplementedError()") == 3
    assert not any(secret in text for secret in (*release.SECRETS, "self.slope", "ada-all"))


def test_a_cell_that_trains_keeps_its_tag(small: Course) -> None:
    release.write(small, "toy")
    tags = {cell.id: cell.metadata.get("tags") for cell in _cells(small.released("toy", "lab"))}
    assert tags["toy-lab-train"] == ["train", release.GO_ON]
    assert tags["toy-lab-run"] == [release.GO_ON]
    assert tags["toy-lab-line"] is None


def _cells(path: Path) -> list[Any]:
    return list(notebooks.read(path).cells)


def test_a_wrong_lab_is_named_and_nothing_is_released(small: Course) -> None:
    release.write(small, "toy")
    before = small.released("toy", "lab").read_bytes()
    wrong = notebooks.read(small.source("toy", "lab"))
    wrong.cells[0].source += "\nself.slope = slope"
    small.source("toy", "lab").write_bytes(notebooks.to_bytes(wrong))
    with pytest.raises(ToolError, match="toy/lab would be wrong to hand out") as caught:
        release.write(small, "toy")
    assert "correct solutions/toy/lab.ipynb" in caught.value.remedy
    assert small.released("toy", "lab").read_bytes() == before


def test_a_changed_lab_is_recorded_again(small: Course) -> None:
    release.write(small, "toy")
    assert release.record(small, "toy")
    assert not release.record(small, "toy")
    with Backend(small).gradebook() as book:
        assert {one.name for one in book.find_assignment("toy").notebooks} == {"toy", "lab"}
    changed = notebooks.read(small.source("toy", "lab"))
    changed.cells[0].source = "## Your name"
    small.source("toy", "lab").write_bytes(notebooks.to_bytes(changed))
    release.write(small, "toy")
    assert release.record(small, "toy")


# --- answers that are classes


def test_changed_classes_do_what_their_name_says() -> None:
    source = answers.right(LINE)
    assert answers.defined_name(source) == "Line"
    assert answers.under_another_name(source) == source
    with pytest.raises(SyntaxError):
        ast.parse(answers.syntax_error(source))
    assert answers.never_ends(source).count("while error > 0:") == 2


def test_only_the_last_definition_is_answered() -> None:
    source = f"class Base:\n    def f(self):\n        return 1\n\n{answers.right(LINE)}"
    assert answers.never_ends(source).count("while error > 0:") == 2
    assert "class Base:" in answers.syntax_error(source)
    assert "class Line\n" in answers.syntax_error(source)


# --- the sample class


def _work(of: Course) -> dict[str, dict[str, bytes]]:
    """Return what each student hands in, by the kind of the student."""
    release.write(of, "toy")
    sheets = {name: sample_class.sheet(of, "toy", name) for name in of.notebooks("toy")}
    return {
        one.kind: sample_class.handed_in(of, "toy", sheets, one) for one in sample_class.STUDENTS
    }


def test_two_students_hand_in_labs_and_one_a_record(
    small: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "blocks", _blocks)
    work = _work(small)
    assert all("toy.ipynb" in made for made in work.values())
    labs = {kind: made["lab.ipynb"] for kind, made in work.items() if "lab.ipynb" in made}
    assert labs.keys() == {"all correct", "misconception 1"}
    assert [kind for kind, made in work.items() if RECORD in made] == ["all correct"]
    assert json.loads(work["all correct"][RECORD]) == RIGHT
    assert b"self.slope + x" in labs["misconception 1"]
    assert b"quinn-misconception-1" in labs["misconception 1"]
    assert b"ada-all-correct" not in labs["misconception 1"]
    small.record("toy").unlink()
    assert _work(small)["all correct"].keys() == {"toy.ipynb", "lab.ipynb"}


# --- grading, from beginning to end

KINDS = ("all correct", "blank", "misconception 1")

RECORDS = {
    "another": (RIGHT, "the record is of another student"),
    "edited": (
        {"user": "edited", "runs": [{"curves": {"loss": [0.5]}}]},
        "the losses are not those of the runs",
    ),
    "large": ({"user": "large", "more": "0" * (3 * 2**20)}, "the record has more than 2 MiB"),
    "missing": (None, "No such file or directory: 'record.json'"),
    "nan": (
        {"user": "nan", "runs": [{"curves": {"loss": [float("nan")]}}]},
        "the losses are not those of the runs",
    ),
}
"""Who hands in nothing but a right lab with a wrong record of its run, and why it is refused."""


def _hand_in_wrong_records(of: Course) -> None:
    right = (of.submitted / sample_class.SOLVER / "toy" / "lab.ipynb").read_text("utf-8")
    for student, (record, _) in RECORDS.items():
        folder = of.submitted / student / "toy"
        folder.mkdir(parents=True)
        (folder / "lab.ipynb").write_text(right.replace(sample_class.SOLVER, student), "utf-8")
        if record is not None:
            (folder / RECORD).write_text(json.dumps(record))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """Return a toy course with a lab, graded, in which some hand in wrong records."""
    made = add_lab(make_course(tmp_path_factory.mktemp("course")))
    few = tuple(student for student in sample_class.STUDENTS if student.kind in KINDS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "blocks", _blocks)
        patch.setattr(sample_class, "STUDENTS", few)
        patch.setattr(course, "TIMEOUT", TIMEOUT)
        assert course.command(course.parser().parse_args(["--no-site"]), made) == 0
        _hand_in_wrong_records(made)
        assert grade.grade(made, "toy", TIMEOUT).failed == []
        yield made


def _lab_scores(of: Course) -> dict[str, float]:
    with Backend(of).gradebook() as book:
        return {
            one.student.id: next(entry for entry in one.notebooks if entry.name == "lab").score
            for one in book.assignment_submissions("toy")
        }


def test_scores_of_the_lab(graded: Course) -> None:
    assert _lab_scores(graded) == {
        "ada-all-correct": 4,
        "ben-blank": 0,
        "quinn-misconception-1": 0,
        **dict.fromkeys(RECORDS, 3),
    }


@pytest.mark.parametrize("student", RECORDS)
def test_a_wrong_record_is_refused_for_its_own_reason(graded: Course, student: str) -> None:
    [said] = [
        error_text(cell)
        for cell in _cells(graded.executed(student, "toy")["lab"])
        if cell.id == "toy-lab-run"
    ]
    assert RECORDS[student][1] in said


def test_both_notebooks_make_one_result(graded: Course) -> None:
    rows = {row.student: row for row in results.rows(graded, ["toy"])}
    assert {row.max_auto for row in rows.values()} == {10}
    assert {name: row.auto for name, row in rows.items()} == {
        "ada-all-correct": 10,
        "ben-blank": 0,
        "quinn-misconception-1": 3,
        **dict.fromkeys(RECORDS, 3),
    }
    assert {name for name, row in rows.items() if not row.pending} >= RECORDS.keys()


def test_a_notebook_that_is_missing_is_noted(graded: Course) -> None:
    rows = {row.student: row for row in results.rows(graded, ["toy"])}
    assert rows["ben-blank"].notes == "lab.ipynb was not handed in"
    assert results.summary([rows["ben-blank"]]) == "missing notebooks: 1"


def test_a_missing_notebook_hides_no_other_trouble() -> None:
    events = {f"student-{number}": "missing-notebook" for number in range(20)} | {"zoe": "ended"}
    rows = [
        results.Row(student, "", "", "toy", 0, 0, events=(Event(kind),))
        for student, kind in events.items()
    ]
    shown = gradebook.look_table(rows).columns[0]._cells
    assert [str(cell) for cell in shown][:2] == ["zoe", "student-0"]


def test_misconceptions_of_both_notebooks_are_counted(graded: Course) -> None:
    count = exercises.misconceptions(graded, ["toy"])
    assert count["toy", "you add; a slope multiplies."] == 1
    assert count["toy", "you square; doubling adds."] == 1


def test_how_the_exercises_of_the_lab_went(
    graded: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = {one.title: one for one in exercises.reports(graded, "toy")}
    assert list(reports) == ["double", "triple", "line", "run"]
    assert [one.notebook for one in reports.values()] == ["toy", "toy", "lab", "lab"]
    assert (reports["double"].students, reports["line"].students) == (3, 7)
    assert (reports["line"].solved, reports["run"].solved) == (6, 1)
    assert reports["line"].causes["you add; a slope multiplies."] == 1
    lines = list(csv.DictReader(exercises.to_csv(list(reports.values())).splitlines()))
    assert [line["notebook"] for line in lines] == ["toy", "toy", "lab", "lab"]
    gradebook.show_exercises(graded, ["toy"])
    said = capsys.readouterr().out
    assert "toy: the exercises" in said
    assert "toy, lab: the exercises" in said


def test_a_page_for_each_notebook_that_was_handed_in(graded: Course) -> None:
    def pages(student: str) -> list[str]:
        return sorted(path.name for path in (graded.feedback / student / "toy").glob("*.html"))

    assert pages("ada-all-correct") == ["lab.html", "toy.html"]
    assert pages("ben-blank") == ["toy.html"]
    assert pages("edited") == ["lab.html"]


def test_a_second_run_does_nothing_and_a_lost_page_is_written_again(graded: Course) -> None:
    before = grade.grade(graded, "toy", TIMEOUT)
    assert (before.graded, before.feedback) == ([], 0)
    page = graded.feedback / "ada-all-correct" / "toy" / "lab.html"
    content = page.read_bytes()
    page.unlink()
    assert grade.grade(graded, "toy", TIMEOUT).feedback == 1
    assert page.read_bytes() == content


def test_a_mark_in_the_lab_changes_the_page(graded: Course, tmp_path: Path) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    with Backend(copy).gradebook() as book:
        comment = book.find_comment("toy-lab-line", "lab", "toy", "quinn-misconception-1")
        comment.manual_comment = "Begin with the slope."
        book.db.commit()
    assert grade.grade(copy, "toy", TIMEOUT).feedback == 1
    page = copy.feedback / "quinn-misconception-1" / "toy" / "lab.html"
    assert "Begin with the slope." in page.read_text("utf-8")


def test_the_record_of_the_instructor_replaces_none(graded: Course) -> None:
    for student, is_there in (("missing", False), ("edited", True)):
        record = graded.autograded / student / "toy" / RECORD
        assert record.is_file() is is_there
        if is_there:
            assert record.read_bytes() == (graded.submitted / student / "toy" / RECORD).read_bytes()


def test_without_fork_a_missing_notebook_is_graded_the_same(
    graded: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    few = {"ada-all-correct", "ben-blank", "missing"}
    for name in {path.name for path in copy.submitted.iterdir()} - few:
        shutil.rmtree(copy.submitted / name)
    before = _lab_scores(copy)
    monkeypatch.setattr(grade, "FORKS", False)
    summary = grade.grade(copy, "toy", TIMEOUT)
    assert summary.failed == []
    assert {student for student, _ in summary.graded} == few
    assert _lab_scores(copy) == before


def test_a_lab_that_comes_after_the_grading_is_explained(graded: Course, tmp_path: Path) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    copy.source("toy", "lab").rename(copy.source("toy", "more"))
    release.write(copy, "toy")
    with pytest.raises(ToolError, match="other cells or notebooks than when") as caught:
        release.record(copy, "toy")
    assert "--remove" in caught.value.remedy


def test_pages_of_labs_are_given_back(
    graded: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Course(tmp_path / "copy")
    shutil.copytree(graded.root, copy.root)
    _, rest = feedback.release(copy, "toy")
    assert "edited" in rest
    assert len(rest) == 8


# --- what goes out and what is kept


def test_an_anonymous_copy_has_no_record(graded: Course, tmp_path: Path) -> None:
    # the whole term has those of the feedback, too
    for arguments, kept in (["--anonymize"], 0), ([], 2 * 5):
        target = tmp_path / f"{kept}.zip"
        archive.command(archive.parser().parse_args([*arguments, "--to", str(target)]), graded)
        with zipfile.ZipFile(target) as packed:
            names = [Path(name).name for name in packed.namelist()]
        assert names.count(RECORD) == kept
        assert names.count("lab.ipynb") == 7


def test_a_handout_has_the_lab_and_no_record(small: Course, tmp_path: Path) -> None:
    release.write(small, "toy")
    (small.exercises / "toy" / RECORD).write_text("of a run in the wrong folder")
    names = handout.pack(small, tmp_path / "course.zip")
    assert {name for name in names if name.startswith("exercises/toy")} == {
        *("exercises/toy/toy.ipynb", "exercises/toy/lab.ipynb"),
    }


def test_a_student_works_on_both_notebooks(small: Course) -> None:
    release.write(small, "toy")
    assert lab.copy_for_work(small, "toy")
    work = small.work / "toy"
    assert {path.name for path in files(work)} == {"toy.ipynb", "lab.ipynb"}
    (work / RECORD).write_text("mine")
    begun = notebooks.read(work / "lab.ipynb")
    begun.cells[-1].source += "\n# an older test"
    (work / "lab.ipynb").write_bytes(notebooks.to_bytes(begun))
    assert not lab.copy_for_work(small, "toy")
    assert (work / RECORD).read_text() == "mine"
    assert (work / "lab.ipynb").read_bytes() == notebooks.to_bytes(begun)


# --- the pages of the site


def test_a_lab_is_no_part_of_the_pages(
    small: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.write(small, "toy")
    monkeypatch.setattr(parts, "build", lambda store, root: None)
    parts.install(tmp_path / "site", small.root)
    found = tmp_path / "site" / "_static" / "python" / "notebooks"
    assert [path.name for path in found.iterdir()] == ["toy.json"]


def test_modules_of_labs_are_no_part_of_the_pages(tmp_path: Path) -> None:
    session = tmp_path / "book" / "_static" / "python" / "session.py"
    session.parent.mkdir(parents=True)
    shutil.copy(ROOT / "book" / "_static" / "python" / "session.py", session)
    heavy = ("labs/erm.py", "checks/labs/erm.py", "training/loop.py")
    for name in ("erm.py", "checks/erm.py", *heavy):
        path = tmp_path / "src" / "optdl" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    modules = [name for name in json.loads(parts.course(tmp_path)) if name.startswith("optdl/")]
    assert modules == ["optdl/checks/erm.py", "optdl/erm.py"]
