"""A toy course, with or without a lab, and what the tests of the commands do with it."""

import importlib
import json
import re
import shlex
import zipfile
from contextlib import chdir, contextmanager, redirect_stdout
from copy import deepcopy
from io import BytesIO, StringIO
from types import SimpleNamespace

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.auth import Authenticator
from nbgrader.coursedir import CourseDirectory

from tools import notebooks
from tools.classroom import answers, results, sample_class
from tools.layout import RECORD, ROOT, Course
from tools.terminal import ToolError

NAMES = {
    "ada": ("Ada", "Lovelace"),
    "ben": ("Ben", "O'Nevis"),
    "cleo": ("Cléo", "van der Berg"),
    "dora": ("Dora", "Al-Sayed"),
    "emil": ("Emil", "Ohm"),
}
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Homework 1 (4711),Final Score\r\n"
    ",,,,,Manual Posting,\r\n    Points Possible,,,,,10.00,(read only)\r\n"
    + "".join(
        f'"{last}, {first}",{number},S{number},{who},ML,,\r\n'
        for number, (who, (first, last)) in enumerate(NAMES.items(), 70)
    )
    + '"Student, Test",99,,f00,ML,,\r\n"Student,Test",98,,f01,ML,,\r\n'
)
"""A gradebook as Canvas exports it: ada is number 70; not all rows are students."""
TIMES = {"ada": "Tuesday, 2 March 2027, 11:59 PM", "ben": "Wednesday, 3 March 2027, 12:05 AM"}
WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    + "".join(
        f"Participant {number},{first} {last},{who}@example.org,Submitted - ,,10.00,Yes,"
        f'"{TIMES.get(who, "-")}","Friday, 5 March 2027, 9:00 AM",  two spaces \r\n'
        for number, (who, (first, last)) in enumerate(NAMES.items(), 500)
    )
)
"""Moodle's worksheet for an assignment: ada is number 500."""
TIMEOUT = 1  # seconds of own time for a cell: no load of the machine makes an answer late

FUNCTION = '''def {}({}):
    """Do it."""
    ### BEGIN SOLUTION
    return {}
    ### END SOLUTION'''
LINE = '''class Line:
    """A line through the origin."""

    def __init__(self, slope):
        self.slope = slope

    def __call__(self, x):
        ### BEGIN SOLUTION
        return self.slope * x + 0 * x
        ### END SOLUTION'''
RUN = """import json
with open("record.json") as file:
    assert json.load(file)["user"] == user(), "the record is of another student" """
RIGHT = {"user": sample_class.SOLVER}
RECORDS = {"another": RIGHT, "missing": None}
"""Who hands in nothing but a right lab, with a record that is not of the student's own run."""


def _cell(name, source, kind=new_code_cell, **about):
    """Return a cell, which is nbgrader's if anything is told about it."""
    base = dict.fromkeys(("grade", "solution", "locked", "task"), False)
    nbgrader = base | {"schema_version": 3, "grade_id": name} | about
    return kind(source, id=name, metadata={"nbgrader": nbgrader} if about else {})


def _exercise(name, source, test):
    """Return an answer, a test that students see, for a point, and one that is hidden, for two."""
    hidden = f"# More when graded.\n### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
    return [
        _cell(f"{name}-task", f"## {name.rpartition('-')[2]}", new_markdown_cell),
        _cell(name, source, solution=True),
        _cell(f"{name}-visible", test, points=1, grade=True, locked=True),
        _cell(f"{name}-hidden", hidden, points=2, grade=True, locked=True),
    ]


def _notebook(*cells):
    notebook = new_notebook(cells=list(cells), metadata=notebooks.METADATA)
    notebook.nbformat_minor = 5
    return notebooks.to_bytes(notebook)


def toy():
    """Return a notebook with two exercises of three points and a question of four."""
    test = r"assert double(3) == 6, '\nLikely cause: you square; doubling adds.'"
    written = "Since both agree.\n\n### BEGIN MARK SCHEME\n4 points\n### END MARK SCHEME"
    triple = FUNCTION.format("triple", "x", "x + x + x + 0 * x")
    return _notebook(
        _cell("toy-title", "# Toy", new_markdown_cell),
        *_exercise("toy-double", FUNCTION.format("double", "x", "x + x + 0 * x"), test),
        *_exercise("toy-triple", triple, "assert triple(2) == 6"),
        _cell("toy-why", written, new_markdown_cell, grade=True, solution=True, points=4),
    )


