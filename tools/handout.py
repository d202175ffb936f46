"""Pack a copy of the course for students, without the solutions: ``python -m tools.handout``.

It holds the released notebooks, the code that their checks import, what opens JupyterLab, and what
says how this class hands in: students upload a zip, or submit to an exchange, which they share with
the instructor or find on a JupyterHub.
"""

import argparse
import ast
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from optdl.files import atomic_write
from tools import class_state, release, roster, submission_method
from tools.fingerprints import files
from tools.layout import ROOT, Course, is_result
from tools.progress import Stages
from tools.tables import plain
from tools.terminal import ToolError, console, need_disk, run

NAME = "learning-as-optimization"
TOP = ("LICENSE", "_toc.yml", "nbgrader_config.py", "pyproject.toml")
PINS = "requirements.txt"
FOLDERS = ("exercises", "src/gradebox", "src/optdl")
COMMANDS = ("install", "lab", "submit")
OWN = ROOT / "tools" / "handout_files"
"""What students get in place of the instructor's files of the same names."""
README = "README.md"
HAND_IN = OWN / "hand_in"
"""How to hand in, for each way; the first line is also told at the end of each notebook."""
PLACE = "<!-- hand in -->"
"""Where it goes in the students' README."""
LOGINS = (*roster.OWN_ID, *roster.IDS[0])
"""Columns of a class list whose ids students know as their user names."""
WAYS = (submission_method.UPLOAD, "exchange", "hub")


@dataclass(frozen=True)
class Way:
    """How a class hands in.

    Parameters
    ----------
    how : str
        One of ``WAYS``.
    called : str
        What students call the id under which they hand in.
    """

    how: str = submission_method.UPLOAD
    called: str = "user name"

    def text(self, course: Course) -> str:
        """Return how to hand in, as students read it."""
        text = (HAND_IN / f"{self.how}.md").read_text(encoding="utf-8")
        return text.format(id=self.called, exchange=course.exchange)

    def first(self, course: Course) -> str:
        """Return its first line, as a terminal shows it."""
        return self.text(course).partition("\n")[0].replace("`", "")


def pack(course: Course, target: Path, site: Path | None = None, way: Way = Way()) -> list[str]:
    """Write the archive whole or not at all; return the names of the files in it.

    Parameters
    ----------
    target : Path
        The archive. Its only folder has the archive's name.
    site : Path, optional
        The built site, to go with it.
    way : Way
        How students hand in.
    """
    content = dict(_content(course, site))
    text = way.text(course)
    written = {
        README: (OWN / README).read_text(encoding="utf-8").replace(PLACE, text.strip()).encode(),
        submission_method.FILE: submission_method.to_bytes(way.how, way.first(course), way.called),
        PINS: _pins((ROOT / PINS).read_text(encoding="utf-8")).encode(),
    }
    with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
        for name, path in content.items():
            archive.write(path, f"{target.stem}/{name}")
        for name, text_bytes in written.items():
            archive.writestr(f"{target.stem}/{name}", text_bytes)
    return [*content, *written]


def _pins(text: str) -> str:
    """Return the pins of what students need: not what builds the site or tests the code."""
    needed, waiting = set(), [Requirement("learning-as-optimization[assignments]")]
    while waiting:
        asked = waiting.pop()
        if str(asked) in needed:
            continue
        needed |= {str(asked), canonicalize_name(asked.name)}
        with contextlib.suppress(PackageNotFoundError):  # it is one of another system
            for one in map(Requirement, requires(asked.name) or ()):
                # on any system: students have others than this one
                marker = one.marker if "extra" in str(one.marker) else None
                if not marker or any(marker.evaluate({"extra": name}) for name in asked.extras):
                    waiting.append(one)
    lines = text.splitlines(keepends=True)
    return "".join(
        line
        for line in lines
        if line.startswith("#") or canonicalize_name(line.partition("==")[0]) in needed
    )


