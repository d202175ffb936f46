"""Attacks on the machine, the gradebook, and other students."""

import os

from hostile.case import (
    ENDED,
    ENDED_IN_TEST,
    FULL,
    SLOW,
    SLOW_IN_TEST,
    Build,
    Case,
    answers,
    extra_cell,
    first,
    last,
    points,
)
from hostile.course import NOTHING, SECONDS, Work

# What could hurt a machine hurts none by itself: each bomb ends after an amount that any machine
# has, and what kills does so only in a process whose host name says that it is sealed.
_SEALED = (
    "import socket, sys\n"
    "if sys.platform != 'wasi' and socket.gethostname() != 'student':\n"
    "    raise SystemExit('not sealed')\n"
)

NO_CALL = {"scores": FULL, "flags": (), "outputs": {"cell 1": "AttributeError"}}


def _file(name: str, content: str) -> Build:
    def build(work: Work) -> None:
        work.answer(
            squares="def sum_of_squares(x):\n    return 0.0",
            means="def means(rows):\n    return 0.0",
        )
        (work.folder / name).write_text(content)

    return build


def _ships(work: Work) -> None:
    for name in ("sitecustomize", "gradebox", "ast", "numbers"):
        _file(f"{name}.py", "import builtins\nbuiltins.sum = lambda *a: 4\n")(work)


def _sleeps_on(work: Work) -> None:
    work.honest()
    for _ in range(10):
        work.first(f"import time\ntime.sleep({SECONDS - 0.5})")


def _link(name: str, target: str) -> Build:
    def build(work: Work) -> None:
        work.honest()
        (work.folder / name).symlink_to(target.replace("ROOT", str(work.root)))

    return build


def _pipe(work: Work) -> None:
    work.honest()
    os.mkfifo(work.folder / "pipe")


def _time(text: str, source: str = "") -> Build:
    def build(work: Work) -> None:
        work.honest()
        (work.folder / "timestamp.txt").write_text(text)
        work.first(source)

    return build


LATE = "2026-01-03 00:00:00 UTC"

