"""Each barrier around a notebook stops a probe that gets through where nothing is sealed."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest
from courses import lives, wait_for_ends, wait_until
from hang import HANG
from hostile.texts import cells, lines, sections
from notebooks import cell, shown
from notebooks import executed as graded

from gradebox.nbgrader import execute
from gradebox.sandbox import filesystem, linux, probe, seal
from gradebox.sandbox.seal import MIB, Level, Limits, NotSealed
from gradebox.workers import client, pool
from gradebox.workers.client import Ended, ForkServer, Notebook, running
from gradebox.workers.protocol import Begin

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sealing needs Linux"),
    pytest.mark.xdist_group("gradebox"),
]


@pytest.fixture
def server() -> ForkServer:
    return pool.server(pool.modules("", ("numpy",)))


SECRETS = ("GRADER_TOKEN", "NBGRADER_DB_PASSWORD", "PYTHON_KEYRING", "GRADEBOX_KEY", "LC_TOKEN")


@pytest.fixture(scope="module")
def bare() -> Iterator[ForkServer]:
    """Return a warm process that has imported nothing, of a grader with a secret."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*SECRETS, "LANG"):
            patch.setenv(name, "C.UTF-8")
        made = ForkServer()
    yield made
    made.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "data.txt").write_text("given")
    return made


class Outside:
    """What the probes try to reach: a secret file and listeners of this test."""

    def __init__(self, folder: Path, tcp: Any, abstract: Any, path: Any) -> None:
        self.folder, self.secret = folder, folder / "secret.txt"
        abstract.bind(f"\0gradebox-test-{os.getpid()}")
        path.bind(f"{folder}/socket")
        for end in abstract, path:
            end.listen()
        (folder / "socket").chmod(0o777)
        self.names = {
            "SECRET": repr(str(self.secret)),
            "FOLDER": repr(str(folder)),
            "PORT": str(tcp.getsockname()[1]),
            "ABSTRACT": repr(abstract.getsockname()),
            "SOCKET": repr(path.getsockname()),
            "GRADER": str(os.getpid()),
        }
        self.restore()

    def fill(self, name: str) -> str:
        """Return the code of a probe: it has its targets, and says whether it gets through."""
        source = re.sub("|".join(self.names), lambda found: self.names[found[0]], PROBES[name])
        return f"import os, resource, socket\n{source}\nprint('through')"

    def restore(self) -> Any:
        """Write the secret anew, whatever has become of it; return what a probe might change."""
        self.secret.write_text("the scores")
        self.secret.chmod(0o666)  # every user may change it
        return self.state()

    def state(self) -> Any:
        status = self.secret.stat()
        names = {path.name for path in self.folder.iterdir()}
        return names, self.secret.read_text(), status.st_mode, status.st_mtime

    def try_all(self, notebook: Notebook) -> dict[str, str]:
        """Return what each probe says, or that it has changed something."""
        told = {}
        for name in PROBES:
            before = self.restore()
            told[name] = said(notebook, self.fill(name))
            if told[name] != "through" and self.state() != before:
                told[name] = "changed"
        return told


@pytest.fixture
def outside() -> Iterator[Outside]:
    """Return what probes try to reach, in a folder that everybody may change."""
    with (
        tempfile.TemporaryDirectory(prefix="gradebox-test-") as folder,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as path,
    ):
        Path(folder).chmod(0o777)
        yield Outside(Path(folder), tcp, abstract, path)


