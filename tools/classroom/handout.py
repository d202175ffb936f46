"""Pack the course for students, without the solutions: ``python -m tools.classroom.handout``.

It holds the released notebooks, the code that their checks import, what opens JupyterLab, and what
says how this class hands in: students upload a zip, or submit to an exchange, which they share with
the instructor or find on a JupyterHub.
"""

import contextlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires
from modulefinder import ModuleFinder
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from gradebox.exchange import MANIFEST
from optdl.files import atomic_write
from tools.classroom import lab, release
from tools.fingerprints import files
from tools.layout import HERE, ROOT, Course, configuration, file_name, is_result
from tools.progress import Stages, each
from tools.terminal import ToolError, argument, command, console

TOP = ("LICENSE", "_toc.yml", "nbgrader_config.py", "pyproject.toml")
PINS = "requirements.txt"
FOLDERS = ("src/gradebox", "src/optdl")
COMMANDS = ("tools.install", "tools.classroom.lab", "tools.classroom.submit")
OWN = ROOT / "tools" / "classroom" / "handout_files"
"""What students get in place of the instructor's files of the same names."""
README = "README.md"
HAND_IN = OWN / "hand_in"
"""How to hand in, for each way; the first line is also told at the end of each notebook."""
PLACE = "<!-- hand in -->"  # where it goes in the students' README
USER_NAME = "user name"
"""What students call the id under which they hand in, if nothing else is said."""
WAYS = (lab.UPLOAD, "exchange", "hub")


def instructions(course: Course, how: str, called: str) -> str:
    """Return how to hand in, as students read it; a terminal shows the first line."""
    text = (HAND_IN / f"{how}.md").read_text(encoding="utf-8")
    return text.format(id=called, exchange=course.exchange).strip()


def pack(course: Course, target: Path, how: str = lab.UPLOAD, called: str = USER_NAME) -> list[str]:
    """Write the archive whole or not at all; return the names of the files in its one folder."""
    content, text = dict(_content(course)), instructions(course, how, called)
    readme = (OWN / README).read_text(encoding="utf-8").replace(PLACE, text)
    readme = readme.replace("<!-- title -->", configuration(ROOT)["title"])
    first = text.partition("\n")[0].replace("`", "")
    written = {
        README: readme,
        lab.HOW_TO_SUBMIT: json.dumps({"how": how, "text": first, "id": called}),
        PINS: _pins((ROOT / PINS).read_text(encoding="utf-8")),
    }
    with atomic_write(target) as scratch, ZipFile(scratch, "w", ZIP_DEFLATED) as archive:
        for name, path in content.items():
            archive.write(path, f"{target.stem}/{name}")
        for name, text_ in written.items():
            archive.writestr(f"{target.stem}/{name}", text_)
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

    def is_kept(line: str) -> bool:
        return line.startswith("#") or canonicalize_name(line.partition("==")[0]) in needed

    return "".join(filter(is_kept, text.splitlines(keepends=True)))


def _content(course: Course) -> Iterator[tuple[str, Path]]:
    """Give names in the archive with the files that stand for them."""
    for path in files(OWN):
        if path.name != README and not path.is_relative_to(HAND_IN):
            yield path.relative_to(OWN).as_posix(), path
    released = [f"exercises/{name}" for name in (MANIFEST, *course.topics())]  # no other folder
    roots = [course.root / name for name in (*TOP, *FOLDERS, *released)]
    finder = ModuleFinder([str(ROOT)])  # for what the commands import of the repository
    for name in COMMANDS:
        finder.import_hook(name)
    found = (vars(module)["__file__"] for module in finder.modules.values())
    tools = sorted(map(Path, filter(None, found)))
    for path in [*files(*(root for root in roots if root.exists())), *tools]:
        left = path.suffix == ".pyc" or is_result(path)
        if ".egg-info" not in str(path) and not left:
            base = ROOT if path.is_relative_to(ROOT / "tools") else course.root
            yield path.relative_to(base).as_posix(), path


@command(
    argument("--to", metavar="FILE", help="where to write it, instead of build/handout"),
    argument("--how", choices=WAYS, default=WAYS[0], help="how students hand in"),
    argument("--id", dest="called", default=USER_NAME, help="what students call their id"),
)
def main(to: str | None, how: str, called: str, course: Course = HERE) -> None:
    """Release what is not released yet, and pack it."""
    course.need_solutions()
    if how != lab.UPLOAD and course.exchange.is_relative_to(course.root):
        raise ToolError(
            f"students do not share the exchange, {course.exchange}: it lies in your copy",
            "set c.Exchange.root in nbgrader_config.py to a folder in which all may write, "
            "or let them upload a zip: make handout HOW=upload",
        )
    name = f"{file_name(ROOT)}-{datetime.now(UTC):%Y-%m-%d}.zip"
    target = Path(to or course.build / "handout" / name)
    with Stages() as stages:
        for topic in each(course.choose([]), stages.add("Release")):
            release.write(course, topic)
    names, size = pack(course, target, how, called), target.stat().st_size / 1e6
    console.print(
        f"{target.resolve()}: {len(names)} files, {size:.1f} MB, without solutions. Students "
        f"unpack it and follow its README.md, which tells how to hand in.",
        soft_wrap=True,
    )
