"""Open JupyterLab on the released notebooks, with nbgrader: ``python -m tools.classroom.lab``.

The notebooks open as copies in ``work``, so that ``exercises`` stays as released. Work that has
begun is never overwritten, and what was edited in ``exercises`` is gathered.
The user's own Jupyter settings are neither read nor changed.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from nbformat import NotebookNode
from rich.text import Text

from gradebox.exchange import Releases, copy, gather
from gradebox.nbgrader.cells import of
from tools import notebooks
from tools.classroom import release
from tools.classroom.backend import environment
from tools.fingerprints import files, write_if_changed
from tools.layout import HERE, Course
from tools.progress import Stages, each
from tools.terminal import argument, command, console

FOR_INSTRUCTORS = ["create-assignment", "formgrader", "course-list"]
OF_THE_EXCHANGE = ["menu", "assignment-list"]  # parts of nbgrader's extension to JupyterLab

OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS")
"""What make tells those that it starts."""
HOW_TO_SUBMIT = "handin.json"
"""In the folder of a handout: how students submit, as the instructor chose it."""
UPLOAD = "upload"


def submission_method(course: Course) -> dict[str, str]:
    """Return ``how`` students submit, the ``text`` that tells it, and their ``id``, if any is."""
    file = course.root / HOW_TO_SUBMIT
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def copy_for_work(course: Course, topic: str) -> bool:
    """Put copies of released notebooks where they can be worked on; gather what is elsewhere.

    Returns whether the copies have the tests of the latest release: work that has begun is never
    overwritten.
    """
    releases = Releases(course.exercises)
    folders = [course.root / folder for folder in course.config.Submit.places]
    for said in gather(course.work, topic, folders, releases, course.root):
        console.print(f"[yellow]{said}[/]")
    for path in files(course.exercises / topic):
        name = path.relative_to(course.exercises / topic).as_posix()
        target = course.work / topic / name
        if not target.exists() or releases.knows(topic, name, target):
            copy(path, target)
    try:
        return all(
            locked(notebooks.read(course.work / topic / f"{name}.ipynb"))
            == locked(notebooks.read(course.released(topic, name)))
            for name in course.notebooks(topic)
        )
    except Exception:  # whatever nbformat finds wrong with somebody's file
        return False


def locked(notebook: NotebookNode) -> dict[str, str]:
    """Return the cells that nobody may change, by nbgrader's names."""
    cells = notebooks.named(notebook).items()
    return {name: cell.source for name, cell in cells if of(cell).get("locked")}


def settings(course: Course) -> dict[str, str]:
    """Return the environment that keeps Jupyter's settings and caches inside the course."""
    home = course.build / "jupyter"
    off = [] if course.has_solutions else FOR_INSTRUCTORS
    if submission_method(course).get("how") == UPLOAD:  # and the menu would have nothing to offer
        off = off + OF_THE_EXCHANGE
    # no question about news: the course works without a network
    disabled = ["@jupyterlab/apputils-extension:announcements"]
    disabled += [f"@jupyter/nbgrader:{name}" for name in off]
    page = json.dumps({"disabledExtensions": dict.fromkeys(disabled, True)})
    write_if_changed(home / "config" / "labconfig" / "page_config.json", page.encode())
    # The assignment list looks for nbgrader's settings among Jupyter's, not in the course.
    shared = f'load_subconfig("nbgrader_config.py", path={str(course.root)!r})\n'
    write_if_changed(home / "config" / "nbgrader_config.py", shared.encode())
    folders = [home / name for name in ("config", "data", "runtime")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    # Only Jupyter's user may read the keys of running kernels.
    (home / "runtime").chmod(0o700)
    return environment() | {f"JUPYTER_{one.name.upper()}_DIR": str(one) for one in folders}


def jupyterlab(course: Course, topic: str, browser: bool) -> list[str]:
    """Return the command that opens JupyterLab on one assignment."""
    notebook = (course.work / topic / f"{topic}.ipynb").relative_to(course.root).as_posix()
    command = [
        *(sys.executable, "-m", "jupyterlab"),
        f"--ServerApp.root_dir={course.root}",
        f"--LabApp.default_url=/lab/tree/{notebook}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    command += [] if browser else ["--no-browser"]
    # In a container everyone is root, and Jupyter would refuse.
    return command + (["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])


def _serve(command: Sequence[str], course: Course) -> int:
    """Run the server, and end it with this process; Ctrl-C goes to it, and it asks back."""
    # A make in a terminal of JupyterLab is no part of the one that started it.
    own_environment = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    server = subprocess.Popen(command, cwd=course.root, env=own_environment | settings(course))
    before = signal.signal(signal.SIGTERM, lambda *_: server.terminate())
    try:
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                return server.wait()
    finally:
        signal.signal(signal.SIGTERM, before)


@command(
    argument("topic", nargs="?", metavar="TOPIC", help="the assignment to open"),
    argument("--no-browser", action="store_true", help="only print the address"),
)
def main(topic: str | None, no_browser: bool, course: Course = HERE) -> int:
    """Release what is not released yet, then open JupyterLab until it is stopped."""
    topics = course.choose([])
    first = course.choose([topic] if topic else [])[0]
    course.prepare()
    if course.has_solutions:
        with Stages() as stages:
            release.update(course, each(topics, stages.add("Release")))
    for topic in topics:
        where = str((course.work / topic).relative_to(course.root))
        if not copy_for_work(course, topic):
            console.print(
                f"[yellow]{topic} was released anew;[/] your work in {where}/ was begun before "
                "and stays. Move it away to get the new one."
            )
    where = f"{course.work.relative_to(course.root)}/, on {', '.join(topics)}"
    hint = "[bold]Validate[/] runs the visible tests. Ctrl-C twice stops."
    console.print(f"You work in {where}. {hint}")
    menu = "Under Nbgrader in the menu: assignment list"
    menu += " (students), formgrader (instructors)." if course.has_solutions else "."
    text = submission_method(course).get("text")
    console.print(Text(f"How to hand in: {text}" if text else menu))
    return _serve(jupyterlab(course, first, not no_browser), course)
