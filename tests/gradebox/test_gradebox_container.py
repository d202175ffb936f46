"""A container of Docker or Podman gives the scores that this machine gives, and is kept in bounds.

The engine of most tests is a stand-in: it notes the options that it is given and runs the command
without a container.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hang import HANG
from small_course import five, grade, hand_in, pages, points, reported, wait_until

import gradebox
from gradebox import cli, cluster, container
from gradebox.nbgrader.course import Course
from gradebox.run.batch import Unready
from gradebox.run.executor import Result
from gradebox.run.intake import Refused, Submission

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("gradebox_course"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the inner end is Linux, with fork"),
]

ENGINE = """#!{python}
import json, os, shutil, sys
arguments, folder = sys.argv[1:], {folder!r}
if arguments[:2] == ["image", "inspect"]:
    if arguments[-1] != "gradebox":
        sys.exit("Error: no such image")
    print("sha256:1")
if arguments[0] == "build":
    shutil.copytree(arguments[-1], folder + "/context")
if arguments[0] == "run":
    at = arguments.index("sha256:1")
    options, command = arguments[1:at], arguments[at + 1:]
    with open(folder + "/runs", "a") as file:
        print(json.dumps([os.getpid(), options]), file=file)
    given = [option[6:] for option in options if option.startswith("--env=")]
    values = [name if "=" in name else name + "=" + os.environ[name] for name in given]
    inside = dict(value.split("=", 1) for value in values)
    inside |= {{"PYTHONPATH": folder + "/site:" + {source!r}, "TMPDIR": folder + "/tmp"}}
    inside["PATH"] = "/usr/bin:/bin"
    os.chdir("/")
    os.execve({python!r}, [{python!r}, *command[1:]], inside)