def _content(course: Course, site: Path | None) -> Iterator[tuple[str, Path]]:
    """Give names in the archive with the files that stand for them."""
    for path in files(OWN):
        if path.name != README and not path.is_relative_to(HAND_IN):
            yield path.relative_to(OWN).as_posix(), path
    roots = [course.root / name for name in (*TOP, *FOLDERS)]
    for path in [*files(*(root for root in roots if root.exists())), *_tools()]:
        left = path.suffix == ".pyc" or is_result(path)
        if ".egg-info" not in str(path) and not left:
            base = ROOT if path.is_relative_to(ROOT / "tools") else course.root
            yield path.relative_to(base).as_posix(), path
    if site:
        yield from ((f"site/{path.relative_to(site).as_posix()}", path) for path in files(site))


def _tools() -> list[Path]:
    """Return the files of the commands that students have, and of all that these import."""
    waiting, paths = list(COMMANDS), {ROOT / "tools" / "__init__.py"}
    while waiting:
        path = ROOT / "tools" / f"{waiting.pop()}.py"
        if path in paths or not path.exists():
            continue
        paths.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "tools":
                waiting += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                waiting += [
                    part for part in [node.module.removeprefix("tools.")] if "." not in part
                ]
    return sorted(paths)


def column_of_ids(course: Course) -> str:
    """Return what the class list calls its column of ids; nothing where there is no list."""
    state = class_state.read(course)
    columns = enumerate(state.columns if state.students else [])
    return next(
        (
            column
            for index, column in columns
            if all(cells[index : index + 1] == [who] for who, cells in state.students.items())
        ),
        "",
    )


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Release what is not released yet, and pack it."""
    course = course or Course(ROOT)
    course.need_solutions()
    need_disk(course.root)
    topics = course.choose([])
    way = Way(arguments.how, arguments.id)
    if way.how != submission_method.UPLOAD and course.exchange.is_relative_to(course.root):
        raise ToolError(
            f"students do not share the exchange, {course.exchange}: it lies in your copy",
            "set c.Exchange.root in nbgrader_config.py to a folder in which all may write, "
            "or let them upload a zip: make handout HOW=upload",
        )
    site = course.root / "_build" / "html" if arguments.site else None
    if site and not (site / "index.html").exists():
        raise ToolError("the site is not built", "run `make book`, then this again")
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    target = Path(arguments.to or course.build / "handout" / f"{NAME}-{day}.zip").resolve()
    with Stages() as stages:
        on_progress = stages.add("Handout")
        for number, topic in enumerate(topics):
            on_progress(number, len(topics) + 1, topic)
            release.write(course, topic)
        on_progress(len(topics), len(topics) + 1, target.name)
        names = pack(course, target, site, way)
        on_progress(len(topics) + 1, len(topics) + 1, "")
    where = target.relative_to(course.root) if target.is_relative_to(course.root) else target
    size = target.stat().st_size / 1e6
    console.print(
        f"{where}: {len(names)} files, {size:.1f} MB, without solutions. Students unpack it and "
        f"follow its README.md. How to hand in: {way.first(course)}",
        soft_wrap=True,
    )
    column = column_of_ids(course)
    if arguments.id == Way.called and column and plain(column) not in LOGINS:
        remedy = (
            'if students call it something else, say it: make handout ID="student number"'
            if way.how == submission_method.UPLOAD
            else "enter a list that has the names with which they log in"
        )
        console.print(
            f"Students hand in under their {way.called}. The ids of your class list are those of "
            f"its column {column}: {remedy}",
            soft_wrap=True,
            markup=False,
        )


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.handout", description=__doc__)
    parser.add_argument("--to", metavar="FILE", help="where to write it, instead of build/handout")
    parser.add_argument("--how", choices=WAYS, default=WAYS[0], help="how students hand in")
    parser.add_argument(
        "--id", default=Way.called, help="what students call the id under which they hand in"
    )
    parser.add_argument("--site", action="store_true", help="put the built site into it, as site/")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
