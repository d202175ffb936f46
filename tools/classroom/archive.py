"""Keep a term: ``python -m tools.classroom.archive`` packs what a class handed in, and its marks.

With ``--anonymize`` every student becomes a code, such as s017, in the names of files, in the
gradebook and in what is written in notebooks and comments. The codes are drawn at random and kept
nowhere. Records of runs are left out: a student's name gives their seed. What else may tell who
somebody is stays, such as a photograph, a seed that a notebook shows, or a name of one or two
letters: look before you publish.
"""

import contextlib
import json
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tools.fingerprints import files, write_if_changed
from tools.layout import HERE, Course, is_result
from tools.terminal import ToolError, argument, command, console, need_disk

MIN_LETTERS = 3
"""A name with fewer letters is not looked for in what is written: too many words are like it."""


def archive(course: Course, target: Path, anonymous: bool) -> int:
    """Write the archive whole or not at all; return the number of students in it."""
    book = course.gradebook
    if book is None:
        raise ToolError("the gradebook is on a server", "archive it with pg_dump")
    if not book.exists():
        raise ToolError("there is no gradebook yet", "grade something first: make grade A=erm")
    with TemporaryDirectory(prefix="archive-") as scratch:
        folder = Path(scratch, "term")
        folder.mkdir()
        with (
            contextlib.closing(sqlite3.connect(book)) as original,
            contextlib.closing(sqlite3.connect(folder / "gradebook.db")) as copied,
        ):
            original.backup(copied)  # somebody may be writing to it
            rename = _anonymize(copied) if anonymous else str
            copied.execute("VACUUM")  # or deleted names could be read in the file
            students = int(copied.execute("SELECT count(*) FROM student").fetchone()[0])
        # pages and the class list have names in places that nobody can foresee
        more = [] if anonymous else [course.feedback, course.build / "class"]
        for base in [course.submitted, *more]:
            for path in files(base):
                if not (anonymous and is_result(path)):
                    copy = folder / base.name / rename(path.relative_to(base).as_posix())
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.write_bytes(_content(path, rename) if anonymous else path.read_bytes())
        packed = shutil.make_archive(f"{scratch}/packed", "zip", folder)
        write_if_changed(target, Path(packed).read_bytes())
    return students


def _anonymize(database: sqlite3.Connection) -> Callable[[str], str]:
    """Put codes in place of students; return what does the same to a text."""
    rows = database.execute("SELECT id, first_name, last_name, email, lms_user_id FROM student")
    students = [[str(cell or "") for cell in row] for row in rows]
    random.SystemRandom().shuffle(students)
    width = max(3, len(str(len(students))))
    codes = {row[0]: f"s{number:0{width}}" for number, row in enumerate(students, start=1)}
    words = {name.lower(): codes[row[0]] for row in students for name in row}
    # the longest name first, as a whole word, whatever its case
    names = sorted((name for name in words if len(name) >= MIN_LETTERS), key=len, reverse=True)
    pattern = re.compile(
        rf"(?<![^\W_])(?:{'|'.join(map(re.escape, names)) or '(?!)'})(?![^\W_])", re.IGNORECASE
    )

    def rename(text: str) -> str:
        return pattern.sub(lambda match: words[match[0].lower()], text)

    database.execute("PRAGMA foreign_keys = OFF")
    database.execute(
        "UPDATE student SET first_name = NULL, last_name = NULL, email = NULL, lms_user_id = NULL"
    )
    for table, column in (("student", "id"), ("submitted_assignment", "student_id")):
        # in two steps, as the code of one student may be the id of another
        by_code = [(f"\n{code}", old) for old, code in codes.items()]
        database.executemany(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", by_code)
        database.execute(f"UPDATE {table} SET {column} = substr({column}, 2)")
    database.create_function("renamed", 1, lambda text: text and rename(text))
    for column in ("auto_comment", "manual_comment"):
        database.execute(f"UPDATE comment SET {column} = renamed({column})")
    database.commit()
    return rename


def _content(path: Path, rename: Callable[[str], str]) -> bytes:
    """Return what a file holds with codes in place of students."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return content
    if path.suffix == ".ipynb":
        # of a file that is no notebook, all of the text is renamed
        with contextlib.suppress(ValueError, AttributeError, KeyError, TypeError):
            notebook = json.loads(text)
            for cell in notebook["cells"]:
                for part in {"source", "outputs", "attachments"} & {*cell}:
                    cell[part] = _each(cell[part], rename)
            kept = {"kernelspec", "language_info"}
            about = notebook["metadata"].items()
            notebook["metadata"] = {name: value for name, value in about if name in kept}
            text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
            return text.encode()
    return rename(text).encode()


def _each(value: Any, rename: Callable[[str], str]) -> Any:
    """Return a part of a cell with codes in its texts, and not in nbformat's own words."""
    if isinstance(value, list):
        return [_each(item, rename) for item in value]
    if isinstance(value, dict):
        kept = {"output_type": value["output_type"]} if "output_type" in value else {}
        return {key: _each(item, rename) for key, item in value.items()} | kept
    return rename(value) if isinstance(value, str) else value


@command(
    argument("--anonymize", action="store_true", help="put codes in place of students"),
    argument("--to", metavar="FILE", help="where to write it, instead of build/archive"),
)
def main(anonymize: bool, to: str | None, course: Course = HERE) -> None:
    """Archive a term, and say how to begin the next."""
    need_disk(course.root)
    kind = "anonymous" if anonymize else "term"
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    target = Path(to or course.build / "archive" / f"{kind}-{day}.zip").resolve()
    if target.exists():
        remedy = "move it away, or give another name with --to"
        raise ToolError(f"{target} is there already", remedy)
    students = archive(course, target, anonymize)
    what = "submissions, gradebook" + ("" if anonymize else ", feedback, class list")
    console.print(f"{target}: {what} of {students} students.", soft_wrap=True)
    if not anonymize:
        console.print(
            "Nothing was removed. To begin a new term, keep a copy of the archive elsewhere and "
            "remove build/gradebook.db, build/class, build/submitted, build/autograded, "
            "build/feedback and build/exchange by hand.",
            soft_wrap=True,
        )
