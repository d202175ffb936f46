"""Assignments in courses of their own, released and graded as a teacher does it."""

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import nbformat
from nbgrader.apps.api import NbGraderAPI
from notebooks import name_of
from traitlets.config.loader import PyFileConfigLoader

from benchmarks.gradebooks import rows, url
from gradebox import cli
from gradebox.nbgrader.course import Course
from gradebox.run import report

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "others"
c.Execute.timeout = 1800
c.Execute.startup_timeout = 1800
c.Execute.iopub_timeout = 1800
"""

Points = dict[tuple[str, ...], tuple[Any, ...]]


class Assignment(NamedTuple):
    """An assignment in a course of its own, and its submissions."""

    root: Path
    name: str

    def copy(self, folder: Path) -> "Assignment":
        return Assignment(Path(shutil.copytree(self.root, folder)), self.name)

    def release(self) -> Path:
        """Return the folder of what students get."""
        with contextlib.chdir(self.root), patch.dict(os.environ, PATH=_path()):
            config = PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()
            api = NbGraderAPI(config=config)
            api.coursedir.root = str(self.root)
            with warnings.catch_warnings(action="ignore"):
                result = api.generate_assignment(self.name)
                gc.collect()  # the sockets to the kernel of automatic tests
        assert result["success"], result["log"]
        return self.root / "release" / self.name

    def autograde(self) -> Points:
        program = [sys.executable, "-m", "nbgrader", "autograde", self.name]
        environment = os.environ | {"PATH": _path()}
        subprocess.run(program, cwd=self.root, check=True, capture_output=True, env=environment)
        return self.points()

    def grade(self, *options: str) -> int:
        with contextlib.chdir(self.root):
            return cli.main(["grade", self.name, "-j", "2", *options])

    def points(self) -> Points:
        return {row[:3]: row[3:] for row in rows(url(self.root))["grades"]}

    def report(self) -> dict[str, Any]:
        return report.read(Course(self.root, self.name))


def hand_in(file: Path, released: Path, answers: Mapping[str, str]) -> None:
    """Hand in a notebook with the answers filled in; cells without an answer stay as they are."""
    nb = nbformat.read(released, as_version=4)
    for cell in nb.cells:
        cell.source = answers.get(name_of(cell), cell.source)
    write(file, nb)


def _path() -> str:
    """Return where nbgrader finds the programs that it starts."""
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def write(file: Path, nb: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nb, file)  # type: ignore[no-untyped-call]


def write_files(files: Mapping[str, str], folder: Path) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