OUTSIDE = [
    Case(
        "update-gradebook",
        "`UPDATE` on the gradebook: full marks by hand and extra credit",
        first(
            "import sqlite3\nfrom pathlib import Path\n"
            "for path in ['ROOT/gradebook.db', *Path().resolve().parents[2].glob('*.db')]:\n"
            "    try:\n"
            "        with sqlite3.connect(f'file:{path}?mode=rw', uri=True, timeout=1) as book:\n"
            "            book.execute('UPDATE grade SET manual_score = 4, extra_credit = 50')\n"
            "    except Exception as error: print(error)"
        ),
    ),
    Case(
        "start-up-files",
        "start-up files for the next student, in the home, beside Python, in the course",
        first(
            _SEALED + "import os, sys\nfrom pathlib import Path\n"
            "text = 'import builtins; builtins.sum = lambda *a: 4  # MARK'\n"
            "home = Path.home()\n"
            "places = [home / '.ipython/profile_default/startup/00.py', Path('ROOT/numpy.py')]\n"
            "places += [Path(p) / f'{n}.py' for p in sys.path if p\n"
            "    for n in ('sitecustomize', 'usercustomize', 'numbers')]\n"
            "places += [Path(sys.prefix) / 'MARK', Path('/etc/MARK'), Path('/tmp/MARK')]\n"
            "for place in places:\n"
            "    try:\n"
            "        place.parent.mkdir(parents=True, exist_ok=True)\n"
            "        place.write_text(text)\n"
            "    except OSError as error: print(error)"
        ),
        unrun="it would write beside this machine's Python",
        stock="they are written with the instructor's rights, and each later kernel runs them",
    ),
    Case(
        "poisons-next",
        "the modules of the process poisoned for whoever comes next in it",
        first(
            "import builtins, json, numpy, sys\n"
            "for place in builtins, numpy: place.allclose = place.sum = lambda *a, **k: 4\n"
            "numpy.__dict__['allclose'] = lambda *a, **k: True"
        ),
    ),
    Case(
        "kills-parent",
        "the parent killed, and every process that may be",
        extra_cell(
            _SEALED + "import os, signal\n"
            "for target in (os.getppid(), 1, -1, 0):\n"
            "    try: os.kill(target, signal.SIGKILL)\n"
            "    except OSError as error: print(error)"
        ),
        scores=NOTHING,
        flags=(ENDED,),
        in_wasm=NO_CALL,
        unrun="it would kill the grader, and as root the machine",
        stock="the kernel's parent is nbgrader itself: the run ends, with every student after it",
    ),
    Case(
        "daemon",
        "a process that leaves the group by two forks and a session of its own",
        extra_cell(
            "import os, subprocess, sys\n"
            "if os.fork() == 0:\n"
            "    os.setsid()\n"
            "    if os.fork() == 0:\n"
            "        sleep = 'import time; time.sleep(3600)'\n"
            "        os.execv(sys.executable, [sys.executable, '-c', sleep, 'MARK-daemon'])\n"
            "    os._exit(0)"
        ),
        scores=FULL,
    ),
    Case(
        "network",
        "data sent out: TCP, UDP and abstract sockets to a listener of this machine",
        extra_cell(
            "import socket\n"
            "places = [(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', PORT)),\n"
            "    (socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', PORT)),\n"
            "    (socket.AF_UNIX, socket.SOCK_STREAM, '\\0MARK')]\n"
            "for family, kind, address in places:\n"
            "    try:\n"
            "        with socket.socket(family, kind) as end:\n"
            "            end.settimeout(0.5)\n"
            "            end.connect(address)\n"
            "            end.send(b'the answers')\n"
            "            print('sent', address)\n"
            "    except OSError as error: print(error)"
        ),
        scores=FULL,
    ),
    Case(
        "root-tricks",
        "root's calls: another user, another root, a mount, the clock, a device",
        extra_cell(
            _SEALED + "import os, time\nrefused = []\n"
            "def tell(name, call, *args):\n"
            "    try: call(*args)\n"
            "    except OSError: refused.append(name)\n"
            "tell('setuid', os.setuid, 0)\ntell('chroot', os.chroot, '/tmp')\n"
            "tell('clock', time.clock_settime, time.CLOCK_REALTIME, 0)\n"
            "tell('device', os.mknod, 'sda', 0o60600, os.makedev(8, 0))\n"
            "tell('nice', os.setpriority, os.PRIO_PROCESS, 0, -20)\n"
            "print(*refused)"
        ),
        scores=FULL,
        outputs={"cell 1": "setuid chroot clock device nice"},
        in_wasm=NO_CALL,
        unrun="it would set this machine's clock",
        stock="the calls are made with the instructor's rights",
    ),
    Case(
        "ships-numpy",
        "a `numpy.py` handed in beside the notebook",
        _file(
            "numpy.py",
            "def allclose(*a, **k): return True\ndef shape(x): return ()\narray = arange = list\n",
        ),
        scores=NOTHING,
    ),
    Case(
        "ships-others",
        "a `sitecustomize.py`, `gradebox.py` and `ast.py` handed in beside the notebook",
        _ships,
        scores=NOTHING,
    ),
    Case(
        "link-secret",
        "a link to a secret of the grader's handed in as data",
        _link("data.txt", "ROOT/secret.txt"),
        scores=None,
        why="data.txt is a link",
    ),
    Case(
        "link-zero",
        "a link to `/dev/zero` handed in as data",
        _link("data.txt", "/dev/zero"),
        scores=None,
        why="data.txt is a link",
        unrun="it would fill the disk",
        stock="the link is followed and copied until the disk is full",
    ),
    Case(
        "link-loop",
        "a link to the folder that it lies in",
        _link("again", "."),
        scores=None,
        why="again is a link",
    ),
    Case("pipe", "a named pipe handed in", _pipe, scores=None, why="pipe is a pipe"),
    Case(
        "late-rewrites",
        "late, and the time stamp rewritten by a cell",
        _time(
            LATE,
            "from pathlib import Path\n"
            "for path in ['timestamp.txt', 'ROOT/submitted/late-rewrites/numbers/timestamp.txt']:\n"
            "    try: Path(path).write_text('2020-01-01 00:00:00 UTC')\n"
            "    except OSError as error: print(error)",
        ),
        scores=FULL,
        flags=("handed in 24 hours late", "13 points taken off for being late"),
        late=True,
    ),
    Case(
        "late-clock",
        "late, and the clock of the process set back",
        _time(
            LATE,
            "import time, datetime\ntime.time = lambda: 0.0\n"
            "import os\nos.utime('timestamp.txt', (0, 0))",
        ),
        scores=FULL,
        flags=("handed in 24 hours late", "13 points taken off for being late"),
        late=True,
    ),
    Case(
        "no-time",
        "a time stamp that is none",
        _time("before the deadline, honestly"),
        scores=None,
        why="timestamp.txt holds no time",
    ),
]

