"""Execute submissions in a container of Docker or Podman: on macOS and Windows, and on Linux.

There Linux runs in the engine's virtual machine, and gradebox's own sandbox in the container keeps
students from the tests and from each other. The container is the wall around both: it has no
network, no file of this machine that is not named, and limits. One container serves a run; it gets
what a worker of a cluster gets, and answers with plain data. Only this machine writes scores.

Each message is its length in eight bytes and JSON. ``python -m gradebox.container build`` makes
the image; nothing is downloaded or built unasked.
"""

import argparse
import base64
import contextlib
import importlib.metadata
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from pathlib import Path
from typing import IO, Any, NoReturn

from traitlets import Unicode
from traitlets.config import LoggingConfigurable

from gradebox import cluster
from gradebox.events import Event
from gradebox.files import digest
from gradebox.nbgrader.course import Course
from gradebox.nbgrader.dry_run import Plan, TestRun, kept, of_plain
from gradebox.nbgrader.gradebook import Sources
from gradebox.processors import cores
from gradebox.run.batch import Batch, Unready
from gradebox.run.executor import Result
from gradebox.run.intake import Refused, Submission
from gradebox.sandbox.filesystem import TooMuch

IMAGE = "gradebox"
ENGINES = ("docker", "podman")
BUILD = "python -m gradebox.container build -r requirements.txt"

MOST = 2**30
"""The bytes of an answer: what a notebook leaves is limited to half of it, see ``max_disk``."""

PROCESSES = 4096
"""So many processes and threads the container may have; each notebook has its own, lower limit."""

_ANSWER = 60  # seconds of wall time in which an engine that is there says something
_ENDING = 10  # seconds of wall time in which a container ends that is told to

DOCKERFILE = """\
FROM docker.io/library/python:{python}-slim
COPY . /build
RUN pip install --no-cache-dir --requirement /build/requirements.txt \\
 && mv /build/gradebox "$(python -c 'import site; print(site.getsitepackages()[0])')" \\
 && useradd --uid 1000 grader && rm -r /build
"""
"""The image: the packages of a course, those of gradebox, and gradebox as it is installed here."""


class Container(LoggingConfigurable):
    """What a course may tell of its container in ``nbgrader_config.py``."""

    image = Unicode(
        IMAGE,
        help="The image in which notebooks run; 'python -m gradebox.container build' makes it.",
    ).tag(config=True)
    memory = Unicode(
        "8g", help="The memory of all notebooks that run at once, such as '8g'; more ends them all."
    ).tag(config=True)


# --- Engine --------------------------------------------------------------------------------------


def engine() -> str:
    """Return the program of the first engine that answers.

    Raises
    ------
    Unready
        If none does.
    """
    reasons = []
    for name in ENGINES:
        program = shutil.which(name)
        if program is None:
            reasons.append(f"{name}: not installed")
            continue
        try:
            asked = _ask(program, "version")
        except subprocess.TimeoutExpired:
            reasons.append(f"{name}: no answer in {_ANSWER} seconds")
            continue
        if not asked.returncode:
            return program
        reasons.append(f"{name}: {(asked.stderr.strip() or 'failed').splitlines()[-1]}")
    raise Unready(
        f"a container needs Docker or Podman, and none answers ({'; '.join(reasons)}); "
        "install or start one of them"
    )


def image_id(program: str, image: str) -> str:
    """Return what tells an image from all others of its name.

    Raises
    ------
    Unready
        If there is no such image.
    """
    asked = _ask(program, "image", "inspect", "--format", "{{.Id}}", image)
    if asked.returncode:
        raise Unready(
            f"{Path(program).stem} has no image {image!r}; make it, with the packages that the "
            f"notebooks import: {BUILD}{'' if image == IMAGE else f' --image {image}'}"
        )
    return asked.stdout.strip()


def _ask(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_ANSWER,
        check=False,
    )


