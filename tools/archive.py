"""Keep a term: ``python -m tools.archive`` packs what a class handed in, and its marks.

With ``--anonymize`` every student becomes a code, such as s017, in the names of files, in the
gradebook and in what is written in notebooks and comments. The codes are drawn at random and kept
nowhere. Records of runs are left out: a student's name gives their seed. What else may tell who
somebody is stays, such as a photograph, a seed that a notebook shows, or a name of one or two
letters: look before you publish.
"""

import argparse
import contextlib
import json
import random
import re
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from tools.fingerprints import files, write_if_changed
from tools.layout import ROOT, Course, is_result
from tools.progress import OnProgress, Stages
from tools.terminal import ToolError, console, need_disk, run

SHORTEST = 3
"""A name with fewer letters is not looked for in what is written: too many words are like it."""


def archive(
    course: Course, target: Path, anonymous: bool, on_progress: OnProgress | None = None
) -> int:
    """Write the archive whole or not at all; return the number of students in it.

    Parameters
    ----------
    target : Path
        The zip.
    anonymous : bool
        Whether codes stand for students, and feedback and the class list are left out.
    on_progress : callable, optional
        Called with the number of files done, the number of all, and whose file is next.

    Raises
    ------
    ToolError
        When there is no gradebook in a file.
    """
    book = course.gradebook
    if book is None:
        raise ToolError("the gradebook is on a server", "archive it with pg_dump")
    if not book.exists():
        raise ToolError("there is no gradebook yet", "grade something first: make grade A=erm")
    with TemporaryDirectory(prefix="archive-") as folder:
        copy = Path(folder, "gradebook.db")
        _copy_database(book, copy)
        rename = _anonymize(copy) if anonymous else str
        with contextlib.closing(sqlite3.connect(copy)) as database:
            students = database.execute("SELECT count(*) FROM student").fetchone()[0]
            database.execute("VACUUM")  # or deleted names could be read in the file
        folders = [course.submitted]
        if not anonymous:
            folders += [course.feedback, course.build / "class"]
        entries = [(base.name, path.relative_to(base), path) for base in folders
                 for path in files(base) if not (anonymous and is_result(path))]  # fmt: skip
        scratch = Path(folder, "archive.zip")
        with ZipFile(scratch, "w", ZIP_DEFLATED) as archived:
            archived.write(copy, copy.name)
            for number, (base, name, path) in enumerate(entries):
                if on_progress:
                    on_progress(number, len(entries), name.parts[0])
                archived.writestr(f"{base}/{rename(name.as_posix())}", _content(path, rename))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_if_changed(target, scratch.read_bytes())
    if on_progress:
        on_progress(len(entries), len(entries), "")
    return int(students)


def _content(path: Path, rename: Callable[[str], str]) -> bytes:
    """Return what a file holds with codes in place of students."""
    content = path.read_bytes()
    if rename is str:
        return content
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content
    with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):
        if path.suffix == ".ipynb":
            return _notebook(json.loads(text), rename).encode()
    return rename(text).encode()


def _notebook(notebook: dict[str, Any], rename: Callable[[str], str]) -> str:
    """Return a notebook with codes in what its author wrote, and not in its own words."""
    for cell in notebook["cells"]:
        for part in ("source", "outputs", "attachments"):
            if part in cell:
                cell[part] = _each(cell[part], rename)
    metadata = notebook["metadata"]
    notebook["metadata"] = {
        name: metadata[name] for name in ("kernelspec", "language_info") if name in metadata
    }
    return json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _each(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, list):
        return [_each(item, rename) for item in value]
    if isinstance(value, dict):
        return {
            key: item if key == "output_type" else _each(item, rename)
            for key, item in value.items()
        }
    return rename(value) if isinstance(value, str) else value


def _copy_database(source: Path, target: Path) -> None:
    """Copy a database that somebody may be writing to."""
    with (
        contextlib.closing(sqlite3.connect(source)) as source_connection,
        contextlib.closing(sqlite3.connect(target)) as other,
    ):
        source_connection.backup(other)


def _anonymize(book: Path) -> Callable[[str], str]:
    """Put codes in place of students; return what does the same to a text."""
    with contextlib.closing(sqlite3.connect(book)) as database:
        rows = database.execute("SELECT id, first_name, last_name, email, lms_user_id FROM student")
        students = [tuple(str(cell) if cell else "" for cell in row) for row in rows]
        random.SystemRandom().shuffle(students)
        width = max(3, len(str(len(students))))
        codes = {row[0]: f"s{number:0{width}}" for number, row in enumerate(students, start=1)}
        rename = _renamer({name: codes[row[0]] for row in students for name in row if name})
        database.execute("PRAGMA foreign_keys = OFF")
        for old, code in codes.items():
            database.execute(
                "UPDATE student SET id = ?, first_name = NULL, last_name = NULL, email = NULL, "
                "lms_user_id = NULL WHERE id = ?",
                (code, old),
            )
            database.execute(
                "UPDATE submitted_assignment SET student_id = ? WHERE student_id = ?", (code, old)
            )
        for row, *texts in database.execute("SELECT id, auto_comment, manual_comment FROM comment"):
            new = [text and rename(text) for text in texts]
            if new != texts:
                database.execute(
                    "UPDATE comment SET auto_comment = ?, manual_comment = ? WHERE id = ?",
                    (*new, row),
                )
        database.commit()
    return rename


def _renamer(codes: Mapping[str, str]) -> Callable[[str], str]:
    """Return what puts codes for whole words; the longest name first, whatever its case."""
    replacements = {name.lower(): code for name, code in codes.items() if len(name) >= SHORTEST}
    if not replacements:
        return str
    longest_first = sorted(replacements, key=len, reverse=True)
    words = "|".join(map(re.escape, longest_first))
    pattern = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
    return lambda text: pattern.sub(lambda match: replacements[match[0].lower()], text)


def command(arguments: argparse.Namespace, course: Course | None = None) -> None:
    """Archive a term, and say how to begin the next."""
    course = course or Course(ROOT)
    need_disk(course.root)
    kind = "anonymous" if arguments.anonymize else "term"
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    target = Path(arguments.to or course.build / "archive" / f"{kind}-{day}.zip").resolve()
    if target.exists():
        raise ToolError(
            f"{target} is there already", "move it away, or give another name with --to"
        )
    with Stages() as stages:
        students = archive(course, target, arguments.anonymize, stages.add("Archive"))
    where = target.relative_to(course.root) if target.is_relative_to(course.root) else target
    what = (
        "submissions and gradebook" if arguments.anonymize else "submissions, gradebook, feedback"
    )
    console.print(f"{where}: {what} of {students} students.", soft_wrap=True)
    if not arguments.anonymize:
        console.print(
            "Nothing was removed. To begin a new term, keep a copy of the archive elsewhere and "
            "remove build/gradebook.db, build/class, build/submitted, build/autograded, "
            "build/feedback and build/exchange by hand.",
            soft_wrap=True,
        )


def parser() -> argparse.ArgumentParser:
    """Return the command line of this tool."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.archive",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--anonymize", action="store_true", help="put codes in place of students")
    parser.add_argument("--to", metavar="FILE", help="where to write it, instead of build/archive")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    return run(command, parser(), arguments)


if __name__ == "__main__":
    sys.exit(main())
