"""Each command on the page for instructors works, in the order in which the page tells them."""

import argparse
import importlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from test_class import answered
from test_collect import CANVAS, NAMES, WORKSHEET, pack
from test_course import make_course, toy

from tools import notebooks
from tools.layout import ROOT, Course

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbgrader"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:nbconvert"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:jupyter_client"),
    pytest.mark.skipif(sys.platform == "win32", reason="nbgrader has no exchange on Windows"),
    pytest.mark.xdist_group("nbgrader"),
]

ELSEWHERE = {
    "test_course": [
        "make course",
        "make lab",
        "python -m tools.lab --from ../OLD-FOLDER",
        "python -m tools.sample_class",
        "python -m tools.sample_class --remove",
    ],
    "test_cards": ["make cards"],
    "test_gradebox_seal": ["python -m gradebox.sandbox.probe"],
    "test_handout": ["make clean", "make submit"],
    "test_labs": ["python -m tools.lab_records optimizers"],
    "test_reading": ["make pdf", "python -m tools.chapters"],
    "all of them": ["make test"],
    "none, since it is Python's": ["python -m http.server"],
}
"""What builds the site, trains or starts a server, and the tests that do it."""
UNDONE = {
    "python -m tools.roster --remove ada": "make class LIST=class.csv",
    "make release A=erm DUE=none": 'make release A=erm DUE="2027-03-01 23:59"',
}
"""After what a later command would have nothing to do, and what takes it back."""
STUDENT = "ada-all-correct"
"""Of the sample class, for which the page asks."""
LIST = CANVAS + f'"Correct, Ada All",80,,{STUDENT},ML,,\r\n'


def told() -> list[str]:
    """Return the commands of the page, each once, in their order."""
    text = (ROOT / "book" / "instructors.md").read_text("utf-8")
    pattern = r"^```bash\n(.+?)^```|`((?:make|python -m) [^`…]+)`"
    found = re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    lines = [line for block, inline in found for line in (block or inline).splitlines()]
    commands = [re.sub(r"\s+#.*", "", line).strip() for line in lines]
    return [*dict.fromkeys(line for line in commands if re.match("make|python -m", line))]


def meant(command: str) -> list[str]:
    """Return the words of the command that Make runs."""
    if not command.startswith("make"):
        return shlex.split(command)
    done = subprocess.run(
        ["make", "-n", "-o", ".venv/ready", *shlex.split(command)[1:]],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return shlex.split(done.stdout)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Return a teacher's course, and in it the files that the page names."""
    root = tmp_path / "course"
    root.mkdir()
    made = make_course(root)
    for topic in ("erm", "bnp"):
        made.source(topic).parent.mkdir()
        made.source(topic).write_bytes(notebooks.to_bytes(toy()))
    made.source("toy").unlink()
    made.source("toy").parent.rmdir()
    config = root / "nbgrader_config.py"
    shared = config.read_text("utf-8").replace('BUILD / "exchange"', 'ROOT.parent / "exchange"')
    config.write_text(shared)
    (root / "exams").symlink_to(ROOT / "exams")
    (root / "_build" / "html").mkdir(parents=True)
    (root / "_build" / "html" / "index.html").touch()

    numbers = {who: number for number, who in enumerate(NAMES, 70)}
    listed = LIST
    for who, number in numbers.items():
        listed = listed.replace(f",,{who},", f",S{number},{who},")
    (root / "class.csv").write_text(listed.replace(f",,{STUDENT},", f",S80,{STUDENT},"))
    exported = LIST.replace("Homework 1 (4711)", "Exercise erm (4712),Homework 1 (4711)")
    exported = re.sub(r",,\r$", ",,,\r", exported, flags=re.MULTILINE)
    (root / "canvas.csv").write_text(exported.replace(",10.00,", ",10.00,10.00,"))
    sheet = WORKSHEET.replace("{}", "10.00")
    for name in ("worksheet.csv", "Grades-Exercise 1.csv", "file.csv", "FILE"):
        (root / name).write_text(sheet)
    work = answered(made.source("erm"), "2 * x", "3 * x", "Because.")
    folders = {
        f"{first} {last}_{number}_assignsubmission_file/erm.ipynb": work
        for number, (first, last) in zip(range(500, 504), NAMES.values(), strict=True)
    }
    pack(root / "submissions.zip", folders)
    monkeypatch.chdir(root)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 99))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    return Course(root)


def test_each_command_of_the_page_works(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    def run(command: str) -> None:
        words = meant(command)
        assert words[1] == "-m", words
        tool = importlib.import_module(words[2])
        arguments: argparse.Namespace = tool.parser().parse_args(words[3:])
        assert not tool.command(arguments, course), f"{command}: {capsys.readouterr().out}"

    commands = told()
    elsewhere = {one for some in ELSEWHERE.values() for one in some}
    assert elsewhere < {*commands}
    for command in commands:
        if command not in elsewhere:
            run(command)
        if command in UNDONE:
            run(UNDONE[command])