def options(memory: str, execute: Mapping[str, Any]) -> list[str]:
    """Return the options of the container: what it may not, and the few things that it gets.

    Parameters
    ----------
    memory : str
        See :class:`Container`.
    execute : mapping
        The section ``WarmExecute`` of the configuration. What notebooks may read is shown to the
        container where this machine has it, read-only, and else looked for in the image.
    """
    # never mounted is what has another name in Linux
    shared = [path for path in execute.get("readable", ()) if path.startswith("/")]
    variables = [*execute.get("environment", ()), "GRADEBOX_ALLOW_UNSEALED"]
    return [
        *("--rm", "--interactive", "--init", "--pull=never"),
        *("--network=none", "--read-only", "--tmpfs=/tmp:rw,nosuid,nodev"),
        *("--cap-drop=ALL", "--security-opt=no-new-privileges", "--user=1000:1000"),
        # as much with swap as without: there is none
        *(f"--memory={memory}", f"--memory-swap={memory}", f"--pids-limit={PROCESSES}"),
        *(
            f"--mount=type=bind,source={path},target={path},readonly"
            for path in shared
            if Path(path).exists()
        ),
        "--env=HOME=/tmp",
        # the engine takes the values from this environment
        *(f"--env={name}" for name in variables if name in os.environ),
    ]


# --- Messages ------------------------------------------------------------------------------------


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(8, "big"))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes], most: float = math.inf) -> dict[str, Any] | None:
    """Return the next message; None at the end, also in the midst of one."""
    size = int.from_bytes(stream.read(8), "big")
    if size > most:
        raise ValueError(f"a message of {size} bytes")
    content = stream.read(size)
    if not size or len(content) < size:
        return None
    message: dict[str, Any] = json.loads(content)
    return message


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(content).decode() for name, content in files.items()}


def _contents(files: Mapping[str, str]) -> dict[str, bytes]:
    return {name: base64.b64decode(content, validate=True) for name, content in files.items()}


_UNUSUAL = re.compile(r'[<>:"|?*\\\x00-\x1f\ud800-\udfff]')


def is_portable(name: str) -> bool:
    """Tell whether every system keeps a file under this name, and inside its folder."""
    return not _UNUSUAL.search(name) and not {"", ".", ".."} & {*name.split("/")}


# --- Outside -------------------------------------------------------------------------------------


class Ended(Exception):
    """The container ended before it had answered; the text says how."""


