"""What stock nbgrader makes of the hostile submissions: ``python -m benchmarks.hostile_control``.

Each harmless case is graded once by ``nbgrader autograde``, with an honest submission after it, in
a throw-away folder that is its home, in a process namespace of its own that ends with it, within
limits. What could hurt a machine is not run; the cases say why, and what the code of nbgrader does.
The outcomes go to ``tests/gradebox/hostile/stock.json``. Linux and root's ``unshare`` are needed.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / name) for name in ("gradebox", "checks", "house")]

from hostile import browser, course, outcome  # noqa: E402
from hostile.cases import CASES, GROUPS, Case  # noqa: E402
from hostile.course import NAME, PASSWORD, POINTS, Work  # noqa: E402
from hostile.listener import listening  # noqa: E402

FILE = ROOT / "tests/gradebox/hostile/stock.json"
HONEST = "zz-honest"
SECONDS = 60
"""Seconds of wall time until a run counts as one that does not end: run this on an idle machine."""
LIMITS = {"AS": 8 * 2**30, "FSIZE": 2**28, "CORE": 0, "CPU": 60}

WATCH = """
import os, pathlib, subprocess, sys
code = subprocess.run([sys.executable, "-m", "nbgrader", "autograde", sys.argv[1]]).returncode
for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        if (sys.argv[2] + "-daemon").encode() in place.read_bytes().split(b"\\0"):
            pathlib.Path("left").touch()
    except OSError: pass
sys.exit(code)
"""


def main() -> None:
    """Run the control and write its outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only these cases")
    names = parser.parse_args().names
    if shutil.which("unshare") is None or os.geteuid() != 0:
        raise SystemExit("expected root and unshare: nothing hostile is run without its namespace")
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {}
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        released = Path(folder).resolve() / "released"
        course.create(released)
        for case in CASES:
            if case.unrun or (names and case.name not in names):
                continue
            found[case.name] = control(case, released, Path(folder).resolve() / case.name / "c")
            print(case.name, json.dumps(found[case.name]), flush=True)
    known = [case.name for case in CASES if not case.unrun]
    # a line for each case
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(found[n])}" for n in known if n in found)
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def control(case: Case, released: Path, root: Path) -> dict[str, Any]:
    """Grade one case with stock nbgrader, and return what became of it."""
    shutil.copytree(released, root)
    mark = f"control-{os.getpid()}"
    with listening(mark) as (port, heard):
        work = Work(root, case.name, port, mark)
        case.build(work)
        work.save()
        honest = Work(root, HONEST)
        honest.honest()
        honest.save()
        code, text = run(root, [sys.executable, "-c", WATCH, NAME, mark])
    scores = outcome.scores(root)
    graded = outcome.page(root, case.name) is not None
    result: dict[str, Any] = {"ended": code is not None, "graded": graded}
    if graded:
        mine = scores[case.name]
        result["scores"] = {name: mine.get(name, (None,))[0] for name in POINTS}
        more = sum((row[1] or 0) + (row[2] or 0) for row in mine.values())
        result |= {"by_hand": more} if more else {}
        result |= {"late": True} if any(row[3] for row in mine.values()) else {}
    else:
        errors = re.findall(
            r"^ *(?:\w+\.)*(\w*(?:Error|Exception|Exit|Interrupt|NoSuchKernel))\b", text, re.M
        )
        result["error"] = errors[-1] if errors else ""
    honest_scores = [row[0] for name, row in scores.get(HONEST, {}).items() if name in POINTS]
    result["neighbour"] = sum(one or 0 for one in honest_scores)
    result["leaks"] = outcome.leaks(root, case.name)
    made = root / "autograded" / case.name
    texts = [path.read_bytes() for path in made.rglob("*.txt") if path.is_file()]
    result["copied"] = PASSWORD.encode() in b"".join(texts)
    result["heard"] = len(heard) > 0
    result["left"] = (root / "left").exists()
    result["reduced"] = (root / "reduced").exists()
    if graded and case in GROUPS["The instructor's browser"]:
        code, _ = run(root, [sys.executable, "-m", "nbgrader", "generate_feedback", NAME])
        page = root / "feedback" / case.name / NAME / f"{NAME}.html"
        result["feedback"] = page.is_file()
        result["ran"] = browser.visit([page])[0].ran if page.is_file() else []
    shutil.rmtree(root.parent)
    return {
        name: value
        for name, value in result.items()
        if value is not False and value not in ([], "")
    }


def _limit() -> None:
    for name, most in LIMITS.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def run(root: Path, command: list[str]) -> tuple[int | None, str]:
    """Run a command in a namespace that ends with it; no exit status means that it had to."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root),
        "TMPDIR": str(root),
        "PYTHONPATH": str(root / "lib"),
        "GRADER_PASSWORD": PASSWORD,
        "OMP_NUM_THREADS": "1",
    }
    sealed = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--", *command]
    with subprocess.Popen(
        sealed,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=_limit,
        start_new_session=True,
    ) as process:
        try:
            text, _ = process.communicate(timeout=SECONDS)
            return process.returncode, text
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""


if __name__ == "__main__":
    main()