def python(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def said(notebook: Notebook, source: str) -> str:
    """Run a cell and return its text, or the error that ended it."""
    outputs = notebook.run(source)[0].outputs
    return "\n".join(
        one.get("text") or one.get("ename") or str(one["data"].get("text/plain")) for one in outputs
    ).strip()


@dataclass
class Box:
    """A warm process, a level and a folder that was handed in."""

    server: ForkServer
    level: Level
    work: Path

    def notebook(
        self, level: Level | None = None, readable: Iterable[str] = (), **limits: int
    ) -> AbstractContextManager[Notebook]:
        """Give a notebook a process of its own."""
        limited = level or self.level, asdict(Limits(**limits))
        begin = Begin(str(self.work), {"NBGRADER_X": "1"}, *limited, [*readable])
        return running(self.server, begin, None, seconds=HANG)

    def run(self, source: str, level: Level | None = None, **limits: int) -> str:
        with self.notebook(level, **limits) as notebook:
            return said(notebook, source)


@pytest.fixture
def box(server: ForkServer, level: Level, work: Path) -> Box:
    return Box(server, level, work)


@pytest.fixture
def spaces(namespaces: None, server: ForkServer, work: Path) -> Box:
    return Box(server, Level.NAMESPACES, work)


PROBES = dict(row.split(": ", 1) for row in cells(sections("tables/probes.txt")["probes"]))


def test_probes_get_through_only_where_nothing_is_sealed(box, outside):
    with box.notebook() as notebook:
        told = outside.try_all(notebook)
    assert [name for name, text in told.items() if text in ("through", "changed")] == []
    with box.notebook(Level.NONE) as notebook:
        assert outside.try_all(notebook) == dict.fromkeys(PROBES, "through")


ASK = """
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *values):
    ctypes.set_errno(0)
    libc.syscall(*map(ctypes.c_long, (number, *values, *[0] * (6 - len(values)))))
    return errno.errorcode.get(ctypes.get_errno(), "passes")

def opened(make, family, kind):
    try:
        make(family, kind)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "passes"

def tried(make, *but):
    kinds = [(family, kind) for family in range(48) for kind in (1, 2, 3, 5)]
    return {opened(make, *pair) for pair in kinds if pair[0] not in but}

def of_32_bits():  # getpid, as a program of 32 bits calls it
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex("53b814000000cd805bc3"))
    place = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return errno.errorcode.get(-ctypes.CFUNCTYPE(ctypes.c_int)(place)(), "passes")
"""


def asked(notebook: Notebook, source: str) -> Any:
    return literal_eval(said(notebook, f"{ASK}\n{source}"))


REFUSED = """
    ptrace process_vm_readv process_vm_writev pidfd_getfd unshare bpf perf_event_open userfaultfd
    io_uring_setup syslog keyctl add_key request_key name_to_handle_at open_by_handle_at
    memfd_create memfd_secret shmget msgget semget mq_open
    kcmp process_madvise process_mrelease migrate_pages move_pages
"""
REFUSED_BY_LANDLOCK = """
    socket setsid setpgid pidfd_open pidfd_send_signal sched_setaffinity ioprio_set setxattr
    lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat
"""
PRETENDED = "setpriority sched_setattr sched_setparam sched_setscheduler"
PRETENDED_BY_LANDLOCK = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat
"""


def test_forbidden_system_calls_are_refused_or_pretended(box):
    more = box.level is Level.LANDLOCK
    expected = dict.fromkeys((REFUSED + REFUSED_BY_LANDLOCK * more).split(), "EPERM")
    expected |= dict.fromkeys((PRETENDED + PRETENDED_BY_LANDLOCK * more).split(), "passes")
    numbers = {name: linux._number(name) for name in (*expected, "clone3")}
    known = {name: number for name, number in numbers.items() if number >= 0}
    ask = f"{{name: call(number) for name, number in {known}.items()}}"
    with box.notebook() as notebook:
        told = asked(notebook, ask)
        assert told.pop("clone3") == "ENOSYS"  # libraries then use clone
        assert told == {name: expected[name] for name in told}
        bits = (7, 17, *range(25, 31))  # the flags of clone that make namespaces
        namespaces = f"{{call({linux._number('clone')}, 1 << bit | 17) for bit in {bits}}}"
        assert asked(notebook, namespaces) == {"EPERM"}


def test_sockets_are_of_families_that_a_namespace_covers(box):
    with box.notebook(Level.NONE) as notebook:
        assert "passes" in asked(notebook, "tried(socket.socket, 1, 2, 10)")
        assert "EPERM" not in asked(notebook, "tried(socket.socketpair, 1)")
    with box.notebook() as notebook:
        assert asked(notebook, "tried(socket.socket, 1, 2, 10)") == {"EPERM"}
        assert asked(notebook, "tried(socket.socketpair, 1)") == {"EPERM"}
        mine = "opened(socket.socketpair, 1, 1), {opened(socket.socket, f, 1) for f in (1, 2, 10)}"
        allowed = "EPERM" if box.level is Level.LANDLOCK else "passes"
        assert asked(notebook, mine) == ("passes", {allowed})


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="other machines have one way")
def test_system_calls_of_other_architectures_are_refused(box):
    ask = "[call(0x40000000 | 39), of_32_bits()]"  # x32 has its own numbers
    with box.notebook(Level.NONE) as notebook:
        try:
            assert "EPERM" not in asked(notebook, ask)
        except Ended:
            pytest.skip("this kernel runs no program of 32 bits")
    with box.notebook() as notebook:
        assert asked(notebook, ask) == ["EPERM", "EPERM"]


LEAKS = f"""
import glob, os
seen = str(os.environ)
for name in glob.glob("/proc/[0-9]*/environ") + ["/proc/self/environ"]:
    try: seen += open(name).read()
    except OSError: pass
leaks = [name for name in {SECRETS} if name in seen]
"""


def test_only_allowed_environment_variables_are_seen(bare, level, work):
    with Box(bare, level, work).notebook() as notebook:
        names = said(notebook, "import os\nprint(*sorted(os.environ))").split()
        begun = said(notebook, "print(open('/proc/self/environ').read())").split("\0")
        assert said(notebook, f"{LEAKS}\nleaks, 'PATH=' in seen") == "([], True)"
    allowed = {*seal.PASSED, *seal.THREADS, "HOME", "TMPDIR", "NBGRADER_X"}
    assert {"NBGRADER_X", "LANG", "OMP_NUM_THREADS", "HOME"} <= {*names} <= allowed
    named = {*seal.PASSED, *seal.THREADS, *client.IMPORTING}
    assert {line.partition("=")[0] for line in begun if line} <= named


def test_submission_is_copied_and_links_stay_inside(box, outside):
    for name, target in {"link.txt": outside.secret, "zero": "/dev/zero", "all": "."}.items():
        (box.work / name).symlink_to(target)
    os.mkfifo(box.work / "pipe")
    program = box.work / "below/program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho run")
    program.chmod(0o755)
    (box.work / "test.ipynb").write_text("{}")
    read = "print(open('link.txt').read())"
    change = "open('data.txt', 'a').write(' more')\nprint(open('data.txt').read())"
    assert box.run(read, Level.NONE) == "the scores"
    with box.notebook() as notebook:
        assert said(notebook, read) in ("FileNotFoundError", "PermissionError")
        listed = said(notebook, "import os\nprint(sorted(os.listdir()))")
        assert listed == "['all', 'below', 'data.txt', 'link.txt', 'zero']"
        ran = "import subprocess\nprint(subprocess.check_output('all/below/program'))"
        assert said(notebook, ran) == "b'run\\n'"
        assert said(notebook, change) == "given more"
    assert box.run(change, Level.NONE) == "given more"
    assert (box.work / "data.txt").read_text() == "given"


def test_configured_paths_can_only_be_read(box, outside):
    first = Path("/etc/passwd").read_text("utf-8").partition(":")[0]
    named = [str(outside.folder), "/etc/passwd"]
    with box.notebook(readable=named) as notebook:
        secret = str(outside.secret)
        assert said(notebook, f"print(open({secret!r}).read())") == "the scores"
        assert said(notebook, f"open({secret!r}, 'a')").endswith("Error")
        assert said(notebook, "print(open('/etc/passwd').read().partition(':')[0])") == first


@pytest.fixture(scope="module")
def around_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, ForkServer]]:
    """Return a course with its virtual environment in its own folder, and a server with it.

    The course is the instructor's home too, and it and its modules are on ``sys.path``.
    """
    course = tmp_path_factory.mktemp("course")
    course.chmod(0o755)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", course], check=True)
    for name in PRIVATE:
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("secret")
    (course / "src").mkdir()
    (course / "src" / "helper.py").write_text("value = 'imported'")
    lines = [*filter(None, sys.path), str(course), str(course / "src")]
    [packages] = course.glob("lib/python*/site-packages")
    (packages / "modules.pth").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", str(course / "bin" / "python"))
        patch.setenv("HOME", str(course))
        made = ForkServer()
    yield course, made
    made.close()


PRIVATE = [
    "gradebook.db",
    "notes.txt",
    "source/one/answers.py",
    "submitted/bob/one/bob.txt",
    "share/nbgrader/exchange/course/inbound/bob.txt",
]


def test_only_modules_around_python_are_readable(around_python, level, work):
    course, server = around_python
    sources = [f"print(open({str(course / name)!r}).read())" for name in PRIVATE]
    with Box(server, Level.NONE, work).notebook() as notebook:
        assert {said(notebook, source) for source in sources} == {"secret"}
    with Box(server, level, work).notebook() as notebook:
        errors = {said(notebook, source) for source in sources}
        assert errors <= {"FileNotFoundError", "PermissionError"}
        imported = "import sys, helper, nbformat, decimal\nsys.prefix, helper.value"
        assert said(notebook, imported) == str((str(course), "imported"))


COURSE = ("nbgrader_config.py", "gradebook.db", "submitted", "autograded")


@pytest.mark.parametrize("kind", ["handed in", "folder", "home", "prefix", *COURSE])
@pytest.mark.parametrize("below", ["", "below"])
def test_import_folder_with_private_files_is_unreadable(tmp_path, kind, below, monkeypatch):
    inner = tmp_path / below
    inner.mkdir(exist_ok=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def is_readable(work: str | Path) -> bool:
        filesystem.python_paths.cache_clear()
        paths = filesystem.readable_paths(work)
        filesystem.python_paths.cache_clear()
        return str(tmp_path) in paths

    assert is_readable("/work")
    if kind == "folder":
        monkeypatch.chdir(inner)
    elif kind == "home":
        monkeypatch.setenv("HOME", str(inner))
    elif kind == "prefix":
        monkeypatch.setattr(sys, "prefix", str(inner))
    elif kind in COURSE:
        (tmp_path / kind).touch()
    assert not is_readable(inner if kind == "handed in" else "/work")


def test_landlock_allows_neither_hidden_folders_nor_links(tmp_path):
    for name in ("modules/public", "modules/hidden/below", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    modules = tmp_path / "modules"
    (modules / "link").symlink_to(tmp_path / "elsewhere")
    hidden = str(modules / "hidden")
    allowed = [str(modules / "public")]
    assert filesystem.around([str(modules)], [hidden]) == (allowed, [str(modules)])
    assert filesystem.around([f"{hidden}/below"], [hidden]) == ([], [])


def test_only_mounted_folders_are_seen(spaces):
    listed = spaces.run("import os\nprint(*os.listdir('/'))").split()
    shown = [*filesystem.readable_paths(spaces.work), str(spaces.work), filesystem.HOME]
    assert set(listed) <= {Path(one).parts[1] for one in shown} | {"dev", "etc", "proc", "tmp"}
    assert spaces.run("import os\nos.path.exists('/var')") == "False"


def test_files_written_are_gone_after_the_run(box):
    source = (
        "import os, shutil, subprocess, tempfile\nfrom pathlib import Path\n"
        "places = [Path.cwd(), Path.home(), Path(tempfile.gettempdir())]\n"
        "for place in [*places, places[0]]: (place / 'left').touch()\n"
        "subprocess.run(['touch', 'yours'], check=True)\n"
        "shutil.copy2('data.txt', 'copy')\nshutil.copytree('.', 'below/all')\n"
        "print(*(place / 'left' for place in places), sep='\\n')\n"
        "print(sorted(os.listdir('below/all')), Path('copy').read_text())"
    )
    *written, listed = box.run(source).splitlines()
    assert listed == "['copy', 'data.txt', 'left', 'yours'] given"
    assert len({*written}) == 3
    assert not any(Path(path).exists() for path in written)
    assert box.run("import os\nprint(os.listdir())") == "['data.txt']"


LIMITED = sections("tables/limits.txt")
# by another way where there are no namespaces; the others are set in one place for both
OF_LANDLOCK = "one file on the disk", "processes"
LIMITS: list[Any] = [(name, Level.NAMESPACES) for name in LIMITED]
LIMITS += [
    pytest.param(name, Level.LANDLOCK, marks=[pytest.mark.slow] * (name not in OF_LANDLOCK))
    for name in LIMITED
]


@pytest.mark.parametrize(("name", "level"), LIMITS, indirect=["level"])
def test_program_beyond_a_limit_is_stopped(box, name):
    """Without the limit it does what it says; with it, it has 9 s to be stopped."""
    head, source = LIMITED[name].split("\n---\n")
    fields = lines("\n".join(line for line in head.splitlines() if line[0] != "#"))
    if fields.get("only", box.level) != box.level:
        pytest.skip(f"{box.level} has no such limit")
    if f"no limit on {name}" in (outcome := probe.survey().tried[box.level]):
        pytest.skip(outcome)
    assert re.fullmatch(fields["says"], box.run(source.replace("WAIT", "0")))
    limit, most = fields["limit"].split()
    try:
        stopped = box.run(source.replace("WAIT", "9"), **{limit: int(most)})
    except Ended as error:
        stopped = str(error)
    assert re.fullmatch(fields["stopped"], stopped)


def test_submitted_files_count_toward_the_disk_limit(box):
    (box.work / "large").write_bytes(bytes(3 * MIB))
    assert box.run("print(1)", disk=4 * MIB) == "1"
    with pytest.raises(filesystem.TooMuch, match="2097152"):
        box.run("print(1)", disk=2 * MIB)


def test_copy_counts_whole_blocks_and_files(work, tmp_path, monkeypatch):
    monkeypatch.setattr(filesystem, "MAX_FILES", 20)

    def copy(blocks: int) -> None:
        target = tempfile.mkdtemp(dir=tmp_path)
        filesystem.copy(str(work), target, (os.getuid(), os.getgid()), blocks * 4096)

    for number in range(19):
        (work / str(number)).write_text("x")
    copy(20)
    with pytest.raises(filesystem.TooMuch, match="disk space"):
        copy(19)
    (work / "one more").touch()
    with pytest.raises(filesystem.TooMuch, match="20 files"):
        copy(99)


def started(mark: str) -> list[psutil.Process]:
    """Return the processes that were started with this argument, when there are any."""

    def found() -> list[psutil.Process]:
        return [p for p in psutil.process_iter(["cmdline"]) if mark in (p.info["cmdline"] or ())]

    wait_until(found)
    return found()


DAEMON = """
import contextlib, os, time
if not os.fork():
    with contextlib.suppress(OSError):
        os.setsid()
    if not os.fork():
        os.execvp("sleep", ["sleep", "MARK"])
    os._exit(0)
os.wait()
print("started")
"""


def test_a_daemon_ends_with_the_notebook(box):
    for number, chosen in enumerate((Level.NONE, box.level)):
        mark = f"3600.{os.getpid()}{number}"
        with box.notebook(chosen) as notebook:
            assert said(notebook, DAEMON.replace("MARK", mark)) == "started"
            [daemon] = started(mark)
        if chosen is Level.NONE:
            time.sleep(0.2)
            assert lives(daemon.pid)
            daemon.kill()
        wait_for_ends([daemon.pid])


def test_processes_end_with_the_warm_process(levels, work):
    made, mark, left = ForkServer(), f"3600.{os.getpid()}3", list[psutil.Process]()
    gone = pytest.raises(RuntimeError, match="the fork server ended while the notebook ran")
    with gone, contextlib.ExitStack() as stack:
        boxes = [Box(made, level, work) for level in levels]
        notebooks = [stack.enter_context(box.notebook()) for box in boxes]
        for number, notebook in enumerate(notebooks):
            said(notebook, f"import subprocess\nsubprocess.Popen(['sleep', '{mark}{number}'])")
            left += started(f"{mark}{number}")
        made._process.kill()
        made._process.wait()
        for notebook in notebooks:
            with pytest.raises(Ended):
                said(notebook, f"import time\ntime.sleep({HANG})")
    wait_for_ends([process.pid for process in left])


def test_no_capability_is_left(box):
    nothing, read = "0" * 16, "print(open('/proc/self/status').read())"
    with box.notebook() as notebook:
        told = dict(re.findall(r"^(\w+):\t(.*)", said(notebook, read), re.M))
        assert [told[one] for one in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [nothing] * 4
        assert told["NoNewPrivs"] == "1"
        assert told["Seccomp"] == "2"
        if box.level is Level.NAMESPACES or os.geteuid() == 0:  # to drop these takes a right
            assert told["CapBnd"] == nothing
        if box.level is Level.NAMESPACES:
            assert said(notebook, "import os\nos.getuid() > 0 and os.getgid() > 0") == "True"
    with box.notebook(Level.NONE) as notebook:
        assert "NoNewPrivs:\t0" in said(notebook, read)


def test_no_file_of_the_grader_is_open(box):
    source = (
        "import os, stat\nfor number in range(256):\n    try: mode = os.fstat(number).st_mode\n"
        "    except OSError: continue\n    print('socket' if stat.S_ISSOCK(mode) else "
        "os.readlink(f'/proc/self/fd/{number}') if number > 2 else 'standard')"
    )
    with Path(os.devnull).open() as leaked:
        os.set_inheritable(leaked.fileno(), True)
        told = box.run(source).split()
    # one leads to the grader, one to the process of the tests
    assert sorted(told) == ["socket"] * 2 + ["standard"] * 3


def test_notebook_cannot_read_or_kill_first_process(spaces):
    source = "import os, signal\nos.kill(1, signal.SIGKILL)\nopen('/proc/1/mem', 'rb')"
    with spaces.notebook() as notebook:
        assert said(notebook, source) == "PermissionError"
        assert said(notebook, "import os\nos.getpid(), os.getppid()") == "(2, 1)"


LOOKUPS = """
import gettext, locale, mimetypes, ssl, zoneinfo
locale.setlocale(locale.LC_ALL, "")
ssl.create_default_context()
place = zoneinfo.ZoneInfo("Europe/Paris").key.partition("/")[2]
print(mimetypes.guess_type("a.png")[0], place, gettext.find("none") is None)
"""


def test_libraries_and_programs_work_when_sealed(bare, level, work):
    with Box(bare, level, work).notebook() as notebook:
        assert said(notebook, LOOKUPS) == "image/png Paris True"
        figure = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"
        assert "image/png" in notebook.run(figure)[0].outputs[0]["data"]
        assert said(notebook, "import subprocess\nsubprocess.check_output(['echo', 'a'])")
        assert said(notebook, "import asyncio\nawait asyncio.sleep(0)\n5") == "5"


def test_the_warm_process_has_one_thread(server):
    assert psutil.Process(server._process.pid).num_threads() == 1


def test_probe_prints_level_and_its_gaps(levels):
    done = python("-m", "gradebox.sandbox.probe")
    first, *others = done.stdout.splitlines()
    assert first == f"sealed by: {probe.survey().level}"
    for level in levels:
        [told] = [line for line in others if line.startswith(f"  {level}: works")]
        assert ("names and sizes of other files" in told) is (level is Level.LANDLOCK)
    assert done.returncode == 0


def test_namespaces_work_without_root():
    done = python(
        "-c",
        "from gradebox.sandbox import probe, seal\nseal._may_change_user = lambda *needed: False\n"
        "print(probe._tried(seal.Level.NAMESPACES))",
    )
    if subprocess.run(["unshare", "--user", "true"], check=False).returncode:
        pytest.skip("no user namespaces here")
    assert done.stdout == "works\n"


def test_processes_begun_outside_are_refused_namespaces():
    source = "from gradebox.sandbox import seal\nseal.seal(seal.Limits(), '/', keep=[2])"
    done = python("-c", source)
    assert "no namespaces: this is no fork of seal" in done.stderr


def test_unsupported_systems_and_machines_have_no_seal(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(OSError, match="got vax"):
        seal._beyond()
    monkeypatch.setattr(sys, "platform", "darwin")
    assert str(probe._survey.__wrapped__()).startswith("sealed by: none\n")
    linux._libc.cache_clear()
    with pytest.raises(OSError, match="got darwin"):
        linux.fork_into(0)


def test_nbgrader_seals_by_default(tmp_path, outside, monkeypatch):
    def shows(**settings: Any) -> str:
        probe = outside.fill("read a file outside")
        return shown(graded(tmp_path, probe, **settings)[0][0]).strip()

    monkeypatch.delenv("GRADEBOX_ALLOW_UNSEALED", raising=False)
    assert shows() != "through"
    assert shows(readable=[str(outside.folder)]) == "through"
    with pytest.raises(NotSealed, match="set GRADEBOX_ALLOW_UNSEALED=yes"):
        shows(sandbox="none")
    monkeypatch.setenv("GRADEBOX_ALLOW_UNSEALED", "yes")
    assert shows(sandbox="none") == "through"
    assert shows() != "through"


def test_nbgrader_passes_configured_limits_on(tmp_path, monkeypatch):
    for name in ("COURSE_DATA", "NBGRADER_EXECUTION", *SECRETS):
        monkeypatch.setenv(name, "here")
    names = ["memory", "cpu", "processes", "files", "file_size", "disk", "output"]
    values = (2**28, 11, 12, 33, 2**20, 2**24, 999)
    limits = dict(zip([f"max_{name}" for name in names], values, strict=True))
    looks = f"{LEAKS}\nprint(leaks, [name for name in os.environ if os.environ[name] == 'here'])"
    with patch.object(execute, "Begin", wraps=Begin) as began:
        [told], _ = graded(tmp_path, looks, environment=["COURSE_DATA"], **limits)
    assert began.call_args.args[3] == asdict(Limits(*values))
    assert shown(told) == "[] ['NBGRADER_EXECUTION', 'COURSE_DATA']\n"
    [told, test], _ = graded(tmp_path, looks, cell("test", looks, 1))
    assert shown(told) == shown(test) == "[] ['NBGRADER_EXECUTION']\n"