class Line:
    """A container that runs, and what it is asked.

    Parameters
    ----------
    program : str
        The engine.
    arguments : list of str
        What follows ``run``, but for the name of the container.
    """

    def __init__(self, program: str, arguments: list[str]) -> None:
        self.why = ""
        """How it ended; nothing while it runs."""
        self._program, self._name = program, f"gradebox-{os.getpid()}-{os.urandom(4).hex()}"
        self._process = subprocess.Popen(
            [program, "run", f"--name={self._name}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C then reaches the grader alone
        )
        assert self._process.stdin
        assert self._process.stdout
        self._input, self._output = self._process.stdin, self._process.stdout
        self._errors: Any = self._process.stderr
        self._answers: dict[int, Future[dict[str, Any]]] = {}
        self._numbers, self._said = itertools.count(), b""
        self._changing, self._sending = threading.Lock(), threading.Lock()
        self._threads = [
            threading.Thread(target=target, daemon=True) for target in (self._listen, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; that the container has ended is told by whoever waits for an answer."""
        with self._sending, contextlib.suppress(OSError, ValueError):
            _send(self._input, json.dumps(message).encode())

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request.

        Raises
        ------
        Ended
            If the container ended.
        """
        future: Future[dict[str, Any]] = Future()
        with self._changing:
            if self.why:
                raise Ended(self.why)
            number = next(self._numbers)
            self._answers[number] = future
        self.send({"id": number, **request})
        while not wait([future], 1).done:  # Windows notices Ctrl-C between two waits only
            pass
        return future.result()

    def _read(self) -> None:
        wrong = ""
        try:
            while (answer := _receive(self._output, MOST)) is not None:
                with self._changing:
                    future = self._answers.pop(answer["id"])
                future.set_result(answer)
        # threads wait, whatever it is that came: a student may have broken out
        except Exception as error:
            wrong = f"it sent what it should not: {type(error).__name__}: {error}"
        self._end()
        self._output.close()
        why = f"the container ended ({wrong or self._how()})"
        with self._changing:
            self.why = why
            unanswered = [*self._answers.values()]
        for future in unanswered:
            future.set_exception(Ended(why))

    def _how(self) -> str:
        self._threads[0].join(_ENDING)
        said, status = self._said.decode(errors="replace").strip(), self._process.returncode
        killed = ": killed, perhaps because all needed more than Container.memory"
        return f"exit status {status}{killed if status == 137 else ''}{said and '; ' + said}"

    def _listen(self) -> None:
        while content := self._errors.read1(4096):
            self._said = (self._said + content)[-1000:]
        self._errors.close()

    def _end(self) -> None:
        """End it; one that does not end when it is told no more is killed."""
        # a container that reads nothing keeps a thread sending
        if self._sending.acquire(timeout=_ENDING):
            with contextlib.suppress(OSError):
                self._input.close()
            self._sending.release()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(subprocess.TimeoutExpired):
                _ask(self._program, "kill", self._name)
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End the container."""
        self._end()
        self._threads[1].join()


class Box:
    """The container of a run, for any thread; it starts when it is first needed.

    A submission that ends the container has those fail that run at the same time. The next one
    gets a new container.

    Parameters
    ----------
    course : Course
        The course and its assignment.
    sources : Sources, optional
        What the gradebook knows of the assignment; not needed for a dry run.

    Raises
    ------
    Unready
        If there is no engine, or no image.
    """

    def __init__(self, course: Course, sources: Sources | None = None) -> None:
        settings = Container(parent=course.gradebox)
        self._program = engine()
        self.image = image_id(self._program, settings.image)
        limits = options(settings.memory, course.config.get("WarmExecute", {}))
        serve = ["python", "-P", "-m", "gradebox.container", "serve"]
        self._arguments = [*limits, self.image, *serve]
        order = cluster.packed(course, sources, _shared())
        self._order = {**order, "files": _texts(order["files"])}
        self._course = course
        self._starting, self._is_closed = threading.Lock(), False
        self._line: Line | None = None

    def take_over(self, run: Batch) -> None:
        """Execute the submissions of a run, and find out how its tests run."""
        run.execute, run.dry_run, run.elsewhere = self.execute, self.dry_run, (self.image,)

    def dry_run(self) -> list[TestRun]:
        """Find out how the tests run, once for each version of them and of the image.

        Raises
        ------
        Unready
            If that fails.
        """

        def find_out() -> list[TestRun]:
            try:
                return of_plain(self._ask("dry_run"))
            except Refused as error:
                raise Unready(str(error)) from error

        course = self._course
        file = course.store / "dry-run" / f"{course.assignment}.container.json"
        return kept(file, digest([course.basis(course.chain(), ""), self.image]), find_out)

    def execute(self, submission: Submission, plan: Plan) -> Result:
        """Execute a submission.

        Raises
        ------
        Refused
            If that fails, or the container ends.
        """
        fields = vars(submission) | {
            "notebooks": _texts(submission.notebooks),
            "files": _texts(submission.files),
        }
        plain = {name: vars(notebook_plan) for name, notebook_plan in plan.items()}
        result = self._ask("execute", submission=fields, plan=plain)
        files = _contents(result["files"])
        # nothing that comes from there is believed: this would be written outside of the store
        if strange := [name for name in files if not is_portable(name)]:
            raise Refused(f"the container sent a file with the name {strange[0]!r}")
        return Result(str(result["notebooks"]), files)

    def _ask(self, call: str, **fields: Any) -> Any:
        with self._starting:
            if self._is_closed:
                raise Refused("the run has ended")
            if self._line is None or self._line.why:
                self._line = Line(self._program, self._arguments)
                self._line.send(self._order)
            line = self._line
        try:
            answer = line.ask({"call": call, **fields})
        except Ended as ended:
            raise Refused(f"{ended}; the same command tries it again") from ended
        if "why" in answer:
            raise Refused(str(answer["why"]))
        return answer["result"]

    def close(self) -> None:
        """End the container."""
        with self._starting:
            self._is_closed = True
            if self._line is not None:
                self._line.close()


@contextlib.contextmanager
def opened(course: Course, sources: Sources | None = None) -> Iterator[Box]:
    """Give a container for a run; see :class:`Box`."""
    box = Box(course, sources)
    try:
        yield box
    finally:
        box.close()


def _shared() -> dict[str, str]:
    """Return what must be the same in the image as outside."""
    everything = cluster.versions()
    return {name: everything[name] for name in (cluster.RULES, "nbgrader")}


# --- Inside --------------------------------------------------------------------------------------


def serve() -> NoReturn:
    """Answer what the grader asks until it is gone."""
    requests, answers = (os.fdopen(os.dup(n), mode) for n, mode in ((0, "rb"), (1, "wb")))
    # no process that starts here gets an end of the line, and what is printed is no message
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    order = _receive(requests)
    answering = threading.Lock()
    if order is not None:
        order["files"] = _contents(order["files"])

    def answer(request: dict[str, Any]) -> None:
        content = _reply(request["id"], _answer(order, request))
        if len(content) > MOST:
            why = "the files that the notebooks left are too large together"
            content = _reply(request["id"], {"why": why})
        with answering:
            _send(answers, content)

    for request in iter(lambda: _receive(requests), None):
        threading.Thread(target=answer, args=(request,), daemon=True).start()
    # the first process of a container ends all the others with it
    os._exit(0)


def _reply(number: int, fields: dict[str, Any]) -> bytes:
    return json.dumps({"id": number, **fields}).encode()


def _answer(order: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request, or why there is none."""
    try:
        if request["call"] == "dry_run":
            return {"result": cluster.dry_run(order, cores())}
        submission = request["submission"]
        for kind in ("notebooks", "files"):
            submission[kind] = _contents(submission[kind])
        submission["unknown"] = tuple(submission["unknown"])
        return {"result": _plain(Result(**cluster.execute(order, submission, request["plan"])))}
    except cluster.Unlike as error:
        return {"why": f"{error}: make the image again: {BUILD}"}
    except (Refused, TooMuch) as error:
        return {"why": str(error)}
    except Exception as error:
        return {"why": f"{type(error).__name__}: {error}"}


def _plain(result: Result) -> dict[str, Any]:
    """Return a result without the files that not every system keeps."""
    files = {name: content for name, content in result.files.items() if is_portable(name)}
    notebooks = result.notebooks
    if strange := result.files.keys() - files.keys():
        told = json.loads(notebooks)
        text = "a file was left out, because not every system has such names: {}"
        told["events"] += [
            Event("message", fields={"text": text.format(name)}).plain for name in sorted(strange)
        ]
        notebooks = json.dumps(told)
    return {"notebooks": notebooks, "files": _texts(files)}


# --- Image ---------------------------------------------------------------------------------------


def build(packages: list[str], requirements: Path | None, image: str = IMAGE) -> int:
    """Make the image with the installed gradebox and packages; return the engine's exit status.

    Parameters
    ----------
    packages : list of str
        Packages, as pip takes them, and wheels.
    requirements : Path, optional
        A file that names more of them.
    image : str
        The name of the image.

    Raises
    ------
    Unready
        If no engine answers.
    """
    needed = importlib.metadata.requires("gradebox") or []
    lines = [line for line in needed if "extra ==" not in line]
    lines += [] if requirements is None else [requirements.read_text(encoding="utf-8")]
    program = engine()
    with tempfile.TemporaryDirectory(prefix="gradebox-") as name:
        folder = Path(name)
        for package in packages:
            if package.endswith(".whl"):
                shutil.copy(package, folder)
            lines.append(f"/build/{Path(package).name}" if package.endswith(".whl") else package)
        (folder / "requirements.txt").write_text("\n".join(lines), encoding="utf-8")
        python = "{}.{}".format(*sys.version_info)
        (folder / "Dockerfile").write_text(DOCKERFILE.format(python=python), encoding="utf-8")
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(__file__).parent, folder / "gradebox", ignore=ignored)
        return subprocess.run([program, "build", f"--tag={image}", name], check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Make the image, or be the inner end in one that runs."""
    parser = argparse.ArgumentParser(prog="python -m gradebox.container")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    making = commands.add_parser("build", help="make the image in which notebooks run")
    making.add_argument(
        "packages", nargs="*", metavar="PACKAGE", help="as pip takes it, or a wheel"
    )
    making.add_argument("-r", "--requirements", type=Path, metavar="FILE", help="names of packages")
    making.add_argument("--image", default=IMAGE, help="its name (%(default)s)")
    making.set_defaults(command=build)
    commands.add_parser("serve", help="answer a grader").set_defaults(command=serve)
    fields = vars(parser.parse_args(arguments))
    try:
        return int(fields.pop("command")(**fields))
    except (Unready, OSError) as problem:
        print(f"gradebox: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