"""

BOUNDS = {
    "--rm",
    "--interactive",
    "--init",
    "--pull=never",
    "--network=none",
    "--read-only",
    "--tmpfs=/tmp:rw,nosuid,nodev",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--user=1000:1000",
    "--memory=8g",
    "--memory-swap=8g",
    "--pids-limit=4096",
    "--env=HOME=/tmp",
}


class Engine:
    """A stand-in for Podman that is first on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tmp").mkdir(parents=True)
        source = str(Path(gradebox.__file__).parents[1])
        text = ENGINE.format(python=sys.executable, folder=str(folder), source=source)
        (folder / "podman").write_text(text)
        (folder / "podman").chmod(0o755)

    def runs(self) -> list[tuple[int, list[str]]]:
        """Return the processes and options of the containers that were started."""
        file = self.folder / "runs"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Return a stand-in for an engine, the only one there is."""
    stand_in = Engine(tmp_path / "engine")
    monkeypatch.setenv("PATH", str(stand_in.folder))
    monkeypatch.delenv("GRADEBOX_ALLOW_UNSEALED", raising=False)
    return stand_in


def in_container(*more: str) -> int:
    return grade("--sandbox=container", *more)


LOUD = """return 2 * x
import os
for descriptor in range(64):
    try:
        os.write(descriptor, b"\\0" * 7 + b"\\2{}")
    except OSError:
        pass"""


def test_a_container_gives_the_same_scores_and_pages(
    course: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    five(course)
    hand_in(course, "loud", LOUD)
    (hand_in(course, "more") / "own.txt").write_text("mine")
    (hand_in(course, "json") / "toy.ipynb").write_text("{")
    assert cli.main(["check", "toy"]) == 1  # a test gives half of its points
    said = capsys.readouterr().out
    assert grade() == 1
    expected = points(course), pages(course), reported(course)
    capsys.readouterr()
    assert cli.main(["check", "toy", "--sandbox=container"]) == 1
    assert said.startswith(capsys.readouterr().out)  # and goes on with the other sandboxes
    assert in_container() == 1  # another environment: all is graded again
    assert points(course) == expected[0]
    assert pages(course) == expected[1]
    assert reported(course) == expected[2]
    # one for the dry run, one for the class, and none where nothing is to be executed
    assert [{*options[1:]} for _, options in engine.runs()] == [BOUNDS, BOUNDS]
    assert all(options[0].startswith("--name=gradebox-") for _, options in engine.runs())
    assert in_container("--student", "[!j]*") == 0
    states = {name: entry["state"] for name, entry in reported(course).items()}
    assert {*states.values()} - {states["json"]} == {"unchanged"}
    assert len(engine.runs()) == 2
    assert not any(psutil.pid_exists(pid) for pid, _ in engine.runs())


def start(course: Path) -> "subprocess.Popen[str]":
    """Start a run by one job, in which the second of three submissions does not end."""
    hand_in(course, "a")
    waiting = hand_in(course, "b", "return 2 * x\nimport time\ntime.sleep(1000)")
    (waiting / "here.txt").write_text("")
    hand_in(course, "c", "return x")
    # what is started in the background may have been told to ignore an interruption
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = listen + "from gradebox.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", program, "grade", "toy", "-j", "1", "--sandbox=container"]
    source = str(Path(gradebox.__file__).parents[1])
    return subprocess.Popen(
        command,
        cwd=course,
        env=os.environ | {"PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until_it_waits(engine: Engine) -> list[psutil.Process]:
    """Return the processes of the container when it executes the second submission."""
    wait_until(lambda: any(engine.folder.glob("tmp/gradebox-*/.gradebox/work/*/here.txt")))
    outer = psutil.Process(engine.runs()[0][0])
    return [outer, *outer.children(recursive=True)]


@pytest.mark.slow
def test_a_container_that_dies_is_told_and_the_next_one_goes_on(
    course: Path, engine: Engine
) -> None:
    run = start(course)
    until_it_waits(engine)[0].kill()
    said, _ = run.communicate(timeout=HANG)
    assert run.returncode == 1, said
    states = {name: entry["state"] for name, entry in reported(course).items()}
    assert states == {"a": "graded", "b": "failed", "c": "graded"}
    assert "the container ended (exit status -9); the same command" in reported(course)["b"]["why"]
    assert len(engine.runs()) == 2
    assert {("a", "test"): "3.0", ("c", "test"): "0.0"}.items() <= points(course).items()


def test_a_container_ends_with_an_interrupted_run(course: Path, engine: Engine) -> None:
    run = start(course)
    inside = until_it_waits(engine)
    run.send_signal(signal.SIGINT)
    said, _ = run.communicate(timeout=HANG)
    assert run.returncode == 130
    assert "The same command goes on where it stopped." in said
    psutil.wait_procs(inside, HANG)
    assert points(course).keys() == {("a", name) for _, name in points(course)}


def test_a_missing_image_is_told_with_the_command(
    course: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "a")
    with (course / "nbgrader_config.py").open("a") as file:
        file.write("c.Container.image = 'other'\n")
    assert in_container() == 2
    said = capsys.readouterr().err
    assert "podman has no image 'other'" in said
    assert "python -m gradebox.container build -r requirements.txt --image other" in said


def test_without_an_engine_it_is_told_why(
    course: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "a")
    (engine.folder / "podman").unlink()
    program = engine.folder / "docker"
    program.write_text("#!/bin/sh\necho warning >&2\necho no daemon >&2\nexit 1\n")
    program.chmod(0o755)
    for command in ("grade", "check"):
        assert cli.main([command, "toy", "--sandbox=container"]) == 2
        said = capsys.readouterr().err
        assert "none answers (docker: no daemon; podman: not installed)" in said


def test_a_container_in_which_nothing_is_sealed_is_refused(
    course: Path, engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(course, "a")
    (engine.folder / "site").mkdir()
    text = "import sys\nif 'gradebox.sandbox.probe' in sys.orig_argv: sys.exit('no')\n"
    (engine.folder / "site/sitecustomize.py").write_text(text)
    assert in_container() == 2
    assert "notebooks cannot be sealed here" in capsys.readouterr().err
    assert not (course / "autograded").exists()


def test_an_image_with_other_rules_is_refused(
    course: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = cluster.versions() | {"nbgrader": "0.1"}
    monkeypatch.setattr(cluster, "versions", lambda: versions)
    with container.opened(Course(course, "toy")) as box:
        wanted = r"nbgrader \S+ \(expected 0\.1\).* make the image again: python -m gradebox"
        with pytest.raises(Unready, match=wanted):
            box.dry_run()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\xff" * 8, "a message of 18446744073709551615 bytes"),
        (b"\0" * 7 + b"\2{}", "KeyError"),
        (b"\0" * 7 + b"\2[]", "TypeError"),
        (b"\0" * 7 + b"\1{", "JSONDecodeError"),
        (b"\0" * 6 + b"\1\0" + b"[" * 256, "JSONDecodeError"),
        (b"\0" * 7 + b'\x08{"id":7}', "KeyError"),
    ],
)
def test_an_answer_that_is_none_ends_the_container(
    tmp_path: Path, content: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_ENDING", 0.2)
    program = tmp_path / "engine"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys, time\n"
        f"if sys.argv[1] == 'run':\n    os.write(1, {content!r})\n    time.sleep(1000)\n"
    )
    program.chmod(0o755)
    line = container.Line(str(program), [])
    with pytest.raises(container.Ended, match=f"it sent what it should not: .*{why}"):
        line.ask({"call": "execute"})
    line.close()


def test_no_file_of_a_container_lands_elsewhere(
    course: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"notebooks": "{}", "files": {"../../evil.txt": ""}}
    monkeypatch.setattr(container.Box, "_ask", lambda *_, **__: answer)
    with container.opened(Course(course, "toy")) as box, pytest.raises(Refused, match=r"evil\.txt"):
        box.execute(Submission("a", {}, {}, ()), {})


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/../../b", "/a", "a//b", "..\\a", "C:a", "a:b", "a\nb", "\udc80"],
)
def test_a_name_that_is_not_one_everywhere_is_left_out(name: str) -> None:
    plain = container._plain(Result('{"events": []}', {name: b"x", "made/a.txt": b"y"}))
    assert plain["files"] == {"made/a.txt": "eQ=="}
    assert "not every system" in plain["notebooks"]


def test_readable_folders_and_variables_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    section = {"readable": [str(tmp_path), "/only/in/the/image"], "environment": ["TOKEN", "NONE"]}
    more = {*container.options("8g", section)} - BOUNDS
    bound = f"--mount=type=bind,source={tmp_path},target={tmp_path},readonly"
    assert more - {"--env=GRADEBOX_ALLOW_UNSEALED"} == {
        bound,
        "--env=TOKEN",
    }  # the engine reads the value itself


def test_an_image_is_made_of_what_is_installed(engine: Engine, tmp_path: Path) -> None:
    wheel, named = tmp_path / "own-1.0-py3-none-any.whl", tmp_path / "requirements.txt"
    wheel.write_bytes(b"wheel")
    named.write_text("torch\n")
    assert container.main(["build", "-r", str(named), "numpy", str(wheel)]) == 0
    context = engine.folder / "context"
    lines = (context / "requirements.txt").read_text().splitlines()
    assert {"nbgrader==0.9.6", "torch", "numpy", f"/build/{wheel.name}"} <= {*lines}
    assert (context / wheel.name).read_bytes() == b"wheel"
    ours = Path(gradebox.__file__).parent
    copied = (context / "gradebox/container.py").read_bytes()
    assert copied == (ours / "container.py").read_bytes()
    first = (context / "Dockerfile").read_text().splitlines()[0]
    assert first.endswith("python:{}.{}-slim".format(*sys.version_info))


def test_a_real_engine_gives_the_same_scores(course: Path) -> None:
    try:
        container.image_id(container.engine(), container.IMAGE)
    except Unready as error:
        pytest.skip(str(error))
    five(course)
    assert grade() == 0
    expected = points(course)
    assert in_container() == 0
    assert points(course) == expected