def toy_lab():
    """Return a lab with a class to write, for three points, and a run to hand in, for one."""
    test = r"assert Line(3)(2) == 6, '\nLikely cause: you add; a slope multiplies.'"
    train = _cell("toy-lab-train", "trained = True", locked=True)
    train.metadata["tags"] = ["train"]
    user = FUNCTION.format("user", "", f'"{sample_class.SOLVER}"')
    return _notebook(
        _cell("toy-lab-user-task", "## user", new_markdown_cell),
        _cell("toy-lab-user", user, solution=True),
        *_exercise("toy-lab-line", LINE, test),
        _cell("toy-lab-run-task", "## run", new_markdown_cell),
        train,
        _cell("toy-lab-run", RUN, points=1, grade=True, locked=True),
    )


def blocks(topic="*", *, lab=False):
    """Stand in for the checks of a topic, or of its lab: an exercise with misconceptions."""
    name, wrongs = "double", [f"def double(x):\n    return {wrong}" for wrong in ("x * x", "x**2")]
    if lab:
        name, wrongs = "Line", [answers.right(LINE).replace("self.slope * x", "self.slope + x")]
    mistakes = [SimpleNamespace(text=lambda name, wrong=wrong: wrong) for wrong in wrongs]
    return {name: SimpleNamespace(name=name, misconceptions=mistakes)}


def make_course(root, *topics, with_lab=False):
    """Make a course with a toy assignment, or with the same under other names."""
    course = Course(root)
    root.mkdir(parents=True, exist_ok=True)
    shared = (ROOT / "nbgrader_config.py").read_text("utf-8")
    limits = f"c.Execute.timeout = c.WarmExecute.timeout = {TIMEOUT}\n"
    (root / "nbgrader_config.py").write_text(f"{shared}\n{limits}", "utf-8")
    for topic in topics or ["toy"]:
        course.source(topic).parent.mkdir(parents=True)
        course.source(topic).write_bytes(toy())
    if with_lab:
        course.source("toy", "lab").write_bytes(toy_lab())
        (course.solutions / "toy" / RECORD).write_text(json.dumps(RIGHT))
    return course


@contextmanager
def edited(path):
    """Give the notebook in a file to change, and write it."""
    notebook = notebooks.read(path)
    yield notebook
    path.write_bytes(notebooks.to_bytes(notebook))


def hand_in(course, student, **contents):
    """Put files of these stems where grading looks for them; return the folder."""
    folder = course.submitted / student / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        suffix = {"record": "json", "timestamp": "txt"}.get(name, "ipynb")
        content = content if isinstance(content, bytes) else content.encode()
        (folder / f"{name}.{suffix}").write_bytes(content)
    return folder


def answered(notebook, double, triple, why=""):
    """Return a notebook with answers."""
    filled, bodies = notebooks.read(notebook), {"double": double, "triple": triple}
    sources = {f"toy-{name}": f"def {name}(x):\n    return {bodies[name]}\n" for name in bodies}
    sources |= {"toy-why": why} if why else {}
    for cell in filled.cells:
        cell.source = sources.get(cell.id, cell.source)
    return notebooks.to_bytes(filled)


def pack(file, contents):
    """Write a zip of files by their names; return its place."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file


def zipped(name, content):
    """Return a zip of one file."""
    return pack(BytesIO(), {name: content}).getvalue()


def use(module, course, *arguments):
    """Run one of the course's commands."""
    return int(module.main(*arguments, course=course))


def play(course, transcript):
    """Run the commands after $ in the course's folder; find the lines below in what each prints.

    Such a line is a part of what is printed, with … for anything and any number of spaces; what
    stands after ! is not there. A command after $! fails.
    """
    for fails, line, told in re.findall(r"^\$(!?) (.+)\n((?:[^$].*\n)*)", transcript, re.M):
        name, *words = shlex.split(line)
        command = importlib.import_module(f"tools.classroom.{name}")
        with chdir(course.root), redirect_stdout(StringIO()) as stream:
            try:
                status = use(command, course, *words)
            except ToolError as error:
                status = print(error) or 1
        output = stream.getvalue()
        assert bool(status) == bool(fails), output
        for text in told.splitlines():
            pattern = re.sub(r"(\\ )+", " +", re.escape(text.strip(" !"))).replace("…", ".*")
            assert bool(re.search(pattern, output)) != text.startswith("!"), f"{text}\n\n{output}"


def exchange(term, step):
    """Take a step of the exchange in dora's copy, as JupyterLab's assignment list does."""
    config = deepcopy(term.dora.config)
    config.Exchange.root = str(term.course.exchange)
    config.Exchange.cache = str(term.dora.root / "cache")
    config.CourseDirectory.student_id = "dora"
    directory = CourseDirectory(config=config, assignment_id="toy")
    step(coursedir=directory, authenticator=Authenticator(config=config), config=config).start()


def rows(course):
    """Return the results of all students who handed in."""
    return {row.student: row for row in results.rows(course, ["toy"])}