DEATHS = [
    Case(
        "exits",
        "`os._exit` in the first cell",
        extra_cell("import os\nos._exit(0)"),
        scores=NOTHING,
        flags=(ENDED,),
    ),
    Case(
        "exits-late",
        "`os._exit` in the last cell",
        last("import os\nos._exit(0)"),
        scores=FULL,
        flags=(ENDED,),
    ),
    Case(
        "exits-in-test",
        "`os._exit` in a function that a test calls: the tests before keep their points",
        answers(running="import os\nclass Running:\n    def __init__(self): os._exit(0)"),
        scores=points(test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(ENDED_IN_TEST,),
    ),
    Case(
        "segfault",
        "a segmentation fault",
        answers(means="import ctypes\ndef means(rows):\n    ctypes.string_at(0)"),
        scores=points(test_means=0.0, test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(ENDED_IN_TEST,),
        in_wasm={"scores": points(test_means=0.0), "flags": ()},
    ),
    Case(
        "system-exit",
        "`SystemExit` raised where a test calls",
        answers(squares="def sum_of_squares(x):\n    raise SystemExit(0)"),
        scores=points(test_squares=0.0),
    ),
    Case(
        "interrupts-itself",
        "`KeyboardInterrupt` raised where a test calls",
        answers(squares="def sum_of_squares(x):\n    raise KeyboardInterrupt"),
        scores=points(test_squares=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "stack-overflow",
        "a recursion without end, and without Python's limit",
        answers(
            means="import sys\ndef means(rows):\n    sys.setrecursionlimit(10**9)\n"
            "    return [*map(means, [rows])]"
        ),
        scores=points(test_means=0.0, test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(ENDED_IN_TEST,),
        in_wasm={"scores": points(test_means=0.0), "flags": ()},
    ),
    Case(
        "deep-recursion",
        "a recursion without end",
        answers(means="def means(rows):\n    return means(rows)"),
        scores=points(test_means=0.0),
        outputs={"test-means": "RecursionError"},
    ),
    Case(
        "stops-itself",
        "the process stopped (SIGSTOP)",
        answers(
            means="import os, signal\ndef means(rows):\n    os.kill(os.getpid(), signal.SIGSTOP)"
        ),
        scores=points(test_means=0.0, test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(SLOW_IN_TEST,),
        in_wasm={"scores": points(test_means=0.0), "flags": ()},
    ),
    Case(
        "closes-files",
        "all open files of the process closed",
        extra_cell("import os\nos.closerange(0, 256)"),
        scores=NOTHING,
        flags=(ENDED,),
        # its folder is closed, with the module of the third test
        in_wasm={"scores": points(test_running=0.0), "flags": ()},
    ),
]

LOOPS = [
    Case(
        "endless",
        "a loop without end where a test calls",
        answers(means="def means(rows):\n    while True: pass"),
        scores=points(test_means=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "endless-cell",
        "a loop without end in a cell of the student's own",
        extra_cell("while True: pass"),
        scores=FULL,
        flags=(SLOW,),
    ),
    Case(
        "catches-interrupt",
        "a loop that catches every interrupt",
        answers(
            running="class Running:\n    def __init__(self):\n        while True:\n"
            # Python 3.11 does not catch what comes at the first instruction after a try
            "            try:\n                n = 0\n                while True: n += 1\n"
            "            except BaseException: pass"
        ),
        scores=points(test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "ignores-interrupt",
        "a loop after SIGINT was ignored",
        answers(
            running="import signal\nclass Running:\n    def __init__(self):\n"
            "        signal.signal(signal.SIGINT, signal.SIG_IGN)\n        while True: pass"
        ),
        scores=points(test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "loops-in-c",
        "a loop without end inside a function of C",
        answers(
            running="import itertools\nclass Running:\n    def __init__(self):\n"
            "        max(itertools.repeat(1))"
        ),
        scores=points(test_running=0.0, share=0.0, test_nearest=0.0),
        flags=(SLOW_IN_TEST,),
    ),
    Case(
        "sleeps-in-tests",
        "each answer sleeps just under the limit",
        answers(
            squares=f"import time\ndef sum_of_squares(x):\n    time.sleep({SECONDS / 2 - 0.5})\n"
            "    return float((numpy.asarray(x) ** 2).sum())"
        ),
        scores=FULL,
    ),
    Case(
        "sleeps-on",
        "many cells that each sleep just under the limit",
        _sleeps_on,
        scores=NOTHING,
        flags=("all cells together took too long",),
        maybe=(SLOW,),
    ),
    Case(
        "regular-expression",
        "a regular expression that takes exponential time",
        answers(means="import re\ndef means(rows):\n    return re.match('(a+)+$', 'a' * 40 + 'b')"),
        scores=points(test_means=0.0),
        flags=(SLOW_IN_TEST,),
    ),
]

_BOMB = "it could exhaust this machine"

BOMBS = [
    Case(
        "memory-bomb",
        "memory taken without end",
        # not written to: that takes time
        extra_cell("kept = []\nfor _ in range(40): kept.append(bytearray(50 * 2**20))"),
        scores=FULL,
        flags=("the cell needed more memory than it may use",),
        outputs={"cell 1": "MemoryError"},
        unrun=_BOMB,
        stock="no limit: the machine swaps or kills processes, which ones is chance",
    ),
    Case(
        "memory-by-many",
        "memory taken by many processes, each under the limit",
        extra_cell(
            # little is written, and nothing ends by itself: whether it is ended in time decides
            _SEALED + "import os, time\n"
            "for _ in range(5):\n"
            "    if os.fork() == 0:\n"
            "        kept = bytearray(b'x') * (80 * 2**20)\n"
            "        time.sleep(3600)\n"
            "time.sleep(3600)"
        ),
        scores=NOTHING,
        flags=(ENDED,),
        in_wasm=NO_CALL,
        unrun=_BOMB,
        stock="no limit: the machine swaps or kills processes, which ones is chance",
    ),
    Case(
        "fork-bomb",
        "processes that start processes",
        extra_cell(
            _SEALED + "import os, signal, time\nstarted = []\n"
            "try:\n"
            "    while len(started) < 300:\n"
            "        started.append(os.fork())\n"
            "        if not started[-1]: time.sleep(3600)\n"
            "    print('let through')\n"
            "except OSError as error: print('held back')\n"
            "for one in started:\n"
            "    os.kill(one, signal.SIGKILL)\n"
            "    os.waitpid(one, 0)"
        ),
        scores=FULL,
        outputs={"cell 1": "held back"},
        in_wasm=NO_CALL,
        unrun=_BOMB,
        stock="no limit: the machine has no process left for anybody",
    ),
    Case(
        "thread-bomb",
        "threads without end",
        extra_cell(
            "import threading, time\n"
            "stop = threading.Event()\n"
            "try:\n"
            "    for number in range(300): threading.Thread(target=stop.wait).start()\n"
            "    print('let through')\n"
            "except RuntimeError as error: print('held back')\n"
            "stop.set()"
        ),
        scores=FULL,
        outputs={"cell 1": "held back"},
        unrun=_BOMB,
        stock="no limit",
    ),
    Case(
        "disk-bomb",
        "a file that grows without end",
        extra_cell(
            "try:\n"
            "    with open('big', 'wb') as file:\n"
            "        for _ in range(200): file.write(b'x' * 2**20)\n"
            "    print('let through')\n"
            "except OSError as error: print('held back', error)"
        ),
        scores=FULL,
        outputs={"cell 1": "held back"},
        unrun=_BOMB,
        stock="no limit: the disk of the gradebook fills up",
    ),
    Case(
        "file-bomb",
        "small files without end",
        extra_cell(
            "from pathlib import Path\n"
            "try:\n"
            "    for number in range(30_000): Path(f'/tmp/{number}').touch()\n"
            "    print('let through')\n"
            "except OSError as error: print('held back', error)"
        ),
        scores=FULL,
        outputs={"cell 1": "held back"},
        unrun=_BOMB,
        stock="no limit: the folder lies on the disk of the gradebook",
    ),
    Case(
        "output-bomb",
        "20 MB printed",
        extra_cell("for _ in range(200): print('x' * 100_000)"),
        scores=FULL,
        outputs={"cell 1": "the rest is left out"},
    ),
    Case(
        "output-in-test",
        "20 MB printed where a test calls",
        answers(
            squares="def sum_of_squares(x):\n"
            "    for _ in range(200): print('x' * 100_000)\n"
            "    return float((numpy.asarray(x) ** 2).sum())"
        ),
        scores=FULL,
    ),
    Case(
        "result-bomb",
        "20 MB shown as one result",
        extra_cell("'x' * 20_000_000"),
        scores=FULL,
    ),
    Case(
        "many-outputs",
        "outputs without end",
        extra_cell("from IPython.display import display\nwhile True: display(1)"),
        scores=FULL,
        flags=(SLOW,),
    ),
]

STREAMS = [
    Case(
        "stops-io",
        "the threads and streams that bring output to the grader stopped",
        extra_cell(
            "import sys\nshell = get_ipython()\n"
            "if hasattr(shell, 'kernel'): shell.kernel.iopub_thread.stop()\n"
            "sys.stdout.close()\nsys.stderr.close()\nsys.stdout = sys.stderr = None"
        ),
        scores=NOTHING,
        flags=(ENDED,),
    ),
    Case(
        "input",
        "`input()`: nobody answers",
        answers(means="def means(rows):\n    return [float(input('mean? '))]"),
        scores=points(test_means=0.0),
    ),
    Case(
        "stderr",
        "right answers that write to the standard error",
        answers(
            squares="import sys, warnings\ndef sum_of_squares(x):\n"
            "    print('a note', file=sys.stderr)\n    warnings.warn('slow')\n"
            "    return float((numpy.asarray(x) ** 2).sum())"
        ),
        scores=FULL,
    ),
    Case(
        "coin",
        "an answer that is right by chance",
        answers(
            means="import os\ndef means(rows):\n"
            "    return [sum(row) / len(row) for row in rows] if os.urandom(1) < b'\\x80' else []"
        ),
        scores=FULL,
        either=("test-means",),
    ),
    Case(
        "leaves-threads",
        "right answers with threads that go on printing",
        extra_cell(
            "import threading, time\n"
            "def chatter():\n"
            "    for _ in range(1000):\n        print('still here')\n        time.sleep(0.01)\n"
            "threading.Thread(target=chatter, daemon=True).start()"
        ),
        scores=FULL,
    ),
]
